//! The front of a longer tensor in place of a tensor that is computed again.
//!
//! Law: a tensor computed place by place of `Range(s, n, d)` ([`super::positional`]) is the front of the tensor computed by the same operators of
//! `Range(s, m, d)` where `n ≤ m`.

use crate::rewrite::miss::{Miss, ensure};
use crate::rewrite::rule::miss;
use rustc_hash::{FxHashMap, FxHashSet};

use super::FRONT_RULES as RULES;
use super::positional::{Cone, alike, cone, is_exact};
use crate::dim::Dim;
use crate::ir::{Edit, Node, NodeId, ValueId};
use crate::ops::traits::traits_of;
use crate::rewrite::build::{Build, axes};
use crate::rewrite::limits::DEPTH;
use crate::rewrite::place::Place;
use crate::tensor::Tensor;

/// The most ranges that are looked at for a longer one. Without it, N ranges take N² comparisons.
const MAX_RANGES: usize = 16;

/// The most nodes that are looked at to tell that a tensor does not depend on another. Without it, each of N tables follows the whole model.
const MAX_ABOVE: usize = 1 << 14;

/// A tensor that is the front of another along some axes, with its sizes along these axes.
struct Front {
    root: ValueId,
    ends: Vec<(usize, Dim)>,
}

impl Front {
    fn sizes(&self) -> Vec<Dim> {
        self.ends.iter().map(|(_, end)| end.clone()).collect()
    }
}

/// Replaces a function of positions by the front of the same function of more positions.
pub(super) fn of_longer(place: &Place<'_>) -> Result<Edit, Miss> {
    let cone = cone(place).ok_or(miss!("by-place"))?;
    let start = place.operand(0)?;
    let ranges = place.model.users(start);
    ensure(ranges.len() <= MAX_RANGES.saturating_mul(4), miss!("no-longer"))?;
    ensure(is_exact(place, &cone.nodes), miss!("no-rounding"))?;
    let mut miss = miss!("no-longer");
    let others = ranges.iter().map(|&(id, _)| id).filter(|&id| id != place.id && !cone.nodes.contains(&id));
    for other in others.take(MAX_RANGES) {
        let is_beside = |node: &&Node| node.is("Range") && Some(node.graph()) == place.graph();
        let Some(first) = place.model.node(other).filter(is_beside).and_then(|node| node.output(0)) else { continue };
        let longer = |&root: &ValueId| {
            let source = path(place, &cone, root).and_then(|path| follow(place, first, &path));
            let source = source.filter(|&source| alike(place, root, source, DEPTH));
            let source = source.ok_or(miss!("alike").of(root))?;
            let front = front_of(place, root, source).ok_or(miss!("no-longer").of(root))?;
            Ok((front, source))
        };
        let found: Result<Vec<(Front, ValueId)>, Miss> = cone.roots.iter().map(longer).collect();
        let (fronts, sources): (Vec<Front>, Vec<ValueId>) = match found {
            Ok(found) => found.into_iter().unzip(),
            Err(other) => {
                miss = other;
                continue;
            }
        };
        if !pays(place, &cone, &fronts) {
            miss = miss!("pays");
        } else if !sources.iter().all(|&source| is_apart(place, source, &cone.nodes)) {
            miss = miss!("no-circle");
        } else {
            return cut(place, &cone.nodes, &fronts, &sources);
        }
    }
    Err(miss)
}

/// Returns `true` if the edit removes more nodes than it adds. It adds a Slice for each front and the nodes of each vector of sizes. It removes the
/// nodes that compute the fronts, and those that compute only limits of their ranges.
fn pays(place: &Place<'_>, cone: &Cone, fronts: &[Front]) -> bool {
    let is_root = |value: ValueId| fronts.iter().any(|front| front.root == value);
    let mut gone: Vec<NodeId> = Vec::new();
    for &id in cone.nodes.iter().rev() {
        let Some(output) = place.model.node(id).and_then(|node| node.output(0)) else { continue };
        // Another node measures the same size in the end.
        let is_left = |&(reader, _): &(NodeId, usize)| gone.contains(&reader) || measures(place, reader);
        if is_root(output) || !place.model.is_named(output) && place.model.users(output).iter().all(is_left) {
            gone.push(id);
        }
    }
    let ranges = gone.iter().filter_map(|&id| place.model.node(id)).filter(|node| node.is("Range"));
    let limits: FxHashSet<ValueId> = ranges.filter_map(|node| node.input(1)).collect();
    let is_spared =
        |&&limit: &&ValueId| place.model.value(limit).producer().is_some() && place.model.is_read_only_by(limit, &gone);
    let spared = limits.iter().filter(is_spared).count();
    let is_open = |ends: &&Vec<Dim>| ends.iter().any(|end| end.as_const().is_none());
    let lists: FxHashSet<Vec<Dim>> = fronts.iter().map(Front::sizes).collect();
    fronts.len().saturating_add(lists.iter().filter(is_open).count()) < gone.len().saturating_add(spared)
}

/// Returns `true` if a node computes only the sizes of its operand.
fn measures(place: &Place<'_>, id: NodeId) -> bool {
    place.model.node(id).is_some_and(|node| traits_of(place.model, node).of_shape)
}

/// Vectors of sizes that an edit makes, each once.
struct Vectors<'a> {
    known: FxHashMap<Vec<Dim>, ValueId>,
    /// The nodes that the edit may remove: no vector reads their results.
    nodes: &'a [NodeId],
}

impl Vectors<'_> {
    /// A vector of these numbers, built from scalars of the graph.
    fn of(&mut self, place: &Place<'_>, edit: &mut Edit, like: ValueId, numbers: Vec<Dim>) -> Option<ValueId> {
        if let Some(&known) = self.known.get(&numbers) {
            return Some(known);
        }
        let made = if let Some(numbers) = numbers.iter().map(Dim::as_const).collect::<Option<Vec<i64>>>() {
            edit.constant(like, "bounds", Tensor::vector(numbers))
        } else if let [number] = numbers.as_slice() {
            let scalar = place.taken.scalar(place, number).filter(|&scalar| is_apart(place, scalar, self.nodes))?;
            let vector = edit.new_value(like, "size");
            let node = place.build(edit, vector).unsqueeze(scalar, vec![0]);
            edit.insert.push(node.output(vector));
            vector
        } else {
            let parts: Vec<ValueId> =
                numbers.iter().map(|number| self.of(place, edit, like, vec![number.clone()])).collect::<Option<_>>()?;
            let vector = edit.new_value(like, "sizes");
            edit.insert.push(Build::concat(parts, 0usize).output(vector));
            vector
        };
        self.known.insert(numbers, made);
        Some(made)
    }
}

/// Cuts each front out of its source, in place of the nodes that compute it.
fn cut(place: &Place<'_>, nodes: &[NodeId], fronts: &[Front], sources: &[ValueId]) -> Result<Edit, Miss> {
    let mut edit = place.begin()?;
    let mut vectors = Vectors { known: FxHashMap::default(), nodes };
    for (front, &source) in fronts.iter().zip(sources) {
        let zeros = vec![Dim::constant(0); front.ends.len()];
        let bounds = [zeros, front.sizes()].map(|list| vectors.of(place, &mut edit, front.root, list));
        let [Some(starts), Some(ends)] = bounds else { return Err(miss!("no-circle").of(front.root)) };
        let along = axes(front.ends.iter().map(|(axis, _)| *axis));
        let mut build = place.build(&mut edit, front.root);
        let slice = build.slice_between(source, starts, ends, along, vec![1; front.ends.len()]);
        edit.insert.push(slice.ok_or(Miss::EXPRESSIBLE)?.output(front.root));
        edit.remove.push(place.model.value(front.root).producer().ok_or(Miss::ROOT)?);
    }
    Ok(edit)
}

/// The way down a cone from its Range to a root: each reader's operator and the operand it reads.
fn path(place: &Place<'_>, cone: &Cone, root: ValueId) -> Option<Vec<(NodeId, usize)>> {
    let first = place.output(0)?;
    let mut path = Vec::new();
    let mut at = root;
    while at != first {
        let id = place.model.value(at).producer().filter(|_| path.len() < DEPTH)?;
        let inputs = place.model.node(id)?.inputs();
        let depends = |value: ValueId| value == first || reaches(place, cone, value, first);
        let slot = inputs.iter().position(|input| input.is_some_and(depends))?;
        path.push((id, slot));
        at = (*inputs.get(slot)?)?;
    }
    path.reverse();
    Some(path)
}

/// Whether a value of a cone is computed of another.
fn reaches(place: &Place<'_>, cone: &Cone, value: ValueId, first: ValueId) -> bool {
    let mut from: FxHashSet<ValueId> = FxHashSet::default();
    from.insert(first);
    for &id in &cone.nodes {
        let Some(node) = place.model.node(id) else { continue };
        if node.inputs().iter().flatten().any(|input| from.contains(input)) {
            from.extend(node.outputs().iter().flatten());
        }
    }
    from.contains(&value)
}

/// What readers of the same operators compute of another value.
fn follow(place: &Place<'_>, first: ValueId, path: &[(NodeId, usize)]) -> Option<ValueId> {
    let mut at = first;
    for &(id, slot) in path {
        let model = place.model.node(id)?;
        let readers = place.model.users(at);
        at = readers.into_iter().find_map(|(reader, own)| {
            let node = place.model.node(reader).filter(|node| own == slot && Some(node.graph()) == place.graph())?;
            let same = node.op_type == model.op_type && node.same_attributes(model);
            node.output(0).filter(|_| same)
        })?;
    }
    Some(at)
}

/// The sizes of a value along the axes where another is longer, if it is nowhere shorter.
fn front_of(place: &Place<'_>, root: ValueId, source: ValueId) -> Option<Front> {
    let (own, whole) = (place.shape(root)?, place.shape(source)?);
    let mut ends = Vec::new();
    for (axis, (size, most)) in own.iter().zip(whole).enumerate() {
        if place.scope().eq(size, most).is_yes() {
            continue;
        }
        if !place.scope().le(size, most).is_yes() {
            return None;
        }
        ends.push((axis, size.clone()));
    }
    (own.len() == whole.len() && !ends.is_empty()).then_some(Front { root, ends })
}

/// Whether a value is computed without any of these nodes.
fn is_apart(place: &Place<'_>, value: ValueId, nodes: &[NodeId]) -> bool {
    let mut waiting = vec![value];
    let mut seen: FxHashSet<NodeId> = FxHashSet::default();
    while let Some(value) = waiting.pop() {
        let Some(id) = place.model.value(value).producer() else { continue };
        if nodes.contains(&id) || seen.len() >= MAX_ABOVE {
            return false;
        }
        if !seen.insert(id) {
            continue;
        }
        let Some(node) = place.model.node(id) else { return false };
        waiting.extend(node.inputs().iter().flatten());
        waiting.extend(node.subgraphs().flat_map(|graph| place.model.captures(graph)));
    }
    true
}
