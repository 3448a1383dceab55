//! Tensors that count: what Range makes, and what Reshape, Expand, Transpose and integer arithmetic make of it.
//!
//! Models look entries up with indices they compute from nothing but sizes: `mask[batch_index, position]`, spelled as Range,
//! Unsqueeze, Expand, Concat and GatherND. Here such a tensor is one [`Counting`]: an offset and a step along each axis, all of
//! them expressions in the sizes. A lookup whose indices only count in order is a view of the data ([`lookup`]); an assignment
//! to such places is a concatenation ([`assign`]), a padding or a selection ([`number`]); a tensor that does not change along an axis need not be spread along it
//! before an operator that broadcasts ([`spread`]).

mod assign;
mod columns;
mod counting;
mod few;
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
mod wider;

use super::rule::Rule;
use crate::ops::traits;

pub(super) use few::flag;
pub use positions::{Positions, positions};
pub(super) use uniform::uniform;

pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "lookup-in-order",
        law: "Gather(x, [0, 1, …, n − 1]) = Reshape(x), GatherND(x, grid in order) = Reshape(x[…])",
        sentence: "Replaces a lookup of all elements in order by a view of the data or of a part of it.",
        premises: &[
            (
                "in-order",
                "the indices are proved to be consecutive, each along a separate axis, in the order of the axes",
            ),
            ("whole", "they count all of the axis; in a GatherND that cuts one axis, from a number on"),
            ("looked-up", "a part is proved to lie in the data, or no other axis of the indices is empty"),
            ("sizes-said", "a constant can express the shape of the result"),
        ],
        exact: true,
        operators: &["Gather", "GatherND"],
        apply: lookup::in_order,
    },
    Rule {
        name: "lookup-in-rows",
        law: "Gather(Reshape(x, [a · p]), p · i + k) = x[:, : n] for i < a and k < n",
        sentence: "Replaces a lookup of the first elements of every row by a Slice.",
        premises: &[
            ("rows", "the data is a flattened matrix, and the indices traverse its rows in order"),
            ("front", "in each row they count up from its first place"),
            ("looked-up", "a row exists, or the first index is proved to be in range of each row"),
        ],
        exact: true,
        operators: &["Gather"],
        apply: lookup::in_rows,
    },
    Rule {
        name: "assignment-in-order",
        law: "ScatterND(x, i, u) = u where i is every place in order; ScatterND(ScatterND(x, i, u), j, v) = Concat(u, v) where i and j write all of an axis",
        sentence: "Replaces scattered writes that cover an axis in order by a Concat, or by the written values.",
        premises: &[
            ("blocks", "each writes places in order along one axis at most, and all of every other"),
            (
                "covers",
                "together they write every place of the axis, the last one counting where two write the same, or all but one part, \
                    which is cut out where the places are computed and no number",
            ),
            ("plain", "the written values replace the old values (reduction is none)"),
        ],
        exact: true,
        operators: &["ScatterND"],
        apply: assign::in_order,
    },
    Rule {
        name: "spread-before-broadcast",
        law: "f(Expand(w), y) = f(w, y)",
        sentence: "Delays a broadcast until another operand has the axis, so that less is computed.",
        premises: &[
            ("alike", "each node on the way computes the same bits at all positions of the broadcast axes"),
            ("reaches", "if one of these values is a graph output, another operand has its dims"),
            ("cannot-fail", "no node in between can fail, or none of them is empty at any size"),
            (
                "no-quantized-constant",
                "the operand is not a constant that feeds a QuantizeLinear, because OpenVINO fails on a MatMul with such a constant",
            ),
            (
                "no-normalized-sum",
                "a sum of tensors of one shape before a normalization keeps the rank of its operands, because ONNX Runtime fuses both",
            ),
        ],
        exact: true,
        operators: traits::SPREADING,
        apply: spread::spread,
    },
    Rule {
        name: "filled-by-size",
        law: "f(ConstantOfShape(s, c)) = ConstantOfShape(s′, c) for f that move, cut, look up or cast elements",
        sentence: "Replaces a view of a filled tensor by a tensor filled at its final shape.",
        premises: &[
            ("one-number", "the result holds one number everywhere"),
            ("sizes-there", "its dims are those of an existing value, or elements of the shape operand of the fill"),
            ("pays", "the rewrite adds no more nodes than it removes"),
        ],
        exact: true,
        operators: traits::FILLING,
        apply: filled::fill,
    },
    Rule {
        name: "part-of-outer",
        law: "f(x, c)[r] = f(x, c[r]) where x has size 1 along the axes cut",
        sentence: "Computes a part of an outer product from a part of its constant.",
        premises: &[
            ("repeats", "x has size 1 along the axes that are cut, and the constant has all of them"),
            ("known-cut", "the bounds are constants"),
            ("only-parts", "the whole value has only slices as consumers"),
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
            ("repeats", "x has size 1 along the axis, and the constants have all of it"),
            ("alike", "all operands are the same operator of the same x, with constants of one shape in the same slot"),
            ("one-reader", "they have no other consumer"),
        ],
        exact: true,
        operators: &["Concat"],
        apply: outer::join,
    },
    Rule {
        name: "positions-in-64-bits",
        law: "g(f(Cast(n, int32))) = g(f(n)) for a Cast g, or a lookup by indices, where no number leaves 32 bits",
        sentence: "Computes positions in 64 bits instead of casting them.",
        premises: &[
            ("same-numbers", "the cast to 32 bits is proved to preserve all elements"),
            (
                "counts",
                "results of the computation are proved to fit in 32 bits, or only moved, selected, or divided by positive numbers",
            ),
            ("one-reader", "the value in 32 bits has no other consumer"),
            ("cast-goes", "one of the cast dims has no other consumer, so that its Cast is removed"),
        ],
        exact: true,
        operators: &["Cast", "Gather", "GatherElements", "ScatterElements"],
        apply: wider::cast_late,
    },
    Rule {
        name: "spread-before-product",
        law: "Expand(w) · M = Expand(w · M)",
        sentence: "Delays a broadcast until after a product, so that the product is computed once.",
        premises: &[
            ("alike", "each node on the way treats all positions of the broadcast axes identically"),
            ("reaches", "if one of these values is a graph output, another operand has its dims"),
            ("cannot-fail", "no node in between can fail, or none of them is empty at any size"),
            (
                "no-normalization",
                "the operand is not a constant input of a decomposed normalization: the following sum would lose its batch axis, and runtimes the fusion of the next normalization",
            ),
            (
                "no-constant-stack",
                "it is not a constant stack of matrices in a product, for which OpenCV reads wrong matrices",
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
        sentence: "Replaces a lookup of the first rows in order by a part of the data with stated dims.",
        premises: &[
            (
                "in-order",
                "the indices are proved to be consecutive from 0, each along a separate axis, in the order of the axes",
            ),
            ("one-part", "they count all of each axis but one, and name every axis"),
            ("says-zero", "the operator set (14 or newer) allows a Reshape to dims of 0, for an empty lookup"),
        ],
        exact: true,
        operators: &["GatherND"],
        apply: lookup::by_sizes,
    },
    Rule {
        name: "saturated-lookup",
        law: "Gather(x, f(d)) = Gather(x′, min(max(d, a), b)) with x′ₖ = x of f(k), where f is the same up to a and from b on",
        sentence: "Replaces a lookup with a saturating function of positions by a lookup with clipped positions.",
        premises: &[
            ("of-one", "the index is computed place by place of one tensor that counts, and of numbers"),
            (
                "saturates",
                "the function is proved to be the same from a number on in each direction, or the tensor to be bounded",
            ),
            ("known-rows", "the data is constant"),
            ("small", "the new constant takes at most 64 KiB more than the old one"),
            ("clips-integers", "Clip supports integers in this operator set"),
            ("pays", "the rewrite adds no more nodes than it removes"),
        ],
        exact: false,
        operators: &["Gather"],
        apply: saturated::lookup,
    },
    Rule {
        name: "range-and-sum",
        law: "Range(a, b, d) + c = Range(a + c, a + c + len · d, d)",
        sentence: "Merges a sum with a number into the start of a Range.",
        premises: &[
            ("read-once", "the Range has no other consumer"),
            ("open-length", "the length of the Range depends on a dim"),
            ("64-bits", "the numbers have 64 bits"),
            ("known-step", "the step is a number other than 0"),
            ("ends-known", "start and end are numbers, or an existing value computes them"),
            ("no-circle", "that value is not computed from the sum"),
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
        ("one-axis", "one axis is repeated, a constant number of times"),
        ("beside", "the Reshape merges the new axis with an adjacent axis, and no other axis changes"),
        ("known-places", "the size of that axis is a number, of at least 2"),
        ("few-places", "the result has at most 256 places there"),
        ("one-reader", "the broadcast value has no other consumer"),
        ("of-floats", "the elements are floats, because integers may be indices"),
        (
            "no-cache",
            "the repeated value is not a Concat: ONNX Runtime's optimizer for LLaMA expects an Expand of cached heads",
        ),
        (
            "not-between-turns",
            "the result has no Transpose as consumer if its operand is element-wise on another Transpose, because ONNX Runtime would move that",
        ),
    ],
    exact: true,
    operators: &["Reshape"],
    apply: repeated::lookup,
};

const CHOICE: Rule = Rule {
    name: "columns-by-choice",
    law: "Concat(x₀, x₁) = Where(m, y₀, y₁) for columns xᵢ spread from yᵢ, m true at the place of x₀",
    sentence: "Replaces broadcast columns in a Concat by a Where that broadcasts.",
    premises: &[
        ("single-columns", "every operand has size 1 along the axis"),
        ("spread", "one of them is broadcast"),
        ("movable-type", "every runtime selects from the element type"),
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
        sentence: "Replaces a function of a bounded number of positions by the first rows of a constant.",
        premises: &[
            (
                "bounded",
                "the number of positions is bounded by the user, or by the rows of a table that is indexed with each position",
            ),
            ("by-place", "each element depends only on the positions at its index and on constants"),
            ("small", "the new constants take at most 256 KiB more than the removed ones"),
            ("pays", "the rewrite adds no more nodes than it removes"),
            ("no-circle", "the limit of the positions does not depend on the function"),
            ("no-output", "none of these values is a graph output"),
        ],
        exact: false,
        operators: &["Range"],
        apply: front::of_table,
    },
    Rule {
        name: "front-of-longer",
        law: "f(Range(0, n, 1)) = f(Range(0, m, 1))[: n] where n ≤ m",
        sentence: "Replaces a function of positions by the first elements of the same function of more positions.",
        premises: &[
            ("no-longer", "along every axis it is proved to be as long as the other, or shorter"),
            (
                "alike",
                "both consist of the same operators with the same constants, on ranges with the same start and step",
            ),
            ("by-place", "each element depends only on the positions at its index and on constants"),
            ("no-rounding", "no kernel rounds differently by position"),
            ("pays", "the rewrite adds no more nodes than it removes"),
            ("no-circle", "the longer is not computed from the shorter"),
            ("no-output", "none of these values is a graph output"),
        ],
        exact: true,
        operators: &["Range"],
        apply: front::of_longer,
    },
];
