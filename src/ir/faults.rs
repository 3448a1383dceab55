//! Seeds faults into edits, to show that `--check` finds them. Only builds with the feature `seeded-faults` contain
//! this module; no released program does.
//!
//! A fault is seeded into the first edit of a rule or pass: `EditCounter::take` announces the name, and the methods
//! that change models consult this module. No rule refers to it, so a new rule is covered automatically. Only the
//! first edit is faulty, because two faults may cancel, as two wrong signs do.

use std::cell::RefCell;

use half::{bf16, f16};

use super::{Attribute, Constant, Edit, Model, NewNode, NodeId, ValueId};
use crate::tensor::{DType, Tensor};

/// The kind of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FaultKind {
    /// Increments the last element of a new constant.
    Raised,
    /// Decrements the first element of a new constant. Increments an integer 0, since −1 often is equivalent.
    Lowered,
    /// Omits a new node: readers of its result read its first operand.
    Dropped,
    /// Swaps the first two operands of a new node.
    Swapped,
    /// Changes the axis or permutation of a new node.
    Axis,
    /// Changes another attribute of a new node.
    Attribute,
    /// Applies a function to a result.
    Distorted,
    /// Treats questions about dims that the rule cannot decide as proved.
    Credulous,
    /// After the pass, swaps the operands or changes the operator of a node of the main graph.
    Altered,
}

impl FaultKind {
    /// All kinds.
    pub const ALL: [FaultKind; 9] = [
        FaultKind::Raised,
        FaultKind::Lowered,
        FaultKind::Dropped,
        FaultKind::Swapped,
        FaultKind::Axis,
        FaultKind::Attribute,
        FaultKind::Distorted,
        FaultKind::Credulous,
        FaultKind::Altered,
    ];
}

/// A fault: the rule or pass, the kind, and the index among the possible sites in an edit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    pub name: String,
    pub kind: FaultKind,
    pub site: usize,
}

impl Fault {
    /// Parses `NAME:KIND:SITE`, the form in the environment.
    pub fn parse(text: &str) -> Option<Fault> {
        let mut parts = text.split(':');
        let (name, kind, site) = (parts.next()?, parts.next()?, parts.next()?);
        let kind = FaultKind::ALL.into_iter().find(|known| format!("{known:?}").eq_ignore_ascii_case(kind))?;
        Some(Fault { name: name.to_string(), kind, site: site.parse().ok()? })
    }
}

/// The active fault and its state.
#[derive(Default)]
struct Seeded {
    fault: Option<Fault>,
    /// `true` if the current edit gets the fault.
    applies: bool,
    /// `true` if the last edit was made by the faulty rule or pass.
    is_latest: bool,
    /// The number of constants created since the announcement.
    constants: usize,
    planted: usize,
}

thread_local! {
    static SEEDED: RefCell<Seeded> = RefCell::default();
}

/// Runs a closure with an active fault on this thread. Also returns how often the fault was seeded.
pub fn with_fault<R>(fault: Fault, act: impl FnOnce() -> R) -> (R, usize) {
    SEEDED.with_borrow_mut(|seeded| *seeded = Seeded { fault: Some(fault), ..Seeded::default() });
    let result = act();
    (result, SEEDED.with_borrow_mut(std::mem::take).planted)
}

/// Announces the rule or pass of the next edit, and its number of edits including that one. Passes that count their
/// edits in advance get the fault in their first constant.
pub fn announce(name: &str, number: usize) {
    SEEDED.with_borrow_mut(|seeded| {
        seeded.is_latest = seeded.fault.as_ref().is_some_and(|fault| fault.name == name);
        seeded.applies = seeded.is_latest && (number == 1 || seeded.applies);
        if number == 1 {
            seeded.constants = 0;
        }
    });
}

/// Records that an edit was applied.
pub(super) fn applied() {
    SEEDED.with_borrow_mut(|seeded| seeded.applies = false);
}

/// The name of a node that was changed after a pass.
const ALTERED: &str = "altered";

/// Returns the site for a fault of this kind, if it is due now.
fn site(kind: FaultKind) -> Option<usize> {
    SEEDED.with_borrow(|seeded| {
        let fault = seeded.fault.as_ref().filter(|fault| seeded.applies && fault.kind == kind);
        fault.map(|fault| fault.site)
    })
}

fn planted() {
    SEEDED.with_borrow_mut(|seeded| seeded.planted += 1);
}

/// Returns `true` if a rule must treat undecided questions as proved.
pub fn believes(name: &str) -> bool {
    let is_credulous = |fault: &Fault| fault.kind == FaultKind::Credulous && fault.name == name;
    SEEDED.with_borrow(|seeded| seeded.fault.as_ref().is_some_and(is_credulous))
}

/// Records that an edit was based on an unproved premise.
pub fn note_belief() {
    planted();
}

/// Seeds the fault into a new constant, if it is the one.
pub(super) fn in_constant(constant: &mut Constant) {
    for (kind, up) in [(FaultKind::Raised, true), (FaultKind::Lowered, false)] {
        let Some(site) = site(kind) else { continue };
        let at = SEEDED.with_borrow_mut(|seeded| {
            seeded.constants += 1;
            seeded.constants - 1
        });
        if let Some(changed) = constant.tensor.as_ref().filter(|_| at == site).and_then(|tensor| changed(tensor, up)) {
            constant.tensor = Some(changed);
            planted();
        }
    }
}

/// Returns a tensor with one changed element.
fn changed(tensor: &Tensor, up: bool) -> Option<Tensor> {
    macro_rules! changed {
        ($type:ty, $change:expr) => {{
            let mut values = tensor.elements::<$type>()?.into_owned();
            let element = if up { values.last_mut() } else { values.first_mut() };
            let element = element?;
            *element = $change(*element);
            Tensor::from_vec(tensor.shape(), values).ok()
        }};
    }
    macro_rules! whole {
        ($type:ty) => {
            changed!($type, |value: $type| {
                // Values beyond either end are equivalent to the end.
                if [0, <$type>::MIN, <$type>::MAX].contains(&value) {
                    1
                } else if up {
                    value.wrapping_add(1)
                } else {
                    value.wrapping_sub(1)
                }
            })
        };
    }
    let step = if up { 1.0_f32 } else { -1.0 };
    match tensor.dtype() {
        DType::Float => changed!(f32, |value: f32| value + step),
        DType::Double => changed!(f64, |value: f64| value + f64::from(step)),
        DType::Float16 => changed!(f16, |value: f16| f16::from_f32(value.to_f32() + step)),
        DType::Bfloat16 => changed!(bf16, |value: bf16| bf16::from_f32(value.to_f32() + step)),
        DType::Int64 => whole!(i64),
        DType::Int32 => whole!(i32),
        DType::Int16 => whole!(i16),
        DType::Int8 => whole!(i8),
        DType::Uint64 => whole!(u64),
        DType::Uint32 => whole!(u32),
        DType::Uint16 => whole!(u16),
        DType::Uint8 => whole!(u8),
        DType::Bool => {
            let mut flags = tensor.bools()?;
            let flag = if up { flags.last_mut() } else { flags.first_mut() };
            let flag = flag?;
            *flag = !*flag;
            Tensor::from_bools(tensor.shape(), &flags).ok()
        }
        _ => None,
    }
}

/// Seeds the fault into the nodes of an edit.
pub(super) fn in_edit(edit: &mut Edit) {
    if let Some(site) = site(FaultKind::Dropped) {
        let is_droppable = |node: &NewNode| node.outputs.len() == 1 && node.inputs.first().is_some_and(Option::is_some);
        if let Some(at) = nth(edit, site, is_droppable) {
            drop_node(edit, at);
        }
    }
    if let Some(site) = site(FaultKind::Swapped)
        && let Some(at) = nth(edit, site, |node| is_swappable(&node.op_type, &node.inputs))
        && let Some(node) = edit.insert.get_mut(at)
    {
        node.inputs.swap(0, 1);
        planted();
    }
    for (kind, is_axis) in [(FaultKind::Axis, true), (FaultKind::Attribute, false)] {
        let Some(site) = site(kind) else { continue };
        let attributes = edit.insert.iter_mut().flat_map(|node| &mut node.attributes);
        let mut changeable = attributes.filter(|attribute| {
            let holds = matches!(
                attribute.value,
                Attribute::Int(_) | Attribute::Ints(_) | Attribute::Float(_) | Attribute::Floats(_)
            );
            holds && ["axis", "axes", "perm"].contains(&attribute.name.as_str()) == is_axis
        });
        if let Some(attribute) = changeable.nth(site) {
            change_attribute(&mut attribute.value, attribute.name == "perm");
        }
    }
}

/// Returns the index of the `site`th new node for which `holds` is true.
fn nth(edit: &Edit, site: usize, holds: impl Fn(&NewNode) -> bool) -> Option<usize> {
    edit.insert.iter().enumerate().filter(|(_, node)| holds(node)).nth(site).map(|(at, _)| at)
}

/// Returns `true` if the order of the first two operands matters.
fn is_swappable(operator: &str, inputs: &[Option<ValueId>]) -> bool {
    let commutes = [
        "Add",
        "Mul",
        "Max",
        "Min",
        "Sum",
        "Mean",
        "And",
        "Or",
        "Xor",
        "Equal",
        "BitwiseAnd",
        "BitwiseOr",
        "BitwiseXor",
    ];
    matches!(inputs, [Some(a), Some(b), ..] if a != b) && !commutes.contains(&operator)
}

fn drop_node(edit: &mut Edit, at: usize) {
    let node = edit.insert.remove(at);
    let (Some(Some(operand)), Some(Some(result))) = (node.inputs.first(), node.outputs.first()) else { return };
    let readers =
        edit.insert.iter_mut().flat_map(|node| &mut node.inputs).chain(edit.rewire.iter_mut().map(|r| &mut r.2));
    for read in readers.filter(|read| **read == Some(*result)) {
        *read = Some(*operand);
    }
    for (_, new) in edit.replace.iter_mut().filter(|(_, new)| new == result) {
        *new = *operand;
    }
    if !result.is_placeholder() {
        edit.replace.push((*result, *operand));
    }
    planted();
}

fn change_attribute(value: &mut Attribute, is_permutation: bool) {
    match value {
        // Any value but 0 is true for a flag.
        Attribute::Int(number) => *number = if *number == 1 { 0 } else { number.wrapping_add(1) },
        Attribute::Float(number) => *number += 1.0,
        Attribute::Ints(numbers) if is_permutation && numbers.len() > 1 => numbers.swap(0, 1),
        Attribute::Ints(numbers) if !numbers.is_empty() => numbers[0] = numbers[0].wrapping_add(1),
        Attribute::Floats(numbers) if !numbers.is_empty() => numbers[0] += 1.0,
        _ => return,
    }
    planted();
}

/// Changes a result of an edit: one that replaces an existing value, or that a new node computes. `dtype` returns the
/// type of an existing value.
pub fn distort(edit: &mut Edit, dtype: &dyn Fn(ValueId) -> Option<DType>) {
    let Some(site) = site(FaultKind::Distorted) else { return };
    let replaced = edit.replace.iter().map(|&(old, _)| old);
    let computed = edit.insert.iter().flat_map(|node| node.outputs.iter().flatten().copied());
    let results: Vec<ValueId> = replaced.chain(computed.filter(|value| !value.is_placeholder())).collect();
    let Some(&result) = results.get(site) else { return };
    let operator = match dtype(result) {
        Some(DType::Bool) => "Not",
        // Not a negation, since the sign is often dropped later.
        Some(dtype) if dtype.is_float() => "Exp",
        Some(dtype) if dtype.is_signed_integer() => "Neg",
        _ => return,
    };
    let distorted = edit.new_value(result, "distorted");
    if let Some(slot) = edit.replace.iter_mut().find(|(old, _)| *old == result) {
        let right = std::mem::replace(&mut slot.1, distorted);
        edit.insert.push(NewNode::new(operator, [Some(right)]).output(distorted));
    } else {
        let outputs = edit.insert.iter_mut().flat_map(|node| node.outputs.iter_mut().flatten());
        outputs.filter(|value| **value == result).for_each(|value| *value = distorted);
        edit.insert.push(NewNode::new(operator, [Some(distorted)]).output(result));
    }
    planted();
}

/// Changes a node of the main graph after a pass has made its edits.
pub fn after_pass(model: &mut Model) {
    let is_altered = |seeded: &Fault| seeded.kind == FaultKind::Altered;
    let fault = SEEDED.with_borrow(|seeded| seeded.fault.clone().filter(|fault| seeded.is_latest && is_altered(fault)));
    let Some(Fault { site, .. }) = fault else { return };
    let other = |operator: &str| match operator {
        "Relu" | "Sigmoid" | "Tanh" | "Exp" | "Sqrt" | "Sin" => Some("Neg"),
        "Neg" => Some("Abs"),
        "Abs" | "Identity" | "Cos" => Some("Neg"),
        "Add" | "Mul" | "Max" => Some("Sub"),
        _ => None,
    };
    let nodes: Vec<NodeId> = model.graph(model.main()).nodes().collect();
    // Passes run more than once; a second change may restore the node.
    if nodes.iter().any(|id| model.node(*id).is_some_and(|node| node.name == ALTERED)) {
        return;
    }
    let is_changeable = |id: &NodeId| {
        model.node(*id).is_some_and(|node| is_swappable(&node.op_type, node.inputs()) || other(&node.op_type).is_some())
    };
    let Some(id) = nodes.into_iter().filter(is_changeable).nth(site) else { return };
    let Some(node) = model.node_mut(id) else { return };
    node.name = ALTERED.into();
    if let Some(name) = other(&node.op_type) {
        node.op_type = name.into();
    } else if let (Some(a), Some(b)) = (node.input(0), node.input(1)) {
        model.set_input(id, 0, Some(b));
        model.set_input(id, 1, Some(a));
    }
    planted();
}
