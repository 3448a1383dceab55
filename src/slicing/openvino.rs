//! OpenVINO StridedSlice-1 and Slice-8.
//!
//! The rules follow the results of OpenVINO 2026.4. Its published texts differ in places: an empty range "yields one
//! element", a reversed open end "excludes the first", masks "may have any length".
//!
//! | | StridedSlice-1 | Slice-8 |
//! | --- | --- | --- |
//! | operands | `begin`, `end`, `strides`: 1-D, of one length | `start`, `stop`, `step`, `axes`: 1-D, of one length |
//! | omitted | `strides`: all 1 | `axes`: `0 … len(start) - 1` |
//! | entries | in order; element `i` of the masks gives the kind of entry `i`: **ellipsis, then new axis, then shrink, then range** | ranges on named axes, negative ones counted from the end |
//! | masks | lists of 0 and 1, each empty or as long as `begin_mask`; missing elements are 0, elements after the last entry are ignored | none |
//! | ellipsis | all axes that no other entry selects from; implied at the end if absent | |
//! | new axis | dim 1; selects from no axis of the data | |
//! | shrink | the index `begin`, checked and never clamped; stride (0 and negative ones too), `end` and open bounds are ignored | |
//! | range | the dim is added once to a negative bound; forward both are clamped into `[0, dim]`, backward the end into `[-1, dim - 1]` and the begin into `[0, dim - 1]` | the same |
//! | end `INT_MAX` | an ordinary bound | an ordinary bound |
//! | scalars | accepted if no entry selects from an axis | rejected |
//!
//! Both reject operands whose lengths differ or whose rank is not 1, and a step of 0 on a range.
//!
//! StridedSlice-1 rejects a mask of another length or with other elements, and a non-empty mask with an empty
//! `begin_mask`. It also rejects several ellipses, more ranges and shrinks than axes, and an index outside its axis.
//!
//! Slice-8 rejects more entries than axes, and an axis out of range or repeated.
//!
//! # From operands to a shape and to data
//! ```
//! use onnx_slice_fold::dim::{Dim, Scope};
//! use onnx_slice_fold::slicing::{self, Operand, SliceError, openvino};
//! use onnx_slice_fold::tensor::Tensor;
//!
//! // x[:, 1] by StridedSlice-1, with a mask as converters write it.
//! let operands = openvino::StridedOperands {
//!     begin: Operand::constant(&[0, 1]),
//!     end: Operand::constant(&[0, 0]),
//!     strides: None,
//!     masks: openvino::Masks {
//!         begin: openvino::parse_mask("begin_mask", "1,0")?,
//!         end: vec![1, 0],
//!         shrink_axis: vec![0, 1],
//!         ..Default::default()
//!     },
//! };
//! let spec = openvino::strided_slice(&operands)?;
//! let scope = Scope::new();
//! let shape = [Dim::symbol(scope.named("N")), Dim::constant(3)];
//! let inferred = slicing::infer(&scope, &spec, Some(&shape))?.expect("the rank is known");
//! assert_eq!(inferred.shape, shape[..1]);
//! let data = Tensor::from_vec(&[2, 3], (0..6i64).collect())?;
//! assert_eq!(slicing::slice(&data, &spec)?.to_i64s(), Some(vec![1, 4]));
//!
//! // x[-10:-20:-1] by Slice-8 begins at the first element.
//! let operands = openvino::Operands {
//!     start: Operand::constant(&[-10]),
//!     stop: Operand::constant(&[-20]),
//!     step: Operand::constant(&[-1]),
//!     axes: Some(Operand::constant(&[1])),
//! };
//! assert_eq!(slicing::slice(&data, &openvino::slice(&operands)?)?.to_i64s(), Some(vec![0, 3]));
//! let zero = openvino::Operands { step: Operand::constant(&[0]), ..operands };
//! assert_eq!(openvino::slice(&zero).err(), Some(SliceError::ZeroStep));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use super::SliceError;
use super::reading::{Floor, IntMax, Reading};
use super::spec::{Operand, Range, Repeated, SliceSpec, common_length};
use super::tensorflow::{Kind, entry_of};

/// OpenVINO's reading of ranges.
pub const READING: Reading = Reading { floor: Floor::First, int_max: IntMax::Ordinary };

/// The operands and attributes of StridedSlice-1.
#[derive(Clone, Debug)]
pub struct StridedOperands {
    pub begin: Operand,
    pub end: Operand,
    /// `None` if omitted.
    pub strides: Option<Operand>,
    pub masks: Masks,
}

/// The masks of StridedSlice-1: element `i` applies to entry `i`.
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

/// Parses a mask from a STRING attribute as converters write it: numbers separated by commas, or empty.
///
/// # Errors
/// The text is not such a list. `mask` is the attribute's name.
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
    /// `None` if omitted.
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
