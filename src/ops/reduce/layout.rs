//! Iteration over a tensor's elements in memory order, with some axes reduced.

use super::real::{PARALLEL, TASK};
use crate::ops::vector::{fold_run, vectorized};
use crate::tensor::{product, threads};

/// The number of results a thread accumulates at a time: they fit in the L1 cache.
const COLUMNS: usize = 512;

/// The map from elements of a dense tensor to elements of its reduction.
///
/// Adjacent axes that are both kept or both reduced are merged, so groups alternate. The last group is contiguous in memory.
pub(super) struct Layout {
    /// The dims of all groups but the last, and their strides in the result: 0 for reduced groups.
    outer: Vec<(usize, usize)>,
    /// The length of the last group.
    run: usize,
    /// `true` if the last group is reduced.
    run_reduced: bool,
    /// The number of results.
    pub(super) results: usize,
    /// The number of elements per result.
    pub(super) each: usize,
}

impl Layout {
    /// Returns the layout for a shape and one flag per axis: `true` if it is reduced. `None` if the number of elements overflows.
    pub(super) fn new(shape: &[usize], reduced: &[bool]) -> Option<Layout> {
        product(shape)?;
        let mut groups: Vec<(usize, bool)> = Vec::new();
        for (&dim, &reduced) in shape.iter().zip(reduced) {
            match groups.last_mut() {
                Some((size, same)) if *same == reduced => *size = size.checked_mul(dim)?,
                _ => groups.push((dim, reduced)),
            }
        }
        let count = |wanted: bool| {
            let dims: Vec<usize> = groups.iter().filter(|group| group.1 == wanted).map(|group| group.0).collect();
            product(&dims)
        };
        let (results, each) = (count(false)?, count(true)?);
        let (run, run_reduced) = groups.pop().unwrap_or((1, true));
        let mut step = if run_reduced { 1 } else { run };
        let mut outer = Vec::with_capacity(groups.len());
        for &(dim, reduced) in groups.iter().rev() {
            outer.push((dim, if reduced { 0 } else { step }));
            if !reduced {
                step = step.checked_mul(dim)?;
            }
        }
        outer.reverse();
        Some(Layout { outer, run, run_reduced, results, each })
    }

    /// Folds the elements of each result: `step` adds an element, `merge` combines two partial results.
    #[inline(always)]
    pub(super) fn fold<T: Copy, A: Copy>(
        &self,
        elements: &[T],
        start: A,
        step: impl Fn(A, T) -> A,
        merge: impl Fn(A, A) -> A,
    ) -> Vec<A> {
        let mut results = vec![start; self.results];
        if !elements.is_empty() && self.run > 0 {
            self.fold_alone(elements, &mut results, (start, step, merge, |_| 0.0));
        }
        results
    }

    /// Like `fold`, on all threads. Also returns the maximum of `look`, which sees each part of the elements before it is folded. Each
    /// result is folded by one thread in one order, for any number of threads. Each use is compiled for all ways to split the work,
    /// so rare reductions use `fold`.
    #[inline(always)]
    pub(super) fn fold_looking<T: Copy + Sync, A: Copy + Send + Sync>(
        &self,
        elements: &[T],
        start: A,
        step: impl Fn(A, T) -> A + Sync,
        merge: impl Fn(A, A) -> A + Sync,
        look: impl Fn(&[T]) -> f64 + Sync,
    ) -> (Vec<A>, f64) {
        let mut results = vec![start; self.results];
        if elements.is_empty() || self.run == 0 {
            return (results, 0.0);
        }
        let run = self.run;
        let greatest = match self.outer[..] {
            [(_, 1..)] if self.run_reduced && elements.len() >= PARALLEL => {
                let count = (TASK / run).max(1);
                let rows = |(task, results): (usize, &mut [A])| {
                    let rest = elements.get(task * count * run..).unwrap_or_default();
                    let rows = rest.get(..results.len() * run).unwrap_or_default();
                    vectorized(
                        #[inline(always)]
                        || {
                            let seen = look(rows);
                            for (result, row) in results.iter_mut().zip(rows.chunks_exact(run)) {
                                *result = merge(*result, fold_run(row, start, &step, &merge));
                            }
                            seen
                        },
                    )
                };
                greatest_of(threads::map(results.chunks_mut(count).enumerate(), rows))
            }
            [(_, 0)] if !self.run_reduced && elements.len() >= PARALLEL => {
                let columns = |(task, results): (usize, &mut [A])| {
                    let part = task * COLUMNS..task * COLUMNS + results.len();
                    vectorized(
                        #[inline(always)]
                        || {
                            let mut greatest = 0.0f64;
                            // A result is loaded and stored once per four rows, whose elements are added in order.
                            let fours = elements.chunks_exact(4 * run);
                            let rest = fours.remainder();
                            for rows in fours {
                                let mut four: [&[T]; 4] = [&[]; 4];
                                for (own, row) in four.iter_mut().zip(rows.chunks_exact(run)) {
                                    *own = row.get(part.clone()).unwrap_or_default();
                                    greatest = greatest.max(look(own));
                                }
                                let [a, b, c, d] = four;
                                for ((((result, &a), &b), &c), &d) in results.iter_mut().zip(a).zip(b).zip(c).zip(d) {
                                    *result = step(step(step(step(*result, a), b), c), d);
                                }
                            }
                            for row in rest.chunks_exact(run) {
                                let row = row.get(part.clone()).unwrap_or_default();
                                greatest = greatest.max(look(row));
                                for (result, &element) in results.iter_mut().zip(row) {
                                    *result = step(*result, element);
                                }
                            }
                            greatest
                        },
                    )
                };
                greatest_of(threads::map(results.chunks_mut(COLUMNS).enumerate(), columns))
            }
            _ => self.fold_alone(elements, &mut results, (start, step, merge, look)),
        };
        (results, greatest)
    }

    /// Like `fold_looking`, on one thread, for any axes.
    #[inline(always)]
    fn fold_alone<T: Copy, A: Copy>(
        &self,
        elements: &[T],
        results: &mut [A],
        (start, step, merge, look): (A, impl Fn(A, T) -> A, impl Fn(A, A) -> A, impl Fn(&[T]) -> f64),
    ) -> f64 {
        vectorized(
            #[inline(always)]
            || {
                let mut greatest = 0.0f64;
                for (run, place) in elements.chunks_exact(self.run).zip(self.places()) {
                    greatest = greatest.max(look(run));
                    if self.run_reduced {
                        if let Some(result) = results.get_mut(place) {
                            *result = merge(*result, fold_run(run, start, &step, &merge));
                        }
                    } else if let Some(row) = results.get_mut(place..).and_then(|rest| rest.get_mut(..self.run)) {
                        for (result, &element) in row.iter_mut().zip(run) {
                            *result = step(*result, element);
                        }
                    }
                }
                greatest
            },
        )
    }

    /// Returns the result index of each element.
    pub(super) fn targets(&self, elements: usize) -> Vec<usize> {
        let run = |place: usize| (0..self.run).map(move |at| if self.run_reduced { place } else { place + at });
        self.places().flat_map(run).take(elements).collect()
    }

    /// Returns the result index of each run's start, as an endless iterator.
    fn places(&self) -> impl Iterator<Item = usize> + '_ {
        let mut index = vec![0usize; self.outer.len()];
        let mut place = 0usize;
        std::iter::repeat_with(move || {
            let found = place;
            for (at, &(dim, stride)) in index.iter_mut().zip(&self.outer).rev() {
                *at += 1;
                place += stride;
                if *at < dim {
                    break;
                }
                place -= stride * *at;
                *at = 0;
            }
            found
        })
    }
}

/// Returns the maximum of these numbers, at least 0.
fn greatest_of(numbers: Vec<f64>) -> f64 {
    numbers.into_iter().fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums(shape: &[usize], reduced: &[bool]) -> Vec<usize> {
        let elements: Vec<usize> = (0..shape.iter().product()).collect();
        let layout = Layout::new(shape, reduced).unwrap();
        layout.fold(&elements, 0, |sum, element| sum + element, |a, b| a + b)
    }

    #[test]
    fn every_choice_of_axes_agrees_with_the_definition() {
        let shape = [3, 1, 11, 2, 4];
        for choice in 0..1 << shape.len() {
            let reduced: Vec<bool> = (0..shape.len()).map(|axis| choice >> axis & 1 == 1).collect();
            let kept: Vec<usize> = shape.iter().zip(&reduced).filter(|(_, r)| !**r).map(|(&dim, _)| dim).collect();
            let mut expected = vec![0; kept.iter().product()];
            for (element, index) in crate::tensor::Indices::new(&shape).enumerate() {
                let mut place = 0;
                for (axis, &at) in index.iter().enumerate().filter(|(axis, _)| !reduced[*axis]) {
                    place = place * shape[axis] + at;
                }
                expected[place] += element;
            }
            assert_eq!(sums(&shape, &reduced), expected, "{reduced:?}");
        }
    }

    #[test]
    fn threads_take_elements_in_as_one_does() {
        let elements: Vec<f64> =
            (0..2 * PARALLEL + 3 * 1031).map(|at| ((at * 7919 % 1013) as f64 - 500.0) / 3.0).collect();
        for width in [1, 3, 509, 1031, 4096, 20_001] {
            let elements = &elements[..elements.len() / width * width];
            for reduced in [[false, true], [true, false]] {
                let layout = Layout::new(&[elements.len() / width, width], &reduced).unwrap();
                let (add, merge) = (|sum: f64, x: f64| sum + x, |a: f64, b: f64| a + b);
                let look = |part: &[f64]| part.iter().copied().fold(0.0, f64::max);
                let (sums, greatest) = layout.fold_looking(elements, 0.0, add, merge, look);
                let mut alone = vec![0.0; layout.results];
                let greatest_alone = layout.fold_alone(elements, &mut alone, (0.0, add, merge, look));
                assert_eq!(greatest.to_bits(), greatest_alone.to_bits());
                let bits = |sums: &[f64]| sums.iter().map(|sum| sum.to_bits()).collect::<Vec<_>>();
                assert_eq!(bits(&sums), bits(&alone), "{width} {reduced:?}");
            }
        }
    }

    #[test]
    fn nothing_is_folded_from_nothing() {
        assert_eq!(sums(&[2, 0, 3], &[false, true, false]), [0; 6]);
        assert!(sums(&[2, 0, 3], &[true, false, true]).is_empty());
        assert_eq!(sums(&[], &[]), [0]);
        assert_eq!(sums(&[4, 0], &[false, true]), [0; 4]);
        assert!(Layout::new(&[usize::MAX, usize::MAX], &[true, false]).is_none());
    }
}
