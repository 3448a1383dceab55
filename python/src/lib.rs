//! The compiled half of the Python package: converts models, options and tensors between Python and the library's public API. The interface
//! for users is in `onnx_slice_fold/*.py`; this module is internal.

mod custom;
mod errors;
mod options;
mod report;
mod values;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use onnx_slice_fold::{Data, OnnxModel, OpenOptions, SaveOptions};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyDict};

/// Folding allocates many small objects; mimalloc takes two thirds of the time of the system's allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A model. Calls of several threads are serialized; the interpreter's lock is released while the library works.
#[pyclass(name = "Model", module = "onnx_slice_fold._core", frozen)]
struct Model(Mutex<OnnxModel>, custom::Raised);

impl Model {
    fn of(opened: Result<OnnxModel, onnx_slice_fold::Error>) -> PyResult<Self> {
        opened.map(|model| Model(Mutex::new(model), custom::Raised::default())).map_err(errors::raised)
    }

    /// Takes the exception of an operator's callable.
    fn raised(&self) -> Option<PyErr> {
        self.1.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// After a panic in another thread, the model itself refuses every call.
    fn model(&self) -> MutexGuard<'_, OnnxModel> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Model {
    #[staticmethod]
    fn open(py: Python<'_>, path: PathBuf, roots: Vec<PathBuf>) -> PyResult<Self> {
        let options = roots.into_iter().fold(OpenOptions::new(), OpenOptions::external_data_root);
        Self::of(py.detach(|| OnnxModel::open_with(path, &options)))
    }

    /// The bytes are not copied, and live as long as the model. The first of `roots` counts as the model's directory.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, bytes: PyBackedBytes, roots: Vec<PathBuf>) -> PyResult<Self> {
        let bytes = bytes::Bytes::from_owner(bytes);
        let options = roots.into_iter().fold(OpenOptions::new(), OpenOptions::external_data_root);
        Self::of(py.detach(|| OnnxModel::from_bytes_with(bytes, &options)))
    }

    /// Returns a sentence for each missing data file.
    fn missing_data(&self) -> Vec<String> {
        self.model().missing_data().iter().map(ToString::to_string).collect()
    }

    fn fold<'py>(
        &self,
        py: Python<'py>,
        options: &Bound<'py, PyDict>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let options = options::of(options)?;
        // The first exception of the callback; it cannot interrupt folding.
        let mut raised: Option<PyErr> = None;
        let report = py.detach(|| {
            let mut watch = |what: &'static str| {
                let told = Python::attach(|py| {
                    py.check_signals()?;
                    progress.as_ref().map_or(Ok(()), |progress| progress.call1(py, (what,)).map(|_| ()))
                });
                if let Err(error) = told {
                    raised.get_or_insert(error);
                }
            };
            self.model().fold_watched(&options, &mut watch)
        });
        match raised.or_else(|| self.raised()) {
            Some(error) => Err(error),
            None => report::dict(py, &report.map_err(errors::raised)?),
        }
    }

    /// Folds, and returns the reasons for the remaining nodes: as text, and as JSON with the schema of docs/report.md.
    fn explain(
        &self,
        py: Python<'_>,
        options: &Bound<'_, PyDict>,
        names: Vec<String>,
        trials: usize,
        model: String,
    ) -> PyResult<(String, String)> {
        let options = options::of(options)?;
        let found = py.detach(|| self.model().explain(&options, &names, trials));
        if let Some(error) = self.raised() {
            return Err(error);
        }
        let (report, explanation) = found.map_err(errors::raised)?;
        let mut text = explanation.to_string();
        if names.is_empty() {
            text.push_str(&format!("\nWhat was done:\n{}", report.explanation()));
        }
        Ok((text, explanation.json(&report, &model)))
    }

    /// Registers an operator. `infer` and `evaluate` receive a dict of the known facts about a node.
    fn register(
        &self,
        py: Python<'_>,
        domain: String,
        name: String,
        infer: Py<PyAny>,
        evaluate: Option<Py<PyAny>>,
    ) -> PyResult<()> {
        let operator = custom::operator(domain, name, infer, evaluate, &self.1);
        py.detach(|| self.model().register(operator)).map_err(errors::raised)
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = py.detach(|| self.model().to_bytes()).map_err(errors::raised)?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Writes large tensors to a data file next to the model if `external` is set, or if the model would exceed the limit.
    fn save(&self, py: Python<'_>, path: PathBuf, external: bool) -> PyResult<u64> {
        let options = SaveOptions::new().save_as_external_data(external);
        let saved = py.detach(|| self.model().save_with(path, &options)).map_err(errors::raised)?;
        Ok(saved.model.bytes)
    }

    /// Prints in the syntax of onnx.parser; with `full`, all data is included.
    fn text(&self, py: Python<'_>, full: bool) -> String {
        py.detach(|| self.model().parser_text(full))
    }

    fn diff(&self, py: Python<'_>, other: &Model) -> PyResult<String> {
        // Compares with a copy of the other: two locks could make threads wait for each other, or a model for itself.
        py.detach(|| {
            let other =
                OnnxModel::from_bytes(other.model().to_bytes().map_err(errors::raised)?).map_err(errors::raised)?;
            Ok(self.model().diff(&other))
        })
    }

    fn evaluate<'py>(&self, py: Python<'py>, inputs: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyDict>> {
        let mut given: Vec<(String, Data)> = Vec::with_capacity(inputs.len());
        for (name, value) in inputs {
            given.push((name.extract()?, values::data(&value)?));
        }
        let outputs = py.detach(|| self.model().evaluate(given));
        if let Some(error) = self.raised() {
            return Err(error);
        }
        let outputs = outputs.map_err(errors::raised)?;
        let found = PyDict::new(py);
        for (name, data) in outputs {
            found.set_item(name, values::object(py, &data)?)?;
        }
        Ok(found)
    }
}

/// Runs the command line program; the first argument is its name.
#[pyfunction]
fn run(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| onnx_slice_fold::cli::run(arguments))
}

/// Returns the text that `rules` prints for all rules and passes, or for one.
#[pyfunction]
fn rules(py: Python<'_>, name: Option<&str>) -> PyResult<String> {
    match name {
        Some(name) => {
            onnx_slice_fold::rule_text(name).map_err(|error| errors::exception(py, "UsageError", &error.to_string()))
        }
        None => Ok(onnx_slice_fold::rule_table()),
    }
}

#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Model>()?;
    module.add_function(wrap_pyfunction!(run, module)?)?;
    module.add_function(wrap_pyfunction!(rules, module)?)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))
}
