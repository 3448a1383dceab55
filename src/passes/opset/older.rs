//! Converts nodes to an older operator set.
//!
//! A node is converted version by version. If a step has a function, it writes the older form. The node is then checked against everything that only
//! the newer version has: element types, attributes, attribute values, operands, results. A node whose operator the older set lacks is expanded into
//! other operators (`expand`).

use super::draft::{NodeDraft, STATE_SHAPES};
use super::step::{Older, Rewrite, VersionStep};
use super::{refers, steps_of, table, version_of};
use crate::ir::{Attribute, Fact, Type, ValueId};
use crate::ops::{axis_in, operator};

/// A node that an older operator set cannot express.
#[derive(Clone, Debug)]
pub(super) struct Refusal {
    /// The reason.
    pub reason: String,
    /// The oldest operator set in which the node can be expressed.
    pub lowest: i64,
}

/// Returns the operator set that introduced an operator of the default domain.
pub(super) fn first_version(name: &str) -> Option<i64> {
    operator("", name).and_then(|known| known.versions.first().copied())
}

/// Returns the expansion of an operator for operator sets that lack it.
fn expansion(name: &str) -> Option<Rewrite> {
    table::EXPANSIONS.iter().find(|(operator, _)| *operator == name).map(|&(_, write)| write)
}

/// Takes a node back through the steps between two versions. Returns `true` if the node changed.
pub(super) fn older(draft: &mut NodeDraft<'_>, from: i64, to: i64) -> Result<bool, Refusal> {
    let name = draft.node.op_type.clone();
    let version = version_of(&name, from).map_err(|reason| Refusal { reason, lowest: from })?;
    let known = operator("", &name).and_then(|known| known.since(to));
    let first = first_version(&name).unwrap_or(1);
    let oldest = known.unwrap_or(first);
    let mut changed = false;
    for step in steps_of(&name).iter().rev().filter(|step| oldest < step.to && step.to <= version) {
        let refuse = |reason| {
            let advice = "choose operator set";
            Refusal {
                reason: format!("{name}-{} in an older version: {reason}; {advice} {} or newer", step.to, step.to),
                lowest: step.to,
            }
        };
        changed |= back(draft, step).map_err(refuse)?;
        if draft.node.op_type != name {
            return Ok(true);
        }
    }
    if known.is_some() {
        return Ok(changed);
    }
    let refuse = |reason| Refusal { reason, lowest: first };
    let Some(write) = expansion(&name) else {
        return Err(refuse(format!("operator set {to} has no such operator; choose operator set {first} or newer")));
    };
    write(draft).map_err(|reason| {
        refuse(format!("operator set {to} has no such operator: {reason}; choose operator set {first} or newer"))
    })?;
    Ok(true)
}

/// Takes a node back through one step.
fn back(draft: &mut NodeDraft<'_>, step: &VersionStep) -> Result<bool, String> {
    let name = draft.node.op_type.clone();
    let mut changed = match step.older {
        Older::Never(reason) => return Err(reason.to_string()),
        Older::Same => false,
        Older::By(rewrite) => {
            rewrite(draft)?;
            true
        }
    };
    if draft.node.op_type != name {
        return Ok(true);
    }
    if step.to == 11 {
        changed |= count_axes_from_the_start(draft)?;
    }
    for (name, words) in step.words {
        if draft.attribute(name).is_some_and(|held| !known_before(held, words)) {
            return Err(format!("the older version does not know this word of attribute '{name}'"));
        }
    }
    let present = |values: &[Option<ValueId>]| values.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
    if present(&draft.node.inputs) > step.operands {
        return Err(format!("it has more than {} operands", step.operands));
    }
    if present(&draft.node.outputs) > step.results {
        return Err(format!("it has more than {} results", step.results));
    }
    if let Some(missing) = (0..step.required).find(|&slot| draft.input(slot).is_none()) {
        return Err(format!("operand {missing} is missing, which it needs"));
    }
    if draft.node.inputs.len() < step.listed {
        return Err(format!("it has fewer than {} operands", step.listed));
    }
    types(draft, step)?;
    forms(draft, step)?;
    for (name, neutral) in step.added {
        let Some(held) = draft.node.attributes.iter().find(|held| held.name == *name) else { continue };
        if refers(held) || !neutral.is(&held.value) {
            return Err(format!("the older version has no attribute '{name}'"));
        }
        draft.take(name);
        changed = true;
    }
    Ok(changed)
}

/// Counts negative axes from the start, as before operator set 11. Returns `true` if there were any.
fn count_axes_from_the_start(draft: &mut NodeDraft<'_>) -> Result<bool, String> {
    let names_axis = |name: &str| matches!(name, "axis" | "axes" | "batch_axis" | "time_axis" | "seq_axis");
    let counts_back = |value: &Attribute| match value {
        Attribute::Int(axis) => *axis < 0,
        Attribute::Ints(axes) => axes.iter().any(|axis| *axis < 0),
        _ => true,
    };
    let held = draft.node.attributes.iter().filter(|held| names_axis(&held.name) && counts_back(&held.value));
    let held: Vec<(String, Attribute)> = held.map(|held| (held.name.to_string(), held.value.clone())).collect();
    for (name, value) in &held {
        let rank = match draft.node.op_type.as_str() {
            // Unsqueeze and OneHot count axes of the result.
            "Unsqueeze" | "OneHot" => {
                let result = draft.node.outputs.first().copied().flatten();
                result.and_then(|value| draft.facts.get(value)).and_then(Fact::rank)
            }
            _ => draft.fact(0).and_then(Fact::rank),
        };
        let rank = rank.ok_or_else(|| format!("attribute '{name}' counts from the end; {STATE_SHAPES}"))?;
        let from_start = |axis: &i64| {
            let axis = axis_in(*axis, rank).ok().and_then(|axis| i64::try_from(axis).ok());
            axis.ok_or_else(|| format!("attribute '{name}' names none of {rank} axes; correct the model"))
        };
        match value {
            Attribute::Int(axis) => draft.set(name, from_start(axis)?),
            Attribute::Ints(axes) => draft.set(name, axes.iter().map(from_start).collect::<Result<Vec<i64>, _>>()?),
            other => return Err(super::draft::unreadable(name, other)),
        }
    }
    Ok(!held.is_empty())
}

fn known_before(held: &Attribute, words: &[&str]) -> bool {
    match held {
        Attribute::String(text) => !words.iter().any(|word| text == word.as_bytes()),
        _ => false,
    }
}

/// Checks that the older version supports the types of all operands and results.
fn types(draft: &NodeDraft<'_>, step: &VersionStep) -> Result<(), String> {
    if step.gained.is_empty() && !step.gained_kinds {
        return Ok(());
    }
    // New values are sizes, or of the type of an old one.
    let all = draft.node.inputs.iter().chain(&draft.node.outputs).enumerate();
    let concerned = all.filter(|(slot, _)| step.gained_by.is_none_or(|own| own == *slot)).flat_map(|(_, value)| value);
    for &value in concerned.filter(|value| !value.is_placeholder()) {
        let ty = draft.facts.get(value).and_then(|fact| fact.ty.as_ref());
        let dtype = match ty {
            Some(Type::Tensor(tensor)) => tensor.dtype,
            Some(_) if step.gained_kinds => return Err("it does not accept such values".to_string()),
            _ => None,
        };
        match dtype {
            Some(dtype) if step.gains_type(dtype) => return Err(format!("it does not take {}", dtype.name())),
            Some(_) => {}
            None => return Err(format!("the type of an operand or result is unknown; {STATE_SHAPES}")),
        }
    }
    Ok(())
}

/// Checks that operands have one type, or are single numbers, where the older version requires it.
fn forms(draft: &NodeDraft<'_>, step: &VersionStep) -> Result<(), String> {
    let given = |slots: &'static [usize]| slots.iter().copied().filter(|&slot| draft.input(slot).is_some());
    let mut first = None;
    for slot in given(step.alike) {
        let dtype = draft.known_dtype(slot)?;
        if *first.get_or_insert(dtype) != dtype {
            return Err(format!("operand {slot} is of another element type than those before it"));
        }
    }
    for slot in given(step.single) {
        if draft.rank(slot)? != 0 {
            return Err(format!("operand {slot} is no single number"));
        }
    }
    Ok(())
}
