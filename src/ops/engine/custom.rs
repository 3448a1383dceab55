//! User-defined operators: converts the arguments and results of their functions.

use crate::dim::{Dim, Scope};
use crate::ir::{CustomNode, CustomOperand, CustomOperator, CustomType, Data, Fact};
use crate::ops::{Decline, EvalResult, Refusal, Site};

/// The largest number of elements that are passed individually: larger operands are not shapes.
const MAX_ELEMENTS: usize = 1024;

fn node<'a>(site: &Site<'a>, operands: Vec<Option<CustomOperand>>) -> CustomNode<'a> {
    let version = site.model.opset(site.node.graph(), site.node.canonical_domain());
    CustomNode { node: site.node, bindings: site.bindings, version, operands }
}

/// Infers the facts of a node's results by the user's function.
pub(super) fn infer(
    custom: &CustomOperator,
    site: &Site<'_>,
    inputs: &[Option<Fact>],
    scope: &Scope,
) -> Result<Vec<Fact>, Refusal> {
    let told = |dims: Vec<Dim>| dims.iter().map(|dim| scope.format(dim)).collect::<Vec<String>>();
    let operand = |fact: &Fact| CustomOperand {
        dtype: fact.dtype(),
        shape: fact.shape().map(|dims| told(dims.to_vec())),
        elements: fact.ints().filter(|ints| ints.len() <= MAX_ELEMENTS).map(told),
        tensor: fact.constant_tensor().cloned(),
    };
    let operands = inputs.iter().map(|fact| fact.as_ref().map(operand)).collect();
    let types = custom.infer(&node(site, operands)).map_err(Refusal::unsupported)?;
    (0..).zip(types).map(|(result, ty)| fact(custom, site, scope, result, &ty)).collect()
}

fn fact(
    custom: &CustomOperator,
    site: &Site<'_>,
    scope: &Scope,
    result: usize,
    ty: &CustomType,
) -> Result<Fact, Refusal> {
    let stem = || site.node.output(result).map_or("dim", |value| site.model.value(value).name.as_str());
    let size = |text: &String| {
        let dim = match text.trim() {
            "?" => return Ok(scope.fresh_dim(stem())),
            text => scope.parse_over(text, &|name| scope.lookup(name).is_some()),
        };
        match dim {
            Some(dim) if scope.ge(&dim, &Dim::constant(0)).is_yes() => Ok(dim),
            Some(_) => Err(Refusal::unsupported(format!(
                "inference of {custom:?} returns the size '{text}', which may be negative; return max(0, …) instead"
            ))),
            None => Err(Refusal::unsupported(format!(
                "inference of {custom:?} returns the size '{text}', which is not an expression in the dims of the operands"
            ))),
        }
    };
    let shape = ty.shape.as_ref().map(|sizes| sizes.iter().map(size).collect::<Result<Vec<Dim>, Refusal>>());
    Ok(Fact::tensor(Some(ty.dtype), shape.transpose()?))
}

/// Evaluates a node by the user's function.
pub(super) fn evaluate(custom: &CustomOperator, site: &Site<'_>, inputs: &[Option<Data>]) -> EvalResult {
    let operand = |(at, data): (usize, &Option<Data>)| {
        let Some(data) = data else { return Ok(None) };
        let tensor = data.tensor().ok_or_else(|| Decline::unsupported(format!("operand {at} is not a tensor")))?;
        Ok(Some(CustomOperand {
            dtype: Some(tensor.dtype()),
            shape: Some(tensor.shape().iter().map(usize::to_string).collect()),
            elements: None,
            tensor: Some(tensor.clone()),
        }))
    };
    let operands = inputs.iter().enumerate().map(operand).collect::<Result<Vec<_>, Decline>>()?;
    let results = custom
        .evaluate(&node(site, operands))
        .ok_or_else(|| Decline::unsupported(format!("this program cannot evaluate {}", site.node.operator())))?
        .map_err(Decline::unsupported)?;
    let wanted = site.node.outputs().len();
    if results.len() < wanted {
        let reason = format!("evaluation of {custom:?} returns {} of {wanted} results", results.len());
        return Err(Decline::unsupported(reason));
    }
    Ok(results.into_iter().map(Data::Tensor).collect())
}
