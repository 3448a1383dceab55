//! Finds the first edit after which a folded model differs.

use std::fmt;
use std::time::Duration;

use super::{Trial, check};
use crate::clock::Instant;
use crate::dim::Scope;
use crate::ir::Model;
use crate::passes::{LastEdit, Options, RunError, run};

/// The time limit of the search.
const MOST_TIME: Duration = Duration::from_secs(120);

/// The edit at fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Culprit {
    /// The number of the edit: with `--stop-after` of this number, the output differs.
    pub number: usize,
    /// The largest number of edits with equal output: `number - 1`, unless the search ran out of time.
    pub equal_until: usize,
    /// The rule or pass, and the node.
    pub edit: Option<LastEdit>,
}

impl fmt::Display for Culprit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.number - self.equal_until {
            1 => write!(f, "edit {} is the first edit after which the output differs", self.number)?,
            _ => write!(
                f,
                "the output differs after edit {} and not after edit {}; the search for the faulty edit stopped after {} s",
                self.number,
                self.equal_until,
                MOST_TIME.as_secs()
            )?,
        }
        match &self.edit {
            Some(edit) => write!(f, ": {edit}"),
            None => Ok(()),
        }
    }
}

/// Returns the first edit after which the same inputs show a difference; `None` if they differ before any edit.
///
/// # Errors
/// A pass fails.
pub fn culprit(original: &Model, options: &Options, trial: &Trial, edits: usize) -> Result<Option<Culprit>, RunError> {
    let tried = |limit: usize| {
        let mut model = original.clone();
        let limited = options.clone().stop_after(limit);
        let outcome = run(&mut model, Scope::new().into(), &limited, 0, &mut |_| {})?;
        let differs = check(original, &model, options, trial).difference.is_some();
        Ok::<_, RunError>((differs, outcome.last_edit))
    };
    let begin = Instant::now();
    first(edits, tried, || begin.elapsed() > MOST_TIME)
}

/// Bisects for the smallest limit with a difference, and returns the last edit within it; `None` if that limit is 0.
/// Stops early once `is_late`.
fn first<E>(
    edits: usize,
    mut tried: impl FnMut(usize) -> Result<(bool, Option<LastEdit>), E>,
    is_late: impl Fn() -> bool,
) -> Result<Option<Culprit>, E> {
    if tried(0)?.0 {
        return Ok(None);
    }
    // The outputs are equal after `good` edits and differ after `bad` edits.
    let (mut good, mut bad) = (0, edits.max(1));
    while bad - good > 1 && !is_late() {
        let middle = good + (bad - good) / 2;
        if tried(middle)?.0 {
            bad = middle;
        } else {
            good = middle;
        }
    }
    Ok(Some(Culprit { number: bad, equal_until: good, edit: tried(bad)?.1 }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edit(number: usize) -> Option<LastEdit> {
        (number > 0).then(|| LastEdit { name: "same-shape", place: Some(format!("node {number}")) })
    }

    #[test]
    fn the_first_edit_at_fault_is_found() {
        for (edits, fault) in [(1, 1), (9, 1), (9, 5), (9, 9)] {
            let found = first(edits, |limit| Ok::<_, ()>((limit >= fault, edit(limit))), || false).unwrap();
            assert_eq!(found, Some(Culprit { number: fault, equal_until: fault - 1, edit: edit(fault) }));
        }
        assert_eq!(first(9, |limit| Ok::<_, ()>((true, edit(limit))), || false), Ok(None));
    }

    #[test]
    fn a_search_over_its_time_limit_returns_a_range() {
        let found = first(9, |limit| Ok::<_, ()>((limit >= 5, edit(limit))), || true).unwrap();
        let told = found.map(|culprit| culprit.to_string()).unwrap_or_default();
        assert!(told.starts_with("the output differs after edit 9 and not after edit 0"), "{told}");
    }
}
