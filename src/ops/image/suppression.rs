//! NonMaxSuppression: selects the best of overlapping boxes.
//!
//! | | |
//! |---|---|
//! | computes | for each image and class, boxes by decreasing score, ties by index; omits a box if its overlap with a selected one exceeds `iou_threshold`, as a part of their union |
//! | operands | `boxes [N, S, 4]`, `scores [N, C, S]`; `max_output_boxes_per_class` (0), `iou_threshold` (0), `score_threshold` (none) |
//! | boxes | `y1, x1, y2, x2`, any two opposite corners; with `center_point_box` center and size |
//! | result | `[K, 3]`: image, class, box |
//! | versions | 10; 11 (wording) |
//! | rejects | a threshold outside of 0 … 1; not evaluated: scores or boxes with NaN |

use crate::dim::Dim;
use crate::ir::Fact;
use crate::ops::{Decline, EvalCx, EvalResult, InferCx, InferResult, Operator, Refusal};
use crate::sort;
use crate::tensor::{DType, Tensor};

pub(super) const NON_MAX_SUPPRESSION: Operator = Operator::new("NonMaxSuppression", &[10, 11], infer, eval);

fn infer(cx: &mut InferCx<'_>) -> InferResult {
    let (boxes, scores) = (cx.required(0)?.shape(), cx.required(1)?.shape());
    if [boxes, scores].into_iter().flatten().any(|shape| shape.len() != 3) {
        return Err(Refusal::invalid("the rank of 'boxes' or 'scores' is not 3"));
    }
    let scope = cx.scope();
    let at = |shape: Option<&[Dim]>, axis: usize| shape.and_then(|shape| shape.get(axis)).cloned();
    let (batches, classes) = (at(boxes, 0).or_else(|| at(scores, 0)), at(scores, 1));
    let each = at(boxes, 1).or_else(|| at(scores, 2));
    // For each image and class, the number of boxes and operand 2 limit the selection.
    let limit = match cx.input(2) {
        None => Some(Dim::constant(0)),
        Some(limit) => match limit.ints().as_deref() {
            Some([limit]) => Some(scope.max(limit, &Dim::constant(0))),
            Some([]) => Some(Dim::constant(0)),
            _ => None,
        },
    };
    let each = match (each, limit) {
        (Some(each), Some(limit)) => Some(scope.min(&each, &limit)),
        (each, limit) => each.or(limit),
    };
    let most = match (batches, classes, each) {
        (_, _, Some(each)) if each.is_const(0) => Some(each),
        (Some(batches), Some(classes), Some(each)) => Some(scope.product([&batches, &classes, &each])),
        _ => None,
    };
    let count = match most {
        None => cx.fresh_dim(),
        Some(most) if most.is_const(0) => most,
        Some(most) => {
            let count = scope.fresh_within("selected", Some(0), scope.upper_bound(&most));
            scope.assume_le(&count, &most);
            count
        }
    };
    Ok(vec![Fact::tensor(Some(DType::Int64), Some(vec![count, Dim::constant(3)]))])
}

/// The edges of a box. Arithmetic is in binary32, as in runtimes, because comparisons depend on it.
#[derive(Clone, Copy)]
struct Edges {
    x: (f32, f32),
    y: (f32, f32),
}

impl Edges {
    fn of(numbers: &[f32], by_center: bool) -> Option<Edges> {
        let &[a, b, c, d] = numbers else { return None };
        if by_center {
            let around = |center: f32, size: f32| (center - size / 2.0, center + size / 2.0);
            return Some(Edges { x: around(a, c), y: around(b, d) });
        }
        let ordered = |a: f32, b: f32| if a >= b { (b, a) } else { (a, b) };
        Some(Edges { x: ordered(b, d), y: ordered(a, c) })
    }

    fn area(self) -> f32 {
        (self.x.1 - self.x.0) * (self.y.1 - self.y.0)
    }

    /// Returns `true` if the intersection of two boxes exceeds this part of their union.
    fn overlaps(self, other: Edges, threshold: f32) -> bool {
        let shared = |a: (f32, f32), b: (f32, f32)| (a.0.max(b.0), a.1.min(b.1));
        let both = Edges { x: shared(self.x, other.x), y: shared(self.y, other.y) };
        if both.x.1 <= both.x.0 || both.y.1 <= both.y.0 {
            return false;
        }
        let (own, others, shared) = (self.area(), other.area(), both.area());
        let union = own + others - shared;
        own > 0.0 && others > 0.0 && shared > 0.0 && union > 0.0 && shared / union > threshold
    }
}

/// Returns the single element of an optional operand.
fn single<T: Copy>(values: Option<Vec<T>>) -> Result<Option<T>, Decline> {
    match values.as_deref() {
        None | Some([]) => Ok(None),
        Some([value]) => Ok(Some(*value)),
        Some(_) => Err(Decline::invalid("'iou_threshold' or 'score_threshold' is not a single number")),
    }
}

fn eval(cx: &mut EvalCx<'_>) -> EvalResult {
    let (boxes, scores) = (cx.tensor(0)?, cx.tensor(1)?);
    let by_center = cx.attr_flag("center_point_box", false)?;
    let ([batches, count, 4], [batch, classes, scored]) = (boxes.shape(), scores.shape()) else {
        return Err(Decline::invalid(format!(
            "'boxes' has shape {:?}, which does not fit 'scores' of shape {:?}",
            boxes.shape(),
            scores.shape()
        )));
    };
    if batches != batch || count != scored {
        return Err(Decline::invalid(format!(
            "'boxes' has shape {:?}, which does not fit 'scores' of shape {:?}",
            boxes.shape(),
            scores.shape()
        )));
    }
    let limit = single(cx.data(2).map(|_| cx.ints(2)).transpose()?)?.unwrap_or(0).max(0);
    let limit = usize::try_from(limit).unwrap_or(usize::MAX).min(*count);
    let threshold = |i: usize| -> Result<Option<f32>, Decline> {
        let no_float = || Decline::invalid("'iou_threshold' or 'score_threshold' is not a float");
        let values = cx.optional_tensor(i)?.map(|tensor| tensor.elements::<f32>().ok_or_else(no_float)).transpose()?;
        single(values.map(|values| values.into_owned()))
    };
    let (overlap, score) = (threshold(3)?.unwrap_or(0.0), threshold(4)?);
    if !(0.0..=1.0).contains(&overlap) {
        return Err(Decline::invalid(format!("'iou_threshold' is {overlap}, which is not valid")));
    }
    let no_floats = || Decline::invalid("'boxes' or 'scores' is not of type float");
    let (boxes, scores) = (boxes.elements::<f32>(), scores.elements::<f32>());
    let (boxes, scores) = boxes.zip(scores).ok_or_else(no_floats)?;
    if boxes.iter().chain(scores.iter()).any(|number| number.is_nan()) || score.is_some_and(f32::is_nan) {
        return Err(Decline::unsupported("'boxes' or 'scores' contains NaN, which has no order"));
    }
    // Each box is compared with those selected before.
    let each = (*count as u64).saturating_mul((limit as u64).saturating_add(16));
    cx.budget().take_work((*batches as u64).saturating_mul(*classes as u64).saturating_mul(each))?;
    let most = batches.saturating_mul(*classes).saturating_mul(limit);
    cx.claim(DType::Int64, &[most, 3])?;
    let mut selected: Vec<i64> = Vec::new();
    let mut candidates: Vec<(f32, usize)> = Vec::new();
    let mut taken: Vec<Edges> = Vec::new();
    if *count > 0 && limit > 0 {
        for (row, scores) in scores.chunks_exact(*count).enumerate() {
            let (image, class) = (row / classes, row % classes);
            let own = boxes.get(image * count * 4..).unwrap_or_default();
            candidates.clear();
            let above = scores.iter().copied().enumerate().filter(|&(_, own)| score.is_none_or(|least| own > least));
            candidates.extend(above.map(|(at, own)| (own, at)));
            sort::by(&mut candidates, |a, b| {
                b.0.partial_cmp(&a.0).unwrap_or(std::cmp::Ordering::Equal).then(a.1.cmp(&b.1))
            });
            taken.clear();
            for &(_, at) in &candidates {
                if taken.len() >= limit {
                    break;
                }
                let Some(edges) = own.get(at * 4..at * 4 + 4).and_then(|numbers| Edges::of(numbers, by_center)) else {
                    continue;
                };
                if !taken.iter().any(|&other| edges.overlaps(other, overlap)) {
                    taken.push(edges);
                    selected.extend([image as i64, class as i64, at as i64]);
                }
            }
        }
    }
    Ok(vec![Tensor::from_vec(&[selected.len() / 3, 3], selected)?.into()])
}

#[cfg(test)]
mod tests {
    use crate::ops::single::Single;
    use crate::tensor::DType;

    /// Returns a node with three boxes; the first two overlap by a third of their union.
    fn node(scores: [f32; 3]) -> Single {
        let boxes = [0f32, 0.0, 2.0, 2.0, 0.0, 1.0, 2.0, 3.0, 5.0, 5.0, 4.0, 4.0];
        Single::new("NonMaxSuppression", 11).values(&[1, 3, 4], &boxes).values(&[1, 1, 3], &scores)
    }

    #[test]
    fn the_best_stay() {
        let chosen = |node: Single, overlap: f32| {
            let found = node.values(&[1], &[3i64]).values(&[1], &[overlap]).integers();
            found.chunks_exact(3).map(|chosen| chosen[2]).collect::<Vec<_>>()
        };
        assert_eq!(chosen(node([0.5, 0.9, 0.7]), 0.5), [1, 2, 0]);
        assert_eq!(chosen(node([0.5, 0.9, 0.7]), 0.3), [1, 2]);
        // Ties are ordered by index.
        assert_eq!(chosen(node([0.5, 0.5, 0.5]), 0.3), [0, 2]);
        let floor = node([0.5, 0.9, 0.7]).values(&[1], &[3i64]).values(&[1], &[1f32]).values(&[1], &[0.5f32]);
        assert_eq!(floor.eval().unwrap()[0].shape(), [2, 3]);
        assert_eq!(node([0.5; 3]).eval().unwrap()[0].shape(), [0, 3]);
        assert!(node([f32::NAN; 3]).values(&[1], &[3i64]).eval().is_err());
        assert!(node([0.5; 3]).values(&[1], &[3i64]).values(&[1], &[2f32]).eval().is_err());
    }

    #[test]
    fn shapes() {
        let node = Single::new("NonMaxSuppression", 11).input(DType::Float, "1 S 4").input(DType::Float, "1 2 S");
        assert_eq!(node.infer(), ["int64[0, 3]"]);
        let node = Single::new("NonMaxSuppression", 11).input(DType::Float, "1 S 4").input(DType::Float, "1 2 S");
        assert_eq!(node.values(&[1], &[5i64]).infer(), ["int64[?, 3]"]);
        let flat = Single::new("NonMaxSuppression", 11).input(DType::Float, "S 4").input(DType::Float, "1 2 S");
        assert!(flat.infer()[0].starts_with("invalid"));
    }
}
