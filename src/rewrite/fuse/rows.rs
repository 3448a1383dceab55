//! Flattens the operand of a product with a bias to rows, if all its sizes are static.
//!
//! Law: with `rows(x)` the matrix of the last-axis vectors of `x`, `x·W + c = unrows(rows(x)·W + c)`. The same holds for element-wise
//! operators between the sum and the next product.
//!
//! When all sizes are static, ONNX Runtime turns every such product and sum into a Gemm between two Reshapes at load time. If the edit does
//! it here, three products of one value share the first Reshape, and the others merge with the Reshapes that split and merge heads. An
//! activation between two products is computed on rows as well. This is the inverse of [`product-of-rows`](super::super::lift), which is
//! for dynamic sizes ([`Place::runs_in_rows`]).
//!
//! MatMul and Add are two nodes here; [`gemm`](super::gemm) merges them, unless they belong to an idiom. The rows are written as a Flatten:
//! after a normalization, ONNX Runtime's transformer optimizer misreads a Gemm of a Reshape.

use super::attention::{follows_known, is_known, is_recognised, projection};
use super::kernels::has_gemm;
use super::quick_gelu::is_quick;
use crate::dim::Dim;
use crate::ir::{Edit, NewNode, Node, NodeId, ValueId};
use crate::ops::traits::{Movement, Traits, traits_of};
use crate::rewrite::build::Build;
use crate::rewrite::miss::{Miss, ensure};
use crate::rewrite::place::Place;
use crate::rewrite::rule::{Rule, miss};
use crate::sort;

pub(in crate::rewrite) const RULES: &[Rule] = &[Rule {
    name: "product-in-rows",
    law: "f(x·W + c) = unrows(f(rows(x)·W + c)), where rows(x) is x flattened to a matrix, and unrows restores the dims",
    sentence: "Flattens the operand of a matrix product with bias to a matrix, if all dims are constants.",
    premises: &[
        (
            "all-numbers",
            "all dims of x and of the result are positive constants. The model's operator set does not contain the operator Attention, which requires operands of the original rank",
        ),
        ("more-axes", "x has rank 3 or more"),
        ("weights", "W is a constant matrix, and c is a constant vector or scalar"),
        ("covered-type", "the element type is float16, float or double"),
        (
            "no-attention",
            "the product is not part of an attention that transformer optimizers match, and not one of the few products between two such attentions. The optimizers merge the biases of these products into kernels of their own",
        ),
        ("one-reader", "the product x·W has no other consumer"),
        (
            "pays",
            "at least one of four statements holds: (1) x is the Reshape of a matrix; (2) several matrix products or Reshapes read x; (3) a Reshape reads the sum; (4) element-wise operators lead from the sum to another matrix product",
        ),
    ],
    exact: false,
    operators: &["Add"],
    apply: in_rows,
}];

/// The most nodes between two products. Without it, the rule flattens all nodes between the first and the last product of a model, or none.
const MOST_BETWEEN: usize = 16;

/// Matches the addition of the bias.
fn in_rows(place: &Place<'_>) -> Result<Edit, Miss> {
    let sum = place.only_output().ok_or(Miss::ROOT)?;
    let &[Some(a), Some(b)] = place.root()?.inputs() else { return Err(Miss::ROOT) };
    let (product, bias) = if place.tensor(a).is_some() { (b, a) } else { (a, b) };
    let (matmul, node) = place.producer(product, "MatMul").ok_or(Miss::ROOT)?;
    let (x, weights) = (node.input(0).ok_or(Miss::ROOT)?, node.input(1).ok_or(Miss::ROOT)?);
    let (dims, columns) =
        (place.dims(x)?, place.dims(sum)?.last().ok_or(Miss::ROOT)?.as_const().ok_or(miss!("all-numbers").of(sum))?);
    let is_linear = place.tensor(weights).ok_or(miss!("weights").of(weights))?.rank() == 2
        && place.tensor(bias).ok_or(miss!("weights").of(bias))?.rank() <= 1;
    ensure(dims.len() >= 3, miss!("more-axes"))?;
    ensure(is_linear, miss!("weights"))?;
    ensure(place.runs_in_rows(dims), miss!("all-numbers"))?;
    ensure(place.is_internal(product, &[place.id]), miss!("one-reader").of(product))?;
    ensure(has_gemm(place, product), miss!("covered-type"))?;
    ensure(!is_of_attention(place, product, sum), miss!("no-attention"))?;
    ensure(pays(place, x, sum), miss!("pays"))?;
    let lead = dims.len() - 1;
    let mut edit = place.begin()?;
    edit.remove.push(matmul);
    let rows = match rows_of(place, x) {
        Some(rows) => rows,
        None => {
            let rows = edit.new_value(x, "rows");
            edit.insert.push(Build::flatten(x, lead).output(rows));
            rows
        }
    };
    let inner = edit.new_value(product, "rows");
    edit.insert.push(NewNode { inputs: vec![Some(rows), Some(weights)], ..NewNode::like(node) }.output(inner));
    let mut flat = edit.new_value(sum, "rows");
    let added = NewNode { inputs: vec![Some(inner), Some(bias)], ..NewNode::like(place.root()?) };
    edit.remove.push(place.id);
    edit.insert.push(added.output(flat));
    let mut whole = sum;
    if let Some(between) = Between::of(place, sum) {
        flat = between.write_in_rows(place, &mut edit, flat).ok_or(Miss::ROOT)?;
        whole = between.result;
    }
    let sizes = place
        .dims(whole)?
        .iter()
        .map(Dim::as_const)
        .collect::<Option<Vec<_>>>()
        .ok_or(miss!("all-numbers").of(whole))?;
    // A Reshape code of 0 means the size of the operand.
    ensure(sizes.last() == Some(&columns) && !sizes.contains(&0), miss!("all-numbers"))?;
    let reshape = place.build(&mut edit, whole).reshape(flat, sizes);
    Ok(edit.inserting(reshape.output(whole)))
}

/// Returns `true` if a Reshape merges with another one: `x` is laid out or read by several products, a layout reads the sum, or nodes up to
/// the next product compute on rows. If none does, the edit has three nodes for two, and the runtime does the same at load time.
fn pays(place: &Place<'_>, x: ValueId, sum: ValueId) -> bool {
    let readers = |value: ValueId| place.model.users(value).into_iter().filter_map(|(id, _)| place.model.node(id));
    let is_laid_out = |node: &Node| traits_of(place.model, node).moves == Some(Movement::Layout);
    let is_shared = readers(x).filter(|node| node.is("MatMul") || is_laid_out(node)).take(2).count() > 1;
    place.layout(x).is_some() || is_shared || readers(sum).any(is_laid_out) || Between::of(place, sum).is_some()
}

/// Returns `true` if a product belongs to an attention that runtimes recognize, or follows one that they fuse.
fn is_of_attention(place: &Place<'_>, product: ValueId, sum: ValueId) -> bool {
    let reads = |value: ValueId, operator: &str| {
        place.model.users(value).into_iter().any(|(id, _)| place.model.node(id).is_some_and(|node| node.is(operator)))
    };
    let attention = projection(place, product).map(|found| found.attention);
    let is_for_known = attention.is_some_and(|at| is_recognised(place, at) || is_known(place, at));
    let operand = || place.producer(product, "MatMul")?.1.input(0);
    // The layers between attentions of CLIP are still flattened, because its optimizer fuses only a bias there.
    let is_quick_layer = |x: ValueId| {
        let is_quick = |id: &NodeId| place.model.node(*id).is_some_and(|node| is_quick(place, node));
        rows_of(place, x).is_some() || Between::of(place, sum).is_some_and(|between| between.nodes.iter().any(is_quick))
    };
    let is_behind = || operand().is_some_and(|x| follows_known(place, x) && !is_quick_layer(x));
    is_for_known || is_behind() || reads(sum, "Attention")
}

/// Returns the matrix of the rows of a value, if a layout makes the value from it.
fn rows_of(place: &Place<'_>, x: ValueId) -> Option<ValueId> {
    let rows = place.layout(x)?.1.input(0)?;
    let ([_, columns], last) = (place.shape(rows)?, place.shape(x)?.last()?) else { return None };
    place.scope().eq(columns, last).is_yes().then_some(rows)
}

/// The element-wise nodes between two products.
struct Between {
    /// The nodes, in topological order.
    nodes: Vec<NodeId>,
    /// The operand of the second product.
    result: ValueId,
}

impl Between {
    /// Returns the nodes from a value to the operand of the next product, if nothing else reads the values in between.
    fn of(place: &Place<'_>, value: ValueId) -> Option<Between> {
        let mut nodes: Vec<NodeId> = Vec::new();
        let mut open = vec![value];
        let mut result = None;
        while let Some(value) = open.pop() {
            if place.model.is_named(value) {
                return None;
            }
            for (id, slot) in place.model.users(value) {
                let node = place.model.node(id)?;
                if node.is("MatMul") && slot == 0 && result.is_none_or(|result| result == value) {
                    place.tensor(node.input(1)?).filter(|weights| weights.rank() == 2)?;
                    result = Some(value);
                } else if !nodes.contains(&id) {
                    is_elementwise(place, node).then_some(())?;
                    nodes.push(id);
                    open.push(node.output(0)?);
                }
            }
            if nodes.len() > MOST_BETWEEN {
                return None;
            }
        }
        sort::by_key(&mut nodes, |&id| place.model.order_of(id));
        let between = Between { nodes, result: result.filter(|&result| result != value)? };
        let is_alone = place.model.users(between.result).len() == 1;
        (is_alone && between.reads_itself(place, value)).then_some(between)
    }

    /// Returns `true` if the operand is computed between the products as well, or is uniform within each row.
    fn reads_itself(&self, place: &Place<'_>, value: ValueId) -> bool {
        let is_inside = |operand: ValueId| {
            let producer = place.model.value(operand).producer();
            operand == value || producer.is_some_and(|id| self.nodes.contains(&id))
        };
        let fits = |operand: ValueId| is_inside(operand) || place.tensor(operand).is_some_and(|own| own.rank() <= 1);
        let nodes = self.nodes.iter().filter_map(|&id| place.model.node(id));
        nodes.flat_map(|node| node.inputs().iter().flatten()).all(|&operand| fits(operand))
    }

    /// Builds the nodes on the matrix of rows, and returns their result.
    fn write_in_rows(&self, place: &Place<'_>, edit: &mut Edit, flat: ValueId) -> Option<ValueId> {
        let first = place.only_output()?;
        let mut known = vec![(first, flat)];
        let mut last = flat;
        for &id in &self.nodes {
            let node = place.model.node(id)?;
            let own = |value: ValueId| known.iter().find(|(old, _)| *old == value).map_or(value, |&(_, new)| new);
            let inputs = node.inputs().iter().map(|input| input.map(own)).collect();
            let output = node.output(0)?;
            last = edit.new_value(output, "rows");
            edit.insert.push(NewNode { inputs, ..NewNode::like(node) }.output(last));
            edit.remove.push(id);
            known.push((output, last));
            if output == self.result {
                break;
            }
        }
        known.iter().find(|(old, _)| *old == self.result).map(|&(_, new)| new).filter(|&new| new == last)
    }
}

/// Returns `true` if a node computes each element of its only result from the elements at the same index.
fn is_elementwise(place: &Place<'_>, node: &Node) -> bool {
    let traits: &Traits = traits_of(place.model, node);
    let has_one = node.outputs().iter().flatten().count() == 1 && node.subgraphs().next().is_none();
    has_one
        && node.canonical_domain().is_empty()
        && traits.pointwise.is_some()
        && node.graph() == place.graph().unwrap_or(node.graph())
}
