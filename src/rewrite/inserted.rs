//! Axes of size 1 that results of functions get, put in before the functions.
//!
//! Law: `Unsqueeze(f(x, y), A) = f(Unsqueeze(x, A), Unsqueeze(y, A))` for an element-wise `f`, where constants and what is looked up have the
//! axes for nothing: `Unsqueeze(Gather(x, i; a), a) = Gather(x, [i]; a)`, and of two Unsqueezes one is left.
//!
//! Detectors look columns up, compute with them, and put each result back as a column. Everything that reads such a value is looked at
//! together, because a value with the axes is another one than that without.

use std::collections::VecDeque;

use super::build::axes;
use super::{Place, Rule};
use crate::dim::{Dim, Scope};
use crate::ir::{Edit, NewNode, Node, NodeId, ValueId};
use crate::ops::traits::{Operands, traits_of};
use crate::tensor::Tensor;

pub(super) const RULES: &[Rule] = &[Rule {
    name: "axes-before-functions",
    law: "Unsqueeze(f(x, y), A) = f(Unsqueeze(x, A), Unsqueeze(y, A))",
    sentence: "Axes of size 1 are put in where they cost nothing, and not behind functions.",
    premises: &[
        (
            "by-element",
            "what is computed is computed element by element, of operands of one rank, single numbers and constants",
        ),
        ("same-axes", "whatever else reads a value on the way puts the same axes in, or computes by element what does"),
        ("no-sizes", "no values of it are sizes: those are planned together"),
        ("no-output", "nothing on the way is a graph output"),
        ("pays", "more nodes go than come: lookups of single places and other Unsqueezes make the axes themselves"),
    ],
    exact: false,
    operators: &["Unsqueeze", "Reshape"],
    apply: before_functions,
}];

/// The axes of size 1 that a node puts in, as they stand in its result, ascending: of an Unsqueeze, or of a Reshape that does nothing else.
fn axes_put_in(place: &Place<'_>, node: &Node) -> Option<Vec<usize>> {
    let mut axes = match node.is("Reshape") {
        true => ones_between(place.scope(), place.shape(node.input(0)?)?, place.shape(node.output(0)?)?)?,
        false if node.is("Unsqueeze") => place.read(node).ones()?,
        false => return None,
    };
    axes.sort_unstable();
    Some(axes)
}

/// The places of the sizes of `to` that are 1 and not in `from`, where all others are those of `from` in their order.
fn ones_between(scope: &Scope, from: &[Dim], to: &[Dim]) -> Option<Vec<usize>> {
    let mut rest = from.iter();
    let mut next = rest.next();
    let mut ones = Vec::new();
    for (at, size) in to.iter().enumerate() {
        if next.is_some_and(|own| own == size || scope.eq(own, size).is_yes()) {
            next = rest.next();
        } else if size.is_const(1) {
            ones.push(at);
        } else {
            return None;
        }
    }
    (next.is_none() && !ones.is_empty()).then_some(ones)
}

/// How many values are computed anew at most, and how many readers of one are looked at.
const MOST: usize = 32;

/// Larger constants are not stored in another shape as well.
const MOST_BYTES: usize = 1024;

/// Where a value comes from whose form with the axes is needed.
enum Origin {
    /// An element-wise function of others.
    Function,
    /// A lookup of a single place along the axis that is put in.
    Lookup,
    /// An Unsqueeze, or a Reshape that is one, which puts these in as well.
    Unsqueeze(Vec<i64>),
    /// Anything else.
    Other,
}

/// A value whose form with the axes is needed.
struct Member {
    value: ValueId,
    origin: Origin,
    /// The nodes that give it the axes.
    leaves: Vec<NodeId>,
    /// Whether something reads it that needs it without the axes.
    stays: bool,
}

struct Region<'a, 'p> {
    place: &'a Place<'p>,
    /// The axes that are put in, as they stand in the result.
    axes: Vec<usize>,
    rank: usize,
    members: Vec<Member>,
}

fn before_functions(place: &Place<'_>) -> Option<Edit> {
    let value = place.input(0)?;
    let rank = place.shape(value)?.len();
    let axes = axes_put_in(place, place.node()?)?;
    let mut region = Region { place, axes, rank, members: Vec::new() };
    if !place.opset.everything_broadcasts() || !matches!(region.origin(value)?, Origin::Function) {
        return None;
    }
    region.grow(value)?;
    let gone: usize = region.members.iter().map(|member| member.leaves.len()).sum();
    let is_more = |member: &&Member| match member.origin {
        Origin::Function => false,
        Origin::Other => true,
        Origin::Lookup | Origin::Unsqueeze(_) => member.stays,
    };
    let come = region.members.iter().filter(is_more).count();
    if come >= gone { None } else { region.write() }
}

impl Region<'_, '_> {
    fn find(&self, value: ValueId) -> Option<&Member> {
        self.members.iter().find(|member| member.value == value)
    }

    /// Where a value comes from; `None` if it may not have another form.
    fn origin(&self, value: ValueId) -> Option<Origin> {
        let place = self.place;
        let fact = place.fact(value)?;
        if fact.rank()? != self.rank || fact.dtype().is_none() || fact.elements().is_some() {
            return None;
        }
        let producer = place.model.value(value).producer().and_then(|id| place.model.node(id));
        let Some(node) = producer.filter(|node| Some(node.graph()) == place.graph()) else {
            return Some(Origin::Other);
        };
        if node.outputs().len() != 1 || !node.canonical_domain().is_empty() {
            return Some(Origin::Other);
        }
        if node.is("Gather") {
            let (data, index) = (node.input(0)?, node.input(1)?);
            let axis = place.read(node).axis(place.shape(data)?.len())?;
            let single = place.constant(index).is_some_and(|index| index.rank() == 0);
            return Some(if single && self.axes == [axis] { Origin::Lookup } else { Origin::Other });
        }
        if let Some(inner) = axes_put_in(place, node) {
            return Some(Origin::Unsqueeze(self.together(&inner)?));
        }
        let own = traits_of(place.model, node).pointwise;
        let is_function = own.is_some_and(|own| matches!(own.operands, Operands::Broadcast | Operands::First));
        Some(if is_function { Origin::Function } else { Origin::Other })
    }

    /// The axes that an Unsqueeze puts in which puts in these and then those of the region.
    fn together(&self, inner: &[usize]) -> Option<Vec<i64>> {
        let rank = self.rank.checked_add(self.axes.len())?;
        let old: Vec<usize> = (0..rank).filter(|axis| !self.axes.contains(axis)).collect();
        let mut all = self.axes.clone();
        for &axis in inner {
            all.push(*old.get(axis)?);
        }
        all.sort_unstable();
        Some(axes(all))
    }

    /// Finds every value that needs the axes, and whatever else reads those that are computed.
    fn grow(&mut self, first: ValueId) -> Option<()> {
        let mut waiting = VecDeque::from([first]);
        while let Some(value) = waiting.pop_front() {
            if self.find(value).is_some() {
                continue;
            }
            let origin = self.origin(value)?;
            let is_function = matches!(origin, Origin::Function);
            if self.members.len() >= MOST || is_function && self.place.model.is_named(value) {
                return None;
            }
            if is_function {
                let node = self.place.model.value(value).producer().and_then(|id| self.place.model.node(id))?;
                waiting.extend(node.inputs().iter().flatten().filter(|&&input| !self.is_given(input)));
            }
            let mut member = Member { value, origin, leaves: Vec::new(), stays: self.place.model.is_named(value) };
            if is_function {
                self.meet_readers(&mut member, &mut waiting)?;
            }
            self.members.push(member);
        }
        for at in 0..self.members.len() {
            let Some(member) = self.members.get(at) else { continue };
            if matches!(member.origin, Origin::Lookup | Origin::Unsqueeze(_)) {
                let (leaves, stays) = self.readers_of_root(member.value);
                if let Some(member) = self.members.get_mut(at) {
                    member.leaves = leaves;
                    member.stays |= stays;
                }
            }
        }
        Some(())
    }

    /// The nodes that give what is computed otherwise the axes, and whether something else than members reads it.
    fn readers_of_root(&self, value: ValueId) -> (Vec<NodeId>, bool) {
        let (mut leaves, mut stays) = (Vec::new(), false);
        if self.place.model.has_more_readers(value, MOST) {
            return (leaves, true);
        }
        for (id, slot) in self.place.model.users(value) {
            let Some(node) = self.place.model.node(id) else { continue };
            let is_member = || self.function(node).is_some_and(|result| self.find(result).is_some());
            if slot == 0 && self.is_leaf(node) {
                leaves.push(id);
            } else {
                stays |= !is_member();
            }
        }
        (leaves, stays)
    }

    /// Looks at what reads a function's result: what puts the axes in, and functions that need it with the axes then.
    fn meet_readers(&self, member: &mut Member, waiting: &mut VecDeque<ValueId>) -> Option<()> {
        if self.place.model.has_more_readers(member.value, MOST) {
            return None;
        }
        for (id, slot) in self.place.model.users(member.value) {
            let node = self.place.model.node(id)?;
            if slot == 0 && self.is_leaf(node) {
                member.leaves.push(id);
            } else {
                waiting.push_back(self.function(node)?);
            }
        }
        Some(())
    }

    /// Whether a node puts the axes in.
    fn is_leaf(&self, node: &Node) -> bool {
        Some(node.graph()) == self.place.graph() && axes_put_in(self.place, node).is_some_and(|axes| axes == self.axes)
    }

    /// The result of a node that computes by element.
    fn function(&self, node: &Node) -> Option<ValueId> {
        let [Some(result)] = *node.outputs() else { return None };
        let is_here = Some(node.graph()) == self.place.graph();
        (is_here && matches!(self.origin(result)?, Origin::Function)).then_some(result)
    }

    /// Whether an operand needs no other form than a constant can have: a single number, or a constant.
    fn is_given(&self, value: ValueId) -> bool {
        let is_number = self.place.shape(value).is_some_and(<[_]>::is_empty);
        self.rank > 0 && is_number || self.place.constant(value).is_some_and(|tensor| tensor.byte_len() <= MOST_BYTES)
    }

    /// A constant with the axes, if it needs them; those in front only if all are to be there.
    fn constant(&self, tensor: &Tensor, is_whole: bool) -> Option<Option<Tensor>> {
        let lead = self.rank.checked_sub(tensor.rank())?;
        let mut dims = tensor.shape().iter();
        let mut shape = Vec::new();
        let mut at = 0;
        for axis in 0..self.rank.checked_add(self.axes.len())? {
            if self.axes.contains(&axis) {
                shape.push(1);
                continue;
            }
            shape.push(if at < lead { 1 } else { *dims.next()? });
            at += 1;
        }
        let spare = if is_whole { 0 } else { shape.len().saturating_sub(tensor.rank()) };
        let ones = shape.iter().take_while(|&&dim| dim == 1).count().min(spare);
        let shape = shape.get(ones..)?;
        Some(if shape == tensor.shape() { None } else { Some(tensor.reshape(shape).ok()?) })
    }

    fn write(&self) -> Option<Edit> {
        let place = self.place;
        let mut edit = place.edit()?;
        let mut made: Vec<(ValueId, ValueId)> = Vec::new();
        let mut waiting: Vec<&Member> = self.members.iter().collect();
        while !waiting.is_empty() {
            let ready = |member: &&Member| {
                let id = place.model.value(member.value).producer();
                let inputs = id.and_then(|id| place.model.node(id)).map(Node::inputs).unwrap_or_default();
                let is_made = |input: &ValueId| made.iter().any(|(old, _)| old == input);
                !matches!(member.origin, Origin::Function)
                    || inputs.iter().flatten().all(|input| is_made(input) || self.find(*input).is_none())
            };
            let next = waiting.iter().position(ready)?;
            let member = waiting.remove(next);
            let node = self.formed(&mut edit, member, &made)?;
            let results = member.leaves.iter().filter_map(|&leaf| place.model.node(leaf)?.output(0));
            let mut results: Vec<ValueId> = results.collect();
            // A result keeps its name.
            results.sort_by_key(|&result| !place.model.is_named(result));
            let new = results.first().copied().unwrap_or_else(|| edit.new_value(member.value, "column"));
            for &other in results.iter().skip(1) {
                if place.model.is_named(other) {
                    return None;
                }
                edit.replace.push((other, new));
            }
            edit.insert.push(node.output(new));
            edit.remove.extend(&member.leaves);
            let goes = !member.stays && !matches!(member.origin, Origin::Other);
            edit.remove.extend(place.model.value(member.value).producer().filter(|_| goes));
            made.push((member.value, new));
        }
        Some(edit)
    }

    /// What computes a member with the axes.
    fn formed(&self, edit: &mut Edit, member: &Member, made: &[(ValueId, ValueId)]) -> Option<NewNode> {
        let place = self.place;
        if matches!(member.origin, Origin::Other) {
            return Some(place.build(edit, member.value).unsqueeze(member.value, axes(self.axes.clone())));
        }
        let node = place.model.node(place.model.value(member.value).producer()?)?;
        match &member.origin {
            Origin::Unsqueeze(all) => Some(place.build(edit, member.value).unsqueeze(node.input(0)?, all.clone())),
            Origin::Lookup => {
                let index = place.constant(node.input(1)?)?.reshape(&[1]).ok()?;
                let axis = *self.axes.first()?;
                Some(place.build(edit, member.value).gather_at(node.input(0)?, index, axis))
            }
            _ => {
                let mut copy = NewNode::like(node);
                let new_form = |input: ValueId| made.iter().find(|(old, _)| *old == input).map(|&(_, new)| new);
                // The constant that gives a result of numbers and constants all its axes.
                let is_whole = |input: &ValueId| place.constant(*input).is_some_and(|own| own.rank() == self.rank);
                let inputs: Vec<ValueId> = node.inputs().iter().flatten().copied().collect();
                let is_given = inputs.iter().all(|&input| new_form(input).is_none());
                let whole = match is_given {
                    true => Some(*inputs.iter().find(|input| is_whole(input))?),
                    false => None,
                };
                for input in copy.inputs.iter_mut().flatten() {
                    if let Some(new) = new_form(*input) {
                        *input = new;
                    } else if let Some(tensor) = place.constant(*input)
                        && let Some(tensor) = self.constant(tensor, whole == Some(*input))?
                    {
                        *input = edit.constant(*input, "column", tensor);
                    }
                }
                Some(copy)
            }
        }
    }
}
