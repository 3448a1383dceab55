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
    /// The node that computes a value, which nothing but one node of the region reads.
    fn between(&self, value: ValueId) -> Result<(NodeId, &'a Node), Miss> {
        let found = self.place.producer_with(value, |_| true).ok_or(miss!("laid-out").of(value))?;
        let unread = found.1.outputs().iter().skip(1).flatten().all(|&other| self.place.model.is_unused(other));
        ensure(self.place.has_one_reader(value) && unread, miss!("one-reader").of(value))?;
        Ok(found)
    }

    /// The value that has the axes apart.
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
            // It was laid out in yet another way.
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

    /// Computes what a node does, with the axes apart.
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
            // What normalizes the last axis.
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

    /// The node with operands that have the axes apart: all that have the merged axis. The others have fewer axes, or one place there.
    fn operands(&mut self, node: &'a Node, mut new: NewNode, rank: usize, depth: usize) -> Result<NewNode, Miss> {
        let mut any = false;
        for (slot, value) in node.inputs().iter().enumerate() {
            let value = value.ok_or(Miss::ROOT)?;
            let batched = miss!("batched").of(value);
            let dims = self.place.shape(value).ok_or(batched)?;
            let is_whole = match dims {
                [first, ..] if dims.len() == rank => !first.is_const(1),
                // A vector is no matrix: a product with one drops an axis.
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
