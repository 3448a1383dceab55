//! The cost of the passes, as a table.

use std::fmt::Write as _;

use crate::passes::PassRun;

/// Returns a line per pass and one for all of them: runs, edits, milliseconds, and, if measured, the increase of peak memory in
/// MiB.
pub(super) fn table(passes: &[PassRun]) -> String {
    let width = passes.iter().map(|pass| pass.name.len()).max().unwrap_or(0).max(20);
    let is_measured = passes.iter().any(|pass| pass.raised.is_some());
    let memory = |raised: Option<u64>| match raised {
        Some(bytes) => format!(" {:>8.1}", bytes as f64 / (1 << 20) as f64),
        None => String::new(),
    };
    let head = if is_measured { "     +MiB" } else { "" };
    let mut text = format!("{:width$} {:>7} {:>9} {:>12}{head}\n", "pass", "runs", "changes", "milliseconds");
    for PassRun { name, runs, changes, seconds, raised } in passes {
        let _ = writeln!(text, "{name:width$} {runs:>7} {changes:>9} {:>12.1}{}", seconds * 1000.0, memory(*raised));
    }
    let changes: usize = passes.iter().map(|pass| pass.changes).sum();
    let seconds: f64 = passes.iter().map(|pass| pass.seconds).sum();
    let raised = is_measured.then(|| passes.iter().filter_map(|pass| pass.raised).sum());
    let _ =
        writeln!(text, "{:width$} {:>7} {changes:>9} {:>12.1}{}", "all passes", "", seconds * 1000.0, memory(raised));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pass_has_a_line() {
        let pass = |name, runs, changes, seconds| PassRun { name, runs, changes, seconds, raised: None };
        let text = table(&[pass("infer-shapes", 3, 0, 0.0015), pass("rewrite", 2, 7, 0.25)]);
        let expected = "\
pass                    runs   changes milliseconds
infer-shapes               3         0          1.5
rewrite                    2         7        250.0
all passes                           7        251.5
";
        assert_eq!(text, expected);
    }

    #[test]
    fn measured_memory_is_printed() {
        let pass = |name, bytes| PassRun { name, runs: 1, changes: 2, seconds: 0.5, raised: Some(bytes) };
        let text = table(&[pass("infer-shapes", 3 << 19), pass("rewrite", 0)]);
        let expected = "\
pass                    runs   changes milliseconds     +MiB
infer-shapes               1         2        500.0      1.5
rewrite                    1         2        500.0      0.0
all passes                           4       1000.0      1.5
";
        assert_eq!(text, expected);
    }
}
