//! Pins the values that training information and Gradient nodes name: they are kept and are not constant.

use rustc_hash::FxHashMap;

use crate::ir::{Attribute, Model, ValueId};
use crate::onnx::proto::{GraphProto, ModelProto};

/// Returns the names of the main graph's values that training information changes or reads.
pub(super) fn training_names(proto: &ModelProto) -> Vec<String> {
    let mut names = Vec::new();
    for info in &proto.training_info {
        for entry in info.initialization_binding.iter().chain(&info.update_binding) {
            names.extend(entry.key.clone());
            names.extend(entry.value.clone());
        }
        let mut open: Vec<&GraphProto> = info.algorithm.iter().chain(&info.initialization).collect();
        while let Some(graph) = open.pop() {
            names.extend(graph.output.iter().filter_map(|output| output.name.clone()));
            for node in &graph.node {
                names.extend(node.input.iter().cloned());
                for attribute in &node.attribute {
                    open.extend(attribute.g.as_deref());
                    open.extend(&attribute.graphs);
                }
            }
        }
    }
    names
}

/// Returns the names of values in the attributes of Gradient nodes: the differentiated values and the variables.
pub(super) fn differentiated(model: &Model) -> Vec<String> {
    let nodes = model.graphs().flat_map(|graph| model.graph(graph).nodes()).filter_map(|id| model.node(id));
    let gradients = nodes.filter(|node| node.op_type == "Gradient" && node.domain == "ai.onnx.preview.training");
    let named = gradients.flat_map(|node| ["xs", "zs", "y"].map(|attribute| node.attribute(attribute)));
    let mut names = Vec::new();
    for attribute in named.flatten() {
        let texts = match attribute {
            Attribute::String(text) => std::slice::from_ref(text),
            Attribute::Strings(texts) => texts,
            _ => &[],
        };
        names.extend(texts.iter().map(|text| String::from_utf8_lossy(text).into_owned()));
    }
    names
}

/// Pins the values of these names, so that they are neither removed nor treated as constants.
pub(super) fn pin(model: &mut Model, names: &[String]) {
    if names.is_empty() {
        return;
    }
    let names: FxHashMap<&str, ()> = names.iter().map(|name| (name.as_str(), ())).collect();
    let mut values: Vec<ValueId> = Vec::new();
    for graph in model.graphs().map(|graph| model.graph(graph)) {
        let nodes = graph.nodes().filter_map(|id| model.node(id)).flat_map(|node| node.outputs().iter().flatten());
        values.extend(graph.inputs().iter().chain(graph.initializers()).chain(nodes));
    }
    for value in values {
        if names.contains_key(model.value(value).name.as_str()) {
            model.value_mut(value).pinned = true;
        }
    }
}
