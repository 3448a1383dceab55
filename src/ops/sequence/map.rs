//! SequenceMap.

use std::sync::Arc;

use super::elements::{any_element, element_type, sequence};
use crate::ir::{Data, Fact, GraphId, Type};
use crate::ops::join::{element_of, stem_of};
use crate::ops::{Decline, EvalCx, EvalResult, InferCx, InferResult, Refusal, Site};

/// The cost of a call of the subgraph in addition to its nodes, in elementary operations.
const CALL_WORK: u64 = 20_000;

fn body_of(site: &Site<'_>) -> Result<GraphId, Refusal> {
    site.attr_graph("body")?.ok_or_else(|| Refusal::invalid("attribute 'body' is missing"))
}

pub(super) fn infer(cx: &mut InferCx<'_>) -> InferResult {
    let body = body_of(cx)?;
    element_type(cx, 0)?;
    let given = cx.inputs().iter().map(|input| match input {
        None => Fact::unknown(),
        Some(Fact { ty: Some(Type::Sequence(element)), .. }) => {
            element.as_ref().map_or_else(Fact::unknown, |element| any_element(cx, element))
        }
        Some(fact) => fact.clone(),
    });
    let given: Vec<Fact> = given.collect();
    if cx.model.graph(body).inputs().len() != given.len() {
        return Err(Refusal::invalid("the number of inputs of the subgraph differs from that of the node"));
    }
    let results = cx.infer_graph(body, given)?;
    let sequence = |result: Fact| match result.ty {
        None => Ok(Fact::of(Type::Sequence(None))),
        // A size computed inside may differ between elements.
        Some(ty @ Type::Tensor(_)) => {
            Ok(Fact::of(Type::Sequence(Some(Box::new(element_of(cx.scope(), &stem_of(cx), &ty))))))
        }
        Some(_) => Err(Refusal::invalid("an output of the subgraph is not a tensor")),
    };
    results.into_iter().map(sequence).collect()
}

pub(super) fn eval(cx: &mut EvalCx<'_>) -> EvalResult {
    let body = body_of(cx)?;
    let len = sequence(cx, 0)?.len();
    if cx.model.graph(body).inputs().len() != cx.inputs().len() {
        return Err(Decline::invalid("the number of inputs of the subgraph differs from that of the node"));
    }
    let mut results: Vec<Vec<Data>> = vec![Vec::new(); cx.model.graph(body).outputs().len()];
    for index in 0..len {
        cx.budget().take_work(CALL_WORK)?;
        let given = cx.inputs().iter().map(|input| match input {
            Some(Data::Sequence(items)) if items.len() == len => Ok(items.get(index).cloned()),
            Some(Data::Sequence(_)) => Err(Decline::invalid("the sequences have different lengths")),
            other => Ok(other.clone()),
        });
        let given = given.collect::<Result<Option<Vec<Data>>, _>>()?;
        let given = given.ok_or_else(|| Decline::invalid("an operand is missing"))?;
        for (column, result) in results.iter_mut().zip(cx.evaluate_graph(body, given)?) {
            if result.tensor().is_none() {
                return Err(Decline::invalid("an output of the subgraph is not a tensor"));
            }
            column.push(result);
        }
    }
    Ok(results.into_iter().map(|items| Data::Sequence(Arc::new(items))).collect())
}
