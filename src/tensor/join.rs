//! Concatenated tensors, copied when they are read.

use super::deferred::Recipe;
use super::error::TensorError;
use super::storage::Tensor;

/// Tensors of one type side by side: a row of the result concatenates a row of each.
struct Joined {
    /// The parts, each with the bytes of its rows.
    parts: Vec<(Tensor, usize)>,
    /// The bytes of an element.
    width: usize,
    /// The bytes of a row of the result, not 0.
    row: usize,
}

/// Returns a deferred tensor of `shape` with `rows` rows, each the concatenation of a row of each part. Elements must be whole
/// bytes, and all of one type.
///
/// # Errors
/// The parts do not have this number of elements, or the elements cannot be addressed.
pub(crate) fn join_later(parts: &[&Tensor], rows: usize, shape: &[usize]) -> Result<Tensor, TensorError> {
    let missing = || TensorError::ElementCount { shape: shape.into() };
    let dtype = parts.first().map(|part| part.dtype()).ok_or_else(missing)?;
    let width = dtype.byte_len(1).filter(|_| !dtype.is_packed()).ok_or(TensorError::StringPayload)?;
    let of_row = |part: &&Tensor| {
        let fits = rows > 0 && part.dtype() == dtype && part.len().is_multiple_of(rows);
        fits.then(|| (part.for_recipe(), part.len() / rows * width))
    };
    let parts = parts.iter().map(of_row).collect::<Option<Vec<_>>>().ok_or_else(missing)?;
    let row = parts.iter().try_fold(0usize, |sum, (_, row)| sum.checked_add(*row)).filter(|row| *row > 0);
    let row = row.ok_or_else(missing)?;
    if row
        .checked_mul(rows)
        .is_none_or(|bytes| Some(bytes) != super::product(shape).and_then(|len| len.checked_mul(width)))
    {
        return Err(missing());
    }
    Tensor::deferred(dtype, shape, Box::new(Joined { parts, width, row }))
}

impl Recipe for Joined {
    fn depth(&self) -> usize {
        self.parts.iter().map(|(part, _)| part.depth()).max().unwrap_or(0).saturating_add(1)
    }

    fn piece(&self) -> usize {
        self.parts.iter().map(|(part, _)| part.piece()).max().unwrap_or(0)
    }

    fn fill(&self, first: usize, out: &mut [u8]) {
        let at = first.saturating_mul(self.width);
        let (mut row, mut column) = (at / self.row, at % self.row);
        let mut out = out;
        while !out.is_empty() {
            for (part, len) in &self.parts {
                // The columns before this part are already written, or not requested.
                if column >= *len {
                    column -= len;
                    continue;
                }
                let (now, rest) = out.split_at_mut((len - column).min(out.len()));
                part.read(row.saturating_mul(*len).saturating_add(column), now);
                (out, column) = (rest, 0);
                if out.is_empty() {
                    return;
                }
            }
            (row, column) = (row.saturating_add(1), 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deferred_concatenations_equal_immediate_ones() {
        let part = |rows: usize, row: usize, seed: usize| {
            Tensor::from_vec(&[rows, row], (0..rows * row).map(|n| (n * 7 + seed) as u16).collect()).unwrap()
        };
        for (rows, widths) in [(1, vec![900_000]), (700, vec![1, 900, 0, 33]), (3, vec![200_000, 0, 0, 5])] {
            let parts: Vec<Tensor> = widths.iter().enumerate().map(|(at, &row)| part(rows, row, at * 1000)).collect();
            let of_row = |row: usize| {
                parts.iter().map(move |part| part.bytes().chunks((part.byte_len() / rows).max(1)).nth(row))
            };
            let bytes: Vec<u8> = (0..rows).flat_map(of_row).flatten().flatten().copied().collect();
            let row: usize = widths.iter().sum();
            let later = join_later(&parts.iter().collect::<Vec<_>>(), rows, &[rows, row]).unwrap();
            for (at, len) in [(0, 2), (1, 3), (1799, 5000), (bytes.len() - 4001, 4001)] {
                let mut read = vec![0; len];
                later.read(at, &mut read);
                assert!(read == bytes[at..at + len]);
            }
            assert!(!later.is_made() && later.bytes().as_ref() == bytes);
        }
        let (a, b) = (part(2, 3, 0), part(3, 2, 0));
        assert!(join_later(&[&a, &b], 4, &[4, 3]).is_err() && join_later(&[&a], 2, &[2, 4]).is_err());
        assert!(join_later(&[], 1, &[0]).is_err() && join_later(&[&a], 0, &[2, 3]).is_err());
    }
}
