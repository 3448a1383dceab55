//! Converts values between Python and the library. A tensor is a tuple of the element type's name in ONNX text syntax, its shape, and its
//! payload as `bytes` in the layout of `raw_data` (a list of `bytes` for strings). Sequences are lists, optionals a value or None, maps a
//! tuple of keys and values. The Python half converts these to arrays.

use std::sync::Arc;

use onnx_slice_fold::{DType, Data, Tensor};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyList, PyTuple};

use crate::errors::exception;

/// The deepest nesting of sequences.
const MAX_DEPTH: usize = 32;

/// Converts a value of the Python half.
pub fn data(object: &Bound<'_, PyAny>) -> PyResult<Data> {
    nested(object, 0)
}

fn nested(object: &Bound<'_, PyAny>, depth: usize) -> PyResult<Data> {
    if depth > MAX_DEPTH {
        return Err(exception(object.py(), "UsageError", "a value is nested too deeply"));
    }
    if object.is_none() {
        return Ok(Data::Optional(None));
    }
    if let Ok(items) = object.cast::<PyList>() {
        let items = items.iter().map(|item| nested(&item, depth + 1)).collect::<PyResult<Vec<_>>>()?;
        return Ok(Data::Sequence(Arc::new(items)));
    }
    tensor(object).map(Data::Tensor)
}

/// Converts a tensor of the Python half.
pub fn tensor(object: &Bound<'_, PyAny>) -> PyResult<Tensor> {
    let wrong = |text: String| exception(object.py(), "UsageError", &text);
    let (name, shape, payload): (String, Vec<usize>, Bound<'_, PyAny>) = object.extract()?;
    let made = match DType::from_name(&name) {
        Some(DType::String) => {
            let strings = payload.extract::<Vec<PyBackedBytes>>()?;
            Tensor::from_strings(&shape, strings.into_iter().map(bytes::Bytes::from_owner).collect())
        }
        Some(dtype) => Tensor::from_bytes(dtype, &shape, bytes::Bytes::from_owner(payload.extract::<PyBackedBytes>()?)),
        None => return Err(wrong(format!("'{name}' is no element type"))),
    };
    made.map_err(|error| wrong(error.to_string()))
}

/// Converts a value for the Python half.
pub fn object<'py>(py: Python<'py>, data: &Data) -> PyResult<Bound<'py, PyAny>> {
    Ok(match data {
        Data::Tensor(tensor) => parts(py, tensor)?.into_any(),
        Data::Sequence(items) => list(py, items)?.into_any(),
        Data::Optional(None) => py.None().into_bound(py),
        Data::Optional(Some(inner)) => object(py, inner)?,
        Data::Map { keys, values } => (parts(py, keys)?, list(py, values)?).into_pyobject(py)?.into_any(),
    })
}

fn list<'py>(py: Python<'py>, items: &[Data]) -> PyResult<Bound<'py, PyList>> {
    let items = items.iter().map(|item| object(py, item)).collect::<PyResult<Vec<_>>>()?;
    PyList::new(py, items)
}

/// Returns the tuple that represents a tensor.
pub fn parts<'py>(py: Python<'py>, tensor: &Tensor) -> PyResult<Bound<'py, PyTuple>> {
    let payload = match tensor.strings() {
        Some(strings) => PyList::new(py, strings.iter().map(|string| PyBytes::new(py, string)))?.into_any(),
        None => PyBytes::new(py, tensor.bytes()).into_any(),
    };
    (tensor.dtype().name(), tensor.shape().to_vec(), payload).into_pyobject(py)
}
