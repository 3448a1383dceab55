//! Rewrites normalizations in basic operators to the form that runtimes recognize.
//!
//! Laws: `x · (1/√v) = x/√v` and `d·d = d²`, up to one rounding.
//!
//! ONNX Runtime fuses a normalization that consists of a Pow by 2, a mean, a sum, a Sqrt and a Div (SimplifiedLayerNormFusion,
//! LayerNormFusion), and no other form. Exporters write inverse roots, powers by a half, and products of a value with itself. If the opset
//! has the operator, [`normalization`] writes the operator instead. The fusion reads ε from the sum if ε is a scalar and the second
//! operand; if not, it assumes 10⁻⁵. So the rule writes the sum in this form.
//!
//! The nodes of a normalization are an idiom, so the rule rebuilds all of them, most without a change.

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

/// The forms of a node that runtimes do not recognize.
enum Spelling {
    /// `1/y`, which is removed.
    Inverse,
    /// `v^(−½)`, replaced by the root.
    InverseRoot,
    /// `v^½`.
    Root,
    /// `d·d`.
    Square,
    /// `ε + v`.
    Shift,
    Known,
}

/// Matches the quotient, or the product with an inverse.
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

/// Returns `true` if each Add among these nodes has a constant operand with one element.
fn has_single_epsilon(place: &Place<'_>, nodes: &[NodeId]) -> bool {
    let mut sums = nodes.iter().filter_map(|&id| place.model.node(id)).filter(|node| node.is("Add"));
    sums.all(|sum| sum.inputs().iter().flatten().any(|&a| place.tensor(a).is_some_and(|tensor| tensor.len() == 1)))
}

/// Returns a node of another operator with the metadata of this node only. The metadata of all replaced nodes together does not fit one
/// node.
fn instead(node: &Node, operator: &str, inputs: Vec<Option<ValueId>>) -> NewNode {
    NewNode { op_type: operator.into(), inputs, ..NewNode::like(node) }
}

/// Returns the form of a node of a normalization.
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
