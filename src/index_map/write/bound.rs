//! Lower bounds of the number of nodes, so that no search runs in vain.

use super::writer::Writer;
use crate::dim::{Dim, Scope};
use crate::index_map::form::{Atom, Axis, Form, IndexMap, Read, is_equal, one, times};

impl Writer<'_> {
    /// A lower bound of the nodes of a chain for a map of one source, without SpaceToDepth and DepthToSpace. Other maps than permutations of
    /// digits have the bound 0.
    ///
    /// A permutation that is not flat needs a Transpose. All axes of a Transpose are ranges of digits that are adjacent in the operand and in
    /// the result, so it reads the source only if the source has no axis across two of the canonical digits, and gives the result only if the
    /// result has none; otherwise a Reshape precedes or follows.
    pub(super) fn fewest(&self, map: &IndexMap) -> usize {
        let Form::Read(read) = &map.core.form else { return 0 };
        let Some(source) = map.sources.get(read.source) else { return 0 };
        if !is_permutation(self.scope, read, &map.core.digits) || map.is_flat() {
            return 0;
        }
        let axes: Vec<Dim> = read.axes.iter().map(|axis| axis.size.clone()).collect();
        let is_split = |dims: &[Dim], digits: &[Dim]| usize::from(!ends_at_axes(self.scope, dims, digits));
        1 + is_split(source, &axes) + is_split(&map.result, &map.core.digits)
    }
}

/// Returns `true` if each axis is one whole digit, each digit once.
fn is_permutation(scope: &Scope, read: &Read, digits: &[Dim]) -> bool {
    let mut seen = 0u32;
    let mut is_new = |axis: &Axis| {
        let [term] = axis.at.terms.as_slice() else { return false };
        let Atom::Digit(digit) = term.atom else { return false };
        let bit = u32::try_from(digit).ok().and_then(|digit| 1u32.checked_shl(digit)).unwrap_or(0);
        let is_new = bit != 0 && seen & bit == 0;
        seen |= bit;
        let is_whole = digits.get(digit).is_some_and(|size| is_equal(scope, size, &axis.size));
        is_new && is_whole && term.coefficient.is_const(1) && axis.at.offset.is_const(0)
    };
    read.axes.len() == digits.len() && read.axes.iter().all(&mut is_new)
}

/// Returns `true` if each digit is a product of neighbouring dims.
fn ends_at_axes(scope: &Scope, dims: &[Dim], digits: &[Dim]) -> bool {
    let mut digits = digits.iter();
    let mut next = digits.next();
    let mut product = one();
    for dim in dims {
        product = times(scope, &product, dim);
        while next.is_some_and(|digit| is_equal(scope, digit, &product)) {
            next = digits.next();
            product = one();
        }
    }
    next.is_none() && product.is_const(1)
}
