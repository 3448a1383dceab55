//! Merges products of one operand with several weights into one product and a Split.
//!
//! Law: `x·[V W] = [x·V x·W]`, and likewise for convolutions, whose weights are concatenated along the output channels. This saves nodes
//! for three products or more, and for two if a following operator can apply to the whole, too. Results are equal up to rounding, because
//! the order of summation depends on the kernel.
//!
//! Three exceptions:
//!
//! * Queries, keys and values with biases are not merged: runtimes match them as an [attention](super::attention), and one product and a
//!   Split take as long as three products.
//! * Convolutions of images are not merged: ONNX Runtime computes them on a blocked channel layout without a Split, so it would convert the
//!   layout before the Split and after it.
//! * Two products of rows are not merged if an activation follows one of them, because the runtime fuses the two.

use super::attention;
use crate::ir::{Edit, Name, NewNode, Node, NodeId, ValueId};
use crate::ops::traits::traits_of;
use crate::rewrite::limits::READERS;
use crate::rewrite::miss::{Miss, ensure};
use crate::rewrite::parts::Parts;
use crate::rewrite::place::Place;
use crate::rewrite::rule::{Rule, miss};
use crate::sort;
use crate::tensor::Tensor;

pub(in crate::rewrite) const RULES: &[Rule] = &[Rule {
    name: "parallel-weights",
    law: "x·[V W] = [x·V x·W]",
    sentence: "Merges products of one operand x with several weights into one product and a Split.",
    premises: &[
        ("alike", "the products have the same operator, the same attributes and the same first operand x"),
        ("pays", "there are at least three products, or the operators after the products can be merged as well"),
        ("no-output", "none of the products is a graph output"),
        ("own-weights", "the weights have no other consumer"),
        (
            "no-images",
            "the products are not convolutions of images (rank 4). Runtimes store the channels of images in blocks, and have no Split for blocks",
        ),
        (
            "no-kernels",
            "the products are not two matrix products with different activations, because runtimes fuse each product with the activation",
        ),
        ("no-attention", "the products do not compute the queries, keys and values of an attention with biases"),
    ],
    exact: false,
    operators: &["MatMul", "Gemm", "Conv"],
    apply: parallel,
}];

/// The rank of the weight of an image convolution.
const IMAGE_RANK: usize = 4;

/// A product with separate weights.
struct Product {
    node: NodeId,
    weight: ValueId,
    result: ValueId,
    /// The operators of the consumers of the result.
    readers: Vec<Name>,
}

fn parallel(place: &Place<'_>) -> Result<Edit, Miss> {
    let node = place.root()?;
    let x = node.input(0).ok_or(Miss::ROOT)?;
    let mut users = place.model.users(x);
    users.retain(|&mut (id, slot)| slot == 0 && place.model.node(id).is_some_and(|other| alike(node, other)));
    ensure((2..=READERS).contains(&users.len()), miss!("alike"))?;
    let all = users.into_iter().map(|(id, _)| product(place, id));
    let (products, others): (Vec<_>, Vec<_>) = all.partition(Result::is_ok);
    let mut products: Vec<Product> = products.into_iter().flatten().collect();
    if let Some(Err(miss)) = others.into_iter().find(Result::is_err)
        && (products.len() < 2 || !products.iter().any(|product| product.node == place.id))
    {
        return Err(miss);
    }
    leave_attention(place, &mut products);
    let axis = channel_axis(place).ok_or(Miss::ROOT)?;
    let worthwhile = |group: &[&Product]| {
        let parts = Parts::of(place, group.iter().map(|product| product.result).collect(), axis)?;
        parts.step(place).is_ok().then_some(parts)
    };
    let own = products.iter().find(|product| product.node == place.id).ok_or(miss!("no-attention"))?;
    let group: Vec<&Product> = products.iter().filter(|product| product.readers == own.readers).collect();
    // Only the first product of a group builds the edit.
    let is_first = |group: &[&Product]| group.first().is_some_and(|first| first.node == place.id);
    if is_first(&group)
        && let Some(parts) = worthwhile(&group).filter(|_| !have_fused_kernels(place, x, &group))
    {
        return merged(place, x, &group, &parts);
    }
    let all: Vec<&Product> = products.iter().collect();
    ensure(is_first(&all), miss!("pays"))?;
    let is_fused = have_fused_kernels(place, x, &group) && worthwhile(&group).is_some();
    ensure(all.len() >= 3, if is_fused { miss!("no-kernels") } else { miss!("pays") })?;
    let others_wait = products.iter().any(|first| {
        let group: Vec<&Product> = products.iter().filter(|product| product.readers == first.readers).collect();
        worthwhile(&group).is_some() && !have_fused_kernels(place, x, &group)
    });
    ensure(!others_wait, miss!("pays"))?;
    let parts = Parts::of(place, all.iter().map(|product| product.result).collect(), axis).ok_or(miss!("pays"))?;
    merged(place, x, &all, &parts)
}

/// Returns `true` if a runtime may fuse each of two products of rows with its bias and activation, which a Split would prevent. This holds
/// if a unary operator follows one of them, and the consumers of the two differ.
fn have_fused_kernels(place: &Place<'_>, x: ValueId, group: &[&Product]) -> bool {
    let &[a, b] = group else { return false };
    let in_rows = place.shape(x).is_some_and(|dims| dims.len() == 2 || place.runs_in_rows(dims));
    let behind = |product: &Product| {
        let mut value = product.result;
        if let &[(id, _)] = place.model.users(value).as_slice() {
            let sum = place.model.node(id).filter(|node| node.is("Add"));
            value = sum.and_then(|node| node.output(0)).unwrap_or(value);
        }
        let users = place.model.users(value);
        let mut readers: Vec<&Node> = users.iter().filter_map(|&(id, _)| place.model.node(id)).collect();
        sort::by(&mut readers, |a, b| a.op_type.cmp(&b.op_type));
        readers
    };
    let (a, b) = (behind(a), behind(b));
    let is_activation = |node: &&Node| traits_of(place.model, node).pointwise.is_some() && node.inputs().len() == 1;
    let differ = !a.iter().map(|node| &node.op_type).eq(b.iter().map(|node| &node.op_type));
    in_rows && differ && a.iter().chain(&b).any(is_activation)
}

/// Removes the products that are queries, keys or values, if a bias is added to one of them.
fn leave_attention(place: &Place<'_>, products: &mut Vec<Product>) {
    let projections: Vec<Option<attention::Projection>> =
        products.iter().map(|product| attention::projection(place, product.result)).collect();
    if projections.iter().flatten().any(|projection| projection.has_bias) {
        let mut projections = projections.iter();
        products.retain(|_| projections.next().is_some_and(Option::is_none));
    }
}

/// Returns `true` if two nodes have the same operator and attributes.
fn alike(a: &Node, b: &Node) -> bool {
    a.op_type == b.op_type
        && a.canonical_domain() == b.canonical_domain()
        && a.graph() == b.graph()
        && a.same_attributes(b)
}

/// Returns the axis of the result that holds the channels of the weights.
fn channel_axis(place: &Place<'_>) -> Option<usize> {
    let rank = place.shape(place.only_output()?)?.len();
    if place.node()?.is("MatMul") { rank.checked_sub(1) } else { (rank >= 2).then_some(1) }
}

/// Returns the axis of the weights that holds their channels.
fn weight_axis(node: &Node) -> Option<usize> {
    Some(match node.op_type.as_str() {
        "MatMul" => 1,
        "Gemm" => usize::from(!node.flag("transB", false)?),
        _ => 0,
    })
}

fn product(place: &Place<'_>, id: NodeId) -> Result<Product, Miss> {
    let node = place.model.node(id).ok_or(Miss::ROOT)?;
    let &[Some(result)] = node.outputs() else { return Err(Miss::ROOT) };
    let weight = node.input(1).ok_or(Miss::ROOT)?;
    let own = |value: ValueId| {
        place.model.value(value).is_constant() && place.is_internal(value, &[id]) && place.tensor(value).is_some()
    };
    ensure(own(weight) && node.input(2).is_none_or(own), miss!("own-weights").of(weight))?;
    let rank = place.tensor(weight).map_or(0, Tensor::rank);
    if node.is("Conv") {
        ensure(rank != IMAGE_RANK, miss!("no-images").of(weight))?;
        ensure(rank >= 3 && node.int("group", 1) == Some(1), miss!("alike"))?;
    } else {
        ensure(rank == 2, miss!("alike").of(weight))?;
    }
    ensure(!place.model.is_named(result), miss!("no-output").of(result))?;
    let users = place.model.users(result);
    let mut readers: Vec<Name> =
        users.iter().filter_map(|&(user, _)| Some(place.model.node(user)?.op_type.clone())).collect();
    sort::sort(&mut readers);
    Ok(Product { node: id, weight, result, readers })
}

/// Builds one product and a Split in place of several products.
fn merged(place: &Place<'_>, x: ValueId, group: &[&Product], parts: &Parts) -> Result<Edit, Miss> {
    let node = place.root()?;
    let weights: Vec<&Tensor> =
        group.iter().map(|product| place.tensor(product.weight)).collect::<Option<_>>().ok_or(miss!("own-weights"))?;
    let weight =
        place.concatenated(&weights, weight_axis(node).ok_or(miss!("own-weights"))?).ok_or(miss!("own-weights"))?;
    let bias = bias(place, group, &parts.sizes, &weight).ok_or(miss!("own-weights"))?;
    let (first, result) = group.first().map(|first| (first.weight, first.result)).ok_or(miss!("own-weights"))?;
    let mut edit = place.begin()?;
    edit.remove.extend(group.iter().map(|product| product.node));
    let operand = edit.constant_named(place.fused_name(first), weight);
    let mut inputs = vec![Some(x), Some(operand)];
    if let Some(bias) = bias {
        inputs.push(Some(edit.constant_named(place.fused_name(node.input(2).unwrap_or(first)), bias)));
    }
    let whole = edit.new_value(result, "whole");
    let product = NewNode { inputs, ..NewNode::like(node) };
    edit.insert.push(product.output(whole));
    let split = place.build(&mut edit, whole).split(whole, parts.axis, parts.sizes.clone()).ok_or(Miss::EXPRESSIBLE)?;
    Ok(edit.inserting(parts.values.iter().fold(split, |split, &value| split.output(value))))
}

/// Concatenates the biases, with zeros for absent ones. The inner `None` stands for no bias at all.
fn bias(place: &Place<'_>, group: &[&Product], sizes: &[i64], weight: &Tensor) -> Option<Option<Tensor>> {
    let biases: Vec<Option<ValueId>> =
        group.iter().map(|product| place.model.node(product.node).and_then(|node| node.input(2))).collect();
    if biases.iter().all(Option::is_none) {
        return Some(None);
    }
    let mut tensors = Vec::with_capacity(biases.len());
    for (bias, &size) in biases.iter().zip(sizes) {
        let size = usize::try_from(size).ok()?;
        tensors.push(match bias {
            Some(bias) => {
                let bias = place.tensor(*bias)?;
                let row = matches!(bias.shape(), [dim] | [1, dim] if *dim == size);
                bias.reshape(&[size]).ok().filter(|_| row)?
            }
            None => Tensor::zeros(weight.dtype(), &[size]).ok()?,
        });
    }
    Some(Some(place.concatenated(&tensors.iter().collect::<Vec<_>>(), 0)?))
}
