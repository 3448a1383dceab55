//! Removes Reshapes that merge batch axes before matrix products and split them again after the products.
//!
//! Law: if `f` treats each index of its batch axis in the same way and independently, then `f(merge(x)) = merge(f(x))`, where `merge`
//! merges the leading axes into one. A matrix product, an element-wise operator and a normalization of the last axis accept any number of
//! batch axes. So the region computes on `[batch, heads, …]` instead of `[batch·heads, …]`, and the shape chains of the Reshapes become
//! dead.

use super::miss::{Miss, ensure, prove};
use super::place::Place;
use super::rule::{Rule, miss};
use crate::dim::Dim;
use crate::ir::{Edit, NewNode, Node, NodeId, ValueId};
use crate::ops::traits::{Operands, Variation, traits_of};
use crate::rewrite::limits::DEPTH;

pub(super) const RULES: &[Rule] = &[Rule {
    name: "batches-apart",
    law: "Reshape(f(Reshape(x, [a · b, …])), [a, b, …]) = f(x)",
    sentence: "Removes two Reshapes that merge batch axes before a batched matrix product and separate them after it.",
    premises: &[
        (
            "laid-out",
            "each operand with the merged axis is the result of a Reshape, and a constant can express the shape of the operand with separate axes",
        ),
        ("alike", "every node in f is a matrix product, or treats all positions of the merged axis identically"),
        ("batched", "in every matrix product, the merged axis is a batch axis, and not the axis of the rows"),
        ("has-product", "f contains a matrix product"),
        ("one-reader", "the values between the two Reshapes have no other consumer"),
        ("pays", "the rewrite removes more nodes than it adds"),
    ],
    exact: false,
    operators: &["Reshape"],
    apply: apart,
}];

/// The subgraph between the Reshapes, rebuilt with split batch axes.
struct Region<'p, 'a> {
    place: &'p Place<'a>,
    /// The dims of the split batch axes.
    apart: &'p [Dim],
    /// The dim of the merged batch axis.
    merged: &'p Dim,
    edit: Edit,
    has_product: bool,
    /// The number of removed nodes minus the number of added ones, where a rebuilt node counts as neither.
    saved: i64,
}

fn apart(place: &Place<'_>) -> Result<Edit, Miss> {
    let (data, output) = (place.operand(0)?, place.result()?);
    ensure(place.opset.everything_broadcasts(), Miss::EXPRESSIBLE)?;
    let ([merged, from @ ..], to) = (place.dims(data)?, place.dims(output)?) else {
        return Err(miss!("laid-out").of(output));
    };
    let (lead, rest) =
        to.split_at_checked(to.len().checked_sub(from.len()).ok_or(Miss::COMPUTABLE)?).ok_or(miss!("laid-out"))?;
    ensure(lead.len() >= 2, miss!("laid-out"))?;
    prove(place.compare_dims(rest, from), miss!("laid-out"))?;
    let edit = place.begin()?.removing(place.id);
    let mut region = Region { place, apart: lead, merged, edit, has_product: false, saved: 1 };
    let (id, node) = region.between(data)?;
    region.compute(id, node, output, DEPTH)?;
    ensure(region.has_product, miss!("has-product"))?;
    ensure(region.saved > 0, miss!("pays"))?;
    Ok(region.edit)
}

impl<'a> Region<'_, 'a> {
    /// Returns the producer of a value, if the value has one consumer and the other results of the producer are unread.
    fn between(&self, value: ValueId) -> Result<(NodeId, &'a Node), Miss> {
        let found = self.place.producer_with(value, |_| true).ok_or(miss!("laid-out").of(value))?;
        let unread = found.1.outputs().iter().skip(1).flatten().all(|&other| self.place.model.is_unused(other));
        ensure(self.place.has_one_reader(value) && unread, miss!("one-reader").of(value))?;
        Ok(found)
    }

    /// Returns the value with split batch axes: the data of its Reshape, or the result of its rebuilt producer.
    fn operand(&mut self, value: ValueId, depth: usize) -> Result<ValueId, Miss> {
        if let Some((id, layout)) = self.place.layout(value) {
            let other = miss!("laid-out").of(value);
            let whole = layout.input(0).ok_or(other)?;
            let Some([_, rest @ ..]) = self.place.shape(value) else { return Err(other) };
            let (from, to) = (self.place.shape(whole).ok_or(other)?, [self.apart, rest].concat());
            if self.place.has_one_reader(value) {
                self.edit.remove.push(id);
                self.saved = self.saved.saturating_add(1);
            }
            if self.place.same_dims(from, &to) {
                return Ok(whole);
            }
            // The data of the Reshape has other dims than the split form, so another Reshape is needed.
            self.saved = self.saved.saturating_sub(1);
            let apart = self.edit.new_value(value, "apart");
            let place = self.place;
            let reshape = place.build(&mut self.edit, apart).reshape_to(place.scope(), whole, from, &to);
            self.edit.insert.push(reshape.ok_or(other)?.output(apart));
            return Ok(apart);
        }
        let (id, node) = self.between(value)?;
        let apart = self.edit.new_value(value, "apart");
        self.compute(id, node, apart, depth.checked_sub(1).ok_or(miss!("alike"))?)?;
        Ok(apart)
    }

    /// Rebuilds a node with split batch axes; the new node computes `result`.
    fn compute(&mut self, id: NodeId, node: &'a Node, result: ValueId, depth: usize) -> Result<(), Miss> {
        let value = node.output(0).ok_or(Miss::ROOT)?;
        let differs = miss!("alike").of(value);
        let rank = self.place.shape(value).ok_or(differs)?.len();
        let more = self.apart.len().checked_sub(1).ok_or(differs)?;
        let traits = traits_of(self.place.model, node);
        let dtype = self.place.dtype(value).ok_or(differs)?;
        let data = node.input(0).ok_or(differs)?;
        let mut new = NewNode::like(node);
        if node.is("MatMul") {
            ensure(rank >= 3, miss!("batched").of(value))?;
            self.has_product = true;
            new = self.operands(node, new, rank, depth)?;
        } else if node.is("Transpose") {
            let perm = self.place.read(node).permutation(rank).ok_or(differs)?;
            let [0, own @ ..] = perm.as_slice() else { return Err(differs) };
            let moved = own.iter().map(|axis| i64::try_from(axis.checked_add(more)?).ok());
            let front = (0..=more).map(|axis| i64::try_from(axis).ok());
            let perm: Vec<i64> = front.chain(moved).collect::<Option<_>>().ok_or(differs)?;
            new = new.set("perm", perm).reading(0, self.operand(data, depth)?);
        } else if traits.is_broadcasting(self.place.opset.version()) || traits.is_function() {
            ensure(traits.variation(dtype) != Variation::Values, differs)?;
            new = match traits.pointwise.ok_or(differs)?.operands {
                Operands::Broadcast => self.operands(node, new, rank, depth)?,
                _ => new.reading(0, self.operand(data, depth)?),
            };
        } else {
            // A normalization of the last axis.
            let view = self.place.view(id).ok_or(differs)?;
            let last = rank.checked_sub(1).filter(|&last| last > 0).ok_or(differs)?;
            let mixed = traits.mixes.and_then(|mixes| mixes(&view)).ok_or(differs)?;
            let is_last = mixed == [last] && self.place.read(node).axis(rank) == Some(last);
            ensure(is_last && node.inputs().len() == 1, differs)?;
            let axis = last.checked_add(more).and_then(|axis| i64::try_from(axis).ok()).ok_or(Miss::COMPUTABLE)?;
            new = new.set("axis", axis).reading(0, self.operand(data, depth)?);
        }
        self.edit.insert.push(new.output(result));
        self.edit.remove.push(id);
        Ok(())
    }

    /// Gives the new node its operands. An operand with the merged axis is split. The others lack this axis, or have size 1 there, and are
    /// kept.
    fn operands(&mut self, node: &'a Node, mut new: NewNode, rank: usize, depth: usize) -> Result<NewNode, Miss> {
        let mut any = false;
        for (slot, value) in node.inputs().iter().enumerate() {
            let value = value.ok_or(Miss::ROOT)?;
            let batched = miss!("batched").of(value);
            let dims = self.place.shape(value).ok_or(batched)?;
            let is_whole = match dims {
                [first, ..] if dims.len() == rank => !first.is_const(1),
                // MatMul drops an axis for an operand of rank 1.
                [_] if node.is("MatMul") => return Err(batched),
                _ if dims.len() < rank => false,
                _ => return Err(batched),
            };
            if is_whole {
                let [first, ..] = dims else { return Err(batched) };
                prove(self.place.scope().eq(first, self.merged), batched)?;
                any = true;
                new = new.reading(slot, self.operand(value, depth)?);
            }
        }
        ensure(any, miss!("batched"))?;
        Ok(new)
    }
}
