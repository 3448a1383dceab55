//! Positions of an embedding, counted as the transformer optimizer of ONNX Runtime looks for it.
//!
//! It makes one kernel of the words, segments and positions that are looked up and summed, of the normalization of the sum and of the mask
//! (EmbedLayerNormalization), where the positions are cut from a constant at `Unsqueeze(Gather(Shape(words), 1), [0])`, as exporters
//! have it. The same size can be read in a node or two less, and costs that kernel.

use super::residual::{MOST_BEHIND, normalizes};
use crate::ir::{NodeId, ValueId};
use crate::rewrite::place::Place;

/// Where the end of the positions is read otherwise.
pub struct PositionEnd {
    /// The node that reads it.
    pub reader: NodeId,
    /// The words.
    pub words: ValueId,
    /// The shape of the words, if it is there.
    pub shape: Option<ValueId>,
}

/// How the positions are counted of an embedding with words, segments and positions, at the sum that is normalized.
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

/// Whether three products and a sum read one value behind a sum, and nothing else does: queries, keys and values of what is normalized,
/// without which that optimizer makes no kernel of it. It knows them as MatMul alone, so not where they are quantized.
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

/// The indices of what is looked up in a constant table.
fn looked_up(place: &Place<'_>, value: ValueId) -> Option<ValueId> {
    let (_, node) = place.producer(value, "Gather").filter(|(_, node)| node.int("axis", 0) == Some(0))?;
    let is_table = place.constant(node.input(0)?).is_some_and(|table| table.rank() == 2);
    node.input(1).filter(|_| is_table)
}

/// How the end of positions that are cut from a constant row is read off the words.
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
