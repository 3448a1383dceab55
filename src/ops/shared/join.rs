//! The join of facts: the facts that hold for a value from either of two sources.
//!
//! A dim that is `a` in one source and `b` in the other becomes a new symbol. Places with the same pair share the symbol, because
//! one choice of the source determines all of them.
//!
//! The element type of a sequence describes all elements at once. A fresh symbol there is some size that may differ between
//! elements; readers of an element must replace it by a separate symbol ([`element_of`]).

use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::dim::{Dim, Scope, Symbol};
use crate::ir::{Content, Data, Fact, Scalar, TensorType, Type};
use crate::ops::Site;

/// The relation of the two sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// Either of two alternatives.
    Either,
    /// A loop-carried value: its initial value, and its value after an iteration.
    Carried,
}

/// Joins facts and records the symbols for pairs of dims.
pub(in crate::ops) struct Join {
    scope: Rc<Scope>,
    stem: String,
    mode: Mode,
    pairs: FxHashMap<(Dim, Dim), Dim>,
    /// Symbols for dims that change between iterations; see [`Join::carried`].
    varying: FxHashSet<Symbol>,
    /// Symbols for sizes that elements of a sequence need not share.
    anonymous: FxHashSet<Symbol>,
    /// The symbols of `varying` that their first group of places keeps.
    kept: FxHashSet<Symbol>,
    /// The symbol for the number of the current iteration, if any, and the first symbol that belongs to iterations.
    counter: Option<(Dim, Symbol)>,
    /// Dims that are at least 0 if the first, or the second, alternative is taken.
    premises: [Vec<Dim>; 2],
    /// Dims that grow by the same amount in each iteration: `start + number · step`.
    lines: FxHashMap<Dim, Line>,
    /// `true` if the current step weakened a fact.
    changed: bool,
}

/// A dim that grows by `step` in each iteration.
#[derive(Clone, Debug)]
pub(in crate::ops) struct Line {
    start: Dim,
    step: Dim,
}

impl Line {
    /// Returns the dim after this many iterations.
    pub(in crate::ops) fn after(&self, scope: &Scope, iterations: &Dim) -> Dim {
        scope.add(&self.start, &scope.mul(iterations, &self.step))
    }
}

impl Join {
    /// Returns a join of alternatives; `stem` is the name prefix of new symbols.
    pub(in crate::ops) fn either(scope: &Rc<Scope>, stem: &str) -> Join {
        Join {
            scope: Rc::clone(scope),
            stem: stem.to_string(),
            mode: Mode::Either,
            pairs: FxHashMap::default(),
            varying: FxHashSet::default(),
            anonymous: FxHashSet::default(),
            kept: FxHashSet::default(),
            counter: None,
            premises: [Vec::new(), Vec::new()],
            lines: FxHashMap::default(),
            changed: false,
        }
    }

    /// Adds dims that are at least 0 if the first, or the second, alternative is taken.
    pub(in crate::ops) fn under(mut self, first: Vec<Dim>, second: Vec<Dim>) -> Join {
        self.premises = [first, second];
        self
    }

    /// Returns a common expression for both alternatives: one of them, or their minimum or maximum. The premises of each alternative
    /// must prove it equal there.
    fn common(&self, a: &Dim, b: &Dim) -> Option<Dim> {
        let [first, second] = &self.premises;
        if first.is_empty() && second.is_empty() {
            return None;
        }
        let order = |premises: &[Dim]| {
            self.scope.supposing(premises, || (self.scope.le(a, b).is_yes(), self.scope.ge(a, b).is_yes()))
        };
        match (order(first), order(second)) {
            (_, (true, true)) => Some(a.clone()),
            ((true, true), _) => Some(b.clone()),
            ((true, _), (_, true)) => Some(self.scope.min(a, b)),
            ((_, true), (true, _)) => Some(self.scope.max(a, b)),
            _ => None,
        }
    }

    /// Returns a join over the iterations of a loop; [`Join::step`] is called for each carried value in turn. A round of steps yields
    /// the facts for the next inference. If a round weakens nothing, the facts hold for all iterations by induction: at the start of
    /// the first one, and from the start of one to the start of the next.
    ///
    /// A dim that grows by the same amount in each iteration becomes an expression in the iteration number, if that has a symbol;
    /// symbols from `mark` on belong to iterations. Any other dim that changes becomes a symbol for "in the current iteration".
    /// Places share a symbol while they start equal and each iteration keeps them equal; else the group is split.
    pub(in crate::ops) fn carried(scope: &Rc<Scope>, stem: &str, number: Option<&Dim>, mark: Symbol) -> Join {
        let counter = number.filter(|number| number.as_symbol().is_some()).map(|number| (number.clone(), mark));
        Join { mode: Mode::Carried, counter, ..Join::either(scope, stem) }
    }

    /// Returns the dims that are expressions in the iteration number.
    pub(in crate::ops) fn into_lines(self) -> FxHashMap<Dim, Line> {
        self.lines
    }

    /// Starts the next round.
    pub(in crate::ops) fn next_round(&mut self) {
        self.pairs.clear();
        self.kept.clear();
    }

    /// Joins the facts before and after an iteration; also returns `true` if that weakened a fact.
    pub(in crate::ops) fn step(&mut self, before: &Fact, after: &Fact) -> (Fact, bool) {
        self.changed = false;
        let joined = self.facts(before, after);
        (joined, self.changed)
    }

    /// Joins the facts of two sources of a value.
    pub(in crate::ops) fn facts(&mut self, a: &Fact, b: &Fact) -> Fact {
        // An empty sequence is compatible with all element types.
        let ty = match (is_empty_sequence(a), is_empty_sequence(b)) {
            (true, false) if matches!(b.ty, Some(Type::Sequence(_))) => {
                self.changed = true;
                b.ty.clone()
            }
            (false, true) if matches!(a.ty, Some(Type::Sequence(_))) => a.ty.clone(),
            _ => match (&a.ty, &b.ty) {
                (Some(a), Some(b)) => self.types(a, b),
                (Some(_), None) => {
                    self.changed = true;
                    None
                }
                (None, _) => None,
            },
        };
        let content = self.contents(a, b, ty.as_ref());
        Fact { ty, content }
    }

    fn types(&mut self, a: &Type, b: &Type) -> Option<Type> {
        Some(match (a, b) {
            (Type::Tensor(a), Type::Tensor(b)) => Type::Tensor(self.tensors(a, b)),
            (Type::SparseTensor(a), Type::SparseTensor(b)) => Type::SparseTensor(self.tensors(a, b)),
            (Type::Optional(a), Type::Optional(b)) => {
                let inner = match (a, b) {
                    (Some(a), Some(b)) => self.types(a, b),
                    _ => None,
                };
                self.changed |= a.is_some() && inner.is_none();
                Type::Optional(inner.map(Box::new))
            }
            (Type::Sequence(a), Type::Sequence(b)) => Type::Sequence(self.inner_elements(a, b)),
            (Type::Map(j, a), Type::Map(k, b)) if j == k => Type::Map(*j, self.inner_elements(a, b)),
            _ => {
                self.changed = true;
                return None;
            }
        })
    }

    fn tensors(&mut self, a: &TensorType, b: &TensorType) -> TensorType {
        let dtype = a.dtype.filter(|_| a.dtype == b.dtype);
        let shape = match (&a.shape, &b.shape) {
            (Some(x), Some(y)) if x.len() == y.len() => Some(x.iter().zip(y).map(|(x, y)| self.dim(x, y)).collect()),
            _ => None,
        };
        self.changed |= (a.dtype.is_some() && dtype.is_none()) || (a.shape.is_some() && shape.is_none());
        TensorType { dtype, shape }
    }

    fn inner_elements(&mut self, a: &Option<Box<Type>>, b: &Option<Box<Type>>) -> Option<Box<Type>> {
        let inner = match (a, b) {
            (Some(a), Some(b)) => self.elements(a, b),
            _ => None,
        };
        self.changed |= a.is_some() && inner.is_none();
        inner.map(Box::new)
    }

    /// Joins the element types of two sequences.
    pub(in crate::ops) fn elements(&mut self, a: &Type, b: &Type) -> Option<Type> {
        Some(match (a, b) {
            (Type::Tensor(a), Type::Tensor(b)) => Type::Tensor(self.element_tensors(a, b)),
            (Type::SparseTensor(a), Type::SparseTensor(b)) => Type::SparseTensor(self.element_tensors(a, b)),
            (Type::Optional(a), Type::Optional(b)) => Type::Optional(self.inner_elements(a, b)),
            (Type::Sequence(a), Type::Sequence(b)) => Type::Sequence(self.inner_elements(a, b)),
            (Type::Map(j, a), Type::Map(k, b)) if j == k => Type::Map(*j, self.inner_elements(a, b)),
            _ => return None,
        })
    }

    fn element_tensors(&mut self, a: &TensorType, b: &TensorType) -> TensorType {
        let dtype = a.dtype.filter(|_| a.dtype == b.dtype);
        let shape = match (&a.shape, &b.shape) {
            (Some(x), Some(y)) if x.len() == y.len() => {
                Some(x.iter().zip(y).map(|(x, y)| self.element_dim(x, y)).collect())
            }
            _ => None,
        };
        self.changed |= (a.dtype.is_some() && dtype.is_none()) || (a.shape.is_some() && shape.is_none());
        TensorType { dtype, shape }
    }

    fn element_dim(&mut self, a: &Dim, b: &Dim) -> Dim {
        // An anonymous symbol makes no claim about any element, so it cannot be weakened.
        if a.as_symbol().is_some_and(|symbol| self.anonymous.contains(&symbol)) || self.same(a, b) {
            return a.clone();
        }
        self.changed = true;
        let (low, high) = match self.mode {
            Mode::Either => self.between(a, b),
            // Further iterations may add elements of any size.
            Mode::Carried => (None, None),
        };
        let new = self.scope.fresh_within(&self.stem, Some(low.unwrap_or(0).max(0)), high);
        self.anonymous.extend(new.as_symbol());
        new
    }

    fn dim(&mut self, a: &Dim, b: &Dim) -> Dim {
        match self.mode {
            Mode::Carried => self.next(a, b, true),
            Mode::Either if self.same(a, b) => a.clone(),
            Mode::Either => self.pair(a, b, true),
        }
    }

    fn value(&mut self, a: &Dim, b: &Dim) -> Dim {
        match self.mode {
            Mode::Carried => self.next(a, b, false),
            Mode::Either if self.same(a, b) => a.clone(),
            Mode::Either => self.pair(a, b, false),
        }
    }

    /// Maps the dim at the start of the next iteration to a dim at the start of the current iteration.
    fn next(&mut self, a: &Dim, b: &Dim, size: bool) -> Dim {
        match a.as_symbol().filter(|symbol| self.varying.contains(symbol)) {
            // All places with this symbol must change equally; the first group keeps it.
            Some(symbol) => {
                let key = (a.clone(), b.clone());
                if let Some(known) = self.pairs.get(&key) {
                    return known.clone();
                }
                if self.kept.insert(symbol) {
                    self.pairs.insert(key, a.clone());
                    return a.clone();
                }
            }
            None => match self.lines.get(a) {
                Some(line) if self.same(b, &self.scope.add(a, &line.step)) => return a.clone(),
                Some(_) => {}
                None if self.same(a, b) => return a.clone(),
                None => {
                    self.changed = true;
                    if let Some(line) = self.line(a, b) {
                        return line;
                    }
                }
            },
        }
        self.changed = true;
        self.pair(a, b, size)
    }

    /// Returns `a`, `b`, … as an arithmetic progression, if the step is defined outside of the loop. The next round verifies it.
    fn line(&mut self, a: &Dim, b: &Dim) -> Option<Dim> {
        let (number, mark) = self.counter.as_ref()?;
        let outer = |dim: &Dim| !dim.symbols().into_iter().any(|symbol| symbol >= *mark);
        let step = self.scope.sub(b, a);
        if !outer(a) || !outer(&step) {
            return None;
        }
        let line = Line { start: a.clone(), step };
        let current = line.after(&self.scope, number);
        self.lines.insert(current.clone(), line);
        Some(current)
    }

    fn same(&self, a: &Dim, b: &Dim) -> bool {
        a == b || self.scope.eq(a, b).is_yes()
    }

    fn between(&self, a: &Dim, b: &Dim) -> (Option<i64>, Option<i64>) {
        let ((low_a, high_a), (low_b, high_b)) = (self.scope.bounds(a), self.scope.bounds(b));
        (low_a.zip(low_b).map(|(a, b)| a.min(b)), high_a.zip(high_b).map(|(a, b)| a.max(b)))
    }

    /// Returns the symbol for the pair `a`, `b`.
    fn pair(&mut self, a: &Dim, b: &Dim, size: bool) -> Dim {
        let key = (a.clone(), b.clone());
        if let Some(known) = self.pairs.get(&key) {
            return known.clone();
        }
        let new = match (self.mode, size) {
            (Mode::Either, _) if let Some(common) = self.common(a, b) => common,
            (Mode::Either, _) => {
                let (low, high) = self.between(a, b);
                if size {
                    self.scope.fresh_within(&self.stem, Some(low.unwrap_or(0).max(0)), high)
                } else if self.scope.is_of_sizes(a) && self.scope.is_of_sizes(b) {
                    self.scope.fresh_within(&self.stem, low, high)
                } else {
                    self.scope.fresh_integer(&self.stem, low, high)
                }
            }
            // Further iterations may change the dim arbitrarily.
            (Mode::Carried, true) => self.scope.fresh_dim(&self.stem),
            (Mode::Carried, false) => self.scope.fresh_value(&self.stem),
        };
        if self.mode != Mode::Either {
            self.varying.extend(new.as_symbol());
        }
        self.pairs.insert(key, new.clone());
        new
    }

    fn contents(&mut self, a: &Fact, b: &Fact, ty: Option<&Type>) -> Option<Content> {
        let content = self.joined_contents(a, b, ty);
        self.changed |= a.content.is_some() && content.is_none();
        content
    }

    fn joined_contents(&mut self, a: &Fact, b: &Fact, ty: Option<&Type>) -> Option<Content> {
        if let (Some(x), Some(y)) = (a.data(), b.data())
            && x.same(y)
        {
            return a.content.clone();
        }
        let (x, y) = (a.elements()?, b.elements()?);
        let shape = ty?.as_tensor()?.shape.as_ref()?;
        if x.len() != y.len() || shape.iter().any(|dim| dim.as_const().is_none()) {
            return None;
        }
        let mut joined = Vec::with_capacity(x.len());
        for (x, y) in x.iter().zip(&y) {
            joined.push(match (x, y) {
                (Scalar::Int(x), Scalar::Int(y)) => Scalar::Int(self.value(x, y)),
                (Scalar::Float(x), Scalar::Float(y)) if x.to_bits() == y.to_bits() => Scalar::Float(*x),
                (Scalar::Real { .. }, Scalar::Real { .. }) if x == y => x.clone(),
                (Scalar::Unknown, _) => Scalar::Unknown,
                _ => {
                    self.changed = true;
                    Scalar::Unknown
                }
            });
        }
        let known = joined.iter().any(|element| *element != Scalar::Unknown);
        known.then(|| Content::Elements(joined.into()))
    }
}

fn is_empty_sequence(fact: &Fact) -> bool {
    matches!(fact.data(), Some(Data::Sequence(items)) if items.is_empty())
}

fn is_vague(scope: &Scope, dim: &Dim) -> bool {
    dim.as_const().is_none() && dim.symbols().into_iter().any(|symbol| scope.is_fresh(symbol))
}

/// Returns the type of one element of a sequence, or value of a map, with this element type. Sizes that elements need not share
/// become fresh symbols.
pub(in crate::ops) fn element_of(scope: &Scope, stem: &str, ty: &Type) -> Type {
    let tensor = |tensor: &TensorType| {
        let own = |dim: &Dim| {
            if !is_vague(scope, dim) {
                return dim.clone();
            }
            let (low, high) = scope.bounds(dim);
            scope.fresh_within(stem, Some(low.unwrap_or(0).max(0)), high)
        };
        TensorType { dtype: tensor.dtype, shape: tensor.shape.as_ref().map(|dims| dims.iter().map(own).collect()) }
    };
    match ty {
        Type::Tensor(inner) => Type::Tensor(tensor(inner)),
        Type::SparseTensor(inner) => Type::SparseTensor(tensor(inner)),
        Type::Optional(Some(inner)) => Type::Optional(Some(Box::new(element_of(scope, stem, inner)))),
        other => other.clone(),
    }
}

/// Returns the name prefix of new symbols for a node's results.
pub(in crate::ops) fn stem_of(site: &Site<'_>) -> String {
    let first = site.node.outputs().iter().flatten().next();
    first.map_or_else(|| "dim".to_string(), |&value| site.model.value(value).name.to_string())
}
