//! A table by small consecutive numbers, such as the ids of values.

/// The number of entries per page. Inference of a function concerns few of very many values, so only pages with an
/// entry are allocated.
const PAGE: usize = 64;

/// A table by index.
#[derive(Clone, Debug)]
pub(super) struct Table<T> {
    pages: Vec<Option<Box<[Option<T>]>>>,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Table { pages: Vec::new() }
    }
}

impl<T> Table<T> {
    /// Returns the entry at an index.
    pub fn get(&self, index: usize) -> Option<&T> {
        self.pages.get(index / PAGE)?.as_ref()?.get(index % PAGE)?.as_ref()
    }

    /// Sets the entry at an index, replacing the previous one.
    pub fn set(&mut self, index: usize, entry: T) {
        let page = index / PAGE;
        if page >= self.pages.len() {
            self.pages.resize_with(page + 1, || None);
        }
        let Some(page) = self.pages.get_mut(page) else { return };
        let page = page.get_or_insert_with(|| std::iter::repeat_with(|| None).take(PAGE).collect());
        if let Some(place) = page.get_mut(index % PAGE) {
            *place = Some(entry);
        }
    }

    /// Removes the entry at an index.
    pub fn remove(&mut self, index: usize) {
        let page = self.pages.get_mut(index / PAGE).and_then(Option::as_mut);
        if let Some(place) = page.and_then(|page| page.get_mut(index % PAGE)) {
            *place = None;
        }
    }

    /// Removes all entries for which `keep` returns `false`.
    pub fn retain(&mut self, keep: impl Fn(usize, &T) -> bool) {
        for (at, page) in self.pages.iter_mut().enumerate() {
            for (offset, place) in page.iter_mut().flat_map(|page| page.iter_mut()).enumerate() {
                if place.as_ref().is_some_and(|entry| !keep(at * PAGE + offset, entry)) {
                    *place = None;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_found_where_they_were_set_and_nowhere_else() {
        let mut table = Table::default();
        for index in [3, 64, 70, 1000] {
            table.set(index, index);
        }
        table.set(70, 7);
        table.remove(64);
        table.remove(5000);
        let found = |table: &Table<usize>| (0..2000).filter_map(|index| table.get(index).copied()).collect::<Vec<_>>();
        assert_eq!(found(&table), [3, 7, 1000]);
        table.retain(|index, _| index != 3);
        assert_eq!(found(&table), [7, 1000]);
    }
}
