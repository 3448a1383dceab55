//! Errors of the library as the exceptions that `onnx_slice_fold/_errors.py` defines, by kind.

use onnx_slice_fold::{Error, ErrorKind};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

/// Returns the exception for an error; its text is the whole chain of causes.
pub fn raised(error: Error) -> PyErr {
    let class = match error.kind() {
        ErrorKind::Io => match error.io_kind() {
            Some(kind) => return std::io::Error::new(kind, format!("{error:#}")).into(),
            None => "FileError",
        },
        ErrorKind::Malformed => "MalformedModelError",
        ErrorKind::Unsupported => "UnsupportedError",
        ErrorKind::Limit => "LimitError",
        ErrorKind::Changed => "ChangedError",
        ErrorKind::Assumption => "AssumptionError",
        ErrorKind::Extraction => "ExtractionError",
        ErrorKind::Impossible => "ImpossibleError",
        ErrorKind::NotEvaluated => "NotEvaluatedError",
        ErrorKind::Usage => "UsageError",
        // A new kind is added together with this package, because the library has the same version.
        _ => "InternalError",
    };
    Python::attach(|py| exception(py, class, &format!("{error:#}")))
}

/// Returns an exception of the package by name.
pub fn exception(py: Python<'_>, class: &str, text: &str) -> PyErr {
    static MODULE: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let module = MODULE.get_or_try_init(py, || py.import("onnx_slice_fold._errors").map(Bound::unbind));
    let made = module.and_then(|module| module.bind(py).getattr(class)).and_then(|class| class.call1((text,)));
    made.map_or_else(|_| PyRuntimeError::new_err(text.to_string()), PyErr::from_value)
}
