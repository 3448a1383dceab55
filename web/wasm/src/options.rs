//! The options of a request.

use onnx_slice_fold::{Assumption, Options, Shapes, SliceRule};
use serde_json::Value;

use crate::Failure;

/// Reads the options of a request.
///
/// # Errors
/// An option that does not exist, or a value that it does not have.
pub fn options(given: &Value) -> Result<Options, Failure> {
    let mut options = Options::new();
    for (name, value) in given.as_object().into_iter().flatten() {
        let wrong = || Failure::usage(format!("option '{name}' cannot be {value}"));
        let flag = value.as_bool().unwrap_or(true);
        let number = || value.as_u64().and_then(|number| usize::try_from(number).ok()).ok_or_else(wrong);
        let texts = || -> Vec<String> {
            let texts = value.as_array().into_iter().flatten();
            texts.filter_map(|text| text.as_str().map(str::to_string)).collect()
        };
        options = match name.as_str() {
            "dim" => options.assumptions(texts().into_iter().map(Assumption::Dim)),
            "assume" => options.assumptions(texts().into_iter().map(Assumption::Relation)),
            "overwriteInputShape" => options.assumptions(texts().into_iter().map(Assumption::InputShape)),
            "trustDeclaredShapes" => options.trust_declared_shapes(flag),
            "trustInputNames" => options.trust_input_names(flag),
            "skip" => options.skip(&texts()),
            "only" => options.only(&texts()),
            "noRules" => options.rules(!flag),
            "exact" => options.exact(flag),
            "foldDequantize" => options.fold_dequantize(flag),
            "unroll" => options.unroll(number()?),
            "strict" => options.strict(flag),
            "noStamp" => options.stamp(!flag),
            "stopAfter" => options.stop_after(number()?),
            "verifyEach" => options.verify_each(flag),
            "opset" => match value.as_str() {
                Some("latest") => options.opset(onnx_slice_fold::newest_opset("")),
                _ => options.opset(Some(value.as_i64().ok_or_else(wrong)?)),
            },
            "lean" => options.shapes(Shapes::Lean),
            "noNewShapes" => options.shapes(Shapes::Keep),
            "shapes" => options.shapes(match value.as_str() {
                Some("auto") => Shapes::Auto,
                Some("all") => Shapes::All,
                Some("keep") => Shapes::Keep,
                Some("lean") => Shapes::Lean,
                Some("none") => Shapes::None,
                _ => return Err(wrong()),
            }),
            "sliceRule" => options.slice_rule(match value.as_str() {
                Some("agree") => SliceRule::Agree,
                Some("onnxruntime") => SliceRule::OnnxRuntime,
                Some("spec") => SliceRule::Spec,
                Some("numpy") => SliceRule::Numpy,
                _ => return Err(wrong()),
            }),
            _ => return Err(Failure::usage(format!("there is no option '{name}'"))),
        };
    }
    Ok(options)
}
