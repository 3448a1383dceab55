//! What a SplitToSequence makes parts of, and what the parts are.

use crate::dim::{Dim, Scope};
use crate::ir::{Attribute, Fact, Node, Scalar, ValueId};
use crate::ops::axis_in;

/// The sizes that a SplitToSequence asks for.
pub(super) enum Sizes {
    /// All of this size, the last one of what is left.
    Each(Dim),
    /// One by one.
    List(Vec<Dim>),
}

impl Sizes {
    /// The sizes in the operand; `None` when nothing is known of them.
    pub(super) fn of(operand: Option<&Fact>) -> Option<Sizes> {
        let Some(fact) = operand else { return Some(Sizes::Each(Dim::constant(1))) };
        let mut sizes = fact.ints()?;
        match fact.rank()? {
            0 => Some(Sizes::Each(sizes.pop()?)),
            _ => Some(Sizes::List(sizes)),
        }
    }
}

/// Whether the parts of a SplitToSequence keep the axis, where everybody agrees on it. `keepdims` is its attribute.
///
/// The operator's text, and the reference, overlook `keepdims` wherever sizes are given. ONNX Runtime, and the exporters that write
/// `x.unbind(1)` as parts of size 1 without their axis, overlook it only where the sizes are a vector: a scalar size says
/// nothing about the rank of the parts.
pub(super) fn keeps_axis(keepdims: bool, sizes: Option<&Fact>) -> Option<bool> {
    match sizes {
        _ if keepdims => Some(true),
        None => Some(false),
        Some(sizes) => (sizes.rank() == Some(1)).then_some(true),
    }
}

/// What a SplitToSequence makes parts of, and how.
pub(super) struct Split {
    tensor: Fact,
    sizes: Option<Fact>,
    axis: i64,
    keepdims: bool,
}

impl Split {
    /// The split that a node stands for, whose attributes are all given in place. `known` is what is known of an operand.
    pub(super) fn of(node: &Node, known: impl Fn(ValueId) -> Fact) -> Option<Split> {
        let keepdims = match node.attribute("keepdims") {
            None => true,
            Some(Attribute::Int(flag)) => *flag != 0,
            Some(_) => return None,
        };
        let axis = match node.attribute("axis") {
            None => 0,
            Some(Attribute::Int(axis)) => *axis,
            Some(_) => return None,
        };
        Some(Split { tensor: known(node.input(0)?), sizes: node.input(1).map(known), axis, keepdims })
    }

    /// How many parts there are.
    pub(super) fn count(&self, scope: &Scope) -> Option<Dim> {
        match Sizes::of(self.sizes.as_ref()) {
            Some(Sizes::List(sizes)) => Some(Dim::constant(i64::try_from(sizes.len()).ok()?)),
            Some(Sizes::Each(size)) => {
                let (_, dim) = self.dim()?;
                is_size(scope, &size).then(|| scope.ceil_div(dim, &size))
            }
            // Even of unknown sizes the number is known.
            None => match self.sizes.as_ref()?.shape()? {
                [count] => Some(count.clone()),
                _ => None,
            },
        }
    }

    /// The axis, counted from the front, and its dim.
    fn dim(&self) -> Option<(usize, &Dim)> {
        let shape = self.tensor.shape()?;
        let axis = axis_in(self.axis, shape.len()).ok()?;
        Some((axis, shape.get(axis)?))
    }

    /// The parts one by one, if there are at most `most` of them.
    pub(super) fn parts(&self, most: usize) -> Option<Vec<Fact>> {
        let (_, dim) = self.dim()?;
        let sizes = match Sizes::of(self.sizes.as_ref())? {
            Sizes::List(list) => list,
            Sizes::Each(size) => {
                let (dim, size) = (dim.as_const()?, size.as_const().filter(|&size| size > 0)?);
                let starts = (0..dim).step_by(usize::try_from(size).ok()?).take(most.saturating_add(1));
                starts.map(|start| Dim::constant(size.min(dim - start))).collect()
            }
        };
        // Negative sizes are an error like sizes that do not add up, which is for the operator to tell.
        if sizes.len() > most || sizes.iter().any(|size| size.as_const().is_some_and(|size| size < 0)) {
            return None;
        }
        let elements = self.tensor.elements().filter(|_| self.tensor.rank() == Some(1));
        let mut start = Some(0);
        let parts = sizes.into_iter().map(|size| {
            let len = size.as_const().and_then(|size| usize::try_from(size).ok());
            let range = start.zip(len).and_then(|(start, len)| Some((start, usize::checked_add(start, len)?)));
            start = range.map(|(_, end)| end);
            let inside = elements.as_deref().zip(range).and_then(|(elements, (start, end))| elements.get(start..end));
            self.part(size, inside)
        });
        let parts = parts.collect::<Option<Vec<Fact>>>()?;
        let adds_up = |dim: i64| start.is_none_or(|sum| i64::try_from(sum).ok() == Some(dim));
        dim.as_const().is_none_or(adds_up).then_some(parts)
    }

    /// The part of this size, with these elements if they are known.
    fn part(&self, size: Dim, elements: Option<&[Scalar]>) -> Option<Fact> {
        let (axis, _) = self.dim()?;
        let mut shape = self.tensor.shape()?.to_vec();
        match (keeps_axis(self.keepdims, self.sizes.as_ref())?, shape.get_mut(axis)) {
            (true, Some(dim)) => *dim = size,
            _ => drop(shape.remove(axis)),
        }
        let part = Fact::tensor(self.tensor.dtype(), Some(shape));
        Some(match elements {
            Some(elements) => part.with_elements(elements.to_vec()),
            None => part,
        })
    }

    /// The part at a position, counted from the back if negative, of a run that has it: of parts that are all of size `s` along
    /// a dim `d`, part `k` is as long as `min(s, d − k·s)`, and the last one as `(d − 1) mod s + 1`.
    pub(super) fn part_at(&self, scope: &Scope, position: i64) -> Option<Fact> {
        let Some(Sizes::Each(size)) = Sizes::of(self.sizes.as_ref()) else { return None };
        let (_, dim) = self.dim()?;
        let one = Dim::constant(1);
        if !is_size(scope, &size) {
            return None;
        }
        let length = match position {
            -1 => scope.add(&scope.modulo(&scope.sub(dim, &one), &size), &one),
            0.. => {
                let rest = scope.sub(dim, &scope.mul(&size, &Dim::constant(position)));
                // A size beyond the end would be no size.
                let exists = position == 0 || scope.ge(&rest, &one).is_yes();
                exists.then(|| scope.min(&size, &rest))?
            }
            _ => return None,
        };
        self.part(length, None)
    }

    /// What the parts are when put together again along `axis`, a new one if `stacked`: what they are parts of.
    pub(super) fn whole(&self, axis: i64, stacked: bool) -> Option<Fact> {
        let rank = self.tensor.rank()?;
        let same = axis_in(axis, rank).ok()? == axis_in(self.axis, rank).ok()?;
        if let Some(Sizes::List(sizes)) = Sizes::of(self.sizes.as_ref())
            && let Some(dim) = self.dim()?.1.as_const()
        {
            // Not everybody minds sizes that do not add up where there is nothing to split.
            let sum = sizes.iter().try_fold(0i64, |sum, size| sum.checked_add(size.as_const()?));
            if sum.is_some_and(|sum| sum != dim) {
                return None;
            }
        }
        (same && keeps_axis(self.keepdims, self.sizes.as_ref())? != stacked).then(|| self.tensor.clone())
    }
}

/// Whether this is the size of parts for certain: at least 1.
pub(super) fn is_size(scope: &Scope, size: &Dim) -> bool {
    scope.ge(size, &Dim::constant(1)).is_yes()
}
