//! If: infers and evaluates its branches.

use std::rc::Rc;

use super::premise::premises;
use crate::ir::{Fact, GraphId};
use crate::ops::join::{Join, stem_of};
use crate::ops::{Decline, EvalCx, EvalResult, InferCx, InferResult, Refusal, Site};

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
            // A branch that never runs may be malformed; its events are dropped.
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
            let ours = scope.supposing(&holds, || cx.infer_graph(then_branch, Vec::new()))?;
            let others = scope.supposing(&fails, || cx.infer_graph(else_branch, Vec::new()))?;
            if ours.len() != others.len() {
                return Err(Refusal::invalid("the branches have different numbers of outputs"));
            }
            let mut join = Join::either(&scope, &stem_of(cx)).under(holds, fails);
            Ok(ours.iter().zip(&others).map(|(a, b): (&Fact, &Fact)| join.facts(a, b)).collect())
        }
    }
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
