//! Writes the top of the page: figures before and after, origin and inputs of the model, suggestions.

use std::fmt::Write as _;

use super::super::inspect::{Units, bytes, figure, grouped};
use super::super::markup::escaped;
use super::super::{Detail, Figure, Inspection, Parameters, Port, Report};
use super::{TABLE_END, collapsed, flags, name, section, table};
use crate::explain::Suggestion;

/// The number of inputs, outputs, dims and suggestions that are initially visible.
const SHOWN: usize = 8;

impl Report {
    pub(super) fn overview(&self, page: &mut String, detail: &Detail, command: &str) {
        section(page, "summary");
        self.figures(page, detail);
        facts(page, detail, command);
        let mut ports: Vec<(&str, &Port)> = self.inputs.iter().map(|port| ("input", port)).collect();
        ports.extend(self.outputs.iter().map(|port| ("output", port)));
        collapsed(page, &ports, SHOWN, "inputs and outputs", |page, ports| {
            let columns = [("kind", false), ("name", false), ("type before", false), ("type after", false)];
            table(page, "Inputs and outputs", "stack", &columns);
            for (kind, port) in ports {
                let (label, before, after) = (name(&port.name), name(&port.before), name(&port.after));
                let after = if port.before == port.after { "the same".to_string() } else { after };
                let _ = writeln!(
                    page,
                    "<tr><td>{kind}</td><th scope=\"row\">{label}</th><td data-label=\"before\">{before}</td><td data-label=\"after\">{after}</td></tr>"
                );
            }
            page.push_str(TABLE_END);
        });
        if let Some((_, after)) = &detail.inspected {
            largest(page, after);
        }
        page.push_str("</section>\n");
        section(page, "suggestions");
        suggestions(page, detail, self.after.nodes());
        page.push_str("</section>\n");
    }

    /// Writes the most important figures, and a table of all.
    fn figures(&self, page: &mut String, detail: &Detail) {
        let written = self.bytes_after.map(|after| (self.bytes_before as u64, after));
        let data = self.external_bytes_after.map(|after| (self.external_bytes_before, after));
        let data = data.or_else(|| (self.external_bytes_before == 0).then_some((0, 0)));
        let both = written.zip(data).map(|(file, data)| (file.0.saturating_add(data.0), file.1.saturating_add(data.1)));
        let nodes = (self.before.nodes() as u64, self.after.nodes() as u64);
        let mut rows = vec![row("nodes", nodes, &grouped)];
        rows.push(match written {
            Some(sizes) => row("model file", sizes, &bytes),
            None => {
                ("model file".to_string(), bytes(self.bytes_before as u64), "not written".to_string(), String::new())
            }
        });
        if let Some(sizes) = data.filter(|sizes| *sizes != (0, 0)) {
            rows.push(row("data files", sizes, &bytes));
        }
        page.push_str("<ul class=\"figures\">");
        card(page, "nodes", nodes);
        if let Some(sizes) = both {
            card(page, "size", sizes);
        }
        page.push_str("</ul>\n");
        if let Some((before, after)) = &detail.inspected {
            let parameters = |of: &Inspection| {
                of.parameters
                    .values()
                    .map(|own| (own.elements, own.bytes))
                    .fold((0_u64, 0_u64), |sum, own| (sum.0.saturating_add(own.0), sum.1.saturating_add(own.1)))
            };
            let (was, is) = (parameters(before), parameters(after));
            let text = |(elements, size): (u64, u64)| format!("{} ({})", grouped(elements), bytes(size));
            rows.push(("parameters".to_string(), text(was), text(is), change((was.0, is.0))));
            let (was, is) = (&before.macs.total, &after.macs.total);
            rows.push(estimate("multiply-accumulates", (was, is), &super::super::inspect::count, ""));
            let (was, is) = (&before.memory.bytes, &after.memory.bytes);
            rows.push(estimate("peak activation memory", (was, is), &bytes, " bytes"));
        }
        rows.push(row("initializers", (self.before.initializers as u64, self.after.initializers as u64), &grouped));
        let tensors = |of: &super::super::Census| format!("{} of {}", of.shaped.saturating_sub(of.named), of.tensors);
        rows.push(("tensors with known shape".to_string(), tensors(&self.before), tensors(&self.after), String::new()));
        if let Some((from, to)) = self.opset {
            rows.push(("opset".to_string(), from.to_string(), to.to_string(), String::new()));
        }
        let columns = [("figure", false), ("before", true), ("after", true), ("change", true)];
        table(page, "The model before and after folding", "stack", &columns);
        for (what, was, is, change) in rows {
            let _ = writeln!(
                page,
                "<tr><th scope=\"row\">{what}</th><td class=\"n\" data-label=\"before\">{}</td><td class=\"n\" data-label=\"after\">{}</td><td class=\"n\" data-label=\"change\">{change}</td></tr>",
                escaped(&was),
                escaped(&is)
            );
        }
        page.push_str(TABLE_END);
    }
}

type Row = (String, String, String, String);

fn row(what: &str, (before, after): (u64, u64), text: &dyn Fn(u64) -> String) -> Row {
    (what.to_string(), text(before), text(after), change((before, after)))
}

fn estimate(what: &str, (before, after): (&Figure, &Figure), text: Units<'_>, unit: &str) -> Row {
    let change = match (before, after) {
        (Figure::Number(before), Figure::Number(after)) => change((*before, *after)),
        _ => String::new(),
    };
    (what.to_string(), figure(before, text, unit), figure(after, text, unit), change)
}

/// Formats a change in percent.
fn change((before, after): (u64, u64)) -> String {
    if before == after {
        return "same".to_string();
    }
    if before == 0 {
        return "new".to_string();
    }
    let share = (after as f64 - before as f64) / before as f64 * 100.0;
    format!("{}{:.1}\u{a0}%", if share < 0.0 { "−" } else { "+" }, share.abs())
}

fn card(page: &mut String, what: &str, (before, after): (u64, u64)) {
    let text = if before > after && before > 0 {
        let saved = (before - after) as f64 / before as f64 * 100.0;
        format!("<b class=\"good\">{saved:.1}\u{a0}%</b>fewer {what}")
    } else {
        format!("<b>{}</b>{what}", change((before, after)))
    };
    let text = text.replace("fewer size", "smaller size");
    let _ = write!(page, "<li>{text}</li>");
}

/// Writes the origin of the model and the command that folded it.
fn facts(page: &mut String, detail: &Detail, command: &str) {
    page.push_str("<dl>");
    let mut say = |term: &str, text: String| {
        if !text.is_empty() {
            let _ = write!(page, "<dt>{term}</dt><dd>{text}</dd>");
        }
    };
    say("command", format!("<code>{}</code>", flags(command).trim_end()));
    if let Some((before, after)) = &detail.inspected {
        let (producer, version) = &before.producer;
        say("producer", escaped(format!("{producer} {version}").trim()));
        say("IR version", before.ir_version.to_string());
        let opsets = after.opsets.iter().map(|(domain, version)| format!("{} {version}", name(domain)));
        say("opsets", opsets.collect::<Vec<_>>().join(", "));
        let dims = after.dims.iter().take(SHOWN).map(|dim| {
            let places = dim.places.iter().take(2).map(|(input, axis)| format!("{} axis {axis}", name(input)));
            let places: Vec<String> = places.chain((dim.places.len() > 2).then(|| "…".to_string())).collect();
            format!("<b>{}</b> ({})", name(&dim.name), places.join(", "))
        });
        say("dynamic dims", dims.collect::<Vec<_>>().join(", "));
        if after.macs.uncounted.values().any(|count| *count > 0) {
            let names: Vec<String> = after.macs.uncounted.keys().take(3).map(|operator| name(operator)).collect();
            say("without multiply-accumulates", format!("nodes of {}", names.join(", ")));
        }
        say("peak memory at", after.memory.node.as_deref().map_or_else(String::new, name));
        if after.memory.unsized_values > 0 {
            say("memory without", format!("{} tensors of unknown size", after.memory.unsized_values));
        }
    }
    page.push_str("</dl>\n");
}

fn largest(page: &mut String, after: &Inspection) {
    if after.largest.is_empty() {
        return;
    }
    let of = |own: Option<&Parameters>| own.map_or(0, |own| own.tensors);
    let all: usize = after.parameters.values().map(|own| of(Some(own))).sum();
    let caption = format!("The largest constant tensors after folding ({} of {all})", after.largest.len());
    table(page, &caption, "stack", &[("tensor", false), ("type", false), ("size", true)]);
    for tensor in &after.largest {
        let _ = writeln!(
            page,
            "<tr><th scope=\"row\">{}</th><td data-label=\"type\">{}</td><td class=\"n\" data-label=\"size\">{}</td></tr>",
            name(&tensor.name),
            name(&tensor.ty),
            bytes(tensor.bytes)
        );
    }
    page.push_str(TABLE_END);
}

/// Writes the assumptions about the inputs that reduce the number of remaining nodes.
fn suggestions(page: &mut String, detail: &Detail, nodes: usize) {
    if detail.suggestions.is_empty() {
        page.push_str("<p>None of the assumptions about the inputs that were tried removes more nodes.</p>\n");
        return;
    }
    page.push_str(
        "<p>Under each of these assumptions about the inputs, fewer nodes remain, or more shapes are known. Each assumption was tried by folding the model with it. The folded model is then valid only for inputs that satisfy the assumption.</p>\n",
    );
    collapsed(page, &detail.suggestions, SHOWN, "suggestions", |page, suggestions| {
        page.push_str("<ul class=\"suggestions\">");
        suggestions.iter().for_each(|found| suggestion(page, found, nodes));
        page.push_str("</ul>\n");
    });
}

fn suggestion(page: &mut String, found: &Suggestion, nodes: usize) {
    let copied = escaped(&found.flags);
    let effect = match nodes.saturating_sub(found.nodes) {
        0 => format!("{} tensors of unknown size remain", found.open),
        saved => format!("{saved} fewer nodes, {} remain", found.nodes),
    };
    let _ = write!(
        page,
        "<li><code>{}</code><button type=\"button\" class=\"copy\" data-copy=\"{copied}\" aria-label=\"Copy {copied}\">Copy</button><span>{effect}; valid only if {}</span></li>",
        flags(&found.flags).trim_end(),
        name(&found.condition)
    );
}
