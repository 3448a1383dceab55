//! Movement nodes as plain data, and their maps.

use crate::dim::{Dim, Scope};
use crate::index_map::construct::{BlockMode, PadMode, Selected};
use crate::index_map::form::{Fill, IndexMap, Shape, is_at_most, is_equal, number, one, zero};
use crate::index_map::refine::{holds, present};
use crate::index_map::undecided::Undecided;

/// One node, independent of any operator set.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Movement {
    /// A range of each axis: start, step and number of positions; `None` is the whole axis.
    Slice(Vec<Option<AxisRange>>),
    /// Axis `i` of the result is axis `perm[i]` of the operand.
    Transpose(Vec<usize>),
    /// Equal flat positions in another shape; Squeeze, Unsqueeze and Flatten are spellings of it.
    Reshape(Shape),
    /// Broadcast to a shape.
    Expand(Shape),
    /// Each axis this often.
    Tile(Shape),
    /// Constant indices of a shape on one axis.
    Gather {
        /// The axis.
        axis: usize,
        /// The shape of the indices.
        shape: Vec<i64>,
        /// The indices, counted from the start, or all negative and counted from the end.
        indices: Vec<i64>,
    },
    /// Positions that are computed at run time, on one axis. The positions are the second operand: a source of the map.
    Lookup {
        /// The axis.
        axis: usize,
        /// The source of the map that holds the positions.
        positions: usize,
    },
    /// A constant around the operand: the numbers of positions before and after each axis.
    Pad {
        /// Before each axis.
        before: Shape,
        /// After each axis.
        after: Shape,
        /// The constant.
        fill: Fill,
    },
    /// Operands one after the other along an axis.
    Concat(usize),
    /// A constant tensor of a shape; no operand.
    Filled(Shape, Fill),
    /// SpaceToDepth with a block size.
    SpaceToDepth(i64),
    /// DepthToSpace with a block size and a mode.
    DepthToSpace(i64, BlockMode),
}

/// Positions `start + k · step` for `k` in `0 .. len`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AxisRange {
    /// The first position.
    pub start: Dim,
    /// The distance between neighbours.
    pub step: i64,
    /// The number of positions.
    pub len: Dim,
}

impl Movement {
    /// The map of this node on operands of these shapes.
    ///
    /// # Errors
    /// The operands do not fit, or a question about dims is not decided.
    pub fn map(&self, scope: &Scope, operands: &[Shape]) -> Result<IndexMap, Undecided> {
        let source = || operands.first().ok_or(Undecided::Rank);
        match self {
            Movement::Slice(ranges) => {
                let entry = |range: &Option<AxisRange>| match range {
                    None => Selected::All,
                    Some(AxisRange { start, step, len }) => {
                        Selected::Range { start: start.clone(), step: *step, len: len.clone() }
                    }
                };
                IndexMap::slice(scope, source()?, &ranges.iter().map(entry).collect::<Vec<_>>())
            }
            Movement::Transpose(perm) => IndexMap::transpose(scope, source()?, perm),
            Movement::Reshape(result) => Ok(IndexMap::reshape(scope, source()?, result)),
            Movement::Expand(result) => IndexMap::expand(scope, source()?, result),
            Movement::Tile(repeats) => IndexMap::tile(scope, source()?, repeats),
            Movement::Gather { axis, shape, indices } => IndexMap::gather(scope, source()?, *axis, shape, indices),
            Movement::Lookup { axis, .. } => {
                IndexMap::gather_at_run_time(scope, source()?, *axis, operands.get(1).ok_or(Undecided::Rank)?)
            }
            Movement::Pad { before, after, fill } => {
                let mut map = IndexMap::identity(scope, source()?);
                for (axis, pads) in before.iter().zip(after).enumerate() {
                    if !(pads.0.is_const(0) && pads.1.is_const(0)) {
                        let pad = IndexMap::pad(scope, map.result(), axis, pads, PadMode::Constant(*fill))?;
                        map = map.then(scope, &pad)?;
                    }
                }
                Ok(map)
            }
            Movement::Concat(axis) => IndexMap::concat(scope, operands, *axis),
            Movement::Filled(shape, fill) => Ok(IndexMap::filled(scope, shape, *fill)),
            Movement::SpaceToDepth(block) => {
                IndexMap::space_to_depth(scope, source()?, *block, BlockMode::DepthColumnRow)
            }
            Movement::DepthToSpace(block, mode) => IndexMap::depth_to_space(scope, source()?, *block, *mode),
        }
    }
}

impl Movement {
    /// Returns the name of the operator.
    pub fn operator(&self) -> &'static str {
        match self {
            Movement::Slice(_) => "Slice",
            Movement::Transpose(_) => "Transpose",
            Movement::Reshape(_) => "Reshape",
            Movement::Expand(_) => "Expand",
            Movement::Tile(_) => "Tile",
            Movement::Gather { .. } | Movement::Lookup { .. } => "Gather",
            Movement::Pad { .. } => "Pad",
            Movement::Concat(_) => "Concat",
            Movement::Filled(..) => "ConstantOfShape",
            Movement::SpaceToDepth(_) => "SpaceToDepth",
            Movement::DepthToSpace(..) => "DepthToSpace",
        }
    }

    /// Checks that the node is valid on operands of these shapes in every run, whether its result has elements or not.
    pub(super) fn check(&self, scope: &Scope, operands: &[Shape]) -> Result<(), Undecided> {
        let at_most = |a: &Dim, b: &Dim| {
            if is_at_most(scope, a, b) { Ok(()) } else { Err(Undecided::AtMost(a.clone(), b.clone())) }
        };
        let source: &[Dim] = operands.first().map(Shape::as_slice).unwrap_or_default();
        match self {
            Movement::Slice(ranges) => {
                for (size, range) in source.iter().zip(ranges) {
                    let Some(AxisRange { start, step, len }) = range else { continue };
                    at_most(&zero(), len)?;
                    let last = scope.add(start, &scope.mul(&number(*step), &scope.sub(&present(scope, len), &one())));
                    let end = scope.sub(size, &one());
                    let within = [(&zero(), start), (start, &end), (&zero(), &last), (&last, &end)];
                    if !holds(scope, std::slice::from_ref(len), &within) {
                        return Err(Undecided::AtMost(last, end));
                    }
                }
            }
            Movement::Reshape(result) => {
                let (from, to) = (scope.product(source), scope.product(result));
                if !is_equal(scope, &from, &to) {
                    return Err(Undecided::Equal(from, to));
                }
            }
            Movement::Gather { axis, indices, .. } => {
                let needed = |index: &i64| if *index < 0 { index.saturating_neg() } else { index.saturating_add(1) };
                let needed = indices.iter().map(needed).max().unwrap_or(0);
                at_most(&number(needed), source.get(*axis).ok_or(Undecided::Rank)?)?;
            }
            Movement::Pad { before, after, .. } => {
                before.iter().chain(after).try_for_each(|pad| at_most(&zero(), pad))?;
            }
            _ => {}
        }
        Ok(())
    }
}

impl Movement {
    /// One Pad for this one after another.
    pub(super) fn with(&self, scope: &Scope, inner: &Movement) -> Option<Movement> {
        let (Movement::Pad { before, after, fill }, Movement::Pad { before: b, after: a, fill: f }) = (self, inner)
        else {
            return None;
        };
        let sum = |a: &Shape, b: &Shape| a.iter().zip(b).map(|(a, b)| scope.add(a, b)).collect();
        (fill == f).then(|| Movement::Pad { before: sum(before, b), after: sum(after, a), fill: *fill })
    }
}

/// Whether two shapes are proved equal.
pub(super) fn is_same(scope: &Scope, a: &[Dim], b: &[Dim]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_equal(scope, a, b))
}
