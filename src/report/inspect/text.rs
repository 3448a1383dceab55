//! Prints inspections side by side: a row for each property, a column for each model.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::{Figure, Inspection, Parameters};
use crate::report::table::cut;
use crate::sort;

/// The largest number of listed entries per list of operators, inputs, outputs, functions or files.
const LISTED: usize = 12;

/// The largest number of printed characters of a label.
const LABEL: usize = 40;

/// The largest number of printed characters of a cell, for several models and for one.
const CELL: usize = 40;
const ONLY_CELL: usize = 400;

/// Formats a number with thousands separators.
pub(in crate::report) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && digits.len().saturating_sub(at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a number of bytes, in the largest unit that is not larger.
pub(in crate::report) fn bytes(number: u64) -> String {
    let units = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
    match units.iter().find(|(shift, _)| number >> shift > 0) {
        Some((shift, unit)) => format!("{:.1} {unit}", number as f64 / (1_u64 << shift) as f64),
        None if number == 1 => "1 byte".to_string(),
        None => format!("{number} bytes"),
    }
}

/// Formats a count, from a million on also in powers of 1000.
pub(in crate::report) fn count(number: u64) -> String {
    let units = [(1e12, "T"), (1e9, "G"), (1e6, "M")];
    match units.iter().find(|(unit, _)| number as f64 >= *unit) {
        Some((unit, letter)) => format!("{} ({:.1} {letter})", grouped(number), number as f64 / unit),
        None => grouped(number),
    }
}

/// Formats a number with its unit.
pub(in crate::report) type Units<'f> = &'f dyn Fn(u64) -> String;

/// Formats a number, an expression with its unit, or the dims that determine the number.
pub(in crate::report) fn figure(figure: &Figure, number: Units<'_>, unit: &str) -> String {
    match figure {
        Figure::Number(known) => number(*known),
        Figure::Expression(text) => format!("{text}{unit}"),
        Figure::Needs(dims) => format!("depends on dims: {}", dims.join(", ")),
        Figure::Unknown => "unknown".to_string(),
    }
}

/// The rows of one section of the table: labels in order, with a cell for each model.
#[derive(Default)]
struct Section {
    rows: Vec<(String, BTreeMap<usize, String>)>,
}

impl Section {
    fn put(&mut self, label: &str, model: usize, text: String) {
        match self.rows.iter_mut().find(|(known, _)| known == label) {
            Some((_, cells)) => {
                cells.insert(model, text);
            }
            None => self.rows.push((label.to_string(), BTreeMap::from([(model, text)]))),
        }
    }

    /// Adds the first entries of a list, each with a label, and the number of the others.
    fn list(&mut self, kind: &str, model: usize, entries: impl ExactSizeIterator<Item = (String, String)>) {
        let more = entries.len().saturating_sub(LISTED);
        for (label, text) in entries.take(LISTED) {
            self.put(&label, model, text);
        }
        if more > 0 {
            self.put(&format!("  more {kind}"), model, more.to_string());
        }
    }
}

/// Prints inspections, each with the name of its model, as the columns of a table. Lists end with the number of omitted entries.
pub fn inspection_text(inspected: &[(String, Inspection)]) -> String {
    let mut sections: Vec<Section> = Vec::new();
    let mut section = |fill: &dyn Fn(&mut Section, usize, &Inspection)| {
        let mut own = Section::default();
        inspected.iter().enumerate().for_each(|(at, (_, inspection))| fill(&mut own, at, inspection));
        sections.push(own);
    };
    let names = |own: &mut Section, at: usize, inspection: &Inspection| {
        let name = inspected.get(at).map_or("", |(name, _)| name);
        own.put("model", at, name.to_string());
        let (producer, version) = &inspection.producer;
        own.put("file", at, bytes(inspection.bytes));
        own.put("producer", at, format!("{producer} {version}").trim().to_string());
        own.put("IR version", at, inspection.ir_version.to_string());
    };
    section(&names);
    section(&|own, at, inspection| {
        let opsets = inspection.opsets.iter().map(|(domain, version)| (format!("opset {domain}"), version.to_string()));
        own.list("opsets", at, opsets.collect::<Vec<_>>().into_iter());
    });
    section(&|own, at, inspection| {
        let ports = inspection.inputs.iter().map(|(name, ty)| (format!("input {name}"), ty.clone()));
        own.list("inputs", at, ports);
        if inspection.defaults > 0 {
            own.put("inputs with a default", at, inspection.defaults.to_string());
        }
    });
    section(&|own, at, inspection| {
        own.list("outputs", at, inspection.outputs.iter().map(|(name, ty)| (format!("output {name}"), ty.clone())));
    });
    section(&|own, at, inspection| {
        let dims = inspection.dims.iter().map(|dim| {
            let places: Vec<String> =
                dim.places.iter().take(LISTED).map(|(name, axis)| format!("{name} axis {axis}")).collect();
            let more = dim.places.len().saturating_sub(LISTED);
            let more = if more > 0 { format!(", {more} more") } else { String::new() };
            (format!("dynamic dim {}", dim.name), places.join(", ") + &more)
        });
        own.list("dynamic dims", at, dims);
    });
    section(&|own, at, inspection| own.put("nodes", at, grouped(inspection.census.nodes() as u64)));
    let operators = top_operators(inspected);
    section(&|own, at, inspection| {
        let counts = &inspection.census.operators;
        let mut rest = inspection.census.nodes();
        for name in &operators {
            let count = counts.get(name).copied().unwrap_or(0);
            rest = rest.saturating_sub(count);
            own.put(&format!("  {name}"), at, if count > 0 { grouped(count as u64) } else { String::new() });
        }
        if rest > 0 {
            let others = counts.keys().filter(|name| !operators.contains(name)).count();
            own.put("  other operators", at, format!("{} ({others} operators)", grouped(rest as u64)));
        }
    });
    section(&|own, at, inspection| {
        let unknown = &inspection.census.unknown;
        if !unknown.is_empty() {
            own.put("unknown operators", at, grouped(unknown.values().sum::<usize>() as u64));
        }
        let rows = unknown.iter().map(|(name, count)| (format!("  {name}"), count.to_string()));
        own.list("unknown operators", at, rows.collect::<Vec<_>>().into_iter());
    });
    section(&|own, at, inspection| {
        if !inspection.functions.is_empty() {
            own.put("functions", at, inspection.functions.len().to_string());
        }
        let functions = inspection.functions.iter().map(|function| {
            let opsets: Vec<String> =
                function.opsets.iter().map(|(domain, version)| format!("{domain} {version}")).collect();
            (format!("  {}", function.name), format!("{} nodes, opsets {}", function.nodes, opsets.join(", ")))
        });
        own.list("functions", at, functions);
    });
    section(&|own, at, inspection| {
        let sum = inspection.parameters.values().fold(Parameters::default(), |sum, own| Parameters {
            tensors: sum.tensors.saturating_add(own.tensors),
            elements: sum.elements.saturating_add(own.elements),
            bytes: sum.bytes.saturating_add(own.bytes),
        });
        let text = |of: &Parameters| format!("{} ({})", grouped(of.elements), bytes(of.bytes));
        own.put("parameters", at, text(&sum));
        for (dtype, of) in &inspection.parameters {
            own.put(&format!("  {dtype}"), at, text(of));
        }
    });
    section(&|own, at, inspection| {
        let macs = &inspection.macs;
        let missed: usize = macs.uncounted.values().sum();
        let known = figure(&macs.total, &count, "");
        own.put("multiply-accumulates", at, known);
        if missed > 0 {
            let names: Vec<&str> = macs.uncounted.keys().map(String::as_str).take(3).collect();
            let more = if macs.uncounted.len() > names.len() { ", …" } else { "" };
            own.put("  nodes not counted", at, format!("{missed} ({}{more})", names.join(", ")));
        }
    });
    section(&|own, at, inspection| {
        let memory = &inspection.memory;
        own.put("peak activation memory", at, figure(&memory.bytes, &bytes, " bytes"));
        if let Some(node) = &memory.node {
            own.put("  reached at", at, node.clone());
        }
        if memory.unsized_values > 0 {
            own.put("  tensors of unknown size", at, memory.unsized_values.to_string());
        }
    });
    section(&|own, at, inspection| {
        let files = inspection.files.iter().map(|file| {
            let missing = if file.is_missing { ", missing" } else { "" };
            (
                format!("data file {}", file.location),
                format!("{} in {} tensors{missing}", bytes(file.bytes), file.tensors),
            )
        });
        own.list("data files", at, files);
    });
    section(&|own, at, inspection| {
        for (place, tensor) in inspection.largest.iter().enumerate() {
            let label = if place == 0 { "largest tensors".to_string() } else { " ".repeat(place) };
            own.put(&label, at, format!("{} {}, {}", tensor.ty, tensor.name, bytes(tensor.bytes)));
        }
    });
    printed(&sections, inspected.len())
}

/// Returns the most frequent operators of all models.
fn top_operators(inspected: &[(String, Inspection)]) -> Vec<String> {
    let names: BTreeSet<&String> = inspected.iter().flat_map(|(_, own)| own.census.operators.keys()).collect();
    let most = |name: &String| inspected.iter().filter_map(|(_, own)| own.census.operators.get(name)).max().copied();
    let mut names: Vec<(std::cmp::Reverse<Option<usize>>, &String)> =
        names.into_iter().map(|name| (std::cmp::Reverse(most(name)), name)).collect();
    sort::sort(&mut names);
    names.into_iter().take(LISTED).map(|(_, name)| name.clone()).collect()
}

fn printed(sections: &[Section], models: usize) -> String {
    let most = if models > 1 { CELL } else { ONLY_CELL };
    let rows = || sections.iter().flat_map(|section| &section.rows);
    let length = |text: &str, most: usize| cut(text, most).chars().count();
    let label_width = rows().map(|(label, _)| length(label, LABEL)).max().unwrap_or(0);
    let width = |model: usize| {
        let cells = rows().filter_map(|(_, cells)| cells.get(&model));
        cells.map(|cell| length(cell, most)).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..models).map(width).collect();
    let mut text = String::new();
    for (label, cells) in rows() {
        let mut line = format!("{:label_width$}", cut(label, LABEL));
        for (model, width) in widths.iter().enumerate() {
            let cell = cells.get(&model).map_or("", String::as_str);
            let _ = write!(line, "  {:width$}", cut(cell, most));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}
