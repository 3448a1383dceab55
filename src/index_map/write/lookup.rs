//! The normal form of a permutation or selection by numbers: one Gather between two Reshapes.

use smallvec::SmallVec;

use super::flatten::Tree;
use super::movement::{Movement, is_same};
use super::single::values_over;
use super::writer::Writer;
use crate::dim::Dim;
use crate::index_map::form::{Axis, Form, Index, IndexMap, Shape, number, one, times, zero};

impl Writer<'_> {
    /// Reshape, Gather, Reshape, with at most this many nodes. Axes before and after all that the map moves are kept; those between become one,
    /// on which the Gather selects.
    pub(super) fn lookup(&self, map: &IndexMap, nodes: usize) -> Option<Tree> {
        let scope = self.scope;
        let Form::Read(read) = &map.core.form else { return None };
        let source = map.sources.get(read.source)?;
        let (digits, axes) = (&map.core.digits, &read.axes);
        let is_kept = |axis: &Axis, digit: usize| {
            axis.at.as_shifted_digit() == Some(digit)
                && axis.at.offset.is_const(0)
                && digits.get(digit).is_some_and(|size| *size == axis.size)
        };
        let before = axes.iter().enumerate().take_while(|(at, axis)| is_kept(axis, *at)).count();
        let pairs = axes.iter().rev().zip((0..digits.len()).rev());
        let most = axes.len().min(digits.len()).checked_sub(before)?;
        let after = pairs.take(most).take_while(|(axis, digit)| is_kept(axis, *digit)).count();
        let moved = axes.get(before..axes.len().checked_sub(after)?)?;
        let own: SmallVec<[usize; 8]> = (before..digits.len().checked_sub(after)?).collect();
        // The position on the merged axis.
        let mut position = Index::constant(zero());
        let mut size = one();
        for axis in moved {
            position = position.followed_by(scope, &axis.size, &axis.at);
            size = times(scope, &size, &axis.size);
        }
        size.as_const()?;
        let indices = values_over(&position, &own, digits)?;
        let count = i64::try_from(indices.len()).ok()?;
        let kept_before = digits.get(..before)?;
        let kept_after = digits.get(digits.len().checked_sub(after)?..)?;
        let shape = |middle: Dim| -> Shape { kept_before.iter().chain([&middle]).chain(kept_after).cloned().collect() };
        let (from, to) = (shape(size), shape(number(count)));
        let mut chain = Vec::new();
        if !is_same(scope, source, &from) {
            chain.push(Movement::Reshape(from));
        }
        chain.push(Movement::Gather { axis: before, shape: vec![count], indices });
        if !is_same(scope, &map.result, &to) {
            chain.push(Movement::Reshape(map.result.clone()));
        }
        (chain.len() <= nodes).then(|| Tree::Source(read.source).after(chain))
    }
}
