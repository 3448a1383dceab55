//! Writes the mask of an attention in the form that runtimes fuse.
//!
//! Laws, up to the sign of a zero, which affects neither a sum with a score other than 0 nor a Softmax:
//!
//! * `Where(b, 0, l) = (1 − Cast(b))·l` for a flag `b` and a finite number `l`;
//! * `Where(d ≠ 0, l, d) = (1 − Cast(m = 1))·l` for `d = 1 − Cast(m)` of an integer `m`: only a 1 becomes the number 1.
//!
//! Exporters compute masks in many ways, most of them with indices that constant folding reduces to a Where. ONNX Runtime's transformer
//! optimizer matches a mask `[batch, length]` with two Unsqueezes, a Cast, a difference from 1 and a product (the form of BERT), and some
//! longer chains. So the rule writes this form, and keeps it in models that have it. A Where takes three nodes less, but the fused kernel
//! replaces fifteen nodes in each layer.
//!
//! The rule also turns a multiplication of the scores into a division: of two added products, the optimizer takes the first for the mask.
//!
//! If all sizes are static, the products are flattened for a Gemm instead ([`rows`](super::rows)). Exempt are masks of the second law,
//! which the optimizer matches by an Expand that is folded here.

use super::attention::{is_normalized, masked};
use super::magnitude::keeps_digits;
use super::rounded;
use crate::dim::Dim;
use crate::ir::{Edit, NewNode, NodeId, ValueId};
use crate::rewrite::miss::{Miss, ensure, prove};
use crate::rewrite::place::Place;
use crate::rewrite::rule::{Rule, miss};
use crate::tensor::{DType, Tensor};

pub(in crate::rewrite) const RULES: &[Rule] = &[Rule {
    name: "mask-as-product",
    law: "Where(b, 0, l) = (1 − Cast(b))·l, Where(1 − m, l, 1 − m) = (1 − Cast(m = 1))·l, s·q·kᵀ = q·kᵀ / s⁻¹ for a mask b or m and a large negative number l",
    sentence: "Rewrites the mask of an attention in the form that transformer optimizers recognize.",
    premises: &[
        (
            "self-attention",
            "all consumers of the mask are self-attentions: the queries, keys and values of each attention are matrix products of the same value. In the form with 1 − m, one self-attention among the consumers suffices",
        ),
        (
            "flags",
            "the mask b or m has one element per batch element and key, and size 1 on the axes of heads and queries",
        ),
        (
            "scaled",
            "the scores are multiplied or divided by one number, and the inverse of this number is neither subnormal nor infinite",
        ),
        ("negative", "l is one negative finite number, and the other choice of the Where is 0 or 1 − m"),
        (
            "open-sizes",
            "in the form with b, a dim of the mask is dynamic, because runtimes flatten matrix products with constant dims to rows",
        ),
    ],
    exact: false,
    operators: &["Where"],
    apply: mask,
}];

/// Matches the Where.
fn mask(place: &Place<'_>) -> Result<Edit, Miss> {
    let result = place.only_output().ok_or(Miss::ROOT)?;
    let dtype = place
        .dtype(result)
        .filter(|dtype| matches!(dtype, DType::Float | DType::Double | DType::Float16))
        .ok_or(miss!("flags").of(result))?;
    let &[Some(flags), Some(first), Some(second)] = place.root()?.inputs() else { return Err(Miss::ROOT) };
    let lowest = |value| place.scalar(value).filter(|number| number.is_finite() && *number < 0.0);
    let (lowest, counted) = match place.scalar(first).ok_or(miss!("scaled").of(first))? {
        0.0 => (lowest(second).ok_or(miss!("negative"))?, None),
        _ => (lowest(first).ok_or(miss!("negative"))?, Some(counted(place, flags, second).ok_or(miss!("negative"))?)),
    };
    ensure(is_broadcast_row(place.dims(flags)?), miss!("flags").of(flags))?;
    prove(place.compare_shapes(flags, result), miss!("flags").of(flags))?;
    let readers = place.model.users(result);
    let is_for_self = |&(id, slot): &_| masked(place, id, slot).is_some_and(|attention| attention.is_of_one_value);
    let are_for_self = match counted {
        Some(_) => readers.iter().any(is_for_self) && readers.iter().all(|&(id, _)| is_normalized(place, id)),
        None => !readers.is_empty() && readers.iter().all(is_for_self),
    };
    let mut source = matrix_of(place, counted.unwrap_or(flags)).ok_or(miss!("flags"))?;
    let is_open = place.dims(source)?.iter().any(|dim| dim.as_const().is_none());
    ensure(are_for_self, miss!("self-attention"))?;
    ensure(is_open || counted.is_some(), miss!("open-sizes"))?;
    ensure(!place.model.is_named(result), miss!("self-attention"))?;
    let mut edit = place.begin()?;
    let names = ["rows", "row", "kept", "masked"].map(|role| edit.new_value(result, role));
    let [rows, row, kept, masked] = names;
    if counted.is_some() && place.dtype(source).ok_or(miss!("flags").of(source))? != DType::Bool {
        let one = match place.dtype(source).ok_or(miss!("flags").of(source))? {
            DType::Int64 => Tensor::from_vec(&[], vec![1i64]).or(Err(miss!("flags")))?,
            DType::Int32 => Tensor::from_vec(&[], vec![1i32]).or(Err(miss!("flags")))?,
            _ => return Err(miss!("flags").of(source)),
        };
        let (one, keys) = (edit.constant(result, "key", one), edit.new_value(result, "keys"));
        edit.insert.push(NewNode::new("Equal", [Some(source), Some(one)]).output(keys));
        source = keys;
    }
    let unsqueeze = place.build(&mut edit, rows).unsqueeze(source, vec![1]);
    edit.insert.push(unsqueeze.output(rows));
    let unsqueeze = place.build(&mut edit, row).unsqueeze(rows, vec![2]);
    edit.insert.push(unsqueeze.output(row));
    let cast = place.build(&mut edit, kept).cast(row, dtype).ok_or(Miss::EXPRESSIBLE)?;
    edit.insert.push(cast.output(kept));
    let one = rounded(dtype, &[], &[1.0]).ok_or(Miss::COMPUTABLE)?;
    let one = edit.constant(result, "one", one);
    edit.insert.push(NewNode::new("Sub", [Some(one), Some(kept)]).output(masked));
    let lowest = edit.constant(result, "lowest", rounded(dtype, &[], &[lowest]).ok_or(Miss::COMPUTABLE)?);
    for (id, slot) in readers {
        divide_scores(place, &mut edit, id, slot)?;
    }
    place.instead(edit, NewNode::new("Mul", [Some(masked), Some(lowest)]))
}

/// Returns the integers `m` of `Where(d, l, d)` with `d = 1 − Cast(m)`, where the condition is `d` cast to a flag.
fn counted(place: &Place<'_>, flags: ValueId, difference: ValueId) -> Option<ValueId> {
    let (_, flag) = place.producer(flags, "Cast").filter(|(_, node)| node.input(0) == Some(difference))?;
    let (_, sub) = place.producer(difference, "Sub").filter(|_| place.opset.arithmetic_broadcasts())?;
    let (_, cast) = place.producer(sub.input(1)?, "Cast")?;
    let is_flag = flag.output(0).and_then(|flag| place.dtype(flag)) == Some(DType::Bool);
    (is_flag && place.scalar(sub.input(0)?)? == 1.0).then_some(cast.input(0)?)
}

/// Divides the scores with an added mask, if they were multiplied: of two products, optimizers would take the first for the mask.
fn divide_scores(place: &Place<'_>, edit: &mut Edit, sum: NodeId, slot: usize) -> Result<(), Miss> {
    let scores = place
        .model
        .node(sum)
        .ok_or(Miss::ROOT)?
        .input(1usize.checked_sub(slot).ok_or(Miss::COMPUTABLE)?)
        .ok_or(Miss::ROOT)?;
    let Some((id, node)) = place.producer(scores, "Mul") else { return Ok(()) };
    // Two attentions read the same scores.
    if edit.remove.contains(&id) {
        return Ok(());
    }
    let &[Some(a), Some(b)] = node.inputs() else { return Err(Miss::ROOT) };
    let (product, factor) = if place.tensor(a).is_some() { (b, a) } else { (a, b) };
    let divisor = place.scalar(factor).ok_or(miss!("scaled").of(factor))?.recip();
    let dtype = place.dtype(scores).filter(|&dtype| keeps_digits(dtype, divisor)).ok_or(miss!("scaled").of(scores))?;
    let shape: Vec<usize> = place.tensor(factor).ok_or(miss!("self-attention").of(factor))?.shape().to_vec();
    let divisor = edit.constant(scores, "divisor", rounded(dtype, &shape, &[divisor]).ok_or(Miss::COMPUTABLE)?);
    let division = NewNode::new("Div", [Some(product), Some(divisor)]).named(node.name.clone());
    edit.remove.push(id);
    edit.insert.push(division.output(scores));
    Ok(())
}

/// Returns `true` for the dims of one row per batch, with size 1 for heads and queries.
fn is_broadcast_row(dims: &[Dim]) -> bool {
    matches!(dims, [_, heads, queries, _] if heads.is_const(1) && queries.is_const(1))
}

/// Returns the flags of rank 2 from which a layout makes these of rank 4.
fn matrix_of(place: &Place<'_>, flags: ValueId) -> Option<ValueId> {
    let mut source = flags;
    while place.shape(source)?.len() != 2 {
        source = place.layout(source)?.1.input(0)?;
    }
    let ([batch, .., keys], [first, last]) = (place.shape(flags)?, place.shape(source)?) else { return None };
    let same = |a: &Dim, b: &Dim| place.scope().eq(a, b).is_yes();
    (same(batch, first) && same(keys, last)).then_some(source)
}

/// Returns the nodes of a mask in this form, if it ends at the current node and an attention reads it.
pub(super) fn read(place: &Place<'_>) -> Option<Vec<NodeId>> {
    let result = place.only_output()?;
    let &[Some(a), Some(b)] = place.node()?.inputs() else { return None };
    let (difference, _) =
        [(a, b), (b, a)].into_iter().find(|&(_, lowest)| place.scalar(lowest).is_some_and(|l| l < 0.0))?;
    let (sub, node) = place.producer(difference, "Sub")?;
    if place.scalar(node.input(0)?)? != 1.0 {
        return None;
    }
    let mut nodes = vec![place.id, sub];
    let mut value = node.input(1)?;
    if let Some((cast, node)) = place.producer(value, "Cast") {
        nodes.push(cast);
        value = node.input(0)?;
    }
    for axis in [2, 1] {
        let (id, node) = place.producer(value, "Unsqueeze")?;
        let inner = node.input(0)?;
        if place.read(node).ones()? != [axis] || place.shape(inner)?.len() != axis + 1 {
            return None;
        }
        nodes.push(id);
        value = inner;
    }
    let is_read = |&(id, slot): &(NodeId, usize)| masked(place, id, slot).is_some();
    place.model.users(result).iter().any(is_read).then_some(nodes)
}
