//! Makes nodes opaque during the passes: moves them to a domain without operators, and restores their domain afterwards.
//!
//! The original domain follows a prefix that no domain of the model begins with. So copies of a node, in unrolled or inlined subgraphs, get it back
//! as well.

use rustc_hash::FxHashSet;

use super::dead::graphs_below;
use super::pass::NodeEvent;
use crate::ir::{Function, GraphId, Model, Node, NodeId};
use crate::ops::{EventKind, Operator, nonstandard, operator, surplus, with_surplus};

/// The reason to keep a node that names both an operator and a function.
const DISPUTED: &str =
    "the model has another function or an operator of this name; which one counts is up to the runtime";

/// The reason to keep a node whose subgraph returns one of its inputs, or one value twice.
const MISGIVEN: &str =
    "its subgraph returns one of its inputs, or one value twice, which ONNX Runtime does not support";

/// The prefix of the domains of opaque nodes; empty if there are none.
#[derive(Default)]
pub(super) struct Opaque {
    prefix: String,
}

impl Opaque {
    pub(super) fn is_empty(&self) -> bool {
        self.prefix.is_empty()
    }
}

/// Makes the nodes opaque that `is_meant` selects.
pub(super) fn make_opaque(model: &mut Model, graphs: &[GraphId], is_meant: &dyn Fn(&Model, &Node) -> bool) -> Opaque {
    let is_meant = |id: &NodeId| model.node(*id).is_some_and(|node| is_meant(model, node));
    let meant = nodes_of(model, graphs).into_iter().filter(is_meant).collect();
    make_these_opaque(model, meant)
}

fn make_these_opaque(model: &mut Model, nodes: Vec<NodeId>) -> Opaque {
    if nodes.is_empty() {
        return Opaque::default();
    }
    let prefix = unused_prefix(model);
    for id in nodes {
        if let Some(node) = model.node_mut(id) {
            node.domain = format!("{prefix}{}", node.domain).into();
        }
    }
    Opaque { prefix }
}

/// Restores the domains of the opaque nodes in these graphs, and returns the nodes.
pub(super) fn make_plain(model: &mut Model, graphs: &[GraphId], opaque: &Opaque) -> Vec<NodeId> {
    if opaque.is_empty() {
        return Vec::new();
    }
    let is_opaque = |id: &NodeId| model.node(*id).is_some_and(|node| node.domain.starts_with(&opaque.prefix));
    let nodes: Vec<NodeId> = nodes_of(model, graphs).into_iter().filter(is_opaque).collect();
    for &id in &nodes {
        if let Some(node) = model.node_mut(id)
            && let Some(plain) = node.domain.strip_prefix(opaque.prefix.as_str())
        {
            node.domain = plain.into();
        }
    }
    nodes
}

/// The nodes that are opaque while the passes run, by reason.
pub(super) struct Hidden {
    surplus: Opaque,
    disputed: Opaque,
    misgiven: Opaque,
}

impl Hidden {
    /// Makes all such nodes opaque.
    pub(super) fn in_model(model: &mut Model) -> Hidden {
        let surplus = make_surplus_opaque(model);
        let disputed = make_disputed_opaque(model);
        Hidden { surplus, disputed, misgiven: make_misgiven_opaque(model) }
    }

    /// Returns `true` if the runtime decides which function or operator some of the nodes call.
    pub(super) fn are_disputed(&self) -> bool {
        !self.disputed.is_empty()
    }

    /// Restores the domains of the nodes, and returns a note for each.
    pub(super) fn show(self, model: &mut Model) -> Vec<NodeEvent> {
        let graphs = all_graphs(model);
        let misgiven = make_plain(model, &graphs, &self.misgiven);
        let disputed = make_plain(model, &graphs, &self.disputed);
        let superfluous = make_plain(model, &graphs, &self.surplus);
        let note = |id: NodeId, reason: String| (model.describe(id), EventKind::Declined, reason);
        let of_surplus = |id: NodeId| {
            let reason = model.node(id).and_then(|node| surplus(model, node)).unwrap_or_default();
            note(id, format!("{reason}; runtimes refuse or ignore it"))
        };
        let disputed = disputed.into_iter().map(|id| note(id, DISPUTED.to_string()));
        let misgiven = misgiven.into_iter().map(|id| note(id, MISGIVEN.to_string()));
        disputed.chain(misgiven).chain(superfluous.into_iter().map(of_surplus)).collect()
    }
}

fn nodes_of(model: &Model, graphs: &[GraphId]) -> Vec<NodeId> {
    graphs.iter().flat_map(|&graph| model.graph(graph).nodes()).collect()
}

/// Returns a short prefix that no domain of the model begins with: a number between zeros.
fn unused_prefix(model: &Model) -> String {
    let nodes = model.graphs().flat_map(|graph| model.graph(graph).nodes()).filter_map(|id| model.node(id));
    let domains =
        nodes.map(|node| node.domain.as_str()).chain(model.functions().map(|(_, function)| function.domain.as_str()));
    let number = |domain: &str| domain.strip_prefix('\0')?.split_once('\0')?.0.parse::<usize>().ok();
    let used: FxHashSet<usize> = domains.filter_map(number).collect();
    let free = (0..=used.len()).find(|number| !used.contains(number)).unwrap_or_default();
    format!("\0{free}\0")
}

/// Returns the main graph, the bodies of functions, and their subgraphs.
pub(super) fn all_graphs(model: &Model) -> Vec<GraphId> {
    let roots = std::iter::once(model.main()).chain(model.functions().map(|(_, function)| function.body));
    roots.flat_map(|root| graphs_below(model, root)).collect()
}

/// Returns the first node that the standard's checker rejects, with the reason.
pub(super) fn nonstandard_node(model: &Model) -> Option<(String, String)> {
    let found = |id| Some((id, nonstandard(model, model.node(id)?)?));
    let (id, reason) = nodes_of(model, &all_graphs(model)).into_iter().find_map(found)?;
    Some((model.describe(id), reason))
}

/// Makes the nodes opaque with an attribute, operand or result that their operator lacks in the version in force. A rule that reads the attribute
/// would give it its meaning in another version.
fn make_surplus_opaque(model: &mut Model) -> Opaque {
    let nodes = with_surplus(model, nodes_of(model, &all_graphs(model)));
    make_these_opaque(model, nodes)
}

/// Makes the nodes opaque whose callee depends on the runtime. If a node names both an operator and a function of the model (`ModelProto.functions`),
/// ONNX Runtime calls the operator and others the function. For a node in a function that names an overload, ONNX Runtime calls the function without
/// overload.
fn make_disputed_opaque(model: &mut Model) -> Opaque {
    let may_be_meant =
        |function: &Function| !function.overload.is_empty() || operator(&function.domain, &function.name).is_some();
    if !model.functions().any(|(_, function)| may_be_meant(function)) {
        return Opaque::default();
    }
    let bodies = model.functions().flat_map(|(_, function)| graphs_below(model, function.body));
    let in_functions: FxHashSet<GraphId> = bodies.collect();
    let graphs = all_graphs(model);
    make_opaque(model, &graphs, &|model, node| {
        if model.function_of(node).is_none() {
            return false;
        }
        // If no operator set with the operator is imported, only the function can be called.
        let opset = model.opset(node.graph(), &node.domain);
        let is_in_force = |operator: &Operator| opset.is_none_or(|opset| operator.since(opset).is_some());
        operator(&node.domain, &node.op_type).is_some_and(is_in_force)
            || !node.overload.is_empty() && in_functions.contains(&node.graph())
    })
}

/// Makes the nodes opaque whose subgraphs return values that ONNX Runtime handles differently from the standard:
///
/// - a Loop that returns the iteration number itself: ONNX Runtime increments its tensor in place, so all rows are the last number;
/// - a Scan that returns an input of its subgraph, or one value twice: the result is uninitialized memory.
///
/// An If that returns one value twice is not included: ONNX Runtime does not load the model if its condition is known.
fn make_misgiven_opaque(model: &mut Model) -> Opaque {
    if !model.has_subgraphs() {
        return Opaque::default();
    }
    let graphs = all_graphs(model);
    make_opaque(model, &graphs, &|model, node| {
        let gives_number_away = |body: GraphId| {
            let body = model.graph(body);
            body.inputs().first().is_some_and(|number| body.outputs().contains(number))
        };
        let gives_taken_away = |body: GraphId| {
            let body = model.graph(body);
            body.outputs().iter().any(|output| body.inputs().contains(output))
        };
        let gives_twice = |body: GraphId| {
            let mut given = FxHashSet::default();
            !model.graph(body).outputs().iter().all(|output| given.insert(output))
        };
        match node.op_type.as_str() {
            _ if !node.canonical_domain().is_empty() => false,
            "Loop" => node.subgraphs().any(gives_number_away),
            "Scan" => node.subgraphs().any(|body| gives_taken_away(body) || gives_twice(body)),
            _ => false,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::text;

    #[test]
    fn the_prefix_is_new_and_short() {
        let mut model =
            text::parse("<opset_import: [\"\" : 17]> g (float[3] x) => (z) { y = Neg (x)  z = Abs (y) }").unwrap();
        let nodes = nodes_of(&model, &[model.main()]);
        for (&id, domain) in nodes.iter().zip(["\0".repeat(100_000), "\u{0}0\u{0}com.example".to_string()]) {
            model.node_mut(id).unwrap().domain = domain.into();
        }
        assert_eq!(unused_prefix(&model), "\u{0}1\u{0}");
        let before: Vec<String> = nodes.iter().map(|&id| model.node(id).unwrap().domain.to_string()).collect();
        let graphs = [model.main()];
        let opaque = make_opaque(&mut model, &graphs, &|_, node| node.op_type == "Abs");
        assert_eq!(make_plain(&mut model, &graphs, &opaque), nodes[1..]);
        let after: Vec<String> = nodes.iter().map(|&id| model.node(id).unwrap().domain.to_string()).collect();
        assert_eq!(before, after);
    }
}
