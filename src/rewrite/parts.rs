//! The parts of a tensor along an axis, and operators that are applied to all parts equally.
//!
//! Law: for `f` that treats every index along an axis in the same way, `f(Split(x)[i]) = Split(f(x))[i]`. Element-wise arithmetic satisfies
//! the precondition, if the other operand is constant along the axis or has separate values for each part, which the rule concatenates.
//! Movements satisfy it, if they keep the axis, or blocks of it, in order.

use super::build::{Build, rebuilt, rebuilt_alike};
use super::place::Place;
use crate::dim::Dim;
use crate::ir::{Edit, NewNode, Node, NodeId, ValueId};
use crate::ops::size_operand::reshape_codes;
use crate::ops::traits::{Movement, Variation, traits_of};
use crate::rewrite::limits::READERS;
use crate::tensor::Tensor;

/// The most bytes that are stored twice to join constants: one node less is worth a duplicated short vector. Without it, a table with two
/// consumers is stored twice, and the model grows.
const MOST_TWICE: usize = 2048;

/// The parts of a tensor along an axis.
pub(super) struct Parts {
    pub values: Vec<ValueId>,
    pub axis: usize,
    /// The size of each part along the axis.
    pub sizes: Vec<i64>,
}

/// An operation on every part, in the form in which it applies to the whole.
pub(super) struct Partwise {
    /// `true` if the results stay equal bit for bit.
    pub exact: bool,
    work: Work,
    /// The nodes that apply the operation to the parts.
    nodes: Vec<NodeId>,
    /// The results of the nodes.
    pub results: Vec<ValueId>,
    /// The axis of the results along which they are parts, and the size of each along it.
    axis: usize,
    sizes: Vec<i64>,
}

enum Work {
    /// A function of one element; all nodes have the same other operands.
    Function,
    /// Arithmetic with an operand in this slot that all nodes share.
    Common(usize),
    /// Arithmetic with a constant in this slot.
    Constants(usize, Tensor, ValueId),
    /// A reduction of other axes.
    Reduction,
    /// A reshape to this shape.
    Reshape(Vec<Dim>),
    /// A permutation, and for each part an optional further permutation.
    Transpose(Vec<usize>, Vec<Option<Vec<usize>>>),
}

/// The reason for which an operation on the parts does not apply to the whole.
pub(super) enum Unfit {
    /// The parts have other consumers, or consumers that differ.
    Consumers,
    /// The consumers mix elements along the axis, or their results depend on the index.
    Operator,
    /// Another operand differs along the axis.
    Operand,
}

impl Parts {
    /// Returns these values as parts along an axis.
    pub fn of(place: &Place<'_>, values: Vec<ValueId>, axis: usize) -> Option<Parts> {
        let size = |&value: &ValueId| place.shape(value)?.get(axis)?.as_const();
        let sizes = values.iter().map(size).collect::<Option<Vec<i64>>>()?;
        let splits = place.opset.has_split_and_pads();
        ((2..=READERS).contains(&values.len()) && splits).then_some(Parts { values, axis, sizes })
    }

    /// Returns the next operation on all parts, if applying it to the whole takes fewer nodes.
    pub fn step(&self, place: &Place<'_>) -> Result<Partwise, Unfit> {
        let nodes: Option<Vec<NodeId>> = self.values.iter().map(|&value| reader(place, value)).collect();
        let nodes = nodes.ok_or(Unfit::Consumers)?;
        let first = nodes.first().and_then(|&id| place.model.node(id)).ok_or(Unfit::Consumers)?;
        let same = |id: &NodeId| {
            place.model.node(*id).is_some_and(|node| node.is(&first.op_type) && rebuilt_alike(first, node))
        };
        if !nodes.iter().all(same) {
            return Err(Unfit::Consumers);
        }
        let results: Option<Vec<ValueId>> = nodes.iter().map(|&id| place.model.node(id)?.output(0)).collect();
        let results = results.ok_or(Unfit::Consumers)?;
        let traits = traits_of(place.model, first);
        if traits.reduces.is_some() {
            return self.reduction(place, nodes, results).ok_or(Unfit::Operator);
        }
        let exact = self.exact(place, first).ok_or(Unfit::Operator)?;
        let plain = |work: Work| Partwise {
            exact,
            work,
            nodes: nodes.clone(),
            results: results.clone(),
            axis: self.axis,
            sizes: self.sizes.clone(),
        };
        if traits.is_function() {
            let alike = |&id: &NodeId| place.model.node(id).is_some_and(|node| alike(first, node, 0));
            return if nodes.iter().all(alike) { Ok(plain(Work::Function)) } else { Err(Unfit::Consumers) };
        }
        if is_arithmetic(place, first) {
            return self.arithmetic(place, &nodes).map(plain).ok_or(Unfit::Operand);
        }
        let moved = match traits.moves {
            Some(Movement::Layout) => self.reshape(place, nodes, results),
            _ if first.is("Transpose") => self.transpose(place, nodes, results),
            _ => None,
        };
        moved.ok_or(Unfit::Operator)
    }

    /// Returns `true` if a pointwise operator gives the same bits for the whole as for the parts, and `None` if the numbers may differ
    /// beyond rounding.
    fn exact(&self, place: &Place<'_>, node: &Node) -> Option<bool> {
        let traits = traits_of(place.model, node);
        if traits.moves.is_some() {
            return Some(true);
        }
        match traits.variation(place.dtype(node.input(0)?)?) {
            Variation::None => Some(true),
            Variation::Rounding => Some(false),
            Variation::Values => None,
        }
    }

    /// Matches arithmetic with one other operand for all parts, or with a constant for each part.
    fn arithmetic(&self, place: &Place<'_>, nodes: &[NodeId]) -> Option<Work> {
        if !place.opset.arithmetic_broadcasts() {
            return None;
        }
        let slot = |(&id, &value): (&NodeId, &ValueId)| {
            place.model.node(id)?.inputs().iter().position(|&input| input == Some(value))
        };
        let slots: Vec<usize> = nodes.iter().zip(&self.values).map(slot).collect::<Option<_>>()?;
        let slot = *slots.first().filter(|first| slots.iter().all(|slot| slot == *first))?;
        let other = 1usize.checked_sub(slot)?;
        let operand = |&id: &NodeId| place.model.node(id)?.input(other);
        let others: Vec<ValueId> = nodes.iter().map(operand).collect::<Option<_>>()?;
        // The parts keep their shapes.
        let mut results = nodes.iter().zip(&self.values);
        let keeps = results.all(|(&id, &value)| {
            place.model.node(id).and_then(|node| node.output(0)).is_some_and(|result| place.same_shape(value, result))
        });
        let rank = place.shape(*self.values.first()?)?.len();
        let first = *others.first()?;
        if !keeps {
            return None;
        }
        if others.iter().all(|&other| other == first) {
            let dims = place.shape(first)?;
            let along = (self.axis + dims.len()).checked_sub(rank).and_then(|axis| dims.get(axis));
            let fits = dims.len() <= rank && along.is_none_or(|dim| dim.is_const(1));
            if fits && !self.values.contains(&first) {
                return Some(Work::Common(other));
            }
        }
        let tensors: Vec<&Tensor> = others.iter().map(|&other| place.constant(other)).collect::<Option<_>>()?;
        let axis = (self.axis + tensors.first()?.rank()).checked_sub(rank)?;
        let fits = tensors
            .iter()
            .zip(&self.sizes)
            .all(|(tensor, &size)| tensor.shape().get(axis).is_some_and(|&dim| i64::try_from(dim) == Ok(size)));
        // A constant with other consumers is stored twice.
        let shared = others.iter().zip(nodes).zip(&tensors);
        let shared = shared.filter(|((other, id), _)| !place.model.is_read_only_by(**other, &[**id]));
        let twice = shared.fold(0usize, |sum, (_, tensor)| sum.saturating_add(tensor.byte_len()));
        (fits && twice <= MOST_TWICE).then_some(())?;
        Some(Work::Constants(other, place.concatenated(&tensors, axis)?, first))
    }

    /// Matches reshapes from `[L…, nᵢ, T…]` to `[L…, hᵢ, I…, T…]` with the same `I…` for all parts.
    fn reshape(&self, place: &Place<'_>, nodes: Vec<NodeId>, results: Vec<ValueId>) -> Option<Partwise> {
        let axis = self.axis;
        let mut sizes = Vec::with_capacity(results.len());
        let whole = place.shape(*results.first()?)?;
        for ((&value, &result), size) in self.values.iter().zip(&results).zip(&self.sizes) {
            let (from, to) = (place.shape(value)?, place.shape(result)?);
            let last = from.get(axis.checked_add(1)?..)?;
            let blocks = to.get(axis.checked_add(1)?..to.len().checked_sub(last.len())?)?;
            let product = blocks.iter().try_fold(1i64, |product, dim| product.checked_mul(dim.as_const()?))?;
            let count = to.get(axis)?.as_const()?;
            let fits = place.same_dims(from.get(..axis)?, to.get(..axis)?)
                && place.same_dims(last, to.get(to.len().checked_sub(last.len())?..)?)
                && place.same_dims(whole.get(axis.checked_add(1)?..)?, to.get(axis.checked_add(1)?..)?);
            if !fits || count.checked_mul(product) != Some(*size) || *size == 0 {
                return None;
            }
            sizes.push(count);
        }
        let mut target = whole.to_vec();
        *target.get_mut(axis)? = Dim::constant(sizes.iter().try_fold(0i64, |sum, &size| sum.checked_add(size))?);
        Some(Partwise { exact: true, work: Work::Reshape(target), nodes, results, axis, sizes })
    }

    /// Matches a reduction of other axes than that of the parts. Kernels may add in another order if there are more elements.
    fn reduction(&self, place: &Place<'_>, nodes: Vec<NodeId>, results: Vec<ValueId>) -> Option<Partwise> {
        let &id = nodes.first()?;
        let (first, view) = (place.model.node(id)?, place.view(id)?);
        let all_alike = nodes.iter().all(|&id| place.model.node(id).is_some_and(|node| alike(first, node, 0)));
        let (axes, keeps) = (view.traits().reduces?.axes)(&view)?;
        if !all_alike || axes.is_empty() || axes.contains(&self.axis) {
            return None;
        }
        let dropped = if keeps { 0 } else { axes.iter().filter(|&&axis| axis < self.axis).count() };
        let axis = self.axis.checked_sub(dropped)?;
        Some(Partwise { exact: false, work: Work::Reduction, nodes, results, axis, sizes: self.sizes.clone() })
    }

    /// Matches transposes. The most frequent permutation is applied to the whole; parts with another one get a further Transpose.
    fn transpose(&self, place: &Place<'_>, nodes: Vec<NodeId>, results: Vec<ValueId>) -> Option<Partwise> {
        let rank = place.shape(*self.values.first()?)?.len();
        let perm = |&id: &NodeId| place.read(place.model.node(id)?).permutation(rank);
        let perms: Vec<Vec<usize>> = nodes.iter().map(perm).collect::<Option<_>>()?;
        let count = |perm: &Vec<usize>| perms.iter().filter(|other| *other == perm).count();
        let most = perms.iter().map(count).max()?;
        // The rule saves all transposes with the common permutation except one.
        let common = perms.iter().find(|perm| count(perm) == most).filter(|_| most > 1)?;
        let position = |axis: usize| common.iter().position(|&other| other == axis);
        let after = |perm: &Vec<usize>| -> Option<Option<Vec<usize>>> {
            if perm == common {
                return Some(None);
            }
            Some(Some(perm.iter().map(|&axis| position(axis)).collect::<Option<_>>()?))
        };
        let rest = perms.iter().map(after).collect::<Option<Vec<_>>>()?;
        let axis = position(self.axis)?;
        let work = Work::Transpose(common.clone(), rest);
        Some(Partwise { exact: true, work, nodes, results, axis, sizes: self.sizes.clone() })
    }
}

/// Returns `true` if a node computes a function of two broadcast operands.
pub(super) fn is_arithmetic(place: &Place<'_>, node: &Node) -> bool {
    node.inputs().len() == 2 && traits_of(place.model, node).is_broadcasting(place.opset.version())
}

impl Partwise {
    /// Adds to an edit the operation on `whole`, a value with these dims, and the Split of the result.
    pub fn build(self, place: &Place<'_>, edit: &mut Edit, whole: ValueId, dims: &[Dim]) -> Option<()> {
        let first = place.model.node(*self.nodes.first()?)?;
        let like = *self.results.first()?;
        edit.remove.extend(&self.nodes);
        let done = edit.new_value(like, "whole");
        let (mut outputs, mut after) = (self.results.clone(), Vec::new());
        match self.work {
            Work::Function | Work::Reduction => edit.insert.push(NewNode::like(first).reading(0, whole).output(done)),
            Work::Common(other) => {
                let node = NewNode::like(first).reading(1usize.checked_sub(other)?, whole);
                edit.insert.push(node.output(done));
            }
            Work::Constants(other, tensor, like) => {
                let constant = edit.constant(like, "parts", tensor);
                let node = NewNode::like(first).reading(1usize.checked_sub(other)?, whole).reading(other, constant);
                edit.insert.push(node.output(done));
            }
            Work::Reshape(target) => {
                let codes = reshape_codes(place.scope(), dims, &target)?;
                let node = place.build(edit, done).reshape(whole, codes);
                edit.insert.push(rebuilt(first, node).named(first.name.clone()).output(done));
            }
            Work::Transpose(perm, rest) => {
                let common = rest.iter().position(Option::is_none).and_then(|at| self.nodes.get(at));
                let common = place.model.node(*common?)?;
                let transpose = rebuilt(common, Build::transpose(whole, perm)).named(common.name.clone());
                edit.insert.push(transpose.output(done));
                for ((output, rest), &id) in outputs.iter_mut().zip(rest).zip(&self.nodes) {
                    let Some(rest) = rest else { continue };
                    let own = place.model.node(id)?;
                    let part = edit.new_value(*output, "part");
                    after.push(Build::transpose(part, rest).named(own.name.clone()).output(*output));
                    *output = part;
                }
            }
        }
        let split = place.build(edit, done).split(done, self.axis, self.sizes)?;
        edit.insert.push(NewNode { outputs: outputs.into_iter().map(Some).collect(), ..split });
        edit.insert.extend(after);
        Some(())
    }
}

/// Returns `true` if two nodes apply the same operation to their operand in `slot`.
fn alike(a: &Node, b: &Node, slot: usize) -> bool {
    let others = |node: &Node| {
        let inputs = node.inputs().iter().enumerate().filter(|(at, _)| *at != slot);
        inputs.map(|(_, input)| *input).collect::<Vec<_>>()
    };
    a.op_type == b.op_type && a.same_attributes(b) && others(a) == others(b)
}

/// Returns the only consumer of a value, which reads it once; `None` if other nodes or the graph need the value.
fn reader(place: &Place<'_>, value: ValueId) -> Option<NodeId> {
    let id = place.model.users(value).first().filter(|_| place.has_one_reader(value))?.0;
    let node = place.model.node(id)?;
    let plain = node.canonical_domain().is_empty() && node.outputs().len() == 1;
    (plain && Some(node.graph()) == place.graph() && node.subgraphs().next().is_none()).then_some(id)
}
