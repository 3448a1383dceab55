//! Normalizations that stay spelled out, in the spelling that runtimes know.
//!
//! Laws: `x · (1/√v) = x/√v` and `d·d = d²`, up to one rounding.
//!
//! ONNX Runtime makes one kernel of a normalization that is spelled as a Pow by 2, a mean, a sum, a Sqrt and a Div
//! (SimplifiedLayerNormFusion, LayerNormFusion), and of no other spelling. Exporters write inverse roots, powers by a half, and products
//! of a value with itself. Where the operator set has the operator, [`normalization`] writes that instead. Of the sum the kernel reads ε
//! where it is a single number behind the mean, and takes 10⁻⁵ else, so the sum is written like that.
//!
//! The nodes of a normalization are an idiom, so all of them are written anew, most as they were.

use super::pattern::Reader;
use super::{normalization, rounded};
use crate::ir::{Edit, NewNode, Node, NodeId, ValueId};
use crate::rewrite::miss::{Miss, ensure, prove};
use crate::rewrite::place::Place;
use crate::rewrite::rule::{Rule, miss};
use crate::sort;
use crate::tensor::DType;

pub(in crate::rewrite) const RULES: &[Rule] = &[Rule {
    name: "normalization-as-quotient",
    law: "x · (1/√v) = x/√v, d·d = d², where v = mean(d²) + ε",
    sentence: "Rewrites a decomposed normalization in the form that runtimes fuse: a division by a square root, and Pow for squares.",
    premises: &[
        (
            "normalization",
            "x/√v is a layer normalization or an RMS normalization: v is the sum of a mean of squares and a positive ε",
        ),
        (
            "has-rows",
            "x has rank 2 or more. If x is a vector and the scale a scalar, ONNX Runtime fuses the normalization into a node without the required operand for the scale",
        ),
        (
            "wide-axis",
            "the last axis of x is proved not to have size 1. ONNX Runtime rejects a scale that broadcasts an axis of size 1 to a larger size",
        ),
        (
            "epsilon-read",
            "the element type is float, and ε has one element, because ONNX Runtime may replace any other ε by 10⁻⁵",
        ),
        (
            "same-shape",
            "x/√v has the rank of x. If the constant ε has more axes than x, ONNX Runtime's kernel of the fused normalization ignores these axes",
        ),
        (
            "not-known",
            "the normalization does not have this form yet, and the model's operator set contains no normalization operator that can replace the nodes",
        ),
        ("one-reader", "the inverse 1/√v has no other consumer"),
    ],
    exact: false,
    operators: &["Mul", "Div"],
    apply: quotient,
}];

/// What of a normalization is spelled otherwise than runtimes know it.
enum Spelling {
    /// `1/y`, which is left out.
    Inverse,
    /// `v^(−½)`, of which the root stays.
    InverseRoot,
    /// `v^½`.
    Root,
    /// `d·d`.
    Square,
    /// `ε + v`.
    Shift,
    Known,
}

/// Looks at the quotient, or the product with an inverse.
fn quotient(place: &Place<'_>) -> Result<Edit, Miss> {
    let result = place.only_output().ok_or(Miss::ROOT)?;
    let dtype = place.dtype(result).filter(|dtype| dtype.is_float()).ok_or(miss!("epsilon-read").of(result))?;
    let mut reader = Reader { place, nodes: Vec::new(), dtype };
    let found = normalization::read(&mut reader, result).or(Err(miss!("normalization")))?;
    let dims = place.dims(result)?;
    ensure(dtype == DType::Float, miss!("epsilon-read"))?;
    ensure(!place.opset.has(found.operator) && place.opset.arithmetic_broadcasts(), miss!("not-known"))?;
    ensure(dims.len() >= 2, miss!("has-rows").of(result))?;
    let is_wide = dims.last().is_some_and(|dim| !matches!(dim.as_const(), None | Some(1)));
    ensure(is_wide, miss!("wide-axis").of(result))?;
    prove(place.compare_shapes(found.x, result), miss!("same-shape").of(found.x))?;
    ensure(has_single_epsilon(place, &reader.nodes), miss!("epsilon-read"))?;
    let mut nodes = reader.nodes;
    sort::by_key(&mut nodes, |&id| place.model.order_of(id));
    nodes.dedup();
    let spelled = nodes
        .iter()
        .map(|&id| Some((id, place.model.node(id)?)))
        .collect::<Option<Vec<_>>>()
        .ok_or(miss!("normalization"))?;
    let spelled: Vec<_> = spelled.into_iter().map(|(id, node)| (id, node, spelling(place, id, node))).collect();
    ensure(
        !spelled.iter().all(|(.., spelling)| matches!(spelling, Spelling::Known | Spelling::Shift)),
        miss!("not-known"),
    )?;
    let mut edit = place.begin()?;
    let mut divisor = None;
    for (id, node, spelling) in spelled {
        edit.remove.push(id);
        let output = node.output(0).ok_or(Miss::ROOT)?;
        match spelling {
            Spelling::Inverse => divisor = Some((output, *node.inputs().last().ok_or(Miss::ROOT)?)),
            Spelling::InverseRoot => {
                let root = edit.new_value(output, "root");
                divisor = Some((output, Some(root)));
                edit.insert.push(instead(node, "Sqrt", vec![node.input(0)]).output(root));
            }
            Spelling::Root => {
                edit.insert.push(instead(node, "Sqrt", vec![node.input(0)]).output(output));
            }
            Spelling::Square => {
                let two = Some(edit.constant(output, "exponent", rounded(dtype, &[], &[2.0]).ok_or(Miss::COMPUTABLE)?));
                edit.insert.push(instead(node, "Pow", vec![node.input(0), two]).output(output));
            }
            Spelling::Shift => {
                let &[Some(a), Some(b)] = node.inputs() else { return Err(Miss::ROOT) };
                edit.insert.push(instead(node, "Add", vec![Some(b), Some(a)]).output(output));
            }
            Spelling::Known if id == place.id => {
                let quotient = match divisor {
                    Some((inverse, root)) => {
                        let x = node.inputs().iter().flatten().copied().find(|&operand| operand != inverse);
                        instead(node, "Div", vec![x, root])
                    }
                    None => NewNode::like(node),
                };
                edit.insert.push(quotient.output(output));
            }
            Spelling::Known => edit.insert.push(NewNode::like(node).output(output)),
        }
    }
    ensure(divisor.is_none_or(|(inverse, _)| place.is_internal(inverse, &[place.id])), miss!("one-reader"))?;
    Ok(edit)
}

/// Whether the sum of a mean and ε among these nodes has an ε of one element.
fn has_single_epsilon(place: &Place<'_>, nodes: &[NodeId]) -> bool {
    let mut sums = nodes.iter().filter_map(|&id| place.model.node(id)).filter(|node| node.is("Add"));
    sums.all(|sum| sum.inputs().iter().flatten().any(|&a| place.tensor(a).is_some_and(|tensor| tensor.len() == 1)))
}

/// A node of another operator, with what this one says of where it comes from: what all that are written anew say is too much for one.
fn instead(node: &Node, operator: &str, inputs: Vec<Option<ValueId>>) -> NewNode {
    NewNode { op_type: operator.into(), inputs, ..NewNode::like(node) }
}

/// How a node of a normalization is spelled.
fn spelling(place: &Place<'_>, id: NodeId, node: &Node) -> Spelling {
    let number = |value: Option<ValueId>| value.and_then(|value| place.scalar(value));
    let &[a, b] = node.inputs() else {
        return if node.is("Reciprocal") { Spelling::Inverse } else { Spelling::Known };
    };
    match node.op_type.as_str() {
        "Div" if id != place.id && number(a) == Some(1.0) => Spelling::Inverse,
        "Pow" if number(b) == Some(-0.5) => Spelling::InverseRoot,
        "Pow" if number(b) == Some(0.5) => Spelling::Root,
        "Mul" if a == b && id != place.id => Spelling::Square,
        "Add" if number(a).is_some() => Spelling::Shift,
        _ => Spelling::Known,
    }
}
