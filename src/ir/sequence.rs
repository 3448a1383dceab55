//! The ordered nodes of a graph: sorted, usually extended at the end, and iterated very often.
//!
//! The entries are stored in chunks of bounded length. Insertion and removal move few entries, and iteration runs
//! over slices.

use super::NodeId;

/// The position of a node, and the node.
pub(super) type Entry = ((u32, u32), NodeId);

/// The largest length of a chunk before it is split.
const MOST: usize = 512;

/// Sorted entries. No chunk is empty.
#[derive(Clone, Debug, Default)]
pub(super) struct Sequence {
    pieces: Vec<Vec<Entry>>,
    len: usize,
}

impl Sequence {
    /// Inserts an entry at its sorted position. The sequence must not contain an equal entry.
    pub fn insert(&mut self, entry: Entry) {
        self.len += 1;
        match self.pieces.last_mut() {
            Some(last) if last.len() < MOST && last.last().is_none_or(|greatest| *greatest < entry) => last.push(entry),
            Some(last) if last.last().is_some_and(|greatest| *greatest > entry) => self.insert_within(entry),
            _ => self.pieces.push(vec![entry]),
        }
    }

    fn insert_within(&mut self, entry: Entry) {
        let at = self.piece_of(&entry);
        let Some(piece) = self.pieces.get_mut(at) else { return };
        piece.insert(piece.partition_point(|other| *other < entry), entry);
        if piece.len() > MOST {
            let rest = piece.split_off(MOST / 2);
            self.pieces.insert(at + 1, rest);
        }
    }

    /// Removes an entry, if present.
    pub fn remove(&mut self, entry: &Entry) {
        let at = self.piece_of(entry);
        let Some(piece) = self.pieces.get_mut(at) else { return };
        let Ok(place) = piece.binary_search(entry) else { return };
        piece.remove(place);
        self.len -= 1;
        if piece.is_empty() {
            self.pieces.remove(at);
        }
    }

    /// Returns the first chunk whose last entry is not less than this one.
    fn piece_of(&self, entry: &Entry) -> usize {
        self.pieces.partition_point(|piece| piece.last().is_some_and(|greatest| greatest < entry))
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns the nodes in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = NodeId> + '_ {
        self.pieces.iter().flat_map(|piece| piece.iter().map(|&(_, node)| node))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_sequence_equals_a_sorted_set() {
        let (mut sequence, mut set) = (Sequence::default(), BTreeSet::new());
        let mut state = 1u32;
        let entry = |order: u32, step: u32| ((order, step), NodeId(step));
        for step in 0..40_000u32 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let anywhere = (state >> 8) % (100_000 + step);
            // First at the end, then insertions and removals in the middle, finally almost all entries are removed.
            let gone = set.range(entry(anywhere, 0)..).next().copied();
            match (step / 10_000, step % 3) {
                (0, _) => insert(&mut sequence, &mut set, entry(100_000 + step, step)),
                (1, 0 | 1) | (2, 0) => insert(&mut sequence, &mut set, entry(anywhere, step)),
                _ => gone.into_iter().for_each(|gone| {
                    sequence.remove(&gone);
                    set.remove(&gone);
                }),
            }
            if step % 1000 == 999 {
                assert_eq!(sequence.len(), set.len());
                assert!(sequence.iter().eq(set.iter().map(|&(_, node)| node)));
                assert!(sequence.iter().rev().eq(set.iter().rev().map(|&(_, node)| node)));
                assert!(sequence.pieces.iter().all(|piece| (1..=MOST).contains(&piece.len())));
            }
        }
        sequence.remove(&entry(5, 50_000));
        assert_eq!(sequence.len(), set.len());
    }

    fn insert(sequence: &mut Sequence, set: &mut BTreeSet<Entry>, entry: Entry) {
        sequence.insert(entry);
        set.insert(entry);
    }
}
