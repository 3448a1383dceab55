//! Suggests the name nearest to a misspelled one.

/// Returns the candidate with the smallest edit distance, if that distance is at most a third of the name's length.
pub fn nearest<'n>(wrong: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let (distance, name) = names.map(|name| (distance(wrong, name), name)).min()?;
    (distance <= wrong.chars().count().max(name.len()) / 3).then_some(name)
}

/// Returns a candidate that differs in letter case only; if there is none, the nearest one.
pub fn meant<'n>(wrong: &str, names: impl Iterator<Item = &'n str> + Clone) -> Option<&'n str> {
    let small = wrong.to_lowercase();
    names.clone().find(|name| name.to_lowercase() == small).or_else(|| nearest(wrong, names))
}

/// Returns the edit distance of two words: the number of inserted, deleted or replaced letters.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.chars().count()).collect();
    for (i, letter) in a.chars().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        let mut next = vec![left];
        for (above, other) in row.iter().skip(1).zip(b.chars()) {
            left = (diagonal + usize::from(letter != other)).min(above + 1).min(left + 1);
            diagonal = *above;
            next.push(left);
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{distance, nearest};

    #[test]
    fn edit_distances() {
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("abc", ""), 3);
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("same-shape", "same-shape"), 0);
    }

    #[test]
    fn only_slips_are_corrected() {
        let names = || ["same-shape", "identity", "decided-if"].into_iter();
        assert_eq!(nearest("same-shap", names()), Some("same-shape"));
        assert_eq!(nearest("identiy", names()), Some("identity"));
        assert_eq!(nearest("everything", names()), None);
        assert_eq!(nearest("", names()), None);
    }
}
