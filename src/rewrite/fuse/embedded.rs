//! Finds the position embeddings that ONNX Runtime's transformer optimizer fuses.
//!
//! The optimizer fuses the lookups of words, segments and positions, their sum, the normalization of the sum and the mask
//! (EmbedLayerNormalization). It requires that the positions are a Slice of a constant up to `Unsqueeze(Gather(Shape(words), 1), [0])`, the
//! form of exporters. The same size can be computed with one or two nodes less, but then the fusion does not match.

use super::residual::{MOST_BEHIND, normalizes};
use crate::ir::{NodeId, ValueId};
use crate::rewrite::place::Place;

/// A position embedding whose end is computed in another form.
pub struct PositionEnd {
    /// The node that reads the end.
    pub reader: NodeId,
    /// The words.
    pub words: ValueId,
    /// The shape of the words, if a node computes it.
    pub shape: Option<ValueId>,
}

/// Returns the end of the positions, at the normalized sum of an embedding with words, segments and positions.
pub fn counted_positions(place: &Place<'_>) -> Option<PositionEnd> {
    let node = place.node().filter(|node| node.is("Add"))?;
    let &[Some(sum), Some(last)] = node.inputs() else { return None };
    let (_, first) = place.producer(sum, "Add")?;
    let &[Some(words), Some(second)] = first.inputs() else { return None };
    let words = looked_up(place, words)?;
    let (second, last) = (looked_up(place, second)?, looked_up(place, last)?);
    let count = read_off(place, last, words).or_else(|| read_off(place, second, words))?;
    let whole = place.only_output()?;
    (normalizes(place, whole) && feeds_an_attention(place, whole)).then_some(count)
}

/// Returns `true` if three MatMuls and an Add are the only consumers of a value after a sum: the queries, keys and values of an attention.
/// Without them the optimizer does not fuse the embedding. It matches no quantized products.
fn feeds_an_attention(place: &Place<'_>, sum: ValueId) -> bool {
    let (mut open, mut next) = (vec![sum], 0);
    while let Some(&value) = open.get(next).filter(|_| next < MOST_BEHIND) {
        next += 1;
        let readers = place.model.users(value);
        let nodes = || readers.iter().filter_map(|&(id, _)| place.model.node(id));
        let count = |operator: &str| nodes().filter(|node| node.is(operator)).count();
        if readers.len() == 4 && count("MatMul") == 3 && count("Add") == 1 {
            return true;
        }
        for node in nodes().take(MOST_BEHIND) {
            open.extend(node.output(0).filter(|result| !open.contains(result)));
        }
    }
    false
}

/// Returns the indices of a lookup in a constant table.
fn looked_up(place: &Place<'_>, value: ValueId) -> Option<ValueId> {
    let (_, node) = place.producer(value, "Gather").filter(|(_, node)| node.int("axis", 0) == Some(0))?;
    let is_table = place.constant(node.input(0)?).is_some_and(|table| table.rank() == 2);
    node.input(1).filter(|_| is_table)
}

/// Returns the computation of the end of positions that a Slice takes from a constant row.
fn read_off(place: &Place<'_>, positions: ValueId, words: ValueId) -> Option<PositionEnd> {
    let (_, slice) = place.producer(positions, "Slice")?;
    let &[Some(row), Some(start), Some(end), Some(axis), ref step @ ..] = slice.inputs() else { return None };
    let says = |value: ValueId, number: i64| place.const_ints(value).is_some_and(|numbers| numbers == [number]);
    let is_row = place.constant(row).is_some_and(|row| matches!(row.shape(), [1, _]));
    let steps = step.iter().flatten().all(|&step| says(step, 1));
    if !is_row || !steps || !says(start, 0) || !says(axis, 1) {
        return None;
    }
    let (reader, node) = place.producer_of(end, &["Shape", "Gather"])?;
    if node.is("Shape") {
        let is_size = node.input(0) == Some(words) && node.int("start", 0) == Some(1) && node.int("end", 0) == Some(2);
        return is_size.then_some(PositionEnd { reader, words, shape: None });
    }
    let shape = node.input(0)?;
    let (_, of) = place.producer(shape, "Shape")?;
    let is_whole = of.input(0) == Some(words) && of.attributes.is_empty();
    let is_size = is_whole && says(node.input(1)?, 1) && place.shape(end)?.len() == 1;
    is_size.then_some(PositionEnd { reader, words, shape: Some(shape) })
}
