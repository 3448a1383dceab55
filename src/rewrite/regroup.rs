//! Axes that are turned, run together or taken apart, and turned back.
//!
//! Law: let a Reshape make groups of axes of other groups, each of as many elements. Where every group that it reads stood together and in
//! order before a Transpose, it may be reshaped before that Transpose, and the groups are turned afterwards. So
//! `Transpose(Reshape(Transpose(x, p)), q)` is one Reshape, or a Reshape and one Transpose.

use super::build::Build;
use super::groups::groups;
use super::miss::{Miss, ensure};
use super::place::Place;
use super::rule::{Rule, miss};
use crate::dim::Dim;
use crate::ir::Edit;

pub(super) const RULES: &[Rule] = &[Rule {
    name: "transpose-around-reshape",
    law: "Transpose(Reshape(Transpose(x, p)), q) = Transpose(Reshape(x))",
    sentence: "Merges Transposes around a Reshape.",
    premises: &[
        ("groups-together", "the axes that the Reshape regroups are adjacent and in order in x"),
        ("sizes-said", "a node with constant operands can express the reshape of x"),
        ("one-reader", "the values between have no other consumer, unless no Transpose remains"),
    ],
    exact: true,
    operators: &["Transpose"],
    apply: around_reshape,
}];

fn around_reshape(place: &Place<'_>) -> Result<Edit, Miss> {
    let (laid_out, output) = (place.operand(0)?, place.result()?);
    let (reshape, reshaping) = place.layout(laid_out).ok_or(Miss::ROOT)?;
    let turned = reshaping.input(0).ok_or(Miss::ROOT)?;
    let (_, turning) = place.producer(turned, "Transpose").ok_or(Miss::ROOT)?;
    let input = turning.input(0).ok_or(Miss::ROOT)?;
    let (dims, target) = (
        place.shape(input).ok_or(miss!("groups-together").of(input))?,
        place.shape(laid_out).ok_or(miss!("groups-together").of(laid_out))?,
    );
    let first = place.read(turning).permutation(dims.len()).ok_or(Miss::ROOT)?;
    let second = place.reading()?.permutation(target.len()).ok_or(Miss::ROOT)?;
    let mut groups = groups(place.scope(), place.shape(turned).ok_or(miss!("groups-together").of(turned))?, target)
        .ok_or(miss!("groups-together").of(turned))?;
    // Each group stands together in the input.
    for group in &groups {
        let axes = first.get(group.from.clone()).ok_or(miss!("groups-together"))?;
        ensure(
            axes.windows(2).all(|pair| matches!(pair, [a, b] if a.checked_add(1) == Some(*b))),
            miss!("groups-together"),
        )?;
    }
    groups.sort_by_key(|group| first.get(group.from.start).copied());
    let order: Vec<usize> = groups.iter().flat_map(|group| group.to.clone()).collect();
    let shape: Vec<Dim> =
        order.iter().map(|&axis| target.get(axis).cloned()).collect::<Option<_>>().ok_or(miss!("groups-together"))?;
    let turns: Vec<usize> = second
        .iter()
        .map(|axis| order.iter().position(|own| own == axis))
        .collect::<Option<_>>()
        .ok_or(miss!("groups-together"))?;
    let stays = turns.iter().enumerate().all(|(at, &axis)| at == axis);
    let alone = |value, reader| place.model.is_read_only_by(value, &[reader]);
    ensure(stays || alone(turned, reshape) && alone(laid_out, place.id), miss!("one-reader"))?;
    let mut edit = place.begin()?;
    let reached = if stays { output } else { edit.new_value(output, "grouped") };
    let reshape = place
        .build(&mut edit, reached)
        .reshape_to(place.scope(), input, dims, &shape)
        .ok_or(miss!("sizes-said"))?
        .output(reached);
    if stays {
        return Ok(edit.removing(place.id).inserting(reshape));
    }
    place.instead(edit.inserting(reshape), Build::transpose(reached, turns))
}
