//! The places of a vector without zeros.
//!
//! Law: `NonZero(x) = [[0, 1, …, n − 1]]` for a vector `x` of `n` numbers none of which is 0: a Range, laid out anew.

use super::uniform;
use crate::ir::{Edit, NewNode};
use crate::ops::size_operand::reshape_codes;
use crate::ops::traits::{Movement, traits_of};
use crate::rewrite::build::rebuilt;
use crate::rewrite::place::Place;
use crate::tensor::Tensor;

pub(super) fn in_order(place: &Place<'_>) -> Option<Edit> {
    let node = place.node()?;
    let (vector, output) = (node.input(0)?, node.output(0)?);
    let (filled, filling) = place.producer(vector, "ConstantOfShape")?;
    let sizes = filling.input(0)?;
    let [size] = place.shape(vector)? else { return None };
    let from = [size.clone()];
    if !place.opset.has("Range") || uniform(place, vector)?.to_f64s()?.first().is_none_or(|number| *number == 0.0) {
        return None;
    }
    // The filled vector goes; in its place comes the Range. What lays out the places lays out the Range.
    let readers = place.model.users(output);
    let lays_out = |reader| {
        let node = place.model.node(reader).filter(|node| Some(node.graph()) == place.graph())?;
        let layout = traits_of(place.model, node).moves == Some(Movement::Layout);
        reshape_codes(place.scope(), &from, place.shape(node.output(0)?)?).filter(|_| layout)
    };
    if !place.model.is_read_only_by(vector, &[place.id])
        || readers.is_empty()
        || place.model.is_named(output)
        || !readers.iter().all(|&(reader, slot)| slot == 0 && lays_out(reader).is_some())
    {
        return None;
    }
    let mut edit = place.edit()?.removing(place.id).removing(filled);
    let mut numbers = Vec::new();
    for number in [0i64, 1] {
        numbers.push(Some(edit.constant(output, "number", Tensor::scalar(number))));
    }
    let (limit, range) = (edit.new_value(sizes, "limit"), edit.new_value(output, "range"));
    edit.insert.push(NewNode::new("Squeeze", [Some(sizes)]).output(limit));
    let [start, step] = numbers[..] else { return None };
    edit.insert.push(NewNode::new("Range", [start, Some(limit), step]).output(range));
    for (reader, _) in readers {
        let layout = place.model.node(reader)?;
        let result = layout.output(0)?;
        let target = place.shape(result)?;
        edit.remove.push(reader);
        if let [_] = target {
            edit.replace.push((result, range));
            continue;
        }
        let node = place.build(&mut edit, result).reshape_to(place.scope(), range, &from, target)?;
        edit.insert.push(rebuilt(layout, node).output(result));
    }
    Some(edit)
}
