//! Attention: scaled dot products of queries and keys mix the values.
//!
//! | | |
//! |---|---|
//! | computes | for each head `Y = softmax(softcap(Q·Kᵀ·scale) + bias)·V`, with `K` and `V` behind `past_key` and `past_value` |
//! | shapes | `Q [B, Hq, L, D]`, `K [B, Hkv, S, D]`, `V [B, Hkv, S, Dv]`, or packed: `[B, L, Hq·D]` and so on with the heads as attributes; `Y` like `Q` with `Dv` |
//! | caches | `present_key [B, Hkv, S + P, D]`, `present_value [B, Hkv, S + P, Dv]` |
//! | grouped heads | query head `h` reads head `h / (Hq / Hkv)` |
//! | bias | the mask, −∞ where a boolean one is false; −∞ where `is_causal` and key `j > i + offset`, where a window of version 25 ends, and from `nonpad_kv_seqlen` on |
//! | offset | `P` with a cache; `nonpad_kv_seqlen − L` without one but with that operand; else 0 |
//! | masked rows | a row whose bias is −∞ throughout gives zeros |
//! | `qk_matmul_output` | mode 0 the products, 1 after softcap, 2 with the bias, 3 after softmax |
//! | versions | 23; 24 adds `nonpad_kv_seqlen` and masks that end early; 25 adds windows |
//! | not evaluated | masks of integers; a softmax less precise than the operands; mode 2 where a bias is −∞, which a runtime gives as its lowest number |

use rayon::prelude::*;

use super::heads::{Layout, mix, per_head, read_heads, scores, softmax};
use crate::dim::Dim;
use crate::ir::Fact;
use crate::ops::broadcast::Broadcast;
use crate::ops::lane::{Lane, in_lane, read, same_dtype};
use crate::ops::{Decline, EvalCx, EvalResult, InferCx, InferResult, Operator, Refusal};
use crate::tensor::{DType, Tensor};

pub(super) const ATTENTION: Operator = Operator::new("Attention", &[23, 24, 25], infer, eval);

/// What is known of the sizes of an attention; what is not known is a new symbol.
struct Sizes {
    packed: Option<bool>,
    batch: Dim,
    q_heads: Option<Dim>,
    kv_heads: Option<Dim>,
    queries: Dim,
    keys: Dim,
    size: Dim,
    v_size: Dim,
    /// The last axis of a packed result.
    joined: Dim,
}

fn infer(cx: &mut InferCx<'_>) -> InferResult {
    let sizes = sizes(cx)?;
    let Sizes { packed, batch, q_heads, kv_heads, queries, keys, size, v_size, joined } = sizes;
    let q_heads = q_heads.unwrap_or_else(|| cx.fresh_dim());
    let kv_heads = kv_heads.unwrap_or_else(|| cx.fresh_dim());
    let past = |axis| cx.shape(4).or(cx.shape(5)).and_then(|shape| shape.get(axis)).cloned();
    let total = match cx.has_input(4) || cx.has_input(5) {
        true => cx.scope().add(&past(2).unwrap_or_else(|| cx.fresh_dim()), &keys),
        false => keys,
    };
    let y = match packed {
        Some(true) => Some(vec![batch.clone(), queries.clone(), joined]),
        Some(false) => Some(vec![batch.clone(), q_heads.clone(), queries.clone(), v_size.clone()]),
        None => None,
    };
    let dtype = cx.dtype(0).or(cx.dtype(1)).or(cx.dtype(4));
    let v_dtype = cx.dtype(2).or(cx.dtype(5));
    Ok(vec![
        Fact::tensor(dtype, y),
        Fact::tensor(dtype, Some(vec![batch.clone(), kv_heads.clone(), total.clone(), size])),
        Fact::tensor(v_dtype, Some(vec![batch.clone(), kv_heads, total.clone(), v_size])),
        Fact::tensor(dtype, Some(vec![batch, q_heads, queries, total])),
    ])
}

fn sizes(cx: &InferCx<'_>) -> Result<Sizes, Refusal> {
    let rank = [0, 1, 2].iter().find_map(|&at| cx.rank(at));
    if let Some(rank) = rank
        && (!matches!(rank, 3 | 4) || [0, 1, 2].iter().any(|&at| cx.rank(at).is_some_and(|other| other != rank)))
    {
        return Err(Refusal::invalid("Q, K and V are not all of rank 3 or all of rank 4"));
    }
    let packed = rank.map(|rank| rank == 3);
    let heads = [read_heads(cx, "q_num_heads")?, read_heads(cx, "kv_num_heads")?];
    let dim = |at: usize, axis: usize| cx.shape(at).and_then(|shape| shape.get(axis)).cloned();
    let first = |places: &[(usize, usize)]| places.iter().find_map(|&(at, axis)| dim(at, axis));
    let or_fresh = |dim: Option<Dim>| dim.unwrap_or_else(|| cx.fresh_dim());
    let batch = or_fresh(first(&[(0, 0), (1, 0), (2, 0), (4, 0), (5, 0)]));
    if packed != Some(true) {
        // Without a rank the axes of the operands are not known to be these, those of the caches are.
        let own = |places: &[(usize, usize)]| if packed.is_some() { first(places) } else { None };
        return Ok(Sizes {
            packed,
            batch,
            q_heads: own(&[(0, 1)]),
            kv_heads: own(&[(1, 1), (2, 1)]).or(first(&[(4, 1), (5, 1)])),
            queries: or_fresh(own(&[(0, 2)])),
            keys: or_fresh(own(&[(1, 2), (2, 2)])),
            size: or_fresh(own(&[(0, 3), (1, 3)]).or(dim(4, 3))),
            v_size: or_fresh(own(&[(2, 3)]).or(dim(5, 3))),
            joined: cx.fresh_dim(),
        });
    }
    let [Some(q_heads), Some(kv_heads)] = heads else {
        return Err(Refusal::invalid("operands of rank 3 need attributes 'q_num_heads' and 'kv_num_heads'"));
    };
    if q_heads % kv_heads != 0 {
        return Err(Refusal::invalid(format!("{q_heads} heads of queries for {kv_heads} of keys and values")));
    }
    let part = |packed: Option<Dim>, heads: i64| packed.map(|packed| per_head(cx.scope(), &packed, heads)).transpose();
    let size = match part(dim(0, 2), q_heads)? {
        Some(size) => Some(size),
        None => part(dim(1, 2), kv_heads)?,
    };
    let v_size = or_fresh(part(dim(2, 2), kv_heads)?.or(dim(5, 3)));
    // The heads of queries are a multiple of the heads of values: no division remains.
    let joined = match dim(2, 2) {
        Some(values) => cx.scope().mul(&values, &Dim::constant(q_heads / kv_heads)),
        None => cx.scope().mul(&v_size, &Dim::constant(q_heads)),
    };
    Ok(Sizes {
        packed,
        batch,
        q_heads: Some(Dim::constant(q_heads)),
        kv_heads: Some(Dim::constant(kv_heads)),
        queries: or_fresh(dim(0, 1)),
        keys: or_fresh(first(&[(1, 1), (2, 1)])),
        size: or_fresh(size.or(dim(4, 3))),
        v_size,
        joined,
    })
}

/// An attention of fixed shapes.
struct Plan {
    q: Layout,
    k: Layout,
    v: Layout,
    /// Keys in the cache.
    past: usize,
    /// Keys in all.
    keys: usize,
    scale: f64,
    softcap: f64,
    mode: i64,
}

impl Plan {
    fn new(cx: &EvalCx<'_>) -> Result<Plan, Decline> {
        let [q, k, v] = [cx.tensor(0)?, cx.tensor(1)?, cx.tensor(2)?];
        let heads = [read_heads(cx, "q_num_heads")?, read_heads(cx, "kv_num_heads")?];
        if q.rank() != k.rank() || q.rank() != v.rank() {
            return Err(Decline::invalid("Q, K and V are of different ranks"));
        }
        let q_layout = Layout::of(q.shape(), heads[0])?;
        let (k_layout, v_layout) = (Layout::of(k.shape(), heads[1])?, Layout::of(v.shape(), heads[1])?);
        if q.rank() == 4 {
            let given = |heads: Option<i64>, layout: &Layout| heads.is_some_and(|heads| heads != layout.heads as i64);
            let named = cx.version >= 25 && heads.iter().any(Option::is_some);
            if named || given(heads[0], &q_layout) || given(heads[1], &k_layout) {
                return Err(Decline::invalid("heads are given for operands that have them as an axis"));
            }
        }
        let fits = k_layout.heads > 0
            && q_layout.heads.is_multiple_of(k_layout.heads)
            && [k_layout.batch, v_layout.batch] == [q_layout.batch; 2]
            && k_layout.size == q_layout.size
            && [v_layout.heads, v_layout.sequence] == [k_layout.heads, k_layout.sequence];
        if !fits {
            let shapes = format!("{:?}, {:?} and {:?}", q.shape(), k.shape(), v.shape());
            return Err(Decline::invalid(format!("dims {shapes} do not go together")));
        }
        let past = match (cx.optional_tensor(4)?, cx.optional_tensor(5)?) {
            (None, None) => 0,
            (Some(key), Some(value)) => {
                let past = key.shape().get(2).copied().unwrap_or(0);
                let cached = |layout: &Layout| Layout { sequence: past, ..*layout }.split_shape();
                if key.shape() != cached(&k_layout) || value.shape() != cached(&v_layout) {
                    return Err(Decline::invalid("the caches do not go with the operands"));
                }
                same_dtype(k.dtype(), &[key])?;
                same_dtype(v.dtype(), &[value])?;
                past
            }
            _ => return Err(Decline::invalid("only one of the caches is given")),
        };
        let keys = past.checked_add(k_layout.sequence).ok_or_else(|| Decline::OverBudget("too many keys".into()))?;
        let scale = match cx.attr_float("scale")? {
            None => 1.0 / (q_layout.size as f64).sqrt(),
            Some(scale) if scale > 0.0 => f64::from(scale),
            Some(scale) => return Err(Decline::unsupported(format!("the scale is {scale}"))),
        };
        let softcap = f64::from(cx.attr_float("softcap")?.unwrap_or(0.0));
        let mode = cx.attr_int("qk_matmul_output_mode")?.unwrap_or(0);
        if !(softcap >= 0.0 && (0..=3).contains(&mode)) {
            return Err(Decline::invalid("attribute 'softcap' or 'qk_matmul_output_mode' is out of range"));
        }
        check_precision(cx, q.dtype())?;
        Ok(Plan { q: q_layout, k: k_layout, v: v_layout, past, keys, scale, softcap, mode })
    }

    /// The shape of the scores.
    fn scores(&self) -> [usize; 4] {
        [self.q.batch, self.q.heads, self.q.sequence, self.keys]
    }

    /// The shape of a cache with all keys.
    fn present(&self, layout: &Layout) -> [usize; 4] {
        Layout { sequence: self.keys, ..*layout }.split_shape()
    }

    fn result(&self) -> Layout {
        Layout { size: self.v.size, ..self.q }
    }
}

/// A softmax as precise as the operands or more is what this one is.
fn check_precision(cx: &EvalCx<'_>, dtype: DType) -> Result<(), Decline> {
    if cx.attr_int("softmax_precision")?.unwrap_or(0) == 0 {
        return Ok(());
    }
    let bits = |dtype: DType| match dtype {
        DType::Float16 | DType::Bfloat16 => 1,
        DType::Float => 2,
        _ => 3,
    };
    let asked = cx.attr_dtype("softmax_precision")?.unwrap_or(dtype);
    if asked == dtype || bits(asked) > bits(dtype) {
        return Ok(());
    }
    Err(Decline::unsupported(format!("softmax in {asked} of scores in {dtype}")))
}

fn eval(cx: &mut EvalCx<'_>) -> EvalResult {
    let plan = Plan::new(cx)?;
    let (q, k, v) = (cx.tensor(0)?, cx.tensor(1)?, cx.tensor(2)?);
    same_dtype(q.dtype(), &[k])?;
    let result = plan.result();
    cx.claim(q.dtype(), &result.split_shape())?;
    cx.claim(k.dtype(), &plan.present(&plan.k))?;
    cx.claim(v.dtype(), &plan.present(&plan.v))?;
    cx.claim(DType::Double, &plan.scores())?;
    let scores = crate::tensor::product(&plan.scores()).unwrap_or(usize::MAX) as u64;
    let each = (plan.q.size as u64).saturating_add(plan.v.size as u64).saturating_add(16);
    cx.budget().take_work(scores.saturating_mul(each))?;
    in_lane!(q.dtype(), T => evaluate::<T>(cx, &plan))
}

fn evaluate<T: Lane>(cx: &EvalCx<'_>, plan: &Plan) -> EvalResult {
    let (q, k, v) = (cx.tensor(0)?, cx.tensor(1)?, cx.tensor(2)?);
    let key = present::<T>(plan, &plan.k, cx.optional_tensor(4)?, k)?;
    let value = present::<T>(plan, &plan.v, cx.optional_tensor(5)?, v)?;
    let bias = Bias::<T>::new(cx, plan)?;
    if plan.mode == 2 && cx.has_output(3) && bias.masks() {
        return Err(Decline::unsupported("runtimes give masked scores as −∞ or as their lowest number"));
    }
    let queries = read::<T>(q)?;
    let root = T::of(plan.scale.sqrt());
    let scaled = |values: &[T]| values.iter().map(|x| x.times(root)).collect::<Vec<T>>();
    let (queries, keys) = (scaled(&plan.q.split(&queries)), scaled(&key));
    let group = plan.q.heads / plan.k.heads;
    let (k_head, v_head) = (plan.keys * plan.k.size, plan.keys * plan.v.size);
    let heads: Vec<(Vec<T>, Vec<T>)> = (0..plan.q.batch * plan.q.heads)
        .into_par_iter()
        .map(|head| {
            let source = head / plan.q.heads * plan.k.heads + head % plan.q.heads / group;
            let q = queries.get(head * plan.q.head()..).unwrap_or_default();
            let k = keys.get(source * k_head..).unwrap_or_default();
            let v = value.get(source * v_head..).unwrap_or_default();
            one_head(plan, &bias, head, q, k, v)
        })
        .collect();
    let (y, qk): (Vec<Vec<T>>, Vec<Vec<T>>) = heads.into_iter().unzip();
    let result = plan.result();
    let shape = match result.packed {
        true => vec![result.batch, result.sequence, result.heads * result.size],
        false => result.split_shape().to_vec(),
    };
    let mut results = vec![T::write(q.dtype(), &shape, result.join(y.concat()))?];
    results.push(T::write(k.dtype(), &plan.present(&plan.k), key)?);
    results.push(T::write(v.dtype(), &plan.present(&plan.v), value)?);
    if cx.has_output(3) {
        results.push(T::write(q.dtype(), &plan.scores(), qk.concat())?);
    }
    Ok(results.into_iter().map(Into::into).collect())
}

/// What one head gives, and its part of `qk_matmul_output`.
fn one_head<T: Lane>(plan: &Plan, bias: &Bias<T>, head: usize, q: &[T], k: &[T], v: &[T]) -> (Vec<T>, Vec<T>) {
    let (queries, keys) = (plan.q.sequence, plan.keys);
    let mut y = vec![T::default(); queries * plan.v.size];
    if queries == 0 || keys == 0 {
        return (y, Vec::new());
    }
    let mut rows = scores(queries, plan.q.size, keys, q, k);
    let mut shown = if plan.mode == 0 { rows.clone() } else { Vec::new() };
    if plan.softcap > 0.0 {
        rows.iter_mut().for_each(|x| *x = T::of(libm::tanh(x.to_f64() / plan.softcap) * plan.softcap));
    }
    if plan.mode == 1 {
        shown.clone_from(&rows);
    }
    let mut masked = vec![false; queries];
    for ((i, row), masked) in rows.chunks_exact_mut(keys).enumerate().zip(&mut masked) {
        *masked = !bias.add(plan, head, i, row);
    }
    if plan.mode == 2 {
        shown.clone_from(&rows);
    }
    for (row, masked) in rows.chunks_exact_mut(keys).zip(masked) {
        if masked { row.fill(T::default()) } else { softmax(row) }
    }
    if plan.mode == 3 {
        shown.clone_from(&rows);
    }
    mix(queries, keys, plan.v.size, &rows, v, &mut y);
    (y, shown)
}

/// Keys or values behind those of the cache, by heads.
fn present<T: Lane>(plan: &Plan, layout: &Layout, cache: Option<&Tensor>, operand: &Tensor) -> Result<Vec<T>, Decline> {
    let own = read::<T>(operand)?;
    let own = layout.split(&own);
    let Some(cache) = cache else { return Ok(own.into_owned()) };
    let cached = read::<T>(cache)?;
    let part = (plan.past * layout.size, layout.head());
    let mut all = Vec::with_capacity(cached.len() + own.len());
    for head in 0..layout.batch * layout.heads {
        all.extend_from_slice(cached.get(head * part.0..(head + 1) * part.0).unwrap_or_default());
        all.extend_from_slice(own.get(head * part.1..(head + 1) * part.1).unwrap_or_default());
    }
    Ok(all)
}

/// What is added to scores before softmax.
struct Bias<T> {
    /// The mask, and the element of it that each score has.
    mask: Option<(Vec<T>, Vec<usize>)>,
    /// Keys that the mask covers.
    covered: usize,
    causal: bool,
    /// How many keys behind and ahead of a query's own place it sees.
    window: [Option<i128>; 2],
    /// Keys before the first query, for each batch entry.
    offset: Vec<i128>,
    /// Keys that count, for each batch entry.
    filled: Vec<i128>,
}

impl<T: Lane> Bias<T> {
    fn new(cx: &EvalCx<'_>, plan: &Plan) -> Result<Self, Decline> {
        let filled = if cx.version >= 24 { cx.optional_tensor(6)? } else { None };
        let filled: Option<Vec<i128>> = match filled {
            None => None,
            Some(_) if cx.data(4).is_some() => {
                return Err(Decline::invalid("both caches and 'nonpad_kv_seqlen' are given"));
            }
            Some(lengths) if lengths.shape() == [plan.q.batch] => {
                Some(cx.ints(6)?.into_iter().map(i128::from).collect())
            }
            Some(_) => return Err(Decline::invalid("'nonpad_kv_seqlen' is not one number for each batch entry")),
        };
        let offset = match &filled {
            Some(filled) => filled.iter().map(|filled| filled - plan.q.sequence as i128).collect(),
            None => vec![plan.past as i128; plan.q.batch],
        };
        let side = |name: &str| match cx.attr_int(name)?.unwrap_or(-1) {
            -1 => Ok(None),
            size if size >= 0 => Ok(Some(i128::from(size))),
            size => Err(Decline::invalid(format!("attribute '{name}' is {size}"))),
        };
        let window = match cx.version >= 25 {
            true => [side("left_window_size")?, side("right_window_size")?],
            false => [None, None],
        };
        let (mask, covered) = match cx.optional_tensor(3)? {
            Some(mask) => mask_of(cx, plan, mask)?,
            None => (None, plan.keys),
        };
        let filled = filled.unwrap_or_else(|| vec![i128::MAX; plan.q.batch]);
        Ok(Bias { mask, covered, causal: cx.attr_flag("is_causal", false)?, window, offset, filled })
    }

    /// Whether some score may be ruled out.
    fn masks(&self) -> bool {
        let infinite = |(mask, _): &(Vec<T>, Vec<usize>)| mask.iter().any(|x| x.to_f64() == f64::NEG_INFINITY);
        let nothing = self.filled.iter().all(|&filled| filled == i128::MAX);
        self.causal || self.window != [None, None] || !nothing || self.mask.as_ref().is_some_and(infinite)
    }

    /// Adds to the scores of query `i` of a head; false if every key is ruled out.
    fn add(&self, plan: &Plan, head: usize, i: usize, row: &mut [T]) -> bool {
        let batch = head / plan.q.heads.max(1);
        let (offset, filled) = (self.offset.get(batch).copied(), self.filled.get(batch).copied());
        let place = i as i128 + offset.unwrap_or(0);
        let [left, right] = self.window;
        let first = (head * plan.q.sequence + i) * self.covered;
        let mut any = false;
        for (j, score) in row.iter_mut().enumerate() {
            let key = j as i128;
            let seen = (!self.causal || key <= place)
                && left.is_none_or(|left| place - key <= left)
                && right.is_none_or(|right| key - place <= right)
                && filled.is_none_or(|filled| key < filled);
            let bias = match &self.mask {
                _ if !seen => None,
                None => Some(T::default()),
                Some(_) if j >= self.covered => None,
                Some((mask, places)) => places.get(first + j).and_then(|&at| mask.get(at)).copied(),
            };
            let bias = bias.filter(|bias| bias.to_f64() != f64::NEG_INFINITY);
            any |= bias.is_some();
            *score = bias.map_or(T::of(f64::NEG_INFINITY), |bias| score.plus(bias));
        }
        any
    }
}

type Mask<T> = (Option<(Vec<T>, Vec<usize>)>, usize);

/// The mask as numbers to be added, with the way its elements go through the scores it covers.
fn mask_of<T: Lane>(cx: &EvalCx<'_>, plan: &Plan, mask: &Tensor) -> Result<Mask<T>, Decline> {
    let covered = match mask.shape() {
        [.., last] if *last < plan.keys && cx.version >= 24 && *last != 1 => *last,
        _ => plan.keys,
    };
    if mask.shape().last() == Some(&1) && plan.keys != 1 {
        return Err(Decline::unsupported("a mask over one key may be stretched or end early"));
    }
    let [batch, heads, queries, _] = plan.scores();
    let shape = [batch, heads, queries, covered];
    let way = Broadcast::new([&shape, mask.shape()]).filter(|way| way.shape() == shape);
    let way =
        way.ok_or_else(|| Decline::invalid(format!("a mask of dims {:?} for scores of {shape:?}", mask.shape())))?;
    cx.claim(DType::Int64, &shape)?;
    let numbers = match mask.bools() {
        Some(seen) => seen.into_iter().map(|seen| T::of(if seen { 0.0 } else { f64::NEG_INFINITY })).collect(),
        None if mask.dtype().is_float() => {
            let numbers = mask.to_f64s().ok_or_else(|| Decline::invalid("a mask of no numbers"))?;
            numbers.into_iter().map(T::of).collect()
        }
        None => return Err(Decline::unsupported(format!("a mask of {}", mask.dtype()))),
    };
    Ok((Some((numbers, way.positions().into_iter().map(|[_, at]| at).collect())), covered))
}

#[cfg(test)]
mod tests {
    use crate::ops::single::Single;
    use crate::tensor::DType;

    fn node(opset: i64, q: &str, k: &str, v: &str) -> Single {
        let all = |node: Single| node.output().output().output();
        all(Single::new("Attention", opset)).input(DType::Float, q).input(DType::Float, k).input(DType::Float16, v)
    }

    #[test]
    fn shapes_with_heads_as_an_axis() {
        assert_eq!(
            node(23, "B 8 L 64", "B 4 S 64", "B 4 S 32").infer(),
            ["float[B, 8, L, 32]", "float[B, 4, S, 64]", "float16[B, 4, S, 32]", "float[B, 8, L, S]"]
        );
        let cached = node(23, "B 8 L 64", "B 4 S 64", "B 4 S 32").absent();
        assert_eq!(
            cached.input(DType::Float, "B 4 P 64").input(DType::Float16, "B 4 P 32").infer(),
            ["float[B, 8, L, 32]", "float[B, 4, S + P, 64]", "float16[B, 4, S + P, 32]", "float[B, 8, L, S + P]"]
        );
    }

    #[test]
    fn shapes_of_packed_operands() {
        let packed = node(24, "B L 512", "B S 256", "B S V").with("q_num_heads", 8).with("kv_num_heads", 4);
        let shapes = packed.infer();
        assert_eq!(shapes[0], "float[B, L, 2*V]");
        assert_eq!(shapes[1], "float[B, 4, S, 64]");
        assert_eq!(shapes[3], "float[B, 8, L, S]");
        assert!(node(24, "B L 512", "B S 256", "B S V").infer()[0].starts_with("invalid"));
        let uneven = node(24, "B L 510", "B S 256", "B S V").with("q_num_heads", 8).with("kv_num_heads", 4);
        assert!(uneven.infer()[0].starts_with("invalid"));
        assert!(node(24, "B L 512", "B 4 S 64", "B S V").infer()[0].starts_with("invalid"));
    }

    fn small(opset: i64) -> Single {
        // Scores are ln 3 and 0, so the weights are 3/4 and 1/4.
        Single::new("Attention", opset)
            .values(&[1, 1, 2, 1], &[1.0f64, 1.0])
            .values(&[1, 1, 2, 1], &[3.0f64.ln(), 0.0])
            .values(&[1, 1, 2, 1], &[4.0f64, 8.0])
    }

    fn close(node: Single, expected: &[f64]) {
        let found = node.floats();
        assert!(
            found.len() == expected.len() && found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-12),
            "{found:?}"
        );
    }

    #[test]
    fn weights_and_masks() {
        close(small(23), &[5.0, 5.0]);
        close(small(23).with("is_causal", 1), &[4.0, 5.0]);
        let mask = |seen: [bool; 4]| crate::tensor::Tensor::from_bools(&[2, 2], &seen).unwrap();
        close(small(23).constant(mask([false, true, false, false])), &[8.0, 0.0]);
        close(small(23).values(&[2], &[0.0f64, 3.0f64.ln()]), &[6.0, 6.0]);
        close(small(24).absent().absent().absent().values(&[1], &[1i64]), &[4.0, 4.0]);
        close(small(24).absent().absent().absent().values(&[1], &[1i64]).with("is_causal", 1), &[0.0, 4.0]);
        close(small(25).with("left_window_size", 0), &[5.0, 8.0]);
        close(small(25).with("right_window_size", 0), &[4.0, 5.0]);
    }

    #[test]
    fn caches_come_first() {
        let node = small(23).absent().values(&[1, 1, 1, 1], &[0.0f64]).values(&[1, 1, 1, 1], &[0.0f64]);
        let results = node.with("is_causal", 1).output().output().eval().unwrap();
        let expected = [4.0 * 3.0 / 4.0, 20.0 / 5.0];
        let found = results[0].to_f64s().unwrap();
        assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-12), "{found:?}");
        assert_eq!(results[2].to_f64s().unwrap(), [0.0, 4.0, 8.0]);
        assert_eq!(results[2].shape(), [1, 1, 3, 1]);
    }

    #[test]
    fn what_is_disputed_declines() {
        let masked = small(24).with("is_causal", 1).with("qk_matmul_output_mode", 2).output().output().output();
        assert!(masked.eval().is_err());
        assert!(small(23).values(&[2, 2], &[1i64; 4]).eval().is_err());
        assert!(small(23).with("softmax_precision", DType::Float).eval().is_err());
        assert!(small(23).with_float("scale", 0.0).eval().is_err());
        assert!(small(24).values(&[2, 1], &[0.0f64; 2]).eval().is_err());
    }
}
