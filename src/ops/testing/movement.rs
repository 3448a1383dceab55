//! One-node models for tests of data movement.

use std::rc::Rc;

use bytes::Bytes;

use crate::dim::{Dim, Scope};
use crate::ir::{Attribute, Data, Fact, Model, NewNode, OpsetImport, Scalar};
use crate::ops::{Budget, Decline, Event, Walk, evaluate_graph};
use crate::slicing::SliceRule;
use crate::tensor::{DType, Element, Tensor};

/// A node under test.
pub(crate) struct Case {
    op_type: &'static str,
    opset: i64,
    outputs: usize,
    attributes: Vec<(&'static str, Attribute)>,
}

impl Case {
    pub(crate) fn new(op_type: &'static str, opset: i64) -> Self {
        Case { op_type, opset, outputs: 1, attributes: Vec::new() }
    }

    pub(crate) fn with(mut self, name: &'static str, value: impl Into<Attribute>) -> Self {
        self.attributes.push((name, value.into()));
        self
    }

    pub(crate) fn text(self, name: &'static str, value: &'static str) -> Self {
        self.with(name, Attribute::String(Bytes::from_static(value.as_bytes())))
    }

    pub(crate) fn outputs(mut self, outputs: usize) -> Self {
        self.outputs = outputs;
        self
    }

    /// Builds the model, with an input for each present operand.
    fn model(&self, present: &[bool]) -> Model {
        let mut model = Model::new();
        model.opsets = vec![OpsetImport { domain: String::new(), version: self.opset, extra: Bytes::new() }];
        let main = model.main();
        let mut operands = Vec::new();
        for (at, present) in present.iter().enumerate() {
            operands.push(present.then(|| {
                let value = model.add_value(format!("x{at}"));
                model.add_input(main, value).unwrap();
                value
            }));
        }
        let mut node = NewNode::new(self.op_type, operands);
        for (name, value) in &self.attributes {
            node = node.with(name, value.clone());
        }
        let results: Vec<_> = (0..self.outputs).map(|at| model.add_value(format!("y{at}"))).collect();
        for &result in &results {
            node = node.output(result);
        }
        model.add_node(main, node).unwrap();
        for result in results {
            model.add_output(main, result);
        }
        model
    }

    /// Evaluates all results.
    pub(crate) fn try_all(&self, operands: &[Option<Tensor>]) -> Result<Vec<Tensor>, Decline> {
        let present: Vec<bool> = operands.iter().map(Option::is_some).collect();
        let model = self.model(&present);
        let given = operands.iter().flatten().cloned().map(Data::Tensor).collect();
        let results = evaluate_graph(&model, model.main(), given, &Budget::default(), SliceRule::Agree)?;
        let facts = operands
            .iter()
            .map(|operand| operand.clone().map(|tensor| Fact { content: None, ..Fact::constant(tensor) }));
        // Evaluation must not contradict inference.
        let inferred = self.infer(&Rc::new(Scope::new()), facts.collect());
        for (fact, result) in inferred.iter().zip(&results) {
            let tensor = result.tensor().unwrap();
            assert!(fact.dtype().is_none_or(|dtype| dtype == tensor.dtype()), "{}: {:?}", self.op_type, fact.dtype());
            assert!(fact.rank().is_none_or(|rank| rank == tensor.rank()), "{}: {:?}", self.op_type, fact.shape());
            for (dim, &size) in fact.shape().into_iter().flatten().zip(tensor.shape()) {
                assert!(dim.as_const().is_none_or(|dim| dim == size as i64), "{}: {:?}", self.op_type, fact.shape());
            }
        }
        Ok(results.into_iter().map(|result| result.tensor().unwrap().clone()).collect())
    }

    pub(crate) fn all(&self, operands: impl Into<Vec<Tensor>>) -> Vec<Tensor> {
        let operands: Vec<_> = operands.into().into_iter().map(Some).collect();
        self.try_all(&operands).unwrap()
    }

    pub(crate) fn eval(&self, operands: impl Into<Vec<Tensor>>) -> Tensor {
        self.all(operands).remove(0)
    }

    pub(crate) fn fails(&self, operands: impl Into<Vec<Tensor>>) -> Decline {
        let operands: Vec<_> = operands.into().into_iter().map(Some).collect();
        self.try_all(&operands).unwrap_err()
    }

    /// Infers the results.
    pub(crate) fn infer(&self, scope: &Rc<Scope>, facts: Vec<Option<Fact>>) -> Vec<Fact> {
        self.infer_events(scope, facts).0
    }

    pub(crate) fn infer_events(&self, scope: &Rc<Scope>, facts: Vec<Option<Fact>>) -> (Vec<Fact>, Vec<Event>) {
        let present: Vec<bool> = facts.iter().map(Option::is_some).collect();
        let model = self.model(&present);
        let mut walk = Walk::new(Rc::clone(scope), SliceRule::Agree, Budget::default());
        for (&input, fact) in model.graph(model.main()).inputs().iter().zip(facts.into_iter().flatten()) {
            walk.facts.set(input, fact);
        }
        walk.infer_main(&model).unwrap();
        let outputs = model.graph(model.main()).outputs().iter();
        (outputs.map(|&output| walk.facts.get(output).cloned().unwrap_or_default()).collect(), walk.events)
    }
}

pub(crate) fn tensor<T: Element>(shape: &[usize], values: &[T]) -> Tensor {
    Tensor::from_vec(shape, values.to_vec()).unwrap()
}

/// Returns the tensor 0, 1, 2, … of this shape.
pub(crate) fn iota(shape: &[usize]) -> Tensor {
    let len: usize = shape.iter().product();
    Tensor::from_vec(shape, (0..len).map(|at| at as f32).collect()).unwrap()
}

pub(crate) fn ints(values: &[i64]) -> Tensor {
    tensor(&[values.len()], values)
}

pub(crate) fn strings(shape: &[usize], values: &[&'static str]) -> Tensor {
    Tensor::from_strings(shape, values.iter().map(|text| Bytes::from_static(text.as_bytes())).collect()).unwrap()
}

pub(crate) fn values<T: Element>(tensor: &Tensor) -> Vec<T> {
    tensor.elements::<T>().unwrap().into_owned()
}

/// Returns the fact of a float tensor with these dims, each a number or an expression.
pub(crate) fn shaped(scope: &Scope, dims: &[&str]) -> Fact {
    Fact::tensor(Some(DType::Float), Some(dims.iter().map(|dim| scope.parse(dim).unwrap()).collect()))
}

/// Returns the fact of an int64 vector with these elements; `?` is unknown.
pub(crate) fn vector(scope: &Scope, elements: &[&str]) -> Fact {
    let fact = Fact::tensor(Some(DType::Int64), Some(vec![Dim::constant(elements.len() as i64)]));
    fact.with_elements(elements.iter().map(|element| parse_element(scope, element)).collect())
}

fn parse_element(scope: &Scope, element: &str) -> Scalar {
    if element == "?" { Scalar::Unknown } else { Scalar::Int(scope.parse(element).unwrap()) }
}

/// Formats the dims.
pub(crate) fn dims(scope: &Scope, fact: &Fact) -> Vec<String> {
    fact.shape().unwrap().iter().map(|dim| scope.format(dim)).collect()
}

/// Formats the elements.
pub(crate) fn elements(scope: &Scope, fact: &Fact) -> Vec<String> {
    let elements = fact.elements().unwrap();
    let text = |element: &Scalar| match element {
        Scalar::Int(dim) => scope.format(dim),
        Scalar::Unknown => "?".to_string(),
        other => format!("{other:?}"),
    };
    elements.iter().map(text).collect()
}
