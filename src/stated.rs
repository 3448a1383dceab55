//! What is left out if the file is not to be larger than the one that was read, or to state no shapes that it did not.
//!
//! Every shape is stated, every new node says where it comes from, and the model what was done to it; a model of which little can be folded
//! grows by that. Who wants the smallest file asks for it to be lean; then some of that is left out until it does not grow:
//!
//! 1. documentation and metadata of new nodes that compute no result of a former one, which another node says as well
//! 2. shapes that the file did not have, in the order of [`Worth`]; of those that are worth as much the longest entries first, so that few
//!    are missing
//! 3. the stamp
//!
//! Who wants no new shapes gets none, however large the file is. Types of the main graph's inputs and outputs, and all that the file had, stay.
//! For the sake of its size nothing is left out if only shapes were asked for, or if the model's weights lie in other files.

use std::cmp::Reverse;

use rustc_hash::FxHashSet;

use crate::dim::Dim;
use crate::ir::{DeclaredDim, DeclaredType, DimClaim, Fact, Facts, Model, Node, NodeId, ValueId};
use crate::onnx;
use crate::ops::{Opset, traits};
use crate::tensor::DType;

/// What a model says before it is folded.
pub(crate) struct Said {
    /// The values whose types are declared.
    declared: FxHashSet<ValueId>,
    /// The names of nodes.
    names: FxHashSet<String>,
}

impl Said {
    pub(crate) fn of(model: &Model) -> Said {
        let is_declared = |value: &ValueId| model.value(*value).declared.is_some();
        Said {
            declared: results(model).into_iter().filter(is_declared).collect(),
            names: nodes(model).into_iter().filter_map(|id| Some(model.node(id)?.name.to_string())).collect(),
        }
    }

    /// Leaves out the shapes that the model did not state.
    pub(crate) fn leave_out_new_shapes(&self, model: &mut Model) {
        let is_new = |value: &ValueId| !self.declared.contains(value) && !model.is_output(*value);
        let new: Vec<ValueId> = results(model).into_iter().filter(is_new).collect();
        new.into_iter().for_each(|value| model.undeclare(value));
    }

    /// Leaves out what the model did not say, until it takes no more than `limit` bytes.
    pub(crate) fn fit(&self, model: &mut Model, facts: &Facts, limit: usize) {
        let mut entries = self.texts(model);
        entries.extend(self.types(model, facts));
        let mut entries = entries.into_iter();
        while let Some(more) = excess(model, limit) {
            let mut bytes = 0;
            while bytes < more
                && let Some(entry) = entries.next()
            {
                match entry.what {
                    What::Text(id) => model.forget_texts(id),
                    What::Type(value) => model.undeclare(value),
                }
                bytes += entry.bytes;
            }
            if bytes == 0 {
                return model.unstamp();
            }
        }
    }

    /// What new nodes say of where they come from, the longest first.
    fn texts(&self, model: &Model) -> Vec<Entry> {
        let entry = |id: NodeId| {
            let node =
                model.node(id).filter(|node| !node.extra.is_empty() && !self.names.contains(node.name.as_str()))?;
            Some(Entry { what: What::Text(id), bytes: node.extra.len() })
        };
        let mut entries: Vec<Entry> = nodes(model).into_iter().filter_map(entry).collect();
        entries.sort_by_key(|entry| Reverse(entry.bytes));
        entries
    }

    /// The types that the model did not declare, in the order in which they can be missed.
    fn types(&self, model: &Model, facts: &Facts) -> Vec<Entry> {
        let is_new = |value: &ValueId| !self.declared.contains(value) && !model.is_output(*value);
        let mut entries: Vec<(Worth, Entry)> =
            results(model).into_iter().filter(is_new).filter_map(|value| type_of(model, facts, value)).collect();
        entries.sort_by_key(|(worth, entry)| (*worth, Reverse(entry.bytes)));
        entries.into_iter().map(|(_, entry)| entry).collect()
    }
}

/// By how many bytes a model is larger than `limit`, if it is.
fn excess(model: &Model, limit: usize) -> Option<usize> {
    let bytes = usize::try_from(onnx::length(model).ok()?).ok()?;
    bytes.checked_sub(limit).filter(|&more| more > 0)
}

/// Something that may be left out.
struct Entry {
    what: What,
    /// About what it takes in the file.
    bytes: usize,
}

enum What {
    /// Documentation and metadata of a node.
    Text(NodeId),
    /// The type of a value.
    Type(ValueId),
}

fn nodes(model: &Model) -> Vec<NodeId> {
    model.graphs().flat_map(|graph| model.graph(graph).nodes()).collect()
}

/// The results of nodes.
fn results(model: &Model) -> Vec<ValueId> {
    let nodes = nodes(model).into_iter().filter_map(|id| model.node(id));
    nodes.flat_map(|node| node.outputs().iter().flatten().copied()).collect()
}

/// What a written shape is worth to readers of the file, least first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Worth {
    /// Every reader finds it: the operator works element by element, or all sizes are numbers or names.
    Found,
    /// Runtimes know no size that is an expression behind a convolution or the like.
    Expression,
    /// Nor that two operands of a node have one shape, which they ask before they fuse it.
    Joined,
    /// It rests on sizes that are computed.
    Computed,
}

/// The type of a value as what may be left out, and what it is worth.
fn type_of(model: &Model, facts: &Facts, value: ValueId) -> Option<(Worth, Entry)> {
    let place = model.value(value);
    let node = model.node(place.producer()?)?;
    let DeclaredType::Tensor { shape, .. } = place.declared.as_ref()? else { return None };
    let dims = shape.iter().flatten().map(bytes_of).sum::<usize>();
    let entry = Entry { what: What::Type(value), bytes: place.name.len() + dims + 12 };
    Some((worth(model, facts, value, node), entry))
}

fn worth(model: &Model, facts: &Facts, value: ValueId, node: &Node) -> Worth {
    let is_plain = |dim: &Dim| dim.as_const().is_some() || dim.as_symbol().is_some();
    let shape = |value: ValueId| facts.get(value).and_then(Fact::shape);
    let is_known = shape(value).is_some_and(|dims| dims.iter().all(is_plain));
    let is_pointwise = traits::traits_of(model, node).pointwise.is_some();
    let computes = |value: &ValueId| !model.value(*value).is_constant();
    // A gate is computed from the value itself.
    let is_gate = |other: ValueId| {
        let producer = model.value(other).producer().and_then(|id| model.node(id));
        producer.is_some_and(|node| node.inputs().contains(&Some(value)))
    };
    let alike =
        |other: &ValueId| *other != value && computes(other) && shape(*other) == shape(value) && !is_gate(*other);
    let joins = |node: &Node| node.inputs().iter().flatten().any(alike);
    match follows(model, facts, node) {
        false => Worth::Computed,
        true if is_pointwise || is_known => Worth::Found,
        true if model.users(value).iter().any(|&(id, _)| model.node(id).is_some_and(joins)) => Worth::Joined,
        true => Worth::Expression,
    }
}

/// What a dim takes in a file: a message, and in it a number or a name.
fn bytes_of(dim: &DeclaredDim) -> usize {
    4 + match &dim.claim {
        DimClaim::Param(name) => name.len(),
        DimClaim::Value(size) if *size >= 128 => 2,
        _ => 0,
    }
}

/// Whether the shapes of a node's results follow from those of its operands, and from constants: it reads no sizes that are computed.
fn follows(model: &Model, facts: &Facts, node: &Node) -> bool {
    let is_pointwise = traits::traits_of(model, node).pointwise.is_some();
    let is_computed_size = |value: ValueId| {
        let dtype = facts.get(value).and_then(|fact| fact.dtype());
        dtype.is_none_or(DType::is_integer) && !model.value(value).is_constant()
    };
    let is_known = Opset::of(model, node.graph()).has(&node.op_type) && node.canonical_domain().is_empty();
    let reads_sizes = node.inputs().iter().skip(1).flatten().any(|&value| is_computed_size(value));
    is_known && node.subgraphs().next().is_none() && (is_pointwise || !reads_sizes)
}
