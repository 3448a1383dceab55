//! OpenVINO StridedSlice-1 and Slice-8.
//!
//! **StridedSlice-1** is TensorFlow's StridedSlice with other masks: lists of 0 and 1 instead of bits, and the same order where
//! several are set: **ellipsis, then new axis, then shrink, then range**.
//! * Each mask is empty or exactly as long as `begin_mask`; if `begin_mask` is empty all are. What a list leaves out is 0, and
//!   what it has beyond the last entry means nothing. At most one entry is an ellipsis.
//! * `begin`, `end` and `strides` are 1-D and of one length; `strides` left out is all 1.
//! * Shrink ignores stride (0 and negative ones too), `end` and the masks for open bounds. Its index is checked, not clamped.
//! * A stride of 0 is refused on a range only.
//!
//! **Slice-8** takes ranges on named axes, with `start`, `stop` and `step` 1-D and of one length, no longer than the rank.
//! `axes` left out is `0 … len(start) - 1`; negative ones count from the end, and none may be out of range or named
//! twice. Scalars are refused, and so is a zero step. An end of `INT_MAX` means nothing special.
//!
//! Bounds are clamped as ONNX has it: a backward range that begins before the first element begins at the first. The
//! published texts differ in places (an empty range "yields one element", a reversed open end "excludes the first"); the rules
//! here are what OpenVINO computes.

use super::SliceError;
use super::resolve::{Floor, IntMax, Reading};
use super::spec::{Operand, Range, Repeated, SliceSpec, common_length};
use super::tensorflow::{Kind, entry_of};

/// How OpenVINO reads ranges.
pub const READING: Reading = Reading { floor: Floor::First, int_max: IntMax::Ordinary };

/// The operands and attributes of StridedSlice-1.
#[derive(Clone, Debug)]
pub struct StridedOperands {
    pub begin: Operand,
    pub end: Operand,
    /// `None` when left out.
    pub strides: Option<Operand>,
    pub masks: Masks,
}

/// The masks of StridedSlice-1: element `i` speaks of entry `i`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Masks {
    pub begin: Vec<i64>,
    pub end: Vec<i64>,
    pub new_axis: Vec<i64>,
    pub shrink_axis: Vec<i64>,
    pub ellipsis: Vec<i64>,
}

impl Masks {
    fn check(&self) -> Result<(), SliceError> {
        let named = [
            ("begin_mask", &self.begin),
            ("end_mask", &self.end),
            ("new_axis_mask", &self.new_axis),
            ("shrink_axis_mask", &self.shrink_axis),
            ("ellipsis_mask", &self.ellipsis),
        ];
        for (mask, elements) in named {
            if !elements.is_empty() && elements.len() != self.begin.len() {
                return Err(SliceError::Mask { mask, reason: "it is not as long as begin_mask" });
            }
            if elements.iter().any(|element| !(0..=1).contains(element)) {
                return Err(SliceError::Mask { mask, reason: "an element is neither 0 nor 1" });
            }
        }
        if self.ellipsis.iter().filter(|&&element| element == 1).count() > 1 {
            return Err(SliceError::Ellipses);
        }
        Ok(())
    }

    fn kind(&self, i: usize) -> Kind {
        let set = |mask: &[i64]| mask.get(i) == Some(&1);
        if set(&self.ellipsis) {
            Kind::Ellipsis
        } else if set(&self.new_axis) {
            Kind::NewAxis
        } else if set(&self.shrink_axis) {
            Kind::Index
        } else {
            Kind::Range { open_begin: set(&self.begin), open_end: set(&self.end) }
        }
    }

    fn keep_rank(&self) -> bool {
        let none = |mask: &[i64]| mask.iter().all(|&element| element == 0);
        none(&self.new_axis) && none(&self.shrink_axis)
    }
}

/// A mask as converters write it in a STRING attribute: numbers between commas, or nothing.
///
/// # Errors
/// It is no such list. `mask` is the attribute's name.
pub fn parse_mask(mask: &'static str, text: &str) -> Result<Vec<i64>, SliceError> {
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    let wrong = |_| SliceError::Mask { mask, reason: "it is no list of numbers" };
    text.split(',').map(|element| element.trim().parse().map_err(wrong)).collect()
}

/// Reads a StridedSlice-1.
///
/// # Errors
/// The operands or masks break one of the rules above.
pub fn strided_slice(operands: &StridedOperands) -> Result<SliceSpec, SliceError> {
    let StridedOperands { begin, end, strides, masks } = operands;
    masks.check()?;
    let named = [("begin", Some(begin)), ("end", Some(end)), ("strides", strides.as_ref())];
    let Some(count) = common_length(&named)? else {
        return Ok(SliceSpec::unknown(READING, masks.keep_rank(), true));
    };
    let entry = |i: usize| {
        let stride = match strides {
            None => Some(1),
            Some(strides) => strides.get(i).and_then(|stride| stride.as_const()),
        };
        entry_of(masks.kind(i), begin.bound(i), end.bound(i), stride)
    };
    SliceSpec::in_order(READING, (0..count).map(entry).collect::<Result<_, SliceError>>()?)
}

/// The operands of Slice-8.
#[derive(Clone, Debug)]
pub struct Operands {
    pub start: Operand,
    pub stop: Operand,
    pub step: Operand,
    /// `None` when left out.
    pub axes: Option<Operand>,
}

/// Reads a Slice-8.
///
/// # Errors
/// The operands' lengths differ or a step is 0.
pub fn slice(operands: &Operands) -> Result<SliceSpec, SliceError> {
    let Operands { start, stop, step, axes } = operands;
    let named = [("start", Some(start)), ("stop", Some(stop)), ("step", Some(step)), ("axes", axes.as_ref())];
    let Some(entries) = common_length(&named)? else {
        return Ok(SliceSpec::unknown(READING, true, false));
    };
    let range = |i: usize| {
        let axis = match axes {
            None => i64::try_from(i).ok(),
            Some(axes) => axes.get(i).and_then(|axis| axis.as_const()),
        };
        let step = step.get(i).and_then(|step| step.as_const());
        Ok((axis, Range::new(start.bound(i), stop.bound(i), step)?))
    };
    let ranges = (0..entries).map(range).collect::<Result<Vec<_>, SliceError>>()?;
    Ok(SliceSpec::named(READING, ranges, Repeated::Refused, false))
}
