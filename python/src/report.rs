//! Converts a report to a dict, from which the Python half makes its `Report`.

use onnx_slice_fold::{Census, Report};
use pyo3::prelude::*;
use pyo3::types::PyDict;

pub fn dict<'py>(py: Python<'py>, report: &Report) -> PyResult<Bound<'py, PyDict>> {
    let found = PyDict::new(py);
    found.set_item("before", census(py, &report.before)?)?;
    found.set_item("after", census(py, &report.after)?)?;
    found.set_item("bytes_before", report.bytes_before)?;
    found.set_item("rounds", report.rounds)?;
    found.set_item("seconds", report.seconds)?;
    let fired = PyDict::new(py);
    for (name, count) in report.fired.iter().filter(|(_, count)| **count > 0) {
        fired.set_item(name, count)?;
    }
    found.set_item("fired", fired)?;
    let mut notes = Vec::with_capacity(report.notes.len());
    for note in &report.notes {
        let whole = note.to_string();
        // A note prints as its kind, its node and its reason.
        let kind = whole.split_once(": ").map_or(whole.as_str(), |(kind, _)| kind).to_string();
        notes.push((kind, note.node.clone(), note.reason.clone()));
    }
    found.set_item("notes", notes)?;
    let missing = report.missing_data.iter().map(|data| (data.location.clone(), data.tensors, data.looked_in.clone()));
    found.set_item("missing_data", missing.collect::<Vec<_>>())?;
    let avoided = report.avoided.iter().map(|it| (it.construct.to_string(), it.node.clone(), it.reason.clone()));
    found.set_item("avoided", avoided.collect::<Vec<_>>())?;
    found.set_item("explanation", report.explanation())?;
    Ok(found)
}

fn census<'py>(py: Python<'py>, census: &Census) -> PyResult<Bound<'py, PyDict>> {
    let found = PyDict::new(py);
    let operators = PyDict::new(py);
    for (name, count) in &census.operators {
        operators.set_item(name, count)?;
    }
    found.set_item("operators", operators)?;
    found.set_item("tensors", census.tensors)?;
    found.set_item("shaped", census.shaped)?;
    found.set_item("initializers", census.initializers)?;
    Ok(found)
}
