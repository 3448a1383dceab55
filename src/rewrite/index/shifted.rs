//! Merges a shift into a Range.
//!
//! Law: `Range(a, b, d) + c = Range(a + c, a + c + len · d, d)`, which has the same length. Exporters number the positions after cached
//! ones in this way.

use super::LATE_RULES;
use super::positions::positions;
use crate::dim::Dim;
use crate::ir::{Edit, NewNode, NodeId, ValueId};
use crate::rewrite::limits::NODES;
use crate::rewrite::miss::{Miss, ensure};
use crate::rewrite::place::Place;
use crate::rewrite::rule::miss;
use crate::tensor::{DType, Tensor};

pub(super) fn shift(place: &Place<'_>) -> Result<Edit, Miss> {
    let (node, output) = (place.root()?, place.result()?);
    let mut ranges =
        node.inputs().iter().flatten().filter_map(|&operand| Some((operand, place.producer(operand, "Range")?.0)));
    let (operand, range) = ranges.next().ok_or(Miss::ROOT)?;
    ensure(place.model.is_read_only_by(operand, &[place.id]), miss!(LATE_RULES, "read-once").of(operand))?;
    // Ranges of constant length are constants, or become so by other rules.
    let is_open = place.shape(output).ok_or(Miss::ROOT)?.iter().any(|dim| dim.as_const().is_none());
    ensure(is_open, miss!(LATE_RULES, "open-length").of(output))?;
    ensure(place.dtype(output) == Some(DType::Int64), miss!(LATE_RULES, "64-bits").of(output))?;
    let counted = positions(place, output).ok_or(miss!(LATE_RULES, "known-step").of(output))?;
    let ([len], [step]) = (&counted.shape[..], &counted.steps[..]) else { return Err(Miss::ROOT) };
    let step = step.as_const().filter(|step| *step != 0).ok_or(miss!(LATE_RULES, "known-step").of(output))?;
    let start = counted.offset;
    let end = place.scope().add(&start, &place.scope().mul(len, &Dim::constant(step)));
    let mut edit = place.begin()?.removing(place.id).removing(range);
    let mut inputs = Vec::new();
    for number in [&start, &end, &Dim::constant(step)] {
        inputs.push(Some(match number.as_const() {
            Some(number) => edit.constant(output, "number", Tensor::scalar(number)),
            None => {
                let known = place.taken.scalar(place, number).ok_or(miss!(LATE_RULES, "ends-known").of(output))?;
                ensure(is_apart(place, known), miss!(LATE_RULES, "no-circle").of(known))?;
                known
            }
        }));
    }
    Ok(edit.inserting(NewNode::new("Range", inputs).named(node.name.clone()).output(output)))
}

/// Returns `true` if a value does not depend on the current node.
fn is_apart(place: &Place<'_>, value: ValueId) -> bool {
    let mut waiting = vec![value];
    let mut seen: Vec<NodeId> = Vec::new();
    while let Some(value) = waiting.pop() {
        let Some(id) = place.model.value(value).producer() else { continue };
        if id == place.id || seen.len() >= NODES {
            return false;
        }
        if seen.contains(&id) {
            continue;
        }
        seen.push(id);
        let Some(node) = place.model.node(id).filter(|node| node.subgraphs().next().is_none()) else { return false };
        waiting.extend(node.inputs().iter().flatten());
    }
    true
}
