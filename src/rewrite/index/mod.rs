//! Tensors that count: what Range makes, and what Reshape, Expand, Transpose and integer arithmetic make of it.
//!
//! Models look entries up with indices they compute from nothing but sizes: `mask[batch_index, position]`, spelled as Range,
//! Unsqueeze, Expand, Concat and GatherND. Here such a tensor is one [`Counting`]: an offset and a step along each axis, all of
//! them expressions in the sizes. A lookup whose indices only count in order is a view of the data ([`lookup`]); an assignment
//! to such places is a concatenation ([`assign`]); a tensor that does not change along an axis need not be spread along it
//! before an operator that broadcasts ([`spread`]).

mod assign;
mod clipped;
mod columns;
mod counting;
mod elements;
mod few;
mod filled;
mod front;
mod lookup;
mod narrow;
mod nonzero;
mod number;
mod outer;
mod periodic;
mod positional;
mod positions;
mod repeated;
mod reverse;
mod rows;
mod saturated;
mod shifted;
mod spread;
mod tiled;
mod triangle;
mod uniform;
mod wider;

use super::Rule;
use crate::ops::traits;

pub(super) use few::flag;
pub use positions::{Positions, positions};
pub(super) use shifted::STEP_RULES;
pub(super) use spread::spread_from;
pub(super) use uniform::uniform;

pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "lookup-in-order",
        law: "Gather(x, [0, 1, …, n − 1]) = Reshape(x), GatherND(x, grid in order) = Reshape(x[…])",
        sentence: "A lookup of everything in order is a layout of the data, or of a part of it.",
        premises: &[
            ("in-order", "the indices are proved to count up, each along an axis of its own, in the order of the axes"),
            ("whole", "they count all of the axis; in a GatherND that cuts one axis, from a number on"),
            ("looked-up", "a part is proved to lie in the data, or every other axis of the indices to hold something"),
            ("sizes-said", "constants can tell the shape of the result"),
        ],
        exact: true,
        operators: &["Gather", "GatherND"],
        apply: lookup::in_order,
    },
    Rule {
        name: "lookup-in-rows",
        law: "Gather(Reshape(x, [a · p]), p · i + k) = x[:, : n] for i < a and k < n",
        sentence: "A lookup of the front of every row, in rows one behind the other, is a slice of the rows.",
        premises: &[
            ("rows", "what is looked up is laid out from rows, and the indices go through all of them in order"),
            ("front", "in each row they count up from its first place"),
            ("looked-up", "there is a row, or the front is proved to lie in each: of no rows none is looked up"),
        ],
        exact: true,
        operators: &["Gather"],
        apply: lookup::in_rows,
    },
    Rule {
        name: "reverse-whole",
        law: "ReverseSequence(x, [n, n, …]) = Gather(x, [n − 1, …, 0]) along the time axis",
        sentence: "Replaces a ReverseSequence that turns all sequences around whole by a Gather.",
        premises: &[
            ("whole-length", "every length is proved to be that of the time axis"),
            ("known-length", "that is a number, and the places are few enough to be listed"),
        ],
        exact: true,
        operators: &["ReverseSequence"],
        apply: reverse::reverse,
    },
    Rule {
        name: "assignment-in-order",
        law: "ScatterND(x, i, u) = u where i is every place in order; ScatterND(ScatterND(x, i, u), j, v) = Concat(u, v) where i and j write all of an axis",
        sentence: "Assignments that write all of an axis in order are a concatenation, and one that writes everything is what it writes.",
        premises: &[
            ("blocks", "each writes places in order along one axis at most, and all of every other"),
            (
                "covers",
                "together they write every place of the axis, the last one counting where two write the same, or all but one part, \
                    which is cut out where the places are computed and no number",
            ),
            ("plain", "what is written replaces what was there"),
        ],
        exact: true,
        operators: &["ScatterND"],
        apply: assign::in_order,
    },
    Rule {
        name: "triangle-masked-again",
        law: "Trilu(x, k) · Cast(m) = Trilu(x, k) where m is true at every place that is kept",
        sentence: "A triangle is not multiplied by a mask that is 1 in all of it.",
        premises: &[
            ("compares-places", "m compares two tensors that count, whose difference is the same along each diagonal"),
            ("true-where-kept", "it is proved to be true at the outermost diagonal that is kept, and more so beyond"),
            ("same-shape", "the product has the shape of the triangle"),
        ],
        exact: true,
        operators: &["Mul"],
        apply: triangle::masked_again,
    },
    Rule {
        name: "spread-before-broadcast",
        law: "f(Expand(w), y) = f(w, y)",
        sentence: "What repeats along an axis is computed once, until something else brings the axis.",
        premises: &[
            (
                "alike",
                "each node on the way treats the places along the spread axes alike, with equal results bit for bit",
            ),
            ("reaches", "before any of it is a graph output, another operand brings the size"),
            (
                "cannot-fail",
                "no node on the way can fail, or each computes something in any case: at size 0 it would not run",
            ),
            ("no-quantized-constant", "it is no constant that is quantized then: OpenVINO fails on products with one"),
        ],
        exact: true,
        operators: traits::SPREADING,
        apply: spread::spread,
    },
    Rule {
        name: "filled-by-size",
        law: "f(ConstantOfShape(s, c)) = ConstantOfShape(s′, c) for f that move, cut, look up or cast elements",
        sentence: "What is laid out from one number is filled at its own size.",
        premises: &[
            ("one-number", "the result holds one number everywhere"),
            ("sizes-there", "its sizes are those of a value that is there, or entries of the sizes that filled"),
            ("pays", "no more nodes are made than go"),
        ],
        exact: true,
        operators: traits::FILLING,
        apply: filled::fill,
    },
    Rule {
        name: "positions-to-constant",
        law: "Range(0, n, 1)[: 4] = [0, 1, 2, 3] where n ≥ 4",
        sentence: "A few positions are constant, however many there are.",
        premises: &[
            ("counts", "the elements are proved to count from a number in steps that are numbers"),
            ("few", "how many there are is known, and at most 64"),
            ("no-output", "they are no graph output"),
        ],
        exact: true,
        operators: &["Slice", "Gather", "Reshape", "Add", "Sub", "Mul"],
        apply: positions::written,
    },
    Rule {
        name: "part-of-outer",
        law: "f(x, c)[r] = f(x, c[r]) where x has size 1 along the axes cut",
        sentence: "A part of a table of products is computed from a part of its constant.",
        premises: &[
            ("repeats", "x has size 1 along the axes that are cut, and the constant has all of them"),
            ("known-cut", "what is cut out is known in numbers"),
            ("only-parts", "nothing but slices reads the whole"),
        ],
        exact: true,
        operators: &["Slice"],
        apply: outer::part,
    },
    Rule {
        name: "concat-of-outer",
        law: "Concat(f(x, c₀), …, f(x, cₖ)) = f(x, Concat(c₀, …, cₖ))",
        sentence: "Tables of products side by side are one.",
        premises: &[
            ("repeats", "x has size 1 along the axis, and the constants have all of it"),
            ("alike", "all are the same operator of the same x, with constants of one shape in the same slot"),
            ("one-reader", "nothing else reads them"),
        ],
        exact: true,
        operators: &["Concat"],
        apply: outer::join,
    },
    Rule {
        name: "transpose-of-lookup",
        law: "Transpose(Gather(x, i), p) = Gather(Transpose(x, q), i) for a constant x",
        sentence: "Rows of a constant that are looked up and turned are looked up in the turned constant.",
        premises: &[
            ("axes-together", "the axes of the indices stay side by side and in order"),
            ("constant", "what is looked up is a constant that nothing else reads, of at most 1 MiB"),
            ("one-reader", "nothing else reads the rows"),
        ],
        exact: true,
        operators: &["Transpose"],
        apply: rows::turned,
    },
    Rule {
        name: "slice-of-lookup",
        law: "Gather(x, i)[r] = Gather(x[r], i) for a constant x and an r that cuts none of the axes of i",
        sentence: "A part of every row of a constant is looked up in the part of the constant.",
        premises: &[
            ("other-axes", "what is cut are other axes than those of the indices"),
            ("known-cut", "what is cut out is known in numbers"),
            ("constant", "what is looked up is a constant that nothing else reads, of at most 1 MiB"),
            ("one-reader", "nothing else reads the rows"),
        ],
        exact: true,
        operators: &["Slice"],
        apply: rows::cut,
    },
    Rule {
        name: "lookup-in-repeats",
        law: "Gather(Reshape(Expand(c)), i) = Gather(c, i mod k) for a row c of k elements that is repeated",
        sentence: "A lookup in a constant that is repeated is a lookup of the remainder.",
        premises: &[
            (
                "row",
                "what is repeated is a constant with one axis that is not 1, the last, which is not repeated but may be cut",
            ),
            ("in-order", "the rows are laid out as one vector, which is looked up"),
            ("integers", "the operator set has a Mod for the indices' type"),
            ("one-reader", "nothing else reads the repeated rows"),
        ],
        exact: true,
        operators: &["Gather"],
        apply: periodic::by_remainder,
    },
    Rule {
        name: "lookup-by-one-column",
        law: "GatherND(x, Unsqueeze(i, −1)) = Gather(x, i)",
        sentence: "A lookup by indices of one column is a lookup along the first axis.",
        premises: &[
            ("one-column", "the indices have one column, which a layout put behind their axes or which is constant"),
            ("no-batch", "no axes are looked up in turn"),
            (
                "looked-up",
                "rows are proved to hold something: of empty ones GatherND looks nothing up, and Gather still fails",
            ),
        ],
        exact: true,
        operators: &["GatherND"],
        apply: lookup::by_column,
    },
    Rule {
        name: "elements-of-rows",
        law: "GatherElements(x, Expand(i), a) = Gather(x, i, a)",
        sentence: "Elements that are looked up at one index for all other axes are rows.",
        premises: &[
            ("one-row", "the index is spread from numbers along the axis alone"),
            ("whole-rows", "the data have the sizes of the index along all other axes"),
            (
                "looked-up",
                "each of those is proved to hold something: of empty rows no element is looked up, and Gather still fails",
            ),
        ],
        exact: true,
        operators: &["GatherElements"],
        apply: elements::of_rows,
    },
    Rule {
        name: "positions-in-64-bits",
        law: "g(f(Cast(n, int32))) = g(f(n)) for a Cast g, or a lookup by indices, where no number leaves 32 bits",
        sentence: "Positions that are cast in the end, or look entries up, are computed of sizes as they are.",
        premises: &[
            ("same-numbers", "the elements before the cast to 32 bits are proved to be those behind it"),
            (
                "counts",
                "what is computed of them is proved to count in 32 bits, or only moved and chosen, or divided by numbers above 0",
            ),
            ("one-reader", "nothing else reads what is computed in 32 bits"),
            ("cast-goes", "nothing else reads one of the sizes that are cast"),
        ],
        exact: true,
        operators: &["Cast", "Gather", "GatherElements", "ScatterElements"],
        apply: wider::cast_late,
    },
    Rule {
        name: "places-in-order",
        law: "NonZero(x) = [[0, 1, …, n − 1]] where no element of the vector x is 0",
        sentence: "The places of a vector without zeros are a Range.",
        premises: &[
            ("no-zero", "the vector holds one number that is not 0"),
            ("laid-out", "all readers of the places only lay them out"),
            ("one-reader", "nothing else reads the vector"),
        ],
        exact: true,
        operators: &["NonZero"],
        apply: nonzero::in_order,
    },
    Rule {
        name: "spread-before-product",
        law: "Expand(w) · M = Expand(w · M)",
        sentence: "A product with what repeats is computed once, until something else brings the axis.",
        premises: &[
            ("alike", "each node on the way treats the places along the spread axes alike"),
            ("reaches", "before any of it is a graph output, another operand brings the size"),
            (
                "cannot-fail",
                "no node on the way can fail, or each computes something in any case: at size 0 it would not run",
            ),
            (
                "no-normalization",
                "it is no constant that a spelled-out normalization is computed of: the sum behind it would lose the batch, \
                    and runtimes the kernel of the next one",
            ),
            (
                "no-constant-stack",
                "it is no constant stack of matrices to multiply by: OpenCV takes wrong ones of those",
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
        name: "assignment-to-filled",
        law: "ScatterND(x filled with v, places of a block, u) = Pad(u, v)",
        sentence: "A block written into a tensor of one number is a Pad.",
        premises: &[
            ("filled", "what is written to holds one number everywhere"),
            ("block", "u goes to one block, along each axis in order"),
            ("known-margins", "how much is free before and behind the block is known in numbers"),
            ("plain", "what is written replaces what was there"),
        ],
        exact: true,
        operators: &["ScatterND"],
        apply: assign::into_filled,
    },
    Rule {
        name: "part-in-order",
        law: "GatherND(x, grid in order of [n, …]) = Reshape(x[: n], [n, …])",
        sentence: "A lookup of the first rows in order is a part of the data, whose sizes are said.",
        premises: &[
            (
                "in-order",
                "the indices are proved to count up from 0, each along an axis of its own, in the order of the axes",
            ),
            ("one-part", "they count all of each axis but one, and name every axis"),
            ("says-zero", "a Reshape can be told sizes of 0, as since operator set 14: then nothing is looked up"),
        ],
        exact: true,
        operators: &["GatherND"],
        apply: lookup::by_sizes,
    },
    Rule {
        name: "assignment-of-number",
        law: "ScatterND(x, i, c) = Where(m, c, x), or Concat(x[: o], Where(m, c, x[o : e]), x[e :]), for a number c",
        sentence: "One number that is written to a block is chosen by a mask.",
        premises: &[
            ("one-number", "what is written is one number everywhere, no −0, of a type that Where takes in runtimes"),
            ("block", "each place along an axis is written alike at all places of the others"),
            (
                "all-or-fixed",
                "along each axis all is written, or places that are numbers, or along one what a Slice between numbers takes",
            ),
            ("some-fixed", "along an axis the places are numbers, and not all"),
            ("computed", "the places are computed, and for nothing else"),
            ("plain", "what is written replaces what was there"),
        ],
        exact: true,
        operators: &["ScatterND"],
        apply: number::assigned,
    },
    Rule {
        name: "saturated-lookup",
        law: "Gather(x, f(d)) = Gather(x′, min(max(d, a), b)) with x′ₖ = x of f(k), where f is the same up to a and from b on",
        sentence: "A lookup by a function of positions that no longer changes beyond a number is a lookup by the clipped positions.",
        premises: &[
            ("of-one", "the index is computed place by place of one tensor that counts, and of numbers"),
            (
                "saturates",
                "the function is proved to be the same from a number on in each direction, or the tensor to be bounded",
            ),
            ("known-rows", "what is looked up is constant"),
            ("small", "the new constant takes at most 64 KiB more than the old one"),
            ("clips-integers", "Clip of the operator set takes integers"),
            ("pays", "no more nodes are made than go"),
        ],
        exact: false,
        operators: &["Gather"],
        apply: saturated::lookup,
    },
    Rule {
        name: "lookups-by-one-clip",
        law: "Gather(x, min(max(d, a), b)) = Gather(x′, min(max(d, c), e)) with x′ₖ = row min(max(k, a), b) of x, where c ≤ a ≤ b ≤ e",
        sentence: "Lookups by numbers that are clipped to several intervals are lookups by those clipped to the widest.",
        premises: &[
            ("of-one", "the same integers are clipped, each time between two numbers"),
            ("contained", "one interval lies in the other"),
            ("only-lookups", "what is clipped more is read by lookups alone, and is no graph output"),
            ("known-rows", "what is looked up is constant"),
            ("has-rows", "all numbers that occur name a row: none is refused"),
            ("small", "the new constants take at most 64 KiB more than the old ones"),
        ],
        exact: true,
        operators: &["Clip"],
        apply: clipped::by_one,
    },
    Rule {
        name: "range-and-sum",
        law: "Range(a, b, d) + c = Range(a + c, a + c + len · d, d)",
        sentence: "A sum that only moves a Range is a Range that starts elsewhere.",
        premises: &[
            ("read-once", "only the sum reads the Range"),
            ("open-length", "how many numbers there are depends on a size"),
            ("64-bits", "the numbers have 64 bits"),
            ("known-step", "the step is a number other than 0"),
            ("ends-known", "where it starts and ends is a number, or a value computes it already"),
            ("no-circle", "that value is not computed from the sum"),
        ],
        exact: true,
        operators: &["Add", "Sub"],
        apply: shifted::shift,
    },
];

/// A Concat of columns is what lookups and assignments are recognised by, and a spread axis what attentions that share heads are.
pub(super) const LAST_RULES: &[Rule] = &[REPEATS, CHOICE, tiled::TILED];

const REPEATS: Rule = Rule {
    name: "repeats-to-lookup",
    law: "Reshape(Expand([p, n, 1, q] → [p, n, g, q])) = Gather(x, [⌊j/g⌋]), Reshape(Expand([p, 1, n, q] → [p, g, n, q])) = \
        Gather(x, [j mod n]) for x of [p, n, q], j < n·g",
    sentence: "Places that are spread along an axis of their own and laid out in a row are looked up.",
    premises: &[
        ("one-axis", "one axis is spread, and how often is a number"),
        ("beside", "it joins an axis right before or right behind it, and no other axis changes"),
        ("known-places", "the size of that axis is a number, of at least 2"),
        ("few-places", "the result has at most 256 places there"),
        ("one-reader", "nothing else reads what is spread"),
        ("of-floats", "it is floats: integers may be indices, which are looked at as what they count"),
        (
            "no-cache",
            "what is repeated is no Concat: ONNX Runtime's optimizer for LLaMA looks for heads of a cache that are spread",
        ),
        (
            "not-between-turns",
            "no Transpose reads the result if the operand is computed by element of what another gives: ONNX Runtime would move that",
        ),
    ],
    exact: true,
    operators: &["Reshape"],
    apply: repeated::lookup,
};

const CHOICE: Rule = Rule {
    name: "columns-by-choice",
    law: "Concat(x₀, x₁) = Where(m, y₀, y₁) for columns xᵢ spread from yᵢ, m true at the place of x₀",
    sentence: "Columns that are spread and put side by side are chosen, and the choice spreads.",
    premises: &[
        ("single-columns", "every operand has size 1 along the axis"),
        ("spread", "one of them is spread"),
        ("movable-type", "every runtime selects from the element type"),
        ("pays", "no more nodes are made than go"),
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
        sentence: "What is computed of positions is the front of a constant, where it is known how many there are at most.",
        premises: &[
            (
                "bounded",
                "how many positions there are at most is told, or implied by the rows of a table that is looked up at each",
            ),
            ("by-place", "each element is computed of the positions at its place, and of numbers"),
            ("small", "the constants take at most 256 KiB more than those that go"),
            ("pays", "no more nodes are made than go"),
            ("no-circle", "where it ends is told by a value that is not computed of it"),
            ("no-output", "none of it is a graph output"),
        ],
        exact: false,
        operators: &["Range"],
        apply: front::of_table,
    },
    Rule {
        name: "front-of-longer",
        law: "f(Range(0, n, 1)) = f(Range(0, m, 1))[: n] where n ≤ m",
        sentence: "What is computed alike of fewer positions is the front of what is computed of more.",
        premises: &[
            ("no-longer", "along every axis it is proved to be as long as the other, or shorter"),
            (
                "alike",
                "both are computed by the same operators of the same numbers, from ranges that begin and go alike",
            ),
            ("by-place", "each element is computed of the positions at its place, and of numbers"),
            ("no-rounding", "no kernel rounds by where an element stands"),
            ("pays", "no more nodes are made than go"),
            ("no-circle", "the longer is not computed from the shorter"),
            ("no-output", "none of it is a graph output"),
        ],
        exact: true,
        operators: &["Range"],
        apply: front::of_longer,
    },
];
