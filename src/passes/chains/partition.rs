//! Partitions: ways to cut a row into shorter ones that are put together by one Concat.

/// What an element of a row is, for whoever asks which of them belong together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// A number.
    Number,
    /// Computed, first of all by this operator; without one it is read.
    Computed(Option<&'static str>),
}

/// The lengths of the runs of equal kinds: numbers are one constant, and what the same operator computes is computed at once.
pub(super) fn by_kind(kinds: &[Kind]) -> Vec<usize> {
    kinds.chunk_by(|a, b| a == b).map(<[Kind]>::len).collect()
}

/// The lengths of runs of numbers, and between them of the longest runs that can be had at once, else of single elements.
/// `longest(at)` tells how many elements from `at` on can be had at once.
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
    fn what_can_be_had_at_once_stays_together() {
        let kinds = [Kind::Number, READ, READ, SUM, Kind::Number];
        let lengths = by_reach(&kinds, |at| (at == 1).then_some(2));
        assert_eq!(lengths, [1, 2, 1, 1]);
        // Whatever is said, a run ends with the row and the lengths add up.
        assert_eq!(by_reach(&kinds, |_| Some(0)), [1, 1, 1, 1, 1]);
        assert_eq!(by_reach(&kinds, |_| Some(9)), [1, 4]);
    }
}
