//! How operands of different shapes align: before operand set 7 as attributes said, from then on at the end.

use super::operands::widen;
use crate::passes::opset::draft::NodeDraft;

/// `broadcast` and `axis` of an operator with two operands: the second stands along the axes of the first from `axis` on, or along the
/// last ones.
pub(in crate::passes::opset) fn align(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    let stretches = draft.int("broadcast", 0)? != 0;
    let axis = draft.attribute("axis").map(|_| draft.int("axis", 0)).transpose()?;
    draft.take("broadcast");
    draft.take("axis");
    let Some(axis) = axis.filter(|_| stretches) else { return Ok(()) };
    let (long, short) = (draft.rank(0)?, draft.rank(1)?);
    // A scalar aligns wherever it stands.
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

/// `broadcast` of a Gemm: `C` aligns at the end in each version.
pub(in crate::passes::opset) fn drop_broadcast(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    draft.take("broadcast");
    Ok(())
}

/// The slope of a PRelu: a number, or one for each channel.
pub(in crate::passes::opset) fn align_slope(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    let single = draft.fact(1).and_then(crate::ir::Fact::static_len) == Some(1);
    if single || draft.rank(1)? != 1 {
        return Ok(());
    }
    let behind = draft.rank(0)?.saturating_sub(2);
    widen(draft, 1, 1, behind);
    Ok(())
}
