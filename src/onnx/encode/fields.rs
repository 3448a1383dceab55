//! Fields as the wire has them: varints, tags, numbers, packed numbers, texts and payloads.

use bytes::Bytes;

use super::Sink;

/// A base-128 varint.
pub(super) struct Varint {
    bytes: [u8; 10],
    len: usize,
}

impl Varint {
    pub(super) fn of(mut value: u64) -> Self {
        let mut varint = Varint { bytes: [0; 10], len: 0 };
        for byte in &mut varint.bytes {
            varint.len += 1;
            *byte = (value & 0x7f) as u8;
            value >>= 7;
            if value == 0 {
                break;
            }
            *byte |= 0x80;
        }
        varint
    }
}

impl std::ops::Deref for Varint {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }
}

pub(super) fn tag(field: u32, wire: u32) -> Varint {
    Varint::of(u64::from(field << 3 | wire))
}

/// A number, as the wire has its type.
pub(super) trait Scalar: Copy {
    const WIRE: u32;
    fn write(self, write: &mut dyn FnMut(&[u8]));
}

impl Scalar for i64 {
    const WIRE: u32 = 0;
    fn write(self, write: &mut dyn FnMut(&[u8])) {
        write(&Varint::of(self as u64));
    }
}

impl Scalar for i32 {
    const WIRE: u32 = 0;
    fn write(self, write: &mut dyn FnMut(&[u8])) {
        i64::from(self).write(write);
    }
}

impl Scalar for u64 {
    const WIRE: u32 = 0;
    fn write(self, write: &mut dyn FnMut(&[u8])) {
        write(&Varint::of(self));
    }
}

impl Scalar for f32 {
    const WIRE: u32 = 5;
    fn write(self, write: &mut dyn FnMut(&[u8])) {
        write(&self.to_le_bytes());
    }
}

impl Scalar for f64 {
    const WIRE: u32 = 1;
    fn write(self, write: &mut dyn FnMut(&[u8])) {
        write(&self.to_le_bytes());
    }
}

pub(super) fn scalar<T: Scalar>(sink: &mut dyn Sink, field: u32, value: T) {
    sink.raw(&tag(field, T::WIRE));
    value.write(&mut |bytes| sink.raw(bytes));
}

pub(super) fn packed<T: Scalar>(sink: &mut dyn Sink, field: u32, values: &[T]) {
    if values.is_empty() {
        return;
    }
    let mut len = 0u64;
    for value in values {
        value.write(&mut |bytes| len = len.saturating_add(bytes.len() as u64));
    }
    sink.raw(&tag(field, 2));
    sink.raw(&Varint::of(len));
    for value in values {
        value.write(&mut |bytes| sink.raw(bytes));
    }
}

pub(super) fn text(sink: &mut dyn Sink, field: u32, text: &str) {
    sink.raw(&tag(field, 2));
    sink.raw(&Varint::of(text.len() as u64));
    sink.raw(text.as_bytes());
}

pub(super) fn payload(sink: &mut dyn Sink, field: u32, bytes: &Bytes) {
    sink.raw(&tag(field, 2));
    sink.raw(&Varint::of(bytes.len() as u64));
    sink.payload(bytes);
}
