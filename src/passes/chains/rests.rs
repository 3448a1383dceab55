//! Finds Reshape targets with −1 in place of a number because another target has it: one vector serves both.
//!
//! Law: a Reshape may use −1 for a size if the product of its other sizes is not 0 in any run that ends. The law holds if the product is proved not
//! to be 0, or if a needed Reshape itself uses −1 with the same other sizes: a run in which their product is 0 fails there.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::conventions::says_codes;
use super::demand::Demand;
use super::row::Row;
use super::survey::Survey;
use crate::dim::{Dim, Scope};
use crate::ir::{Facts, Model, ValueId};
use crate::ops::size_operand::reshape_leaves_rest;

/// The most demands that are recorded for one row.
const MOST_SAYING: usize = 16;

/// Returns the additional rows of demands, each with the index of its demand.
pub(super) fn shared_rests(survey: &mut Survey, model: &Model, facts: &Facts, list: &[Demand]) -> Vec<(usize, Row)> {
    // The demands that each row with a −1 meets.
    let mut saying: FxHashMap<&Row, SmallVec<[&Demand; 2]>> = FxHashMap::default();
    let rest = survey.terms.int(-1);
    for demand in list {
        for row in demand.rows.iter().filter(|row| row.terms.contains(&rest)) {
            let known = saying.entry(row).or_default();
            if known.len() < MOST_SAYING {
                known.push(demand);
            }
        }
    }
    if saying.is_empty() {
        return Vec::new();
    }
    let mut found = Vec::new();
    for (at, demand) in list.iter().enumerate() {
        let Some(own) = Target::of(model, facts, demand) else { continue };
        for (axis, row) in with_rests(survey, demand) {
            let Some(others) = saying.get(&row).filter(|_| !demand.rows.contains(&row)) else { continue };
            let is_proved = || {
                let others = own.to.iter().enumerate().filter(|(other, _)| *other != axis).map(|(_, dim)| dim);
                own.to.len() == row.len() && reshape_leaves_rest(facts.scope(), others)
            };
            // The first row of a demand is its reader's current operand.
            let fails_with = |says: &&Demand| {
                let is_said = says.is_kept && says.rows.first() == Some(&row);
                let target = Target::of(model, facts, says).filter(|_| is_said);
                target.is_some_and(|target| target.copies_as(&own, survey, &row, facts.scope()))
            };
            if others.iter().any(fails_with) || is_proved() {
                found.push((at, row));
            }
        }
    }
    found
}

/// A Reshape with a demanded target that reads 0 and −1 as codes: the dims of its operand and of its result.
struct Target<'a> {
    from: &'a [Dim],
    to: &'a [Dim],
}

impl<'a> Target<'a> {
    fn of(model: &Model, facts: &'a Facts, demand: &Demand) -> Option<Self> {
        let node = model.node(demand.reader)?;
        if !node.is("Reshape") || demand.slot != 1 || !says_codes(node) {
            return None;
        }
        let dims = |value: Option<ValueId>| facts.get(value?)?.shape();
        Some(Target { from: dims(node.input(0))?, to: dims(node.output(0))? })
    }

    /// Returns `true` if each 0 of the row copies the same size in both targets.
    fn copies_as(&self, other: &Target, survey: &Survey, row: &Row, scope: &Scope) -> bool {
        row.terms.iter().enumerate().all(|(axis, &term)| {
            survey.terms.as_const(term) != Some(0)
                || self.from.get(axis).zip(other.from.get(axis)).is_some_and(|(own, dim)| scope.eq(own, dim).is_yes())
        })
    }
}

/// Returns the rows of a demand with −1 in place of a number, each with its axis.
fn with_rests(survey: &mut Survey, demand: &Demand) -> Vec<(usize, Row)> {
    let rest = survey.terms.int(-1);
    let mut found = Vec::new();
    for row in demand.rows.iter().filter(|row| !row.terms.contains(&rest)) {
        for (axis, &term) in row.terms.iter().enumerate() {
            if survey.terms.as_const(term).is_some_and(|size| size > 0) {
                let mut open = row.clone();
                if let Some(said) = open.terms.get_mut(axis) {
                    *said = rest;
                    found.push((axis, open));
                }
            }
        }
    }
    found
}
