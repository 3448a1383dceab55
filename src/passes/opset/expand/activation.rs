//! Expands activation functions of one element.

use crate::ir::{Attribute, NewNode, ValueId};
use crate::passes::opset::draft::NodeDraft;
use crate::tensor::DType;

/// Writes `x·½·(1 + erf(x / √2))` in the spelling that runtimes recognize, or the tanh approximation.
pub(in crate::passes::opset) fn gelu(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    let (x, dtype) = (draft.operand(0)?, draft.known_dtype(0)?);
    let approximation = draft.text("approximate", "none")?;
    let (one, half) = (draft.number_of(dtype, "one", 1.0)?, draft.number_of(dtype, "half", 0.5)?);
    let bent = match approximation.as_str() {
        "none" => {
            let root = draft.number_of(dtype, "root", std::f64::consts::SQRT_2)?;
            let scaled = draft.op("Div", &[x, root], "scaled");
            draft.op("Erf", &[scaled], "erf")
        }
        "tanh" => {
            let factor = draft.number_of(dtype, "factor", 0.044715)?;
            let root = draft.number_of(dtype, "root", (2.0 / std::f64::consts::PI).sqrt())?;
            let square = draft.op("Mul", &[x, x], "square");
            let cube = draft.op("Mul", &[x, square], "cube");
            let cube = draft.op("Mul", &[factor, cube], "cube");
            let sum = draft.op("Add", &[x, cube], "sum");
            let scaled = draft.op("Mul", &[root, sum], "scaled");
            draft.op("Tanh", &[scaled], "tanh")
        }
        other => return Err(format!("attribute 'approximate' is '{other}'; correct the model")),
    };
    let raised = draft.op("Add", &[bent, one], "raised");
    let product = draft.op("Mul", &[x, raised], "product");
    draft.replace(NewNode::new("Mul", [Some(product), Some(half)]));
    Ok(())
}

/// Expands HardSwish: `x·max(0, min(1, x/6 + ½))`.
pub(in crate::passes::opset) fn hard_swish(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    let (x, dtype) = (draft.operand(0)?, draft.known_dtype(0)?);
    let gate = if dtype == DType::Float {
        let gate = NewNode::new("HardSigmoid", [Some(x)]);
        let gate = gate.with("alpha", Attribute::Float(1.0 / 6.0)).with("beta", Attribute::Float(0.5));
        draft.before(gate, "gate")
    } else {
        // Runtimes only support HardSigmoid of float32.
        let alpha = draft.number_of(dtype, "alpha", 1.0 / 6.0)?;
        let (zero, half) = (draft.number_of(dtype, "zero", 0.0)?, draft.number_of(dtype, "half", 0.5)?);
        let one = draft.number_of(dtype, "one", 1.0)?;
        let scaled = draft.op("Mul", &[x, alpha], "scaled");
        let raised = draft.op("Add", &[scaled, half], "raised");
        let low = draft.op("Min", &[raised, one], "low");
        draft.op("Max", &[low, zero], "gate")
    };
    draft.replace(NewNode::new("Mul", [Some(x), Some(gate)]));
    Ok(())
}

/// Expands Mish: `x·tanh(softplus(x))`.
pub(in crate::passes::opset) fn mish(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    let x = draft.operand(0)?;
    let soft = draft.op("Softplus", &[x], "soft");
    let gate = draft.op("Tanh", &[soft], "gate");
    draft.replace(NewNode::new("Mul", [Some(x), Some(gate)]));
    Ok(())
}

/// Expands Swish: `x·sigmoid(α·x)`.
pub(in crate::passes::opset) fn swish(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    let x = draft.operand(0)?;
    let alpha = draft.float("alpha")?.unwrap_or(1.0);
    let scaled = if alpha == 1.0 { x } else { scaled_by(draft, x, f64::from(alpha), "Mul")? };
    let gate = draft.op("Sigmoid", &[scaled], "gate");
    draft.replace(NewNode::new("Mul", [Some(x), Some(gate)]));
    Ok(())
}

/// Expands SwiGLU: `swish(a)·b`.
pub(in crate::passes::opset) fn swish_product(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    let mut gate = NewNode::new("Swish", [draft.input(0)]);
    gate.attributes = draft.node.attributes.clone();
    let gate = draft.before(gate, "gate");
    draft.replace(NewNode::new("Mul", [Some(gate), draft.input(1)]));
    Ok(())
}

fn scaled_by(draft: &mut NodeDraft<'_>, x: ValueId, number: f64, op: &'static str) -> Result<ValueId, String> {
    let dtype = draft.known_dtype(0)?;
    let number = draft.number_of(dtype, "alpha", number)?;
    Ok(draft.op(op, &[x, number], "scaled"))
}

/// Expands Celu: `α·elu(x / α)`.
pub(in crate::passes::opset) fn celu(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    let x = draft.operand(0)?;
    let alpha = draft.float("alpha")?.unwrap_or(1.0);
    if alpha == 1.0 {
        draft.replace(NewNode::new("Elu", [Some(x)]));
        return Ok(());
    }
    let scaled = scaled_by(draft, x, f64::from(alpha), "Div")?;
    let bent = draft.op("Elu", &[scaled], "bent");
    let dtype = draft.known_dtype(0)?;
    let alpha = draft.number_of(dtype, "alpha", f64::from(alpha))?;
    draft.replace(NewNode::new("Mul", [Some(bent), Some(alpha)]));
    Ok(())
}

/// Expands ThresholdedRelu: `x > α ? x : 0`.
pub(in crate::passes::opset) fn thresholded(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    let (x, dtype) = (draft.operand(0)?, draft.known_dtype(0)?);
    let alpha = f64::from(draft.float("alpha")?.unwrap_or(1.0));
    let (alpha, zero) = (draft.number_of(dtype, "alpha", alpha)?, draft.number_of(dtype, "zero", 0.0)?);
    let greater = draft.op("Greater", &[x, alpha], "greater");
    draft.replace(NewNode::new("Where", [Some(greater), Some(x), Some(zero)]));
    Ok(())
}
