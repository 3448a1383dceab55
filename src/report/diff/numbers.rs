//! Numbers values: two values, of one model or of both, have the same number if and only if they are computed identically.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::ir::text::attribute_text;
use crate::ir::{
    Attribute, Constant, Definition, Function, FunctionId, GraphId, Model, NamedAttribute, Node, NodeId, SparseTensor,
    ValueId,
};
use crate::sort;
use crate::tensor::Tensor;

/// The assigned numbers, by the key of the value.
#[derive(Default)]
pub(super) struct Classes {
    keys: FxHashMap<Vec<u8>, u32>,
    tensors: FxHashMap<u64, Vec<(Tensor, u32)>>,
    next: u32,
}

impl Classes {
    fn of(&mut self, key: Vec<u8>) -> u32 {
        let next = self.next + 1;
        let number = *self.keys.entry(key).or_insert(next);
        self.next = self.next.max(number);
        number
    }

    fn of_text(&mut self, key: String) -> u32 {
        self.of(key.into_bytes())
    }

    /// Returns the number of an initializer. If this program cannot read it, its wire bytes identify it.
    fn of_constant(&mut self, constant: &Constant) -> u32 {
        let Some(tensor) = &constant.tensor else {
            let message = constant.verbatim.as_deref().unwrap_or_default();
            return self.of([b"constant ", message].concat());
        };
        let next = self.next + 1;
        let alike = self.tensors.entry(tensor.hash_sample()).or_default();
        if let Some((_, number)) = alike.iter().find(|(other, _)| other.same(tensor)) {
            return *number;
        }
        alike.push((tensor.clone(), next));
        self.next = next;
        next
    }
}

/// A model with the number of each of its values, nodes and functions.
pub(super) struct Numbered<'m> {
    pub model: &'m Model,
    values: FxHashMap<ValueId, u32>,
    /// The nodes of each graph in execution order, each with its number.
    nodes: FxHashMap<GraphId, Vec<(NodeId, u32)>>,
    functions: FxHashMap<FunctionId, u32>,
}

impl<'m> Numbered<'m> {
    pub(super) fn new(model: &'m Model, classes: &mut Classes) -> Self {
        let (values, nodes, functions) = (FxHashMap::default(), FxHashMap::default(), FxHashMap::default());
        let mut numbered = Numbered { model, values, nodes, functions };
        for id in call_order(model) {
            let Some(function) = model.function(id) else { continue };
            let key = numbered.function_key(function, classes);
            numbered.functions.insert(id, classes.of_text(key));
        }
        let main = model.main();
        for &value in model.graph(main).inputs() {
            let number = classes.of_text(format!("input {}", model.value(value).name));
            numbered.values.insert(value, number);
        }
        numbered.number(main, 0, classes);
        numbered
    }

    /// Returns the number of a value; 0 if nothing defines it.
    pub(super) fn of(&self, value: ValueId) -> u32 {
        self.values.get(&value).copied().unwrap_or(0)
    }

    /// Returns the nodes of a graph, each with its number.
    pub(super) fn nodes_of(&self, graph: GraphId) -> &[(NodeId, u32)] {
        self.nodes.get(&graph).map_or(&[], Vec::as_slice)
    }

    /// Returns the number of an initializer or of the default of an input.
    pub(super) fn of_constant(&self, value: ValueId, classes: &mut Classes) -> Option<u32> {
        Some(classes.of_constant(self.model.value(value).constant.as_ref()?))
    }

    /// Numbers the values that a graph defines, except its inputs. The importer limits the nesting of graphs to 32, so recursion is
    /// bounded.
    fn number(&mut self, graph: GraphId, depth: usize, classes: &mut Classes) {
        let model = self.model;
        for &value in model.graph(graph).initializers() {
            let place = model.value(value);
            if let (Definition::Initializer(_), Some(constant)) = (place.definition(), &place.constant) {
                self.values.insert(value, classes.of_constant(constant));
            }
        }
        let order = model.topological(graph).unwrap_or_else(|_| model.graph(graph).nodes().collect());
        let mut nodes = Vec::with_capacity(order.len());
        for id in order {
            let Some(node) = model.node(id) else { continue };
            let key = self.node_key(node, depth, classes);
            let number = classes.of_text(key);
            for (slot, value) in node.outputs().iter().enumerate() {
                let Some(value) = *value else { continue };
                let number = if slot == 0 { number } else { classes.of_text(format!("result {slot} of {number}")) };
                self.values.insert(value, number);
            }
            nodes.push((id, number));
        }
        self.nodes.insert(graph, nodes);
    }

    /// Returns the key of a node: equal keys mean equal results.
    fn node_key(&mut self, node: &Node, depth: usize, classes: &mut Classes) -> String {
        let mut key = operator_key(self.model, node);
        if let Some((id, _)) = self.model.function_of(node) {
            let _ = write!(key, "function {}", self.functions.get(&id).copied().unwrap_or(0));
        }
        for value in node.inputs() {
            let _ = write!(key, " {}", value.map_or(0, |value| self.of(value)));
        }
        for held in &node.attributes {
            for &body in held.value.graphs() {
                let _ = write!(key, " {} ({})", held.name, self.graph_key(body, depth + 1, classes));
            }
        }
        key
    }

    /// Returns the key of a subgraph or function body. Inputs are identified by position.
    fn graph_key(&mut self, graph: GraphId, depth: usize, classes: &mut Classes) -> String {
        let model = self.model;
        let mut key = String::new();
        for (place, &value) in model.graph(graph).inputs().iter().enumerate() {
            // Equal graphs at one depth share these numbers. The depth distinguishes an input from those of outer graphs, which its
            // nodes may read as well.
            let number = classes.of_text(format!("input {place} at depth {depth}"));
            self.values.insert(value, number);
            let _ = write!(key, "{number}:{} ", self.of_constant(value, classes).unwrap_or(0));
        }
        self.number(graph, depth, classes);
        for &value in model.graph(graph).outputs() {
            let _ = write!(key, "> {} ", self.of(value));
        }
        let mut nodes: Vec<u32> = self.nodes_of(graph).iter().map(|(_, number)| *number).collect();
        nodes.sort_unstable();
        let _ = write!(key, "{nodes:?}");
        key
    }

    fn function_key(&mut self, function: &Function, classes: &mut Classes) -> String {
        let mut key = format!("function {}", self.graph_key(function.body, 0, classes));
        for (name, value) in parameters(self.model, function) {
            let _ = write!(key, "{name}={value};");
        }
        for body in function.defaults.iter().flat_map(|held| held.value.graphs()) {
            let _ = write!(key, "({})", self.graph_key(*body, 1, classes));
        }
        key
    }
}

/// Returns the functions, callees before callers.
fn call_order(model: &Model) -> Vec<FunctionId> {
    let (mut order, mut seen) = (Vec::new(), FxHashSet::default());
    let mut open: Vec<(FunctionId, bool)> = model.functions().map(|(id, _)| (id, false)).collect();
    open.reverse();
    while let Some((id, has_called)) = open.pop() {
        if has_called {
            order.push(id);
        } else if seen.insert(id) {
            open.push((id, true));
            let Some(function) = model.function(id) else { continue };
            open.extend(nodes_below(model, function.body).filter_map(|node| Some((model.function_of(node)?.0, false))));
        }
    }
    order
}

/// Returns the nodes of a graph and of the graphs inside it.
fn nodes_below(model: &Model, root: GraphId) -> impl Iterator<Item = &Node> {
    let mut graphs = vec![root];
    let mut next = 0;
    while let Some(&graph) = graphs.get(next) {
        next += 1;
        graphs.extend(model.graph(graph).nodes().filter_map(|id| model.node(id)).flat_map(Node::subgraphs));
    }
    graphs.into_iter().flat_map(|graph| model.graph(graph).nodes()).filter_map(|id| model.node(id))
}

/// Returns operator, operator set, attributes and number of results of a node, without the contents of its subgraphs.
pub(super) fn operator_key(model: &Model, node: &Node) -> String {
    let opset = model.opset(node.graph(), &node.domain).unwrap_or(0);
    let mut key = format!("{}:{} {opset} {} ", node.operator(), node.overload, node.outputs().len());
    for (name, value) in attributes(model, &node.attributes) {
        let _ = write!(key, "{name}={value};");
    }
    for held in node.attributes.iter().filter(|held| !held.value.graphs().is_empty()) {
        let _ = write!(key, "{} of {} graphs;", held.name, held.value.graphs().len());
    }
    key
}

/// Returns the attributes other than graphs, by name, because their order is irrelevant.
fn attributes<'n>(model: &Model, held: &'n [NamedAttribute]) -> BTreeMap<&'n str, String> {
    let plain = held.iter().filter(|held| held.value.graphs().is_empty());
    sort::map(plain.map(|held| (held.name.as_str(), attribute_key(model, &held.value))))
}

/// Returns the parameters that calls of a function pass as attributes, each with its default.
pub(super) fn parameters<'f>(model: &Model, function: &'f Function) -> BTreeMap<&'f str, String> {
    let mut parameters = attributes(model, &function.defaults);
    parameters.extend(function.attributes.iter().map(|name| (name.as_str(), "no default".to_string())));
    parameters
}

/// Returns the key of an attribute's value. Tensors are hashed, because their text omits elements of long ones.
fn attribute_key(model: &Model, value: &Attribute) -> String {
    let tensor =
        |tensor: &Tensor| format!("{} {:?} {:016x}", tensor.dtype().name(), tensor.shape(), tensor.hash_content());
    let sparse =
        |held: &SparseTensor| format!("{:?} {} at {}", held.shape, tensor(&held.values), tensor(&held.indices));
    match value {
        Attribute::Tensor(held, _) => tensor(held),
        Attribute::Tensors(list) => format!("{:?}", list.iter().map(|(held, _)| tensor(held)).collect::<Vec<_>>()),
        Attribute::SparseTensor(held) => sparse(held),
        Attribute::SparseTensors(list) => format!("{:?}", list.iter().map(sparse).collect::<Vec<_>>()),
        Attribute::Opaque(message) => format!("{message:?}"),
        value => attribute_text(model, value),
    }
}
