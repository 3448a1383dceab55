//! Evaluates nodes whose operands are constant.

use super::super::event::EventKind;
use super::Walk;
use crate::dim::Scope;
use crate::ir::{CustomOperator, Data, Fact, Model, Node, NodeId, Type, ValueId};
use crate::ops::Decline;
use crate::ops::interpret::{self, Environment};
use crate::ops::registry::Operator;
use std::rc::Rc;

impl Walk {
    pub(super) fn evaluate_node(
        &mut self,
        model: &Model,
        id: NodeId,
        node: &Node,
        inputs: &[Option<Fact>],
        operator: Option<&'static Operator>,
        facts: &mut [Fact],
    ) {
        let is_function = model.function_of(node).is_some();
        let repeats = match operator {
            Some(operator) => operator.deterministic,
            None => is_function || model.custom(node).is_some_and(CustomOperator::is_evaluated),
        };
        let unstated = self.unstated.get(&id).copied();
        if !repeats || unstated == Some(false) {
            return;
        }
        let data = |(input, fact): (&Option<ValueId>, &Option<Fact>)| match (input, fact) {
            (Some(value), Some(fact)) => fact.data().or_else(|| self.hidden.get(value)).cloned().map(Some),
            _ => Some(None),
        };
        let operands = node.inputs().iter().zip(inputs).map(data);
        let Some(operands) = operands.collect::<Option<Vec<Option<Data>>>>() else { return };
        let result = {
            let captured = node.subgraphs().flat_map(|graph| model.captures(graph));
            let facts = &self.facts;
            let look = |value: ValueId| facts.get(value).and_then(Fact::data).cloned();
            if captured.into_iter().any(|value| look(value).is_none()) {
                return;
            }
            let bindings = Rc::clone(&self.bindings);
            let environment = Environment { outer: &look, bindings: &bindings, ..Environment::of(model) };
            let attempt = self.budget.begin();
            let result = interpret::evaluate_node(&environment, id, node, operands, &self.budget, self.slice_rule, 0);
            if result.is_err() {
                self.budget.refund(id, attempt);
            }
            result
        };
        let results = match result {
            Ok(results) => results,
            Err(decline) => {
                let kind =
                    if matches!(decline, Decline::Invalid(_)) { EventKind::Invalid } else { EventKind::Declined };
                return self.tell(id, kind, decline.to_string());
            }
        };
        if unstated.is_some() {
            let known = node.outputs().iter().zip(results).filter_map(|(output, data)| Some(((*output)?, data)));
            self.hidden.extend(known);
            return;
        }
        for (fact, data) in facts.iter_mut().zip(results) {
            let computed = Fact::constant(data);
            // Inference and evaluation are independent implementations. If they differ, one is wrong, and the node is
            // not folded.
            if contradicts(&self.scope, fact, &computed) {
                let reason = format!("evaluation gives {:?}, inference {:?}", computed.ty, fact.ty);
                return self.tell(id, EventKind::Declined, reason);
            }
            // An empty sequence or optional has no element type; inference may know it.
            let ty = match (&computed.ty, fact.ty.take()) {
                (Some(Type::Sequence(None) | Type::Optional(None) | Type::Map(_, None)), Some(inferred)) => {
                    Some(inferred)
                }
                (Some(Type::Sequence(_)), Some(inferred)) => Some(inferred),
                _ => computed.ty.clone(),
            };
            *fact = Fact { ty, ..computed };
        }
    }
}

/// Returns `true` if a computed value contradicts its inferred fact.
fn contradicts(scope: &Scope, inferred: &Fact, computed: &Fact) -> bool {
    match (&inferred.ty, &computed.ty) {
        (Some(Type::Tensor(a)), Some(Type::Tensor(b))) => {
            let dtype = a.dtype.is_some() && a.dtype != b.dtype;
            let shape = match (&a.shape, &b.shape) {
                (Some(a), Some(b)) => a.len() != b.len() || a.iter().zip(b).any(|(a, b)| scope.eq(a, b).is_no()),
                _ => false,
            };
            dtype || shape
        }
        (Some(Type::Sequence(_)), Some(Type::Sequence(_))) | (Some(Type::Optional(_)), Some(Type::Optional(_))) => {
            false
        }
        (Some(Type::Map(a, _)), Some(Type::Map(b, _))) => a != b,
        (None, _) | (_, None) => false,
        _ => true,
    }
}
