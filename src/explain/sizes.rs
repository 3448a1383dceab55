//! Finds the origin of sizes that the input sizes do not determine.

use rustc_hash::{FxHashMap, FxHashSet};

use super::cause::View;
use super::reach::{Kind, Reaches, integers, is_unknown};
use crate::dim::{Dim, Symbol};
use crate::ir::{Definition, Fact, Facts, Model, Node, NodeId, Type, ValueId};
use crate::sort;
use crate::tensor::DType;

/// A size that the input sizes do not determine, or a tensor of unknown rank.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OpenSize {
    /// The name in the result; `None` for an unknown rank.
    pub name: Option<String>,
    /// The first value with the size.
    pub tensor: String,
    /// The number of node results with the size in their shapes.
    pub tensors: usize,
    /// The origin, as a sentence without its end.
    pub reason: String,
    /// The path from the origin to an input or an operator.
    pub chain: Vec<String>,
}

/// Returns the sizes that the input sizes do not determine, the most frequent ones first.
pub(super) fn open_sizes(model: &Model, facts: &Facts, reaches: &Reaches) -> Vec<OpenSize> {
    let view = View { model, facts, reaches };
    let mut symbols: FxHashMap<Symbol, usize> = FxHashMap::default();
    let mut shapeless: FxHashMap<ValueId, usize> = FxHashMap::default();
    for graph in model.graphs().filter(|&graph| model.is_live(graph)) {
        for node in model.graph(graph).nodes().filter_map(|id| model.node(id)) {
            for &value in node.outputs().iter().flatten() {
                let fact = facts.get(value);
                match (fact.and_then(|fact| fact.ty.as_ref()), fact.and_then(Fact::shape)) {
                    (_, Some(dims)) => {
                        let open: FxHashSet<Symbol> = dims.iter().flat_map(|dim| reaches.open(dim)).collect();
                        open.into_iter().collect::<std::collections::BTreeSet<_>>().into_iter().for_each(|symbol| {
                            *symbols.entry(symbol).or_default() += 1;
                        });
                    }
                    (None | Some(Type::Tensor(_)), None) => {
                        *shapeless.entry(view.first_shapeless(value)).or_default() += 1
                    }
                    _ => {}
                }
            }
        }
    }
    let mut found: Vec<OpenSize> =
        symbols.into_iter().map(|(symbol, tensors)| view.open_size(symbol, tensors)).collect();
    found.extend(shapeless.into_iter().map(|(value, tensors)| view.rank(value, tensors)));
    sort::by(&mut found, |a, b| (b.tensors, &a.tensor, &a.name).cmp(&(a.tensors, &b.tensor, &b.name)));
    found
}

impl View<'_> {
    /// Explains one size.
    pub fn open_size(&self, symbol: Symbol, tensors: usize) -> OpenSize {
        if let (name @ Some(_), Some(limit)) = (self.computed(symbol), self.limit(symbol)) {
            let reason = format!("{limit}, and no assumption can exclude this");
            let tensor = self.reaches.origin(symbol).map_or_else(String::new, |value| self.name(value).to_string());
            return OpenSize { name, tensor, tensors, reason, chain: Vec::new() };
        }
        let name = Some(self.scope().name(symbol).to_string());
        let Some(value) = self.reaches.origin(symbol) else {
            let reason = "the node that computed it was removed".to_string();
            return OpenSize { name, tensor: String::new(), tensors, reason, chain: Vec::new() };
        };
        let (reason, from) = self.why(value, &Dim::symbol(symbol));
        let (tensor, chain) = (self.name(value).to_string(), self.chain(from.unwrap_or(value)));
        OpenSize { name, tensor, tensors, reason, chain }
    }

    fn rank(&self, value: ValueId, tensors: usize) -> OpenSize {
        let (reason, from) = self.why_shapeless(value);
        let (tensor, chain) = (self.name(value).to_string(), self.chain(from.unwrap_or(value)));
        OpenSize { name: None, tensor, tensors, reason, chain }
    }

    fn is_shapeless(&self, value: ValueId) -> bool {
        let fact = self.facts.get(value);
        fact.and_then(Fact::shape).is_none()
            && matches!(fact.and_then(|fact| fact.ty.as_ref()), None | Some(Type::Tensor(_)))
    }

    /// Returns the value of unknown shape that causes the unknown shape of `value`.
    fn first_shapeless(&self, value: ValueId) -> ValueId {
        let (mut at, mut seen) = (value, FxHashSet::default());
        while seen.insert(at) {
            let node = self.model.value(at).producer().and_then(|id| self.model.node(id));
            let before = node.into_iter().flat_map(|node| node.inputs().iter().flatten().copied());
            match before.into_iter().find(|&value| self.is_shapeless(value) && !seen.contains(&value)) {
                Some(next) => at = next,
                None => break,
            }
        }
        at
    }

    fn why_shapeless(&self, value: ValueId) -> (String, Option<ValueId>) {
        match self.model.value(value).definition() {
            Definition::Input(graph) if graph == self.model.main() => {
                (format!("the model declares no shape for its input '{}'", self.name(value)), None)
            }
            Definition::Input(_) => {
                ("it is an input of a subgraph, and its shape may change between iterations".to_string(), None)
            }
            Definition::Node(id, _) => self.at_node(id, None),
            _ => ("its shape is unknown".to_string(), None),
        }
    }

    fn why(&self, value: ValueId, size: &Dim) -> (String, Option<ValueId>) {
        match self.model.value(value).definition() {
            Definition::Input(graph) if graph == self.model.main() => {
                (format!("it is a value of input '{}'", self.name(value)), None)
            }
            Definition::Input(_) => (
                format!("'{}' is an input of a subgraph, and its size may change between iterations", self.name(value)),
                None,
            ),
            Definition::Node(id, _) => self.at_node(id, Some(size)),
            _ => ("it is a dim of a constant without values".to_string(), None),
        }
    }

    /// Explains an unknown size of a node's result, and returns the operand that it depends on.
    fn at_node(&self, id: NodeId, size: Option<&Dim>) -> (String, Option<ValueId>) {
        let described = self.model.describe(id);
        let Some(node) = self.model.node(id) else { return (described, None) };
        if is_unknown(self.model, node) {
            let reason = format!("{described}: its operator is unknown, so the shapes of its results are unknown");
            return (reason, None);
        }
        if node.subgraphs().next().is_some() {
            let reason =
                format!("{described}: its subgraphs return different sizes, or the number of iterations is unknown");
            return (reason, self.most(node));
        }
        // Operands that determine sizes are integers, and follow the data or are the only operands.
        let says = |&(slot, value): &(usize, ValueId)| {
            (slot > 0 || node.inputs().len() == 1 || node.is("Range"))
                && self.is_integer(value)
                && self.reaches.get(value).kind > Kind::Sizes
        };
        let operands = || node.inputs().iter().enumerate().filter_map(|(slot, value)| Some((slot, (*value)?)));
        let on = |from: ValueId| {
            format!("{described}: it depends on '{}', and thereby on {}", self.name(from), self.depends(from))
        };
        if let Some((a, b)) = self.unequal(node, size) {
            let (a, b) = (self.size(&a), self.size(&b));
            return (
                format!("{described}: the dims {a} and {b} of its operands are not proved equal"),
                self.most(node),
            );
        }
        if let Some((_, from)) = operands().find(says) {
            return (on(from), Some(from));
        }
        let elements = operands().filter(|&(slot, _)| slot > 0).filter_map(|(_, value)| self.facts.get(value));
        let elements: Vec<Dim> = elements.flat_map(integers).collect();
        if let Some(limits) = self.limits(elements.iter()).strip_prefix("; ") {
            return (format!("{described}: its result has no exact expression, because {limits}"), None);
        }
        let is_told = |value: ValueId| {
            let dims = self.facts.get(value).and_then(Fact::shape);
            dims.is_some_and(|dims| dims.iter().all(|dim| self.reaches.open(dim).next().is_none()))
        };
        match self.most(node) {
            None => (format!("{described}: shape inference does not support this node"), None),
            Some(from) if self.reaches.get(from).kind > Kind::Sizes && operands().all(|(_, value)| is_told(value)) => {
                (on(from), Some(from))
            }
            Some(from) => {
                (format!("{described}: its result has a dim that is not an expression in the input dims"), Some(from))
            }
        }
    }

    fn is_integer(&self, value: ValueId) -> bool {
        let dtype = self.facts.get(value).and_then(Fact::dtype);
        matches!(dtype, Some(DType::Int64 | DType::Int32 | DType::Bool))
    }

    /// Returns the operand that a size most likely depends on: of those with the greatest dependency, an integer one.
    fn most(&self, node: &Node) -> Option<ValueId> {
        let operands = node.inputs().iter().flatten().copied();
        operands.rev().max_by_key(|&value| (self.reaches.get(value).kind, self.is_integer(value)))
    }

    /// Returns two different dims of operands on the axis of the result, counted from the last axis, that must be equal. Considers operands that
    /// broadcast, or that have the rank of the result.
    fn unequal(&self, node: &Node, size: Option<&Dim>) -> Option<(Dim, Dim)> {
        let size = size?;
        let shape = |value: ValueId| self.facts.get(value).and_then(Fact::shape);
        let result = shape(node.output(0)?)?;
        let at = result.iter().rev().position(|dim| dim == size)?;
        let pointwise = crate::ops::traits::traits_of(self.model, node).pointwise.is_some();
        let operands = node.inputs().iter().flatten().filter_map(|&value| shape(value));
        let alike = operands.filter(|dims| pointwise || dims.len() == result.len());
        let dims = alike.filter_map(|dims| dims.iter().rev().nth(at).cloned());
        let mut open: Vec<Dim> = dims.filter(|dim| !dim.is_const(1) && dim != size).collect();
        open.dedup();
        match open.as_slice() {
            [a, b, ..] => Some((a.clone(), b.clone())),
            _ => None,
        }
    }
}
