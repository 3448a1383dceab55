//! Reads a model file without its large payloads, for hosts that store the file outside of memory.
//!
//! The outline is itself a model. It has one byte in place of each large `raw_data` of an initializer or tensor
//! attribute, and adapted lengths of the enclosing messages. A table maps the position of this byte to a range of the
//! file. All other bytes are copied, including malformed ones, so that the decoder reports them as for the file.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;

use bytes::Bytes;

use super::file::place_in;
use crate::tensor::{ByteRange, DType, SharedSource};

/// Smaller payloads are part of the outline.
const LEAST: u64 = if cfg!(test) { 1 << 10 } else { 64 << 10 };

/// The number of bytes per read of the file.
const WINDOW: u64 = 64 << 10;

/// The largest depth at which payloads are searched. Deeper messages are copied, and the decoder rejects them.
const DEPTH: usize = 100;

/// A model file without its large payloads.
pub struct Outline {
    /// The bytes of the model.
    pub bytes: Bytes,
    /// The payloads, by their positions in the outline.
    holes: BTreeMap<u64, ByteRange>,
    /// Positions in the outline at which the distance to the file's position changes, with the position in the file.
    anchors: BTreeMap<u64, u64>,
    /// The size of the file in bytes.
    pub size: u64,
}

impl Outline {
    /// Reads the outline of a file.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn of(file: &SharedSource) -> io::Result<Self> {
        let size = file.size();
        let mut reader = Reader { file, window: Vec::new(), at: 0 };
        let mut outline = Draft::default();
        if size < LEAST || !reader.message(Kind::Model, 0..size, &mut outline, 0)? {
            outline = Draft::default();
            outline.copy(&mut reader, 0..size)?;
        }
        let Draft { bytes, holes, anchors } = outline;
        Ok(Outline {
            bytes: bytes.into(),
            holes: holes.into_iter().collect(),
            anchors: anchors.into_iter().collect(),
            size,
        })
    }

    /// Returns the payload that a slice of the outline represents.
    pub fn payload(&self, slice: &[u8]) -> Option<&ByteRange> {
        (slice.len() == 1).then_some(())?;
        self.holes.get(&place_in(&self.bytes, slice)?)
    }

    /// Returns the position in the file of a position in the outline.
    pub fn position(&self, at: u64) -> u64 {
        let anchor = self.anchors.range(..=at).next_back();
        anchor.map_or(at, |(&here, &there)| there.saturating_add(at - here))
    }
}

/// A partial outline that is being written.
#[derive(Default)]
struct Draft {
    bytes: Vec<u8>,
    holes: Vec<(u64, ByteRange)>,
    anchors: Vec<(u64, u64)>,
}

impl Draft {
    fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Appends a range of the file unchanged.
    fn copy(&mut self, reader: &mut Reader, range: Range<u64>) -> io::Result<()> {
        let too_large = || io::Error::from(io::ErrorKind::OutOfMemory);
        let len = usize::try_from(range.end - range.start).map_err(|_| too_large())?;
        self.anchors.push((self.len(), range.start));
        let at = self.bytes.len();
        self.bytes.try_reserve(len).map_err(|_| too_large())?;
        self.bytes.resize(at.saturating_add(len), 0);
        reader.file.read(range.start, self.bytes.get_mut(at..).unwrap_or_default())
    }

    /// Appends a field with a message. `at` is the field's position in the file.
    fn append(&mut self, tag: &[u8], at: u64, inner: Draft) {
        self.anchors.push((self.len(), at));
        self.bytes.extend_from_slice(tag);
        varint(&mut self.bytes, inner.len());
        let base = self.len();
        self.bytes.extend_from_slice(&inner.bytes);
        self.holes.extend(inner.holes.into_iter().map(|(at, range)| (base.saturating_add(at), range)));
        self.anchors.extend(inner.anchors.into_iter().map(|(here, there)| (base.saturating_add(here), there)));
    }
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// The messages in which payloads are searched.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Model,
    Graph,
    Node,
    Attribute,
    Tensor,
}

impl Kind {
    /// Returns the message kind of a field.
    fn field(self, number: u64) -> Option<Kind> {
        match (self, number) {
            (Kind::Model, 7) => Some(Kind::Graph),
            (Kind::Graph, 1) => Some(Kind::Node),
            (Kind::Graph, 5) => Some(Kind::Tensor),
            (Kind::Node, 5) => Some(Kind::Attribute),
            (Kind::Attribute, 5 | 10) => Some(Kind::Tensor),
            (Kind::Attribute, 6 | 11) => Some(Kind::Graph),
            _ => None,
        }
    }
}

/// A field, as positions in the file.
struct Field {
    number: u64,
    wire: u64,
    /// The end of its tag.
    tag: u64,
    /// The range after tag and length.
    content: Range<u64>,
}

/// Reads a file in windows.
struct Reader<'a> {
    file: &'a SharedSource,
    window: Vec<u8>,
    /// The position of the window.
    at: u64,
}

impl Reader<'_> {
    /// Appends a message without its large payloads. Returns `false` and an unusable draft if there are none, or if
    /// the message is malformed.
    fn message(&mut self, kind: Kind, range: Range<u64>, out: &mut Draft, depth: usize) -> io::Result<bool> {
        if depth > DEPTH || range.end - range.start < LEAST {
            return Ok(false);
        }
        if kind == Kind::Tensor {
            return self.tensor(range, out);
        }
        let (mut at, mut copied, mut found) = (range.start, range.start, false);
        while at < range.end {
            // The decoder reports malformed fields.
            let Some(field) = self.field(at, range.end)? else { break };
            if let Some(inner) = kind.field(field.number).filter(|_| field.wire == 2) {
                let mut draft = Draft::default();
                if self.message(inner, field.content.clone(), &mut draft, depth + 1)? {
                    out.copy(self, copied..at)?;
                    let tag = self.bytes(at..field.tag)?;
                    out.append(&tag, at, draft);
                    copied = field.content.end;
                    found = true;
                }
            }
            at = field.content.end;
        }
        if found {
            out.copy(self, copied..range.end)?;
        }
        Ok(found)
    }

    /// Appends a tensor, and replaces its `raw_data` if it is large and the tensor's only content.
    fn tensor(&mut self, range: Range<u64>, out: &mut Draft) -> io::Result<bool> {
        let (mut at, mut payload) = (range.start, None);
        while at < range.end {
            let Some(field) = self.field(at, range.end)? else { return Ok(false) };
            match (field.number, field.wire) {
                (9, 2) if payload.is_none() => payload = Some((at, field.tag, field.content.clone())),
                (2, 0) if !self.is_whole_bytes(&field)? => return Ok(false),
                (14, 0) if self.byte(field.content.start, range.end)? != Some(0) => return Ok(false),
                // Dims, type, name, documentation, metadata and the default location. Other fields contain elements.
                (1 | 2 | 8 | 12 | 14 | 16, _) => {}
                _ => return Ok(false),
            }
            at = field.content.end;
        }
        let Some((begin, tag_end, content)) = payload.filter(|(_, _, content)| content.end - content.start >= LEAST)
        else {
            return Ok(false);
        };
        let len = usize::try_from(content.end - content.start).ok();
        let Some(hole) = len.and_then(|len| ByteRange::new(self.file.clone(), content.start, len)) else {
            return Ok(false);
        };
        out.copy(self, range.start..begin)?;
        let tag = self.bytes(begin..tag_end)?;
        let mut one = Draft { bytes: vec![0], ..Draft::default() };
        one.holes.push((0, hole));
        out.append(&tag, begin, one);
        out.copy(self, content.end..range.end)?;
        Ok(true)
    }

    /// Returns `true` if a field declares a known element type whose elements are whole bytes.
    fn is_whole_bytes(&mut self, field: &Field) -> io::Result<bool> {
        let number = self.varint(field.content.start, field.content.end)?.map(|(number, _)| number);
        let dtype = number.and_then(|number| DType::from_onnx(i32::try_from(number).ok()?));
        Ok(dtype.is_some_and(|dtype| dtype != DType::String && !dtype.is_packed()))
    }

    /// Reads the field at a position; `None` if it is incomplete.
    fn field(&mut self, at: u64, end: u64) -> io::Result<Option<Field>> {
        let Some((key, tag)) = self.varint(at, end)? else { return Ok(None) };
        let (number, wire) = (key >> 3, key & 7);
        let content = match wire {
            0 => self.varint(tag, end)?.map(|(_, after)| tag..after),
            1 => Some(tag..tag.saturating_add(8)),
            2 => self.varint(tag, end)?.map(|(len, after)| after..after.saturating_add(len)),
            5 => Some(tag..tag.saturating_add(4)),
            _ => None,
        };
        Ok(content.filter(|content| content.end <= end).map(|content| Field { number, wire, tag, content }))
    }

    /// Reads a varint; returns its value and end.
    fn varint(&mut self, mut at: u64, end: u64) -> io::Result<Option<(u64, u64)>> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let Some(byte) = self.byte(at, end)? else { return Ok(None) };
            value |= u64::from(byte & 0x7f) << shift;
            at += 1;
            if byte < 0x80 {
                return Ok(Some((value, at)));
            }
        }
        Ok(None)
    }

    fn byte(&mut self, at: u64, end: u64) -> io::Result<Option<u8>> {
        if at >= end {
            return Ok(None);
        }
        let inside = at.checked_sub(self.at).and_then(|at| self.window.get(usize::try_from(at).ok()?));
        if let Some(byte) = inside {
            return Ok(Some(*byte));
        }
        let len = usize::try_from(WINDOW.min(self.file.size().saturating_sub(at))).unwrap_or(0);
        self.window.resize(len, 0);
        self.at = at;
        self.file.read(at, &mut self.window)?;
        Ok(self.window.first().copied())
    }

    fn bytes(&mut self, range: Range<u64>) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; usize::try_from(range.end - range.start).unwrap_or(0)];
        self.file.read(range.start, &mut bytes)?;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use prost::Message;

    use super::*;
    use crate::onnx::proto::{AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto};
    use crate::tensor::ByteSource;

    /// Bytes, and the number of bytes read.
    struct Counted(Vec<u8>, std::sync::Arc<AtomicU64>);

    impl ByteSource for Counted {
        fn size(&self) -> u64 {
            self.0.len() as u64
        }

        fn read(&self, from: u64, out: &mut [u8]) -> io::Result<()> {
            self.1.fetch_add(out.len() as u64, Ordering::Relaxed);
            let from = usize::try_from(from).unwrap();
            out.copy_from_slice(&self.0[from..from + out.len()]);
            Ok(())
        }
    }

    fn outline(bytes: &[u8]) -> (Outline, u64) {
        let read = std::sync::Arc::new(AtomicU64::new(0));
        let file = SharedSource::new(Box::new(Counted(bytes.to_vec(), std::sync::Arc::clone(&read))));
        (Outline::of(&file).unwrap(), read.load(Ordering::Relaxed))
    }

    fn tensor(name: &str, len: usize) -> TensorProto {
        let raw_data = Some((0..len).map(|at| at as u8).collect::<Vec<_>>().into());
        TensorProto {
            name: Some(name.into()),
            data_type: Some(1),
            dims: vec![len as i64 / 4],
            raw_data,
            ..Default::default()
        }
    }

    fn model() -> ModelProto {
        let small = tensor("small", 400);
        let constant =
            AttributeProto { name: Some("value".into()), t: Some(Box::new(tensor("c", 80_000))), ..Default::default() };
        let inner = GraphProto { initializer: vec![tensor("inner", 70_000)], ..Default::default() };
        let branch =
            AttributeProto { name: Some("then_branch".into()), g: Some(Box::new(inner)), ..Default::default() };
        let node =
            |attribute| NodeProto { op_type: Some("If".into()), attribute: vec![attribute], ..Default::default() };
        let graph = GraphProto {
            node: vec![node(constant), NodeProto::default(), node(branch)],
            name: Some("g".into()),
            initializer: vec![
                small,
                tensor("large", 5_000_000),
                TensorProto { data_location: Some(0), ..tensor("told", 90_000) },
            ],
            ..Default::default()
        };
        ModelProto { ir_version: Some(8), graph: Some(graph), producer_name: Some("p".into()), ..Default::default() }
    }

    /// Returns the model with the payloads of the outline.
    fn filled(outline: &Outline) -> ModelProto {
        fn fill(outline: &Outline, tensor: &mut TensorProto) {
            if let Some(range) = tensor.raw_data.as_deref().and_then(|payload| outline.payload(payload)) {
                tensor.raw_data = Some(range.bytes().clone());
            }
        }
        fn graph(outline: &Outline, of: &mut GraphProto) {
            of.initializer.iter_mut().for_each(|tensor| fill(outline, tensor));
            for attribute in of.node.iter_mut().flat_map(|node| &mut node.attribute) {
                attribute.t.iter_mut().for_each(|tensor| fill(outline, tensor));
                attribute.g.iter_mut().for_each(|inner| graph(outline, inner));
            }
        }
        let mut model = ModelProto::decode(outline.bytes.clone()).unwrap();
        model.graph.iter_mut().for_each(|of| graph(outline, of));
        model
    }

    #[test]
    fn an_outline_is_the_model_without_its_large_payloads() {
        let bytes = model().encode_to_vec();
        let (outline, read) = outline(&bytes);
        assert!(outline.bytes.len() < 2000 && outline.holes.len() == 4 && read < 600_000, "{read}");
        assert_eq!((outline.size, filled(&outline)), (bytes.len() as u64, model()));
        // A copied position has the same byte as the file.
        for (name, at) in [("told", 0), ("small", 1), ("p", 0)] {
            let find = |bytes: &[u8]| bytes.windows(name.len()).rposition(|text| text == name.as_bytes()).unwrap() + at;
            assert_eq!(outline.position(find(&outline.bytes) as u64), find(&bytes) as u64, "{name}");
        }
    }

    #[test]
    fn payloads_of_other_tensors_are_copied() {
        let alone = |tensor: TensorProto| {
            let graph = GraphProto { initializer: vec![tensor], ..Default::default() };
            let bytes = ModelProto { graph: Some(graph), ..Default::default() }.encode_to_vec();
            let (outline, _) = outline(&bytes);
            assert!(outline.bytes == bytes && outline.holes.is_empty());
        };
        let large = || tensor("large", 100_000);
        alone(TensorProto { data_type: Some(8), ..large() });
        alone(TensorProto { data_type: Some(99), ..large() });
        alone(TensorProto { data_type: Some(22), ..large() });
        alone(TensorProto { data_location: Some(1), ..large() });
        alone(TensorProto { float_data: vec![1.0], ..large() });
        alone(tensor("small", 400));
    }

    #[test]
    fn malformed_files_are_copied() {
        let bytes = model().encode_to_vec();
        for len in [0, 1, 70, 20_000, bytes.len() - 3] {
            let (outline, _) = outline(&bytes[..len]);
            assert!(outline.bytes == bytes[..len] && outline.holes.is_empty(), "{len}");
        }
        let noise: Vec<u8> = (0..300_000u64).map(|n| (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect();
        assert!(outline(&noise).0.bytes == noise);
    }
}
