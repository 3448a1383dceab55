//! Replaces the formula of a rotary embedding by the operator.
//!
//! Laws, for `x[batch, heads, length, size]` with halves `x₁` and `x₂`, and angles that are equal in both halves of each position:
//!
//! * `x·cos + [−x₂, x₁]·sin = RotaryEmbedding(x, cos₁, sin₁)`, since opset 23
//! * `[RotaryEmbedding(x[: r]), x[r :]] = RotaryEmbedding(x; rotary_embedding_dim = r)`
//! * `RotaryEmbedding(part(x), …) = part(RotaryEmbedding(x, …; num_heads))` where `part` splits off an axis of heads and moves it before
//!   the length
//!
//! The operator needs angles for every batch. If the angles are the same for all batches, the edit expands them once for all
//! RotaryEmbeddings that use them. If all sizes are static, the operand *position_ids* selects the rows instead. ONNX Runtime supports
//! empty batches and sequences.

use super::kernels::has_kernel;
use crate::dim::Dim;
use crate::ir::{Edit, NewNode, Node, NodeId, ValueId};
use crate::ops::traits::{Movement, Operands, traits_of};
use crate::rewrite::axes::part;
use crate::rewrite::build::{Build, axes};
use crate::rewrite::limits::DEPTH;
use crate::rewrite::miss::{Miss, ensure, first_of, prove};
use crate::rewrite::place::Place;
use crate::rewrite::rule::{Rule, miss};
use crate::rewrite::slices::cuts::cuts_of;
use crate::tensor::{StridedView, Tensor, gather};

pub(in crate::rewrite) const RULES: &[Rule] = &[
    Rule {
        name: "spelled-rotary",
        law: "x·cos + [−x₂, x₁]·sin = RotaryEmbedding(x, cos₁, sin₁) for halves x₁, x₂, cos₁, sin₁",
        sentence: "Replaces a decomposed rotary embedding by the operator RotaryEmbedding.",
        premises: &[
            ("known", "the model's operator set contains RotaryEmbedding, which exists since operator set 23"),
            ("has-kernel", "runtimes have a kernel of the operator for the element type"),
            ("halves", "x has rank 4, x₁ and x₂ are the halves of the last axis of x, and the second half is negated"),
            (
                "same-angles",
                "the two halves of cos are proved to be equal, and the two halves of sin are proved to be equal. All heads use the same cos and sin",
            ),
            ("own-length", "cos and sin have an entry for every position of the sequence"),
            ("pays", "if cos and sin must be broadcast over the batch, other rotary embeddings use the same broadcast"),
            ("one-reader", "the intermediate values of the formula have no other consumer"),
        ],
        exact: false,
        operators: &["Add"],
        apply: spelled,
    },
    Rule {
        name: "rotary-of-part",
        law: "[RotaryEmbedding(x[: r]), x[r :]] = RotaryEmbedding(x; rotary_embedding_dim = r)",
        sentence: "Merges a rotary embedding of the first r elements and a Concat with the other elements by the attribute rotary_embedding_dim.",
        premises: &[
            ("four-axes", "x has rank 4, with an axis of heads"),
            ("whole", "the Concat appends all remaining elements of x, in order"),
            ("one-reader", "the rotated part has no other consumer"),
        ],
        exact: false,
        operators: &["Concat"],
        apply: of_part,
    },
    Rule {
        name: "rotary-heads",
        law: "RotaryEmbedding(part(x), …) = part(RotaryEmbedding(x, …; num_heads)), where part splits the last axis into heads and transposes",
        sentence: "Moves the split into heads after a rotary embedding, because RotaryEmbedding can split the operand into heads by attribute num_heads.",
        premises: &[
            ("parted", "x is reshaped to [batch, length, heads, size], and then transposed"),
            (
                "for-attention",
                "the only consumer of the rotary embedding is an attention. All operands of the attention are split into heads in the same way, and the heads of the result are merged",
            ),
            ("one-reader", "the intermediate values have no other consumer"),
        ],
        exact: false,
        operators: &["RotaryEmbedding"],
        apply: heads,
    },
];

/// The most positions of a batch for which *position_ids* are listed. Above it the angles are expanded: a list would add 8 bytes per
/// position to the model.
const MOST_PLACES: i64 = 1 << 16;

/// The permutation that swaps heads and length.
const SWAP: [usize; 4] = [0, 2, 1, 3];

/// A range of the last axis of a value.
struct Run {
    /// The Slice or Split.
    id: NodeId,
    data: ValueId,
    start: i64,
    len: i64,
}

impl Run {
    /// Returns the range of the last axis of another value that a value is.
    fn of(place: &Place<'_>, value: ValueId) -> Option<Run> {
        let (id, node) = place.producer_of(value, &["Slice", "Split"])?;
        let data = node.input(0)?;
        let last = place.shape(data)?.len().checked_sub(1)?;
        if node.is("Split") {
            let (start, len) = part(place, node, value, last)?;
            return (place.read(node).axis(last.checked_add(1)?)? == last).then_some(Run { id, data, start, len });
        }
        let cuts = cuts_of(place, id)?;
        let mut cut = cuts.cut();
        let (Some((axis, cut)), None) = (cut.next(), cut.next()) else { return None };
        let (start, len) = cut.exact.as_ref()?;
        let fits = axis == last && cut.range.step == Some(1);
        Some(Run { id, data, start: start.as_const()?, len: len.as_const()? }).filter(|_| fits)
    }
}

/// The operands of a recognized rotary embedding.
struct Spelled {
    x: ValueId,
    cos: ValueId,
    sin: ValueId,
    half: i64,
    remove: Vec<NodeId>,
}

/// Matches the sum.
fn spelled(place: &Place<'_>) -> Result<Edit, Miss> {
    let output = place.only_output().ok_or(Miss::ROOT)?;
    ensure(place.opset.has("RotaryEmbedding"), miss!("known"))?;
    ensure(
        has_kernel("RotaryEmbedding", place.dtype(output).ok_or(miss!("has-kernel").of(output))?),
        miss!("has-kernel").of(output),
    )?;
    let &[Some(a), Some(b)] = place.root()?.inputs() else { return Err(Miss::ROOT) };
    let found = [(a, b), (b, a)].into_iter().map(|(plain, turned)| read(place, plain, turned));
    let found = first_of(found)?;
    prove(place.compare_shapes(found.x, output), miss!("same-angles").of(found.x))?;
    let edit = place.fuse(found.remove.clone(), &[found.x, found.cos, found.sin], 0)?;
    write(place, edit, &found, output)
}

/// Reads `plain = x·cos` and `turned = [−x₂, x₁]·sin`.
fn read(place: &Place<'_>, plain: ValueId, turned: ValueId) -> Result<Spelled, Miss> {
    let (first, product) = place.producer(plain, "Mul").ok_or(Miss::ROOT)?;
    let (second, other) = place.producer(turned, "Mul").ok_or(Miss::ROOT)?;
    let &[Some(a), Some(b)] = other.inputs() else { return Err(Miss::ROOT) };
    let is_joined = |value: ValueId| place.producer(value, "Concat").is_some();
    let (joined, sin) = if is_joined(a) { (a, b) } else { (b, a) };
    let (concat, node) = place.producer(joined, "Concat").ok_or(miss!("halves").of(joined))?;
    let &[Some(negated), Some(front)] = node.inputs() else { return Err(Miss::ROOT) };
    let (neg, negation) = place.producer(negated, "Neg").ok_or(miss!("halves").of(negated))?;
    let back = negation.input(0).ok_or(Miss::ROOT)?;
    let (x1, x2) = (Run::of(place, front).ok_or(miss!("halves"))?, Run::of(place, back).ok_or(miss!("halves"))?);
    let [_, _, _, size] = place.dims(x1.data)? else { return Err(miss!("halves")) };
    let half = x1.len;
    let halves = x1.data == x2.data && x1.start == 0 && x2.start == half && x2.len == half && half > 0;
    let is_last = place.read(node).axis(4).ok_or(Miss::ROOT)? == 3
        && size.as_const().ok_or(miss!("halves"))? == half.checked_mul(2).ok_or(Miss::COMPUTABLE)?;
    let &[Some(a), Some(b)] = product.inputs() else { return Err(Miss::ROOT) };
    let cos = match x1.data {
        x if x == a => b,
        x if x == b => a,
        _ => return Err(miss!("halves")),
    };
    let mut remove = vec![place.id, first, second, concat, neg];
    let parts: Vec<NodeId> = if x1.id == x2.id { vec![x1.id] } else { vec![x1.id, x2.id] };
    let own = |&id: &NodeId| {
        let outputs = place.model.node(id).map(Node::outputs).unwrap_or_default();
        outputs.iter().flatten().all(|&output| place.is_internal(output, &[concat, neg]))
    };
    remove.extend(parts.into_iter().filter(own));
    ensure(halves && is_last, miss!("halves"))?;
    Ok(Spelled { x: x1.data, cos, sin, half, remove })
}

/// Builds the operator, with the first half of the angles.
fn write(place: &Place<'_>, mut edit: Edit, found: &Spelled, output: ValueId) -> Result<Edit, Miss> {
    let [batch, _, length, _] = place.dims(found.x)? else {
        return Err(miss!("same-angles").of(found.x));
    };
    let angles = [
        Angles::of(place, found, found.cos).ok_or(miss!("same-angles"))?,
        Angles::of(place, found, found.sin).ok_or(miss!("same-angles"))?,
    ];
    let like = |value: ValueId| place.model.value(value).name.clone();
    let name = place.root()?.name.clone();
    let mut inputs = vec![Some(found.x)];
    let sizes = batch.as_const().zip(length.as_const()).filter(|(batch, _)| *batch > 1);
    let tables: Option<Vec<Tensor>> = angles.iter().map(|angles| angles.table(place)).collect();
    let is_small =
        |&(batch, length): &(i64, i64)| batch.checked_mul(length).is_some_and(|places| places <= MOST_PLACES);
    if let (Some((batch, length)), Some(tables)) = (sizes.filter(is_small), tables) {
        for (angles, table) in angles.iter().zip(tables) {
            inputs.push(Some(edit.constant_named(format!("{}_half", like(angles.value)), table)));
        }
        let (batch, row) = (usize::try_from(batch).or(Err(Miss::COMPUTABLE))?, (0..length).collect::<Vec<i64>>());
        let places = Tensor::from_vec(&[batch, row.len()], row.repeat(batch)).or(Err(miss!("same-angles")))?;
        inputs.push(Some(edit.constant(found.x, "places", places)));
    } else {
        let mut rows = None;
        for angles in &angles {
            inputs.push(Some(angles.cache(place, &mut edit, found.x, &mut rows).ok_or(miss!("same-angles"))?));
        }
    }
    Ok(edit.inserting(NewNode::new("RotaryEmbedding", inputs).named(name).output(output)))
}

/// The angles in the form in which one of the factors holds them.
struct Angles {
    value: ValueId,
    half: i64,
    /// The axes of size 1 before the length, without the batch.
    leading: usize,
    /// `true` if there are angles for each batch.
    has_batch: bool,
}

impl Angles {
    /// Reads angles `[length, size]` with up to two leading axes: one for the batch (or 1), and one of size 1 for the heads.
    fn of(place: &Place<'_>, found: &Spelled, value: ValueId) -> Option<Angles> {
        let ([batch, _, length, size], [lead @ .., own_length, own_size]) =
            (place.shape(found.x)?, place.shape(value)?)
        else {
            return None;
        };
        let equal = |a: &Dim, b: &Dim| place.scope().eq(a, b).is_yes();
        let has_batch = match lead {
            [] => batch.is_const(1),
            [heads] if heads.is_const(1) => batch.is_const(1),
            [own, heads] if heads.is_const(1) && (own.is_const(1) || equal(own, batch)) => equal(own, batch),
            _ => return None,
        };
        let is_shared = has_batch || place.model.has_more_readers(value, 1);
        let fits = equal(own_length, length) && equal(own_size, size) && is_shared;
        let leading = lead.len();
        (fits && repeats(place, value, found.half, 0)).then_some(Angles { value, half: found.half, leading, has_batch })
    }

    /// Returns the first half of constant angles that are the same for all batches, as one row for each position.
    fn table(&self, place: &Place<'_>) -> Option<Tensor> {
        let tensor = place.constant(self.value)?;
        let half = usize::try_from(self.half).ok()?;
        let view = StridedView::of(tensor).slice_axis(tensor.rank().checked_sub(1)?, 0, 1, half).ok()?;
        let part = gather(tensor, &view).ok()?;
        let [lead @ .., length, _] = tensor.shape() else { return None };
        if lead.iter().any(|&dim| dim != 1) {
            return None;
        }
        part.reshape(&[*length, half]).ok()
    }

    /// Returns the first half of the angles as `[batch, length, half]`. `rows` caches a vector of the batch and ones.
    fn cache(&self, place: &Place<'_>, edit: &mut Edit, x: ValueId, rows: &mut Option<ValueId>) -> Option<ValueId> {
        let last = self.leading.checked_add(1)?;
        let half = edit.new_value(self.value, "half");
        let slice = place.build(edit, half).slice(self.value, vec![0], vec![self.half], axes([last]), vec![1])?;
        edit.insert.push(slice.output(half));
        let mut cache = half;
        if self.leading != 1 {
            cache = edit.new_value(self.value, "angles");
            let node = match self.leading {
                0 => place.build(edit, cache).unsqueeze(half, vec![0]),
                _ => place.build(edit, cache).squeeze(half, vec![1]),
            };
            edit.insert.push(node.output(cache));
        }
        if self.has_batch {
            return Some(cache);
        }
        let sizes = match *rows {
            Some(sizes) => sizes,
            None => {
                let batch = edit.new_value(x, "batch");
                let shape = place.build(edit, batch).shape_of_run(x, 0..1)?;
                edit.insert.push(shape.output(batch));
                let ones = edit.constant(x, "ones", Tensor::vector(vec![1i64, 1]));
                let sizes = edit.new_value(x, "sizes");
                edit.insert.push(Build::concat([batch, ones], 0i64).output(sizes));
                *rows.insert(sizes)
            }
        };
        let spread = edit.new_value(self.value, "spread");
        edit.insert.push(NewNode::new("Expand", [Some(cache), Some(sizes)]).output(spread));
        Some(spread)
    }
}

/// Returns `true` if the last axis of a value repeats `half` numbers twice, or is uniform.
fn repeats(place: &Place<'_>, value: ValueId, half: i64, depth: usize) -> bool {
    repetition(place, value, half, depth) == Some(true)
}

fn repetition(place: &Place<'_>, value: ValueId, half: i64, depth: usize) -> Option<bool> {
    let Some(last) = place.shape(value)?.last() else { return Some(true) };
    if last.is_const(1) {
        return Some(true);
    }
    if depth > DEPTH || last.as_const()? != half.checked_mul(2)? {
        return None;
    }
    if let Some(tensor) = place.constant(value) {
        let (axis, half) = (tensor.rank().checked_sub(1)?, usize::try_from(half).ok()?);
        let part = |start| {
            let view = StridedView::of(tensor).slice_axis(axis, start, 1, half).ok()?;
            gather(tensor, &view).ok()
        };
        return Some(part(0)?.same(&part(half)?));
    }
    let id = place.model.value(value).producer()?;
    let node = place.model.node(id).filter(|node| Some(node.graph()) == place.graph())?;
    if !node.canonical_domain().is_empty() || node.outputs().len() != 1 {
        return None;
    }
    let rank = place.shape(value)?.len();
    let inner = |input: ValueId| repeats(place, input, half, depth.saturating_add(1));
    let data = node.input(0)?;
    if node.is("Concat") {
        let twice = matches!(*node.inputs(), [Some(a), Some(b)] if a == b);
        return Some(twice && place.read(node).axis(rank)?.checked_add(1)? == rank);
    }
    if node.is("Gather") {
        let from = place.shape(data)?.len();
        return Some(place.read(node).axis(from)?.checked_add(1)? < from && inner(data));
    }
    let traits = traits_of(place.model, node);
    match (traits.moves, traits.pointwise) {
        // A layout keeps the rows if the last axis keeps its size.
        (Some(Movement::Layout), _) => {
            let same = place.shape(data)?.last().is_some_and(|dim| dim == last);
            Some(same && inner(data))
        }
        (Some(Movement::Spread), _) => Some(node.is("Expand") && inner(data)),
        (None, Some(own)) if matches!(own.operands, Operands::Broadcast | Operands::First) => {
            Some(place.opset.everything_broadcasts() && node.inputs().iter().flatten().all(|&input| inner(input)))
        }
        _ => None,
    }
}

/// Matches the Concat.
fn of_part(place: &Place<'_>) -> Result<Edit, Miss> {
    let node = place.root()?;
    let &[Some(turned), Some(rest)] = node.inputs() else { return Err(Miss::ROOT) };
    let (id, rotary) = place.producer(turned, "RotaryEmbedding").ok_or(Miss::ROOT)?;
    let (front, back) = (
        Run::of(place, rotary.input(0).ok_or(Miss::ROOT)?).ok_or(miss!("whole"))?,
        Run::of(place, rest).ok_or(miss!("whole"))?,
    );
    let [_, _, _, size] = place.dims(front.data)? else {
        return Err(miss!("four-axes").of(front.data));
    };
    let is_whole = front.data == back.data
        && front.start == 0
        && back.start == front.len
        && front.len.checked_add(back.len) == size.as_const()
        && place.read(node).axis(4).ok_or(Miss::ROOT)? == 3;
    ensure(
        is_whole && [0, front.len].contains(&rotary.int("rotary_embedding_dim", 0).ok_or(Miss::ROOT)?),
        miss!("whole"),
    )?;
    let mut remove = vec![place.id, id];
    let mut parts = vec![front.id, back.id];
    parts.dedup();
    for part in parts {
        let outputs = place.model.node(part).ok_or(Miss::ROOT)?.outputs();
        let own = outputs.iter().flatten().all(|&output| place.is_internal(output, &[place.id, id]));
        remove.extend(own.then_some(part));
    }
    let edit = place.fuse(remove, &[front.data], 0)?;
    let whole = NewNode::like(rotary).reading(0, front.data).set("rotary_embedding_dim", front.len);
    Ok(edit.inserting(whole.output(place.only_output().ok_or(Miss::ROOT)?)))
}

/// Returns the value that was split into heads, and the Transpose and Reshape that split it.
fn parted(place: &Place<'_>, value: ValueId) -> Option<(ValueId, NodeId, NodeId)> {
    let (transpose, node) = place.producer(value, "Transpose")?;
    let laid_out = node.input(0)?;
    if place.read(node).permutation(4)? != SWAP {
        return None;
    }
    let (reshape, node) = place.producer(laid_out, "Reshape")?;
    let source = node.input(0)?;
    let ([batch, length, heads, size], [own_batch, own_length, width]) = (place.shape(laid_out)?, place.shape(source)?)
    else {
        return None;
    };
    let equal = |a: &Dim, b: &Dim| place.scope().eq(a, b).is_yes();
    let fits = equal(batch, own_batch) && equal(length, own_length) && equal(&place.scope().mul(heads, size), width);
    fits.then_some((source, transpose, reshape))
}

/// Matches the operator.
fn heads(place: &Place<'_>) -> Result<Edit, Miss> {
    let (node, result) = (place.root()?, place.only_output().ok_or(Miss::ROOT)?);
    let x = node.input(0).ok_or(Miss::ROOT)?;
    let (source, transpose, reshape) = parted(place, x).ok_or(miss!("parted"))?;
    let users = place.model.users(result);
    let [(attention, 0 | 1)] = users[..] else { return Err(miss!("for-attention")) };
    ensure(!place.model.is_named(result) && joins_heads(place, attention), miss!("for-attention"))?;
    let [_, count, _, _] = place.dims(x)? else { return Err(miss!("parted").of(x)) };
    let mut edit = place.fuse(vec![place.id, transpose, reshape], &[source], 0)?;
    let turned = edit.new_value(result, "joined");
    let rotary = NewNode::like(node).reading(0, source).set("num_heads", count.as_const().ok_or(miss!("parted"))?);
    edit.insert.push(rotary.output(turned));
    let laid_out = edit.new_value(result, "parted");
    let [from, to] =
        [place.dims(source)?, place.dims(place.model.node(transpose).ok_or(Miss::ROOT)?.input(0).ok_or(Miss::ROOT)?)?];
    let again =
        place.build(&mut edit, laid_out).reshape_to(place.scope(), turned, from, to).ok_or(Miss::EXPRESSIBLE)?;
    edit.insert.push(again.output(laid_out));
    Ok(edit.inserting(Build::transpose(laid_out, SWAP).output(result)))
}

/// Returns `true` if an Attention can take operands of rank 3, with merged heads.
fn joins_heads(place: &Place<'_>, id: NodeId) -> bool {
    let Some(node) = place.model.node(id).filter(|node| node.is("Attention")) else { return false };
    let is_parted = |slot: usize| {
        let value = node.input(slot)?;
        let value = match place.producer(value, "RotaryEmbedding") {
            Some((_, rotary)) if place.shape(value)?.len() == 4 => rotary.input(0)?,
            _ => value,
        };
        parted(place, value)
    };
    let alone = node.inputs().iter().skip(4).all(Option::is_none) && node.outputs().iter().skip(1).all(Option::is_none);
    let is_joined = || {
        let [(reader, _)] = place.model.users(node.output(0)?)[..] else { return None };
        let transpose = place.model.node(reader).filter(|node| node.is("Transpose"))?;
        Some(place.read(transpose).permutation(4)? == SWAP)
    };
    alone && (0..3).all(|slot| is_parted(slot).is_some()) && is_joined() == Some(true)
}
