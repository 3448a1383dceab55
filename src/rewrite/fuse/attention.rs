//! Recognizes the parts of scaled dot-product attention with heads, so that rules leave them to the fusions of runtimes.
//!
//! Law: `softmax(s·q·kᵀ + mask)·v`, where `q`, `k` and `v` are products with separate weights, plus a bias, split into heads by a Reshape
//! and a Transpose. Transformer optimizers match these three products. The nodes between the two products of the attention are not checked
//! here, because masks have many forms.

use super::quick_gelu::leads_to_quick;
use crate::ir::{Node, NodeId, ValueId};
use crate::ops::traits::traits_of;
use crate::rewrite::place::Place;

/// The most nodes between a projection and its attention. A longer path leads into another layer.
const MOST_BEFORE: usize = 8;

/// The most values that are visited after an attention. Without it, each layer visits all later ones, N² for N layers.
const MOST_BEHIND: usize = 40;

/// The most nodes between the scores and the product with the values. Without it, each product visits all later layers.
const MOST_BETWEEN: usize = 32;

/// The role of a product in an attention.
pub(super) struct Projection {
    /// `true` if a bias is added to it.
    pub has_bias: bool,
    /// The product of the attention that reads its heads.
    pub attention: NodeId,
}

/// Returns the attention for which a product is split into heads, if the product has no other use.
pub(super) fn projection(place: &Place<'_>, product: ValueId) -> Option<Projection> {
    let (mut value, mut has_bias, mut parted, mut turned) = (product, false, false, false);
    for _ in 0..MOST_BEFORE {
        let users = place.model.users(value);
        let &[(id, slot)] = users.as_slice() else { return None };
        let node = place.model.node(id).filter(|_| !place.model.is_named(value))?;
        if node.is("MatMul") {
            return (parted && turned && is_attention(place, id, slot)?)
                .then_some(Projection { has_bias, attention: id });
        }
        match node.op_type.as_str() {
            "Add" => {
                let other = node.input(1usize.checked_sub(slot)?)?;
                has_bias |= place.tensor(other).is_some_and(|tensor| tensor.rank() == 1);
            }
            "Mul" | "Div" => {
                place.scalar(node.input(1usize.checked_sub(slot)?)?)?;
            }
            "Reshape" => parted |= place.shape(node.output(0)?)?.len() >= 3,
            "Transpose" => turned = true,
            _ => return None,
        }
        value = node.output(0)?;
    }
    None
}

/// Returns `true` if a MatMul computes the scores of an attention, or multiplies weights by values.
fn is_attention(place: &Place<'_>, id: NodeId, slot: usize) -> Option<bool> {
    let node = place.model.node(id)?;
    let weights = slot == 1 && comes_from_scores(place, node.input(0)?);
    Some(weights || leads_to_softmax(place, node.output(0)?))
}

/// Returns `true` if a value derives from a Softmax of scores through element-wise operators and movements.
fn comes_from_scores(place: &Place<'_>, weights: ValueId) -> bool {
    let (mut open, mut seen, mut normalized) = (vec![weights], 0, false);
    while let Some(value) = open.pop() {
        let Some(node) = place.model.value(value).producer().and_then(|id| place.model.node(id)) else { continue };
        seen += 1;
        if seen > MOST_BETWEEN {
            return false;
        }
        if node.is("MatMul") && normalized {
            return true;
        }
        normalized |= node.is("Softmax");
        if is_between(place, node) {
            open.extend(node.inputs().iter().flatten());
        }
    }
    false
}

/// Returns `true` if a Softmax reads a value, directly or through element-wise operators and movements.
fn leads_to_softmax(place: &Place<'_>, scores: ValueId) -> bool {
    let mut value = scores;
    for _ in 0..MOST_BEFORE {
        let users = place.model.users(value);
        let &[(id, _)] = users.as_slice() else { return false };
        let Some(node) = place.model.node(id) else { return false };
        if node.is("Softmax") {
            return true;
        }
        let Some(result) = node.output(0).filter(|_| is_between(place, node)) else { return false };
        value = result;
    }
    false
}

/// Returns `true` if a node scales, masks, normalizes or moves scores.
fn is_between(place: &Place<'_>, node: &Node) -> bool {
    let traits = traits_of(place.model, node);
    node.is("Softmax") || traits.moves.is_some() || traits.pointwise.is_some()
}

/// Returns `true` if transformer optimizers may match the attention of this product, judged by the nodes between the scores and the
/// Softmax. They match divided scores, and masks that a Where selects or that have the form of BERT. Unscaled scores have their factor in
/// the weights, but the fused kernels of these optimizers always scale.
pub(super) fn is_recognised(place: &Place<'_>, product: NodeId) -> bool {
    let scores = || {
        let node = place.model.node(product)?;
        let weights = node.input(0)?;
        if place.producer(weights, "Softmax").is_some() {
            return place.producer(weights, "Softmax")?.1.input(0);
        }
        let mut value = node.output(0)?;
        for _ in 0..MOST_BEFORE {
            let &[(id, _)] = place.model.users(value).as_slice() else { return None };
            let node = place.model.node(id)?;
            if node.is("Softmax") {
                return node.input(0);
            }
            value = node.output(0).filter(|_| is_between(place, node))?;
        }
        None
    };
    let Some(scores) = scores() else { return true };
    let is_of = |value: ValueId, operator: &str| place.producer(value, operator).is_some();
    let is_mask = |value: ValueId| {
        let selects = place.producer(value, "Where").and_then(|(_, node)| node.input(0));
        let spread = selects.is_some_and(|flags| place.producer_of(flags, &["Expand", "Cast"]).is_some());
        let computed = place.producer(value, "Mul").and_then(|(_, node)| place.producer(node.input(0)?, "Sub"));
        spread || computed.is_some()
    };
    let any_of = |value: ValueId, test: &dyn Fn(ValueId) -> bool| {
        let sum = place.producer(value, "Add");
        sum.is_some_and(|(_, node)| node.inputs().iter().flatten().any(|&operand| test(operand)))
    };
    let inner = |value: ValueId| place.producer(value, "Reshape").and_then(|(_, node)| node.input(0));
    let is_spelled = ["Div", "Where", "Cast"].iter().any(|operator| is_of(scores, operator));
    let is_reshaped = |value: ValueId| inner(value).is_some_and(|product| is_of(product, "MatMul"));
    is_spelled || any_of(scores, &is_mask) || inner(scores).is_some_and(|sum| any_of(sum, &is_reshaped))
}

/// An attention with an additive mask on its scores.
pub(super) struct Masked {
    /// `true` if queries, keys and values are products of one value, each with a bias, split into heads.
    pub is_of_one_value: bool,
}

/// Returns the attention whose mask is operand `slot` of this node: `softmax(s·q·kᵀ + mask)·v`.
pub(super) fn masked(place: &Place<'_>, sum: NodeId, slot: usize) -> Option<Masked> {
    let node = place.model.node(sum).filter(|node| node.is("Add"))?;
    let scaled = place.producer_of(node.input(1usize.checked_sub(slot)?)?, &["Mul", "Div"])?.1;
    let product = scaled.inputs().iter().flatten().find_map(|&factor| place.producer(factor, "MatMul"))?.1;
    scaled.inputs().iter().flatten().find_map(|&factor| place.scalar(factor))?;
    let softmax = only_reader(place, node.output(0)?, "Softmax")?;
    let weighting = only_reader(place, softmax.output(0)?, "MatMul")?;
    Some(Masked { is_of_one_value: are_of_one_value(place, product, weighting) })
}

/// Returns `true` if a node adds to scores: a Softmax is the only consumer of the sum.
pub(super) fn is_normalized(place: &Place<'_>, sum: NodeId) -> bool {
    let sum = place.model.node(sum).filter(|node| node.is("Add")).and_then(|node| node.output(0));
    sum.is_some_and(|sum| only_reader(place, sum, "Softmax").is_some())
}

/// Returns `true` if queries, keys and values of an attention are products of one value, each with a bias and split into heads. The heads
/// of the result must be merged and multiplied by weights.
fn are_of_one_value(place: &Place<'_>, product: &Node, weighting: &Node) -> bool {
    let sources = [product.input(0), product.input(1), weighting.input(1)].map(|value| projected(place, value?));
    let [Some(queries), Some(keys), Some(values)] = sources else { return false };
    let products = place.model.users(queries);
    let count = products.iter().filter(|(id, _)| place.model.node(*id).is_some_and(|node| node.is("MatMul")));
    let is_joined = || weighting.output(0).is_some_and(|heads| is_projected(place, heads));
    queries == keys && keys == values && count.count() == 3 && is_joined()
}

/// Returns the only consumer of a value, if it has this operator.
fn only_reader<'a>(place: &Place<'a>, value: ValueId, operator: &str) -> Option<&'a Node> {
    let users = place.model.users(value);
    let &[(id, _)] = users.as_slice() else { return None };
    place.model.node(id).filter(|node| node.is(operator) && !place.model.is_named(value))
}

/// Returns the data of the projection that was split into heads to give this value: a product with constant weights and a bias. A scaling
/// on the path is allowed.
fn projected(place: &Place<'_>, value: ValueId) -> Option<ValueId> {
    let unscaled = |value: ValueId| {
        let scaling = place.producer_of(value, &["Mul", "Div"]).and_then(|(_, node)| scaled_by_number(place, node));
        scaling.unwrap_or(value)
    };
    let mut value = unscaled(value);
    for operator in ["Transpose", "Reshape"] {
        value = unscaled(place.producer(value, operator)?.1.input(0)?);
    }
    let &[Some(a), Some(b)] = place.producer(value, "Add")?.1.inputs() else { return None };
    let (product, bias) = if place.tensor(a).is_some() { (b, a) } else { (a, b) };
    let (_, node) = place.producer(product, "MatMul")?;
    let is_linear = place.tensor(bias).is_some_and(|bias| bias.rank() == 1) && place.tensor(node.input(1)?).is_some();
    node.input(0).filter(|_| is_linear)
}

/// Returns `true` if heads are merged and multiplied by weights.
fn is_projected(place: &Place<'_>, mut value: ValueId) -> bool {
    for operator in ["Transpose", "Reshape", "MatMul"] {
        match only_reader(place, value, operator).and_then(|node| node.output(0)) {
            Some(result) => value = result,
            None => return false,
        }
    }
    true
}

/// An attention that ONNX Runtime's transformer optimizer fuses (FusionAttention): queries, keys and values are products of one value, each
/// with a bias, and a separate node scales the scores.
struct Known {
    /// The node that scales the scores.
    scale: NodeId,
}

impl Known {
    /// Returns the attention of this product of weights and values.
    fn of(place: &Place<'_>, weighting: &Node) -> Option<Known> {
        let scores = place.producer(weighting.input(0)?, "Softmax")?.1.input(0)?;
        let scaled = |value: ValueId| {
            let (scale, node) = place.producer_of(value, &["Div", "Mul"])?;
            let product = node.inputs().iter().flatten().find_map(|&factor| place.producer(factor, "MatMul"))?.1;
            node.inputs().iter().flatten().find_map(|&factor| place.scalar(factor))?;
            Some((scale, product))
        };
        let (scale, product) = match place.producer(scores, "Add") {
            Some((_, sum)) => {
                let &[Some(a), Some(b)] = sum.inputs() else { return None };
                let masks = [(a, b), (b, a)].into_iter();
                masks.filter(|&(_, mask)| is_known_mask(place, mask)).find_map(|(value, _)| scaled(value))?
            }
            // The optimizer for CLIP matches multiplied scores. It also matches unscaled scores, and its kernel scales these by itself, so
            // a factor in the weights would apply twice. It does not match products on flattened rows; the other optimizers do.
            None => {
                let is_divided = place.producer(scores, "Div").is_some();
                scaled(scores).filter(|_| is_divided || stays_whole(place, scores, weighting))?
            }
        };
        are_of_one_value(place, product, weighting).then_some(Known { scale })
    }
}

/// Returns `true` if the products of an attention without a mask are not flattened to rows: a dim is dynamic, or the attention is CLIP's.
fn stays_whole(place: &Place<'_>, scores: ValueId, weighting: &Node) -> bool {
    let runs_in_rows = place.shape(scores).is_some_and(|dims| place.runs_in_rows(dims));
    !runs_in_rows || weighting.output(0).is_some_and(|heads| leads_to_quick(place, heads))
}

/// Returns `true` if this product of scores, or of weights and values, belongs to a [`Known`] attention.
pub(super) fn is_known(place: &Place<'_>, product: NodeId) -> bool {
    let find = || {
        let node = place.model.node(product)?;
        if place.producer(node.input(0)?, "Softmax").is_some() {
            return Known::of(place, node);
        }
        let mut value = node.output(0)?;
        for _ in 0..MOST_BEFORE {
            if let Some(softmax) = only_reader(place, value, "Softmax") {
                return Known::of(place, only_reader(place, softmax.output(0)?, "MatMul")?);
            }
            let next = ["Mul", "Div", "Add"].into_iter().find_map(|operator| only_reader(place, value, operator))?;
            value = next.output(0)?;
        }
        None
    };
    find().is_some()
}

/// Returns `true` if a mask has the form that this optimizer matches, or may still get it by later rewrites.
fn is_known_mask(place: &Place<'_>, mask: ValueId) -> bool {
    let is_open = || place.shape(mask).is_some_and(|dims| dims.iter().any(|dim| dim.as_const().is_none()));
    if let Some((_, node)) = place.producer(mask, "Where") {
        let flags = node.input(0);
        return is_open() || flags.is_some_and(|flags| place.producer_of(flags, &["Expand", "Cast"]).is_some());
    }
    let computed = place.producer(mask, "Mul");
    computed.is_some_and(|(_, node)| node.inputs().iter().flatten().any(|&part| place.producer(part, "Sub").is_some()))
}

/// Returns `true` if the current node scales queries or keys of an attention without a mask. If the factor moved into the weights, the
/// optimizer for CLIP would fuse the attention and scale a second time.
pub(super) fn scales_unmasked_heads(place: &Place<'_>) -> bool {
    let find = || {
        let mut value = place.only_output()?;
        for _ in 0..MOST_BEFORE {
            let users = place.model.users(value);
            let &[(id, _)] = users.as_slice() else { return None };
            let node = place.model.node(id).filter(|_| !place.model.is_named(value))?;
            value = node.output(0)?;
            if node.is("MatMul") {
                let softmax = only_reader(place, value, "Softmax")?;
                let weighting = only_reader(place, softmax.output(0)?, "MatMul")?;
                return Some(stays_whole(place, value, weighting) && are_of_one_value(place, node, weighting));
            }
            let is_layout = traits_of(place.model, node).moves.is_some();
            if !is_layout && scaled_by_number(place, node).is_none() {
                return None;
            }
        }
        None
    };
    find() == Some(true)
}

/// Returns the operand that a node multiplies or divides by one number.
fn scaled_by_number(place: &Place<'_>, node: &Node) -> Option<ValueId> {
    let &[Some(a), Some(b)] = node.inputs() else { return None };
    match (place.scalar(a), place.scalar(b)) {
        (None, Some(_)) if node.is("Mul") || node.is("Div") => Some(a),
        (Some(_), None) if node.is("Mul") => Some(b),
        _ => None,
    }
}

/// Returns `true` if the current node scales the scores of a [`Known`] attention.
pub(super) fn scales_known_scores(place: &Place<'_>) -> bool {
    let find = || {
        let mut value = place.only_output()?;
        if let Some(sum) = only_reader(place, value, "Add") {
            value = sum.output(0)?;
        }
        let softmax = only_reader(place, value, "Softmax")?;
        let weighting = only_reader(place, softmax.output(0)?, "MatMul")?;
        Some(Known::of(place, weighting)?.scale == place.id)
    };
    find() == Some(true)
}

/// Returns `true` if a value is computed shortly after a [`Known`] attention: by its last product, or by later nodes up to the next
/// product. The optimizer also fuses the biases there.
pub(super) fn follows_known(place: &Place<'_>, value: ValueId) -> bool {
    let (mut open, mut next) = (vec![value], 0);
    while let Some(&value) = open.get(next).filter(|_| next < MOST_BEHIND) {
        next += 1;
        if is_of_known(place, value) {
            return true;
        }
        let Some(node) = place.model.value(value).producer().and_then(|id| place.model.node(id)) else { continue };
        for &operand in node.inputs().iter().flatten() {
            if place.model.value(operand).producer().is_some() && !open.contains(&operand) {
                open.push(operand);
            }
        }
    }
    false
}

/// Returns `true` if this value is the result of a [`Known`] attention with merged heads.
fn is_of_known(place: &Place<'_>, joined: ValueId) -> bool {
    let find = || {
        let turned = place.producer(joined, "Reshape")?.1.input(0)?;
        let heads = place.producer(turned, "Transpose")?.1.input(0)?;
        Known::of(place, place.producer(heads, "MatMul")?.1)
    };
    find().is_some()
}
