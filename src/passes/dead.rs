//! Dead code elimination: removes nodes whose results are all unused, initializers without readers, and imports of operator sets without nodes.
//! Unused optional results of other nodes are kept.

use rustc_hash::FxHashSet;

use super::edits::EditCounter;
use crate::ir::{Definition, FunctionId, GraphId, Model, Name, NodeId, OpsetImport, ValueId};

/// The name of the passes over nodes and over imports, under which their edits are counted.
pub(super) const NAME: &str = "dead-code";

/// Removes dead nodes and initializers from the main graph and every subgraph, in time linear in the model.
pub fn remove(model: &mut Model, edits: &mut EditCounter) {
    let graphs = live_graphs(model);
    let mut reads = Reads(vec![0; model.value_count()]);
    graphs.iter().for_each(|&graph| reads.count(model, graph));
    let mut open: Vec<NodeId> = graphs.iter().flat_map(|&graph| model.graph(graph).nodes()).collect();
    while let Some(id) = open.pop() {
        let Some(node) = model.node(id) else { continue };
        let unread = |&value: &ValueId| !model.value(value).pinned && !reads.is_read(value);
        if !node.outputs().iter().flatten().all(unread) || node.outputs().is_empty() {
            continue;
        }
        if !edits.take(NAME, || model.describe(id)) {
            return;
        }
        // Removes the subgraphs of the node, and their reads, too.
        let mut gone = vec![id];
        while let Some(next) = gone.pop() {
            let Some(node) = model.node(next) else { continue };
            let outputs = node.subgraphs().flat_map(|graph| model.graph(graph).outputs());
            for &value in node.inputs().iter().flatten().chain(outputs) {
                if reads.take(value) {
                    open.extend(model.value(value).producer());
                }
            }
            gone.extend(node.subgraphs().flat_map(|graph| model.graph(graph).nodes()));
            model.remove_node(next);
        }
    }
    let mut unread = FxHashSet::default();
    for graph in live_graphs(model) {
        for &value in model.graph(graph).initializers() {
            let place = model.value(value);
            let is_unread =
                matches!(place.definition(), Definition::Initializer(_)) && !place.pinned && !reads.is_read(value);
            if is_unread && edits.take(NAME, || format!("initializer '{}'", place.name)) {
                unread.insert(value);
            }
        }
    }
    model.remove_initializers(&unread);
}

/// Removes the imports of domains without nodes, from the model and from its functions: importers reject a model for an operator set that they do not
/// know. The default domain is always imported. A domain counts as used by the model if a function, or a node of a function, is in it. Training
/// information is not searched, so a model that has some keeps all imports.
pub(super) fn remove_imports(model: &mut Model, edits: &mut EditCounter) {
    if model.keeps_functions {
        return;
    }
    let mut bodies: Vec<(Option<FunctionId>, FxHashSet<Name>)> = vec![(None, domains_below(model, model.main()))];
    for (id, function) in model.functions() {
        let mut used = domains_below(model, function.body);
        bodies.push((Some(id), used.clone()));
        used.insert(function.domain.as_str().into());
        if let Some((_, all)) = bodies.first_mut() {
            all.extend(used);
        }
    }
    for (function, used) in bodies {
        // The domain of an opaque node has a prefix while the passes run (`opaque`).
        let is_used = |domain: &str| {
            let is_in = |own: &Name| own == domain || own.starts_with('\0') && own.ends_with(domain);
            matches!(domain, "" | "ai.onnx") || used.iter().any(is_in)
        };
        let imports = match function {
            None => Some(&mut model.opsets),
            Some(id) => model.function_mut(id).map(|function| &mut function.opsets),
        };
        let place = |import: &OpsetImport| format!("import of '{}'", import.domain);
        imports.into_iter().for_each(|imports| {
            imports.retain(|import| is_used(&import.domain) || !edits.take(NAME, || place(import)));
        });
    }
}

/// Returns the domains of the nodes of a graph and its subgraphs.
fn domains_below(model: &Model, root: GraphId) -> FxHashSet<Name> {
    let graphs = graphs_below(model, root);
    let nodes = graphs.iter().flat_map(|&graph| model.graph(graph).nodes()).filter_map(|id| model.node(id));
    nodes.map(|node| node.domain.clone()).collect()
}

/// The number of operands and graph outputs that read each value, by its index.
struct Reads(Vec<u32>);

impl Reads {
    fn count(&mut self, model: &Model, graph: GraphId) {
        let operands = model.graph(graph).nodes().filter_map(|id| model.node(id)).flat_map(|node| node.inputs());
        for &value in operands.flatten().chain(model.graph(graph).outputs()) {
            if let Some(reads) = self.0.get_mut(value.index()) {
                *reads = reads.saturating_add(1);
            }
        }
    }

    fn is_read(&self, value: ValueId) -> bool {
        self.0.get(value.index()).is_some_and(|&reads| reads > 0)
    }

    /// Removes one reader. Returns `true` if it was the last.
    fn take(&mut self, value: ValueId) -> bool {
        let Some(reads) = self.0.get_mut(value.index()).filter(|reads| **reads > 0) else { return false };
        *reads -= 1;
        *reads == 0
    }
}

/// Returns the nodes of the main graph that an output depends on, also through a subgraph, in the order of the graph.
pub(super) fn live_nodes(model: &Model) -> Vec<NodeId> {
    let main = model.main();
    let pinned = model.graph(main).nodes().filter_map(|id| Some((id, model.node(id)?))).filter(|(_, node)| {
        node.outputs().iter().flatten().any(|&value| model.value(value).pinned) || node.outputs().is_empty()
    });
    let mut open: Vec<NodeId> = pinned.map(|(id, _)| id).collect();
    open.extend(model.graph(main).outputs().iter().filter_map(|&value| model.value(value).producer()));
    let mut seen = vec![false; model.node_count()];
    while let Some(id) = open.pop() {
        let is_new = seen.get_mut(id.index()).is_some_and(|seen| !std::mem::replace(seen, true));
        let Some(node) = model.node(id).filter(|_| is_new) else { continue };
        open.extend(node.inputs().iter().flatten().filter_map(|&value| model.value(value).producer()));
        for graph in node.subgraphs() {
            open.extend(model.graph(graph).outputs().iter().filter_map(|&value| model.value(value).producer()));
        }
    }
    model.graph(main).nodes().filter(|id| seen.get(id.index()).copied().unwrap_or(false)).collect()
}

/// Returns the main graph and every subgraph below it, outermost first.
pub(super) fn live_graphs(model: &Model) -> Vec<GraphId> {
    graphs_below(model, model.main())
}

/// Returns a graph and every subgraph below it, outermost first.
pub(super) fn graphs_below(model: &Model, root: GraphId) -> Vec<GraphId> {
    let mut graphs = vec![root];
    if model.graphs().all(|graph| model.graph(graph).parent().is_none()) {
        return graphs;
    }
    let mut next = 0;
    while let Some(&graph) = graphs.get(next) {
        next += 1;
        let nodes = model.graph(graph).nodes().filter_map(|id| model.node(id));
        let inner: Vec<GraphId> = nodes.flat_map(|node| node.subgraphs()).collect();
        graphs.extend(inner);
    }
    graphs
}
