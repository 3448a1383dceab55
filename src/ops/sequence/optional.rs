//! Optionals.

use std::sync::Arc;

use super::lineage;
use crate::ir::{Data, Fact, Type};
use crate::ops::{Decline, EvalCx, EvalResult, InferCx, InferResult, Refusal, declared_fact};
use crate::tensor::{DType, Tensor};

pub(super) fn infer_optional(cx: &mut InferCx<'_>) -> InferResult {
    let inner = match (cx.input(0), cx.attr_type("type")?) {
        // Nested optionals could nest without limit.
        (Some(Fact { ty: Some(Type::Optional(_)), .. }), _) => {
            return Err(Refusal::invalid("an optional contains an optional"));
        }
        (Some(fact), _) => fact.ty.clone(),
        (None, Some(declared)) => declared_fact(cx.scope(), declared, &|_| None).ty,
        (None, None) => return Err(Refusal::invalid("both the operand and attribute 'type' are missing")),
    };
    Ok(vec![Fact::of(Type::Optional(inner.map(Box::new)))])
}

pub(super) fn eval_optional(cx: &mut EvalCx<'_>) -> EvalResult {
    if let Some(Data::Optional(_)) = cx.data(0) {
        return Err(Decline::invalid("an optional contains an optional"));
    }
    Ok(vec![Data::Optional(cx.data(0).cloned().map(Arc::new))])
}

pub(super) fn infer_has(cx: &mut InferCx<'_>) -> InferResult {
    let decided = match cx.input(0) {
        None if cx.version < 18 => return Err(Refusal::invalid("operand 0 is missing")),
        None => Some(false),
        Some(fact) => match &fact.ty {
            Some(Type::Optional(_)) => {
                cx.node.input(0).and_then(|value| lineage::optional(cx, value)).map(|inside| inside.is_some())
            }
            Some(_) if cx.version < 18 => return Err(Refusal::invalid("operand 0 is not an optional")),
            Some(_) => Some(true),
            None => None,
        },
    };
    Ok(vec![match decided {
        Some(answer) => Fact::constant(truth(answer)?),
        None => Fact::tensor(Some(DType::Bool), Some(Vec::new())),
    }])
}

fn truth(answer: bool) -> Result<Tensor, Refusal> {
    Ok(Tensor::from_bools(&[], &[answer])?)
}

pub(super) fn eval_has(cx: &mut EvalCx<'_>) -> EvalResult {
    let answer = match cx.data(0) {
        None | Some(Data::Optional(None)) => false,
        Some(Data::Optional(Some(_))) => true,
        Some(_) if cx.version < 18 => return Err(Decline::invalid("operand 0 is not an optional")),
        Some(_) => true,
    };
    Ok(vec![Data::Tensor(truth(answer)?)])
}

pub(super) fn infer_get(cx: &mut InferCx<'_>) -> InferResult {
    let fact = cx.required(0)?;
    Ok(vec![match &fact.ty {
        None => Fact::unknown(),
        Some(Type::Optional(inner)) => match cx.node.input(0).and_then(|value| lineage::optional(cx, value)) {
            Some(Some(inside)) => inside,
            Some(None) => return Err(Refusal::invalid("the optional is empty")),
            None => inner.as_ref().map_or_else(Fact::unknown, |inner| Fact::of((**inner).clone())),
        },
        Some(_) if cx.version < 18 => return Err(Refusal::invalid("operand 0 is not an optional")),
        Some(_) => fact.clone(),
    }])
}

pub(super) fn eval_get(cx: &mut EvalCx<'_>) -> EvalResult {
    match cx.data(0) {
        Some(Data::Optional(Some(inside))) => Ok(vec![(**inside).clone()]),
        Some(Data::Optional(None)) | None => Err(Decline::invalid("the optional is empty")),
        Some(_) if cx.version < 18 => Err(Decline::invalid("operand 0 is not an optional")),
        Some(other) => Ok(vec![other.clone()]),
    }
}
