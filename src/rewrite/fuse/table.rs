//! Merges an added constant row into a table of looked-up rows.
//!
//! Law: `(x + c) + T[j] = x + (T + c)[j]`, for a constant row `c` that is added to every row of a constant table `T`.
//!
//! Runtimes recognize two added lookups as the embedding of a transformer. The row `c` is the result of a third lookup, whose segments are
//! all equal.

use super::{has_arithmetic, rounded};
use crate::ir::{Edit, NewNode};
use crate::rewrite::build::rebuilt;
use crate::rewrite::miss::{Miss, ensure};
use crate::rewrite::place::Place;
use crate::rewrite::rule::{Rule, miss};
use crate::tensor::DType;

pub(in crate::rewrite) const RULES: &[Rule] = &[Rule {
    name: "row-into-table",
    law: "(x + c) + Gather(T, j) = x + Gather(T + c, j)",
    sentence: "Merges the addition of a constant row into the table of a Gather.",
    premises: &[
        ("row", "c is a scalar, or has one element per column of T"),
        (
            "small",
            "no element of c exceeds 1 in magnitude, so that the rounding error is not larger than that of typical results",
        ),
        ("finite", "all elements of T and of T + c are finite"),
        ("whole-rows", "T has rank 2, and the Gather selects whole rows (axis = 0)"),
        ("no-larger", "T has no other consumer, so that T + c replaces T"),
        ("one-reader", "the intermediate values have no other consumer"),
    ],
    exact: false,
    operators: &["Add"],
    apply: row_into_table,
}];

fn row_into_table(place: &Place<'_>) -> Result<Edit, Miss> {
    let node = place.root()?;
    let result = place.only_output().ok_or(Miss::ROOT)?;
    let dtype = place.dtype(result).filter(|&dtype| has_arithmetic(dtype)).ok_or(Miss::ROOT)?;
    let &[Some(a), Some(b)] = node.inputs() else { return Err(Miss::ROOT) };
    let found = [(a, b), (b, a)].into_iter().find_map(|(sum, looked_up)| {
        Some((sum, place.producer(sum, "Add")?, looked_up, place.producer(looked_up, "Gather")?))
    });
    let (sum, (inner, adding), looked_up, (lookup, gather)) = found.ok_or(Miss::ROOT)?;
    let &[Some(c), Some(d)] = adding.inputs() else { return Err(Miss::ROOT) };
    let (x, row) = if place.tensor(d).is_some() { (c, d) } else { (d, c) };
    let (data, indices) = (gather.input(0).ok_or(Miss::ROOT)?, gather.input(1).ok_or(Miss::ROOT)?);
    let (numbers, table) = (place.tensor(row).ok_or(Miss::ROOT)?, place.tensor(data).ok_or(Miss::ROOT)?);
    let &[_, columns] = table.shape() else { return Err(miss!("whole-rows").of(data)) };
    ensure(place.read(gather).axis(2) == Some(0), miss!("whole-rows").of(looked_up))?;
    let is_row = numbers.rank() <= 1 && (numbers.len() == columns || numbers.len() == 1);
    ensure(is_row && place.same_shape(x, sum) && place.tensor(x).is_none(), miss!("row").of(row))?;
    let (row_numbers, cells) = (numbers.to_f64s().ok_or(Miss::ROOT)?, table.to_f64s().ok_or(Miss::ROOT)?);
    // Types of 16 bits have too few digits: a row near −c would lose almost all of them.
    let has_digits = matches!(dtype, DType::Float | DType::Double);
    let is_small = row_numbers.iter().all(|number| *number == 0.0 || has_digits && number.abs() <= 1.0);
    ensure(is_small, miss!("small").of(row))?;
    let sums: Vec<f64> = cells.iter().zip(row_numbers.iter().cycle()).map(|(cell, number)| cell + number).collect();
    let shifted = rounded(dtype, table.shape(), &sums).ok_or(miss!("finite").of(data))?;
    let mut edit = place.fuse(vec![place.id, inner, lookup], &[x, indices], shifted.byte_len())?;
    let table = edit.constant_named(place.fused_name(data), shifted);
    let rows = edit.new_value(looked_up, "shifted");
    edit.insert.push(NewNode::like(gather).reading(0, table).output(rows));
    let operands = if sum == a { [Some(x), Some(rows)] } else { [Some(rows), Some(x)] };
    let new = NewNode::new("Add", operands).named(node.name.clone());
    Ok(edit.inserting(rebuilt(node, new).output(result)))
}
