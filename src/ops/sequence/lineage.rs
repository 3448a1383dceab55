//! Facts of a sequence derived from the nodes that build it.

use std::rc::Rc;

use crate::dim::Dim;
use crate::ir::{Attribute, Data, Fact, Node, ValueId};
use crate::ops::InferCx;
use crate::ops::join::{Join, stem_of};

use super::parts::Split;

/// The maximum number of nodes and elements to follow.
const MAX_STEPS: usize = 256;

/// Returns the node of the default domain that computes a value.
fn producer<'a>(cx: &InferCx<'a>, value: ValueId) -> Option<&'a Node> {
    let node = cx.model.node(cx.model.value(value).producer()?)?;
    let standard = node.canonical_domain().is_empty() && cx.model.function_of(node).is_none();
    standard.then_some(node)
}

fn known(cx: &InferCx<'_>, value: ValueId) -> Fact {
    cx.walk.facts.get(value).cloned().unwrap_or_default()
}

/// A node's change of a sequence: inserts or erases an element, at a position or at the end.
enum Change {
    Insert(Option<i64>, Fact),
    Erase(Option<i64>),
}

/// Returns the position operand: known, absent (inner `None`), or unknown (`None`).
fn position(cx: &InferCx<'_>, node: &Node, slot: usize) -> Option<Option<i64>> {
    match node.input(slot) {
        None => Some(None),
        Some(value) => match known(cx, value).const_ints()?.as_slice() {
            [position] => Some(Some(*position)),
            _ => None,
        },
    }
}

/// Returns the outputs of both branches of an If for one of its results, a sequence. Follows only an If that is not nested in
/// another followed one, which limits the work.
fn branches(cx: &InferCx<'_>, node: &Node, value: ValueId) -> Option<[ValueId; 2]> {
    let at = node.outputs().iter().position(|&output| output == Some(value))?;
    let result = |name: &str| match node.attribute(name) {
        Some(Attribute::Graph(branch)) => cx.model.graph(*branch).outputs().get(at).copied(),
        _ => None,
    };
    Some([result("then_branch")?, result("else_branch")?])
}

/// Returns the fact of each element of a sequence.
pub(super) fn items(cx: &InferCx<'_>, value: ValueId) -> Option<Vec<Fact>> {
    items_of(cx, value, true)
}

fn items_of(cx: &InferCx<'_>, mut value: ValueId, outermost: bool) -> Option<Vec<Fact>> {
    let mut changes = Vec::new();
    let mut items: Vec<Fact> = loop {
        if changes.len() > MAX_STEPS {
            return None;
        }
        if let Some(Data::Sequence(items)) = known(cx, value).data() {
            if items.len() > MAX_STEPS {
                return None;
            }
            break items.iter().map(|item| Fact::constant(item.clone())).collect();
        }
        let node = producer(cx, value)?;
        value = match node.op_type.as_str() {
            "SequenceConstruct" if node.inputs().len() <= MAX_STEPS => {
                break node.inputs().iter().map(|input| input.map(|input| known(cx, input))).collect::<Option<_>>()?;
            }
            "SplitToSequence" => {
                break Split::of(node, |operand| known(cx, operand))?.parts(MAX_STEPS)?;
            }
            "If" if outermost => {
                let [ours, others] = branches(cx, node, value)?.map(|branch| items_of(cx, branch, false));
                let (ours, others) = (ours?, others?);
                if ours.len() != others.len() {
                    return None;
                }
                let mut join = Join::either(&Rc::clone(cx.walk.scope()), &stem_of(cx));
                break ours.iter().zip(&others).map(|(a, b)| join.facts(a, b)).collect();
            }
            "SequenceInsert" => {
                changes.push(Change::Insert(position(cx, node, 2)?, known(cx, node.input(1)?)));
                node.input(0)?
            }
            "SequenceErase" => {
                changes.push(Change::Erase(position(cx, node, 1)?));
                node.input(0)?
            }
            _ => return None,
        };
    };
    for change in changes.into_iter().rev() {
        match change {
            Change::Insert(at, item) => {
                let at = at.map_or(Some(items.len()), |at| place(at, items.len(), true))?;
                items.insert(at, item);
            }
            Change::Erase(at) => {
                let at = place(at.unwrap_or(-1), items.len(), false)?;
                items.remove(at);
            }
        }
    }
    Some(items)
}

/// Returns the split whose parts a sequence contains.
pub(super) fn split(cx: &InferCx<'_>, value: ValueId) -> Option<Split> {
    let node = producer(cx, value).filter(|node| node.op_type == "SplitToSequence")?;
    Split::of(node, |operand| known(cx, operand))
}

/// Converts a position to an index from the front, if it is in range; `len` is valid when inserting.
pub(super) fn place(position: i64, len: usize, inserting: bool) -> Option<usize> {
    let wide = i64::try_from(len).ok()?;
    let place = if position < 0 { position.checked_add(wide)? } else { position };
    let place = usize::try_from(place).ok()?;
    (place < len || (inserting && place == len)).then_some(place)
}

/// Returns the number of elements of a sequence.
pub(super) fn length(cx: &InferCx<'_>, value: ValueId) -> Option<Dim> {
    length_of(cx, value, true)
}

fn length_of(cx: &InferCx<'_>, mut value: ValueId, outermost: bool) -> Option<Dim> {
    let scope = cx.scope();
    let mut more = 0i64;
    for _ in 0..MAX_STEPS {
        if let Some(Data::Sequence(items)) = known(cx, value).data() {
            let len = i64::try_from(items.len()).ok()?;
            return Some(Dim::constant(len.checked_add(more)?));
        }
        let node = producer(cx, value)?;
        value = match node.op_type.as_str() {
            "SequenceConstruct" => {
                let len = i64::try_from(node.inputs().len()).ok()?;
                return Some(Dim::constant(len.checked_add(more)?));
            }
            "SplitToSequence" => {
                let parts = Split::of(node, |operand| known(cx, operand))?.count(scope)?;
                return Some(scope.add(&parts, &Dim::constant(more)));
            }
            "If" if outermost => {
                let [ours, others] = branches(cx, node, value)?.map(|branch| length_of(cx, branch, false));
                let common = ours.zip(others).filter(|(ours, others)| scope.eq(ours, others).is_yes())?.0;
                return Some(scope.add(&common, &Dim::constant(more)));
            }
            "SequenceInsert" => {
                more += 1;
                node.input(0)?
            }
            "SequenceErase" => {
                more -= 1;
                node.input(0)?
            }
            "SequenceMap" => node.input(0)?,
            _ => return None,
        };
    }
    None
}

/// Returns the value inside an optional made by an Optional node: unknown (`None`), absent (inner `None`), or its fact.
pub(super) fn optional(cx: &InferCx<'_>, value: ValueId) -> Option<Option<Fact>> {
    let node = producer(cx, value).filter(|node| node.op_type == "Optional")?;
    Some(node.input(0).map(|input| known(cx, input)))
}
