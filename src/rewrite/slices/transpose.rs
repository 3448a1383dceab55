//! Slices of transposed data.

use super::moved;
use crate::ir::{Edit, NewNode};
use crate::rewrite::miss::{Miss, ensure};
use crate::rewrite::place::Place;
use crate::rewrite::rule::{Rule, miss};

pub(in crate::rewrite) const RULES: &[Rule] = &[Rule {
    name: "slice-of-transpose",
    law: "Transpose(x, p)[r] = Transpose(x[r ∘ p⁻¹], p)",
    sentence: "Moves a Slice before a Transpose, so that less is transposed.",
    premises: &[
        ("axes-known", "the axes of the Slice are constants"),
        ("one-reader", "the result of the Transpose has no other consumer"),
    ],
    exact: true,
    operators: &["Slice"],
    apply: slice_of_transpose,
}];

/// `Transpose(x, p)[r] = Transpose(x[r∘p⁻¹], p)`: axis `i` of the transposed data is axis `p[i]` of `x`. Less is transposed, and
/// the Transpose may meet another behind the slice that undoes it.
fn slice_of_transpose(place: &Place<'_>) -> Result<Edit, Miss> {
    let (middle, output) = (place.operand(0)?, place.result()?);
    let (id, node) = place.producer(middle, "Transpose").ok_or(Miss::ROOT)?;
    let data = node.input(0).ok_or(Miss::ROOT)?;
    ensure(place.has_one_reader(middle), miss!("one-reader").of(middle))?;
    let rank = place.shape(data).ok_or(miss!("axes-known").of(data))?.len();
    let perm = place.read(node).permutation(rank).ok_or(Miss::ROOT)?;
    let mut edit = place.begin()?;
    let slice =
        moved(place, &mut edit, place.id, data, rank, &|axis| perm.get(axis).copied()).ok_or(miss!("axes-known"))?;
    let part = edit.new_value(middle, "sliced");
    edit.insert.push(slice.output(part));
    edit.insert.push(NewNode::like(node).reading(0, part).output(output));
    Ok(edit.removing(place.id).removing(id))
}
