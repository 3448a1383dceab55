//! Lists the elements that each Slice selects from its axes, and their shares for a picture to scale.

use crate::dim::{Dim, Scope};
use crate::ir::{Facts, Model};
use crate::ops::slice_cuts;

/// What a Slice takes.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct SliceTaken {
    /// The node: its operator, its name or the name of a result.
    pub node: String,
    /// The name of *data*.
    pub data: String,
    /// The axes of *data*.
    pub axes: Vec<AxisTaken>,
}

/// What a Slice takes of one axis.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct AxisTaken {
    /// The size of the axis.
    pub size: String,
    /// The first taken index and the number of taken elements, as expressions. `None` if the Slice takes all, or if no expression is known.
    pub taken: Option<(String, String)>,
    /// Whether the taken elements are known.
    pub is_known: bool,
    /// The taken range as shares of the axis. `None` if the shares depend on open sizes.
    pub span: Option<Span>,
    /// Whether the Slice may omit elements before the first and after the last taken one.
    pub omits: (bool, bool),
    /// The step between taken elements, if it is known.
    pub step: Option<i64>,
}

/// A range of an axis, from its first taken element to its last, as shares of the axis.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Span {
    /// Where the range begins, from 0 to 1.
    pub begin: f64,
    /// The length of the range, from 0 to 1.
    pub length: f64,
    /// The length of one element, if the size of the axis is a number.
    pub element: Option<f64>,
}

/// The largest denominator of a share that does not depend on open sizes.
const FINEST: i64 = 64;

/// A size that most divisors in models divide. Shares are found with it, and then proved.
const PROBE: i64 = 720_720;

/// Lists what the Slices of the main graph take, as far as the sliced axes are known.
pub(crate) fn slices_taken(model: &Model, facts: &Facts) -> Vec<SliceTaken> {
    let scope = facts.scope();
    let graph = model.graph(model.main());
    let of = |id| {
        let node = model.node(id)?;
        let cuts = slice_cuts(model, facts, id)?;
        let axes = cuts.axes.iter().zip(&cuts.dims).map(|(cut, dim)| match cut {
            None => axis(scope, dim, Some((Dim::constant(0), dim.clone())), Some(1), false),
            Some(cut) => axis(scope, dim, cut.exact.clone(), cut.range.step, true),
        });
        let data = node.input(0).map_or_else(String::new, |value| model.value(value).name.to_string());
        Some(SliceTaken { node: model.describe(id), data, axes: axes.collect() })
    };
    graph.nodes().filter(|&id| model.node(id).is_some_and(|node| node.is("Slice"))).filter_map(of).collect()
}

/// Returns the part of an axis that a range selects; `None` for an unknown range.
pub(super) fn axis(scope: &Scope, size: &Dim, taken: Option<(Dim, Dim)>, step: Option<i64>, is_cut: bool) -> AxisTaken {
    let is_known = taken.is_some();
    let span = match &taken {
        Some(_) if !is_cut => Some(Span { begin: 0.0, length: 1.0, element: None }),
        Some((start, len)) => span(scope, size, (start, len), step.unwrap_or(1)),
        None => None,
    };
    let omits = taken.as_ref().map_or((true, true), |(start, len)| {
        let rest = scope.sub(size, &scope.add(start, len));
        let is_nothing = |dim: &Dim| scope.eq(dim, &Dim::constant(0)).is_yes();
        match step {
            Some(1) => (!is_nothing(start), !is_nothing(&rest)),
            Some(2..) => (!is_nothing(start), true),
            _ => (true, true),
        }
    });
    let taken = taken.filter(|_| is_cut).map(|(start, len)| (scope.format(&start), scope.format(&len)));
    AxisTaken { size: scope.format(size), taken, is_known, span, omits, step }
}

fn span(scope: &Scope, size: &Dim, (start, len): (&Dim, &Dim), step: i64) -> Option<Span> {
    let element = size.as_const().filter(|size| *size > 0).map(|size| 1.0 / size as f64);
    if len.is_const(0) {
        return Some(Span { begin: 0.0, length: 0.0, element });
    }
    let stride = Dim::constant(step.checked_abs()?.max(1));
    let steps = scope.mul(&scope.sub(len, &Dim::constant(1)), &stride);
    let first = if step < 0 { scope.sub(start, &steps) } else { start.clone() };
    let begin = share(scope, &first, size, &stride)?;
    let length = share(scope, &scope.add(&steps, &Dim::constant(1)), size, &stride)?;
    let fits = begin >= 0.0 && length >= 0.0 && begin + length <= 1.0 + 1e-9;
    fits.then_some(Span { begin, length, element })
}

/// Returns a part of an axis as a share of its size: exactly if both are numbers. With open sizes the share must hold for every size, up to
/// elements that complete no group: `floor(n/2)` is half of `n`, but `n - 1` is no share of it.
fn share(scope: &Scope, part: &Dim, size: &Dim, stride: &Dim) -> Option<f64> {
    if let (Some(part), Some(size)) = (part.as_const(), size.as_const()) {
        return (size > 0).then(|| part as f64 / size as f64);
    }
    let probed = |dim: &Dim| dim.evaluate(&|_| Some(PROBE));
    let (part_of_probe, probe) = (probed(part)?, probed(size).filter(|size| *size > 0)?);
    let (top, bottom) = (1..=FINEST).find_map(|bottom| {
        let scaled = part_of_probe.checked_mul(bottom)?;
        let top = scaled.checked_add(probe / 2)?.div_euclid(probe);
        let rest = scaled.checked_sub(top.checked_mul(probe)?)?;
        (rest.abs() <= bottom.checked_mul(FINEST)?).then_some((top, bottom))
    })?;
    let difference = scope.sub(&scope.mul(part, &Dim::constant(bottom)), &scope.mul(size, &Dim::constant(top)));
    let stride = stride.as_const()?;
    let holds = match (difference.as_const(), scope.bounds(&difference)) {
        (Some(rest), _) => rest.checked_abs()? < stride,
        (None, (Some(low), Some(high))) => {
            let group = bottom.checked_mul(bottom.max(stride))?;
            low >= group.checked_neg()? && high <= group
        }
        _ => false,
    };
    holds.then_some(top as f64 / bottom as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_hold_for_every_size() {
        let scope = Scope::new();
        let parsed = |text: &str| scope.parse(text).unwrap();
        let taken = |size: &str, start: &str, len: &str, step| {
            let found = span(&scope, &parsed(size), (&parsed(start), &parsed(len)), step)?;
            Some((found.begin, found.length))
        };
        assert_eq!(taken("8", "2", "4", 1), Some((0.25, 0.5)));
        assert_eq!(taken("4*h", "h", "2*h", 1), Some((0.25, 0.5)));
        assert_eq!(taken("n", "0", "floor(n/2)", 1), Some((0.0, 0.5)));
        assert_eq!(taken("n", "0", "floor((n + 1)/2)", 2), Some((0.0, 1.0)));
        assert_eq!(taken("n", "1", "floor(n/2)", 2), Some((0.0, 1.0)));
        assert_eq!(taken("8", "7", "8", -1), Some((0.0, 1.0)));
        assert_eq!(taken("n", "1", "n - 1", 1), None);
        assert_eq!(taken("n", "0", "1", 1), None);
        assert_eq!(taken("past + seq", "past", "seq", 1), None);
        assert_eq!(taken("n", "0", "0", 1), Some((0.0, 0.0)));
    }
}
