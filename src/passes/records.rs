//! What the passes that can be left out say of themselves, as rules do.

use super::outcome::NoRule;
use crate::rewrite::{Record, nearest, rules};

/// Every rule, in the order they are tried, then every pass that can be left out.
pub fn records() -> impl Iterator<Item = Record> {
    rules().map(crate::rewrite::Rule::record).chain(RECORDS.iter().copied())
}

/// Whether a pass or rule is one of those.
pub(super) fn is_listed(name: &str) -> bool {
    records().any(|record| record.name == name)
}

/// The rule or pass of a name.
///
/// # Errors
/// There is none.
pub fn record(name: &str) -> Result<Record, NoRule> {
    let found = records().find(|record| record.name == name);
    found.ok_or_else(|| NoRule { name: name.to_string(), nearest: nearest(name, records().map(|record| record.name)) })
}

/// Passes that can be left out like rules.
pub const RECORDS: &[Record] = &[
    Record {
        name: "common-subexpression",
        law: "f(x) computed twice is f(x) computed once",
        sentence: "Nodes that compute the same from the same are one, and so are initializers that hold the same.",
        premises: &[
            ("same-node", "operator, operator set, attributes, operands and number of results are the same"),
            ("deterministic", "equal operands give equal results"),
            (
                "not-taken",
                "no Loop or Scan takes a result that may be a sequence, an optional or strings: it leaves nothing for other \
                    readers",
            ),
            ("one-name", "not both results are graph outputs"),
        ],
        exact: true,
        operators: &[],
    },
    Record {
        name: "value-numbering",
        law: "integer tensors of one type and shape are equal where each element is the same expression in sizes",
        sentence: "Integer tensors that are proved to hold the same are one value.",
        premises: &[
            ("same-content", "type, shape and elements are proved to be the same"),
            ("no-output", "what is replaced is no graph output"),
        ],
        exact: true,
        operators: &[],
    },
    Record {
        name: "shape-read-off",
        law: "[dᵢ, …, dⱼ₋₁] = Shape(x, start = i, end = j) for x of shape [d₀, …, dₙ₋₁]",
        sentence: "A vector of sizes is read off the tensor that has them in a row.",
        premises: &[
            ("a-row", "the sizes are proved to be those of some tensor's axes in a row"),
            ("range-of-axes", "Shape of the operator set in force takes a range of axes"),
        ],
        exact: true,
        operators: &[],
    },
    Record {
        name: "decided-if",
        law: "If(true; a, b) = a, If(false; a, b) = b",
        sentence: "A branch that is decided stands in the place of the If.",
        premises: &[
            ("decided", "the condition is known"),
            ("no-hiding", "the branch has no initializer that hides an outer value"),
        ],
        exact: true,
        operators: &["If"],
    },
    Record {
        name: "decided-loop",
        law: "a body that runs once is its nodes; a body that never runs is the initial values",
        sentence: "A Loop or Scan that is decided to run once or never goes.",
        premises: &[
            ("decided", "how often it runs is proved to be 0 or 1"),
            ("pays", "no more nodes are made than go"),
        ],
        exact: true,
        operators: &["Loop", "Scan"],
    },
    Record {
        name: "size-chain",
        law: "integer tensors of one type and shape are equal where each element is the same expression in sizes",
        sentence: "All that is computed of sizes is computed anew in as few nodes as it takes.",
        premises: &[("fewer", "fewer nodes compute what is proved to be made of expressions in sizes than there are")],
        exact: true,
        operators: &[],
    },
    Record {
        name: "inline-function",
        law: "a call of a function is its body",
        sentence: "Calls of the model's functions become the body.",
        premises: &[
            ("fewer", "the model then has fewer nodes"),
            ("same-operators", "the operators of the body are the same in the operator sets that the caller imports"),
        ],
        exact: true,
        operators: &[],
    },
    Record {
        name: "fold-function",
        law: "the body of a function is what its nodes compute under what holds at every call",
        sentence: "Bodies of functions that stay are folded.",
        premises: &[("at-every-call", "what a node is folded under holds at every call")],
        exact: true,
        operators: &[],
    },
];
