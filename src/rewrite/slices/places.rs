//! Replaces Gathers along an axis that a Reshape inserts by one Split: queries, keys and values of one product.
//!
//! Law: if axis `s` of `Reshape(x)` has `n` positions and the next axis `m`, position `i` of `s` is part `i` of a Split of the merged axis
//! into `n` parts of size `m`. A Transpose in between moves the merged axis to the position of the next axis.

use crate::dim::Dim;
use crate::ir::{Edit, NewNode, Node, NodeId};
use crate::rewrite::build::Build;
use crate::rewrite::limits::READERS;
use crate::rewrite::miss::{Miss, ensure};
use crate::rewrite::place::Place;
use crate::rewrite::rule::{Rule, miss};
use crate::sort;

pub(in crate::rewrite) const RULES: &[Rule] = &[Rule {
    name: "places-to-parts",
    law: "Gather(Reshape(x, (…, n, m, …)), i) = part i of Split(Reshape(x, (…, n·m, …))), also with a Transpose between",
    sentence: "Replaces Gathers of single positions of an axis that a Reshape separated by one Split of the unseparated axis.",
    premises: &[
        (
            "all-places",
            "every position of the axis n is selected by one constant index, and the result of the Reshape (or Transpose) has no other consumer",
        ),
        ("axis-behind", "the result of the Reshape has another axis m directly after the axis n"),
        ("one-reader", "the result of the Reshape has no other consumer"),
        ("sizes-said", "a constant can express the shape of the new Reshape"),
        (
            "known-parts",
            "the dim m is a constant of at least 1, or Split can divide an axis of any size into equal parts (num_outputs, operator set 18)",
        ),
    ],
    exact: true,
    operators: &["Gather"],
    apply: places,
}];

/// Runtimes turn such lookups into a Split and a Squeeze for each position, and then move the Transpose after each of them.
fn places(place: &Place<'_>) -> Result<Edit, Miss> {
    let data = place.operand(0)?;
    let dims = place.dims(data)?;
    let axis = place.reading()?.axis(dims.len()).ok_or(Miss::ROOT)?;
    let lookups = all_places(place, axis).ok_or(miss!("all-places"))?;
    let mut edit = place.begin()?;
    edit.remove.extend(lookups.iter().map(|&(id, _)| id));

    let mut held = data;
    let mut perm: Vec<usize> = (0..dims.len()).collect();
    let transpose = place.producer(data, "Transpose");
    if let Some((id, node)) = transpose {
        held = node.input(0).ok_or(Miss::ROOT)?;
        perm = place.read(node).permutation(dims.len()).ok_or(Miss::ROOT)?;
        edit.remove.push(id);
    }
    let (layout, node) = place.layout(held).ok_or(Miss::ROOT)?;
    ensure(transpose.is_none() || place.has_one_reader(held), miss!("one-reader").of(held))?;
    edit.remove.push(layout);

    // The merged axis.
    let (source, made, own) =
        (node.input(0).ok_or(Miss::ROOT)?, place.dims(held)?, *perm.get(axis).ok_or(miss!("all-places"))?);
    let behind = own.checked_add(1).ok_or(Miss::COMPUTABLE)?;
    let (count, part) = (made.get(own).ok_or(miss!("axis-behind"))?, made.get(behind).ok_or(miss!("axis-behind"))?);
    let joined = |(at, dim): (usize, &Dim)| {
        let dim = if at == behind { place.scope().product([count, dim]) } else { dim.clone() };
        (at != own).then_some(dim)
    };
    let joined: Vec<Dim> = made.iter().enumerate().filter_map(joined).collect();
    // ONNX Runtime's Split counts the elements after the axis in 32 bits, even if a size before it is 0.
    let numbers = joined.iter().filter_map(Dim::as_const).filter(|&size| size != 0);
    i32::try_from(numbers.fold(1i64, i64::saturating_mul)).or(Err(Miss::COMPUTABLE))?;
    let turned: Vec<usize> =
        perm.iter().filter(|&&at| at != own).map(|&at| if at > own { at.saturating_sub(1) } else { at }).collect();
    let along = turned.iter().position(|&at| at == own).ok_or(miss!("all-places"))?;

    let mut build = place.build(&mut edit, data);
    let reshape =
        build.reshape_to(place.scope(), source, place.dims(source)?, &joined).ok_or(miss!("sizes-said").of(source))?;
    let whole = edit.new_value(held, "joined");
    let mut whole_turned = whole;
    edit = edit.inserting(reshape.output(whole));
    if transpose.is_some() {
        whole_turned = edit.new_value(data, "joined");
        edit = edit.inserting(Build::transpose(whole, turned).output(whole_turned));
    }
    let split = match part.as_const() {
        Some(part) if part >= 1 => {
            let sizes = vec![part; lookups.len()];
            place.build(&mut edit, data).split(whole_turned, along, sizes).ok_or(miss!("known-parts"))?
        }
        None => place.build(&mut edit, data).split_evenly(whole_turned, along).ok_or(miss!("known-parts"))?,
        Some(_) => return Err(miss!("known-parts")),
    };
    let results = lookups.iter().filter_map(|&(id, _)| place.model.node(id)?.output(0));
    Ok(edit.inserting(results.fold(split, NewNode::output)))
}

/// Returns the consumers of the data in the order of the positions that they look up; the first of them is the current node.
fn all_places(place: &Place<'_>, axis: usize) -> Option<Vec<(NodeId, i64)>> {
    let data = place.input(0)?;
    let size = place.shape(data)?.get(axis)?.as_const()?;
    let readers = place.model.users(data);
    let count = i64::try_from(readers.len()).ok()?;
    if count != size || count < 2 || readers.len() > READERS || place.model.is_named(data) {
        return None;
    }
    let lookup = |&(id, slot): &(NodeId, usize)| {
        let node = place.model.node(id).filter(|node| node.is("Gather") && Some(node.graph()) == place.graph())?;
        let along = place.read(node).axis(place.shape(data)?.len())?;
        Some((id, index(place, node, size)?)).filter(|_| slot == 0 && along == axis)
    };
    let mut lookups = readers.iter().map(lookup).collect::<Option<Vec<_>>>()?;
    sort::by_key(&mut lookups, |&(_, index)| index);
    let each_once = lookups.iter().zip(0i64..).all(|(&(_, index), at)| index == at);
    let is_first = lookups.iter().map(|&(id, _)| id).min() == Some(place.id);
    (each_once && is_first).then_some(lookups)
}

/// Returns the position that a Gather selects from an axis of this size, if it selects one and drops the axis.
fn index(place: &Place<'_>, gather: &Node, size: i64) -> Option<i64> {
    let index = place.constant(gather.input(1)?).filter(|index| index.shape().is_empty())?.to_i64s()?;
    let index = *index.first()?;
    Some(if index < 0 { index.checked_add(size)? } else { index })
}
