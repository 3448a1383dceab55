//! One constructor for each movement; those at known places are in `places`. Dims are those of operands that are valid: a constructor checks what it needs for the map, and leaves
//! what makes a node invalid to shape inference.

use smallvec::SmallVec;

use super::form::{
    Atom, Axes, Axis, Core, Fill, Form, Index, IndexMap, MOST_PIECES, Piece, Read, Shape, is_equal, minus, number, one,
    over, plus, times, zero,
};
use super::undecided::Undecided;
use super::{canonical, join};
use crate::dim::{Dim, Scope};

/// The selection of one axis in a slice. Positions lie on the axis wherever `len` is at least 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selected {
    /// The axis.
    All,
    /// Positions `start + k · step` for `k` in `0 .. len`.
    Range {
        /// The first position.
        start: Dim,
        /// The distance between neighbours.
        step: i64,
        /// The number of positions.
        len: Dim,
    },
    /// One position; the result does not have the axis.
    At(Dim),
    /// An axis of size 1 that the source does not have.
    New,
}

/// How Pad fills.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PadMode {
    /// With a constant.
    Constant(Fill),
    /// With the elements next to the border, which is not repeated.
    Reflect,
    /// With the element at the border.
    Edge,
    /// With the elements at the other end.
    Wrap,
}

/// The order of the parts of the channel axis in DepthToSpace and SpaceToDepth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BlockMode {
    /// Block row, block column, channel.
    DepthColumnRow,
    /// Channel, block row, block column.
    ColumnRowDepth,
}

/// Builds one source, digit by digit.
pub(super) struct Builder {
    pub digits: SmallVec<[Dim; 6]>,
    pub axes: Axes,
}

impl Builder {
    pub fn new() -> Builder {
        Builder { digits: SmallVec::new(), axes: Axes::new() }
    }

    pub fn digit(&mut self, size: &Dim) -> usize {
        self.digits.push(size.clone());
        self.digits.len().saturating_sub(1)
    }

    pub fn axis(&mut self, size: &Dim, at: Index) {
        self.axes.push(Axis { size: size.clone(), at });
    }

    pub fn whole_axis(&mut self, size: &Dim) {
        let digit = self.digit(size);
        self.axis(size, Index::digit(digit));
    }

    pub fn map(self, scope: &Scope, source: &[Dim], result: Shape) -> Result<IndexMap, Undecided> {
        let core = canonical::of_read(scope, self.digits, Read { source: 0, axes: self.axes })?;
        Ok(IndexMap { sources: std::iter::once(source.into()).collect(), result, core })
    }
}

pub(super) fn product(scope: &Scope, dims: &[Dim]) -> Dim {
    scope.product(dims)
}

impl IndexMap {
    /// The map of a tensor to itself.
    pub fn identity(scope: &Scope, shape: &[Dim]) -> IndexMap {
        IndexMap::reshape(scope, shape, shape)
    }

    /// Reshape, Squeeze, Unsqueeze, Flatten, Identity: equal flat positions. Both shapes have equally many elements in every run.
    pub fn reshape(scope: &Scope, source: &[Dim], result: &[Dim]) -> IndexMap {
        let total = product(scope, source);
        let core = if total.is_const(0) {
            Core::empty()
        } else {
            let digits = if total.is_const(1) { SmallVec::new() } else { std::iter::once(total.clone()).collect() };
            Core { digits, form: Form::Read(Read::whole(0, total)) }
        };
        IndexMap { sources: std::iter::once(source.into()).collect(), result: result.into(), core }
    }

    /// Transpose: axis `i` of the result is axis `perm[i]` of the source.
    ///
    /// # Errors
    /// `perm` is no permutation of the axes, or the rank is over the limit.
    pub fn transpose(scope: &Scope, source: &[Dim], perm: &[usize]) -> Result<IndexMap, Undecided> {
        let mut seen: SmallVec<[Option<usize>; 6]> = SmallVec::from_elem(None, source.len());
        for (digit, &axis) in perm.iter().enumerate() {
            if seen.get_mut(axis).ok_or(Undecided::Rank)?.replace(digit).is_some() {
                return Err(Undecided::Rank);
            }
        }
        let mut built = Builder::new();
        for &axis in perm {
            built.digit(source.get(axis).ok_or(Undecided::Rank)?);
        }
        for (size, digit) in source.iter().zip(seen) {
            built.axis(size, Index::digit(digit.ok_or(Undecided::Rank)?));
        }
        let result = built.digits.iter().cloned().collect();
        built.map(scope, source, result)
    }

    /// A slice of any dialect, one entry for each axis of the source and each new axis, in the order of the result.
    ///
    /// # Errors
    /// The entries do not fit the rank, or the rank is over the limit.
    pub fn slice(scope: &Scope, source: &[Dim], entries: &[Selected]) -> Result<IndexMap, Undecided> {
        let mut built = Builder::new();
        let mut result = Shape::new();
        let mut dims = source.iter();
        for entry in entries {
            if *entry == Selected::New {
                result.push(one());
                continue;
            }
            let size = dims.next().ok_or(Undecided::Rank)?;
            match entry {
                Selected::Range { start, step, len } => {
                    let digit = built.digit(len);
                    let mut at = Index::constant(start.clone());
                    at.add_term(scope, number(*step), Atom::Digit(digit));
                    built.axis(size, at);
                    result.push(len.clone());
                }
                Selected::At(at) => built.axis(size, Index::constant(at.clone())),
                Selected::All | Selected::New => {
                    built.whole_axis(size);
                    result.push(size.clone());
                }
            }
        }
        if dims.next().is_some() {
            return Err(Undecided::Rank);
        }
        built.map(scope, source, result)
    }

    /// A range of one axis, such as an output of Split.
    ///
    /// # Errors
    /// There is no such axis, or the rank is over the limit.
    pub fn range(
        scope: &Scope,
        source: &[Dim],
        axis: usize,
        start: Dim,
        step: i64,
        len: Dim,
    ) -> Result<IndexMap, Undecided> {
        let mut entries = vec![Selected::All; source.len()];
        *entries.get_mut(axis).ok_or(Undecided::Rank)? = Selected::Range { start, step, len };
        IndexMap::slice(scope, source, &entries)
    }

    /// Expand to exactly `result`: each dim of the source, counted from the last one, is that of the result or 1.
    ///
    /// # Errors
    /// A dim is not known to be either, or the rank is over the limit.
    pub fn expand(scope: &Scope, source: &[Dim], result: &[Dim]) -> Result<IndexMap, Undecided> {
        let more = result.len().checked_sub(source.len()).ok_or(Undecided::Rank)?;
        let mut built = Builder::new();
        for (axis, size) in result.iter().enumerate() {
            let digit = built.digit(size);
            let Some(own) = axis.checked_sub(more).and_then(|axis| source.get(axis)) else { continue };
            if is_equal(scope, own, size) {
                built.axis(own, Index::digit(digit));
            } else if is_equal(scope, own, &one()) {
                built.axis(own, Index::constant(zero()));
            } else {
                return Err(Undecided::Equal(own.clone(), size.clone()));
            }
        }
        built.map(scope, source, result.into())
    }

    /// Tile: each axis is repeated that often.
    ///
    /// # Errors
    /// The numbers of axes differ, or the rank is over the limit.
    pub fn tile(scope: &Scope, source: &[Dim], repeats: &[Dim]) -> Result<IndexMap, Undecided> {
        if source.len() != repeats.len() {
            return Err(Undecided::Rank);
        }
        let mut built = Builder::new();
        for (size, count) in source.iter().zip(repeats) {
            built.digit(count);
            built.whole_axis(size);
        }
        let result = source.iter().zip(repeats).map(|(size, count)| times(scope, size, count)).collect();
        built.map(scope, source, result)
    }

    /// Concat of sources of these shapes.
    ///
    /// # Errors
    /// There is no such axis, or there are too many pieces.
    pub fn concat(scope: &Scope, sources: &[Shape], axis: usize) -> Result<IndexMap, Undecided> {
        let first = sources.first().ok_or(Undecided::Rank)?;
        if sources.len() > MOST_PIECES {
            return Err(Undecided::PieceLimit);
        }
        let mut result = first.clone();
        let before = product(scope, first.get(..axis).ok_or(Undecided::Rank)?);
        let after = product(scope, first.get(axis.saturating_add(1)..).ok_or(Undecided::Rank)?);
        let mut parts = Vec::with_capacity(sources.len());
        let mut len = zero();
        for (source, shape) in sources.iter().enumerate() {
            let own = shape.get(axis).ok_or(Undecided::Rank)?;
            len = plus(scope, &len, own);
            let total = scope.product([&before, own, &after]);
            let digits = std::iter::once(total.clone()).collect();
            let core = canonical::of_read(scope, digits, Read::whole(source, total))?;
            parts.push(Piece { len: own.clone(), core });
        }
        *result.get_mut(axis).ok_or(Undecided::Rank)? = len;
        Ok(IndexMap { sources: sources.into(), result, core: join::of_pieces(scope, &before, &after, parts)? })
    }

    /// A tensor of one constant; it has no source.
    pub fn filled(scope: &Scope, shape: &[Dim], fill: Fill) -> IndexMap {
        IndexMap { sources: SmallVec::new(), result: shape.into(), core: canonical::of_fill(scope, shape, fill) }
    }

    /// Pad of one axis by at least 0 positions on each side.
    ///
    /// # Errors
    /// There is no such axis, there are too many pieces, or the mode is not [`PadMode::Constant`] and the axis is not proved to have
    /// the positions that are repeated.
    pub fn pad(
        scope: &Scope,
        source: &[Dim],
        axis: usize,
        pads: (&Dim, &Dim),
        mode: PadMode,
    ) -> Result<IndexMap, Undecided> {
        let size = source.get(axis).ok_or(Undecided::Rank)?;
        let before = product(scope, source.get(..axis).ok_or(Undecided::Rank)?);
        let after = product(scope, source.get(axis.saturating_add(1)..).ok_or(Undecided::Rank)?);
        let read = |start: Dim, step: i64, len: &Dim| -> Result<Piece, Undecided> {
            let mut built = Builder::new();
            built.whole_axis(&before);
            let digit = built.digit(len);
            let mut at = Index::constant(start);
            at.add_term(scope, number(step), Atom::Digit(digit));
            built.axis(size, at);
            built.whole_axis(&after);
            Ok(Piece {
                len: len.clone(),
                core: canonical::of_read(scope, built.digits, Read { source: 0, axes: built.axes })?,
            })
        };
        let last = minus(scope, size, &one());
        for pad in [pads.0, pads.1] {
            let limit = match mode {
                PadMode::Constant(_) => continue,
                PadMode::Reflect => last.clone(),
                PadMode::Edge => scope.mul(pad, size),
                PadMode::Wrap => size.clone(),
            };
            if !scope.le(pad, &limit).is_yes() {
                return Err(Undecided::AtMost(pad.clone(), limit));
            }
        }
        let filled = |len: &Dim, fill| Piece {
            len: len.clone(),
            core: canonical::of_fill(scope, &[before.clone(), len.clone(), after.clone()], fill),
        };
        let (first, second) = match mode {
            PadMode::Constant(fill) => (filled(pads.0, fill), filled(pads.1, fill)),
            PadMode::Reflect => (read(pads.0.clone(), -1, pads.0)?, read(minus(scope, &last, &one()), -1, pads.1)?),
            PadMode::Edge => (read(zero(), 0, pads.0)?, read(last, 0, pads.1)?),
            PadMode::Wrap => (read(minus(scope, size, pads.0), 1, pads.0)?, read(zero(), 1, pads.1)?),
        };
        let mut result: Shape = source.into();
        *result.get_mut(axis).ok_or(Undecided::Rank)? = scope.sum([pads.0, size, pads.1]);
        let core = join::of_pieces(scope, &before, &after, vec![first, read(zero(), 1, size)?, second])?;
        Ok(IndexMap { sources: std::iter::once(source.into()).collect(), result, core })
    }

    /// `numpy.roll` by `shift`, which lies in `0 ..= size`: position `i` of the result is position `i - shift` of the source, modulo
    /// the size.
    ///
    /// # Errors
    /// As [`range`](IndexMap::range).
    pub fn roll(scope: &Scope, source: &[Dim], axis: usize, shift: &Dim) -> Result<IndexMap, Undecided> {
        let size = source.get(axis).ok_or(Undecided::Rank)?;
        let rest = minus(scope, size, shift);
        let second = IndexMap::range(scope, source, axis, zero(), 1, rest.clone())?;
        let first = IndexMap::range(scope, source, axis, rest, 1, shift.clone())?;
        let concat = IndexMap::concat(scope, &[first.result.clone(), second.result.clone()], axis)?;
        let map = concat.applied_to(scope, &[&first, &second])?;
        map.with_sources(scope, &[source.into()], &[0, 0])
    }

    /// DepthToSpace of `[N, C, H, W]`.
    ///
    /// # Errors
    /// The rank is not 4, or the block is not known to divide the channels.
    pub fn depth_to_space(scope: &Scope, source: &[Dim], block: i64, mode: BlockMode) -> Result<IndexMap, Undecided> {
        let [n, c, h, w] = source else { return Err(Undecided::Rank) };
        let b = number(block);
        let square = scope.mul(&b, &b);
        let depth = over(scope, c, &square).ok_or_else(|| Undecided::Divides(square.clone(), c.clone()))?;
        let (split, perm) = match mode {
            BlockMode::DepthColumnRow => ([n, &b, &b, &depth, h, w], [0, 3, 4, 1, 5, 2]),
            BlockMode::ColumnRowDepth => ([n, &depth, &b, &b, h, w], [0, 1, 4, 2, 5, 3]),
        };
        let result = [n.clone(), depth.clone(), scope.mul(h, &b), scope.mul(w, &b)];
        IndexMap::blocks(scope, source, &split.map(Dim::clone), &perm, &result)
    }

    /// SpaceToDepth of `[N, C, H, W]`.
    ///
    /// # Errors
    /// The rank is not 4, or the block is not known to divide height and width.
    pub fn space_to_depth(scope: &Scope, source: &[Dim], block: i64, mode: BlockMode) -> Result<IndexMap, Undecided> {
        let [n, c, h, w] = source else { return Err(Undecided::Rank) };
        let b = number(block);
        let divided = |dim: &Dim| over(scope, dim, &b).ok_or_else(|| Undecided::Divides(b.clone(), dim.clone()));
        let (rows, columns) = (divided(h)?, divided(w)?);
        let split = [n, c, &rows, &b, &columns, &b].map(Dim::clone);
        let result = [n.clone(), scope.product([c, &b, &b]), rows.clone(), columns.clone()];
        let perm = match mode {
            BlockMode::DepthColumnRow => [0, 3, 5, 1, 2, 4],
            BlockMode::ColumnRowDepth => [0, 1, 3, 5, 2, 4],
        };
        IndexMap::blocks(scope, source, &split, &perm, &result)
    }

    /// Reshape, Transpose, Reshape.
    fn blocks(
        scope: &Scope,
        source: &[Dim],
        split: &[Dim],
        perm: &[usize],
        result: &[Dim],
    ) -> Result<IndexMap, Undecided> {
        let mut map = IndexMap::transpose(scope, split, perm)?;
        map.sources = std::iter::once(source.into()).collect();
        map.result = result.into();
        Ok(map)
    }

    /// The shapes of the sources.
    pub fn sources(&self) -> &[Shape] {
        &self.sources
    }

    /// The shape of the result.
    pub fn result(&self) -> &[Dim] {
        &self.result
    }

    /// The map with its result in another shape of equally many elements.
    pub fn reshaped(&self, result: &[Dim]) -> IndexMap {
        IndexMap { result: result.into(), ..self.clone() }
    }
}
