//! Splits the size nodes into groups that are planned separately.
//!
//! Two size nodes are in one group if they share a symbol, a computed operand, a reader, or a node that only they need. A plan for one group saves
//! nothing in another. So neither the effort for another group nor an unmet demand there changes a plan.

use std::collections::BTreeSet;

use rustc_hash::{FxHashMap, FxHashSet};

use super::demands::holder_in;
use super::survey::{Group, Survey, add_symbols};
use crate::dim::Symbol;
use crate::ir::{Facts, Model, NodeId, ValueId};

/// Something that two size nodes may share.
#[derive(PartialEq, Eq, Hash)]
enum Shared {
    Symbol(Symbol),
    Value(ValueId),
    Node(NodeId),
}

/// A union-find of size nodes, by their index in the order.
struct Sets {
    parents: Vec<usize>,
    first: FxHashMap<Shared, usize>,
}

impl Sets {
    fn root(&mut self, mut at: usize) -> usize {
        while let Some(parent) = self.parents.get(at).copied().filter(|&parent| parent != at) {
            let above = self.parents.get(parent).copied().unwrap_or(parent);
            if let Some(own) = self.parents.get_mut(at) {
                *own = above;
            }
            at = above;
        }
        at
    }

    /// Merges the set of a node with the set of the nodes that share this.
    fn join(&mut self, at: usize, shared: Shared) {
        let other = *self.first.entry(shared).or_insert(at);
        let (a, b) = (self.root(at), self.root(other));
        // The earliest node represents a set, so that groups are in the order of their first nodes.
        if let Some(parent) = self.parents.get_mut(a.max(b)) {
            *parent = a.min(b);
        }
    }
}

impl Survey {
    /// Returns the groups of size nodes, in the order of their first nodes.
    pub fn groups(&self, model: &Model, facts: &Facts) -> Vec<Group> {
        let mut sets = Sets { parents: (0..self.order.len()).collect(), first: FxHashMap::default() };
        // The nodes that are needed only for sizes, each with the first size node that needs it.
        let (mut needed, mut seen): (Vec<usize>, FxHashSet<NodeId>) = (Vec::new(), FxHashSet::default());
        for (at, node) in self.order.iter().enumerate().filter_map(|(at, &id)| Some((at, model.node(id)?))) {
            let computed = |value: &ValueId| !model.value(*value).is_constant();
            let operands = node.inputs().iter().flatten().copied().filter(computed);
            let mut symbols: BTreeSet<Symbol> = BTreeSet::new();
            let mut open: Vec<ValueId> = operands.clone().collect();
            for value in operands.chain(node.outputs().iter().flatten().copied()) {
                sets.join(at, Shared::Value(value));
                add_symbols(facts, value, &mut symbols);
            }
            for symbol in symbols {
                sets.join(at, Shared::Symbol(symbol));
            }
            for (reader, _) in node.outputs().iter().flatten().flat_map(|&value| model.users(value)) {
                sets.join(at, Shared::Node(holder_in(model, self.graph, reader)));
            }
            while let Some(value) = open.pop() {
                let Some(id) = model.value(value).producer() else { continue };
                let is_placed =
                    self.position(id).is_some() && !self.size_nodes.contains(&id) && !self.kept.contains(&id);
                let Some(node) = model.node(id).filter(|_| is_placed) else { continue };
                sets.join(at, Shared::Node(id));
                if seen.insert(id) {
                    needed.push(at);
                    open.extend(node.inputs().iter().flatten());
                    node.subgraphs().for_each(|inner| open.extend(model.captures(inner)));
                }
            }
        }
        let mut groups: Vec<Group> = Vec::new();
        let mut of_root: FxHashMap<usize, usize> = FxHashMap::default();
        for (at, &id) in self.order.iter().enumerate() {
            let group = *of_root.entry(sets.root(at)).or_insert(groups.len());
            if group == groups.len() {
                groups.push(Group::default());
            }
            if let Some(group) = groups.get_mut(group) {
                group.nodes.push(id);
            }
        }
        for at in needed {
            if let Some(group) = of_root.get(&sets.root(at)).and_then(|&group| groups.get_mut(group)) {
                group.shape_only += 1;
            }
        }
        groups
    }
}
