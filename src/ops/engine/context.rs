//! The interface between an operator and its node: attributes, operands and budget.

use std::ops::{Deref, RangeInclusive};

use crate::dim::{Dim, Scope};
use crate::ir::{Attribute, Data, DeclaredType, Fact, GraphId, Model, NamedAttribute, Node, NodeId, SparseTensor};
use crate::ops::interpret::Environment;
use crate::ops::{Budget, Decline, EvalResult, Refusal, Walk};
use crate::slicing::SliceRule;
use crate::tensor::{DType, StridedView, Tensor, gather, gather_later};

/// A node with the version of its operator that applies.
#[derive(Clone, Copy)]
pub struct Site<'a> {
    /// The model.
    pub model: &'a Model,
    /// The node's id.
    pub id: NodeId,
    /// The node.
    pub node: &'a Node,
    /// The `since_version` of the operator that applies, not the model's opset.
    pub version: i64,
    /// The reading of disputed slices.
    pub slice_rule: SliceRule,
    /// In a function: the attributes of the call that the body refers to, including defaults.
    pub bindings: &'a [NamedAttribute],
}

/// Returns the error for an attribute of another kind than the operator's.
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
        /// The attribute has another kind.
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
    /// Returns the attribute of this name. A reference resolves to the calling node's attribute, and is absent if the
    /// call omits it.
    pub fn attribute(&self, name: &str) -> Option<&'a Attribute> {
        self.node.bound_attribute(name, self.bindings)
    }

    attribute_reader!(
        /// Returns an INT attribute.
        attr_int, Attribute::Int(value) => *value, i64, "an INT");
    attribute_reader!(
        /// Returns a FLOAT attribute.
        attr_float, Attribute::Float(value) => *value, f32, "a FLOAT");
    attribute_reader!(
        /// Returns a STRING attribute as bytes.
        attr_bytes, Attribute::String(value) => value.as_ref(), &'a [u8], "a STRING");
    attribute_reader!(
        /// Returns a TENSOR attribute.
        attr_tensor, Attribute::Tensor(value, _) => value, &'a Tensor, "a TENSOR");
    attribute_reader!(
        /// Returns a SPARSE_TENSOR attribute.
        attr_sparse, Attribute::SparseTensor(value) => value.as_ref(), &'a SparseTensor, "a SPARSE_TENSOR");
    attribute_reader!(
        /// Returns a GRAPH attribute.
        attr_graph, Attribute::Graph(value) => *value, GraphId, "a GRAPH");
    attribute_reader!(
        /// Returns a TYPE_PROTO attribute.
        attr_type, Attribute::Type(value) => value, &'a DeclaredType, "a TYPE_PROTO");
    attribute_reader!(
        /// Returns an INTS attribute.
        attr_ints, Attribute::Ints(value) => value.as_slice(), &'a [i64], "INTS");
    attribute_reader!(
        /// Returns a FLOATS attribute.
        attr_floats, Attribute::Floats(value) => value.as_slice(), &'a [f32], "FLOATS");
    attribute_reader!(
        /// Returns a STRINGS attribute.
        attr_strings, Attribute::Strings(value) => value.as_slice(), &'a [bytes::Bytes], "STRINGS");

    /// Returns a STRING attribute as text.
    ///
    /// # Errors
    /// The attribute has another kind or is not UTF-8.
    pub fn attr_str(&self, name: &str) -> Result<Option<&'a str>, Refusal> {
        match self.attr_bytes(name)? {
            None => Ok(None),
            Some(bytes) => std::str::from_utf8(bytes)
                .map(Some)
                .map_err(|_| Refusal::invalid(format!("attribute '{name}' is not UTF-8"))),
        }
    }

    /// Returns an INT attribute as a flag.
    ///
    /// # Errors
    /// The attribute has another kind, or is neither 0 nor 1: some kernels treat only 1 as true, and some runtimes
    /// reject it.
    pub fn attr_flag(&self, name: &str, default: bool) -> Result<bool, Refusal> {
        match self.attr_int(name)? {
            None => Ok(default),
            Some(flag @ (0 | 1)) => Ok(flag == 1),
            Some(other) => Err(Refusal::lax(format!("attribute '{name}' is {other}, which is neither 0 nor 1"))),
        }
    }

    /// Returns an INT attribute that is the number of a data type.
    ///
    /// # Errors
    /// The attribute has another kind or is not a data type.
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

    /// Returns the number of operands, including omitted ones before the last.
    pub fn input_count(&self) -> usize {
        self.node.inputs().len()
    }

    /// Returns `true` if optional operand `i` is present.
    pub fn has_input(&self, i: usize) -> bool {
        self.node.input(i).is_some()
    }

    /// Returns the number of results.
    pub fn output_count(&self) -> usize {
        self.node.outputs().len()
    }

    /// Returns `true` if optional result `i` is present.
    pub fn has_output(&self, i: usize) -> bool {
        self.node.output(i).is_some()
    }
}

/// Resolves an axis; a negative one counts from the end.
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

/// The input of inference: a [`Site`] and the facts of its operands.
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
    /// Returns the scope of symbols and assumptions.
    pub fn scope(&self) -> &Scope {
        &self.walk.scope
    }

    /// Returns the fact of operand `i`. `None` only for an omitted operand; the [`Fact`] of an unknown operand is
    /// empty.
    pub fn input(&self, i: usize) -> Option<&Fact> {
        self.inputs.get(i).and_then(Option::as_ref)
    }

    /// Returns all operands in order.
    pub fn inputs(&self) -> &[Option<Fact>] {
        &self.inputs
    }

    /// Returns required operand `i`.
    ///
    /// # Errors
    /// The operand is omitted.
    pub fn required(&self, i: usize) -> Result<&Fact, Refusal> {
        self.input(i).ok_or_else(|| Refusal::invalid(format!("operand {i} is missing")))
    }

    /// Returns the element type of operand `i`, if known.
    pub fn dtype(&self, i: usize) -> Option<DType> {
        self.input(i).and_then(Fact::dtype)
    }

    /// Returns the shape of operand `i`, if known.
    pub fn shape(&self, i: usize) -> Option<&[Dim]> {
        self.input(i).and_then(Fact::shape)
    }

    /// Returns the rank of operand `i`, if known.
    pub fn rank(&self, i: usize) -> Option<usize> {
        self.input(i).and_then(Fact::rank)
    }

    /// Rejects operand `i` if its rank is known and outside `ranges`: runtimes reject such a model if they know the
    /// rank.
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

    /// Returns the whole value of operand `i`, if it is constant.
    pub fn constant(&self, i: usize) -> Option<&Tensor> {
        self.input(i).and_then(Fact::constant_tensor)
    }

    /// Returns the elements of integer operand `i` as expressions, if all are known.
    pub fn ints(&self, i: usize) -> Option<Vec<Dim>> {
        self.input(i).and_then(Fact::ints)
    }

    /// Returns the elements of integer operand `i`, if all are constant.
    pub fn const_ints(&self, i: usize) -> Option<Vec<i64>> {
        self.input(i).and_then(Fact::const_ints)
    }

    /// Returns an unknown dim: a new symbol that is at least 0.
    pub fn fresh_dim(&self) -> Dim {
        let stem = self.node.outputs().iter().flatten().next().map_or("dim", |&value| &self.model.value(value).name);
        self.walk.scope.fresh_dim(stem)
    }

    /// Returns a shape of known rank with unknown dims.
    pub fn fresh_shape(&self, rank: usize) -> Vec<Dim> {
        (0..rank).map(|_| self.fresh_dim()).collect()
    }

    /// Infers a subgraph or a function's body from the facts of its inputs; returns the facts of its outputs. Also
    /// records the facts of inner values; a repeated inference replaces them.
    ///
    /// # Errors
    /// The nesting is too deep.
    pub fn infer_graph(&mut self, graph: GraphId, inputs: Vec<Fact>) -> Result<Vec<Fact>, Refusal> {
        self.walk.infer_body(self.site.model, graph, inputs)
    }
}

/// The input of evaluation: a [`Site`], its operands' values and the budget.
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

/// The largest product of the other dims next to a 0: its bytes fit in the integers of any runtime.
const MOST_BESIDE_NOTHING: usize = usize::MAX >> 16;

impl<'a> EvalCx<'a> {
    /// Returns operand `i`, if present.
    pub fn data(&self, i: usize) -> Option<&Data> {
        self.inputs.get(i).and_then(Option::as_ref)
    }

    /// Returns all operands in order.
    pub fn inputs(&self) -> &[Option<Data>] {
        &self.inputs
    }

    /// Returns required operand `i` as a tensor.
    ///
    /// # Errors
    /// The operand is omitted or is not a tensor.
    pub fn tensor(&self, i: usize) -> Result<&Tensor, Decline> {
        self.data(i)
            .ok_or_else(|| Decline::invalid(format!("operand {i} is missing")))?
            .tensor()
            .ok_or_else(|| Decline::invalid(format!("operand {i} is not a tensor")))
    }

    /// Returns operand `i` as a tensor, if present.
    ///
    /// # Errors
    /// The operand is not a tensor.
    pub fn optional_tensor(&self, i: usize) -> Result<Option<&Tensor>, Decline> {
        if self.data(i).is_some() { self.tensor(i).map(Some) } else { Ok(None) }
    }

    /// Returns the elements of integer operand `i`.
    ///
    /// # Errors
    /// The operand is omitted or has another element type.
    pub fn ints(&self, i: usize) -> Result<Vec<i64>, Decline> {
        self.tensor(i)?.to_i64s().ok_or_else(|| Decline::invalid(format!("operand {i} has no integer type")))
    }

    /// Returns the budget. Charge it before allocating a result or starting expensive work.
    pub fn budget(&self) -> &Budget {
        self.budget
    }

    /// Charges the bytes of a result of this type and shape to the budget.
    ///
    /// # Errors
    /// [`Decline::OverBudget`], also when the size overflows.
    pub fn claim(&self, dtype: DType, shape: &[usize]) -> Result<(), Decline> {
        // Next to a 0 the other dims may be of any size, but runtimes multiply all dims.
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

    /// Charges a result like [`claim`](Self::claim), but allows a large result to be deferred. Returns `true` if it
    /// is deferred.
    ///
    /// # Errors
    /// The errors of [`claim`](Self::claim).
    pub fn claim_later(&self, dtype: DType, shape: &[usize]) -> Result<bool, Decline> {
        if Tensor::may_be_deferred(dtype, shape) {
            let bytes = crate::tensor::product(shape).and_then(|count| dtype.byte_len(count));
            if bytes.is_some_and(|bytes| self.budget.take_later(bytes)) {
                return Ok(true);
            }
        }
        self.claim(dtype, shape).map(|()| false)
    }

    /// Returns the elements of a view, and charges them to the budget.
    ///
    /// # Errors
    /// The errors of [`claim`](Self::claim), or the view exceeds the tensor.
    pub fn gathered(&self, tensor: &Tensor, view: &StridedView) -> Result<Tensor, Decline> {
        let later = self.claim_later(tensor.dtype(), view.shape())?;
        Ok(if later { gather_later(tensor, view)? } else { gather(tensor, view)? })
    }

    /// Evaluates a subgraph with these inputs; outer values are visible.
    ///
    /// # Errors
    /// The reason why an inner node cannot be evaluated.
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
