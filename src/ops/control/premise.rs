//! Converts conditions to inequalities of dims: `Less(i, n)` holds if and only if `n − i − 1 ≥ 0`.

use super::super::InferCx;
use crate::dim::{Dim, Scope, Symbol};
use crate::ir::{Fact, Node, Scalar, ValueId};
use crate::ops::operator_of;

/// The largest number of parts of a condition that is examined.
const MOST_PARTS: usize = 32;

/// Returns expressions that are all at least 0 if and only if the boolean scalar `condition` equals `truth`. `None`
/// if there are no such expressions.
pub(super) fn premises(cx: &InferCx<'_>, condition: ValueId, truth: bool) -> Option<Vec<Dim>> {
    let mut found = Vec::new();
    let mut open = vec![(condition, truth)];
    let mut parts = 0;
    while let Some((value, truth)) = open.pop() {
        parts += 1;
        let fact = cx.walk.facts.get(value)?;
        if parts > MOST_PARTS || fact.static_len() != Some(1) {
            return None;
        }
        match fact.const_ints().as_deref() {
            Some([known]) if (*known != 0) == truth => continue,
            Some(_) => return None,
            None => {}
        }
        let node = cx.model.node(cx.model.value(value).producer()?)?;
        operator_of(cx.model, node).filter(|_| cx.model.function_of(node).is_none())?;
        match (node.canonical_domain(), node.op_type.as_str(), truth) {
            ("", "Identity" | "Squeeze" | "Unsqueeze" | "Reshape", _) => open.push((node.input(0)?, truth)),
            ("", "Not", _) => open.push((node.input(0)?, !truth)),
            ("", "And", true) | ("", "Or", false) => open.extend([(node.input(0)?, truth), (node.input(1)?, truth)]),
            ("", "Less" | "LessOrEqual" | "Greater" | "GreaterOrEqual", _) => found.push(compared(cx, node, truth)?),
            // `a = b  ⇔  a − b ≥ 0 and b − a ≥ 0`. Inequality has no such form.
            ("", "Equal", true) => {
                let (a, b) = compared_numbers(cx, node)?;
                found.extend([cx.scope().sub(&a, &b), cx.scope().sub(&b, &a)]);
            }
            _ => return None,
        }
    }
    Some(found)
}

/// Returns an expression that is at least 0 if and only if a comparison of two numbers equals `truth`.
fn compared(cx: &InferCx<'_>, node: &Node, truth: bool) -> Option<Dim> {
    let (a, b) = compared_numbers(cx, node)?;
    let scope = cx.scope();
    let (less, greater) = if node.op_type.starts_with("Less") { (a, b) } else { (b, a) };
    let or_equal = node.op_type.ends_with("Equal");
    let (large, small) = if truth { (greater, less) } else { (less, greater) };
    // a < b  ⇔  b − a − 1 ≥ 0, and not a ≤ b  ⇔  a − b − 1 ≥ 0
    let strict = i64::from(truth != or_equal);
    Some(scope.sub(&scope.sub(&large, &small), &Dim::constant(strict)))
}

/// Returns two integers that compare like the operands of a node: `x / p < y / q  ⇔  x·q < y·p`.
fn compared_numbers(cx: &InferCx<'_>, node: &Node) -> Option<(Dim, Dim)> {
    let (a, b) = (number(cx, node.input(0)?)?, number(cx, node.input(1)?)?);
    let scope = cx.scope();
    Some((scope.mul(&a.0, &Dim::constant(b.1)), scope.mul(&b.0, &Dim::constant(a.1))))
}

/// Returns the only element of a value, as a fraction.
fn number(cx: &InferCx<'_>, value: ValueId) -> Option<(Dim, i64)> {
    let elements = cx.walk.facts.get(value).and_then(Fact::elements)?;
    match elements.as_slice() {
        [Scalar::Int(number)] => Some((number.clone(), 1)),
        [Scalar::Real { num, den }] => Some((num.clone(), *den)),
        [Scalar::Float(known)] if known.fract() == 0.0 && known.abs() < f64::from(1 << 24) => {
            Some((Dim::constant(*known as i64), 1))
        }
        _ => None,
    }
}

/// Returns the number of iterations of a loop that only its condition ends. `after` is at least 0 if and only if the
/// condition holds after an iteration. `before` is the same before the first iteration; `None` means that the
/// condition is true there. `mark` is the first symbol of an iteration.
///
/// Law: `a − s·k ≥ 0  ⇔  k ≤ ⌊a / s⌋`. Let the condition hold after iteration `k` if and only if `k ≤ A`. If it is
/// true initially, the loop runs `1 + max(0, A + 1)` times. If the initial condition equals the one after iteration
/// −1, the loop runs `max(0, A + 2)` times.
pub(super) fn trips(scope: &Scope, after: &[Dim], before: Option<&[Dim]>, number: &Dim, mark: Symbol) -> Option<Dim> {
    let mut last: Option<Dim> = None;
    let mut expected = Vec::with_capacity(after.len());
    for slack in after {
        let step = step(scope, slack, number)?;
        let start = scope.add(slack, &scope.mul(&step, number));
        if start.symbols().into_iter().any(|symbol| symbol >= mark) {
            return None;
        }
        expected.push(scope.add(&start, &step));
        let bound = if step.is_const(1) { start } else { scope.floor_div(&start, &step) };
        last = Some(match last {
            None => bound,
            Some(last) => scope.min(&last, &bound),
        });
    }
    let last = last?;
    let zero = Dim::constant(0);
    let one = Dim::constant(1);
    match before {
        None => Some(scope.add(&one, &scope.max(&zero, &scope.add(&last, &one)))),
        Some(before) => {
            let same = |a: &Dim, b: &Dim| a == b || scope.eq(a, b).is_yes();
            let matches = |xs: &[Dim], ys: &[Dim]| xs.iter().all(|x| ys.iter().any(|y| same(x, y)));
            let alike = matches(before, &expected) && matches(&expected, before);
            alike.then(|| scope.max(&zero, &scope.add(&last, &Dim::constant(2))))
        }
    }
}

/// Returns the decrease of an expression per iteration, if it is a positive constant.
fn step(scope: &Scope, slack: &Dim, number: &Dim) -> Option<Dim> {
    let counter = number.as_symbol()?;
    let next = scope.add(number, &Dim::constant(1));
    let later = scope.substitute(slack, &|symbol| (symbol == counter).then(|| next.clone()));
    let step = scope.sub(slack, &later).as_const().filter(|&step| step >= 1)?;
    Some(Dim::constant(step))
}
