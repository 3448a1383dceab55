//! The entries of a slice: sparse, as its dialect writes them, and dense, one item per axis.

use std::collections::BTreeMap;

use super::SliceError;
use super::reading::Reading;
use crate::dim::Dim;
use crate::tensor::{DType, Tensor};

/// The limit of entries that are read one by one; no tensor has as many axes.
pub(super) const MAX_ENTRIES: usize = 4096;

/// The known elements of a 1-D integer operand of a slice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operand {
    /// The length is known, and some elements are.
    Elements(Vec<Option<Dim>>),
    /// Nothing is known of a present operand; an omitted operand is different.
    Unknown,
}

impl Operand {
    /// Creates an operand whose elements are all integers.
    pub fn constant(values: &[i64]) -> Operand {
        Operand::Elements(values.iter().map(|&value| Some(Dim::constant(value))).collect())
    }

    /// Creates an operand of known length and unknown content.
    pub fn of_length(length: usize) -> Operand {
        if length > MAX_ENTRIES { Operand::Unknown } else { Operand::Elements(vec![None; length]) }
    }

    /// Reads a constant operand. Clamps elements of `uint64` above the largest `int64` to it: no axis is longer.
    ///
    /// # Errors
    /// The tensor is not 1-D, does not hold integers or is too long. `name` is the dialect's name of the operand.
    pub fn of_tensor(name: &'static str, tensor: &Tensor) -> Result<Operand, SliceError> {
        if tensor.rank() != 1 {
            return Err(SliceError::OperandRank { operand: name, rank: tensor.rank() });
        }
        if tensor.len() > MAX_ENTRIES {
            return Err(SliceError::EntryLimit { entries: tensor.len(), limit: MAX_ENTRIES });
        }
        let wrong_type = SliceError::OperandType { operand: name };
        let values = match tensor.dtype() {
            DType::Uint64 => {
                let values = tensor.elements::<u64>().ok_or(wrong_type)?;
                values.iter().map(|&value| i64::try_from(value).unwrap_or(i64::MAX)).collect()
            }
            dtype if dtype.is_integer() => tensor.to_i64s().ok_or(wrong_type)?,
            _ => return Err(wrong_type),
        };
        Ok(Operand::constant(&values))
    }

    /// Returns the number of elements, if known.
    pub fn len(&self) -> Option<usize> {
        match self {
            Operand::Elements(elements) => Some(elements.len()),
            Operand::Unknown => None,
        }
    }

    /// Returns `true` if the operand is known to be empty.
    pub fn is_empty(&self) -> bool {
        self.len() == Some(0)
    }

    /// Returns element `i`, if known.
    pub fn get(&self, i: usize) -> Option<&Dim> {
        match self {
            Operand::Elements(elements) => elements.get(i).and_then(Option::as_ref),
            Operand::Unknown => None,
        }
    }

    /// Returns element `i` as the bound of a range.
    pub(super) fn bound(&self, i: usize) -> Bound {
        self.get(i).map_or(Bound::Unknown, |value| Bound::At(value.clone()))
    }
}

/// Returns the common length of operands with one element per entry; `None` if all lengths are unknown.
pub(super) fn common_length(operands: &[(&'static str, Option<&Operand>)]) -> Result<Option<usize>, SliceError> {
    let known = operands.iter().filter_map(|&(name, operand)| Some((name, operand?.len()?)));
    let mut common: Option<(&'static str, usize)> = None;
    for (name, length) in known {
        match common {
            Some((first, first_len)) if first_len != length => {
                return Err(SliceError::LengthsDiffer { first, first_len, second: name, second_len: length });
            }
            Some(_) => {}
            None => common = Some((name, length)),
        }
    }
    Ok(common.map(|(_, length)| length))
}

/// A begin or end of a range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bound {
    /// The bound is open: the first or last element in the range's direction.
    Open,
    /// A position, not clamped yet; a negative one counts from the end.
    At(Dim),
    /// The bound is unknown and may be open.
    Unknown,
}

/// `begin:end:step` on one axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Range {
    /// Where it begins.
    pub begin: Bound,
    /// Where it ends, exclusive.
    pub end: Bound,
    /// The step, not 0; `None` if unknown.
    pub step: Option<i64>,
}

impl Range {
    /// A range with unknown bounds and step.
    pub const UNKNOWN: Range = Range { begin: Bound::Unknown, end: Bound::Unknown, step: None };

    /// Creates a range.
    ///
    /// # Errors
    /// [`SliceError::ZeroStep`].
    pub fn new(begin: Bound, end: Bound, step: Option<i64>) -> Result<Range, SliceError> {
        if step == Some(0) { Err(SliceError::ZeroStep) } else { Ok(Range { begin, end, step }) }
    }

    /// Creates a range of integers; `None` is open.
    ///
    /// # Errors
    /// [`SliceError::ZeroStep`].
    pub fn constant(begin: Option<i64>, end: Option<i64>, step: i64) -> Result<Range, SliceError> {
        let bound = |value: Option<i64>| value.map_or(Bound::Open, |value| Bound::At(Dim::constant(value)));
        Range::new(bound(begin), bound(end), Some(step))
    }
}

/// The effect of a slice on one axis of the data, or the insertion of an axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AxisOp {
    /// Keeps the axis.
    Keep,
    /// Selects a range of the axis.
    Range(Range),
    /// Selects one index and removes the axis. The index is checked against the dim and never clamped.
    Index(Bound),
    /// Inserts an axis of dim 1.
    NewAxis,
}

/// One entry of a slice that addresses the axes in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// All axes that no other entry selects from.
    Ellipsis,
    /// Inserts an axis of dim 1.
    NewAxis,
    /// Selects one index of the next axis.
    Index(Bound),
    /// Selects a range of the next axis.
    Range(Range),
}

/// A dialect's treatment of two entries that name the same axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeated {
    /// The slice is rejected.
    Refused,
    /// The last one wins.
    LastWins,
}

/// The entries of a slice, with axes addressed as in its dialect.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Entries {
    /// Entries in the order of the axes. An ellipsis at the end is implied if there is none.
    InOrder(Vec<Entry>),
    /// Ranges with their axes. A negative axis counts from the end; `None` is an unknown axis.
    Named {
        ranges: Vec<(Option<i64>, Range)>,
        repeated: Repeated,
        /// `true` if data of rank 0 is accepted without entries.
        scalars: bool,
    },
    /// The number of entries is unknown.
    Unknown {
        /// `true` if all entries are ranges, so that the rank does not change.
        ranges_only: bool,
        /// `true` if data of rank 0 is accepted.
        scalars: bool,
    },
}

/// The result of a dialect's reader: entries, and the reading of their ranges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SliceSpec {
    /// The reading of the ranges.
    pub reading: Reading,
    entries: Entries,
}

impl SliceSpec {
    /// Creates a spec of entries in the order of the axes.
    ///
    /// # Errors
    /// [`SliceError::Ellipses`] if several entries are ellipses.
    pub fn in_order(reading: Reading, entries: Vec<Entry>) -> Result<SliceSpec, SliceError> {
        if entries.iter().filter(|entry| matches!(entry, Entry::Ellipsis)).count() > 1 {
            return Err(SliceError::Ellipses);
        }
        Ok(SliceSpec { reading, entries: Entries::InOrder(entries) })
    }

    /// Creates a spec of ranges on named axes; `None` is an unknown axis. `scalars` accepts data of rank 0 if there
    /// are no entries.
    pub fn named(reading: Reading, ranges: Vec<(Option<i64>, Range)>, repeated: Repeated, scalars: bool) -> SliceSpec {
        SliceSpec { reading, entries: Entries::Named { ranges, repeated, scalars } }
    }

    /// Creates a spec with an unknown number of entries. `ranges_only` means that all entries are ranges; `scalars`
    /// accepts data of rank 0.
    pub fn unknown(reading: Reading, ranges_only: bool, scalars: bool) -> SliceSpec {
        SliceSpec { reading, entries: Entries::Unknown { ranges_only, scalars } }
    }

    /// Returns the entries, if they address the axes in order.
    pub fn entries(&self) -> Option<&[Entry]> {
        match &self.entries {
            Entries::InOrder(entries) => Some(entries),
            _ => None,
        }
    }

    /// Returns the ranges with their axes, if they name their axes.
    pub fn named_ranges(&self) -> Option<&[(Option<i64>, Range)]> {
        match &self.entries {
            Entries::Named { ranges, .. } => Some(ranges),
            _ => None,
        }
    }

    /// Returns the effect on each axis of data of this rank, in the order of the axes; inserted axes are at their
    /// positions in the result. `None` if the rank of the result is unknown.
    ///
    /// # Errors
    /// The slice does not fit the rank.
    pub fn dense(&self, rank: usize) -> Result<Option<Vec<AxisOp>>, SliceError> {
        match &self.entries {
            Entries::InOrder(entries) => dense_in_order(entries, rank).map(Some),
            Entries::Named { ranges, repeated, scalars } => {
                if rank == 0 && !(*scalars && ranges.is_empty()) {
                    return Err(SliceError::Scalar);
                }
                dense_named(ranges, *repeated, rank).map(Some)
            }
            Entries::Unknown { scalars, .. } if rank == 0 && !scalars => Err(SliceError::Scalar),
            Entries::Unknown { ranges_only: true, .. } => Ok(Some(vec![AxisOp::Range(Range::UNKNOWN); rank])),
            Entries::Unknown { ranges_only: false, .. } => Ok(None),
        }
    }
}

fn dense_in_order(entries: &[Entry], rank: usize) -> Result<Vec<AxisOp>, SliceError> {
    let real = entries.iter().filter(|entry| matches!(entry, Entry::Index(_) | Entry::Range(_))).count();
    let spare = rank.checked_sub(real).ok_or(SliceError::TooManyEntries { entries: real, rank })?;
    let mut ops = Vec::with_capacity(entries.len().saturating_add(spare));
    for entry in entries {
        match entry {
            Entry::Ellipsis => ops.extend(std::iter::repeat_n(AxisOp::Keep, spare)),
            Entry::NewAxis => ops.push(AxisOp::NewAxis),
            Entry::Index(at) => ops.push(AxisOp::Index(at.clone())),
            Entry::Range(range) => ops.push(AxisOp::Range(range.clone())),
        }
    }
    if !entries.contains(&Entry::Ellipsis) {
        ops.extend(std::iter::repeat_n(AxisOp::Keep, spare));
    }
    Ok(ops)
}

fn dense_named(ranges: &[(Option<i64>, Range)], repeated: Repeated, rank: usize) -> Result<Vec<AxisOp>, SliceError> {
    let mut named: BTreeMap<usize, &Range> = BTreeMap::new();
    let mut unplaced = 0usize;
    for (axis, range) in ranges {
        let Some(axis) = *axis else {
            unplaced += 1;
            continue;
        };
        let place = place_of(axis, rank)?;
        if named.insert(place, range).is_some() && repeated == Repeated::Refused {
            return Err(SliceError::RepeatedAxis { axis: place });
        }
    }
    // Every entry selects from a different axis.
    if repeated == Repeated::Refused && ranges.len() > rank {
        return Err(SliceError::TooManyEntries { entries: ranges.len(), rank });
    }
    // An entry with an unknown axis may apply to every axis that no other entry reserves.
    let may_touch = |axis: usize| unplaced > 0 && (repeated == Repeated::LastWins || !named.contains_key(&axis));
    let op = |axis: usize| match named.get(&axis) {
        _ if may_touch(axis) => AxisOp::Range(Range::UNKNOWN),
        Some(&range) => AxisOp::Range(range.clone()),
        None => AxisOp::Keep,
    };
    Ok((0..rank).map(op).collect())
}

/// Resolves an axis; a negative one counts from the end.
fn place_of(axis: i64, rank: usize) -> Result<usize, SliceError> {
    let outside = SliceError::AxisOutOfRange { axis, rank };
    let wide = i64::try_from(rank).unwrap_or(i64::MAX);
    let place = if axis < 0 { axis.checked_add(wide) } else { Some(axis) };
    place.filter(|place| (0..wide).contains(place)).and_then(|place| usize::try_from(place).ok()).ok_or(outside)
}
