//! Replaces the formula of scaled dot-product attention by the operator Attention.
//!
//! Law: `softmax(s·q·kᵀ + m)·v = Attention(q, k, v, m; scale = s)`, since opset 23. The factor may be on the scores, the queries, the keys,
//! or on several of them; the mask may be a sum of two.
//!
//! Heads are a separate axis here; [`heads`](super::heads) merges the nodes that split and merge them. Operands of rank 3 have one head.
//!
//! A mask has an entry for each key: in the operator a shorter axis means that the other keys are masked. ONNX Runtime also requires a row
//! for each query, so the edit expands a mask with one row, once for all layers that read it.
//!
//! Runtimes multiply queries and keys by the square root of the factor, as a float32 for every type. In double, a factor whose root is no
//! float32 would lose half of the digits.
//!
//! ONNX Runtime's kernel refuses an empty batch and empty sequences, although the standard's operator and the replaced nodes accept them.
//! So the sizes must be proved to be at least 1: by the model, or because the user declares it (`--dim batch=1..`). The rules of this file
//! run only if the user requests an opset ([`ASKED_FOR`](crate::rewrite::list::ASKED_FOR)), because other consumers may not support the
//! operator.

use super::kernels::{as_attribute, has_kernel};
use super::magnitude::has_room;
use crate::dim::Dim;
use crate::ir::{Attribute, Edit, NewNode, NodeId, ValueId};
use crate::rewrite::build::Build;
use crate::rewrite::miss::{Miss, ensure, prove};
use crate::rewrite::place::Place;
use crate::rewrite::rule::{Rule, miss};
use crate::tensor::{DType, Tensor};

pub(in crate::rewrite) const RULES: &[Rule] = &[Rule {
    name: "spelled-attention",
    law: "softmax(s·q·kᵀ + m)·v = Attention(q, k, v, m; scale = s)",
    sentence: "Replaces a decomposed attention by the operator Attention, if `--opset` requests an operator set.",
    premises: &[
        ("known", "the model's operator set contains Attention, which exists since operator set 23"),
        ("has-kernel", "runtimes have a kernel of the operator for the element type"),
        ("last-axis", "the Softmax is over the axis of the keys"),
        ("same-batch", "q, k and v have rank 3 or 4, and all dims but the last two are equal"),
        (
            "not-empty",
            "the batch size, the number of heads and the sequence lengths are at least 1, because ONNX Runtime refuses an empty operand, and crashes if the number of heads is 0",
        ),
        ("positive-scale", "the product of all scale factors is positive"),
        (
            "in-range",
            "the product of an element of moderate size (2⁻³² to 2³² in float) and any of the scale factors neither overflows nor underflows",
        ),
        (
            "exact-root",
            "if the element type is double, √s is exactly representable in float, because runtimes multiply q and k by √s in float",
        ),
        ("mask-shape", "m has an element for every key, and the sum of the scores and m has the shape of the scores"),
        ("one-reader", "the intermediate values of the formula have no other consumer"),
    ],
    exact: false,
    operators: &["MatMul"],
    apply: attention,
}];

/// The most masks added to the scores. Models have one of padding and one of causality; each further one costs an Add next to the kernel.
const MOST_MASKS: usize = 2;

/// The state of reading the formula.
struct Reading<'a, 'p> {
    place: &'a Place<'p>,
    /// The product of the factors read so far.
    scale: f64,
    /// The nodes read so far.
    nodes: Vec<NodeId>,
}

/// The operands of the scores.
struct Scores {
    queries: ValueId,
    /// The transposed keys: the summed axis is the last but one.
    turned: ValueId,
    masks: Vec<ValueId>,
}

/// Matches the product of weights and values.
fn attention(place: &Place<'_>) -> Result<Edit, Miss> {
    let output = place.only_output().ok_or(Miss::ROOT)?;
    let dtype = place.dtype(output).ok_or(miss!("has-kernel").of(output))?;
    ensure(place.opset.has("Attention"), miss!("known"))?;
    ensure(has_kernel("Attention", dtype), miss!("has-kernel"))?;
    let &[Some(weights), Some(values)] = place.root()?.inputs() else { return Err(Miss::ROOT) };
    let (softmax, node) = place.producer(weights, "Softmax").ok_or(Miss::ROOT)?;
    let rank = place.dims(weights)?.len();
    ensure(
        place.read(node).axis(rank).ok_or(Miss::ROOT)?.checked_add(1).ok_or(Miss::COMPUTABLE)? == rank,
        miss!("last-axis"),
    )?;
    let mut reading = Reading { place, scale: 1.0, nodes: vec![place.id, softmax] };
    let scores = reading.scores(node.input(0).ok_or(Miss::ROOT)?, softmax)?;
    let sizes = Sizes::of(place, &scores, values)?;
    let rows = scores
        .masks
        .iter()
        .map(|&mask| sizes.rows_of(place, mask))
        .collect::<Option<Vec<bool>>>()
        .ok_or(miss!("mask-shape"))?;
    let (keys, perm) = reading.keys(scores.turned, rank).ok_or(miss!("last-axis"))?;
    let scale = as_attribute(reading.scale, dtype).filter(|&scale| scale > 0.0).ok_or(miss!("positive-scale"))?;
    let root = f64::from(scale).sqrt();
    ensure(
        !(dtype == DType::Double && (f64::from(root as f32) != root || root * root != f64::from(scale))),
        miss!("exact-root"),
    )?;
    let mut reads = vec![scores.queries, keys, values];
    reads.extend(&scores.masks);
    let mut edit = place.fuse(reading.nodes, &reads, 0)?;
    let mut inputs = vec![Some(scores.queries), Some(keys), Some(values)];
    if let Some(perm) = perm {
        let turned = edit.new_value(output, "keys");
        edit.insert.push(Build::transpose(keys, perm).output(turned));
        inputs = vec![Some(scores.queries), Some(turned), Some(values)];
    }
    if let Some(&first) = scores.masks.first() {
        let mut mask = first;
        for &other in scores.masks.iter().skip(1) {
            let sum = edit.new_value(mask, "sum");
            edit.insert.push(NewNode::new("Add", [Some(mask), Some(other)]).output(sum));
            mask = sum;
        }
        if !rows.contains(&true) {
            mask = sizes.with_rows(place, &mut edit, mask, scores.queries).ok_or(Miss::EXPRESSIBLE)?;
        }
        inputs.push(Some(mask));
    }
    let mut node = NewNode::new("Attention", inputs).named(place.root()?.name.clone());
    if rank == 3 {
        node = node.with("kv_num_heads", 1).with("q_num_heads", 1);
    }
    Ok(edit.inserting(node.with("scale", Attribute::Float(scale)).output(output)))
}

impl Reading<'_, '_> {
    /// Reads `factor·(q·kᵀ) + masks`, the operand of `reader`.
    fn scores(&mut self, mut value: ValueId, mut reader: NodeId) -> Result<Scores, Miss> {
        let place = self.place;
        let mut masks = Vec::new();
        while let Some((id, node)) = place.producer(value, "Add").filter(|_| masks.len() < MOST_MASKS) {
            let &[Some(a), Some(b)] = node.inputs() else { return Err(Miss::ROOT) };
            let (inner, mask) = if leads_to_product(place, a, id) { (a, b) } else { (b, a) };
            masks.insert(0, mask);
            self.nodes.push(id);
            (value, reader) = (inner, id);
        }
        value = self.unscaled(value, reader);
        let is_scaled = place.producer_of(value, &["Mul", "Div"]).is_some();
        let miss = if is_scaled { miss!("in-range") } else { Miss::ROOT };
        let (product, node) = place.producer(value, "MatMul").ok_or(miss.of(value))?;
        self.nodes.push(product);
        let &[Some(a), Some(b)] = node.inputs() else { return Err(Miss::ROOT) };
        Ok(Scores { queries: self.unscaled(a, product), turned: self.unscaled(b, product), masks })
    }

    /// Returns a value without its factors, as long as `reader` is the only consumer of the product.
    fn unscaled(&mut self, mut value: ValueId, mut reader: NodeId) -> ValueId {
        while let Some((id, data, factor)) = scaling(self.place, value) {
            if !self.place.is_internal(value, &[reader]) {
                break;
            }
            self.scale *= factor;
            self.nodes.push(id);
            (value, reader) = (data, id);
        }
        value
    }

    /// Returns the keys with the axes of the operator: a value, and the permutation to apply, if any.
    fn keys(&mut self, turned: ValueId, rank: usize) -> Option<(ValueId, Option<Vec<usize>>)> {
        let place = self.place;
        let mut swapped: Vec<usize> = (0..rank).collect();
        swapped.swap(rank.checked_sub(2)?, rank.checked_sub(1)?);
        let Some((id, node)) = place.producer(turned, "Transpose") else { return Some((turned, Some(swapped))) };
        let perm = place.read(node).permutation(rank)?;
        let perm: Vec<usize> = swapped.iter().filter_map(|&axis| perm.get(axis).copied()).collect();
        let mut data = node.input(0)?;
        if place.is_internal(turned, &self.nodes) {
            self.nodes.push(id);
            data = self.unscaled(data, id);
        }
        let is_identity = perm.iter().enumerate().all(|(at, &axis)| at == axis);
        Some((data, (!is_identity).then_some(perm)))
    }
}

/// Reads `value = data·factor` or `data/divisor`. Returns the node, the data and the factor.
fn scaling(place: &Place<'_>, value: ValueId) -> Option<(NodeId, ValueId, f64)> {
    let (id, node) = place.producer_of(value, &["Mul", "Div"])?;
    let &[Some(a), Some(b)] = node.inputs() else { return None };
    let (data, factor) = match (place.scalar(a), place.scalar(b)) {
        (None, Some(divisor)) if node.is("Div") => (a, 1.0 / divisor),
        (None, Some(factor)) => (a, factor),
        (Some(factor), None) if node.is("Mul") => (b, factor),
        _ => return None,
    };
    // A constant of a higher rank would increase the rank of the result.
    let fits = place.same_shape(data, value) && place.dtype(value).is_some_and(|dtype| has_room(dtype, factor));
    fits.then_some((id, data, factor))
}

/// Returns `true` if a value is a product, apart from factors and one more mask.
fn leads_to_product(place: &Place<'_>, value: ValueId, reader: NodeId) -> bool {
    let is_product = |value: ValueId, reader: NodeId| {
        let inner = Reading { place, scale: 1.0, nodes: Vec::new() }.unscaled(value, reader);
        place.producer(inner, "MatMul").is_some()
    };
    match place.producer(value, "Add") {
        Some((id, node)) => node.inputs().iter().flatten().any(|&operand| is_product(operand, id)),
        None => is_product(value, reader),
    }
}

/// The dims of the scores.
struct Sizes<'a> {
    lead: &'a [Dim],
    queries: &'a Dim,
    keys: &'a Dim,
}

impl<'a> Sizes<'a> {
    /// Returns the dims, if the operands have a rank that the operator accepts and no operand is broadcast.
    fn of(place: &Place<'a>, scores: &Scores, values: ValueId) -> Result<Self, Miss> {
        let dims = |value| place.shape(value).ok_or(miss!("same-batch").of(value));
        let ([q_lead @ .., queries, depth], [k_lead @ .., summed, keys], [v_lead @ .., weighted, _]) =
            (dims(scores.queries)?, dims(scores.turned)?, dims(values)?)
        else {
            return Err(miss!("same-batch"));
        };
        let same = |a: &[Dim]| a.len() == q_lead.len() && a.iter().zip(q_lead).all(|(a, b)| is_equal(place, a, b));
        let fits = is_equal(place, depth, summed) && is_equal(place, keys, weighted);
        let has_rank = matches!(q_lead.len(), 1 | 2);
        ensure(has_rank && fits && same(k_lead) && same(v_lead), miss!("same-batch"))?;
        // Runtimes refuse the operator for empty queries or keys.
        for dim in [queries, keys].into_iter().chain(q_lead) {
            prove(place.scope().ge(dim, &Dim::constant(1)), miss!("not-empty").of(scores.queries))?;
        }
        Ok(Sizes { lead: q_lead, queries, keys })
    }

    /// Returns `true` if a mask has a row for each query, `false` if it has one row for all, and `None` if the operator does not accept it.
    fn rows_of(&self, place: &Place<'_>, mask: ValueId) -> Option<bool> {
        let [lead @ .., rows, keys] = place.shape(mask)? else { return None };
        let mut pairs = lead.iter().rev().zip(self.lead.iter().rev());
        let fits =
            lead.len() <= self.lead.len() && pairs.all(|(from, to)| from.is_const(1) || is_equal(place, from, to));
        // If the scores have no axis of heads, the operator would take an axis of the batch for it.
        let is_aligned = self.lead.len() == 2 || lead.iter().all(|dim| dim.is_const(1));
        let has_rows = is_equal(place, rows, self.queries);
        let usable = fits && is_aligned && is_equal(place, keys, self.keys) && (has_rows || rows.is_const(1));
        usable.then_some(has_rows)
    }

    /// Expands a mask with one row to one row for each query.
    fn with_rows(&self, place: &Place<'_>, edit: &mut Edit, mask: ValueId, queries: ValueId) -> Option<ValueId> {
        let expand = if let Some(count) = self.queries.as_const() {
            place.build(edit, mask).expand(mask, vec![count, 1])?
        } else {
            let (axis, count) = (self.lead.len(), edit.new_value(mask, "queries"));
            let shape = place.build(edit, mask).shape_of_run(queries, axis..axis.checked_add(1)?)?;
            edit.insert.push(shape.output(count));
            let one = edit.constant(mask, "one", Tensor::vector(vec![1i64]));
            let sizes = edit.new_value(mask, "sizes");
            edit.insert.push(Build::concat([count, one], 0i64).output(sizes));
            NewNode::new("Expand", [Some(mask), Some(sizes)])
        };
        let rows = edit.new_value(mask, "rows");
        edit.insert.push(expand.output(rows));
        Some(rows)
    }
}

fn is_equal(place: &Place<'_>, a: &Dim, b: &Dim) -> bool {
    place.scope().eq(a, b).is_yes()
}
