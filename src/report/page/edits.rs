//! Writes the middle of the page: operators, rules, passes, notes and the remaining nodes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::super::markup::escaped;
use super::super::{Census, Detail, Report};
use super::{TABLE_END, collapsed, name, section, table};
use crate::explain::CauseKind;
use crate::passes::record;
use crate::sort;

/// The number of operators, rules and notes that are initially visible.
const SHOWN: usize = 12;
/// The largest number of listed places of a rule, and of notes.
const LISTED: usize = 200;

impl Report {
    /// Writes the operators before and after, as numbers and bars.
    pub(super) fn operators(&self, page: &mut String) {
        let names: BTreeSet<&String> = self.before.operators.keys().chain(self.after.operators.keys()).collect();
        let count = |of: &Census, name: &str| of.operators.get(name).copied().unwrap_or(0);
        let mut rows: Vec<(&String, usize, usize)> =
            names.into_iter().map(|name| (name, count(&self.before, name), count(&self.after, name))).collect();
        sort::by_key(&mut rows, |&(name, was, is)| (std::cmp::Reverse(was.max(is)), name));
        let most = rows.iter().map(|row| row.1.max(row.2)).max().unwrap_or(1).max(1);
        section(page, "operators");
        page.push_str("<p><span class=\"key before\"></span> before folding, <span class=\"key after\"></span> after folding</p>\n");
        collapsed(page, &rows, SHOWN, "operators", |page, rows| {
            let columns = [("operator", false), ("before", true), ("after", true), ("nodes", false)];
            table(page, "Nodes of each operator", "", &columns);
            for (operator, was, is) in rows {
                let width = |count: usize| match count {
                    0 => "0".to_string(),
                    _ => format!("max(2px,{:.1}%)", count as f64 / most as f64 * 100.0),
                };
                let _ = writeln!(
                    page,
                    "<tr><th scope=\"row\">{}</th><td class=\"n\">{was}</td><td class=\"n\">{is}</td><td class=\"bars\"><span class=\"before\" style=\"width:{}\"></span><span class=\"after\" style=\"width:{}\"></span></td></tr>",
                    name(operator),
                    width(*was),
                    width(*is)
                );
            }
            page.push_str(TABLE_END);
        });
        page.push_str("</section>\n");
    }

    /// Writes the edits of each rule and pass with their places.
    pub(super) fn rules(&self, page: &mut String) {
        section(page, "rules");
        let mut places: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for edit in &self.edits {
            places.entry(edit.name).or_default().extend(edit.place.as_deref());
        }
        let mut fired: Vec<(&str, usize)> =
            self.fired.iter().filter(|(_, count)| **count > 0).map(|(name, count)| (*name, *count)).collect();
        sort::by_key(&mut fired, |&(name, count)| (std::cmp::Reverse(count), name));
        if fired.is_empty() {
            page.push_str("<p>No rule or pass changed the model.</p>\n");
        }
        collapsed(page, &fired, SHOWN, "rules and passes", |page, fired| {
            for (name, count) in fired {
                let places = places.get(name).map(Vec::as_slice).unwrap_or_default();
                rule(page, (name, *count), places);
            }
        });
        page.push_str("<details><summary>Time of each pass</summary>\n");
        let columns = [("pass", false), ("runs", true), ("edits", true), ("milliseconds", true)];
        table(page, "Time of each pass", "", &columns);
        for pass in &self.passes {
            let _ = writeln!(
                page,
                "<tr><th scope=\"row\">{}</th><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{:.1}</td></tr>",
                name(pass.name),
                pass.runs,
                pass.changes,
                pass.seconds * 1000.0
            );
        }
        page.push_str(TABLE_END);
        page.push_str("</details>\n");
        if !self.notes.is_empty() {
            page.push_str("<h3>Notes on single nodes</h3>\n");
            let notes: Vec<String> = self.notes.iter().take(LISTED).map(|note| name(&note.to_string())).collect();
            collapsed(page, &notes, SHOWN, "notes", items);
            more(page, self.notes.len());
        }
        page.push_str("</section>\n");
    }
}

fn items(page: &mut String, items: &[String]) {
    page.push_str("<ul>");
    items.iter().for_each(|item| _ = write!(page, "<li>{item}</li>"));
    page.push_str("</ul>\n");
}

/// Writes the number of entries that are not listed.
fn more(page: &mut String, all: usize) {
    if let Some(more) = all.checked_sub(LISTED).filter(|more| *more > 0) {
        let _ = writeln!(page, "<p>{more} more are not listed here; <code>--report json</code> lists all.</p>");
    }
}

fn rule(page: &mut String, (rule, count): (&str, usize), places: &[&str]) {
    let edits = if count == 1 { "edit" } else { "edits" };
    let _ = writeln!(page, "<details><summary><b>{}</b>: {count} {edits}</summary>", name(rule));
    if let Ok(record) = record(rule) {
        let equal = if record.exact { "are equal bit for bit" } else { "are equal up to rounding" };
        let (sentence, law) = (escaped(record.sentence), escaped(record.law));
        let _ = writeln!(page, "<p>{sentence} The results {equal}.</p><p class=\"code\">{law}</p>");
    }
    let listed: Vec<String> = places.iter().take(LISTED).map(|place| name(place)).collect();
    if !listed.is_empty() {
        items(page, &listed);
    }
    more(page, places.len());
    page.push_str("</details>\n");
}

/// Writes the number of kept nodes for each kind of reason.
pub(super) fn remaining(page: &mut String, detail: &Detail) {
    let mut kinds: BTreeMap<CauseKind, BTreeMap<&str, usize>> = BTreeMap::new();
    for cause in &detail.causes {
        *kinds.entry(cause.kind).or_default().entry(&cause.operator).or_default() += 1;
    }
    section(page, "remaining");
    page.push_str("<p>The <a href=\"#nodes\">table of nodes</a> lists the reason for each node.</p>\n");
    table(page, "Remaining nodes by reason", "stack", &[("reason", false), ("nodes", true), ("operators", false)]);
    for (kind, operators) in kinds {
        let list: Vec<String> =
            operators.iter().map(|(operator, count)| format!("{count} {}", name(operator))).collect();
        let count: usize = operators.values().sum();
        let _ = writeln!(
            page,
            "<tr><th scope=\"row\">{}</th><td class=\"n\" data-label=\"nodes\">{count}</td><td data-label=\"operators\">{}</td></tr>",
            kind.title(),
            list.join(", ")
        );
    }
    page.push_str(TABLE_END);
    page.push_str("</section>\n");
}
