//! Models with subgraphs, for tests of operators that have them.

use std::rc::Rc;

use crate::dim::Scope;
use crate::ir::{
    Attribute, Constant, Data, DeclaredType, DimClaim, Extra, GraphId, Model, NewNode, OpsetImport, ValueId,
};
use crate::ops::{Budget, Decline, EventKind, Walk, evaluate_graph};
use crate::slicing::SliceRule;
use crate::tensor::{DType, Tensor};

/// A model built with named values.
pub(in crate::ops) struct Bodies {
    pub model: Model,
    names: Vec<(String, ValueId)>,
}

impl Bodies {
    /// Returns an empty model at an operator set.
    pub fn new(opset: i64) -> Self {
        let mut model = Model::new();
        model.opsets.push(OpsetImport { domain: String::new(), version: opset, extra: Extra::new() });
        Bodies { model, names: Vec::new() }
    }

    pub fn main(&self) -> GraphId {
        self.model.main()
    }

    /// Adds a graph with these inputs, for a node that is added later.
    pub fn graph(&mut self, inputs: &str) -> GraphId {
        let graph = self.model.add_graph("body", None);
        for name in inputs.split_whitespace() {
            let value = self.value(name);
            self.model.add_input(graph, value).unwrap();
        }
        graph
    }

    /// Returns the value with this name; adds it if necessary.
    pub fn value(&mut self, name: &str) -> ValueId {
        if let Some((_, value)) = self.names.iter().find(|(known, _)| known == name) {
            return *value;
        }
        let value = self.model.add_value(name);
        self.names.push((name.to_string(), value));
        value
    }

    /// Adds an input of the main graph, with dims separated by spaces: numbers, names, `?`.
    pub fn input(&mut self, name: &str, dtype: DType, dims: &str) {
        let dims = dims.split_whitespace().map(|dim| match dim.parse() {
            Ok(number) => DimClaim::Value(number),
            Err(_) if dim == "?" => DimClaim::Unknown,
            Err(_) => DimClaim::Param(dim.to_string()),
        });
        let ty = DeclaredType::tensor(dtype, Some(dims.collect()));
        self.typed_input(name, ty);
    }

    /// Adds an input of any type to the main graph.
    pub fn typed_input(&mut self, name: &str, ty: DeclaredType) {
        let (value, main) = (self.value(name), self.main());
        self.model.declare(value, ty);
        self.model.add_input(main, value).unwrap();
    }

    /// Adds an initializer.
    pub fn constant(&mut self, graph: GraphId, name: &str, tensor: Tensor) {
        let value = self.value(name);
        self.model.add_initializer(graph, value, Constant::dense(tensor)).unwrap();
    }

    /// Adds a node; `_` is an absent operand.
    pub fn node(
        &mut self,
        graph: GraphId,
        op_type: &str,
        inputs: &str,
        outputs: &str,
        attributes: &[(&str, Attribute)],
    ) {
        let inputs: Vec<_> =
            inputs.split_whitespace().map(|name| if name == "_" { None } else { Some(self.value(name)) }).collect();
        let mut node = NewNode::new(op_type, inputs);
        for (name, attribute) in attributes {
            node = node.with(name, attribute.clone());
        }
        for name in outputs.split_whitespace() {
            node = node.output(self.value(name));
        }
        self.model.add_node(graph, node).unwrap();
    }

    /// Adds the outputs of a graph.
    pub fn outputs(&mut self, graph: GraphId, names: &str) {
        for name in names.split_whitespace() {
            let value = self.value(name);
            self.model.add_output(graph, value);
        }
    }

    /// Infers the model, with evaluation.
    pub fn infer(&self) -> Walk {
        let mut walk = Walk::new(Rc::new(Scope::new()), SliceRule::default(), Budget::default());
        walk.infer_main(&self.model).unwrap();
        walk
    }

    /// Formats the type and elements of values. Declared symbols have their name; fresh ones have a letter in order of appearance.
    pub fn facts(&self, names: &str) -> Vec<String> {
        let walk = self.infer();
        if let Some(event) = walk.events.iter().find(|event| event.kind == EventKind::Invalid) {
            return vec![format!("invalid: {}", event.reason)];
        }
        describe(&walk, self, names)
    }

    /// Evaluates the main graph's outputs.
    pub fn eval(&self) -> Result<Vec<Data>, Decline> {
        evaluate_graph(&self.model, self.main(), Vec::new(), &Budget::default(), SliceRule::default())
    }
}

fn describe(walk: &Walk, bodies: &Bodies, names: &str) -> Vec<String> {
    use crate::dim::Dim;
    use crate::ir::{Scalar, Type};
    let scope = walk.scope();
    let mut seen = Vec::new();
    let mut text = |dim: &Dim| {
        let dim = &scope.nominal(dim);
        let mut text = scope.format(dim);
        for symbol in dim.symbols() {
            if scope.is_fresh(symbol) {
                let at = seen.iter().position(|&known| known == symbol).unwrap_or_else(|| {
                    seen.push(symbol);
                    seen.len() - 1
                });
                let letter = ["a", "b", "c", "d", "e", "f", "g", "h"][at];
                text = text.replace(&*scope.name(symbol), &format!("?{letter}"));
            }
        }
        text
    };
    fn typed(ty: &Type, text: &mut dyn FnMut(&Dim) -> String) -> String {
        match ty {
            Type::Tensor(tensor) | Type::SparseTensor(tensor) => {
                let dtype = tensor.dtype.map_or("?", DType::name);
                match &tensor.shape {
                    None => dtype.to_string(),
                    Some(dims) => {
                        let dims: Vec<String> = dims.iter().map(text).collect();
                        format!("{dtype}[{}]", dims.join(","))
                    }
                }
            }
            Type::Sequence(inner) => format!("seq({})", inner.as_ref().map_or("?".into(), |ty| typed(ty, text))),
            Type::Optional(inner) => format!("opt({})", inner.as_ref().map_or("?".into(), |ty| typed(ty, text))),
            Type::Map(key, inner) => {
                format!("map({key},{})", inner.as_ref().map_or("?".into(), |ty| typed(ty, text)))
            }
        }
    }
    let value_of = |name: &str| bodies.names.iter().find(|(known, _)| known == name).map(|(_, value)| *value);
    let fact = |name: &str| {
        let Some(fact) = value_of(name).and_then(|value| walk.facts.get(value)) else { return "?".to_string() };
        let mut line = fact.ty.as_ref().map_or("?".to_string(), |ty| typed(ty, &mut text));
        if let Some(elements) = fact.elements().filter(|elements| elements.len() <= 8) {
            let elements = elements.iter().map(|element| match element {
                Scalar::Int(dim) => text(dim),
                Scalar::Float(value) => value.to_string(),
                Scalar::Real { num, den } => format!("{}/{den}", text(num)),
                Scalar::Unknown => "?".to_string(),
            });
            line += &format!("={{{}}}", elements.collect::<Vec<_>>().join(","));
        }
        line
    };
    names.split_whitespace().map(fact).collect()
}
