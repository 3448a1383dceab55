//! The differences between two versions of an operator, as data.

use super::draft::NodeDraft;
use crate::ir::Attribute;
use crate::tensor::DType;

/// Rewrites a node from one version to another, or returns the reason why that is impossible.
pub(super) type Rewrite = fn(&mut NodeDraft<'_>) -> Result<(), String>;

/// The value with which an attribute that the older version lacks changes nothing.
#[derive(Clone, Copy, Debug)]
pub(super) enum Neutral {
    /// The attribute is absent.
    Absent,
    /// The attribute is absent, or this INT.
    Int(i64),
    /// The attribute is absent, or this STRING.
    Text(&'static str),
    /// The attribute is absent, or each of its INTS is 1.
    Ones,
    /// Any value: the attribute only concerns element types or operands that the older version does not support.
    Any,
}

impl Neutral {
    /// Returns `true` if an attribute has the neutral value.
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

/// The conversion of an older node to the newer version.
#[derive(Clone, Copy, Debug)]
pub(super) enum Newer {
    /// Unchanged.
    Same,
    /// Without `consumed_inputs`.
    ForgetsConsumed,
    /// By a function.
    By(Rewrite),
}

/// The conversion of a newer node to the older version.
#[derive(Clone, Copy, Debug)]
pub(super) enum Older {
    /// Unchanged, if the node has nothing that only the newer version has.
    Same,
    /// By a function. If it writes another operator, the node is already one of the target. Otherwise the result is checked as in [`Older::Same`].
    By(Rewrite),
    /// Impossible, for this reason.
    Never(&'static str),
}

/// The step from one version of an operator to the next.
#[derive(Clone, Copy, Debug)]
pub(super) struct VersionStep {
    /// The `since_version` of the newer version.
    pub to: i64,
    /// The reason why the converted node computes the same.
    pub law: &'static str,
    /// The conversion to the newer version.
    pub newer: Newer,
    /// The element types that only the newer version supports, by name; `float8`, `integers` and `complex` are several.
    pub gained: &'static str,
    /// The only operand with these element types, if others, such as counts, have separate types.
    pub gained_by: Option<usize>,
    /// `true` if only the newer version supports some sequences, optional values, or file formats.
    pub gained_kinds: bool,
    /// The attributes that only the newer version has, with their neutral values.
    pub added: &'static [(&'static str, Neutral)],
    /// The values of an attribute that only the newer version has.
    pub words: &'static [(&'static str, &'static [&'static str])],
    /// The number of operands of the older version, if it has fewer.
    pub operands: usize,
    /// The number of results of the older version, if it has fewer.
    pub results: usize,
    /// The number of operands that the older version requires, if these are more.
    pub required: usize,
    /// The number of operands that the older version must list, absent or not, if these are more.
    pub listed: usize,
    /// Operands that must have one element type in the older version, but may differ in the newer one.
    pub alike: &'static [usize],
    /// Operands that are single numbers in the older version.
    pub single: &'static [usize],
    /// The conversion to the older version.
    pub older: Older,
}

/// Creates a step between versions that differ only in their text.
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
    /// Adds element types of the newer version.
    pub(super) const fn gains(mut self, types: &'static str) -> Self {
        if matches!(self.newer, Newer::Same) && self.added.is_empty() {
            self.law = "both versions compute the same for the element types that both accept";
        }
        self.gained = types;
        self
    }

    /// Limits the new element types to this operand.
    pub(super) const fn for_operand(mut self, slot: usize) -> Self {
        self.gained_by = Some(slot);
        self
    }

    /// Adds kinds of values other than tensors to the newer version.
    pub(super) const fn gains_kinds(mut self) -> Self {
        self.gained_kinds = true;
        self
    }

    /// Adds attributes of the newer version.
    pub(super) const fn adds(mut self, attributes: &'static [(&'static str, Neutral)]) -> Self {
        self.law = "without the new attributes, the newer version equals the older one";
        self.added = attributes;
        self
    }

    /// Adds attribute values of the newer version.
    pub(super) const fn knows(mut self, words: &'static [(&'static str, &'static [&'static str])]) -> Self {
        self.words = words;
        self
    }

    /// Sets the number of operands of the older version, fewer than those of the newer one.
    pub(super) const fn operands(mut self, count: usize) -> Self {
        self.operands = count;
        self
    }

    /// Sets the number of results of the older version, fewer than those of the newer one.
    pub(super) const fn results(mut self, count: usize) -> Self {
        self.results = count;
        self
    }

    /// Sets the number of operands that the older version requires, some of them optional in the newer one.
    pub(super) const fn requires(mut self, count: usize) -> Self {
        self.required = count;
        self
    }

    /// Sets the number of operands that the older version must list, absent or not.
    pub(super) const fn lists(mut self, count: usize) -> Self {
        self.listed = count;
        self
    }

    /// Requires one element type for these operands in the older version.
    pub(super) const fn of_one_type(mut self, operands: &'static [usize]) -> Self {
        self.alike = operands;
        self
    }

    /// Requires single numbers as these operands in the older version.
    pub(super) const fn single(mut self, operands: &'static [usize]) -> Self {
        self.single = operands;
        self
    }

    /// Removes `consumed_inputs` of the older version.
    pub(super) const fn forgets_consumed(mut self) -> Self {
        self.law = "consumed_inputs allows a result to overwrite operands, and does not change its value";
        self.newer = Newer::ForgetsConsumed;
        self
    }

    /// Sets the function that rewrites nodes for the newer version. No node can be rewritten for the older one.
    pub(super) const fn by(mut self, law: &'static str, rewrite: Rewrite) -> Self {
        self.law = law;
        self.newer = Newer::By(rewrite);
        self.older = Older::Never("the older version has another form");
        self
    }

    /// Sets the function that rewrites nodes for the older version.
    pub(super) const fn back(mut self, rewrite: Rewrite) -> Self {
        self.older = Older::By(rewrite);
        self
    }

    /// Keeps nodes unchanged for the older version, although a function rewrites older nodes.
    pub(super) const fn same_back(mut self) -> Self {
        self.older = Older::Same;
        self
    }

    /// Excludes the conversion to the older version.
    pub(super) const fn one_way(mut self, reason: &'static str) -> Self {
        self.older = Older::Never(reason);
        self
    }

    /// Returns `true` if only the newer version supports an element type.
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
