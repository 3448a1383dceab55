//! Moves axes of size 1, which Unsqueezes, Squeezes and Reshapes insert or drop, from the results of element-wise functions to their
//! operands.
//!
//! Law: `L(f(x, y)) = f(L(x), L(y))` for an element-wise `f` and a layout `L` (Unsqueeze, Squeeze, Reshape) that inserts or drops axes of
//! size 1. Constants and lookups take the new form without a node: `Unsqueeze(Gather(x, i; a), a) = Gather(x, [i]; a)`. Two layouts in
//! sequence merge into one, or cancel.
//!
//! Detectors gather columns, compute with them, and unsqueeze each result to a column. Exporters insert axes before the sines and cosines
//! of positions, and each layer drops some of them. The rule considers all consumers of such a value together, because a value in the other
//! form is a different value.

use std::collections::VecDeque;

use super::build::axes;
use super::miss::{Miss, ensure};
use super::place::Place;
use super::rule::{Rule, miss};
use crate::dim::{Dim, Scope};
use crate::ir::{Edit, NewNode, Node, NodeId, ValueId};
use crate::ops::traits::{LAYOUTS, Movement, Operands, traits_of};
use crate::rewrite::limits::NODES;
use crate::sort;
use crate::tensor::Tensor;

pub(super) const RULES: &[Rule] = &[Rule {
    name: "axes-before-functions",
    law: "L(f(x, y)) = f(L(x), L(y)) for a Reshape, Squeeze or Unsqueeze L that inserts or removes axes of size 1",
    sentence: "Moves the insertion or removal of axes of size 1 before element-wise functions, to nodes that can do it at no cost.",
    premises: &[
        ("by-element", "f is element-wise, and its operands are computed values, scalars or broadcast constants"),
        (
            "same-axes",
            "every other consumer of a moved value inserts or removes the same axes, directly or after further element-wise operators",
        ),
        ("no-sizes", "no moved value holds dims, because a later pass plans all shape arithmetic at once"),
        ("no-output", "no intermediate value is a graph output"),
        (
            "pays",
            "the rewrite removes more nodes than it adds; a Gather of a single element and an existing Reshape can insert the axis without a new node",
        ),
    ],
    exact: false,
    operators: LAYOUTS,
    apply: before_functions,
}];

/// The change of axes of size 1 by a layout. For each axis of the result it holds the axis of the data, or `None` for an inserted axis.
/// Axes of the data that are missing in the list are dropped.
type Change = Vec<Option<usize>>;

/// Returns the change of a node, if it is a layout that only inserts or drops axes of size 1.
fn change(place: &Place<'_>, node: &Node) -> Option<Change> {
    if traits_of(place.model, node).moves != Some(Movement::Layout) || !node.canonical_domain().is_empty() {
        return None;
    }
    let (from, to) = (place.shape(node.input(0)?)?, place.shape(node.output(0)?)?);
    let named = if node.is("Squeeze") || node.is("Unsqueeze") { place.read(node).ones() } else { None };
    let change: Change = match named {
        Some(ones) if from.len() < to.len() => {
            let mut own = 0..from.len();
            (0..to.len()).map(|axis| if ones.contains(&axis) { None } else { own.next() }).collect()
        }
        Some(ones) => (0..from.len()).filter(|axis| !ones.contains(axis)).map(Some).collect(),
        None => aligned(place.scope(), from, to)?,
    };
    let changes = from.len() != to.len() || change.contains(&None);
    (changes && change.len() == to.len()).then_some(change)
}

/// Returns the change from `from` to `to`, if the dims other than 1 are equal and in the same order.
fn aligned(scope: &Scope, from: &[Dim], to: &[Dim]) -> Option<Change> {
    let mut rest = from.iter().enumerate();
    let mut next = rest.next();
    let mut change = Vec::new();
    for size in to {
        loop {
            match next {
                Some((axis, own)) if own == size || scope.eq(own, size).is_yes() => {
                    change.push(Some(axis));
                    next = rest.next();
                    break;
                }
                _ if size.is_const(1) => {
                    change.push(None);
                    break;
                }
                Some((_, own)) if own.is_const(1) => next = rest.next(),
                _ => return None,
            }
        }
    }
    next.into_iter().chain(rest).all(|(_, own)| own.is_const(1)).then_some(change)
}

/// The most bytes of a constant that is stored in a second shape. A second copy of a weight makes the model larger.
const MOST_BYTES: usize = 1024;

/// The origin of a value whose other form is needed.
enum Origin {
    /// The result of an element-wise function.
    Function,
    /// A Gather of a single index along the inserted axis.
    Lookup,
    /// A layout that inserts or drops axes of size 1, with its change for the other form.
    Layout(Change),
    /// Anything else.
    Other,
}

/// A value whose other form is needed.
struct Member {
    value: ValueId,
    change: Change,
    origin: Origin,
    /// The layouts that compute the other form from the value.
    leaves: Vec<NodeId>,
    /// `true` if a consumer needs the value in its present form.
    stays: bool,
}

struct Region<'a, 'p> {
    place: &'a Place<'p>,
    /// The change for values of rank `rank`. Values of a lower rank count as if they had further axes of size 1 in front.
    change: Change,
    rank: usize,
    members: Vec<Member>,
}

fn before_functions(place: &Place<'_>) -> Result<Edit, Miss> {
    let value = place.operand(0)?;
    let rank = place.dims(value)?.len();
    let change = change(place, place.root()?).ok_or(miss!("same-axes"))?;
    let mut region = Region { place, change, rank, members: Vec::new() };
    ensure(place.opset.everything_broadcasts(), Miss::EXPRESSIBLE)?;
    ensure(matches!(region.origin(value)?.0, Origin::Function), miss!("by-element").of(value))?;
    region.grow(value)?;
    let (mut come, mut gone) = (0usize, 0usize);
    for member in &region.members {
        gone = gone.saturating_add(member.leaves.len());
        match (&member.origin, member.stays) {
            (Origin::Function, _) => (),
            (Origin::Layout(_), stays) if region.given(member).is_some() => gone += usize::from(!stays),
            (Origin::Other, _) | (Origin::Lookup | Origin::Layout(_), true) => come += 1,
            (Origin::Lookup | Origin::Layout(_), false) => (),
        }
    }
    ensure(come < gone, miss!("pays"))?;
    region.write()
}

impl Region<'_, '_> {
    fn find(&self, value: ValueId) -> Option<&Member> {
        self.members.iter().find(|member| member.value == value)
    }

    /// Returns the change for a value of this rank, without leading axes of size 1 that broadcasting supplies.
    fn change_of(&self, rank: usize) -> Option<Change> {
        let lead = self.rank.checked_sub(rank)?;
        if lead == 0 {
            return Some(self.change.clone());
        }
        let own = self.change.iter().skip_while(|axis| axis.is_none_or(|axis| axis < lead));
        let change: Change = own.map(|axis| axis.and_then(|axis| axis.checked_sub(lead))).collect();
        (!change.is_empty()).then_some(change)
    }

    /// Returns the origin of a value and the change for it; an error if the value may not have another form.
    fn origin(&self, value: ValueId) -> Result<(Origin, Change), Miss> {
        let place = self.place;
        let differs = miss!("same-axes").of(value);
        let fact = place.fact(value).ok_or(differs)?;
        let shape = fact.shape().ok_or(differs)?;
        let own = self.change_of(shape.len()).ok_or(differs)?;
        let is_dropped = |axis: usize| !own.contains(&Some(axis));
        let fits = shape.iter().enumerate().all(|(axis, size)| size.is_const(1) || !is_dropped(axis));
        ensure(fits && fact.dtype().is_some(), differs)?;
        ensure(fact.elements().is_none(), miss!("no-sizes").of(value))?;
        let origin = self.origin_for(value, &own).ok_or(differs)?;
        Ok((origin, own))
    }

    fn origin_for(&self, value: ValueId, own: &Change) -> Option<Origin> {
        let place = self.place;
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
            // The layout inserts the axis that the Gather has dropped, and changes nothing else.
            let rank = place.shape(value)?.len();
            let keeps_all = own.iter().copied().flatten().eq(0..rank);
            let puts_in = own.len() == rank.checked_add(1)? && own.get(axis) == Some(&None);
            return Some(if single && keeps_all && puts_in { Origin::Lookup } else { Origin::Other });
        }
        if let Some(inner) = change(place, node) {
            let through = |axis: &Option<usize>| axis.and_then(|axis| inner.get(axis).copied().flatten());
            return Some(Origin::Layout(own.iter().map(through).collect()));
        }
        let pointwise = traits_of(place.model, node).pointwise;
        let is_function = pointwise.is_some_and(|own| matches!(own.operands, Operands::Broadcast | Operands::First));
        Some(if is_function { Origin::Function } else { Origin::Other })
    }

    /// Returns the dims of the other form of a value.
    fn form(&self, member: &Member) -> Option<Vec<Dim>> {
        let shape = self.place.shape(member.value)?;
        let size = |axis: &Option<usize>| axis.map_or(Some(Dim::constant(1)), |axis| shape.get(axis).cloned());
        member.change.iter().map(size).collect()
    }

    /// Returns the data of the member's layout, if the data already has the other form.
    fn given(&self, member: &Member) -> Option<ValueId> {
        let Origin::Layout(_) = member.origin else { return None };
        let node = self.place.model.node(self.place.model.value(member.value).producer()?)?;
        let source = node.input(0)?;
        self.place.same_dims(self.place.shape(source)?, &self.form(member)?).then_some(source)
    }

    /// Finds every value whose other form is needed, and all consumers of those that are computed.
    fn grow(&mut self, first: ValueId) -> Result<(), Miss> {
        let mut waiting = VecDeque::from([first]);
        while let Some(value) = waiting.pop_front() {
            if self.find(value).is_some() {
                continue;
            }
            let (origin, change) = self.origin(value)?;
            let is_function = matches!(origin, Origin::Function);
            ensure(self.members.len() < NODES, miss!("pays"))?;
            ensure(!is_function || !self.place.model.is_named(value), miss!("no-output").of(value))?;
            if is_function {
                let node = self.place.model.value(value).producer().and_then(|id| self.place.model.node(id));
                let node = node.ok_or(Miss::ROOT)?;
                waiting.extend(node.inputs().iter().flatten().filter(|&&input| !self.is_given(input)));
            }
            let mut member =
                Member { value, change, origin, leaves: Vec::new(), stays: self.place.model.is_named(value) };
            if is_function {
                self.meet_readers(&mut member, &mut waiting)?;
            }
            self.members.push(member);
        }
        for at in 0..self.members.len() {
            let Some(member) = self.members.get(at) else { continue };
            if matches!(member.origin, Origin::Lookup | Origin::Layout(_)) {
                let (leaves, stays) = self.readers_of_root(member.value);
                if let Some(member) = self.members.get_mut(at) {
                    member.leaves = leaves;
                    member.stays |= stays;
                }
            }
        }
        Ok(())
    }

    /// Returns the layouts that give a member other than a function its other form, and `true` if other nodes than members read it.
    fn readers_of_root(&self, value: ValueId) -> (Vec<NodeId>, bool) {
        let (mut leaves, mut stays) = (Vec::new(), false);
        if self.place.model.has_more_readers(value, NODES) {
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

    /// Visits the consumers of a function's result: layouts to the other form become leaves, and functions become members.
    fn meet_readers(&self, member: &mut Member, waiting: &mut VecDeque<ValueId>) -> Result<(), Miss> {
        let differs = miss!("same-axes").of(member.value);
        ensure(!self.place.model.has_more_readers(member.value, NODES), differs)?;
        for (id, slot) in self.place.model.users(member.value) {
            let node = self.place.model.node(id).ok_or(differs)?;
            if slot == 0 && self.is_leaf(node) {
                member.leaves.push(id);
            } else {
                waiting.push_back(self.function(node).ok_or(differs)?);
            }
        }
        Ok(())
    }

    /// Returns `true` if a node computes the other form of its first operand.
    fn is_leaf(&self, node: &Node) -> bool {
        let rank = || Some(self.place.shape(node.input(0)?)?.len());
        let own = || {
            change(self.place, node).filter(|own| rank().and_then(|rank| self.change_of(rank)).as_ref() == Some(own))
        };
        Some(node.graph()) == self.place.graph() && own().is_some()
    }

    /// Returns the result of an element-wise node.
    fn function(&self, node: &Node) -> Option<ValueId> {
        let [Some(result)] = *node.outputs() else { return None };
        let is_here = Some(node.graph()) == self.place.graph();
        (is_here && matches!(self.origin(result).ok()?.0, Origin::Function)).then_some(result)
    }

    /// Returns `true` if an operand needs no member: a small constant, a scalar, or a value that only lacks leading axes.
    fn is_given(&self, value: ValueId) -> bool {
        if self.place.constant(value).is_some_and(|tensor| tensor.byte_len() <= MOST_BYTES) {
            return true;
        }
        let Some(rank) = self.place.shape(value).map(<[_]>::len).filter(|&rank| rank < self.rank) else { return false };
        let is_same = |change: Change| change.into_iter().eq((0..rank).map(Some));
        rank == 0 || self.change_of(rank).is_some_and(is_same)
    }

    /// Returns the other form of a constant with at least `least` axes and without other leading ones; `None` if this is its present form.
    fn constant(&self, tensor: &Tensor, least: usize) -> Option<Option<Tensor>> {
        let lead = self.rank.checked_sub(tensor.rank())?;
        let own = |axis: usize| axis.checked_sub(lead).map_or(Some(1), |axis| tensor.shape().get(axis).copied());
        let size = |axis: &Option<usize>| axis.map_or(Some(1), own);
        let shape: Vec<usize> = self.change.iter().map(size).collect::<Option<_>>()?;
        let spare = shape.len().saturating_sub(least);
        let ones = shape.iter().take_while(|&&dim| dim == 1).count().min(spare);
        let shape = shape.get(ones..)?;
        Some(if shape == tensor.shape() { None } else { Some(tensor.reshape(shape).ok()?) })
    }

    fn write(&self) -> Result<Edit, Miss> {
        let place = self.place;
        let mut edit = place.begin()?;
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
            let next = waiting.iter().position(ready).ok_or(miss!("same-axes"))?;
            let member = waiting.remove(next);
            let goes = !member.stays && !matches!(member.origin, Origin::Other);
            edit.remove.extend(place.model.value(member.value).producer().filter(|_| goes));
            if let Some(source) = self.given(member) {
                // Layouts that compute the same form again belong to another rule.
                made.push((member.value, source));
                member.leaves.is_empty().then_some(()).ok_or(miss!("same-axes"))?;
                continue;
            }
            let node = self.formed(&mut edit, member, &made).ok_or(miss!("same-axes"))?;
            let results = member.leaves.iter().filter_map(|&leaf| place.model.node(leaf)?.output(0));
            let mut results: Vec<ValueId> = results.collect();
            // A named result keeps its name.
            sort::by_key(&mut results, |&result| !place.model.is_named(result));
            let new = results.first().copied().unwrap_or_else(|| edit.new_value(member.value, "column"));
            for &other in results.iter().skip(1) {
                ensure(!place.model.is_named(other), miss!("same-axes"))?;
                edit.replace.push((other, new));
            }
            edit.insert.push(node.output(new));
            edit.remove.extend(&member.leaves);
            made.push((member.value, new));
        }
        Ok(edit)
    }

    /// Builds a layout with this change, for the other form of a member.
    fn laid_out(&self, edit: &mut Edit, source: ValueId, change: &Change, member: &Member) -> Option<NewNode> {
        let from = self.place.shape(source)?;
        let put_in = (0..change.len()).filter(|&axis| change.get(axis) == Some(&None));
        let dropped = (0..from.len()).filter(|&axis| !change.contains(&Some(axis)));
        let mut build = self.place.build(edit, member.value);
        match (put_in.clone().next(), dropped.clone().next()) {
            (None, None) => None,
            (Some(_), None) => Some(build.unsqueeze(source, axes(put_in))),
            (None, Some(_)) => Some(build.squeeze(source, axes(dropped))),
            _ => build.reshape_to(self.place.scope(), source, from, &self.form(member)?),
        }
    }

    /// Builds the node that computes the other form of a member.
    fn formed(&self, edit: &mut Edit, member: &Member, made: &[(ValueId, ValueId)]) -> Option<NewNode> {
        let place = self.place;
        if matches!(member.origin, Origin::Other) {
            return self.laid_out(edit, member.value, &member.change, member);
        }
        let node = place.model.node(place.model.value(member.value).producer()?)?;
        match &member.origin {
            Origin::Layout(all) => self.laid_out(edit, node.input(0)?, all, member),
            Origin::Lookup => {
                let index = place.constant(node.input(1)?)?.reshape(&[1]).ok()?;
                let axis = member.change.iter().position(Option::is_none)?;
                Some(place.build(edit, member.value).gather_at(node.input(0)?, index, axis))
            }
            _ => {
                let mut copy = NewNode::like(node);
                let new_form = |input: ValueId| made.iter().find(|(old, _)| *old == input).map(|&(_, new)| new);
                // The constant that gives the result its full rank, if no other operand has it.
                let rank = place.shape(member.value)?.len();
                let is_whole = |input: &ValueId| place.constant(*input).is_some_and(|own| own.rank() == rank);
                let inputs: Vec<ValueId> = node.inputs().iter().flatten().copied().collect();
                let has_all = |&&input: &&ValueId| {
                    new_form(input).is_some() && place.shape(input).is_some_and(|own| own.len() == rank)
                };
                let whole = match inputs.iter().find(has_all) {
                    None => Some(*inputs.iter().find(|input| is_whole(input))?),
                    Some(_) => None,
                };
                for input in copy.inputs.iter_mut().flatten() {
                    if let Some(new) = new_form(*input) {
                        *input = new;
                    } else if let Some(tensor) = place.constant(*input)
                        && let is_whole = whole == Some(*input)
                        && let least = if is_whole { member.change.len() } else { tensor.rank() }
                        && let Some(tensor) = self.constant(tensor, least)?
                    {
                        *input = edit.constant(*input, "column", tensor);
                    }
                }
                Some(copy)
            }
        }
    }
}
