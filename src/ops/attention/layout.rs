//! The constant sizes of an operand, for both positions of the heads.

use crate::dim::{Dim, Scope};
use crate::ops::{Decline, Refusal, Site};

/// Reads an attribute with a number of heads.
///
/// # Errors
/// The number is not positive.
pub(super) fn read_heads(site: &Site<'_>, name: &str) -> Result<Option<i64>, Refusal> {
    match site.attr_int(name)? {
        Some(heads) if heads < 1 => Err(Refusal::invalid(format!("attribute '{name}' is {heads}, which is not valid"))),
        heads => Ok(heads),
    }
}

/// Returns the size of one head on a packed axis. In a model that runs, the heads divide the axis.
///
/// # Errors
/// The heads do not divide the axis.
pub(super) fn per_head(scope: &Scope, packed: &Dim, heads: i64) -> Result<Dim, Refusal> {
    let heads = Dim::constant(heads);
    match scope.exact_div(packed, &heads) {
        Some(part) => Ok(part),
        None if packed.as_const().is_some() => {
            let (packed, heads) = (scope.format(packed), scope.format(&heads));
            Err(Refusal::invalid(format!(
                "the size {packed} of the last axis is not a multiple of the number of heads ({heads})"
            )))
        }
        None => Ok(scope.floor_div(packed, &heads)),
    }
}

/// The constant sizes of an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pub batch: usize,
    pub heads: usize,
    pub sequence: usize,
    /// The number of elements per head and position.
    pub size: usize,
    /// `true` if the operand is `[batch, sequence, heads·size]` instead of `[batch, heads, sequence, size]`.
    pub packed: bool,
}

impl Layout {
    /// Returns the layout for the shape of an operand of rank 4, or of rank 3 with this many heads.
    ///
    /// # Errors
    /// The rank differs, or the heads do not divide the last axis.
    pub fn of(shape: &[usize], heads: Option<i64>) -> Result<Layout, Decline> {
        match (shape, heads.and_then(|heads| usize::try_from(heads).ok())) {
            (&[batch, heads, sequence, size], _) => Ok(Layout { batch, heads, sequence, size, packed: false }),
            (&[batch, sequence, packed], Some(heads)) if heads > 0 && packed.is_multiple_of(heads) => {
                Ok(Layout { batch, heads, sequence, size: packed / heads, packed: true })
            }
            _ => Err(Decline::invalid(format!("shape {shape:?} does not have an axis of heads"))),
        }
    }

    /// Returns the number of elements of one head of one batch entry.
    pub fn head(&self) -> usize {
        self.sequence.saturating_mul(self.size)
    }
}
