//! The slicing vectors: results of ONNX Runtime, TensorFlow and OpenVINO for each case, compared with the operator table.
//!
//! `tests/data/slicing` holds one file for each dialect, with one case in each line. A case has the operands, and the framework's result
//! for data that counts up from 0: a shape and values, or a refusal.

use std::rc::Rc;

use onnx_slice_fold::dim::{Dim, Scope};
use onnx_slice_fold::ir::{Attribute, Constant, Data, DeclaredType, DimClaim, Model, NewNode, OpsetImport, ValueId};
use onnx_slice_fold::onnx;
use onnx_slice_fold::ops::{Budget, Event, Walk, evaluate_graph};
use onnx_slice_fold::slicing::SliceRule;
use onnx_slice_fold::tensor::{DType, Tensor};
use onnx_slice_fold::{OnnxModel, Options};
use serde_json::Value;

const TENSORFLOW: &str = "ai.onnx.converters.tensorflow";
const OPENVINO: &str = "ai.intel.openvino";

/// The most elements of an input.
const LARGEST: i64 = 1 << 20;

fn cases(file: &str) -> Vec<Value> {
    let path = format!("{}/tests/data/slicing/{file}.json", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let mut file: Value = serde_json::from_str(&text).unwrap();
    file["cases"].as_array_mut().unwrap().drain(..).collect()
}

fn id(case: &Value) -> &str {
    case["id"].as_str().unwrap()
}

fn ints(value: &Value) -> Vec<i64> {
    value.as_array().unwrap().iter().map(|element| element.as_i64().unwrap()).collect()
}

fn dtype(case: &Value, key: &str) -> DType {
    DType::from_name(match case[key].as_str().unwrap() {
        "float32" => "float",
        "float64" => "double",
        name => name,
    })
    .unwrap_or_else(|| panic!("{}", case[key]))
}

/// Returns numbers as a tensor of this type; bools are 0 and 1.
fn tensor(dtype: DType, shape: &[usize], values: &[i64]) -> Tensor {
    macro_rules! of {
        ($type:ty) => {
            Tensor::from_vec(shape, values.iter().map(|&value| value as $type).collect::<Vec<_>>())
        };
    }
    match dtype {
        DType::Float => of!(f32),
        DType::Double => of!(f64),
        DType::Float16 => {
            Tensor::from_vec(shape, values.iter().map(|&value| half::f16::from_f64(value as f64)).collect::<Vec<_>>())
        }
        DType::Int8 => of!(i8),
        DType::Int16 => of!(i16),
        DType::Int32 => of!(i32),
        DType::Int64 => of!(i64),
        DType::Uint8 => of!(u8),
        DType::Uint16 => of!(u16),
        DType::Uint32 => of!(u32),
        DType::Uint64 => of!(u64),
        DType::Bool => Tensor::from_bools(shape, &values.iter().map(|&value| value != 0).collect::<Vec<_>>()),
        other => panic!("{other}"),
    }
    .unwrap()
}

/// Returns an operand with the rank of its nesting in the file: a number is a scalar, a list of lists has rank 2.
fn operand(dtype: DType, value: &Value) -> Tensor {
    match value.as_array() {
        None => tensor(dtype, &[], &[value.as_i64().unwrap()]),
        Some(rows) if rows.first().is_some_and(Value::is_array) => {
            let width = rows[0].as_array().unwrap().len();
            let flat: Vec<i64> = rows.iter().flat_map(ints).collect();
            tensor(dtype, &[rows.len(), width], &flat)
        }
        Some(rows) => tensor(dtype, &[rows.len()], &ints(value)),
    }
}

/// A graph with one slice.
struct OneSlice {
    model: Model,
    output: ValueId,
}

/// A dialect. `operands` are the keys of the case, in the order of the operator's inputs after the data; `of` is the key of their type.
struct Dialect {
    domain: &'static str,
    op_type: &'static str,
    opset: i64,
    operands: &'static [&'static str],
    of: &'static str,
}

const DIALECTS: &[(&str, Dialect)] = &[
    ("onnx_slice_1", Dialect { domain: "", op_type: "Slice", opset: 9, operands: &[], of: "" }),
    ("onnx_slice_10", slice_of(10)),
    ("onnx_slice_11", slice_of(12)),
    ("onnx_slice_13", slice_of(17)),
    ("tf_strided_slice", TF_STRIDED_SLICE),
    ("ov_strided_slice_1", OV_STRIDED_SLICE),
    ("ov_slice_8", OV_SLICE),
];

const fn slice_of(opset: i64) -> Dialect {
    Dialect { domain: "", op_type: "Slice", opset, operands: &["starts", "ends", "axes", "steps"], of: "tind" }
}

const TF_STRIDED_SLICE: Dialect = Dialect {
    domain: TENSORFLOW,
    op_type: "StridedSlice",
    opset: 17,
    operands: &["begin", "end", "strides"],
    of: "index",
};

const OV_STRIDED_SLICE: Dialect = Dialect { domain: OPENVINO, ..TF_STRIDED_SLICE };

const OV_SLICE: Dialect = Dialect {
    domain: OPENVINO,
    op_type: "Slice",
    opset: 17,
    operands: &["start", "stop", "step", "axes"],
    of: "index",
};

impl Dialect {
    /// Returns the case as a model. `data` gives the data its value or type; `unknown` selects the operands that are inputs of the graph.
    fn model(
        &self,
        case: &Value,
        data: impl FnOnce(&mut Model, ValueId),
        unknown: &dyn Fn(&str) -> Option<DeclaredType>,
        opset: i64,
    ) -> OneSlice {
        let mut model = Model::new();
        model.ir_version = 8;
        for (domain, version) in [("", opset), (TENSORFLOW, 1), (OPENVINO, 1)] {
            model.opsets.push(OpsetImport { domain: domain.into(), version, extra: Default::default() });
        }
        let main = model.main();
        let x = model.add_value("x");
        data(&mut model, x);
        let mut inputs = vec![Some(x)];
        for &name in self.operands {
            if let Some(declared) = unknown(name) {
                let value = model.add_value(name);
                model.declare(value, declared);
                model.add_input(main, value).unwrap();
                inputs.push(Some(value));
                continue;
            }
            if case[name].is_null() {
                inputs.push(None);
                continue;
            }
            let of = if name == "axes" && case["axes_type"].is_string() { "axes_type" } else { self.of };
            let value = model.add_value(name);
            model.add_initializer(main, value, Constant::dense(operand(dtype(case, of), &case[name]))).unwrap();
            inputs.push(Some(value));
        }
        while inputs.last() == Some(&None) {
            inputs.pop();
        }
        let mut node = NewNode::new(self.op_type, inputs);
        node.domain = self.domain.into();
        if self.operands.is_empty() {
            for name in ["starts", "ends", "axes"] {
                if !case[name].is_null() {
                    node = node.with(name, ints(&case[name]));
                }
            }
        }
        // Some converters write OpenVINO's masks as text, others as numbers.
        let as_text = id(case).bytes().last().is_some_and(|digit| digit % 2 == 0);
        for mask in ["begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"] {
            match &case[mask] {
                Value::Null => {}
                Value::Number(bits) => node = node.with(mask, bits.as_i64().unwrap()),
                list if as_text => {
                    let text = ints(list).iter().map(i64::to_string).collect::<Vec<_>>().join(",");
                    node = node.with(mask, Attribute::String(text.into()));
                }
                list => node = node.with(mask, ints(list)),
            }
        }
        let output = model.add_value("y");
        model.add_node(main, node.output(output)).unwrap();
        model.add_output(main, output);
        OneSlice { model, output }
    }
}

/// Returns a case of constants as a model whose data is also constant, or an input of the graph if it is large.
fn static_model(dialect: &Dialect, case: &Value) -> OneSlice {
    let shape = ints(&case["shape"]);
    let dtype = dtype(case, "dtype");
    let large = shape.iter().product::<i64>() > LARGEST;
    let data = |model: &mut Model, x: ValueId| {
        let main = model.main();
        if large {
            let dims = shape.iter().map(|&dim| DimClaim::Value(dim)).collect();
            model.declare(x, DeclaredType::tensor(dtype, Some(dims)));
            model.add_input(main, x).unwrap();
        } else {
            let count = shape.iter().product::<i64>();
            let values: Vec<i64> = (0..count).map(|i| if dtype == DType::Bool { i % 2 } else { i }).collect();
            let dims: Vec<usize> = shape.iter().map(|&dim| dim as usize).collect();
            model.add_initializer(main, x, Constant::dense(tensor(dtype, &dims, &values))).unwrap();
        }
    };
    dialect.model(case, data, &|_| None, dialect.opset)
}

/// Returns the tensor that the frameworks compute.
fn expected(case: &Value, outcome: &Value) -> Option<Tensor> {
    let shape: Vec<usize> = ints(&outcome["shape"]).iter().map(|&dim| dim as usize).collect();
    outcome["values"].as_array().map(|values| {
        let flat: Vec<i64> =
            values.iter().map(|value| value.as_i64().unwrap_or_else(|| value.as_bool().unwrap().into())).collect();
        tensor(dtype(case, "dtype"), &shape, &flat)
    })
}

fn evaluated(slice: &OneSlice, rule: SliceRule) -> Result<Tensor, String> {
    match evaluate_graph(&slice.model, slice.model.main(), Vec::new(), &Budget::default(), rule) {
        Ok(results) => Ok(results.first().and_then(Data::tensor).expect("one tensor").clone()),
        Err(decline) => Err(decline.to_string()),
    }
}

fn walked(slice: &OneSlice, rule: SliceRule) -> Walk {
    let mut walk = Walk::new(Rc::new(Scope::new()), rule, Budget::default());
    walk.infer_main(&slice.model).unwrap();
    walk
}

/// Checks every case of a dialect under the rule of its `expected`.
fn run_static(file: &str) {
    let (_, dialect) = DIALECTS.iter().find(|(name, _)| *name == file).unwrap();
    let mut failures = Vec::new();
    for case in cases(file) {
        let slice = static_model(dialect, &case);
        let outcome = &case["expected"];
        let walk = walked(&slice, SliceRule::OnnxRuntime);
        let fact = walk.facts.get(slice.output).cloned().unwrap_or_default();
        if outcome["error"] == true {
            if evaluated(&slice, SliceRule::OnnxRuntime).is_ok() || fact.data().is_some() {
                failures.push(format!("{}: accepted", id(&case)));
            }
            continue;
        }
        let shape = ints(&outcome["shape"]);
        let inferred = fact.shape().map(|dims| dims.iter().map(Dim::as_const).collect::<Option<Vec<_>>>());
        if inferred != Some(Some(shape.clone())) {
            failures.push(format!("{}: shape {inferred:?}, expected {shape:?}; {:?}", id(&case), walk.events));
        }
        let Some(expected) = expected(&case, outcome) else { continue };
        match evaluated(&slice, SliceRule::OnnxRuntime) {
            Ok(tensor)
                if tensor.same(&expected) && fact.constant_tensor().is_some_and(|folded| folded.same(&expected)) => {}
            other => failures.push(format!("{}: {other:?}, folded {:?}", id(&case), fact.constant_tensor())),
        }
    }
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn onnx_slice_1() {
    run_static("onnx_slice_1");
}

#[test]
fn onnx_slice_10() {
    run_static("onnx_slice_10");
}

#[test]
fn onnx_slice_11() {
    run_static("onnx_slice_11");
}

#[test]
fn onnx_slice_13() {
    run_static("onnx_slice_13");
}

#[test]
fn tf_strided_slice() {
    run_static("tf_strided_slice");
}

#[test]
fn ov_strided_slice_1() {
    run_static("ov_strided_slice_1");
}

#[test]
fn ov_slice_8() {
    run_static("ov_slice_8");
}

/// Returns an outcome that is no refusal.
fn outcome_of<'v>(outcomes: &'v Value, name: &str) -> Option<&'v Value> {
    Some(&outcomes[name]).filter(|outcome| outcome["shape"].is_array())
}

/// Returns `true` for operands that the standard does not define, and that the reference implementation accepts by accident.
fn is_malformed(case: &Value) -> bool {
    let length = |key: &str| case[key].as_array().map(Vec::len);
    let lengths: Vec<usize> = ["starts", "ends", "axes", "steps"].into_iter().filter_map(length).collect();
    lengths.windows(2).any(|pair| pair[0] != pair[1])
}

#[test]
fn each_rule_follows_its_source_where_they_disagree() {
    let (mut disputed, mut followed) = (0, 0);
    for file in ["onnx_slice_1", "onnx_slice_10", "onnx_slice_11", "onnx_slice_13"] {
        let (_, dialect) = DIALECTS.iter().find(|(name, _)| *name == file).unwrap();
        for case in cases(file) {
            let slice = static_model(dialect, &case);
            let outcome = |name: &str| outcome_of(&case["contested"], name);
            let runtime = outcome_of(&case, "expected").and_then(|outcome| expected(&case, outcome));
            // Agree: declines where onnx's own inference disagrees, and follows ONNX Runtime everywhere else.
            let text = outcome("onnx_shape_inference").filter(|text| text["shape"] != case["expected"]["shape"]);
            let agreed = evaluated(&slice, SliceRule::Agree);
            match (&runtime, text) {
                (Some(_), Some(_)) => {
                    disputed += 1;
                    assert!(agreed.is_err(), "{}: folded though disputed", id(&case));
                    let walk = walked(&slice, SliceRule::Agree);
                    assert!(walk.facts.get(slice.output).is_none_or(|fact| fact.data().is_none()));
                    assert!(walk.events.iter().any(|event| event.reason.contains("ONNX Runtime")), "{}", id(&case));
                }
                (Some(runtime), None) => {
                    assert!(agreed.as_ref().is_ok_and(|tensor| tensor.same(runtime)), "{}: {agreed:?}", id(&case));
                }
                (None, _) => assert!(agreed.is_err(), "{}: accepted", id(&case)),
            }
            if let (Some(text), Some(_)) = (text, &runtime) {
                let by_text = evaluated(&slice, SliceRule::Spec).unwrap();
                assert_eq!(by_text.shape(), ints(&text["shape"]).iter().map(|&dim| dim as usize).collect::<Vec<_>>());
            }
            let numpy = outcome("numpy").or(runtime.is_some().then_some(&case["expected"]));
            if let Some(numpy) = numpy.filter(|_| !is_malformed(&case)).and_then(|numpy| expected(&case, numpy)) {
                followed += 1;
                let by_numpy = evaluated(&slice, SliceRule::Numpy);
                assert!(by_numpy.as_ref().is_ok_and(|tensor| tensor.same(&numpy)), "{}: {by_numpy:?}", id(&case));
            }
        }
    }
    assert!(disputed > 25 && followed > 1500, "{disputed} disputed, {followed} as numpy");
}

/// Reads a dim of the dynamic cases: a number, an interval (−1 is no bound), or unknown.
fn interval(dim: &Value) -> (i64, Option<i64>) {
    match dim.as_array() {
        None => dim.as_i64().map_or((0, None), |dim| (dim, Some(dim))),
        Some(ends) => (ends[0].as_i64().unwrap(), ends[1].as_i64().filter(|&high| high >= 0)),
    }
}

/// Returns a named dim with the bounds of a dynamic case.
fn dim_within(scope: &Scope, name: &str, dim: &Value) -> Dim {
    let (low, high) = interval(dim);
    if high == Some(low) {
        return Dim::constant(low);
    }
    let symbol = scope.named(name);
    scope.restrict(symbol, Some(low), high);
    Dim::symbol(symbol)
}

/// Checks a shape with unknown dims against the framework's inference of its slice. Our inference must be at least as tight where that is
/// sound, and sound where it is not.
fn run_dynamic(file: &str, dialect: &Dialect) {
    let mut failures = Vec::new();
    for case in cases(file) {
        let name = |axis: usize| format!("D{axis}");
        let dims = case["shape"].as_array();
        let data = |model: &mut Model, x: ValueId| {
            let main = model.main();
            let claims = dims.map(|dims| {
                let claim = |(axis, dim): (usize, &Value)| match interval(dim) {
                    (low, Some(high)) if low == high => DimClaim::Value(low),
                    _ => DimClaim::Param(name(axis)),
                };
                dims.iter().enumerate().map(claim).collect()
            });
            model.declare(x, DeclaredType::tensor(DType::Float, claims));
            model.add_input(main, x).unwrap();
        };
        // The operands that are not constant: named with their shapes, or begin and end of their length in the case.
        let unknown = |operand: &str| {
            let shape = if case["operands"] == "unknown" && operand != "strides" {
                case[operand].as_array().map(|elements| vec![Value::from(elements.len())])
            } else {
                case["unknown"][operand].as_array().cloned()
            };
            let claims = shape?.into_iter().map(|dim| match interval(&dim) {
                (low, Some(high)) if low == high => DimClaim::Value(low),
                _ => DimClaim::Unknown,
            });
            Some(DeclaredType::tensor(dtype(&case, dialect.of), Some(claims.collect())))
        };
        let slice = dialect.model(&case, data, &unknown, dialect.opset);
        let scope = Rc::new(Scope::new());
        for (axis, dim) in dims.into_iter().flatten().enumerate() {
            dim_within(&scope, &name(axis), dim);
        }
        let mut walk = Walk::new(Rc::clone(&scope), SliceRule::Agree, Budget::default());
        walk.infer_main(&slice.model).unwrap();
        let fact = walk.facts.get(slice.output).cloned().unwrap_or_default();
        let stated = fact.shape().map(|dims| dims.iter().map(|dim| scope.bounds(dim)).collect::<Vec<_>>());
        let inferred = &case["inferred"];
        let mut fail = |what: &str| failures.push(format!("{}: {what}: {stated:?}, not {inferred}", id(&case)));
        if inferred["error"] == true {
            if fact.ty.is_some() {
                fail("accepted");
            }
            continue;
        }
        // Some indices can never be in range: the frameworks refuse them in a run, we in inference.
        let never_in_range =
            |event: &Event| event.reason.contains("out of range") || event.reason.contains("not positive");
        let refused_at_run_time = fact.ty.is_none() && walk.events.iter().any(never_in_range);
        let Some(wanted) = inferred.as_array().filter(|_| !refused_at_run_time) else { continue };
        let Some(stated) = &stated else {
            fail("nothing stated");
            continue;
        };
        if stated.len() != wanted.len() {
            fail("rank");
            continue;
        }
        let trusted = case["sound"] != false;
        for (axis, ((dim, bounds), wanted)) in fact.shape().into_iter().flatten().zip(stated).zip(wanted).enumerate() {
            let (low, high) = interval(wanted);
            let lower = bounds.0.unwrap_or(i64::MIN) >= low;
            let upper = high.is_none_or(|high| high >= UNBOUNDED || bounds.1.is_some_and(|bound| bound <= high));
            // The frameworks' intervals were checked with small dims only, and a few are wrong for larger ones.
            let dims_of_data = || dims.into_iter().flatten().enumerate();
            let is_missed = |size: i64| {
                let value = |symbol| {
                    let (_, own) = dims_of_data().find(|(axis, _)| scope.name(symbol).as_ref() == name(*axis))?;
                    let (low, high) = interval(own);
                    Some(size.max(low).min(high.unwrap_or(i64::MAX)))
                };
                dim.evaluate(&value).is_some_and(|size| size < low || high.is_some_and(|high| size > high))
            };
            if trusted && !(lower && upper) && !(0..400).any(is_missed) {
                fail(&format!("axis {axis} is wider"));
            }
            let occurs = case["counterexample"][1][axis].as_i64().or(case["seen"][axis][1].as_i64());
            let within =
                |value: i64| bounds.0.is_none_or(|low| low <= value) && bounds.1.is_none_or(|high| value <= high);
            if occurs.is_some_and(|value| !within(value)) {
                fail(&format!("axis {axis} misses a dim that occurs"));
            }
        }
    }
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn tf_strided_slice_of_unknown_dims() {
    run_dynamic("tf_strided_slice_dynamic", &TF_STRIDED_SLICE);
}

#[test]
fn ov_strided_slice_1_of_intervals() {
    run_dynamic("ov_strided_slice_1_dynamic", &OV_STRIDED_SLICE);
}

#[test]
fn ov_slice_8_of_intervals() {
    run_dynamic("ov_slice_8_dynamic", &OV_SLICE);
}

/// OpenVINO's upper bound for unbounded 64-bit sizes.
const UNBOUNDED: i64 = 1 << 62;

/// The known facts about the data and the bounds of a slice before lowering.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Known {
    Dims,
    Rank,
    Nothing,
    /// The rank; begin and end are inputs of the graph.
    RankButNoBounds,
    /// The dims; begin and end are inputs of the graph.
    DimsButNoBounds,
}

/// Lowers every case to the standard's operators and runs the result on the data.
fn run_lowered(file: &str, opset: i64, known: Known, least: usize) {
    let (_, dialect) = DIALECTS.iter().find(|(name, _)| *name == file).unwrap();
    let (mut failures, mut lowered, mut total) = (Vec::new(), 0, 0);
    for case in cases(file) {
        let shape = ints(&case["shape"]);
        if shape.iter().product::<i64>() > LARGEST {
            continue;
        }
        let kind = dtype(&case, "dtype");
        let declare = |model: &mut Model, x: ValueId| {
            let main = model.main();
            let claim = |(axis, &dim): (usize, &i64)| match known {
                Known::Dims | Known::DimsButNoBounds => DimClaim::Value(dim),
                _ => DimClaim::Param(format!("D{axis}")),
            };
            let claims = shape.iter().enumerate().map(claim).collect();
            model.declare(x, DeclaredType::tensor(kind, Some(claims).filter(|_| known != Known::Nothing)));
            model.add_input(main, x).unwrap();
        };
        let by_caller = matches!(known, Known::RankButNoBounds | Known::DimsButNoBounds);
        let is_bound = |operand: &str| by_caller && matches!(operand, "begin" | "end" | "start" | "stop");
        let bound = |name: &str| operand(dtype(&case, dialect.of), &case[name]);
        let unknown = |name: &str| {
            let tensor = Some(name).filter(|name| is_bound(name) && !case[*name].is_null()).map(bound)?;
            let claims = tensor.shape().iter().map(|&dim| DimClaim::Value(dim as i64)).collect();
            Some(DeclaredType::tensor(tensor.dtype(), Some(claims)))
        };
        let slice = dialect.model(&case, declare, &unknown, opset);
        let count = shape.iter().product::<i64>();
        let values: Vec<i64> = (0..count).map(|i| if kind == DType::Bool { i % 2 } else { i }).collect();
        let dims: Vec<usize> = shape.iter().map(|&dim| dim as usize).collect();
        let mut inputs = vec![Data::Tensor(tensor(kind, &dims, &values))];
        inputs.extend(dialect.operands.iter().filter(|name| unknown(name).is_some()).map(|name| bound(name).into()));
        let mut document = OnnxModel::of(slice.model);
        document.fold(&Options::default()).unwrap_or_else(|error| panic!("{}: {error}", id(&case)));
        let model = document.model();
        let is_foreign = |node: &onnx_slice_fold::ir::Node| !node.canonical_domain().is_empty();
        let remains = model.graph(model.main()).nodes().filter_map(|node| model.node(node)).any(is_foreign);
        let outcome = &case["expected"];
        if outcome["error"] != true {
            total += 1;
            lowered += usize::from(!remains);
        }
        let ran = evaluate_graph(model, model.main(), inputs, &Budget::default(), SliceRule::Agree);
        let result = ran.as_ref().map(|results| results.first().and_then(Data::tensor));
        match (outcome["error"] == true, result) {
            (true, Err(_)) => {}
            (false, Ok(Some(result))) if expected(&case, outcome).is_none_or(|wanted| result.same(&wanted)) => {}
            (_, result) => failures.push(format!("{}: {result:?}", id(&case))),
        }
    }
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures.join("\n"));
    assert!(lowered * 100 >= total * least, "{lowered} of {total} lowered");
}

const FOREIGN: [&str; 3] = ["tf_strided_slice", "ov_strided_slice_1", "ov_slice_8"];

#[test]
fn lowered_slices_take_the_same() {
    for file in FOREIGN {
        run_lowered(file, 13, Known::Dims, 99);
        run_lowered(file, 17, Known::Rank, 97);
        run_lowered(file, 11, Known::Nothing, 95);
    }
}

#[test]
fn slices_at_run_time_are_lowered_where_they_go_forward() {
    for file in FOREIGN {
        run_lowered(file, 10, Known::RankButNoBounds, 45);
        run_lowered(file, 13, Known::DimsButNoBounds, 60);
    }
}

#[test]
fn slices_are_lowered_to_attributes_in_old_operator_sets() {
    for file in FOREIGN {
        run_lowered(file, 9, Known::Dims, 99);
        run_lowered(file, 8, Known::Rank, 20);
    }
}

fn base64(text: &str) -> Vec<u8> {
    let digit = |byte: u8| match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let digits: Vec<u8> = text.bytes().filter(|&byte| byte != b'=').map(digit).collect();
    let bytes = digits.chunks(4).flat_map(|group| {
        let bits = group.iter().fold(0u32, |bits, &digit| (bits << 6) | u32::from(digit)) << (6 * (4 - group.len()));
        bits.to_be_bytes().into_iter().skip(1).take(group.len() - 1).collect::<Vec<_>>()
    });
    bytes.collect()
}

fn decode(bytes: Vec<u8>) -> Model {
    let (proto, unknown) = onnx::decode(&bytes.into(), &onnx::Limits::default()).unwrap();
    onnx::import(proto, &unknown, &mut onnx::DataFiles::default()).unwrap()
}

/// Graphs around Slice with symbolic dims: the inferred dims, evaluated at each binding, equal ONNX Runtime's results.
#[test]
fn onnx_symbolic() {
    let mut failures = Vec::new();
    let mut exceptions = 0;
    for case in cases("onnx_symbolic") {
        let model = decode(base64(case["model"].as_str().unwrap()));
        let main = model.graph(model.main());
        let output = *main.outputs().first().unwrap();
        let scope = Rc::new(Scope::new());
        let mut walk = Walk::new(Rc::clone(&scope), SliceRule::OnnxRuntime, Budget::default());
        walk.infer_main(&model).unwrap();
        let Some(dims) = walk.facts.get(output).and_then(|fact| fact.shape()) else {
            failures.push(format!("{}: no shape; {:?}", id(&case), walk.events));
            continue;
        };
        // In their written form.
        let dims: Vec<_> = dims.iter().map(|dim| scope.nominal(dim)).collect();
        let says = || dims.iter().map(|dim| scope.format(dim)).collect::<Vec<_>>().join(", ");
        // A length that depends on the content of a run-time operand is correctly unknown, and so is an unnamed dim.
        let open = matches!(case["group"].as_str().unwrap(), "runtime" | "unnamed");
        // A Reshape copies a dim if its target is 0 at run time, and declares an empty tensor with 0 in another position (see
        // ops/movement/reshape.rs). So only emptiness is compared.
        let reshapes = main.nodes().filter_map(|node| model.node(node)).any(|node| node.is("Reshape"));
        for row in case["table"].as_array().unwrap() {
            let Some(shape) = row[1].as_array() else { continue };
            let binding = |symbol| row[0][&*scope.name(symbol)].as_i64();
            let right = shape.len() == dims.len()
                && dims.iter().zip(shape).all(|(dim, size)| match dim.evaluate(&binding) {
                    Some(value) => Some(value) == size.as_i64(),
                    None => open,
                });
            let is_empty = reshapes
                && shape.len() == dims.len()
                && shape.iter().any(|size| size == 0)
                && dims.iter().any(|dim| dim.evaluate(&binding) == Some(0));
            exceptions += usize::from(!right && is_empty);
            if !right && !is_empty {
                failures.push(format!("{}: [{}] at {}, not {}", id(&case), says(), row[0], row[1]));
                break;
            }
        }
    }
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures.join("\n"));
    assert!(exceptions <= 1, "{exceptions} rows rest on the exception for empty tensors");
}
