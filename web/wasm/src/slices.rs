//! Resolves one slice under the rules of a dialect: the selected elements of each axis, and the equivalent ONNX Slice.

use onnx_slice_fold::dim::{Dim, Scope};
use onnx_slice_fold::slicing::{
    self, AxisOp, Bound, InferredAxis, Operand, Range, Reading, Resolved, SliceError, SliceRule, SliceSpec, onnx,
    openvino, tensorflow,
};
use serde_json::{Value, json};

use crate::Failure;

/// The value of every open dim in a picture.
const PICTURED: i64 = 64;
/// The largest number of elements that are listed for an axis.
const LISTED: i64 = 256;

impl From<SliceError> for Failure {
    fn from(error: SliceError) -> Self {
        Failure { kind: "usage", message: error.to_string() }
    }
}

/// Resolves the slice of a request.
///
/// # Errors
/// The request is malformed, or the dialect refuses the slice.
pub fn resolve(request: &Value) -> Result<Value, Failure> {
    let dialect = request["dialect"].as_str().unwrap_or_default();
    let scope = Scope::new();
    let dims = request["shape"].as_array().ok_or_else(|| Failure::usage("'shape' should be a list of dims"))?;
    let dims: Vec<Dim> = dims.iter().map(|dim| dim_of(&scope, dim)).collect::<Result<_, _>>()?;
    let spec = spec(dialect, request)?;
    let ops = spec.dense(dims.len())?.unwrap_or_default();
    let inferred = slicing::infer(&scope, &spec, Some(&dims))?;
    let inferred = inferred.ok_or_else(|| Failure::usage("the rank of the result is unknown"))?;
    let mut notes = Vec::new();
    let mut axes = Vec::with_capacity(ops.len());
    let mut sizes = dims.iter().enumerate();
    let mut equivalent = Some(Equivalent::default());
    for (op, taken) in ops.iter().zip(&inferred.axes) {
        let data = if matches!(op, AxisOp::NewAxis) { None } else { sizes.next() };
        axes.push(axis(&scope, op, taken, data));
        if let (AxisOp::Range(range), InferredAxis::Range(resolved), Some((at, dim))) = (op, taken, data) {
            notes.extend(other_readings(&scope, at, dim, range, resolved, spec.reading));
        }
        equivalent = equivalent.and_then(|all| all.with(&scope, op, taken, data));
    }
    notes.extend(remarks(dialect, request));
    let shape: Vec<String> = inferred.shape.iter().map(|dim| scope.format(dim)).collect();
    Ok(json!({ "axes": axes, "shape": shape, "onnx": equivalent.map(|all| all.json()), "notes": notes }))
}

fn dim_of(scope: &Scope, dim: &Value) -> Result<Dim, Failure> {
    let wrong = || Failure::usage(format!("{dim} is no dim: a number of at least 0, a name or an expression"));
    let parsed = match dim.as_str() {
        Some(text) => scope.parse(text.trim()),
        None => dim.as_i64().map(Dim::constant),
    };
    parsed.filter(|dim| dim.as_const().is_none_or(|size| size >= 0)).ok_or_else(wrong)
}

/// Integers as numbers or texts: the largest `int64` is no number of JavaScript.
fn integers(request: &Value, field: &str) -> Result<Option<Vec<i64>>, Failure> {
    let value = &request[field];
    if value.is_null() {
        return Ok(None);
    }
    let wrong = || Failure::usage(format!("'{field}' should be a list of int64 numbers"));
    let integer = |value: &Value| match value.as_str() {
        Some(text) => text.trim().parse().map_err(|_| wrong()),
        None => value.as_i64().ok_or_else(wrong),
    };
    value.as_array().ok_or_else(wrong)?.iter().map(integer).collect::<Result<_, _>>().map(Some)
}

fn rule(request: &Value) -> Result<SliceRule, Failure> {
    Ok(match request["rule"].as_str() {
        None | Some("agree") => SliceRule::Agree,
        Some("onnxruntime") => SliceRule::OnnxRuntime,
        Some("spec") => SliceRule::Spec,
        Some("numpy") => SliceRule::Numpy,
        Some(other) => return Err(Failure::usage(format!("there is no rule '{other}'"))),
    })
}

fn spec(dialect: &str, request: &Value) -> Result<SliceSpec, Failure> {
    let list = |field: &str| integers(request, field);
    let (starts, ends) = (list("starts")?.unwrap_or_default(), list("ends")?.unwrap_or_default());
    let (axes, steps) = (list("axes")?, list("steps")?);
    let operand = |values: &Vec<i64>| Operand::constant(values);
    let ones = || vec![1; starts.len()];
    Ok(match dialect {
        "onnx-1" => {
            if steps.is_some_and(|steps| steps.iter().any(|step| *step != 1)) {
                return Err(Failure::usage("Slice-1 has no steps"));
            }
            onnx::slice_1(&starts, &ends, axes.as_deref(), rule(request)?)?
        }
        "onnx-10" | "onnx-11" | "onnx-13" => {
            let (axes, steps) = (axes.as_ref().map(operand), steps.as_ref().map(operand));
            onnx::slice(
                &onnx::Operands { starts: operand(&starts), ends: operand(&ends), axes, steps },
                rule(request)?,
            )?
        }
        "tensorflow" => {
            let bits = |name: &str| -> Result<i32, Failure> {
                let value = &request["masks"][name];
                let bits =
                    if value.is_null() { Some(0) } else { value.as_i64().and_then(|bits| i32::try_from(bits).ok()) };
                bits.ok_or_else(|| Failure::usage(format!("the mask '{name}' should be an int32 number")))
            };
            let masks = tensorflow::Masks {
                begin: bits("begin")?,
                end: bits("end")?,
                ellipsis: bits("ellipsis")?,
                new_axis: bits("newAxis")?,
                shrink_axis: bits("shrinkAxis")?,
            };
            let strides = operand(&steps.unwrap_or_else(ones));
            tensorflow::strided_slice(&tensorflow::Operands {
                begin: operand(&starts),
                end: operand(&ends),
                strides,
                masks,
            })?
        }
        "openvino" => {
            let mask = |name: &str| Ok::<_, Failure>(integers(&request["masks"], name)?.unwrap_or_default());
            let masks = openvino::Masks {
                begin: mask("begin")?,
                end: mask("end")?,
                new_axis: mask("newAxis")?,
                shrink_axis: mask("shrinkAxis")?,
                ellipsis: mask("ellipsis")?,
            };
            let strides = steps.as_ref().map(operand);
            openvino::strided_slice(&openvino::StridedOperands {
                begin: operand(&starts),
                end: operand(&ends),
                strides,
                masks,
            })?
        }
        "openvino-slice" => {
            let (step, axes) = (operand(&steps.unwrap_or_else(ones)), axes.as_ref().map(operand));
            openvino::slice(&openvino::Operands { start: operand(&starts), stop: operand(&ends), step, axes })?
        }
        other => return Err(Failure::usage(format!("there is no dialect '{other}'"))),
    })
}

/// Describes one axis of the data, or a new one.
fn axis(scope: &Scope, op: &AxisOp, taken: &InferredAxis, data: Option<(usize, &Dim)>) -> Value {
    let Some((at, dim)) = data else { return json!({ "op": "new" }) };
    let number = |dim: &Dim| dim.evaluate(&|_| Some(PICTURED));
    let mut all = json!({ "axis": at, "size": scope.format(dim) });
    let mut put = |name: &str, value: Value| all[name] = value;
    let (start, len, step) = match taken {
        InferredAxis::New | InferredAxis::All => (Some(Dim::constant(0)), dim.clone(), 1),
        InferredAxis::Index(index) => (index.clone(), Dim::constant(1), 1),
        InferredAxis::Range(resolved) => {
            let selection = resolved.selection.as_ref();
            (selection.map(|taken| taken.start.clone()), resolved.len.clone(), selection.map_or(1, |taken| taken.step))
        }
    };
    put(
        "op",
        json!(match op {
            AxisOp::Keep => "keep",
            AxisOp::Index(_) => "index",
            AxisOp::Range(_) => "range",
            AxisOp::NewAxis => "new",
        }),
    );
    let Some(start) = start else { return all };
    put("start", json!(scope.format(&start)));
    put("len", json!(scope.format(&len)));
    put("step", json!(step));
    let Some((start, len, size)) = (|| Some((number(&start)?, number(&len)?, number(dim)?)))() else { return all };
    let element = |at: i64| start.checked_add(at.checked_mul(step)?).filter(|at| (0..size).contains(at));
    if size < 1 || len < 0 || (len > 0 && (element(0).is_none() || element(len - 1).is_none())) {
        return all;
    }
    put("picture", json!([start, len, size]));
    if len <= LISTED {
        put("picks", json!((0..len).filter_map(element).collect::<Vec<i64>>()));
    }
    all
}

/// Names the readings that take other elements than the dialect does.
fn other_readings(
    scope: &Scope,
    axis: usize,
    dim: &Dim,
    range: &Range,
    mine: &Resolved,
    reading: Reading,
) -> Vec<String> {
    let readings = [
        ("ONNX Runtime", onnx::reading(SliceRule::OnnxRuntime)),
        ("the text of ONNX", onnx::reading(SliceRule::Spec)),
        ("TensorFlow", tensorflow::READING),
        ("OpenVINO", openvino::READING),
    ];
    let differs =
        |other: &Resolved| other.len != mine.len || (other.selection != mine.selection && !other.len.is_const(0));
    let mut notes = Vec::new();
    for (name, other) in readings.into_iter().filter(|(_, other)| *other != reading) {
        let Ok(other) = slicing::resolve(scope, dim, range, other) else { continue };
        let Some(taken) = other.selection.as_ref().filter(|_| differs(&other)) else { continue };
        let what = if other.len.is_const(0) {
            "nothing".to_string()
        } else {
            format!("{} from {}, step {}", scope.format(&other.len), scope.format(&taken.start), taken.step)
        };
        notes.push(format!("Axis {axis}: {name} takes {what}."));
    }
    if mine.disputed.is_some() {
        notes.insert(
            0,
            format!(
                "Axis {axis}: ONNX Runtime and the text of ONNX disagree, so the program neither folds nor states it."
            ),
        );
    }
    notes
}

/// Returns what the dialect ignores or leaves open in this request.
fn remarks(dialect: &str, request: &Value) -> Vec<String> {
    let is_negative = |value: &Value| value.as_i64().is_some_and(|axis| axis < 0);
    let has_negative_axis = request["axes"].as_array().is_some_and(|axes| axes.iter().any(is_negative));
    let shrinks = request["masks"]["shrinkAxis"].as_array().is_some_and(|mask| mask.iter().any(|bit| bit == 1));
    let mut remarks = Vec::new();
    if dialect == "onnx-10" && has_negative_axis {
        remarks.push("The text of Slice-10 does not mention negative axes; runtimes accept them.".to_string());
    }
    if dialect == "openvino" && shrinks {
        remarks.push(
            "An entry of shrink_axis_mask is an index: its end and stride are ignored, and it is not clamped."
                .to_string(),
        );
    }
    if dialect == "tensorflow" && request["masks"]["shrinkAxis"].as_i64().is_some_and(|bits| bits != 0) {
        remarks.push(
            "An entry of shrink_axis_mask is an index: its end is ignored, its stride must be positive.".to_string(),
        );
    }
    remarks
}

/// The ONNX operators that compute the same: one Slice, then Squeeze and Unsqueeze.
#[derive(Default)]
struct Equivalent {
    ranges: Vec<(usize, i64, i64, i64)>,
    squeeze: Vec<usize>,
    /// Axes of the result.
    unsqueeze: Vec<usize>,
    rank: usize,
}

impl Equivalent {
    /// Adds an axis; `None` if no Slice with constant operands takes the same from it.
    fn with(mut self, scope: &Scope, op: &AxisOp, taken: &InferredAxis, data: Option<(usize, &Dim)>) -> Option<Self> {
        let Some((axis, dim)) = data else {
            self.unsqueeze.push(self.rank);
            self.rank += 1;
            return Some(self);
        };
        match (op, taken) {
            (AxisOp::Range(range), InferredAxis::Range(resolved)) => {
                let (start, end, step) = range_of(scope, dim, range, resolved)?;
                self.ranges.push((axis, start, end, step));
                self.rank += 1;
            }
            (AxisOp::Index(Bound::At(index)), _) => {
                let index = index.as_const()?;
                let end = if index == -1 { i64::MAX } else { index.checked_add(1)? };
                self.ranges.push((axis, index, end, 1));
                self.squeeze.push(axis);
            }
            _ => self.rank += 1,
        }
        Some(self)
    }

    fn json(&self) -> Value {
        let list = |part: fn(&(usize, i64, i64, i64)) -> i64| -> Vec<Value> {
            self.ranges.iter().map(|range| exact(part(range))).collect()
        };
        let axes: Vec<usize> = self.ranges.iter().map(|range| range.0).collect();
        json!({
            "starts": list(|range| range.1), "ends": list(|range| range.2), "axes": axes, "steps": list(|range| range.3),
            "squeeze": self.squeeze, "unsqueeze": self.unsqueeze,
        })
    }
}

/// Start, end and step with which ONNX takes the same from an axis, by every reading of ONNX.
fn range_of(scope: &Scope, dim: &Dim, range: &Range, wanted: &Resolved) -> Option<(i64, i64, i64)> {
    let wanted_selection = wanted.selection.as_ref()?;
    let step = wanted_selection.step;
    let as_typed = || Some((onnx::start_of(&range.begin, step)?, onnx::end_of(&range.end, step)?, step));
    let as_resolved = || {
        let (start, len) = (wanted_selection.start.as_const()?, wanted.len.as_const()?);
        let end = start.checked_add(len.checked_mul(step)?)?;
        Some(if len == 0 { (0, 0, 1) } else { (start, if end < 0 { i64::MIN } else { end }, step) })
    };
    let is_same = |&(start, end, step): &(i64, i64, i64)| {
        let Ok(range) = Range::constant(Some(start), Some(end), step) else { return false };
        slicing::resolve(scope, dim, &range, onnx::reading(SliceRule::Agree)).is_ok_and(|found| {
            found.len == wanted.len && (found.selection == wanted.selection || found.len.is_const(0))
        })
    };
    as_typed().filter(is_same).or_else(|| as_resolved().filter(is_same))
}

/// A number, or a text where JavaScript has no such number.
fn exact(value: i64) -> Value {
    if value.unsigned_abs() <= 1 << 53 { json!(value) } else { json!(value.to_string()) }
}
