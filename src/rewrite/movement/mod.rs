//! Trees of data movement, written with fewer nodes.
//!
//! Law: movements compose. `map(f ∘ g) = map(f) ∘ map(g)`, where the map of a node says which element of which operand each element of
//! the result is ([`crate::index_map`]). Nodes that compute equal maps compute equal tensors.
//!
//! At each movement node the rule composes the maps of the movement nodes above it, the largest tree first, and writes the composed map with fewer
//! nodes than the edit removes. A single node is never composed.

mod cost;
mod failures;
mod spell;
#[cfg(test)]
mod tests;
mod tree;
pub(super) mod weights;

use std::rc::Rc;

use smallvec::SmallVec;

use self::cost::{copies_fewer_elements, copying_nodes, has_equal_operators, named_axes, selects_fewer_axes};
use self::failures::{keeps_lookups, look_up, positions_looked_up, positions_written};
use self::spell::{Spelling, transpose_ones};
use self::tree::{Tree, is_assignment, is_by_positions, trees_above};
use super::index::uniform;
use super::introduced::steps_backwards;
use super::limits::{ADDED_FOR_LITTLE, READERS};
use super::miss::{Miss, ensure};
use super::place::Place;
use super::rule::{Rule, miss};
use crate::consumers::Construct;
use crate::dim::Dim;
use crate::index_map::{Allowed, Movement, Operand, Program, Shape, Step, Undecided};
use crate::ir::{Edit, Node, NodeId, ValueId};
use crate::ops::traits::{MOVED, Traits, traits_of};
use crate::ops::{self, operator};
use crate::tensor::{DType, Tensor};

pub(super) const RULES: &[Rule] = &[Rule {
    name: "movement",
    law: "m₁(m₂(… mₙ(x))) = w₁(… wₖ(x)) with k < n, where all mᵢ and wᵢ only move elements",
    sentence: "Merges chains and trees of data movement operators into fewer nodes.",
    premises: &[
        ("decided", "for all sizes, the index function of each node is known, and the index functions can be composed"),
        ("no-sizes", "the result is not a vector of dims, because the pass size-chain plans these vectors"),
        (
            "shorter",
            "the composed index function can be written with fewer nodes than the edit removes, if a ScatterND or ScatterElements counts as five nodes, and a node that the consumer lacks (`--avoid`) as seventeen. An equal number of nodes suffices if fewer nodes copy elements, a Slice names fewer axes, a node reads an operand of a Concat instead of the Concat, or the same operators in another order copy fewer elements",
        ),
        (
            "of-its-kind",
            "no new Transpose has a higher rank than a removed one, unless it has at most 6 axes, and replaces two Transposes, or none and moves contiguous rows of at least 8 elements. A new Gather has at most as many indices as the removed Gathers; or it replaces a Slice, Split, Concat or Tile, and has at most 128 indices or moves contiguous rows of at least 8 elements; or the edit saves two nodes and the Gather moves such rows",
        ),
        (
            "no-sibling",
            "if two nodes or more are written, or the data is a part of a Split that is kept, no other Slice or Gather selects from the same data, because all of them may be replaced by one Split",
        ),
        (
            "no-strings",
            "no new Gather reads a string tensor, because ONNX Runtime's Gather returns wrong elements for strings",
        ),
        (
            "no-embedding",
            "no new Gather computes an operand of an Add, because optimizers take the two for an embedding. A Reshape between them is allowed, if it does not cost a node more than the edit removes",
        ),
        (
            "fails-alike",
            "if the edit removes a Gather of constant positions of an axis with symbolic size, or a Squeeze of the only position that a Slice selects from this axis, it writes a Gather of the same positions, which fails for the same sizes. A removed Gather by computed indices that may be out of range is written again with all of these indices",
        ),
        (
            "no-convolution",
            "the result of a new Gather does not reach a Conv with group = 1, directly or through element-wise operators and grouped Convs, because OpenVINO would permute the weights of this Conv wrongly",
        ),
    ],
    exact: true,
    operators: MOVED,
    apply: movement,
}];

/// The smallest rank of a Transpose for which fewer axes are better at an equal number of nodes.
const LOWERED_RANK: usize = 5;

/// The most indices of a Gather of short rows: a Slice or a Tile has about as much work for each row.
const MOST_INDICES: usize = 128;

/// The highest rank of a Transpose that replaces others of a lower rank. Unfolding images has this rank.
const MOST_RANK: usize = 6;

/// The number of nodes that may replace an assignment in addition to one: an assignment copies the data, writes element by element, and holds the
/// position of each element. Few consumers have kernels for it.
const ASSIGNMENT_NODES: usize = 4;

/// The number of nodes that may replace a node with a construct that the consumer lacks, in addition to one.
const AVOIDED_NODES: usize = 16;

fn movement(place: &Place<'_>) -> Result<Edit, Miss> {
    let node = place.root()?;
    // A copy is removed by its own rule, which knows when it is needed.
    ensure(!node.is("Identity"), Miss::ROOT)?;
    let trees = match trees_above(place, node) {
        Ok(trees) => trees,
        Err(Undecided::NoMovement) => return Err(Miss::ROOT),
        Err(_) => return Err(Miss { is_open: true, ..miss!("decided") }),
    };
    let output = place.result()?;
    let is_scalar = place.shape(output).is_some_and(<[Dim]>::is_empty);
    ensure(is_scalar || !place.holds_dims(output), miss!("no-sizes").of(output))?;
    let mut miss = miss!("shorter");
    // The largest tree, then the smallest ones.
    let (rest, largest) = trees.split_at_checked(trees.len().saturating_sub(1)).unwrap_or_default();
    for tree in largest.iter().chain(rest) {
        match shorter(place, tree) {
            Ok(edit) => return Ok(edit),
            Err(other) if other.premise != miss.premise => miss = other,
            Err(_) => {}
        }
    }
    Err(miss)
}

/// The edit that writes a tree with fewer nodes, or with as many better ones.
fn shorter(place: &Place<'_>, tree: &Tree) -> Result<Edit, Miss> {
    let removed = tree.removed(place);
    let before = Forms::of(place, tree, &removed);
    let mut miss = miss!("shorter");
    let worth = |id: &NodeId| match () {
        () if place.is_replaceable(*id, before.readable_rank.is_some()) => AVOIDED_NODES,
        () if writes_elements(place, *id) => ASSIGNMENT_NODES,
        () => 0,
    };
    let more: usize = removed.iter().map(worth).sum();
    let freed = tree.freed(place, &removed).saturating_add(more);
    let fewer = removed.len().saturating_add(freed).checked_sub(1).ok_or(miss)?;
    // A Gather only where nothing else is as short.
    let choices: &[bool] = match (before.gathers, before.cuts || before.avoided) {
        _ if place.lacks("Gather") => &[false],
        (true, _) => &[true],
        (false, true) => &[false, true],
        (false, false) => &[false],
    };
    for &gather in choices {
        match before.edit(place, tree, (fewer, gather), &removed) {
            Ok((edit, _)) => return Ok(edit),
            Err(other) if other.premise != miss.premise => miss = other,
            Err(_) => {}
        }
    }
    let lowers = before.transposes > 0 && before.rank >= LOWERED_RANK;
    let is_passed = is_passed_by_all(place, tree);
    let named = named_axes(place, tree);
    let copies = removed.iter().filter(|&&id| !is_layout_node(place, id)).count();
    ensure(lowers || is_passed || named.is_some() || copies > 0 && (tree.nodes.len() > 1 || before.gathers), miss)?;
    let (edit, programs) = before.edit(place, tree, (removed.len(), before.gathers), &removed)?;
    let is_better = lowers && before.are_lower(&programs)
        || is_passed && is_same_kind(place, tree, &edit)
        || named.is_some_and(|named| selects_fewer_axes(&programs, named))
        || copying_nodes(&programs) < copies
        // A Slice that changes its place has a new dim, which no later fact compares with the old one.
        || tree.positions.is_empty()
            && has_equal_operators(place, &removed, &edit)
            && copies_fewer_elements(place, &removed, &programs);
    ensure(is_better, miss)?;
    Ok(edit)
}

/// Returns `true` if a node is an assignment that is better written without one. A Where assigns one number by a mask, which takes one node.
fn writes_elements(place: &Place<'_>, id: NodeId) -> bool {
    let node = place.model.node(id).filter(|node| is_assignment(place, node));
    node.is_some_and(|node| {
        !is_by_positions(place, node) || node.input(2).is_some_and(|updates| uniform(place, updates).is_none())
    })
}

/// The program of each result of the root.
type Programs = SmallVec<[Program; 1]>;

/// Programs that have at most the allowed number of nodes together.
fn written(place: &Place<'_>, tree: &Tree, allowed: Allowed) -> Option<Programs> {
    let mut left = allowed.nodes;
    let mut programs = Programs::new();
    for (_, map) in &tree.results {
        let program = place.taken.maps.program(place.scope(), map, &Allowed { nodes: left, ..allowed })?;
        left = left.checked_sub(program.nodes())?;
        programs.push(program);
    }
    Some(programs)
}

/// Returns `true` if the tree is a root and a node above it that may be passed by: the node above is a Concat; or both keep all elements in order; or both
/// have one operator, or the node above is an assignment, and all readers of the node above are movement nodes, each of which may pass by it.
fn is_passed_by_all(place: &Place<'_>, tree: &Tree) -> bool {
    let ([inner], [root, above]) = (tree.inner.as_slice(), tree.nodes.as_slice()) else { return false };
    let traits = |id: NodeId| place.model.node(id).map_or(&Traits::NONE, |node| traits_of(place.model, node));
    let name = |id: NodeId| place.model.node(id).map(|node| &node.op_type);
    let are_layouts = [*root, *above].into_iter().all(|id| is_layout(traits(id)));
    let is_concat = |id: NodeId| place.model.node(id).is_some_and(|node| node.is("Concat"));
    let is_assigned = place.model.node(*above).is_some_and(|node| is_assignment(place, node));
    are_layouts
        || is_concat(*above) && !is_concat(*root)
        || (name(*root) == name(*above) || is_assigned)
            && !place.model.is_named(inner.value)
            && place.model.users(inner.value).into_iter().all(|(id, slot)| slot == 0 && traits(id).index_map.is_some())
}

/// Returns `true` if the tree selects from a part of a Split that the edit keeps, as does a Slice or Gather outside of the tree.
fn selects_from_kept_split(place: &Place<'_>, tree: &Tree, removed: &[NodeId]) -> bool {
    let kept = tree.inner.iter().filter(|inner| !removed.contains(&inner.node));
    let mut parts = kept.filter(|inner| place.model.node(inner.node).is_some_and(|node| node.is("Split")));
    parts.any(|part| is_selected_outside(place, tree, part.value))
}

/// Returns `true` if a Slice or Gather outside of the tree selects from a value.
fn is_selected_outside(place: &Place<'_>, tree: &Tree, value: ValueId) -> bool {
    let selects = |id: NodeId| place.model.node(id).is_some_and(|node| node.is("Slice") || node.is("Gather"));
    let is_outside = |(id, slot): (NodeId, usize)| slot == 0 && !tree.nodes.contains(&id) && selects(id);
    !place.model.has_more_readers(value, READERS) && place.model.users(value).into_iter().any(is_outside)
}

/// Returns `true` if a Slice or Gather outside of the tree selects from the data of one inside.
fn has_sibling(place: &Place<'_>, tree: &Tree) -> bool {
    let nodes = tree.nodes.iter().filter_map(|&id| place.model.node(id));
    let mut data = nodes.filter(|node| node.is("Slice") || node.is("Gather")).filter_map(|node| node.input(0));
    data.any(|data| is_selected_outside(place, tree, data))
}

/// Returns `true` if an edit writes one node of the kind of all nodes of the tree but a Concat or an assignment.
fn is_same_kind(place: &Place<'_>, tree: &Tree, edit: &Edit) -> bool {
    let [written] = edit.insert.as_slice() else { return false };
    let is_written_layout = operator("", &written.op_type).is_some_and(|operator| is_layout(&operator.traits));
    let is_passed = |node: &Node| is_assignment(place, node) || node.is("Concat") && written.op_type != "Concat";
    let mut nodes = tree.nodes.iter().filter_map(|&id| place.model.node(id)).filter(|node| !is_passed(node));
    nodes.all(|node| node.op_type == written.op_type || is_written_layout && is_layout(traits_of(place.model, node)))
}

fn is_layout_node(place: &Place<'_>, id: NodeId) -> bool {
    place.model.node(id).is_some_and(|node| is_layout(traits_of(place.model, node)))
}

fn is_layout(traits: &Traits) -> bool {
    traits.moves == Some(ops::traits::Movement::Layout)
}

/// The forms of the nodes of a tree, which the written nodes may have too.
struct Forms {
    gathers: bool,
    /// The indices of all Gathers by constants.
    indices: usize,
    /// `true` if a node selects, joins or repeats elements, and is removed if the tree has a Transpose: a Gather of single rows is no better than a Transpose.
    cuts: bool,
    steps_backwards: bool,
    blocks: bool,
    /// The highest rank of a Transpose, or of its values if there is none.
    rank: usize,
    transposes: usize,
    /// `true` if the edit removes a node that the consumer of the result lacks. Any form is better.
    avoided: bool,
    /// The most axes of a tensor that the consumer reads, if no result of the tree has more.
    readable_rank: Option<usize>,
    /// The number of positions that removed nodes look up on axes that may be too short.
    open_positions: usize,
}

impl Forms {
    fn of(place: &Place<'_>, tree: &Tree, removed: &[NodeId]) -> Forms {
        let nodes = || tree.nodes.iter().filter_map(|&id| Some((id, place.model.node(id)?)));
        let is_any = |operators: &[&str]| nodes().any(|(_, node)| operators.iter().any(|operator| node.is(operator)));
        let is_cut = |node: &Node| ["Slice", "Split", "Concat", "Tile"].iter().any(|operator| node.is(operator));
        let rank = |value: ValueId| place.shape(value).map_or(0, <[_]>::len);
        let transposes = nodes().filter(|(_, node)| node.is("Transpose")).count();
        let ranked = nodes().filter(|(_, node)| transposes == 0 || node.is("Transpose"));
        let ranks = ranked.flat_map(|(_, node)| node.outputs().iter().flatten().copied()).map(rank);
        let readable_rank =
            place.most_rank().filter(|&most| tree.results.iter().all(|&(value, _)| rank(value) <= most));
        Forms {
            gathers: is_any(&["Gather", "GatherElements", "GatherND"]),
            indices: nodes().filter(|(_, node)| node.is("Gather")).fold(0, |sum: usize, (_, node)| {
                let indices = node.input(1).and_then(|indices| place.constant(indices));
                sum.saturating_add(indices.map_or(0, Tensor::len))
            }),
            cuts: nodes().any(|(id, node)| (transposes == 0 || removed.contains(&id)) && is_cut(node)),
            steps_backwards: nodes().any(|(id, node)| node.is("Slice") && steps_backwards(place, id)),
            blocks: is_any(&["SpaceToDepth", "DepthToSpace"]),
            rank: ranks.max().unwrap_or(0),
            transposes,
            avoided: removed.iter().any(|&id| place.is_replaceable(id, readable_rank.is_some())),
            readable_rank,
            open_positions: positions_looked_up(place, tree, removed),
        }
    }

    fn allowed(&self, place: &Place<'_>, nodes: usize, gather: bool) -> Allowed {
        let dtype = place.output(0).and_then(|output| place.dtype(output));
        let is_common = matches!(dtype, Some(DType::Float | DType::Double));
        let (elements, rows) = match () {
            () if self.avoided => (usize::MAX, usize::MAX),
            () if self.cuts || self.gathers => (self.indices.max(MOST_INDICES), usize::MAX),
            () => (self.indices, self.indices),
        };
        let without = place.lacked_movements();
        let negative_step = self.steps_backwards && !place.avoided.contains(&Construct::NegativeSteps);
        Allowed { gather, negative_step, blocks: self.blocks || is_common, elements, rows, without, nodes }
    }

    /// Checks that no written node has a form that is worse than those of the nodes it replaces.
    fn permit(&self, place: &Place<'_>, tree: &Tree, removed: usize, programs: &Programs) -> Result<(), Miss> {
        let is_transpose = |step: &&Step| matches!(step, Step::Movement(Movement::Transpose(_), _));
        let transposes = programs.iter().flat_map(|program| &program.steps).filter(is_transpose).count();
        let nodes = programs.iter().map(Program::nodes).sum::<usize>();
        for (step, result) in programs.iter().flat_map(|program| program.steps.iter().zip(&program.shapes)) {
            ensure(self.readable_rank.is_none_or(|most| result.len() <= most), miss!("of-its-kind"))?;
            let Step::Movement(movement, _) = step else { continue };
            match movement {
                Movement::Transpose(perm) => {
                    let moves_rows = || {
                        let last = result.last();
                        let is_row =
                            last.is_some_and(|size| size.as_const().is_none_or(|size| size >= Allowed::FEWEST_IN_ROW));
                        is_row && perm.last().copied() == perm.len().checked_sub(1)
                    };
                    let may_be_higher = || self.transposes > 1 || self.transposes == 0 && moves_rows();
                    let is_low = perm.len() <= self.rank.max(2) || perm.len() <= MOST_RANK && may_be_higher();
                    ensure(is_low || self.avoided, miss!("of-its-kind"))?;
                }
                Movement::Gather { axis, shape, indices } => {
                    ensure(place.output(0).is_some_and(|result| place.may_be_looked_up(result)), miss!("no-strings"))?;
                    if indices.len() <= self.indices {
                        continue;
                    }
                    // A Gather of single elements is no better than the Transpose that it replaces.
                    let keeps_transposes = transposes >= self.transposes || self.indices == 0;
                    let moves_rows = || Allowed::moves_rows(*axis, shape.len(), result);
                    let saves_copies = || removed >= nodes.saturating_add(2) && moves_rows();
                    let may_grow = self.avoided || self.cuts || self.gathers && (keeps_transposes || saves_copies());
                    ensure(may_grow, miss!("of-its-kind"))?;
                    let results = tree.results.iter().map(|&(value, _)| value);
                    let mut turned = results.filter(|&value| turns_weights(place, value));
                    ensure(turned.next().is_none(), miss!("no-convolution"))?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The edit that replaces the tree by programs of at most this many nodes.
    fn edit(
        &self,
        place: &Place<'_>,
        tree: &Tree,
        (nodes, gather): (usize, bool),
        removed: &[NodeId],
    ) -> Result<(Edit, Programs), Miss> {
        let allowed = self.allowed(place, nodes, gather);
        let mut programs = written(place, tree, allowed).ok_or(miss!("shorter"))?;
        let keep_failures = |programs: &mut Programs| {
            let programs = programs.iter_mut().filter(|_| self.open_positions > 0);
            programs.for_each(|program| look_up(place, tree, program));
        };
        keep_failures(&mut programs);
        if is_embedding(place, &programs) {
            programs = apart_from_sum(place, tree, allowed).ok_or(miss!("no-embedding"))?;
            keep_failures(&mut programs);
        }
        programs.iter_mut().for_each(|program| transpose_ones(place, tree, program));
        let fails_alike = self.open_positions == 0 || positions_written(place, tree, &programs) >= self.open_positions;
        ensure(fails_alike && keeps_lookups(place, tree, removed, &programs), miss!("fails-alike"))?;
        let nodes = programs.iter().map(Program::nodes).sum::<usize>();
        let is_alone = !selects_from_kept_split(place, tree, removed) && (nodes <= 1 || !has_sibling(place, tree));
        ensure(is_alone, miss!("no-sibling"))?;
        self.permit(place, tree, removed.len(), &programs)?;
        let edit = Spelling::new(place, tree).edit(&programs, removed)?;
        let added = edit.constants.iter().map(|(_, tensor)| tensor.byte_len()).fold(0, usize::saturating_add);
        ensure(added <= place.allowance(removed).saturating_add(ADDED_FOR_LITTLE), Miss::LARGER)?;
        Ok((edit, programs))
    }

    /// Returns `true` if all Transposes have a lower rank than before, and nothing else but Reshapes is written.
    fn are_lower(&self, programs: &Programs) -> bool {
        let is_lower = |step: &Step| match step {
            Step::Movement(Movement::Transpose(perm), _) => perm.len() < self.rank,
            Step::Movement(Movement::Reshape(_), _) => true,
            _ => false,
        };
        programs.iter().flat_map(|program| &program.steps).all(is_lower)
    }
}

/// Returns `true` if the last node of a program is a Gather whose result an Add reads, and the root is none: ONNX Runtime's transformer optimizer takes
/// both for an embedding.
fn is_embedding(place: &Place<'_>, programs: &Programs) -> bool {
    let is_gather =
        |program: &Program| matches!(program.steps.last(), Some(Step::Movement(Movement::Gather { .. }, _)));
    let is_added = |value: ValueId| {
        let mut readers = place.model.users(value).into_iter().filter_map(|(id, _)| place.model.node(id));
        readers.any(|node| node.is("Add"))
    };
    programs.iter().any(is_gather)
        && !place.node().is_some_and(|node| node.is("Gather"))
        && place.output(0).is_some_and(is_added)
}

/// The program of the only result, with a Reshape in the end.
fn apart_from_sum(place: &Place<'_>, tree: &Tree, allowed: Allowed) -> Option<Programs> {
    let [(_, map)] = tree.results.as_slice() else { return None };
    let (last, before) = map.result().split_last()?;
    let apart: Shape = before.iter().chain([&Dim::constant(1), last]).cloned().collect();
    let allowed = Allowed { nodes: allowed.nodes.checked_sub(1)?, ..allowed };
    let mut program = place.taken.maps.program(place.scope(), &Rc::new(map.reshaped(&apart)), &allowed)?;
    program.steps.push(Step::Movement(Movement::Reshape(map.result().into()), vec![program.result]));
    program.shapes.push(map.result().into());
    program.result = Operand::Step(program.steps.len().checked_sub(1)?);
    Some(std::iter::once(program).collect())
}

/// The most values that are followed to a convolution.
const FOLLOWED: usize = 32;

/// Returns `true` if OpenVINO (2026.4) would permute the weights of a convolution instead of the channels of a value. The search follows more than
/// OpenVINO does: that requires all readers to be such, and single numbers or one for each channel as other operands.
pub(super) fn turns_weights(place: &Place<'_>, value: ValueId) -> bool {
    let (mut values, mut at) = (vec![value], 0);
    while let Some(&value) = values.get(at) {
        for (id, slot) in place.model.users(value) {
            let Some(node) = place.model.node(id) else { continue };
            let is_grouped = || node.int("group", 1) != Some(1);
            if node.is("Conv") && slot == 0 && !is_grouped() || values.len() > FOLLOWED {
                return true;
            }
            if node.is("Conv") && slot == 0 || traits_of(place.model, node).pointwise.is_some() {
                values.extend(node.output(0).filter(|result| !values.contains(result)));
            }
        }
        at += 1;
    }
    false
}
