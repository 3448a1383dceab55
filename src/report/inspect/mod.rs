//! Inspects a model: origin, interface, operators, parameters, and the cost of a run.
//!
//! | file | purpose |
//! | --- | --- |
//! | `contents` | lists the contents of the file: tensors, data files, functions, dynamic dims |
//! | `macs` | sums the multiply-accumulates that operators declare (the trait `macs`) |
//! | `memory` | finds the peak of the activations by their live ranges |
//! | `text` | prints inspections side by side |

mod contents;
mod macs;
mod memory;
mod text;

use std::collections::BTreeMap;

use rustc_hash::FxHashSet;

use super::{Census, Interface};
use crate::dim::{Dim, Symbol};
use crate::ir::{Facts, Model};

pub use text::inspection_text;
pub(super) use text::{Units, bytes, count, figure, grouped};

/// The largest number of characters of a printed expression.
const LONGEST: usize = 72;

/// A number that depends on the dims of the inputs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Figure {
    /// The number.
    Number(u64),
    /// An expression in the dims of the inputs.
    Expression(String),
    /// These dims determine the number, but the expression is too long or its maximum is undecided.
    Needs(Vec<String>),
    /// The number exceeds 63 bits, or no facts determine it.
    Unknown,
}

/// The parameters of one element type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Parameters {
    /// The number of tensors.
    pub tensors: usize,
    /// The number of their elements.
    pub elements: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// A tensor of the model.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LargeTensor {
    /// Its name.
    pub name: String,
    /// Its type in the ONNX text syntax.
    pub ty: String,
    /// Its bytes.
    pub bytes: u64,
}

/// A data file of the model.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DataFile {
    /// The path in the model.
    pub location: String,
    /// The number of tensors in it.
    pub tensors: usize,
    /// The bytes of these tensors.
    pub bytes: u64,
    /// `true` if the file was not found.
    pub is_missing: bool,
}

/// A function of the model.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FunctionInfo {
    /// Domain and name.
    pub name: String,
    /// The number of its nodes, including subgraphs.
    pub nodes: usize,
    /// The operator sets that it imports.
    pub opsets: BTreeMap<String, i64>,
}

/// A dim without a constant size.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DynamicDim {
    /// Its name, or the expression that the input declares.
    pub name: String,
    /// The inputs and axes that have it.
    pub places: Vec<(String, usize)>,
}

/// The multiply-accumulates of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MacCount {
    /// The sum over all counted nodes.
    pub total: Figure,
    /// By operator.
    pub operators: BTreeMap<String, Figure>,
    /// Nodes that are not counted, by operator: unknown operators, and products with data-dependent sizes.
    pub uncounted: BTreeMap<String, usize>,
}

/// The maximum of bytes that activations occupy at the same time.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PeakMemory {
    /// Bytes of inputs and results of nodes that are live at the same time. Weights are not included.
    pub bytes: Figure,
    /// The node that runs at the peak.
    pub node: Option<String>,
    /// The number of activations of unknown size, which are excluded.
    pub unsized_values: usize,
}

/// The properties of a model. [`inspection_text`] prints them on one screen.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Inspection {
    /// Name and version of the program that wrote the file; empty if not declared.
    pub producer: (String, String),
    /// The version of the file format.
    pub ir_version: i64,
    /// The imported operator sets by domain; the default domain is `ai.onnx`.
    pub opsets: BTreeMap<String, i64>,
    /// Bytes of the model file.
    pub bytes: u64,
    /// The inputs without a default, and their types.
    pub inputs: Vec<(String, String)>,
    /// The number of inputs with a default, which are counted as parameters.
    pub defaults: usize,
    /// The outputs, and their types.
    pub outputs: Vec<(String, String)>,
    /// Nodes by operator, including subgraphs and functions, and the operators that neither this program nor a function of the model
    /// defines.
    pub census: Census,
    /// The functions.
    pub functions: Vec<FunctionInfo>,
    /// Parameters by element type.
    pub parameters: BTreeMap<String, Parameters>,
    /// The multiply-accumulates of a run.
    pub macs: MacCount,
    /// The peak memory of the activations of a run.
    pub memory: PeakMemory,
    /// The data files.
    pub files: Vec<DataFile>,
    /// The largest tensors, largest first.
    pub largest: Vec<LargeTensor>,
    /// The dims of inputs without a constant size.
    pub dims: Vec<DynamicDim>,
}

/// The sources of an inspection: the model as read, and a copy of it with inlined calls and inferred facts.
pub(crate) struct Inspected<'m> {
    /// The model as read.
    pub(crate) model: &'m Model,
    /// The copy.
    pub(crate) inlined: &'m Model,
    /// The facts about the copy.
    pub(crate) facts: &'m Facts,
    /// Bytes of the model file.
    pub(crate) bytes: u64,
    /// The data files that were not found, each with the number of its tensors.
    pub(crate) missing: &'m [(String, usize)],
    /// The program that wrote the file.
    pub(crate) producer: (String, String),
}

/// Inspects a model.
pub(crate) fn inspect(inspected: &Inspected<'_>) -> Inspection {
    let Inspected { model, inlined, facts, .. } = *inspected;
    let known = Known::of(inlined, facts);
    // An empty input is of no interest, and without it most sums can be compared.
    let positive: Vec<Dim> =
        known.symbols.iter().map(|&symbol| facts.scope().sub(&Dim::symbol(symbol), &Dim::constant(1))).collect();
    let (macs, memory) = facts
        .scope()
        .supposing(&positive, || (macs::count(inlined, facts, &known), memory::peak(inlined, facts, &known)));
    let interface = Interface::of(inlined);
    let graph = inlined.graph(inlined.main());
    let has_default = graph.inputs().iter().map(|&value| inlined.value(value).constant.is_some());
    let ports = interface.inputs.into_iter().zip(has_default);
    let (defaults, inputs): (Vec<_>, Vec<_>) = ports.partition(|(_, has_default)| *has_default);
    Inspection {
        producer: inspected.producer.clone(),
        ir_version: model.ir_version,
        opsets: contents::opsets(&model.opsets),
        bytes: inspected.bytes,
        inputs: inputs.into_iter().map(|(port, _)| port).collect(),
        defaults: defaults.len(),
        outputs: interface.outputs,
        census: Census::of(model),
        functions: contents::functions(model),
        parameters: contents::parameters(model),
        macs,
        memory,
        files: contents::files(model, inspected.missing),
        largest: contents::largest(model),
        dims: contents::dims(inlined, facts),
    }
}

/// The symbols in the dims of the inputs, which a caller can fix.
struct Known<'f> {
    facts: &'f Facts,
    symbols: FxHashSet<Symbol>,
}

impl<'f> Known<'f> {
    fn of(model: &Model, facts: &'f Facts) -> Self {
        let inputs = model.graph(model.main()).inputs().iter();
        let shapes = inputs.filter_map(|&value| facts.get(value)?.shape());
        Known { facts, symbols: shapes.flatten().flat_map(Dim::symbols).collect() }
    }

    /// Returns `true` if the sizes of the inputs determine the number.
    fn determines(&self, dim: &Dim) -> bool {
        !dim.has_symbol(|symbol| !self.symbols.contains(&symbol))
    }

    /// Returns the number as an expression in the sizes of the inputs, if they determine it. Sizes computed in floats are replaced by
    /// those of exact arithmetic.
    fn determined(&self, dim: &Dim) -> Option<Dim> {
        if self.determines(dim) {
            return Some(dim.clone());
        }
        Some(self.facts.scope().nominal(dim)).filter(|dim| self.determines(dim))
    }

    /// Returns a number or expression in the reported form.
    fn figure(&self, dim: &Dim) -> Figure {
        let scope = self.facts.scope();
        match dim.as_const().map(u64::try_from) {
            Some(number) => return number.map_or(Figure::Unknown, Figure::Number),
            None if !self.determines(dim) => return Figure::Unknown,
            None => {}
        }
        let text = scope.format_within(dim, LONGEST);
        match text.ends_with('…') {
            true => self.needs(dim),
            false => Figure::Expression(text),
        }
    }

    /// Returns the dims that must be given for a number.
    fn needs(&self, dim: &Dim) -> Figure {
        let names = dim.symbols().into_iter().map(|symbol| self.facts.scope().name(symbol).to_string());
        let names: Vec<String> = names.collect();
        if names.is_empty() { Figure::Unknown } else { Figure::Needs(names) }
    }
}
