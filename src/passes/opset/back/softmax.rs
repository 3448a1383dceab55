//! Writes Softmax, LogSoftmax and Hardmax along one axis in versions that work on all axes from one on.

use crate::ops::axis_in;
use crate::passes::opset::draft::NodeDraft;
use crate::rewrite::Build;

/// Moves the axis to the end by two Transposes, unless all axes after it have size 1. On the last axis, both versions agree.
pub(in crate::passes::opset) fn to_last_axis(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    let axis = draft.int("axis", -1)?;
    if axis == -1 {
        draft.set("axis", -1);
        return Ok(());
    }
    let dims = draft.known_shape(0)?;
    let rank = dims.len();
    let axis = axis_in(axis, rank).map_err(|_| format!("axis {axis} is none of {rank}; correct the model"))?;
    if dims.iter().skip(axis.saturating_add(1)).all(|dim| dim.is_const(1)) {
        draft.set("axis", i64::try_from(axis).unwrap_or(i64::MAX));
        return Ok(());
    }
    // Swapping two axes twice restores their order.
    let last = rank.saturating_sub(1);
    let order = (0..rank).map(|at| {
        if at == axis {
            last
        } else if at == last {
            axis
        } else {
            at
        }
    });
    let order: Vec<usize> = order.collect();
    let turned = draft.before(Build::transpose(draft.operand(0)?, order.iter().copied()), "turned");
    draft.set_input(0, turned);
    draft.set("axis", i64::try_from(last).unwrap_or(i64::MAX));
    draft.behind(0, "turned", |value| Build::transpose(value, order));
    Ok(())
}
