//! If.

use std::rc::Rc;

use super::premise::premises;
use super::{Join, stem_of};
use crate::ir::{Fact, GraphId};
use crate::ops::{Decline, EvalCx, EvalResult, InferCx, InferResult, Refusal, Site};
use crate::tensor::{DType, Tensor};

fn branches(site: &Site<'_>) -> Result<(GraphId, GraphId), Refusal> {
    let graph = |name| site.attr_graph(name)?.ok_or_else(|| Refusal::invalid(format!("attribute '{name}' is missing")));
    Ok((graph("then_branch")?, graph("else_branch")?))
}

pub(super) fn infer(cx: &mut InferCx<'_>) -> InferResult {
    let (then_branch, else_branch) = branches(cx)?;
    let decided = match cx.const_ints(0).as_deref() {
        Some([condition]) => Some(*condition != 0),
        Some(_) => return Err(Refusal::invalid("the condition is not a single element")),
        None => None,
    };
    match decided {
        Some(condition) => {
            let (taken, dead) = if condition { (then_branch, else_branch) } else { (else_branch, then_branch) };
            // A branch that is never taken may well be malformed: that is no news.
            let told = cx.walk.events.len();
            let evaluate = std::mem::replace(&mut cx.walk.evaluate, false);
            let _ = cx.infer_graph(dead, Vec::new());
            cx.walk.evaluate = evaluate;
            cx.walk.events.truncate(told);
            cx.infer_graph(taken, Vec::new())
        }
        None => {
            let scope = Rc::clone(cx.walk.scope());
            let premise = |truth| cx.node.input(0).and_then(|value| premises(cx, value, truth)).unwrap_or_default();
            let (holds, fails) = (premise(true), premise(false));
            let ours = scope.supposing(&holds, || chosen(cx, then_branch, true))?;
            let others = scope.supposing(&fails, || chosen(cx, else_branch, false))?;
            if ours.len() != others.len() {
                return Err(Refusal::invalid("the branches have different numbers of outputs"));
            }
            let mut join = Join::either(&scope, &stem_of(cx)).under(holds, fails);
            Ok(ours.iter().zip(&others).map(|(a, b): (&Fact, &Fact)| join.facts(a, b)).collect())
        }
    }
}

/// A branch, in which the condition is decided: it may well be read there.
fn chosen(cx: &mut InferCx<'_>, branch: GraphId, truth: bool) -> Result<Vec<Fact>, Refusal> {
    let Some(condition) = cx.node.input(0) else { return cx.infer_graph(branch, Vec::new()) };
    let known = cx.walk.facts.get(condition).cloned().unwrap_or_default();
    let decided = match known.static_shape().filter(|_| known.dtype() == Some(DType::Bool)) {
        Some(shape) if known.static_len() == Some(1) => Fact::constant(Tensor::from_bools(&shape, &[truth])?),
        _ => return cx.infer_graph(branch, Vec::new()),
    };
    cx.walk.facts.set(condition, decided);
    let found = cx.infer_graph(branch, Vec::new());
    cx.walk.facts.set(condition, known);
    found
}

pub(super) fn eval(cx: &mut EvalCx<'_>) -> EvalResult {
    let (then_branch, else_branch) = branches(cx)?;
    let condition = cx.tensor(0)?.bools().ok_or_else(|| Decline::invalid("the condition is not a bool"))?;
    match condition.as_slice() {
        [true] => cx.evaluate_graph(then_branch, Vec::new()),
        [false] => cx.evaluate_graph(else_branch, Vec::new()),
        _ => Err(Decline::invalid("the condition is not a single element")),
    }
}
