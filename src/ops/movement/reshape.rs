//! Reshape: the same elements under another shape.
//!
//! | version | what changes |
//! | --- | --- |
//! | 1 | the target is attribute `shape` |
//! | 5 | the target is an operand |
//! | 14 | attribute `allowzero` |
//! | 13, 19, 21, 23, 24, 25 | types |
//!
//! An entry of the target is a size, `-1` (once: whatever is left over) or, unless `allowzero`, `0` (the operand's dim there).
//!
//! Refused: a second `-1`, other negative entries, `0` behind the operand's last axis, another number of elements than the
//! operand has, and `-1` beside a size of 0, which leaves it open.
//!
//! # Symbolic targets
//! Let `d` be the dim that entry `t` gives, `x` the operand's dim there and `n` its number of elements. Then `d = t` where `t ≥ 1`, and
//! `d = x` where `t = 0` and zeros copy. So `d = t` follows in each of these cases:
//! - `t ≥ 1` is proved, zeros do not copy, or there is no `x` (a 0 would be an error);
//! - `t = x` is proved, or `x` is 0 wherever `t` is;
//! - `n` is 0 wherever `t` is, or `t` is what the other dims leave over of `n`, no entry may be −1, and no other entry gives a dim of 0
//!   because `t` is 0. Where `t = 0` the operand is then empty and the result is not, so that such a run fails (`x[S, 4]` to
//!   `[4, S]` copies the 4 at `S = 0` and finds 16 elements missing), unless a second, independent size is 0; and then only which
//!   dim of an empty tensor is the 0 may differ from what is stated. This is the price of naming the dims of batched models. It is
//!   not taken of a size that makes two entries 0: `x[N, M, 2, N]` to `[N, 2·M, N]` copies `N` and 2 at `N = 0`, and runs.
//!
//! Otherwise `d` is what the other dims leave over, where those are known and at least 1 each. Else
//! `d = t + x·max(0, 1 − t)` holds for every `t ≥ 0`; and an entry of −1 beside it, which would be `r` for `t ≥ 1`, is
//! `r − r·max(0, 1 − t)` where `n` is 0 wherever `t` is. Where `t` may be −1, or is not known at all, the number of elements
//! decides `d` if the product of the other dims is known and at least 1; and so it does for an entry of −1, where a product of
//! 0 would be an error.
//!
//! With `allowzero` a −1 beside a 0 is no error in ONNX Runtime, which leaves zeros out of both products: `x[n, m]` to `[n, -1]` is `[0, m]`
//! at `n = 0`. So the −1 is stated where the sizes that may be 0 are dims of the operand, and the others are at least 1, or independent of
//! these: where `n` and `m` are both 0 it is `[0, 1]`, which is the same price.

use super::List;
use super::cells::elements_of;
use super::maps;
use super::moves;
use super::{count, of_rank};
use crate::dim::{Dim, Scope, Symbol};
use crate::ir::{Data, Fact, Scalar};
use crate::ops::traits::{Movement, NodeFacts, Traits, moved};
use crate::ops::{Decline, EvalCx, EvalResult, InferCx, InferResult, Operator, Refusal, Site};

pub(in crate::ops) const OPERATORS: &[Operator] =
    &[Operator::new("Reshape", &[1, 5, 13, 14, 19, 21, 23, 24, 25], infer, eval).with(
        Traits::movement(Movement::Layout)
            .index_map(maps::layout)
            .counts(moved)
            .repeats(moves::layout)
            .needs(needs)
            .inferred_by_contents(1)
            .carrying_quantization(),
    )];

/// A Reshape cannot tell what −1 stands for when its other sizes multiply to 0, be the −1 a computed one.
fn needs(view: &NodeFacts<'_>) -> Vec<(Dim, i64)> {
    stated_needs(view).unwrap_or_default()
}

fn stated_needs(view: &NodeFacts<'_>) -> Option<Vec<(Dim, i64)>> {
    // With `allowzero` ONNX Runtime leaves the zeros out of the product, and succeeds.
    if view.int("allowzero", 0) != Some(0) {
        return None;
    }
    let target = view.fact(1)?.ints()?;
    let Some(open) = target.iter().position(|size| size.is_const(-1)) else {
        return Some(never_open(view.scope(), &target, view.shape(0)?));
    };
    let output = view.result_shape()?;
    (output.len() == target.len()).then(|| {
        let others = output.iter().enumerate().filter(|(axis, _)| *axis != open);
        others.map(|(_, dim)| (dim.clone(), 1)).collect()
    })
}

/// The symbols that are not 0 because an entry of the target would be −1 then, beside another one that gives 0: so
/// `[S, 2·S − 1]` needs an `S` of 1.
fn never_open(scope: &Scope, target: &[Dim], operand: &[Dim]) -> Vec<(Dim, i64)> {
    const LONGEST: usize = 64;
    if target.len() > LONGEST {
        return Vec::new();
    }
    let mut symbols: Vec<Symbol> = target.iter().flat_map(Dim::symbols).collect();
    symbols.sort_unstable();
    symbols.dedup();
    symbols.retain(|&symbol| {
        let at_zero = |dim: &Dim| scope.substitute(dim, &|other| (other == symbol).then(|| Dim::constant(0)));
        let mut sizes = target.iter().map(at_zero).enumerate();
        // An entry of 0 copies the operand's dim.
        let empty = |(axis, size): (usize, Dim)| {
            size.is_const(0) && operand.get(axis).is_some_and(|copied| at_zero(copied).is_const(0))
        };
        sizes.clone().any(|(_, size)| size.is_const(-1)) && sizes.any(empty)
    });
    symbols.into_iter().map(|symbol| (Dim::symbol(symbol), 1)).collect()
}

/// Whether an entry of 0 copies the operand's dim.
fn zero_copies(site: &Site<'_>) -> Result<bool, Refusal> {
    Ok(site.version < 14 || !site.attr_flag("allowzero", false)?)
}

/// What an entry of the target says of its dim.
#[derive(Clone, Debug, PartialEq)]
enum TargetDim {
    Size(Dim),
    /// A size, or where that is 0 the operand's dim.
    Doubtful {
        size: Dim,
        copied: Dim,
        /// Where the size is 0, the operand has no elements.
        empties: bool,
        /// No other entry gives a dim of 0 for the same reason.
        alone: bool,
    },
    /// Whatever is left over.
    Rest,
    /// A size, a 0 or a −1.
    Open,
}

/// The operand as far as it is known: its dims, and their product.
struct Operand<'d> {
    dims: &'d [Dim],
    total: Dim,
}

/// What is needed to read a target; see the head of this file.
struct Reader<'r> {
    scope: &'r Scope,
    operand: Option<Operand<'r>>,
    zero_copies: bool,
    /// One entry is −1, so no other is.
    has_rest: bool,
    target: &'r [Scalar],
}

impl Reader<'_> {
    /// Reads entry `at`.
    fn entry(&self, at: usize, element: &Scalar) -> Result<TargetDim, Refusal> {
        let Scalar::Int(size) = element else { return Ok(TargetDim::Open) };
        // Of an operand of known rank, the dim there, if there is one.
        let copied = self.operand.as_ref().map(|operand| operand.dims.get(at));
        match (size.as_const(), copied) {
            (None, _) => self.symbolic_entry(at, size, copied),
            (Some(0), Some(None)) if self.zero_copies => Err(Refusal::invalid(format!(
                "element {at} of 'shape' is 0, which copies a dim that 'data' does not have"
            ))),
            (Some(0), Some(Some(copied))) if self.zero_copies => Ok(TargetDim::Size(copied.clone())),
            (Some(0), None) if self.zero_copies => Ok(TargetDim::Open),
            (Some(-1), _) => Ok(TargetDim::Rest),
            (Some(size), _) if size < 0 => Err(Refusal::invalid(format!("'shape' contains {size}"))),
            (Some(_), _) => Ok(TargetDim::Size(size.clone())),
        }
    }

    fn symbolic_entry(&self, at: usize, size: &Dim, copied: Option<Option<&Dim>>) -> Result<TargetDim, Refusal> {
        let scope = self.scope;
        let (zero, one) = (Dim::constant(0), Dim::constant(1));
        let is_size = self.has_rest || scope.ge(size, &zero).is_yes();
        if scope.ge(size, &one).is_yes() || is_size && (!self.zero_copies || copied == Some(None)) {
            return Ok(TargetDim::Size(size.clone()));
        }
        let Some((operand, copied)) = self.operand.as_ref().zip(copied.flatten()) else { return Ok(TargetDim::Open) };
        if scope.eq(size, copied).is_yes() {
            return Ok(TargetDim::Size(size.clone()));
        }
        let factors = if is_size { factors_of(scope, size) } else { None };
        let forced = |whole: &Dim| {
            // A symbol at 0 is enough for the size, so each of them must be enough for the whole.
            let vanishes = |factor: &Symbol| at_zero(scope, whole, *factor).is_const(0);
            factors.as_ref().is_some_and(|factors| factors.iter().all(vanishes))
                || scope.quotient(whole, size).is_some_and(|others| is_size || scope.ge(&others, &one).is_yes())
        };
        let empties = forced(&operand.total);
        let alone = match &factors {
            Some(factors) => factors.iter().all(|&factor| !self.other_vanishes(at, operand, factor)),
            None => !self.other_depends(at, operand, size),
        };
        // Beside −1 a copied dim leaves 0 over, and the run goes on; what only a run decides may be −1.
        let is_no_rest = |element: &Scalar| element.as_int().is_some_and(|size| scope.ge(size, &zero).is_yes());
        let others = || self.target.iter().enumerate().filter(|&(other, _)| other != at).map(|(_, element)| element);
        Ok(if forced(copied) || empties && alone && others().all(is_no_rest) {
            TargetDim::Size(size.clone())
        } else if is_size {
            TargetDim::Doubtful { size: size.clone(), copied: copied.clone(), empties, alone }
        } else {
            TargetDim::Open
        })
    }
}

impl Reader<'_> {
    /// The entries but `skipped`, each with the operand's dim there.
    fn others<'s>(
        &'s self,
        skipped: usize,
        operand: &'s Operand<'_>,
    ) -> impl Iterator<Item = (&'s Dim, Option<&'s Dim>)> {
        let sizes = self.target.iter().enumerate().filter(move |&(at, _)| at != skipped);
        sizes.filter_map(|(at, element)| Some((element.as_int()?, operand.dims.get(at))))
    }

    /// Whether another entry gives a dim of 0 where a symbol is 0.
    fn other_vanishes(&self, skipped: usize, operand: &Operand<'_>, symbol: Symbol) -> bool {
        let is_zero = |dim: &Dim| at_zero(self.scope, dim, symbol).is_const(0);
        self.others(skipped, operand).any(|(size, copied)| is_zero(size) && copied.is_some_and(is_zero))
    }

    /// Whether another entry may give a dim of 0 for the same reason as a size does: it has a symbol of it, and is not proved to be at
    /// least 1.
    fn other_depends(&self, skipped: usize, operand: &Operand<'_>, size: &Dim) -> bool {
        let symbols = size.symbols();
        let one = Dim::constant(1);
        let depends = |dim: &Dim| !dim.symbols().is_disjoint(&symbols) && !self.scope.ge(dim, &one).is_yes();
        self.others(skipped, operand).any(|(size, copied)| match size.as_const() {
            Some(0) => copied.is_some_and(depends),
            _ => depends(size),
        })
    }
}

impl Reader<'_> {
    /// What −1 stands for where zeros do not copy: what the other sizes leave over of the dims, without those of either that may be 0, if
    /// these are the same. `None` where that is not known.
    fn rest_beside_zeros(&self, entries: &[TargetDim]) -> Result<Option<Dim>, Refusal> {
        let one = Dim::constant(1);
        let may_be_zero = |dim: &Dim| !self.scope.ge(dim, &one).is_yes();
        let sizes = sizes_of(entries);
        let Some(operand) = self.operand.as_ref().filter(|_| entries.len() == sizes.len() + 1) else { return Ok(None) };
        let (doubtful, sizes): (Vec<Dim>, Vec<Dim>) = sizes.into_iter().partition(may_be_zero);
        if doubtful.is_empty() {
            return rest(self.scope, &operand.total, &sizes);
        }
        let mut dims: Vec<&Dim> = operand.dims.iter().collect();
        for size in &doubtful {
            let Some(at) = dims.iter().position(|dim| self.scope.eq(dim, size).is_yes()) else { return Ok(None) };
            dims.remove(at);
        }
        let is_independent = |dim: &Dim| {
            let symbols = dim.symbols();
            !symbols.is_empty() && doubtful.iter().all(|size| size.symbols().is_disjoint(&symbols))
        };
        if dims.iter().any(|dim| may_be_zero(dim) && !is_independent(dim)) {
            return Ok(None);
        }
        rest(self.scope, &self.scope.product(dims), &sizes)
    }
}

/// The symbols that a size is the product of, but for a constant other than 0; `None` if it is no such product. It is 0 where one
/// of them is, and nowhere else.
fn factors_of(scope: &Scope, size: &Dim) -> Option<Vec<Symbol>> {
    let mut rest = size.clone();
    let mut factors = Vec::new();
    for symbol in size.symbols() {
        while at_zero(scope, &rest, symbol).is_const(0) {
            rest = scope.quotient(&rest, &symbol.into()).filter(|_| factors.len() < 16)?;
            factors.push(symbol);
        }
    }
    rest.as_const().filter(|&rest| rest != 0).map(|_| factors)
}

/// What is left of an expression where a symbol is 0.
fn at_zero(scope: &Scope, whole: &Dim, symbol: Symbol) -> Dim {
    scope.substitute(whole, &|other| (other == symbol).then(|| Dim::constant(0)))
}

/// The dims that a target gives.
fn target_dims(cx: &InferCx<'_>, operand: Option<Operand<'_>>, target: &[Scalar]) -> Result<Vec<Dim>, Refusal> {
    let scope = cx.scope();
    let rests = target.iter().filter(|element| element.as_const_int() == Some(-1)).count();
    if rests > 1 {
        return Err(Refusal::invalid("'shape' contains -1 more than once"));
    }
    let reader = Reader { scope, operand, zero_copies: zero_copies(cx)?, has_rest: rests > 0, target };
    let entries = target.iter().enumerate().map(|(at, element)| reader.entry(at, element));
    let mut entries = entries.collect::<Result<Vec<_>, _>>()?;
    let total = reader.operand.as_ref().map(|operand| &operand.total);
    // What the others leave over, when one entry is not settled.
    let left_over = |entries: &[TargetDim]| {
        let sizes = sizes_of(entries);
        let single = entries.len() == sizes.len() + 1;
        total.filter(|_| single).map_or(Ok(None), |total| rest(scope, total, &sizes))
    };
    // Where a doubtful size is 0 the operand is empty, and nothing is left over beside what it copies.
    let mut emptied = None;
    let doubtful = |entry: &TargetDim| matches!(entry, TargetDim::Doubtful { .. });
    if reader.has_rest
        && entries.iter().any(doubtful)
        && entries.iter().all(|entry| !doubtful(entry) || matches!(entry, TargetDim::Doubtful { empties: true, .. }))
        && let Some(total) = total
    {
        let sizes: Vec<Dim> = entries.iter().filter_map(TargetDim::plain_size).collect();
        let zeros = entries.iter().filter_map(|entry| match entry {
            TargetDim::Doubtful { size, .. } => Some(is_zero(scope, size)),
            _ => None,
        });
        let left = if entries.len() == sizes.len() + 1 { rest(scope, total, &sizes)? } else { None };
        emptied = left.map(|left| zeros.fold(left, |left, zero| scope.sub(&left, &scope.mul(&left, &zero))));
    }
    if entries.iter().any(doubtful) {
        // Where nothing fits, the target may be impossible or one of its zeros copies.
        let rest = left_over(&entries).ok().flatten();
        // Beside sizes that are not 0 a single doubtful one is what they leave over, copied or not.
        let others = scope.product(&sizes_of(&entries));
        let counted = rest.as_ref().filter(|_| scope.ge(&others, &Dim::constant(1)).is_yes());
        let counted =
            counted.filter(|rest| total.is_some_and(|total| scope.eq(&scope.mul(rest, &others), total).is_yes()));
        for entry in &mut entries {
            let TargetDim::Doubtful { size, copied, alone, .. } = entry else { continue };
            let fits = *alone && rest.as_ref().is_some_and(|rest| scope.eq(rest, size).is_yes());
            let copies = scope.mul(copied, &is_zero(scope, size));
            *entry = TargetDim::Size(match counted {
                _ if fits => size.clone(),
                Some(counted) => counted.clone(),
                None => scope.add(size, &copies),
            });
        }
    }
    let product = scope.product(&sizes_of(&entries));
    let is_settled = |entry: &TargetDim| matches!(entry, TargetDim::Size(_));
    if let Some(total) = total
        && entries.iter().all(is_settled)
        && scope.eq(total, &product).is_no()
    {
        let (from, to) = (scope.format(total), scope.format(&product));
        return Err(Refusal::invalid(format!("'data' has {from} elements, but 'shape' requires {to}")));
    }
    let filled = scope.ge(&product, &Dim::constant(1)).is_yes();
    let hole = match entries.iter().find(|entry| !is_settled(entry)) {
        Some(TargetDim::Rest) if emptied.is_some() => emptied,
        Some(TargetDim::Rest) if !reader.zero_copies => reader.rest_beside_zeros(&entries)?,
        Some(TargetDim::Rest) => left_over(&entries)?,
        Some(_) if filled => left_over(&entries)?,
        _ => None,
    };
    Ok(entries
        .into_iter()
        .map(|entry| match (entry, &hole) {
            (TargetDim::Size(size), _) => size,
            (_, Some(hole)) => hole.clone(),
            _ => cx.fresh_dim(),
        })
        .collect())
}

impl TargetDim {
    /// The size it names, copied or not.
    fn plain_size(&self) -> Option<Dim> {
        match self {
            TargetDim::Size(size) | TargetDim::Doubtful { size, .. } => Some(size.clone()),
            TargetDim::Rest | TargetDim::Open => None,
        }
    }
}

/// 1 where a size is 0, else 0.
fn is_zero(scope: &Scope, size: &Dim) -> Dim {
    scope.max(&Dim::constant(0), &scope.sub(&Dim::constant(1), size))
}

/// The dims of the entries that are settled.
fn sizes_of(entries: &[TargetDim]) -> Vec<Dim> {
    let sizes = entries.iter().filter_map(|entry| match entry {
        TargetDim::Size(size) => Some(size.clone()),
        _ => None,
    });
    sizes.collect()
}

/// What is left over of `total` elements for one dim beside these others, whose product is at least 1 in every run that succeeds.
/// `None` when that has no expression.
fn rest(scope: &Scope, total: &Dim, others: &[Dim]) -> Result<Option<Dim>, Refusal> {
    // Common factors go, whether or not they may be 0: a run that succeeds is one in which they are not.
    let (mut total, mut left) = (total.clone(), Vec::new());
    for other in others {
        match scope.quotient(&total, other) {
            Some(quotient) => total = quotient,
            None => left.push(other),
        }
    }
    let product = scope.product(left);
    if let Some(rest) = scope.quotient(&total, &product) {
        return Ok(Some(rest));
    }
    match (total.as_const(), product.as_const()) {
        (_, Some(0)) => Err(Refusal::invalid("'shape' contains both -1 and a size of 0")),
        (Some(total), Some(product)) => Err(Refusal::invalid(format!(
            "the number of elements of 'data' ({total}) is not a multiple of {product}, the product of the sizes in 'shape'"
        ))),
        // The run could not succeed if the division left a remainder, or nothing to divide by.
        _ => Ok(Some(scope.floor_div(&total, &scope.max(&product, &Dim::constant(1))))),
    }
}

fn infer(cx: &mut InferCx<'_>) -> InferResult {
    let data = cx.required(0)?;
    let dtype = data.dtype();
    let target = if cx.version < 5 {
        match List::attribute(cx, "shape")? {
            List::Known(target) => target.into_iter().map(|size| Scalar::Int(Dim::constant(size))).collect(),
            _ => return Err(Refusal::invalid("attribute 'shape' is missing")),
        }
    } else {
        let target = cx.required(1)?;
        let rank = match target.shape() {
            None => None,
            Some([length]) => length.as_const().and_then(|length| usize::try_from(length).ok()),
            Some(dims) => {
                return Err(Refusal::invalid(format!("the operand 'shape' has rank {} instead of 1", dims.len())));
            }
        };
        match elements_of(target) {
            Some(elements) => elements,
            None => return Ok(vec![of_rank(cx, dtype, rank)]),
        }
    };
    let operand = data.shape().map(|dims| Operand { dims, total: cx.scope().product(dims) });
    let dims = target_dims(cx, operand, &target)?;
    Ok(vec![Fact::tensor(dtype, Some(dims))])
}

fn eval(cx: &mut EvalCx<'_>) -> EvalResult {
    let data = cx.tensor(0)?;
    let target = if cx.version < 5 {
        cx.attr_ints("shape")?.ok_or_else(|| Decline::invalid("attribute 'shape' is missing"))?.to_vec()
    } else {
        cx.ints(1)?
    };
    let shape = resolve(data.shape(), &target, zero_copies(cx)?)?;
    Ok(vec![Data::Tensor(data.reshape(&shape)?)])
}

/// The shape that a target gives.
fn resolve(from: &[usize], target: &[i64], zero_copies: bool) -> Result<Vec<usize>, Decline> {
    let mut shape = Vec::with_capacity(target.len());
    let mut rest = None;
    for (at, &size) in target.iter().enumerate() {
        shape.push(match size {
            0 if zero_copies => *from.get(at).ok_or_else(|| {
                Decline::invalid(format!("element {at} of 'shape' is 0, which copies a dim that 'data' does not have"))
            })?,
            -1 if rest.replace(at).is_some() => return Err(Decline::invalid("'shape' contains -1 more than once")),
            // Neutral in the product of the others.
            -1 => 1,
            size => usize::try_from(size).map_err(|_| Decline::invalid(format!("'shape' contains {size}")))?,
        });
    }
    if let Some(at) = rest {
        let (total, others) = (count(from)?, count(&shape)?);
        let rest = total.checked_div(others).filter(|rest| rest.checked_mul(others) == Some(total));
        let fails = || {
            Decline::invalid(format!(
                "the number of elements of 'data' ({total}) is not a multiple of {others}, the product of the sizes in 'shape'"
            ))
        };
        *shape.get_mut(at).ok_or_else(fails)? = rest.ok_or_else(fails)?;
    }
    Ok(shape)
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::super::testing::*;
    use super::*;
    use crate::tensor::DType;

    #[test]
    fn targets_are_resolved() {
        let reshape = |from: &[usize], target: &[i64]| resolve(from, target, true).ok();
        assert_eq!(reshape(&[2, 3, 4], &[4, 6]), Some(vec![4, 6]));
        assert_eq!(reshape(&[2, 3, 4], &[0, -1]), Some(vec![2, 12]));
        assert_eq!(reshape(&[2, 3, 4], &[-1, 0]), Some(vec![8, 3]));
        assert_eq!(reshape(&[1], &[]), Some(vec![]));
        assert_eq!(reshape(&[0, 3], &[-1, 3]), Some(vec![0, 3]));
        assert_eq!(reshape(&[0, 3], &[0, -1]), None);
        assert_eq!(reshape(&[6], &[-1, 4]), None);
        assert_eq!(reshape(&[6], &[-1, -1]), None);
        assert_eq!(reshape(&[6], &[6, 0]), None);
        assert_eq!(reshape(&[6], &[-2, 3]), None);
        assert_eq!(resolve(&[0, 3], &[3, 0], false).ok(), Some(vec![3, 0]));
        assert_eq!(resolve(&[0, 3], &[-1, 0], false).ok(), None);
        assert_eq!(resolve(&[2], &[i64::MAX, i64::MAX, -1], false).ok(), None);
    }

    #[test]
    fn values_stay_in_place() {
        let data = iota(&[2, 3]);
        assert!(Case::new("Reshape", 5).eval([data.clone(), ints(&[3, 2])]).same(&iota(&[3, 2])));
        assert!(Case::new("Reshape", 1).with("shape", vec![0, -1, 1]).eval([data.clone()]).same(&iota(&[2, 3, 1])));
        let zero = Case::new("Reshape", 14).with("allowzero", 1);
        assert_eq!(zero.eval([iota(&[0, 3]), ints(&[3, 0])]).shape(), [3, 0]);
        assert!(matches!(Case::new("Reshape", 5).fails([data, ints(&[4])]), Decline::Invalid(_)));
    }

    fn reshaped(dims_of: &[&str], target: &[&str]) -> Vec<String> {
        let scope = Rc::new(Scope::new());
        let facts = vec![Some(shaped(&scope, dims_of)), Some(vector(&scope, target))];
        let (facts, events) = Case::new("Reshape", 14).infer_events(&scope, facts);
        assert!(events.is_empty(), "{events:?}");
        dims(&scope, &facts[0])
    }

    #[test]
    fn symbolic_targets() {
        assert_eq!(reshaped(&["B", "S", "64"], &["B", "S", "4", "16"]), ["B", "S", "4", "16"]);
        assert_eq!(reshaped(&["B", "S", "64"], &["0", "0", "4", "-1"]), ["B", "S", "4", "16"]);
        assert_eq!(reshaped(&["B", "S", "64"], &["B*S", "64"]), ["B*S", "64"]);
        assert_eq!(reshaped(&["B", "S", "64"], &["-1", "64"]), ["B*S", "64"]);
        assert_eq!(reshaped(&["B", "S", "64"], &["B", "-1"]), ["B", "64*S"]);
        assert_eq!(reshaped(&["B*S", "64"], &["B", "S", "64"]), ["B", "S", "64"]);
        // At S = 0 the 4 is copied, and nothing is left over.
        assert_eq!(reshaped(&["B", "4", "S", "16"], &["B", "S", "-1"]), ["B", "4*max(1, S) - 3*S", "64*min(1, S)"]);
        assert_eq!(reshaped(&["N", "S", "3", "2"], &["S", "3", "-1"])[1..], ["3", "2*N*min(1, S)"]);
        assert_eq!(reshaped(&["B", "S"], &["-1"]), ["B*S"]);
        assert_eq!(reshaped(&["S", "8"], &["-1", "S"]), ["8*min(1, S)", "8*max(1, S) - 7*S"]);
        assert_eq!(reshaped(&["N", "C", "H", "H"], &["N", "2", "floor(C/2)", "H", "H"])[2], "floor(C/2)");
        // At S = 0 the 1 is copied, and the other entry may be −1: then the run goes on.
        assert_eq!(reshaped(&["S", "1", "S"], &["?", "S"])[1], "max(1, S)");
        // Nobody knows the last entry, but the others leave one answer.
        assert_eq!(reshaped(&["B", "64"], &["2", "?"]), ["2", "32*B"]);
    }

    #[test]
    fn a_rest_beside_zeros_that_do_not_copy() {
        let reshaped = |dims_of: &[&str], target: &[&str], known: &[i64]| {
            let scope = Rc::new(Scope::new());
            let facts = vec![Some(shaped(&scope, dims_of)), Some(vector(&scope, target))];
            let fact = Case::new("Reshape", 14).with("allowzero", 1).infer(&scope, facts).remove(0);
            let sizes = [("n", known[0]), ("m", known[1])].map(|(name, size)| (scope.lookup(name), size));
            let of = |symbol| sizes.iter().find(|(own, _)| *own == Some(symbol)).map(|&(_, size)| size);
            fact.shape().unwrap().iter().map(|dim| dim.evaluate(&of)).collect::<Vec<_>>()
        };
        // What ONNX Runtime gives is stated, or nothing, but where independent sizes are 0.
        assert_eq!(reshaped(&["n", "3"], &["n", "-1"], &[0, 0]), [Some(0), Some(3)]);
        assert_eq!(reshaped(&["n", "m", "4", "2"], &["n", "m", "-1"], &[0, 0]), [Some(0), Some(0), Some(8)]);
        assert_eq!(reshaped(&["n", "m"], &["n", "-1"], &[0, 4]), [Some(0), Some(4)]);
        assert_eq!(reshaped(&["n", "n"], &["n", "-1"], &[0, 0]), [Some(0), None]);
        assert_eq!(reshaped(&["n", "0"], &["n", "-1"], &[0, 0]), [Some(0), None]);
        assert_eq!(reshaped(&["n", "2"], &["-1", "m"], &[0, 0]), [None, Some(0)]);
        assert_eq!(reshaped(&["0", "3"], &["-1", "0"], &[0, 0]), [Some(3), Some(0)]);
        assert_eq!(reshaped(&["n", "m"], &["2", "-1"], &[4, 3]), [Some(2), Some(6)]);
    }

    #[test]
    fn unrelated_sizes_may_copy() {
        let scope = Rc::new(Scope::new());
        let facts = vec![Some(shaped(&scope, &["A", "6"])), Some(vector(&scope, &["T", "-1"]))];
        let fact = Case::new("Reshape", 14).infer(&scope, facts).remove(0);
        let [a, t] = ["A", "T"].map(|name| scope.lookup(name).unwrap());
        let first = &fact.shape().unwrap()[0];
        let at = |a_is: i64, t_is: i64| {
            first.evaluate(&|symbol| if symbol == a { Some(a_is) } else { (symbol == t).then_some(t_is) })
        };
        assert_eq!(at(4, 3), Some(3));
        assert_eq!(at(4, 0), Some(4));
    }

    #[test]
    fn impossible_targets_are_told() {
        for (from, target) in [(["2", "S"], ["-1", "-1"]), (["2", "3"], ["4", "-1"]), (["2", "3"], ["2", "4"])] {
            let scope = Rc::new(Scope::new());
            let facts = vec![Some(shaped(&scope, &from)), Some(vector(&scope, &target))];
            let (facts, events) = Case::new("Reshape", 14).infer_events(&scope, facts);
            assert_eq!(events.len(), 1);
            assert!(facts[0].ty.is_none());
        }
    }

    #[test]
    fn contents_flow() {
        let scope = Rc::new(Scope::new());
        let facts = vec![Some(vector(&scope, &["B", "?", "7"])), Some(Fact::constant(ints(&[1, -1])))];
        let fact = Case::new("Reshape", 14).infer(&scope, facts).remove(0);
        assert_eq!(fact.dtype(), Some(DType::Int64));
        assert_eq!(dims(&scope, &fact), ["1", "3"]);
        assert_eq!(elements(&scope, &fact), ["B", "?", "7"]);
    }
}
