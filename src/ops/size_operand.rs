//! The conventions for sizes in operands, each defined once.
//!
//! Let `d` be the dims of the operand and `t` those of the result, aligned at the end for operators that broadcast.
//!
//! | operator | entry | represents | sound if |
//! | --- | --- | --- | --- |
//! | Reshape | `n > 0` | `n` | `tᵢ = n` |
//! | Reshape without `allowzero` | `0` | `dᵢ` | `tᵢ = dᵢ` |
//! | Reshape | `−1`, once | `Π d / Π tⱼ` over the `j ≠ i` | every `tⱼ ≥ 1`: a product of 0 does not determine the quotient |
//! | Expand | `1` | `dᵢ`, or 1 on a new axis | `tᵢ = dᵢ` |
//! | Expand | `n` | `n` | `tᵢ = n` |
//! | Tile | `r` | `r · dᵢ` | `tᵢ = r · dᵢ`; `r = 1` if `tᵢ = dᵢ` |
//! | Slice, step > 0 | the largest integer | `dᵢ` | the bound is at least `dᵢ` |
//! | Slice | `−k`, `k > 0` | `dᵢ − k` | the bound is `dᵢ − k`, and `dᵢ ≥ k`: below the first element it is clamped |
//!
//! A rule that writes an operand by these conventions may assume the result's dims as proved: failing runs have no result.

use crate::dim::{Dim, Scope};
use crate::ops::Refusal;
use crate::slicing;

/// Checks that no size of an operand or attribute is proved to be below `least`.
///
/// # Errors
/// A size is below `least`: no run can succeed.
pub fn at_least(scope: &Scope, sizes: &[Dim], least: i64) -> Result<(), Refusal> {
    let is_below = |size: &&Dim| scope.lt(size, &Dim::constant(least)).is_yes();
    match sizes.iter().find(is_below) {
        Some(size) => Err(Refusal::invalid(format!("a size is {}, which is less than {least}", scope.format(size)))),
        None => Ok(()),
    }
}

/// Returns `true` if 0 represents dim `axis` of a Reshape's result: the operand has the same dim.
pub fn reshape_copies(scope: &Scope, from: &[Dim], axis: usize, dim: &Dim) -> bool {
    from.get(axis).is_some_and(|from| scope.eq(from, dim).is_yes())
}

/// Returns `true` if −1 represents the one dim that is not among these.
pub fn reshape_leaves_rest<'d>(scope: &Scope, mut others: impl Iterator<Item = &'d Dim>) -> bool {
    others.all(|dim| scope.ge(dim, &Dim::constant(1)).is_yes())
}

/// Returns the sizes of a Reshape without `allowzero` from a tensor with the dims `from` to one with the dims `to`.
pub fn reshape_codes(scope: &Scope, from: &[Dim], to: &[Dim]) -> Option<Vec<i64>> {
    let mut rest = None;
    let mut codes = Vec::with_capacity(to.len());
    for (axis, dim) in to.iter().enumerate() {
        match dim.as_const() {
            Some(size) if size != 0 => codes.push(size),
            _ if reshape_copies(scope, from, axis, dim) => codes.push(0),
            _ if rest.is_none() => {
                rest = Some(axis);
                codes.push(-1);
            }
            _ => return None,
        }
    }
    let Some(rest) = rest else { return Some(codes) };
    let others = to.iter().enumerate().filter(|(axis, _)| *axis != rest).map(|(_, dim)| dim);
    reshape_leaves_rest(scope, others).then_some(codes)
}

/// Returns the axes of dim 1 in `long` that `short` lacks, if the other dims are equal.
pub fn inserted_ones(scope: &Scope, short: &[Dim], long: &[Dim]) -> Option<Vec<i64>> {
    let mut axes = Vec::new();
    let mut matched = 0;
    for (axis, dim) in long.iter().enumerate() {
        if short.get(matched).is_some_and(|next| scope.eq(next, dim).is_yes()) {
            matched += 1;
        } else if dim.is_const(1) {
            axes.push(i64::try_from(axis).ok()?);
        } else {
            return None;
        }
    }
    (matched == short.len()).then_some(axes)
}

/// Returns `true` if 1 represents dim `axis` of an Expand's result: the operand has the same dim.
pub fn expand_keeps(scope: &Scope, from: &[Dim], to: &[Dim], axis: usize) -> bool {
    let own = to.len().checked_sub(from.len()).and_then(|added| from.get(axis.checked_sub(added)?));
    own.zip(to.get(axis)).is_some_and(|(own, dim)| scope.eq(own, dim).is_yes())
}

/// Returns `true` if ONNX Runtime may remove an Expand with a constant 0 among these dims. The runtime removes an Expand if each
/// size above 1 is known to equal the operand's dim.
pub fn expand_is_left_out(to: &[Dim]) -> bool {
    to.iter().any(|dim| dim.is_const(0))
}

/// Returns `true` if the computed bound of a Slice is at or beyond the end of an axis.
pub fn slice_reaches_end(scope: &Scope, dim: &Dim, bound: &Dim) -> bool {
    scope.ge(&scope.unwrapped(bound), dim).is_yes()
}

/// Returns the number that represents a bound of a Slice with a positive step.
pub fn slice_bound(scope: &Scope, dim: &Dim, bound: &Dim) -> Option<i64> {
    match bound.as_const() {
        Some(number) => Some(number),
        None if slice_reaches_end(scope, dim, bound) => Some(i64::MAX),
        None => slicing::from_end(scope, dim, bound),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `S`, `2·S`, and numbers.
    struct Sizes {
        scope: Scope,
        symbol: Dim,
    }

    impl Sizes {
        fn new(least: i64) -> Self {
            let scope = Scope::new();
            let symbol = scope.named("S");
            scope.restrict(symbol, Some(least), Some(1 << 20));
            Sizes { scope, symbol: Dim::symbol(symbol) }
        }

        /// Returns `factor·S + summand`.
        fn dim(&self, factor: i64, summand: i64) -> Dim {
            let product = self.scope.mul(&self.symbol, &Dim::constant(factor));
            self.scope.add(&product, &Dim::constant(summand))
        }

        fn at(&self, dims: &[Dim], size: i64) -> Vec<i64> {
            let at = |dim: &Dim| self.scope.substitute(dim, &|_| Some(Dim::constant(size))).as_const().unwrap();
            dims.iter().map(at).collect()
        }
    }

    /// Returns the result's dims of a Reshape by the standard.
    fn reshaped(from: &[i64], codes: &[i64]) -> Option<Vec<i64>> {
        let mut to = Vec::new();
        for (axis, &code) in codes.iter().enumerate() {
            to.push(if code == 0 { *from.get(axis)? } else { code });
        }
        if let Some(rest) = codes.iter().position(|&code| code == -1) {
            let others: i64 = to.iter().enumerate().filter(|(axis, _)| *axis != rest).map(|(_, size)| size).product();
            if others == 0 {
                return None;
            }
            to[rest] = from.iter().product::<i64>() / others;
        }
        Some(to)
    }

    #[test]
    fn reshape_codes_give_the_dims_at_every_size() {
        for least in [0, 1] {
            let sizes = Sizes::new(least);
            let (s, twice, two, three) = (sizes.dim(1, 0), sizes.dim(2, 0), sizes.dim(0, 2), sizes.dim(0, 3));
            let six = sizes.dim(6, 0);
            let shapes = [
                (vec![s.clone(), two.clone()], vec![twice.clone()], true),
                (vec![s.clone(), two.clone()], vec![two.clone(), s.clone()], true),
                (vec![s.clone(), two.clone(), three.clone()], vec![s.clone(), sizes.dim(0, 6)], true),
                // The other dims must not be 0.
                (vec![six.clone()], vec![s.clone(), sizes.dim(0, 6)], true),
                (vec![two.clone(), s.clone(), s.clone()], vec![s.clone(), twice.clone()], false),
                (vec![s.clone(), s.clone(), two.clone()], vec![s.clone(), twice.clone()], least == 1),
            ];
            for (from, to, sayable) in shapes {
                let codes = reshape_codes(&sizes.scope, &from, &to);
                assert_eq!(codes.is_some(), sayable, "{from:?} {to:?} {least}");
                for size in (least..5).filter(|_| sayable) {
                    let told = reshaped(&sizes.at(&from, size), codes.as_ref().unwrap());
                    assert_eq!(told, Some(sizes.at(&to, size)), "{from:?} {to:?} at {size}");
                }
            }
        }
    }

    #[test]
    fn a_dim_of_0_is_copied_or_inferred_but_never_written() {
        let sizes = Sizes::new(0);
        let (none, two) = (sizes.dim(0, 0), sizes.dim(0, 2));
        assert_eq!(
            reshape_codes(&sizes.scope, &[none.clone(), two.clone()], std::slice::from_ref(&none)),
            Some(vec![0])
        );
        assert_eq!(
            reshape_codes(&sizes.scope, &[two.clone(), none.clone()], std::slice::from_ref(&none)),
            Some(vec![-1])
        );
        assert_eq!(reshape_codes(&sizes.scope, &[two.clone(), none.clone()], &[none.clone(), none]), None);
    }

    #[test]
    fn inserted_ones_are_located() {
        let sizes = Sizes::new(0);
        let (s, one) = (sizes.dim(1, 0), sizes.dim(0, 1));
        assert_eq!(
            inserted_ones(&sizes.scope, std::slice::from_ref(&s), &[one.clone(), s.clone(), one.clone()]),
            Some(vec![0, 2])
        );
        assert_eq!(inserted_ones(&sizes.scope, std::slice::from_ref(&s), &[sizes.dim(2, 0)]), None);
        assert_eq!(inserted_ones(&sizes.scope, &[s.clone(), s.clone()], &[s, one]), None);
    }

    #[test]
    fn slice_bounds_select_the_same_range() {
        let clamped = |bound: i64, dim: i64| if bound < 0 { (bound + dim).max(0) } else { bound.min(dim) };
        for least in [0, 2] {
            let sizes = Sizes::new(least);
            let dim = sizes.dim(1, 0);
            let cases = [
                (sizes.dim(1, 0), Some(i64::MAX)),
                (sizes.dim(2, 3), Some(i64::MAX)),
                (sizes.dim(0, 4), Some(4)),
                (sizes.dim(1, -2), (least >= 2).then_some(-2)),
                (sizes.dim(1, -3), None),
                (sizes.dim(-1, 0), None),
            ];
            for (bound, said) in cases {
                assert_eq!(slice_bound(&sizes.scope, &dim, &bound), said, "{bound:?} {least}");
                for size in (least..6).filter(|_| said.is_some()) {
                    let wanted = sizes.at(std::slice::from_ref(&bound), size)[0];
                    assert_eq!(clamped(said.unwrap(), size), clamped(wanted, size), "{bound:?} at {size}");
                }
            }
        }
    }
}
