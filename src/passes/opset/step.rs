//! What lies between two versions of an operator, as data.

use super::draft::NodeDraft;
use crate::ir::Attribute;
use crate::tensor::DType;

/// Rewrites a node from one version to another, or returns the reason why that is impossible.
pub(super) type Rewrite = fn(&mut NodeDraft<'_>) -> Result<(), String>;

/// What an attribute that the older version does not have stands at where it changes nothing.
#[derive(Clone, Copy, Debug)]
pub(super) enum Neutral {
    /// It is not there.
    Absent,
    /// It is not there, or this INT.
    Int(i64),
    /// It is not there, or this STRING.
    Text(&'static str),
    /// The attribute is absent, or each of its INTS is 1.
    Ones,
    /// Whatever it is: it only concerns element types or operands that the older version does not take.
    Any,
}

impl Neutral {
    /// Whether an attribute says no more than that.
    pub(super) fn is(self, value: &Attribute) -> bool {
        match (self, value) {
            (Neutral::Int(neutral), Attribute::Int(value)) => neutral == *value,
            (Neutral::Text(neutral), Attribute::String(value)) => value == neutral.as_bytes(),
            (Neutral::Ones, Attribute::Ints(values)) => values.iter().all(|value| *value == 1),
            (Neutral::Any, _) => true,
            _ => false,
        }
    }
}

/// How a node of the older version is written in the newer one.
#[derive(Clone, Copy, Debug)]
pub(super) enum Newer {
    /// As it is.
    Same,
    /// Without `consumed_inputs`.
    ForgetsConsumed,
    /// By a function.
    By(Rewrite),
}

/// How a node of the newer version is written in the older one.
#[derive(Clone, Copy, Debug)]
pub(super) enum Older {
    /// As it is, if it has nothing that only the newer version has.
    Same,
    /// By a function. A node of another operator that it writes is one of the target; otherwise the result is checked as in [`Older::Same`].
    By(Rewrite),
    /// Never.
    Never(&'static str),
}

/// The step from one version of an operator to the next.
#[derive(Clone, Copy, Debug)]
pub(super) struct VersionStep {
    /// The `since_version` of the newer one.
    pub to: i64,
    /// Why a node so written computes the same.
    pub law: &'static str,
    /// How a node is written in the newer version.
    pub newer: Newer,
    /// The element types that only the newer one takes, by their names; `float8`, `integers` and `complex` are several.
    pub gained: &'static str,
    /// The one operand that takes them, if others, such as counts, have types of their own.
    pub gained_by: Option<usize>,
    /// Whether only the newer one takes some sequences, optional values, or formats of files.
    pub gained_kinds: bool,
    /// The attributes that only the newer one has, and where they change nothing.
    pub added: &'static [(&'static str, Neutral)],
    /// A word that only the newer one knows for an attribute.
    pub words: &'static [(&'static str, &'static [&'static str])],
    /// How many operands the older one takes, if that is fewer.
    pub operands: usize,
    /// How many results the older one gives, if that is fewer.
    pub results: usize,
    /// How many operands the older one must be given, if that is more.
    pub required: usize,
    /// How many operands the older one must list, left out or not, if that is more.
    pub listed: usize,
    /// Operands that the older one takes of one element type only, where the newer one takes several.
    pub alike: &'static [usize],
    /// Operands that are single numbers in the older one.
    pub single: &'static [usize],
    /// How a node is written in the older version.
    pub older: Older,
}

/// A step that changes nothing but the operator's text.
pub(super) const fn to(version: i64) -> VersionStep {
    VersionStep {
        to: version,
        law: "the versions differ in their text only",
        newer: Newer::Same,
        gained: "",
        gained_by: None,
        gained_kinds: false,
        added: &[],
        words: &[],
        operands: usize::MAX,
        results: usize::MAX,
        required: 0,
        listed: 0,
        alike: &[],
        single: &[],
        older: Older::Same,
    }
}

impl VersionStep {
    /// The newer version takes more element types.
    pub(super) const fn gains(mut self, types: &'static str) -> Self {
        if matches!(self.newer, Newer::Same) && self.added.is_empty() {
            self.law = "both versions compute the same for the element types that both accept";
        }
        self.gained = types;
        self
    }

    /// Only this operand takes the element types that are new.
    pub(super) const fn for_operand(mut self, slot: usize) -> Self {
        self.gained_by = Some(slot);
        self
    }

    /// The newer version takes more kinds of values than tensors.
    pub(super) const fn gains_kinds(mut self) -> Self {
        self.gained_kinds = true;
        self
    }

    /// The newer version has more attributes.
    pub(super) const fn adds(mut self, attributes: &'static [(&'static str, Neutral)]) -> Self {
        self.law = "without the new attributes, the newer version equals the older one";
        self.added = attributes;
        self
    }

    /// The newer version knows more words for an attribute.
    pub(super) const fn knows(mut self, words: &'static [(&'static str, &'static [&'static str])]) -> Self {
        self.words = words;
        self
    }

    /// The older version has so many operands, fewer than the newer one.
    pub(super) const fn operands(mut self, count: usize) -> Self {
        self.operands = count;
        self
    }

    /// The older version has so many results, fewer than the newer one.
    pub(super) const fn results(mut self, count: usize) -> Self {
        self.results = count;
        self
    }

    /// The older version needs so many operands, of which the newer one lets some be left out.
    pub(super) const fn requires(mut self, count: usize) -> Self {
        self.required = count;
        self
    }

    /// The older version lists so many operands, of which some may be left out.
    pub(super) const fn lists(mut self, count: usize) -> Self {
        self.listed = count;
        self
    }

    /// The older version takes these operands of one element type only.
    pub(super) const fn of_one_type(mut self, operands: &'static [usize]) -> Self {
        self.alike = operands;
        self
    }

    /// The older version takes these operands as single numbers only.
    pub(super) const fn single(mut self, operands: &'static [usize]) -> Self {
        self.single = operands;
        self
    }

    /// The older version has `consumed_inputs`.
    pub(super) const fn forgets_consumed(mut self) -> Self {
        self.law = "consumed_inputs allows a result to overwrite operands, and does not change its value";
        self.newer = Newer::ForgetsConsumed;
        self
    }

    /// A function rewrites nodes for the newer version. No node can be rewritten for the older one.
    pub(super) const fn by(mut self, law: &'static str, rewrite: Rewrite) -> Self {
        self.law = law;
        self.newer = Newer::By(rewrite);
        self.older = Older::Never("the older version has another form");
        self
    }

    /// A node is written in the older version by a function.
    pub(super) const fn back(mut self, rewrite: Rewrite) -> Self {
        self.older = Older::By(rewrite);
        self
    }

    /// Nodes are valid in the older version unchanged, although a function rewrites older nodes.
    pub(super) const fn same_back(mut self) -> Self {
        self.older = Older::Same;
        self
    }

    /// No node is written in the older version.
    pub(super) const fn one_way(mut self, reason: &'static str) -> Self {
        self.older = Older::Never(reason);
        self
    }

    /// Whether only the newer version takes an element type.
    pub(super) fn gains_type(&self, dtype: DType) -> bool {
        self.gained.split_whitespace().any(|word| match word {
            "float8" => {
                matches!(dtype, DType::Float8E4M3FN | DType::Float8E4M3FNUZ | DType::Float8E5M2 | DType::Float8E5M2FNUZ)
            }
            "integers" => dtype.is_integer() && dtype.bits().is_some_and(|bits| bits >= 8),
            "complex" => dtype.is_complex(),
            name => dtype.name() == name,
        })
    }
}
