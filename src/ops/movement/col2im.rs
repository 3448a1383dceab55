//! Col2Im: overlapping blocks of an image, summed.
//!
//! One version, 18. The operand is `[N, C·∏block, L]`, the result `[N, C, image…]`. Element `(n, c, b, l)` is added at the position of
//! element `b` of block number `l`, with the strides, pads and dilations of a convolution; elements in the pads are dropped.
//!
//! The operator has no index map, even where it is a permutation of blocks: sums begin with +0, so −0 becomes +0.
//!
//! Refused: another number of blocks than fit the padded image, sizes below 1, other types than numbers.

use super::cells::elements_of;
use super::{count, of_rank, sizes};
use crate::dim::Scope;
use crate::ir::{Data, Fact, Scalar};
use crate::ops::size_operand::at_least;
use crate::ops::{Decline, EvalCx, EvalResult, InferCx, InferResult, Operator, Refusal, Site};
use crate::tensor::{Indices, Number, Tensor, dispatch_numeric};

pub(in crate::ops) const OPERATORS: &[Operator] = &[Operator::new("Col2Im", &[18], infer, eval)];

fn infer(cx: &mut InferCx<'_>) -> InferResult {
    let (data, image, block) = (cx.required(0)?, cx.required(1)?, cx.required(2)?);
    let dtype = data.dtype();
    let Some(axes) = image.static_len().or(block.static_len()) else { return Ok(vec![Fact::tensor(dtype, None)]) };
    let (batch, depth) = match data.shape() {
        Some([batch, depth, _]) => (batch.clone(), Some(depth)),
        Some(shape) => return Err(Refusal::invalid(format!("the rank of the input is {} instead of 3", shape.len()))),
        None => (cx.fresh_dim(), None),
    };
    let scope: &Scope = cx.scope();
    for sizes in [image, block].into_iter().filter_map(Fact::ints) {
        at_least(scope, &sizes, 1)?;
    }
    let mut channels = None;
    if let (Some(depth), Some(block)) = (depth, block.ints()) {
        let area = scope.product(&block);
        channels = match (scope.quotient(depth, &area), depth.as_const().zip(area.as_const())) {
            (Some(channels), _) => Some(channels),
            (None, Some((depth, area))) => {
                return Err(Refusal::invalid(format!(
                    "the second dim of the input ({depth}) is not a multiple of the block size ({area})"
                )));
            }
            (None, None) => Some(scope.floor_div(depth, &area)),
        };
    }
    let mut dims = vec![batch, channels.unwrap_or_else(|| cx.fresh_dim())];
    match elements_of(image) {
        Some(elements) => dims.extend(elements.into_iter().map(|element| match element {
            Scalar::Int(size) => size,
            _ => cx.fresh_dim(),
        })),
        None => return Ok(vec![of_rank(cx, dtype, axes.checked_add(2))]),
    }
    Ok(vec![Fact::tensor(dtype, Some(dims))])
}

/// Returns an attribute with one number for each axis (or two), by default the same for all.
fn per_axis(site: &Site<'_>, name: &str, length: usize, default: usize) -> Result<Vec<usize>, Refusal> {
    match site.attr_ints(name)? {
        None => Ok(vec![default; length]),
        Some(given) if given.len() == length => sizes(given),
        Some(given) => {
            Err(Refusal::invalid(format!("the operand '{name}' has {} elements instead of {length}", given.len())))
        }
    }
}

/// The positions of the blocks' elements along one axis of the image.
struct Axis {
    image: usize,
    block: usize,
    /// The number of blocks.
    blocks: usize,
    stride: usize,
    dilation: usize,
    pad: usize,
}

impl Axis {
    /// Returns the position of element `at` of block `block`, unless it is in the pads.
    fn place(&self, block: usize, at: usize) -> Option<usize> {
        let padded = block.checked_mul(self.stride)?.checked_add(at.checked_mul(self.dilation)?)?;
        padded.checked_sub(self.pad).filter(|&place| place < self.image)
    }
}

fn axes(site: &Site<'_>, image: &[usize], block: &[usize]) -> Result<Vec<Axis>, Refusal> {
    let rank = image.len();
    if block.len() != rank {
        return Err(Refusal::invalid(format!(
            "'image_shape' has {rank} elements, but 'block_shape' has {}",
            block.len()
        )));
    }
    let strides = per_axis(site, "strides", rank, 1)?;
    let dilations = per_axis(site, "dilations", rank, 1)?;
    let pads = per_axis(site, "pads", rank.saturating_mul(2), 0)?;
    let (begins, ends) = pads.split_at_checked(rank).unwrap_or_default();
    let each = image.iter().zip(block).zip(strides.iter().zip(&dilations)).zip(begins.iter().zip(ends));
    each.map(|(((&image, &block), (&stride, &dilation)), (&pad, &end))| {
        let extent = block.checked_sub(1).and_then(|steps| steps.checked_mul(dilation)?.checked_add(1));
        let padded = image.checked_add(pad).and_then(|sum| sum.checked_add(end));
        let room = padded.zip(extent).and_then(|(padded, extent)| padded.checked_sub(extent));
        let blocks = room.and_then(|room| room.checked_div(stride)?.checked_add(1)).filter(|_| dilation > 0);
        let blocks = blocks.ok_or_else(|| {
            Refusal::invalid(format!("a block of size {block} does not fit an image of size {image}"))
        })?;
        Ok(Axis { image, block, blocks, stride, dilation, pad })
    })
    .collect()
}

fn eval(cx: &mut EvalCx<'_>) -> EvalResult {
    let data = cx.tensor(0)?;
    let (image, block) = (sizes(&cx.ints(1)?)?, sizes(&cx.ints(2)?)?);
    let axes = axes(cx, &image, &block)?;
    let &[batch, depth, columns] = data.shape() else {
        return Err(Decline::invalid(format!("the rank of the input is {} instead of 3", data.rank())));
    };
    let area = count(&block)?;
    let blocks = count(&axes.iter().map(|axis| axis.blocks).collect::<Vec<_>>())?;
    let channels = depth.checked_div(area).filter(|channels| channels.checked_mul(area) == Some(depth));
    let channels = channels.filter(|_| blocks == columns);
    let channels = channels.ok_or_else(|| {
        Decline::invalid(format!(
            "the input has shape {:?}, which does not hold {blocks} blocks of {area} elements",
            data.shape()
        ))
    })?;
    let shape = [[batch, channels].as_slice(), &image].concat();
    cx.claim(data.dtype(), &shape)?;
    cx.budget().take_work((data.len() as u64).saturating_mul(axes.len() as u64))?;
    let result = dispatch_numeric!(data.dtype(), T => summed::<T>(data, &axes, &shape)?, else => {
        return Err(Decline::unsupported(format!("the element type {} is not supported", data.dtype())));
    });
    Ok(vec![Data::Tensor(result)])
}

fn summed<T: Number>(data: &Tensor, axes: &[Axis], shape: &[usize]) -> Result<Tensor, Decline> {
    let fails = || Decline::invalid("an element of a block lies outside of the image");
    let elements = data.elements::<T>().ok_or_else(fails)?;
    let len = count(shape)?;
    let mut result = vec![T::zero(); len];
    if data.is_empty() || len == 0 {
        return Ok(Tensor::from_vec(shape, result)?);
    }
    let image: usize = axes.iter().map(|axis| axis.image).product();
    let within: Vec<usize> = axes.iter().map(|axis| axis.block).collect();
    let blocks: Vec<usize> = axes.iter().map(|axis| axis.blocks).collect();
    let columns: usize = blocks.iter().product();
    let area: usize = within.iter().product();
    // A row of the operand holds one element of all blocks, for one channel of one batch entry.
    let mut inside = Indices::new(&within);
    for (row, columns) in elements.chunks(columns).enumerate() {
        if row % area == 0 {
            inside = Indices::new(&within);
        }
        let at = inside.advance().ok_or_else(fails)?;
        let plane = row / area * image;
        let mut block = Indices::new(&blocks);
        for &element in columns {
            let block = block.advance().ok_or_else(fails)?;
            let mut each = axes.iter().zip(block.iter().zip(at));
            let place =
                each.try_fold(0usize, |sum, (axis, (&block, &at))| Some(sum * axis.image + axis.place(block, at)?));
            if let Some(place) = place {
                let sum = result.get_mut(plane + place).ok_or_else(fails)?;
                *sum = sum.add(element);
            }
        }
    }
    Ok(Tensor::from_vec(shape, result)?)
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::super::testing::*;
    use super::*;

    #[test]
    fn blocks_are_summed() {
        let ones = |shape: &[usize]| tensor(shape, &vec![1f32; shape.iter().product()]);
        let run = |case: Case, data: Tensor, image: &[i64], block: &[i64]| case.eval([data, ints(image), ints(block)]);
        let case = || Case::new("Col2Im", 18);
        // Each element counts the blocks that cover it.
        let counts = run(case(), ones(&[1, 4, 4]), &[3, 3], &[2, 2]);
        assert!(counts.same(&tensor(&[1, 1, 3, 3], &[1f32, 2.0, 1.0, 2.0, 4.0, 2.0, 1.0, 2.0, 1.0])));
        let strided = run(case().with("strides", vec![2, 2]), iota(&[1, 4, 1]), &[2, 3], &[2, 2]);
        assert_eq!(values::<f32>(&strided), [0.0, 1.0, 0.0, 2.0, 3.0, 0.0]);
        let padded = run(case().with("pads", vec![1, 0, 1, 0]), ones(&[2, 6, 6]), &[2, 2], &[2, 1]);
        assert_eq!(padded.shape(), [2, 3, 2, 2]);
        let dilated = run(case().with("dilations", vec![2, 1]), iota(&[1, 2, 2]), &[3, 2], &[2, 1]);
        assert_eq!(values::<f32>(&dilated), [0.0, 1.0, 0.0, 0.0, 2.0, 3.0]);
        case().fails([ones(&[1, 4, 3]), ints(&[3, 3]), ints(&[2, 2])]);
        case().fails([ones(&[1, 5, 4]), ints(&[3, 3]), ints(&[2, 2])]);
        case().fails([ones(&[1, 4, 4]), ints(&[3, 3]), ints(&[0, 2])]);
        case().fails([ones(&[1, 4, 4]), ints(&[1, 3]), ints(&[2, 2])]);
        case().with("strides", vec![0, 1]).fails([ones(&[1, 4, 4]), ints(&[3, 3]), ints(&[2, 2])]);
    }

    #[test]
    fn symbols_follow() {
        let scope = Rc::new(Scope::new());
        let facts = vec![
            Some(shaped(&scope, &["B", "4*C", "L"])),
            Some(vector(&scope, &["H", "W"])),
            Some(Fact::constant(ints(&[2, 2]))),
        ];
        assert_eq!(dims(&scope, &Case::new("Col2Im", 18).infer(&scope, facts)[0]), ["B", "C", "H", "W"]);
    }
}
