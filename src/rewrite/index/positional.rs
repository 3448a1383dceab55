//! Finds tensors whose elements depend on their position, but not on the number of positions.
//!
//! Law: a Range with constant start and step has `s + i·d` at position `i`, for any length. One that counts up from a size `p` has the
//! element of one that counts from 0 at position `p + i`. One that counts down from a size `p ≤ P` has the element of one that counts down
//! from `P` at position `P − p + i`. A position-wise function of such Ranges depends on the position only. So the shorter of two equal
//! functions is the front of the longer.

use rustc_hash::FxHashMap;

use crate::dim::Dim;
use crate::ir::{Node, NodeId, Scalar, ValueId};
use crate::ops::traits::{Movement, Operands, Variation, traits_of};
use crate::rewrite::limits::{DEPTH, NODES};
use crate::rewrite::place::Place;
use crate::tensor::DType;

/// The limit of sizes from which Ranges count down: whole numbers up to twice as much are exact in floats, larger ones are rounded, and the
/// table would differ.
const MAX_EXACT: i64 = 1 << 23;

/// The nodes between a Range and the tensors computed from it position by position.
#[derive(Default)]
pub(super) struct Cone {
    /// The nodes, including the Ranges, operands first.
    pub nodes: Vec<NodeId>,
    /// The results with other consumers.
    pub roots: Vec<ValueId>,
    /// A cache: `true` if a value depends on positions only.
    known: FxHashMap<ValueId, bool>,
}

/// Returns the current Range with all its position-wise consumers. `None` if a result is a graph output, or if there are too many nodes.
pub(super) fn cone(place: &Place<'_>) -> Option<Cone> {
    let mut cone = Cone::default();
    if !is_open_range(place, place.node()?) {
        return None;
    }
    cone.follow(place, place.output(0)?)?;
    (!cone.roots.is_empty()).then_some(cone)
}

/// The same, including the consumers of further Ranges that these nodes read.
pub(super) fn wide_cone(place: &Place<'_>) -> Option<Cone> {
    let mut cone = cone(place)?;
    let mut at = 0;
    while let Some(&id) = cone.nodes.get(at) {
        at += 1;
        let node = place.model.node(id)?;
        if node.is("Range") && id != place.id {
            cone.follow(place, node.output(0)?)?;
        }
    }
    Some(cone)
}

/// Returns `true` for a Range of symbolic length with constant start and step, or one that counts up from a size or down from it.
fn is_open_range(place: &Place<'_>, node: &Node) -> bool {
    if descent(place, node).is_some() {
        return true;
    }
    let number = |slot| node.input(slot).is_some_and(|input| place.constant(input).is_some());
    let begins = number(0) || origin(place, node).is_some();
    let is_open = node.input(1).is_some_and(|limit| place.constant(limit).is_none());
    let counts = node.output(0).and_then(|output| place.dtype(output)).is_some_and(DType::is_integer);
    node.is("Range") && is_open && counts && begins && number(2)
}

/// Returns the size from which a Range counts up with step 1; `None` for a constant start.
pub(super) fn origin(place: &Place<'_>, node: &Node) -> Option<Dim> {
    let [start] = <[Dim; 1]>::try_from(place.fact(node.input(0)?)?.ints()?).ok()?;
    let by_one = place.constant(node.input(2)?)?.to_i64s()? == [1];
    let is_size = start.as_const().is_none() && place.scope().ge(&start, &Dim::constant(0)).is_yes();
    (by_one && is_size).then_some(start)
}

/// A Range that counts down.
pub(super) struct Descent {
    /// The size from which it counts down with step 1.
    pub from: Dim,
    /// An upper bound of this size.
    pub most: i64,
}

/// Reads a Range that counts down from a size with a known upper bound. Floats are as exact as integers up to [`MAX_EXACT`].
pub(super) fn descent(place: &Place<'_>, node: &Node) -> Option<Descent> {
    if !node.is("Range") || place.constant(node.input(2)?)?.to_f64s()? != [-1.0] {
        return None;
    }
    let dtype = place.dtype(node.output(0)?)?;
    let [start] = <[Scalar; 1]>::try_from(place.fact(node.input(0)?)?.elements()?).ok()?;
    let from = match start {
        Scalar::Int(from) if matches!(dtype, DType::Int64 | DType::Int32) => from,
        Scalar::Real { num, den: 1 } if dtype == DType::Float => num,
        _ => return None,
    };
    let most = place.scope().upper_bound(&from).filter(|most| (0..MAX_EXACT).contains(most))?;
    from.as_const().is_none().then_some(Descent { from, most })
}

impl Cone {
    /// Collects the position-wise consumers of a value, and records the other consumers.
    fn follow(&mut self, place: &Place<'_>, first: ValueId) -> Option<()> {
        let mut waiting = vec![first];
        let mut met: Vec<ValueId> = Vec::new();
        while let Some(value) = waiting.pop() {
            if met.contains(&value) {
                continue;
            }
            met.push(value);
            if place.model.is_named(value) || place.model.is_unused(value) {
                return None;
            }
            let mut is_read_otherwise = false;
            for (reader, _) in place.model.users(value) {
                let node = place.model.node(reader)?;
                // Shapes are read elsewhere afterwards.
                if traits_of(place.model, node).of_shape {
                    continue;
                }
                let result =
                    node.output(0).filter(|_| Some(node.graph()) == place.graph() && node.outputs().len() == 1);
                match result {
                    Some(result) if self.holds(place, result, DEPTH) => waiting.push(result),
                    _ => is_read_otherwise = true,
                }
            }
            if is_read_otherwise && !self.roots.contains(&value) {
                self.roots.push(value);
            }
            if met.len() > NODES {
                return None;
            }
        }
        Some(())
    }

    /// Returns `true` if each element of a value depends on its position only, and not on sizes; collects the nodes that compute it.
    fn holds(&mut self, place: &Place<'_>, value: ValueId, depth: usize) -> bool {
        if let Some(&known) = self.known.get(&value) {
            return known;
        }
        if place.constant(value).is_some() {
            return true;
        }
        let Some(depth) = depth.checked_sub(1) else { return false };
        let producer = place.model.value(value).producer();
        let holds = self.nodes.len() < NODES && producer.is_some_and(|id| self.is_positional(place, id, depth));
        if let Some(id) = producer.filter(|_| holds) {
            self.nodes.push(id);
        }
        self.known.insert(value, holds);
        holds
    }

    fn is_positional(&mut self, place: &Place<'_>, id: NodeId, depth: usize) -> bool {
        let Some(node) = place.model.node(id) else { return false };
        let is_plain = Some(node.graph()) == place.graph() && node.canonical_domain().is_empty();
        is_plain
            && node.outputs().len() == 1
            && (is_open_range(place, node)
                || (by_place(place, id) == Some(true)
                    && node.inputs().iter().flatten().all(|&input| self.holds(place, input, depth))))
    }
}

/// Returns `true` if a node computes each element of its result from the elements of its operands at the same position along the same axes,
/// or from scalars.
fn by_place(place: &Place<'_>, id: NodeId) -> Option<bool> {
    let view = place.view(id)?;
    let (node, traits, scope) = (view.node, traits_of(place.model, view.node), place.scope());
    let to = view.result_shape()?;
    let numbers_from =
        |first: usize| node.inputs().iter().skip(first).flatten().all(|&input| place.constant(input).is_some());
    if let Some(pointwise) = traits.pointwise {
        // An axis that has size 1 at run time would be broadcast.
        let lines_up = |from: &[Dim]| {
            let Some(added) = to.len().checked_sub(from.len()) else { return false };
            from.iter().zip(to.iter().skip(added)).all(|(own, goal)| own.is_const(1) || scope.eq(own, goal).is_yes())
        };
        let all = node.inputs().iter().flatten().all(|&input| place.shape(input).is_some_and(lines_up));
        return Some(match pointwise.operands {
            Operands::Broadcast => all && pointwise.meets(place.opset),
            Operands::First => numbers_from(1),
            Operands::Scaled | Operands::Stretched => false,
        });
    }
    let from = view.shape(0)?;
    Some(match traits.moves {
        Some(Movement::Layout) => numbers_from(1) && keeps_axes(place, from, to),
        // Elements after a part of symbolic length move if the part grows.
        Some(Movement::Join) => {
            let axis = view.axis(0)?;
            let known = |input: ValueId| place.shape(input)?.get(axis)?.as_const();
            node.inputs().iter().flatten().all(|&input| known(input).is_some())
        }
        // Each position selects a row of a table.
        Some(Movement::Selection) if node.is("Gather") => place.constant(node.input(0)?).is_some(),
        _ => false,
    })
}

/// Returns `true` if two shapes differ in axes of size 1 only, so that each position is kept.
fn keeps_axes(place: &Place<'_>, from: &[Dim], to: &[Dim]) -> bool {
    let long = |dims: &'_ [Dim]| dims.iter().filter(|dim| !dim.is_const(1)).cloned().collect::<Vec<_>>();
    let (from, to) = (long(from), long(to));
    from.len() == to.len() && from.iter().zip(&to).all(|(a, b)| place.scope().eq(a, b).is_yes())
}

/// Returns `true` if no kernel of the nodes rounds by position.
pub(super) fn is_exact(place: &Place<'_>, nodes: &[NodeId]) -> bool {
    let exact = |&id: &NodeId| {
        let view = place.view(id)?;
        let traits = view.traits();
        let is_number = traits.pointwise.is_some();
        Some(
            !is_number
                || traits.variation(place.dtype(view.node.output(0)?)?).max(traits.variation(view.dtype(0)?))
                    == Variation::None,
        )
    };
    nodes.iter().all(|id| exact(id) == Some(true))
}

/// Returns `true` if two values are the same function of Ranges with equal start and step.
pub(super) fn alike(place: &Place<'_>, a: ValueId, b: ValueId, depth: usize) -> bool {
    if a == b {
        return place.constant(a).is_some();
    }
    if let (Some(a), Some(b)) = (place.constant(a), place.constant(b)) {
        return a.same(b);
    }
    let Some(depth) = depth.checked_sub(1) else { return false };
    let producer =
        |value: ValueId| place.model.value(value).producer().and_then(|id| Some((id, place.model.node(id)?)));
    let (Some((a, one)), Some((b, other))) = (producer(a), producer(b)) else { return false };
    let alike_nodes = one.op_type == other.op_type
        && one.canonical_domain() == other.canonical_domain()
        && one.same_attributes(other)
        && one.inputs().len() == other.inputs().len();
    if !alike_nodes {
        return false;
    }
    let both = |a: Option<ValueId>, b: Option<ValueId>| match (a, b) {
        (Some(a), Some(b)) => alike(place, a, b, depth),
        (None, None) => true,
        _ => false,
    };
    if is_open_range(place, one) {
        let from_number = |node: &Node| node.input(0).is_some_and(|start| place.constant(start).is_some());
        return is_open_range(place, other)
            && from_number(one)
            && both(one.input(0), other.input(0))
            && both(one.input(2), other.input(2));
    }
    let ones = |id: NodeId| {
        let shape = place.view(id)?.result_shape()?.to_vec();
        Some(shape.iter().map(|dim| dim.is_const(1)).collect::<Vec<_>>())
    };
    let layout = |node| traits_of(place.model, node).moves == Some(Movement::Layout);
    // Axes of size 1 are at the same positions, whatever the operators are.
    if layout(one) {
        return ones(a).is_some() && ones(a) == ones(b) && both(one.input(0), other.input(0));
    }
    one.inputs().iter().zip(other.inputs()).all(|(&a, &b)| both(a, b))
}
