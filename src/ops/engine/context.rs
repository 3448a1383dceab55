//! What an operator sees of the place it is used in.

use std::ops::{Deref, RangeInclusive};

use crate::dim::{Dim, Scope};
use crate::ir::{Attribute, Data, DeclaredType, Fact, GraphId, Model, NamedAttribute, Node, NodeId, SparseTensor};
use crate::ops::interpret::Environment;
use crate::ops::{Budget, Decline, EvalResult, Refusal, Walk};
use crate::slicing::SliceRule;
use crate::tensor::{DType, StridedView, Tensor, gather, gather_later};

/// A node together with the version of its operator that is in force there.
#[derive(Clone, Copy)]
pub struct Site<'a> {
    /// The model.
    pub model: &'a Model,
    /// The node's identity.
    pub id: NodeId,
    /// The node.
    pub node: &'a Node,
    /// The `since_version` of the operator in force, not the model's operator set.
    pub version: i64,
    /// How disputed cases of slicing are read.
    pub slice_rule: SliceRule,
    /// Inside a function: what the call gives for the attributes that the body refers to, defaults filled in.
    pub bindings: &'a [NamedAttribute],
}

/// What an attribute has that is of another kind than the operator's.
fn wrong_kind(name: &str, wanted: &str, found: &Attribute) -> Refusal {
    if let Attribute::Opaque(_) = found {
        return Refusal::unsupported(format!("attribute '{name}' cannot be read"));
    }
    Refusal::invalid(format!("attribute '{name}' should be {wanted} but is {:?}", found.kind()))
}

macro_rules! attribute_reader {
    ($(#[$doc:meta])* $method:ident, $pattern:pat => $result:expr, $type:ty, $wanted:literal) => {
        $(#[$doc])*
        ///
        /// # Errors
        /// The attribute is of another kind.
        pub fn $method(&self, name: &str) -> Result<Option<$type>, Refusal> {
            match self.attribute(name) {
                None => Ok(None),
                Some($pattern) => Ok(Some($result)),
                Some(other) => Err(wrong_kind(name, $wanted, other)),
            }
        }
    };
}

impl<'a> Site<'a> {
    /// The attribute of this name. A reference to an attribute of the calling node is followed; one the call leaves out is absent.
    pub fn attribute(&self, name: &str) -> Option<&'a Attribute> {
        self.node.bound_attribute(name, self.bindings)
    }

    attribute_reader!(
        /// An INT attribute.
        attr_int, Attribute::Int(value) => *value, i64, "an INT");
    attribute_reader!(
        /// A FLOAT attribute.
        attr_float, Attribute::Float(value) => *value, f32, "a FLOAT");
    attribute_reader!(
        /// A STRING attribute as bytes.
        attr_bytes, Attribute::String(value) => value.as_ref(), &'a [u8], "a STRING");
    attribute_reader!(
        /// A TENSOR attribute.
        attr_tensor, Attribute::Tensor(value, _) => value, &'a Tensor, "a TENSOR");
    attribute_reader!(
        /// A SPARSE_TENSOR attribute.
        attr_sparse, Attribute::SparseTensor(value) => value.as_ref(), &'a SparseTensor, "a SPARSE_TENSOR");
    attribute_reader!(
        /// A GRAPH attribute.
        attr_graph, Attribute::Graph(value) => *value, GraphId, "a GRAPH");
    attribute_reader!(
        /// A TYPE_PROTO attribute.
        attr_type, Attribute::Type(value) => value, &'a DeclaredType, "a TYPE_PROTO");
    attribute_reader!(
        /// An INTS attribute.
        attr_ints, Attribute::Ints(value) => value.as_slice(), &'a [i64], "INTS");
    attribute_reader!(
        /// A FLOATS attribute.
        attr_floats, Attribute::Floats(value) => value.as_slice(), &'a [f32], "FLOATS");
    attribute_reader!(
        /// A STRINGS attribute.
        attr_strings, Attribute::Strings(value) => value.as_slice(), &'a [bytes::Bytes], "STRINGS");

    /// A STRING attribute as text.
    ///
    /// # Errors
    /// The attribute is of another kind or is not UTF-8.
    pub fn attr_str(&self, name: &str) -> Result<Option<&'a str>, Refusal> {
        match self.attr_bytes(name)? {
            None => Ok(None),
            Some(bytes) => std::str::from_utf8(bytes)
                .map(Some)
                .map_err(|_| Refusal::invalid(format!("attribute '{name}' is not UTF-8"))),
        }
    }

    /// An INT attribute read as a flag.
    ///
    /// # Errors
    /// The attribute is of another kind, or neither 0 nor 1: some kernels take 1 alone for true, and some runtimes refuse it.
    pub fn attr_flag(&self, name: &str, default: bool) -> Result<bool, Refusal> {
        match self.attr_int(name)? {
            None => Ok(default),
            Some(flag @ (0 | 1)) => Ok(flag == 1),
            Some(other) => Err(Refusal::lax(format!("attribute '{name}' is {other}, which is neither 0 nor 1"))),
        }
    }

    /// An INT attribute that names a data type.
    ///
    /// # Errors
    /// The attribute is of another kind or names no data type.
    pub fn attr_dtype(&self, name: &str) -> Result<Option<DType>, Refusal> {
        match self.attr_int(name)? {
            None => Ok(None),
            Some(number) => {
                i32::try_from(number).ok().and_then(DType::from_onnx).map(Some).ok_or_else(|| {
                    Refusal::invalid(format!("attribute '{name}' is {number}, which is not a data type"))
                })
            }
        }
    }

    /// How many operands the node lists, absent ones in between included.
    pub fn input_count(&self) -> usize {
        self.node.inputs().len()
    }

    /// Whether optional operand `i` is given.
    pub fn has_input(&self, i: usize) -> bool {
        self.node.input(i).is_some()
    }

    /// How many results the node lists.
    pub fn output_count(&self) -> usize {
        self.node.outputs().len()
    }

    /// Whether optional result `i` is wanted.
    pub fn has_output(&self, i: usize) -> bool {
        self.node.output(i).is_some()
    }
}

/// An axis, counted from the end when negative, checked against the rank.
///
/// # Errors
/// The axis is not in `-rank ..= rank - 1`.
pub fn axis_in(axis: i64, rank: usize) -> Result<usize, Refusal> {
    let wide = i64::try_from(rank).unwrap_or(i64::MAX);
    let counted = if axis < 0 { axis.checked_add(wide) } else { Some(axis) };
    match counted {
        Some(counted) if (0..wide).contains(&counted) => Ok(counted as usize),
        _ => Err(Refusal::invalid(format!("axis {axis} is out of range for rank {rank}"))),
    }
}

/// What inference sees of a node: its [`Site`], and what is known of its operands.
pub struct InferCx<'a> {
    pub(in crate::ops) site: Site<'a>,
    pub(in crate::ops) inputs: Vec<Option<Fact>>,
    pub(in crate::ops) walk: &'a mut Walk,
}

impl<'a> Deref for InferCx<'a> {
    type Target = Site<'a>;

    fn deref(&self) -> &Site<'a> {
        &self.site
    }
}

impl<'a> InferCx<'a> {
    /// The symbols and what is assumed of them.
    pub fn scope(&self) -> &Scope {
        &self.walk.scope
    }

    /// What is known of operand `i`. `None` only when the operand is left out; an operand nobody knows anything of gives a
    /// [`Fact`] that says nothing.
    pub fn input(&self, i: usize) -> Option<&Fact> {
        self.inputs.get(i).and_then(Option::as_ref)
    }

    /// Every operand in order.
    pub fn inputs(&self) -> &[Option<Fact>] {
        &self.inputs
    }

    /// Operand `i`, which the standard requires.
    ///
    /// # Errors
    /// The operand is left out.
    pub fn required(&self, i: usize) -> Result<&Fact, Refusal> {
        self.input(i).ok_or_else(|| Refusal::invalid(format!("operand {i} is missing")))
    }

    /// The element type of operand `i`, if known.
    pub fn dtype(&self, i: usize) -> Option<DType> {
        self.input(i).and_then(Fact::dtype)
    }

    /// The shape of operand `i`, if known.
    pub fn shape(&self, i: usize) -> Option<&[Dim]> {
        self.input(i).and_then(Fact::shape)
    }

    /// The rank of operand `i`, if known.
    pub fn rank(&self, i: usize) -> Option<usize> {
        self.input(i).and_then(Fact::rank)
    }

    /// Refuses operand `i`, of this name, if it is known to have another rank than these: runtimes refuse a model that tells them so.
    pub fn require_rank(&self, i: usize, name: &str, ranks: RangeInclusive<usize>) -> Result<(), Refusal> {
        match self.rank(i) {
            Some(rank) if !ranks.contains(&rank) => {
                let (least, most) = ranks.into_inner();
                let wanted = if least == most { most.to_string() } else { format!("{least} to {most}") };
                Err(Refusal::invalid(format!("the rank of '{name}' is {rank} instead of {wanted}")))
            }
            _ => Ok(()),
        }
    }

    /// The whole value of operand `i`, if it is decided.
    pub fn constant(&self, i: usize) -> Option<&Tensor> {
        self.input(i).and_then(Fact::constant_tensor)
    }

    /// The elements of integer operand `i` as expressions, if each is known.
    pub fn ints(&self, i: usize) -> Option<Vec<Dim>> {
        self.input(i).and_then(Fact::ints)
    }

    /// The elements of integer operand `i`, if each is a number.
    pub fn const_ints(&self, i: usize) -> Option<Vec<i64>> {
        self.input(i).and_then(Fact::const_ints)
    }

    /// A size nobody knows yet: a new symbol, at least 0, unlike any other.
    pub fn fresh_dim(&self) -> Dim {
        let stem = self.node.outputs().iter().flatten().next().map_or("dim", |&value| &self.model.value(value).name);
        self.walk.scope.fresh_dim(stem)
    }

    /// A shape of which only the rank is known.
    pub fn fresh_shape(&self, rank: usize) -> Vec<Dim> {
        (0..rank).map(|_| self.fresh_dim()).collect()
    }

    /// Infers a subgraph or a function's body given what is known of its inputs, and returns what is known of its outputs.
    /// Facts about the values inside are recorded as well; where a body is inferred more than once, the last time counts.
    ///
    /// # Errors
    /// The nesting is too deep.
    pub fn infer_graph(&mut self, graph: GraphId, inputs: Vec<Fact>) -> Result<Vec<Fact>, Refusal> {
        self.walk.infer_body(self.site.model, graph, inputs)
    }
}

/// What evaluation sees of a node: its [`Site`], its operands' values and what it may spend.
pub struct EvalCx<'a> {
    pub(in crate::ops) site: Site<'a>,
    pub(in crate::ops) inputs: Vec<Option<Data>>,
    pub(in crate::ops) budget: &'a Budget,
    pub(in crate::ops) environment: &'a Environment<'a>,
    pub(in crate::ops) depth: usize,
}

impl<'a> Deref for EvalCx<'a> {
    type Target = Site<'a>;

    fn deref(&self) -> &Site<'a> {
        &self.site
    }
}

/// The dims beside a 0 multiply to this at most, whose bytes any runtime can count.
const MOST_BESIDE_NOTHING: usize = usize::MAX >> 16;

impl<'a> EvalCx<'a> {
    /// Operand `i`, if it is given.
    pub fn data(&self, i: usize) -> Option<&Data> {
        self.inputs.get(i).and_then(Option::as_ref)
    }

    /// Every operand in order.
    pub fn inputs(&self) -> &[Option<Data>] {
        &self.inputs
    }

    /// Operand `i` as a tensor, which the standard requires.
    ///
    /// # Errors
    /// The operand is left out or is no tensor.
    pub fn tensor(&self, i: usize) -> Result<&Tensor, Decline> {
        self.data(i)
            .ok_or_else(|| Decline::invalid(format!("operand {i} is missing")))?
            .tensor()
            .ok_or_else(|| Decline::invalid(format!("operand {i} is not a tensor")))
    }

    /// Operand `i` as a tensor, if it is given.
    ///
    /// # Errors
    /// The operand is no tensor.
    pub fn optional_tensor(&self, i: usize) -> Result<Option<&Tensor>, Decline> {
        if self.data(i).is_some() { self.tensor(i).map(Some) } else { Ok(None) }
    }

    /// The elements of integer operand `i`.
    ///
    /// # Errors
    /// The operand is left out or has other elements.
    pub fn ints(&self, i: usize) -> Result<Vec<i64>, Decline> {
        self.tensor(i)?.to_i64s().ok_or_else(|| Decline::invalid(format!("operand {i} has no integer type")))
    }

    /// What may be spent. Take from it before allocating a result or starting heavy work.
    pub fn budget(&self) -> &Budget {
        self.budget
    }

    /// Takes the bytes of a result of this type and shape from the budget.
    ///
    /// # Errors
    /// [`Decline::OverBudget`], also when the size overflows.
    pub fn claim(&self, dtype: DType, shape: &[usize]) -> Result<(), Decline> {
        // Beside a dim of 0 the others may be of any size, but runtimes multiply all that they meet.
        let mut beside = shape.iter().filter(|&&dim| dim > 0);
        let all = beside.try_fold(1usize, |all, &dim| all.checked_mul(dim));
        if shape.contains(&0) && all.is_none_or(|all| all > MOST_BESIDE_NOTHING) {
            return Err(Decline::OverBudget(
                "the result has a dim of 0, and the product of the other dims overflows".into(),
            ));
        }
        let bytes = crate::tensor::product(shape).and_then(|count| match dtype {
            DType::String => count.checked_mul(size_of::<bytes::Bytes>()),
            _ => dtype.byte_len(count),
        });
        self.budget.take_bytes(bytes.unwrap_or(usize::MAX))
    }

    /// As [`claim`](Self::claim), but a large result may be left to be computed when it is read. Returns whether it is to be.
    ///
    /// # Errors
    /// As [`claim`](Self::claim).
    pub fn claim_later(&self, dtype: DType, shape: &[usize]) -> Result<bool, Decline> {
        if Tensor::may_be_deferred(dtype, shape) {
            let bytes = crate::tensor::product(shape).and_then(|count| dtype.byte_len(count));
            if bytes.is_some_and(|bytes| self.budget.take_later(bytes)) {
                return Ok(true);
            }
        }
        self.claim(dtype, shape).map(|()| false)
    }

    /// The elements of a view, for which room is claimed.
    ///
    /// # Errors
    /// As [`claim`](Self::claim), or the view reaches outside of the tensor.
    pub fn gathered(&self, tensor: &Tensor, view: &StridedView) -> Result<Tensor, Decline> {
        let later = self.claim_later(tensor.dtype(), view.shape())?;
        Ok(if later { gather_later(tensor, view)? } else { gather(tensor, view)? })
    }

    /// Evaluates a subgraph with these inputs; it sees the values around the node.
    ///
    /// # Errors
    /// Whatever keeps a node inside from being evaluated.
    pub fn evaluate_graph(&self, graph: GraphId, inputs: Vec<Data>) -> EvalResult {
        crate::ops::interpret::evaluate_body(
            self.environment,
            graph,
            inputs,
            self.budget,
            self.site.slice_rule,
            self.depth + 1,
        )
    }
}
