//! Compares all declared traits with inference and evaluation on random operands. Then shows that each check fails
//! for a wrong trait.

mod contents;
mod inferred;
mod macs;
mod maps;
mod sample;
mod shapes;
mod values;

use std::rc::Rc;

use super::*;
use crate::dim::Scope;
use crate::ir::{
    Attribute, Constant, Data, DeclaredType, DimClaim, Extra, Model, NewNode, NodeId, OpsetImport, ValueId,
};
use crate::ops::{Budget, Decline, Operator, Walk, evaluate_graph, operator, operators};
use crate::slicing::SliceRule;
use inferred::*;
use sample::*;
use shapes::*;
use values::*;

type Check = fn(&Operator) -> Result<usize, String>;

/// All traits with their checks, and a filter for the operators to check.
const CHECKS: &[(&str, fn(&Traits) -> bool, Check)] = &[
    ("pointwise", |own| own.pointwise.is_some(), pointwise),
    ("fails", |own| own.pointwise.is_some(), failing),
    ("moves", |own| own.moves.is_some(), moving),
    ("reduces", |own| own.reduces.is_some(), reducing),
    ("mixes", |own| own.mixes.is_some(), mixing),
    ("range", |own| own.range.is_some(), ranged),
    ("monotone", |own| own.monotone.is_some(), monotone),
    ("ordered", |own| own.ordered.is_some(), ordered),
    ("neutral", |own| own.neutral.is_some(), neutral),
    ("commutes", |own| own.commutes != Commutes::Never, commuting),
    ("ignores_zero_sign", |own| own.ignores_zero_sign, blind_to_zero_sign),
    ("shows_zero_sign", |own| own.shows_zero_sign.is_some(), showing_zero_sign),
    ("homogeneous", |own| own.homogeneous, homogeneous),
    ("bilinear", |own| own.bilinear, bilinear),
    ("carries_quantization", |own| own.carries_quantization, carrying),
    ("variadic", |own| own.variadic, variadic),
    ("of_shape", |own| own.of_shape, of_shape),
    ("makes_container", |own| own.makes_container, container),
    ("shape_inference", |own| own.shape_inference.is_some(), inferring),
    ("counts", |own| own.counts.is_some(), counting),
    ("uniform", |own| own.uniform.is_some(), uniform),
    (
        "repeats",
        |own| {
            own.repeats.is_some()
                || own.mixes.is_some()
                || own.reduces.is_some()
                || own.pointwise.is_some_and(|own| own.operands != Operands::Stretched)
        },
        repeating,
    ),
];

fn check(name: &str) -> &'static (&'static str, fn(&Traits) -> bool, Check) {
    CHECKS.iter().find(|(own, ..)| *own == name).unwrap()
}

#[test]
fn every_declared_trait_holds() {
    let mut wrong = Vec::new();
    for operator in operators().filter(|operator| operator.domain.is_empty() && operator.name != "StridedSlice") {
        for (name, has, check) in CHECKS {
            if !has(&operator.traits) {
                continue;
            }
            match check(operator) {
                Ok(0) => wrong.push(format!("{} {name}: nothing was checked", operator.name)),
                Ok(_) => {}
                Err(reason) => wrong.push(format!("{} {name}: {reason}", operator.name)),
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// An operator whose results differ in value for a negative zero must declare that.
#[test]
fn whatever_shows_the_sign_of_a_zero_says_so() {
    let is_pointwise = |own: &&Operator| own.domain.is_empty() && own.traits.pointwise.is_some();
    let wrong: Vec<String> = operators()
        .filter(is_pointwise)
        .filter_map(|own| Some(format!("{}: {}", own.name, showing_zero_sign(own).err()?)))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The checks detect wrong traits.
#[test]
fn wrong_traits_are_found() {
    let flipped: &[(&str, &str, fn(Traits) -> Traits)] = &[
        ("pointwise", "Softmax", |own| Traits { pointwise: Traits::function().pointwise, ..own }),
        ("pointwise", "CumSum", |own| Traits { pointwise: Traits::broadcast(1).pointwise, ..own }),
        ("fails", "Div", |own| Traits { fails: Failure::Never, ..own }),
        ("fails", "Mod", |own| own.fails_unless(|_| true)),
        ("moves", "Transpose", |own| Traits { moves: Some(Movement::Layout), ..own }),
        ("moves", "Slice", |own| Traits { moves: Some(Movement::Through), ..own }),
        ("reduces", "ReduceSum", |own| Traits {
            reduces: Some(Reduction { axes: |_| Some((vec![0], true)), folds: None }),
            ..own
        }),
        ("reduces", "ReduceSum", |own| Traits {
            reduces: own.reduces.map(|own| Reduction { folds: Some("Mul"), ..own }),
            ..own
        }),
        ("reduces", "ReduceMean", |own| Traits {
            reduces: own.reduces.map(|own| Reduction { folds: Some("Add"), ..own }),
            ..own
        }),
        ("mixes", "Softmax", |own| Traits { mixes: Some(|_| Some(vec![0])), ..own }),
        ("mixes", "InstanceNormalization", |own| Traits { mixes: Some(|_| Some(vec![1])), ..own }),
        ("range", "Exp", |own| own.range(|_, _| Some(ValueRange::between(0.0, 1.0)))),
        ("range", "Abs", |own| {
            own.range(|_, _| Some(ValueRange { nan: false, ..ValueRange::between(0.0, f64::INFINITY) }))
        }),
        ("range", "Tanh", |own| own.range(|_, _| Some(ValueRange::between(0.0, 1.0)))),
        ("monotone", "Exp", |own| own.falling()),
        ("monotone", "Cos", |own| own.rising()),
        ("ordered", "Equal", |own| own.ordered(2)),
        ("ordered", "Abs", |own| own.ordered(1)),
        ("ordered", "Div", |own| own.ordered(2)),
        ("ordered", "Cos", |own| own.ordered_by_sign()),
        ("neutral", "Sub", |own| own.commuting(Commutes::Always)),
        ("neutral", "Add", |own| own.neutral(|_, one| one.to_f64s() == Some(vec![0.0]))),
        ("neutral", "Mul", |own| own.neutral(|_, one| one.to_f64s() == Some(vec![2.0]))),
        ("commutes", "Sub", |own| own.commuting(Commutes::Always)),
        ("commutes", "Less", |own| own.commuting(Commutes::Integers)),
        ("commutes", "Max", |own| own.commuting(Commutes::Always)),
        ("ignores_zero_sign", "Reciprocal", |own| own),
        ("ignores_zero_sign", "Tanh", |own| own),
        ("shows_zero_sign", "Div", |own| own.showing_zero_sign(0)),
        ("shows_zero_sign", "Sqrt", |own| own.showing_zero_sign(0)),
        ("homogeneous", "Abs", |own| own),
        ("homogeneous", "ReduceL1", |own| own),
        ("bilinear", "Add", |own| own),
        ("bilinear", "Max", |own| own),
        ("carries_quantization", "AveragePool", |own| own),
        ("carries_quantization", "ReduceSum", |own| own),
        ("of_shape", "ReduceSum", |own| own),
        ("variadic", "SequenceConstruct", |own| own),
        ("makes_container", "Identity", |own| own),
        ("shape_inference", "Slice", |own| Traits { shape_inference: Some(ShapeInference::BY_SHAPES), ..own }),
        ("shape_inference", "Expand", |own| own.inferred_by_contents(2)),
        ("shape_inference", "OneHot", |own| own.inferred_by_contents(2)),
        ("shape_inference", "Transpose", |own| own.inferred_by_contents(1)),
        ("shape_inference", "ReduceSum", |own| own.inferred_by_numbers(NumbersOf::SameAxisOfFirst)),
        ("shape_inference", "MatMul", |own| own.inferred_by_contents(1)),
        ("shape_inference", "Compress", |own| own.inferred_by_shapes()),
        ("shape_inference", "NonZero", |own| own.inferred_by_shapes()),
        ("counts", "Neg", |own| own.counts(|_, _, operand| operand(0))),
        ("counts", "Transpose", |own| {
            own.counts(|_, shape, operand| Some(Counting { shape: shape.to_vec(), ..operand(0)? }))
        }),
        ("uniform", "Where", |own| own.uniform(|_, operand| operand(1))),
        ("uniform", "Pad", |own| own.uniform(|_, operand| operand(0))),
        ("repeats", "Slice", |own| own.repeats(|node| Some(node.only_first()?.0.to_vec()))),
        ("repeats", "Transpose", |own| own.repeats(|node| Some(node.only_first()?.0.to_vec()))),
        ("repeats", "Softmax", |own| Traits { mixes: Some(|_| Some(vec![0])), ..own }),
        ("repeats", "CumSum", |own| Traits { mixes: Some(|_| Some(Vec::new())), ..own }),
        ("repeats", "ReduceSum", |own| Traits {
            reduces: Some(Reduction { axes: |_| Some((Vec::new(), true)), folds: None }),
            ..own
        }),
        ("repeats", "ReduceMax", |own| Traits {
            reduces: own.reduces.map(|own| Reduction { axes: |_| Some((vec![0], true)), ..own }),
            ..own
        }),
    ];
    let mut missed = Vec::new();
    for (name, op_type, flip) in flipped {
        let mut wrong = *operator("", op_type).unwrap();
        wrong.traits = flip(wrong.traits);
        let (.., check) = check(name);
        if matches!(check(&wrong), Ok(1..)) {
            missed.push(format!("{name} of {op_type}"));
        }
    }
    assert!(missed.is_empty(), "wrong and not found: {missed:?}");
}

/// A dim one less than the declared bound is rejected.
#[test]
fn sizes_that_are_refused_are_too_small() {
    let data = |size: usize| random(&mut Numbers(2), DType::Float, &[size, 2], false, false);
    let of = |name: &str, list: Vec<Tensor>| Sample::new(operator("", name).unwrap(), list);
    let gather = |size| of("Gather", vec![data(size), Tensor::vector(vec![3i64, -2])]).eval();
    assert!(gather(3).is_none() && gather(4).is_some());
    let rest =
        |size: usize| of("Reshape", vec![data(size), Tensor::vector(vec![size as i64, -1])]).with("allowzero", 0i64);
    assert!(rest(1).eval().is_some());
    let quotient = |size: i64| of("Div", vec![Tensor::scalar(6i64), Tensor::scalar(size)]).eval();
    assert!(quotient(0).is_none() && quotient(1).is_some());
    let weights = random(&mut Numbers(3), DType::Float, &[1, 1, 3], false, false);
    let image = |size: usize| random(&mut Numbers(4), DType::Float, &[1, 1, size], false, false);
    let convolved = |size| of("Conv", vec![image(size), weights.clone()]).eval();
    assert!(convolved(2).is_none() && convolved(3).is_some());
    for (name, at) in [
        ("Gather", 1),
        ("Reshape", 1),
        ("Resize", 2),
        ("Div", 1),
        ("Mod", 1),
        ("Upsample", 1),
        ("Conv", 0),
        ("ConvInteger", 0),
        ("QLinearConv", 0),
    ] {
        assert!(operator("", name).unwrap().traits.needs.is_some(), "{name} needs nothing of operand {at}");
    }
}

/// The lists of names match the table.
#[test]
fn names_are_those_of_the_table() {
    let broadcasting: Vec<&str> = operators()
        .filter(|own| {
            own.domain.is_empty() && own.traits.pointwise.is_some_and(|own| own.operands == Operands::Broadcast)
        })
        .map(|own| own.name)
        .collect();
    assert_eq!(BROADCASTING, broadcasting);
    assert!(BROADCASTING.len() > 20 && LAYOUTS == ["Reshape", "Squeeze", "Unsqueeze", "Flatten"]);
}
