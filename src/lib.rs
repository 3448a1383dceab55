//! Infers the shapes of an ONNX model, folds what is decided, and writes the smaller model.
#![deny(unsafe_code)]

pub mod onnx;
