//! The index map of a slice.

use super::resolve::{resolve_exactly, resolve_index};
use super::spec::{AxisOp, SliceSpec};
use crate::dim::{Dim, Scope};
use crate::index_map::{IndexMap, Selected};

/// The map of a slice of data of this shape, in any dialect. `None` if the slice is not valid or not known exactly, or its map is
/// undecided.
pub fn index_map(scope: &Scope, spec: &SliceSpec, shape: &[Dim]) -> Option<IndexMap> {
    let entries = spec.dense(shape.len()).ok()??;
    let mut dims = shape.iter();
    let mut selected = Vec::with_capacity(entries.len());
    for entry in &entries {
        selected.push(match entry {
            AxisOp::NewAxis => Selected::New,
            AxisOp::Keep => {
                dims.next()?;
                Selected::All
            }
            AxisOp::Range(range) => {
                let (taken, len) = resolve_exactly(scope, dims.next()?, range, spec.reading)?;
                Selected::Range { start: taken.start, step: taken.step, len }
            }
            AxisOp::Index(index) => Selected::At(resolve_index(scope, dims.next()?, index).ok()??),
        });
    }
    IndexMap::slice(scope, shape, &selected).ok()
}
