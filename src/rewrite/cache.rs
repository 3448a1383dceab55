//! A cache of slices that rules have analyzed at earlier nodes.

use std::cell::RefCell;
use std::rc::Rc;

use rustc_hash::FxHashMap;

use crate::dim::{Dim, Scope};
use crate::index_map::{IndexMap, Memo};
use crate::ir::{GraphId, NodeId, ValueId};
use crate::ops::SliceCuts;

/// The ranges of slices, the values that hold a dim and the compositions of index maps, as far as a rule has computed them. The key of a slice
/// includes its operands, so an edit invalidates no entry. Facts that change later need a new cache.
#[derive(Default)]
pub struct Taken {
    pub(super) slices: RefCell<FxHashMap<NodeId, CachedSlice>>,
    /// For each graph the first value that holds an expression as a 64-bit scalar.
    pub(super) scalars: RefCell<FxHashMap<GraphId, FxHashMap<Dim, ValueId>>>,
    pub(super) maps: Rc<Memo>,
    /// The index maps of results, by node and output.
    pub(super) moved: RefCell<FxHashMap<(NodeId, usize), CachedMap>>,
}

impl Taken {
    /// A cache for facts that may have changed, with the maps that are still valid.
    pub fn with_maps(maps: &Rc<Memo>, scope: &Rc<Scope>) -> Taken {
        maps.keep_valid(scope);
        Taken { maps: Rc::clone(maps), ..Taken::default() }
    }
}

/// The operands of a node, the operands that its result reads, and the index map of the result over these.
pub(super) struct CachedMap {
    pub(super) inputs: Vec<Option<ValueId>>,
    pub(super) slots: Rc<[usize]>,
    pub(super) map: Rc<IndexMap>,
}

/// The operands of a slice and its ranges.
pub(super) struct CachedSlice {
    pub(super) inputs: Vec<Option<ValueId>>,
    pub(super) cuts: Option<Rc<SliceCuts>>,
}
