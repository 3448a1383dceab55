//! A cache of slices that rules have analyzed at earlier nodes.

use std::cell::RefCell;
use std::rc::Rc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::dim::{Dim, Scope};
use crate::index_map::{Allowed, IndexMap, Program, Shape};
use crate::ir::{GraphId, NodeId, ValueId};
use crate::ops::SliceCuts;

/// The ranges of slices, the values that hold a dim and the programs of index maps, as far as a rule has computed them. The key of a slice
/// includes its operands, so an edit invalidates no entry. Facts that change later need a new cache.
#[derive(Default)]
pub struct Taken {
    pub(super) slices: RefCell<FxHashMap<NodeId, CachedSlice>>,
    /// For each graph the first value that holds an expression as a 64-bit scalar.
    pub(super) scalars: RefCell<FxHashMap<GraphId, FxHashMap<Dim, ValueId>>>,
    /// By the shapes of the sources and of the result. Layers of a model move their data alike.
    programs: RefCell<FxHashMap<(SmallVec<[Shape; 1]>, Shape), Vec<WrittenMap>>>,
}

/// A map and its program, if there is one of the allowed movements.
struct WrittenMap {
    map: IndexMap,
    allowed: Allowed,
    program: Option<Program>,
}

impl Taken {
    /// Writes a map, or looks up what was written.
    pub(super) fn program(&self, scope: &Scope, map: &IndexMap, allowed: &Allowed) -> Option<Program> {
        let key = (map.sources().into(), map.result().into());
        let mut programs = self.programs.borrow_mut();
        let known = programs.entry(key).or_default();
        if let Some(found) = known.iter().find(|found| found.map == *map && found.allowed == *allowed) {
            return found.program.clone();
        }
        let program = map.write(scope, allowed);
        known.push(WrittenMap { map: map.clone(), allowed: *allowed, program: program.clone() });
        program
    }
}

/// The operands of a slice and its ranges.
pub(super) struct CachedSlice {
    pub(super) inputs: Vec<Option<ValueId>>,
    pub(super) cuts: Option<Rc<SliceCuts>>,
}
