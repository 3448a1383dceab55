//! Broadcasting: the common shape of several operands, and iteration over their elements.
//!
//! | form | where | rule |
//! | --- | --- | --- |
//! | multidirectional | operator set 7 and later | axes align at the end; on each axis the dims other than 1 are equal |
//! | attribute `broadcast` | before operator set 7 | the second operand broadcasts to the first, from axis `axis` on |
//!
//! A dim of 0 broadcasts like any other: with 1 the result is 0, with a larger dim it is an error. So the larger of two dims is
//! the result only if neither can be 0; see [`broadcast_dims`].

use std::ops::Range;

use smallvec::SmallVec;

use crate::dim::{Answer, Dim, Scope};
use crate::ops::Refusal;
use crate::sort;
use crate::tensor::product;

/// Returns the shape of multidirectional broadcasting. Without shapes, the rank is 0.
///
/// # Errors
/// Two dims of an axis are proved to differ and neither is 1.
pub fn broadcast_shapes(scope: &Scope, shapes: &[&[Dim]]) -> Result<Vec<Dim>, Refusal> {
    let rank = shapes.iter().map(|shape| shape.len()).max().unwrap_or(0);
    (0..rank)
        .map(|axis| {
            let dims = shapes.iter().filter_map(|shape| shape.get((axis + shape.len()).checked_sub(rank)?));
            broadcast_axis(scope, dims)
        })
        .collect()
}

/// Returns the dim that the dims of one axis broadcast to.
fn broadcast_axis<'d>(scope: &Scope, dims: impl Iterator<Item = &'d Dim>) -> Result<Dim, Refusal> {
    // Process constants first, so that they determine the axis before symbols are combined.
    let mut distinct: SmallVec<[&Dim; 4]> = SmallVec::new();
    for dim in dims {
        if !dim.is_const(1) && !distinct.contains(&dim) {
            distinct.push(dim);
        }
    }
    sort::by_key(&mut distinct, |dim| dim.as_const().is_none());
    let mut dims = distinct.into_iter();
    let first = dims.next().cloned().unwrap_or_else(|| Dim::constant(1));
    dims.try_fold(first, |sum, dim| broadcast_dims(scope, &sum, dim))
}

/// Returns the dim that two dims of one axis broadcast to.
///
/// One of them is 1, or both are equal. Hence
/// - a dim that cannot be 1 is the result,
/// - the larger one is the result if neither can be 0,
/// - `max(a, b)·min(1, a, b)` is the result in any case.
///
/// If the formula grows too large ([`Scope::meet`]), the result is a new symbol.
///
/// # Errors
/// Both are proved to differ and neither is 1.
pub fn broadcast_dims(scope: &Scope, a: &Dim, b: &Dim) -> Result<Dim, Refusal> {
    let one = Dim::constant(1);
    if a.is_const(1) {
        return Ok(b.clone());
    }
    if b.is_const(1) {
        return Ok(a.clone());
    }
    let equal = scope.eq(a, b);
    let (a_is_one, b_is_one) = (scope.eq(a, &one), scope.eq(b, &one));
    if equal.is_no() && a_is_one.is_no() && b_is_one.is_no() {
        let (a, b) = (scope.format(a), scope.format(b));
        return Err(Refusal::invalid(format!("dims {a} and {b} do not broadcast")));
    }
    if equal.is_yes() || a_is_one.is_no() || b_is_one.is_yes() {
        let prefer_b = b.as_const().is_some() && a.as_const().is_none() && b_is_one != Answer::Yes;
        return Ok(if prefer_b { b.clone() } else { a.clone() });
    }
    if b_is_one.is_no() || a_is_one.is_yes() {
        return Ok(b.clone());
    }
    for (small, large) in [(a, b), (b, a)] {
        if scope.covers(large, small) {
            return Ok(large.clone());
        }
    }
    let (a_low, b_low) = (scope.lower_bound(a), scope.lower_bound(b));
    let positive = |low: Option<i64>| low.is_some_and(|low| low >= 1);
    if positive(a_low) && positive(b_low) {
        return Ok(scope.max(a, b));
    }
    if let Some(formula) = scope.meet(a, b) {
        return Ok(formula);
    }
    let low = a_low.zip(b_low).map_or(0, |(a, b)| a.min(b).max(0));
    let high = scope.upper_bound(a).zip(scope.upper_bound(b)).map(|(a, b)| a.max(b));
    Ok(scope.fresh_within("broadcast", Some(low), high))
}

/// Returns the shape of multidirectional broadcasting, or `None` if the shapes are incompatible.
pub fn broadcast_static(shapes: &[&[usize]]) -> Option<Vec<usize>> {
    let rank = shapes.iter().map(|shape| shape.len()).max().unwrap_or(0);
    let mut result = vec![1; rank];
    for shape in shapes {
        for (dim, &with) in result.iter_mut().rev().zip(shape.iter().rev()) {
            match (*dim, with) {
                (_, 1) => {}
                (1, _) => *dim = with,
                (dim, with) if dim == with => {}
                _ => return None,
            }
        }
    }
    Some(result)
}

/// Aligns the second operand's shape with the first's of rank `rank`, as the attributes `broadcast=1` and `axis` specify. Appends
/// axes of dim 1, so that aligning at the end is correct. Without `axis`, the shape is unchanged.
///
/// # Errors
/// The axis is out of range, or the shape has more axes than the first operand from there on.
pub fn placed_shape<T: Clone>(rank: usize, shape: &[T], axis: Option<i64>, one: T) -> Result<Vec<T>, Refusal> {
    let beyond = || Refusal::invalid("the second operand has more axes than the first one from 'axis' on");
    let start = match axis {
        None => rank.checked_sub(shape.len()).ok_or_else(beyond)?,
        // An operand of rank 0 may be aligned after the last axis.
        Some(axis) if shape.is_empty() && usize::try_from(axis).ok() == Some(rank) => rank,
        Some(axis) => crate::ops::axis_in(axis, rank)?,
    };
    let behind = rank.checked_sub(start).and_then(|left| left.checked_sub(shape.len())).ok_or_else(beyond)?;
    let mut placed = shape.to_vec();
    placed.resize(shape.len() + behind, one);
    Ok(placed)
}

/// Iterates over the elements of `N` operands that broadcast to one shape. Adjacent axes with the same broadcast pattern are
/// merged. So operands of one shape, or a tensor and a scalar, are a single run.
#[derive(Clone, Debug)]
pub struct Broadcast<const N: usize> {
    shape: Vec<usize>,
    len: usize,
    /// The dims of the merged axes except the last, innermost first.
    outer: SmallVec<[usize; 4]>,
    /// The strides of each operand for each of these axes; 0 repeats.
    strides: SmallVec<[[usize; N]; 4]>,
    /// The dim of the last merged axis.
    inner: usize,
    /// `true` for operands that advance along the last merged axis.
    moves: [bool; N],
}

impl<const N: usize> Broadcast<N> {
    /// Returns the iteration over operands of these shapes; `None` if they do not broadcast or the result is not addressable.
    pub fn new(shapes: [&[usize]; N]) -> Option<Self> {
        let shape = broadcast_static(&shapes)?;
        let len = product(&shape)?;
        let mut axes: SmallVec<[(usize, [bool; N]); 4]> = SmallVec::new();
        for (back, &dim) in shape.iter().rev().enumerate().filter(|&(_, &dim)| dim != 1) {
            let moves = shapes.map(|shape| shape.iter().rev().nth(back).is_some_and(|&dim| dim != 1));
            match axes.last_mut() {
                // Without elements, the product of dims may overflow, but is not used.
                Some((merged, alike)) if *alike == moves => *merged = merged.saturating_mul(dim),
                _ => axes.push((dim, moves)),
            }
        }
        let mut axes = axes.into_iter();
        let (inner, moves) = axes.next().unwrap_or((1, [true; N]));
        let mut reach = moves.map(|moves| if moves { inner } else { 1 });
        let (mut outer, mut strides) = (SmallVec::new(), SmallVec::new());
        for (dim, moves) in axes {
            let mut stride = [0; N];
            for ((stride, reach), moves) in stride.iter_mut().zip(&mut reach).zip(moves) {
                if moves {
                    *stride = *reach;
                    *reach = reach.saturating_mul(dim);
                }
            }
            outer.push(dim);
            strides.push(stride);
        }
        Some(Broadcast { shape, len, outer, strides, inner, moves })
    }

    /// Returns the shape of the result.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Returns the number of elements of the result.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns `true` if the result has no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Visits the elements `range` of the result in order, as runs. Each run has its part of the result, relative to the start of
    /// `range`, and the elements of each operand: as many as the run has, or a single repeated one.
    pub fn runs(&self, range: Range<usize>, mut visit: impl FnMut(Range<usize>, [Range<usize>; N])) {
        self.visit_runs(range, &mut visit);
    }

    fn visit_runs(&self, range: Range<usize>, visit: &mut dyn FnMut(Range<usize>, [Range<usize>; N])) {
        let (start, end) = (range.start, range.end.min(self.len));
        if start >= end {
            return;
        }
        let mut column = start % self.inner;
        let mut row = start / self.inner;
        let mut index: SmallVec<[usize; 4]> = SmallVec::new();
        let mut base = [0; N];
        for (&dim, strides) in self.outer.iter().zip(&self.strides) {
            let at = row % dim;
            row /= dim;
            index.push(at);
            base.iter_mut().zip(strides).for_each(|(base, stride)| *base += at * stride);
        }
        let mut at = start;
        loop {
            let run = (self.inner - column).min(end - at);
            let mut operands = base.map(|base| base..base + 1);
            for (operand, moves) in operands.iter_mut().zip(self.moves) {
                if moves {
                    *operand = operand.start + column..operand.start + column + run;
                }
            }
            visit(at - start..at - start + run, operands);
            at += run;
            if at >= end {
                return;
            }
            column = 0;
            for ((index, &dim), strides) in index.iter_mut().zip(&self.outer).zip(&self.strides) {
                *index += 1;
                base.iter_mut().zip(strides).for_each(|(base, stride)| *base += stride);
                if *index < dim {
                    break;
                }
                *index = 0;
                base.iter_mut().zip(strides).for_each(|(base, stride)| *base -= dim * stride);
            }
        }
    }

    /// Returns the range of elements of an operand, given by its index, that the elements `range` of the result depend on.
    pub fn reach(&self, range: Range<usize>, operand: usize) -> Range<usize> {
        let (mut first, mut end) = (usize::MAX, 0);
        self.runs(range, |_, operands| {
            if let Some(of) = operands.get(operand) {
                (first, end) = (first.min(of.start), end.max(of.end));
            }
        });
        first.min(end)..end
    }

    /// Returns for each element of the result, in order, the element of each operand. Intended for small results.
    pub fn positions(&self) -> Vec<[usize; N]> {
        let mut positions = Vec::with_capacity(self.len);
        self.runs(0..self.len, |run, operands| {
            let step = operands.clone().map(|operand| usize::from(operand.len() > 1));
            for at in 0..run.len() {
                let mut position = [0; N];
                for ((position, operand), step) in position.iter_mut().zip(&operands).zip(step) {
                    *position = operand.start + at * step;
                }
                positions.push(position);
            }
        });
        positions
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::{Indices, strides_of};

    fn slow(shapes: [&[usize]; 2]) -> Vec<[usize; 2]> {
        let result = broadcast_static(&shapes).unwrap();
        let strides = shapes.map(|shape| strides_of(shape).unwrap());
        let position = |index: &[usize], which: usize| {
            let (shape, strides) = (shapes[which], &strides[which]);
            let index = &index[index.len() - shape.len()..];
            let terms = index.iter().zip(shape).zip(strides.iter());
            terms.map(|((&at, &dim), &stride)| if dim == 1 { 0 } else { at * stride as usize }).sum()
        };
        Indices::new(&result).map(|index| [position(&index, 0), position(&index, 1)]).collect()
    }

    #[test]
    fn a_clamped_size_broadcasts_to_the_size() {
        let scope = Scope::new();
        let size = Dim::symbol(scope.named("S"));
        let clamped = scope.min(&Dim::constant(64), &size);
        assert_eq!(broadcast_dims(&scope, &clamped, &size), Ok(size.clone()));
        assert_eq!(broadcast_dims(&scope, &size, &clamped), Ok(size.clone()));
        // At S = 1 the other dim is 0, and so is the result.
        let shorter = scope.max(&Dim::constant(0), &scope.sub(&size, &Dim::constant(1)));
        assert_ne!(broadcast_dims(&scope, &shorter, &size), Ok(size));
    }

    #[test]
    fn a_dim_that_is_1_with_a_size_broadcasts_to_the_size() {
        let scope = Scope::new();
        let (size, other) = (Dim::symbol(scope.named("S")), Dim::symbol(scope.named("T")));
        // The dim of a Reshape for an entry S that copies T if it is 0.
        let empty = scope.max(&Dim::constant(0), &scope.sub(&Dim::constant(1), &size));
        let copied = scope.add(&size, &scope.mul(&other, &empty));
        assert_eq!(broadcast_dims(&scope, &size, &copied), Ok(size.clone()));
        assert_eq!(broadcast_dims(&scope, &copied, &size), Ok(size));
    }

    #[test]
    fn expressions_meet_in_one_formula_however_often() {
        let scope = Scope::new();
        let [s, t, u] = ["S", "T", "U"].map(|name| Dim::symbol(scope.named(name)));
        let product = scope.mul(&s, &t);
        let once = broadcast_dims(&scope, &product, &u).unwrap();
        assert_eq!(broadcast_dims(&scope, &once, &product), Ok(once.clone()));
        assert_eq!(broadcast_dims(&scope, &u, &once), Ok(once.clone()));
        for [first, second, third] in [[2, 3, 6], [2, 3, 1], [1, 1, 5], [0, 3, 0], [0, 3, 1], [1, 1, 0]] {
            let size = |symbol| {
                let named = [&s, &t, &u].into_iter().zip([first, second, third]);
                named.into_iter().find(|(dim, _)| dim.as_symbol() == Some(symbol)).map(|(_, size)| size)
            };
            let [met, product, third] = [&once, &product, &u].map(|dim| dim.evaluate(&size).unwrap());
            let expected = broadcast_static(&[&[product as usize], &[third as usize]]).unwrap();
            assert_eq!(met, expected[0] as i64, "{first} {second} {third}");
        }
    }

    #[test]
    fn shapes_align_at_the_end() {
        assert_eq!(broadcast_static(&[&[2, 3], &[3]]), Some(vec![2, 3]));
        assert_eq!(broadcast_static(&[&[], &[4, 1], &[1, 5]]), Some(vec![4, 5]));
        assert_eq!(broadcast_static(&[&[0, 1], &[1, 3]]), Some(vec![0, 3]));
        assert_eq!(broadcast_static(&[&[0], &[2]]), None);
        assert_eq!(broadcast_static(&[&[2, 3], &[2]]), None);
        assert_eq!(broadcast_static(&[]), Some(vec![]));
    }

    #[test]
    fn broadcast_strides_select_the_same_elements() {
        let shapes: &[[&[usize]; 2]] = &[
            [&[], &[]],
            [&[5], &[]],
            [&[2, 3, 4], &[2, 3, 4]],
            [&[2, 3, 4], &[4]],
            [&[2, 3, 4], &[3, 1]],
            [&[2, 1, 4], &[3, 1]],
            [&[1, 3, 1, 2], &[4, 1, 5, 1]],
            [&[4, 1, 5, 1], &[1, 3, 1, 2]],
            [&[0, 3], &[1, 3]],
            [&[3, 1, 1], &[3, 4, 5]],
        ];
        for &pair in shapes {
            let way = Broadcast::new(pair).unwrap();
            let expected = slow(pair);
            assert_eq!(way.positions(), expected, "{pair:?}");
            // Iteration over each part of the result equals that part of the whole iteration.
            for start in 0..=way.len() {
                let mut seen = Vec::new();
                way.runs(start..way.len(), |run, operands| {
                    for at in 0..run.len() {
                        seen.push(operands.clone().map(|o| if o.len() == run.len() { o.start + at } else { o.start }));
                    }
                });
                assert_eq!(seen, expected[start..], "{pair:?} from {start}");
            }
        }
    }

    #[test]
    fn operands_of_one_shape_and_scalars_are_one_run() {
        let mut runs = 0;
        Broadcast::new([&[2, 3, 4], &[2, 3, 4]]).unwrap().runs(0..24, |_, _| runs += 1);
        Broadcast::new([&[2, 3, 4], &[1, 1]]).unwrap().runs(0..24, |_, _| runs += 1);
        assert_eq!(runs, 2);
    }

    #[test]
    fn hostile_dims_do_not_overflow() {
        let huge = usize::MAX / 2;
        assert!(Broadcast::new([&[huge, 1], &[1, huge]]).is_none());
        let way = Broadcast::new([&[huge, huge, 0], &[1]]).unwrap();
        way.runs(0..10, |_, _| panic!("there is nothing to visit"));
    }

    #[test]
    fn the_old_form_places_the_second_operand() {
        assert_eq!(placed_shape(4, &[5], None, 1), Ok(vec![5]));
        assert_eq!(placed_shape(4, &[3, 4], Some(1), 1), Ok(vec![3, 4, 1]));
        assert_eq!(placed_shape(4, &[2], Some(0), 1), Ok(vec![2, 1, 1, 1]));
        assert_eq!(placed_shape(4, &[5], Some(-1), 1), Ok(vec![5]));
        assert!(placed_shape(2, &[2, 3], Some(1), 1).is_err());
        assert!(placed_shape(2, &[2], Some(2), 1).is_err());
    }
}
