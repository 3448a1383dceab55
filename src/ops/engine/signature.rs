//! What a node has that its operator does not have in the version in force.
//!
//! `ReduceMean` takes its axes as an attribute up to version 13 and as an operand from 18 on. A node that spells them the other way round is
//! no node of its operator: ONNX Runtime refuses it, others ignore what they do not know, or read it all the same. So nothing is known of
//! such a node, as if its operator were unknown, and no rule looks at it.

use std::sync::OnceLock;

use rustc_hash::FxHashMap;

use super::registry::Operator;
use super::signatures::{SIGNATURES, Signature};
use crate::ir::{Node, ValueId};

impl Signature {
    /// The signature of an operator; `None` if the standard has no such operator.
    fn of(operator: &Operator) -> Option<Signature> {
        static BY_NAME: OnceLock<FxHashMap<(&'static str, &'static str), Signature>> = OnceLock::new();
        let by_name = || SIGNATURES.iter().map(|&(domain, name, signature)| ((domain, name), signature)).collect();
        BY_NAME.get_or_init(by_name).get(&(operator.domain, operator.name)).copied()
    }

    /// Whether an attribute is there in other versions, and not in this one.
    fn has_elsewhere(self, name: &str, version: i64) -> bool {
        self.attributes.split(' ').any(|entry| {
            let (entry, until) = entry.split_once('<').map_or((entry, i64::MAX), |(entry, end)| (entry, number(end)));
            let (entry, since) = entry.split_once('@').map_or((entry, 1), |(entry, since)| (entry, number(since)));
            entry == name && !(since..until).contains(&version)
        })
    }
}

/// The number that is in force in this version.
fn most(counts: &str, version: i64) -> usize {
    let mut counts = counts.split(' ').filter_map(|entry| {
        let (count, since) = entry.split_once('@').map_or((entry, 1), |(count, since)| (count, number(since)));
        (since <= version).then(|| count.parse().unwrap_or(usize::MAX))
    });
    counts.next_back().unwrap_or(usize::MAX)
}

fn number(text: &str) -> i64 {
    text.parse().unwrap_or(0)
}

/// What a node has that this version of its operator does not have, in words; `None` if there is no such thing. An attribute that no version
/// has does not count: nothing reads it, and it is kept.
pub(super) fn surplus(operator: &Operator, version: i64, node: &Node) -> Option<String> {
    let signature = Signature::of(operator)?;
    let present = |values: &[Option<ValueId>]| values.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
    let of_another = |name: &str| signature.has_elsewhere(name, version);
    let what = if let Some(held) = node.attributes.iter().find(|held| of_another(&held.name)) {
        format!("no attribute '{}'", held.name)
    } else if present(node.inputs()) > most(signature.operands, version) {
        format!("no operand {}", present(node.inputs()) - 1)
    } else if present(node.outputs()) > most(signature.results, version) {
        format!("no result {}", present(node.outputs()) - 1)
    } else {
        return None;
    };
    Some(format!("version {version} of {} has {what}", operator.name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::operators;

    #[test]
    fn every_operator_of_the_standard_has_a_signature() {
        let standard = |domain: &str| domain.is_empty() || domain.starts_with("ai.onnx");
        // Runtimes and converters have some in the default domain that are their own.
        let own = ["MemcpyFromHost", "MemcpyToHost", "SimplifiedLayerNormalization", "StridedSlice"];
        let is_meant = |operator: &&Operator| standard(operator.domain) && !own.contains(&operator.name);
        for operator in operators().filter(is_meant) {
            assert!(Signature::of(operator).is_some(), "{} {}", operator.domain, operator.name);
        }
    }

    #[test]
    fn it_changes_with_versions_only() {
        for operator in operators() {
            let Some(signature) = Signature::of(operator) else { continue };
            let Signature { operands, results, attributes } = signature;
            let entries = [operands, results, attributes].into_iter().flat_map(|text| text.split(' '));
            for version in entries.flat_map(|entry| entry.split(['@', '<']).skip(1)) {
                assert!(operator.versions.contains(&number(version)), "{}: {version}", operator.name);
            }
        }
    }

    #[test]
    fn a_version_has_what_the_standard_says() {
        let signature = Signature::new("1 2@18", "*", "axes<18 keepdims noop@18 mode@11<18");
        let lacks = |version| ["axes", "keepdims", "noop", "mode"].map(|name| signature.has_elsewhere(name, version));
        assert_eq!(lacks(1), [false, false, true, true]);
        assert_eq!(lacks(13), [false, false, true, false]);
        assert_eq!(lacks(18), [true, false, false, true]);
        assert_eq!([13, 18, 20].map(|version| most(signature.operands, version)), [1, 2, 2]);
        assert_eq!(most(signature.results, 1), usize::MAX);
        assert!(!signature.has_elsewhere("", 1) && !signature.has_elsewhere("stays", 1));
    }
}
