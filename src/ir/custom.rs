//! Operators that the program does not know and a user does: what their nodes make of types, and of values.

use std::fmt;
use std::sync::Arc;

use super::{Attribute, NamedAttribute, Node};
use crate::tensor::{DType, Tensor};

type InferNode = dyn Fn(&CustomNode<'_>) -> Result<Vec<CustomType>, String> + Send + Sync;
type EvaluateNode = dyn Fn(&CustomNode<'_>) -> Result<Vec<Tensor>, String> + Send + Sync;

/// An operator of a domain of your own, told to the program in two functions.
///
/// Shapes are texts: numbers, names of sizes, expressions of both (`2*n + 1`, `floor(n/2)`, `min(a, b)`), and `?` for a size that
/// nobody knows. Nothing is assumed beyond what the functions say: nodes of the operator are never merged, moved or removed while
/// something reads their results.
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
    /// An operator whose result types `infer` tells: one for each result, in order; fewer if nothing is known of the rest. What it
    /// gives as an error is told as the reason why nothing is known of the node.
    pub fn new(
        domain: impl Into<String>,
        name: impl Into<String>,
        infer: impl Fn(&CustomNode<'_>) -> Result<Vec<CustomType>, String> + Send + Sync + 'static,
    ) -> CustomOperator {
        let domain = Some(domain.into()).filter(|domain| domain != "ai.onnx").unwrap_or_default();
        CustomOperator { domain, name: name.into(), infer: Arc::new(infer), evaluate: None }
    }

    /// The same, with a function that computes the results from operands that are all known: every node of constants becomes
    /// constants, and [`OnnxModel::evaluate`](crate::OnnxModel::evaluate) runs models that have the operator. Equal operands must give equal
    /// results. An error is told as the reason why the node stays.
    #[must_use]
    pub fn evaluated_by(
        mut self,
        evaluate: impl Fn(&CustomNode<'_>) -> Result<Vec<Tensor>, String> + Send + Sync + 'static,
    ) -> CustomOperator {
        self.evaluate = Some(Arc::new(evaluate));
        self
    }

    /// The domain; `""` is the default one.
    pub fn domain(&self) -> &str {
        &self.domain
    }

    /// The name within the domain.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether nodes of constants are computed.
    pub fn is_evaluated(&self) -> bool {
        self.evaluate.is_some()
    }

    /// The types of a node's results.
    pub(crate) fn infer(&self, node: &CustomNode<'_>) -> Result<Vec<CustomType>, String> {
        (self.infer)(node)
    }

    /// The values of a node's results; `None` if nobody said how they are computed.
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
    /// A text for each axis; `None` if not even their number is known.
    pub(crate) shape: Option<Vec<String>>,
}

impl CustomType {
    /// A tensor of this shape, each size as a number or text: `CustomType::new(DType::Float, ["n", "4"])`.
    pub fn new<S: ToString>(dtype: DType, shape: impl IntoIterator<Item = S>) -> CustomType {
        let shape = shape.into_iter().map(|size| size.to_string()).collect();
        CustomType { dtype, shape: Some(shape) }
    }

    /// A tensor of which only the element type is known.
    pub fn of(dtype: DType) -> CustomType {
        CustomType { dtype, shape: None }
    }
}

/// What is known of an operand of a [`CustomNode`].
#[derive(Clone, Debug, Default)]
pub(crate) struct CustomOperand {
    pub(crate) dtype: Option<DType>,
    pub(crate) shape: Option<Vec<String>>,
    pub(crate) elements: Option<Vec<String>>,
    pub(crate) tensor: Option<Tensor>,
}

/// A node of a [`CustomOperator`], as its functions see it.
#[derive(Debug)]
pub struct CustomNode<'a> {
    pub(crate) node: &'a Node,
    /// Inside a function: what the call gives for the attributes that the body refers to.
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
    /// The node's own name, which may be empty.
    pub fn name(&self) -> &str {
        &self.node.name
    }

    /// The version of the operator's domain that the model imports, if it does.
    pub fn version(&self) -> Option<i64> {
        self.version
    }

    /// How many operands the node lists, those left out in between included.
    pub fn operand_count(&self) -> usize {
        self.operands.len()
    }

    /// How many results the node lists.
    pub fn result_count(&self) -> usize {
        self.node.outputs().len()
    }

    /// Whether operand `i` is given.
    pub fn has_operand(&self, i: usize) -> bool {
        self.operand(i).is_some()
    }

    /// The element type of operand `i`, if known.
    pub fn dtype(&self, i: usize) -> Option<DType> {
        self.operand(i)?.dtype
    }

    /// The sizes of operand `i`, if their number is known: numbers, or expressions that may stand in the shape of a result.
    pub fn shape(&self, i: usize) -> Option<&[String]> {
        self.operand(i)?.shape.as_deref()
    }

    /// The elements of integer operand `i`, if each is known as a number or an expression of sizes.
    pub fn elements(&self, i: usize) -> Option<&[String]> {
        self.operand(i)?.elements.as_deref()
    }

    /// The value of operand `i`, if it is decided. Where the node is evaluated that of every operand is.
    pub fn tensor(&self, i: usize) -> Option<&Tensor> {
        self.operand(i)?.tensor.as_ref()
    }

    fn operand(&self, i: usize) -> Option<&CustomOperand> {
        self.operands.get(i)?.as_ref()
    }

    fn attribute(&self, name: &str) -> Option<&'a Attribute> {
        self.node.bound_attribute(name, self.bindings)
    }

    /// The names of the attributes that are given, in the order of the file.
    pub fn attribute_names(&self) -> impl Iterator<Item = &str> {
        self.node.attributes.iter().map(|attribute| attribute.name.as_str())
    }

    attributes! {
        /// The INT attribute of this name.
        int, Attribute::Int(value) => Some(*value), i64;
        /// The FLOAT attribute of this name.
        float, Attribute::Float(value) => Some(*value), f32;
        /// The STRING attribute of this name, if it is UTF-8.
        string, Attribute::String(value) => std::str::from_utf8(value).ok(), &'a str;
        /// The INTS attribute of this name.
        ints, Attribute::Ints(values) => Some(values), &'a [i64];
        /// The FLOATS attribute of this name.
        floats, Attribute::Floats(values) => Some(values), &'a [f32];
        /// The STRINGS attribute of this name, if all are UTF-8.
        strings, Attribute::Strings(values) => values.iter().map(|text| std::str::from_utf8(text).ok()).collect(), Vec<&'a str>;
        /// The TENSOR attribute of this name.
        attribute_tensor, Attribute::Tensor(value, _) => Some(value), &'a Tensor;
    }
}
