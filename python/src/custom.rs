//! Operators that Python describes: two callables that receive the known facts about a node as a dict, and return lists.

use std::sync::{Arc, Mutex, PoisonError};

use onnx_slice_fold::{CustomNode, CustomOperator, CustomType, DType, Tensor};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::errors::exception;
use crate::values;

/// The first exception of a callable; it cannot interrupt the library's calls.
pub type Raised = Arc<Mutex<Option<PyErr>>>;

/// Returns an operator whose functions call `infer` for types and `evaluate` for values.
pub fn operator(
    domain: String,
    name: String,
    infer: Py<PyAny>,
    evaluate: Option<Py<PyAny>>,
    raised: &Raised,
) -> CustomOperator {
    let held = Arc::clone(raised);
    let operator = CustomOperator::new(domain, name, move |node| {
        asked(&held, |py| types(&infer.bind(py).call1((described(py, node)?,))?))
    });
    let Some(evaluate) = evaluate else { return operator };
    let held = Arc::clone(raised);
    operator.evaluated_by(move |node| asked(&held, |py| tensors(&evaluate.bind(py).call1((described(py, node)?,))?)))
}

fn asked<R>(raised: &Raised, ask: impl FnOnce(Python<'_>) -> PyResult<R>) -> Result<R, String> {
    Python::attach(ask).map_err(|error| {
        let text = error.to_string();
        raised.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        text
    })
}

fn described<'py>(py: Python<'py>, node: &CustomNode<'_>) -> PyResult<Bound<'py, PyDict>> {
    let operands = (0..node.operand_count()).map(|at| operand(py, node, at)).collect::<PyResult<Vec<_>>>()?;
    let attributes = PyDict::new(py);
    for name in node.attribute_names() {
        set_attribute(&attributes, node, name)?;
    }
    let found = PyDict::new(py);
    found.set_item("name", node.name())?;
    found.set_item("version", node.version())?;
    found.set_item("results", node.result_count())?;
    found.set_item("operands", operands)?;
    found.set_item("attributes", attributes)?;
    Ok(found)
}

/// Returns element type, sizes, elements and value, as far as they are known.
fn operand<'py>(py: Python<'py>, node: &CustomNode<'_>, at: usize) -> PyResult<Option<Bound<'py, PyDict>>> {
    if !node.has_operand(at) {
        return Ok(None);
    }
    let found = PyDict::new(py);
    found.set_item("dtype", node.dtype(at).map(|dtype| dtype.name()))?;
    found.set_item("shape", node.shape(at))?;
    found.set_item("elements", node.elements(at))?;
    found.set_item("value", node.tensor(at).map(|tensor| values::parts(py, tensor)).transpose()?)?;
    Ok(Some(found))
}

fn set_attribute(attributes: &Bound<'_, PyDict>, node: &CustomNode<'_>, name: &str) -> PyResult<()> {
    if let Some(value) = node.int(name) {
        attributes.set_item(name, value)
    } else if let Some(value) = node.float(name) {
        attributes.set_item(name, value)
    } else if let Some(value) = node.string(name) {
        attributes.set_item(name, value)
    } else if let Some(values) = node.ints(name) {
        attributes.set_item(name, values)
    } else if let Some(values) = node.floats(name) {
        attributes.set_item(name, values)
    } else if let Some(values) = node.strings(name) {
        attributes.set_item(name, values)
    } else if let Some(tensor) = node.attribute_tensor(name) {
        attributes.set_item(name, values::parts(attributes.py(), tensor)?)
    } else {
        Ok(())
    }
}

fn types(answer: &Bound<'_, PyAny>) -> PyResult<Vec<CustomType>> {
    let mut types = Vec::new();
    for item in answer.cast::<PyList>()? {
        let (name, shape): (String, Option<Vec<String>>) = item.extract()?;
        let dtype = DType::from_name(&name)
            .ok_or_else(|| exception(answer.py(), "UsageError", &format!("'{name}' is no element type")))?;
        types.push(shape.map_or_else(|| CustomType::of(dtype), |shape| CustomType::new(dtype, shape)));
    }
    Ok(types)
}

fn tensors(answer: &Bound<'_, PyAny>) -> PyResult<Vec<Tensor>> {
    answer.cast::<PyList>()?.iter().map(|item| values::tensor(&item)).collect()
}
