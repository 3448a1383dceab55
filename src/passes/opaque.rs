//! Makes nodes opaque while the passes run: they get a domain that has no operators, and their own domain back afterwards.

use super::dead::graphs_below;
use crate::ir::{GraphId, Model, Node, NodeId};
use crate::ops::operator;

/// The nodes that were made opaque, each with its own domain.
pub(super) type Opaque = Vec<(NodeId, String)>;

/// Makes the nodes opaque for which `is_meant` holds.
pub(super) fn make_opaque(model: &mut Model, graphs: &[GraphId], is_meant: &dyn Fn(&Model, &Node) -> bool) -> Opaque {
    let nodes: Vec<NodeId> = graphs.iter().flat_map(|&graph| model.graph(graph).nodes()).collect();
    let meant = nodes.into_iter().filter(|&id| model.node(id).is_some_and(|node| is_meant(model, node)));
    let mut opaque = Opaque::new();
    for id in meant.collect::<Vec<_>>() {
        if let Some(node) = model.node_mut(id) {
            opaque.push((id, std::mem::replace(&mut node.domain, "\u{0}opaque".to_string())));
        }
    }
    opaque
}

/// Gives the nodes that are still there their domains back.
pub(super) fn make_plain(model: &mut Model, opaque: &Opaque) {
    for (id, domain) in opaque {
        if let Some(node) = model.node_mut(*id) {
            node.domain.clone_from(domain);
        }
    }
}

/// Makes the nodes opaque that name an operator and a function of the model's at once. Which of both has precedence is up to the runtime
/// (`ModelProto.functions`): ONNX Runtime takes the operator, others the function.
pub(super) fn make_disputed_opaque(model: &mut Model) -> Opaque {
    if !model.functions().any(|(_, function)| operator(&function.domain, &function.name).is_some()) {
        return Opaque::new();
    }
    let roots = std::iter::once(model.main()).chain(model.functions().map(|(_, function)| function.body));
    let graphs: Vec<GraphId> = roots.flat_map(|root| graphs_below(model, root)).collect();
    make_opaque(model, &graphs, &|model, node| {
        let operator = operator(&node.domain, &node.op_type).filter(|_| model.function_of(node).is_some());
        // Where no operator set with it is imported, there is only the function.
        let opset = model.opset(node.graph(), &node.domain);
        operator.is_some_and(|operator| opset.is_none_or(|opset| operator.since(opset).is_some()))
    })
}
