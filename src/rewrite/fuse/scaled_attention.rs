//! Scaled dot-product attention spelled out in products and a Softmax, as the operator.
//!
//! Law: `softmax(s·q·kᵀ + m)·v = Attention(q, k, v, m; scale = s)`, since operator set 23. The factor may be on the scores, on the queries,
//! on the keys, or on several of them; the mask may be a sum of two.
//!
//! Heads are an axis of their own here; [`heads`](super::heads) takes in what parts and joins them. Operands of three axes have no heads,
//! which is one head.
//!
//! A mask has an entry for each key: in the operator a shorter axis would mean that the other keys are masked. ONNX Runtime also wants a
//! row for each query, so a mask of one row for all is broadcast before, once for all layers that read it.
//!
//! Runtimes multiply queries and keys by the square root of the factor, as a float32 whatever the type is, so that in doubles a factor
//! whose root is none would cost half of the digits.
//!
//! ONNX Runtime's kernel refuses an empty batch and empty sequences, which the nodes compute, and the standard's operator as well. So the
//! sizes must be known to be at least 1: by what the model needs of them, or because the user says so (`--dim batch=1..`). These rules are
//! used only if the user requests an operator set ([`ASKED_FOR`](crate::rewrite::list::ASKED_FOR)), since other consumers may not have the operator.

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

/// The most masks added to the scores. One of padding and one of causality are what models have; each further one costs an Add beside the kernel.
const MOST_MASKS: usize = 2;

/// Reads the formula.
struct Reading<'a, 'p> {
    place: &'a Place<'p>,
    /// What the factors multiply to that were read so far.
    scale: f64,
    /// The nodes read so far.
    nodes: Vec<NodeId>,
}

/// What is weighted by what.
struct Scores {
    queries: ValueId,
    /// The keys, with the axis that is summed before the last.
    turned: ValueId,
    masks: Vec<ValueId>,
}

/// Looks at the product of weights and values.
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
    /// Reads `factor·(q·kᵀ) + masks`, which this node reads.
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

    /// What is left of a value without the factors that it is multiplied by for this reader only.
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

    /// The keys with the axes that the operator wants: a value, and how it is to be transposed if it is.
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

/// Reads `value = data·factor` or `data/divisor`: the node, the data and the factor.
fn scaling(place: &Place<'_>, value: ValueId) -> Option<(NodeId, ValueId, f64)> {
    let (id, node) = place.producer_of(value, &["Mul", "Div"])?;
    let &[Some(a), Some(b)] = node.inputs() else { return None };
    let (data, factor) = match (place.scalar(a), place.scalar(b)) {
        (None, Some(divisor)) if node.is("Div") => (a, 1.0 / divisor),
        (None, Some(factor)) => (a, factor),
        (Some(factor), None) if node.is("Mul") => (b, factor),
        _ => return None,
    };
    // A number of more axes would give the result more.
    let fits = place.same_shape(data, value) && place.dtype(value).is_some_and(|dtype| has_room(dtype, factor));
    fits.then_some((id, data, factor))
}

/// Whether a value is a product, but for factors and one more mask.
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

/// The sizes of the scores.
struct Sizes<'a> {
    lead: &'a [Dim],
    queries: &'a Dim,
    keys: &'a Dim,
}

impl<'a> Sizes<'a> {
    /// The sizes, if operands have as many axes as the operator takes and none is broadcast.
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
        // Runtimes refuse the operator where there is nothing to attend to or by.
        for dim in [queries, keys].into_iter().chain(q_lead) {
            prove(place.scope().ge(dim, &Dim::constant(1)), miss!("not-empty").of(scores.queries))?;
        }
        Ok(Sizes { lead: q_lead, queries, keys })
    }

    /// Whether a mask has a row for each query, if it is one that the operator takes: else it has one row for all.
    fn rows_of(&self, place: &Place<'_>, mask: ValueId) -> Option<bool> {
        let [lead @ .., rows, keys] = place.shape(mask)? else { return None };
        let mut pairs = lead.iter().rev().zip(self.lead.iter().rev());
        let fits =
            lead.len() <= self.lead.len() && pairs.all(|(from, to)| from.is_const(1) || is_equal(place, from, to));
        // Without an axis of heads in the scores, that of the batch would be taken for it.
        let is_aligned = self.lead.len() == 2 || lead.iter().all(|dim| dim.is_const(1));
        let has_rows = is_equal(place, rows, self.queries);
        let usable = fits && is_aligned && is_equal(place, keys, self.keys) && (has_rows || rows.is_const(1));
        usable.then_some(has_rows)
    }

    /// A mask of one row for all queries, broadcast to a row for each.
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
