//! Runs a main graph within limits, and compares the shapes that are stated with those that come out.

use std::collections::BTreeMap;

use super::inputs::{Case, size_of};
use crate::clock::Instant;
use crate::ir::{Data, DeclaredType, DimClaim, Model, ValueId};
use crate::ops::{Budget, Decline, evaluate_observed};
use crate::slicing::SliceRule;

/// What a run may cost, and how it reads disputed slices.
pub struct Limits {
    pub bytes: usize,
    pub work: u64,
    pub until: Instant,
    pub rule: SliceRule,
}

/// What a run gave.
pub struct Ran {
    pub outputs: Vec<Data>,
    /// A stated shape that is not the one that came out.
    pub wrong_shape: Option<String>,
}

/// Runs the main graph of a model. With `original`, each shape that the model states, and the original did not state already, is compared.
///
/// # Errors
/// What keeps it from running.
pub fn evaluate(model: &Model, case: &Case, original: Option<&Model>, limits: &Limits) -> Result<Ran, Decline> {
    let main = model.main();
    let budget = Budget::new(limits.bytes, limits.bytes, limits.work, limits.work);
    let given = |&value: &ValueId| {
        let place = model.value(value);
        let default = || place.tensor().cloned().map(Data::Tensor);
        let missing = || Decline::unsupported(format!("no values could be generated for input '{}'", place.name));
        case.input(&place.name).cloned().or_else(default).ok_or_else(missing)
    };
    let inputs = model.graph(main).inputs().iter().map(given).collect::<Result<Vec<_>, _>>()?;
    let zeros = case.sizes().values().filter(|size| **size == 0).count();
    let mut statements = Statements { known: case.sizes().clone(), zeros, already: original.map(declared_names) };
    let mut wrong_shape = None;
    let outputs = evaluate_observed(
        model,
        main,
        (inputs, &mut |value, data| {
            if wrong_shape.is_none() && original.is_some() {
                wrong_shape = statements.wrong(model, value, data);
            }
            if Instant::now() > limits.until {
                return Err(Decline::OverBudget("the time limit is reached".to_string()));
            }
            Ok(())
        }),
        &budget,
        limits.rule,
    )?;
    Ok(Ran { outputs, wrong_shape })
}

/// What the original declares of the results of its nodes, by name: what was false in the file is no fault of folding.
fn declared_names(model: &Model) -> BTreeMap<String, DeclaredType> {
    let graph = model.graph(model.main());
    let nodes = graph.nodes().filter_map(|id| model.node(id));
    let values = nodes.flat_map(|node| node.outputs().iter().flatten().copied().collect::<Vec<_>>());
    values
        .filter_map(|value| Some((model.value(value).name.to_string(), model.value(value).declared.clone()?)))
        .collect()
}

/// What is stated of sizes, and what the names in it have turned out to be.
struct Statements {
    known: BTreeMap<String, i64>,
    /// How many sizes of inputs are 0.
    zeros: usize,
    already: Option<BTreeMap<String, DeclaredType>>,
}

impl Statements {
    /// What is stated falsely of a value. A name that is no symbol of the inputs stands for the first size it is met at.
    fn wrong(&mut self, model: &Model, value: ValueId, data: &Data) -> Option<String> {
        let place = model.value(value);
        let declared = place.declared.as_ref()?;
        if self.already.as_ref()?.get(place.name.as_str()) == Some(declared) {
            return None;
        }
        let (stated, tensor) = (declared.shape()?, data.tensor()?);
        let shape: Vec<i64> = tensor.shape().iter().map(|&size| i64::try_from(size).unwrap_or(i64::MAX)).collect();
        let false_size = |(dim, &size): (&DimClaim, &i64)| match dim {
            DimClaim::Unknown => false,
            DimClaim::Value(stated) => *stated != size,
            DimClaim::Param(text) => match size_of(text, &self.known) {
                Some(stated) => stated != size,
                None => {
                    self.known.entry(text.clone()).or_insert(size);
                    false
                }
            },
        };
        let wrong = stated.len() != shape.len() || stated.iter().map(|dim| &dim.claim).zip(&shape).any(false_size);
        let alike = stated.len() == shape.len();
        if alike && self.zeros > 1 && shape.contains(&0) && stated.iter().any(|dim| self.is_zero(&dim.claim)) {
            // Which dim of an empty tensor is the 0 is not promised where independent sizes are 0 at once: a 0 in the target of a Reshape
            // may copy another.
            return None;
        }
        let stated: Vec<String> = stated.iter().map(|dim| dim.claim.to_string()).collect();
        wrong.then(|| {
            format!("'{}' is declared with shape [{}], but has shape {shape:?}", place.name, stated.join(", "))
        })
    }

    fn is_zero(&self, claim: &DimClaim) -> bool {
        match claim {
            DimClaim::Unknown => false,
            DimClaim::Value(size) => *size == 0,
            DimClaim::Param(text) => size_of(text, &self.known) == Some(0),
        }
    }
}
