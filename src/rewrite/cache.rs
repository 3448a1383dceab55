//! What rules have worked out of slices at earlier nodes.

use std::cell::RefCell;
use std::rc::Rc;

use rustc_hash::FxHashMap;

use crate::dim::Dim;
use crate::ir::{GraphId, NodeId, ValueId};
use crate::ops::SliceCuts;

/// What slices take, and which values hold a size, as far as it has been worked out. It goes by what the slices read, so edits do not
/// spoil it; when more is proved of that than before, begin with a new one.
#[derive(Default)]
pub struct Taken {
    pub(super) slices: RefCell<FxHashMap<NodeId, CachedSlice>>,
    /// For each graph the first value that holds an expression as a 64-bit scalar.
    pub(super) scalars: RefCell<FxHashMap<GraphId, FxHashMap<Dim, ValueId>>>,
}

/// The operands of a slice and what it takes.
pub(super) struct CachedSlice {
    pub(super) inputs: Vec<Option<ValueId>>,
    pub(super) cuts: Option<Rc<SliceCuts>>,
}
