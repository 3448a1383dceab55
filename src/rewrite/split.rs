//! Moves an operator that is applied to every part of a Split before the Split.
//!
//! Law: for `f` that treats every index along an axis in the same way, `f(Split(x)[i]) = Split(f(x))[i]`; see [`super::parts`].

use super::miss::{Miss, ensure};
use super::parts::{Parts, Unfit};
use super::place::Place;
use super::rule::{Rule, miss};
use crate::ir::{Edit, ValueId};

pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "split-behind",
        law: "f(Split(x)[i]) = Split(f(x))[i]",
        sentence: "Moves a Split after operators that are applied to each output of the Split.",
        premises: &[
            (
                "all-parts",
                "each output of the Split has exactly one consumer, and all these consumers are the same operator f with the same attributes",
            ),
            ("alike-along-axis", "f computes the same bits at all positions of the split axis"),
            (
                "operand-alike",
                "each other operand of f has equal elements along the split axis, or is a separate constant for each output. Such a constant has no other consumer, or has few elements",
            ),
            ("known-sizes", "the sizes of the outputs along the axis are constants"),
            (
                "no-residual",
                "no result of f is broadcast in a sum with the result of a Conv, because OpenCV assumes equal shapes in the sum, and fails",
            ),
        ],
        exact: true,
        operators: &["Split"],
        apply: behind,
    },
    Rule {
        name: "split-behind-function",
        law: "f(Split(x)[i]) = Split(f(x))[i], up to rounding",
        sentence: "Moves a Split after functions that are applied to each output of the Split, including functions whose float rounding depends on the position of an element.",
        premises: &[
            (
                "all-parts",
                "each output of the Split has exactly one consumer, and all these consumers are the same operator f with the same attributes",
            ),
            ("alike-along-axis", "f treats all positions of the split axis identically, up to rounding"),
            ("known-sizes", "the sizes of the outputs along the axis are constants"),
        ],
        exact: false,
        operators: &["Split"],
        apply: behind_function,
    },
];

/// Applies only operations that keep results equal bit for bit.
fn behind(place: &Place<'_>) -> Result<Edit, Miss> {
    apply(place, true)
}

fn behind_function(place: &Place<'_>) -> Result<Edit, Miss> {
    apply(place, false)
}

fn apply(place: &Place<'_>, exact: bool) -> Result<Edit, Miss> {
    let node = place.root()?;
    let whole = node.input(0).ok_or(Miss::ROOT)?;
    let dims = place.dims(whole)?;
    let axis = place.read(node).axis(dims.len()).ok_or(Miss::ROOT)?;
    let results = node.outputs().iter().copied().collect::<Option<_>>().ok_or(miss!("all-parts"))?;
    let parts = Parts::of(place, results, axis).ok_or(miss!("known-sizes").dim(whole, axis))?;
    let step = parts.step(place).map_err(|unfit| match unfit {
        Unfit::Consumers => miss!("all-parts"),
        Unfit::Operator => miss!("alike-along-axis"),
        Unfit::Operand if exact => miss!("operand-alike"),
        Unfit::Operand => miss!("alike-along-axis"),
    })?;
    // The other rule handles these.
    ensure(step.exact == exact, Miss::ROOT)?;
    ensure(!step.results.iter().any(|&result| is_spread_over_convolution(place, result)), miss!("no-residual"))?;
    let mut edit = place.begin()?.removing(place.id);
    step.build(place, &mut edit, whole, dims).ok_or(miss!("known-sizes"))?;
    Ok(edit)
}

/// Returns `true` if a value is broadcast and added to the result of a Conv, as the time embedding in a block of a diffusion model is.
fn is_spread_over_convolution(place: &Place<'_>, value: ValueId) -> bool {
    place.model.users(value).into_iter().any(|(id, slot)| {
        let sum = place.model.node(id).filter(|node| node.is("Add"));
        let other = sum.and_then(|node| node.input(1usize.checked_sub(slot)?));
        other.is_some_and(|other| place.producer(other, "Conv").is_some() && !place.same_shape(other, value))
    })
}
