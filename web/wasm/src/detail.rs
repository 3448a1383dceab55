//! Details of a folded model for a page: its graphs before and after, the status of each node, and pictures of nodes that move elements.

use std::collections::{BTreeMap, HashMap};

use onnx_slice_fold::{Cause, Drawing, DrawnNode, MappedTensor, MovementMap, Port, Report};
use serde_json::{Map, Value, json};

/// Returns the details of a report, if it has them.
pub fn detail(report: &Report) -> Option<Value> {
    let detail = report.detail.as_ref()?;
    let (before, after) = (&detail.inferred, &detail.after);
    let mut edits: HashMap<&str, Vec<usize>> = HashMap::new();
    for (number, edit) in report.edits.iter().enumerate() {
        if let Some(place) = edit.place.as_deref() {
            edits.entry(without_operator(place)).or_default().push(number);
        }
    }
    let ways = Ways::between(before, after, &edits);
    let graph = |drawing: &Drawing, is_after: bool| {
        let nodes = drawing.nodes.iter().enumerate().map(|(at, node)| ways.node(at, node, is_after));
        let port =
            |port: &Port| json!({ "name": port.name, "type": if is_after { &port.after } else { &port.before } });
        let initializer =
            |(name, ty, bytes): &(String, String, usize)| json!({ "name": name, "type": ty, "bytes": bytes });
        json!({
            "inputs": report.inputs.iter().map(port).collect::<Vec<_>>(),
            "outputs": report.outputs.iter().map(port).collect::<Vec<_>>(),
            "initializers": drawing.initializers.iter().map(initializer).collect::<Vec<_>>(),
            "nodes": nodes.collect::<Vec<_>>(),
        })
    };
    let cause = |cause: &Cause| json!({ "node": cause.node, "operator": cause.operator, "result": cause.result, "kind": cause.kind.name(), "reason": cause.reason, "chain": cause.chain });
    Some(json!({
        "before": graph(before, false),
        "after": graph(after, true),
        "causes": detail.causes.iter().map(cause).collect::<Vec<_>>(),
        "maps": {
            "before": detail.maps_before.iter().map(movement).collect::<Vec<_>>(),
            "after": detail.maps_after.iter().map(movement).collect::<Vec<_>>(),
            "merged": detail.maps_merged.iter().map(movement).collect::<Vec<_>>(),
        },
    }))
}

/// The matches between the nodes of a model and those of the result.
struct Ways {
    /// For each node before: its counterpart after, and whether it is the same.
    before: Vec<Option<(usize, bool)>>,
    after: Vec<Option<(usize, bool)>>,
    /// The edits at each node.
    edits: [Vec<Vec<usize>>; 2],
}

impl Ways {
    /// Matches nodes that compute the same value, and those of the same name and operator.
    fn between(before: &Drawing, after: &Drawing, edits: &HashMap<&str, Vec<usize>>) -> Self {
        let mut ways = Ways {
            before: vec![None; before.nodes.len()],
            after: vec![None; after.nodes.len()],
            edits: Default::default(),
        };
        let result = |node: &DrawnNode| node.outputs.iter().map(|(name, _)| name.clone()).find(|name| !name.is_empty());
        let named = |node: &DrawnNode| (!node.name.is_empty()).then(|| format!("{} {}", node.operator, node.name));
        let keys: [&dyn Fn(&DrawnNode) -> Option<String>; 2] = [&result, &named];
        for key in keys {
            let mut known: HashMap<String, usize> = HashMap::new();
            for (at, node) in before.nodes.iter().enumerate().filter(|(at, _)| ways.before[*at].is_none()) {
                known.extend(key(node).map(|key| (key, at)));
            }
            for (at, node) in after.nodes.iter().enumerate() {
                if ways.after[at].is_some() {
                    continue;
                }
                if let Some(from) = key(node).and_then(|key| known.remove(&key)) {
                    let is_same = same(&before.nodes[from], node);
                    ways.before[from] = Some((at, is_same));
                    ways.after[at] = Some((from, is_same));
                }
            }
        }
        let at_label = |node: &DrawnNode| edits.get(without_operator(&node.label)).cloned().unwrap_or_default();
        ways.edits[0] = before.nodes.iter().map(at_label).collect();
        ways.edits[1] = after.nodes.iter().map(at_label).collect();
        // A node that an edit made is named after the node at which the edit was made.
        let places: BTreeMap<&str, &Vec<usize>> = edits
            .iter()
            .filter_map(|(place, edits)| Some((place.strip_prefix('\'')?.strip_suffix('\'')?, edits)))
            .collect();
        // Some are made for a graph as a whole.
        let of_graphs: Vec<usize> = edits
            .iter()
            .filter(|(place, _)| place.starts_with("graph '"))
            .flat_map(|(_, edits)| edits.iter().copied())
            .collect();
        for (at, node) in after.nodes.iter().enumerate() {
            if let Some((from, false)) = ways.after[at] {
                let more: Vec<usize> = ways.edits[0][from].clone();
                ways.edits[1][at].extend(more);
            } else if ways.after[at].is_none() {
                let prefixes = node.name.char_indices().filter(|(_, letter)| "/_.".contains(*letter));
                let prefixes = prefixes.filter_map(|(end, _)| node.name.get(..end)).chain([node.name.as_str()]);
                let found = prefixes.filter_map(|prefix| places.get(prefix)).last();
                ways.edits[1][at].extend(found.into_iter().copied().flatten());
                if ways.edits[1][at].is_empty() {
                    ways.edits[1][at].extend(&of_graphs);
                }
            }
            ways.edits[1][at].sort_unstable();
            ways.edits[1][at].dedup();
        }
        ways
    }

    fn node(&self, at: usize, node: &DrawnNode, is_after: bool) -> Value {
        let way = if is_after { self.after[at] } else { self.before[at] };
        let status = match way {
            Some((_, true)) => "unchanged",
            Some((_, false)) => "changed",
            None if is_after => "new",
            None => "removed",
        };
        let scope: Vec<&str> = node.name.split('/').filter(|part| !part.is_empty()).collect();
        let scope = scope.split_last().map_or(&[][..], |(_, scope)| scope);
        let port = |(name, ty): &(String, String)| json!({ "name": name, "type": ty });
        let mut told = json!({
            "operator": node.operator,
            "name": node.name,
            "label": node.label,
            "inputs": node.inputs,
            "outputs": node.outputs.iter().map(port).collect::<Vec<_>>(),
            "attributes": node.attributes.iter().map(|(name, text)| (name.clone(), json!(text))).collect::<Map<_, _>>(),
            "scope": scope,
            "status": status,
            "edits": self.edits[usize::from(is_after)][at],
        });
        if let Some((counterpart, _)) = way {
            told["counterpart"] = json!(counterpart);
        }
        if let Some(parent) = node.parent {
            told["parent"] = json!(parent);
        }
        told
    }
}

/// Returns the place of an edit without the operator of the node, which an earlier edit may have changed.
fn without_operator(place: &str) -> &str {
    place.split_once(" node ").map_or(place, |(_, place)| place)
}

/// Returns `true` if a node is the same before and after, apart from types of its results and names of values that it does not read.
fn same(before: &DrawnNode, after: &DrawnNode) -> bool {
    before.operator == after.operator && before.inputs == after.inputs && before.attributes == after.attributes
}

fn movement(of: &MovementMap) -> Value {
    let tensor = |of: &MappedTensor| {
        let sizes: Vec<&str> = of.axes.iter().map(|axis| axis.size.as_str()).collect();
        json!({ "name": of.name, "symbol": of.symbol, "shape": sizes })
    };
    json!({
        "node": of.node,
        "operator": of.operator,
        "above": of.above,
        "result": tensor(&of.result),
        "sources": of.sources.iter().map(tensor).collect::<Vec<_>>(),
        "lines": of.lines(),
        "svg": of.svg(),
    })
}
