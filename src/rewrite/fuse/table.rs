//! Rows that are added to what is looked up in tables.
//!
//! Law: `(x + c) + T[j] = x + (T + c)[j]`, for a constant row `c` that is added to every row of a constant table `T`.
//!
//! Beside the node it saves, two lookups that are added are what runtimes know as the embedding of a transformer: `c` is what is left of a
//! third one, of segments that are all the same.

use super::magnitude::may_shift;
use super::{Place, Rule, has_arithmetic, rounded};
use crate::ir::{Edit, NewNode};
use crate::rewrite::build::rebuilt;

pub(in crate::rewrite) const RULES: &[Rule] = &[Rule {
    name: "row-into-table",
    law: "(x + c) + Gather(T, j) = x + Gather(T + c, j)",
    sentence: "Merges the addition of a constant row into the table of a Gather.",
    premises: &[
        ("row", "c has a number for each column of T, or one for all"),
        ("small", "no number of c is larger than 1, so that rounding is that of results of ordinary size"),
        ("finite", "all numbers of T are finite"),
        ("whole-rows", "T has rank 2, and the Gather selects whole rows"),
        ("no-larger", "T has no other consumer, so that the new table replaces it"),
        ("one-reader", "the values in between have no other consumer"),
    ],
    exact: false,
    operators: &["Add"],
    apply: row_into_table,
}];

/// Looks at the sum with what is looked up.
fn row_into_table(place: &Place<'_>) -> Option<Edit> {
    let result = place.only_output()?;
    let dtype = place.dtype(result).filter(|&dtype| has_arithmetic(dtype))?;
    let &[Some(a), Some(b)] = place.node()?.inputs() else { return None };
    let (sum, looked_up) = [(a, b), (b, a)].into_iter().find(|&(sum, looked_up)| {
        place.producer(sum, "Add").is_some() && place.producer(looked_up, "Gather").is_some()
    })?;
    let ((inner, adding), (lookup, gather)) = (place.producer(sum, "Add")?, place.producer(looked_up, "Gather")?);
    let &[Some(c), Some(d)] = adding.inputs() else { return None };
    let (x, row) = if place.tensor(d).is_some() { (c, d) } else { (d, c) };
    let (numbers, table) = (place.tensor(row)?, place.tensor(gather.input(0)?)?);
    let &[_, columns] = table.shape() else { return None };
    let is_row = numbers.rank() <= 1 && (numbers.len() == columns || numbers.len() == 1);
    if !is_row || place.read(gather).axis(2)? != 0 || !place.same_shape(x, sum) || place.tensor(x).is_some() {
        return None;
    }
    let (row, cells) = (numbers.to_f64s()?, table.to_f64s()?);
    if !may_shift(dtype, &row) {
        return None;
    }
    let sums: Vec<f64> = cells.iter().zip(row.iter().cycle()).map(|(cell, number)| cell + number).collect();
    let shifted = rounded(dtype, table.shape(), &sums)?;
    let reads = [Some(x), gather.input(1)].into_iter().flatten().collect::<Vec<_>>();
    let mut edit = place.fuse(vec![place.id, inner, lookup], &reads, shifted.byte_len())?;
    let table = edit.constant_named(place.fused_name(gather.input(0)?), shifted);
    let rows = edit.new_value(looked_up, "shifted");
    edit.insert.push(NewNode::like(gather).reading(0, table).output(rows));
    let operands = if sum == a { [Some(x), Some(rows)] } else { [Some(rows), Some(x)] };
    let node = NewNode::new("Add", operands).named(place.node()?.name.clone());
    Some(edit.inserting(rebuilt(place.node()?, node).output(result)))
}
