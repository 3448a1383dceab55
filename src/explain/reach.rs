//! What the elements of each value depend on, followed from the inputs on.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::dim::{Dim, Symbol};
use crate::ir::{Data, Definition, Fact, Facts, GraphId, Model, Node, NodeId, Scalar, ValueId};
use crate::ops::operator_of;

/// What elements depend on: the last of these that counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// Nothing: they are the same in every run.
    Constant,
    /// Sizes of the inputs.
    Sizes,
    /// Numbers that an operator draws.
    Random,
    /// Values of an input.
    Values,
    /// An operator that nothing is known of.
    Opaque,
}

/// What the elements of a value depend on, and by which operand of its node.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reach {
    pub kind: Kind,
    pub via: Option<ValueId>,
}

/// What each value depends on, and where symbols come from.
pub(super) struct Reaches {
    values: Vec<Option<Reach>>,
    /// The sizes of inputs.
    pub inputs: FxHashSet<Symbol>,
    /// The value in which a symbol that is no size of an input was seen first, and whether it is an element there and no size.
    origins: FxHashMap<Symbol, (ValueId, bool)>,
}

impl Reaches {
    /// Follows a model that was folded.
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

    /// What a value depends on.
    pub fn get(&self, value: ValueId) -> Reach {
        self.values.get(value.index()).copied().flatten().unwrap_or(Reach { kind: Kind::Constant, via: None })
    }

    /// The value in which a symbol was seen first, if it is no size of an input.
    pub fn origin(&self, symbol: Symbol) -> Option<ValueId> {
        self.origins.get(&symbol).map(|(value, _)| *value)
    }

    /// The symbols of a size that are no sizes of inputs.
    pub fn open<'s>(&'s self, dim: &Dim) -> impl Iterator<Item = Symbol> + 's {
        dim.symbols().into_iter().filter(|symbol| !self.inputs.contains(symbol))
    }

    /// The way from a value to what it depends on: the value itself first.
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

    /// Whether a node computes with nothing but sizes.
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

    // Graphs nest at most 32 deep, which the verifier has checked, so recursion is bounded.
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

    /// What a result depends on, whose operands depend on `all`.
    fn of_result(&self, node: &Node, fact: &Fact, all: Reach) -> Reach {
        let via = node.inputs().iter().flatten().copied().next();
        let is_size = node.is("Shape") || node.is("Size");
        match &fact.content {
            Some(crate::ir::Content::Constant(Data::Tensor(_))) => Reach { kind: Kind::Constant, via: None },
            // Numbers that are known as expressions depend on nothing but the symbols in them.
            Some(_) if fact.elements().is_some_and(|all| !all.contains(&Scalar::Unknown)) => {
                self.of_dims(&integers(fact), all.via.or(via)).unwrap_or(all)
            }
            _ if is_size => Reach { kind: Kind::Sizes, via },
            _ => all,
        }
    }

    /// What numbers depend on that are known as expressions: the symbols in them.
    fn of_dims(&self, dims: &[Dim], via: Option<ValueId>) -> Option<Reach> {
        let mut reach = Reach { kind: Kind::Constant, via: None };
        for dim in dims {
            if dim.as_const().is_none() && reach.kind < Kind::Sizes {
                reach = Reach { kind: Kind::Sizes, via };
            }
            for symbol in self.open(dim) {
                let (value, is_element) = *self.origins.get(&symbol)?;
                // A size is a size wherever it comes from; an element of an input is a value.
                let kind = self.get(value).kind;
                if is_element && kind > reach.kind {
                    reach = Reach { kind, via: Some(value) };
                }
            }
        }
        Some(reach)
    }
}

/// Whether nobody says what a node computes: neither the program nor the model nor the user.
pub(super) fn is_unknown(model: &Model, node: &Node) -> bool {
    operator_of(model, node).is_none() && model.custom(node).is_none() && model.function_of(node).is_none()
}

/// The elements of a tensor that are known as expressions.
pub(super) fn integers(fact: &Fact) -> Vec<Dim> {
    let Some(crate::ir::Content::Elements(elements)) = &fact.content else { return Vec::new() };
    let dim = |element: &Scalar| match element {
        Scalar::Int(dim) | Scalar::Real { num: dim, .. } => Some(dim.clone()),
        Scalar::Float(_) | Scalar::Unknown => None,
    };
    elements.iter().filter_map(dim).collect()
}
