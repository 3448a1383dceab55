//! ONNX Slice, every version.
//!
//! | rule | 1 | 10, 11, 13 |
//! | --- | --- | --- |
//! | `starts`, `ends`, `axes` | attributes | operands, 1-D, `int32` or `int64` |
//! | `steps` | always 1 | an operand, 1-D; all 1 if omitted |
//! | `axes` omitted | `0 … len(starts) - 1` | the same |
//! | negative axes | counted from the end | counted from the end, in 10 too, whose text is silent |
//!
//! The dim is added once to a negative start or end. Then both are clamped: into `[0, dim]` for a positive step. For
//! a negative step, the start is clamped into `[0, dim - 1]` and the end into `[-1, dim - 1]`. The specification of
//! Slice-11 and Slice-13 defines these clamps.
//!
//! Rejected: a zero step; an axis out of range or repeated; operands whose lengths differ or whose rank is not 1;
//! scalar data.
//!
//! [`SliceRule`] selects a reading where implementations disagree:
//!
//! | case | ONNX Runtime | the text | the reference implementation, numpy |
//! | --- | --- | --- | --- |
//! | negative step, end `INT32_MAX` or `INT64_MAX` | open | an ordinary bound, so the range is empty | as the text |
//! | positive step, end `INT32_MAX` on a longer axis | open | open: it recommends `INT_MAX` for the end of an axis | an ordinary bound |
//! | negative step, start before the first element | starts at the first | starts at the first | empty |
//! | a repeated axis | rejected | rejected | the last one wins |
//! | scalar data, no starts | rejected | rejected | the scalar |
//!
//! An operand that is present but not constant differs from an omitted one: every axis that it may name is unknown.
//!
//! Sources: the specification of Slice-1, Slice-10, Slice-11 and Slice-13, and the results of ONNX Runtime 1.31, the
//! reference implementation of onnx 1.23 and numpy 2.4.
//!
//! # From operands to a shape and to data
//! ```
//! use onnx_slice_fold::dim::{Dim, Scope};
//! use onnx_slice_fold::slicing::{self, Operand, SliceRule, SliceError, onnx};
//! use onnx_slice_fold::tensor::Tensor;
//!
//! // x[1:, ::-2] in the terms of Slice-13.
//! let operands = onnx::Operands {
//!     starts: Operand::constant(&[1, -1]),
//!     ends: Operand::constant(&[i64::MAX, i64::MIN]),
//!     axes: Some(Operand::constant(&[0, -1])),
//!     steps: Some(Operand::constant(&[1, -2])),
//! };
//! let spec = onnx::slice(&operands, SliceRule::Agree)?;
//!
//! let scope = Scope::new();
//! let shape = [Dim::symbol(scope.named("S")), Dim::constant(4)];
//! let inferred = slicing::infer(&scope, &spec, Some(&shape))?.expect("the rank is known");
//! let text: Vec<String> = inferred.shape.iter().map(|dim| scope.format(dim)).collect();
//! assert_eq!(text, ["max(0, S - 1)", "2"]);
//!
//! let data = Tensor::from_vec(&[2, 4], (0..8i64).collect())?;
//! assert_eq!(slicing::slice(&data, &spec)?.to_i64s(), Some(vec![7, 5]));
//!
//! // Rejected and disputed slices.
//! let axes = [0, 0];
//! let twice = onnx::slice_1(&[0, 1], &[2, 3], Some(&axes), SliceRule::Agree)?;
//! assert_eq!(slicing::slice(&data, &twice).err(), Some(SliceError::RepeatedAxis { axis: 0 }));
//! let steps = Some(Operand::constant(&[-1]));
//! let (starts, ends) = (Operand::constant(&[-1]), Operand::constant(&[i64::MAX]));
//! let disputed = onnx::Operands { starts, ends, axes: None, steps };
//! assert!(slicing::slice(&data, &onnx::slice(&disputed, SliceRule::Agree)?).is_err());
//! assert_eq!(slicing::slice(&data, &onnx::slice(&disputed, SliceRule::OnnxRuntime)?)?.shape(), [2, 4]);
//! assert_eq!(slicing::slice(&data, &onnx::slice(&disputed, SliceRule::Spec)?)?.shape(), [0, 4]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use super::reading::{Floor, IntMax, Reading};
use super::spec::{Bound, MAX_ENTRIES, Operand, Range, Repeated, SliceSpec, common_length};
use super::{SliceError, SliceRule};

/// The operands of Slice-10 and later.
#[derive(Clone, Debug)]
pub struct Operands {
    /// The start of each range.
    pub starts: Operand,
    /// The end of each range.
    pub ends: Operand,
    /// The axis of each range; `None` if omitted.
    pub axes: Option<Operand>,
    /// The step of each range; `None` if omitted.
    pub steps: Option<Operand>,
}

/// Returns how a rule reads ONNX ranges.
pub const fn reading(rule: SliceRule) -> Reading {
    match rule {
        SliceRule::Agree => Reading { floor: Floor::First, int_max: IntMax::DisputedBackward },
        SliceRule::OnnxRuntime => Reading { floor: Floor::First, int_max: IntMax::Open },
        SliceRule::Spec => Reading { floor: Floor::First, int_max: IntMax::OpenForward },
        SliceRule::Numpy => Reading { floor: Floor::BeforeFirst, int_max: IntMax::Ordinary },
    }
}

/// Reads Slice-10, 11 and 13.
///
/// # Errors
/// The operands' lengths differ or a step is 0.
pub fn slice(operands: &Operands, rule: SliceRule) -> Result<SliceSpec, SliceError> {
    let Operands { starts, ends, axes, steps } = operands;
    let named = [("starts", Some(starts)), ("ends", Some(ends)), ("axes", axes.as_ref()), ("steps", steps.as_ref())];
    let numpy = rule == SliceRule::Numpy;
    let Some(entries) = common_length(&named)? else {
        return Ok(SliceSpec::unknown(reading(rule), true, numpy));
    };
    let range = |i: usize| {
        let step = match steps {
            None => Some(1),
            Some(steps) => steps.get(i).and_then(|step| step.as_const()),
        };
        let axis = match axes {
            None => i64::try_from(i).ok(),
            Some(axes) => axes.get(i).and_then(|axis| axis.as_const()),
        };
        Ok((axis, Range::new(starts.bound(i), ends.bound(i), step)?))
    };
    let ranges = (0..entries).map(range).collect::<Result<Vec<_>, SliceError>>()?;
    let repeated = if numpy { Repeated::LastWins } else { Repeated::Refused };
    Ok(SliceSpec::named(reading(rule), ranges, repeated, numpy))
}

/// Reads Slice-1. `axes` is `None` when the attribute is absent.
///
/// # Errors
/// The attributes' lengths differ, or an attribute is too long.
pub fn slice_1(starts: &[i64], ends: &[i64], axes: Option<&[i64]>, rule: SliceRule) -> Result<SliceSpec, SliceError> {
    let entries = starts.len().max(ends.len()).max(axes.map_or(0, <[i64]>::len));
    if entries > MAX_ENTRIES {
        return Err(SliceError::EntryLimit { entries, limit: MAX_ENTRIES });
    }
    let operands = Operands {
        starts: Operand::constant(starts),
        ends: Operand::constant(ends),
        axes: axes.map(Operand::constant),
        steps: None,
    };
    slice(&operands, rule)
}

/// Returns the ONNX *start* for this bound, also for an open one. `None` if the bound is not a number.
pub fn start_of(begin: &Bound, step: i64) -> Option<i64> {
    match begin {
        Bound::Open => Some(if step > 0 { 0 } else { -1 }),
        Bound::At(at) => at.as_const(),
        Bound::Unknown => None,
    }
}

/// Returns the ONNX *end* for this bound, also for an open one. `None` if the bound is not a number.
pub fn end_of(end: &Bound, step: i64) -> Option<i64> {
    match end {
        Bound::Open => Some(if step > 0 { i64::MAX } else { i64::MIN }),
        Bound::At(at) => at.as_const(),
        Bound::Unknown => None,
    }
}
