//! The intermediate representation: the semantics of a model, independent of its file.
//!
//! * [`Model`] owns all graphs, nodes and values in arenas; ids ([`ValueId`], [`NodeId`], [`GraphId`]) are never
//!   reused.
//! * Subgraphs are separate graphs that may read values of enclosing graphs (captures).
//! * Proved properties of a value ([`Fact`]) are in a separate table, [`Facts`], never in the model.
//! * petgraph stores the wiring and is hidden behind [`Model`]'s methods.

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

/// The name of an operator, domain, attribute, node or value. Names of up to 23 bytes are stored inline, so that most
/// comparisons need no indirection.
pub type Name = smol_str::SmolStr;

/// The operands that read a value, as (node, slot). Few values have more readers than fit inline.
pub type Users = smallvec::SmallVec<[(NodeId, usize); 4]>;

/// The fields of a message that the representation does not model, as wire bytes that are written back. Examples are
/// documentation, metadata, device configurations, and fields newer than the schema.
pub type Extra = bytes::Bytes;
