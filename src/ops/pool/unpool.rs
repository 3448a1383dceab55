//! MaxUnpool: writes the maxima of MaxPool to their original positions.
//!
//! | | |
//! |---|---|
//! | computes | zeros, and `X[i]` at index `I[i]` of all elements; the last of equal indices wins |
//! | size | `(D − 1)·stride + kernel − begin − end` |
//! | `output_shape` | is the shape; indices refer to the size above, further elements are zero, as in the standard's conformance test and reference implementation; ONNX Runtime, which fails that test, applies indices to `output_shape` |
//! | versions | 9; 11 (wording); 22 adds bfloat16 |
//! | rejects | indices out of range, or of another shape than the maxima |
//! | not evaluated | an `output_shape` other than the size above |

use super::windowed::read_kernel;
use crate::dim::Dim;
use crate::ir::Fact;
use crate::ops::size_operand::at_least;
use crate::ops::window::read_numbers;
use crate::ops::{Decline, EvalCx, EvalResult, InferCx, InferResult, Operator, Refusal, Site};
use crate::tensor::{DType, Tensor, product};

pub(super) const MAX_UNPOOL: Operator = Operator::new("MaxUnpool", &[9, 11, 22], infer, eval);

/// Returns for each axis the stride and the constant term of the size.
fn read_axes(site: &Site<'_>, kernel: &[i64]) -> Result<Vec<(i64, i64)>, Refusal> {
    let axes = kernel.len();
    let strides = read_numbers(site, "strides", axes, 1)?.unwrap_or_else(|| vec![1; axes]);
    let pads = read_numbers(site, "pads", axes.saturating_mul(2), 0)?.unwrap_or_else(|| vec![0; axes * 2]);
    let (begins, ends) = pads.split_at(axes);
    let rest = kernel
        .iter()
        .zip(begins)
        .zip(ends)
        .map(|((&kernel, &begin), &end)| kernel.checked_sub(begin)?.checked_sub(end));
    let rest =
        rest.collect::<Option<Vec<i64>>>().ok_or_else(|| Refusal::invalid("attribute 'pads' is out of range"))?;
    Ok(strides.into_iter().zip(rest).collect())
}

fn infer(cx: &mut InferCx<'_>) -> InferResult {
    Ok(vec![Fact::tensor(cx.dtype(0), shape_of(cx)?)])
}

fn shape_of(cx: &InferCx<'_>) -> Result<Option<Vec<Dim>>, Refusal> {
    if let (Some(x), Some(places)) = (cx.shape(0), cx.shape(1))
        && (x.len() != places.len() || x.iter().zip(places).any(|(x, places)| cx.scope().eq(x, places).is_no()))
    {
        return Err(Refusal::invalid("the shapes of 'I' (indices) and 'X' differ"));
    }
    if cx.has_input(2) {
        let rank = cx.rank(0).or(cx.rank(1));
        let length = cx.shape(2).and_then(|shape| shape.first()?.as_const()).and_then(|len| usize::try_from(len).ok());
        return Ok(match (cx.ints(2), rank.or(length)) {
            (Some(dims), _) => {
                at_least(cx.scope(), &dims, 0)?;
                Some(dims)
            }
            (None, Some(rank)) if rank < 64 => Some(cx.fresh_shape(rank)),
            _ => None,
        });
    }
    let shape = cx.shape(0).or(cx.shape(1));
    let kernel = read_kernel(cx, shape.map(<[Dim]>::len))?;
    let kernel = kernel.ok_or_else(|| Refusal::invalid("attribute 'kernel_shape' is missing"))?;
    let Some(shape) = shape else { return Ok(Some(cx.fresh_shape(kernel.len() + 2))) };
    let scope = cx.scope();
    let (channels, sizes) = shape.split_at(2);
    let mut dims = channels.to_vec();
    for (size, (stride, rest)) in sizes.iter().zip(read_axes(cx, &kernel)?) {
        let moved = scope.mul(&scope.sub(size, &Dim::constant(1)), &Dim::constant(stride));
        dims.push(scope.add(&moved, &Dim::constant(rest)));
    }
    Ok(Some(dims))
}

fn eval(cx: &mut EvalCx<'_>) -> EvalResult {
    let (x, places) = (cx.tensor(0)?, cx.ints(1)?);
    let kernel = read_kernel(cx, Some(x.rank()))?;
    let kernel = kernel.ok_or_else(|| Decline::invalid("attribute 'kernel_shape' is missing"))?;
    let (channels, sizes) = x.shape().split_at(2);
    let mut shape = channels.to_vec();
    for (&size, (stride, rest)) in sizes.iter().zip(read_axes(cx, &kernel)?) {
        let size =
            i64::try_from(size).ok().and_then(|size| size.checked_sub(1)?.checked_mul(stride)?.checked_add(rest));
        let size = size.and_then(|size| usize::try_from(size).ok());
        shape.push(size.ok_or_else(|| Decline::invalid("the operand 'output_shape' is missing"))?);
    }
    let full = match cx.optional_tensor(2)?.and_then(Tensor::to_i64s) {
        None => shape.clone(),
        Some(given) => {
            let given: Option<Vec<usize>> = given.iter().map(|&dim| usize::try_from(dim).ok()).collect();
            let given = given.filter(|given| given.len() == shape.len());
            given.ok_or_else(|| Decline::invalid("'output_shape' has not one element per axis of 'X'"))?
        }
    };
    if full != shape {
        return Err(Decline::unsupported(
            "the windows cannot produce 'output_shape', for which runtimes return different values",
        ));
    }
    if places.len() != x.len() {
        return Err(Decline::invalid("the numbers of elements of 'I' (indices) and 'X' differ"));
    }
    let width = match x.dtype() {
        DType::Float16 | DType::Bfloat16 => 2,
        DType::Float => 4,
        DType::Double => 8,
        other => return Err(Decline::unsupported(format!("the element type {other} is not supported"))),
    };
    cx.claim(x.dtype(), &full)?;
    let count = product(&shape).unwrap_or(0);
    let mut payload = vec![0u8; count.saturating_mul(width)];
    // Zero has only zero bits, and elements are copied bitwise.
    for (place, element) in places.iter().zip(x.bytes().chunks_exact(width)) {
        let place = usize::try_from(*place).ok().filter(|&place| place < count);
        let place = place.ok_or_else(|| Decline::invalid("an element of 'I' (indices) is out of range"))?;
        let to = payload.get_mut(place * width..(place + 1) * width);
        to.ok_or_else(|| Decline::invalid("an element of 'I' (indices) is out of range"))?.copy_from_slice(element);
    }
    Ok(vec![Tensor::from_bytes(x.dtype(), &full, payload.into())?.into()])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::single::Single;

    fn node() -> Single {
        Single::new("MaxUnpool", 11).with("kernel_shape", vec![2, 2]).with("strides", vec![2, 2])
    }

    #[test]
    fn shapes() {
        let shape = |node: Single| node.infer().remove(0);
        let x = || node().input(DType::Float, "N C 3 W").input(DType::Int64, "N C 3 W");
        assert_eq!(shape(x()), "float[N, C, 6, 2*W]");
        assert_eq!(shape(x().values(&[4], &[1i64, 2, 7, 9])), "float[1, 2, 7, 9]");
        assert_eq!(shape(x().input(DType::Int64, "4")), "float[?, ?, ?, ?]");
        for places in ["", "N C 3", "N C 4 W"] {
            assert!(shape(node().input(DType::Float, "N C 3 W").input(DType::Int64, places)).starts_with("invalid"));
        }
    }

    #[test]
    fn values() {
        let with =
            |places: [i64; 4]| node().values(&[1, 1, 2, 2], &[1.0f32, 2.0, 3.0, 4.0]).values(&[1, 1, 2, 2], &places);
        let spread = [0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 2.0, 0.0, 0.0, 0.0, 0.0, 0.0, 3.0, 0.0, 4.0];
        assert_eq!(with([5, 7, 13, 15]).floats(), spread);
        assert_eq!(with([5, 7, 13, 15]).values(&[4], &[1i64, 1, 4, 4]).floats(), spread);
        assert_eq!(with([0; 4]).floats()[0], 4.0);
        assert!(with([5, 7, 13, 15]).values(&[4], &[1i64, 1, 5, 5]).eval().is_err());
        assert!(with([5, 7, 13, 15]).values(&[4], &[1i64, 1, 5, 3]).eval().is_err());
        assert!(with([16, 0, 0, 0]).eval().is_err());
        assert!(with([-1, 0, 0, 0]).eval().is_err());
    }
}
