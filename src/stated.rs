//! Chooses the shapes that a result states, and shrinks a file that must not be larger than the original.
//!
//! By default the result states every known shape except those by which ONNX Runtime chooses a slower kernel ([`Shapes::Auto`]). New nodes
//! record their origin, and the metadata records the options of the run, so a model with few folded nodes grows. [`Shapes::Lean`] omits
//! entries until the file does not grow:
//!
//! 1. documentation and metadata of new nodes that compute no result of a former one; another node has the same
//! 2. shapes that the file did not have, in the order of [`Worth`]; among equal ones the longest first, so that few are omitted
//! 3. the stamp
//!
//! Types of the main graph's inputs and outputs are kept, and all entries of the original. If the run only infers shapes, or if the weights
//! are in other files, the size of the file does not matter.

use std::cmp::Reverse;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::dim::Dim;
use crate::ir::{DeclaredDim, DeclaredType, DimClaim, Fact, Facts, Model, Node, NodeId, ValueId};
use crate::onnx;
use crate::ops::{Opset, traits};
use crate::passes::{Fused, Options, Shapes, fused_by_shapes};
use crate::sort;
use crate::tensor::DType;

/// The declarations of a model before it is folded.
pub(crate) struct Said {
    /// The declared types of values.
    declared: FxHashMap<ValueId, DeclaredType>,
    /// The names of nodes.
    names: FxHashSet<String>,
}

impl Said {
    pub(crate) fn of(model: &Model) -> Said {
        let declared = |value: ValueId| Some((value, model.value(value).declared.clone()?));
        Said {
            declared: results(model).into_iter().filter_map(declared).collect(),
            names: nodes(model).into_iter().filter_map(|id| Some(model.node(id)?.name.to_string())).collect(),
        }
    }

    /// Removes the declared shapes that the options exclude. `limit` is the size in bytes of the original, if it is known. Returns the
    /// number of known shapes that the default omits, and the reason.
    pub(crate) fn leave_out(
        self,
        model: &mut Model,
        facts: &Facts,
        options: &Options,
        limit: Option<usize>,
    ) -> Option<(usize, String)> {
        let inner = |model: &Model| results(model).into_iter().filter(|&value| !model.is_output(value)).collect();
        let infers_only = !options.fold || options.stop_after == 0;
        match options.shapes {
            Shapes::None => {
                let inner: Vec<ValueId> = inner(model);
                inner.into_iter().for_each(|value| model.undeclare(value));
            }
            Shapes::Keep => {
                let mut new: Vec<ValueId> = inner(model);
                new.retain(|value| !self.declared.contains_key(value));
                new.into_iter().for_each(|value| model.undeclare(value));
            }
            Shapes::Auto | Shapes::Lean if !infers_only => {
                let left_out = if options.exact {
                    let reason = "runtimes select kernels by shapes, and these differ in the last bits".to_string();
                    (self.restore(model, inner(model)), reason)
                } else {
                    let Fused { sums, values } = fused_by_shapes(model, facts, &|value| self.says(model, value));
                    let mut values: Vec<ValueId> =
                        values.into_iter().filter(|&value| !model.is_output(value)).collect();
                    values.sort_unstable();
                    let sums = match sums {
                        1 => "a sum with the normalization after it".to_string(),
                        sums => format!("{sums} sums with the normalizations after them"),
                    };
                    let reason = format!("with these shapes, ONNX Runtime fuses {sums}, which is slower on CPUs");
                    (self.restore(model, values), reason)
                };
                if let Some(limit) = limit.filter(|_| options.shapes == Shapes::Lean) {
                    self.fit(model, facts, limit);
                }
                return Some(left_out).filter(|(shapes, _)| *shapes > 0);
            }
            _ => {}
        }
        None
    }

    /// Returns `true` if the file declares as much about a value as the model does now.
    fn says(&self, model: &Model, value: ValueId) -> bool {
        let said = self.declared.get(&value);
        model.is_output(value) || said.is_some_and(|said| Some(said) == model.value(value).declared.as_ref())
    }

    /// Restores the declarations of the file for these values, except those proved false. Returns the number of complete shapes that the
    /// model loses.
    fn restore(&self, model: &mut Model, values: Vec<ValueId>) -> usize {
        let mut fewer = 0;
        for value in values {
            let Some(written) = model.value(value).declared.as_ref() else { continue };
            let had_shape = written.shape().is_some();
            match self.declared.get(&value) {
                None => model.undeclare(value),
                Some(said) if said != written && is_part_of(said, written) => model.declare(value, said.clone()),
                Some(_) => continue,
            }
            fewer += usize::from(had_shape);
        }
        fewer
    }

    /// Omits new entries until the model has at most `limit` bytes.
    fn fit(&self, model: &mut Model, facts: &Facts, limit: usize) {
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

    /// Returns the origins that new nodes record, the longest first.
    fn texts(&self, model: &Model) -> Vec<Entry> {
        let entry = |id: NodeId| {
            let node =
                model.node(id).filter(|node| !node.extra.is_empty() && !self.names.contains(node.name.as_str()))?;
            Some(Entry { what: What::Text(id), bytes: node.extra.len() })
        };
        let mut entries: Vec<Entry> = nodes(model).into_iter().filter_map(entry).collect();
        sort::by_key(&mut entries, |entry| Reverse(entry.bytes));
        entries
    }

    /// Returns the types that the file did not declare, the least valuable first.
    fn types(&self, model: &Model, facts: &Facts) -> Vec<Entry> {
        let is_new = |value: &ValueId| !self.declared.contains_key(value) && !model.is_output(*value);
        let mut entries: Vec<(Worth, Entry)> =
            results(model).into_iter().filter(is_new).filter_map(|value| type_of(model, facts, value)).collect();
        sort::by_key(&mut entries, |(worth, entry)| (*worth, Reverse(entry.bytes)));
        entries.into_iter().map(|(_, entry)| entry).collect()
    }
}

/// Returns `true` if `written` has every number that `said` has: `said` may lack dims and have other names.
fn is_part_of(said: &DeclaredType, written: &DeclaredType) -> bool {
    match (said, written) {
        (DeclaredType::Tensor { dtype, shape, .. }, DeclaredType::Tensor { dtype: other, shape: dims, .. }) => {
            let agrees = |(said, dim): (&DeclaredDim, &DeclaredDim)| {
                !matches!(said.claim, DimClaim::Value(_)) || said.claim == dim.claim
            };
            let agree = |said: &Vec<DeclaredDim>, dims: &Vec<DeclaredDim>| {
                said.len() == dims.len() && said.iter().zip(dims).all(agrees)
            };
            dtype == other && shape.as_ref().is_none_or(|said| dims.as_ref().is_some_and(|dims| agree(said, dims)))
        }
        _ => false,
    }
}

/// Returns the number of bytes above `limit`, if there are any.
fn excess(model: &Model, limit: usize) -> Option<usize> {
    let bytes = usize::try_from(onnx::length(model).ok()?).ok()?;
    bytes.checked_sub(limit).filter(|&more| more > 0)
}

/// An entry that may be omitted.
struct Entry {
    what: What,
    /// The approximate bytes in the file.
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

/// Returns the results of all nodes.
fn results(model: &Model) -> Vec<ValueId> {
    let nodes = nodes(model).into_iter().filter_map(|id| model.node(id));
    nodes.flat_map(|node| node.outputs().iter().flatten().copied()).collect()
}

/// The value of a stated shape to consumers of the file, the least valuable first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Worth {
    /// Every consumer infers it: the operator is element-wise, or all sizes are numbers or names.
    Found,
    /// Runtimes do not infer it, because a size is an expression after a convolution or a similar operator.
    Expression,
    /// Runtimes do not infer that two operands of a node have equal shapes, which they require for a fusion.
    Joined,
    /// It depends on computed sizes.
    Computed,
}

/// Returns the type of a value as an entry, with its value to consumers.
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
    // A gate is computed from the gated value itself.
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

/// Returns the bytes of a dim in a file: a message with a number or a name.
fn bytes_of(dim: &DeclaredDim) -> usize {
    4 + match &dim.claim {
        DimClaim::Param(name) => name.len(),
        DimClaim::Value(size) if *size >= 128 => 2,
        _ => 0,
    }
}

/// Returns `true` if the shapes of a node's results follow from the operands' shapes and from constants: the node reads no computed sizes.
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
