//! The intermediate representation: what a model *is*, apart from how a file spells it.
//!
//! * [`Model`] owns every graph, node and value in arenas; identities ([`ValueId`], [`NodeId`], [`GraphId`]) are handed
//!   out once and never recycled.
//! * Subgraphs are graphs of their own that may read values of the graphs around them (captures).
//! * What is *known* of a value ([`Fact`]) lives beside the model, in a [`Facts`] table, never inside it.
//! * petgraph holds the wiring and stays hidden behind [`Model`]'s methods.

mod apply;
mod attribute;
mod by_name;
mod copy;
mod custom;
mod edit;
mod extra;
mod fact;
#[cfg(feature = "seeded-faults")]
pub mod faults;
mod fields;
mod graph;
mod id;
mod inline;
mod names;
mod naming;
mod node;
mod sequence;
mod table;
pub mod text;
mod types;
mod value;
mod verify;
mod watch;

pub use apply::Made;
pub use attribute::{Attribute, AttributeKind, NamedAttribute, SparseTensor};
pub use by_name::ByName;
pub use copy::Binding;
pub(crate) use custom::CustomOperand;
pub use custom::{CustomNode, CustomOperator, CustomType};
pub use edit::{Edit, NewNode};
pub use fact::{Content, Contradiction, Data, Fact, Facts, MAX_ELEMENTS, Scalar};
pub(crate) use fields::fields;
pub use graph::{Annotation, Function, Graph, Model, OpsetImport, Synonym};
pub use id::{FunctionId, GraphId, NodeId, ValueId};
pub use node::Node;
pub use types::{DeclaredDim, DeclaredShape, DeclaredType, DimClaim, TensorType, Type};
pub use value::{Constant, Definition, ExternalOrigin, Value};
pub use verify::Broken;
pub use watch::{Part, Watch};

/// A name: of an operator, a domain, an attribute, a node, a value. One of up to 23 bytes takes no memory beside the place where it stands, so
/// that most are compared without a look elsewhere.
pub type Name = smol_str::SmolStr;

/// The operands that read a value: nodes, and which operand of each. Few values have more readers than fit in without memory of their own.
pub type Users = smallvec::SmallVec<[(NodeId, usize); 4]>;

/// What a message of the file held that the representation does not interpret, as wire bytes to be written back with it:
/// documentation, metadata, device configurations, and fields newer than the schema. Empty when there is nothing.
pub type Extra = bytes::Bytes;
