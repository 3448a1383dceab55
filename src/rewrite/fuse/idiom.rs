//! Idioms: groups of nodes that runtimes recognise and compute with one kernel.
//!
//! A rule that takes one node out of such a group saves a node in the file and costs the runtime its kernel. So an edit may replace an
//! idiom as a whole, and otherwise must leave its nodes alone ([`Idioms::leaves_whole`]). A group is recognised by its
//! formula, like in the rules that write it as one operator where the operator set has one:
//!
//! | idiom | and what belongs to it for the runtime |
//! | --- | --- |
//! | [activation functions](super::activation): Gelu (the operator too), Swish, HardSwish, Mish | the bias added to the operand, and the product it is added to |
//! | [normalizations](super::normalization): layer, root mean square | the scale and the bias behind it, with the casts in between |
//! | [masks](super::mask) of attentions | |

use rustc_hash::FxHashMap;

use super::pattern::Reader;
use super::{activation, mask, normalization};
use crate::ir::{Edit, Node, NodeId, ValueId};
use crate::rewrite::place::Place;
use crate::tensor::DType;

/// One group of nodes.
struct Idiom {
    /// The nodes that one operator could replace.
    core: Vec<NodeId>,
    /// Further nodes that the runtime's kernel takes in.
    fringe: Vec<NodeId>,
}

/// The idioms of a model.
#[derive(Default)]
pub struct Idioms {
    all: Vec<Idiom>,
    of: FxHashMap<NodeId, Vec<usize>>,
}

impl Idioms {
    /// Notes the idiom that ends at the node, if there is one.
    pub fn note(&mut self, place: &Place<'_>) {
        let Some(idiom) = activation_at(place).or_else(|| normalization_at(place)).or_else(|| mask_at(place)) else {
            return;
        };
        for &id in idiom.core.iter().chain(&idiom.fringe) {
            self.of.entry(id).or_default().push(self.all.len());
        }
        self.all.push(idiom);
    }

    /// Returns `true` if an edit leaves every idiom alone or replaces it as a whole.
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
    // A tool that takes in the bias asks for the product before it.
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
        // A cast to the type that is there is nothing to any kernel, and may go.
        if operator != "Cast" || place.dtype(value) != place.dtype(result) {
            fringe.push(id);
        }
        value = result;
    }
    Some(Idiom { core, fringe })
}

/// The first reader of a value that is of this operator, with a parameter as its other operand if it has one, and its result.
fn reader_with_parameter(place: &Place<'_>, value: ValueId, operator: &str) -> Option<(NodeId, ValueId)> {
    place.model.users(value).into_iter().find_map(|(id, slot)| {
        let node = place.model.node(id).filter(|node| node.is(operator))?;
        let mut others = node.inputs().iter().enumerate().filter(|&(at, _)| at != slot).filter_map(|(_, other)| *other);
        others.all(|other| is_parameter(place, other)).then_some((id, node.output(0)?))
    })
}

/// Whether a value is a constant vector of numbers.
fn is_parameter(place: &Place<'_>, value: ValueId) -> bool {
    let is_float = |dtype: DType| dtype.is_float();
    place.dtype(value).is_some_and(is_float) && place.tensor(value).is_some_and(|tensor| tensor.rank() == 1)
}
