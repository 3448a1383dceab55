//! Options from a dict, by the names they have in the library.

use std::str::FromStr;

use onnx_slice_fold::{Construct, Options, Shapes, SliceName, SliceRule};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::exception;

/// Reads the options in a dict. An unknown name is an error: the Python half has its own list, and the two must agree.
pub fn of(given: &Bound<'_, PyDict>) -> PyResult<Options> {
    let py = given.py();
    let mut options = Options::new();
    for (name, value) in given {
        let name: String = name.extract()?;
        options = match name.as_str() {
            "slice_rule" => options.slice_rule(slice_rule(py, &value.extract::<String>()?)?),
            "max_growth" => options.max_growth(value.extract()?),
            "free_growth" => options.free_growth(value.extract()?),
            "max_constant" => options.max_constant(value.extract()?),
            "rules" => options.rules(value.extract()?),
            "opset" => options.opset(value.extract()?),
            "stamp" => options.stamp(value.extract()?),
            "fold" => options.fold(value.extract()?),
            "exact" => options.exact(value.extract()?),
            "stop_after" => options.stop_after(value.extract()?),
            "verify_each" => options.verify_each(value.extract()?),
            "trust_declared_shapes" => options.trust_declared_shapes(value.extract()?),
            "trust_input_names" => options.trust_input_names(value.extract()?),
            "unroll" => options.unroll(value.extract()?),
            "fold_dequantize" => options.fold_dequantize(value.extract()?),
            "shapes" => options.shapes(shapes(py, &value.extract::<String>()?)?),
            // Older names of `shapes`.
            "lean" => {
                if value.extract()? {
                    options.shapes(Shapes::Lean)
                } else {
                    options
                }
            }
            "new_shapes" => {
                if value.extract()? {
                    options
                } else {
                    options.shapes(Shapes::Keep)
                }
            }
            "strict" => options.strict(value.extract()?),
            "skip" => options.skip(value.extract::<Vec<String>>()?),
            "only" => options.only(value.extract::<Vec<String>>()?),
            "avoid" => options.avoid(constructs(py, &value.extract::<Vec<String>>()?)?),
            "strided_slice" => options.slice_names(slice_names(py, &value.extract::<Vec<String>>()?)?),
            "dims" => value.extract::<Vec<String>>()?.into_iter().fold(options, Options::dim),
            "assume" => value.extract::<Vec<String>>()?.into_iter().fold(options, Options::assume),
            "input_shapes" => value.extract::<Vec<String>>()?.into_iter().fold(options, Options::input_shape),
            _ => return Err(exception(py, "UsageError", &format!("there is no option '{name}'"))),
        };
    }
    Ok(options)
}

fn slice_rule(py: Python<'_>, name: &str) -> PyResult<SliceRule> {
    Ok(match name {
        "agree" => SliceRule::Agree,
        "onnxruntime" => SliceRule::OnnxRuntime,
        "spec" => SliceRule::Spec,
        "numpy" => SliceRule::Numpy,
        _ => {
            let text = format!("slice_rule is '{name}'; it must be 'agree', 'onnxruntime', 'spec' or 'numpy'");
            return Err(exception(py, "UsageError", &text));
        }
    })
}

fn shapes(py: Python<'_>, name: &str) -> PyResult<Shapes> {
    name.parse().map_err(|error: String| exception(py, "UsageError", &error))
}

fn constructs(py: Python<'_>, texts: &[String]) -> PyResult<Vec<Construct>> {
    let parsed = texts.iter().map(|text| Construct::from_str(text));
    parsed.collect::<Result<_, _>>().map_err(|error| exception(py, "UsageError", &error.to_string()))
}

fn slice_names(py: Python<'_>, texts: &[String]) -> PyResult<Vec<SliceName>> {
    let parsed = texts.iter().map(|text| SliceName::from_str(text));
    parsed.collect::<Result<_, _>>().map_err(|error| exception(py, "UsageError", &error.to_string()))
}
