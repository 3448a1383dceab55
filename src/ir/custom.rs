//! Operators that users define: type inference and evaluation of their nodes.

use std::fmt;
use std::sync::Arc;

use super::{Attribute, NamedAttribute, Node};
use crate::tensor::{DType, Tensor};

type InferNode = dyn Fn(&CustomNode<'_>) -> Result<Vec<CustomType>, String> + Send + Sync;
type EvaluateNode = dyn Fn(&CustomNode<'_>) -> Result<Vec<Tensor>, String> + Send + Sync;

/// An operator of a user's domain, defined by two functions.
///
/// Shapes are lists of texts: integers, names of symbolic dims, expressions of both (`2*n + 1`, `floor(n/2)`, `min(a,
/// b)`), and `?` for an unknown dim. The program assumes nothing else about the operator: it never merges, moves or
/// removes its nodes while their results are read.
///
/// ```
/// use onnx_slice_fold::{CustomOperator, CustomType, DType, OnnxModel, Options};
///
/// // Every second row.
/// let halves = CustomOperator::new("com.example", "Halve", |node| {
///     let (Some(dtype), Some([rows, rest @ ..])) = (node.dtype(0), node.shape(0)) else {
///         return Ok(Vec::new()); // nothing is known
///     };
///     let mut shape = vec![format!("floor(({rows} + 1)/2)")];
///     shape.extend(rest.iter().cloned());
///     Ok(vec![CustomType::new(dtype, shape)])
/// });
/// # let text = r#"<ir_version: 8, opset_import: ["" : 17, "com.example" : 1]>
/// #     g (float[n,4] x) => (y) { h = com.example.Halve (x)  y = Neg (h) }"#;
/// # let mut model = OnnxModel::of(onnx_slice_fold::ir::text::parse(text).unwrap());
/// model.register(halves)?;
/// model.fold(&Options::new())?;
/// assert!(model.text().contains(r#"float["floor((n + 1)/2)",4] y"#));
/// # Ok::<(), onnx_slice_fold::Error>(())
/// ```
#[derive(Clone)]
pub struct CustomOperator {
    domain: String,
    name: String,
    infer: Arc<InferNode>,
    evaluate: Option<Arc<EvaluateNode>>,
}

impl CustomOperator {
    /// Creates an operator. `infer` returns the result types in order; omitted trailing ones are unknown. Its error
    /// is reported as the reason why the node's types are unknown.
    pub fn new(
        domain: impl Into<String>,
        name: impl Into<String>,
        infer: impl Fn(&CustomNode<'_>) -> Result<Vec<CustomType>, String> + Send + Sync + 'static,
    ) -> CustomOperator {
        let domain = Some(domain.into()).filter(|domain| domain != "ai.onnx").unwrap_or_default();
        CustomOperator { domain, name: name.into(), infer: Arc::new(infer), evaluate: None }
    }

    /// Adds a function that computes the results from constant operands. Nodes with constant operands are then folded,
    /// and [`OnnxModel::evaluate`](crate::OnnxModel::evaluate) runs models with the operator. Equal operands must give
    /// equal results. An error is reported as the reason why the node is kept.
    #[must_use]
    pub fn evaluated_by(
        mut self,
        evaluate: impl Fn(&CustomNode<'_>) -> Result<Vec<Tensor>, String> + Send + Sync + 'static,
    ) -> CustomOperator {
        self.evaluate = Some(Arc::new(evaluate));
        self
    }

    /// Returns the domain; `""` is the default one.
    pub fn domain(&self) -> &str {
        &self.domain
    }

    /// Returns the name within the domain.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns `true` if nodes with constant operands are folded.
    pub fn is_evaluated(&self) -> bool {
        self.evaluate.is_some()
    }

    /// Infers the types of a node's results.
    pub(crate) fn infer(&self, node: &CustomNode<'_>) -> Result<Vec<CustomType>, String> {
        (self.infer)(node)
    }

    /// Computes the values of a node's results; `None` without an evaluation function.
    pub(crate) fn evaluate(&self, node: &CustomNode<'_>) -> Option<Result<Vec<Tensor>, String>> {
        self.evaluate.as_ref().map(|evaluate| evaluate(node))
    }

    pub(crate) fn is_operator_of(&self, node: &Node) -> bool {
        self.name == node.op_type && self.domain == node.canonical_domain()
    }
}

impl fmt::Debug for CustomOperator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.domain.is_empty() { f.write_str(&self.name) } else { write!(f, "{}.{}", self.domain, self.name) }
    }
}

/// Element type and shape of a result of a [`CustomOperator`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CustomType {
    /// The element type.
    pub(crate) dtype: DType,
    /// A text per axis; `None` if the rank is unknown.
    pub(crate) shape: Option<Vec<String>>,
}

impl CustomType {
    /// Creates a tensor type whose dims are numbers or texts: `CustomType::new(DType::Float, ["n", "4"])`.
    pub fn new<S: ToString>(dtype: DType, shape: impl IntoIterator<Item = S>) -> CustomType {
        let shape = shape.into_iter().map(|size| size.to_string()).collect();
        CustomType { dtype, shape: Some(shape) }
    }

    /// Creates a tensor type of unknown shape.
    pub fn of(dtype: DType) -> CustomType {
        CustomType { dtype, shape: None }
    }
}

/// The known properties of an operand of a [`CustomNode`].
#[derive(Clone, Debug, Default)]
pub(crate) struct CustomOperand {
    pub(crate) dtype: Option<DType>,
    pub(crate) shape: Option<Vec<String>>,
    pub(crate) elements: Option<Vec<String>>,
    pub(crate) tensor: Option<Tensor>,
}

/// A node of a [`CustomOperator`], as its functions receive it.
#[derive(Debug)]
pub struct CustomNode<'a> {
    pub(crate) node: &'a Node,
    /// In a function: the attributes of the call that the body refers to.
    pub(crate) bindings: &'a [NamedAttribute],
    pub(crate) version: Option<i64>,
    pub(crate) operands: Vec<Option<CustomOperand>>,
}

macro_rules! attributes {
    ($($(#[$doc:meta])* $name:ident, $pattern:pat => $value:expr, $type:ty;)*) => {
        $($(#[$doc])*
        pub fn $name(&self, name: &str) -> Option<$type> {
            match self.attribute(name)? {
                $pattern => $value,
                _ => None,
            }
        })*
    };
}

impl<'a> CustomNode<'a> {
    /// Returns the node's name, which may be empty.
    pub fn name(&self) -> &str {
        &self.node.name
    }

    /// Returns the version of the operator's domain that the model imports, if any.
    pub fn version(&self) -> Option<i64> {
        self.version
    }

    /// Returns the number of operands, including omitted ones before the last.
    pub fn operand_count(&self) -> usize {
        self.operands.len()
    }

    /// Returns the number of results.
    pub fn result_count(&self) -> usize {
        self.node.outputs().len()
    }

    /// Returns `true` if operand `i` is present.
    pub fn has_operand(&self, i: usize) -> bool {
        self.operand(i).is_some()
    }

    /// Returns the element type of operand `i`, if known.
    pub fn dtype(&self, i: usize) -> Option<DType> {
        self.operand(i)?.dtype
    }

    /// Returns the shape of operand `i`, if its rank is known: integers, or expressions that are valid in the shape
    /// of a result.
    pub fn shape(&self, i: usize) -> Option<&[String]> {
        self.operand(i)?.shape.as_deref()
    }

    /// Returns the elements of integer operand `i`, if each is known as an integer or an expression.
    pub fn elements(&self, i: usize) -> Option<&[String]> {
        self.operand(i)?.elements.as_deref()
    }

    /// Returns the value of operand `i`, if it is constant. During evaluation all operands are.
    pub fn tensor(&self, i: usize) -> Option<&Tensor> {
        self.operand(i)?.tensor.as_ref()
    }

    fn operand(&self, i: usize) -> Option<&CustomOperand> {
        self.operands.get(i)?.as_ref()
    }

    fn attribute(&self, name: &str) -> Option<&'a Attribute> {
        self.node.bound_attribute(name, self.bindings)
    }

    /// Returns the names of the present attributes, in file order.
    pub fn attribute_names(&self) -> impl Iterator<Item = &str> {
        self.node.attributes.iter().map(|attribute| attribute.name.as_str())
    }

    attributes! {
        /// Returns the INT attribute of this name.
        int, Attribute::Int(value) => Some(*value), i64;
        /// Returns the FLOAT attribute of this name.
        float, Attribute::Float(value) => Some(*value), f32;
        /// Returns the STRING attribute of this name, if it is UTF-8.
        string, Attribute::String(value) => std::str::from_utf8(value).ok(), &'a str;
        /// Returns the INTS attribute of this name.
        ints, Attribute::Ints(values) => Some(values), &'a [i64];
        /// Returns the FLOATS attribute of this name.
        floats, Attribute::Floats(values) => Some(values), &'a [f32];
        /// Returns the STRINGS attribute of this name, if all are UTF-8.
        strings, Attribute::Strings(values) => values.iter().map(|text| std::str::from_utf8(text).ok()).collect(), Vec<&'a str>;
        /// Returns the TENSOR attribute of this name.
        attribute_tensor, Attribute::Tensor(value, _) => Some(value), &'a Tensor;
    }
}
