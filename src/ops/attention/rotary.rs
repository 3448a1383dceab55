//! RotaryEmbedding: rotates pairs of elements by angles that depend on the position in the sequence.
//!
//! | | |
//! |---|---|
//! | computes | `(x₁, x₂) → (cos·x₁ − sin·x₂, sin·x₁ + cos·x₂)` for pairs of the first `rotary_embedding_dim` elements of each head (0: all) |
//! | pairs | elements `i` and `i + half`, or `2i` and `2i + 1` if `interleaved` |
//! | shapes | `X [B, H, S, D]`, or `[B, S, H·D]` with `num_heads`; caches `[B, S, half]`, or `[positions, half]` with `position_ids [B, S]` |
//! | versions | 23 |
//! | rejects | caches of another shape, positions outside of them, odd dims |

use std::borrow::Cow;

use super::layout::{Layout, read_heads};
use crate::ir::Fact;
use crate::ops::lane::{Ring, read, same_dtype};
use crate::ops::linear::stays_finite;
use crate::ops::{Decline, EvalCx, EvalResult, InferCx, InferResult, Operator, Refusal};
use crate::tensor::Tensor;

pub(super) const ROTARY_EMBEDDING: Operator = Operator::new("RotaryEmbedding", &[23], infer, eval);

fn infer(cx: &mut InferCx<'_>) -> InferResult {
    if cx.rank(0).is_some_and(|rank| rank != 3 && rank != 4) {
        return Err(Refusal::invalid("the rank of 'X' is neither 3 nor 4"));
    }
    let dtype = cx.dtype(0).or(cx.dtype(1)).or(cx.dtype(2));
    Ok(vec![Fact::tensor(dtype, cx.shape(0).map(<[_]>::to_vec))])
}

fn eval(cx: &mut EvalCx<'_>) -> EvalResult {
    let (x, cos, sin) = (cx.tensor(0)?, cx.tensor(1)?, cx.tensor(2)?);
    same_dtype(x.dtype(), &[cos, sin])?;
    let layout = Layout::of(x.shape(), read_heads(cx, "num_heads")?.filter(|_| x.rank() == 3))?;
    let turned = match cx.attr_int("rotary_embedding_dim")?.unwrap_or(0) {
        0 => layout.size,
        dim => usize::try_from(dim).unwrap_or(usize::MAX),
    };
    if turned > layout.size || !turned.is_multiple_of(2) {
        return Err(Decline::invalid(format!(
            "attribute 'rotary_embedding_dim' is {turned}, which is not an even number up to the head size ({})",
            layout.size
        )));
    }
    let half = turned / 2;
    let rows = rows(cx, &layout, half, [cos, sin])?;
    cx.claim(x.dtype(), x.shape())?;
    cx.budget().take_work((x.len() as u64).saturating_mul(4))?;
    let interleaved = cx.attr_flag("interleaved", false)?;
    // Kernels may fuse multiplications and additions.
    stays_finite(2, &[x, cos])?;
    stays_finite(2, &[x, sin])?;
    let (cos, sin) = (read::<f32>(cos)?, read::<f32>(sin)?);
    let mut values = read::<f32>(x)?.into_owned();
    if layout.size > 0 {
        for (at, head) in values.chunks_exact_mut(layout.size).enumerate() {
            let Some(&row) = rows.get(place(&layout, at)) else { continue };
            for pair in 0..half {
                let (first, second) = if interleaved { (2 * pair, 2 * pair + 1) } else { (pair, pair + half) };
                let angle = (cos.get(row * half + pair), sin.get(row * half + pair));
                let elements = (head.get(first).copied(), head.get(second).copied());
                let ((Some(cos), Some(sin)), (Some(x1), Some(x2))) = (angle, elements) else { continue };
                for (place, turned) in [(first, cos * x1 - sin * x2), (second, sin * x1 + cos * x2)] {
                    head.get_mut(place).into_iter().for_each(|element| *element = turned);
                }
            }
        }
    }
    Ok(vec![f32::write(x.dtype(), x.shape(), values)?.into()])
}

/// Returns the flat position, `batch·sequence + position`, of a head in the operand's layout.
fn place(layout: &Layout, at: usize) -> usize {
    match layout.packed {
        true => at / layout.heads,
        false => at / (layout.heads * layout.sequence) * layout.sequence + at % layout.sequence,
    }
}

/// Returns the cache row for each position of each batch entry.
fn rows<'a>(cx: &EvalCx<'_>, layout: &Layout, half: usize, caches: [&Tensor; 2]) -> Result<Cow<'a, [usize]>, Decline> {
    let places = [layout.batch, layout.sequence];
    let wrong = || {
        Decline::invalid(format!(
            "'cos_cache' and 'sin_cache' have shapes {:?} and {:?}, which do not fit 'X'",
            caches[0].shape(),
            caches[1].shape()
        ))
    };
    let Some(positions) = cx.optional_tensor(3)? else {
        let expected = [layout.batch, layout.sequence, half];
        if caches.iter().any(|cache| cache.shape() != expected) {
            return Err(wrong());
        }
        cx.claim(crate::tensor::DType::Int64, &places)?;
        let count = crate::tensor::product(&places).unwrap_or(0);
        return Ok((0..count).collect::<Vec<usize>>().into());
    };
    let &[count, _] = caches[0].shape() else { return Err(wrong()) };
    if caches.iter().any(|cache| cache.shape() != [count, half]) || positions.shape() != places {
        return Err(wrong());
    }
    let row = |position: i64| {
        let row = usize::try_from(position).ok().filter(|&row| row < count);
        row.ok_or_else(|| Decline::invalid(format!("the caches have no entry for position {position}")))
    };
    Ok(cx.ints(3)?.into_iter().map(row).collect::<Result<Vec<usize>, Decline>>()?.into())
}

#[cfg(test)]
mod tests {
    use crate::ops::single::Single;
    use crate::tensor::DType;

    #[test]
    fn shape_is_kept() {
        let node = Single::new("RotaryEmbedding", 23).input(DType::Float16, "B H S 64").unranked(DType::Float16);
        assert_eq!(node.unranked(DType::Float16).infer(), ["float16[B, H, S, 64]"]);
    }

    #[test]
    fn pairs_are_turned() {
        let x = [1.0f32, 2.0, 3.0, 4.0];
        let caches = |node: Single| node.values(&[1, 1, 2], &[0.0f32, 1.0]).values(&[1, 1, 2], &[1.0f32, 0.0]);
        let halves = caches(Single::new("RotaryEmbedding", 23).values(&[1, 1, 1, 4], &x));
        assert_eq!(halves.floats(), [-3.0, 2.0, 1.0, 4.0]);
        let pairs = caches(Single::new("RotaryEmbedding", 23).values(&[1, 1, 4], &x).with("num_heads", 1));
        assert_eq!(pairs.with("interleaved", 1).floats(), [-2.0, 1.0, 3.0, 4.0]);
        let part = Single::new("RotaryEmbedding", 23)
            .values(&[1, 2, 1, 4], &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0])
            .values(&[3, 1], &[9.0f32, 9.0, 0.0])
            .values(&[3, 1], &[9.0f32, 9.0, 1.0])
            .values(&[1, 1], &[2i64])
            .with("rotary_embedding_dim", 2);
        assert_eq!(part.floats(), [-2.0, 1.0, 3.0, 4.0, -6.0, 5.0, 7.0, 8.0]);
    }

    #[test]
    fn caches_must_fit() {
        let x = || Single::new("RotaryEmbedding", 23).values(&[1, 1, 1, 2], &[1.0f32, 2.0]);
        let cache = |node: Single, shape: &[usize]| node.values(shape, &[1.0f32]).values(shape, &[1.0f32]);
        assert!(cache(x(), &[1, 1]).eval().is_err());
        assert!(cache(x(), &[1, 1]).values(&[1, 1], &[1i64]).eval().is_err());
        assert!(cache(x(), &[1, 1]).values(&[1, 1], &[-1i64]).eval().is_err());
        assert!(cache(x(), &[1, 1, 1]).eval().is_ok());
    }
}
