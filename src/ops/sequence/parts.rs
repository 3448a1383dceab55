//! The operands of a SplitToSequence, and its parts.

use crate::dim::{Dim, Scope};
use crate::ir::{Attribute, Fact, Node, Scalar, ValueId};
use crate::ops::axis_in;

/// The requested sizes of a SplitToSequence.
pub(super) enum Sizes {
    /// All parts have this size, except that the last one has the rest.
    Each(Dim),
    /// One size per part.
    List(Vec<Dim>),
}

impl Sizes {
    /// Returns the sizes in the operand; `None` if they are unknown.
    pub(super) fn of(operand: Option<&Fact>) -> Option<Sizes> {
        let Some(fact) = operand else { return Some(Sizes::Each(Dim::constant(1))) };
        let mut sizes = fact.ints()?;
        match fact.rank()? {
            0 => Some(Sizes::Each(sizes.pop()?)),
            _ => Some(Sizes::List(sizes)),
        }
    }
}

/// Returns `true` if the parts of a SplitToSequence keep the axis; `None` if this is disputed. `keepdims` is its attribute.
///
/// The operator's text and the reference ignore `keepdims` if sizes are given. ONNX Runtime ignores it only for a vector of sizes.
/// Exporters follow ONNX Runtime and write `x.unbind(1)` as parts of size 1 without their axis. A scalar size therefore does not determine
/// the rank of the parts.
pub(super) fn keeps_axis(keepdims: bool, sizes: Option<&Fact>) -> Option<bool> {
    match sizes {
        _ if keepdims => Some(true),
        None => Some(false),
        Some(sizes) => (sizes.rank() == Some(1)).then_some(true),
    }
}

/// The operands and attributes of a split.
pub(super) struct Split {
    tensor: Fact,
    sizes: Option<Fact>,
    axis: i64,
    keepdims: bool,
}

impl Split {
    /// Returns the split of a node whose attributes are all literals. `known` returns the fact of an operand.
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

    /// Returns the number of parts.
    pub(super) fn count(&self, scope: &Scope) -> Option<Dim> {
        match Sizes::of(self.sizes.as_ref()) {
            Some(Sizes::List(sizes)) => Some(Dim::constant(i64::try_from(sizes.len()).ok()?)),
            Some(Sizes::Each(size)) => {
                let (_, dim) = self.dim()?;
                is_size(scope, &size).then(|| scope.ceil_div(dim, &size))
            }
            // The number of parts is known even if the sizes are not.
            None => match self.sizes.as_ref()?.shape()? {
                [count] => Some(count.clone()),
                _ => None,
            },
        }
    }

    /// Returns the axis, counted from the front, and its dim.
    fn dim(&self) -> Option<(usize, &Dim)> {
        let shape = self.tensor.shape()?;
        let axis = axis_in(self.axis, shape.len()).ok()?;
        Some((axis, shape.get(axis)?))
    }

    /// Returns each part, if there are at most `most` of them.
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
        // Negative sizes are an error, like a wrong sum of sizes; the operator reports both.
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

    /// Returns the part of this size, with these elements if they are known.
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

    /// Returns the part at a position, negative from the end, for a run in which it exists. With parts of size `s` of a dim `d`, part
    /// `k` has the length `min(s, d − k·s)`, and the last one `(d − 1) mod s + 1`.
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
                // Beyond the end, the formula is not a size.
                let exists = position == 0 || scope.ge(&rest, &one).is_yes();
                exists.then(|| scope.min(&size, &rest))?
            }
            _ => return None,
        };
        self.part(length, None)
    }

    /// Returns the concatenation of all parts along `axis` (a new axis if `stacked`): the tensor they are parts of.
    pub(super) fn whole(&self, axis: i64, stacked: bool) -> Option<Fact> {
        let rank = self.tensor.rank()?;
        let same = axis_in(axis, rank).ok()? == axis_in(self.axis, rank).ok()?;
        if let Some(Sizes::List(sizes)) = Sizes::of(self.sizes.as_ref())
            && let Some(dim) = self.dim()?.1.as_const()
        {
            // Some runtimes accept sizes with a wrong sum if the tensor is empty.
            let sum = sizes.iter().try_fold(0i64, |sum, size| sum.checked_add(size.as_const()?));
            if sum.is_some_and(|sum| sum != dim) {
                return None;
            }
        }
        (same && keeps_axis(self.keepdims, self.sizes.as_ref())? != stacked).then(|| self.tensor.clone())
    }
}

/// Returns `true` if this is proved to be a size of parts: at least 1.
pub(super) fn is_size(scope: &Scope, size: &Dim) -> bool {
    scope.ge(size, &Dim::constant(1)).is_yes()
}
