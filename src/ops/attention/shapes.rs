//! The shapes of Attention.
//!
//! | | heads on a separate axis | packed heads |
//! | --- | --- | --- |
//! | Q | `[batch, q heads, q length, size]` | `[batch, q length, q heads · size]` |
//! | K | `[batch, kv heads, kv length, size]` | `[batch, kv length, kv heads · size]` |
//! | V | `[batch, kv heads, kv length, v size]` | `[batch, kv length, kv heads · v size]` |
//! | Y | `[batch, q heads, q length, v size]` | `[batch, q length, q heads · v size]` |
//!
//! Caches are always `[batch, kv heads, length, size]`. The length of the present ones, and of the rows of `qk_matmul_output`,
//! is the sum of past and incoming keys.

use crate::dim::Dim;
use crate::ir::Fact;
use crate::ops::traits::{NodeFacts, attention};
use crate::ops::{InferCx, InferResult, Refusal, Site};
use crate::tensor::DType;

const Q: usize = 0;
const K: usize = 1;
const V: usize = 2;
const PAST_KEY: usize = 4;
const PAST_VALUE: usize = 5;
const LENGTHS: usize = 6;

const PRESENT_KEY: usize = 1;
const PRESENT_VALUE: usize = 2;

/// The known sizes of an operand, for both positions of the heads.
#[derive(Default)]
struct Sizes {
    batch: Option<Dim>,
    heads: Option<Dim>,
    length: Option<Dim>,
    size: Option<Dim>,
}

/// Returns the number of heads by an attribute, for packed heads.
pub(super) fn head_count(site: &Site<'_>, name: &str) -> Result<i64, Refusal> {
    match site.attr_int(name)? {
        Some(heads) if heads > 0 => Ok(heads),
        Some(heads) => Err(Refusal::invalid(format!("'{name}' is {heads}, which is not valid"))),
        None => Err(Refusal::invalid(format!("operands of rank 3 require attribute '{name}'"))),
    }
}

fn sizes(cx: &InferCx<'_>, operand: usize, attribute: &str) -> Result<Sizes, Refusal> {
    Ok(match cx.shape(operand) {
        None => Sizes::default(),
        Some([batch, heads, length, size]) => Sizes {
            batch: Some(batch.clone()),
            heads: Some(heads.clone()),
            length: Some(length.clone()),
            size: Some(size.clone()),
        },
        Some([batch, length, hidden]) => {
            let heads = head_count(cx, attribute)?;
            if hidden.as_const().is_some_and(|hidden| hidden % heads != 0) {
                return Err(Refusal::invalid(format!(
                    "the last dim of operand {operand} is not a multiple of the number of heads ({heads})"
                )));
            }
            let heads = Dim::constant(heads);
            Sizes {
                batch: Some(batch.clone()),
                size: Some(cx.scope().floor_div(hidden, &heads)),
                heads: Some(heads),
                length: Some(length.clone()),
            }
        }
        Some(shape) => {
            return Err(Refusal::invalid(format!("operand {operand} has rank {} instead of 3 or 4", shape.len())));
        }
    })
}

/// Merges dims that are equal in a model that runs: a constant if there is one, else the first dim.
pub(super) fn agreed(cx: &InferCx<'_>, dims: &[&Option<Dim>]) -> Result<Dim, Refusal> {
    let known = || dims.iter().filter_map(|dim| dim.as_ref());
    let Some(first) = known().find(|dim| dim.as_const().is_some()).or_else(|| known().next()) else {
        return Ok(cx.fresh_dim());
    };
    if let Some(other) = known().find(|dim| cx.scope().eq(first, dim).is_no()) {
        let (first, other) = (cx.scope().format(first), cx.scope().format(other));
        return Err(Refusal::invalid(format!("two dims that must be equal are {first} and {other}")));
    }
    Ok(first.clone())
}

/// Checks the restrictions of version 25.
fn check_attributes(cx: &InferCx<'_>, rank: Option<usize>) -> Result<(), Refusal> {
    for name in ["left_window_size", "right_window_size"] {
        if let Some(size) = cx.attr_int(name)?.filter(|&size| size < -1) {
            return Err(Refusal::invalid(format!("'{name}' is {size}, which is not valid")));
        }
    }
    let counts = ["q_num_heads", "kv_num_heads"];
    if rank == Some(4) && counts.iter().any(|name| cx.attribute(name).is_some()) {
        return Err(Refusal::invalid(
            "an attribute gives the number of heads, but the operands already have an axis of heads",
        ));
    }
    if cx.has_input(PAST_KEY) != cx.has_input(PAST_VALUE) {
        return Err(Refusal::invalid("one of 'past_key' and 'past_value' is present without the other one"));
    }
    if cx.has_output(PRESENT_KEY) != cx.has_output(PRESENT_VALUE) {
        return Err(Refusal::invalid("one of 'present_key' and 'present_value' is present without the other one"));
    }
    if cx.has_input(PAST_KEY) && cx.has_input(LENGTHS) {
        return Err(Refusal::invalid("'nonpad_kv_seqlen' can only be used without 'past_key' and 'past_value'"));
    }
    Ok(())
}

pub(super) fn infer(cx: &mut InferCx<'_>) -> InferResult {
    let dtype = cx.dtype(Q).or(cx.dtype(K));
    let value_dtype = cx.dtype(V).or(cx.dtype(PAST_VALUE));
    let ranks: Vec<usize> = [Q, K, V].iter().filter_map(|&operand| cx.rank(operand)).collect();
    if ranks.windows(2).any(|pair| matches!(pair, [a, b] if a != b)) {
        return Err(Refusal::invalid("'Q', 'K' and 'V' have different ranks"));
    }
    if cx.version >= 25 {
        check_attributes(cx, ranks.first().copied())?;
    }
    let (q, k, v) = (sizes(cx, Q, "q_num_heads")?, sizes(cx, K, "kv_num_heads")?, sizes(cx, V, "kv_num_heads")?);
    let cache = |operand| match cx.rank(operand) {
        None => Ok(Sizes::default()),
        Some(4) => sizes(cx, operand, ""),
        Some(rank) => Err(Refusal::invalid(format!("operand {operand} has rank {rank} instead of 4"))),
    };
    let (past_key, past_value) = (cache(PAST_KEY)?, cache(PAST_VALUE)?);

    let batches = [&q.batch, &k.batch, &v.batch, &past_key.batch, &past_value.batch];
    let batch = agreed(cx, &batches)?;
    // ONNX Runtime has no kernel for doubles and inlines the function body, whose products broadcast a batch of 1.
    let are_equal =
        || batches.iter().take(3).all(|dim| dim.as_ref().is_some_and(|dim| cx.scope().eq(dim, &batch).is_yes()));
    let batch = if dtype == Some(DType::Double) && !are_equal() { cx.fresh_dim() } else { batch };
    let kv_heads = agreed(cx, &[&k.heads, &v.heads, &past_key.heads, &past_value.heads])?;
    let key_size = agreed(cx, &[&k.size, &q.size, &past_key.size])?;
    let value_size = agreed(cx, &[&v.size, &past_value.size])?;
    let q_heads = q.heads.unwrap_or_else(|| cx.fresh_dim());
    let q_length = q.length.unwrap_or_else(|| cx.fresh_dim());
    let kv_length = agreed(cx, &[&k.length, &v.length])?;
    let total = if cx.has_input(PAST_KEY) || cx.has_input(PAST_VALUE) {
        let past = agreed(cx, &[&past_key.length, &past_value.length])?;
        cx.scope().add(&past, &kv_length)
    } else {
        kv_length
    };

    let shape = match ranks.first() {
        Some(3) => {
            // The total size of all heads: V's, if K and V have as many heads as Q; a multiple of it if not.
            let (heads, kv_heads) = (head_count(cx, "q_num_heads")?, head_count(cx, "kv_num_heads")?);
            if heads % kv_heads != 0 {
                return Err(Refusal::invalid(format!(
                    "the number of heads of 'Q' ({heads}) is not a multiple of the number of heads of 'K' and 'V' ({kv_heads})"
                )));
            }
            let hidden = match cx.shape(V) {
                Some([_, _, hidden]) => cx.scope().mul(hidden, &Dim::constant(heads / kv_heads)),
                _ => cx.scope().mul(&value_size, &Dim::constant(heads)),
            };
            Some(vec![batch.clone(), q_length.clone(), hidden])
        }
        Some(_) => Some(vec![batch.clone(), q_heads.clone(), q_length.clone(), value_size.clone()]),
        None => None,
    };
    let key = vec![batch.clone(), kv_heads.clone(), total.clone(), key_size];
    let value = vec![batch.clone(), kv_heads, total.clone(), value_size];
    Ok(vec![
        Fact::tensor(dtype, shape),
        Fact::tensor(dtype, Some(key)),
        Fact::tensor(value_dtype, Some(value)),
        Fact::tensor(dtype, Some(vec![batch, q_heads, q_length, total])),
    ])
}

/// Returns the multiply-accumulates over past and incoming keys.
pub(super) fn macs(view: &NodeFacts<'_>) -> Option<Dim> {
    // In both layouts, the length is the second-to-last axis.
    let [.., keys, _] = view.shape(K)? else { return None };
    let length = match view.input(PAST_KEY) {
        None => keys.clone(),
        Some(_) => view.scope().add(keys, view.shape(PAST_KEY)?.get(2)?),
    };
    attention(view, &view.elements(Q)?, &length)
}

#[cfg(test)]
mod tests {
    use crate::ops::single::Single;
    use crate::tensor::DType;

    #[test]
    fn combinations_that_version_25_forbids() {
        let node = |version: i64| {
            let node = Single::new("Attention", version).input(DType::Float, "B 4 L 8").input(DType::Float, "B 2 S 8");
            node.input(DType::Float, "B 2 S 6")
        };
        let fits = |node: Single| !node.infer()[0].starts_with("invalid");
        let cache = |node: Single| node.absent().input(DType::Float, "B 2 P 8");
        let caches = |node: Single| cache(node).input(DType::Float, "B 2 P 6");
        assert!(fits(node(25).with("left_window_size", -1)) && fits(caches(node(25))));
        assert!(!fits(node(25).with("left_window_size", -2)));
        assert!(!fits(node(25).with("right_window_size", -2)));
        assert!(fits(node(24).with("q_num_heads", 4)) && !fits(node(25).with("q_num_heads", 4)));
        assert!(!fits(cache(node(25))));
        assert!(!fits(caches(node(25)).input(DType::Int64, "B")));
        assert!(!fits(node(25).output()) && fits(node(25).output().output()) && fits(node(24).output()));
    }
}
