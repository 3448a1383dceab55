//! A cache of slices that rules have analyzed at earlier nodes.

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};

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

/// The written index maps, by the shapes of their sources and of their result. The layers of a model repeat the same maps. A map with
/// symbols is kept until more is known about its symbols.
#[derive(Default)]
pub struct Programs {
    written: RefCell<FxHashMap<(SmallVec<[Shape; 1]>, Shape), Vec<WrittenMap>>>,
    /// The scope of the symbols in the maps.
    scope: RefCell<Weak<Scope>>,
    /// The knowledge about symbols when the oldest map was written, and the number of symbols when the last one was.
    learned: Cell<usize>,
    symbols: Cell<usize>,
}

/// A map with its program. `None` if no program consists of the allowed movements only.
struct WrittenMap {
    map: IndexMap,
    allowed: Allowed,
    program: Option<Program>,
}

impl Taken {
    /// Returns a cache for facts that may have changed, with the maps that are still valid.
    pub fn with_programs(programs: &Rc<Programs>, scope: &Rc<Scope>) -> Taken {
        programs.keep_valid(scope);
        Taken { programs: Rc::clone(programs), ..Taken::default() }
    }
}

impl Programs {
    /// Drops the maps with symbols of another scope, and those about whose symbols more is known now.
    fn keep_valid(&self, scope: &Rc<Scope>) {
        let before = self.scope.replace(Rc::downgrade(scope));
        if Weak::ptr_eq(&before, &Rc::downgrade(scope))
            && !scope.has_learned_since(self.learned.get(), self.symbols.get())
        {
            return;
        }
        let is_number = |dims: &Shape| dims.iter().all(|dim| dim.as_const().is_some());
        self.written.borrow_mut().retain(|(sources, result), _| sources.iter().chain([result]).all(is_number));
        self.learned.set(scope.learned());
        self.symbols.set(0);
    }

    /// Returns the cached program of a map, or writes it.
    pub(super) fn program(&self, scope: &Scope, map: &IndexMap, allowed: &Allowed) -> Option<Program> {
        let key = (map.sources().into(), map.result().into());
        let mut written = self.written.borrow_mut();
        let known = written.entry(key).or_default();
        if let Some(found) = known.iter().find(|found| found.map == *map && found.allowed == *allowed) {
            return found.program.clone();
        }
        let program = map.write(scope, allowed);
        self.symbols.set(scope.symbol_count());
        known.push(WrittenMap { map: map.clone(), allowed: *allowed, program: program.clone() });
        program
    }
}

/// The operands of a slice and its ranges.
pub(super) struct CachedSlice {
    pub(super) inputs: Vec<Option<ValueId>>,
    pub(super) cuts: Option<Rc<SliceCuts>>,
}
