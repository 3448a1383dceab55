//! Operands of attention with the heads on a separate axis.

use crate::ops::lane::{Lane, read};
use crate::ops::{Decline, EvalCx};
use crate::tensor::{DType, Tensor, product};

/// `[batch, heads, length, size]`, dense.
pub(super) struct Heads<T> {
    pub batch: usize,
    pub heads: usize,
    pub length: usize,
    pub size: usize,
    pub values: Vec<T>,
}

impl<T: Lane> Heads<T> {
    /// Reads an operand of rank 4, or of rank 3 whose last axis packs this many heads.
    ///
    /// # Errors
    /// The rank is invalid, the heads do not divide the axis, or there are too many elements.
    pub fn of(cx: &EvalCx<'_>, tensor: &Tensor, heads: impl Fn() -> Result<usize, Decline>) -> Result<Self, Decline> {
        cx.claim(DType::Double, tensor.shape())?;
        let values = read::<T>(tensor)?;
        match *tensor.shape() {
            [batch, heads, length, size] => Ok(Heads { batch, heads, length, size, values: values.into_owned() }),
            [batch, length, hidden] => {
                let heads = heads()?;
                if heads == 0 || hidden % heads != 0 {
                    return Err(Decline::invalid(format!(
                        "the hidden size {hidden} is not a multiple of the number of heads ({heads})"
                    )));
                }
                let size = hidden / heads;
                let mut apart = Vec::with_capacity(values.len());
                for instance in values.chunks(length.saturating_mul(hidden).max(1)) {
                    for head in 0..heads {
                        for row in instance.chunks_exact(hidden) {
                            apart.extend_from_slice(row.get(head * size..(head + 1) * size).unwrap_or_default());
                        }
                    }
                }
                Ok(Heads { batch, heads, length, size, values: apart })
            }
            _ => Err(Decline::invalid(format!(
                "an operand of the attention has rank {} instead of 3 or 4",
                tensor.rank()
            ))),
        }
    }

    /// Concatenates `past` and these, head by head.
    ///
    /// # Errors
    /// Dims other than the length differ, or there are too many elements.
    pub fn after(self, cx: &EvalCx<'_>, past: Heads<T>) -> Result<Self, Decline> {
        if (past.batch, past.heads, past.size) != (self.batch, self.heads, self.size) {
            return Err(Decline::invalid("past and new keys or values differ in a dim other than the sequence length"));
        }
        let length = past
            .length
            .checked_add(self.length)
            .ok_or_else(|| Decline::invalid("the length of the sequence is too large"))?;
        let joined = Heads { length, values: Vec::new(), ..self };
        cx.claim(DType::Double, &joined.shape())?;
        let mut values = Vec::with_capacity(past.values.len() + self.values.len());
        for head in 0..self.batch.saturating_mul(self.heads) {
            if past.values.is_empty() && self.values.is_empty() {
                break;
            }
            values.extend_from_slice(past.head(head));
            let own = self.length * self.size;
            values.extend_from_slice(self.values.get(head * own..(head + 1) * own).unwrap_or_default());
        }
        Ok(Heads { values, ..joined })
    }

    /// Returns the shape.
    pub fn shape(&self) -> [usize; 4] {
        [self.batch, self.heads, self.length, self.size]
    }

    /// Returns the matrix `[length, size]` of one head, indexed across the batch.
    pub fn head(&self, at: usize) -> &[T] {
        let own = product(&[self.length, self.size]).unwrap_or(0);
        self.values.get(at * own..(at + 1) * own).unwrap_or_default()
    }
}
