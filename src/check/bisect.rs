//! Finds the first edit after which a folded model differs.

use std::fmt;

use super::{Checked, check};
use crate::dim::Scope;
use crate::ir::Model;
use crate::passes::{LastEdit, Options, RunError, run};

/// The edit at fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Culprit {
    /// Which edit it is; with `--stop-after` of one less there is no difference.
    pub number: usize,
    /// Rule or pass, and node.
    pub edit: Option<LastEdit>,
}

impl fmt::Display for Culprit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "edit {} is the first after which it differs", self.number)?;
        match &self.edit {
            Some(edit) => write!(f, ": {edit}"),
            None => Ok(()),
        }
    }
}

/// The first edit after which the same inputs show a difference: none if it is there before any edit.
///
/// # Errors
/// The passes failed on the way.
pub fn culprit(
    original: &Model,
    options: &Options,
    checked: &Checked,
    edits: usize,
) -> Result<Option<Culprit>, RunError> {
    let tried = |limit: usize| {
        let mut model = original.clone();
        let limited = options.clone().stop_after(limit);
        let outcome = run(&mut model, Scope::new().into(), &limited, 0, &mut |_| {})?;
        let differs = check(original, &model, options, checked.asked).difference.is_some();
        Ok::<_, RunError>((differs, outcome.last_edit))
    };
    first(edits, tried)
}

/// The least limit at which there is a difference, with the edit that is then the last; nothing if that is 0.
fn first<E>(
    edits: usize,
    mut tried: impl FnMut(usize) -> Result<(bool, Option<LastEdit>), E>,
) -> Result<Option<Culprit>, E> {
    if tried(0)?.0 {
        return Ok(None);
    }
    // At `good` there is no difference, at `bad` there is.
    let (mut good, mut bad) = (0, edits.max(1));
    while bad - good > 1 {
        let middle = good + (bad - good) / 2;
        if tried(middle)?.0 {
            bad = middle;
        } else {
            good = middle;
        }
    }
    Ok(Some(Culprit { number: bad, edit: tried(bad)?.1 }))
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
            let found = first(edits, |limit| Ok::<_, ()>((limit >= fault, edit(limit)))).unwrap();
            assert_eq!(found, Some(Culprit { number: fault, edit: edit(fault) }));
        }
        assert_eq!(first(9, |limit| Ok::<_, ()>((true, edit(limit)))), Ok(None));
    }
}
