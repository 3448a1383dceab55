//! Computes the dependencies of each value's elements, from the inputs on.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::dim::{Dim, Symbol};
use crate::ir::{Data, Definition, Fact, Facts, GraphId, Model, Node, NodeId, Scalar, ValueId};
use crate::ops::operator_of;

/// The kind of dependency of elements. The greatest kind counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// None: the elements are the same in every run.
    Constant,
    /// Sizes of the inputs.
    Sizes,
    /// Numbers that an operator draws.
    Random,
    /// Values of an input.
    Values,
    /// An unknown operator.
    Opaque,
}

/// The dependency of a value's elements, and the operand of its node that carries it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reach {
    pub kind: Kind,
    pub via: Option<ValueId>,
}

/// The dependency of each value, and the origin of symbols.
pub(super) struct Reaches {
    values: Vec<Option<Reach>>,
    /// The symbols of input sizes.
    pub inputs: FxHashSet<Symbol>,
    /// The value in which a symbol that is no input size occurs first, and `true` if it is an element there, not a dim.
    origins: FxHashMap<Symbol, (ValueId, bool)>,
}

impl Reaches {
    /// Analyzes a folded model.
    pub fn of(model: &Model, facts: &Facts) -> Self {
        let values = vec![None; model.value_count()];
        let mut reaches = Reaches { values, inputs: FxHashSet::default(), origins: FxHashMap::default() };
        let main = model.main();
        for &value in model.graph(main).inputs() {
            for dim in facts.get(value).and_then(Fact::shape).into_iter().flatten() {
                reaches.inputs.extend(dim.symbols());
            }
        }
        for &value in model.graph(main).inputs() {
            reaches.set(facts, value, Reach { kind: Kind::Values, via: None });
        }
        reaches.graph(model, facts, main);
        reaches
    }

    /// Returns the dependency of a value.
    pub fn get(&self, value: ValueId) -> Reach {
        self.values.get(value.index()).copied().flatten().unwrap_or(Reach { kind: Kind::Constant, via: None })
    }

    /// Returns the value in which a symbol occurs first, unless it is an input size.
    pub fn origin(&self, symbol: Symbol) -> Option<ValueId> {
        self.origins.get(&symbol).map(|(value, _)| *value)
    }

    /// Returns the symbols of a dim that are no input sizes.
    pub fn open<'s>(&'s self, dim: &Dim) -> impl Iterator<Item = Symbol> + 's {
        dim.symbols().into_iter().filter(|symbol| !self.inputs.contains(symbol))
    }

    /// Returns the path from a value to its dependency, the value itself first.
    pub fn chain(&self, value: ValueId) -> Vec<ValueId> {
        let mut chain = vec![value];
        let mut seen = FxHashSet::default();
        let mut at = value;
        while let Some(next) = self.get(at).via.filter(|next| seen.insert(*next)) {
            chain.push(next);
            at = next;
        }
        chain
    }

    /// Returns `true` if a node only computes with sizes.
    pub fn is_about_sizes(&self, node: &Node) -> bool {
        node.outputs().iter().flatten().map(|&value| self.get(value).kind).max() == Some(Kind::Sizes)
    }

    fn set(&mut self, facts: &Facts, value: ValueId, reach: Reach) {
        if let Some(fact) = facts.get(value) {
            let mut note = |dim: &Dim, is_element| {
                dim.has_symbol(|symbol| {
                    if !self.inputs.contains(&symbol) {
                        self.origins.entry(symbol).or_insert((value, is_element));
                    }
                    false
                });
            };
            fact.shape().into_iter().flatten().for_each(|dim| note(dim, false));
            integers(fact).iter().for_each(|dim| note(dim, true));
        }
        if let Some(place) = self.values.get_mut(value.index()) {
            *place = Some(reach);
        }
    }

    // The verifier limits the nesting of graphs to 32, so the recursion is bounded.
    fn graph(&mut self, model: &Model, facts: &Facts, graph: GraphId) {
        for &value in model.graph(graph).initializers() {
            if matches!(model.value(value).definition(), Definition::Initializer(_)) {
                let kind = if model.value(value).is_constant() { Kind::Constant } else { Kind::Values };
                self.set(facts, value, Reach { kind, via: None });
            }
        }
        let order = model.topological(graph).unwrap_or_else(|_| model.graph(graph).nodes().collect());
        for id in order {
            self.node(model, facts, id);
        }
    }

    fn node(&mut self, model: &Model, facts: &Facts, id: NodeId) {
        let Some(node) = model.node(id) else { return };
        let mut all = self.greatest(node.inputs().iter().flatten().copied());
        for body in node.subgraphs().collect::<Vec<_>>() {
            for &value in model.graph(body).inputs() {
                self.set(facts, value, Reach { kind: all.kind.max(Kind::Sizes), via: all.via });
            }
            self.graph(model, facts, body);
            let inner = self.greatest(model.graph(body).outputs().iter().copied());
            if inner.kind > all.kind {
                all = inner;
            }
        }
        let all = match operator_of(model, node) {
            None if is_unknown(model, node) => Reach { kind: Kind::Opaque, via: None },
            None => all,
            Some(operator) if !operator.deterministic => Reach { kind: Kind::Random, via: None },
            Some(_) => all,
        };
        for &value in node.outputs().iter().flatten() {
            let reach = facts.get(value).map_or(all, |fact| self.of_result(node, fact, all));
            self.set(facts, value, reach);
        }
    }

    fn greatest(&self, values: impl Iterator<Item = ValueId>) -> Reach {
        let mut greatest = Reach { kind: Kind::Constant, via: None };
        for value in values {
            let kind = self.get(value).kind;
            if kind > greatest.kind {
                greatest = Reach { kind, via: Some(value) };
            }
        }
        greatest
    }

    /// Returns the dependency of a result whose operands depend on `all`.
    fn of_result(&self, node: &Node, fact: &Fact, all: Reach) -> Reach {
        let via = node.inputs().iter().flatten().copied().next();
        let is_size = node.is("Shape") || node.is("Size");
        match &fact.content {
            Some(crate::ir::Content::Constant(Data::Tensor(_))) => Reach { kind: Kind::Constant, via: None },
            // Numbers with known expressions depend only on the symbols in them.
            Some(_) if fact.elements().is_some_and(|all| !all.contains(&Scalar::Unknown)) => {
                self.of_dims(&integers(fact), all.via.or(via)).unwrap_or(all)
            }
            _ if is_size => Reach { kind: Kind::Sizes, via },
            _ => all,
        }
    }

    /// Returns the dependency of numbers with known expressions: that of their symbols.
    fn of_dims(&self, dims: &[Dim], via: Option<ValueId>) -> Option<Reach> {
        let mut reach = Reach { kind: Kind::Constant, via: None };
        for dim in dims {
            if dim.as_const().is_none() && reach.kind < Kind::Sizes {
                reach = Reach { kind: Kind::Sizes, via };
            }
            for symbol in self.open(dim) {
                let (value, is_element) = *self.origins.get(&symbol)?;
                // A dim is a size whatever its origin; an element of an input is a value.
                let kind = self.get(value).kind;
                if is_element && kind > reach.kind {
                    reach = Reach { kind, via: Some(value) };
                }
            }
        }
        Some(reach)
    }
}

/// Returns `true` if neither the program nor the model nor the user defines what a node computes.
pub(super) fn is_unknown(model: &Model, node: &Node) -> bool {
    operator_of(model, node).is_none() && model.custom(node).is_none() && model.function_of(node).is_none()
}

/// Returns the elements of a tensor with known expressions.
pub(super) fn integers(fact: &Fact) -> Vec<Dim> {
    let Some(crate::ir::Content::Elements(elements)) = &fact.content else { return Vec::new() };
    let dim = |element: &Scalar| match element {
        Scalar::Int(dim) | Scalar::Real { num: dim, .. } => Some(dim.clone()),
        Scalar::Float(_) | Scalar::Unknown => None,
    };
    elements.iter().filter_map(dim).collect()
}
