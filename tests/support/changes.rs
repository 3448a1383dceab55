//! Line differences between a model and its folded form.

use std::collections::BTreeMap;

use onnx_slice_fold::ir::{Model, text};

use super::without_names;

/// Returns the lines that only `before` has, marked with `-`, and the lines that only `after` has, marked with `+`, in the order of the
/// model. Each new node has the types of its results as a comment. Declared types of inner values make no difference.
pub fn changes(before: &Model, after: &Model) -> String {
    let types = types(after);
    let (before, after) = (lines(before), lines(after));
    let mut shown = String::new();
    for (sign, line) in difference(&before, &after) {
        let results = line.trim_start().split_once(" = ").filter(|_| sign == '+').map_or("", |(results, _)| results);
        let known: Vec<&str> = results.split(", ").filter_map(|name| types.get(name)).map(String::as_str).collect();
        let known = if known.is_empty() { String::new() } else { format!("  # {}", known.join("; ")) };
        shown.push_str(&format!("{sign}{line}{known}\n"));
    }
    if shown.is_empty() { "unchanged".to_string() } else { shown }
}

/// The model as lines of text, without the marks at the ends of lists, and without types of computed values.
fn lines(model: &Model) -> Vec<String> {
    let mut model = model.clone();
    let outputs: Vec<_> = model.graphs().flat_map(|graph| model.graph(graph).outputs().to_vec()).collect();
    for output in outputs {
        model.undeclare(output);
    }
    let printed = without_names(&text::print_with(&model, &|_| false));
    let plain = |line: &str| {
        let first = line.trim_start().strip_prefix('<').filter(|rest| !rest.is_empty());
        let line = first.map_or_else(|| line.to_string(), |_| line.replacen('<', " ", 1));
        line.trim_end_matches([',', '>', '{', ' ']).to_string()
    };
    printed.lines().map(plain).filter(|line| !line.trim().is_empty()).collect()
}

/// The types of computed values, by name.
fn types(model: &Model) -> BTreeMap<String, String> {
    let nodes = model.graphs().flat_map(|graph| model.graph(graph).nodes()).filter_map(|id| model.node(id));
    let values = nodes.flat_map(|node| node.outputs().iter().flatten()).map(|&value| model.value(value));
    values.filter_map(|value| Some((value.name.to_string(), text::type_text(value.declared.as_ref()?)))).collect()
}

/// The lines that are not in a longest common subsequence of the two texts.
fn difference<'l>(before: &'l [String], after: &'l [String]) -> Vec<(char, &'l str)> {
    // `common[i][j]` is the length of a longest common subsequence of `before[i..]` and `after[j..]`.
    let mut common = vec![vec![0usize; after.len() + 1]; before.len() + 1];
    for (i, old) in before.iter().enumerate().rev() {
        for (j, new) in after.iter().enumerate().rev() {
            common[i][j] = if old == new { common[i + 1][j + 1] + 1 } else { common[i + 1][j].max(common[i][j + 1]) };
        }
    }
    let (mut i, mut j) = (0, 0);
    let mut changed = Vec::new();
    while i < before.len() || j < after.len() {
        match (before.get(i), after.get(j)) {
            (Some(old), Some(new)) if old == new => (i, j) = (i + 1, j + 1),
            (Some(old), _) if j == after.len() || common[i + 1][j] >= common[i][j + 1] => {
                changed.push(('-', old.as_str()));
                i += 1;
            }
            (_, Some(new)) => {
                changed.push(('+', new.as_str()));
                j += 1;
            }
            (_, None) => break,
        }
    }
    changed
}
