//! Expands Attention and RotaryEmbedding.

use crate::dim::Dim;
use crate::ir::{NewNode, ValueId};
use crate::passes::opset::back::shape::positions;
use crate::passes::opset::draft::{NodeDraft, STATE_SHAPES};
use crate::rewrite::Build;
use crate::tensor::{DType, Tensor};

/// Returns a known positive size that the expansion requires.
fn size_of(draft: &NodeDraft<'_>, slot: usize, axis: usize) -> Result<i64, String> {
    let size = draft.known_shape(slot)?.get(axis).and_then(Dim::as_const).filter(|size| *size > 0);
    size.ok_or_else(|| format!("the size of axis {axis} of operand {slot} is unknown; {STATE_SHAPES}"))
}

fn reshape(draft: &mut NodeDraft<'_>, data: ValueId, codes: Vec<i64>, suffix: &'static str) -> ValueId {
    let node = draft.build(suffix).reshape(data, codes);
    draft.before(node, suffix)
}

/// Slices the last axis.
fn part(
    draft: &mut NodeDraft<'_>,
    data: ValueId,
    (start, end, step): (i64, i64, i64),
    suffix: &'static str,
) -> Result<ValueId, String> {
    let node = draft.build(suffix).slice(data, vec![start], vec![end], vec![-1], vec![step]);
    Ok(draft.before(node.ok_or("there is no Slice")?, suffix))
}

/// Returns operand `slot` with heads on axis 1, their number and their size.
fn heads(draft: &mut NodeDraft<'_>, slot: usize, attribute: &'static str) -> Result<(ValueId, i64, i64), String> {
    let data = draft.operand(slot)?;
    match draft.rank(slot)? {
        4 => Ok((data, size_of(draft, slot, 1)?, size_of(draft, slot, 3)?)),
        3 => {
            let (count, all) = (draft.int(attribute, 0)?, size_of(draft, slot, 2)?);
            let size = all.checked_rem(count).filter(|rest| *rest == 0).and_then(|_| all.checked_div(count));
            let size = size.filter(|size| *size > 0);
            let size = size.ok_or_else(|| format!("{all} is not {count} heads ({attribute}); correct the model"))?;
            let apart = reshape(draft, data, vec![0, 0, count, size], "apart");
            Ok((draft.before(Build::transpose(apart, [0, 2, 1, 3]), "heads"), count, size))
        }
        rank => Err(format!("operand {slot} has rank {rank}; correct the model")),
    }
}

/// Concatenates past and present tensors as result `slot`.
fn present(draft: &mut NodeDraft<'_>, past: usize, own: ValueId, slot: usize) -> ValueId {
    match draft.input(past) {
        Some(past) => draft.give(slot, Build::concat([past, own], 2i64), "present"),
        None if draft.is_read(slot) => draft.give(slot, NewNode::new("Identity", [Some(own)]), "present"),
        None => own,
    }
}

/// Returns the size of an axis as a scalar.
fn length(draft: &mut NodeDraft<'_>, data: ValueId, axis: i64) -> ValueId {
    let shape = draft.before(Build::shape(data), "shape");
    let at = draft.constant("at", Tensor::scalar(axis));
    draft.before(Build::gather(shape, at, 0i64), "length")
}

/// Repeats each head for the query heads that share it.
fn shared(draft: &mut NodeDraft<'_>, data: ValueId, count: i64, times: i64) -> ValueId {
    if times == 1 {
        return data;
    }
    let each = (0..count).flat_map(|head| (0..times).map(move |_| head)).collect();
    let node = draft.build("shared").gather_at(data, Tensor::vector::<i64>(each), 1usize);
    draft.before(node, "shared")
}

/// Returns 0 where a condition holds and -∞ elsewhere.
fn bias(draft: &mut NodeDraft<'_>, shown: ValueId, dtype: DType) -> Result<ValueId, String> {
    let zero = draft.number_of(dtype, "zero", 0.0)?;
    let hidden = draft.number_of(dtype, "hidden", f64::NEG_INFINITY)?;
    Ok(draft.op("Where", &[shown, zero, hidden], "bias"))
}

/// Returns the mask as numbers to add, and its rank. A mask shorter than the keys hides the other keys.
fn given_mask(
    draft: &mut NodeDraft<'_>,
    keys: ValueId,
    total: Option<Dim>,
    dtype: DType,
) -> Result<Option<(ValueId, usize)>, String> {
    let Some(mut mask) = draft.input(3) else { return Ok(None) };
    let own = draft.known_dtype(3)?;
    let dims = draft.known_shape(3)?;
    let last = dims.last().ok_or("the mask has no axes; correct the model")?;
    if own != DType::Bool && own != dtype {
        return Err(format!("the mask is of {} and the scores of {}, where runtimes differ", own.name(), dtype.name()));
    }
    if own == DType::Bool {
        mask = bias(draft, mask, dtype)?;
    }
    if total.is_some_and(|total| draft.facts.scope().eq(&total, last).is_yes()) {
        return Ok(Some((mask, dims.len())));
    }
    if last.is_const(1) {
        return Err("the mask has one column, which runtimes stretch or fill up".to_string());
    }
    let total = length(draft, keys, 2);
    let columns = length(draft, mask, -1);
    let missing = draft.op("Sub", &[total, columns], "missing");
    let missing = draft.build("missing").unsqueeze(missing, vec![0]);
    let missing = draft.before(missing, "missing");
    let none = dims.len().saturating_mul(2).saturating_sub(1);
    let none = draft.constant("none", Tensor::vector(vec![0i64; none]));
    let pads = draft.before(Build::concat([none, missing], 0i64), "pads");
    let hidden = draft.number_of(dtype, "hidden", f64::NEG_INFINITY)?;
    Ok(Some((draft.op("Pad", &[mask, pads, hidden], "mask"), dims.len())))
}

/// Hides keys by position: those after the position of a query (`is_causal`), those too far from it (`left_window_size` and `right_window_size`), and
/// padding of the cache (`nonpad_kv_seqlen`).
///
/// The position of query `i` is `i` plus the number of past keys, or plus `nonpad_kv_seqlen` minus the number of queries. Returns the tensor to add
/// to the scores, and its rank.
fn hidden_places(
    draft: &mut NodeDraft<'_>,
    query: ValueId,
    keys: ValueId,
    dtype: DType,
) -> Result<Option<(ValueId, usize)>, String> {
    let is_causal = draft.int("is_causal", 0)? != 0;
    let side = |name| draft.int(name, -1).map(|size| Some(size).filter(|size| *size >= 0));
    let (left, right) = (side("left_window_size")?, side("right_window_size")?);
    let by_position = is_causal || left.is_some() || right.is_some();
    if !by_position && draft.input(6).is_none() {
        return Ok(None);
    }
    let total = length(draft, keys, 2);
    let columns = positions(draft, total);
    let mut shown = Vec::new();
    let mut lengths = None;
    if let Some(count) = draft.input(6) {
        let node = draft.build("valid").unsqueeze(count, vec![1, 2, 3]);
        let valid = draft.before(node, "valid");
        shown.push(draft.op("Less", &[columns, valid], "filled"));
        lengths = Some(valid);
    }
    if by_position {
        let queries = length(draft, query, 2);
        let rows = positions(draft, queries);
        let node = draft.build("rows").unsqueeze(rows, vec![1]);
        let mut rows = draft.before(node, "rows");
        if let Some(valid) = lengths {
            let offset = draft.op("Sub", &[valid, queries], "offset");
            rows = draft.op("Add", &[rows, offset], "rows");
        } else if let Some(past) = draft.input(4) {
            let past = length(draft, past, 2);
            rows = draft.op("Add", &[rows, past], "rows");
        }
        if is_causal {
            shown.push(draft.op("LessOrEqual", &[columns, rows], "before"));
        }
        for (size, is_left) in [(left, true), (right, false)] {
            let Some(size) = size else { continue };
            let ahead = if is_left { [rows, columns] } else { [columns, rows] };
            let distance = draft.op("Sub", &ahead, "distance");
            let size = draft.constant("window", Tensor::scalar(size));
            shown.push(draft.op("LessOrEqual", &[distance, size], "within"));
        }
    }
    let all = shown.into_iter().reduce(|a, b| draft.op("And", &[a, b], "shown"));
    let rank = if lengths.is_some() { 4 } else { 2 };
    all.map(|shown| Ok((bias(draft, shown, dtype)?, rank))).transpose()
}

/// Expands Attention with a padded cache, which the older version lacks.
pub(in crate::passes::opset) fn padded(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    if draft.input(6).is_some() { attention(draft) } else { Ok(()) }
}

/// Expands Attention within a window, which the older version lacks.
pub(in crate::passes::opset) fn windowed(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    let has_window = draft.int("left_window_size", -1)? >= 0 || draft.int("right_window_size", -1)? >= 0;
    if has_window { attention(draft) } else { Ok(()) }
}

/// Expands Attention, step by step as the standard defines it; a query that sees no key gives zeros.
pub(in crate::passes::opset) fn attention(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    let dtype = draft.known_dtype(0)?;
    let is_packed = draft.rank(0)? == 3;
    let (query, count, size) = heads(draft, 0, "q_num_heads")?;
    let (key, kv_count, _) = heads(draft, 1, "kv_num_heads")?;
    let (value, value_count, value_size) = heads(draft, 2, "kv_num_heads")?;
    let times = count.checked_rem(kv_count).filter(|rest| *rest == 0).and_then(|_| count.checked_div(kv_count));
    let times = times.filter(|_| kv_count == value_count);
    let times = times.ok_or_else(|| format!("{count} heads do not share {kv_count}; correct the model"))?;
    let (key, value) = (present(draft, 4, key, 1), present(draft, 5, value, 2));

    let length_axis = |slot: usize| if draft.rank(slot).is_ok_and(|rank| rank == 4) { 2 } else { 1 };
    let own_length = draft.known_shape(1)?.get(length_axis(1)).cloned();
    let total = match draft.input(4) {
        None => own_length,
        Some(_) => {
            let past = draft.known_shape(4)?.get(2).cloned();
            own_length.zip(past).map(|(own, past)| draft.facts.scope().add(&own, &past))
        }
    };
    let mut hides = given_mask(draft, key, total, dtype)?;
    if let Some(places) = hidden_places(draft, query, key, dtype)? {
        hides = Some(match hides {
            None => places,
            Some((mask, rank)) => (draft.op("Add", &[mask, places.0], "hides"), rank.max(places.1)),
        });
    }

    let scale = draft.float("scale")?.map_or_else(|| 1.0 / (size as f64).sqrt(), f64::from);
    if scale.is_nan() || scale < 0.0 {
        return Err(format!("its scale is {scale}, which has no square root"));
    }
    let root = draft.number_of(dtype, "root", scale.sqrt())?;
    let (key, value) = (shared(draft, key, kv_count, times), shared(draft, value, kv_count, times));
    let query = draft.op("Mul", &[query, root], "query");
    let key = draft.op("Mul", &[key, root], "key");
    let key = draft.before(Build::transpose(key, [0, 1, 3, 2]), "turned");
    let mode = draft.int("qk_matmul_output_mode", 0)?;
    let softcap = f64::from(draft.float("softcap")?.unwrap_or(0.0));
    let is_read = draft.is_read(3);
    let reach = if hides.is_some() { 2 } else { i64::from(softcap != 0.0) };
    // Result 3 has the scores after the step that the mode names, or after the last one before it.
    let step = |draft: &mut NodeDraft<'_>, node: NewNode, at: i64, next: i64| {
        let is_asked = is_read && mode < 3 && at <= mode && (next > mode || at == reach);
        if is_asked { draft.give(3, node, "scores") } else { draft.before(node, "scores") }
    };
    let next = if softcap != 0.0 { 1 } else { 2 };
    let mut scores = step(draft, NewNode::new("MatMul", [Some(query), Some(key)]), 0, next);
    if softcap != 0.0 {
        let cap = draft.number_of(dtype, "cap", softcap)?;
        let divided = draft.op("Div", &[scores, cap], "divided");
        let bent = draft.op("Tanh", &[divided], "bent");
        scores = step(draft, NewNode::new("Mul", [Some(bent), Some(cap)]), 1, 2);
    }
    if let Some((hides, _)) = hides {
        scores = step(draft, NewNode::new("Add", [Some(scores), Some(hides)]), 2, 3);
    }

    let fine = match draft.int("softmax_precision", 0)? {
        0 => dtype,
        named => {
            let fine = i32::try_from(named).ok().and_then(DType::from_onnx);
            fine.ok_or_else(|| format!("softmax_precision is {named}; correct the model"))?
        }
    };
    let cast = |draft: &mut NodeDraft<'_>, value: ValueId, to: DType| match fine == dtype {
        true => value,
        false => draft.before(NewNode::new("Cast", [Some(value)]).with("to", to), "cast"),
    };
    let wide = cast(draft, scores, fine);
    let shares = draft.before(NewNode::new("Softmax", [Some(wide)]).with("axis", -1), "shares");
    let mut shares = cast(draft, shares, dtype);
    if let Some((hides, rank)) = hides {
        let last = i64::try_from(rank).map_or(-1, |rank| rank.saturating_sub(1));
        // The number of keys that a query sees; an empty sum is 0.
        let hidden = draft.number_of(dtype, "hidden", f64::NEG_INFINITY)?;
        let seen = draft.op("Greater", &[hides, hidden], "seen");
        let seen = draft.before(NewNode::new("Cast", [Some(seen)]).with("to", DType::Float), "seen");
        let node = draft.build("sees").reduce("ReduceSum", seen, vec![last]);
        let seen = draft.before(node, "sees");
        let sees = draft.before(NewNode::new("Cast", [Some(seen)]).with("to", DType::Bool), "sees");
        let zero = draft.number_of(dtype, "zero", 0.0)?;
        shares = draft.op("Where", &[sees, shares, zero], "shares");
    }
    if mode == 3 && is_read {
        shares = draft.give(3, NewNode::new("Identity", [Some(shares)]), "scores");
    }
    draft.node.outputs.truncate(1);
    let product = NewNode::new("MatMul", [Some(shares), Some(value)]);
    if !is_packed {
        draft.replace(product);
        return Ok(());
    }
    let product = draft.before(product, "product");
    let turned = draft.before(Build::transpose(product, [0, 2, 1, 3]), "turned");
    let packed = draft.build("packed").reshape(turned, vec![0, 0, count.saturating_mul(value_size)]);
    draft.replace(packed);
    Ok(())
}

/// Expands RotaryEmbedding: rotates pairs of the first elements of each head.
pub(in crate::passes::opset) fn rotary(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    let (x, is_packed) = (draft.operand(0)?, draft.rank(0)? == 3);
    let (apart, size) = if is_packed {
        let (count, all) = (draft.int("num_heads", 0)?, size_of(draft, 0, 2)?);
        let size = all.checked_rem(count).filter(|rest| *rest == 0).and_then(|_| all.checked_div(count));
        let size = size.filter(|size| *size > 0);
        let size = size.ok_or_else(|| format!("{all} is not {count} heads (num_heads); correct the model"))?;
        (reshape(draft, x, vec![0, 0, count, size], "apart"), size)
    } else {
        (x, size_of(draft, 0, 3)?)
    };
    let turned = match draft.int("rotary_embedding_dim", 0)? {
        0 => size,
        turned => turned,
    };
    if turned < 2 || turned > size || turned % 2 != 0 {
        return Err(format!("{turned} of {size} elements are no pairs; correct the model"));
    }
    let half = turned / 2;
    // All heads share one angle.
    let heads_axis = if is_packed { 2 } else { 1 };
    let mut angle = |slot: usize, suffix: &'static str| {
        let mut cache = draft.operand(slot)?;
        if let Some(places) = draft.input(3) {
            cache = draft.before(Build::gather(cache, places, 0i64), suffix);
        }
        let node = draft.build(suffix).unsqueeze(cache, vec![heads_axis]);
        Ok::<_, String>(draft.before(node, suffix))
    };
    let (cos, sin) = (angle(1, "cos")?, angle(2, "sin")?);
    let interleaved = draft.int("interleaved", 0)? != 0;
    let ranges = if interleaved { [(0, turned, 2), (1, turned, 2)] } else { [(0, half, 1), (half, turned, 1)] };
    let [first, second] = ranges;
    let (first, second) = (part(draft, apart, first, "first")?, part(draft, apart, second, "second")?);
    let mut product = |a: ValueId, b: ValueId| draft.op("Mul", &[a, b], "product");
    let (a, b) = (product(cos, first), product(sin, second));
    let (c, d) = (product(sin, first), product(cos, second));
    let (mut first, mut second) = (draft.op("Sub", &[a, b], "real"), draft.op("Add", &[c, d], "imaginary"));
    if interleaved {
        for value in [&mut first, &mut second] {
            let node = draft.build("column").unsqueeze(*value, vec![-1]);
            *value = draft.before(node, "column");
        }
    }
    let mut result = Build::concat([first, second], -1i64);
    if interleaved {
        let pairs = draft.before(result, "pairs");
        result = draft.build("turned").reshape(pairs, vec![0, 0, 0, turned]);
    }
    if turned < size {
        let rest = part(draft, apart, (turned, size, 1), "rest")?;
        let own = draft.before(result, "turned");
        result = Build::concat([own, rest], -1i64);
    }
    if is_packed {
        let all = size_of(draft, 0, 2)?;
        let whole = draft.before(result, "whole");
        result = draft.build("packed").reshape(whole, vec![0, 0, all]);
    }
    draft.replace(result);
    Ok(())
}
