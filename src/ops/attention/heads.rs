//! Heads: how operands are split into them, and scores, softmax and mixing within one.

use std::borrow::Cow;

use crate::dim::{Dim, Scope};
use crate::ops::lane::{Lane, Ring};
use crate::ops::linear::{Matrix, multiply_add};
use crate::ops::{Decline, Refusal, Site};

/// An attribute that counts heads.
///
/// # Errors
/// It is not positive.
pub(super) fn read_heads(site: &Site<'_>, name: &str) -> Result<Option<i64>, Refusal> {
    match site.attr_int(name)? {
        Some(heads) if heads < 1 => Err(Refusal::invalid(format!("attribute '{name}' is {heads}"))),
        heads => Ok(heads),
    }
}

/// The part of a packed axis that belongs to one head. A model that runs has an axis that divides.
///
/// # Errors
/// It does not.
pub(super) fn per_head(scope: &Scope, packed: &Dim, heads: i64) -> Result<Dim, Refusal> {
    let heads = Dim::constant(heads);
    match scope.exact_div(packed, &heads) {
        Some(part) => Ok(part),
        None if packed.as_const().is_some() => {
            let (packed, heads) = (scope.format(packed), scope.format(&heads));
            Err(Refusal::invalid(format!("an axis of {packed} does not divide into {heads} heads")))
        }
        None => Ok(scope.floor_div(packed, &heads)),
    }
}

/// The fixed sizes of an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pub batch: usize,
    pub heads: usize,
    pub sequence: usize,
    /// Elements of one head at one place.
    pub size: usize,
    /// Whether the operand is `[batch, sequence, heads·size]` instead of `[batch, heads, sequence, size]`.
    pub packed: bool,
}

impl Layout {
    /// From the shape of an operand of rank 4, or of rank 3 and so many heads.
    ///
    /// # Errors
    /// The rank is another, or the heads do not divide the last axis.
    pub fn of(shape: &[usize], heads: Option<i64>) -> Result<Layout, Decline> {
        match (shape, heads.and_then(|heads| usize::try_from(heads).ok())) {
            (&[batch, heads, sequence, size], _) => Ok(Layout { batch, heads, sequence, size, packed: false }),
            (&[batch, sequence, packed], Some(heads)) if heads > 0 && packed.is_multiple_of(heads) => {
                Ok(Layout { batch, heads, sequence, size: packed / heads, packed: true })
            }
            _ => Err(Decline::invalid(format!("dims {shape:?} are not those of heads"))),
        }
    }

    /// The shape with heads as an axis.
    pub fn split_shape(&self) -> [usize; 4] {
        [self.batch, self.heads, self.sequence, self.size]
    }

    /// Elements of one head of one batch entry.
    pub fn head(&self) -> usize {
        self.sequence.saturating_mul(self.size)
    }

    /// The elements in the order of [`split_shape`](Self::split_shape).
    pub fn split<'a, T: Copy>(&self, data: &'a [T]) -> Cow<'a, [T]> {
        if !self.packed || self.heads == 1 {
            return Cow::Borrowed(data);
        }
        let mut split = Vec::with_capacity(data.len());
        self.rows(|at| split.extend_from_slice(data.get(at..at + self.size).unwrap_or_default()));
        Cow::Owned(split)
    }

    /// The elements, given in the order of [`split_shape`](Self::split_shape), in the operand's own order.
    pub fn join<T: Copy + Default>(&self, split: Vec<T>) -> Vec<T> {
        if !self.packed || self.heads == 1 {
            return split;
        }
        let mut joined = vec![T::default(); split.len()];
        let mut from = split.chunks_exact(self.size.max(1));
        self.rows(|at| {
            if let (Some(to), Some(from)) = (joined.get_mut(at..at + self.size), from.next()) {
                to.copy_from_slice(from);
            }
        });
        joined
    }

    /// The places of the rows of a packed operand, in the order of heads.
    fn rows(&self, mut visit: impl FnMut(usize)) {
        if self.size == 0 {
            return;
        }
        for batch in 0..self.batch {
            for head in 0..self.heads {
                for place in 0..self.sequence {
                    visit(((batch * self.sequence + place) * self.heads + head) * self.size);
                }
            }
        }
    }
}

/// `Q·Kᵀ` of one head: one row for each query, one column for each key.
pub(super) fn scores<T: Ring>(queries: usize, size: usize, keys: usize, q: &[T], k: &[T]) -> Vec<T> {
    let mut scores = vec![T::default(); queries * keys];
    multiply_add(queries, size, keys, Matrix::dense(q, size), Matrix::transposed(k, size), &mut scores);
    scores
}

/// `P·V` of one head, added to `y`.
pub(super) fn mix<T: Ring>(queries: usize, keys: usize, size: usize, p: &[T], v: &[T], y: &mut [T]) {
    multiply_add(queries, keys, size, Matrix::dense(p, keys), Matrix::dense(v, size), y);
}

/// Softmax of one row, in binary64: `eˣ / Σ eˣ`, shifted by the maximum. A row of −∞ gives zeros.
pub(super) fn softmax<T: Lane>(row: &mut [T]) {
    let most =
        row.iter().map(|x| x.to_f64()).fold(f64::NEG_INFINITY, |most, x| if x > most || x.is_nan() { x } else { most });
    if most == f64::NEG_INFINITY {
        return row.fill(T::default());
    }
    let powers: Vec<f64> = row.iter().map(|x| libm::exp(x.to_f64() - most)).collect();
    let sum: f64 = powers.iter().sum();
    row.iter_mut().zip(powers).for_each(|(x, power)| *x = T::of(power / sum));
}
