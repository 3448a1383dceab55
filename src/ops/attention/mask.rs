//! The bias of attention scores: the given mask, and −∞ for hidden keys.

use crate::ops::lane::{Lane, read};
use crate::ops::{Decline, EvalCx};
use crate::tensor::{DType, Tensor};

/// The keys that a query may see, by position.
///
/// Query `i` is at position `p = offset + i`. The offset is the number of past keys, or of valid keys in an external cache that
/// precede the queries.
#[derive(Clone, Copy)]
pub(super) struct VisibleKeys {
    /// Hides keys after `p`.
    pub causal: bool,
    /// Hides keys more than this many positions before `p`.
    pub left: Option<i64>,
    /// Hides keys more than this many positions after `p`.
    pub right: Option<i64>,
}

impl VisibleKeys {
    fn shows(self, position: i64, key: i64) -> bool {
        let ahead = key.saturating_sub(position);
        !(self.causal && ahead > 0)
            && self.left.is_none_or(|left| ahead.saturating_neg() <= left)
            && self.right.is_none_or(|right| ahead <= right)
    }
}

/// The sum of all masks.
pub(super) struct Bias<T> {
    mask: Option<Given<T>>,
    window: VisibleKeys,
    past: usize,
    valid: Option<Vec<i64>>,
    queries: usize,
    keys: usize,
}

/// The operand `attn_mask`, whose axes of dim 1 broadcast.
struct Given<T> {
    values: Vec<T>,
    /// The strides along the batch, the heads and the queries.
    strides: [usize; 3],
    /// The number of keys in the mask; further keys are hidden.
    keys: usize,
}

impl<T: Lane> Given<T> {
    fn of(
        cx: &EvalCx<'_>,
        mask: &Tensor,
        dtype: DType,
        [batch, heads, queries, keys]: [usize; 4],
    ) -> Result<Self, Decline> {
        cx.claim(DType::Double, mask.shape())?;
        let values = match mask.bools() {
            Some(shown) => shown.into_iter().map(|shown| T::of(if shown { 0.0 } else { f64::NEG_INFINITY })).collect(),
            None if mask.dtype() == dtype => {
                let values = read::<T>(mask)?.into_owned();
                if values.iter().any(|value| value.to_f64().is_nan() || value.to_f64() == f64::INFINITY) {
                    return Err(Decline::unsupported("the mask contains NaN or ∞"));
                }
                values
            }
            None => {
                return Err(Decline::unsupported(format!(
                    "the mask has type {}, but the scores have type {dtype}",
                    mask.dtype()
                )));
            }
        };
        let rank = mask.rank();
        let own = match mask.shape().last() {
            Some(&own) if own == keys || (own < keys && own != 1) => own,
            // A mask with one column may either broadcast or be padded.
            Some(1) => {
                return Err(Decline::unsupported(
                    "the mask has size 1 on the axis of the keys, and runtimes disagree whether this axis is broadcast",
                ));
            }
            _ => return Err(Decline::invalid("the last dim of the mask is larger than the number of keys")),
        };
        if rank > 4 {
            return Err(Decline::invalid(format!("the mask has rank {rank}, which is not supported")));
        }
        let mut strides = [0; 3];
        let mut stride = own;
        for (axis, size) in [batch, heads, queries].into_iter().enumerate().rev() {
            let Some(&dim) = (axis + rank).checked_sub(4).and_then(|axis| mask.shape().get(axis)) else { break };
            if dim != 1 && dim != size {
                return Err(Decline::invalid("the mask does not broadcast to the scores"));
            }
            if let (Some(place), true) = (strides.get_mut(axis), dim != 1) {
                *place = stride;
            }
            stride = stride.saturating_mul(dim);
        }
        Ok(Given { values, strides, keys: own })
    }

    fn row(&self, batch: usize, head: usize, query: usize) -> &[T] {
        let [over_batch, over_heads, over_queries] = self.strides;
        let start = batch * over_batch + head * over_heads + query * over_queries;
        self.values.get(start..start + self.keys).unwrap_or_default()
    }
}

impl<T: Lane> Bias<T> {
    /// Builds the bias for scores `[batch, heads, queries, keys]` of type `dtype`, where the first `past` keys are past ones.
    ///
    /// # Errors
    /// The operands do not fit the scores.
    pub fn new(
        cx: &EvalCx<'_>,
        dtype: DType,
        shape: [usize; 4],
        window: VisibleKeys,
        past: Option<usize>,
    ) -> Result<Self, Decline> {
        let [batch, _, queries, keys] = shape;
        let mask = cx.optional_tensor(3)?.map(|mask| Given::of(cx, mask, dtype, shape)).transpose()?;
        let valid = if cx.version >= 24 && cx.has_input(6) { Some(cx.ints(6)?) } else { None };
        if let Some(valid) = &valid
            && (past.is_some() || valid.len() != batch)
        {
            return Err(Decline::invalid(
                "'nonpad_kv_seqlen' is used with past keys and values, or does not have one entry per batch element",
            ));
        }
        let hides = window.causal && past.is_some_and(|past| keys > past.saturating_add(1));
        if hides && queries == 1 {
            return Err(Decline::unsupported(
                "runtimes differ on whether a single query after a past attends to later keys",
            ));
        }
        Ok(Bias { mask, window, past: past.unwrap_or(0), valid, queries, keys })
    }

    /// Writes the bias of one query; returns `true` if it sees a key.
    pub fn row(&self, batch: usize, head: usize, query: usize, row: &mut [T]) -> bool {
        let wide = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        let valid = self.valid.as_ref().and_then(|valid| valid.get(batch)).copied();
        let offset = valid.map_or(wide(self.past), |valid| valid.saturating_sub(wide(self.queries)));
        let position = offset.saturating_add(wide(query));
        let hidden = T::of(f64::NEG_INFINITY);
        let given = self.mask.as_ref().map(|mask| mask.row(batch, head, query));
        let mut seen = false;
        for (key, sum) in row.iter_mut().enumerate().take(self.keys) {
            *sum = match given {
                Some(mask) => mask.get(key).copied().unwrap_or(hidden),
                None => T::default(),
            };
            if !self.window.shows(position, wide(key)) || valid.is_some_and(|valid| wide(key) >= valid) {
                *sum = sum.plus(hidden);
            }
            seen |= *sum != hidden;
        }
        seen
    }
}
