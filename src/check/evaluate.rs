//! Runs a main graph within limits, and compares declared shapes with computed ones.

use std::collections::BTreeMap;

use super::inputs::{Case, size_of};
use crate::clock::Instant;
use crate::ir::{Data, DeclaredType, DimClaim, Model, ValueId};
use crate::ops::{Budget, Decline, evaluate_observed};
use crate::slicing::SliceRule;

/// The limits of a run, and the rule for disputed slices.
pub struct Limits {
    pub bytes: usize,
    pub work: u64,
    pub until: Instant,
    pub rule: SliceRule,
}

/// The results of a run.
pub struct Ran {
    pub outputs: Vec<Data>,
    /// The first declared shape that differs from the computed one.
    pub wrong_shape: Option<String>,
}

/// Runs the main graph of a model. With `original`, compares each declared shape that `original` does not already declare.
///
/// # Errors
/// The reason why the graph cannot run.
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

/// Returns the declared types of the original's node outputs, by name. A false declaration in the file is no fault of folding.
fn declared_names(model: &Model) -> BTreeMap<String, DeclaredType> {
    let graph = model.graph(model.main());
    let nodes = graph.nodes().filter_map(|id| model.node(id));
    let values = nodes.flat_map(|node| node.outputs().iter().flatten().copied().collect::<Vec<_>>());
    values
        .filter_map(|value| Some((model.value(value).name.to_string(), model.value(value).declared.clone()?)))
        .collect()
}

/// Declared shapes, and the known sizes of the names in them.
struct Statements {
    known: BTreeMap<String, i64>,
    /// The number of input symbols of size 0.
    zeros: usize,
    already: Option<BTreeMap<String, DeclaredType>>,
}

impl Statements {
    /// Describes a false declared shape of a value. A name that is no input symbol gets the first size it is met at.
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
            // If independent symbols are 0 at once, the position of the 0 in a shape is not guaranteed: a 0 in a Reshape target may copy another dim.
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
