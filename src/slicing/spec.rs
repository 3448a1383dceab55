//! What a slice says: sparse, as its dialect writes it, and dense, one item an axis.

use std::collections::BTreeMap;

use super::SliceError;
use super::reading::Reading;
use crate::dim::Dim;
use crate::tensor::{DType, Tensor};

/// More entries than this are more than any tensor has axes; they are not looked at one by one.
pub(super) const MAX_ENTRIES: usize = 4096;

/// What is known of a 1-D integer operand of a slice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operand {
    /// Its length, and each element that is known.
    Elements(Vec<Option<Dim>>),
    /// Nothing; which is not the same as the operand being left out.
    Unknown,
}

impl Operand {
    /// An operand of which every element is a number.
    pub fn constant(values: &[i64]) -> Operand {
        Operand::Elements(values.iter().map(|&value| Some(Dim::constant(value))).collect())
    }

    /// An operand of known length and unknown content.
    pub fn of_length(length: usize) -> Operand {
        if length > MAX_ENTRIES { Operand::Unknown } else { Operand::Elements(vec![None; length]) }
    }

    /// A constant operand. Elements of `uint64` that are no `int64` count as the largest one: no axis is longer.
    ///
    /// # Errors
    /// The tensor is not 1-D, does not hold integers or holds far too many. `name` is what the dialect calls the operand.
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

    /// The number of elements, if it is known.
    pub fn len(&self) -> Option<usize> {
        match self {
            Operand::Elements(elements) => Some(elements.len()),
            Operand::Unknown => None,
        }
    }

    /// Whether the operand is known to have no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == Some(0)
    }

    /// Element `i`, if it is known.
    pub fn get(&self, i: usize) -> Option<&Dim> {
        match self {
            Operand::Elements(elements) => elements.get(i).and_then(Option::as_ref),
            Operand::Unknown => None,
        }
    }

    /// Element `i` as the bound of a range.
    pub(super) fn bound(&self, i: usize) -> Bound {
        self.get(i).map_or(Bound::Unknown, |value| Bound::At(value.clone()))
    }
}

/// The one length that operands of which each gives a number an entry must share; `None` if none of the lengths is known.
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

/// One end of a range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bound {
    /// As far as the axis goes.
    Open,
    /// A position; a negative one counts from the end. It is not clamped yet.
    At(Dim),
    /// Nobody knows, not even whether it is open.
    Unknown,
}

/// `begin:end:step` on one axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Range {
    /// Where it begins.
    pub begin: Bound,
    /// Where it ends; the position itself is not taken.
    pub end: Bound,
    /// The step, not 0; `None` when it is not known.
    pub step: Option<i64>,
}

impl Range {
    /// Any range at all.
    pub const UNKNOWN: Range = Range { begin: Bound::Unknown, end: Bound::Unknown, step: None };

    /// A range.
    ///
    /// # Errors
    /// [`SliceError::ZeroStep`].
    pub fn new(begin: Bound, end: Bound, step: Option<i64>) -> Result<Range, SliceError> {
        if step == Some(0) { Err(SliceError::ZeroStep) } else { Ok(Range { begin, end, step }) }
    }

    /// A range of numbers; `None` is open.
    ///
    /// # Errors
    /// [`SliceError::ZeroStep`].
    pub fn constant(begin: Option<i64>, end: Option<i64>, step: i64) -> Result<Range, SliceError> {
        let bound = |value: Option<i64>| value.map_or(Bound::Open, |value| Bound::At(Dim::constant(value)));
        Range::new(bound(begin), bound(end), Some(step))
    }
}

/// What becomes of one axis of the data, or where an axis is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AxisOp {
    /// The axis stays as it is.
    Keep,
    /// A range of it is taken.
    Range(Range),
    /// One index of it is taken and the axis goes away. The index is checked against the dim and never clamped.
    Index(Bound),
    /// An axis of dim 1 that the data does not have.
    NewAxis,
}

/// One entry of a slice that goes through the axes in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// As many axes as it takes for the other entries to come out even.
    Ellipsis,
    /// An axis of dim 1.
    NewAxis,
    /// One index of the next axis.
    Index(Bound),
    /// A range of the next axis.
    Range(Range),
}

/// What a dialect makes of two entries that name one axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeated {
    /// They are refused.
    Refused,
    /// The last one wins.
    LastWins,
}

/// The entries of a slice, as its dialect addresses axes.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Entries {
    /// One after the other. Without an ellipsis there is one at the end.
    InOrder(Vec<Entry>),
    /// Each names its axis, a negative one counts from the end; `None` is an axis nobody knows.
    Named {
        ranges: Vec<(Option<i64>, Range)>,
        repeated: Repeated,
        /// Whether data of rank 0 is accepted when there are no entries.
        scalars: bool,
    },
    /// Nobody knows how many entries there are.
    Unknown {
        /// Whether the entries can only be ranges, so that the rank stays.
        ranges_only: bool,
        /// Whether data of rank 0 is accepted.
        scalars: bool,
    },
}

/// A slice as its dialect's reader leaves it: entries, and how their ranges are to be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SliceSpec {
    /// How the ranges are read.
    pub reading: Reading,
    entries: Entries,
}

impl SliceSpec {
    /// Entries that go through the axes in order.
    ///
    /// # Errors
    /// [`SliceError::Ellipses`] when several entries are ellipses.
    pub fn in_order(reading: Reading, entries: Vec<Entry>) -> Result<SliceSpec, SliceError> {
        if entries.iter().filter(|entry| matches!(entry, Entry::Ellipsis)).count() > 1 {
            return Err(SliceError::Ellipses);
        }
        Ok(SliceSpec { reading, entries: Entries::InOrder(entries) })
    }

    /// Ranges on named axes; `None` is an axis nobody knows. `scalars` says whether data of rank 0 is accepted when there are
    /// no entries.
    pub fn named(reading: Reading, ranges: Vec<(Option<i64>, Range)>, repeated: Repeated, scalars: bool) -> SliceSpec {
        SliceSpec { reading, entries: Entries::Named { ranges, repeated, scalars } }
    }

    /// A slice of which not even the number of entries is known. `ranges_only` says that they can only be ranges, `scalars`
    /// whether data of rank 0 is accepted.
    pub fn unknown(reading: Reading, ranges_only: bool, scalars: bool) -> SliceSpec {
        SliceSpec { reading, entries: Entries::Unknown { ranges_only, scalars } }
    }

    /// The entries, if they go through the axes in order.
    pub fn entries(&self) -> Option<&[Entry]> {
        match &self.entries {
            Entries::InOrder(entries) => Some(entries),
            _ => None,
        }
    }

    /// The ranges, each with its axis, if they name their axes.
    pub fn named_ranges(&self) -> Option<&[(Option<i64>, Range)]> {
        match &self.entries {
            Entries::Named { ranges, .. } => Some(ranges),
            _ => None,
        }
    }

    /// What becomes of each axis of data of this rank, in the order of the result's axes, taken ones in their places. `None`
    /// when not even the result's rank is known.
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
    // Every entry takes an axis of its own.
    if repeated == Repeated::Refused && ranges.len() > rank {
        return Err(SliceError::TooManyEntries { entries: ranges.len(), rank });
    }
    // An entry whose axis nobody knows may be about any axis that no other entry has for itself.
    let may_touch = |axis: usize| unplaced > 0 && (repeated == Repeated::LastWins || !named.contains_key(&axis));
    let op = |axis: usize| match named.get(&axis) {
        _ if may_touch(axis) => AxisOp::Range(Range::UNKNOWN),
        Some(&range) => AxisOp::Range(range.clone()),
        None => AxisOp::Keep,
    };
    Ok((0..rank).map(op).collect())
}

/// An axis, counted from the end when negative.
fn place_of(axis: i64, rank: usize) -> Result<usize, SliceError> {
    let outside = SliceError::AxisOutOfRange { axis, rank };
    let wide = i64::try_from(rank).unwrap_or(i64::MAX);
    let place = if axis < 0 { axis.checked_add(wide) } else { Some(axis) };
    place.filter(|place| (0..wide).contains(place)).and_then(|place| usize::try_from(place).ok()).ok_or(outside)
}
