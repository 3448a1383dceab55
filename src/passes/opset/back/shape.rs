//! Writes Shape of a range of axes, and Reshape that keeps sizes of 0.

use crate::dim::Dim;
use crate::ir::{Fact, NewNode, ValueId};
use crate::passes::opset::draft::NodeDraft;
use crate::rewrite::Build;
use crate::tensor::{DType, Tensor};

/// Writes `shape(x)[start:end]`; Slice clamps the bounds as Shape does.
pub(in crate::passes::opset) fn shape_run(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    let start = draft.int("start", 0)?;
    let end = draft.attribute("end").map(|_| draft.int("end", 0)).transpose()?;
    if start == 0 && end.is_none() {
        return Ok(());
    }
    let shape = draft.before(Build::shape(draft.operand(0)?), "shape");
    let end = end.unwrap_or(i64::MAX);
    let slice = draft.build("shape").slice(shape, vec![start], vec![end], vec![0], vec![1]);
    draft.replace(slice.ok_or("there is no Slice")?);
    Ok(())
}

/// Keeps the meaning of a size of 0 (`allowzero`), although older versions copy the dim of *data* at this place for it.
///
/// Both agree if no size can be 0, or if the dim of *data* at the same place is a multiple of the size: then it is 0 whenever the size is. Otherwise
/// *data* is first reshaped so that every dim is 0 if it has no elements: with `m = min(n, 1)` for `n` elements, `[1, n]` is expanded to
/// `[m, …, m, n]`. A known size of -1 is written as a number, because older versions infer none next to a size of 0.
pub(in crate::passes::opset) fn keeps_zero(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    if draft.int("allowzero", 0)? == 0 {
        return Ok(());
    }
    draft.take("allowzero");
    let (scope, from) = (draft.facts.scope(), draft.shape(0));
    let is_positive = |size: &Dim| scope.ge(size, &Dim::constant(1)).is_yes();
    // A tensor of rank 0 has one element, so no size of its results is 0.
    if from.is_some_and(|from| from.iter().all(is_positive)) {
        return Ok(());
    }
    let (sizes, count) = (draft.fact(1).and_then(Fact::ints), draft.fact(1).and_then(Fact::static_len));
    let is_safe = |(place, size): (usize, &Dim)| {
        let own = from.and_then(|from| from.get(place));
        is_positive(size) || own.is_some_and(|own| scope.divides(size, own).is_yes())
    };
    if let Some(sizes) = &sizes {
        let open = sizes.iter().position(|size| size.is_const(-1));
        let others = sizes.iter().enumerate().filter(|&(place, _)| Some(place) != open);
        if others.clone().all(|(_, size)| is_positive(size)) {
            return Ok(());
        }
        // Next to a size of 0, the standard defines no meaning for -1, although runtimes infer it from the others.
        let is_open = open.is_some_and(|place| !infer_size(draft, place));
        if is_open || others.clone().all(is_safe) {
            return Ok(());
        }
    }
    let count = count.ok_or("the length of operand 1 is unknown, and one of its sizes may be 0 (allowzero)")?;
    if count == 0 {
        return Ok(());
    }
    if !draft.target.has("Expand") {
        return Err("one of its sizes may be 0 (allowzero), and there is no Expand".to_string());
    }
    let data = draft.operand(0)?;
    let data = zero_everywhere(draft, data, count);
    draft.set_input(0, data);
    Ok(())
}

/// Replaces the -1 at a place of *shape* by the size that Reshape infers: a number, or the dim of *data* at the same place. Returns `false` if it is
/// neither.
fn infer_size(draft: &mut NodeDraft<'_>, place: usize) -> bool {
    let result = draft.node.outputs.first().copied().flatten().and_then(|value| draft.facts.get(value));
    let size = result.and_then(Fact::shape).and_then(|dims| dims.get(place));
    let own = draft.shape(0).and_then(|dims| dims.get(place));
    let (Some(size), Some(data), Some(sizes)) = (size, draft.input(0), draft.input(1)) else { return false };
    let Ok(at) = i64::try_from(place) else { return false };
    let part = |draft: &mut NodeDraft<'_>, of: ValueId, from: i64, to: i64| {
        let slice = draft.build("part").slice(of, vec![from], vec![to], vec![0], vec![1])?;
        Some(draft.before(slice, "part"))
    };
    let known = match size.as_const() {
        Some(size) => draft.constant("size", Tensor::vector(vec![size])),
        None if own.is_some_and(|own| draft.facts.scope().eq(own, size).is_yes()) => {
            let shape = draft.before(Build::shape(data), "shape");
            let Some(own) = part(draft, shape, at, at.saturating_add(1)) else { return false };
            own
        }
        None => return false,
    };
    let before = part(draft, sizes, 0, at);
    let after = part(draft, sizes, at.saturating_add(1), i64::MAX);
    let (Some(before), Some(after)) = (before, after) else { return false };
    let sizes = draft.before(Build::concat([before, known, after], 0i64), "sizes");
    draft.set_input(1, sizes);
    true
}

/// Returns the elements of `data` in a tensor of at least `rank` and 2 axes, each of size 0 if there are no elements.
pub(in crate::passes::opset) fn zero_everywhere(draft: &mut NodeDraft<'_>, data: ValueId, rank: usize) -> ValueId {
    let row = draft.before(Build::flatten(data, 0), "row");
    let shape = draft.before(Build::shape(row), "shape");
    let at = draft.constant("at", Tensor::vector(vec![1i64]));
    let elements = draft.before(Build::gather(shape, at, 0i64), "elements");
    // `min(n, 1)` is 1 if there are elements.
    let some = draft.before(NewNode::new("Cast", [Some(elements)]).with("to", DType::Bool), "is_filled");
    let some = draft.before(NewNode::new("Cast", [Some(some)]).with("to", DType::Int64), "some");
    let others = rank.max(2).saturating_sub(1);
    let sizes = Build::concat(std::iter::repeat_n(some, others).chain([elements]), 0i64);
    let sizes = draft.before(sizes, "sizes");
    draft.op("Expand", &[row, sizes], "expanded")
}

/// Writes Trilu: selects *data* where `j - i ≥ k` (upper) or `j - i ≤ k` (lower), and 0 elsewhere.
pub(in crate::passes::opset) fn triangle(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    let (data, dtype) = (draft.operand(0)?, draft.known_dtype(0)?);
    let upper = draft.int("upper", 1)? != 0;
    let shape = draft.before(Build::shape(data), "shape");
    let mut along = |back: i64, across: i64, suffix: &'static str| {
        let at = draft.constant("at", Tensor::scalar(back));
        let size = draft.before(Build::gather(shape, at, 0i64), "size");
        let places = positions(draft, size);
        let node = draft.build("places").unsqueeze(places, vec![across]);
        draft.before(node, suffix)
    };
    let (rows, columns) = (along(-2, 1, "rows"), along(-1, 0, "columns"));
    let diagonal = match draft.input(1) {
        None => rows,
        Some(k) => draft.op("Add", &[rows, k], "diagonal"),
    };
    let (low, high) = if upper { (diagonal, columns) } else { (columns, diagonal) };
    let kept = draft.op("LessOrEqual", &[low, high], "kept");
    if dtype == DType::Bool {
        draft.replace(NewNode::new("And", [Some(data), Some(kept)]));
        return Ok(());
    }
    let zero = Tensor::zeros(dtype, &[]).map_err(|error| error.to_string())?;
    let zero = draft.constant("zero", zero);
    draft.replace(NewNode::new("Where", [Some(kept), Some(data), Some(zero)]));
    Ok(())
}

/// Returns the integers `0, 1, …` below a scalar.
pub(in crate::passes::opset) fn positions(draft: &mut NodeDraft<'_>, size: ValueId) -> ValueId {
    let (zero, one) = (Tensor::scalar(0i64), Tensor::scalar(1i64));
    let (zero, one) = (draft.constant("first", zero), draft.constant("step", one));
    draft.op("Range", &[zero, size, one], "positions")
}
