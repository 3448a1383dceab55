//! Constructors of movements at known places: indices, conditions and lengths that are constants, and indices that are computed at run time.

use std::sync::Arc;

use smallvec::SmallVec;

use super::construct::{Builder, product};
use super::form::{
    Atom, Axis, Fill, Index, IndexMap, Lookup, MOST_PIECES, Piece, Read, Shape, minus, number, one, over, plus, times,
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
        let dim = source.get(axis).ok_or(Undecided::Rank)?;
        let mut built = Builder::new();
        let mut result = Shape::new();
        for (at, size) in source.iter().enumerate() {
            if at != axis {
                built.whole_axis(size);
                result.push(size.clone());
                continue;
            }
            let digits: SmallVec<[usize; 4]> = shape.iter().map(|&size| built.digit(&number(size))).collect();
            result.extend(shape.iter().map(|&size| number(size)));
            let index = index_of(scope, dim, &digits, &built.digits, indices)?;
            built.axis(size, index);
        }
        built.map(scope, source, result)
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
        source.get(axis).ok_or(Undecided::Rank)?;
        let mut built = Builder::new();
        let mut result = Shape::new();
        for (at, size) in source.iter().enumerate() {
            if at != axis {
                built.whole_axis(size);
                result.push(size.clone());
                continue;
            }
            let own = indices.iter().map(|size| Axis { size: size.clone(), at: Index::digit(built.digit(size)) });
            let read = Read { source: 1, axes: own.collect() };
            built.axis(size, Index::of_atom(Atom::Lookup(Arc::new(Lookup { read, size: size.clone() }))));
            result.extend(indices.iter().cloned());
        }
        let mut map = built.map(scope, source, result)?;
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

    /// GatherND without batch axes, by constant indices of shape `[shape…, count]`.
    ///
    /// # Errors
    /// An index is out of range, an indexed dim is not a number, or the table is over the limit.
    pub fn gather_nd(
        scope: &Scope,
        source: &[Dim],
        shape: &[i64],
        count: usize,
        indices: &[i64],
    ) -> Result<IndexMap, Undecided> {
        let mut built = Builder::new();
        let digits: SmallVec<[usize; 4]> = shape.iter().map(|&size| built.digit(&number(size))).collect();
        let mut result: Shape = shape.iter().map(|&size| number(size)).collect();
        for (axis, size) in source.iter().enumerate() {
            if axis >= count {
                built.whole_axis(size);
                result.push(size.clone());
                continue;
            }
            let own: Vec<i64> = indices.iter().skip(axis).step_by(count).copied().collect();
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

    /// ReverseSequence with constant lengths, one for each position of the batch axis.
    ///
    /// # Errors
    /// A length is not proved to be at most the time axis, or there are too many pieces.
    pub fn reverse_sequence(
        scope: &Scope,
        source: &[Dim],
        batch: usize,
        time: usize,
        lens: &[i64],
    ) -> Result<IndexMap, Undecided> {
        let size = source.get(time).ok_or(Undecided::Rank)?;
        if batch == time || lens.len() > MOST_PIECES {
            return Err(Undecided::PieceLimit);
        }
        let mut rows = Vec::new();
        for (at, &len) in (0..).zip(lens) {
            let row = IndexMap::range(scope, source, batch, number(at), 1, one())?;
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
        let totals = [product(scope, source), product(scope, updates)];
        let mut parts: Vec<Piece> = Vec::new();
        for (at, &update) in (0i64..).zip(rows) {
            let (from, row) = update.map_or((0, at), |row| (1, row));
            let mut built = Builder::new();
            let digit = built.digit(after);
            let total = totals.get(from).ok_or(Undecided::Rank)?;
            let count = over(scope, total, after).ok_or_else(|| Undecided::Divides(after.clone(), total.clone()))?;
            built.axis(&count, Index::constant(number(row)));
            built.axis(after, Index::digit(digit));
            let core = canonical::of_read(scope, built.digits, Read { source: from, axes: built.axes })?;
            parts.push(Piece { len: one(), core });
        }
        let core = join::of_pieces(scope, &one(), after, parts)?;
        Ok(IndexMap { sources: [source.into(), updates.into()].into_iter().collect(), result: source.into(), core })
    }
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
