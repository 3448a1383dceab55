//! Heads that are parted and joined around an attention, as the operator does it.
//!
//! Laws, for operands `[batch, length, heads · size]`:
//!
//! * `join(Attention(part(q), part(k), part(v))) = Attention(q, k, v; q_num_heads, kv_num_heads)`, where `part` is a Reshape to
//!   `[batch, length, heads, size]` and a Transpose that puts the heads before the length, and `join` is the way back
//! * `join(Attention(part(x)[0], part(x)[1], part(x)[2])) = Attention(Split(x))` where `part` also makes an axis of three before the heads
//! * `Attention(q, repeat(k), repeat(v)) = Attention(q, k, v)` where each head stands several times in a row

use super::{Place, Rule};
use crate::dim::Dim;
use crate::ir::{Edit, NewNode, Node, NodeId, ValueId};

pub(in crate::rewrite) const RULES: &[Rule] = &[
    Rule {
        name: "attention-heads",
        law: "join(Attention(part(q), part(k), part(v))) = Attention(q, k, v; q_num_heads, kv_num_heads)",
        sentence: "Removes the splitting and merging of heads around Attention, if `--opset` requests an operator set.",
        premises: &[
            ("parted", "q, k and v are transposed so that the axis of heads precedes the sequence axis"),
            ("joined", "the result is transposed so that the sequence axis precedes the axis of heads"),
            ("heads-known", "the numbers of heads are known"),
            (
                "one-batch",
                "q, k and v have the same batch size: the operator only broadcasts operands whose heads precede the sequence axis",
            ),
            ("no-cache", "the attention has no caches, and no results but the first"),
            ("fewer", "the number of nodes does not grow, although an operand of the parts may have other consumers"),
            ("one-reader", "the result of the attention has no other consumer"),
        ],
        exact: false,
        operators: &["Transpose"],
        apply: heads,
    },
    Rule {
        name: "attention-of-parts",
        law: "join(Attention(part(x)[0], part(x)[1], part(x)[2])) = Attention(Split(x); q_num_heads, kv_num_heads)",
        sentence: "Splits queries, keys and values of one product by a Split before Attention, if `--opset` requests an operator set.",
        premises: &[
            ("parted", "one value is parted into queries, keys and values first and then into heads"),
            ("three", "they are all of its parts"),
            (
                "joined",
                "the result of the attention is transposed so that the sequence axis precedes the axis of heads",
            ),
            ("no-cache", "the attention has no caches, and no results but the first"),
            ("one-reader", "the values in between have no other consumer"),
        ],
        exact: false,
        operators: &["Transpose"],
        apply: stacked,
    },
    Rule {
        name: "attention-groups",
        law: "Attention(q, repeat(k), repeat(v)) = Attention(q, k, v)",
        sentence: "Removes the repetition of key and value heads before a grouped Attention, if `--opset` requests an operator set.",
        premises: &[
            ("repeated", "k and v repeat each head the same number of times in a row"),
            ("no-cache", "the attention has no caches, and no results but the first"),
        ],
        exact: false,
        operators: &["Attention"],
        apply: groups,
    },
];

/// The transposition that parts and joins.
const SWAP: [usize; 4] = [0, 2, 1, 3];

/// The operands of an attention without caches, whose only result is the first: queries, keys, values, and a mask.
fn operands(node: &Node) -> Option<[ValueId; 3]> {
    let alone = node.inputs().iter().skip(4).all(Option::is_none) && node.outputs().iter().skip(1).all(Option::is_none);
    Some([node.input(0)?, node.input(1)?, node.input(2)?]).filter(|_| alone)
}

/// Looks at the transposition behind an attention.
fn heads(place: &Place<'_>) -> Option<Edit> {
    let result = place.input(0)?;
    let (id, node) = place.producer(result, "Attention")?;
    let [q, k, v] = operands(node)?;
    if place.this()?.permutation(4)? != SWAP || place.shape(result)?.len() != 4 {
        return None;
    }
    let mut remove = vec![place.id, id];
    let parts = [q, k, v].map(|value| Part::of(place, value, id, &mut remove));
    let [Some(q), Some(k), Some(v)] = parts else { return None };
    if ![&k, &v].iter().all(|part| place.scope().eq(part.batch, q.batch).is_yes()) {
        return None;
    }
    let added = [&q, &k, &v].iter().filter(|part| part.sizes.is_some()).count();
    if added.checked_add(2)? > remove.len() {
        return None;
    }
    let reads = [&q, &k, &v].map(|part| part.source);
    let mut edit = place.fuse(remove, &reads, 0)?;
    let mut inputs = Vec::with_capacity(reads.len());
    for part in [&q, &k, &v] {
        inputs.push(Some(part.joined(place, &mut edit)?));
    }
    side_by_side(place, edit, node, inputs, [q.heads, k.heads])
}

/// The attention of operands whose heads are side by side, and the node looked at as a Reshape of that.
fn side_by_side(
    place: &Place<'_>,
    mut edit: Edit,
    node: &Node,
    mut inputs: Vec<Option<ValueId>>,
    [q_heads, kv_heads]: [i64; 2],
) -> Option<Edit> {
    let (result, output) = (place.input(0)?, place.only_output()?);
    let parted = place.shape(output)?;
    inputs.extend(node.inputs().iter().skip(inputs.len()));
    let attention = NewNode { inputs, ..NewNode::like(node) };
    let attention = attention.with("kv_num_heads", kv_heads).with("q_num_heads", q_heads);
    let whole = edit.new_value(result, "joined");
    edit.insert.push(attention.output(whole));
    let joined = join(place, parted)?;
    let part = place.build(&mut edit, output).reshape_to(place.scope(), whole, &joined, parted)?;
    Some(edit.inserting(part.output(output)))
}

/// Looks at the transposition behind an attention of queries, keys and values that are parts of one value.
fn stacked(place: &Place<'_>) -> Option<Edit> {
    const PARTS: usize = 3;
    // Of `[batch, length, 3, heads, size]`, without the axis of three.
    const PARTED: [usize; 4] = [0, 3, 1, 4];
    let result = place.input(0)?;
    let (id, node) = place.producer(result, "Attention")?;
    let values = operands(node)?;
    if place.this()?.permutation(4)? != SWAP || place.shape(result)?.len() != 4 {
        return None;
    }
    let gather = |value: ValueId| place.producer(value, "Gather");
    let (_, first) = gather(*values.first()?)?;
    let (stack, axis) = (first.input(0)?, place.read(first).axis(PARTED.len().checked_add(1)?)?);
    let (turn, transpose) = place.producer(stack, "Transpose")?;
    let mut perm = place.read(transpose).permutation(PARTED.len().checked_add(1)?)?;
    if perm.remove(axis) != 2 || perm != PARTED {
        return None;
    }
    let (mut remove, mut places) = (vec![place.id, id], Vec::new());
    for value in values {
        let (gather, node) = gather(value)?;
        let alike = node.input(0) == Some(stack) && place.read(node).axis(PARTED.len().checked_add(1)?) == Some(axis);
        let index = node.input(1).filter(|_| alike && place.shape(value).is_some_and(|dims| dims.len() == 4))?;
        let [index] = place.const_ints(index)?[..] else { return None };
        places.push(usize::try_from(index).ok().filter(|at| *at < PARTS && !places.contains(at))?);
        remove.extend(place.is_internal(value, &[id]).then_some(gather));
    }
    let parted = transpose.input(0)?;
    let (reshape, inner) = place.producer(parted, "Reshape")?;
    let ([batch, length, count, heads, size], source) = (place.shape(parted)?, inner.input(0)?) else { return None };
    let (number, width) = (heads.as_const()?, place.scope().mul(heads, size));
    let whole = [batch.clone(), length.clone(), place.scope().mul(&width, count)];
    let dims = place.shape(source)?;
    let fits = place.same_dims(dims, &whole);
    if !fits || !count.is_const(3) || remove.len() != PARTS.checked_add(2)? {
        return None;
    }
    if place.is_internal(stack, &remove) {
        remove.push(turn);
        remove.extend(place.is_internal(parted, &[turn]).then_some(reshape));
    }
    let mut edit = place.fuse(remove, &[source], 0)?;
    let outputs: Vec<ValueId> = ["first", "second", "third"].map(|part| edit.new_value(source, part)).to_vec();
    let split = place.build(&mut edit, source).split(source, 2, vec![width.as_const()?; PARTS])?;
    edit.insert.push(outputs.iter().fold(split, |split, &part| split.output(part)));
    let inputs = places.iter().map(|&at| outputs.get(at).copied()).collect();
    side_by_side(place, edit, node, inputs, [number, number])
}

/// `[batch, length, heads, size]` as `[batch, length, heads · size]`.
fn join(place: &Place<'_>, dims: &[Dim]) -> Option<Vec<Dim>> {
    let [batch, length, heads, size] = dims else { return None };
    Some(vec![batch.clone(), length.clone(), place.scope().mul(heads, size)])
}

/// An operand that was parted into heads.
struct Part<'p> {
    batch: &'p Dim,
    /// What has the elements of all heads, heads side by side.
    source: ValueId,
    /// Its sizes are to be these, if they are not.
    sizes: Option<Vec<Dim>>,
    heads: i64,
}

impl<'p> Part<'p> {
    /// Reads an operand of the attention, and notes the nodes that only part it.
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
        let is_joined = place.shape(source)?.len() == sizes.len()
            && place.shape(source)?.iter().zip(&sizes).all(|(a, b)| place.scope().eq(a, b).is_yes());
        remove.extend((is_own && place.is_internal(parted, &[transpose])).then_some(reshape));
        Some(Part { batch, source, sizes: (!is_joined).then_some(sizes), heads })
    }

    /// The operand with its heads side by side.
    fn joined(&self, place: &Place<'_>, edit: &mut Edit) -> Option<ValueId> {
        let Some(sizes) = &self.sizes else { return Some(self.source) };
        let joined = edit.new_value(self.source, "joined");
        let reshape =
            place.build(edit, joined).reshape_to(place.scope(), self.source, place.shape(self.source)?, sizes)?;
        edit.insert.push(reshape.output(joined));
        Some(joined)
    }
}

/// Looks at an attention.
fn groups(place: &Place<'_>) -> Option<Edit> {
    let node = place.node()?;
    let [_, k, v] = operands(node)?;
    let ((keys, times), (values, same)) = (repeated(place, k)?, repeated(place, v)?);
    if times != same {
        return None;
    }
    let mut edit = place.edit()?;
    edit.rewire = vec![(place.id, 1, Some(keys)), (place.id, 2, Some(values))];
    Some(edit)
}

/// Reads `[batch, heads · times, length, size]` in which each head stands several times in a row: the heads, and how often.
fn repeated(place: &Place<'_>, value: ValueId) -> Option<(ValueId, i64)> {
    if let Some((_, gather)) = place.producer(value, "Gather") {
        return looked_up(place, gather);
    }
    let (_, reshape) = place.producer(value, "Reshape")?;
    let wide = reshape.input(0)?;
    let (_, expand) = place.producer(wide, "Expand")?;
    let narrow = expand.input(0)?;
    let data = place.layout(narrow)?.1.input(0)?;
    let [batch, heads, times, length, size] = place.shape(wide)? else { return None };
    let (one, count) = (Dim::constant(1), times.as_const().filter(|&times| times > 1)?);
    let has_shape = |value: ValueId, dims: &[&Dim]| {
        let shape = place.shape(value)?;
        Some(shape.len() == dims.len() && shape.iter().zip(dims).all(|(a, b)| place.scope().eq(a, b).is_yes()))
    };
    let fits = has_shape(narrow, &[batch, heads, &one, length, size])?
        && has_shape(data, &[batch, heads, length, size])?
        && has_shape(value, &[batch, &place.scope().mul(heads, times), length, size])?;
    fits.then_some((data, count))
}

/// The same where the heads are looked up.
fn looked_up(place: &Place<'_>, gather: &Node) -> Option<(ValueId, i64)> {
    let data = gather.input(0)?;
    let dims = place.shape(data).filter(|dims| dims.len() == 4)?;
    let heads = dims.get(1)?.as_const()?;
    let indices = place.constant(gather.input(1)?).filter(|indices| indices.shape().len() == 1)?.to_i64s()?;
    let times = i64::try_from(indices.len()).ok()?.checked_div(heads).filter(|&times| times > 1)?;
    let in_a_row = indices.iter().zip(0i64..).all(|(&index, at)| at.checked_div(times) == Some(index));
    let all = times.checked_mul(heads).and_then(|all| usize::try_from(all).ok()) == Some(indices.len());
    (in_a_row && all && place.read(gather).axis(dims.len()) == Some(1)).then_some((data, times))
}
