//! One-node models for tests of operators.

use std::rc::Rc;

use crate::dim::Scope;
use crate::ir::{Attribute, Constant, Data, DeclaredType, DimClaim, Extra, Model, NewNode, OpsetImport, ValueId};
use crate::ops::traits::NodeFacts;
use crate::ops::{Budget, Decline, EventKind, Walk, evaluate_graph};
use crate::slicing::SliceRule;
use crate::tensor::{DType, Element, Tensor};

/// A model of one node.
pub(in crate::ops) struct Single {
    model: Model,
    node: NewNode,
}

impl Single {
    /// Returns a node of the default domain at an operator set, without operands, with one result.
    pub fn new(op_type: &str, opset: i64) -> Self {
        let mut model = Model::new();
        model.opsets.push(OpsetImport { domain: String::new(), version: opset, extra: Extra::new() });
        Single { model, node: NewNode::new(op_type, []) }.output()
    }

    /// Moves the node to another domain.
    pub fn in_domain(self, domain: &str) -> Self {
        self.in_domain_at(domain, 1)
    }

    /// Moves the node to another domain at the given operator set.
    pub fn in_domain_at(mut self, domain: &str, version: i64) -> Self {
        self.model.opsets.push(OpsetImport { domain: domain.to_string(), version, extra: Extra::new() });
        self.node.domain = domain.into();
        self
    }

    /// Adds an attribute.
    pub fn with(mut self, name: &str, value: impl Into<Attribute>) -> Self {
        self.node = self.node.with(name, value);
        self
    }

    /// Adds a STRING attribute.
    pub fn with_str(self, name: &str, value: &'static str) -> Self {
        self.with(name, Attribute::String(value.into()))
    }

    /// Adds a FLOAT attribute.
    pub fn with_float(self, name: &str, value: f32) -> Self {
        self.with(name, Attribute::Float(value))
    }

    /// Adds a result.
    pub fn output(mut self) -> Self {
        let value = self.model.add_value(format!("y{}", self.node.outputs.len()));
        self.model.add_output(self.model.main(), value);
        self.node.outputs.push(Some(value));
        self
    }

    /// Adds a constant operand.
    pub fn constant(mut self, tensor: Tensor) -> Self {
        let value = self.operand();
        self.model.add_initializer(self.model.main(), value, Constant::dense(tensor)).unwrap();
        self
    }

    /// Adds a constant operand of this shape and these values.
    pub fn values<T: Element>(self, shape: &[usize], values: &[T]) -> Self {
        self.constant(Tensor::from_vec(shape, values.to_vec()).unwrap())
    }

    /// Adds an absent operand.
    pub fn absent(mut self) -> Self {
        self.node.inputs.push(None);
        self
    }

    /// Adds an operand of this type and a shape with dims separated by spaces: numbers, names, `?`.
    pub fn input(mut self, dtype: DType, shape: &str) -> Self {
        let value = self.operand();
        let dims = shape.split_whitespace().map(|dim| match dim.parse() {
            Ok(number) => DimClaim::Value(number),
            Err(_) if dim == "?" => DimClaim::Unknown,
            Err(_) => DimClaim::Param(dim.to_string()),
        });
        self.model.value_mut(value).declared = Some(DeclaredType::tensor(dtype, Some(dims.collect())));
        self.model.add_input(self.model.main(), value).unwrap();
        self
    }

    /// Adds an operand of known type and unknown rank.
    pub fn unranked(mut self, dtype: DType) -> Self {
        let value = self.operand();
        self.model.value_mut(value).declared = Some(DeclaredType::tensor(dtype, None));
        self.model.add_input(self.model.main(), value).unwrap();
        self
    }

    fn operand(&mut self) -> ValueId {
        let value = self.model.add_value(format!("x{}", self.node.inputs.len()));
        self.node.inputs.push(Some(value));
        value
    }

    fn build(self) -> (Model, Vec<ValueId>) {
        let Single { mut model, node } = self;
        let main = model.main();
        model.add_node(main, node).unwrap();
        let outputs = model.graph(main).outputs().to_vec();
        (model, outputs)
    }

    /// Evaluates the results.
    pub fn eval(self) -> Result<Vec<Tensor>, Decline> {
        let (model, _) = self.build();
        let results = evaluate_graph(&model, model.main(), Vec::new(), &Budget::default(), SliceRule::default())?;
        Ok(results.iter().filter_map(Data::tensor).cloned().collect())
    }

    /// Returns the first result's elements.
    pub fn floats(self) -> Vec<f64> {
        self.eval().unwrap()[0].to_f64s().unwrap()
    }

    /// Returns the first result's elements.
    pub fn integers(self) -> Vec<i64> {
        self.eval().unwrap()[0].to_i64s().unwrap()
    }

    /// Returns the multiply-accumulates that the operator declares, as text; `None` if it declares none or facts do not determine them.
    pub fn macs(self) -> Option<String> {
        let (model, outputs) = self.build();
        let scope = Rc::new(Scope::new());
        let mut walk = Walk::new(Rc::clone(&scope), SliceRule::default(), Budget::default());
        walk.evaluate = false;
        walk.infer_main(&model).unwrap();
        let id = model.value(*outputs.first()?).producer()?;
        let opset = model.opset(model.main(), "")?;
        let view = NodeFacts::of(&model, &walk.facts, id, opset)?;
        let macs = (view.traits().macs?)(&view)?;
        let is_known = !macs.symbols().iter().any(|&symbol| scope.is_fresh(symbol));
        is_known.then(|| scope.format(&macs))
    }

    /// Infers the results without evaluation and formats each as `type[d0, d1, …]`; unknown types, shapes and sizes are `?`.
    pub fn infer(self) -> Vec<String> {
        let (model, outputs) = self.build();
        let scope = Rc::new(Scope::new());
        let mut walk = Walk::new(Rc::clone(&scope), SliceRule::default(), Budget::default());
        walk.evaluate = false;
        walk.infer_main(&model).unwrap();
        if let Some(event) = walk.events.iter().find(|event| event.kind == EventKind::Invalid) {
            return vec![format!("invalid: {}", event.reason)];
        }
        let fact = |&value| {
            let fact = walk.facts.get(value)?;
            let dtype = fact.dtype().map_or("?", DType::name);
            let dim = |dim: &crate::dim::Dim| {
                let dim = scope.nominal(dim);
                match dim.symbols().iter().any(|&symbol| scope.is_fresh(symbol)) {
                    true => "?".to_string(),
                    false => scope.format(&dim),
                }
            };
            Some(match fact.shape() {
                Some(dims) => format!("{dtype}[{}]", dims.iter().map(dim).collect::<Vec<_>>().join(", ")),
                None => dtype.to_string(),
            })
        };
        outputs.iter().map(|value| fact(value).unwrap_or_else(|| "?".to_string())).collect()
    }
}
