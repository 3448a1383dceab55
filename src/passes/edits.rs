//! Counts the edits that passes make, and allows no more than a given number of them.
//!
//! An edit is the smallest change a pass makes that leaves the model consistent: a rewrite, a node folded into constants, a dead node
//! removed, a call replaced. A pass asks before each edit it makes, so a run that may make N edits makes the first N of those that a
//! run without a limit makes. The edit at fault in a wrong result is found by bisection over N.

use std::collections::BTreeMap;

use crate::dim::Meter;

/// How often each kind of edit was made: rewrites by the name of the rule, the others by the name of the pass.
pub type Fired = BTreeMap<&'static str, usize>;

/// The edits made in a run, and how many more may be made.
#[derive(Clone, Debug)]
pub(super) struct EditCounter {
    limit: usize,
    made: usize,
    fired: Fired,
    /// Whether edits are described: that takes a text for each.
    describes: bool,
    last: Option<LastEdit>,
    /// All edits, if somebody wants to know.
    log: Option<Vec<LastEdit>>,
    /// What counts the work of the run.
    meter: Meter,
}

/// The edit that was made last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastEdit {
    /// The rule or pass.
    pub name: &'static str,
    /// The node it was made at, as it was before; nothing if edits are not described.
    pub place: Option<String>,
}

impl std::fmt::Display for LastEdit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.place {
            Some(place) => write!(f, "{} at {place}", self.name),
            None => f.write_str(self.name),
        }
    }
}

impl EditCounter {
    /// A counter that allows `limit` edits.
    pub(super) fn new(limit: usize, describes: bool) -> Self {
        EditCounter { limit, made: 0, fired: Fired::new(), describes, last: None, log: None, meter: Meter::default() }
    }

    /// The same, keeping all edits described if `records`.
    pub(super) fn recording(mut self, records: bool) -> Self {
        self.describes |= records;
        self.log = records.then(Vec::new);
        self
    }

    /// The same, allowing no edit once a run that this meter counts is over.
    pub(super) fn metered(mut self, meter: &Meter) -> Self {
        self.meter = meter.clone();
        self
    }

    /// A counter that allows any number of edits.
    pub(super) fn unlimited() -> Self {
        EditCounter::new(usize::MAX, false)
    }

    /// Whether there is a limit.
    pub(super) fn is_limited(&self) -> bool {
        self.limit < usize::MAX
    }

    /// Whether another edit would be allowed. Once it is not, it never is again.
    pub(super) fn allows_more(&self) -> bool {
        self.made < self.limit && !self.meter.is_over()
    }

    /// Counts an edit that is about to be made, if it is allowed; otherwise it must not be made. `name` is that of the rule or the
    /// pass, `place` describes the node.
    pub(super) fn take(&mut self, name: &'static str, place: impl FnOnce() -> String) -> bool {
        if !self.allows_more() {
            return false;
        }
        self.made += 1;
        *self.fired.entry(name).or_default() += 1;
        #[cfg(feature = "seeded-faults")]
        crate::ir::faults::announce(name, self.made_by(name));
        let edit = LastEdit { name, place: self.describes.then(place) };
        if let Some(log) = &mut self.log {
            log.push(edit.clone());
        }
        self.last = Some(edit);
        true
    }

    /// How many edits were made.
    pub(super) fn made(&self) -> usize {
        self.made
    }

    /// How many edits of this name were made.
    pub(super) fn made_by(&self, name: &str) -> usize {
        self.fired.get(name).copied().unwrap_or(0)
    }

    /// The edit that was made last.
    pub(super) fn last(&self) -> Option<&LastEdit> {
        self.last.as_ref()
    }

    /// How often each kind of edit was made, the last one, and all of them if they were recorded.
    pub(super) fn into_parts(self) -> (Fired, Option<LastEdit>, Vec<LastEdit>) {
        (self.fired, self.last, self.log.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_edit_is_allowed_after_one_was_refused() {
        let mut edits = EditCounter::new(2, true);
        assert!(edits.take("a", || "x".to_string()) && edits.take("b", || "y".to_string()));
        assert!(!edits.allows_more() && !edits.take("a", || "z".to_string()));
        assert_eq!((edits.made(), edits.last().map(ToString::to_string)), (2, Some("b at y".to_string())));
        let (fired, last, log) = edits.into_parts();
        assert!(log.is_empty());
        assert_eq!((fired.get("a"), fired.get("b")), (Some(&1), Some(&1)));
        assert_eq!(last.and_then(|last| last.place), Some("y".to_string()));
    }
}
