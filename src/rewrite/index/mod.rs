//! Tensors that count: what Range makes, and what Reshape, Expand, Transpose and integer arithmetic make of it.
//!
//! Models look entries up with indices they compute from nothing but sizes: `mask[batch_index, position]`, spelled as Range,
//! Unsqueeze, Expand, Concat and GatherND. Here such a tensor is one [`Counting`]: an offset and a step along each axis, all of
//! them expressions in the sizes. A lookup whose indices only count in order is a view of the data ([`lookup`]); an assignment
//! to such places is a concatenation ([`assign`]); a tensor that does not change along an axis need not be spread along it
//! before an operator that broadcasts ([`spread`]).

mod assign;
mod columns;
mod counting;
mod filled;
mod lookup;
mod narrow;
mod nonzero;
mod outer;
mod positions;
mod reverse;
mod shifted;
mod spread;
mod uniform;

use super::Rule;

pub use positions::{Positions, positions};
pub(super) use uniform::uniform;

/// What may do no more than spread an operand.
const SPREADING: &[&str] = &[
    "Expand",
    "Tile",
    "Unsqueeze",
    "Reshape",
    "ConstantOfShape",
    "And",
    "Or",
    "Add",
    "Mul",
    "Where",
    "Cast",
    "Gather",
    "Pad",
    "Resize",
    "Slice",
];

/// What moves and casts elements.
const LAYING_OUT: &[&str] = &[
    "Cast",
    "Reshape",
    "Flatten",
    "Squeeze",
    "Unsqueeze",
    "Expand",
    "Transpose",
    "Slice",
    "Tile",
    "Gather",
    "Resize",
    "Pad",
];

pub(super) const RULES: &[Rule] = &[
    Rule { name: "lookup-in-order", operators: &["Gather", "GatherND"], exact: true, apply: lookup::in_order },
    Rule { name: "reverse-whole", operators: &["ReverseSequence"], exact: true, apply: reverse::reverse },
    Rule { name: "assignment-in-order", operators: &["ScatterND"], exact: true, apply: assign::in_order },
    Rule { name: "spread-before-broadcast", operators: SPREADING, exact: true, apply: spread::spread },
    Rule { name: "filled-by-size", operators: LAYING_OUT, exact: true, apply: filled::fill },
    Rule {
        name: "positions-to-constant",
        operators: &["Slice", "Gather", "Reshape", "Add", "Sub", "Mul"],
        exact: true,
        apply: positions::written,
    },
    Rule { name: "part-of-outer", operators: &["Slice"], exact: true, apply: outer::part },
    Rule { name: "concat-of-outer", operators: &["Concat"], exact: true, apply: outer::join },
    Rule { name: "places-in-order", operators: &["NonZero"], exact: true, apply: nonzero::in_order },
    Rule { name: "spread-before-product", operators: SPREADING, exact: false, apply: spread::spread_before_product },
];

/// Of several assignments the last may show that what the first writes to need not be filled. Ranges that are equal are one before one
/// of them is moved.
pub(super) const LATE_RULES: &[Rule] = &[
    Rule { name: "assignment-to-filled", operators: &["ScatterND"], exact: true, apply: assign::into_filled },
    Rule { name: "range-and-sum", operators: &["Add", "Sub"], exact: true, apply: shifted::shift },
];

/// A Concat of columns is what lookups and assignments are recognised by.
pub(super) const LAST_RULES: &[Rule] =
    &[Rule { name: "columns-by-choice", operators: &["Concat"], exact: true, apply: columns::choose }];
