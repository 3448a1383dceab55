//! TensorFlow StridedSlice.
//!
//! The rules follow the results of `tf.raw_ops.StridedSlice` in TensorFlow 2.21; its documentation is incomplete.
//! `begin`, `end` and `strides` are 1-D and have one element per entry. Bit `i` of the masks gives the kind of entry
//! `i`. If several masks have the bit, the first of these rows applies:
//!
//! | entry | mask | data's axes | result's axes | `begin` | `end` | `strides` |
//! | --- | --- | --- | --- | --- | --- | --- |
//! | ellipsis | `ellipsis_mask` | all that no other entry selects from, maybe none | the same | ignored | ignored | ignored |
//! | new axis | `new_axis_mask` | none | one of dim 1 | ignored | ignored | ignored |
//! | shrink | `shrink_axis_mask` | one | none | the index, checked and never clamped | ignored | must be positive |
//! | range | none | one | one | clamped; open where `begin_mask` has the bit | clamped; open where `end_mask` has it | any but 0 |
//!
//! * An ellipsis at the end is implied if there is none. Bits after the last entry are ignored, except in
//!   `ellipsis_mask`.
//! * The dim is added once to a negative bound. Forward, both bounds are then clamped into `[0, dim]`; backward into
//!   `[-1, dim - 1]`. A backward range that begins before the first element is therefore empty, as in Python.
//! * Scalars are accepted if no entry selects from an axis.
//!
//! Rejected: operands whose lengths differ or whose rank is not 1; more than 31 entries; several ellipses; more
//! ranges and shrinks than axes; a stride of 0 on a range or shrink; a negative stride on a shrink; an index outside
//! its axis.
//!
//! # From operands to a shape and to data
//! ```
//! use onnx_slice_fold::dim::{Dim, Scope};
//! use onnx_slice_fold::slicing::{self, Operand, SliceError, tensorflow};
//! use onnx_slice_fold::tensor::Tensor;
//!
//! // x[-1, ..., tf.newaxis, 1:]
//! let operands = tensorflow::Operands {
//!     begin: Operand::constant(&[-1, 0, 0, 1]),
//!     end: Operand::constant(&[0, 0, 0, 0]),
//!     strides: Operand::constant(&[1, 1, 1, 1]),
//!     masks: tensorflow::Masks { shrink_axis: 1, ellipsis: 2, new_axis: 4, end: 8, ..Default::default() },
//! };
//! let spec = tensorflow::strided_slice(&operands)?;
//!
//! let scope = Scope::new();
//! let shape = ["N", "H", "W"].map(|name| Dim::symbol(scope.named(name)));
//! let inferred = slicing::infer(&scope, &spec, Some(&shape))?.expect("the rank is known");
//! let text: Vec<String> = inferred.shape.iter().map(|dim| scope.format(dim)).collect();
//! assert_eq!(text, ["H", "1", "max(0, W - 1)"]);
//!
//! let data = Tensor::from_vec(&[2, 1, 3], (0..6i64).collect())?;
//! let result = slicing::slice(&data, &spec)?;
//! assert_eq!((result.shape(), result.to_i64s()), (&[1, 1, 2][..], Some(vec![4, 5])));
//! let empty = Tensor::from_vec(&[0, 1, 3], Vec::<i64>::new())?;
//! assert_eq!(slicing::slice(&empty, &spec).err(), Some(SliceError::IndexOutOfRange { index: -1, dim: 0 }));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use super::SliceError;
use super::reading::{Floor, IntMax, Reading};
use super::spec::{Bound, Entry, Operand, Range, SliceSpec, common_length};

/// TensorFlow's reading of ranges.
pub const READING: Reading = Reading { floor: Floor::BeforeFirst, int_max: IntMax::Ordinary };

/// The masks have a bit for each of 31 entries, and a sign bit.
const MOST_ENTRIES: usize = 31;

/// The operands and attributes of StridedSlice.
#[derive(Clone, Debug)]
pub struct Operands {
    pub begin: Operand,
    pub end: Operand,
    pub strides: Operand,
    pub masks: Masks,
}

/// The masks: bit `i` applies to entry `i`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Masks {
    pub begin: i32,
    pub end: i32,
    pub ellipsis: i32,
    pub new_axis: i32,
    pub shrink_axis: i32,
}

/// The kind of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Ellipsis,
    NewAxis,
    Index,
    Range { open_begin: bool, open_end: bool },
}

impl Masks {
    fn kind(&self, i: usize) -> Kind {
        let bit = |mask: i32| i < 32 && (mask >> i) & 1 != 0;
        if bit(self.ellipsis) {
            Kind::Ellipsis
        } else if bit(self.new_axis) {
            Kind::NewAxis
        } else if bit(self.shrink_axis) {
            Kind::Index
        } else {
            Kind::Range { open_begin: bit(self.begin), open_end: bit(self.end) }
        }
    }
}

/// Reads a StridedSlice.
///
/// # Errors
/// The operands or masks break one of the rules above.
pub fn strided_slice(operands: &Operands) -> Result<SliceSpec, SliceError> {
    let Operands { begin, end, strides, masks } = operands;
    if masks.ellipsis.count_ones() > 1 {
        return Err(SliceError::Ellipses);
    }
    let named = [("begin", Some(begin)), ("end", Some(end)), ("strides", Some(strides))];
    let Some(count) = common_length(&named)? else {
        return Ok(SliceSpec::unknown(READING, masks.new_axis == 0 && masks.shrink_axis == 0, true));
    };
    if count > MOST_ENTRIES {
        return Err(SliceError::EntryLimit { entries: count, limit: MOST_ENTRIES });
    }
    let entry = |i: usize| {
        let stride = strides.get(i).and_then(|stride| stride.as_const());
        Ok(match masks.kind(i) {
            Kind::Index => match stride {
                Some(0) => return Err(SliceError::ZeroStep),
                Some(stride) if stride < 0 => return Err(SliceError::IndexStride { stride }),
                _ => Entry::Index(begin.bound(i)),
            },
            kind => entry_of(kind, begin.bound(i), end.bound(i), stride)?,
        })
    };
    SliceSpec::in_order(READING, (0..count).map(entry).collect::<Result<_, SliceError>>()?)
}

/// Builds an entry of this kind, as TensorFlow and OpenVINO define it.
pub(super) fn entry_of(kind: Kind, begin: Bound, end: Bound, stride: Option<i64>) -> Result<Entry, SliceError> {
    Ok(match kind {
        Kind::Ellipsis => Entry::Ellipsis,
        Kind::NewAxis => Entry::NewAxis,
        Kind::Index => Entry::Index(begin),
        Kind::Range { open_begin, open_end } => {
            let begin = if open_begin { Bound::Open } else { begin };
            let end = if open_end { Bound::Open } else { end };
            Entry::Range(Range::new(begin, end, stride)?)
        }
    })
}
