//! Faults put into edits on purpose, so that it can be shown that `--check` finds them. Only builds with the feature `seeded-faults` have
//! this; no program that is shipped does.
//!
//! A fault belongs to one rule or pass and is put into its first edit, whatever the rule: `EditCounter::take` announces the name, and the
//! changes of models look here. So no rule knows of it, and a new rule is covered without a line. It is the first edit only because two
//! faults may cancel, as two wrong signs do.

use std::cell::RefCell;

use half::{bf16, f16};

use super::{Attribute, Constant, Edit, Model, NewNode, NodeId, ValueId};
use crate::tensor::{DType, Tensor};

/// What is done wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FaultKind {
    /// The last element of a new constant is one larger.
    Raised,
    /// The first element of a new constant is one smaller; of an integer that is 0 one larger, since −1 often means the same.
    Lowered,
    /// A new node is left out: what reads its result reads its first operand.
    Dropped,
    /// A new node reads its first two operands in the wrong order.
    Swapped,
    /// A new node works along another axis, or permutes otherwise.
    Axis,
    /// Another attribute of a new node is changed.
    Attribute,
    /// A result is another function of what it should be.
    Distorted,
    /// What cannot be told of sizes while the rule looks is taken to be so.
    Credulous,
    /// After the pass, a node of the main graph has its operands in the wrong order or another function.
    Altered,
}

impl FaultKind {
    /// Every kind.
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

/// A fault: whose edits have it, what is wrong, and at which of the places in an edit where that can be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    pub name: String,
    pub kind: FaultKind,
    pub site: usize,
}

impl Fault {
    /// `NAME:KIND:SITE`, as the environment has it.
    pub fn parse(text: &str) -> Option<Fault> {
        let mut parts = text.split(':');
        let (name, kind, site) = (parts.next()?, parts.next()?, parts.next()?);
        let kind = FaultKind::ALL.into_iter().find(|known| format!("{known:?}").eq_ignore_ascii_case(kind))?;
        Some(Fault { name: name.to_string(), kind, site: site.parse().ok()? })
    }
}

/// The fault in force, and what has become of it.
#[derive(Default)]
struct Seeded {
    fault: Option<Fault>,
    /// Whether the edit under way is the one to have the fault.
    applies: bool,
    /// Whether the last edit was one of the rule or pass at fault.
    is_latest: bool,
    /// Constants made since it was announced.
    constants: usize,
    planted: usize,
}

thread_local! {
    static SEEDED: RefCell<Seeded> = RefCell::default();
}

/// Does something with a fault in force on this thread. Also answers how often the fault was put in.
pub fn with_fault<R>(fault: Fault, act: impl FnOnce() -> R) -> (R, usize) {
    SEEDED.with_borrow_mut(|seeded| *seeded = Seeded { fault: Some(fault), ..Seeded::default() });
    let result = act();
    (result, SEEDED.with_borrow_mut(std::mem::take).planted)
}

/// Says which rule or pass makes the edit that follows, and how many it has made with it. Those that count their edits before they make
/// any have the fault in the first constant they make.
pub fn announce(name: &str, number: usize) {
    SEEDED.with_borrow_mut(|seeded| {
        seeded.is_latest = seeded.fault.as_ref().is_some_and(|fault| fault.name == name);
        seeded.applies = seeded.is_latest && (number == 1 || seeded.applies);
        if number == 1 {
            seeded.constants = 0;
        }
    });
}

/// Says that an edit was applied.
pub(super) fn applied() {
    SEEDED.with_borrow_mut(|seeded| seeded.applies = false);
}

/// The name of a node that was changed after a pass.
const ALTERED: &str = "altered";

/// The place to put a fault of this kind in now.
fn site(kind: FaultKind) -> Option<usize> {
    SEEDED.with_borrow(|seeded| {
        let fault = seeded.fault.as_ref().filter(|fault| seeded.applies && fault.kind == kind);
        fault.map(|fault| fault.site)
    })
}

fn planted() {
    SEEDED.with_borrow_mut(|seeded| seeded.planted += 1);
}

/// Whether a rule is to believe what is not proved.
pub fn believes(name: &str) -> bool {
    let is_credulous = |fault: &Fault| fault.kind == FaultKind::Credulous && fault.name == name;
    SEEDED.with_borrow(|seeded| seeded.fault.as_ref().is_some_and(is_credulous))
}

/// Notes that an edit was offered on what is not proved.
pub fn note_belief() {
    planted();
}

/// Puts the fault into a new constant, if it is the one.
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

/// A tensor in which one element is another.
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
                // Beyond either end is beyond it.
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

/// Puts the fault into the nodes of an edit.
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

/// Where the `site`th new node stands of which something holds.
fn nth(edit: &Edit, site: usize, holds: impl Fn(&NewNode) -> bool) -> Option<usize> {
    edit.insert.iter().enumerate().filter(|(_, node)| holds(node)).nth(site).map(|(at, _)| at)
}

/// Whether the order of the first two operands matters.
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
        // Anything but 0 says that something is so.
        Attribute::Int(number) => *number = if *number == 1 { 0 } else { number.wrapping_add(1) },
        Attribute::Float(number) => *number += 1.0,
        Attribute::Ints(numbers) if is_permutation && numbers.len() > 1 => numbers.swap(0, 1),
        Attribute::Ints(numbers) if !numbers.is_empty() => numbers[0] = numbers[0].wrapping_add(1),
        Attribute::Floats(numbers) if !numbers.is_empty() => numbers[0] += 1.0,
        _ => return,
    }
    planted();
}

/// Makes a result of an edit another one: one that an existing value is replaced by, or that a new node computes. `dtype` tells the type of
/// an existing value.
pub fn distort(edit: &mut Edit, dtype: &dyn Fn(ValueId) -> Option<DType>) {
    let Some(site) = site(FaultKind::Distorted) else { return };
    let replaced = edit.replace.iter().map(|&(old, _)| old);
    let computed = edit.insert.iter().flat_map(|node| node.outputs.iter().flatten().copied());
    let results: Vec<ValueId> = replaced.chain(computed.filter(|value| !value.is_placeholder())).collect();
    let Some(&result) = results.get(site) else { return };
    let operator = match dtype(result) {
        Some(DType::Bool) => "Not",
        // Not its negation, which is often followed by what has no sign.
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
    // Passes run more than once; a node that is changed twice may be what it was.
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
