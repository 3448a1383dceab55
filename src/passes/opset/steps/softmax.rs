//! Converts Softmax, LogSoftmax and Hardmax: before operator set 13, they work on all axes from one on, flattened to one.

use crate::dim::Dim;
use crate::ir::NewNode;
use crate::passes::opset::back::shape::zero_everywhere;
use crate::passes::opset::draft::{NodeDraft, STATE_SHAPES};
use crate::rewrite::Build;

/// Sets a single axis if only that one has several elements; otherwise inserts a Flatten and a Reshape.
///
/// `softmax(x)[i, j] = softmax(flatten(x, axis))[i, j]`, because the rows of a flattened tensor are its axes from `axis` on.
pub(in crate::passes::opset) fn along_one_axis(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    let axis = draft.int("axis", 1)?;
    let shape = draft.shape(0);
    if let Some(dims) = shape {
        let rank = i64::try_from(dims.len()).unwrap_or(i64::MAX);
        let first = usize::try_from(if axis < 0 { axis.saturating_add(rank) } else { axis }).unwrap_or(usize::MAX);
        // All but one of the flattened axes have size 1.
        let mut wide = (first..dims.len()).filter(|&at| dims.get(at).is_none_or(|dim| !dim.is_const(1)));
        if first < dims.len() {
            let (one, more) = (wide.next(), wide.next());
            if more.is_none() {
                draft.set("axis", i64::try_from(one.unwrap_or(first)).unwrap_or(i64::MAX));
                return Ok(());
            }
        }
    }
    let Some(data) = draft.input(0) else { return Err("it has no operand; correct the model".to_string()) };
    let (rank, one) = (shape.map(<[_]>::len), Dim::constant(1));
    let is_filled = shape.is_some_and(|dims| dims.iter().all(|dim| draft.facts.scope().ge(dim, &one).is_yes()));
    let keeps_zero = draft.target.reshape_may_keep_zero();
    let flat = draft.before(NewNode::new("Flatten", [Some(data)]).with("axis", axis), "flat");
    let shape = draft.before(Build::shape(data), "shape");
    draft.set_input(0, flat);
    draft.set("axis", -1);
    if keeps_zero || is_filled {
        draft.behind(0, "rows", |rows| {
            let node = NewNode::new("Reshape", [Some(rows), Some(shape)]);
            if keeps_zero { node.with("allowzero", 1) } else { node }
        });
        return Ok(());
    }
    let Some(rank) = rank else {
        return Err(format!(
            "it works on several axes at once, and operand 0 of unknown rank may be empty; convert to 14 or newer, or {STATE_SHAPES}"
        ));
    };
    let rows = NewNode { outputs: Vec::new(), ..draft.node.clone() };
    let rows = draft.before(rows, "rows");
    let rows = zero_everywhere(draft, rows, rank);
    draft.replace(NewNode::new("Reshape", [Some(rows), Some(shape)]));
    Ok(())
}
