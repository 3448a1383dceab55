//! Typed ids. Each is an index into an arena of the model and is never reused.

use std::fmt;
use std::num::NonZeroU32;

macro_rules! identity {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub(super) u32);

        impl $name {
            /// Returns the position in the model's arena.
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }
    };
}

/// A value: a graph input, an initializer or an output of a node.
///
/// Nodes consist mostly of optional ids. The id is stored as its number plus one, so that `None` needs no extra
/// memory.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ValueId(NonZeroU32);

impl ValueId {
    /// Returns the value of a number. A model has fewer values than there are numbers.
    pub(super) const fn of(number: u32) -> ValueId {
        match NonZeroU32::new(number.saturating_add(1)) {
            Some(stored) => ValueId(stored),
            None => ValueId(NonZeroU32::MAX),
        }
    }

    pub(super) fn number(self) -> u32 {
        self.0.get() - 1
    }

    /// Returns the position in the model's arena.
    pub fn index(self) -> usize {
        self.number() as usize
    }
}

impl fmt::Debug for ValueId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "v{}", self.number())
    }
}

identity!(
    /// A node of some graph of the model.
    NodeId, "n"
);
identity!(
    /// A graph: the main graph, a subgraph held by an attribute, or the body of a function.
    GraphId, "g"
);
identity!(
    /// A function of the model.
    FunctionId, "f"
);
