//! Fusions: rules that replace several connected nodes by one.
//!
//! | file | subject |
//! | --- | --- |
//! | [`weights`] | merges a scale and shift of channels into the weights of the node before or after |
//! | [`factor`] | moves a factor into constants further up or down |
//! | [`gemm`] | merges a matrix product with an added bias, or with a Transpose of an operand |
//! | [`normalized`] | finds the operand and the result of a normalization |
//! | [`pad`] | merges a Pad with the Pad, convolution or pooling after it |
//! | [`pooled`] | guard: the Pads that an edit may put before a pool |
//! | [`activation`], [`normalization`] | replace formulas in basic operators by an operator of the standard |
//! | [`divided`] | rewrites a normalization in basic operators to the form that runtimes recognize |
//! | [`apart`] | keeps Transposes out of a normalization in basic operators |
//! | [`kernels`] | lists the operators that may replace formulas, by element type |
//! | [`magnitude`] | limits how far a factor or a shift may move |
//! | [`ordinary`] | checks the size of values that [`magnitude`] assumes |
//! | [`parallel`] | merges products of one operand with several weights |
//! | [`attention`] | finds the products that are queries, keys and values |
//! | [`mask`] | writes the mask of an attention in the form that runtimes fuse |
//! | [`residual`] | finds constants that are added before a normalization |
//! | [`rows`] | flattens the operand of a product with a bias to rows |
//! | [`stream`] | flattens sums and normalizations between such products |
//! | [`table`] | merges an added constant row into a table of rows |
//! | [`scaled_attention`], [`heads`] | replace the formula of an attention, and the heads around it, by the operator |
//! | [`rotary`] | replaces the formula of a rotary embedding by the operator |
//! | [`quick_gelu`] | finds the activation by which CLIP is recognized |
//! | [`zero_term`] | removes added zeros |
//! | [`token`] | merges constant rows before other rows with an added constant |
//!
//! Each fusion reduces the number of nodes and never adds bytes: [`Fusion::edit`] compares the removed nodes and initializers with the new
//! constants. Constants are computed in binary64 and rounded once.

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

/// The approximate bytes of a node in a file: its operator, its name, and the names of its operands and result.
const NODE_BYTES: usize = 96;

/// An operand of the fused node.
enum Operand {
    /// An existing value.
    Value(ValueId),
    /// An absent optional operand.
    Absent,
    /// A new constant, named after a value.
    Constant(Tensor, ValueId),
}

impl From<Option<ValueId>> for Operand {
    fn from(value: Option<ValueId>) -> Self {
        value.map_or(Operand::Absent, Operand::Value)
    }
}

/// Returns the bytes of the new constants among operands.
fn constant_bytes(operands: &[Operand]) -> usize {
    operands.iter().fold(0usize, |sum, operand| match operand {
        Operand::Constant(tensor, _) => sum.saturating_add(tensor.byte_len()),
        _ => sum,
    })
}

/// One node that replaces several. Its result is the first result of the current node.
struct Fusion {
    /// The removed nodes. No other node reads their results, except the fused result.
    remove: Vec<NodeId>,
    /// The node from which the new one takes its name and documentation.
    like: NodeId,
    operator: &'static str,
    attributes: Vec<NamedAttribute>,
    operands: Vec<Operand>,
}

impl Fusion {
    /// Returns the edit, unless it makes the model larger.
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

/// The most integers in an input of the model that count as sizes.
const FEW_INTEGERS: usize = 16;

/// The most elements of a table in a computation of sizes. A longer table is a weight, and values computed from it are data.
const MOST_OF_SIZES: usize = 64;

/// The most nodes that are visited to decide if numbers derive from sizes.
const REACH_TO_SIZES: usize = 64;

impl Place<'_> {
    /// Returns the node's only result.
    fn only_output(&self) -> Option<ValueId> {
        let outputs = self.node()?.outputs();
        outputs.iter().skip(1).all(Option::is_none).then_some(outputs.first().copied().flatten()?)
    }

    /// Returns the name of a fused constant: `w_fused` for one named `w`, and again `w_fused` for one named `w_fused`.
    fn fused_name(&self, like: ValueId) -> String {
        let name = &self.model.value(like).name;
        let counted = |tail: &str| tail.is_empty() || tail.strip_prefix('_').is_some_and(|n| n.parse::<u32>().is_ok());
        let stem = name.rsplit_once("_fused").filter(|(_, tail)| counted(tail)).map_or(name.as_str(), |(stem, _)| stem);
        format!("{stem}_fused")
    }

    /// Returns an edit that removes nodes for one new node with these operands and `bytes` of new constants. Declines unless there are at
    /// least two nodes, remaining nodes read only the first result of the current node, and the model does not grow.
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

    /// Checks that remaining nodes read no result of these nodes except the fused one, and that `reads` contains none of them.
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

    /// Returns `true` if a value is dead after the removal of these nodes: it has no other consumer and is no graph output.
    fn is_internal(&self, value: ValueId, readers: &[NodeId]) -> bool {
        self.model.is_read_only_by(value, readers)
    }

    /// Returns `true` if a value is computed from sizes and constants only. Consumers round such numbers to indices and sizes, so the last
    /// digit may matter.
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

    /// Returns `true` if a node reads a float table that is larger than any for sizes, as weights of a product or data of a Gather.
    fn has_weights(&self, node: &Node) -> bool {
        let mut tables = node.inputs().iter().flatten().filter_map(|&operand| self.tensor(operand));
        let is_table = |table: &Tensor| table.dtype().is_float() && table.rank() >= 2 && table.len() > MOST_OF_SIZES;
        ["MatMul", "Gemm", "Gather"].iter().any(|operator| node.is(operator)) && tables.any(is_table)
    }

    /// Returns the content of a constant value. Constants that the current round has made are included.
    fn tensor(&self, value: ValueId) -> Option<&Tensor> {
        self.constant(value).or_else(|| self.model.value(value).constant_tensor())
    }

    /// Returns the element of a float constant with one element, of any rank.
    fn scalar(&self, value: ValueId) -> Option<f64> {
        let tensor = self.tensor(value).filter(|tensor| tensor.len() == 1)?;
        tensor.to_f64s()?.first().copied()
    }

    /// Returns the most bytes of new constants with which one node can replace these nodes without making the model larger. This is the sum
    /// of the bytes of their initializers without other consumers, and of the saved nodes.
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

/// Returns the numbers as a tensor, each rounded to nearest; `None` if one is out of the type's range.
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

/// Returns `true` for the floating-point types in which runtimes compute.
fn has_arithmetic(dtype: DType) -> bool {
    matches!(dtype, DType::Float | DType::Double | DType::Float16 | DType::Bfloat16)
}
