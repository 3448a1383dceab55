//! Traits of resampling operators: nearest sampling of equal numbers is constant, and scales are positive.

use crate::dim::Dim;
use crate::ir::{Attribute, Fact, Node, Scalar, ValueId};
use crate::ops::traits::NodeFacts;
use crate::tensor::Tensor;

/// Returns the operand's number: nearest sampling copies elements.
pub(super) fn nearest_number(view: &NodeFacts<'_>, operand: &dyn Fn(usize) -> Option<Tensor>) -> Option<Tensor> {
    let is = |name: &str, text: &[u8]| matches!(view.node.attribute(name), Some(Attribute::String(held)) if held.as_ref() == text);
    let nearest = view.node.attribute("mode").is_none() || is("mode", b"nearest");
    (nearest && !is("coordinate_transformation_mode", b"tf_crop_and_resize")).then(|| operand(0)).flatten()
}

/// Returns lower bounds that follow from positive scales. A scale `k·n / n` is undefined at 0, so the size `n` is at least 1. The
/// same holds for divisors in quotients among the scales, directly or in a Concat, if they divide the dividend.
pub(super) fn needs(view: &NodeFacts<'_>) -> Vec<(Dim, i64)> {
    stated_needs(view).unwrap_or_default()
}

fn stated_needs(view: &NodeFacts<'_>) -> Option<Vec<(Dim, i64)>> {
    const PLACES: usize = 16;
    let NodeFacts { model, node, .. } = *view;
    // In Resize-11 and later, the region of interest precedes the scales.
    let scales = if node.inputs().len() > 2 { 2 } else { 1 };
    let computed = |value: ValueId| {
        let node = model.node(model.value(value).producer()?)?;
        model.function_of(node).is_none().then_some(node)
    };
    let source = computed(node.input(scales)?)?;
    let parts: Vec<&Node> = if source.is("Concat") {
        source.inputs().iter().flatten().take(PLACES).filter_map(|&part| computed(part)).collect()
    } else {
        vec![source]
    };
    let mut needs = Vec::new();
    for quotient in parts.into_iter().filter(|part| part.is("Div")) {
        let operand = |at: usize| {
            let elements = view.facts.get(quotient.input(at)?).and_then(Fact::elements);
            elements.filter(|elements| elements.len() <= PLACES)
        };
        let (Some(dividends), Some(divisors)) = (operand(0), operand(1)) else { continue };
        for (at, divisor) in divisors.iter().enumerate() {
            let Scalar::Real { num: divisor, .. } = divisor else { continue };
            // A single dividend broadcasts.
            let dividend = if dividends.len() == 1 { dividends.first() } else { dividends.get(at) };
            let Some(Scalar::Real { num: dividend, .. }) = dividend else { continue };
            let multiple = view.scope().quotient(dividend, divisor).is_some();
            if multiple && view.at_least(divisor, 0) {
                needs.push((divisor.clone(), 1));
            }
        }
    }
    Some(needs)
}
