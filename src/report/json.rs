//! The report as JSON; docs/report.md defines the schema. A new field increments the minor version; removing a field or changing
//! its meaning increments the major version.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{
    Avoided, Census, DataFile, Detail, DynamicDim, Figure, FunctionInfo, Inspection, LargeTensor, Note, Parameters,
    Port, Report, RuleUse,
};
use crate::explain::{
    Cause, Explanation, FailedPremise, MapDigit, MapPiece, MappedTensor, MovementMap, OpenSize, RuleAtNode,
    RuleExplanation, Suggestion,
};
use crate::onnx::MissingData;
use crate::passes::{LastEdit, PassRun};

/// The version of the schema.
const VERSION: &str = "1.4";

impl Report {
    /// Returns the report as a JSON object on one line, with `model` as the model's name. docs/report.md defines the schema.
    pub fn json(&self, model: &str) -> String {
        report(self, model).to_string()
    }
}

impl Inspection {
    /// Returns the inspection as a JSON object on one line. docs/report.md defines the schema.
    pub fn json(&self, model: &str) -> String {
        inspection(self, model).to_string()
    }
}

impl Explanation {
    /// Returns the explanation, and the notes of `report` on single nodes, as a JSON object on one line. docs/report.md defines the schema.
    pub fn json(&self, report: &Report, model: &str) -> String {
        explanation(self, report, model).to_string()
    }
}

impl RuleExplanation {
    /// Returns the explanation as a JSON object on one line. docs/report.md defines the schema.
    pub fn json(&self, model: &str) -> String {
        let failed = |failed: &FailedPremise| json!({ "premise": failed.name, "statement": failed.statement, "about": failed.about, "question": failed.question });
        let at = |at: &RuleAtNode| json!({ "node": at.node, "failed": at.failed.as_ref().map(failed) });
        json!({
            "schema": VERSION,
            "model": model,
            "rule": self.rule,
            "edits": self.edits,
            "in_force": self.is_in_force,
            "nodes": self.nodes.iter().map(at).collect::<Vec<_>>(),
        })
        .to_string()
    }
}

fn report(report: &Report, model: &str) -> Value {
    let used = |rule: &RuleUse| json!({ "name": rule.name, "edits": rule.edits, "sentence": rule.sentence, "law": rule.law, "exact": rule.exact });
    let fired: Vec<Value> = report.rules_used().iter().map(used).collect();
    let edit = |edit: &LastEdit| json!({ "rule": edit.name, "place": edit.place });
    let note = |note: &Note| json!({ "kind": note.kind_name(), "place": note.node, "reason": note.reason });
    let pass = |pass: &PassRun| json!({ "name": pass.name, "runs": pass.runs, "edits": pass.changes, "seconds": pass.seconds });
    let port = |port: &Port| json!({ "name": port.name, "before": port.before, "after": port.after });
    json!({
        "schema": VERSION,
        "program": { "name": "onnx-slice-fold", "version": env!("CARGO_PKG_VERSION") },
        "model": model,
        "files": report.files.iter().map(|(path, bytes)| json!({ "path": path.to_string_lossy(), "bytes": bytes })).collect::<Vec<_>>(),
        "missing_data": report.missing_data.iter().map(missing).collect::<Vec<_>>(),
        "before": census(&report.before, Some(report.bytes_before as u64), Some(report.external_bytes_before)),
        "after": census(&report.after, report.bytes_after, report.external_bytes_after),
        "inputs": report.inputs.iter().map(port).collect::<Vec<_>>(),
        "outputs": report.outputs.iter().map(port).collect::<Vec<_>>(),
        "rounds": report.rounds,
        "seconds": report.seconds,
        "rules": fired,
        "edits": report.edits.iter().map(edit).collect::<Vec<_>>(),
        "values": report.detail.as_ref().map_or_else(Vec::new, |detail| values(detail)),
        "avoided": report.avoided.iter().map(avoided).collect::<Vec<_>>(),
        "size_nodes": report.size_nodes,
        "shapes_left_out": report.left_out.as_ref().map(|left_out| json!({ "shapes": left_out.shapes, "reason": left_out.reason })),
        "label_relations": report.label_relations,
        "passes": report.passes.iter().map(pass).collect::<Vec<_>>(),
        "notes": report.notes.iter().map(note).collect::<Vec<_>>(),
    })
}

fn avoided(avoided: &Avoided) -> Value {
    json!({ "construct": avoided.construct.to_string(), "place": avoided.node, "reason": avoided.reason })
}

fn missing(data: &MissingData) -> Value {
    let looked_in = data.looked_in.iter().map(|directory| directory.to_string_lossy());
    json!({ "location": data.location, "tensors": data.tensors, "looked_in": looked_in.collect::<Vec<_>>() })
}

/// Returns the results of nodes with their types before and after, in execution order, new results last.
fn values(detail: &Detail) -> Vec<Value> {
    let mut types: BTreeMap<&str, (Option<&str>, Option<&str>)> = BTreeMap::new();
    let mut names = Vec::new();
    for (nodes, is_after) in [(&detail.before.nodes, false), (&detail.after.nodes, true)] {
        for (name, ty) in nodes.iter().flat_map(|node| &node.outputs) {
            let both = types.entry(name).or_insert_with(|| {
                names.push(name.as_str());
                (None, None)
            });
            if is_after { both.1 = Some(ty) } else { both.0 = Some(ty) }
        }
    }
    let told = |name: &str| {
        let (before, after) = types.get(name).copied().unwrap_or_default();
        json!({ "name": name, "before": before, "after": after })
    };
    names.into_iter().map(told).collect()
}

fn census(census: &Census, bytes: Option<u64>, external_bytes: Option<u64>) -> Value {
    json!({
        "nodes": census.nodes(),
        "operators": census.operators,
        "unknown_operators": census.unknown,
        "initializers": census.initializers,
        "tensors": census.tensors,
        "shapes_known": census.shaped,
        "shapes_with_our_names": census.named,
        "bytes": bytes,
        "external_bytes": external_bytes,
    })
}

fn inspection(inspection: &Inspection, model: &str) -> Value {
    let port = |(name, ty): &(String, String)| json!({ "name": name, "type": ty });
    let function = |of: &FunctionInfo| json!({ "name": of.name, "nodes": of.nodes, "opsets": of.opsets });
    let parameters = |(dtype, of): (&String, &Parameters)| {
        let sums = json!({ "tensors": of.tensors, "elements": of.elements, "bytes": of.bytes });
        (dtype.clone(), sums)
    };
    let file = |of: &DataFile| json!({ "location": of.location, "tensors": of.tensors, "bytes": of.bytes, "missing": of.is_missing });
    let tensor = |of: &LargeTensor| json!({ "name": of.name, "type": of.ty, "bytes": of.bytes });
    let place = |(input, axis): &(String, usize)| json!({ "input": input, "axis": axis });
    let dim = |of: &DynamicDim| json!({ "name": of.name, "places": of.places.iter().map(place).collect::<Vec<_>>() });
    let (macs, memory) = (&inspection.macs, &inspection.memory);
    json!({
        "schema": VERSION,
        "model": model,
        "producer": { "name": inspection.producer.0, "version": inspection.producer.1 },
        "ir_version": inspection.ir_version,
        "opsets": inspection.opsets,
        "bytes": inspection.bytes,
        "inputs": inspection.inputs.iter().map(port).collect::<Vec<_>>(),
        "inputs_with_default": inspection.defaults,
        "outputs": inspection.outputs.iter().map(port).collect::<Vec<_>>(),
        "dynamic_dims": inspection.dims.iter().map(dim).collect::<Vec<_>>(),
        "nodes": inspection.census.nodes(),
        "operators": inspection.census.operators,
        "unknown_operators": inspection.census.unknown,
        "functions": inspection.functions.iter().map(function).collect::<Vec<_>>(),
        "parameters": inspection.parameters.iter().map(parameters).collect::<serde_json::Map<_, _>>(),
        "macs": {
            "total": figure(&macs.total),
            "operators": macs.operators.iter().map(|(name, own)| (name.clone(), figure(own))).collect::<serde_json::Map<_, _>>(),
            "uncounted": macs.uncounted,
        },
        "peak_memory": { "bytes": figure(&memory.bytes), "node": memory.node, "tensors_of_unknown_size": memory.unsized_values },
        "data_files": inspection.files.iter().map(file).collect::<Vec<_>>(),
        "largest_tensors": inspection.largest.iter().map(tensor).collect::<Vec<_>>(),
    })
}

/// Returns a number as a JSON number, an expression as text, and required dims as an object.
fn figure(figure: &Figure) -> Value {
    match figure {
        Figure::Number(number) => json!(number),
        Figure::Expression(text) => json!(text),
        Figure::Needs(dims) => json!({ "needs": dims }),
        Figure::Unknown => Value::Null,
    }
}

fn explanation(explanation: &Explanation, report: &Report, model: &str) -> Value {
    let suggestion = |found: &Suggestion| json!({ "flags": found.flags, "condition": found.condition, "nodes": found.nodes, "tensors_open": found.open });
    let cause = |cause: &Cause| json!({ "node": cause.node, "operator": cause.operator, "result": cause.result, "kind": cause.kind.name(), "reason": cause.reason, "chain": cause.chain });
    let size = |size: &OpenSize| json!({ "name": size.name, "tensor": size.tensor, "tensors": size.tensors, "reason": size.reason, "chain": size.chain });
    let answer = |(name, text): &(String, String)| json!({ "name": name, "text": text });
    let note = |note: &Note| json!({ "kind": note.kind_name(), "place": note.node, "reason": note.reason });
    json!({
        "schema": VERSION,
        "model": model,
        "headline": explanation.headline(),
        "seconds": report.seconds,
        "nodes_before": explanation.nodes.0,
        "nodes": explanation.nodes.1,
        "tensors": explanation.tensors.0,
        "tensors_open": explanation.tensors.1,
        "trials": explanation.trials.0,
        "more_to_try": explanation.trials.1,
        "suggestions": explanation.suggestions.iter().map(suggestion).collect::<Vec<_>>(),
        "causes": explanation.causes.iter().map(cause).collect::<Vec<_>>(),
        "open_sizes": explanation.sizes.iter().map(size).collect::<Vec<_>>(),
        "missing_data": report.missing_data.iter().map(missing).collect::<Vec<_>>(),
        "answers": explanation.answers.iter().map(answer).collect::<Vec<_>>(),
        "maps": explanation.maps.iter().map(movement).collect::<Vec<_>>(),
        "notes": report.notes.iter().map(note).collect::<Vec<_>>(),
    })
}

fn movement(map: &MovementMap) -> Value {
    let tensor = |of: &MappedTensor| {
        let sizes: Vec<&str> = of.axes.iter().map(|axis| axis.size.as_str()).collect();
        json!({ "name": of.name, "symbol": of.symbol, "shape": sizes })
    };
    let digit = |of: &MapDigit| json!({ "name": of.name, "start": of.start, "end": of.end });
    let piece = |of: &MapPiece| {
        json!({
            "digits": of.digits.iter().map(digit).collect::<Vec<_>>(),
            "to": of.to,
            "source": of.source,
            "from": of.from,
        })
    };
    json!({
        "node": map.node,
        "operator": map.operator,
        "result": tensor(&map.result),
        "sources": map.sources.iter().map(tensor).collect::<Vec<_>>(),
        "pieces": map.pieces.iter().map(piece).collect::<Vec<_>>(),
        "lines": map.lines(),
    })
}
