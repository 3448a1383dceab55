//! Quantization: to integers and small floats and back.

mod requantize;

pub(in crate::ops) use requantize::Requantize;
