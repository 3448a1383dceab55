//! Operators that move elements, or make them from nothing, without computing on them (and a few that compute as they go:
//! scattering with a reduction, cumulative sums, Col2Im).
//!
//! | file | operators |
//! | --- | --- |
//! | [`constants`] | Constant, ConstantOfShape, EyeLike |
//! | [`shape`] | Shape, Size |
//! | [`reshape`] | Reshape |
//! | [`squeeze`] | Squeeze, Unsqueeze, Flatten |
//! | [`transpose`] | Transpose, DepthToSpace, SpaceToDepth |
//! | [`concat_split`] | Concat, Split |
//! | [`gather`] | Gather, GatherElements, GatherND |
//! | [`scatter`] | Scatter, ScatterElements, ScatterND, TensorScatter |
//! | [`expand_tile`] | Expand, Tile |
//! | [`pad`] | Pad, CenterCropPad |
//! | [`range`] | Range |
//! | [`cumulate`] | CumSum, CumProd |
//! | [`triangle`] | Trilu |
//! | [`one_hot`] | OneHot |
//! | [`select`] | NonZero, Compress, Unique |
//! | [`topk`] | TopK |
//! | [`reverse_sequence`] | ReverseSequence |
//! | [`col2im`] | Col2Im |
//!
//! Operators at constant strides, and Pad, are evaluated from their index maps ([`maps`]). Other operators that only move elements have one kernel,
//! written for elements of whole bytes; [`cells`] runs it on every element type. The elements of small tensors that are known in part follow the
//! operators' index maps (`contents`).

mod cells;
pub(in crate::ops) mod col2im;
pub(in crate::ops) mod concat_split;
pub(in crate::ops) mod constants;
pub(in crate::ops) mod cumulate;
pub(in crate::ops) mod expand_tile;
pub(in crate::ops) mod gather;
mod lookup;
pub(in crate::ops) mod maps;
pub(in crate::ops) mod moves;
pub(in crate::ops) mod one_hot;
mod order;
pub(in crate::ops) mod pad;
pub(in crate::ops) mod pieces;
pub(in crate::ops) mod positions;
pub(in crate::ops) mod range;
pub(in crate::ops) mod reshape;
pub(in crate::ops) mod reverse_sequence;
pub(in crate::ops) mod scatter;
pub(in crate::ops) mod select;
pub(in crate::ops) mod shape;
pub(in crate::ops) mod squeeze;
pub(in crate::ops) mod topk;
pub(in crate::ops) mod transpose;
pub(in crate::ops) mod triangle;

use crate::dim::{Dim, Scope};
use crate::ir::Fact;
use crate::ops::{Decline, EvalCx, InferCx, Refusal, Site, axis_in};
use crate::tensor::{DType, Tensor, product};

/// A list of integers: an attribute in old versions of an operator, an operand in newer ones.
#[derive(Clone, Debug)]
enum List {
    /// Left out.
    Absent,
    /// Known.
    Known(Vec<i64>),
    /// An operand nobody knows yet; its length may be known.
    Unknown(Option<usize>),
}

impl List {
    fn attribute(site: &Site<'_>, name: &str) -> Result<List, Refusal> {
        Ok(site.attr_ints(name)?.map_or(List::Absent, |list| List::Known(list.to_vec())))
    }

    fn operand(cx: &InferCx<'_>, i: usize) -> List {
        match cx.input(i) {
            None => List::Absent,
            Some(fact) => fact.const_ints().map_or_else(|| List::Unknown(fact.static_len()), List::Known),
        }
    }
}

/// Axes, each checked against the rank and counted from the front.
fn axes_in(axes: &[i64], rank: usize) -> Result<Vec<usize>, Refusal> {
    axes.iter().map(|&axis| axis_in(axis, rank)).collect()
}

/// The same, each named once at most.
fn distinct_axes(axes: &[i64], rank: usize) -> Result<Vec<usize>, Refusal> {
    let axes = axes_in(axes, rank)?;
    let mut seen = vec![false; rank];
    for &axis in &axes {
        if seen.get_mut(axis).is_none_or(|seen| std::mem::replace(seen, true)) {
            return Err(Refusal::invalid(format!("axis {axis} is listed twice")));
        }
    }
    Ok(axes)
}

/// Sizes given as integers.
fn sizes(ints: &[i64]) -> Result<Vec<usize>, Refusal> {
    ints.iter()
        .map(|&int| usize::try_from(int).map_err(|_| Refusal::invalid(format!("a size is negative: {int}"))))
        .collect()
}

/// The elements as integers, if they are whole. The first versions of Split and Tile take sizes in the type of their data.
fn whole(tensor: &Tensor) -> Option<Vec<i64>> {
    if let Some(ints) = tensor.to_i64s() {
        return Some(ints);
    }
    // Up to 2⁵³ every whole number is exact.
    let exact = |value: f64| (value.trunc() == value && value.abs() <= 9_007_199_254_740_992.0).then_some(value as i64);
    tensor.to_f64s()?.into_iter().map(exact).collect()
}

/// The number of elements, or of rows, of these dims.
fn count(dims: &[usize]) -> Result<usize, Decline> {
    product(dims).ok_or_else(|| Decline::OverBudget(format!("dims {dims:?} exceed the address space")))
}

/// The dims before an axis, the axis and the dims behind it, each multiplied out.
fn around(shape: &[usize], axis: usize) -> Result<(usize, usize, usize), Decline> {
    let outside = || Decline::invalid(format!("axis {axis} is out of range for shape {shape:?}"));
    let (before, rest) = shape.split_at_checked(axis).ok_or_else(outside)?;
    let (&dim, behind) = rest.split_first().ok_or_else(outside)?;
    Ok((count(before)?, dim, count(behind)?))
}

/// Takes the bytes of a result from the budget, and those of its elements spread out where they are packed.
fn claim(cx: &EvalCx<'_>, dtype: DType, shape: &[usize]) -> Result<(), Decline> {
    if dtype.is_packed() {
        cx.claim(DType::Uint8, shape)?;
    }
    cx.claim(dtype, shape)
}

/// A size that is not known but is at most `limit`: a new symbol.
fn dim_up_to(cx: &InferCx<'_>, limit: &Dim) -> Dim {
    dim_between(cx, 0, limit)
}

/// The same, and at least `low`, which must not be more than `limit`.
fn dim_between(cx: &InferCx<'_>, low: i64, limit: &Dim) -> Dim {
    let scope = cx.scope();
    if limit.is_const(0) {
        return Dim::constant(0);
    }
    let stem = cx.node.outputs().iter().flatten().next().map_or("dim", |&value| &cx.model.value(value).name);
    let dim = scope.fresh_within(stem, Some(low), scope.upper_bound(limit));
    // Said of a limit that may be negative, it would say something of the limit's symbols too, and that in runs that never
    // come here.
    if scope.ge(limit, &Dim::constant(0)).is_yes() {
        scope.assume_le(&dim, limit);
    }
    dim
}

/// The best that several facts about one size say: a number, else the first. All of them hold, so any will do.
///
/// # Errors
/// Two of them cannot both hold.
fn agree<'d>(scope: &Scope, dims: impl IntoIterator<Item = &'d Dim>) -> Result<Option<Dim>, Refusal> {
    let mut best: Option<&Dim> = None;
    for dim in dims {
        let Some(known) = best else {
            best = Some(dim);
            continue;
        };
        if scope.eq(known, dim).is_no() {
            let (known, dim) = (scope.format(known), scope.format(dim));
            return Err(Refusal::invalid(format!("two dims that must be equal are {known} and {dim}")));
        }
        let vague = |dim: &Dim| match dim.as_const() {
            Some(_) => 0,
            None => 1 + usize::from(dim.symbols().iter().any(|&symbol| scope.is_fresh(symbol))),
        };
        if vague(dim) < vague(known) {
            best = Some(dim);
        }
    }
    Ok(best.cloned())
}

/// A tensor of more axes than this is stated without its shape when no dim is known: the length of an operand that nobody has
/// seen should not decide how many symbols are made.
const MAX_OPEN_RANK: usize = 256;

/// A tensor of which only the type is known, and perhaps the rank.
fn of_rank(cx: &InferCx<'_>, dtype: Option<DType>, rank: Option<usize>) -> Fact {
    Fact::tensor(dtype, rank.filter(|&rank| rank <= MAX_OPEN_RANK).map(|rank| cx.fresh_shape(rank)))
}

#[cfg(test)]
use crate::ops::testing::movement as testing;
