//! Nodes that only move elements of one value, as one.
//!
//! Law: layouts, turns, lookups, cuts and concatenations of one value say of each place of the result which place of that value stands there.
//! Where elements stay together in blocks, in front of which no node tells places apart, that is one lookup of the blocks along an axis, or one
//! Transpose, between layouts. Windows of shifted images are eight nodes in exports: a roll along each axis, axes taken apart, turned and run together.
//!
//! A lookup is written only where something was looked up or cut before: what runtimes do best with a Transpose stays one.

mod blocks;

use self::blocks::{Blocks, Digits, Lookup, digits, lookups};
use super::build::Build;
use super::miss::Miss;
use super::movement::turns_weights;
use super::place::Place;
use super::rule::{Rule, miss};
use super::slices::cuts::{Cut, cuts_of, part};
use crate::dim::{Dim, greatest_common_divisor};
use crate::ir::{Edit, Node, NodeId, ValueId};
use crate::ops::traits::{Movement, REORDERING, traits_of};
use crate::tensor::{Tensor, counted_in, product};

pub(super) const RULES: &[Rule] = &[AS_ONE];

const AS_ONE: Rule = Rule {
    name: "moves-as-one",
    law: "m₁(m₂(… mₙ(x))) = Reshape(Gather(Reshape(x), k)), or with a Transpose, for mᵢ that only move elements",
    sentence: "Replaces a chain of data movement operators by one Gather or one Transpose.",
    premises: &[
        (
            "only-moves",
            "all nodes of the chain are Reshape, Transpose, Slice, Gather with constant indices, or Concat of parts of one value x",
        ),
        ("known-sizes", "all dims are constants, except leading dims that no node of the chain changes"),
        ("few-blocks", "the chain moves at most 16,384 contiguous blocks of elements"),
        ("no-sizes", "x has rank 2 or more and is not constant, because the pass size-chain plans vectors of dims"),
        ("no-strings", "the data is not a string tensor, for which ONNX Runtime's Gather returns wrong elements"),
        ("one-reader", "the intermediate values have no other consumer"),
        (
            "of-its-kind",
            "a new Gather, or a Transpose in a chain without one, moves contiguous rows of at least 8 elements, and a new Gather replaces a Transpose or a Slice",
        ),
        (
            "no-convolution",
            "the result of a new Gather does not reach a Conv with group = 1, directly or through element-wise operators and grouped Convs, because OpenVINO would permute the weights of this Conv wrongly",
        ),
        (
            "turned-last",
            "if the last node is a Transpose, it remains the last node, because runtimes fuse it with a matrix product",
        ),
        ("pays", "the rewrite removes more nodes than it adds"),
    ],
    exact: true,
    operators: REORDERING,
    apply: as_one,
};

/// The most nodes of a chain of movements. Each of the N nodes of a longer one may be the end of a chain, and each looks at all.
const MOST_NODES: usize = 24;

/// The fewest nodes for which it may pay.
const FEWEST_NODES: usize = 3;

/// The most blocks of elements that are told apart. Each is followed through each node, and the new indices take 8 bytes a block.
const MOST_BLOCKS: usize = 1 << 14;

/// How many elements are moved together, at least, where others were before.
const FEWEST_IN_ROW: usize = 8;

/// What a node does to the elements of its operands.
enum Move {
    Layout,
    /// Axis `i` is axis `perm[i]`.
    Turn(Vec<usize>),
    /// Places of axes.
    Take(Vec<Taken>),
    /// One behind the other along an axis.
    Join(usize),
}

/// Places of an axis, in their order, which become axes of this shape.
struct Taken {
    axis: usize,
    places: Vec<usize>,
    shape: Vec<usize>,
}

/// A node that moves elements of these values.
struct Step {
    node: NodeId,
    result: ValueId,
    operands: Vec<ValueId>,
    does: Move,
}

/// The steps that lead up from a result, each before what it reads.
struct Chain {
    steps: Vec<Step>,
    origins: Vec<Origin>,
}

/// A value that the result is made of alone: by so many of the steps, which so many nodes do.
#[derive(Clone, Copy)]
struct Origin {
    source: ValueId,
    steps: usize,
    nodes: usize,
}

fn as_one(place: &Place<'_>) -> Result<Edit, Miss> {
    let &[Some(result)] = place.root()?.outputs() else { return Err(Miss::ROOT) };
    let chain = Chain::up_from(place, result).ok_or(miss!("only-moves"))?;
    let (steps, source, plan) = chain
        .origins
        .iter()
        .rev()
        .find_map(|&Origin { source, steps, nodes }| {
            let steps = chain.steps.get(..steps)?;
            let frames =
                leads(place, source, result).into_iter().filter_map(|lead| Frame::new(place, lead, source, steps));
            let plans = frames.filter_map(|frame| frame.plan(steps, source, result));
            let plan = plans.min_by_key(|plan| plan.nodes).filter(|plan| plan.nodes < nodes)?;
            Some((steps, source, plan))
        })
        .ok_or(miss!("pays"))?;
    let edit = plan.edit(place, source).ok_or(miss!("pays"))?;
    let mut others: Vec<NodeId> = steps.iter().map(|step| step.node).filter(|&node| node != place.id).collect();
    others.dedup();
    Ok(others.into_iter().fold(edit, Edit::removing))
}

impl Chain {
    /// What was computed last is followed up first, so that the ways up meet where they can.
    fn up_from(place: &Place<'_>, result: ValueId) -> Option<Chain> {
        let mut chain = Chain { steps: vec![step(place, place.id, result)?], origins: Vec::new() };
        let mut nodes = vec![place.id];
        let mut open: Vec<ValueId> = Vec::new();
        open.extend(chain.steps.first()?.operands.iter());
        while nodes.len() < MOST_NODES {
            open.sort_unstable();
            open.dedup();
            if let &[source] = open.as_slice()
                && nodes.len() >= FEWEST_NODES
                && may_move(place, source)
            {
                chain.origins.push(Origin { source, steps: chain.steps.len(), nodes: nodes.len() });
            }
            let producer = |&value: &ValueId| place.model.value(value).producer();
            let Some(&latest) =
                open.iter().max_by_key(|&value| producer(value).and_then(|id| place.model.order_of(id)))
            else {
                break;
            };
            let next = producer(&latest).filter(|&id| place.is_read_within(id, &nodes));
            let Some(step) = next.and_then(|id| step(place, id, latest)) else { break };
            open.retain(|&value| value != latest);
            open.extend(step.operands.iter());
            if !nodes.contains(&step.node) {
                nodes.push(step.node);
            }
            chain.steps.push(step);
        }
        (!chain.origins.is_empty()).then_some(chain)
    }
}

impl Place<'_> {
    /// Whether all that reads what a node computes is among these nodes.
    fn is_read_within(&self, id: NodeId, nodes: &[NodeId]) -> bool {
        let results = self.model.node(id).map(Node::outputs).unwrap_or_default();
        results.iter().flatten().all(|&result| self.model.is_read_only_by(result, nodes))
    }
}

/// Whether a value is one whose elements are moved for what they are: no sizes.
fn may_move(place: &Place<'_>, value: ValueId) -> bool {
    let is_unknown = place.fact(value).is_some_and(|fact| fact.content.is_none());
    is_unknown && place.may_be_looked_up(value) && place.shape(value).is_some_and(|dims| dims.len() >= 2)
}

/// What a node does to make this value, if it only moves elements.
fn step(place: &Place<'_>, id: NodeId, result: ValueId) -> Option<Step> {
    let node = place.model.node(id).filter(|node| Some(node.graph()) == place.graph())?;
    let moves = traits_of(place.model, node).moves.filter(|_| node.canonical_domain().is_empty())?;
    let data = node.input(0)?;
    let rank = place.shape(data)?.len();
    let does = match moves {
        Movement::Layout => Move::Layout,
        Movement::Join => {
            let operands = node.inputs().iter().copied().collect::<Option<Vec<_>>>()?;
            let does = Move::Join(place.read(node).axis(rank)?);
            return Some(Step { node: id, result, operands, does });
        }
        _ if node.is("Transpose") => Move::Turn(place.read(node).permutation(rank)?),
        _ if node.is("Gather") => {
            let axis = place.read(node).axis(rank)?;
            Move::Take(vec![looked_up(place, node, axis)?])
        }
        _ if node.is("Slice") => {
            let cuts = cuts_of(place, id)?;
            let taken = cuts.cut().map(|(axis, cut)| Taken::of_cut(axis, cut));
            Move::Take(taken.collect::<Option<_>>()?)
        }
        _ if node.is("Split") => {
            let (axis, cut) = part(place, node, result)?;
            Move::Take(cut.iter().map(|cut| Taken::of_cut(axis, cut)).collect::<Option<_>>()?)
        }
        _ => return None,
    };
    Some(Step { node: id, result, operands: vec![data], does })
}

impl Taken {
    /// The places of a cut.
    fn of_cut(axis: usize, cut: &Cut) -> Option<Taken> {
        let number = |dim: &Dim| dim.as_const();
        let (start, len) = cut.exact.as_ref().and_then(|(start, len)| number(start).zip(number(len)))?;
        let step = cut.range.step?;
        let most = i64::try_from(MOST_BLOCKS).ok()?;
        let at = |k: i64| usize::try_from(start.checked_add(k.checked_mul(step)?)?).ok();
        let places: Vec<usize> = (0..len.min(most.checked_add(1)?)).map(at).collect::<Option<_>>()?;
        let shape = vec![places.len()];
        Some(Taken { axis, places, shape }).filter(|_| len <= most)
    }
}

/// The places that a lookup by constants takes of an axis.
fn looked_up(place: &Place<'_>, node: &Node, axis: usize) -> Option<Taken> {
    let size = usize::try_from(place.shape(node.input(0)?)?.get(axis)?.as_const()?).ok()?;
    let indices = place.constant(node.input(1)?).filter(|indices| indices.len() <= MOST_BLOCKS)?;
    let places = indices.to_i64s()?.iter().map(|&at| counted_in(at, size)).collect::<Option<_>>()?;
    Some(Taken { axis, places, shape: indices.shape().to_vec() })
}

/// What may be in front of all axes that are told apart.
fn leads(place: &Place<'_>, source: ValueId, result: ValueId) -> Vec<Dim> {
    let first = |value: ValueId| place.shape(value).and_then(<[Dim]>::first).cloned();
    let mut leads = vec![Dim::constant(1)];
    for lead in first(result).into_iter().chain(first(source)) {
        if !leads.contains(&lead) && !lead.is_const(0) {
            leads.push(lead);
        }
    }
    leads
}

/// How values are taken apart: all in front, `lead`, is alike, and elements behind stay together in blocks of this size.
struct Frame<'p, 'a> {
    place: &'p Place<'a>,
    lead: Dim,
    block: usize,
    /// The source in blocks.
    source: Vec<usize>,
}

impl<'p, 'a> Frame<'p, 'a> {
    fn new(place: &'p Place<'a>, lead: Dim, source: ValueId, steps: &[Step]) -> Option<Self> {
        let mut frame = Frame { place, lead, block: 1, source: Vec::new() };
        let values = || steps.iter().map(|step| step.result).chain([source]);
        if steps.iter().all(|step| frame.keeps_last(step) == Some(true)) {
            let last = |value: ValueId| frame.sizes(value)?.last().copied();
            let common =
                values().map(last).try_fold(0, |common, size| Some(greatest_common_divisor(common, size? as u64)))?;
            frame.block = usize::try_from(common).ok()?;
        }
        frame.source = frame.blocks_of(source)?;
        Some(frame)
    }

    /// How many elements stand along each axis for one of what is in front.
    fn sizes(&self, value: ValueId) -> Option<Vec<usize>> {
        let (first, rest) = self.place.shape(value)?.split_first()?;
        let first = self.place.scope().quotient(first, &self.lead)?;
        let sizes = [&first].into_iter().chain(rest);
        sizes.map(|dim| usize::try_from(dim.as_const()?).ok().filter(|&size| size > 0)).collect()
    }

    /// How many blocks do.
    fn blocks_of(&self, value: ValueId) -> Option<Vec<usize>> {
        let mut sizes = self.sizes(value)?;
        let last = sizes.last_mut()?;
        *last = last.checked_div(self.block)?;
        Some(sizes)
    }

    /// Whether a node leaves the elements of the last axis beside each other.
    fn keeps_last(&self, step: &Step) -> Option<bool> {
        let last = self.place.shape(*step.operands.first()?)?.len().checked_sub(1)?;
        Some(match &step.does {
            Move::Layout | Move::Join(_) => true,
            Move::Turn(perm) => perm.last() == Some(&last),
            Move::Take(taken) => taken.iter().all(|taken| taken.axis != last),
        })
    }

    /// Whether a node tells apart what is in front.
    fn tells_apart(&self, step: &Step) -> bool {
        match &step.does {
            Move::Layout => false,
            Move::Turn(perm) => perm.first() != Some(&0),
            Move::Take(taken) => taken.iter().any(|taken| taken.axis == 0),
            Move::Join(axis) => *axis == 0,
        }
    }

    /// Which blocks of the source the result is made of.
    fn follow(&self, steps: &[Step], source: ValueId, result: ValueId) -> Option<Blocks> {
        let first = Blocks::of_source(self.source.clone(), MOST_BLOCKS)?;
        let work = first.from.len().checked_mul(steps.len())? as u64;
        self.place.budget.take_work(work).ok()?;
        let mut known = vec![(source, first)];
        let mut order: Vec<&Step> = steps.iter().collect();
        order.sort_by_key(|step| self.place.model.order_of(step.node));
        for step in order {
            if !self.lead.is_const(1) && self.tells_apart(step) {
                return None;
            }
            let find = |value: &ValueId| known.iter().find(|(own, _)| own == value).map(|(_, blocks)| blocks);
            let operands = step.operands.iter().map(find).collect::<Option<Vec<_>>>()?;
            let &data = operands.first()?;
            let shape = self.blocks_of(step.result)?;
            let blocks = match &step.does {
                Move::Layout => data.laid_out(shape.clone())?,
                Move::Turn(perm) => data.turned(perm)?,
                Move::Take(taken) => {
                    let mut blocks = data.clone();
                    for taken in taken {
                        blocks = blocks.taken(taken.axis, &taken.places, &taken.shape, MOST_BLOCKS)?;
                    }
                    blocks
                }
                Move::Join(axis) => Blocks::joined(&operands, *axis, MOST_BLOCKS)?,
            };
            // What is proved of the shape has to be what comes of it.
            (blocks.shape == shape).then_some(())?;
            known.push((step.result, blocks));
        }
        known.into_iter().find(|(own, _)| *own == result).map(|(_, blocks)| blocks)
    }

    /// The shortest way to make the result of the source.
    fn plan(&self, steps: &[Step], source: ValueId, result: ValueId) -> Option<Plan> {
        let from = self.follow(steps, source, result)?.from;
        let (own, goal) = (self.place.shape(source)?, self.place.shape(result)?);
        let all = product(&self.source)?;
        if from.len() == all && from.iter().copied().eq(0..all) {
            let nodes = usize::from(!self.place.same_dims(own, goal));
            return Some(Plan { nodes, before: None, does: Does::Nothing, after: Vec::new() });
        }
        let cuts = steps.iter().any(|step| matches!(step.does, Move::Take(_)));
        let turns = steps.iter().any(|step| matches!(step.does, Move::Turn(_)));
        let is_turned_last = steps.first().is_some_and(|step| matches!(step.does, Move::Turn(_)));
        let digits = digits(&from, all).filter(|digits| turns || self.row_of(digits) >= FEWEST_IN_ROW);
        let turned = digits.and_then(|digits| self.turn(&digits, all, own, goal));
        let turned = turned.filter(|plan| !is_turned_last || self.place.same_dims(&plan.after, goal));
        let found = if cuts && !is_turned_last { lookups(&self.source, &from) } else { Vec::new() };
        let added = added(self.place, result);
        let looked_up = found.into_iter().filter_map(|found| self.lookup(found, own, goal, added));
        turned.into_iter().chain(looked_up).min_by_key(|plan| (plan.nodes, plan.places()))
    }

    /// How many elements a Transpose of these axes moves together.
    fn row_of(&self, digits: &Digits) -> usize {
        let inner = digits.last().filter(|(_, step)| *step == 1).map_or(1, |&(size, _)| size);
        inner.saturating_mul(self.block)
    }

    fn planned(&self, before: Vec<Dim>, does: Does, after: Vec<Dim>, own: &[Dim], goal: &[Dim]) -> Plan {
        let (lays_out, lays_back) = (!self.place.same_dims(&before, own), !self.place.same_dims(&after, goal));
        let nodes = 1 + usize::from(lays_out) + usize::from(lays_back);
        Plan { nodes, before: lays_out.then_some(before), does, after }
    }

    /// `added` are the dims of the result where it is added to something. Transformer optimizers take a lookup before an addition for one of
    /// embeddings, so that a layout comes between.
    fn lookup(&self, found: Lookup, own: &[Dim], goal: &[Dim], added: Option<&[Dim]>) -> Option<Plan> {
        let Lookup { before, behind, places } = found;
        let row = product(self.source.get(behind..)?)?.checked_mul(self.block)?;
        let mut front = own.get(..before)?.to_vec();
        if before == 0 && !self.lead.is_const(1) {
            front.push(self.lead.clone());
        }
        let mut back = own.get(behind..)?.to_vec();
        if back.is_empty() && self.block > 1 {
            back.push(dim(self.block)?);
        }
        let along = dim(product(self.source.get(before..behind)?)?)?;
        let with = |middle: Dim, back: &[Dim]| [front.as_slice(), &[middle], back].concat();
        let count = dim(places.len())?;
        if added.is_some_and(|added| self.place.same_dims(added, &with(count.clone(), &back))) {
            back.insert(0, Dim::constant(1));
        }
        let (from, to) = (with(along, &back), with(count, &back));
        let places = places.iter().map(|&at| i64::try_from(at).ok()).collect::<Option<_>>()?;
        let plan = self.planned(from, Does::Lookup { axis: front.len(), places }, to, own, goal);
        Some(plan).filter(|_| row >= FEWEST_IN_ROW)
    }

    /// The axes of one value in another order: with what is in front as an axis of its own, and as part of the first.
    fn turn(&self, digits: &Digits, all: usize, own: &[Dim], goal: &[Dim]) -> Option<Plan> {
        let mut axes: Vec<(Dim, usize)> = Vec::with_capacity(digits.len().checked_add(2)?);
        if !self.lead.is_const(1) {
            axes.push((self.lead.clone(), all));
        }
        for &(size, step) in digits {
            axes.push((dim(size)?, step));
        }
        let scope = self.place.scope();
        let block = dim(self.block)?;
        match axes.last_mut().filter(|(_, step)| *step == 1) {
            Some((size, _)) => *size = scope.mul(size, &block),
            None if self.block > 1 => axes.push((block, 0)),
            None => {}
        }
        let mut plans = vec![self.turned(&axes, own, goal)?];
        if let [(lead, outer), (size, step), rest @ ..] = axes.as_slice()
            && *outer == all
            && rest.iter().all(|(_, other)| other < step)
        {
            let merged = [&[(scope.mul(lead, size), *step)], rest].concat();
            plans.insert(0, self.turned(&merged, own, goal)?);
        }
        plans.into_iter().min_by_key(|plan| plan.nodes)
    }

    /// Axes in the order of the result, turned from the order in which they stand in the source.
    fn turned(&self, axes: &[(Dim, usize)], own: &[Dim], goal: &[Dim]) -> Option<Plan> {
        let mut order: Vec<usize> = (0..axes.len()).collect();
        order.sort_by_key(|&at| std::cmp::Reverse(axes.get(at).map(|(_, step)| *step)));
        let dims =
            |order: &[usize]| order.iter().map(|&at| Some(axes.get(at)?.0.clone())).collect::<Option<Vec<Dim>>>();
        let perm = (0..axes.len()).map(|at| order.iter().position(|&own| own == at)).collect::<Option<_>>()?;
        let (before, after) = (dims(&order)?, axes.iter().map(|(size, _)| size.clone()).collect());
        Some(self.planned(before, Does::Turn(perm), after, own, goal))
    }
}

/// What makes the result of the source.
struct Plan {
    /// How many nodes that takes.
    nodes: usize,
    /// The layout of the source to begin with, if it is another than it has.
    before: Option<Vec<Dim>>,
    does: Does,
    /// The dims of what comes of it.
    after: Vec<Dim>,
}

enum Does {
    /// Nothing but a layout.
    Nothing,
    Lookup {
        axis: usize,
        places: Vec<i64>,
    },
    Turn(Vec<usize>),
}

impl Plan {
    /// How many numbers say what is looked up.
    fn places(&self) -> usize {
        match &self.does {
            Does::Lookup { places, .. } => places.len(),
            Does::Nothing | Does::Turn(_) => 0,
        }
    }

    fn edit(self, place: &Place<'_>, source: ValueId) -> Option<Edit> {
        let result = place.output(0)?;
        if matches!(self.does, Does::Lookup { .. }) && turns_weights(place, result) {
            return None;
        }
        let scope = place.scope();
        let mut edit = place.edit()?;
        let mut data = source;
        if let Some(dims) = &self.before {
            let laid_out = edit.new_value(source, "laid_out");
            let reshape = place.build(&mut edit, source).reshape_to(scope, source, place.shape(source)?, dims)?;
            edit.insert.push(reshape.output(laid_out));
            data = laid_out;
        }
        let node = match self.does {
            Does::Nothing => return place.reshape_instead(source).ok(),
            Does::Lookup { axis, places } => place.build(&mut edit, data).gather_at(data, Tensor::vector(places), axis),
            Does::Turn(perm) => Build::transpose(data, perm),
        };
        let goal = place.shape(result)?;
        if place.same_dims(&self.after, goal) {
            return place.instead(edit, node).ok();
        }
        let moved = edit.new_value(result, "moved");
        edit.insert.push(node.output(moved));
        let reshape = place.build(&mut edit, result).reshape_to(scope, moved, &self.after, goal)?;
        place.instead(edit, reshape).ok()
    }
}

/// The dims of a value, or of what it is laid out as, where it is added to something.
fn added<'a>(place: &Place<'a>, value: ValueId) -> Option<&'a [Dim]> {
    let mut value = value;
    for _ in 0..MOST_NODES {
        let readers = place.model.users(value);
        let node = |&(id, _): &(NodeId, usize)| place.model.node(id);
        if readers.iter().filter_map(node).any(|node| node.is("Add")) {
            return place.shape(value);
        }
        let [reader] = readers.as_slice() else { return None };
        let layout = node(reader).filter(|node| traits_of(place.model, node).moves == Some(Movement::Layout))?;
        value = layout.output(0)?;
    }
    None
}

fn dim(size: usize) -> Option<Dim> {
    i64::try_from(size).ok().map(Dim::constant)
}
