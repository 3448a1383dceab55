//! Nodes in an older operator set, where their form is the same there.

use super::draft::{NodeDraft, STATE_SHAPES};
use super::step::VersionStep;
use super::{refers, steps_of, version_of};
use crate::ir::{Attribute, Type, ValueId};
use crate::ops::operator;

/// Takes a node back through the steps between two versions. Answers whether that changed it.
pub(super) fn older(draft: &mut NodeDraft<'_>, from: i64, to: i64) -> Result<bool, String> {
    let name = draft.node.op_type.clone();
    let version = version_of(&name, from)?;
    let known = operator("", &name).and_then(|known| known.since(to));
    let Some(oldest) = known else {
        return Err(format!("operator set {to} has no such operator; choose a newer one"));
    };
    let mut changed = false;
    for step in steps_of(&name).iter().rev().filter(|step| oldest < step.to && step.to <= version) {
        changed |= back(draft, step).map_err(|reason| {
            format!("{name}-{} in an older version: {reason}; choose operator set {} or newer", step.to, step.to)
        })?;
    }
    Ok(changed)
}

/// Takes a node back through one step.
fn back(draft: &mut NodeDraft<'_>, step: &VersionStep) -> Result<bool, String> {
    if let Some(reason) = step.one_way {
        return Err(reason.to_string());
    }
    // Axes are counted from the end since operator set 11, and nowhere is that said of a single operator only.
    let names_axis = |name: &str| matches!(name, "axis" | "axes" | "batch_axis" | "time_axis" | "seq_axis");
    for held in draft.node.attributes.iter().filter(|held| step.to == 11 && names_axis(&held.name)) {
        let counts_back = match &held.value {
            Attribute::Int(axis) => *axis < 0,
            Attribute::Ints(axes) => axes.iter().any(|axis| *axis < 0),
            _ => true,
        };
        if counts_back {
            return Err(format!("attribute '{}' counts from the end", held.name));
        }
    }
    for (name, words) in step.words {
        if draft.attribute(name).is_some_and(|held| !known_before(held, words)) {
            return Err(format!("attribute '{name}' says what the older version does not know"));
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
    let mut changed = false;
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

fn known_before(held: &Attribute, words: &[&str]) -> bool {
    match held {
        Attribute::String(text) => !words.iter().any(|word| text == word.as_bytes()),
        _ => false,
    }
}

/// Whether all operands and results are of types that the older version takes.
fn types(draft: &NodeDraft<'_>, step: &VersionStep) -> Result<(), String> {
    if step.gained.is_empty() && !step.gained_kinds {
        return Ok(());
    }
    for &value in draft.node.inputs.iter().chain(&draft.node.outputs).flatten() {
        let ty = draft.facts.get(value).and_then(|fact| fact.ty.as_ref());
        let dtype = match ty {
            Some(Type::Tensor(tensor)) => tensor.dtype,
            Some(_) if step.gained_kinds => return Err("it may not take such values".to_string()),
            _ => None,
        };
        match dtype {
            Some(dtype) if step.gains_type(dtype) => return Err(format!("it does not take {}", dtype.name())),
            Some(_) => {}
            None => return Err(format!("the type of an operand or result is not known; {STATE_SHAPES}")),
        }
    }
    Ok(())
}

/// Whether operands are of one type where the older version takes no others, and single numbers where it takes no more.
fn forms(draft: &NodeDraft<'_>, step: &VersionStep) -> Result<(), String> {
    let given = |slots: &'static [usize]| slots.iter().copied().filter(|&slot| draft.input(slot).is_some());
    let mut first = None;
    for slot in given(step.alike) {
        let dtype = draft.dtype(slot);
        let dtype = dtype.ok_or_else(|| format!("the element type of operand {slot} is not known; {STATE_SHAPES}"))?;
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
