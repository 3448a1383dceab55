//! The reason for which a rule declines. A [`Miss`] names the failed premise, and the operand or dim that it is about. It has the size of
//! four words: rules decline millions of times, so only `explain --rule` formats text.

use crate::dim::Answer;
use crate::ir::ValueId;

/// The subject of a premise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum About {
    /// The node as a whole.
    Node,
    /// A value.
    Value(ValueId),
    /// An axis of a value.
    Dim(ValueId, u32),
}

/// The first premise that failed at a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Miss {
    /// The name of the premise: one of the rule's record, or of [`SHARED`].
    pub premise: &'static str,
    /// The subject of the premise.
    pub about: About,
    /// `true` if the prover could decide neither the premise nor its opposite. The question is the last one that
    /// [`Scope::open_question`](crate::dim::Scope::open_question) noted, for a miss ends the attempt.
    pub is_open: bool,
}

/// Premises of every rule, in addition to those of its record.
pub const SHARED: &[(&str, &str)] = &[
    (
        "name-is-free",
        "the result of the removed node is not a graph output, or another node can produce the output under the same name",
    ),
    ("results-unread", "the other outputs of a removed node have no consumers"),
    ("one-reader", "no remaining node reads a removed value"),
    ("no-larger", "the new constants take no more bytes than the removed nodes and constants"),
    ("expressible", "the model's operator set contains the new node's operator, attributes and element types"),
    ("known-shape", "the rank of each operand that the rule compares is known"),
    (
        "computable",
        "the new constants and axes can be computed without integer overflow, and within the limits on memory and work",
    ),
];

impl Miss {
    /// The node does not have the operator, or the operands, that the rule looks for. `explain --rule` does not list such nodes.
    pub const ROOT: Miss = Miss::new("root");
    /// The result is a graph output and its name is needed.
    pub const NAME: Miss = Miss::new("name-is-free");
    /// Another result of a removed node is read.
    pub const RESULTS: Miss = Miss::new("results-unread");
    /// A remaining node reads a value that the edit removes.
    pub const READ: Miss = Miss::new("one-reader");
    /// The model would grow.
    pub const LARGER: Miss = Miss::new("no-larger");
    /// The operator set in force cannot express the new node.
    pub const EXPRESSIBLE: Miss = Miss::new("expressible");
    /// The shape of an operand is unknown.
    pub const SHAPE: Miss = Miss::new("known-shape");
    /// A constant of the edit cannot be computed.
    pub const COMPUTABLE: Miss = Miss::new("computable");

    /// Returns a miss about the node as a whole.
    pub const fn new(premise: &'static str) -> Miss {
        Miss { premise, about: About::Node, is_open: false }
    }

    /// Returns the same miss about a value.
    pub const fn of(self, value: ValueId) -> Miss {
        Miss { about: About::Value(value), ..self }
    }

    /// Returns the same miss about an axis of a value.
    pub fn dim(self, value: ValueId, axis: usize) -> Miss {
        Miss { about: About::Dim(value, u32::try_from(axis).unwrap_or(u32::MAX)), ..self }
    }

    /// Returns `true` if the node does not match the rule's root pattern.
    pub fn is_root(&self) -> bool {
        self.premise == Miss::ROOT.premise
    }
}

/// Returns `miss` unless the condition holds.
pub fn ensure(holds: bool, miss: Miss) -> Result<(), Miss> {
    if holds { Ok(()) } else { Err(miss) }
}

/// Returns `miss` unless the answer is yes. The miss is marked as open if the answer is unknown.
pub fn prove(answer: Answer, miss: Miss) -> Result<(), Miss> {
    match answer {
        Answer::Yes => Ok(()),
        Answer::No => Err(miss),
        Answer::Unknown => Err(Miss { is_open: true, ..miss }),
    }
}

/// Returns the first successful attempt. If all decline, returns the miss of the last one that matched the root pattern of the rule.
pub fn first_of<T>(attempts: impl IntoIterator<Item = Result<T, Miss>>) -> Result<T, Miss> {
    let mut miss = Miss::ROOT;
    for attempt in attempts {
        match attempt {
            Ok(found) => return Ok(found),
            Err(other) if !other.is_root() => miss = other,
            Err(_) => {}
        }
    }
    Err(miss)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_miss_is_small() {
        assert!(size_of::<Miss>() <= 32, "{}", size_of::<Miss>());
    }

    #[test]
    fn the_last_pattern_found_is_the_reason() {
        let (first, last) = (Miss::new("first"), Miss::new("last"));
        let miss = first_of::<()>([Err(first), Err(Miss::ROOT), Err(last), Err(Miss::ROOT)]);
        assert_eq!(miss, Err(last));
        assert_eq!(first_of([Err(first), Ok(1), Ok(2)]), Ok(1));
        assert_eq!(first_of::<()>([]), Err(Miss::ROOT));
    }
}
