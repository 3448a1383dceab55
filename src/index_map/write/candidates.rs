//! Candidates for the first or the last node of a chain, each with the map of the rest.

use std::rc::Rc;

use smallvec::SmallVec;

use super::aligned::Aligned;
use super::movement::{AxisRange, Movement, is_same};
use super::single::has_table;
use super::writer::Writer;
use crate::dim::{Dim, Scope};
use crate::index_map::canonical;
use crate::index_map::form::{
    Atom, Axes, Axis, Form, Index, IndexMap, Read, Shape, Term, is_equal, minus, number, one, over, plus, times, zero,
};
use crate::index_map::refine::{Refined, merged, sizes_by_digit};
use crate::sort;

/// The largest factor that a dim is split by.
const MOST_FACTOR: i64 = 24;

impl Writer<'_> {
    /// First nodes, and the map of what follows. `wide` tries splits that the map does not suggest.
    pub(super) fn firsts(&self, map: &IndexMap, wide: bool) -> Vec<(Movement, IndexMap)> {
        let mut found = Vec::new();
        let (Some(source), Form::Read(read)) = (map.sources.first(), &map.core.form) else { return found };
        let aligned = self.aligned(map).or_else(|| Aligned::with_source(self.scope, map).map(Rc::new));
        if let Some(aligned) = &aligned {
            found.extend(self.lookups(map, aligned));
            self.slices(map, aligned, &mut found);
            if self.tables {
                self.gathers(map, aligned, &mut found);
            }
        }
        let mut shapes: Vec<Shape> = Vec::new();
        if let Some(aligned) = &aligned {
            self.transposes(map, aligned, &mut found);
            if self.tables && has_table(map) {
                shapes.extend(self.gathered_shapes(source, aligned));
            }
        }
        shapes.extend(self.split_shapes(map, read));
        if wide {
            shapes.extend(self.other_shapes(source));
            shapes.push(map.result.clone());
        }
        let total = self.scope.product(source);
        let mut seen: Vec<Shape> = vec![source.clone()];
        for shape in shapes {
            if !seen.contains(&shape) && is_equal(self.scope, &self.scope.product(&shape), &total) {
                let rest = IndexMap { sources: std::iter::once(shape.clone()).collect(), ..map.clone() };
                found.push((Movement::Reshape(shape.clone()), rest));
                seen.push(shape);
            }
        }
        found
    }

    /// Lookups of run-time positions on a whole axis. The positions of what follows are those in the operand that holds the positions.
    pub(super) fn lookups(&self, map: &IndexMap, aligned: &Aligned) -> Vec<(Movement, IndexMap)> {
        let (scope, mut found) = (self.scope, Vec::new());
        let Some(source) = map.sources.first() else { return found };
        for (axis, (index, size)) in aligned.axes.iter().zip(source).enumerate() {
            let [Term { coefficient, atom: Atom::Lookup(lookup) }] = index.terms.as_slice() else { continue };
            let is_whole = coefficient.is_const(1) && index.offset.is_const(0) && is_equal(scope, &lookup.size, size);
            let Some(positions) = lookup.read.source.checked_sub(1).filter(|_| is_whole) else { continue };
            let Some(held) = self.sources.get(positions) else { continue };
            // A Gather by the operand looks up all of its positions, so the map must read all of them.
            let read = merged(scope, &lookup.read.axes);
            let first = read.at.digits().into_iter().min().unwrap_or(0);
            if !aligned.is_whole(scope, (&read.at, &scope.product(held)), first) {
                continue;
            }
            let mut shape: Vec<Dim> = source.to_vec();
            shape.splice(axis..=axis, held.iter().cloned());
            let axes = source.iter().zip(&aligned.axes).enumerate().map(|(other, (size, index))| {
                if other == axis { read.clone() } else { Axis { size: size.clone(), at: index.clone() } }
            });
            let read = Read { source: 0, axes: axes.collect() };
            let Ok(core) = canonical::of_read(scope, aligned.digits.clone(), read) else { continue };
            let sources = std::iter::once(shape.into_iter().collect()).collect();
            found.push((Movement::Lookup { axis, positions }, IndexMap { sources, result: map.result.clone(), core }));
        }
        found
    }

    /// Slices to the positions that the map reads, with and without steps: all axes at once, and each alone.
    fn slices(&self, map: &IndexMap, aligned: &Aligned, found: &mut Vec<(Movement, IndexMap)>) {
        let Some(source) = map.sources.first() else { return };
        let with_steps: Vec<Option<AxisRange>> =
            source.iter().zip(&aligned.axes).map(|(size, index)| self.used(aligned, index, size, true)).collect();
        let without: Vec<Option<AxisRange>> =
            source.iter().zip(&aligned.axes).map(|(size, index)| self.used(aligned, index, size, false)).collect();
        let mut choices = vec![with_steps.clone(), without];
        if with_steps.iter().flatten().count() > 1 {
            for axis in 0..with_steps.len() {
                let alone =
                    with_steps.iter().enumerate().map(|(at, range)| if at == axis { range.clone() } else { None });
                choices.push(alone.collect());
            }
        }
        let mut seen: Vec<Vec<Option<AxisRange>>> = Vec::new();
        for ranges in choices {
            if ranges.iter().all(Option::is_none) || seen.contains(&ranges) {
                continue;
            }
            let slice = Movement::Slice(ranges.clone());
            if slice.check(self.scope, std::slice::from_ref(source)).is_ok()
                && let Some(rest) = self.behind_slice(map, aligned, source, &ranges)
            {
                found.push((slice, rest));
            }
            seen.push(ranges);
        }
    }

    /// The range of an axis that is read; `None` if that is the whole axis as it is.
    fn used(&self, aligned: &Aligned, index: &Index, size: &Dim, steps: bool) -> Option<AxisRange> {
        let scope = self.scope;
        let (least, most) = (index.least(scope, &aligned.digits)?, index.most(scope, &aligned.digits)?);
        let coefficients = || index.terms.iter().map(|term| term.coefficient.as_const());
        let gcd = coefficients().try_fold(0u64, |gcd, coefficient| {
            Some(crate::dim::greatest_common_divisor(gcd, coefficient?.unsigned_abs()))
        });
        let step = gcd.filter(|_| steps).and_then(|gcd| i64::try_from(gcd).ok()).unwrap_or(1).max(1);
        let is_backward = steps
            && self.allowed.negative_step
            && coefficients().all(|c| c.is_some_and(|c| c < 0))
            && !index.terms.is_empty();
        let distance = over(scope, &minus(scope, &most, &least), &number(step))?;
        let len = plus(scope, &distance, &one());
        if !is_backward && step == 1 && least.is_const(0) && is_equal(scope, &len, size) {
            return None;
        }
        Some(if is_backward {
            AxisRange { start: most, step: step.checked_neg()?, len }
        } else {
            AxisRange { start: least, step, len }
        })
    }

    /// The map of what follows a slice: positions are counted from its start in units of its step.
    fn behind_slice(
        &self,
        map: &IndexMap,
        aligned: &Aligned,
        source: &[Dim],
        ranges: &[Option<AxisRange>],
    ) -> Option<IndexMap> {
        let scope = self.scope;
        let mut shape = Shape::new();
        let mut axes = Axes::new();
        for ((size, index), range) in source.iter().zip(&aligned.axes).zip(ranges) {
            let Some(AxisRange { start, step, len }) = range else {
                shape.push(size.clone());
                axes.push(Axis { size: size.clone(), at: index.clone() });
                continue;
            };
            let step = number(*step);
            let terms = index.terms.iter().map(|term| {
                Some(Term { coefficient: scope.exact_div(&term.coefficient, &step)?, atom: term.atom.clone() })
            });
            let at = Index {
                offset: scope.exact_div(&minus(scope, &index.offset, start), &step)?,
                terms: terms.collect::<Option<_>>()?,
            };
            shape.push(len.clone());
            axes.push(Axis { size: len.clone(), at });
        }
        let core = canonical::of_read(scope, aligned.digits.clone(), Read { source: 0, axes }).ok()?;
        Some(IndexMap { sources: std::iter::once(shape).collect(), result: map.result.clone(), core })
    }

    /// Gathers of an axis by its table.
    fn gathers(&self, map: &IndexMap, aligned: &Aligned, found: &mut Vec<(Movement, IndexMap)>) {
        let Some(source) = map.sources.first() else { return };
        for (axis, index) in aligned.axes.iter().enumerate() {
            // A Slice selects a progression with less.
            let is_slice = match index.terms.as_slice() {
                [] => true,
                [term] => !matches!(term.atom, Atom::Table(_)),
                _ => false,
            };
            if is_slice {
                continue;
            }
            let used = index.digits();
            let Some(indices) = index.values_over(&used, &aligned.digits) else { continue };
            let len = indices.len();
            let is_whole = (0..).zip(&indices).all(|(at, &index)| at == index);
            if is_whole && source.get(axis).and_then(Dim::as_const) == i64::try_from(len).ok() {
                continue;
            }
            let sizes: Option<Vec<Dim>> = used.iter().map(|&digit| aligned.digits.get(digit).cloned()).collect();
            let (Some(sizes), Ok(len)) = (sizes, i64::try_from(len)) else { continue };
            let mut at = Index::constant(zero());
            for (&digit, size) in used.iter().zip(&sizes) {
                at = at.followed_by(self.scope, size, &Index::digit(digit));
            }
            let mut shape = source.clone();
            if let Some(size) = shape.get_mut(axis) {
                *size = number(len);
            }
            let axes = shape.iter().zip(&aligned.axes).enumerate().map(|(other, (size, index))| Axis {
                size: size.clone(),
                at: if other == axis { at.clone() } else { index.clone() },
            });
            let read = Read { source: 0, axes: axes.collect() };
            let Ok(core) = canonical::of_read(self.scope, aligned.digits.clone(), read) else { continue };
            let gather = Movement::Gather { axis, shape: vec![len], indices };
            let is_permitted = self.allowed.permits(&gather, &shape);
            let rest = IndexMap { sources: std::iter::once(shape).collect(), result: map.result.clone(), core };
            found.extend(is_permitted.then_some((gather, rest)));
        }
    }

    /// The permutation that brings the axes into the order of the result.
    fn transposes(&self, map: &IndexMap, aligned: &Aligned, found: &mut Vec<(Movement, IndexMap)>) {
        let Some(source) = map.sources.first() else { return };
        let first = |axis: usize| aligned.axes.get(axis).and_then(|index| index.digits().first().copied());
        // Axes without digits are placed where the result has none for an axis, next to the axis before, next to the axis after, or first.
        for placing in 0..4 {
            let mut keys: Vec<(usize, usize)> = Vec::with_capacity(source.len());
            for axis in 0..source.len() {
                let near = match placing {
                    1 => (0..axis).rev().find_map(first),
                    2 => (axis..source.len()).find_map(first),
                    _ => None,
                };
                keys.push((first(axis).or(near).unwrap_or(if placing == 2 { usize::MAX } else { 0 }), axis));
            }
            sort::sort(&mut keys);
            let perm: Vec<usize> = match placing {
                0 => self.guided(map, aligned),
                _ => keys.into_iter().map(|(_, axis)| axis).collect(),
            };
            if perm.iter().copied().eq(0..source.len()) {
                continue;
            }
            let movement = Movement::Transpose(perm.clone());
            if found.iter().any(|(other, _)| *other == movement) {
                continue;
            }
            let pick = |axis: usize| source.get(axis).zip(aligned.axes.get(axis));
            let axes: Option<Axes> = perm
                .iter()
                .map(|&axis| pick(axis).map(|(size, at)| Axis { size: size.clone(), at: at.clone() }))
                .collect();
            let Some(axes) = axes else { continue };
            let shape: Shape = axes.iter().map(|axis| axis.size.clone()).collect();
            let read = Read { source: 0, axes };
            let Ok(core) = canonical::of_read(self.scope, aligned.digits.clone(), read) else { continue };
            let rest = IndexMap { sources: std::iter::once(shape).collect(), result: map.result.clone(), core };
            found.push((movement, rest));
        }
    }

    /// The axes of the source in the order of the result. An axis of the result that depends on none has a place for one of equal size without
    /// digits, 1 or other, so that a Gather or Expand makes it.
    fn guided(&self, map: &IndexMap, aligned: &Aligned) -> Vec<usize> {
        let Some(source) = map.sources.first() else { return Vec::new() };
        let mut rest: Vec<usize> = (0..source.len()).collect();
        let mut perm = Vec::with_capacity(source.len());
        for (size, range) in map.result.iter().zip(&aligned.ranges) {
            let is_own = |&axis: &usize| {
                let digits = aligned.axes.get(axis).map(Index::digits).unwrap_or_default();
                digits.first().is_some_and(|digit| range.contains(digit))
            };
            let is_free = |&axis: &usize| {
                let is_fixed = aligned.axes.get(axis).is_some_and(|index| index.digits().is_empty());
                is_fixed && source.get(axis).is_some_and(|own| own.is_const(1) == size.is_const(1))
            };
            let own: Vec<usize> = rest.iter().copied().filter(is_own).collect();
            let own = if own.is_empty() { rest.iter().copied().find(is_free).into_iter().collect() } else { own };
            rest.retain(|axis| !own.contains(axis));
            perm.extend(own);
        }
        perm.extend(rest);
        perm
    }

    /// The number of blocks that a Transpose has to move.
    pub(super) fn blocks_of(&self, map: &IndexMap) -> usize {
        let Form::Read(read) = &map.core.form else { return 0 };
        self.split_shapes(map, read).first().map_or(0, SmallVec::len)
    }

    /// Shapes of the source in which each axis belongs to one axis of the result, the one with the fewest axes first.
    fn split_shapes(&self, map: &IndexMap, read: &Read) -> Vec<Shape> {
        let scope = self.scope;
        let sizes = sizes_by_digit(scope, &read.axes);
        let Ok(mut refined) = Refined::new(scope, &map.core.digits, &read.axes).align(&sizes) else { return vec![] };
        let Ok(counts) = refined.align_digits(&map.result) else { return vec![] };
        let axis_of = |digit: usize| {
            let mut end = 0usize;
            counts.iter().position(|count| {
                end = end.saturating_add(*count);
                digit < end
            })
        };
        // Neighbours with neighbouring digits of one result axis are one dim.
        let mut fine: Vec<(Dim, Option<(usize, usize)>)> = Vec::new();
        for axis in refined.groups.iter().flatten() {
            fine.push((axis.size.clone(), axis.at.digits().first().and_then(|&digit| Some((digit, axis_of(digit)?)))));
        }
        let mut merged: Vec<(Dim, Option<(usize, usize)>)> = Vec::new();
        for (size, place) in &fine {
            match (merged.last_mut(), place) {
                (Some((last, Some((digit, axis)))), Some((next, own))) if axis == own && *next == *digit + 1 => {
                    *last = times(scope, last, size);
                    *digit = *next;
                }
                _ => merged.push((size.clone(), *place)),
            }
        }
        let shape =
            |parts: &[(Dim, Option<(usize, usize)>)]| -> Shape { parts.iter().map(|(size, _)| size.clone()).collect() };
        let mut shapes = vec![shape(&merged)];
        // With an axis of size 1 where the result has an axis that nothing depends on.
        let mut spread: Vec<(Dim, Option<(usize, usize)>)> = Vec::new();
        let mut expected = 0;
        for part in &merged {
            if let Some((_, axis)) = part.1 {
                while expected < axis {
                    spread.push((one(), None));
                    expected += 1;
                }
                expected = axis + 1;
            }
            spread.push(part.clone());
        }
        while expected < map.result.len() {
            spread.push((one(), None));
            expected += 1;
        }
        if spread.len() > merged.len() {
            shapes.push(shape(&spread));
        }
        shapes.push(shape(&fine));
        shapes
    }

    /// Shapes of the source in which one Gather moves all that changes its place: the axes before and after those are in order. Also with all
    /// axes in front as part of it, so that no axis has to be split afterwards. Where elements are repeated, an Expand or Tile does less.
    fn gathered_shapes(&self, source: &Shape, aligned: &Aligned) -> Vec<Shape> {
        let scope = self.scope;
        let used: Vec<usize> = aligned.axes.iter().flat_map(Index::digits).collect();
        if (0..aligned.digits.len()).any(|digit| !used.contains(&digit)) {
            return Vec::new();
        }
        let axis = |at: usize| aligned.axes.get(at).zip(source.get(at));
        let (mut first, mut digit) = (0, 0);
        while let Some(axis) = axis(first).filter(|axis| aligned.is_whole(scope, *axis, digit)) {
            digit += axis.0.terms.len();
            first += 1;
        }
        let (mut last, mut end) = (source.len(), aligned.digits.len());
        while let Some(at) = last.checked_sub(1).filter(|&at| at > first) {
            let Some((index, size)) = axis(at) else { break };
            let Some(next) = end.checked_sub(index.terms.len()) else { break };
            if !aligned.is_whole(scope, (index, size), next) {
                break;
            }
            (last, end) = (at, next);
        }
        let joined = |from: usize| -> Option<Shape> {
            let (before, after) = (source.get(..from)?, source.get(last..)?);
            let whole = scope.product(source.get(from..last).filter(|axes| axes.len() > 1)?);
            // `base · c` positions: the Gather moves the number `c`.
            let base = if whole.as_const().is_some() { one() } else { whole.without_content() };
            let count = over(scope, &whole, &base).filter(|count| count.as_const() > Some(1))?;
            let outer = Some(base).filter(|base| !base.is_const(1));
            Some(before.iter().cloned().chain(outer).chain([count]).chain(after.iter().cloned()).collect())
        };
        [first, 0].into_iter().filter_map(joined).collect()
    }

    /// Shapes that differ from the source in one place.
    fn other_shapes(&self, source: &Shape) -> Vec<Shape> {
        let scope = self.scope;
        let mut shapes = Vec::new();
        let with = |range: std::ops::Range<usize>, by: &[Dim]| -> Shape {
            let mut shape: Vec<Dim> = source.to_vec();
            shape.splice(range, by.iter().cloned());
            shape.into_iter().collect()
        };
        shapes.push(source.iter().filter(|size| !size.is_const(1)).cloned().collect());
        for (axis, size) in source.iter().enumerate() {
            let next = axis.saturating_add(1);
            if let Some(other) = source.get(next) {
                shapes.push(with(axis..next.saturating_add(1), &[times(scope, size, other)]));
            }
            if size.is_const(1) {
                shapes.push(with(axis..next, &[]));
            }
            for factor in 2..=MOST_FACTOR {
                let factor = number(factor);
                let rest = over(scope, size, &factor).filter(|rest| !rest.is_const(1) && !rest.is_const(0));
                let Some(rest) = rest else { continue };
                shapes.push(with(axis..next, &[factor.clone(), rest.clone()]));
                shapes.push(with(axis..next, &[rest, factor]));
            }
        }
        for axis in 0..=source.len() {
            shapes.push(with(axis..axis, &[one()]));
        }
        shapes
    }

    /// Returns last nodes, each with the map before it, whose result is the part that the node repeats.
    pub(super) fn lasts(&self, map: &IndexMap) -> Vec<(Movement, IndexMap)> {
        let scope = self.scope;
        let mut found = Vec::new();
        let Some(aligned) = self.aligned(map) else { return found };
        let is_used = |digit: usize| aligned.axes.iter().any(|index| index.digits().contains(&digit));
        let mut narrow = map.result.clone();
        let mut repeats: Shape = map.result.iter().map(|_| one()).collect();
        for (axis, range) in aligned.ranges.iter().enumerate() {
            let mut count = one();
            for digit in range.clone().take_while(|&digit| !is_used(digit)) {
                count = times(scope, &count, aligned.digits.get(digit).unwrap_or(&one()));
            }
            let (Some(size), Some(repeat)) = (narrow.get_mut(axis), repeats.get_mut(axis)) else { continue };
            let Some(rest) = over(scope, size, &count) else { continue };
            (*size, *repeat) = (rest, count);
        }
        if repeats.iter().all(|count| count.is_const(1)) {
            return found;
        }
        let ranges =
            narrow.iter().map(|len| crate::index_map::Selected::Range { start: zero(), step: 1, len: len.clone() });
        let Some(before) = restricted(scope, map, ranges.collect()) else { return found };
        let is_expand = narrow.iter().zip(&map.result).all(|(a, b)| a.is_const(1) || is_equal(scope, a, b));
        if is_expand {
            // Leading axes of size 1 are Expand's to add.
            let leading = narrow.iter().take_while(|size| size.is_const(1)).count();
            for skipped in [leading, 0] {
                let shape = narrow.get(skipped..).unwrap_or_default();
                found.push((Movement::Expand(map.result.clone()), before.reshaped(shape)));
            }
        }
        found.push((Movement::Tile(repeats), before));
        found.retain(|(movement, before)| {
            let shape: Shape = before.result.clone();
            !is_same(scope, &shape, &map.result) && movement.map(scope, &[shape]).is_ok()
        });
        found
    }
}

fn restricted(scope: &Scope, map: &IndexMap, ranges: Vec<crate::index_map::Selected>) -> Option<IndexMap> {
    let slice = IndexMap::slice(scope, &map.result, &ranges).ok()?;
    map.then(scope, &slice).ok()
}
