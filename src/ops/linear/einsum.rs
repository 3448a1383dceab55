//! Einsum: sums of products, with the axes named by letters.
//!
//! | | |
//! |---|---|
//! | computes | `output[output term] = Σ input₁[term₁]·input₂[term₂]·…` over the letters that are not in the output |
//! | implicit | without `->` the output has the letters that occur once, in ASCII order, after the ellipsis |
//! | ellipsis | the same number of axes in all terms; they broadcast |
//! | versions | 12; 28 adds bfloat16 |
//! | integers | wrap |
//! | rejects | an invalid equation; a term that does not fit its operand; an ellipsis that the output drops |
//!
//! A letter denotes one dim. Runtimes also broadcast a dim of 1 under a letter, which the standard does not define:
//! shapes are correct in both cases, values are not evaluated.
#![allow(
    clippy::indexing_slicing,
    reason = "tables have a place for each letter of ASCII, and terms were checked against the operands"
)]

use std::borrow::Cow;

use smallvec::SmallVec;

use crate::dim::Dim;
use crate::ir::Fact;
use crate::ops::broadcast::{broadcast_dims, broadcast_shapes, broadcast_static};
use crate::ops::lane::{Ring, in_ring, read, same_dtype};
use crate::ops::linear::product::{Matrix, multiply_add, products_stay_finite};
use crate::ops::traits::{NodeFacts, Traits};
use crate::ops::{Decline, EvalCx, EvalResult, InferCx, InferResult, Operator, Refusal, Site};
use crate::tensor::{DType, Shape, Strides, Tensor, product, strides_of};

pub(super) const EINSUM: Operator = Operator::new("Einsum", &[12, 28], infer, eval).with(Traits::NONE.macs(macs));

/// The axes of an operand or of the result, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Subscripts {
    before: Vec<u8>,
    ellipsis: bool,
    after: Vec<u8>,
}

impl Subscripts {
    fn parse(text: &str) -> Option<Subscripts> {
        let letters = |text: &str| text.bytes().all(|c| c.is_ascii_alphabetic()).then(|| text.as_bytes().to_vec());
        Some(match text.split_once("...") {
            None => Subscripts { before: letters(text)?, ..Subscripts::default() },
            Some((before, after)) => Subscripts { before: letters(before)?, ellipsis: true, after: letters(after)? },
        })
    }

    fn letters(&self) -> impl Iterator<Item = u8> + '_ {
        self.before.iter().chain(&self.after).copied()
    }

    /// Returns the number of ellipsis axes for an operand of this rank; 0 without an ellipsis.
    fn ellipsis_rank(&self, rank: usize) -> Result<usize, Refusal> {
        match rank.checked_sub(self.before.len() + self.after.len()) {
            Some(left) if self.ellipsis || left == 0 => Ok(left),
            _ => Err(Refusal::invalid(format!("a term of the equation does not fit an operand of rank {rank}"))),
        }
    }

    /// Returns the label of each axis, if the ellipsis has `count` axes. Labels of ellipsis axes are larger than all
    /// letters.
    fn labels(&self, count: usize) -> Vec<Label> {
        let letters = |letters: &[u8]| letters.iter().map(|&letter| usize::from(letter)).collect::<Vec<_>>();
        let ellipsis = (0..if self.ellipsis { count } else { 0 }).map(|at| FIRST_OF_ELLIPSIS + at);
        letters(&self.before).into_iter().chain(ellipsis).chain(letters(&self.after)).collect()
    }
}

type Label = usize;
const FIRST_OF_ELLIPSIS: Label = 256;

struct Equation {
    operands: Vec<Subscripts>,
    output: Subscripts,
}

impl Equation {
    fn read(site: &Site<'_>) -> Result<Equation, Refusal> {
        let text = site.attr_str("equation")?.ok_or_else(|| Refusal::invalid("attribute 'equation' is missing"))?;
        let equation = Equation::parse(text)
            .ok_or_else(|| Refusal::invalid(format!("'{text}' is not a valid Einsum equation")))?;
        if equation.operands.len() != site.input_count() {
            let (terms, operands) = (equation.operands.len(), site.input_count());
            return Err(Refusal::invalid(format!("the equation has {terms} terms for {operands} operands")));
        }
        Ok(equation)
    }

    fn parse(text: &str) -> Option<Equation> {
        let text = text.replace(' ', "");
        let (left, right) = match text.split_once("->") {
            Some((left, right)) => (left, Some(right)),
            None => (text.as_str(), None),
        };
        let operands = left.split(',').map(Subscripts::parse).collect::<Option<Vec<Subscripts>>>()?;
        let mut counts = [0usize; 128];
        operands.iter().flat_map(Subscripts::letters).for_each(|letter| counts[usize::from(letter) % 128] += 1);
        let has_ellipsis = operands.iter().any(|term| term.ellipsis);
        let output = match right {
            Some(right) => Subscripts::parse(right)?,
            None => {
                let once = (0u8..128).filter(|&letter| counts[usize::from(letter)] == 1).collect();
                Subscripts { before: Vec::new(), ellipsis: has_ellipsis, after: once }
            }
        };
        let mut seen = [false; 128];
        let named_once = output.letters().all(|letter| {
            let at = usize::from(letter) % 128;
            counts[at] > 0 && !std::mem::replace(&mut seen[at], true)
        });
        (named_once && output.ellipsis == has_ellipsis).then_some(Equation { operands, output })
    }
}

fn infer(cx: &mut InferCx<'_>) -> InferResult {
    let equation = Equation::read(cx)?;
    let dtype = (0..cx.input_count()).find_map(|at| cx.dtype(at));
    Ok(vec![Fact::tensor(dtype, shape_of(cx, &equation)?)])
}

fn shape_of(cx: &InferCx<'_>, equation: &Equation) -> Result<Option<Vec<Dim>>, Refusal> {
    let mut ellipses: Vec<&[Dim]> = Vec::new();
    let mut letters: Vec<(u8, &Dim)> = Vec::new();
    let mut complete = true;
    for (at, term) in equation.operands.iter().enumerate() {
        let Some(shape) = cx.shape(at) else {
            complete = false;
            continue;
        };
        let count = term.ellipsis_rank(shape.len())?;
        let (before, rest) = shape.split_at(term.before.len());
        let (ellipsis, after) = rest.split_at(count);
        letters.extend(term.before.iter().copied().zip(before));
        letters.extend(term.after.iter().copied().zip(after));
        if term.ellipsis {
            if ellipses.first().is_some_and(|first| first.len() != count) {
                return Err(Refusal::invalid(
                    "the ellipsis of the equation stands for different numbers of axes of the operands",
                ));
            }
            ellipses.push(ellipsis);
        }
    }
    let dim_of = |letter: u8| -> Result<Dim, Refusal> {
        let dims = letters.iter().filter(|(other, _)| *other == letter).map(|(_, dim)| *dim);
        one_dim(cx, letter, dims)
    };
    for (letter, _) in &letters {
        dim_of(*letter)?;
    }
    if equation.output.ellipsis && ellipses.is_empty() {
        return Ok(None);
    }
    let mut dims = equation.output.before.iter().map(|&letter| dim_of(letter)).collect::<Result<Vec<_>, _>>()?;
    if equation.output.ellipsis {
        let met = broadcast_shapes(cx.scope(), &ellipses)?;
        // Operands of unknown shape may broadcast a dim that could be 1.
        let settled = |dim: &Dim| complete || cx.scope().eq(dim, &Dim::constant(1)).is_no();
        dims.extend(met.into_iter().map(|dim| if settled(&dim) { dim } else { cx.fresh_dim() }));
    }
    for &letter in &equation.output.after {
        dims.push(dim_of(letter)?);
    }
    Ok(Some(dims))
}

/// Returns the multiply-accumulates for two operands: one per combination of indices under all labels. A single
/// operand has none; for more operands the number depends on the order of contraction.
fn macs(view: &NodeFacts<'_>) -> Option<Dim> {
    let site = view.site()?;
    let equation = Equation::read(&site).ok()?;
    match equation.operands.as_slice() {
        [_] => return Some(Dim::constant(0)),
        [_, _] => {}
        _ => return None,
    }
    let mut dims: Vec<(Label, Dim)> = Vec::new();
    for (at, term) in equation.operands.iter().enumerate() {
        let shape = view.shape(at)?;
        let count = term.ellipsis_rank(shape.len()).ok()?;
        for (label, dim) in term.labels(count).into_iter().zip(shape) {
            match dims.iter_mut().find(|(known, _)| *known == label) {
                Some((_, known)) => *known = broadcast_dims(view.scope(), known, dim).ok()?,
                None => dims.push((label, dim.clone())),
            }
        }
    }
    Some(view.scope().product(dims.iter().map(|(_, dim)| dim)))
}

/// Returns the dim of a letter, from all axes with this letter: all are equal, or runtimes broadcast them.
/// Broadcasting is correct in both cases.
fn one_dim<'d>(cx: &InferCx<'_>, letter: u8, mut dims: impl Iterator<Item = &'d Dim>) -> Result<Dim, Refusal> {
    let first = dims.next().cloned().unwrap_or_else(|| cx.fresh_dim());
    dims.try_fold(first, |known, dim| {
        broadcast_dims(cx.scope(), &known, dim).map_err(|_| {
            let (known, dim) = (cx.scope().format(&known), cx.scope().format(dim));
            Refusal::invalid(format!(
                "the subscript '{}' stands for axes of different sizes: {known} and {dim}",
                char::from(letter)
            ))
        })
    })
}

fn eval(cx: &mut EvalCx<'_>) -> EvalResult {
    let equation = Equation::read(cx)?;
    let operands = (0..cx.input_count()).map(|at| cx.tensor(at)).collect::<Result<Vec<_>, _>>()?;
    let dtype = operands.first().map_or(DType::Float, |first| first.dtype());
    same_dtype(dtype, &operands)?;
    in_ring!(dtype, T => contract_all::<T>(cx, &equation, dtype, &operands))
}

fn contract_all<T: Ring>(cx: &EvalCx<'_>, equation: &Equation, dtype: DType, operands: &[&Tensor]) -> EvalResult {
    let sizes = Sizes::of(equation, operands)?;
    let output = equation.output.labels(sizes.ellipsis.len());
    let shape: Vec<usize> = output.iter().map(|&label| sizes.get(label)).collect();
    cx.claim(dtype, &shape)?;
    // Kernels sum and multiply in different orders.
    if operands.len() > 1 {
        let summed = (0..FIRST_OF_ELLIPSIS).filter(|label| !output.contains(label));
        products_stay_finite(summed.fold(1, |terms, label| terms.saturating_mul(sizes.get(label))), operands)?;
    }
    let mut labelled = equation.operands.iter().zip(operands).map(|(term, operand)| -> Result<_, Decline> {
        Axes::of(term, operand.shape(), sizes.ellipsis.len()).dense(cx, dtype, &read::<T>(operand)?)
    });
    let mut sum = labelled.next().ok_or_else(|| Decline::invalid("there are no operands"))??;
    for (at, next) in labelled.enumerate() {
        let next = next?;
        let later = &equation.operands[at + 2..];
        let needed = |label: Label| {
            output.contains(&label)
                || later.iter().any(|term| term.letters().any(|letter| usize::from(letter) == label))
                || label >= FIRST_OF_ELLIPSIS
        };
        sum = contract(cx, dtype, sum, next, &needed)?;
    }
    let sum = sum.without(cx, dtype, &|label| output.contains(&label))?;
    let values = sum.spread(cx, dtype, &output, &shape)?;
    Ok(vec![T::write(dtype, &shape, values)?.into()])
}

/// The dim of every label.
struct Sizes {
    letters: [Option<usize>; 128],
    ellipsis: Vec<usize>,
}

impl Sizes {
    fn of(equation: &Equation, operands: &[&Tensor]) -> Result<Sizes, Decline> {
        let mut letters = [None; 128];
        let mut ellipses: Vec<&[usize]> = Vec::new();
        for (term, operand) in equation.operands.iter().zip(operands) {
            let count = term.ellipsis_rank(operand.rank())?;
            let (before, rest) = operand.shape().split_at(term.before.len());
            let (ellipsis, after) = rest.split_at(count);
            for (letter, &dim) in term.letters().zip(before.iter().chain(after)) {
                let known = letters[usize::from(letter) % 128].get_or_insert(dim);
                if *known != dim {
                    let (letter, known) = (char::from(letter), *known);
                    return Err(Decline::invalid(format!(
                        "the subscript '{letter}' stands for axes of different sizes: {known} and {dim}"
                    )));
                }
            }
            if term.ellipsis {
                ellipses.push(ellipsis);
            }
        }
        if ellipses.windows(2).any(|pair| pair[0].len() != pair[1].len()) {
            return Err(Decline::invalid(
                "the ellipsis of the equation stands for different numbers of axes of the operands",
            ));
        }
        let ellipsis = broadcast_static(&ellipses);
        let ellipsis = ellipsis.ok_or_else(|| {
            Decline::invalid("the operands' axes under the ellipsis of the equation do not broadcast")
        })?;
        Ok(Sizes { letters, ellipsis })
    }

    fn get(&self, label: Label) -> usize {
        match label.checked_sub(FIRST_OF_ELLIPSIS) {
            Some(at) => self.ellipsis.get(at).copied().unwrap_or(1),
            None => self.letters.get(label).copied().flatten().unwrap_or(1),
        }
    }
}

/// Labelled axes over a slice of elements.
struct Axes {
    labels: SmallVec<[Label; 8]>,
    shape: Shape,
    strides: Strides,
}

impl Axes {
    /// Returns the axes of an operand: a repeated letter is a diagonal, and broadcast ellipsis axes are omitted.
    fn of(term: &Subscripts, shape: &[usize], count: usize) -> Axes {
        let mut axes = Axes { labels: SmallVec::new(), shape: Shape::new(), strides: Strides::new() };
        let strides = strides_of(shape).unwrap_or_default();
        for ((label, &dim), &stride) in term.labels(count).into_iter().zip(shape).zip(&strides) {
            match axes.labels.iter().position(|&other| other == label) {
                Some(at) => axes.strides[at] += stride,
                None if label >= FIRST_OF_ELLIPSIS && dim == 1 => {}
                None => {
                    axes.labels.push(label);
                    axes.shape.push(dim);
                    axes.strides.push(stride);
                }
            }
        }
        axes
    }

    /// Copies the elements of these axes into an array.
    fn dense<T: Ring>(self, cx: &EvalCx<'_>, dtype: DType, data: &[T]) -> Result<Labelled<T>, Decline> {
        cx.claim(dtype, &self.shape)?;
        let values = strided(data, &self.shape, &self.strides).into_owned();
        Ok(Labelled { labels: self.labels, shape: self.shape, values })
    }
}

/// An array whose axes are labelled, each once.
struct Labelled<T> {
    labels: SmallVec<[Label; 8]>,
    shape: Shape,
    values: Vec<T>,
}

impl<T: Ring> Labelled<T> {
    fn dim(&self, label: Label) -> Option<usize> {
        self.labels.iter().position(|&other| other == label).map(|at| self.shape[at])
    }

    /// Returns the elements with the axes in this order; a missing label has stride 0 and dim 1.
    fn ordered(&self, order: &[Label]) -> Cow<'_, [T]> {
        let own = strides_of(&self.shape).unwrap_or_default();
        let at = |label: &Label| self.labels.iter().position(|other| other == label);
        let shape: Shape = order.iter().map(|label| at(label).map_or(1, |at| self.shape[at])).collect();
        let strides: Strides = order.iter().map(|label| at(label).map_or(0, |at| own[at])).collect();
        strided(&self.values, &shape, &strides)
    }

    /// Sums over all axes that `keep` does not select.
    fn without(self, cx: &EvalCx<'_>, dtype: DType, keep: &dyn Fn(Label) -> bool) -> Result<Self, Decline> {
        if self.labels.iter().all(|&label| keep(label)) {
            return Ok(self);
        }
        let (kept, gone): (SmallVec<[Label; 8]>, SmallVec<[Label; 8]>) =
            self.labels.iter().copied().partition(|&label| keep(label));
        let dims = |labels: &[Label]| -> Shape { labels.iter().filter_map(|&label| self.dim(label)).collect() };
        let (shape, summed) = (dims(&kept), dims(&gone));
        cx.claim(dtype, &shape)?;
        cx.budget().take_work(self.values.len() as u64)?;
        let mut values = vec![T::default(); product(&shape).unwrap_or(0)];
        let order: SmallVec<[Label; 8]> = kept.iter().chain(&gone).copied().collect();
        let terms = product(&summed).unwrap_or(0).max(1);
        for (value, terms) in values.iter_mut().zip(self.ordered(&order).chunks_exact(terms)) {
            // Partial sums are more accurate than one long sum.
            let parts = terms.chunks(256).map(|part| part.iter().fold(T::default(), |sum, &term| sum.plus(term)));
            *value = parts.fold(T::default(), T::plus);
        }
        Ok(Labelled { labels: kept, shape, values })
    }

    /// Returns the elements in the order of the output, broadcast along missing axes.
    fn spread(self, cx: &EvalCx<'_>, dtype: DType, output: &[Label], shape: &[usize]) -> Result<Vec<T>, Decline> {
        if self.labels.as_slice() == output {
            return Ok(self.values);
        }
        cx.claim(dtype, shape)?;
        let own = strides_of(&self.shape).unwrap_or_default();
        let stride = |label: &Label| self.labels.iter().position(|other| other == label).map_or(0, |at| own[at]);
        let strides: Strides = output.iter().map(stride).collect();
        Ok(strided(&self.values, shape, &strides).into_owned())
    }
}

/// Multiplies two arrays and sums over labels that are no longer needed: one matrix product per index of the shared
/// labels.
fn contract<T: Ring>(
    cx: &EvalCx<'_>,
    dtype: DType,
    a: Labelled<T>,
    b: Labelled<T>,
    needed: &dyn Fn(Label) -> bool,
) -> Result<Labelled<T>, Decline> {
    let (in_a, in_b) = (a.labels.clone(), b.labels.clone());
    let a = a.without(cx, dtype, &|label| needed(label) || in_b.contains(&label))?;
    let b = b.without(cx, dtype, &|label| needed(label) || in_a.contains(&label))?;
    let shared = |needed_too: bool| {
        let shared = a.labels.iter().filter(|label| b.labels.contains(label) && needed(**label) == needed_too);
        shared.copied().collect::<SmallVec<[Label; 8]>>()
    };
    let (batch, summed) = (shared(true), shared(false));
    let rows: SmallVec<[Label; 8]> = a.labels.iter().filter(|label| !b.labels.contains(label)).copied().collect();
    let columns: SmallVec<[Label; 8]> = b.labels.iter().filter(|label| !a.labels.contains(label)).copied().collect();
    let dims = |labels: &[Label]| -> Shape {
        labels.iter().filter_map(|&label| a.dim(label).or_else(|| b.dim(label))).collect()
    };
    let labels: SmallVec<[Label; 8]> = batch.iter().chain(&rows).chain(&columns).copied().collect();
    let shape = dims(&labels);
    cx.claim(dtype, &shape)?;
    let count = |labels: &[Label]| product(&dims(labels)).unwrap_or(usize::MAX);
    let (m, k, n) = (count(&rows), count(&summed), count(&columns));
    let len = product(&shape).unwrap_or(0);
    cx.budget().take_work((len as u64).saturating_mul(k.max(1) as u64))?;
    let mut values = vec![T::default(); len];
    if len > 0 && k > 0 {
        let a_order: SmallVec<[Label; 8]> = batch.iter().chain(&rows).chain(&summed).copied().collect();
        let b_order: SmallVec<[Label; 8]> = batch.iter().chain(&summed).chain(&columns).copied().collect();
        let (a, b) = (a.ordered(&a_order), b.ordered(&b_order));
        for ((c, a), b) in values.chunks_exact_mut(m * n).zip(a.chunks_exact(m * k)).zip(b.chunks_exact(k * n)) {
            multiply_add(m, k, n, Matrix::dense(a, k), Matrix::dense(b, n), c);
        }
    }
    Ok(Labelled { labels, shape, values })
}

/// Returns the elements `Σ index·stride` of a slice for all indices of a shape, in row-major order. No stride is
/// negative.
fn strided<'a, T: Ring>(data: &'a [T], shape: &[usize], strides: &[isize]) -> Cow<'a, [T]> {
    let len = product(shape).unwrap_or(0);
    let dense = strides_of(shape).unwrap_or_default();
    let moves = |((&dim, &own), &stride): ((&usize, &isize), &isize)| dim == 1 || own == stride;
    if len == 0 || shape.iter().zip(&dense).zip(strides).all(moves) {
        return Cow::Borrowed(data.get(..len).unwrap_or_default());
    }
    let (outer, inner, step) = match (shape, strides) {
        ([outer @ .., inner], [.., step]) => (outer, *inner, step.unsigned_abs()),
        _ => (&[][..], 1, 0),
    };
    let mut values = Vec::with_capacity(len);
    let mut indices = crate::tensor::Indices::new(outer);
    while let Some(index) = indices.advance() {
        let start: usize = index.iter().zip(strides).map(|(&at, &stride)| at * stride.unsigned_abs()).sum();
        values.extend((0..inner).filter_map(|at| data.get(start + at * step)));
    }
    Cow::Owned(values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::single::Single;

    fn infer(equation: &'static str, shapes: &[&str]) -> String {
        let node = Single::new("Einsum", 12).with_str("equation", equation);
        shapes.iter().fold(node, |node, shape| node.input(DType::Float, shape)).infer().remove(0)
    }

    #[test]
    fn shapes() {
        assert_eq!(infer("bij, bjk -> bik", &["B M K", "B K N"]), "float[B, M, N]");
        assert_eq!(infer("bij,bjk", &["2 M 3", "2 3 N"]), "float[M, N]");
        assert_eq!(infer("...ij,...jk->...ik", &["1 H 2 3", "B 1 3 4"]), "float[B, H, 2, 4]");
        assert_eq!(infer("ii->i", &["N N"]), "float[N]");
        assert_eq!(infer("ba", &["2 3"]), "float[3, 2]");
        assert_eq!(infer("i->", &["N"]), "float[]");
        assert_eq!(infer("a,a->a", &["N", "4"]), "float[4]");
        assert!(infer("a,a->a", &["N", "M"]).contains("min(1"));
        assert_eq!(infer("a...,a->...", &["2 3 4", "2"]), "float[3, 4]");
        let unknown = Single::new("Einsum", 12).with_str("equation", "ab,bc->ac");
        assert_eq!(unknown.unranked(DType::Float).input(DType::Float, "B C").infer(), ["float[?, C]"]);
    }

    #[test]
    fn invalid_equations_are_refused() {
        for equation in ["....->", "a->b", "aa->aa", "a1", "->", "...a->a", "a.b", "a....", "...a...", "a->a->a", "é"]
        {
            assert!(infer(equation, &["2 2"]).starts_with("invalid"), "{equation}");
        }
        assert!(infer("a,b->ab", &["2"]).starts_with("invalid"));
        assert!(infer("ab->a", &["2"]).starts_with("invalid"));
        assert!(infer("a,a->a", &["2", "3"]).starts_with("invalid"));
        assert!(infer("...,...->...", &["2", "2 2"]).starts_with("invalid"));
    }

    #[test]
    fn values() {
        let eval = |equation: &'static str, operands: &[(&[usize], &[i32])]| {
            let node = Single::new("Einsum", 12).with_str("equation", equation);
            operands.iter().fold(node, |node, (shape, values)| node.values(shape, values)).integers()
        };
        let square: (&[usize], &[i32]) = (&[2, 2], &[1, 2, 3, 4]);
        assert_eq!(eval("ij,jk->ik", &[square, square]), [7, 10, 15, 22]);
        assert_eq!(eval("ij,jk->ki", &[square, square]), [7, 15, 10, 22]);
        assert_eq!(eval("ij->ji", &[square]), [1, 3, 2, 4]);
        assert_eq!(eval("ii", &[square]), [5]);
        assert_eq!(eval("ij->i", &[square]), [3, 7]);
        assert_eq!(eval("ii->i", &[square]), [1, 4]);
        assert_eq!(eval("ij,kl->", &[square, square]), [100]);
        assert_eq!(eval("ij,ij->ij", &[square, square]), [1, 4, 9, 16]);
        assert_eq!(eval("i,ij,j->", &[(&[2], &[1, 10]), square, (&[2], &[1, 1])]), [73]);
        assert_eq!(eval("...,...->...", &[(&[2, 1], &[1, 10]), (&[1, 3], &[1, 2, 3])]), [1, 2, 3, 10, 20, 30]);
        assert_eq!(eval("...j,j", &[square, (&[2], &[1, 1])]), [3, 7]);
        assert_eq!(eval("ij,j->i", &[(&[2, 0], &[]), (&[0], &[])]), [0, 0]);
    }

    #[test]
    fn the_least_number_times_1_is_no_overflow() {
        let by_ones = |equation: &'static str, columns: usize| {
            let node = Single::new("Einsum", 12).with_str("equation", equation);
            node.values(&[1, columns], &vec![f32::MIN; columns]).values(&[1, columns], &vec![1.0f32; columns]).eval()
        };
        assert!(by_ones("xd,yd->xy", 1).is_ok());
        assert!(matches!(by_ones("xd,yd->xy", 2), Err(Decline::Unsupported(_))));
    }
}
