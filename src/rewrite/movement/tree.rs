//! The tree of movement nodes above a node, composed to maps.

use std::rc::Rc;

use smallvec::SmallVec;

use crate::dim::Dim;
use crate::index_map::{Composition, IndexMap, Shape, Undecided};
use crate::ir::{Node, NodeId, ValueId};
use crate::ops::traits::{Failure, Moved, Movement, index_map_of, traits_of};
use crate::rewrite::cache::CachedMap;
use crate::rewrite::limits::NODES;
use crate::rewrite::place::Place;

/// The most nodes of a tree. Each of the N nodes of a chain is a root, and each composes the maps of all nodes above it; windows of shifted
/// images have 9 nodes, the four corners of a Focus 13.
const MOST_NODES: usize = 16;

/// The most trees of which each is part of the next that are tried after the largest one.
const MOST_SMALL_TREES: usize = 3;

/// A value that the tree computes: its root's results, or a value between two nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Inner {
    pub value: ValueId,
    pub node: NodeId,
}

/// A connected set of movement nodes with a root, and the results of the root as maps over the values that the set reads.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    /// The root first, then the others from the last computed to the first.
    pub nodes: Vec<NodeId>,
    /// The values that other nodes of the tree read.
    pub inner: Vec<Inner>,
    /// The sources of all maps.
    pub leaves: Vec<ValueId>,
    /// The leaves that stand for positions: the result of a Slice of this one axis, between bounds that are computed at run time.
    pub positions: Vec<(ValueId, usize)>,
    /// A map for each result of the root that is read.
    pub results: SmallVec<[(ValueId, Rc<IndexMap>); 1]>,
}

impl Tree {
    /// The root alone.
    ///
    /// # Errors
    /// The positions that the root reads are not known.
    pub fn of_root(place: &Place<'_>, node: &Node) -> Result<Tree, Undecided> {
        let mut tree =
            Tree { nodes: vec![place.id], inner: vec![], leaves: vec![], positions: vec![], results: SmallVec::new() };
        let is_read = |value: &ValueId| !place.model.is_unused(*value);
        let read: SmallVec<[(usize, ValueId); 1]> = node
            .outputs()
            .iter()
            .enumerate()
            .filter_map(|(slot, output)| Some((slot, (*output).filter(is_read)?)))
            .collect();
        let mut found: SmallVec<[(ValueId, Rc<IndexMap>, SmallVec<[ValueId; 2]>); 1]> = SmallVec::new();
        for (slot, value) in read {
            let (map, operands) = tree.add_leaves(place, place.id, slot)?;
            found.push((value, map, operands));
        }
        for (value, map, operands) in found {
            let map = tree.over_leaves(place, map, &operands)?;
            tree.results.push((value, map));
        }
        Ok(tree)
    }

    /// The tree with the node that computes a leaf.
    ///
    /// # Errors
    /// The node computes elements, or a question about dims is not decided.
    fn with_producer_of(&self, place: &Place<'_>, leaf: ValueId, id: NodeId) -> Result<Tree, Undecided> {
        let node = place.model.node(id).ok_or(Undecided::NoMovement)?;
        let slot = node.outputs().iter().position(|output| *output == Some(leaf)).ok_or(Undecided::NoMovement)?;
        let mut tree = self.clone();
        tree.leaves.retain(|&other| other != leaf);
        let (inner, operands) = tree.add_leaves(place, id, slot)?;
        // The sources of a composition are those of its parts, one after the other.
        let at = self.leaves.iter().position(|&other| other == leaf).ok_or(Undecided::Rank)?;
        let (before, after) = (self.leaves.iter().take(at), self.leaves.iter().skip(at.saturating_add(1)));
        let to = tree.numbers_of(before.chain(&operands).chain(after))?;
        let sources = tree.shapes(place)?;
        tree.results.clear();
        for (value, map) in &self.results {
            let (outer, inner) = (Rc::clone(map), Rc::clone(&inner));
            let composition = Composition { outer, at, inner, sources: sources.clone(), to: to.clone() };
            tree.results.push((*value, place.taken.maps.composed(place.scope(), composition)?));
        }
        if !tree.nodes.contains(&id) {
            tree.nodes.push(id);
        }
        tree.inner.push(Inner { value: leaf, node: id });
        Ok(tree)
    }

    /// Adds the operands of a node to the leaves; returns the map of a result, and the operands that are its sources.
    fn add_leaves(
        &mut self,
        place: &Place<'_>,
        id: NodeId,
        slot: usize,
    ) -> Result<(Rc<IndexMap>, SmallVec<[ValueId; 2]>), Undecided> {
        let holds_positions = |tree: &Tree, value: &ValueId| tree.positions.iter().any(|(other, _)| other == value);
        let (map, operands) = match movement_of(place, id, slot) {
            Ok((map, operands)) => {
                // A leaf is data or stands for positions.
                if operands.iter().any(|operand| holds_positions(self, operand)) {
                    return Err(Undecided::RunTime);
                }
                (map, operands)
            }
            Err(reason) => {
                let node = place.model.node(id).ok_or(Undecided::NoMovement)?;
                let (map, axis) = run_time_slice(place, node).ok_or(reason)?;
                let (data, result) = node.input(0).zip(node.output(0)).ok_or(Undecided::Operands)?;
                if holds_positions(self, &data) {
                    return Err(Undecided::RunTime);
                }
                if !self.positions.contains(&(result, axis)) {
                    self.positions.push((result, axis));
                }
                (Rc::new(map), [data, result].into_iter().collect())
            }
        };
        for &operand in &operands {
            if !self.leaves.contains(&operand) {
                self.leaves.push(operand);
            }
        }
        Ok((map, operands))
    }

    /// The shape of a leaf.
    pub fn shape(&self, place: &Place<'_>, leaf: ValueId) -> Option<Shape> {
        let dims = place.shape(leaf)?;
        match self.positions.iter().find(|(value, _)| *value == leaf) {
            Some(&(_, axis)) => Some(std::iter::once(dims.get(axis)?.clone()).collect()),
            None => Some(dims.into()),
        }
    }

    /// The shapes of the leaves.
    fn shapes(&self, place: &Place<'_>) -> Result<SmallVec<[Shape; 2]>, Undecided> {
        self.leaves.iter().map(|&leaf| self.shape(place, leaf).ok_or(Undecided::Operands)).collect()
    }

    /// The numbers of sources among the leaves.
    fn numbers_of<'v>(&self, sources: impl Iterator<Item = &'v ValueId>) -> Result<SmallVec<[usize; 4]>, Undecided> {
        let at = |source: &ValueId| self.leaves.iter().position(|leaf| leaf == source).ok_or(Undecided::Rank);
        sources.map(at).collect()
    }

    /// A map whose source `i` is the value `sources[i]`, over the leaves.
    fn over_leaves(
        &self,
        place: &Place<'_>,
        map: Rc<IndexMap>,
        sources: &[ValueId],
    ) -> Result<Rc<IndexMap>, Undecided> {
        if sources == self.leaves {
            return Ok(map);
        }
        map.with_sources(place.scope(), &self.shapes(place)?, &self.numbers_of(sources.iter())?).map(Rc::new)
    }

    /// The number of nodes outside of the tree that disappear with these nodes: they compute positions for a removed lookup or assignment.
    pub fn freed(&self, place: &Place<'_>, removed: &[NodeId]) -> usize {
        let mut gone = removed.to_vec();
        let by_positions =
            removed.iter().filter_map(|&id| place.model.node(id).filter(|node| is_by_positions(place, node)));
        let mut open: Vec<ValueId> = by_positions.filter_map(|node| node.input(1)).collect();
        while let Some(value) = open.pop().filter(|_| gone.len() < NODES) {
            let is_kept = self.leaves.contains(&value);
            let producer = place.producer_with(value, |_| !is_kept).filter(|(id, _)| !gone.contains(id));
            let Some((id, node)) = producer else { continue };
            if node.outputs().iter().flatten().all(|&output| place.model.is_read_only_by(output, &gone)) {
                gone.push(id);
                open.extend(node.inputs().iter().flatten());
            }
        }
        gone.len().saturating_sub(removed.len())
    }

    /// The nodes that disappear with the root: all their results are read inside the tree only.
    pub fn removed(&self, place: &Place<'_>) -> Vec<NodeId> {
        let mut removed = self.nodes.clone();
        loop {
            let before = removed.len();
            let disappears = |&id: &NodeId| {
                let outputs = place.model.node(id).map(Node::outputs).unwrap_or_default();
                id == place.id
                    || outputs.iter().flatten().all(|&value| {
                        let is_inner = self.inner.iter().any(|inner| inner.value == value);
                        place.model.is_unused(value) || is_inner && place.model.is_read_only_by(value, &removed)
                    })
            };
            let kept: Vec<NodeId> = removed.iter().copied().filter(disappears).collect();
            removed = kept;
            if removed.len() == before {
                return removed;
            }
        }
    }
}

/// Returns `true` if an operand determines the positions that a node reads or writes, and is not a constant.
pub(super) fn is_by_positions(place: &Place<'_>, node: &Node) -> bool {
    let traits = traits_of(place.model, node);
    let is_lookup = traits.index_map.is_some() && matches!(traits.fails, Failure::Unless(_));
    (is_lookup || is_assignment(place, node)) && node.input(1).is_some_and(|indices| place.constant(indices).is_none())
}

/// Returns `true` if a node writes elements of one operand over those of another.
pub(super) fn is_assignment(place: &Place<'_>, node: &Node) -> bool {
    traits_of(place.model, node).index_map.is_some()
        && ["ScatterND", "ScatterElements", "Scatter"].iter().any(|operator| node.is(operator))
}

/// The smallest trees with a root, and the largest one at the end. The root alone is one only if it may be a copy, selects elements, has a construct
/// that the consumer lacks, or if other nodes compute the positions that it reads or writes. A node whose positions are not known, or that does not
/// compose, is not part of any. The error is the first question that was not decided.
///
/// # Errors
/// No tree has two nodes, and the root alone is none.
pub(super) fn trees_above(place: &Place<'_>, node: &Node) -> Result<Vec<Tree>, Undecided> {
    // An operator that computes elements in general may be a copy here, as a Resize to the size of its input; and a selection may select all.
    let is_alone = matches!(traits_of(place.model, node).moves, None | Some(Movement::Selection))
        || is_by_positions(place, node)
        || place.is_replaceable(place.id, true);
    if !is_alone && !has_movement_above(place, node) {
        return Err(Undecided::NoMovement);
    }
    let mut tree = Tree::of_root(place, node)?;
    let mut trees = Vec::new();
    if is_alone {
        trees.push(tree.clone());
    }
    let mut is_listed = true;
    let mut closed: Vec<ValueId> = Vec::new();
    let mut question = Undecided::NoMovement;
    while tree.nodes.len() < MOST_NODES {
        let is_open =
            |leaf: &&ValueId| !closed.contains(leaf) && !tree.positions.iter().any(|(positions, _)| positions == *leaf);
        let open = tree.leaves.iter().filter(is_open);
        // The last computed node first, so that paths meet where they can.
        let producers = open.filter_map(|&leaf| Some((leaf, producer(place, leaf)?)));
        let Some((leaf, id)) = producers.max_by_key(|&(_, id)| place.model.order_of(id)) else { break };
        match tree.with_producer_of(place, leaf, id) {
            Ok(larger) => {
                // The writer decides more about known positions.
                let is_known = !is_listed && is_by_run_time(place, &tree, &larger);
                trees.extend(is_known.then(|| tree.clone()));
                tree = larger;
                is_listed = trees.len() < MOST_SMALL_TREES;
                trees.extend(is_listed.then(|| tree.clone()));
            }
            Err(undecided) => {
                if question == Undecided::NoMovement {
                    question = undecided;
                }
                closed.push(leaf);
            }
        }
    }
    if !is_listed {
        trees.push(tree);
    }
    if trees.is_empty() { Err(question) } else { Ok(trees) }
}

/// Returns `true` if the last node of the larger tree selects by positions that are computed at run time.
fn is_by_run_time(place: &Place<'_>, tree: &Tree, larger: &Tree) -> bool {
    let last = larger.inner.last().and_then(|inner| place.model.node(inner.node));
    larger.positions.len() > tree.positions.len() || last.is_some_and(|node| is_by_positions(place, node))
}

/// Returns `true` if a movement node computes an operand, so that there is something to compose.
fn has_movement_above(place: &Place<'_>, node: &Node) -> bool {
    node.inputs().iter().flatten().any(|&operand| producer(place, operand).is_some())
}

/// The movement node of the same graph that computes a value, if it is no copy.
pub(super) fn producer(place: &Place<'_>, value: ValueId) -> Option<NodeId> {
    let (id, node) = place.producer_with(value, |traits| traits.index_map.is_some())?;
    (!node.is("Identity")).then_some(id)
}

/// The most terms and the most symbols of a dim; min(k, n) has five terms. Sizes of detections have dozens of terms, and proofs about them take longer
/// than all other work. Proofs about one symbol are short.
const MOST_TERMS: usize = 8;
const MOST_TERMS_IN_ONE_SYMBOL: usize = 32;
const MOST_SYMBOLS: usize = 3;

/// Returns the index map of a result over operands of the node.
fn movement_of(
    place: &Place<'_>,
    id: NodeId,
    slot: usize,
) -> Result<(Rc<IndexMap>, SmallVec<[ValueId; 2]>), Undecided> {
    let node = place.model.node(id).ok_or(Undecided::NoMovement)?;
    let operands_of = |slots: &[usize]| -> Result<SmallVec<[ValueId; 2]>, Undecided> {
        slots.iter().map(|&slot| node.input(slot).ok_or(Undecided::Operands)).collect()
    };
    if let Some(known) = place.taken.moved.borrow().get(&(id, slot)).filter(|known| known.inputs == node.inputs()) {
        // The caller depends on the facts that the map was computed from.
        node.inputs().iter().chain(node.outputs()).flatten().for_each(|&value| {
            let _ = place.fact(value);
        });
        return Ok((Rc::clone(&known.map), operands_of(&known.slots)?));
    }
    let Moved { slots, map } = computed_movement(place, id, slot)?;
    let (map, operands) = (Rc::new(map), operands_of(&slots)?);
    let known = CachedMap { inputs: node.inputs().to_vec(), slots: slots.into(), map: Rc::clone(&map) };
    place.taken.moved.borrow_mut().insert((id, slot), known);
    Ok((map, operands))
}

fn computed_movement(place: &Place<'_>, id: NodeId, slot: usize) -> Result<Moved, Undecided> {
    let node = place.model.node(id).ok_or(Undecided::NoMovement)?;
    let output = node.output(slot).ok_or(Undecided::NoMovement)?;
    let dims = place.shape(output).ok_or(Undecided::Operands)?;
    let traits = traits_of(place.model, node);
    let is_symbolic = |dim: &Dim| dim.as_const().is_none();
    let is_long = |dim: &Dim| match dim.symbols().len() {
        0 | 1 => dim.term_count() > MOST_TERMS_IN_ONE_SYMBOL,
        symbols => dim.term_count() > MOST_TERMS || symbols > MOST_SYMBOLS,
    };
    // The map of a layout does not depend on its dims, and other maps do not depend on the dims of kept axes.
    let is_layout = traits.moves == Some(Movement::Layout);
    let from = node.input(0).and_then(|data| place.shape(data)).unwrap_or_default();
    if !is_layout && dims.iter().any(|dim| is_symbolic(dim) && is_long(dim) && !from.contains(dim)) {
        return Err(Undecided::Symbolic);
    }
    if is_layout {
        let data = node.input(0).and_then(|data| place.shape(data)).ok_or(Undecided::Operands)?;
        let (from, to) = (place.scope().product(data), place.scope().product(dims));
        // Equal expressions: a fact may follow from the node itself, as that an axis which a Squeeze removes has size 1. A Squeeze of an empty axis fails.
        if from != to || node.is("Squeeze") && to.is_const(0) {
            return Err(Undecided::Equal(from, to));
        }
    }
    let moved = index_map_of(place.model, place.facts, id, slot, place.opset.version())?;
    // Positions that may be out of range: the rule keeps the failures of a Gather only.
    match traits.fails {
        Failure::Unless(is_inside)
            if moved.slots.contains(&1)
                && !node.is("Gather")
                && !place.view(id).is_some_and(|view| is_inside(&view)) =>
        {
            Err(Undecided::RunTime)
        }
        _ => Ok(moved),
    }
}

/// The map of a Slice of one axis by bounds that are not known, whose second source holds the positions, and the axis.
fn run_time_slice(place: &Place<'_>, node: &Node) -> Option<(IndexMap, usize)> {
    let (scope, [data, bounds @ ..]) = (place.scope(), node.inputs()) else { return None };
    let is_computed = bounds.iter().flatten().any(|&bound| place.constant(bound).is_none());
    let axes = place.read(node).slice_axes().filter(|_| node.is("Slice") && is_computed)?;
    let (from, to) = ((*data).and_then(|data| place.shape(data))?, place.shape(node.output(0)?)?);
    let &[axis] = axes.as_slice() else { return None };
    let last = i64::try_from(from.len()).ok()?;
    let axis = usize::try_from(if axis < 0 { axis.checked_add(last)? } else { axis }).ok()?;
    let mut sizes = from.iter().zip(to).enumerate().filter(|(other, _)| *other != axis);
    let is_kept = from.len() == to.len() && sizes.all(|(_, (from, to))| scope.eq(from, to).is_yes());
    let len = to.get(axis).filter(|_| is_kept)?;
    Some((IndexMap::gather_at_run_time(scope, from, axis, std::slice::from_ref(len)).ok()?, axis))
}
