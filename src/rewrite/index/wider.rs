//! Positions that are computed in 32 bits of sizes that have 64.
//!
//! Law: where no number leaves 32 bits, integers of 64 bits are computed alike, and what they are cast to is the same. So sizes need not be cast
//! before positions are computed of them, if those are cast in the end anyway, or are indices, which may be of either type.
//!
//! That a cast to 32 bits leaves a size as it is, is read off the elements before and behind it, which must be the same expressions. What
//! is computed of sizes behind it is followed only where it is proved to count in 32 bits, or is a division by numbers above 0, which never
//! leaves them.

use super::RULES;
use crate::rewrite::miss::{Miss, ensure};
use crate::rewrite::rule::miss;
use rustc_hash::FxHashMap;

use super::counting::counting;
use crate::ir::{Edit, NewNode, Node, NodeId, ValueId};
use crate::ops::traits::{Movement, traits_of};
use crate::rewrite::limits::{LISTED, NODES};
use crate::rewrite::place::Place;
use crate::tensor::{DType, Tensor};

/// What lies between the casts, computed in 64 bits.
struct Region<'p, 'a> {
    place: &'p Place<'a>,
    edit: Edit,
    /// The value in 64 bits in place of each.
    wide: FxHashMap<ValueId, ValueId>,
    nodes: Vec<NodeId>,
    /// The values that the nodes compute.
    values: Vec<ValueId>,
    /// Casts to 32 bits, and their results.
    casts: Vec<(NodeId, ValueId)>,
}

pub(super) fn cast_late(place: &Place<'_>) -> Result<Edit, Miss> {
    let node = place.root()?;
    // Of what is no Cast the operand holds indices.
    let slot = usize::from(!node.is("Cast"));
    let value = place.operand(slot)?;
    let to = place.dtype(place.result()?).ok_or(miss!("same-numbers"))?;
    let may_be_wide = slot == 1 || to.is_float() || to == DType::Int64;
    ensure(place.dtype(value).ok_or(Miss::ROOT)? == DType::Int32, Miss::ROOT)?;
    ensure(may_be_wide, Miss::ROOT)?;
    ensure(place.opset.everything_broadcasts(), Miss::EXPRESSIBLE)?;
    let edit = place.begin()?;
    let mut region = Region {
        place,
        edit,
        wide: FxHashMap::default(),
        nodes: vec![place.id],
        values: Vec::new(),
        casts: Vec::new(),
    };
    let wide = region.widened(value).ok_or(miss!("counts"))?;
    let Region { edit: mut done, nodes, values, casts, .. } = region;
    // Nothing else may read what is computed in 32 bits, and one of the casts must go.
    let is_inside = |value: &ValueId| place.model.is_read_only_by(*value, &nodes);
    let gone: Vec<NodeId> = casts.iter().filter(|(_, value)| is_inside(value)).map(|(id, _)| *id).collect();
    ensure(!values.is_empty(), Miss::ROOT)?;
    ensure(values.iter().all(is_inside), miss!("one-reader"))?;
    ensure(!gone.is_empty(), miss!("cast-goes"))?;
    done.remove.extend(nodes.into_iter().filter(|&id| id != place.id));
    done.remove.extend(gone);
    place.instead(done, NewNode::like(node).reading(slot, wide))
}

impl Region<'_, '_> {
    /// The value in 64 bits, by as many nodes as compute it in 32.
    fn widened(&mut self, value: ValueId) -> Option<ValueId> {
        if let Some(&known) = self.wide.get(&value) {
            return Some(known);
        }
        let place = self.place;
        if let Some(tensor) = place.constant(value).filter(|tensor| tensor.len() <= LISTED) {
            let numbers = Tensor::vector(tensor.to_i64s()?).reshape(tensor.shape()).ok()?;
            let wide = self.edit.constant(value, "wide", numbers);
            self.wide.insert(value, wide);
            return Some(wide);
        }
        let (id, node) = place.producer_with(value, |_| true)?;
        let traits = traits_of(place.model, node);
        if node.is("Cast") {
            let source = node.input(0)?;
            let (own, before) = (place.fact(value)?.ints()?, place.fact(source)?.ints()?);
            if place.dtype(source)? != DType::Int64 || !place.same_dims(&own, &before) {
                return None;
            }
            self.casts.push((id, value));
            self.wide.insert(value, source);
            return Some(source);
        }
        if self.nodes.len() >= NODES || node.outputs().len() != 1 {
            return None;
        }
        // Which operands hold the numbers; what is computed of numbers must be proved to count.
        let is_computed = node.is("Range") || node.is("Add") || node.is("Sub") || node.is("Mul");
        let numbers = match traits.moves {
            _ if is_computed => {
                // What stands for the result may be what it wraps to: it must be what comes of the operands.
                let (view, shape) = (place.view(id)?, place.shape(value)?.to_vec());
                let counts = traits.counts?;
                counts(&view, &shape, &|slot| counting(place, view.input(slot)?))?;
                0..node.inputs().len()
            }
            _ if divides(place, node) => 0..2,
            _ if node.is("Where") => 1..3,
            Some(Movement::Join) => 0..node.inputs().len(),
            Some(_) if traits.moves_first() => 0..1,
            _ => return None,
        };
        let mut new = NewNode::like(node);
        for slot in numbers {
            let operand = self.widened(node.input(slot)?)?;
            new = new.reading(slot, operand);
        }
        let wide = self.edit.new_value(value, "wide");
        self.edit.insert.push(new.output(wide));
        self.nodes.push(id);
        self.values.push(value);
        self.wide.insert(value, wide);
        Some(wide)
    }
}

/// Whether a node divides by constant numbers above 0.
fn divides(place: &Place<'_>, node: &Node) -> bool {
    let divisors = || place.const_ints(node.input(1)?);
    (node.is("Div") || node.is("Mod")) && divisors().is_some_and(|numbers| numbers.iter().all(|&number| number > 0))
}
