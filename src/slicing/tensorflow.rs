//! TensorFlow StridedSlice.
//!
//! The rules are those of `tf.raw_ops.StridedSlice` as TensorFlow computes it, which its documentation does not always say.
//!
//! * `begin`, `end` and `strides` are 1-D and of one length, the number of entries, at most 31. Entry `i` is told what it is by
//!   bit `i` of the masks. Where several have the bit: **ellipsis, then new axis, then shrink, then range**.
//! * An ellipsis stands for as many axes as are left over, which may be none; without one there is one at the end. More
//!   than one is refused, and that counts bits beyond the last entry too. Other bits beyond it mean nothing.
//! * A new axis has dim 1 and takes no axis of the data; its `begin`, `end` and `strides` mean nothing.
//! * Shrink takes the one index `begin` and drops the axis. The index is checked, not clamped. `end` and the masks for
//!   open bounds mean nothing; the stride must be positive.
//! * A range has an open begin where `begin_mask` has the bit, and an open end where `end_mask` has it. A stride of 0 is
//!   refused. Bounds are clamped as Python does: a backward range that begins before the first element takes nothing.
//! * Scalars can be sliced as long as no entry wants an axis.

use super::SliceError;
use super::resolve::{Floor, IntMax, Reading};
use super::spec::{Bound, Entry, Operand, Range, SliceSpec, common_length};

/// How TensorFlow reads ranges.
pub const READING: Reading = Reading { floor: Floor::BeforeFirst, int_max: IntMax::Ordinary };

/// The masks have bits for so many entries and a sign.
const MOST_ENTRIES: usize = 31;

/// The operands and attributes of StridedSlice.
#[derive(Clone, Debug)]
pub struct Operands {
    pub begin: Operand,
    pub end: Operand,
    pub strides: Operand,
    pub masks: Masks,
}

/// The masks: bit `i` speaks of entry `i`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Masks {
    pub begin: i32,
    pub end: i32,
    pub ellipsis: i32,
    pub new_axis: i32,
    pub shrink_axis: i32,
}

/// What one entry is.
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

/// An entry of this kind, as TensorFlow and OpenVINO have it.
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
