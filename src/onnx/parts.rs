//! A model's messages with the nodes of its main graph left in the file.
//!
//! Of a node as a message hardly anything stays: names become values, and the message is dropped. So the nodes of the main graph, and what is
//! declared of its values, are no messages before they are looked at one by one; what they name is compared as it lies in the file.

use bytes::Bytes;
use prost::{DecodeError, Message};
use smallvec::SmallVec;

use super::proto::{AttributeProto, GraphProto, ModelProto, NodeProto};

/// A model, and apart from it what its main graph has most of.
pub struct ModelParts {
    /// The model, but for what follows.
    pub model: ModelProto,
    /// The nodes of its graph, each a message as it lies in the file; none if the graph has them itself.
    pub nodes: Vec<Bytes>,
    /// Likewise what is declared of values.
    pub value_info: Vec<Bytes>,
}

impl From<ModelProto> for ModelParts {
    fn from(model: ModelProto) -> Self {
        ModelParts { model, nodes: Vec::new(), value_info: Vec::new() }
    }
}

impl ModelParts {
    /// Reads a file that was walked and has no field that the schema does not know.
    ///
    /// # Errors
    /// prost refuses what the walk let pass.
    pub fn of(file: &Bytes) -> Result<ModelParts, DecodeError> {
        let mut parts = ModelParts::from(ModelProto::default());
        for field in fields(file) {
            // The parts of a message that comes in several go on one another, as prost has it.
            match field.number {
                7 => parts.graph(&file.slice_ref(field.payload))?,
                _ => parts.model.merge(file.slice_ref(field.whole))?,
            }
        }
        Ok(parts)
    }

    fn graph(&mut self, graph: &Bytes) -> Result<(), DecodeError> {
        let proto = self.model.graph.get_or_insert_with(GraphProto::default);
        for field in fields(graph) {
            match field.number {
                1 => self.nodes.push(graph.slice_ref(field.payload)),
                13 => self.value_info.push(graph.slice_ref(field.payload)),
                _ => proto.merge(graph.slice_ref(field.whole))?,
            }
        }
        Ok(())
    }
}

/// What a node is made of, as it lies in the file or in a message.
pub(super) struct NodeParts<'a> {
    pub input: SmallVec<[&'a str; 4]>,
    pub output: SmallVec<[&'a str; 4]>,
    pub name: &'a str,
    pub op_type: &'a str,
    pub domain: &'a str,
    pub overload: &'a str,
    pub attributes: Vec<AttributeProto>,
    /// Everything else, encoded.
    pub rest: Vec<u8>,
}

impl<'a> NodeParts<'a> {
    /// Of a node in the file.
    ///
    /// # Errors
    /// prost refuses what the walk let pass.
    pub fn in_file(node: &'a Bytes) -> Result<NodeParts<'a>, DecodeError> {
        let (input, output) = (SmallVec::new(), SmallVec::new());
        let (name, op_type, domain, overload) = ("", "", "", "");
        let mut parts =
            NodeParts { input, output, name, op_type, domain, overload, attributes: Vec::new(), rest: Vec::new() };
        let mut others: Option<NodeProto> = None;
        for field in fields(node) {
            let text = || std::str::from_utf8(field.payload).unwrap_or_default();
            match field.number {
                1 => parts.input.push(text()),
                2 => parts.output.push(text()),
                3 => parts.name = text(),
                4 => parts.op_type = text(),
                5 => parts.attributes.push(AttributeProto::decode(node.slice_ref(field.payload))?),
                7 => parts.domain = text(),
                8 => parts.overload = text(),
                _ => others.get_or_insert_with(NodeProto::default).merge(node.slice_ref(field.whole))?,
            }
        }
        parts.rest = others.map(|others| others.encode_to_vec()).unwrap_or_default();
        Ok(parts)
    }

    /// Of a message, whose attributes have been taken out.
    pub fn in_message(node: &'a NodeProto, attributes: Vec<AttributeProto>) -> NodeParts<'a> {
        let NodeProto { doc_string, metadata_props, device_configurations, .. } = node;
        let has_others = doc_string.is_some() || !metadata_props.is_empty() || !device_configurations.is_empty();
        let others = || NodeProto {
            doc_string: doc_string.clone(),
            metadata_props: metadata_props.clone(),
            device_configurations: device_configurations.clone(),
            ..NodeProto::default()
        };
        NodeParts {
            input: node.input.iter().map(String::as_str).collect(),
            output: node.output.iter().map(String::as_str).collect(),
            name: node.name(),
            op_type: node.op_type(),
            domain: node.domain(),
            overload: node.overload(),
            attributes,
            rest: if has_others { others().encode_to_vec() } else { Vec::new() },
        }
    }
}

/// The names of a node's results.
pub(super) fn results_in_file(node: &[u8]) -> impl Iterator<Item = &str> {
    fields(node).filter(|field| field.number == 2).map(|field| std::str::from_utf8(field.payload).unwrap_or_default())
}

/// One field of a message.
struct Field<'a> {
    number: u64,
    /// With what goes before it.
    whole: &'a [u8],
    /// Of a field with a length, what has that length; empty for others.
    payload: &'a [u8],
}

/// The fields of a message that was walked. It ends where bytes are none, which the walk has refused.
fn fields(message: &[u8]) -> impl Iterator<Item = Field<'_>> {
    let mut left = message;
    std::iter::from_fn(move || {
        let before = left;
        let tag = varint(&mut left)?;
        let payload = match tag & 7 {
            0 => varint(&mut left).map(|_| &[][..])?,
            1 => cut(&mut left, 8).map(|_| &[][..])?,
            2 => {
                let len = varint(&mut left)?;
                cut(&mut left, usize::try_from(len).ok()?)?
            }
            5 => cut(&mut left, 4).map(|_| &[][..])?,
            _ => return None,
        };
        let whole = before.get(..before.len().checked_sub(left.len())?)?;
        Some(Field { number: tag >> 3, whole, payload })
    })
}

fn cut<'a>(left: &mut &'a [u8], len: usize) -> Option<&'a [u8]> {
    let (front, rest) = left.split_at_checked(len)?;
    *left = rest;
    Some(front)
}

fn varint(left: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = left.split_first()?;
        *left = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
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
        assert_eq!(parts.model.graph.unwrap().name, expected.name);
    }
}
