//! What the passes took, as a table.

use std::fmt::Write as _;

use crate::passes::PassRun;

/// One line for each pass and one for all of them: how often it ran, how many edits it made, and how many milliseconds it took.
pub(super) fn table(passes: &[PassRun]) -> String {
    let width = passes.iter().map(|pass| pass.name.len()).max().unwrap_or(0).max(20);
    let mut text = format!("{:width$} {:>7} {:>9} {:>12}\n", "pass", "runs", "changes", "milliseconds");
    for PassRun { name, runs, changes, seconds } in passes {
        let _ = writeln!(text, "{name:width$} {runs:>7} {changes:>9} {:>12.1}", seconds * 1000.0);
    }
    let changes: usize = passes.iter().map(|pass| pass.changes).sum();
    let seconds: f64 = passes.iter().map(|pass| pass.seconds).sum();
    let _ = writeln!(text, "{:width$} {:>7} {changes:>9} {:>12.1}", "all passes", "", seconds * 1000.0);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pass_has_a_line() {
        let pass = |name, runs, changes, seconds| PassRun { name, runs, changes, seconds };
        let text = table(&[pass("infer-shapes", 3, 0, 0.0015), pass("rewrite", 2, 7, 0.25)]);
        let expected = "\
pass                    runs   changes milliseconds
infer-shapes               3         0          1.5
rewrite                    2         7        250.0
all passes                           7        251.5
";
        assert_eq!(text, expected);
    }
}
