//! The granularity of quantization: the scale and zero point of each element.
//!
//! | granularity | shape of the scale, for a tensor `[D₀, …, Dᵢ, …, Dₙ]` and `axis = i` | since |
//! |---|---|---|
//! | per tensor | `[]` or `[1]` | 10 |
//! | per index of an axis | `[Dᵢ]` | 13 |
//! | per block of `block_size` neighbors along an axis | `[D₀, …, ⌈Dᵢ / block_size⌉, …, Dₙ]` | 21 |

use std::ops::Range;

use crate::ops::{Decline, Site, axis_in};
use crate::tensor::{Tensor, product};

/// The assignment of scales to the elements of a tensor.
pub(super) struct Grain {
    /// The number of elements before, on and after the axis.
    outer: usize,
    dim: usize,
    inner: usize,
    kind: Kind,
}

enum Kind {
    Tensor,
    Axis,
    /// The size of a block and the number of blocks along the axis.
    Blocks(usize, usize),
}

impl Grain {
    /// Returns the granularity for the shapes of an operand and its scale.
    ///
    /// # Errors
    /// The scale's shape matches none of the three.
    pub fn of(site: &Site<'_>, x: &Tensor, scale: &Tensor) -> Result<Grain, Decline> {
        let whole = Grain { outer: 1, dim: 1, inner: x.len(), kind: Kind::Tensor };
        let wrong = || {
            let (scale, x) = (scale.shape(), x.shape());
            Decline::invalid(format!("the scale has shape {scale:?}, which does not fit the tensor of shape {x:?}"))
        };
        if scale.rank() <= 1 && scale.len() == 1 {
            return Ok(whole);
        }
        if site.version < 13 {
            return Err(wrong());
        }
        let axis = axis_in(site.attr_int("axis")?.unwrap_or(1), x.rank())?;
        let (before, rest) = x.shape().split_at(axis);
        let [dim, behind @ ..] = rest else { return Err(wrong()) };
        let block = if site.version >= 21 { site.attr_int("block_size")?.unwrap_or(0) } else { 0 };
        let kind = match (block, scale.shape()) {
            (0, [count]) if count == dim => Kind::Axis,
            (1.., shape) if shape.len() == x.rank() => {
                let block = usize::try_from(block).unwrap_or(usize::MAX);
                let blocks = dim.div_ceil(block);
                let expected = before.iter().chain([&blocks]).chain(behind);
                if !shape.iter().eq(expected) {
                    return Err(wrong());
                }
                Kind::Blocks(block, blocks)
            }
            _ => return Err(wrong()),
        };
        let count = |dims: &[usize]| product(dims).unwrap_or(0);
        Ok(Grain { outer: count(before), dim: *dim, inner: count(behind), kind })
    }

    /// Visits runs of adjacent elements in order. Each run has the scale of its first element, and `true` if each further element has
    /// the next scale (else all share one).
    pub fn runs(&self, visit: &mut dyn FnMut(Range<usize>, usize, bool)) {
        let &Grain { outer, dim, inner, ref kind } = self;
        if outer == 0 || dim == 0 || inner == 0 {
            return;
        }
        match *kind {
            Kind::Tensor => visit(0..inner, 0, false),
            Kind::Axis if inner == 1 => (0..outer).for_each(|o| visit(o * dim..(o + 1) * dim, 0, true)),
            Kind::Axis => {
                for row in 0..outer * dim {
                    visit(row * inner..(row + 1) * inner, row % dim, false);
                }
            }
            Kind::Blocks(block, blocks) if inner == 1 => {
                for at in 0..outer * blocks {
                    let (start, first) = (at / blocks * dim, at % blocks * block);
                    visit(start + first..start + dim.min(first.saturating_add(block)), at, false);
                }
            }
            Kind::Blocks(block, blocks) => {
                for row in 0..outer * dim {
                    let scale = (row / dim * blocks + row % dim / block) * inner;
                    visit(row * inner..(row + 1) * inner, scale, true);
                }
            }
        }
    }

    /// Calls `visit` with the index of each element and of its scale, in order.
    pub fn each(&self, mut visit: impl FnMut(usize, usize)) {
        self.runs(&mut |run, scale, next| {
            let start = run.start;
            run.for_each(|at| visit(at, if next { scale + at - start } else { scale }));
        });
    }
}

/// Checks that the zero point has the scale's shape; a single number may be `[]` or `[1]`.
///
/// # Errors
/// The shapes differ.
pub(super) fn check_zero_point(scale: &Tensor, zero: &Tensor) -> Result<(), Decline> {
    let single = |tensor: &Tensor| tensor.rank() <= 1 && tensor.len() == 1;
    if scale.shape() == zero.shape() || single(scale) && single(zero) {
        return Ok(());
    }
    Err(Decline::invalid(format!(
        "the zero point has shape {:?}, but the scale has shape {:?}",
        zero.shape(),
        scale.shape()
    )))
}
