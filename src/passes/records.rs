//! The records of the passes that can be disabled, as data like rules.

use super::outcome::NoRule;
use crate::rewrite::{Rule, as_pass, rules};

/// Returns every rule, in the order of trials, then every pass that can be disabled.
pub fn records() -> impl Iterator<Item = &'static Rule> {
    rules().chain(RECORDS)
}

/// Returns `true` if a pass or rule has a record.
pub(super) fn is_listed(name: &str) -> bool {
    records().any(|record| record.name == name)
}

/// Returns the record of a rule or pass.
///
/// # Errors
/// No rule or pass has the name.
pub fn record(name: &str) -> Result<&'static Rule, NoRule> {
    let found = records().find(|record| record.name == name);
    found.ok_or_else(|| NoRule::among(name, records().map(|record| record.name)))
}

/// Passes that can be disabled like rules.
pub const RECORDS: &[Rule] = &[
    Rule {
        name: "common-subexpression",
        law: "two nodes with the same operator, attributes and operands compute the same values",
        sentence: "Merges nodes that compute the same value, and equal initializers.",
        premises: &[
            (
                "same-node",
                "both nodes have the same operator, operator set, attributes, operands and number of outputs",
            ),
            ("deterministic", "equal operands of the operator give equal results"),
            (
                "not-taken",
                "no node with a subgraph reads an operand or result of the two nodes that may be a sequence, an optional or a string tensor. Runtimes may move this value into the subgraph instead of copying the value",
            ),
            ("one-name", "at most one of the merged results is a graph output"),
            (
                "own-scales",
                "the scales of quantizations in a subgraph are defined in that subgraph, because ONNX Runtime looks for the scales only there",
            ),
            (
                "not-turned",
                "if one of the merged results is the operand of a Transpose whose result a QuantizeLinear reads, no other merged result is a graph output. ONNX Runtime would return the quantized values as the graph output",
            ),
        ],
        exact: true,
        operators: &[],
        apply: as_pass,
    },
    Rule {
        name: "value-numbering",
        law: "integer tensors of one type and shape are equal if their elements are the same expressions in dims",
        sentence: "Merges integer tensors that are proved to be equal.",
        premises: &[
            ("same-content", "both tensors are proved to have the same type, shape and elements"),
            ("no-output", "the replaced tensor is not a graph output"),
        ],
        exact: true,
        operators: &[],
        apply: as_pass,
    },
    Rule {
        name: "shape-read-off",
        law: "[dᵢ, …, dⱼ₋₁] = Shape(x, start = i, end = j) for x of shape [d₀, …, dₙ₋₁]",
        sentence: "Replaces a computed vector of dims by a Shape node, if one tensor has these dims on adjacent axes.",
        premises: &[
            ("a-row", "the elements of the vector are proved to be the dims of adjacent axes of one tensor x"),
            ("range-of-axes", "Shape has the attributes start and end in the model's operator set (since 15)"),
        ],
        exact: true,
        operators: &[],
        apply: as_pass,
    },
    Rule {
        name: "shape-behind-function",
        law: "Shape(x) = Shape(f(x)) where f(x) has the shape of x",
        sentence: "Applies Shape to the result of a function instead of the operand, if a runtime fuses the function with the producer of the operand.",
        premises: &[
            ("one-step", "f is the only consumer of the elements of x, and a runtime fuses f with the producer of x"),
            ("same-shape", "x and f(x) are proved to have the same type and shape"),
            ("computed-before", "f precedes every node that depends on the Shape"),
        ],
        exact: true,
        operators: &["Shape", "Size"],
        apply: as_pass,
    },
    Rule {
        name: "decided-if",
        law: "If(true; a, b) = a, If(false; a, b) = b",
        sentence: "Inlines the taken branch of an If with a constant condition.",
        premises: &[
            ("decided", "the condition is a known constant"),
            ("no-hiding", "no initializer of the branch has the name of an outer value"),
        ],
        exact: true,
        operators: &["If"],
        apply: as_pass,
    },
    Rule {
        name: "decided-loop",
        law: "a Loop with one iteration is its subgraph; a Loop without iterations returns the initial values",
        sentence: "Inlines a Loop or Scan that is proved to run once or never.",
        premises: &[
            ("decided", "the number of iterations is proved to be 0 or 1"),
            ("pays", "the rewrite adds no more nodes than it removes"),
        ],
        exact: true,
        operators: &["Loop", "Scan"],
        apply: as_pass,
    },
    Rule {
        name: "carried-value",
        law: "a loop-carried value that no iteration changes equals its initial value; an unused value can be removed",
        sentence: "Removes loop-carried values that never change or that no consumer needs.",
        premises: &[
            (
                "for-nothing",
                "the subgraph returns the value unchanged, or no result depends on the value: neither the condition nor a used output of the loop",
            ),
            (
                "copied",
                "the initial value that replaces a loop-carried value is proved to be a numeric tensor. Runtimes may move a sequence, an optional or a string tensor into the subgraph instead of copying the value",
            ),
            (
                "no-scale",
                "the value is not the scale of a quantization in the subgraph, because ONNX Runtime looks for scales only in the subgraph",
            ),
            (
                "has-rows",
                "a Loop with scan outputs is proved to run at least once, because ONNX Runtime derives the shape of an empty scan output from the subgraph",
            ),
            (
                "carries-something",
                "if no loop-carried value remains, the Loop has scan outputs, or the model's operator set is 11 or newer",
            ),
        ],
        exact: true,
        operators: &["Loop", "Scan"],
        apply: as_pass,
    },
    Rule {
        name: "unrolled-loop",
        law: "a Loop with n iterations is n copies of its subgraph, each with the carried values of the copy before",
        sentence: "Unrolls a Loop or Scan with a small, constant number of iterations.",
        premises: &[
            ("few", "the number of iterations is proved to be a constant from 2 to 16"),
            (
                "pays",
                "after constant folding, the number of nodes grows by at most the value of `--unroll` (default 0)",
            ),
            ("alike", "all operators in the subgraph are known and deterministic"),
            ("known-ranks", "each loop-carried value and scan output has one known rank in all iterations"),
            ("same-lengths", "all scan inputs of a Scan are proved to have the same length"),
            ("one-shape", "each scan output has one shape in all iterations"),
        ],
        exact: true,
        operators: &["Loop", "Scan"],
        apply: as_pass,
    },
    Rule {
        name: "hoisted-node",
        law: "f(x) in each iteration equals f(x) before the loop, for an x that is defined outside of the loop",
        sentence: "Moves loop-invariant nodes out of a Loop or Scan.",
        premises: &[
            ("invariant", "each operand of the node is a constant, or is defined outside of the subgraph"),
            (
                "runs",
                "the loop is proved to run at least once, or the node can be computed in vain: the node cannot fail, and has at most 64 elements",
            ),
            (
                "alike",
                "the operator is known and deterministic, and is not a quantization, because runtimes expect a quantization next to its consumer",
            ),
            (
                "not-given",
                "the result is not an output of the subgraph, because a subgraph must compute its outputs itself",
            ),
        ],
        exact: true,
        operators: &[],
        apply: as_pass,
    },
    Rule {
        name: "size-chain",
        law: "integer tensors of one type and shape are equal if their elements are the same expressions in dims",
        sentence: "Replans all shape arithmetic of a graph with the fewest nodes.",
        premises: &[("fewer", "the plan has fewer nodes than the current shape arithmetic")],
        exact: true,
        operators: &[],
        apply: as_pass,
    },
    Rule {
        name: "inline-function",
        law: "a call of a function equals the nodes of the function, applied to the operands of the call",
        sentence: "Inlines calls of model-local functions.",
        premises: &[
            ("fewer", "the model has fewer nodes after the inlining"),
            (
                "same-operators",
                "every operator in the function has the same version in the operator sets that the function and the caller import",
            ),
        ],
        exact: true,
        operators: &[],
        apply: as_pass,
    },
    Rule {
        name: "fold-function",
        law: "a fact that holds at every call of a function holds inside of the function",
        sentence: "Folds the nodes of model-local functions that are not inlined.",
        premises: &[("at-every-call", "each fact that the pass uses holds at every call of the function")],
        exact: true,
        operators: &[],
        apply: as_pass,
    },
    Rule {
        name: "addends",
        law: "Constant(value = c) = c",
        sentence: "Stores a folded constant that is added before a normalization as a Constant node, because optimizers do not fuse a sum with an initializer there.",
        premises: &[
            ("folded", "this program computed the constant: the original file contains no such initializer"),
            ("normalized", "a normalization consumes the sum"),
            ("normalized-once", "the result of the normalization is not an operand of a second normalization"),
            (
                "same-shape",
                "the constant has the shape of the other addend, or of one batch element of the other addend",
            ),
            (
                "no-lookup",
                "the other addend is not the result of a Gather, because optimizers match the sum of a Gather and a constant as an embedding",
            ),
        ],
        exact: true,
        operators: &["Add"],
        apply: as_pass,
    },
    Rule {
        name: "positions",
        law: "Shape(x, start = 1, end = 2) = Unsqueeze(Gather(Shape(x), 1), [0])",
        sentence: "Computes the number of positions of an embedding by Shape, Gather and Unsqueeze, the form that transformer optimizers match.",
        premises: &[
            ("three-tables", "the embedding is the sum of rows of three constant tables"),
            ("first-positions", "the position indices are the first elements of a constant vector"),
            ("of-words", "the number of positions is the second dim of the word indices"),
            ("normalized", "a normalization consumes the sum"),
            ("attended", "three matrix products and a sum consume the normalized value"),
        ],
        exact: true,
        operators: &["Shape", "Gather"],
        apply: as_pass,
    },
];
