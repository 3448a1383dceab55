//! Prints the report as a short table.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;

use super::{Port, Report};

use crate::sort;

/// The largest number of operators in the table.
const LISTED: usize = 12;

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (before, after) = (&self.before, &self.after);
        let names: BTreeSet<&String> = before.operators.keys().chain(after.operators.keys()).collect();
        let count = |of: &super::Census, name: &str| of.operators.get(name).copied().unwrap_or(0);
        let mut rows: Vec<(&String, usize, usize)> =
            names.into_iter().map(|name| (name, count(before, name), count(after, name))).collect();
        sort::by_key(&mut rows, |&(name, was, is)| (std::cmp::Reverse(was.abs_diff(is)), std::cmp::Reverse(was), name));
        let changed = rows.iter().filter(|(_, was, is)| was != is).count();
        let width = rows.iter().take(LISTED).map(|(name, ..)| name.chars().count()).max().unwrap_or(0).max(20);
        if let Some((from, to)) = self.opset {
            writeln!(f, "opset {from} → {to}")?;
        }
        writeln!(f, "{:width$} {:>9} {:>9}", "", "before", "after")?;
        for (name, was, is) in rows.iter().take(changed.min(LISTED)) {
            writeln!(f, "{name:width$} {was:>9} {is:>9}")?;
        }
        if changed > LISTED {
            let (was, is) = rows.iter().take(changed).skip(LISTED).fold((0, 0), |(a, b), row| (a + row.1, b + row.2));
            writeln!(f, "{:width$} {was:>9} {is:>9}", format!("{} more operators", changed - LISTED))?;
        }
        writeln!(f, "{:width$} {:>9} {:>9}", "all nodes", before.nodes(), after.nodes())?;
        writeln!(f, "{:width$} {:>9} {:>9}", "initializers", before.initializers, after.initializers)?;
        let share = |census: &super::Census| format!("{}/{}", census.shaped - census.named, census.tensors);
        writeln!(f, "{:width$} {:>9} {:>9}", "shapes known", share(before), share(after))?;
        if after.named > 0 {
            writeln!(f, "{:width$} {:>9} {:>9}", "with new dim names", before.named, after.named)?;
        }
        let bytes = self.bytes_after.map_or_else(|| "-".to_string(), |bytes| bytes.to_string());
        write!(f, "{:width$} {:>9} {:>9}", "bytes", self.bytes_before, bytes)?;
        let external = self.external_bytes_after;
        if self.external_bytes_before > 0 || external.unwrap_or(0) > 0 {
            let bytes = external.map_or_else(|| "-".to_string(), |bytes| bytes.to_string());
            write!(f, "\n{:width$} {:>9} {:>9}", "bytes in data files", self.external_bytes_before, bytes)?;
        }
        ports(f, "input", &self.inputs)?;
        ports(f, "output", &self.outputs)
    }
}

/// The largest number of listed inputs or outputs.
const PORTS: usize = 6;

/// The largest number of printed characters of a name or a type, because a file can contain names of any length.
const SHOWN: usize = 400;

/// Returns the text, or its first `most` characters and an ellipsis.
pub(super) fn cut(text: &str, most: usize) -> Cow<'_, str> {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()).into(),
        None => text.into(),
    }
}

fn ports(f: &mut fmt::Formatter<'_>, kind: &str, ports: &[Port]) -> fmt::Result {
    for Port { name, before, after, .. } in ports.iter().take(PORTS) {
        let was = if before == after || before.is_empty() { String::new() } else { format!(", was {before}") };
        write!(f, "\n{kind:6} {}: {}", cut(name, SHOWN), cut(&format!("{after}{was}"), SHOWN))?;
    }
    match ports.len().saturating_sub(PORTS) {
        0 => Ok(()),
        more => write!(f, "\n{more} more {kind}s"),
    }
}
