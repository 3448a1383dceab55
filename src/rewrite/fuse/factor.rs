//! Moves a factor into constants further up or further down.
//!
//! Law: for a number `s` and a linear `f`, `s·f(x) = f(s·x)`. Movements and sums are linear. A matrix product is linear in either operand,
//! a convolution in weights and bias together, `s·(x + c) = s·x + s·c`, and `s·(x·c) = x·(s·c)`. So the scores of an attention need no
//! factor: the weights of the queries absorb it. Exempt are attentions that runtimes recognize by their factor and fuse.
//!
//! Another consumer of a value that is multiplied further up must be linear, and undoes the factor in a constant further down. For example,
//! `½·x·(1 + erf(x/√2))` of `x = W·z`, multiplied by weights `V`, is `x'·(1 + erf(x'))` of `x' = (W/√2)·z`, multiplied by `V/√2`.
//!
//! A changed constant has no other consumers, unless it is small. A bias with other consumers is small next to the weights before it:
//! exporters store equal biases of several products once.

use super::attention::{scales_known_scores, scales_unmasked_heads};
use super::has_arithmetic;
use super::magnitude::{has_room, is_bounded, may_move};
use super::ordinary::is_ordinary;
use super::scaled::{Blocks, scaled};
use super::weights::has_plain_factor;
use crate::ir::{Edit, Node, NodeId, ValueId};
use crate::ops::traits::{Movement, traits_of};
use crate::rewrite::miss::{Miss, ensure};
use crate::rewrite::place::Place;
use crate::rewrite::rule::{Rule, miss};
use crate::tensor::Tensor;

pub(in crate::rewrite) const RULES: &[Rule] = &[Rule {
    name: "factor-upstream",
    law: "s·f(x) = f(s·x) for linear f, s·(x·W) = x·(s·W)",
    sentence: "Moves a scalar factor backward through linear operators, and multiplies constants by it.",
    premises: &[
        (
            "meets-constants",
            "every path from the product back to the graph inputs contains a constant that can absorb s",
        ),
        (
            "no-attention",
            "s does not scale the scores, queries or keys of an attention, if transformer optimizers recognize the attention by the factor s",
        ),
        (
            "readers-undo",
            "each other consumer of a value on these paths has a constant operand, and dividing this constant by s undoes the factor",
        ),
        (
            "in-range",
            "for operands of moderate size (2⁻³² to 2³² in float), products with the old and the new constants neither overflow nor underflow",
        ),
        ("one-number", "s is a positive scalar constant, and neither s nor 1/s is subnormal or infinite"),
        ("no-sizes", "x is not computed from dims alone, because consumers may convert the result back to a dim"),
        (
            "own-weights",
            "each changed constant has no other consumer, or is small. A constant is small if it takes at most 16 bytes, or is a bias much smaller than the changed weights",
        ),
    ],
    exact: false,
    operators: &["Mul", "Div"],
    apply: upstream,
}];

/// The most nodes that are visited.
const REACH: usize = 24;

/// The most bytes of a constant that may have other consumers.
const SMALL: usize = 16;

/// The least ratio of the bytes of changed weights to the bytes of copied rows.
const SMALL_BESIDE: usize = 16;

/// A constant operand that absorbs the factor or its inverse.
#[derive(Clone, Copy)]
struct Change {
    node: NodeId,
    slot: usize,
    inverse: bool,
    /// `true` if the operand is a divisor.
    divides: bool,
}

/// The product with the factor.
struct Scaling {
    value: ValueId,
    result: ValueId,
    factor: f64,
}

impl Scaling {
    fn of(place: &Place<'_>) -> Result<Scaling, Miss> {
        let node = place.root()?;
        let result = place.only_output().ok_or(Miss::ROOT)?;
        let &[Some(a), Some(b)] = node.inputs() else { return Err(Miss::ROOT) };
        let (value, factor) = match (place.scalar(a), place.scalar(b)) {
            (None, Some(factor)) if node.is("Div") => (a, factor.recip()),
            (None, Some(factor)) => (a, factor),
            (Some(factor), None) if node.is("Mul") => (b, factor),
            (None, None) if place.tensor(a).or(place.tensor(b)).is_some() => return Err(miss!("one-number")),
            _ => return Err(Miss::ROOT),
        };
        // Sums of zeros with either sign are +0. A negative factor after the sum makes them −0.
        let is_number = factor > 0.0 && factor.is_normal() && factor.recip().is_normal();
        ensure(is_number, miss!("one-number"))?;
        ensure(place.opset.arithmetic_broadcasts(), Miss::EXPRESSIBLE)?;
        ensure(place.same_shape(value, result), miss!("one-number").of(result))?;
        let fits = place.dtype(result).is_some_and(|dtype| may_move(dtype, factor)) && is_ordinary(place, value);
        ensure(fits, miss!("in-range").of(value))?;
        Ok(Scaling { value, result, factor })
    }

    /// Returns `true` if the values in between may be scaled by the factor and by its inverse.
    fn may_move(&self, place: &Place<'_>) -> bool {
        let both = |dtype| may_move(dtype, self.factor) && may_move(dtype, self.factor.recip());
        place.dtype(self.result).is_some_and(both)
    }

    /// Returns the edit that removes the product and changes these constants. The check whether the product computes sizes is slow, so it
    /// is the last one.
    fn edit(&self, place: &Place<'_>, changes: &[Change]) -> Result<Edit, Miss> {
        let mut tensors = Vec::with_capacity(changes.len());
        let (mut copied, mut replaced) = (0usize, 0usize);
        for &change in changes {
            let node = place.model.node(change.node).ok_or(Miss::ROOT)?;
            let constant = node.input(change.slot).ok_or(Miss::ROOT)?;
            let tensor = place.tensor(constant).ok_or(miss!("own-weights").of(constant))?;
            let bytes = match own_constant(place, node, change.node, change.slot) {
                true => &mut replaced,
                false => &mut copied,
            };
            *bytes = bytes.checked_add(tensor.byte_len()).ok_or(Miss::COMPUTABLE)?;
            let factor = if change.inverse { self.factor.recip() } else { self.factor };
            ensure(
                !change.divides || divides_within_range(tensor, factor).ok_or(miss!("in-range"))?,
                miss!("in-range"),
            )?;
            let tensor =
                scaled(place.budget, tensor, Blocks::whole(tensor.shape()).ok_or(Miss::COMPUTABLE)?, &[factor])
                    .ok_or(miss!("in-range"))?;
            tensors.push((change, constant, tensor));
        }
        ensure(copied.checked_mul(SMALL_BESIDE).ok_or(Miss::COMPUTABLE)? <= replaced, miss!("own-weights"))?;
        ensure(!place.is_of_sizes(self.result), miss!("no-sizes"))?;
        let mut edit = place.forward(self.value)?;
        for (change, like, tensor) in tensors {
            let constant = edit.constant_named(place.fused_name(like), tensor);
            edit.rewire.push((change.node, change.slot, Some(constant)));
        }
        Ok(edit)
    }
}

/// Moves the factor from the product upwards.
fn upstream(place: &Place<'_>) -> Result<Edit, Miss> {
    let scaling = Scaling::of(place)?;
    ensure(!scales_known_scores(place) && !scales_unmasked_heads(place), miss!("no-attention"))?;
    let changes = search(place, &scaling)?;
    ensure(place.may_forward(scaling.value), Miss::NAME.of(scaling.result))?;
    scaling.edit(place, &changes)
}

/// Returns `true` if no constant is changed twice.
fn all_differ(changes: &[Change]) -> bool {
    changes
        .iter()
        .enumerate()
        .all(|(i, change)| !changes.iter().take(i).any(|other| other.node == change.node && other.slot == change.slot))
}

/// The values to be multiplied, and the changes for that.
#[derive(Clone, Default)]
struct Region {
    /// Values whose producers are not visited yet.
    open: Vec<ValueId>,
    /// Values that are multiplied.
    scaled: Vec<ValueId>,
    /// Operands through which their nodes receive the factor.
    through: Vec<(NodeId, usize)>,
    changes: Vec<Change>,
}

impl Region {
    fn push(&mut self, value: ValueId) {
        if !self.scaled.contains(&value) {
            self.scaled.push(value);
            self.open.push(value);
        }
    }
}

/// Searches the constants that absorb the factor. For a matrix product, the left operand is tried first. A miss is that of the last path
/// that met a constant.
fn search(place: &Place<'_>, scaling: &Scaling) -> Result<Vec<Change>, Miss> {
    let mut first = Region::default();
    first.push(scaling.value);
    let mut regions = vec![first];
    let mut miss = miss!("meets-constants").of(scaling.value);
    for _ in 0..REACH {
        let Some(mut region) = regions.pop() else { break };
        let declined = match region.open.pop() {
            Some(value) => {
                let (ways, declined) = above(place, value, region)?;
                regions.extend(ways);
                declined
            }
            None => match closed(place, scaling, region) {
                Ok(changes) => return Ok(changes),
                Err(declined) => declined,
            },
        };
        if declined.premise != "meets-constants" {
            miss = declined;
        }
    }
    Err(miss)
}

/// Returns the regions that also multiply the operands of the producer of `value`; the last one is tried first. Also returns the reason for
/// which a constant of the producer does not absorb the factor.
fn above(place: &Place<'_>, value: ValueId, region: Region) -> Result<(Vec<Region>, Miss), Miss> {
    let ends = miss!("meets-constants").of(value);
    let Some(id) = place.model.value(value).producer() else { return Ok((Vec::new(), ends)) };
    let node = place.model.node(id).ok_or(Miss::ROOT)?;
    let single = node.canonical_domain().is_empty() && node.outputs().len() == 1;
    if Some(node.graph()) != place.graph() || !single || id == place.id || !is_open(place, value) {
        return Ok((Vec::new(), ends));
    }
    let own = |slot: usize| own_constant(place, node, id, slot);
    let is_constant = |slot: usize| node.input(slot).is_some_and(|operand| place.tensor(operand).is_some());
    let is_plain = |slot: usize| passes_within_range(place, node, slot);
    // An added row may be copied; `Scaling::edit` limits the bytes of all copies together.
    let may_copy = |slot: usize| {
        let row = node.input(slot).and_then(|operand| place.tensor(operand));
        own(slot) || row.is_some_and(|row| row.rank() == 1 && has_arithmetic(row.dtype()))
    };
    // Each path multiplies the operands `through`, or changes the constant operands `within`.
    let way = |through: &[usize], within: &[(usize, bool)]| {
        let mut region = region.clone();
        for &slot in through {
            region.through.push((id, slot));
            region.push(node.input(slot)?);
        }
        let divides = |slot| slot == 1 && node.is("Div");
        region.changes.extend(within.iter().map(|&(slot, inverse)| Change {
            node: id,
            slot,
            inverse,
            divides: divides(slot),
        }));
        Some(region)
    };
    // An operator that joins several operands has a factor only if all of them have it.
    let traits = traits_of(place.model, node);
    let homogeneous = traits.homogeneous && traits.moves != Some(Movement::Join);
    let ways = match node.op_type.as_str() {
        _ if homogeneous && own(0) => vec![way(&[], &[(0, false)])],
        _ if homogeneous && !is_constant(0) => vec![way(&[0], &[])],
        "MatMul" | "Mul" if own(1) => vec![way(&[], &[(1, false)])],
        "MatMul" | "Mul" if own(0) => vec![way(&[], &[(0, false)])],
        "MatMul" | "Mul" if node.input(0) != node.input(1) => {
            let slots = [(1, 0), (0, 1)].into_iter().filter(|&(slot, other)| !is_constant(slot) && is_plain(other));
            slots.map(|(slot, _)| way(&[slot], &[])).collect()
        }
        "Div" if own(0) => vec![way(&[], &[(0, false)])],
        "Div" if own(1) => vec![way(&[], &[(1, true)])],
        "Div" if !is_constant(0) && node.input(0) != node.input(1) && is_plain(1) => vec![way(&[0], &[])],
        "Add" | "Sub" | "Concat" => {
            let (constant, computed): (Vec<usize>, Vec<usize>) =
                (0..node.inputs().len()).partition(|&slot| is_constant(slot));
            let changing = constant.iter().copied().filter(|&slot| !is_zero(place, node, slot));
            let within: Vec<(usize, bool)> = changing.map(|slot| (slot, false)).collect();
            within.iter().all(|&(slot, _)| may_copy(slot)).then(|| way(&computed, &within)).into_iter().collect()
        }
        "Conv" | "ConvTranspose" | "Gemm" | "LayerNormalization" | "InstanceNormalization"
            if own(1)
                && (node.input(2).is_none() || is_zero(place, node, 2) || may_copy(2))
                && (!node.is("Gemm") || has_plain_factor(node, place.dtype(value).ok_or(ends)?)) =>
        {
            let has_bias = node.input(2).is_some() && !is_zero(place, node, 2);
            let within: &[(usize, bool)] = if has_bias { &[(1, false), (2, false)] } else { &[(1, false)] };
            vec![way(&[], within)]
        }
        _ => Vec::new(),
    };
    let ways: Vec<Region> = ways.into_iter().flatten().collect();
    let slots = || 0..node.inputs().len();
    let miss = if slots().any(|slot| is_constant(slot) && !own(slot)) {
        miss!("own-weights").of(value)
    } else if slots().any(|slot| !is_plain(slot)) {
        miss!("in-range").of(value)
    } else {
        ends
    };
    Ok((ways, miss))
}

/// Returns the changes of a region without open values, if all other consumers of its values can undo the factor.
fn closed(place: &Place<'_>, scaling: &Scaling, region: Region) -> Result<Vec<Change>, Miss> {
    let Region { scaled, through, mut changes, .. } = region;
    let mut below = Vec::new();
    for &value in &scaled {
        // A graph output must not be multiplied, even if it is the factor's own operand.
        let read = miss!("readers-undo").of(value);
        let readers = place.model.users(value);
        ensure(!place.model.is_named(value) && readers.len() <= REACH, read)?;
        for reader in readers {
            if reader.0 == place.id || through.contains(&reader) {
                continue;
            }
            let undone = undo(place, value, reader, true).ok_or(read)?;
            ensure(scaling.may_move(place), miss!("in-range").of(value))?;
            changes.push(undone.change);
            below.extend(undone.nodes);
        }
    }
    // The nodes in between are multiplied once, and are not part of the region.
    let apart = below.iter().enumerate().all(|(i, node)| {
        *node != place.id
            && !through.iter().any(|(id, _)| id == node)
            && !below.iter().take(i).any(|other| other == node)
    });
    ensure(apart && all_differ(&changes), miss!("readers-undo"))?;
    Ok(changes)
}

/// The constant that undoes a factor, and the nodes on the path.
struct Undone {
    change: Change,
    nodes: Vec<NodeId>,
}

/// Follows `value` from one of its consumers down to a product with a constant.
fn undo(place: &Place<'_>, mut value: ValueId, reader: (NodeId, usize), inverse: bool) -> Option<Undone> {
    let mut nodes = Vec::new();
    let mut next = reader;
    for _ in 0..REACH {
        let (id, slot) = next;
        let node = place.model.node(id).filter(|node| Some(node.graph()) == place.graph())?;
        let single = node.canonical_domain().is_empty() && node.outputs().len() == 1;
        let once = node.times_read(value) == 1;
        if !single || !once || id == place.id {
            return None;
        }
        nodes.push(id);
        let own = |slot: usize| own_constant(place, node, id, slot);
        let done =
            |slot: usize, inverse: bool| Some(Change { node: id, slot, inverse, divides: slot == 1 && node.is("Div") });
        let is_plain = |slot: usize| passes_within_range(place, node, slot);
        let traits = traits_of(place.model, node);
        let homogeneous = traits.homogeneous && traits.moves != Some(Movement::Join);
        let change = match (node.op_type.as_str(), slot) {
            (_, 0) if homogeneous => None,
            ("MatMul" | "Mul", 0) if own(1) => done(1, inverse),
            ("MatMul" | "Mul", 1) if own(0) => done(0, inverse),
            ("MatMul" | "Mul", _) if is_plain(1usize.checked_sub(slot)?) => None,
            ("Div", 0) if own(1) => done(1, !inverse),
            ("Div", 0) if is_plain(1) => None,
            ("Gemm", _) if !has_plain_factor(node, place.dtype(value)?) => return None,
            ("Conv" | "ConvTranspose" | "Gemm", 0) if own(1) => done(1, inverse),
            ("Gemm", 1) if own(0) => done(0, inverse),
            _ => return None,
        };
        if let Some(change) = change {
            return Some(Undone { change, nodes });
        }
        value = node.output(0)?;
        let readers = place.model.users(value);
        let &[reader] = readers.as_slice() else { return None };
        if place.model.is_named(value) || !is_open(place, value) {
            return None;
        }
        next = reader;
    }
    None
}

/// Returns `true` if no content of a value is known. A known content would no longer be true.
fn is_open(place: &Place<'_>, value: ValueId) -> bool {
    place.fact(value).is_some_and(|fact| fact.content.is_none())
}

/// Returns `true` if all elements of an operand are 0. Multiplied by a factor, they are still 0.
fn is_zero(place: &Place<'_>, node: &Node, slot: usize) -> bool {
    let tensor = node.input(slot).and_then(|operand| place.tensor(operand));
    tensor.and_then(Tensor::uniform).and_then(|zero| zero.to_f64s()).is_some_and(|zero| zero == [0.0])
}

/// Returns `true` if a constant operand may change: it is an initializer without other consumers, or a small one.
fn own_constant(place: &Place<'_>, node: &Node, id: NodeId, slot: usize) -> bool {
    let Some(value) = node.input(slot) else { return false };
    let Some(tensor) = place.tensor(value).filter(|tensor: &&Tensor| has_arithmetic(tensor.dtype())) else {
        return false;
    };
    let once = node.times_read(value) == 1;
    let owned = place.model.value(value).is_constant() && once && place.is_internal(value, &[id]);
    owned || tensor.byte_len() <= SMALL
}

/// Returns `true` unless the operand is a constant that moves values of ordinary size out of the type's range.
fn passes_within_range(place: &Place<'_>, node: &Node, slot: usize) -> bool {
    let Some(tensor) = node.input(slot).and_then(|operand| place.tensor(operand)) else { return true };
    if place.budget.take_work(tensor.len() as u64).is_err() {
        return false;
    }
    let divides = node.is("Div");
    let fits = |number: f64| is_bounded(tensor.dtype(), [if divides { number.recip() } else { number }]);
    tensor.every_f64(fits) == Some(true)
}

/// Returns `true` if the quotients of an operand of ordinary size by each divisor, and by each divisor times the factor, are normal
/// numbers.
fn divides_within_range(divisors: &Tensor, factor: f64) -> Option<bool> {
    let fits = |divisor: f64| has_room(divisors.dtype(), divisor.recip()) && divisor.is_finite();
    divisors.every_f64(|divisor| fits(divisor) && fits(divisor * factor))
}
