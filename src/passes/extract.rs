//! Extracts the part of a model between some of its values.

use rustc_hash::{FxHashMap, FxHashSet};

use super::dead;
use super::edits::EditCounter;
use crate::ir::{Broken, DeclaredType, Definition, GraphId, Model, ValueId};
use crate::rewrite::meant;
use crate::sort;

/// The reason why a part cannot be extracted.
#[derive(Debug, thiserror::Error)]
pub enum ExtractError {
    /// A name that no value of the main graph has.
    #[error("the model has no {kind} named '{name}'{}", .meant.as_deref().map(|name| format!("; did you mean '{name}'?")).unwrap_or_default())]
    NoValue {
        /// The kind of value: an output, or any value.
        kind: &'static str,
        /// The name.
        name: String,
        /// The most similar name.
        meant: Option<String>,
    },
    /// A value given twice.
    #[error("'{0}' is listed twice")]
    Twice(String),
    /// A constant cannot be an input.
    #[error("'{0}' is a constant and cannot become an input")]
    Constant(String),
    /// A value whose type is not known cannot be an input.
    #[error("the type of '{0}' is unknown, so it cannot become an input")]
    NoType(String),
    /// An output depends on a value that is no requested input.
    #[error("output '{output}' needs input '{input}', which is not among the requested inputs")]
    Needs {
        /// The output.
        output: String,
        /// The missing input.
        input: String,
    },
    /// No output would remain.
    #[error("the model would have no output")]
    Nothing,
    /// A defect of this program.
    #[error(transparent)]
    Broken(#[from] Broken),
}

/// Returns the values of the main graph: inputs, initializers and results of nodes.
pub fn values(model: &Model) -> impl Iterator<Item = ValueId> + '_ {
    let graph = model.graph(model.main());
    let results = graph.nodes().filter_map(|id| model.node(id)).flat_map(|node| node.outputs().iter().flatten());
    graph.inputs().iter().chain(graph.initializers()).chain(results).copied()
}

/// Reduces the model to the part between these values; without names, all inputs or outputs are kept.
///
/// # Errors
/// See [`ExtractError`]. The model is unchanged then.
pub fn extract(model: &mut Model, inputs: &[String], outputs: &[String]) -> Result<(), ExtractError> {
    let main = model.main();
    let by_name: FxHashMap<String, ValueId> =
        values(model).map(|value| (model.value(value).name.to_string(), value)).collect();
    let found = |names: &[String]| names.iter().map(|name| named(model, &by_name, name)).collect::<Result<Vec<_>, _>>();
    let wanted = if outputs.is_empty() { model.graph(main).outputs().to_vec() } else { found(outputs)? };
    let given = if inputs.is_empty() { model.graph(main).inputs().to_vec() } else { found(inputs)? };
    unique(model, if outputs.is_empty() { &[] } else { &wanted })?;
    unique(model, &given)?;
    // An error must not change the model itself.
    let mut part = model.clone();
    // Recorded sizes may follow from nodes that are removed.
    part.remember("");
    let mut replaced: FxHashMap<ValueId, ValueId> = FxHashMap::default();
    for &value in &given {
        if let Some(input) = input_for(&mut part, value)? {
            replaced.insert(value, input);
        }
    }
    let instead = |value: &ValueId| replaced.get(value).copied().unwrap_or(*value);
    let ends: Vec<ValueId> = wanted.iter().map(instead).collect();
    part.set_outputs(main, &ends);
    if let Some(error) = missing(&part, &ends, &given.iter().map(instead).collect()) {
        return Err(error);
    }
    keep_annotated(&mut part, true);
    dead::remove(&mut part, &mut EditCounter::unlimited());
    part.set_inputs(main, &given.iter().map(instead).collect::<Vec<_>>())?;
    keep_annotated(&mut part, false);
    // A former input with a default may be a constant without readers.
    dead::remove(&mut part, &mut EditCounter::unlimited());
    part.verify()?;
    *model = part;
    Ok(())
}

/// Pins the values of each quantization annotation whose tensor is in the part, and releases those of any other. `at_first` releases all annotated
/// tensors, so that an annotation alone keeps no node. A model with training information keeps its pins.
fn keep_annotated(part: &mut Model, at_first: bool) {
    if part.keeps_functions {
        return;
    }
    let mut pins: Vec<(ValueId, bool)> = Vec::new();
    for annotation in &part.annotations {
        let is_there = part.value(annotation.tensor.0).definition() != Definition::Nothing;
        pins.push((annotation.tensor.0, is_there && !at_first));
        pins.extend(annotation.parameters.iter().map(|&(value, _)| (value, is_there)));
    }
    // A parameter of several annotations is kept for any of them.
    sort::sort(&mut pins);
    for (value, is_kept) in pins {
        part.value_mut(value).pinned = is_kept;
    }
}

/// Removes outputs.
///
/// # Errors
/// No output has one of the names, or no other output remains.
pub fn remove_outputs(model: &mut Model, names: &[String]) -> Result<(), ExtractError> {
    let main = model.main();
    let outputs = model.graph(main).outputs().to_vec();
    let name = |value: &ValueId| model.value(*value).name.as_str();
    for wrong in names {
        if !outputs.iter().any(|value| name(value) == wrong) {
            let meant = meant(wrong, outputs.iter().map(name)).map(str::to_string);
            return Err(ExtractError::NoValue { kind: "output", name: wrong.clone(), meant });
        }
    }
    let left: Vec<ValueId> =
        outputs.iter().copied().filter(|value| !names.iter().any(|gone| gone == name(value))).collect();
    if left.is_empty() {
        return Err(ExtractError::Nothing);
    }
    model.set_outputs(main, &left);
    model.remember("");
    Ok(())
}

fn named(model: &Model, by_name: &FxHashMap<String, ValueId>, name: &str) -> Result<ValueId, ExtractError> {
    by_name.get(name).copied().ok_or_else(|| {
        let names: Vec<&str> = values(model).map(|value| model.value(value).name.as_str()).collect();
        let meant = meant(name, names.iter().copied()).map(str::to_string);
        ExtractError::NoValue { kind: "value", name: name.to_string(), meant }
    })
}

fn unique(model: &Model, values: &[ValueId]) -> Result<(), ExtractError> {
    let mut seen = FxHashSet::default();
    match values.iter().find(|value| !seen.insert(**value)) {
        Some(twice) => Err(ExtractError::Twice(model.value(*twice).name.to_string())),
        None => Ok(()),
    }
}

/// Replaces a requested result by an input of the same name and type with the same readers. Returns `None` if the value is an input already.
fn input_for(part: &mut Model, value: ValueId) -> Result<Option<ValueId>, ExtractError> {
    let name = part.value(value).name.to_string();
    match part.value(value).definition() {
        Definition::Input(_) => return Ok(None),
        Definition::Node(..) => {}
        Definition::Initializer(_) | Definition::Nothing => return Err(ExtractError::Constant(name)),
    }
    let ty = part.value(value).declared.clone();
    let ty = ty.filter(|ty| !matches!(ty, DeclaredType::Tensor { dtype: 0, .. }));
    let ty = ty.ok_or_else(|| ExtractError::NoType(name.clone()))?;
    // The result is kept if its node has others.
    part.rename_after(value, &format!("{name}_computed"));
    let input = part.add_value(name);
    part.declare(input, ty);
    part.replace_uses(value, input);
    Ok(Some(input))
}

/// Returns an error for an input of the old graph that an output needs and that is not `given`. Inputs with a default are not needed.
fn missing(part: &Model, ends: &[ValueId], given: &FxHashSet<ValueId>) -> Option<ExtractError> {
    for &end in ends {
        let mut seen = FxHashSet::default();
        let mut open = vec![end];
        while let Some(value) = open.pop() {
            if given.contains(&value) || !seen.insert(value) {
                continue;
            }
            let place = part.value(value);
            match place.definition() {
                Definition::Input(graph) if graph == part.main() && place.constant.is_none() => {
                    let (output, input) = (part.value(end).name.to_string(), place.name.to_string());
                    return Some(ExtractError::Needs { output, input });
                }
                Definition::Node(node, _) => {
                    let Some(node) = part.node(node) else { continue };
                    open.extend(node.inputs().iter().flatten());
                    open.extend(node.subgraphs().flat_map(|body: GraphId| part.captures(body)));
                }
                _ => {}
            }
        }
    }
    None
}
