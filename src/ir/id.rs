//! Typed identities. Each is an index into one of the model's arenas and is never given out twice.

use std::fmt;

macro_rules! identity {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub(super) u32);

        impl $name {
            /// The position in the model's arena.
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

identity!(
    /// A value: a graph input, an initializer or an output of a node.
    ValueId, "v"
);
identity!(
    /// A node of some graph of the model.
    NodeId, "n"
);
identity!(
    /// A graph: the main graph, a subgraph held by an attribute, or the body of a function.
    GraphId, "g"
);
identity!(
    /// A function that the model brings along.
    FunctionId, "f"
);
