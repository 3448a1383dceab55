//! The passes that can be left out, as data like rules.

use super::outcome::NoRule;
use crate::rewrite::{Rule, as_pass, rules};

/// Every rule, in the order they are tried, then every pass that can be left out.
pub fn records() -> impl Iterator<Item = &'static Rule> {
    rules().chain(RECORDS)
}

/// Whether a pass or rule is one of those.
pub(super) fn is_listed(name: &str) -> bool {
    records().any(|record| record.name == name)
}

/// The rule or pass of a name.
///
/// # Errors
/// There is none.
pub fn record(name: &str) -> Result<&'static Rule, NoRule> {
    let found = records().find(|record| record.name == name);
    found.ok_or_else(|| NoRule::among(name, records().map(|record| record.name)))
}

/// Passes that can be left out like rules.
pub const RECORDS: &[Rule] = &[
    Rule {
        name: "common-subexpression",
        law: "two nodes f(x) compute the same value",
        sentence: "Merges nodes that compute the same value, and equal initializers.",
        premises: &[
            ("same-node", "operator, operator set, attributes, operands and number of results are the same"),
            ("deterministic", "equal operands give equal results"),
            (
                "not-taken",
                "no Loop or Scan consumes a result or operand that may be a sequence, an optional or strings, because these move the value",
            ),
            ("one-name", "at most one of the results is a graph output"),
            (
                "own-scales",
                "operands of quantizations in a subgraph are in the subgraph, because ONNX Runtime only looks for them there",
            ),
            (
                "not-turned",
                "no result is a graph output where another is transposed and quantized: ONNX Runtime shows that quantized",
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
            ("same-content", "type, shape and elements are proved to be the same"),
            ("no-output", "the replaced value is not a graph output"),
        ],
        exact: true,
        operators: &[],
        apply: as_pass,
    },
    Rule {
        name: "shape-read-off",
        law: "[dᵢ, …, dⱼ₋₁] = Shape(x, start = i, end = j) for x of shape [d₀, …, dₙ₋₁]",
        sentence: "Replaces a computed vector of dims by the Shape of a tensor with these dims in a row.",
        premises: &[
            ("a-row", "the sizes are proved to be those of some tensor's axes in a row"),
            ("range-of-axes", "Shape supports a range of axes in this operator set"),
        ],
        exact: true,
        operators: &[],
        apply: as_pass,
    },
    Rule {
        name: "shape-behind-function",
        law: "Shape(x) = Shape(f(x)) where f(x) has the shape of x",
        sentence: "Applies Shape to the result of a function instead of its operand, if a runtime fuses both.",
        premises: &[
            ("one-step", "a runtime fuses x with the only consumer of its elements"),
            ("same-shape", "x and the result are proved to have the same type and shape"),
            ("computed-before", "the function comes before all that depends on the shape"),
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
            ("decided", "the condition is known"),
            ("no-hiding", "the branch has no initializer that hides an outer value"),
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
            ("decided", "how often it runs is proved to be 0 or 1"),
            ("pays", "the rewrite adds no more nodes than it removes"),
        ],
        exact: true,
        operators: &["Loop", "Scan"],
        apply: as_pass,
    },
    Rule {
        name: "carried-value",
        law: "a loop-carried value that no iteration changes equals its initial value",
        sentence: "Removes loop-carried values that never change or that no consumer needs.",
        premises: &[
            (
                "for-nothing",
                "the subgraph returns the value unchanged, or neither the condition nor a used result depends on it",
            ),
            (
                "copied",
                "the outer value that replaces it is proved to be numeric, because sequences, optionals and strings move into the subgraph",
            ),
            (
                "no-scale",
                "it is not the scale of a quantization in the subgraph, because ONNX Runtime only looks for such constants there",
            ),
            (
                "has-rows",
                "a Loop with scan outputs is proved to run: without iterations, ONNX Runtime derives the shape of the empty output from the inferred shape of one row",
            ),
            ("carries-something", "a Loop without scan outputs has operator set 11 or newer"),
        ],
        exact: true,
        operators: &["Loop", "Scan"],
        apply: as_pass,
    },
    Rule {
        name: "unrolled-loop",
        law: "a Loop with n iterations is n copies of its subgraph, each with the carried values of the copy before",
        sentence: "Unrolls a Loop or Scan with few known iterations where this adds no node.",
        premises: &[
            ("few", "how often it runs is proved to be a number from 2 to 16"),
            (
                "pays",
                "after constant folding, the unrolled nodes exceed the removed ones by at most the allowed number",
            ),
            ("alike", "all operators are known and deterministic"),
            ("known-ranks", "loop-carried values and scan outputs have one known rank in all iterations"),
            ("same-lengths", "all scan inputs of a Scan are proved to have the same length"),
            ("one-shape", "scan outputs have one shape in all iterations"),
        ],
        exact: true,
        operators: &["Loop", "Scan"],
        apply: as_pass,
    },
    Rule {
        name: "hoisted-node",
        law: "f(x) in each iteration equals f(x) before the loop, for an x from outside",
        sentence: "Moves loop-invariant nodes out of a Loop or Scan.",
        premises: &[
            ("invariant", "all its operands come from outside of the subgraph, or are constants"),
            (
                "runs",
                "the loop is proved to have an iteration, or the node cannot fail and computes at most 64 elements",
            ),
            (
                "alike",
                "the operator is known and deterministic, and no quantization, which runtimes expect next to its consumer",
            ),
            ("not-given", "the result is not an output of the subgraph, which must compute its outputs itself"),
        ],
        exact: true,
        operators: &[],
        apply: as_pass,
    },
    Rule {
        name: "size-chain",
        law: "integer tensors of one type and shape are equal if their elements are the same expressions in dims",
        sentence: "Replans all shape arithmetic of a graph with the fewest nodes.",
        premises: &[("fewer", "the expressions in dims need fewer nodes than the current ones")],
        exact: true,
        operators: &[],
        apply: as_pass,
    },
    Rule {
        name: "inline-function",
        law: "a call of a function equals its subgraph",
        sentence: "Inlines calls of model-local functions.",
        premises: &[
            ("fewer", "the model then has fewer nodes"),
            ("same-operators", "the operators of the body are the same in the operator sets that the caller imports"),
        ],
        exact: true,
        operators: &[],
        apply: as_pass,
    },
    Rule {
        name: "fold-function",
        law: "facts that hold at every call of a function hold in its subgraph",
        sentence: "Folds the subgraphs of the remaining functions.",
        premises: &[("at-every-call", "the facts that a folding relies on hold at every call")],
        exact: true,
        operators: &[],
        apply: as_pass,
    },
    Rule {
        name: "addends",
        law: "Constant(value = c) = c",
        sentence: "Writes a folded constant that is added before a normalization as a Constant node: optimizers fuse no initializer there.",
        premises: &[
            ("folded", "the constant is not an initializer of the file"),
            ("normalized", "a normalization consumes the sum"),
            ("normalized-once", "the result of the first normalization is not an operand of a second one"),
            ("same-shape", "the constant has the shape of the other addend, or of one element of its batch"),
            (
                "no-lookup",
                "the other addend is not the result of a Gather, because optimizers match that as an embedding",
            ),
        ],
        exact: true,
        operators: &["Add"],
        apply: as_pass,
    },
    Rule {
        name: "positions",
        law: "Shape(x, start = 1, end = 2) = Unsqueeze(Gather(Shape(x), 1), [0])",
        sentence: "Reads the number of positions of an embedding by Shape, Gather and Unsqueeze, which optimizers look for.",
        premises: &[
            ("three-tables", "the sum adds rows of three constant tables"),
            ("first-positions", "the positions are the first elements of a constant row"),
            ("of-words", "the number of positions is the second dim of the words"),
            ("normalized", "a normalization consumes the sum"),
            ("attended", "three products and a sum consume the normalized value"),
        ],
        exact: true,
        operators: &["Shape", "Gather"],
        apply: as_pass,
    },
];
