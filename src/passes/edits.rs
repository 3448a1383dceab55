//! Counts the edits of passes, and limits their number.
//!
//! An edit is the smallest change of a pass that keeps the model consistent: a rewrite, a folded node, a removed dead node, a replaced call. A pass
//! checks the limit before each edit. So a run with limit N makes the first N edits of a run without a limit. Bisection over N finds the edit that
//! causes a wrong result.

use std::collections::BTreeMap;

use crate::dim::Meter;

/// The number of edits of each kind: rewrites by the name of the rule, others by the name of the pass.
pub type Fired = BTreeMap<&'static str, usize>;

/// The edits of a run, and the limit of their number.
#[derive(Clone, Debug)]
pub(super) struct EditCounter {
    limit: usize,
    made: usize,
    fired: Fired,
    /// `true` if edits are described: that takes a text for each.
    describes: bool,
    last: Option<LastEdit>,
    /// All edits, if they are recorded.
    log: Option<Vec<LastEdit>>,
    /// The meter of the run's work.
    meter: Meter,
}

/// The last edit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastEdit {
    /// The rule or pass.
    pub name: &'static str,
    /// The node, as it was before; `None` if edits are not described.
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
    /// Creates a counter that allows `limit` edits.
    pub(super) fn new(limit: usize, describes: bool) -> Self {
        EditCounter { limit, made: 0, fired: Fired::new(), describes, last: None, log: None, meter: Meter::default() }
    }

    /// Describes and keeps all edits if `records`.
    pub(super) fn recording(mut self, records: bool) -> Self {
        self.describes |= records;
        self.log = records.then(Vec::new);
        self
    }

    /// Allows no edit once a run with this meter is over.
    pub(super) fn metered(mut self, meter: &Meter) -> Self {
        self.meter = meter.clone();
        self
    }

    /// Creates a counter that allows any number of edits.
    pub(super) fn unlimited() -> Self {
        EditCounter::new(usize::MAX, false)
    }

    /// Returns `true` if there is a limit.
    pub(super) fn is_limited(&self) -> bool {
        self.limit < usize::MAX
    }

    /// Returns `true` if another edit is allowed. Once it returns `false`, it always does.
    pub(super) fn allows_more(&self) -> bool {
        self.made < self.limit && !self.meter.is_over()
    }

    /// Counts an edit before it is made. Returns `false` if it must not be made. `name` is that of the rule or the pass, `place` describes the node.
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

    /// Returns the number of edits.
    pub(super) fn made(&self) -> usize {
        self.made
    }

    /// Returns the number of edits of this name.
    pub(super) fn made_by(&self, name: &str) -> usize {
        self.fired.get(name).copied().unwrap_or(0)
    }

    /// Returns the last edit.
    pub(super) fn last(&self) -> Option<&LastEdit> {
        self.last.as_ref()
    }

    /// Returns the number of edits of each kind, the last one, and all of them if they were recorded.
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
