//! Partitions: ways to split a row into shorter rows for one Concat.

/// The kind of a row element, which determines the runs of a partition.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// A number.
    Number,
    /// Computed, preferably by this operator; without one, read from a shape.
    Computed(Option<&'static str>),
}

/// Returns the lengths of the runs of equal kinds: numbers are one constant, and one operator computes its terms at once.
pub(super) fn by_kind(kinds: &[Kind]) -> Vec<usize> {
    kinds.chunk_by(|a, b| a == b).map(<[Kind]>::len).collect()
}

/// Returns the lengths of runs of numbers, and between them of the longest available runs, or of single elements. `longest(at)` returns the number of
/// elements from `at` on that one operand provides.
pub(super) fn by_reach(kinds: &[Kind], mut longest: impl FnMut(usize) -> Option<usize>) -> Vec<usize> {
    let mut lengths = Vec::new();
    let mut at = 0;
    while let Some(rest) = kinds.get(at..).filter(|rest| !rest.is_empty()) {
        let numbers = rest.iter().take_while(|&&kind| kind == Kind::Number).count();
        let length = if numbers > 0 { numbers } else { longest(at).unwrap_or(1).max(1).min(rest.len()) };
        lengths.push(length);
        at += length;
    }
    lengths
}

#[cfg(test)]
mod tests {
    use super::*;

    const READ: Kind = Kind::Computed(None);
    const SUM: Kind = Kind::Computed(Some("Add"));

    #[test]
    fn runs_of_a_kind_stay_together() {
        assert_eq!(by_kind(&[SUM, SUM, Kind::Number, Kind::Number, READ]), [2, 2, 1]);
        assert!(by_kind(&[]).is_empty());
    }

    #[test]
    fn terms_that_one_node_computes_are_not_split() {
        let kinds = [Kind::Number, READ, READ, SUM, Kind::Number];
        let lengths = by_reach(&kinds, |at| (at == 1).then_some(2));
        assert_eq!(lengths, [1, 2, 1, 1]);
        // For any `longest`, runs end with the row and the lengths add up.
        assert_eq!(by_reach(&kinds, |_| Some(0)), [1, 1, 1, 1, 1]);
        assert_eq!(by_reach(&kinds, |_| Some(9)), [1, 4]);
    }
}
