//! Slices of different axes, one after the other.
//!
//! Law: `x[r on a][q on b] = x[r on a, q on b]` where `a` and `b` are different axes. The rule [`movement`](crate::rewrite::movement) composes Slices
//! between numbers. Computed bounds are concatenated here. The size planner then computes the bounds of both axes at once, if they have equal
//! formulas, as height and width do.

use crate::ir::{Edit, Node, ValueId};
use crate::ops::axis_in;
use crate::rewrite::build::{Build, axes as axes_of, rebuilt};
use crate::rewrite::limits::READERS;
use crate::rewrite::miss::{Miss, ensure};
use crate::rewrite::place::Place;
use crate::rewrite::rule::{Rule, miss};
use crate::tensor::{DType, Tensor};

pub(in crate::rewrite) const RULES: &[Rule] = &[Rule {
    name: "slices-of-different-axes",
    law: "x[r on a][q on b] = x[r on a, q on b]",
    sentence: "Merges two consecutive Slices of different axes.",
    premises: &[
        ("different-axes", "the operand axes of both Slices is constant, and no axis occurs in both"),
        (
            "alike",
            "starts and ends of both Slices are constants, or results of the same operators on outputs of the same nodes",
        ),
        ("known-steps", "the steps of both Slices are constants"),
        ("one-reader", "the first Slice has no other consumer"),
    ],
    exact: true,
    operators: &["Slice"],
    apply: together,
}];

fn together(place: &Place<'_>) -> Result<Edit, Miss> {
    let (middle, output) = (place.operand(0)?, place.result()?);
    let (first, inner) = place.producer(middle, "Slice").ok_or(Miss::ROOT)?;
    let (data, node) = (inner.input(0).ok_or(Miss::ROOT)?, place.root()?);
    let rank = place.dims(data)?.len();
    ensure(place.opset.slice_has_operands(), Miss::EXPRESSIBLE)?;
    ensure(place.has_one_reader(middle), miss!("one-reader").of(middle))?;
    let along = |node: &Node| {
        let own = place.read(node).slice_axes()?;
        own.iter().map(|&axis| axis_in(axis, rank).ok()).collect::<Option<Vec<usize>>>()
    };
    let (mut axes, rest) = (along(inner).ok_or(miss!("different-axes"))?, along(node).ok_or(miss!("different-axes"))?);
    ensure(
        !axes.is_empty() && !rest.is_empty() && !axes.iter().any(|axis| rest.contains(axis)),
        miss!("different-axes"),
    )?;
    let counts = [axes.len(), rest.len()];
    axes.extend(rest);
    let mut steps = place.read(inner).slice_steps().ok_or(miss!("known-steps"))?;
    steps.extend(place.read(node).slice_steps().ok_or(miss!("known-steps"))?);
    let pairs = [1, 2].map(|slot| Some((inner.input(slot)?, node.input(slot)?)));
    let [Some(starts), Some(ends)] = pairs else { return Err(miss!("alike")) };
    let is_number = |&(a, b): &(ValueId, ValueId)| place.constant(a).is_some() && place.constant(b).is_some();
    ensure(![starts, ends].iter().all(is_number), Miss::ROOT)?;
    ensure(steps.len() == axes.len(), miss!("known-steps"))?;
    let joins = |&(a, b): &(ValueId, ValueId)| is_number(&(a, b)) || alike(place, a, b);
    // A bound for each axis.
    let is_bound = |value: ValueId, count: usize| {
        let counts =
            i64::try_from(count).is_ok_and(|count| matches!(place.shape(value), Some([dim]) if dim.is_const(count)));
        counts && place.dtype(value) == Some(DType::Int64)
    };
    ensure(
        [starts, ends].iter().all(|pair| joins(pair) && is_bound(pair.0, counts[0]) && is_bound(pair.1, counts[1])),
        miss!("alike"),
    )?;
    let mut edit = place.begin()?;
    let starts = joined(place, &mut edit, starts).ok_or(miss!("alike"))?;
    let ends = joined(place, &mut edit, ends).ok_or(miss!("alike"))?;
    let slice = place
        .build(&mut edit, output)
        .slice_between(data, starts, ends, axes_of(axes), steps)
        .ok_or(Miss::EXPRESSIBLE)?;
    place.instead(edit.removing(first), rebuilt(node, slice))
}

/// Two vectors as one.
fn joined(place: &Place<'_>, edit: &mut Edit, (a, b): (ValueId, ValueId)) -> Option<ValueId> {
    if let Some((first, second)) = place.const_ints(a).zip(place.const_ints(b)) {
        return Some(edit.constant(a, "bounds", Tensor::vector([first, second].concat())));
    }
    let whole = edit.new_value(a, "bounds");
    edit.insert.push(Build::concat([a, b], 0i64).output(whole));
    Some(whole)
}

/// Whether two values are computed by the same operators, of numbers and of results of the same nodes. Each pair is looked at once, and few
/// pairs are: formulas of sizes are short.
fn alike(place: &Place<'_>, a: ValueId, b: ValueId) -> bool {
    let mut pairs = vec![(a, b)];
    let mut at = 0;
    while let Some(&(a, b)) = pairs.get(at) {
        at += 1;
        if a == b || place.constant(a).is_some() && place.constant(b).is_some() {
            continue;
        }
        let of = |value: ValueId| place.model.value(value).producer();
        let (Some(one), Some(other)) = (of(a), of(b)) else { return false };
        // Parts of one Split, and sizes of one tensor.
        if one == other {
            continue;
        }
        let (Some(one), Some(other)) = (place.model.node(one), place.model.node(other)) else { return false };
        let same_operator = one.op_type == other.op_type && one.canonical_domain() == other.canonical_domain();
        if !same_operator || one.inputs().len() != other.inputs().len() || one.subgraphs().next().is_some() {
            return false;
        }
        if !one.is("Shape") && !one.same_attributes(other) {
            return false;
        }
        for pair in one.inputs().iter().zip(other.inputs()) {
            match pair {
                (Some(a), Some(b)) if !pairs.contains(&(*a, *b)) => pairs.push((*a, *b)),
                (Some(_), Some(_)) | (None, None) => {}
                _ => return false,
            }
            if pairs.len() > READERS {
                return false;
            }
        }
    }
    true
}
