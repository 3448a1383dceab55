//! Removes the splitting and merging of heads around an Attention, because the operator can do both.
//!
//! Laws, for operands `[batch, length, heads · size]`:
//!
//! * `join(Attention(part(q), part(k), part(v))) = Attention(q, k, v; q_num_heads, kv_num_heads)`, where `part` is a Reshape to
//!   `[batch, length, heads, size]` and a Transpose that swaps the heads and the length, and `join` is its inverse
//! * `join(Attention(part(x)[0], part(x)[1], part(x)[2])) = Attention(Split(x))` where `part` also makes an axis of size 3 before the heads
//! * `Attention(q, repeat(k), repeat(v)) = Attention(q, k, v)` where `repeat` repeats each head several times in a row

use crate::dim::Dim;
use crate::ir::{Edit, NewNode, Node, NodeId, ValueId};
use crate::rewrite::miss::{Miss, ensure};
use crate::rewrite::place::Place;
use crate::rewrite::rule::{Rule, miss};

pub(in crate::rewrite) const RULES: &[Rule] = &[
    Rule {
        name: "attention-heads",
        law: "join(Attention(part(q), part(k), part(v))) = Attention(q, k, v; q_num_heads, kv_num_heads), where part splits the last axis into heads, and join merges them",
        sentence: "Removes the splitting and merging of heads around Attention, if `--opset` requests an operator set.",
        premises: &[
            (
                "parted",
                "q, k and v are reshaped into heads, and transposed so that the head axis precedes the sequence axis",
            ),
            ("joined", "the result is transposed so that the sequence axis precedes the head axis"),
            ("heads-known", "the numbers of heads of q, k and v are constants"),
            (
                "one-batch",
                "q, k and v have the same batch size, because Attention broadcasts the batch only if the head axis precedes the sequence axis",
            ),
            (
                "no-cache",
                "the Attention has no past keys and values, and only the first output of the Attention has consumers",
            ),
            (
                "fewer",
                "the number of nodes does not grow, even if the nodes that split an operand have other consumers and are kept",
            ),
            ("one-reader", "the result of the Attention has no other consumer"),
        ],
        exact: false,
        operators: &["Transpose"],
        apply: heads,
    },
    Rule {
        name: "attention-of-parts",
        law: "join(Attention(part(x)[0], part(x)[1], part(x)[2])) = Attention(Split(x); q_num_heads, kv_num_heads), where part separates q, k and v and splits them into heads, and join merges heads",
        sentence: "Replaces the Reshape, the Transpose and the selections before Attention by a Split of one value into queries, keys and values, if `--opset` requests an operator set.",
        premises: &[
            (
                "parted",
                "the last axis of one value is divided first into queries, keys and values, and then into heads",
            ),
            ("three", "queries, keys and values together are the whole value"),
            ("joined", "the result of the Attention is transposed so that the sequence axis precedes the head axis"),
            (
                "no-cache",
                "the Attention has no past keys and values, and only the first output of the Attention has consumers",
            ),
            ("one-reader", "the intermediate values have no other consumer"),
        ],
        exact: false,
        operators: &["Transpose"],
        apply: stacked,
    },
    Rule {
        name: "attention-groups",
        law: "Attention(q, repeat(k), repeat(v)) = Attention(q, k, v), where repeat repeats each head",
        sentence: "Removes the repetition of key and value heads before a grouped-query Attention, if `--opset` requests an operator set.",
        premises: &[
            ("repeated", "k and v contain each head equally often, with all copies of a head next to each other"),
            (
                "no-cache",
                "the Attention has no past keys and values, and only the first output of the Attention has consumers",
            ),
        ],
        exact: false,
        operators: &["Attention"],
        apply: groups,
    },
];

/// The permutation that swaps the heads and the length.
const SWAP: [usize; 4] = [0, 2, 1, 3];

/// Returns queries, keys and values of an Attention without caches whose only result is the first one. A mask is allowed.
fn operands(node: &Node) -> Result<[ValueId; 3], Miss> {
    let alone = node.inputs().iter().skip(4).all(Option::is_none) && node.outputs().iter().skip(1).all(Option::is_none);
    ensure(alone, miss!("no-cache"))?;
    let operand = |slot: usize| node.input(slot).ok_or(Miss::ROOT);
    Ok([operand(0)?, operand(1)?, operand(2)?])
}

/// Matches the Transpose after an Attention.
fn heads(place: &Place<'_>) -> Result<Edit, Miss> {
    let result = place.operand(0)?;
    let (id, node) = place.producer(result, "Attention").ok_or(Miss::ROOT)?;
    let [q, k, v] = operands(node)?;
    ensure(place.reading()?.permutation(4).ok_or(Miss::ROOT)? == SWAP, miss!("joined"))?;
    ensure(place.dims(result)?.len() == 4, miss!("parted").of(result))?;
    let mut remove = vec![place.id, id];
    let parts = [q, k, v].map(|value| Part::of(place, value, id, &mut remove));
    let [Some(q), Some(k), Some(v)] = parts else { return Err(miss!("parted")) };
    ensure([&k, &v].iter().all(|part| place.scope().eq(part.batch, q.batch).is_yes()), miss!("one-batch"))?;
    let added = [&q, &k, &v].iter().filter(|part| part.sizes.is_some()).count();
    ensure(added.checked_add(2).ok_or(Miss::COMPUTABLE)? <= remove.len(), miss!("fewer"))?;
    let reads = [&q, &k, &v].map(|part| part.source);
    let mut edit = place.fuse(remove, &reads, 0)?;
    let mut inputs = Vec::with_capacity(reads.len());
    for part in [&q, &k, &v] {
        inputs.push(Some(part.joined(place, &mut edit).ok_or(miss!("parted"))?));
    }
    side_by_side(place, edit, node, inputs, [q.heads, k.heads])
}

/// Builds the Attention of rank-3 operands, and turns the current node into a Reshape of its result.
fn side_by_side(
    place: &Place<'_>,
    mut edit: Edit,
    node: &Node,
    mut inputs: Vec<Option<ValueId>>,
    [q_heads, kv_heads]: [i64; 2],
) -> Result<Edit, Miss> {
    let (result, output) = (place.operand(0)?, place.only_output().ok_or(Miss::ROOT)?);
    let parted = place.dims(output)?;
    inputs.extend(node.inputs().iter().skip(inputs.len()));
    let attention = NewNode { inputs, ..NewNode::like(node) };
    let attention = attention.with("kv_num_heads", kv_heads).with("q_num_heads", q_heads);
    let whole = edit.new_value(result, "joined");
    edit.insert.push(attention.output(whole));
    let joined = join(place, parted).ok_or(miss!("joined"))?;
    let part =
        place.build(&mut edit, output).reshape_to(place.scope(), whole, &joined, parted).ok_or(Miss::EXPRESSIBLE)?;
    Ok(edit.inserting(part.output(output)))
}

/// Matches the Transpose after an Attention whose queries, keys and values are parts of one value.
fn stacked(place: &Place<'_>) -> Result<Edit, Miss> {
    const PARTS: usize = 3;
    // The axes of `[batch, length, 3, heads, size]` without the axis of size 3.
    const PARTED: [usize; 4] = [0, 3, 1, 4];
    const RANK: usize = 5;
    let result = place.operand(0)?;
    let (id, node) = place.producer(result, "Attention").ok_or(Miss::ROOT)?;
    let values = operands(node)?;
    ensure(place.reading()?.permutation(4).ok_or(Miss::ROOT)? == SWAP, miss!("joined"))?;
    ensure(place.dims(result)?.len() == 4, miss!("three").of(result))?;
    let gather = |value: ValueId| place.producer(value, "Gather");
    let (_, first) = gather(*values.first().ok_or(Miss::ROOT)?).ok_or(miss!("three"))?;
    let (stack, axis) = (first.input(0).ok_or(Miss::ROOT)?, place.read(first).axis(RANK).ok_or(Miss::ROOT)?);
    let (turn, transpose) = place.producer(stack, "Transpose").ok_or(Miss::ROOT)?;
    let mut perm = place.read(transpose).permutation(RANK).ok_or(Miss::ROOT)?;
    ensure(perm.remove(axis) == 2 && perm == PARTED, miss!("parted"))?;
    let (mut remove, mut places) = (vec![place.id, id], Vec::new());
    for value in values {
        let (gather, node) = gather(value).ok_or(miss!("three"))?;
        let alike = node.input(0) == Some(stack) && place.read(node).axis(RANK) == Some(axis);
        let index = node
            .input(1)
            .filter(|_| alike && place.shape(value).is_some_and(|dims| dims.len() == 4))
            .ok_or(miss!("three").of(value))?;
        let [index] = place.const_ints(index).ok_or(miss!("three").of(index))?[..] else {
            return Err(miss!("three").of(index));
        };
        places
            .push(usize::try_from(index).ok().filter(|at| *at < PARTS && !places.contains(at)).ok_or(miss!("three"))?);
        remove.extend(place.is_internal(value, &[id]).then_some(gather));
    }
    let parted = transpose.input(0).ok_or(Miss::ROOT)?;
    let (reshape, inner) = place.producer(parted, "Reshape").ok_or(Miss::ROOT)?;
    let ([batch, length, count, heads, size], source) = (place.dims(parted)?, inner.input(0).ok_or(Miss::ROOT)?) else {
        return Err(miss!("three").of(parted));
    };
    let (number, width) = (heads.as_const().ok_or(miss!("parted"))?, place.scope().mul(heads, size));
    let whole = [batch.clone(), length.clone(), place.scope().mul(&width, count)];
    let dims = place.dims(source)?;
    let fits = place.same_dims(dims, &whole);
    ensure(fits, miss!("parted"))?;
    ensure(count.is_const(3), miss!("three"))?;
    ensure(remove.len() == PARTS.checked_add(2).ok_or(Miss::COMPUTABLE)?, Miss::READ)?;
    if place.is_internal(stack, &remove) {
        remove.push(turn);
        remove.extend(place.is_internal(parted, &[turn]).then_some(reshape));
    }
    let mut edit = place.fuse(remove, &[source], 0)?;
    let outputs: Vec<ValueId> = ["first", "second", "third"].map(|part| edit.new_value(source, part)).to_vec();
    let split = place
        .build(&mut edit, source)
        .split(source, 2, vec![width.as_const().ok_or(miss!("three"))?; PARTS])
        .ok_or(Miss::EXPRESSIBLE)?;
    edit.insert.push(outputs.iter().fold(split, |split, &part| split.output(part)));
    let inputs = places.iter().map(|&at| outputs.get(at).copied()).collect();
    side_by_side(place, edit, node, inputs, [number, number])
}

/// Returns the dims `[batch, length, heads, size]` as `[batch, length, heads · size]`.
fn join(place: &Place<'_>, dims: &[Dim]) -> Option<Vec<Dim>> {
    let [batch, length, heads, size] = dims else { return None };
    Some(vec![batch.clone(), length.clone(), place.scope().mul(heads, size)])
}

/// An operand that was split into heads.
struct Part<'p> {
    batch: &'p Dim,
    /// The value with the elements of all heads, in the order of rank 3.
    source: ValueId,
    /// The dims to which the value must be reshaped, if it has others.
    sizes: Option<Vec<Dim>>,
    heads: i64,
}

impl<'p> Part<'p> {
    /// Reads an operand of the Attention, and adds the nodes that only split it to `remove`.
    fn of(place: &'p Place<'_>, value: ValueId, attention: NodeId, remove: &mut Vec<NodeId>) -> Option<Self> {
        let (transpose, node) = place.producer(value, "Transpose")?;
        let parted = node.input(0)?;
        if place.read(node).permutation(4)? != SWAP {
            return None;
        }
        let dims = place.shape(parted)?;
        let (batch, heads) = (dims.first()?, dims.get(2)?.as_const()?);
        let is_own = place.is_internal(value, &[attention]);
        remove.extend(is_own.then_some(transpose));
        let sizes = join(place, dims)?;
        let Some((reshape, node)) = place.producer(parted, "Reshape") else {
            return Some(Part { batch, source: parted, sizes: Some(sizes), heads });
        };
        let source = node.input(0)?;
        let is_joined = place.same_dims(place.shape(source)?, &sizes);
        remove.extend((is_own && place.is_internal(parted, &[transpose])).then_some(reshape));
        Some(Part { batch, source, sizes: (!is_joined).then_some(sizes), heads })
    }

    /// Returns the operand in rank 3.
    fn joined(&self, place: &Place<'_>, edit: &mut Edit) -> Option<ValueId> {
        let Some(sizes) = &self.sizes else { return Some(self.source) };
        let joined = edit.new_value(self.source, "joined");
        let reshape =
            place.build(edit, joined).reshape_to(place.scope(), self.source, place.shape(self.source)?, sizes)?;
        edit.insert.push(reshape.output(joined));
        Some(joined)
    }
}

/// Matches an Attention.
fn groups(place: &Place<'_>) -> Result<Edit, Miss> {
    let node = place.root()?;
    let [_, k, v] = operands(node)?;
    let ((keys, times), (values, same)) = (repeated(place, k)?, repeated(place, v)?);
    ensure(times == same, miss!("repeated"))?;
    let mut edit = place.begin()?;
    edit.rewire = vec![(place.id, 1, Some(keys)), (place.id, 2, Some(values))];
    Ok(edit)
}

/// Reads `[batch, heads · times, length, size]` in which each head is repeated in a row. Returns the value with single heads, and the
/// number of repetitions.
fn repeated(place: &Place<'_>, value: ValueId) -> Result<(ValueId, i64), Miss> {
    if let Some((_, gather)) = place.producer(value, "Gather") {
        return looked_up(place, gather);
    }
    let (_, reshape) = place.producer(value, "Reshape").ok_or(miss!("repeated").of(value))?;
    let wide = reshape.input(0).ok_or(Miss::ROOT)?;
    let (_, expand) = place.producer(wide, "Expand").ok_or(miss!("repeated").of(wide))?;
    let narrow = expand.input(0).ok_or(Miss::ROOT)?;
    let data = place.layout(narrow).ok_or(Miss::ROOT)?.1.input(0).ok_or(Miss::ROOT)?;
    let [batch, heads, times, length, size] = place.dims(wide)? else {
        return Err(miss!("repeated").of(wide));
    };
    let (one, count) = (Dim::constant(1), times.as_const().filter(|&times| times > 1).ok_or(miss!("repeated"))?);
    let has_shape = |value: ValueId, dims: &[&Dim]| {
        let shape = place.shape(value)?;
        Some(shape.len() == dims.len() && shape.iter().zip(dims).all(|(a, b)| place.scope().eq(a, b).is_yes()))
    };
    let fits = has_shape(narrow, &[batch, heads, &one, length, size]).ok_or(miss!("repeated"))?
        && has_shape(data, &[batch, heads, length, size]).ok_or(miss!("repeated"))?
        && has_shape(value, &[batch, &place.scope().mul(heads, times), length, size]).ok_or(miss!("repeated"))?;
    ensure(fits, miss!("repeated"))?;
    Ok((data, count))
}

/// Reads heads that a Gather repeats, with the same result.
fn looked_up(place: &Place<'_>, gather: &Node) -> Result<(ValueId, i64), Miss> {
    let data = gather.input(0).ok_or(Miss::ROOT)?;
    let dims = place.shape(data).filter(|dims| dims.len() == 4).ok_or(miss!("repeated").of(data))?;
    let heads = dims.get(1).ok_or(miss!("repeated"))?.as_const().ok_or(miss!("repeated"))?;
    let indices = place
        .constant(gather.input(1).ok_or(Miss::ROOT)?)
        .filter(|indices| indices.shape().len() == 1)
        .ok_or(miss!("repeated"))?
        .to_i64s()
        .ok_or(Miss::COMPUTABLE)?;
    let times = i64::try_from(indices.len())
        .or(Err(Miss::COMPUTABLE))?
        .checked_div(heads)
        .filter(|&times| times > 1)
        .ok_or(miss!("repeated"))?;
    let in_a_row = indices.iter().zip(0i64..).all(|(&index, at)| at.checked_div(times) == Some(index));
    let all = times.checked_mul(heads).and_then(|all| usize::try_from(all).ok()) == Some(indices.len());
    ensure(in_a_row && all && place.read(gather).axis(dims.len()) == Some(1), miss!("repeated"))?;
    Ok((data, times))
}
