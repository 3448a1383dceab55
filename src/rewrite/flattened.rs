//! Axes that are merged before functions, and laid out again behind them.
//!
//! Law: `L(f(M(x), c)) = L′(f(x′, c))` for an element-wise `f`, a layout `M` that merges axes, `x′` which has them apart, and a `c` that is the
//! same along them: elements stay in order, and `L` says the same shape of them. If `M` puts in axes of size 1 as well, `x′` is `x` with
//! those alone, and they are put in where that costs nothing ([`super::inserted`]).
//!
//! Detectors merge the axes of a grid before they add the boxes of each place to it, and merge again behind that.

use std::collections::VecDeque;

use super::{Place, Rule};
use crate::dim::{Dim, Scope};
use crate::ir::{Edit, NewNode, Node, NodeId, ValueId};
use crate::ops::traits::{LAYOUTS, Movement, Operands, traits_of};

pub(super) const RULES: &[Rule] = &[Rule {
    name: "merge-behind-functions",
    law: "L(f(M(x), c)) = L′(f(x′, c)) for layouts L, L′ and an M that merges axes, which are apart in x′",
    sentence: "Merges two layouts around element-wise functions into one.",
    premises: &[
        ("merges", "the first layout merges adjacent axes, and otherwise only adds axes of size 1"),
        ("by-element", "the functions are element-wise"),
        ("same-along", "all other operands have size 1 along the merged axis and the axes before it"),
        ("laid-out", "every result is laid out again, which constants can say of the axes as they are apart"),
        ("no-sizes", "none of its elements is a dim, because dims are planned together"),
        ("no-output", "no value in between is a graph output"),
        (
            "pays",
            "the first layout disappears, or the node that adds axes of size 1 follows a function that accepts them",
        ),
    ],
    exact: false,
    operators: LAYOUTS,
    apply: merge_behind,
}];

/// How many nodes are computed anew at most, and how many readers of one value are looked at.
const MOST: usize = 16;

/// What is computed of a value whose axes are merged.
struct Region<'p, 'a> {
    place: &'p Place<'a>,
    /// For each axis of what is merged the sizes it is merged of: none for one that is put in.
    runs: Vec<Vec<Dim>>,
    /// How many axes stand behind the last one that is merged.
    behind: usize,
    functions: Vec<NodeId>,
    /// The values with merged axes, and what has them apart.
    members: Vec<(ValueId, Option<ValueId>)>,
    /// The layouts behind.
    leaves: Vec<NodeId>,
}

fn merge_behind(place: &Place<'_>) -> Option<Edit> {
    let (source, merged) = (place.input(0)?, place.output(0)?);
    let (from, to) = (place.shape(source)?, place.shape(merged)?);
    if !place.opset.everything_broadcasts() {
        return None;
    }
    let runs = runs(place.scope(), from, to)?;
    let last = runs.iter().rposition(|run| run.len() > 1)?;
    let behind = runs.len().checked_sub(last)?.checked_sub(1)?;
    let mut region = Region { place, runs, behind, functions: Vec::new(), members: Vec::new(), leaves: Vec::new() };
    region.grow(merged)?;
    region.write(source, merged)
}

/// The sizes of which each size of `to` is the product, all of `from` in their order; none for a 1 that is not there.
fn runs(scope: &Scope, from: &[Dim], to: &[Dim]) -> Option<Vec<Vec<Dim>>> {
    let mut rest = from;
    let mut runs = Vec::with_capacity(to.len());
    for size in to {
        let is_product =
            |count: &usize| rest.get(..*count).is_some_and(|sizes| scope.eq(&scope.product(sizes), size).is_yes());
        let count = match size.is_const(1) && !rest.first().is_some_and(|first| first.is_const(1)) {
            true => 0,
            false => (1..=rest.len()).find(is_product)?,
        };
        let (run, others) = rest.split_at_checked(count)?;
        runs.push(run.to_vec());
        rest = others;
    }
    rest.is_empty().then_some(runs)
}

impl Region<'_, '_> {
    fn is_member(&self, value: ValueId) -> bool {
        self.members.iter().any(|(member, _)| *member == value)
    }

    /// Finds what is computed, up to the layouts behind it.
    fn grow(&mut self, first: ValueId) -> Option<()> {
        let place = self.place;
        let mut waiting = VecDeque::from([first]);
        while let Some(value) = waiting.pop_front() {
            if place.model.is_named(value) || place.model.has_more_readers(value, MOST) || self.apart(value).is_none() {
                return None;
            }
            self.members.push((value, None));
            for (id, slot) in place.model.users(value) {
                let node = place.model.node(id).filter(|node| Some(node.graph()) == place.graph())?;
                let traits = traits_of(place.model, node);
                if traits.moves == Some(Movement::Layout) && slot == 0 {
                    self.leaves.push(id);
                    continue;
                }
                let by_element =
                    traits.pointwise.is_some_and(|own| matches!(own.operands, Operands::Broadcast | Operands::First));
                let [Some(result)] = *node.outputs() else { return None };
                if !by_element || !node.canonical_domain().is_empty() || self.functions.len() >= MOST {
                    return None;
                }
                if !self.functions.contains(&id) {
                    self.functions.push(id);
                    waiting.push_back(result);
                }
            }
        }
        let operands = self.functions.iter().filter_map(|&id| place.model.node(id)).flat_map(Node::inputs).flatten();
        let fits = operands.into_iter().all(|&operand| self.is_member(operand) || self.is_same_along(operand));
        (fits && !self.functions.is_empty() && !self.leaves.is_empty()).then_some(())
    }

    /// The sizes of a value with the axes apart, if it has those that are merged and holds no sizes.
    fn apart(&self, value: ValueId) -> Option<Vec<Dim>> {
        let fact = self.place.fact(value).filter(|fact| fact.elements().is_none())?;
        let shape = fact.shape().filter(|shape| shape.len() == self.runs.len())?;
        let mut apart = Vec::new();
        for (size, run) in shape.iter().zip(&self.runs) {
            if run.len() <= 1 {
                apart.push(size.clone());
                continue;
            }
            let scope = self.place.scope();
            scope.eq(&scope.product(run), size).is_yes().then_some(())?;
            apart.extend(run.iter().cloned());
        }
        Some(apart)
    }

    /// Whether an operand has size 1 along the last axis that is merged, and along all before it, so that it meets the axes apart as well.
    fn is_same_along(&self, operand: ValueId) -> bool {
        let front = |shape: &[Dim]| shape.iter().rev().skip(self.behind).all(|size| size.is_const(1));
        self.place.shape(operand).is_some_and(front)
    }

    fn write(mut self, source: ValueId, merged: ValueId) -> Option<Edit> {
        let place = self.place;
        let mut edit = place.edit()?.removing(place.id);
        let (from, to) = (place.shape(source)?, self.apart(merged)?);
        let mut first = source;
        if !place.same_dims(from, &to) {
            // Behind a function, which may have the axes of size 1 before it.
            let is_function = |traits: &crate::ops::traits::Traits| traits.pointwise.is_some();
            place.producer_with(source, is_function).filter(|_| place.has_one_reader(source))?;
            first = edit.new_value(merged, "apart");
            let node = place.build(&mut edit, merged).reshape_to(place.scope(), source, from, &to)?;
            edit.insert.push(node.output(first));
        }
        self.made(merged, first);
        let mut waiting = std::mem::take(&mut self.functions);
        while !waiting.is_empty() {
            let is_ready = |id: &NodeId| {
                let inputs = place.model.node(*id).map(Node::inputs).unwrap_or_default();
                inputs.iter().flatten().all(|input| !self.is_member(*input) || self.new_form(*input).is_some())
            };
            let next = waiting.iter().position(is_ready)?;
            let id = waiting.remove(next);
            let node = place.model.node(id)?;
            let result = node.output(0)?;
            let mut copy = NewNode::like(node);
            for input in copy.inputs.iter_mut().flatten() {
                *input = self.new_form(*input).unwrap_or(*input);
            }
            let new = edit.new_value(result, "apart");
            edit.insert.push(copy.output(new));
            edit.remove.push(id);
            self.made(result, new);
        }
        for &leaf in &self.leaves {
            let node = place.model.node(leaf)?;
            let (value, output) = (node.input(0)?, node.output(0)?);
            let (new, from) = (self.new_form(value)?, self.apart(value)?);
            let to = place.shape(output)?;
            edit.remove.push(leaf);
            if place.same_dims(&from, to) && !place.model.is_named(output) {
                edit.replace.push((output, new));
                continue;
            }
            let layout = place.build(&mut edit, output).reshape_to(place.scope(), new, &from, to)?;
            edit.insert.push(layout.named(node.name.clone()).output(output));
        }
        Some(edit)
    }

    fn new_form(&self, value: ValueId) -> Option<ValueId> {
        self.members.iter().find(|(member, _)| *member == value)?.1
    }

    fn made(&mut self, value: ValueId, new: ValueId) {
        if let Some(member) = self.members.iter_mut().find(|(member, _)| *member == value) {
            member.1 = Some(new);
        }
    }
}
