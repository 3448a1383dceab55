//! Slicing operators. All convert their operands to one [`SliceSpec`]; [`crate::slicing`] implements the semantics.
//!
//! | operator | domain | versions | rules |
//! | --- | --- | --- | --- |
//! | Slice | `""` | 1 (attributes), 10, 11, 13 | [`onnx`] |
//! | StridedSlice | `ai.onnx.converters.tensorflow`, and `""` in output of some converters | 1 | [`tensorflow`] |
//! | StridedSlice | `ai.intel.openvino` | 1; masks are INTS, or STRINGs such as `"1,0,0"` | [`openvino`] |
//! | Slice | `ai.intel.openvino` | 1 | Slice-8 of [`openvino`] |
//!
//! A model may use other names for them, which the user registers ([`SliceName`](super::SliceName)).
//!
//! If the readings of ONNX Slice are in dispute ([`SliceRule`]), only their common facts are inferred, and nothing is evaluated.

use super::misread::may_be_misread;
use super::movement::maps::MapResult;
use super::movement::moves::sliced_narrow;
use super::slice_dialect::{OPENVINO, TENSORFLOW};
use super::traits::{Moved, Movement, NodeFacts, NumbersOf, Traits, moved};
use super::{
    Decline, EvalCx, EvalResult, Event, EventKind, InferCx, InferResult, Operator, Refusal, Site, Status, registry,
};
use crate::dim::Scope;
use crate::index_map::Undecided;
use crate::ir::{Attribute, Data, Fact, Facts, Model, NodeId};
use crate::slicing::{self, Inferred, Operand, SliceError, SliceRule, SliceSpec, onnx, openvino, tensorflow};
use crate::tensor::{DType, Tensor};

/// StridedSlice may add and remove axes. No runtime that loads ONNX models implements it.
const STRIDED: Traits = Traits::movement(Movement::Selection).index_map(map).some_types().not_inferred();

pub(super) const OPERATORS: &[Operator] = &[
    Operator::new("Slice", &[1, 10, 11, 13], infer, eval).with(
        Traits::movement(Movement::Selection)
            .index_map(map)
            .counts(moved)
            .repeats(sliced_narrow)
            .inferred_by_contents(1)
            .inferred_by_numbers(NumbersOf::SameAxisOfFirst)
            .carrying_quantization()
            .passing_slices(),
    ),
    Operator::new("StridedSlice", &[1], infer, eval).with(STRIDED),
    Operator::new("StridedSlice", &[1], infer, eval).in_domain(TENSORFLOW).with(STRIDED),
    Operator::new("StridedSlice", &[1], infer, eval).in_domain(OPENVINO).with(STRIDED),
    Operator::new("Slice", &[1], infer, eval).in_domain(OPENVINO).with(STRIDED),
];

impl From<SliceError> for Refusal {
    fn from(error: SliceError) -> Self {
        if error.is_undecided() { Refusal::unsupported(error.to_string()) } else { Refusal::invalid(error.to_string()) }
    }
}

impl From<SliceError> for Decline {
    fn from(error: SliceError) -> Self {
        Refusal::from(error).into()
    }
}

/// Looks up operand `i`, with its name in the dialect: its facts or its value. `None` if it is absent.
type OperandLookup<'s> = &'s dyn Fn(usize, &'static str) -> Result<Option<Operand>, SliceError>;

/// Returns the slice of a node of any dialect.
///
/// # Errors
/// Operands are missing or invalid in the dialect. `index_type` returns the element type of an operand, if known.
fn read(
    site: &Site<'_>,
    source: OperandLookup<'_>,
    index_type: &dyn Fn(usize) -> Option<DType>,
) -> Result<SliceSpec, Refusal> {
    let required = |i: usize, name: &'static str| source(i, name)?.ok_or(SliceError::OperandMissing { operand: name });
    let spec = match site.model.meaning(site.node) {
        (OPENVINO, "Slice") => openvino::slice(&openvino::Operands {
            start: required(1, "start")?,
            stop: required(2, "stop")?,
            step: required(3, "step")?,
            axes: source(4, "axes")?,
        }),
        (OPENVINO, _) => openvino::strided_slice(&openvino::StridedOperands {
            begin: required(1, "begin")?,
            end: required(2, "end")?,
            strides: source(3, "strides")?,
            masks: openvino::Masks {
                begin: list_mask(site, "begin_mask")?,
                end: list_mask(site, "end_mask")?,
                new_axis: list_mask(site, "new_axis_mask")?,
                shrink_axis: list_mask(site, "shrink_axis_mask")?,
                ellipsis: list_mask(site, "ellipsis_mask")?,
            },
        }),
        (_, "StridedSlice") => tensorflow::strided_slice(&tensorflow::Operands {
            begin: required(1, "begin")?,
            end: required(2, "end")?,
            strides: required(3, "strides")?,
            masks: bit_masks(site)?,
        }),
        _ if site.version < 10 => {
            let missing = |operand: &'static str| SliceError::OperandMissing { operand };
            let starts = site.attr_ints("starts")?.ok_or(missing("starts"))?;
            let ends = site.attr_ints("ends")?.ok_or(missing("ends"))?;
            onnx::slice_1(starts, ends, site.attr_ints("axes")?, site.slice_rule)
        }
        _ => {
            same_type(index_type)?;
            let operands = onnx::Operands {
                starts: required(1, "starts")?,
                ends: required(2, "ends")?,
                axes: source(3, "axes")?,
                steps: source(4, "steps")?,
            };
            onnx::slice(&operands, site.slice_rule)
        }
    };
    Ok(spec?)
}

/// Checks that starts, ends, axes and steps have one type, as the standard requires: runtimes reject other models.
fn same_type(index_type: &dyn Fn(usize) -> Option<DType>) -> Result<(), Refusal> {
    let mut types = (1..5).filter_map(index_type);
    match types.next() {
        Some(first) if types.any(|other| other != first) => {
            Err(Refusal::invalid("'starts', 'ends', 'axes' and 'steps' have different types"))
        }
        _ => Ok(()),
    }
}

/// Reads the bit masks of a TensorFlow StridedSlice.
fn bit_masks(site: &Site<'_>) -> Result<tensorflow::Masks, Refusal> {
    let mask = |name: &'static str| -> Result<i32, Refusal> {
        let wide = site.attr_int(name)?.unwrap_or(0);
        let wrong = SliceError::Mask { mask: name, reason: "it is no 32-bit integer" };
        Ok(i32::try_from(wide).map_err(|_| wrong)?)
    };
    Ok(tensorflow::Masks {
        begin: mask("begin_mask")?,
        end: mask("end_mask")?,
        ellipsis: mask("ellipsis_mask")?,
        new_axis: mask("new_axis_mask")?,
        shrink_axis: mask("shrink_axis_mask")?,
    })
}

/// Reads a mask of OpenVINO, INTS or a STRING of numbers.
fn list_mask(site: &Site<'_>, name: &'static str) -> Result<Vec<i64>, Refusal> {
    match site.attribute(name) {
        Some(Attribute::String(_)) => Ok(openvino::parse_mask(name, site.attr_str(name)?.unwrap_or_default())?),
        _ => Ok(site.attr_ints(name)?.unwrap_or_default().to_vec()),
    }
}

/// Returns `true` if operands may have elements of this type.
fn is_index(site: &Site<'_>, dtype: DType) -> bool {
    match site.model.meaning(site.node) {
        (OPENVINO, _) => dtype.is_integer(),
        (_, "StridedSlice") => matches!(dtype, DType::Int16 | DType::Int32 | DType::Int64),
        _ => matches!(dtype, DType::Int32 | DType::Int64),
    }
}

/// Reads an operand from its fact. The integer of a bound equals its expression only if that fits 64 bits.
fn known_operand(site: &Site<'_>, scope: &Scope, name: &'static str, fact: &Fact) -> Result<Operand, SliceError> {
    if fact.dtype().is_some_and(|dtype| !is_index(site, dtype)) {
        return Err(SliceError::OperandType { operand: name });
    }
    if let Some(tensor) = fact.constant_tensor() {
        return Operand::of_tensor(name, tensor);
    }
    if let Some(rank) = fact.rank().filter(|&rank| rank != 1) {
        return Err(SliceError::OperandRank { operand: name, rank });
    }
    if let Some(elements) = fact.elements() {
        return Ok(Operand::Elements(
            elements.iter().map(|element| element.as_int().map(|at| scope.unwrapped(at))).collect(),
        ));
    }
    Ok(fact.static_len().map_or(Operand::Unknown, Operand::of_length))
}

/// Returns the slice of a node of one of these operators, as far as the facts of its operands determine it. Returns `None` for
/// other operators.
///
/// # Errors
/// The node violates a rule of its operator, or refers to an attribute of the enclosing function.
pub fn slice_spec(model: &Model, facts: &Facts, id: NodeId, rule: SliceRule) -> Result<Option<SliceSpec>, Refusal> {
    let Some(node) = model.node(id) else { return Ok(None) };
    let Status::Known(operator, version) = registry::status(model, node) else { return Ok(None) };
    if !OPERATORS.iter().any(|own| own.name == operator.name && own.domain == operator.domain) {
        return Ok(None);
    }
    if node.attributes.iter().any(|attribute| matches!(attribute.value, Attribute::Reference { .. })) {
        return Err(Refusal::unsupported("an attribute refers to an attribute of the enclosing function"));
    }
    let site = Site { model, id, node, version, slice_rule: rule, bindings: &[] };
    let nothing = Fact::unknown();
    let fact = |i: usize| node.input(i).map(|value| facts.get(value).unwrap_or(&nothing));
    spec_of(&site, facts.scope(), &fact).map(Some)
}

/// Returns the slice of a node, as far as the facts of its operands determine it.
fn spec_of<'f>(site: &Site<'_>, scope: &Scope, fact: &dyn Fn(usize) -> Option<&'f Fact>) -> Result<SliceSpec, Refusal> {
    let source = |i: usize, name: &'static str| fact(i).map(|fact| known_operand(site, scope, name, fact)).transpose();
    read(site, &source, &|i| fact(i).and_then(Fact::dtype))
}

/// Returns the index map of a slice of any dialect, if all readings agree.
fn map(view: &NodeFacts<'_>, _: usize) -> MapResult {
    let data = view.input(0).ok_or(Undecided::Operands)?;
    if may_be_misread(view.model, view.facts, data) {
        return Err(Undecided::Disputed);
    }
    let spec = spec_of(&view.known_site()?, view.scope(), &|i| view.fact(i))?;
    Ok(Moved::of_first(slicing::index_map(view.scope(), &spec, view.dims(0)?)?))
}

fn infer(cx: &mut InferCx<'_>) -> InferResult {
    let spec = spec_of(cx, cx.scope(), &|i| cx.input(i))?;
    let data = cx.required(0)?;
    let inferred = slicing::infer(cx.scope(), &spec, data.shape())?;
    let disputed = inferred.as_ref().and_then(Inferred::disputed);
    let fact = Fact::tensor(data.dtype(), inferred.map(|inferred| inferred.shape));
    if let Some(end) = disputed {
        let reason = SliceError::Disputed { end }.to_string();
        cx.walk.events.push(Event { node: cx.id, kind: EventKind::Disputed, reason });
    }
    Ok(vec![fact])
}

fn eval(cx: &mut EvalCx<'_>) -> EvalResult {
    let source = |i: usize, name: &'static str| -> Result<Option<Operand>, SliceError> {
        match cx.data(i) {
            None => Ok(None),
            Some(Data::Tensor(tensor)) if is_index(cx, tensor.dtype()) => Operand::of_tensor(name, tensor).map(Some),
            Some(_) => Err(SliceError::OperandType { operand: name }),
        }
    };
    let spec = read(cx, &source, &|i| cx.data(i).and_then(Data::tensor).map(Tensor::dtype))?;
    let data = cx.tensor(0)?;
    let view = slicing::view(data, &spec)?;
    Ok(vec![cx.gathered(data, &view)?.into()])
}
