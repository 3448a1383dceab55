//! Prints the explanation: first the assumptions that remove more nodes, then the remaining nodes with reasons.

use std::collections::BTreeMap;
use std::fmt;

use super::{Cause, CauseKind, Explanation, OpenSize, Suggestion};

use crate::sort;

/// The most nodes that are shown of each kind.
const SHOWN: usize = 4;

impl Suggestion {
    /// Describes the effect on one line.
    pub(super) fn told(&self, of: &Explanation) -> String {
        let mut told = format!("{}: {} -> {} nodes", self.flags, of.nodes.1, self.nodes);
        if self.open != of.tensors.1 {
            told.push_str(&format!(", {} -> {} tensors of unknown size", of.tensors.1, self.open));
        }
        format!("{told}; valid only if {}", self.condition)
    }
}

impl Explanation {
    /// Returns a one-line summary: the remaining nodes by kind, and the most effective suggestion.
    pub fn headline(&self) -> String {
        let (before, after) = self.nodes;
        let of = |kind: CauseKind| self.causes.iter().filter(|cause| cause.kind == kind).count();
        let mut told = format!("{after} of the model's {before} nodes remain");
        let kinds = [
            (of(CauseKind::Sizes), "compute sizes"),
            (of(CauseKind::Moves), "select or rearrange values"),
            (of(CauseKind::Operator), "depend on an unknown operator"),
            (of(CauseKind::Declined), "were not folded"),
        ];
        let kinds: Vec<String> =
            kinds.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
        if !kinds.is_empty() {
            told.push_str(&format!(": {}", kinds.join(", ")));
        }
        let helps = |found: &&Suggestion| found.nodes < after;
        let best = self.suggestions.iter().filter(helps).min_by_key(|found| (found.is_number, found.nodes));
        if let Some(best) = best {
            told.push_str(&format!(". With {}, {} nodes would remain", best.flags, best.nodes));
        }
        told
    }

    fn suggestions(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (trials, ended) = self.trials;
        if !self.suggestions.is_empty() {
            writeln!(
                f,
                "\nAssumptions about the inputs that allow further folding. Each assumption was tried by folding the model with it. A model folded with an assumption is valid only for inputs that satisfy the assumption:"
            )?;
        }
        for found in &self.suggestions {
            writeln!(f, "  {}", found.told(self))?;
        }
        if self.suggestions.is_empty() && trials > 0 {
            writeln!(
                f,
                "\nNone of the assumptions about the input dims that were tried removes nodes ({trials} trials)."
            )?;
        }
        if ended {
            writeln!(
                f,
                "  Not all possible assumptions were tried ({trials} trials); --trials COUNT allows more trials."
            )?;
        }
        Ok(())
    }

    fn what_stays(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut kinds: BTreeMap<CauseKind, Vec<&Cause>> = BTreeMap::new();
        for cause in &self.causes {
            kinds.entry(cause.kind).or_default().push(cause);
        }
        for (kind, causes) in kinds {
            let mut operators: BTreeMap<&str, usize> = BTreeMap::new();
            for cause in &causes {
                *operators.entry(&cause.operator).or_default() += 1;
            }
            let mut operators: Vec<(&str, usize)> = operators.into_iter().collect();
            sort::by_key(&mut operators, |&(name, count)| (std::cmp::Reverse(count), name));
            let more = operators.len().saturating_sub(8);
            let mut list: Vec<String> =
                operators.iter().take(8).map(|(name, count)| format!("{count} {name}")).collect();
            list.extend((more > 0).then(|| format!("{more} other operators")));
            writeln!(f, "\n{}: {} nodes ({})", kind.title(), causes.len(), list.join(", "))?;
            // Nodes that compute with input values need no reason each.
            if kind == CauseKind::Values {
                continue;
            }
            for cause in causes.iter().take(SHOWN) {
                writeln!(f, "  {}: {}", cause.node, cause.reason)?;
            }
            if causes.len() > SHOWN {
                writeln!(f, "  {} more; `explain MODEL NAME` explains a single node", causes.len() - SHOWN)?;
            }
        }
        Ok(())
    }

    fn open_sizes(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (all, open) = self.tensors;
        if open == 0 {
            return Ok(());
        }
        writeln!(f, "\nDims that do not follow from the input dims, in {open} of {all} tensors:")?;
        for OpenSize { name, tensor, tensors, reason, .. } in self.sizes.iter().take(SHOWN) {
            match name {
                Some(name) => writeln!(f, "  '{name}', a dim of {tensors} tensor(s), first of '{tensor}': {reason}")?,
                None => writeln!(f, "  the rank of {tensors} tensor(s), first of '{tensor}': {reason}")?,
            }
        }
        match self.sizes.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            more => writeln!(f, "  {more} more"),
        }
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.answers.is_empty() {
            for (_, answer) in &self.answers {
                f.write_str(answer)?;
            }
            return match self.trials.1 {
                true => {
                    writeln!(
                        f,
                        "Not all possible assumptions were tried ({} trials); --trials COUNT allows more trials.",
                        self.trials.0
                    )
                }
                false => Ok(()),
            };
        }
        writeln!(f, "{}", self.headline())?;
        self.suggestions(f)?;
        self.what_stays(f)?;
        self.open_sizes(f)
    }
}
