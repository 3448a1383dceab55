//! Tensors that count: what Range makes, and what Reshape, Expand, Transpose and integer arithmetic make of it.
//!
//! Models look entries up with indices they compute from nothing but sizes: `mask[batch_index, position]`, spelled as Range,
//! Unsqueeze, Expand, Concat and GatherND. Here such a tensor is one [`Counting`]: an offset and a step along each axis, all of
//! them expressions in the sizes. A lookup whose indices only count in order is a view of the data ([`lookup`]); an assignment
//! of one number to such places is a padding or a selection ([`number`]); a tensor that does not change along an axis need not be spread along it
//! before an operator that broadcasts ([`spread`]).

mod batch;
mod columns;
mod counting;
mod filled;
mod front;
mod lookup;
mod narrow;
pub(super) mod number;
mod outer;
mod positional;
mod positions;
mod repeated;
mod saturated;
mod shifted;
mod spread;
mod uniform;

use super::rule::Rule;
use crate::ops::traits;

pub use positions::{Positions, positions};
pub(super) use uniform::uniform;

pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "lookup-of-batch",
        law: "GatherND(x, [0 … b − 1, i]) = GatherND(x, i) with batch_dims = 1; GatherND(x, [0, i]) = Gather(x, i) with axis = 1 if x has a first axis of size 1",
        sentence: "Removes the indices of a GatherND that count the positions of leading axes: these axes become batch axes.",
        premises: &[
            (
                "counted",
                "the indices of each leading axis are proved to count all of its positions, along the same axis of the indices",
            ),
            ("others", "other indices remain that are not counted"),
            (
                "batch-axes",
                "the operator set is 12 or newer, in which a GatherND has batch axes (batch_dims); or the leading axes have size 1, and one other index remains",
            ),
        ],
        exact: true,
        operators: &["GatherND"],
        apply: batch::of_batch,
    },
    Rule {
        name: "lookup-in-rows",
        law: "Gather(Reshape(x, [a · p]), p · i + k) = x[:, : n] for i < a and k < n",
        sentence: "Replaces a Gather of the first n elements of every row of a flattened matrix by a Slice of the matrix.",
        premises: &[
            (
                "rows",
                "the data is a flattened matrix with a rows of p elements, and the indices select elements of the rows in order",
            ),
            ("front", "in each row, the indices start at its first element and increase by 1"),
            ("looked-up", "the matrix is proved to have a row (a ≥ 1), or n is proved to be at most p"),
        ],
        exact: true,
        operators: &["Gather"],
        apply: lookup::in_rows,
    },
    Rule {
        name: "spread-before-broadcast",
        law: "f(Expand(w), y) = f(w, y)",
        sentence: "Removes a broadcast (Expand) before operators that broadcast their operands themselves, so that less is computed.",
        premises: &[
            (
                "alike",
                "each node between the Expand and f computes the same bits at all positions of the broadcast axes",
            ),
            (
                "reaches",
                "if a value after the Expand is a graph output, another operand of its node has all dims of the output",
            ),
            (
                "cannot-fail",
                "no node between the Expand and f can fail; or none of their operands is empty at any size",
            ),
            (
                "no-quantized-constant",
                "w is not a constant that feeds a QuantizeLinear, because OpenVINO fails on a MatMul with such a constant",
            ),
            (
                "no-normalized-sum",
                "f is not a sum of two tensors of one shape before a normalization, because ONNX Runtime fuses both only if the addends have the same rank",
            ),
        ],
        exact: true,
        operators: traits::SPREADING,
        apply: spread::spread,
    },
    Rule {
        name: "filled-by-size",
        law: "f(ConstantOfShape(s, c)) = ConstantOfShape(s′, c) for an f that moves, selects or casts elements",
        sentence: "Replaces operators that move, slice, select or cast the elements of a ConstantOfShape by a ConstantOfShape of the final shape.",
        premises: &[
            ("one-number", "all elements of the result are the same number"),
            ("sizes-there", "the shape s′ is the shape of an existing value, or consists of elements of s"),
            ("pays", "the rewrite adds no more nodes than it removes"),
        ],
        exact: true,
        operators: traits::FILLING,
        apply: filled::fill,
    },
    Rule {
        name: "part-of-outer",
        law: "f(x, c)[r] = f(x, c[r]) where x has size 1 along the sliced axes",
        sentence: "Replaces a Slice of an outer product of x and a constant c by an outer product of x and a Slice of c.",
        premises: &[
            ("repeats", "x has size 1 along the sliced axes, and c has the full size"),
            ("known-cut", "the starts, ends and steps of the Slice are constants"),
            ("only-parts", "all consumers of the outer product f(x, c) are Slices"),
        ],
        exact: true,
        operators: &["Slice"],
        apply: outer::part,
    },
    Rule {
        name: "concat-of-outer",
        law: "Concat(f(x, c₀), …, f(x, cₖ)) = f(x, Concat(c₀, …, cₖ))",
        sentence: "Merges a Concat of outer products into one outer product.",
        premises: &[
            ("repeats", "x has size 1 along the concatenated axis, and the constants c₀, …, cₖ have the full size"),
            (
                "alike",
                "all operands of the Concat are results of the same operator f with the same operand x; the constants have one shape",
            ),
            ("one-reader", "the outer products have no other consumer"),
        ],
        exact: true,
        operators: &["Concat"],
        apply: outer::join,
    },
    Rule {
        name: "spread-before-product",
        law: "Expand(w) · M = Expand(w · M)",
        sentence: "Moves a broadcast (Expand) after a matrix product, so that the product is computed once.",
        premises: &[
            (
                "alike",
                "each node between the Expand and the product treats all positions of the broadcast axes identically",
            ),
            (
                "reaches",
                "if a value after the Expand is a graph output, another operand of its node has all dims of the output",
            ),
            (
                "cannot-fail",
                "no node between the Expand and the product can fail; or none of their operands is empty at any size",
            ),
            (
                "no-normalization",
                "w is not a constant operand of a decomposed normalization, because runtimes fuse a following sum and normalization only if the addends have a batch axis",
            ),
            (
                "no-constant-stack",
                "M is not a constant of rank 3 or more, because OpenCV multiplies by wrong matrices if only M has a batch axis",
            ),
        ],
        exact: false,
        operators: traits::SPREADING,
        apply: spread::spread_before_product,
    },
];

/// Of several assignments the last may show that what the first writes to need not be filled. Ranges that are equal are one before one
/// of them is moved.
pub(super) const LATE_RULES: &[Rule] = &[
    Rule {
        name: "part-in-order",
        law: "GatherND(x, grid in order of [n, …]) = Reshape(x[: n], [n, …])",
        sentence: "Replaces a GatherND of the first elements, in order, by a Slice and a Reshape with explicit dims.",
        premises: &[
            (
                "in-order",
                "the indices are proved to be consecutive from 0: the indices of each data axis count along a separate axis, in the order of the data axes",
            ),
            (
                "one-part",
                "the indices have a component for every data axis, and select all positions of all axes but one",
            ),
            (
                "says-zero",
                "the operator set is 14 or newer, in which a Reshape to a dim of 0 is possible (allowzero); the result may be empty",
            ),
        ],
        exact: true,
        operators: &["GatherND"],
        apply: lookup::by_sizes,
    },
    Rule {
        name: "saturated-lookup",
        law: "Gather(x, f(d)) = Gather(x′, min(max(d, a), b)) with x′ₖ = x[f(k)], where f is constant below a and above b",
        sentence: "Replaces a Gather whose index is computed by a function that is constant for small and for large positions by a Gather with the clipped position.",
        premises: &[
            ("of-one", "each index is computed from one element of an integer tensor d, and from constants"),
            (
                "saturates",
                "f is proved to be constant below a number a and above a number b, or the elements of d are bounded",
            ),
            ("known-rows", "the data x is constant"),
            ("small", "the new constant x′ takes at most 64 KiB more than x"),
            ("clips-integers", "the operator Clip accepts integers in the model's operator set"),
            ("pays", "the rewrite adds no more nodes than it removes"),
        ],
        exact: false,
        operators: &["Gather"],
        apply: saturated::lookup,
    },
    Rule {
        name: "range-and-sum",
        law: "Range(a, b, d) + c = Range(a + c, a + c + len · d, d)",
        sentence: "Merges the addition of a number to a Range into start and limit of the Range.",
        premises: &[
            ("read-once", "the Range has no other consumer"),
            ("open-length", "the length of the Range depends on a dynamic dim"),
            ("64-bits", "the numbers have 64 bits"),
            ("known-step", "the delta of the Range is a constant other than 0"),
            ("ends-known", "the new start and the new limit are constants, or an existing value holds them"),
            ("no-circle", "this existing value is not computed from the sum"),
        ],
        exact: true,
        operators: &["Add", "Sub"],
        apply: shifted::shift,
    },
];

/// A Concat of columns is what lookups and assignments are recognised by, and a spread axis what attentions that share heads are.
pub(super) const LAST_RULES: &[Rule] = &[REPEATS, CHOICE];

const REPEATS: Rule = Rule {
    name: "repeats-to-lookup",
    law: "Reshape(Expand([p, n, 1, q] → [p, n, g, q])) = Gather(x, [⌊j/g⌋]), Reshape(Expand([p, 1, n, q] → [p, g, n, q])) = \
        Gather(x, [j mod n]) for x of [p, n, q], j < n·g",
    sentence: "Replaces an Expand and a Reshape that repeat elements by a Gather.",
    premises: &[
        ("one-axis", "the Expand repeats one axis of size 1, a constant number g of times"),
        ("beside", "the Reshape merges the repeated axis with an adjacent axis n, and changes no other axis"),
        ("known-places", "the dim n is a constant of at least 2"),
        ("few-places", "the merged axis has at most 256 positions (n·g)"),
        ("one-reader", "the result of the Expand has no other consumer"),
        ("of-floats", "the elements are floats, because integers may be indices"),
        (
            "no-cache",
            "x is not a Concat, because ONNX Runtime's optimizer for LLaMA matches an Expand of concatenated keys or values",
        ),
        (
            "not-between-turns",
            "the rewrite does not place a Gather between two Transposes with element-wise operators, because ONNX Runtime would move one of the Transposes",
        ),
    ],
    exact: true,
    operators: &["Reshape"],
    apply: repeated::lookup,
};

const CHOICE: Rule = Rule {
    name: "columns-by-choice",
    law: "Concat(x₀, x₁) = Where(m, y₀, y₁) for columns xᵢ = Expand(yᵢ), where m is true at the position of x₀",
    sentence: "Replaces a Concat of broadcast columns by a Where, which broadcasts its operands itself.",
    premises: &[
        ("single-columns", "every operand of the Concat has size 1 along the axis"),
        ("spread", "at least one operand is the result of an Expand"),
        ("movable-type", "every runtime supports Where for the element type"),
        ("pays", "the rewrite adds no more nodes than it removes"),
    ],
    // ONNX Runtime's kernel makes 0 of the −0 of floats that a true flag selects.
    exact: false,
    operators: &["Concat"],
    apply: columns::choose,
};

/// What is computed of positions is looked at as a whole, when nothing makes it smaller any more.
pub(super) const FRONT_RULES: &[Rule] = &[
    Rule {
        name: "table-of-positions",
        law: "f(Range(0, n, 1)) = f([0, 1, …, N − 1])[: n] and f(Range(n, n − k, −1)) = f([N, N − 1, …])[N − n : N − n + k] where n ≤ N",
        sentence: "Replaces a function of a bounded Range by the first elements of a constant.",
        premises: &[
            (
                "bounded",
                "the number of positions n has an upper bound N: given by the user (`--dim`), or as the number of rows of a table that is indexed by each position",
            ),
            (
                "by-place",
                "each element of the result depends only on the positions at the same index, and on constants",
            ),
            ("small", "the new constants take at most 256 KiB more than the removed ones"),
            ("pays", "the rewrite adds no more nodes than it removes"),
            ("no-circle", "the number of positions n is not computed from the result of f"),
            ("no-output", "none of the replaced values is a graph output"),
        ],
        exact: false,
        operators: &["Range"],
        apply: front::of_table,
    },
    Rule {
        name: "front-of-longer",
        law: "f(Range(0, n, 1)) = f(Range(0, m, 1))[: n] where n ≤ m",
        sentence: "Replaces a function of a Range by the first elements of the same function of a longer Range, which the model also computes.",
        premises: &[
            ("no-longer", "n is proved to be at most m, along every axis of the result"),
            (
                "alike",
                "both functions consist of the same operators with the same constants, and both Ranges have the same start and step",
            ),
            (
                "by-place",
                "each element of the result depends only on the positions at the same index, and on constants",
            ),
            ("no-rounding", "no kernel in f rounds differently by position"),
            ("pays", "the rewrite adds no more nodes than it removes"),
            ("no-circle", "the longer result is not computed from the shorter one"),
            ("no-output", "none of the replaced values is a graph output"),
        ],
        exact: true,
        operators: &["Range"],
        apply: front::of_longer,
    },
];
