//! Encodes messages to bytes without copying payloads.
//!
//! The length of a message precedes the message, so all lengths must be known before the first byte. prost computes
//! the lengths again at each level, which multiplies the cost by the depth. Here a first walk measures all messages,
//! and a second one writes them; both run the same code with a different [`Sink`]. Fields have ascending numbers; a
//! message's unknown fields follow them. A file with this order is reproduced byte for byte.

mod apart;
mod fields;
mod place;

use std::collections::BTreeMap;
use std::io;

use thiserror::Error;

pub use self::apart::Apart;
use self::fields::{packed, payload, scalar, tag, text, varint_len};
use self::place::Place;
use super::wire::{Descent, UnknownFields};
use super::{MESSAGE_BYTES, proto};
use crate::tensor::Tensor;
use crate::tensor::threads;

/// An error for a model that cannot be written.
#[derive(Debug, Error)]
pub enum EncodeError {
    /// The model exceeds protobuf's limit of one message; payloads must move to external data.
    #[error("the model has {0} bytes, above the protobuf limit of 2 GiB; save its tensors as external data")]
    TooLarge(u64),
    /// The writer failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Tensors whose payload is computed during writing, by the path of their message.
pub type DeferredPayloads = BTreeMap<Vec<Descent>, Tensor>;

/// A model that was measured and can be written.
pub struct Encoded<'a> {
    model: &'a proto::ModelProto,
    unknown: &'a UnknownFields,
    deferred: &'a DeferredPayloads,
    apart: Option<&'a Apart<'a>>,
    len: u64,
    /// The lengths of all messages below the model, in the order in which they begin.
    lengths: Vec<u64>,
}

impl<'a> Encoded<'a> {
    /// Measures a model. The paths of its unknown fields must be paths of the model's messages.
    ///
    /// # Errors
    /// [`EncodeError::TooLarge`].
    pub fn measure(model: &'a proto::ModelProto, unknown: &'a UnknownFields) -> Result<Self, EncodeError> {
        static NONE: DeferredPayloads = DeferredPayloads::new();
        Encoded::measure_with(model, unknown, &NONE, None)
    }

    /// Measures a model with payloads that are computed during writing, and optionally with parts outside the
    /// messages.
    ///
    /// # Errors
    /// [`EncodeError::TooLarge`].
    pub fn measure_with(
        model: &'a proto::ModelProto,
        unknown: &'a UnknownFields,
        deferred: &'a DeferredPayloads,
        apart: Option<&'a Apart<'a>>,
    ) -> Result<Self, EncodeError> {
        let place = Place::new(unknown, deferred);
        let mut measure = Measure { lengths: Vec::new(), open: Vec::new(), here: 0, place, apart };
        model.put(&mut measure);
        measure.unknown();
        debug_assert_eq!(
            measure.place.met,
            unknown.iter().count(),
            "unknown fields of a message the model does not have"
        );
        let Measure { lengths, here: len, .. } = measure;
        if len > MESSAGE_BYTES {
            Err(EncodeError::TooLarge(len))
        } else {
            Ok(Encoded { model, unknown, deferred, apart, len, lengths })
        }
    }

    /// Returns the number of bytes that [`Encoded::write`] writes.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Returns `true` if the encoded model has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Writes the model.
    ///
    /// # Errors
    /// The errors of `out`.
    pub fn write(&self, out: &mut dyn Destination) -> Result<(), EncodeError> {
        let place = Place::new(self.unknown, self.deferred);
        let mut emit =
            Emit { out, gathered: Vec::new(), lengths: self.lengths.iter(), place, apart: self.apart, failed: None };
        self.model.put(&mut emit);
        emit.unknown();
        emit.flush();
        emit.failed.map_or(Ok(()), |error| Err(error.into()))
    }
}

/// Receives the bytes of a message, in order.
pub trait Destination {
    /// Writes bytes, usually few.
    ///
    /// # Errors
    /// The system reports an error.
    fn bytes(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Writes the payload of a tensor, which may be a range of a file.
    ///
    /// # Errors
    /// The system reports an error.
    fn payload(&mut self, payload: &[u8]) -> io::Result<()> {
        self.bytes(payload)
    }

    /// Computes a payload and writes it block by block.
    ///
    /// # Errors
    /// The system reports an error.
    fn deferred(&mut self, tensor: &Tensor) -> io::Result<()> {
        self.computed(tensor, &mut Vec::new())
    }

    /// Computes and writes a payload with the given buffer, which is enlarged as needed.
    ///
    /// # Errors
    /// The system reports an error.
    fn computed(&mut self, tensor: &Tensor, buffer: &mut Vec<u8>) -> io::Result<()> {
        let len = tensor.byte_len();
        // The block is large enough for all processors, and small enough to be in their caches until it is written.
        #[allow(clippy::disallowed_methods, reason = "a number of bytes")]
        let wanted = tensor.piece().saturating_mul(threads::count()).clamp(COMPUTED / 4, COMPUTED);
        let most = wanted.min(len).max(1);
        if buffer.len() < most {
            buffer.resize(most, 0);
        }
        for at in (0..len).step_by(most) {
            let block = buffer.get_mut(..most.min(len - at)).unwrap_or_default();
            tensor.read(at, block);
            self.bytes(block)?;
        }
        Ok(())
    }
}

/// The largest number of payload bytes that all processors compute at a time. A quarter of it is a multiple of every
/// element size.
const COMPUTED: usize = 8 << 20;

impl Destination for Vec<u8> {
    fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.extend_from_slice(bytes);
        Ok(())
    }
}

/// Implemented by messages, which write their fields.
trait Put {
    fn put<S: Sink>(&self, sink: &mut S);

    /// Writes the message as an element of a field.
    fn put_in<S: Sink>(&self, sink: &mut S, field: u32, index: u32) {
        sink.open(Descent { field, index });
        self.put(sink);
        sink.close();
    }
}

/// Receives fields. Messages are generic over the sink: a field has few bytes, and a dynamic call per field would
/// cost more.
trait Sink {
    fn raw(&mut self, bytes: &[u8]);
    /// Writes a number as a varint.
    fn varint(&mut self, value: u64);
    /// Writes the bytes of a `bytes` field.
    fn payload(&mut self, payload: &[u8]);
    fn open(&mut self, step: Descent);
    fn close(&mut self);
    /// Writes the parts of a graph's field that are not messages.
    fn apart(&mut self, field: u32);
}

/// Measures all messages, in the order in which they open.
struct Measure<'a> {
    lengths: Vec<u64>,
    /// The open messages: index in `lengths`, field, bytes so far of the enclosing message.
    open: Vec<(usize, u32, u64)>,
    /// The bytes so far of the innermost open message.
    here: u64,
    place: Place<'a>,
    apart: Option<&'a Apart<'a>>,
}

impl Measure<'_> {
    fn unknown(&mut self) {
        for piece in self.place.pieces() {
            self.raw(piece);
        }
    }
}

impl Sink for Measure<'_> {
    fn raw(&mut self, bytes: &[u8]) {
        self.here = self.here.saturating_add(bytes.len() as u64);
    }

    fn varint(&mut self, value: u64) {
        self.here = self.here.saturating_add(varint_len(value));
    }

    fn payload(&mut self, payload: &[u8]) {
        self.raw(payload);
    }

    fn open(&mut self, step: Descent) {
        self.place.open(step);
        self.open.push((self.lengths.len(), step.field, std::mem::take(&mut self.here)));
        self.lengths.push(0);
    }

    fn close(&mut self) {
        if let Some(tensor) = self.place.deferred() {
            self.varint(tag(RAW_DATA, 2));
            self.varint(tensor.byte_len() as u64);
            self.here = self.here.saturating_add(tensor.byte_len() as u64);
        }
        self.unknown();
        self.place.close();
        let Some((place, field, around)) = self.open.pop() else { return };
        if let Some(length) = self.lengths.get_mut(place) {
            *length = self.here;
        }
        let head = varint_len(tag(field, 2)).saturating_add(varint_len(self.here));
        self.here = around.saturating_add(self.here).saturating_add(head);
    }

    fn apart(&mut self, field: u32) {
        if let Some(apart) = self.apart.filter(|_| self.place.is_in_main()) {
            apart.put(self, field);
        }
    }
}

/// Writes a measured model.
struct Emit<'a> {
    out: &'a mut dyn Destination,
    /// The bytes between payloads, usually few at a time.
    gathered: Vec<u8>,
    lengths: std::slice::Iter<'a, u64>,
    place: Place<'a>,
    apart: Option<&'a Apart<'a>>,
    /// The first error; nothing is written after it.
    failed: Option<io::Error>,
}

/// The number of gathered bytes that triggers a write. A payload of this size is not gathered.
const GATHERED: usize = 16 << 10;

impl Emit<'_> {
    fn unknown(&mut self) {
        for piece in self.place.pieces() {
            self.raw(piece);
        }
    }

    /// Writes the gathered bytes.
    fn flush(&mut self) {
        if self.failed.is_none() && !self.gathered.is_empty() {
            self.failed = self.out.bytes(&self.gathered).err();
        }
        self.gathered.clear();
    }
}

impl Sink for Emit<'_> {
    fn raw(&mut self, bytes: &[u8]) {
        self.gathered.extend_from_slice(bytes);
        if self.gathered.len() >= GATHERED {
            self.flush();
        }
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.gathered.push((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        self.gathered.push(value as u8);
    }

    fn payload(&mut self, payload: &[u8]) {
        if payload.len() < GATHERED {
            return self.raw(payload);
        }
        self.flush();
        if self.failed.is_none() {
            self.failed = self.out.payload(payload).err();
        }
    }

    fn open(&mut self, step: Descent) {
        self.place.open(step);
        let length = self.lengths.next().copied().unwrap_or(0);
        self.varint(tag(step.field, 2));
        self.varint(length);
    }

    fn close(&mut self) {
        if let Some(tensor) = self.place.deferred() {
            self.varint(tag(RAW_DATA, 2));
            self.varint(tensor.byte_len() as u64);
            self.flush();
            if self.failed.is_none() {
                self.failed = self.out.deferred(tensor).err();
            }
        }
        self.unknown();
        self.place.close();
    }

    fn apart(&mut self, field: u32) {
        if let Some(apart) = self.apart.filter(|_| self.place.is_in_main()) {
            apart.put(self, field);
        }
    }
}

/// The number of `TensorProto.raw_data`, the last field of a tensor that is written here. Verbatim fields follow it.
const RAW_DATA: u32 = 9;

include!(concat!(env!("OUT_DIR"), "/encode.rs"));

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use prost::Message;

    use super::*;
    use crate::onnx::wire::tests::sample;
    use crate::onnx::{Limits, decode};

    fn written(model: &proto::ModelProto, unknown: &UnknownFields) -> Vec<u8> {
        let encoded = Encoded::measure(model, unknown).unwrap();
        let mut bytes = Vec::new();
        encoded.write(&mut bytes).unwrap();
        assert_eq!(encoded.len(), bytes.len() as u64);
        bytes
    }

    #[test]
    fn writes_what_prost_writes() {
        let mut model = sample();
        assert_eq!(written(&model, &UnknownFields::default()), model.encode_to_vec());
        // Payloads of many sizes, with small ones between them.
        let graph = model.graph.as_mut().unwrap();
        for len in [127, 128, 16383, 16384, 1 << 20, 0, 5] {
            let raw_data = Some(vec![len as u8; len].into());
            let name = Some(format!("w{len}"));
            graph.initializer.push(proto::TensorProto { raw_data, name, ..Default::default() });
        }
        assert_eq!(written(&model, &UnknownFields::default()), model.encode_to_vec());
        assert_eq!(written(&proto::ModelProto::default(), &UnknownFields::default()), b"");
    }

    #[test]
    fn every_length_of_varint() {
        for bits in 0..64 {
            let model = proto::ModelProto { ir_version: Some(1 << bits), ..Default::default() };
            assert_eq!(written(&model, &UnknownFields::default()), model.encode_to_vec());
            let model = proto::ModelProto { ir_version: Some(-1 << bits), ..Default::default() };
            assert_eq!(written(&model, &UnknownFields::default()), model.encode_to_vec());
        }
    }

    #[test]
    fn unknown_fields_are_written_to_their_messages() {
        let step = |field, index| Descent { field, index };
        let raw = |text: &'static [u8]| [Bytes::from_static(text)];
        let mut unknown = UnknownFields::default();
        // Field 500 as a varint, field 501 as a group, field 502 as bytes.
        unknown.add(&[], raw(b"\xa0\x1f\x07"));
        unknown.add(&[step(7, 0)], raw(b"\xab\x1f\x08\x01\xac\x1f"));
        unknown.add(&[step(7, 0), step(1, 0), step(5, 1)], raw(b"\xb2\x1f\x02hi"));
        unknown.add(&[step(7, 0), step(12, 0), step(2, 0), step(4, 0), step(1, 0)], raw(b"\xa0\x1f\x09"));
        let bytes: Bytes = written(&sample(), &unknown).into();
        let (model, found) = decode(&bytes, &Limits::default()).unwrap();
        assert_eq!(model, sample());
        assert_eq!(found, unknown);
        assert_eq!(written(&model, &found), bytes);
    }

    #[test]
    fn a_model_over_two_gib_is_refused_before_a_byte_is_written() {
        let payload = Bytes::from(vec![0; 512 << 20]);
        let tensor = proto::TensorProto { raw_data: Some(payload), ..Default::default() };
        let graph = |tensors| proto::GraphProto { initializer: vec![tensor.clone(); tensors], ..Default::default() };
        let model = |tensors| proto::ModelProto { graph: Some(graph(tensors)), ..Default::default() };
        let unknown = UnknownFields::default();
        assert!(Encoded::measure(&model(3), &unknown).is_ok());
        assert!(matches!(Encoded::measure(&model(4), &unknown), Err(EncodeError::TooLarge(n)) if n > 2 << 30));
    }

    #[test]
    fn computed_payloads_are_where_others_are() {
        struct Count;
        impl crate::tensor::Recipe for Count {
            fn fill(&self, first: usize, out: &mut [u8]) {
                for (number, out) in out.chunks_exact_mut(4).enumerate() {
                    out.copy_from_slice(&((first + number) as u32).to_le_bytes());
                }
            }
            fn depth(&self) -> usize {
                1
            }
        }
        let step = |field, index| Descent { field, index };
        for len in [0, 1, 7, (COMPUTED / 4) - 1, COMPUTED / 4, COMPUTED / 4 + 1, 3 << 20] {
            let tensor = Tensor::deferred(crate::tensor::DType::Uint32, &[len], Box::new(Count)).unwrap();
            let mut model = sample();
            let mut unknown = UnknownFields::default();
            unknown.add(&[step(7, 0), step(5, 0)], [Bytes::from_static(b"\xa0\x1f\x09")]);
            let initializer = proto::TensorProto { name: Some("w".into()), ..Default::default() };
            model.graph.as_mut().unwrap().initializer.insert(0, initializer);
            let deferred = DeferredPayloads::from([(vec![step(7, 0), step(5, 0)], tensor.clone())]);
            let encoded = Encoded::measure_with(&model, &unknown, &deferred, None).unwrap();
            let mut bytes = Vec::new();
            encoded.write(&mut bytes).unwrap();
            assert_eq!(encoded.len(), bytes.len() as u64);
            assert!(!tensor.is_made());
            let payload: Vec<u8> = (0..len as u32).flat_map(u32::to_le_bytes).collect();
            let (found, _) = decode(&bytes.into(), &Limits::default()).unwrap();
            let initializer = &found.graph.as_ref().unwrap().initializer[0];
            assert!(initializer.raw_data.as_deref().unwrap() == payload);
            assert!(**tensor.bytes() == payload);
        }
    }

    #[test]
    fn the_first_error_ends_the_writing() {
        struct Full(usize);
        impl Destination for Full {
            fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
                // Bytes after an error would be at the wrong position.
                assert_ne!(self.0, usize::MAX);
                let left = self.0.checked_sub(bytes.len());
                self.0 = left.unwrap_or(usize::MAX);
                left.map(|_| ()).ok_or(io::ErrorKind::StorageFull.into())
            }
        }
        let unknown = UnknownFields::default();
        let mut model = sample();
        let payload = Some(vec![1; 1 << 19].into());
        model.graph.as_mut().unwrap().initializer =
            vec![proto::TensorProto { raw_data: payload, ..Default::default() }; 3];
        let encoded = Encoded::measure(&model, &unknown).unwrap();
        let len = usize::try_from(encoded.len()).unwrap();
        for room in [0, 1, 1 << 18, len / 2, len - 1] {
            let error = encoded.write(&mut Full(room)).unwrap_err();
            assert!(matches!(error, EncodeError::Io(e) if e.kind() == io::ErrorKind::StorageFull));
        }
        encoded.write(&mut Full(len)).unwrap();
    }
}
