//! Nodes that are left exactly as they are, with what computes their operands.
//!
//! A node that cannot work, or of which runtimes and the standard's text disagree, may still be in a model that runs: in a branch that
//! is not taken, in a body that does not run, on the way to a result that nobody asks for, or because the runtime is lax.
//! Runtimes infer shapes when they load a model, and refuse it where they see that such a node cannot work, or settle on a
//! shape that the run then does not have. Whether they see it depends on which operands are constants. So operands that
//! nodes compute are not folded into initializers, even if they are known, and no rule looks at such a node.

use rustc_hash::FxHashSet;

use crate::ir::{Fact, Facts, Model, NodeId, ValueId};
use crate::ops::{Event, EventKind};

/// The nodes that are not to be touched, as far as the walks have told.
#[derive(Default)]
pub struct Untouched {
    /// Those that cannot work or are disputed.
    sources: FxHashSet<NodeId>,
    /// Those of them that cannot work.
    broken: FxHashSet<NodeId>,
    /// These, and the nodes with known results that compute their operands. A node once found stays here: `hold` forgets what is known of
    /// its results, so a later call could not find it again.
    nodes: FxHashSet<NodeId>,
}

impl Untouched {
    /// Takes note of what a walk told.
    pub fn note(&mut self, event: &Event) {
        if matches!(event.kind, EventKind::Invalid | EventKind::Disputed) {
            self.sources.insert(event.node);
        }
        if event.kind == EventKind::Invalid {
            self.broken.insert(event.node);
        }
    }

    /// The nodes that cannot work.
    pub fn broken(&self) -> Vec<NodeId> {
        let mut nodes: Vec<NodeId> = self.broken.iter().copied().collect();
        nodes.sort_unstable();
        nodes
    }

    /// Whether a node is not to be touched.
    pub fn contains(&self, node: NodeId) -> bool {
        self.nodes.contains(&node)
    }

    /// Finds the nodes with known results that compute operands of such nodes, directly or not, and forgets the contents of these
    /// results, so that nothing is folded. To be called after each walk.
    pub fn hold(&mut self, model: &Model, facts: &mut Facts) {
        if self.sources.is_empty() {
            return;
        }
        self.nodes.extend(self.sources.iter().copied());
        let mut open: Vec<NodeId> = self.nodes.iter().copied().collect();
        open.sort_unstable();
        while let Some(node) = open.pop().and_then(|id| model.node(id)) {
            for &operand in node.inputs().iter().flatten() {
                let Some(producer) = model.value(operand).producer() else { continue };
                if facts.get(operand).is_some_and(|fact| fact.data().is_some()) && self.nodes.insert(producer) {
                    open.push(producer);
                }
            }
        }
        let producers = self.nodes.iter().filter(|id| !self.sources.contains(id)).filter_map(|&id| model.node(id));
        let results: Vec<ValueId> = producers.flat_map(|node| node.outputs().iter().flatten()).copied().collect();
        for value in results {
            let Some(ty) = facts.get(value).and_then(|fact| fact.ty.clone()) else { continue };
            facts.set(value, Fact::of(ty));
        }
    }
}
