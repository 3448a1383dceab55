//! Fusions: neighbouring nodes that one node does.
//!
//! | file | what becomes one |
//! | --- | --- |
//! | [`weights`] | a node with weights, and a scaling and shifting of each channel before or behind it |
//! | [`factor`] | a factor, and constants further up or down |
//! | [`gemm`] | a matrix product, and the addition behind it or the transposition before it |
//! | [`normalized`] | what is normalized, and what a normalization gives |
//! | [`pad`] | a padding, and the padding, convolution or pooling that follows it |
//! | [`pooled`] | which Pads may come to stand before a pool |
//! | [`activation`], [`normalization`] | the nodes that spell an operator of the standard in older ones' terms |
//! | [`divided`] | a normalization that stays spelled out, as runtimes know it |
//! | [`apart`] | transpositions that a runtime would move into a normalization that is spelled out |
//! | [`kernels`] | which operators may stand for formulas over which element types |
//! | [`magnitude`] | how far a factor or a shift may move |
//! | [`ordinary`] | whether a value may be of the size that takes for granted |
//! | [`parallel`] | products of one operand with several weights |
//! | [`attention`] | which products are queries, keys and values |
//! | [`mask`] | the mask of an attention, in the spelling that tools know |
//! | [`residual`] | constants that are added before a normalization |
//! | [`rows`] | products with a bias, in rows |
//! | [`stream`] | sums and normalizations between them, in rows |
//! | [`table`] | a constant row that is added to rows of a table |
//! | [`scaled_attention`], [`heads`] | an attention spelled out, and the heads around it, where the operator set has one |
//! | [`rotary`] | a rotary embedding spelled out, where the operator set has one |
//! | [`quick_gelu`] | the activation that CLIP is known by |
//! | [`zero_term`] | zeros that are added |
//! | [`token`] | constant rows in front of others, and what is added to all of them |
//!
//! All of them answer with fewer nodes and never with more bytes: what is taken away, and what only it reads, is weighed
//! against the constants that are added ([`Fusion::edit`]). Constants are computed in binary64 and rounded once.

pub(super) mod activation;
mod affine;
pub(super) mod apart;
mod attention;
pub(super) mod divided;
pub(super) mod embedded;
pub(super) mod factor;
pub(super) mod gemm;
pub(super) mod heads;
pub(super) mod idiom;
mod kernels;
mod magnitude;
pub(super) mod mask;
pub(super) mod normalization;
pub(super) mod normalized;
mod ordinary;
pub(super) mod pad;
pub(super) mod parallel;
mod pattern;
pub(super) mod pooled;
mod quick_gelu;
mod range;
pub(super) mod residual;
pub(super) mod rotary;
pub(super) mod rows;
mod scaled;
pub(super) mod scaled_attention;
pub(super) mod stream;
pub(super) mod table;
pub(super) mod token;
pub(super) mod weights;
pub(super) mod zero_term;

use super::miss::{Miss, ensure};
use super::place::Place;
use crate::ir::{Edit, Fact, NamedAttribute, NewNode, Node, NodeId, ValueId};
use crate::ops::traits::traits_of;
use crate::tensor::{DType, Number, Tensor, dispatch_numeric};

/// About what a node takes in a file: its operator, its name, the names of its operands and of its result.
const NODE_BYTES: usize = 96;

/// An operand of the node that a fusion makes.
enum Operand {
    /// A value there is.
    Value(ValueId),
    /// An optional operand left out.
    Absent,
    /// A new constant, to be named after a value.
    Constant(Tensor, ValueId),
}

impl From<Option<ValueId>> for Operand {
    fn from(value: Option<ValueId>) -> Self {
        value.map_or(Operand::Absent, Operand::Value)
    }
}

/// The bytes of the new constants among operands.
fn constant_bytes(operands: &[Operand]) -> usize {
    operands.iter().fold(0usize, |sum, operand| match operand {
        Operand::Constant(tensor, _) => sum.saturating_add(tensor.byte_len()),
        _ => sum,
    })
}

/// One node in place of several. Its result is the first result of the node the rule looked at.
struct Fusion {
    /// The nodes that go; nothing else reads what they compute, but for the result.
    remove: Vec<NodeId>,
    /// The node whose name and documentation the new one has.
    like: NodeId,
    operator: &'static str,
    attributes: Vec<NamedAttribute>,
    operands: Vec<Operand>,
}

impl Fusion {
    /// The edit, unless it would make the model larger.
    fn edit(mut self, place: &Place<'_>) -> Result<Edit, Miss> {
        let reads = self.operands.iter().filter_map(|operand| match operand {
            Operand::Value(value) => Some(*value),
            _ => None,
        });
        let mut edit = place.fuse(self.remove, &reads.collect::<Vec<_>>(), constant_bytes(&self.operands))?;
        while matches!(self.operands.last(), Some(Operand::Absent)) {
            self.operands.pop();
        }
        let like = place.model.node(self.like).ok_or(Miss::ROOT)?;
        let mut node = NewNode::new(self.operator, []).named(like.name.clone());
        node.extra = like.extra.clone();
        node.attributes = self.attributes;
        for operand in self.operands {
            node.inputs.push(match operand {
                Operand::Value(value) => Some(value),
                Operand::Absent => None,
                Operand::Constant(tensor, like) => Some(edit.constant_named(place.fused_name(like), tensor)),
            });
        }
        Ok(edit.inserting(node.output(place.result()?)))
    }
}

/// How many integers a caller may give that are taken for sizes.
const FEW_INTEGERS: usize = 16;

/// The most numbers of a table that sizes are computed with. A longer table is a weight, and values computed from it are data.
const MOST_OF_SIZES: usize = 64;

/// How many nodes are looked at to tell whether numbers come from sizes.
const REACH_TO_SIZES: usize = 64;

impl Place<'_> {
    /// The node's only result.
    fn only_output(&self) -> Option<ValueId> {
        let outputs = self.node()?.outputs();
        outputs.iter().skip(1).all(Option::is_none).then_some(outputs.first().copied().flatten()?)
    }

    /// What a constant is called that takes in others: `w_fused` after one of them, and again `w_fused` after that.
    fn fused_name(&self, like: ValueId) -> String {
        let name = &self.model.value(like).name;
        let counted = |tail: &str| tail.is_empty() || tail.strip_prefix('_').is_some_and(|n| n.parse::<u32>().is_ok());
        let stem = name.rsplit_once("_fused").filter(|(_, tail)| counted(tail)).map_or(name.as_str(), |(stem, _)| stem);
        format!("{stem}_fused")
    }

    /// An edit that takes nodes away for one that reads these values and `bytes` of new constants. Declines unless there are
    /// two nodes at least, no remaining node reads their results except the first result of this node, and the model does not grow.
    fn fuse(&self, mut remove: Vec<NodeId>, reads: &[ValueId], bytes: usize) -> Result<Edit, Miss> {
        remove.sort_unstable();
        remove.dedup();
        ensure(remove.len() >= 2, Miss::ROOT)?;
        self.closed(&remove, reads)?;
        ensure(bytes <= self.allowance(&remove), Miss::LARGER)?;
        let mut edit = self.begin()?;
        edit.remove = remove;
        Ok(edit)
    }

    /// Checks that no remaining node reads a value that these nodes compute, the result aside, and that none of `reads` is such a value.
    fn closed(&self, remove: &[NodeId], reads: &[ValueId]) -> Result<(), Miss> {
        let result = self.output(0);
        let gone = remove.iter().filter_map(|&id| self.model.node(id)).flat_map(Node::outputs).flatten();
        let mut inner = gone.filter(|&&value| Some(value) != result);
        let is_gone = |value: ValueId| self.model.value(value).producer().is_some_and(|id| remove.contains(&id));
        match inner.find(|&&value| !self.is_internal(value, remove)) {
            Some(&value) => Err(Miss::READ.of(value)),
            None => reads.iter().find(|&&value| is_gone(value)).map_or(Ok(()), |&value| Err(Miss::READ.of(value))),
        }
    }

    /// Whether a value can go when these nodes do: nothing else reads it or knows it by name.
    fn is_internal(&self, value: ValueId, readers: &[NodeId]) -> bool {
        self.model.is_read_only_by(value, readers)
    }

    /// Whether a value is computed from sizes and constants alone. What reads such numbers rounds them to indices and sizes again, so
    /// that the last digit may decide.
    fn is_of_sizes(&self, value: ValueId) -> bool {
        let (mut open, mut seen, mut found) = (vec![value], Vec::new(), false);
        while let Some(value) = open.pop() {
            if self.tensor(value).is_some() {
                continue;
            }
            let Some(id) = self.model.value(value).producer() else {
                let few = self.fact(value).filter(|fact| fact.dtype().is_some_and(DType::is_integer));
                if few.and_then(Fact::static_len).is_none_or(|len| len > FEW_INTEGERS) {
                    return false;
                }
                found = true;
                continue;
            };
            if seen.contains(&id) {
                continue;
            }
            seen.push(id);
            let Some(node) = self.model.node(id).filter(|node| node.subgraphs().next().is_none()) else { return false };
            if seen.len() > REACH_TO_SIZES || self.has_weights(node) {
                return false;
            }
            match traits_of(self.model, node).of_shape {
                true => found = true,
                false => open.extend(node.inputs().iter().flatten()),
            }
        }
        found
    }

    /// Whether a node looks up or multiplies rows of a table of real numbers that is larger than any for sizes.
    fn has_weights(&self, node: &Node) -> bool {
        let mut tables = node.inputs().iter().flatten().filter_map(|&operand| self.tensor(operand));
        let is_table = |table: &Tensor| table.dtype().is_float() && table.rank() >= 2 && table.len() > MOST_OF_SIZES;
        ["MatMul", "Gemm", "Gather"].iter().any(|operator| node.is(operator)) && tables.any(is_table)
    }

    /// The content of a value if all of it is known, constants that this round made included.
    fn tensor(&self, value: ValueId) -> Option<&Tensor> {
        self.constant(value).or_else(|| self.model.value(value).constant_tensor())
    }

    /// The one element of a constant of a real type, whatever its rank.
    fn scalar(&self, value: ValueId) -> Option<f64> {
        let tensor = self.tensor(value).filter(|tensor| tensor.len() == 1)?;
        tensor.to_f64s()?.first().copied()
    }

    /// The bytes that constants of a node may have which takes the place of these nodes, so that the model does not grow:
    /// those of the initializers that nothing else reads, and of the nodes there are less.
    pub(in crate::rewrite) fn allowance(&self, nodes: &[NodeId]) -> usize {
        let read = nodes.iter().filter_map(|&id| self.model.node(id)).flat_map(Node::inputs);
        let mut values: Vec<ValueId> = read.copied().flatten().collect();
        values.sort_unstable();
        values.dedup();
        let owned = |&value: &ValueId| self.model.value(value).is_constant() && self.is_internal(value, nodes);
        let bytes = values.into_iter().filter(owned).filter_map(|value| self.model.value(value).tensor());
        let fewer = nodes.len().saturating_sub(1).saturating_mul(NODE_BYTES);
        bytes.fold(fewer, |sum, tensor| sum.saturating_add(tensor.byte_len()))
    }
}

/// The real numbers as a tensor, each rounded to nearest; `None` if one is out of the type's range.
fn rounded(dtype: DType, shape: &[usize], values: &[f64]) -> Option<Tensor> {
    fn typed<T: Number>(shape: &[usize], values: &[f64]) -> Option<Tensor> {
        let round = |&value: &f64| T::from_f64(value).filter(|rounded| rounded.to_f64().is_finite());
        Tensor::from_vec(shape, values.iter().map(round).collect::<Option<Vec<T>>>()?).ok()
    }
    if !has_arithmetic(dtype) {
        return None;
    }
    dispatch_numeric!(dtype, T => typed::<T>(shape, values), else => None)
}

/// Whether a type is a real one that runtimes compute in.
fn has_arithmetic(dtype: DType) -> bool {
    matches!(dtype, DType::Float | DType::Double | DType::Float16 | DType::Bfloat16)
}
