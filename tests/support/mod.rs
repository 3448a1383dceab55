//! Runs models in text form before and after folding.

// Each test binary compiles this module and uses a part of it.
#![allow(dead_code)]

pub mod changes;
pub mod readers;

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use half::{bf16, f16};
use onnx_slice_fold::dim::Scope;
use onnx_slice_fold::ir::{Data, DeclaredType, DimClaim, Model, ValueId, text};
use onnx_slice_fold::ops::{Budget, evaluate_graph};
use onnx_slice_fold::slicing::SliceRule;
use onnx_slice_fold::tensor::{DType, Tensor};
use onnx_slice_fold::{OnnxModel, Options, Report};

/// A generator of pseudorandom numbers, equal on every machine.
pub struct Numbers(u64);

impl Numbers {
    pub fn new(seed: u64) -> Self {
        Numbers(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Returns a number from `-1.0` to `1.0`.
    fn real(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }
}

/// Returns inputs for the main graph at these sizes; every symbol must have one. Inputs with a default get the default.
pub fn inputs(model: &Model, sizes: &BTreeMap<String, usize>, seed: u64) -> Vec<Data> {
    let mut numbers = Numbers::new(seed);
    let graph = model.graph(model.main());
    graph
        .inputs()
        .iter()
        .map(|&value| {
            let place = model.value(value);
            if let Some(default) = place.tensor() {
                return Data::Tensor(default.clone());
            }
            let declared = place.declared.as_ref().unwrap_or_else(|| panic!("input '{}' has no type", place.name));
            sample(declared, sizes, &mut numbers)
        })
        .collect()
}

/// Returns a value of a type: an optional has content, a sequence has two elements.
fn sample(declared: &DeclaredType, sizes: &BTreeMap<String, usize>, numbers: &mut Numbers) -> Data {
    match declared {
        DeclaredType::Tensor { shape: Some(dims), .. } => {
            let size = |claim: &DimClaim| match claim {
                DimClaim::Value(size) => usize::try_from(*size).expect("sizes are not negative"),
                DimClaim::Param(text) => size_of(text, sizes),
                DimClaim::Unknown => 2,
            };
            let shape: Vec<usize> = dims.iter().map(|dim| size(&dim.claim)).collect();
            Data::Tensor(random(declared.dtype().expect("the element type is known"), &shape, numbers))
        }
        // An arbitrary rank.
        DeclaredType::Tensor { shape: None, .. } => {
            Data::Tensor(random(declared.dtype().expect("the element type is known"), &[2, 3, 4], numbers))
        }
        DeclaredType::Optional { elem: Some(elem), .. } => Data::Optional(Some(Arc::new(sample(elem, sizes, numbers)))),
        DeclaredType::Sequence { elem: Some(elem), .. } => {
            Data::Sequence(Arc::new(vec![sample(elem, sizes, numbers), sample(elem, sizes, numbers)]))
        }
        other => panic!("no random values of type {other:?}"),
    }
}

/// Returns the value of a dim at these sizes; 0 instead of a negative one.
fn size_of(text: &str, sizes: &BTreeMap<String, usize>) -> usize {
    if let Some(&size) = sizes.get(text) {
        return size;
    }
    let scope = Scope::new();
    let known: BTreeMap<_, i64> =
        sizes.iter().map(|(name, &size)| (scope.named(name), i64::try_from(size).expect("sizes are small"))).collect();
    let dim = scope.parse(text).unwrap_or_else(|| panic!("'{text}' is no expression"));
    let size = dim.evaluate(&|symbol| known.get(&symbol).copied()).expect("every symbol has a size");
    usize::try_from(size).unwrap_or(0)
}

/// Returns the symbols of a dim: itself for a name, otherwise those of the expression.
fn names_in(text: &str) -> Vec<String> {
    let words = text.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
    let is_name = |word: &&str| word.starts_with(|letter: char| letter.is_alphabetic() || letter == '_');
    let is_function = |word: &&str| text.contains(&format!("{word}("));
    match Scope::new().parse(text) {
        Some(_) => words.filter(is_name).filter(|word| !is_function(word)).map(str::to_string).collect(),
        None => vec![text.to_string()],
    }
}

fn random(dtype: DType, shape: &[usize], numbers: &mut Numbers) -> Tensor {
    let count = shape.iter().product();
    let small = |numbers: &mut Numbers| (numbers.next() % 3) as i64;
    match dtype {
        DType::Float => Tensor::from_vec(shape, (0..count).map(|_| numbers.real() as f32).collect()),
        DType::Double => Tensor::from_vec(shape, (0..count).map(|_| numbers.real()).collect()),
        DType::Int64 => Tensor::from_vec(shape, (0..count).map(|_| small(numbers)).collect()),
        DType::Int32 => Tensor::from_vec(shape, (0..count).map(|_| small(numbers) as i32).collect()),
        DType::Int8 => Tensor::from_vec(shape, (0..count).map(|_| small(numbers) as i8).collect()),
        DType::Uint8 => Tensor::from_vec(shape, (0..count).map(|_| small(numbers) as u8).collect()),
        DType::Uint32 => Tensor::from_vec(shape, (0..count).map(|_| small(numbers) as u32).collect()),
        DType::Float16 => Tensor::from_vec(shape, (0..count).map(|_| f16::from_f64(numbers.real())).collect()),
        DType::Bfloat16 => Tensor::from_vec(shape, (0..count).map(|_| bf16::from_f64(numbers.real())).collect()),
        DType::String => {
            let words = [&b"ant"[..], b"Bee", b"cow hen"].map(Bytes::from_static);
            Tensor::from_strings(shape, (0..count).map(|_| words[small(numbers) as usize].clone()).collect())
        }
        DType::Bool => Tensor::from_bools(shape, &(0..count).map(|_| numbers.next() % 2 == 1).collect::<Vec<_>>()),
        other => panic!("no random values of type {other}"),
    }
    .expect("the shape fits the values")
}

/// Runs the main graph.
pub fn run(model: &Model, inputs: Vec<Data>) -> Result<Vec<Data>, String> {
    evaluate_graph(model, model.main(), inputs, &Budget::default(), SliceRule::OnnxRuntime)
        .map_err(|decline| decline.to_string())
}

/// Returns `true` if type and shape are equal, and values are equal up to rounding.
pub fn close(a: &Data, b: &Data) -> bool {
    match (a, b) {
        (Data::Tensor(a), Data::Tensor(b)) if a.dtype().is_float() => {
            let near =
                |(x, y): (&f64, &f64)| x == y || (x.is_nan() && y.is_nan()) || (x - y).abs() <= 1e-4 * x.abs().max(1.0);
            let (x, y) = (a.to_f64s().unwrap_or_default(), b.to_f64s().unwrap_or_default());
            a.dtype() == b.dtype() && a.shape() == b.shape() && x.iter().zip(&y).all(near)
        }
        (a, b) => a.same(b),
    }
}

/// Returns the names of the symbols in the inputs' shapes.
pub fn symbols<'m>(model: &'m Model) -> Vec<String> {
    let graph = model.graph(model.main());
    let innermost = |mut declared: &'m DeclaredType| {
        while let DeclaredType::Optional { elem: Some(elem), .. } | DeclaredType::Sequence { elem: Some(elem), .. } =
            declared
        {
            declared = elem;
        }
        declared.shape()
    };
    let shapes = graph.inputs().iter().filter_map(|&value| innermost(model.value(value).declared.as_ref()?));
    let mut names: Vec<String> = shapes
        .flatten()
        .flat_map(|dim| match &dim.claim {
            DimClaim::Param(text) => names_in(text),
            _ => Vec::new(),
        })
        .collect();
    names.sort();
    names.dedup();
    names
}

/// Folds a model and checks that the result computes the same wherever the original succeeds: with every symbol at 4 (the next ones a
/// little larger), 1 and 0. Returns the folded model.
pub fn folded(source: &str, options: &Options) -> Model {
    let original = text::parse(source).unwrap_or_else(|error| panic!("{error}\n{source}"));
    let mut document = OnnxModel::of(original.clone());
    document.fold(options).expect("the model folds");
    let result = document.model().clone();
    compare(&original, &result);
    result
}

/// Returns the sizes at which a model is run: every symbol at 4 (the next ones a little larger), 1 and 0.
pub fn trials(model: &Model) -> Vec<BTreeMap<String, usize>> {
    let names = symbols(model);
    let trial = |size: usize| {
        names.iter().enumerate().map(|(i, name)| (name.clone(), if size > 1 { size + i } else { size })).collect()
    };
    [4, 1, 0].map(trial).to_vec()
}

/// Checks that a model computes the same as the original wherever the original succeeds.
pub fn compare(original: &Model, result: &Model) {
    let (mut runs, mut failure) = (0, None);
    for (seed, sizes) in trials(original).iter().enumerate() {
        let given = inputs(original, sizes, 7 + seed as u64);
        let before = match run(original, given.clone()) {
            Ok(before) => before,
            Err(reason) => {
                failure.get_or_insert(reason);
                continue;
            }
        };
        runs += 1;
        let after = run(result, given).unwrap_or_else(|error| panic!("the folded model fails at {sizes:?}: {error}"));
        assert_eq!(before.len(), after.len());
        for (before, after) in before.iter().zip(&after) {
            assert!(
                close(before, after),
                "results differ at {sizes:?}:\n{before:?}\n{after:?}\n{}",
                text::print(result)
            );
        }
    }
    assert!(runs > 0, "the original runs at none of the sizes: {failure:?}");
}

/// Returns the model as text, without names of nodes that equal the name of the first result. Most models in text form have no others.
pub fn written(model: &Model) -> String {
    without_names(&text::print(model))
}

/// Returns the text of a model without these names.
fn without_names(printed: &str) -> String {
    let line = |line: &str| {
        let (indent, node) = line.split_at(line.len() - line.trim_start().len());
        let named = node.strip_prefix('[').and_then(|node| node.split_once("] "));
        let plain =
            named.filter(|(name, rest)| rest.strip_prefix(name).is_some_and(|rest| rest.starts_with([' ', ','])));
        format!("{indent}{}\n", plain.map_or(node, |(_, rest)| rest))
    };
    let mut lines: String = printed.lines().map(line).collect();
    if !printed.ends_with('\n') {
        lines.pop();
    }
    lines
}

/// Folds a model, checks that it computes the same, and returns it as text.
pub fn left(source: &str) -> String {
    written(&folded(source, &Options::default()))
}

/// Folds a model without running it.
pub fn folded_unrun(source: &str, options: &Options) -> (Model, Report) {
    let mut document = OnnxModel::of(text::parse(source).unwrap_or_else(|error| panic!("{error}\n{source}")));
    let report = document.fold(options).expect("the model folds");
    (document.model().clone(), report)
}

/// Returns the operators of the main graph in topological order.
pub fn operators(model: &Model) -> Vec<String> {
    let order = model.topological(model.main()).expect("the graph has no cycle");
    order.into_iter().filter_map(|id| model.node(id)).map(|node| node.op_type.to_string()).collect()
}

/// Returns a value of the main graph by name.
pub fn value(model: &Model, name: &str) -> ValueId {
    let graph = model.graph(model.main());
    let results = graph.nodes().filter_map(|id| model.node(id)).flat_map(|node| node.outputs().iter().flatten());
    let mut all = graph.inputs().iter().chain(graph.initializers()).chain(results);
    *all.find(|&&value| model.value(value).name == name)
        .unwrap_or_else(|| panic!("no '{name}':\n{}", text::print(model)))
}

/// Returns the declared shape of a value, with dims separated by commas.
pub fn shape(model: &Model, name: &str) -> String {
    let place = model.value(value(model, name));
    if let Some(tensor) = place.tensor() {
        return tensor.shape().iter().map(usize::to_string).collect::<Vec<_>>().join(",");
    }
    let dims = place.declared.as_ref().and_then(DeclaredType::shape).unwrap_or_else(|| panic!("'{name}' has no shape"));
    let one = |claim: &DimClaim| match claim {
        DimClaim::Unknown => "?".to_string(),
        DimClaim::Value(size) => size.to_string(),
        DimClaim::Param(name) => name.clone(),
    };
    dims.iter().map(|dim| one(&dim.claim)).collect::<Vec<_>>().join(",")
}
