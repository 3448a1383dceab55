//! Builds the index map of a slice.

use super::bounds::with_numbers;
use super::resolve::{resolve_exactly, resolve_index};
use super::spec::{AxisOp, SliceSpec};
use crate::dim::{Dim, Scope};
use crate::index_map::{IndexMap, Selected, Undecided};

/// Returns the index map of a slice of data with this shape, in any dialect.
///
/// # Errors
/// The slice is not valid or its bounds are not known exactly, or a question about dims is not decided.
pub fn index_map(scope: &Scope, spec: &SliceSpec, shape: &[Dim]) -> Result<IndexMap, Undecided> {
    let selected = selected(scope, spec, shape).ok_or(Undecided::Operands)?;
    IndexMap::slice(scope, shape, &selected)
}

/// Returns the selection of each axis. `None` if the slice is invalid or its bounds are not known exactly.
fn selected(scope: &Scope, spec: &SliceSpec, shape: &[Dim]) -> Option<Vec<Selected>> {
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
                let dim = dims.next()?;
                let range = with_numbers(scope, dim, range, spec.reading);
                let (taken, len) = resolve_exactly(scope, dim, &range, spec.reading)?;
                Selected::Range { start: taken.start, step: taken.step, len }
            }
            AxisOp::Index(index) => Selected::At(resolve_index(scope, dims.next()?, index).ok()??),
        });
    }
    Some(selected)
}

#[cfg(test)]
mod tests {
    use super::index_map;
    use crate::dim::{Dim, Scope};
    use crate::index_map::{Binding, Element};
    use crate::slicing::{Operand, SliceRule, onnx};

    #[test]
    fn the_map_of_a_slice_takes_what_the_range_takes() {
        let scope = Scope::new();
        let shape = [Dim::symbol(scope.named("n")), Dim::constant(4)];
        for (start, end, step) in
            [(1, i64::MAX, 1), (0, -1, 1), (-1, i64::MIN, -1), (-2, i64::MAX, 1), (0, i64::MAX, 3)]
        {
            let operands = onnx::Operands {
                starts: Operand::constant(&[start]),
                ends: Operand::constant(&[end]),
                axes: Some(Operand::constant(&[0])),
                steps: Some(Operand::constant(&[step])),
            };
            let spec = onnx::slice(&operands, SliceRule::Agree).expect("the slice is valid");
            let map = index_map(&scope, &spec, &shape).expect("the slice has a map");
            for size in 0..6i64 {
                let (low, high) = if step > 0 { (0, size) } else { (-1, size - 1) };
                let place = |bound: i64| if bound < 0 { bound.saturating_add(size) } else { bound }.max(low).min(high);
                let (mut at, end) = (place(start), place(end));
                let mut expected = Vec::new();
                while if step > 0 { at < end } else { at > end } {
                    expected.extend((0..4).map(|column| Element::Source { source: 0, position: at * 4 + column }));
                    at += step;
                }
                let binding = Binding { sizes: &|_| Some(size), positions: &|_, _| None };
                assert_eq!(map.evaluate(&binding), Some(expected), "{start}:{end}:{step} of {size}");
            }
        }
    }
}
