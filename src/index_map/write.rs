//! Writing a map as the fewest movement nodes.
//!
//! The search is cheapest first: nothing, one node of each kind, two nodes, and then longer chains of structural steps (the normal form:
//! Reshape, Slice or Gather, Transpose, Expand, Reshape). Pieces are written as Pad or Concat of their parts. Every node that is written
//! is a map again, and a chain is kept only if it composes to the map it was written from: the search decides how short the result is, and
//! never whether it is right. The search for one chain has a limited number of units of work.

mod aligned;
mod bound;
mod candidates;
mod flatten;
mod movement;
mod search;
mod single;
mod writer;

pub use flatten::{Operand, Program, Step};
pub use movement::{AxisRange, Movement};
pub use search::{Allowed, Operators};
pub(super) use search::{Chain, Search};

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use aligned::Aligned;
use flatten::Tree;
use movement::is_same;
use single::has_lookup;
use writer::Writer;

use super::form::{Form, IndexMap, Piece, Shape, is_equal, number, over, times, zero};
use super::join;
use super::memo::Memo;
use crate::dim::{Dim, Scope};

impl IndexMap {
    /// Returns the shortest program found for this map, if it has at most the allowed number of nodes.
    pub fn write(&self, scope: &Scope, allowed: &Allowed) -> Option<Program> {
        Memo::default().program(scope, &Rc::new(self.clone()), allowed)
    }

    /// The same, with the searches of a memo.
    pub(super) fn written(&self, scope: &Scope, allowed: &Allowed, memo: &Memo) -> Option<Program> {
        let (work, aligned) = (Cell::default(), RefCell::default());
        let (sources, tables) = (&self.sources, allowed.gather);
        let writer = Writer { scope, allowed, sources, tables, memo, work: &work, aligned: &aligned };
        let tree = writer.tree(self, allowed.nodes)?;
        let mut program = Program::of(scope, &tree, &self.sources, !allowed.without.has("Split"));
        let is_right = program.nodes() <= allowed.nodes
            && program.map(scope, &self.sources).is_ok_and(|map| map.equals(scope, self));
        is_right.then_some(program)
    }
}

impl Writer<'_> {
    fn tree(&self, map: &IndexMap, nodes: usize) -> Option<Tree> {
        match &map.core.form {
            Form::Fill(fill) => {
                let filled = Movement::Filled(map.result.clone(), *fill);
                (nodes > 0 && !self.allowed.without.has_movement(&filled)).then(|| Tree::Node(filled, vec![]))
            }
            Form::Read(read) => {
                // The search is about the one source that is read.
                let shape = map.sources.get(read.source)?.clone();
                let source = read.source;
                let core = map.core.with_sources(&|other| if other == source { 0 } else { other + 1 });
                let own = IndexMap { sources: std::iter::once(shape).collect(), result: map.result.clone(), core };
                let chain = |writer: &Writer| writer.chain(&own, nodes).map(|chain| Tree::Source(source).after(chain));
                chain(self).or_else(|| {
                    if self.tables {
                        return None;
                    }
                    let with_tables = Writer { tables: true, ..*self };
                    self.runs(&own, source, nodes).or_else(|| chain(&with_tables))
                })
            }
            Form::Pieces(_) => self.pieces(map, nodes),
        }
    }

    /// Returns the shortest chain found, of at most `nodes` nodes.
    fn chain(&self, map: &IndexMap, nodes: usize) -> Option<Vec<Movement>> {
        if self.is_nothing(map) {
            return Some(vec![]);
        }
        let nodes = nodes.min(LONGEST_CHAIN);
        if nodes == 0 {
            return None;
        }
        let allowed = Allowed { nodes: 0, ..*self.allowed };
        let positions = if has_lookup(map) { self.sources.into() } else { Vec::new() };
        let chain = Chain { map: map.clone(), positions, allowed, tables: self.tables };
        self.memo.chain(self.scope, chain, |search| {
            let (work, aligned) = (Cell::new(search.work), RefCell::default());
            let writer = Writer { work: &work, aligned: &aligned, ..*self };
            while search.found.is_none() && search.length < nodes {
                search.length += 1;
                search.found = writer.chain_of(map, search.length, search.length <= 2);
            }
            search.work = work.get();
            search.found.clone().filter(|_| search.length <= nodes)
        })
    }

    fn is_nothing(&self, map: &IndexMap) -> bool {
        let source = map.sources.first();
        map.is_flat()
            && source.is_some_and(|source| {
                source.len() == map.result.len()
                    && source.iter().zip(&map.result).all(|(a, b)| is_equal(self.scope, a, b))
            })
    }

    fn chain_of(&self, map: &IndexMap, length: usize, wide: bool) -> Option<Vec<Movement>> {
        if length == 1 {
            let is_open = self.fewest(map) <= 1;
            let found = if is_open { self.single(map) } else { self.block(map) };
            let found = found.or_else(|| {
                let lookups = Aligned::with_source(self.scope, map).map(|aligned| self.lookups(map, &aligned))?;
                lookups.into_iter().find(|(_, rest)| self.is_nothing(rest)).map(|(lookup, _)| lookup)
            });
            return found.map(|movement| vec![movement]);
        }
        if length < self.fewest(map) {
            return None;
        }
        let mut best = Best { writer: self, map, found: None };
        let is_allowed = |movement: &Movement| !self.allowed.without.has_movement(movement);
        for (first, rest) in self.firsts(map, wide).into_iter().filter(|(first, _)| is_allowed(first)) {
            if self.is_nothing(&rest) {
                return Some(vec![first]);
            }
            if let Some(mut chain) = self.chain_of(&rest, length - 1, wide) {
                chain.insert(0, first);
                if best.is_least(chain) {
                    return best.chain();
                }
            }
        }
        for (last, before) in self.lasts(map).into_iter().filter(|(last, _)| is_allowed(last)) {
            if let Some(mut chain) = self.chain_of(&before, length - 1, wide) {
                chain.push(last);
                if best.is_least(chain) {
                    return best.chain();
                }
            }
        }
        best.chain()
    }

    /// Pad, or Concat of the pieces.
    fn pieces(&self, map: &IndexMap, nodes: usize) -> Option<Tree> {
        let scope = self.scope;
        let Form::Pieces(pieces) = &map.core.form else { return None };
        let nodes = nodes.checked_sub(1)?;
        // A piece has `len` rows of the axis; more, if a row of the pieces is several rows of the axis.
        let axis = (0..map.result.len()).find_map(|axis| {
            let product = |dims: &[Dim]| scope.product(dims);
            let before = product(map.result.get(..axis).unwrap_or_default());
            let after = product(map.result.get(axis.saturating_add(1)..).unwrap_or_default());
            let rows = over(scope, &pieces.after, &after).filter(|_| is_equal(scope, &before, &pieces.before))?;
            let size = map.result.get(axis)?;
            is_equal(scope, &times(scope, &pieces.len(scope), &rows), size).then_some((axis, rows))
        });
        let Some((axis, rows)) = axis else {
            let len = pieces.len(scope);
            let shape: Shape = [pieces.before.clone(), len, pieces.after.clone()].into_iter().collect();
            if is_same(scope, &shape, &map.result) {
                return None;
            }
            let tree = self.pieces(&map.reshaped(&shape), nodes)?;
            return Some(Tree::Node(Movement::Reshape(map.result.clone()), vec![tree]));
        };
        let part = |piece: &Piece| {
            let mut result = map.result.clone();
            if let Some(size) = result.get_mut(axis) {
                *size = times(scope, &piece.len, &rows);
            }
            IndexMap { sources: map.sources.clone(), result, core: piece.core.clone() }
        };
        let fill_of = |piece: Option<&Piece>| match piece.map(|piece| &piece.core.form) {
            Some(Form::Fill(fill)) => Some(*fill),
            _ => None,
        };
        let (first, last) = (fill_of(pieces.parts.first()), fill_of(pieces.parts.last()));
        if let Some(fill) = first.or(last).filter(|_| !self.allowed.without.has("Pad")) {
            let skipped = usize::from(first == Some(fill));
            let kept = pieces.parts.len() - skipped - usize::from(last == Some(fill));
            let inner: Vec<Piece> = pieces.parts.iter().skip(skipped).take(kept).cloned().collect();
            let len_of = |piece: Option<&Piece>, is_it: bool| match piece {
                Some(piece) if is_it => times(scope, &piece.len, &rows),
                _ => zero(),
            };
            let pads =
                [len_of(pieces.parts.first(), first == Some(fill)), len_of(pieces.parts.last(), last == Some(fill))];
            let len = inner.iter().fold(zero(), |sum, piece| scope.add(&sum, &piece.len));
            let core = join::of_pieces(scope, &pieces.before, &pieces.after, inner).ok()?;
            let padded = part(&Piece { len, core });
            let pad = |at: usize, pads: &[Dim; 2]| {
                let side = |number_of_side: usize| -> Shape {
                    let of = |axis: usize| if axis == at { pads.get(number_of_side).cloned() } else { None };
                    (0..map.result.len()).map(|axis| of(axis).unwrap_or_else(zero)).collect()
                };
                Movement::Pad { before: side(0), after: side(1), fill }
            };
            let pad = pad(axis, &pads);
            // Pads of other axes are the same node.
            if let Some(Tree::Node(inner, operands)) = self.tree(&padded, nodes + 1) {
                return Some(match pad.with(scope, &inner) {
                    Some(both) => Tree::Node(both, operands),
                    None => Tree::Node(pad, vec![Tree::Node(inner, operands)]),
                });
            }
            return self.tree(&padded, nodes).map(|tree| Tree::Node(pad, vec![tree]));
        }
        if self.allowed.without.has("Concat") {
            return None;
        }
        let mut operands = Vec::with_capacity(pieces.parts.len());
        for piece in &pieces.parts {
            operands.push(self.tree(&part(piece), nodes)?);
        }
        Some(Tree::Node(Movement::Concat(axis), operands))
    }

    /// Concat of the slices that a table of one result axis consists of.
    fn runs(&self, map: &IndexMap, source: usize, nodes: usize) -> Option<Tree> {
        let scope = self.scope;
        if self.allowed.without.has("Concat") {
            return None;
        }
        let aligned = Aligned::of(scope, map).filter(|_| nodes > 0)?;
        for (axis, size) in map.result.iter().enumerate() {
            let Some(starts) = single::runs_along(&aligned, axis) else { continue };
            let ends = starts.iter().skip(1).copied().chain(size.as_const());
            let mut operands = Vec::new();
            for (&start, end) in starts.iter().zip(ends) {
                let len = number(end.checked_sub(start)?);
                let range = IndexMap::range(scope, &map.result, axis, number(start), 1, len).ok()?;
                let part = map.then(scope, &range).ok()?;
                let chain = self.chain(&part, nodes.checked_sub(1)?)?;
                operands.push(Tree::Source(source).after(chain));
            }
            return Some(Tree::Node(Movement::Concat(axis), operands));
        }
        None
    }
}

/// The cost of a chain, compared with that of chains of equal length: the highest rank of a Transpose, then the number of Gathers, then the
/// number of Slices with a negative step.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Cost {
    rank: usize,
    gathers: usize,
    negative_steps: usize,
}

impl Cost {
    fn of(chain: &[Movement]) -> Cost {
        let mut cost = Cost { rank: 0, gathers: 0, negative_steps: 0 };
        for movement in chain {
            match movement {
                Movement::Transpose(perm) => cost.rank = cost.rank.max(perm.len()),
                Movement::Gather { .. } => cost.gathers += 1,
                Movement::Slice(ranges) if ranges.iter().flatten().any(|range| range.step < 0) => {
                    cost.negative_steps += 1;
                }
                _ => {}
            }
        }
        cost
    }
}

/// The cheapest of the chains found for a map.
struct Best<'w> {
    writer: &'w Writer<'w>,
    map: &'w IndexMap,
    found: Option<(Cost, Vec<Movement>)>,
}

impl Best<'_> {
    /// Adds a chain; returns `true` if no other one can cost less than the cheapest: the number of blocks is the least rank of a Transpose.
    fn is_least(&mut self, chain: Vec<Movement>) -> bool {
        let cost = Cost::of(&chain);
        if self.found.as_ref().is_none_or(|(least, _)| cost < *least) {
            self.found = Some((cost, chain));
        }
        let Some((cost, _)) = &self.found else { return false };
        let is_cheap = cost.negative_steps == 0 && cost.gathers <= usize::from(single::has_table(self.map));
        is_cheap && (cost.rank <= 2 || cost.rank <= self.writer.blocks_of(self.map))
    }

    fn chain(self) -> Option<Vec<Movement>> {
        self.found.map(|(_, chain)| chain)
    }
}

/// The longest chain that is searched for.
const LONGEST_CHAIN: usize = 3;
