//! Decodes a model, but leaves the nodes of its main graph in the file.
//!
//! Hardly any part of a node's message is kept: names become values, and the message is dropped. So nodes and value
//! types of the main graph are decoded one at a time, and their names are compared in place.

use bytes::Bytes;
use prost::{DecodeError, Message};
use smallvec::SmallVec;
use thiserror::Error;

use super::proto::{AttributeProto, GraphProto, ModelProto, NodeProto};
use crate::ir::fields;

/// An error for bytes that the walk accepted although they are not a message.
#[derive(Debug, Error)]
pub enum NoMessage {
    /// prost rejects the bytes.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// A field should begin here, but does not.
    #[error("bytes that are not a field")]
    NoField,
}

/// A model, with the most numerous parts of its main graph separate.
pub struct ModelParts {
    /// The model without these parts.
    pub model: ModelProto,
    /// The undecoded nodes of the main graph; empty if the message contains the nodes.
    pub nodes: Vec<Bytes>,
    /// The undecoded value types of the main graph.
    pub value_info: Vec<Bytes>,
}

impl From<ModelProto> for ModelParts {
    fn from(model: ModelProto) -> Self {
        ModelParts { model, nodes: Vec::new(), value_info: Vec::new() }
    }
}

impl ModelParts {
    /// Reads a file that was walked and has no unknown fields.
    ///
    /// # Errors
    /// The walk accepted bytes that are not a message.
    pub fn of(file: &Bytes) -> Result<ModelParts, NoMessage> {
        let mut parts = ModelParts::from(ModelProto::default());
        for field in fields(file) {
            let field = field.ok_or(NoMessage::NoField)?;
            // Repeated occurrences of a message field are merged, as prost does.
            match field.number {
                7 => parts.graph(&file.slice_ref(field.content.unwrap_or_default()))?,
                _ => parts.model.merge(file.slice_ref(field.whole))?,
            }
        }
        Ok(parts)
    }

    fn graph(&mut self, graph: &Bytes) -> Result<(), NoMessage> {
        let proto = self.model.graph.get_or_insert_with(GraphProto::default);
        self.nodes.reserve(nodes_of(graph));
        for field in fields(graph) {
            let field = field.ok_or(NoMessage::NoField)?;
            match field.number {
                1 => self.nodes.push(graph.slice_ref(field.content.unwrap_or_default())),
                13 => self.value_info.push(graph.slice_ref(field.content.unwrap_or_default())),
                _ => proto.merge(graph.slice_ref(field.whole))?,
            }
        }
        Ok(())
    }
}

/// Counts the nodes of a file's main graph, up to the first malformed field.
pub fn count_nodes(file: &[u8]) -> usize {
    let graphs = fields(file).flatten().filter(|field| field.number == 7);
    graphs.map(|graph| nodes_of(graph.content.unwrap_or_default())).sum()
}

fn nodes_of(graph: &[u8]) -> usize {
    fields(graph).flatten().filter(|field| field.number == 1).count()
}

/// The fields of a node, in the file or in a message.
pub(super) struct NodeParts<'a> {
    pub input: SmallVec<[&'a str; 4]>,
    pub output: SmallVec<[&'a str; 4]>,
    pub name: &'a str,
    pub op_type: &'a str,
    pub domain: &'a str,
    pub overload: &'a str,
    pub attributes: Vec<AttributeProto>,
    /// All other fields, encoded.
    pub rest: Vec<u8>,
}

impl<'a> NodeParts<'a> {
    /// Reads a node in the file.
    ///
    /// # Errors
    /// The walk accepted bytes that are not a message.
    pub fn in_file(node: &'a Bytes) -> Result<NodeParts<'a>, NoMessage> {
        let (input, output) = (SmallVec::new(), SmallVec::new());
        let (name, op_type, domain, overload) = ("", "", "", "");
        let mut parts =
            NodeParts { input, output, name, op_type, domain, overload, attributes: Vec::new(), rest: Vec::new() };
        let mut others: Option<NodeProto> = None;
        for field in fields(node) {
            let field = field.ok_or(NoMessage::NoField)?;
            let content = field.content.unwrap_or_default();
            let text = || std::str::from_utf8(content).unwrap_or_default();
            match field.number {
                1 => parts.input.push(text()),
                2 => parts.output.push(text()),
                3 => parts.name = text(),
                4 => parts.op_type = text(),
                5 => parts.attributes.push(AttributeProto::decode(node.slice_ref(content))?),
                7 => parts.domain = text(),
                8 => parts.overload = text(),
                _ => others.get_or_insert_with(NodeProto::default).merge(node.slice_ref(field.whole))?,
            }
        }
        parts.rest = others.map(|others| others.encode_to_vec()).unwrap_or_default();
        Ok(parts)
    }

    /// Reads a message whose attributes have been taken out.
    pub fn in_message(node: &'a NodeProto, attributes: Vec<AttributeProto>) -> NodeParts<'a> {
        // The pattern names all fields, so that a new field of the schema is not forgotten.
        let NodeProto {
            input,
            output,
            name,
            op_type,
            domain,
            overload,
            attribute: _,
            doc_string,
            metadata_props,
            device_configurations,
        } = node;
        let has_others = doc_string.is_some() || !metadata_props.is_empty() || !device_configurations.is_empty();
        let others = || NodeProto {
            doc_string: doc_string.clone(),
            metadata_props: metadata_props.clone(),
            device_configurations: device_configurations.clone(),
            ..NodeProto::default()
        };
        NodeParts {
            input: input.iter().map(String::as_str).collect(),
            output: output.iter().map(String::as_str).collect(),
            name: name.as_deref().unwrap_or_default(),
            op_type: op_type.as_deref().unwrap_or_default(),
            domain: domain.as_deref().unwrap_or_default(),
            overload: overload.as_deref().unwrap_or_default(),
            attributes,
            rest: if has_others { others().encode_to_vec() } else { Vec::new() },
        }
    }
}

/// Returns the names of a node's results. Malformed bytes are reported when the node itself is read.
pub(super) fn results_in_file(node: &[u8]) -> impl Iterator<Item = &str> {
    let results = fields(node).flatten().filter(|field| field.number == 2);
    results.map(|field| std::str::from_utf8(field.content.unwrap_or_default()).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::onnx::wire::tests::sample;

    #[test]
    fn parts_are_those_of_the_message() {
        let whole = sample();
        let file = Bytes::from(whole.encode_to_vec());
        let parts = ModelParts::of(&file).unwrap();
        let graph = whole.graph.clone().unwrap();
        assert!(!graph.node.is_empty() && graph.node.len() == parts.nodes.len());
        for (node, apart) in graph.node.iter().zip(&parts.nodes) {
            assert_eq!(*node, NodeProto::decode(apart.clone()).unwrap());
            let (a, b) = (NodeParts::in_file(apart).unwrap(), NodeParts::in_message(node, node.attribute.clone()));
            assert_eq!((a.input, &a.output, a.name, a.op_type), (b.input, &b.output, b.name, b.op_type));
            assert_eq!((a.domain, a.overload, a.attributes, a.rest), (b.domain, b.overload, b.attributes, b.rest));
            assert!(results_in_file(apart).eq(a.output.iter().copied()));
        }
        let mut rest = whole;
        let graph = rest.graph.as_mut().unwrap();
        (graph.node, graph.value_info) = (Vec::new(), Vec::new());
        assert_eq!(parts.model, rest);
    }

    #[test]
    fn a_graph_in_two_pieces_is_one() {
        let whole = sample();
        let mut file = whole.encode_to_vec();
        let more = GraphProto { node: vec![NodeProto::default()], name: Some("b".into()), ..GraphProto::default() };
        file.extend(ModelProto { graph: Some(more), ..ModelProto::default() }.encode_to_vec());
        let file = Bytes::from(file);
        let expected = ModelProto::decode(file.clone()).unwrap().graph.unwrap();
        let parts = ModelParts::of(&file).unwrap();
        assert_eq!(parts.nodes.len(), expected.node.len());
        assert_eq!(count_nodes(&file), expected.node.len());
        assert_eq!(count_nodes(&file[..file.len() - 1]), whole.graph.map_or(0, |graph| graph.node.len()));
        assert_eq!(count_nodes(b"no model"), 0);
        assert_eq!(parts.model.graph.unwrap().name, expected.name);
    }
}
