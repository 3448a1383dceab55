//! A sum that only moves a Range: one Range that starts elsewhere, where the numbers it would start and end at are computed already. A product
//! of a Range and a number: one Range of larger steps.
//!
//! Laws: `Range(a, b, d) + c = Range(a + c, b + c, d)`, whose end is written as `a + c + len · d`, which gives the same length; and
//! `Range(a, b, d) · k = Range(a · k, b · k, d · k)` for `k > 0`. The end is a size then, of which one number is multiplied and not all
//! of the Range, and the size planner multiplies several at once, or finds the product among other sizes.

use super::positions::positions;
use crate::dim::Dim;
use crate::ir::{Edit, NewNode, NodeId, ValueId};
use crate::rewrite::{Place, Rule};
use crate::tensor::{DType, Tensor};

/// Ranges from a number on in steps of one are what rules for positions look for, so this waits for them.
pub(in crate::rewrite) const STEP_RULES: &[Rule] = &[Rule {
    name: "range-and-product",
    law: "Range(a, b, d) · k = Range(a · k, b · k, d · k) for k > 0",
    sentence: "Merges a product with a number into the step of a Range.",
    premises: &[
        ("read-once", "the product is the only consumer of the Range"),
        ("64-bits", "the numbers have 64 bits"),
        ("small-factor", "the factor is one number above 0, and at most 2¹⁶"),
        ("known-steps", "start and step of the Range are constants of at most 2²⁰"),
        (
            "ends-at-a-size",
            "its end is an expression in dims, which is at least 0 and does not overflow with the factor",
        ),
    ],
    exact: true,
    operators: &["Mul"],
    apply: multiply,
}];

/// The most that a Range is multiplied by.
const MAX_FACTOR: i64 = 1 << 16;

/// The most, on either side of 0, that it begins at or goes on by.
const MAX_STEP: u64 = 1 << 20;

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

/// `Mul(Range(a, b, d), k)` becomes one Range, if nothing else reads that of smaller steps.
fn multiply(place: &Place<'_>) -> Option<Edit> {
    let node = place.node()?;
    let output = node.output(0)?;
    let [Some(left), Some(right)] = *node.inputs() else { return None };
    let (id, range, factor) = [(left, right), (right, left)].into_iter().find_map(|(multiplied, factor)| {
        let (id, range) = place.producer(multiplied, "Range")?;
        place.model.is_read_only_by(multiplied, &[place.id]).then_some((id, range, factor))
    })?;
    let number = |value: ValueId| match place.const_ints(value)?[..] {
        [number] => Some(number),
        _ => None,
    };
    let factor = number(factor).filter(|factor| (1..=MAX_FACTOR).contains(factor))?;
    if place.dtype(output)? != DType::Int64 || place.shape(output)?.len() != 1 {
        return None;
    }
    let (start, step) = (number(range.input(0)?)?, number(range.input(2)?)?);
    if start.unsigned_abs() > MAX_STEP || step.unsigned_abs() > MAX_STEP {
        return None;
    }
    let limit = range.input(1)?;
    let fact = place.fact(limit).filter(|fact| fact.rank() == Some(0) && fact.constant_tensor().is_none())?;
    let [size] = &fact.ints()?[..] else { return None };
    let (scope, end) = (place.scope(), place.scope().mul(size, &Dim::constant(factor)));
    let is_size = scope.is_of_sizes(&end) && scope.ge(size, &Dim::constant(0)).is_yes();
    if !is_size || !scope.fits_bits(&end, 64, true) {
        return None;
    }
    let mut edit = place.edit()?.removing(place.id).removing(id);
    let known = place.taken.scalar(place, &end).filter(|&known| is_apart(place, known));
    let end = known.unwrap_or_else(|| {
        let factor = edit.constant(output, "factor", Tensor::scalar(factor));
        let end = edit.new_value(limit, "multiple");
        edit.insert.push(NewNode::new("Mul", [Some(limit), Some(factor)]).output(end));
        end
    });
    let first = edit.constant(output, "number", Tensor::scalar(start.checked_mul(factor)?));
    let step = edit.constant(output, "number", Tensor::scalar(step.checked_mul(factor)?));
    let product = NewNode::new("Range", [Some(first), Some(end), Some(step)]).named(node.name.clone());
    Some(edit.inserting(product.output(output)))
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
