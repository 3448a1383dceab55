//! Looks up values by name without a second copy of the names.

use std::hash::{Hash, Hasher};

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use rustc_hash::FxHasher;

use super::ValueId;

/// Values by name. The table stores no names: the caller provides the name of a value.
#[derive(Clone, Debug, Default)]
pub struct ByName {
    table: HashTable<Named>,
}

#[derive(Clone, Copy, Debug)]
struct Named {
    hash: u64,
    value: ValueId,
    /// The number of times that the name was given.
    count: u32,
}

fn hash_of(name: &str) -> u64 {
    let mut hasher = FxHasher::default();
    name.hash(&mut hasher);
    hasher.finish()
}

impl ByName {
    /// Reserves room for `names` more names.
    pub fn reserve(&mut self, names: usize) {
        self.table.reserve(names, |named| named.hash);
    }

    /// Returns the value of this name, and the number of times that the name was given.
    pub fn get<'n>(&self, name: &str, name_of: impl Fn(ValueId) -> &'n str) -> Option<(ValueId, u32)> {
        let hash = hash_of(name);
        let found = self.table.find(hash, |named| named.hash == hash && name_of(named.value) == name);
        found.map(|named| (named.value, named.count))
    }

    /// Gives a name to a value. If another value has the name, returns that value and increments the name's count.
    pub fn insert<'n>(&mut self, name: &str, value: ValueId, name_of: impl Fn(ValueId) -> &'n str) -> Option<ValueId> {
        let hash = hash_of(name);
        let is_it = |named: &Named| named.hash == hash && name_of(named.value) == name;
        match self.table.entry(hash, is_it, |named| named.hash) {
            Entry::Occupied(mut known) => {
                let known = known.get_mut();
                known.count = known.count.saturating_add(1);
                Some(known.value)
            }
            Entry::Vacant(place) => {
                place.insert(Named { hash, value, count: 1 });
                None
            }
        }
    }

    /// Removes a name from the value that has it, but not from another. Returns the name's count.
    pub fn remove(&mut self, name: &str, value: ValueId) -> Option<u32> {
        let hash = hash_of(name);
        let entry = self.table.find_entry(hash, |named| named.hash == hash && named.value == value).ok()?;
        Some(entry.remove().0.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_and_counted() {
        let names = ["a", "b", "a", "c"];
        let name_of = |value: ValueId| names[value.index()];
        let mut table = ByName::default();
        table.reserve(2);
        let given: Vec<Option<ValueId>> =
            (0..4).map(|at| table.insert(names[at as usize], ValueId::of(at), name_of)).collect();
        assert_eq!(given, [None, None, Some(ValueId::of(0)), None]);
        assert_eq!(table.get("a", name_of), Some((ValueId::of(0), 2)));
        assert_eq!(table.get("d", name_of), None);
        // The third value never had a separate entry.
        assert_eq!((table.remove("a", ValueId::of(2)), table.remove("a", ValueId::of(0))), (None, Some(2)));
        assert_eq!(table.get("a", name_of), None);
        assert_eq!(table.get("c", name_of), Some((ValueId::of(3), 1)));
    }
}
