//! The report as one page that needs nothing beside it: no network, no other file.
//!
//! Everything that comes from the model is text of somebody else's choice. In markup each letter that means something there is escaped; the
//! data for the script are JSON in which no `<` stands, so that nothing in them ends the element they are in; and the script puts them onto
//! the page as text. The page's own policy lets it load nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use rustc_hash::FxHashMap;

use super::cuts::PICTURED;
use super::table::cut;
use super::{AxisTaken, Detail, DrawnNode, Port, Report, SliceTaken};
use crate::explain::CauseKind;
use crate::passes::record;

/// Operators in the chart.
const CHARTED: usize = 24;
/// Slices that are pictured.
const SLICES: usize = 200;
/// How many characters of a size are shown at once.
const LONG: usize = 60;

impl Report {
    /// The report as one page of HTML: operators before and after, what each rule did, what stays and why, every Slice, and all nodes. `title`
    /// is what the model is called. It takes a report with [`Options::detailed`](crate::Options); nothing, if it has no details.
    pub fn page(&self, title: &str) -> Option<String> {
        let detail = self.detail.as_ref()?;
        let mut page = String::new();
        self.head(&mut page, title);
        self.summary(&mut page);
        self.chart(&mut page);
        self.rules(&mut page);
        stays(&mut page, detail);
        slices(&mut page, detail);
        graphs(&mut page);
        let _ = write!(page, "<script type=\"application/json\" id=\"data\">{}</script>\n<script>", data(detail));
        page.push_str(include_str!("page/script.js"));
        page.push_str("</script>\n</main></body></html>\n");
        Some(page)
    }

    fn head(&self, page: &mut String, title: &str) {
        let title = escaped(title);
        let _ = write!(
            page,
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{title}: folded</title>\n<style>{}</style></head>\n\
             <body><a class=\"skip\" href=\"#nodes\">To the table of nodes</a>\n<header><h1>{title}</h1>\n<p>{} of {} nodes stay.</p>\n\
             <nav aria-label=\"Parts of this page\"><ul>",
            include_str!("page/style.css"),
            self.after.nodes(),
            self.before.nodes(),
        );
        for (id, name) in [
            ("summary", "Summary"),
            ("operators", "Operators"),
            ("rules", "What was done"),
            ("stays", "What stays"),
            ("slices", "Slices"),
            ("nodes", "Nodes"),
            ("graph", "Graph"),
        ] {
            let _ = write!(page, "<li><a href=\"#{id}\">{name}</a></li>");
        }
        page.push_str("</ul></nav></header>\n<main>\n");
    }

    fn summary(&self, page: &mut String) {
        let (before, after) = (&self.before, &self.after);
        let number =
            |number: Option<u64>| number.map_or_else(|| "not written".to_string(), |number| number.to_string());
        let rows = [
            ("nodes", before.nodes().to_string(), after.nodes().to_string()),
            ("initializers", before.initializers.to_string(), after.initializers.to_string()),
            ("results of nodes", before.tensors.to_string(), after.tensors.to_string()),
            ("of these, with every size stated", before.shaped.to_string(), after.shaped.to_string()),
            ("of these, with sizes that only this program names", before.named.to_string(), after.named.to_string()),
            ("bytes", self.bytes_before.to_string(), number(self.bytes_after)),
            ("bytes in data files", self.external_bytes_before.to_string(), number(self.external_bytes_after)),
        ];
        page.push_str("<section id=\"summary\" aria-labelledby=\"summary-title\"><h2 id=\"summary-title\">Summary</h2>\n<table><caption>The model before and after folding</caption><thead><tr><th scope=\"col\">what</th><th scope=\"col\" class=\"n\">before</th><th scope=\"col\" class=\"n\">after</th></tr></thead><tbody>\n");
        for (what, was, is) in rows {
            let _ = writeln!(
                page,
                "<tr><th scope=\"row\">{what}</th><td class=\"n\">{was}</td><td class=\"n\">{is}</td></tr>"
            );
        }
        page.push_str("</tbody></table>\n<table><caption>Inputs and outputs</caption><thead><tr><th scope=\"col\">kind</th><th scope=\"col\">name</th><th scope=\"col\">before</th><th scope=\"col\">after</th></tr></thead><tbody>\n");
        let mut ports = |kind: &str, ports: &[Port]| {
            for Port { name, before, after, .. } in ports {
                let (name, before, after) = (escaped(name), escaped(before), escaped(after));
                let _ = writeln!(
                    page,
                    "<tr><td>{kind}</td><th scope=\"row\">{name}</th><td>{before}</td><td>{after}</td></tr>"
                );
            }
        };
        ports("input", &self.inputs);
        ports("output", &self.outputs);
        page.push_str("</tbody></table></section>\n");
    }

    /// Operators before and after, as bars, and as a table for whoever does not see them.
    fn chart(&self, page: &mut String) {
        let names: BTreeSet<&String> = self.before.operators.keys().chain(self.after.operators.keys()).collect();
        let count = |of: &super::Census, name: &str| of.operators.get(name).copied().unwrap_or(0);
        let mut rows: Vec<(&String, usize, usize)> =
            names.into_iter().map(|name| (name, count(&self.before, name), count(&self.after, name))).collect();
        rows.sort_by_key(|&(name, was, is)| (std::cmp::Reverse(was.max(is)), name));
        let most = rows.iter().map(|row| row.1.max(row.2)).max().unwrap_or(1).max(1);
        let shown = rows.len().min(CHARTED);
        let _ = write!(
            page,
            "<section id=\"operators\" aria-labelledby=\"operators-title\"><h2 id=\"operators-title\">Operators</h2>\n<figure><svg viewBox=\"0 0 760 {}\" width=\"760\" role=\"img\" aria-labelledby=\"chart-title\" aria-describedby=\"chart-table\"><title id=\"chart-title\">Nodes of each operator before and after folding</title>\n",
            shown * 30 + 4
        );
        for (at, (name, was, is)) in rows.iter().take(CHARTED).enumerate() {
            let (y, scale) = (at * 30, 480.0 / most as f64);
            let short: String = name.chars().take(28).collect();
            let _ = write!(page, "<text x=\"195\" y=\"{}\" text-anchor=\"end\">{}</text>", y + 18, escaped(&short));
            for (class, number, y) in [("b", *was, y + 3), ("a", *is, y + 15)] {
                let width = number as f64 * scale;
                let _ = write!(
                    page,
                    "<rect class=\"{class}\" x=\"205\" y=\"{y}\" width=\"{width:.1}\" height=\"11\"/><text x=\"{:.1}\" y=\"{}\">{number}</text>",
                    width + 210.0,
                    y + 10
                );
            }
            page.push('\n');
        }
        page.push_str("</svg><figcaption><svg width=\"12\" height=\"12\" aria-hidden=\"true\"><rect class=\"b\" width=\"12\" height=\"12\"/></svg> before, <svg width=\"12\" height=\"12\" aria-hidden=\"true\"><rect class=\"a\" width=\"12\" height=\"12\"/></svg> after</figcaption></figure>\n<details><summary>All operators as a table</summary><table id=\"chart-table\"><caption>Nodes of each operator</caption><thead><tr><th scope=\"col\">operator</th><th scope=\"col\" class=\"n\">before</th><th scope=\"col\" class=\"n\">after</th></tr></thead><tbody>\n");
        for (name, was, is) in &rows {
            let _ = writeln!(
                page,
                "<tr><th scope=\"row\">{}</th><td class=\"n\">{was}</td><td class=\"n\">{is}</td></tr>",
                escaped(name)
            );
        }
        page.push_str("</tbody></table></details></section>\n");
    }

    /// What each rule and pass did, and where.
    fn rules(&self, page: &mut String) {
        page.push_str(
            "<section id=\"rules\" aria-labelledby=\"rules-title\"><h2 id=\"rules-title\">What was done</h2>\n",
        );
        let mut places: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for edit in &self.edits {
            places.entry(edit.name).or_default().extend(edit.place.as_deref());
        }
        for (name, count) in self.fired.iter().filter(|(_, count)| **count > 0) {
            let _ = write!(page, "<details><summary><b>{name}</b>: {count} edits</summary>");
            if let Ok(record) = record(name) {
                let equal = if record.exact { "bit for bit" } else { "up to rounding" };
                let (sentence, law) = (escaped(record.sentence), escaped(record.law));
                let _ = write!(page, "<p>{sentence} Results stay equal {equal}.</p><p class=\"code\">{law}</p>");
            }
            page.push_str("<ul>");
            let places = places.get(name).map(Vec::as_slice).unwrap_or_default();
            for place in places.iter().take(SLICES) {
                let _ = write!(page, "<li>{}</li>", escaped(place));
            }
            if places.len() > SLICES {
                let _ = write!(page, "<li>and {} more</li>", places.len() - SLICES);
            }
            page.push_str("</ul></details>\n");
        }
        page.push_str("<table><caption>Time of each pass</caption><thead><tr><th scope=\"col\">pass</th><th scope=\"col\" class=\"n\">runs</th><th scope=\"col\" class=\"n\">edits</th><th scope=\"col\" class=\"n\">milliseconds</th></tr></thead><tbody>\n");
        for pass in &self.passes {
            let _ = writeln!(
                page,
                "<tr><th scope=\"row\">{}</th><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{:.1}</td></tr>",
                pass.name,
                pass.runs,
                pass.changes,
                pass.seconds * 1000.0
            );
        }
        page.push_str("</tbody></table>");
        if !self.notes.is_empty() {
            page.push_str("<h3>Notes</h3><ul>");
            for note in self.notes.iter().take(SLICES) {
                let _ = write!(page, "<li>{}</li>", escaped(&note.to_string()));
            }
            page.push_str("</ul>");
        }
        page.push_str("</section>\n");
    }
}

/// How many nodes stay for which sort of reason.
fn stays(page: &mut String, detail: &Detail) {
    let mut kinds: BTreeMap<CauseKind, BTreeMap<&str, usize>> = BTreeMap::new();
    for cause in &detail.causes {
        *kinds.entry(cause.kind).or_default().entry(&cause.operator).or_default() += 1;
    }
    page.push_str("<section id=\"stays\" aria-labelledby=\"stays-title\"><h2 id=\"stays-title\">What stays</h2>\n<p>The table of nodes has the reason for each; <code>explain</code> also tries what would let more go.</p><table><caption>Nodes that stay, by reason</caption><thead><tr><th scope=\"col\">reason</th><th scope=\"col\" class=\"n\">nodes</th><th scope=\"col\">operators</th></tr></thead><tbody>\n");
    for (kind, operators) in kinds {
        let list: Vec<String> = operators.iter().map(|(name, count)| format!("{count} {}", escaped(name))).collect();
        let count: usize = operators.values().sum();
        let _ = writeln!(
            page,
            "<tr><th scope=\"row\">{}</th><td class=\"n\">{count}</td><td>{}</td></tr>",
            kind.title(),
            list.join(", ")
        );
    }
    page.push_str("</tbody></table></section>\n");
}

fn slices(page: &mut String, detail: &Detail) {
    let _ = write!(
        page,
        "<section id=\"slices\" aria-labelledby=\"slices-title\"><h2 id=\"slices-title\">Slices</h2>\n<p>What each takes of each axis. In the pictures every size that is open counts as {PICTURED}.</p>\n"
    );
    for (title, all) in [("before", &detail.slices_before), ("after", &detail.slices_after)] {
        let _ = writeln!(page, "<h3>{} {title} folding</h3>", all.len());
        all.iter().take(SLICES).for_each(|slice| picture(page, slice));
        if all.len() > SLICES {
            let _ = write!(page, "<p>and {} more</p>", all.len() - SLICES);
        }
    }
    page.push_str("</section>\n");
}

fn picture(page: &mut String, slice: &SliceTaken) {
    let said = |most: usize| -> String {
        let axes: Vec<String> = slice.axes.iter().enumerate().map(|(at, axis)| said_of(at, axis, most)).collect();
        axes.join("; ")
    };
    let (short, full) = (said(LONG), said(usize::MAX));
    let (node, data) = (escaped(&slice.node), escaped(&slice.data));
    let _ = write!(
        page,
        "<figure><svg viewBox=\"0 0 520 {}\" width=\"520\" role=\"img\" aria-label=\"{}\">",
        slice.axes.len() * 20 + 2,
        escaped(&short)
    );
    for (at, axis) in slice.axes.iter().enumerate() {
        let y = at * 20 + 2;
        let _ = write!(
            page,
            "<text x=\"0\" y=\"{}\">axis {at}</text><rect class=\"axis\" x=\"60\" y=\"{y}\" width=\"440\" height=\"14\"/>",
            y + 11
        );
        let Some((start, len, size)) = axis.picture else { continue };
        let (unit, step) = (440.0 / size as f64, axis.step.unwrap_or(1));
        if step.unsigned_abs() <= 1 || len > 110 {
            let first = if step < 0 { start - len + 1 } else { start };
            let span =
                if step.unsigned_abs() <= 1 { len } else { len.saturating_mul(step.abs()).min(size - first.max(0)) };
            let _ = write!(
                page,
                "<rect class=\"a\" x=\"{:.1}\" y=\"{y}\" width=\"{:.1}\" height=\"14\"/>",
                60.0 + first as f64 * unit,
                span as f64 * unit
            );
        } else {
            for element in 0..len {
                let at = start.saturating_add(element.saturating_mul(step));
                let _ = write!(
                    page,
                    "<rect class=\"a\" x=\"{:.1}\" y=\"{y}\" width=\"{:.1}\" height=\"14\"/>",
                    60.0 + at as f64 * unit,
                    (unit * 0.9).max(0.5)
                );
            }
        }
    }
    let _ = write!(page, "</svg><figcaption><b>{node}</b> of <code>{data}</code>: {}", escaped(&short));
    if short != full {
        let _ = write!(page, "<details><summary>Sizes in full</summary>{}</details>", escaped(&full));
    }
    page.push_str("</figcaption></figure>\n");
}

/// What is taken of an axis, no size with more than `most` characters.
fn said_of(at: usize, axis: &AxisTaken, most: usize) -> String {
    let size = cut(&axis.size, most);
    match &axis.taken {
        Some((start, len)) => {
            let step = axis.step.filter(|step| *step != 1).map_or_else(String::new, |step| format!(", every {step}"));
            let (start, len) = (cut(start, most), cut(len, most));
            format!("axis {at}: {len} of {size} from {start}{step}")
        }
        None if axis.is_known => format!("axis {at}: all {size}"),
        None => format!("axis {at}: a part of {size} that nobody can tell before a run"),
    }
}

fn graphs(page: &mut String) {
    page.push_str(
        "<section id=\"nodes\" aria-labelledby=\"nodes-title\"><h2 id=\"nodes-title\">Nodes</h2>\n\
         <div class=\"controls\"><label>Search in operators, names, types and reasons <input id=\"query\" type=\"search\" size=\"34\"></label>\n\
         <label>Model <select id=\"side\"><option value=\"after\">after folding</option><option value=\"before\">before folding</option></select></label>\n\
         <button id=\"back\" type=\"button\">Previous</button><button id=\"next\" type=\"button\">Next</button><span id=\"count\" role=\"status\" aria-live=\"polite\"></span></div>\n\
         <table><caption>Choose a node to see the graph around it</caption><thead><tr><th scope=\"col\">operator</th><th scope=\"col\">node</th><th scope=\"col\">reads</th><th scope=\"col\">gives</th><th scope=\"col\">why it stays</th></tr></thead><tbody id=\"rows\"></tbody></table>\n\
         <noscript><p>The table of nodes and the graph need JavaScript.</p></noscript></section>\n\
         <section id=\"graph\" aria-labelledby=\"graph-title\"><h2 id=\"graph-title\" tabindex=\"-1\">Graph around <span id=\"chosen\" aria-live=\"polite\">a node</span></h2>\n\
         <div class=\"controls\"><label>Nodes away <select id=\"depth\"><option>1</option><option selected>2</option><option>3</option><option>4</option></select></label></div>\n\
         <div class=\"sides\"><div class=\"side\"><h3>Before</h3><div id=\"graph-before\"></div></div><div class=\"side\"><h3>After</h3><div id=\"graph-after\"></div></div></div></section>\n",
    );
}

/// The nodes of both models as JSON. Each text is in it once.
fn data(detail: &Detail) -> String {
    let mut texts = Texts::default();
    let mut reasons: FxHashMap<&str, &str> = FxHashMap::default();
    for cause in &detail.causes {
        reasons.insert(&cause.result, &cause.reason);
    }
    let before = rows(&detail.before.nodes, &mut texts, &FxHashMap::default());
    let after = rows(&detail.after.nodes, &mut texts, &reasons);
    let strings: Vec<String> = texts.all.iter().map(|text| json_string(text)).collect();
    format!("{{\"s\":[{}],\"b\":[{before}],\"a\":[{after}]}}", strings.join(","))
}

#[derive(Default)]
struct Texts<'t> {
    all: Vec<&'t str>,
    known: FxHashMap<&'t str, usize>,
}

impl<'t> Texts<'t> {
    fn number(&mut self, text: &'t str) -> usize {
        let next = self.all.len();
        let number = *self.known.entry(text).or_insert(next);
        if number == next {
            self.all.push(text);
        }
        number
    }

    fn list(&mut self, texts: impl Iterator<Item = &'t str>) -> String {
        let numbers: Vec<String> = texts.map(|text| self.number(text).to_string()).collect();
        format!("[{}]", numbers.join(","))
    }
}

fn rows<'t>(nodes: &'t [DrawnNode], texts: &mut Texts<'t>, reasons: &FxHashMap<&str, &'t str>) -> String {
    let mut list = Vec::with_capacity(nodes.len());
    for node in nodes {
        let (operator, name) = (texts.number(&node.operator), texts.number(&node.name));
        let inputs = texts.list(node.inputs.iter().map(String::as_str));
        let outputs = texts.list(node.outputs.iter().map(|(value, _)| value.as_str()));
        let types = texts.list(node.outputs.iter().map(|(_, ty)| ty.as_str()));
        let reason = node.outputs.first().and_then(|(value, _)| reasons.get(value.as_str()));
        let reason = reason.map_or_else(String::new, |reason| format!(",{}", texts.number(reason)));
        list.push(format!("[{operator},{name},{inputs},{outputs},{types}{reason}]"));
    }
    list.join(",")
}

/// A JSON string without letters that mean something to HTML.
fn json_string(text: &str) -> String {
    let mut written = String::with_capacity(text.len() + 2);
    written.push('"');
    for letter in text.chars() {
        match letter {
            '"' | '\\' => written.extend(['\\', letter]),
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => _ = write!(written, "\\u{:04x}", u32::from(letter)),
            letter if u32::from(letter) < 0x20 => _ = write!(written, "\\u{:04x}", u32::from(letter)),
            letter => written.push(letter),
        }
    }
    written.push('"');
    written
}

/// Text in markup, in attributes as well. Control characters are shown as what they are not.
fn escaped(text: &str) -> String {
    let mut written = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => written.push_str("&amp;"),
            '<' => written.push_str("&lt;"),
            '>' => written.push_str("&gt;"),
            '"' => written.push_str("&quot;"),
            '\'' => written.push_str("&#39;"),
            letter if letter.is_control() => written.push('\u{fffd}'),
            letter => written.push(letter),
        }
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_letter_keeps_its_meaning() {
        assert_eq!(escaped("</script><b a='\"&\u{1}"), "&lt;/script&gt;&lt;b a=&#39;&quot;&amp;\u{fffd}");
        assert_eq!(json_string("</script>\"\\\n\u{2028}é"), "\"\\u003c/script\\u003e\\\"\\\\\\u000a\\u2028é\"");
    }
}
