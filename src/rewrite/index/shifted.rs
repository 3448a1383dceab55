//! A sum that only moves a Range: one Range that starts elsewhere, where the numbers it would start and end at are computed already.
//!
//! Law: `Range(a, b, d) + c = Range(a + c, b + c, d)`. The end is written as `a + c + len · d`, which gives the same length.

use super::positions::positions;
use crate::dim::Dim;
use crate::ir::{Edit, NewNode, NodeId, ValueId};
use crate::rewrite::Place;
use crate::tensor::{DType, Tensor};

/// How many nodes are looked at to tell that a number does not depend on a tensor.
const MAX_ABOVE: usize = 64;

/// `Add(Range(a, b, d), c)` and `Sub(Range(a, b, d), c)` become one Range, if nothing else reads the Range.
pub(super) fn shift(place: &Place<'_>) -> Option<Edit> {
    let output = place.output(0)?;
    let operands: Vec<ValueId> = place.node()?.inputs().iter().flatten().copied().collect();
    let range = operands.into_iter().find_map(|operand| {
        let (range, _) = place.producer(operand, "Range")?;
        place.model.is_read_only_by(operand, &[place.id]).then_some(range)
    })?;
    // Ranges whose length is a number are constants, or become that by other rules.
    let is_symbolic = place.shape(output)?.iter().any(|dim| dim.as_const().is_none());
    let counted = positions(place, output).filter(|counted| is_symbolic && counted.dtype == DType::Int64)?;
    let ([len], [step]) = (&counted.shape[..], &counted.steps[..]) else { return None };
    let step = step.as_const().filter(|step| *step != 0)?;
    let start = counted.offset;
    let end = place.scope().add(&start, &place.scope().mul(len, &Dim::constant(step)));
    let mut operands = Vec::new();
    for number in [&start, &end] {
        operands.push(match number.as_const() {
            Some(number) => Number::Constant(number),
            None => {
                let known = place.taken.scalar(place, number)?;
                Number::Value(Some(known).filter(|&known| is_apart(place, known))?)
            }
        });
    }
    operands.push(Number::Constant(step));
    let mut edit = place.edit()?.removing(place.id).removing(range);
    let mut inputs = Vec::new();
    for operand in operands {
        inputs.push(Some(match operand {
            Number::Value(value) => value,
            Number::Constant(number) => edit.constant(output, "number", Tensor::scalar(number)),
        }));
    }
    let node = NewNode::new("Range", inputs).named(place.node()?.name.clone()).output(output);
    Some(edit.inserting(node))
}

/// What a Range starts or ends at.
enum Number {
    /// It is there.
    Value(ValueId),
    /// It is to be written.
    Constant(i64),
}

/// Whether a value is computed without the node of the place.
fn is_apart(place: &Place<'_>, value: ValueId) -> bool {
    let mut waiting = vec![value];
    let mut seen: Vec<NodeId> = Vec::new();
    while let Some(value) = waiting.pop() {
        let Some(id) = place.model.value(value).producer() else { continue };
        if id == place.id || seen.len() >= MAX_ABOVE {
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
