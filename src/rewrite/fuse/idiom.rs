//! Idioms: groups of nodes that runtimes recognise and compute with one kernel.
//!
//! An edit that removes one node of such a group saves a node and costs the runtime its kernel. So an edit replaces an idiom as a whole, or
//! leaves all its nodes unchanged ([`Idioms::leaves_whole`]). A group is matched by its formula, with the code of the rules that replace it
//! by one operator:
//!
//! | idiom | also part of the runtime's kernel |
//! | --- | --- |
//! | [activation functions](super::activation): Gelu (the operator too), Swish, HardSwish, Mish | the bias added to the operand, and the product before that sum |
//! | [normalizations](super::normalization): layer, root mean square | the scale and the bias after it, with the casts in between |
//! | [masks](super::mask) of attentions | |

use rustc_hash::FxHashMap;

use super::pattern::Reader;
use super::{activation, mask, normalization};
use crate::ir::{Edit, Node, NodeId, ValueId};
use crate::rewrite::place::Place;
use crate::tensor::DType;

/// A group of nodes that runtimes fuse.
struct Idiom {
    /// The nodes that one operator could replace.
    core: Vec<NodeId>,
    /// Further nodes that the runtime's kernel includes.
    fringe: Vec<NodeId>,
}

/// The idioms of a model.
#[derive(Default)]
pub struct Idioms {
    all: Vec<Idiom>,
    of: FxHashMap<NodeId, Vec<usize>>,
}

impl Idioms {
    /// Records the idiom that ends at the node, if there is one.
    pub fn note(&mut self, place: &Place<'_>) {
        let Some(idiom) = activation_at(place).or_else(|| normalization_at(place)).or_else(|| mask_at(place)) else {
            return;
        };
        for &id in idiom.core.iter().chain(&idiom.fringe) {
            self.of.entry(id).or_default().push(self.all.len());
        }
        self.all.push(idiom);
    }

    /// Returns `true` if an edit leaves every idiom unchanged or replaces it as a whole.
    pub(in crate::rewrite) fn leaves_whole(&self, edit: &Edit) -> bool {
        let touched = edit.remove.iter().chain(edit.rewire.iter().map(|(node, ..)| node));
        let idioms = touched.filter_map(|id| self.of.get(id)).flatten().filter_map(|&at| self.all.get(at));
        idioms.into_iter().all(|idiom| idiom.core.iter().all(|id| edit.remove.contains(id)))
    }
}

fn activation_at(place: &Place<'_>) -> Option<Idiom> {
    let node = place.node()?;
    let (x, core) = match node.is("Gelu") {
        true => (node.input(0)?, vec![place.id]),
        false if node.is("Mul") || node.is("Div") => {
            let found = activation::read(place).ok()?;
            (found.x, found.nodes)
        }
        false => return None,
    };
    let is_bias = |node: &Node| node.inputs().iter().flatten().any(|&operand| is_parameter(place, operand));
    let bias = place.producer(x, "Add").filter(|(_, node)| is_bias(node));
    // A fusion that includes the bias requires the product before it.
    let operands = bias.into_iter().flat_map(|(_, node)| node.inputs().iter().flatten());
    let product = operands.copied().find_map(|operand| place.producer(operand, "MatMul"));
    Some(Idiom { core, fringe: bias.into_iter().chain(product).map(|(id, _)| id).collect() })
}

fn mask_at(place: &Place<'_>) -> Option<Idiom> {
    if !place.node()?.is("Mul") {
        return None;
    }
    Some(Idiom { core: mask::read(place)?, fringe: Vec::new() })
}

fn normalization_at(place: &Place<'_>) -> Option<Idiom> {
    if !place.node()?.is("Mul") && !place.node()?.is("Div") {
        return None;
    }
    let mut value = place.only_output()?;
    let dtype = place.dtype(value)?;
    let mut reader = Reader { place, nodes: Vec::new(), dtype };
    normalization::read(&mut reader, value).ok()?;
    let core = reader.nodes;
    let mut fringe = Vec::new();
    for operator in ["Cast", "Mul", "Add"] {
        let Some((id, result)) = reader_with_parameter(place, value, operator) else { continue };
        // A Cast to the same type is part of no kernel, so rules may remove it.
        if operator != "Cast" || place.dtype(value) != place.dtype(result) {
            fringe.push(id);
        }
        value = result;
    }
    Some(Idiom { core, fringe })
}

/// Returns the first consumer of a value with this operator, and its result. If it has another operand, this must be a parameter.
fn reader_with_parameter(place: &Place<'_>, value: ValueId, operator: &str) -> Option<(NodeId, ValueId)> {
    place.model.users(value).into_iter().find_map(|(id, slot)| {
        let node = place.model.node(id).filter(|node| node.is(operator))?;
        let mut others = node.inputs().iter().enumerate().filter(|&(at, _)| at != slot).filter_map(|(_, other)| *other);
        others.all(|other| is_parameter(place, other)).then_some((id, node.output(0)?))
    })
}

/// Returns `true` if a value is a constant vector of floats.
fn is_parameter(place: &Place<'_>, value: ValueId) -> bool {
    let is_float = |dtype: DType| dtype.is_float();
    place.dtype(value).is_some_and(is_float) && place.tensor(value).is_some_and(|tensor| tensor.rank() == 1)
}
