//! The selected range of a Slice on each axis of its data.

use super::misread::may_be_misread;
use super::slice_spec;
use crate::dim::Dim;
use crate::ir::{Facts, Model, NodeId};
use crate::slicing::{self, AxisOp, Range, SliceRule};

/// The selection of a slice on one axis.
#[derive(Clone, Debug)]
pub struct SliceCut {
    /// The range, with constants if they are known.
    pub range: Range,
    /// The first element and the number of elements, if known; for 0 elements, the first one is meaningless.
    pub exact: Option<(Dim, Dim)>,
}

/// The selection of a Slice on each axis of its data.
pub struct SliceCuts {
    /// One entry per axis; `None` selects the whole axis.
    pub axes: Vec<Option<SliceCut>>,
    /// The dims of the data.
    pub dims: Vec<Dim>,
    /// The number of axes that the node lists.
    pub named: usize,
}

impl SliceCuts {
    /// Returns the axes that are cut.
    pub fn cut(&self) -> impl Iterator<Item = (usize, &SliceCut)> {
        self.axes.iter().enumerate().filter_map(|(axis, cut)| Some((axis, cut.as_ref()?)))
    }
}

/// Returns the selection of the Slice `id`. Does not resolve ranges if readings of the operator are in dispute. Also returns
/// `None` if a runtime misreads the shape of the data: the Slice may restore it.
pub fn slice_cuts(model: &Model, facts: &Facts, id: NodeId) -> Option<SliceCuts> {
    let spec = slice_spec(model, facts, id, SliceRule::Agree).ok()??;
    let data = model.node(id)?.input(0)?;
    if may_be_misread(model, facts, data) {
        return None;
    }
    let dims = facts.get(data)?.shape()?.to_vec();
    let scope = facts.scope();
    let mut named = 0;
    let mut axes = Vec::with_capacity(dims.len());
    for (op, dim) in spec.dense(dims.len()).ok()??.into_iter().zip(&dims) {
        axes.push(match op {
            AxisOp::Keep => None,
            AxisOp::Range(range) => {
                named += 1;
                let range = slicing::with_numbers(scope, dim, &range, spec.reading);
                let exact = slicing::resolve_exactly(scope, dim, &range, spec.reading);
                let exact = exact.map(|(selection, len)| (selection.start, len));
                let whole = exact.as_ref().is_some_and(|(_, len)| slicing::takes_all(scope, dim, &range, len));
                Some(SliceCut { range, exact }).filter(|_| !whole)
            }
            AxisOp::Index(_) | AxisOp::NewAxis => return None,
        });
    }
    Some(SliceCuts { axes, dims, named })
}
