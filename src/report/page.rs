//! The report as one self-contained page, without network or other files.
//!
//! | file | output |
//! | --- | --- |
//! | `overview` | figures before and after, origin and inputs of the model, suggestions |
//! | `edits` | operators, rules, passes, notes and the remaining nodes |
//! | `pictures` | the index map of each node that moves elements |
//! | `script.js` | the table of nodes, the graph around a node, the copy buttons |
//!
//! A model file chooses names and types, so all special characters are escaped in markup. The data for the script is JSON without
//! `<`, so it cannot end its element, and the script writes it as text nodes. The page's content security policy prevents loading
//! of any resource.

mod edits;
mod overview;
mod pictures;

use std::fmt::Write as _;

use rustc_hash::FxHashMap;

use super::markup::escaped;
use super::{Detail, DrawnNode, Report};

impl Report {
    /// Returns the report as one HTML page: figures before and after, suggestions, operators, edits of each rule, reasons for remaining
    /// nodes, index maps, and the graph. `title` is the name of the model, and `command` the command line of the report. The report
    /// must be made with [`Options::page`](crate::Options), or with [`Options::detailed`](crate::Options), which omits figures and
    /// suggestions; otherwise the result is `None`.
    pub fn page(&self, title: &str, command: &str) -> Option<String> {
        let detail = self.detail.as_ref()?;
        let mut page = String::new();
        head(&mut page, title);
        self.overview(&mut page, detail, command);
        self.operators(&mut page);
        self.rules(&mut page);
        edits::remaining(&mut page, detail);
        pictures::movement(&mut page, detail);
        graphs(&mut page);
        let _ = write!(page, "<script type=\"application/json\" id=\"data\">{}</script>\n<script>", data(detail));
        page.push_str(include_str!("page/script.js"));
        page.push_str("</script>\n</main></body></html>\n");
        Some(page)
    }
}

/// The sections: the identifier and the title of each.
const SECTIONS: [(&str, &str); 8] = [
    ("summary", "Summary"),
    ("suggestions", "Suggestions"),
    ("operators", "Operators"),
    ("rules", "Rules and passes"),
    ("remaining", "Remaining nodes"),
    ("movement", "Data movement"),
    ("nodes", "Nodes"),
    ("graph", "Graph"),
];

fn head(page: &mut String, title: &str) {
    let file = title.rsplit(['/', '\\']).next().unwrap_or(title);
    let _ = write!(
        page,
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{}: folded</title>\n<style>{}{}</style></head>\n\
         <body><a class=\"skip\" href=\"#nodes\">To the table of nodes</a>\n<header><h1>{}</h1>\n<nav aria-label=\"Sections\"><ul>",
        escaped(file),
        include_str!("page/style.css"),
        include_str!("picture.css"),
        name(file),
    );
    for (id, title) in SECTIONS {
        let _ = write!(page, "<li><a href=\"#{id}\">{title}</a></li>");
    }
    page.push_str("</ul></nav></header>\n<main>\n");
}

/// Begins a section.
fn section(page: &mut String, id: &str) {
    let title = SECTIONS.iter().find(|(known, _)| *known == id).map_or("", |(_, title)| title);
    let _ = writeln!(page, "<section id=\"{id}\" aria-labelledby=\"{id}-title\"><h2 id=\"{id}-title\">{title}</h2>");
}

/// Begins a table. Numbers are right-aligned.
fn table(page: &mut String, caption: &str, class: &str, columns: &[(&str, bool)]) {
    let _ = write!(page, "<table class=\"{class}\"><caption>{caption}</caption><thead><tr>");
    for (title, is_number) in columns {
        let class = if *is_number { " class=\"n\"" } else { "" };
        let _ = write!(page, "<th scope=\"col\"{class}>{title}</th>");
    }
    page.push_str("</tr></thead><tbody>\n");
}

const TABLE_END: &str = "</tbody></table>\n";

/// Writes the first `shown` entries of a list, and the others in an initially closed part.
fn collapsed<T>(page: &mut String, all: &[T], shown: usize, what: &str, write: impl Fn(&mut String, &[T])) {
    let (first, others) = all.split_at(shown.min(all.len()));
    if !first.is_empty() {
        write(page, first);
    }
    if !others.is_empty() {
        let (count, more) = (others.len(), if first.is_empty() { "" } else { " more" });
        let what = if count == 1 { String::new() } else { format!(" {what}") };
        let _ = writeln!(page, "<details><summary>Show {count}{more}{what}</summary>");
        write(page, others);
        page.push_str("</details>\n");
    }
}

fn graphs(page: &mut String) {
    section(page, "nodes");
    page.push_str(
        "<div class=\"controls\"><label>Search in operators, names, types and reasons <input id=\"query\" type=\"search\"></label>\n\
         <label>Model <select id=\"side\"><option value=\"after\">after folding</option><option value=\"before\">before folding</option></select></label>\n\
         <button id=\"back\" type=\"button\">Previous</button><button id=\"next\" type=\"button\">Next</button><span id=\"count\" role=\"status\" aria-live=\"polite\"></span></div>\n\
         <table id=\"list\" class=\"stack\"><caption>Choose a node to see the graph around it</caption><thead><tr><th scope=\"col\">operator</th><th scope=\"col\">node</th><th scope=\"col\">inputs</th><th scope=\"col\">outputs</th><th scope=\"col\">why it is kept</th></tr></thead><tbody id=\"rows\"></tbody></table>\n\
         <noscript><p>The table of nodes and the graph need JavaScript.</p></noscript></section>\n",
    );
    section(page, "graph");
    page.push_str(
        "<p>The graph around <b id=\"chosen\" tabindex=\"-1\">a node</b>: producers above it, consumers below it.</p>\n\
         <div class=\"controls\"><label>Distance in nodes <select id=\"depth\"><option>1</option><option selected>2</option><option>3</option><option>4</option></select></label></div>\n\
         <div class=\"sides\"><div class=\"side\"><h3>Before</h3><div id=\"graph-before\"></div></div><div class=\"side\"><h3>After</h3><div id=\"graph-after\"></div></div></div></section>\n",
    );
}

/// Returns the nodes of both models as JSON. Each text occurs once.
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

/// Returns a JSON string without characters that are special in HTML.
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

/// The largest number of characters of a word without possible line breaks.
const SHORT: usize = 20;

/// Returns text as markup, with possible line breaks at the separators in long words.
fn name(text: &str) -> String {
    text.split_inclusive(char::is_whitespace).map(word).collect()
}

/// Returns a command line as markup, without line breaks in short flags.
fn flags(text: &str) -> String {
    let is_flag = |word: &str| word.starts_with('-') && word.chars().count() <= 2 * SHORT;
    let flag = |word: &str| format!("<span class=\"flag\">{}</span> ", escaped(word.trim_end()));
    text.split_inclusive(' ').map(|word| if is_flag(word) { flag(word) } else { name(word) }).collect()
}

fn word(text: &str) -> String {
    if text.chars().count() <= SHORT {
        return escaped(text);
    }
    let mut written = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((at, separator)) = rest.char_indices().find(|(_, c)| "/._:,;)]=|".contains(*c)) {
        let (part, others) = rest.split_at(at + separator.len_utf8());
        written.push_str(&escaped(part));
        written.push_str("<wbr>");
        rest = others;
    }
    written + &escaped(rest)
}

#[cfg(test)]
mod tests {
    use super::json_string;

    #[test]
    fn data_contain_no_markup() {
        assert_eq!(json_string("</script>\"\\\n\u{2028}é"), "\"\\u003c/script\\u003e\\\"\\\\\\u000a\\u2028é\"");
    }
}
