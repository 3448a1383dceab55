//! Stable sorts of short lists, and maps of few entries, whose sort exists once.
//!
//! The standard library's sorts are compiled for each element type and each comparison, 3 to 9 kB at a time, and in a module for
//! browsers their size matters more than the time to sort. These sort the positions of a list, through one compiled function for all
//! lists, and then swap the elements into place. Unique of a million floats takes 1.7 times as long. Lists of integers and ids that are sorted in many places, and lists on the path of
//! every fold, use the methods of slices.

use std::cmp::Ordering;
use std::collections::BTreeMap;

/// Sorts a list by the order of its elements.
pub fn sort<T: Ord>(list: &mut [T]) {
    by(list, T::cmp);
}

/// Sorts a list by a key of its elements.
pub fn by_key<T, K: Ord>(list: &mut [T], key: impl Fn(&T) -> K) {
    by(list, |a, b| key(a).cmp(&key(b)));
}

/// Sorts a list by a comparison of its elements.
pub fn by<T>(list: &mut [T], compare: impl Fn(&T, &T) -> Ordering) {
    let mut order = sorted_positions(list.len(), &|a, b| match (list.get(a), list.get(b)) {
        (Some(a), Some(b)) => compare(a, b),
        _ => Ordering::Equal,
    });
    permute(&mut order, &mut |a, b| list.swap(a, b));
}

/// Collects entries into a map one by one: `collect` would compile a sort for each type of entries. Of equal keys, the last counts.
pub fn map<K: Ord, V>(entries: impl IntoIterator<Item = (K, V)>) -> BTreeMap<K, V> {
    let mut map = BTreeMap::new();
    map.extend(entries);
    map
}

/// Returns the positions 0 to `len - 1` in the order of the elements at these positions.
fn sorted_positions(len: usize, compare: &dyn Fn(usize, usize) -> Ordering) -> Vec<usize> {
    let mut order: Vec<usize> = (0..len).collect();
    order.sort_by(|&a, &b| compare(a, b));
    order
}

/// Moves the element at `order[i]` to position `i`, for each `i`: one swap for each element of a cycle but the last.
fn permute(order: &mut [usize], swap: &mut dyn FnMut(usize, usize)) {
    for start in 0..order.len() {
        let mut at = start;
        while let Some(from) = order.get_mut(at).map(|from| std::mem::replace(from, at))
            && from != start
        {
            swap(at, from);
            at = from;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sorts_are_stable_and_equal_to_the_standard_librarys() {
        // Every list of up to 6 elements out of 3 keys: elements of one key differ in their second component only.
        for len in 0..=6 {
            for number in 0..3_usize.pow(len) {
                let list: Vec<(usize, u32)> = (0..len).map(|place| (number / 3_usize.pow(place) % 3, place)).collect();
                let (mut ours, mut expected) = (list.clone(), list);
                by_key(&mut ours, |&(key, _)| std::cmp::Reverse(key));
                expected.sort_by_key(|&(key, _)| std::cmp::Reverse(key));
                assert_eq!(ours, expected);
                sort(&mut ours);
                expected.sort();
                assert_eq!(ours, expected);
            }
        }
    }
}
