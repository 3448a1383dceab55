//! Tensors that are spread before an operator that would spread them anyway.
//!
//! Law: broadcasting is idempotent. Where `v` is `w` spread to a larger shape, `f(v, y) = f(w, y)` for every element-wise `f` if the
//! other operands alone give the result its shape; otherwise `f(v, y)` is `f(w, y)` spread, and the same is asked of its readers.
//! The nodes in between are computed on the smaller tensor, the one that only spread goes.

use smallvec::SmallVec;

use super::uniform;
use crate::dim::{Dim, Scope};
use crate::ir::{Attribute, Edit, NewNode, Node, NodeId, ValueId};
use crate::rewrite::Place;
use crate::tensor::{DType, Tensor};

/// How many nodes may be computed anew on smaller operands.
const MAX_NODES: usize = 24;

/// How many readers one value may have.
const MAX_READERS: usize = 64;

/// A value and what it is spread from: another value, or a constant that is to be made.
struct Narrow {
    wide: ValueId,
    narrow: ValueId,
    shape: Vec<Dim>,
}

pub(super) fn spread(place: &mut Place<'_>) -> Option<Edit> {
    let node = place.node()?;
    let [Some(wide)] = *node.outputs() else { return None };
    if place.opset < 8 || !is_free(place, wide) {
        return None;
    }
    let rule = "spread-before-broadcast";
    let mut edit = place.edit(rule)?.removing(place.id);
    let (narrow, shape) = match node.op_type.as_str() {
        "Expand" => {
            let input = node.input(0)?;
            (input, place.shape(input)?.to_vec())
        }
        "Unsqueeze" | "Reshape" => {
            let input = node.input(0)?;
            let (from, to) = (place.shape(input)?, place.shape(wide)?);
            let added = to.len().checked_sub(from.len()).filter(|added| *added > 0)?;
            let (front, rest) = to.split_at_checked(added)?;
            let same = from.iter().zip(rest).all(|(a, b)| place.scope().eq(a, b).is_yes());
            if !same || !front.iter().all(|dim| dim.is_const(1)) {
                return None;
            }
            (input, from.to_vec())
        }
        "ConstantOfShape" => {
            let number = uniform(place, wide)?;
            let constant = place.new_value(wide, "value");
            edit.constants.push((constant, number));
            (constant, Vec::new())
        }
        _ => {
            let input = unchanged(place, node)?;
            (input, place.shape(input)?.to_vec())
        }
    };
    // Reading an outer value or a graph output in place of this one is no different; types must agree.
    let mut region = Region { known: vec![Narrow { wide, narrow, shape }], seen: Vec::new(), edit };
    let mut next = 0;
    while next < region.known.len() {
        region.narrow_readers(place, next)?;
        next += 1;
    }
    Some(region.edit)
}

/// Whether the value has no reader but nodes, and some.
fn is_free(place: &Place<'_>, value: ValueId) -> bool {
    !place.model.is_output(value) && !place.model.value(value).pinned && !place.model.is_unused(value)
}

/// The operand that an element-wise operator hands through but for its size: beside a neutral element everywhere, or chosen by a
/// condition that is the same everywhere.
fn unchanged(place: &Place<'_>, node: &Node) -> Option<ValueId> {
    let output = node.output(0)?;
    let (a, b) = (node.input(0)?, node.input(1)?);
    let value = if node.op_type == "Where" {
        let condition = uniform(place, a)?.to_i64s()?;
        if condition == [1] { b } else { node.input(2)? }
    } else if neutral(place, &node.op_type, b) {
        a
    } else if neutral(place, &node.op_type, a) {
        b
    } else {
        return None;
    };
    (place.dtype(value).is_some() && place.dtype(value) == place.dtype(output)).then_some(value)
}

fn neutral(place: &Place<'_>, operator: &str, value: ValueId) -> bool {
    let integer = place.dtype(value).is_some_and(DType::is_integer);
    let number = match operator {
        "And" => 1,
        "Or" => 0,
        "Add" if integer => 0,
        "Mul" if integer => 1,
        _ => return false,
    };
    uniform(place, value).as_ref().and_then(Tensor::to_i64s).is_some_and(|found| found == [number])
}

struct Region {
    /// Values in the order they were found to have a smaller form.
    known: Vec<Narrow>,
    /// Nodes that read one of them and are dealt with.
    seen: Vec<NodeId>,
    edit: Edit,
}

impl Region {
    fn find(&self, value: ValueId) -> Option<&Narrow> {
        self.known.iter().find(|known| known.wide == value)
    }

    /// Makes every reader of a value read its smaller form.
    fn narrow_readers(&mut self, place: &mut Place<'_>, index: usize) -> Option<()> {
        let wide = self.known.get(index)?.wide;
        let readers = place.model.users(wide);
        if readers.len() > MAX_READERS {
            return None;
        }
        for (reader, _) in readers {
            let node = place.model.node(reader)?;
            if node.graph() != self.edit.graph || !node.canonical_domain().is_empty() {
                return None;
            }
            let reads = node.inputs().iter().flatten().filter(|&&input| self.find(input).is_some()).count();
            if self.seen.contains(&reader) {
                // It was dealt with when this operand had no smaller form yet, unless both are one value.
                let slots = node.inputs().iter().flatten().filter(|&&input| input == wide).count();
                if reads > slots {
                    return None;
                }
                continue;
            }
            if self.seen.len() >= MAX_NODES {
                return None;
            }
            self.seen.push(reader);
            self.narrow_reader(place, reader)?;
        }
        Some(())
    }

    fn narrow_reader(&mut self, place: &mut Place<'_>, reader: NodeId) -> Option<()> {
        let node = place.model.node(reader)?;
        let [Some(output)] = *node.outputs() else { return None };
        let goal = place.shape(output)?;
        let shapes = self.operand_shapes(place, node)?;
        let shapes: SmallVec<[&[Dim]; 4]> = shapes.iter().map(Vec::as_slice).collect();
        let (shape, whole) = broadcast(place.scope(), &shapes, goal)?;
        if whole {
            for (slot, input) in node.inputs().iter().enumerate() {
                if let Some(known) = input.and_then(|input| self.find(input)) {
                    self.edit.rewire.push((reader, slot, Some(known.narrow)));
                }
            }
            return Some(());
        }
        if !is_free(place, output) {
            return None;
        }
        let mut copy = NewNode::new(&node.op_type, []).named(node.name.clone());
        copy.domain.clone_from(&node.domain);
        copy.attributes.clone_from(&node.attributes);
        copy.extra = node.extra.clone();
        let narrowed =
            |input: &Option<ValueId>| input.map(|input| self.find(input).map_or(input, |known| known.narrow));
        copy.inputs = node.inputs().iter().map(narrowed).collect();
        let narrow = place.new_value(output, "narrow");
        self.edit.insert.push(copy.output(narrow));
        self.edit.remove.push(reader);
        self.known.push(Narrow { wide: output, narrow, shape });
        Some(())
    }

    /// The shapes that broadcast to the reader's result, those of smaller forms in place of the wide ones.
    fn operand_shapes(&self, place: &Place<'_>, node: &Node) -> Option<SmallVec<[Vec<Dim>; 4]>> {
        let shape_of = |value: ValueId| match self.find(value) {
            Some(known) => Some(known.shape.clone()),
            None => place.shape(value).map(<[Dim]>::to_vec),
        };
        match node.op_type.as_str() {
            "Add" | "Sub" | "Mul" | "Div" | "Pow" | "Mod" | "And" | "Or" | "Xor" | "Equal" | "Less" | "LessOrEqual"
            | "Greater" | "GreaterOrEqual" | "Where" | "Min" | "Max" | "BitwiseAnd" | "BitwiseOr" | "BitwiseXor"
            | "Cast" | "Not" | "Neg" | "Abs" | "Cos" | "Sin" | "Sqrt" | "Exp" | "Log" | "Floor" | "Ceil" | "Round"
            | "Reciprocal" | "Relu" | "Sigmoid" | "Tanh" | "Sign" | "Erf" => {
                node.inputs().iter().map(|input| shape_of((*input)?)).collect()
            }
            // Entries are looked up one by one; each brings the data's other axes.
            "Gather" if matches!(node.attribute("axis"), None | Some(Attribute::Int(0))) => {
                let (data, indices) = (node.input(0)?, node.input(1)?);
                if self.find(data).is_some() {
                    return None;
                }
                let mut shape = shape_of(indices)?;
                shape.extend_from_slice(place.shape(data)?.get(1..)?);
                Some(SmallVec::from_iter([shape]))
            }
            _ => None,
        }
    }
}

/// What shapes broadcast to that are known to be spread to `goal`, and whether that is all of `goal`. `None` if it is not clear.
fn broadcast(scope: &Scope, shapes: &[&[Dim]], goal: &[Dim]) -> Option<(Vec<Dim>, bool)> {
    let rank = shapes.iter().map(|shape| shape.len()).max()?;
    let mut whole = rank == goal.len();
    let mut result = Vec::with_capacity(rank);
    for (axis, dim) in goal.iter().enumerate().skip(goal.len().checked_sub(rank)?) {
        let along = |shape: &&[Dim]| Some(shape.get((axis + shape.len()).checked_sub(goal.len())?)?.clone());
        let mut dims = shapes.iter().filter_map(along);
        let reaches = dims.clone().any(|own| scope.eq(&own, dim).is_yes());
        if !reaches && !dims.all(|own| own.is_const(1)) {
            return None;
        }
        whole &= reaches;
        result.push(if reaches { dim.clone() } else { Dim::constant(1) });
    }
    Some((result, whole))
}
