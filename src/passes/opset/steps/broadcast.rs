//! Aligns operands of different shapes: before operator set 7 by attributes, since then at the end.

use super::operands::widen;
use crate::passes::opset::draft::NodeDraft;

/// Replaces `broadcast` and `axis` of a binary operator: the second operand aligns with the axes of the first from `axis` on, or with the last ones.
pub(in crate::passes::opset) fn align(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    let stretches = draft.int("broadcast", 0)? != 0;
    let axis = draft.attribute("axis").map(|_| draft.int("axis", 0)).transpose()?;
    draft.take("broadcast");
    draft.take("axis");
    let Some(axis) = axis.filter(|_| stretches) else { return Ok(()) };
    let (long, short) = (draft.rank(0)?, draft.rank(1)?);
    // A scalar aligns anywhere.
    if short == 0 {
        return Ok(());
    }
    let beyond = || {
        format!("'axis' is {axis}, which leaves no room for {short} axes in the {long} of operand 0; correct the model")
    };
    let from_the_end = if axis < 0 { i64::try_from(long).unwrap_or(i64::MAX) } else { 0 };
    let start = axis.checked_add(from_the_end).and_then(|start| usize::try_from(start).ok()).ok_or_else(beyond)?;
    let behind = long.checked_sub(start).and_then(|left| left.checked_sub(short)).ok_or_else(beyond)?;
    widen(draft, 1, short, behind);
    Ok(())
}

/// Removes `broadcast` of a Gemm: `C` aligns at the end in each version.
pub(in crate::passes::opset) fn drop_broadcast(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    draft.take("broadcast");
    Ok(())
}

/// Aligns the slope of a PRelu: a number, or one for each channel.
pub(in crate::passes::opset) fn align_slope(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    let single = draft.fact(1).and_then(crate::ir::Fact::static_len) == Some(1);
    if single || draft.rank(1)? != 1 {
        return Ok(());
    }
    let behind = draft.rank(0)?.saturating_sub(2);
    widen(draft, 1, 1, behind);
    Ok(())
}
