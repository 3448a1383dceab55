//! What a rule or a pass says of itself: `onnx-slice-fold rules` and `RULES.md` print it, and tests hold it against fixtures.

/// Something that must hold for a rewrite to be right, or to pay, and that its code checks: a short name in kebab case, and the statement.
pub type Premise = (&'static str, &'static str);

/// What is told of a rewrite rule, or of a pass that can be left out.
#[derive(Clone, Copy, Debug)]
pub struct Record {
    /// Its name, in kebab case, as `--skip` and `--only` take it.
    pub name: &'static str,
    /// What equals what, as a formula.
    pub law: &'static str,
    /// What it does, in one sentence.
    pub sentence: &'static str,
    /// When it does it. Each premise can fail while the others hold.
    pub premises: &'static [Premise],
    /// Whether results stay equal bit for bit. The others stay equal up to rounding and are left out under `--exact`.
    pub exact: bool,
    /// The operators it looks at, those of other domains with their domain; empty if it looks at all of them.
    pub operators: &'static [&'static str],
}

/// The name that a wrong one was most likely meant to be: the nearest in single letters, if it is near enough to be a slip.
pub fn nearest<'n>(wrong: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let (distance, name) = names.map(|name| (distance(wrong, name), name)).min()?;
    (distance <= wrong.chars().count().max(name.len()) / 3).then_some(name)
}

/// The same, where capital and small letters count as equal.
pub fn meant<'n>(wrong: &str, names: impl Iterator<Item = &'n str> + Clone) -> Option<&'n str> {
    let small = wrong.to_lowercase();
    names.clone().find(|name| name.to_lowercase() == small).or_else(|| nearest(wrong, names))
}

/// How many letters must be inserted, taken away or replaced to make one word the other.
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
    fn letters_between_words() {
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("abc", ""), 3);
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("slice-slice", "slice-slice"), 0);
    }

    #[test]
    fn only_slips_are_corrected() {
        let names = || ["slice-slice", "identity", "decided-if"].into_iter();
        assert_eq!(nearest("slice-slic", names()), Some("slice-slice"));
        assert_eq!(nearest("identiy", names()), Some("identity"));
        assert_eq!(nearest("everything", names()), None);
        assert_eq!(nearest("", names()), None);
    }
}
