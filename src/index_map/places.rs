//! Constructors of movements at known places: indices, conditions and lengths that are constants, and indices that are computed at run time.

use std::sync::Arc;

use smallvec::SmallVec;

use super::construct::{Builder, product};
use super::form::{
    Atom, Axis, Core, Fill, Index, IndexMap, Lookup, MOST_PIECES, Piece, Read, Shape, is_equal, minus, number, one,
    over, plus, times,
};
use super::undecided::Undecided;
use super::{canonical, join};
use crate::dim::{Dim, Scope};

impl IndexMap {
    /// Gather by constant indices of this shape, negative ones counted from the end.
    ///
    /// # Errors
    /// An index is out of range, or the axis is not a number, or the table is over the limit.
    pub fn gather(
        scope: &Scope,
        source: &[Dim],
        axis: usize,
        shape: &[i64],
        indices: &[i64],
    ) -> Result<IndexMap, Undecided> {
        let shape: Shape = shape.iter().map(|&size| number(size)).collect();
        gather_by(scope, source, axis, &shape, |size, own, digits| index_of(scope, size, own, digits, indices))
    }

    /// Gather by indices that are computed at run time: source 1, of this shape. They lie on the axis, negative ones are counted from the end.
    ///
    /// # Errors
    /// There is no such axis, or the rank is over the limit.
    pub fn gather_at_run_time(
        scope: &Scope,
        source: &[Dim],
        axis: usize,
        indices: &[Dim],
    ) -> Result<IndexMap, Undecided> {
        let mut map = gather_by(scope, source, axis, indices, |size, own, _| {
            let axes =
                indices.iter().zip(own).map(|(size, &digit)| Axis { size: size.clone(), at: Index::digit(digit) });
            let read = Read { source: 1, axes: axes.collect() };
            Ok(Index::of_atom(Atom::Lookup(Arc::new(Lookup { read, size: size.clone() }))))
        })?;
        map.sources.push(indices.into());
        Ok(map)
    }

    /// GatherElements by constant indices of this shape.
    ///
    /// # Errors
    /// An index is out of range, a dim is not a number, or the table is over the limit.
    pub fn gather_elements(
        scope: &Scope,
        source: &[Dim],
        axis: usize,
        shape: &[i64],
        indices: &[i64],
    ) -> Result<IndexMap, Undecided> {
        if shape.len() != source.len() {
            return Err(Undecided::Rank);
        }
        let mut built = Builder::new();
        let digits: SmallVec<[usize; 4]> = shape.iter().map(|&size| built.digit(&number(size))).collect();
        for (at, (size, &digit)) in source.iter().zip(&digits).enumerate() {
            let index =
                if at == axis { index_of(scope, size, &digits, &built.digits, indices)? } else { Index::digit(digit) };
            built.axis(size, index);
        }
        built.map(scope, source, shape.iter().map(|&size| number(size)).collect())
    }

    /// GatherND by constant indices of shape `[shape…, count]`. The first `batch` axes of data and indices are the same.
    ///
    /// # Errors
    /// An index is out of range, a batch axis has another size than the indices, or the table is over the limit.
    pub fn gather_nd(
        scope: &Scope,
        source: &[Dim],
        batch: usize,
        shape: &[i64],
        count: usize,
        indices: &[i64],
    ) -> Result<IndexMap, Undecided> {
        let mut built = Builder::new();
        let digits: SmallVec<[usize; 4]> = shape.iter().map(|&size| built.digit(&number(size))).collect();
        let mut result: Shape = shape.iter().map(|&size| number(size)).collect();
        for (axis, size) in source.iter().enumerate() {
            let Some(column) = axis.checked_sub(batch) else {
                let (digit, own) = digits.get(axis).zip(shape.get(axis)).ok_or(Undecided::Rank)?;
                if !size.is_const(*own) {
                    return Err(Undecided::Equal(size.clone(), number(*own)));
                }
                built.axis(size, Index::digit(*digit));
                continue;
            };
            if column >= count {
                built.whole_axis(size);
                result.push(size.clone());
                continue;
            }
            let own: Vec<i64> = indices.iter().skip(column).step_by(count).copied().collect();
            let index = index_of(scope, size, &digits, &built.digits, &own)?;
            built.axis(size, index);
        }
        built.map(scope, source, result)
    }

    /// Compress along an axis by a constant condition.
    ///
    /// # Errors
    /// As [`gather`](IndexMap::gather).
    pub fn compress(scope: &Scope, source: &[Dim], axis: usize, condition: &[bool]) -> Result<IndexMap, Undecided> {
        let indices: Vec<i64> = (0..).zip(condition).filter(|(_, kept)| **kept).map(|(at, _)| at).collect();
        let len = i64::try_from(indices.len()).map_err(|_| Undecided::Overflow)?;
        IndexMap::gather(scope, source, axis, &[len], &indices)
    }

    /// EyeLike of a square: `fill` off the diagonal and `diagonal` on it.
    ///
    /// # Errors
    /// There are too many pieces.
    pub fn eye(scope: &Scope, size: &Dim, fill: Fill, diagonal: Fill) -> Result<IndexMap, Undecided> {
        // All rows but the last one, each with the first element of the next one: the diagonal is the first column.
        let (rows, columns) = (minus(scope, size, &one()), plus(scope, size, &one()));
        let of = |len: &Dim, fill| Piece {
            len: len.clone(),
            core: canonical::of_fill(scope, std::slice::from_ref(len), fill),
        };
        let of_rows = |len: &Dim, fill| Piece {
            len: len.clone(),
            core: canonical::of_fill(scope, &[rows.clone(), len.clone()], fill),
        };
        if !scope.ge(size, &one()).is_yes() {
            return Err(Undecided::AtMost(one(), size.clone()));
        }
        let core = join::of_pieces(scope, &rows, &one(), vec![of_rows(&one(), diagonal), of_rows(size, fill)])?;
        let most = Piece { len: times(scope, &rows, &columns), core };
        let core = join::of_pieces(scope, &one(), &one(), vec![most, of(&one(), diagonal)])?;
        Ok(IndexMap { sources: SmallVec::new(), result: [size.clone(), size.clone()].into_iter().collect(), core })
    }

    /// ReverseSequence with constant lengths, one for each position of the batch axis. Neighbours of equal length are one piece.
    ///
    /// # Errors
    /// The batch axis has another size, a length is not proved to be at most the time axis, or there are too many pieces.
    pub fn reverse_sequence(
        scope: &Scope,
        source: &[Dim],
        batch: usize,
        time: usize,
        lens: &[i64],
    ) -> Result<IndexMap, Undecided> {
        let size = source.get(time).ok_or(Undecided::Rank)?;
        let count = source.get(batch).filter(|_| batch != time).ok_or(Undecided::Rank)?;
        let lens_count = number(i64::try_from(lens.len()).map_err(|_| Undecided::Overflow)?);
        if !is_equal(scope, count, &lens_count) {
            return Err(Undecided::Equal(count.clone(), lens_count));
        }
        let mut rows = Vec::new();
        let mut first_row = 0i64;
        for equal in lens.chunk_by(|a, b| a == b) {
            let (Some(&len), Ok(many)) = (equal.first(), i64::try_from(equal.len())) else { continue };
            if rows.len() >= MOST_PIECES {
                return Err(Undecided::PieceLimit);
            }
            let row = IndexMap::range(scope, source, batch, number(first_row), 1, number(many))?;
            first_row = first_row.saturating_add(many);
            let len = number(len);
            if !scope.le(&len, size).is_yes() {
                return Err(Undecided::AtMost(len, size.clone()));
            }
            let start = minus(scope, &len, &one());
            let first = IndexMap::range(scope, &row.result, time, start, -1, len.clone())?;
            let second = IndexMap::range(scope, &row.result, time, len.clone(), 1, minus(scope, size, &len))?;
            let concat = IndexMap::concat(scope, &[first.result.clone(), second.result.clone()], time)?;
            let reversed = concat.applied_to(scope, &[&first, &second])?;
            let reversed = reversed.with_sources(scope, std::slice::from_ref(&row.result), &[0, 0])?;
            rows.push(row.then(scope, &reversed)?);
        }
        let shapes: Vec<Shape> = rows.iter().map(|row| row.result.clone()).collect();
        let map = IndexMap::concat(scope, &shapes, batch)?.applied_to(scope, &rows.iter().collect::<Vec<_>>())?;
        map.with_sources(scope, &[source.into()], &vec![0; rows.len()])
    }

    /// ScatterND and ScatterElements at known places: rows of the data, each of `after` elements, are replaced by rows of the updates,
    /// which are source 1; `rows[i]` is the row of the updates that row `i` of the data becomes.
    ///
    /// # Errors
    /// There are too many pieces.
    pub fn scatter(
        scope: &Scope,
        source: &[Dim],
        updates: &[Dim],
        after: &Dim,
        rows: &[Option<i64>],
    ) -> Result<IndexMap, Undecided> {
        let mut runs: Vec<Run> = Vec::new();
        for (at, &update) in (0i64..).zip(rows) {
            let (source, start) = update.map_or((0, at), |row| (1, row));
            match runs.last_mut() {
                Some(Run { len, from: Origin::Source { source: own, start: first } })
                    if *own == source && first.checked_add(*len) == Some(start) =>
                {
                    *len = len.saturating_add(1);
                }
                _ => runs.push(Run { len: 1, from: Origin::Source { source, start } }),
            }
        }
        IndexMap::runs(scope, &[source.into(), updates.into()], source, (&one(), after), &runs)
    }

    /// A result `[before, Σ len, after]` of consecutive rows, each of `after` elements: those of a source, or a constant.
    ///
    /// # Errors
    /// A source is not `[before, rows, after]`, or there are too many pieces.
    pub fn runs(
        scope: &Scope,
        sources: &[Shape],
        result: &[Dim],
        (before, after): (&Dim, &Dim),
        runs: &[Run],
    ) -> Result<IndexMap, Undecided> {
        let of_map = |core| IndexMap { sources: sources.into(), result: result.into(), core };
        if product(scope, result).is_const(0) {
            return Ok(of_map(Core::empty()));
        }
        if runs.len() > MOST_PIECES {
            return Err(Undecided::PieceLimit);
        }
        let around = times(scope, before, after);
        let mut parts: Vec<Piece> = Vec::with_capacity(runs.len());
        for run in runs {
            let len = number(run.len);
            let core = match run.from {
                Origin::Fill(fill) => canonical::of_fill(scope, &[before.clone(), len.clone(), after.clone()], fill),
                Origin::Source { source, start } => {
                    let total = product(scope, sources.get(source).ok_or(Undecided::Rank)?);
                    let rows = over(scope, &total, &around)
                        .ok_or_else(|| Undecided::Divides(around.clone(), total.clone()))?;
                    let mut built = Builder::new();
                    built.whole_axis(before);
                    let digit = built.digit(&len);
                    let mut at = Index::digit(digit);
                    at.offset = number(start);
                    built.axis(&rows, at);
                    built.whole_axis(after);
                    canonical::of_read(scope, built.digits, Read { source, axes: built.axes })?
                }
            };
            parts.push(Piece { len, core });
        }
        Ok(of_map(join::of_pieces(scope, before, after, parts)?))
    }
}

/// Consecutive rows of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The number of rows.
    pub len: i64,
    /// The origin of the rows.
    pub from: Origin,
}

/// The origin of consecutive rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Rows of a source, from row `start` on.
    Source {
        /// The source.
        source: usize,
        /// The first row.
        start: i64,
    },
    /// A constant.
    Fill(Fill),
}

/// A Gather along an axis by indices of this shape. `index_of` makes the position on the axis, of its size, from the digits of the indices.
fn gather_by(
    scope: &Scope,
    source: &[Dim],
    axis: usize,
    indices: &[Dim],
    index_of: impl Fn(&Dim, &[usize], &[Dim]) -> Result<Index, Undecided>,
) -> Result<IndexMap, Undecided> {
    source.get(axis).ok_or(Undecided::Rank)?;
    let mut built = Builder::new();
    let mut result = Shape::new();
    for (at, size) in source.iter().enumerate() {
        if at != axis {
            built.whole_axis(size);
            result.push(size.clone());
            continue;
        }
        let digits: SmallVec<[usize; 4]> = indices.iter().map(|size| built.digit(size)).collect();
        result.extend(indices.iter().cloned());
        let index = index_of(size, &digits, &built.digits)?;
        built.axis(size, index);
    }
    built.map(scope, source, result)
}

/// An index on an axis of `dim` by constants, negative ones counted from the end.
fn index_of(scope: &Scope, dim: &Dim, used: &[usize], digits: &[Dim], indices: &[i64]) -> Result<Index, Undecided> {
    // On an open axis all indices count from the same end.
    let Some(size) = dim.as_const() else {
        let (least, most) = (indices.iter().copied().min().unwrap_or(0), indices.iter().copied().max().unwrap_or(0));
        let mut index = Index::of_values(scope, used, digits, indices)?;
        if most < 0 {
            index.offset = plus(scope, &index.offset, dim);
        } else if least < 0 {
            return Err(Undecided::Symbolic);
        }
        return Ok(index);
    };
    let count = |&index: &i64| {
        let at = if index < 0 { index.checked_add(size)? } else { index };
        (0..size).contains(&at).then_some(at)
    };
    let values = indices.iter().map(count).collect::<Option<Vec<_>>>().ok_or(Undecided::OutOfRange)?;
    Index::of_values(scope, used, digits, &values)
}
