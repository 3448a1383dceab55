//! Detects parts of a node that its operator's version lacks.
//!
//! `ReduceMean` has its axes as an attribute up to version 13 and as an operand from 18 on. A node of the wrong form
//! is invalid: ONNX Runtime rejects it, others ignore unknown parts or accept them. So such a node is opaque, and no
//! rule matches it.

use std::sync::OnceLock;

#[cfg(test)]
use super::registry::place_of;
use super::registry::{Operator, operators, place_at};
use super::signatures::{SIGNATURES, Signature};
use crate::ir::{Node, ValueId};

/// A parsed signature, since it is needed at every node.
struct Versions {
    /// The numbers of operands, each with its first version.
    operands: Vec<(i64, usize)>,
    results: Vec<(i64, usize)>,
    /// Each attribute with its first version, and the version that removes it.
    attributes: Vec<(&'static str, i64, i64)>,
}

impl Versions {
    fn of(signature: Signature) -> Versions {
        let attribute = |entry: &'static str| {
            let (entry, until) = entry.split_once('<').map_or((entry, i64::MAX), |(entry, end)| (entry, number(end)));
            let (name, since) = entry.split_once('@').map_or((entry, 1), |(name, since)| (name, number(since)));
            (name, since, until)
        };
        Versions {
            operands: counts(signature.operands),
            results: counts(signature.results),
            attributes: signature.attributes.split(' ').filter(|entry| !entry.is_empty()).map(attribute).collect(),
        }
    }

    /// Returns the signature of an operator; `None` if the standard does not define it.
    #[cfg(test)]
    fn of_operator(operator: &Operator) -> Option<&'static Versions> {
        Versions::at(place_of(operator)?, operator)
    }

    /// Returns the signature of the operator at this index.
    fn at(place: usize, operator: &Operator) -> Option<&'static Versions> {
        // Models use few operators, so only their signatures are parsed.
        static BY_PLACE: OnceLock<Vec<OnceLock<Option<Box<Versions>>>>> = OnceLock::new();
        let known = BY_PLACE.get_or_init(|| operators().map(|_| OnceLock::new()).collect());
        known.get(place)?.get_or_init(|| Versions::listed(operator).map(Box::new)).as_deref()
    }

    fn listed(operator: &Operator) -> Option<Versions> {
        let name = (operator.domain, operator.name);
        let place = SIGNATURES.binary_search_by_key(&name, |&(domain, name, _)| (domain, name)).ok()?;
        SIGNATURES.get(place).map(|&(.., signature)| Versions::of(signature))
    }

    /// Returns `true` if an attribute exists in other versions, but not in this one.
    fn has_elsewhere(&self, name: &str, version: i64) -> bool {
        let is_elsewhere = |&(own, since, until): &(&str, i64, i64)| own == name && !(since..until).contains(&version);
        self.attributes.iter().any(is_elsewhere)
    }
}

/// Parses the numbers of `1 2@18` with their first versions.
fn counts(text: &str) -> Vec<(i64, usize)> {
    let entry = |entry: &str| {
        let (count, since) = entry.split_once('@').map_or((entry, 1), |(count, since)| (count, number(since)));
        (since, count.parse().unwrap_or(usize::MAX))
    };
    text.split(' ').map(entry).collect()
}

/// Returns the number that applies in this version.
fn most(counts: &[(i64, usize)], version: i64) -> usize {
    counts.iter().rev().find(|(since, _)| *since <= version).map_or(usize::MAX, |&(_, count)| count)
}

fn number(text: &str) -> i64 {
    text.parse().unwrap_or(0)
}

/// Describes the part of a node that this version of its operator lacks, if any. Attributes that no version has are
/// ignored: nothing reads them, and they are kept.
pub(super) fn surplus(operator: &Operator, version: i64, node: &Node) -> Option<String> {
    let versions = Versions::at(place_at(operator, node)?, operator)?;
    let present = |values: &[Option<ValueId>]| values.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
    let of_another = |name: &str| versions.has_elsewhere(name, version);
    let what = if let Some(held) = node.attributes.iter().find(|held| of_another(&held.name)) {
        format!("no attribute '{}'", held.name)
    } else if present(node.inputs()) > most(&versions.operands, version) {
        format!("no operand {}", present(node.inputs()) - 1)
    } else if present(node.outputs()) > most(&versions.results, version) {
        format!("no result {}", present(node.outputs()) - 1)
    } else {
        return None;
    };
    Some(format!("version {version} of {} has {what}", operator.name))
}

/// Describes an attribute of a node that no version of its operator has, if any. It is kept and nothing reads it, but
/// the standard's checker and ONNX Runtime reject it.
pub(super) fn unknown_attribute(operator: &Operator, node: &Node) -> Option<String> {
    let versions = Versions::at(place_at(operator, node)?, operator)?;
    let is_known = |name: &str| versions.attributes.iter().any(|(own, ..)| *own == name);
    let held = node.attributes.iter().find(|held| !is_known(&held.name))?;
    Some(format!("{} has no attribute '{}' in any version", operator.name, held.name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::operators;

    #[test]
    fn every_operator_of_the_standard_has_a_signature() {
        let standard = |domain: &str| domain.is_empty() || domain.starts_with("ai.onnx");
        // Runtimes and converters add operators of their own to the default domain.
        let own = ["MemcpyFromHost", "MemcpyToHost", "SimplifiedLayerNormalization", "StridedSlice"];
        let is_meant = |operator: &&Operator| standard(operator.domain) && !own.contains(&operator.name);
        for operator in operators().filter(is_meant) {
            assert!(Versions::of_operator(operator).is_some(), "{} {}", operator.domain, operator.name);
        }
    }

    #[test]
    fn signatures_are_in_order() {
        assert!(SIGNATURES.is_sorted_by_key(|&(domain, name, _)| (domain, name)));
    }

    #[test]
    fn it_changes_with_versions_only() {
        for operator in operators() {
            let Some(versions) = Versions::of_operator(operator) else { continue };
            let counts = versions.operands.iter().chain(&versions.results).map(|&(since, _)| since);
            let attributes = versions.attributes.iter().flat_map(|&(_, since, until)| [since, until]);
            for version in counts.chain(attributes).filter(|&version| version != 1 && version != i64::MAX) {
                assert!(operator.versions.contains(&version), "{}: {version}", operator.name);
            }
        }
    }

    #[test]
    fn a_version_matches_the_standard() {
        let versions = Versions::of(Signature::new("1 2@18", "*", "axes<18 keepdims noop@18 mode@11<18"));
        let lacks = |version| ["axes", "keepdims", "noop", "mode"].map(|name| versions.has_elsewhere(name, version));
        assert_eq!(lacks(1), [false, false, true, true]);
        assert_eq!(lacks(13), [false, false, true, false]);
        assert_eq!(lacks(18), [true, false, false, true]);
        assert_eq!([13, 18, 20].map(|version| most(&versions.operands, version)), [1, 2, 2]);
        assert_eq!(most(&versions.results, 1), usize::MAX);
        assert!(!versions.has_elsewhere("", 1) && !versions.has_elsewhere("stays", 1));
    }
}
