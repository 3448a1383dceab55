//! Writes fields in their wire form: varints, tags, numbers, packed numbers, texts and payloads.

use bytes::Bytes;

use super::Sink;

/// Returns the number of bytes of a varint: seven bits per byte.
pub(super) fn varint_len(value: u64) -> u64 {
    u64::from((value | 1).ilog2() / 7 + 1)
}

/// Returns the tag that precedes a field.
pub(super) fn tag(field: u32, wire: u32) -> u64 {
    u64::from(field << 3 | wire)
}

/// A number in its wire type.
pub(super) trait Scalar: Copy {
    const WIRE: u32;
    fn write<S: Sink>(self, sink: &mut S);
    /// Returns the number of bytes of the value.
    fn len(self) -> u64;
}

macro_rules! varints {
    ($($number:ty),*) => {$(
        impl Scalar for $number {
            const WIRE: u32 = 0;
            fn write<S: Sink>(self, sink: &mut S) {
                sink.varint(self as i64 as u64);
            }
            fn len(self) -> u64 {
                varint_len(self as i64 as u64)
            }
        }
    )*};
}

macro_rules! fixed {
    ($($number:ty: $wire:literal),*) => {$(
        impl Scalar for $number {
            const WIRE: u32 = $wire;
            fn write<S: Sink>(self, sink: &mut S) {
                sink.raw(&self.to_le_bytes());
            }
            fn len(self) -> u64 {
                size_of::<$number>() as u64
            }
        }
    )*};
}

varints!(i64, i32, u64);
fixed!(f32: 5, f64: 1);

pub(super) fn scalar<T: Scalar, S: Sink>(sink: &mut S, field: u32, value: T) {
    sink.varint(tag(field, T::WIRE));
    value.write(sink);
}

pub(super) fn packed<T: Scalar, S: Sink>(sink: &mut S, field: u32, values: &[T]) {
    if values.is_empty() {
        return;
    }
    sink.varint(tag(field, 2));
    sink.varint(values.iter().fold(0u64, |len, value| len.saturating_add(value.len())));
    for value in values {
        value.write(sink);
    }
}

pub(super) fn text<S: Sink>(sink: &mut S, field: u32, text: &str) {
    sink.varint(tag(field, 2));
    sink.varint(text.len() as u64);
    sink.raw(text.as_bytes());
}

pub(super) fn payload<S: Sink>(sink: &mut S, field: u32, bytes: &Bytes) {
    sink.varint(tag(field, 2));
    sink.varint(bytes.len() as u64);
    sink.payload(bytes);
}
