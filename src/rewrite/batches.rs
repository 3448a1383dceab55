//! Batch axes that are merged for products of matrices, and taken apart behind them.
//!
//! Law: where `f` treats all places along its batch axis alike, each for itself, `f` of a tensor whose first axes are merged into one is `f`
//! of that tensor, with these axes merged. A product of matrices, what is computed element by element, and a normalization of the last axis do
//! not care how many batch axes there are. So `[batch, heads, …]` need not become `[batch·heads, …]`, for which exporters compute sizes.

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

/// What is computed between the Reshapes, computed anew.
struct Region<'p, 'a> {
    place: &'p Place<'a>,
    /// The axes that are merged.
    apart: &'p [Dim],
    /// The merged axis.
    merged: &'p Dim,
    edit: Edit,
    has_product: bool,
    /// How many nodes fewer there are.
    saved: i64,
}

fn apart(place: &Place<'_>) -> Result<Edit, Miss> {
    let (data, output) = (place.operand(0)?, place.result()?);
    ensure(place.opset.everything_broadcasts(), Miss::EXPRESSIBLE)?;
    let ([merged, from @ ..], to) = (
        place.shape(data).ok_or(miss!("laid-out").of(data))?,
        place.shape(output).ok_or(miss!("laid-out").of(output))?,
    ) else {
        return Err(miss!("laid-out").of(output));
    };
    let (lead, rest) =
        to.split_at_checked(to.len().checked_sub(from.len()).ok_or(Miss::COMPUTABLE)?).ok_or(miss!("laid-out"))?;
    ensure(lead.len() >= 2, miss!("laid-out"))?;
    prove(place.compare_dims(rest, from), miss!("laid-out"))?;
    let edit = place.begin()?.removing(place.id);
    let mut region = Region { place, apart: lead, merged, edit, has_product: false, saved: 1 };
    let (id, node) = region.between(data).ok_or(miss!("alike"))?;
    region.compute(id, node, output, DEPTH).ok_or(miss!("batched"))?;
    ensure(region.has_product && region.saved > 0, miss!("has-product"))?;
    Ok(region.edit)
}

impl<'a> Region<'_, 'a> {
    /// The node that computes a value, which nothing but one node of the region reads.
    fn between(&self, value: ValueId) -> Option<(NodeId, &'a Node)> {
        let found = self.place.producer_with(value, |_| true)?;
        let unread = found.1.outputs().iter().skip(1).flatten().all(|&other| self.place.model.is_unused(other));
        (self.place.has_one_reader(value) && unread).then_some(found)
    }

    /// The value that has the axes apart.
    fn operand(&mut self, value: ValueId, depth: usize) -> Option<ValueId> {
        if let Some((id, layout)) = self.place.layout(value) {
            let whole = layout.input(0)?;
            let [_, rest @ ..] = self.place.shape(value)? else { return None };
            let (from, to) = (self.place.shape(whole)?, [self.apart, rest].concat());
            if self.place.has_one_reader(value) {
                self.edit.remove.push(id);
                self.saved = self.saved.checked_add(1)?;
            }
            if self.place.same_dims(from, &to) {
                return Some(whole);
            }
            // It was laid out in yet another way.
            self.saved = self.saved.checked_sub(1)?;
            let apart = self.edit.new_value(value, "apart");
            let place = self.place;
            let reshape = place.build(&mut self.edit, apart).reshape_to(place.scope(), whole, from, &to)?;
            self.edit.insert.push(reshape.output(apart));
            return Some(apart);
        }
        let (id, node) = self.between(value)?;
        let apart = self.edit.new_value(value, "apart");
        self.compute(id, node, apart, depth.checked_sub(1)?)?;
        Some(apart)
    }

    /// Computes what a node does, with the axes apart.
    fn compute(&mut self, id: NodeId, node: &'a Node, result: ValueId, depth: usize) -> Option<()> {
        let rank = self.place.shape(node.output(0)?)?.len();
        let more = self.apart.len().checked_sub(1)?;
        let traits = traits_of(self.place.model, node);
        let dtype = self.place.dtype(node.output(0)?)?;
        let mut new = NewNode::like(node);
        if node.is("MatMul") {
            if rank < 3 {
                return None;
            }
            self.has_product = true;
            new = self.operands(node, new, rank, depth)?;
        } else if node.is("Transpose") {
            let perm = self.place.read(node).permutation(rank)?;
            let [0, own @ ..] = perm.as_slice() else { return None };
            let moved = own.iter().map(|axis| i64::try_from(axis.checked_add(more)?).ok());
            let front = (0..=more).map(|axis| i64::try_from(axis).ok());
            let perm: Vec<i64> = front.chain(moved).collect::<Option<_>>()?;
            new = new.set("perm", perm).reading(0, self.operand(node.input(0)?, depth)?);
        } else if traits.is_broadcasting(self.place.opset.version()) || traits.is_function() {
            if traits.variation(dtype) == Variation::Values {
                return None;
            }
            new = match traits.pointwise?.operands {
                Operands::Broadcast => self.operands(node, new, rank, depth)?,
                _ => new.reading(0, self.operand(node.input(0)?, depth)?),
            };
        } else {
            // What normalizes the last axis.
            let view = self.place.view(id)?;
            let last = rank.checked_sub(1).filter(|&last| last > 0)?;
            let mixed = traits.mixes.and_then(|mixes| mixes(&view))?;
            if mixed != [last] || node.inputs().len() != 1 || self.place.read(node).axis(rank) != Some(last) {
                return None;
            }
            let axis = i64::try_from(last.checked_add(more)?).ok()?;
            new = new.set("axis", axis).reading(0, self.operand(node.input(0)?, depth)?);
        }
        self.edit.insert.push(new.output(result));
        self.edit.remove.push(id);
        Some(())
    }

    /// The node with operands that have the axes apart: all that have the merged axis. The others have fewer axes, or one place there.
    fn operands(&mut self, node: &'a Node, mut new: NewNode, rank: usize, depth: usize) -> Option<NewNode> {
        let mut any = false;
        for (slot, value) in node.inputs().iter().enumerate() {
            let value = (*value)?;
            let dims = self.place.shape(value)?;
            let is_whole = match dims {
                [first, ..] if dims.len() == rank => !first.is_const(1),
                // A vector is no matrix: a product with one drops an axis.
                [_] if node.is("MatMul") => return None,
                _ if dims.len() < rank => false,
                _ => return None,
            };
            if is_whole {
                let [first, ..] = dims else { return None };
                if !self.place.scope().eq(first, self.merged).is_yes() {
                    return None;
                }
                any = true;
                new = new.reading(slot, self.operand(value, depth)?);
            }
        }
        any.then_some(new)
    }
}
