//! The join of facts: what holds whichever of two sources a value comes from.
//!
//! A size that is `a` in one and `b` in the other is a new symbol. Where two places pair the same `a` with the same `b`
//! they get the same symbol: whatever chose between the sources chose for both.
//!
//! The element type of a sequence speaks of every element at once. A dim there that mentions a fresh symbol is some size,
//! not necessarily the same for each element; who takes an element out gives it a symbol of its own ([`element_of`]).

use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::dim::{Dim, Scope, Symbol};
use crate::ir::{Content, Data, Fact, Scalar, TensorType, Type};
use crate::ops::Site;

/// How the two sources are related.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// Either of two alternatives.
    Either,
    /// A value carried from iteration to iteration: what it starts as, and what an iteration makes of it.
    Carried,
}

/// Joins facts, remembering which symbols stand for which pairs.
pub(in crate::ops) struct Join {
    scope: Rc<Scope>,
    stem: String,
    mode: Mode,
    pairs: FxHashMap<(Dim, Dim), Dim>,
    /// Symbols that stand for what changes between iterations; see [`Join::carried`].
    varying: FxHashSet<Symbol>,
    /// Symbols that stand for sizes which elements of a sequence need not share.
    anonymous: FxHashSet<Symbol>,
    /// Those among `varying` that keep standing for the first group of places met.
    kept: FxHashSet<Symbol>,
    /// The number of the current iteration, if there is a symbol for it, and the first symbol that belongs to iterations.
    counter: Option<(Dim, Symbol)>,
    /// What is at least 0 whenever the first of two alternatives is taken, and whenever the second is.
    premises: [Vec<Dim>; 2],
    /// What grows by the same amount in every iteration: `start + number · step`, with start and step.
    lines: FxHashMap<Dim, Line>,
    /// Whether the current step gave anything up.
    changed: bool,
}

/// What grows by `step` in every iteration.
#[derive(Clone, Debug)]
pub(in crate::ops) struct Line {
    start: Dim,
    step: Dim,
}

impl Line {
    /// What it is after so many iterations.
    pub(in crate::ops) fn after(&self, scope: &Scope, iterations: &Dim) -> Dim {
        scope.add(&self.start, &scope.mul(iterations, &self.step))
    }
}

impl Join {
    /// A join of alternatives; new symbols are named after `stem`.
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

    /// With what is at least 0 whenever the first alternative is taken, and whenever the second is.
    pub(in crate::ops) fn under(mut self, first: Vec<Dim>, second: Vec<Dim>) -> Join {
        self.premises = [first, second];
        self
    }

    /// How both of two alternatives may be written: as one of them, or as the smaller or larger of both, if under what holds where each
    /// is taken that is what it is.
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

    /// A join over the iterations of a loop, used by [`Join::step`] for every carried value in turn. A round of steps makes
    /// the facts for the next inference; when a round gives nothing up, the facts hold for every iteration, by induction:
    /// at the start of the first one, and at the start of the next if at the start of this.
    ///
    /// A size that grows by the same amount in every iteration becomes an expression in the iteration's number, if there is a
    /// symbol for that; symbols from `mark` on belong to iterations. Any other size that changes becomes a symbol that is
    /// read as "in the current iteration". Places share one as long as they
    /// start out equal and every iteration makes them equal again; when an iteration makes them differ, the group splits.
    pub(in crate::ops) fn carried(scope: &Rc<Scope>, stem: &str, number: Option<&Dim>, mark: Symbol) -> Join {
        let counter = number.filter(|number| number.as_symbol().is_some()).map(|number| (number.clone(), mark));
        Join { mode: Mode::Carried, counter, ..Join::either(scope, stem) }
    }

    /// What is carried as an expression in the iteration's number.
    pub(in crate::ops) fn into_lines(self) -> FxHashMap<Dim, Line> {
        self.lines
    }

    /// Begins the next round.
    pub(in crate::ops) fn next_round(&mut self) {
        self.pairs.clear();
        self.kept.clear();
    }

    /// Joins what an iteration was inferred with and what came out of it; also whether that gave anything up.
    pub(in crate::ops) fn step(&mut self, before: &Fact, after: &Fact) -> (Fact, bool) {
        self.changed = false;
        let joined = self.facts(before, after);
        (joined, self.changed)
    }

    /// What holds of a value that is one or the other.
    pub(in crate::ops) fn facts(&mut self, a: &Fact, b: &Fact) -> Fact {
        // An empty sequence has every element type.
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

    /// The type that elements of two sequences have.
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
        // A symbol made here says nothing of any one element: there is nothing left to give up.
        if a.as_symbol().is_some_and(|symbol| self.anonymous.contains(&symbol)) || self.same(a, b) {
            return a.clone();
        }
        self.changed = true;
        let (low, high) = match self.mode {
            Mode::Either => self.between(a, b),
            // Nothing bounds what more iterations may put in.
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

    /// The size at the start of the next iteration, as a size "at the start of the current iteration".
    fn next(&mut self, a: &Dim, b: &Dim, size: bool) -> Dim {
        match a.as_symbol().filter(|symbol| self.varying.contains(symbol)) {
            // All that share the symbol must go on alike; the first group met keeps it.
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

    /// `a`, `b`, … as a sequence of equal steps, if the step is known outside. The next round tells whether it is one.
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

    /// The symbol for "`a` here, `b` there".
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
            // Nothing bounds what more iterations may make of it.
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

/// The type of one element of a sequence, or value of a map, whose element type this is: sizes that need not be the same
/// for every element get symbols of their own.
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

/// What new symbols for a node's results are named after.
pub(in crate::ops) fn stem_of(site: &Site<'_>) -> String {
    let first = site.node.outputs().iter().flatten().next();
    first.map_or_else(|| "dim".to_string(), |&value| site.model.value(value).name.to_string())
}
