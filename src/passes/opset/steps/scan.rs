//! Converts Scan-8, which works on a batch.

use crate::ir::{Attribute, NamedAttribute, NewNode, ValueId};
use crate::passes::opset::draft::{NodeDraft, unreadable};

/// Writes a Scan over the elements of the batch whose body is a Scan over the entries of one. States and scanned operands, split along their first
/// axis, are operands of the inner Scan. Its results are stacked along that axis again.
pub(in crate::passes::opset) fn unbatch(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    if draft.input(0).is_some() {
        return Err("it has lengths of sequences (operand 0), which no newer version has; leave them out if all are as long as the longest".to_string());
    }
    let body = match draft.attribute("body") {
        Some(Attribute::Graph(body)) => *body,
        Some(other) => return Err(unreadable("body", other)),
        None => return Err("attribute 'body' is missing; correct the model".to_string()),
    };
    let operands: Vec<ValueId> = draft.node.inputs.iter().skip(1).flatten().copied().collect();
    if operands.len().checked_add(1) != Some(draft.node.inputs.len()) || draft.node.inputs.is_empty() {
        return Err("an operand is missing; correct the model".to_string());
    }
    let broken = |broken: crate::ir::Broken| broken.to_string();
    let outer = draft.model.add_graph("batch", None);
    let mut inner = NewNode::new("Scan", []);
    inner.attributes = std::mem::take(&mut draft.node.attributes);
    for held in &mut inner.attributes {
        if held.name == "directions" {
            held.name = "scan_input_directions".into();
        }
    }
    for (slot, _) in operands.iter().enumerate() {
        let value = draft.model.new_value(&format!("of_batch_{slot}"));
        draft.model.add_input(outer, value).map_err(broken)?;
        inner.inputs.push(Some(value));
    }
    let results = draft.model.graph(body).outputs().len();
    for slot in 0..results {
        let value = draft.model.new_value(&format!("of_element_{slot}"));
        inner.outputs.push(Some(value));
    }
    let listed = inner.outputs.clone();
    let id = draft.model.add_node(outer, inner).map_err(broken)?;
    draft.model.set_parent(body, id);
    for value in listed.into_iter().flatten() {
        draft.model.add_output(outer, value);
    }
    draft.node.inputs = operands.iter().copied().map(Some).collect();
    let count = i64::try_from(operands.len()).unwrap_or(i64::MAX);
    draft.node.attributes = vec![
        NamedAttribute::new("body", Attribute::Graph(outer)),
        NamedAttribute::new("num_scan_inputs", Attribute::Int(count)),
    ];
    Ok(())
}
