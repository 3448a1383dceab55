//! Rows that are added to what is looked up in tables.
//!
//! Law: `(x + c) + T[j] = x + (T + c)[j]`, for a constant row `c` that is added to every row of a constant table `T`.
//!
//! Beside the node it saves, two lookups that are added are what runtimes know as the embedding of a transformer: `c` is what is left of a
//! third one, of segments that are all the same.

use super::magnitude::may_shift;
use super::{has_arithmetic, rounded};
use crate::ir::{Edit, NewNode};
use crate::rewrite::build::rebuilt;
use crate::rewrite::miss::{Miss, ensure, prove};
use crate::rewrite::place::Place;
use crate::rewrite::rule::{Rule, miss};

pub(in crate::rewrite) const RULES: &[Rule] = &[Rule {
    name: "row-into-table",
    law: "(x + c) + Gather(T, j) = x + Gather(T + c, j)",
    sentence: "Merges the addition of a constant row into the table of a Gather.",
    premises: &[
        ("row", "c has a number for each column of T, or one for all"),
        ("small", "no number of c is larger than 1, so that rounding is that of results of ordinary size"),
        ("finite", "all numbers of T are finite"),
        ("whole-rows", "T has two axes, and whole rows are looked up"),
        ("no-larger", "nothing else reads T, so that the new table takes its place"),
        ("one-reader", "nothing else reads what is between"),
    ],
    exact: false,
    operators: &["Add"],
    apply: row_into_table,
}];

/// Looks at the sum with what is looked up.
fn row_into_table(place: &Place<'_>) -> Result<Edit, Miss> {
    let result = place.only_output().ok_or(Miss::ROOT)?;
    let dtype = place.dtype(result).filter(|&dtype| has_arithmetic(dtype)).ok_or(Miss::ROOT)?;
    let &[Some(a), Some(b)] = place.root()?.inputs() else { return Err(Miss::ROOT) };
    let (sum, looked_up) = [(a, b), (b, a)]
        .into_iter()
        .find(|&(sum, looked_up)| place.producer(sum, "Add").is_some() && place.producer(looked_up, "Gather").is_some())
        .ok_or(Miss::ROOT)?;
    let ((inner, adding), (lookup, gather)) =
        (place.producer(sum, "Add").ok_or(Miss::ROOT)?, place.producer(looked_up, "Gather").ok_or(Miss::ROOT)?);
    let &[Some(c), Some(d)] = adding.inputs() else { return Err(Miss::ROOT) };
    let (x, row) = if place.tensor(d).is_some() { (c, d) } else { (d, c) };
    let (numbers, table) = (
        place.tensor(row).ok_or(miss!("row").of(row))?,
        place.tensor(gather.input(0).ok_or(Miss::ROOT)?).ok_or(miss!("row"))?,
    );
    let &[_, columns] = table.shape() else { return Err(miss!("row")) };
    let is_row = numbers.rank() <= 1 && (numbers.len() == columns || numbers.len() == 1);
    ensure(is_row, miss!("row"))?;
    ensure(place.read(gather).axis(2).ok_or(miss!("whole-rows"))? == 0, miss!("whole-rows"))?;
    prove(place.compare_shapes(x, sum), miss!("row").of(x))?;
    ensure(place.tensor(x).is_none(), miss!("row").of(x))?;
    let (row, cells) = (numbers.to_f64s().ok_or(Miss::COMPUTABLE)?, table.to_f64s().ok_or(Miss::COMPUTABLE)?);
    ensure(may_shift(dtype, &row), miss!("small"))?;
    let sums: Vec<f64> = cells.iter().zip(row.iter().cycle()).map(|(cell, number)| cell + number).collect();
    let shifted = rounded(dtype, table.shape(), &sums).ok_or(miss!("finite"))?;
    let reads = [Some(x), gather.input(1)].into_iter().flatten().collect::<Vec<_>>();
    let mut edit = place.fuse(vec![place.id, inner, lookup], &reads, shifted.byte_len())?;
    let table = edit.constant_named(place.fused_name(gather.input(0).ok_or(Miss::ROOT)?), shifted);
    let rows = edit.new_value(looked_up, "shifted");
    edit.insert.push(NewNode::like(gather).reading(0, table).output(rows));
    let operands = if sum == a { [Some(x), Some(rows)] } else { [Some(rows), Some(x)] };
    let node = NewNode::new("Add", operands).named(place.root()?.name.clone());
    Ok(edit.inserting(rebuilt(place.root()?, node).output(result)))
}
