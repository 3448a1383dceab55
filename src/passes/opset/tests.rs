//! Tests that the table is complete, and agrees with the table of operators.

use super::step::{Newer, VersionStep};
use super::table::STEPS;
use super::{ir_version_of, steps_of};
use crate::ops::operators;
use crate::tensor::DType;

#[test]
fn every_version_of_every_operator_has_a_step() {
    for operator in operators().filter(|operator| operator.domain.is_empty()) {
        let steps: Vec<i64> = steps_of(operator.name).iter().map(|step| step.to).collect();
        assert_eq!(steps, operator.versions[1..], "{}", operator.name);
    }
    for (name, _) in STEPS {
        assert!(operators().any(|operator| operator.domain.is_empty() && operator.name == *name), "{name}");
        assert_eq!(STEPS.iter().filter(|(other, _)| other == name).count(), 1, "{name}");
    }
}

fn all() -> impl Iterator<Item = (&'static str, &'static VersionStep)> {
    STEPS.iter().flat_map(|(name, steps)| steps.iter().map(move |step| (*name, step)))
}

#[test]
fn every_step_has_a_law_and_types_that_exist() {
    for (name, step) in all() {
        assert!(!step.law.is_empty(), "{name}-{}", step.to);
        for word in step.gained.split_whitespace().filter(|word| !["float8", "integers", "complex"].contains(word)) {
            assert!(DType::from_name(word).is_some(), "{name}-{}: {word}", step.to);
        }
        let says_text_only = step.law.contains("text only");
        let changes = !step.gained.is_empty() || !step.added.is_empty() || !matches!(step.newer, Newer::Same);
        assert!(!says_text_only || !changes, "{name}-{}", step.to);
    }
}

#[test]
fn the_file_format_grows_with_the_operator_set() {
    let versions: Vec<i64> = (1..=28).map(ir_version_of).collect();
    assert!(versions.is_sorted() && versions[0] == 3 && versions[23] == 12 && versions[27] == 14);
}
