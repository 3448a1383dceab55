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
    pub(super) programs: Rc<Programs>,
}

/// The maps that rules have written, by the shapes of their sources and of their result: layers of a model move their data alike. Maps with
/// symbols depend on facts, so a new cache of facts keeps only the others.
#[derive(Default)]
pub struct Programs {
    written: RefCell<FxHashMap<(SmallVec<[Shape; 1]>, Shape), Vec<WrittenMap>>>,
}

/// A map and its program, if there is one of the allowed movements.
struct WrittenMap {
    map: IndexMap,
    allowed: Allowed,
    program: Option<Program>,
}

impl Taken {
    /// A cache for facts that may have changed, with the maps that depend on none.
    pub fn with_programs(programs: &Rc<Programs>) -> Taken {
        let is_number = |dims: &Shape| dims.iter().all(|dim| dim.as_const().is_some());
        programs.written.borrow_mut().retain(|(sources, result), _| sources.iter().chain([result]).all(is_number));
        Taken { programs: Rc::clone(programs), ..Taken::default() }
    }
}

impl Programs {
    /// Writes a map, or looks up what was written.
    pub(super) fn program(&self, scope: &Scope, map: &IndexMap, allowed: &Allowed) -> Option<Program> {
        let key = (map.sources().into(), map.result().into());
        let mut written = self.written.borrow_mut();
        let known = written.entry(key).or_default();
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
