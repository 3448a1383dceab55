//! Vectorizes element-wise chains that feed one Concat: concatenates their inputs and computes the chain once (SLP vectorization).
//!
//! Law: for an element-wise `f`, `Concat(f(x₁, y₁), …, f(xₖ, yₖ)) = f(Concat(x₁, …, xₖ), Concat(y₁, …, yₖ))` along the last axis, where
//! each value has size 1. A value that is the same in all lanes, and has size 1 or no axis there, is broadcast. The law also holds for
//! values that are unsqueezed before the Concat: they are lanes of a tensor with one axis more. It also holds for values that a Reshape
//! flattens before the Concat: the axis of the lanes precedes the flattened axes.
//!
//! The search begins at the Concat and follows equal operators upwards, as compilers do for straight-line code. It ends at columns of one
//! tensor, which need no Concat. Detectors compute corners, centres and sizes of boxes, and sines of positions, separately for both
//! directions. If not all lanes are isomorphic, equally long runs of them may be.

use rustc_hash::{FxHashMap, FxHashSet};

use super::build::{Build, rebuilt_alike};
use super::miss::{Miss, ensure, first_of};
use super::place::Place;
use super::rule::{Rule, miss};
use super::slices::cuts::cuts_of;
use crate::dim::Dim;
use crate::ir::{Edit, NewNode, Node, NodeId, ValueId};
use crate::ops::traits::{Operands, Variation, traits_of};
use crate::rewrite::limits::{DEPTH, READERS};
use crate::tensor::{DType, Tensor};

pub(super) const RULES: &[Rule] = &[Rule {
    name: "concat-of-functions",
    law: "Concat(f(x₁, y₁), …, f(xₖ, yₖ)) = f(Concat(x₁, …, xₖ), Concat(y₁, …, yₖ))",
    sentence: "Vectorizes element-wise chains that feed one Concat: concatenates the inputs and runs the chain once.",
    premises: &[
        (
            "one-place",
            "the last axis of each operand of the Concat has size 1, or the node before the Concat inserts or flattens this axis",
        ),
        ("by-element", "f is element-wise, and the operands of f are floats, because integers may be dims"),
        (
            "alike",
            "all chains consist of the same operators. The other operands of corresponding operators are equal, or have the same shape",
        ),
        ("read-together", "the values of each chain have no other consumer, so that no value is computed twice"),
        ("pays", "the rewrite removes more nodes than it adds"),
    ],
    exact: false,
    operators: &["Concat"],
    apply: concat_of_functions,
}];

/// The most attempts for one Concat. Each attempt spares the shared nodes that the one before found, and finds at least one more. So
/// without the limit a Concat over N nodes takes N².
const MOST_TRIALS: usize = 4;

/// The most groups of lanes that are visited for one Concat, failed ones included. Groups branch at each operand. So without the limit a
/// network of depth D takes 2^D.
const MOST_GROUPS: usize = 256;

fn concat_of_functions(place: &Place<'_>) -> Result<Edit, Miss> {
    let node = place.root()?;
    let output = node.output(0).ok_or(Miss::ROOT)?;
    let lanes: Vec<ValueId> = node.inputs().iter().copied().collect::<Option<_>>().ok_or(Miss::ROOT)?;
    let last = place.dims(output)?.len().checked_sub(1).ok_or(Miss::COMPUTABLE)?;
    let fits = (2..=READERS).contains(&lanes.len()) && place.dtype(output).is_some_and(DType::is_float);
    ensure(fits, miss!("by-element"))?;
    ensure(place.opset.everything_broadcasts(), Miss::EXPRESSIBLE)?;
    ensure(
        place.read(node).axis(last.checked_add(1).ok_or(Miss::COMPUTABLE)?).ok_or(Miss::ROOT)? == last,
        miss!("one-place"),
    )?;
    if let Ok(edit) = run_together(place, &lanes, output) {
        return Ok(edit);
    }
    let one_place = |&lane: &ValueId| place.shape(lane).and_then(<[Dim]>::last).is_some_and(|dim| dim.is_const(1));
    ensure(lanes.iter().all(one_place), miss!("one-place"))?;
    let bare: Option<Vec<ValueId>> = lanes.iter().map(|&lane| without_one(place, lane)).collect();
    let (lanes, axis) = match bare {
        Some(bare) => (bare, Axis::New(0)),
        None => (lanes, Axis::Last),
    };
    // All lanes as one group, or groups of two and more lanes.
    let runs = (1..=lanes.len() / 2).filter(|runs| lanes.len().is_multiple_of(*runs));
    first_of(runs.map(|runs| {
        let groups: Vec<&[ValueId]> = lanes.chunks(lanes.len().checked_div(runs).unwrap_or(1)).collect();
        packed(place, |mut pack| {
            let mut values = Vec::with_capacity(groups.len());
            for group in &groups {
                values.push(pack.computed(group, axis, DEPTH)?);
            }
            pack.finish(output, last, &values)
        })
    }))
}

/// The result of a pack: an edit, or the nodes that it would compute a second time. The list is empty if the edit saves no node.
type Packed = Result<Edit, Vec<NodeId>>;

/// Returns the edit of a pack that computes no node a second time. Nodes with other consumers are kept, and their results are concatenated.
fn packed<'a>(place: &Place<'a>, pack: impl Fn(Pack<'_, 'a>) -> Option<Packed>) -> Result<Edit, Miss> {
    let mut kept = FxHashSet::default();
    for _ in 0..MOST_TRIALS {
        match Pack::new(place, &kept).and_then(&pack) {
            Some(Ok(edit)) => return Ok(edit),
            Some(Err(read)) if read.is_empty() => return Err(miss!("pays")),
            Some(Err(read)) => kept.extend(read),
            None => break,
        }
    }
    Err(if kept.is_empty() { miss!("alike") } else { miss!("read-together") })
}

/// Packs lanes whose last axes are flattened before the Concat: from `[…, a, b]` to `[…, a·b]`.
fn run_together(place: &Place<'_>, lanes: &[ValueId], output: ValueId) -> Result<Edit, Miss> {
    let bare = lanes
        .iter()
        .map(|&lane| place.layout(lane)?.1.input(0))
        .collect::<Option<Vec<ValueId>>>()
        .ok_or(miss!("read-together").of(output))?;
    let (&first, &lane) = bare.first().zip(lanes.first()).ok_or(miss!("read-together"))?;
    let (from, to) = (place.dims(first)?, place.dims(lane)?);
    let front = to.len().checked_sub(1).ok_or(Miss::COMPUTABLE)?;
    let same =
        from.iter().zip(to.get(..front).ok_or(miss!("read-together"))?).all(|(a, b)| place.scope().eq(a, b).is_yes());
    let behind = from.len().checked_sub(front).filter(|&behind| same && behind > 1).ok_or(miss!("read-together"))?;
    ensure(bare.iter().all(|&own| place.same_shape(own, first)), miss!("read-together").of(first))?;
    let mut apart = from.to_vec();
    apart.insert(front, Dim::constant(i64::try_from(lanes.len()).or(Err(Miss::COMPUTABLE))?));
    let to = place.dims(output)?;
    packed(place, |mut pack| {
        let value = pack.computed(&bare, Axis::New(behind), DEPTH)?;
        let node = place.build(&mut pack.edit, output).reshape_to(place.scope(), value, &apart, to)?;
        let value = pack.edit.new_value(output, "lanes");
        pack.push(node, value, 1)?;
        pack.finish(output, front, &[value])
    })
}

/// Returns the data of a layout that only appends an axis of size 1.
fn without_one(place: &Place<'_>, lane: ValueId) -> Option<ValueId> {
    let input = place.layout(lane)?.1.input(0)?;
    let (last, front) = place.shape(lane)?.split_last()?;
    (last.is_const(1) && place.same_dims(place.shape(input)?, front)).then_some(input)
}

/// The axis along which the lanes are concatenated.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Axis {
    /// The last axis of each lane, of size 1.
    Last,
    /// A new axis, followed by this many axes of the lanes.
    New(usize),
}

/// The layout of the tensor whose columns are lanes.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Layout {
    Itself,
    /// With an axis of size 1 before the last axis.
    Rows,
    /// With the last axis split into parts of this size.
    Parts(i64),
}

/// A column of a tensor, and the node that extracts it.
struct Column {
    of: ValueId,
    layout: Layout,
    width: i64,
    at: i64,
    taken_by: NodeId,
}

/// Lanes under construction, from the Concat up to their sources.
struct Pack<'p, 'a> {
    place: &'p Place<'a>,
    edit: Edit,
    /// The packed value of each list of lanes.
    known: FxHashMap<(Vec<ValueId>, Axis), ValueId>,
    /// Values in other layouts than their own.
    laid_out: FxHashMap<(ValueId, Layout), ValueId>,
    /// The producers of single lanes, and the subset that computes.
    met: Vec<NodeId>,
    computing: Vec<NodeId>,
    /// Nodes with other consumers, whose results are concatenated instead of recomputed.
    kept: FxHashSet<NodeId>,
    /// The number of added nodes.
    made: usize,
    /// The number of visited groups of lanes.
    asked: usize,
}

impl<'p, 'a> Pack<'p, 'a> {
    fn new(place: &'p Place<'a>, kept: &FxHashSet<NodeId>) -> Option<Self> {
        let operands = place.node()?.inputs().iter().flatten();
        let met = operands.filter_map(|&lane| place.model.value(lane).producer()).collect();
        let (known, laid_out) = (FxHashMap::default(), FxHashMap::default());
        let (edit, kept) = (place.edit()?, kept.clone());
        Some(Pack { place, edit, known, laid_out, met, computing: Vec::new(), kept, made: 0, asked: 0 })
    }

    /// Concatenates the packed groups in place of the Concat, if this saves nodes.
    fn finish(mut self, output: ValueId, last: usize, values: &[ValueId]) -> Option<Packed> {
        let gone = self.gone();
        let again: Vec<NodeId> = self.computing.iter().copied().filter(|id| !gone.contains(id)).collect();
        if !again.is_empty() {
            return Some(Err(again));
        }
        if values.len() == 1 {
            let root = self.edit.insert.last_mut().filter(|node| node.outputs == [values.first().copied()])?;
            root.outputs = vec![Some(output)];
        } else {
            self.made = self.made.checked_add(1)?;
            self.edit.insert.push(Build::concat(values.iter().copied(), last).output(output));
        }
        self.edit.remove.push(self.place.id);
        Some(if self.made < gone.len() { Ok(self.edit) } else { Err(Vec::new()) })
    }

    /// Returns the dead nodes after the edit: the Concat, and the producers of lanes without other consumers.
    fn gone(&self) -> Vec<NodeId> {
        let model = self.place.model;
        let mut gone = vec![self.place.id];
        let mut waiting = self.met.clone();
        waiting.sort_unstable();
        waiting.dedup();
        loop {
            let is_spared = |id: &NodeId| {
                let mut results = model.node(*id)?.outputs().iter().flatten();
                Some(results.all(|&result| model.is_unused(result) || model.is_read_only_by(result, &gone)))
            };
            let (spared, rest): (Vec<NodeId>, Vec<NodeId>) =
                waiting.iter().copied().partition(|id| is_spared(id) == Some(true));
            if spared.is_empty() {
                return gone;
            }
            waiting = rest;
            gone.extend(spared);
        }
    }

    /// Returns the packed value of these lanes.
    fn pack(&mut self, lanes: &[ValueId], axis: Axis, depth: usize) -> Option<ValueId> {
        let key = (lanes.to_vec(), axis);
        if let Some(&known) = self.known.get(&key) {
            return Some(known);
        }
        let &first = lanes.first()?;
        let made = if lanes.iter().all(|&lane| lane == first) {
            self.same(first, axis)?
        } else if lanes.iter().all(|&lane| self.place.constant(lane).is_some()) {
            self.numbers(lanes, axis)?
        } else {
            let (nodes, made) = (self.edit.insert.len(), self.made);
            let (met, computing) = (self.met.len(), self.computing.len());
            let (known, laid_out) = (self.known.clone(), self.laid_out.clone());
            match self.computed(lanes, axis, depth) {
                Some(all) => all,
                None => {
                    // Reverts the failed attempt.
                    self.edit.insert.truncate(nodes);
                    self.met.truncate(met);
                    self.computing.truncate(computing);
                    (self.made, self.known, self.laid_out) = (made, known, laid_out);
                    self.columns(lanes, axis).or_else(|| self.beside(lanes, axis))?
                }
            }
        };
        self.known.insert(key, made);
        Some(made)
    }

    /// Packs lanes that are all the same value.
    fn same(&mut self, value: ValueId, axis: Axis) -> Option<ValueId> {
        let shape = self.place.shape(value)?;
        match axis {
            Axis::Last => shape.last().is_none_or(|dim| dim.is_const(1)).then_some(value),
            Axis::New(behind) if shape.len() <= behind => Some(value),
            Axis::New(_) => self.with_axis(value, axis),
        }
    }

    /// Unsqueezes the axis of the lanes.
    fn with_axis(&mut self, value: ValueId, axis: Axis) -> Option<ValueId> {
        let Axis::New(behind) = axis else { return None };
        let at = i64::try_from(self.place.shape(value)?.len().checked_sub(behind)?).ok()?;
        let wide = self.edit.new_value(value, "lanes");
        let node = self.place.build(&mut self.edit, wide).unsqueeze(value, vec![at]);
        self.push(node, wide, usize::from(self.place.constant(value).is_none()))
    }

    /// Packs constants, one for each lane.
    fn numbers(&mut self, lanes: &[ValueId], axis: Axis) -> Option<ValueId> {
        let constants: Vec<&Tensor> = lanes.iter().map(|&lane| self.place.constant(lane)).collect::<Option<_>>()?;
        let mut shape = constants.first()?.shape().to_vec();
        if !constants.iter().all(|own| own.shape() == shape) {
            return None;
        }
        // Scalars are broadcast along the axes that they lack.
        let at = match axis {
            Axis::Last if shape.is_empty() => 0,
            Axis::Last => shape.len().checked_sub(1)?,
            Axis::New(behind) => {
                while shape.len() < behind {
                    shape.insert(0, 1);
                }
                shape.len().checked_sub(behind)?
            }
        };
        if axis != Axis::Last || shape.is_empty() {
            shape.insert(at, 1);
        }
        if shape.get(at) != Some(&1) {
            return None;
        }
        let laid: Vec<Tensor> = constants.iter().map(|own| own.reshape(&shape).ok()).collect::<Option<_>>()?;
        let all = self.place.concatenated(&laid.iter().collect::<Vec<_>>(), at)?;
        Some(self.edit.constant(*lanes.first()?, "lanes", all))
    }

    /// Packs lanes that are computed by the same operator.
    fn computed(&mut self, lanes: &[ValueId], axis: Axis, depth: usize) -> Option<ValueId> {
        self.asked = self.asked.saturating_add(1);
        let depth = depth.checked_sub(1).filter(|_| self.asked <= MOST_GROUPS)?;
        let &first = lanes.first()?;
        let is_kept =
            |&lane: &ValueId| self.place.model.value(lane).producer().is_some_and(|id| self.kept.contains(&id));
        let fits = self.place.dtype(first)?.is_float() && self.have_one_shape(lanes, first);
        if !fits || lanes.iter().any(is_kept) {
            return None;
        }
        match axis {
            Axis::New(behind) if self.place.producer(first, "Concat").is_some() => self.joined(lanes, behind, depth),
            _ => self.pointwise(lanes, axis, depth),
        }
    }

    /// Packs lanes that are each a Concat of parts.
    fn joined(&mut self, lanes: &[ValueId], behind: usize, depth: usize) -> Option<ValueId> {
        let place = self.place;
        let &first = lanes.first()?;
        let rank = place.shape(first)?.len();
        let nodes: Vec<(NodeId, &Node)> =
            lanes.iter().map(|&lane| place.producer(lane, "Concat")).collect::<Option<_>>()?;
        let &(_, lead) = nodes.first()?;
        let along = place.read(lead).axis(rank)?;
        let alike =
            |node: &Node| place.read(node).axis(rank) == Some(along) && node.inputs().len() == lead.inputs().len();
        if !nodes.iter().all(|&(_, node)| alike(node)) {
            return None;
        }
        let mut parts = Vec::with_capacity(lead.inputs().len());
        for slot in 0..lead.inputs().len() {
            let own: Vec<ValueId> = nodes.iter().map(|(_, node)| node.input(slot)).collect::<Option<_>>()?;
            // A part that is the same in all lanes would have to be repeated.
            if own.iter().all(|part| own.first() == Some(part)) {
                return None;
            }
            parts.push(self.pack(&own, Axis::New(behind), depth)?);
        }
        let ids = nodes.iter().map(|&(id, _)| id);
        self.met.extend(ids.clone());
        self.computing.extend(ids);
        let all = self.edit.new_value(first, "lanes");
        let at = if along < rank.checked_sub(behind)? { along } else { along.checked_add(1)? };
        self.push(Build::concat(parts, at), all, 1)
    }

    /// Packs lanes that are results of element-wise operators.
    fn pointwise(&mut self, lanes: &[ValueId], axis: Axis, depth: usize) -> Option<ValueId> {
        let place = self.place;
        let &first = lanes.first()?;
        let producer = |&lane: &ValueId| place.producer_with(lane, |traits| traits.pointwise.is_some());
        let nodes: Vec<(NodeId, &Node)> = lanes.iter().map(producer).collect::<Option<_>>()?;
        let &(_, lead) = nodes.first()?;
        let (dtype, traits) = (place.dtype(first)?, traits_of(place.model, lead));
        let operands = dtype_of(place, lead)?;
        let may_vary = traits.variation(dtype).max(traits.variation(operands)) == Variation::Values;
        if !operands.is_float() || may_vary || !are_alike(&nodes) {
            return None;
        }
        let mut inputs = lead.inputs().to_vec();
        let slots = match traits.pointwise?.operands {
            Operands::First => 0..1,
            Operands::Broadcast if traits.is_broadcasting(place.opset.version()) => 0..inputs.len(),
            _ => return None,
        };
        let is_own = |slot: &usize| nodes.iter().any(|(_, node)| node.input(*slot) != lead.input(*slot));
        let differs = |slots: std::ops::Range<usize>| slots.into_iter().any(|slot| is_own(&slot));
        // Operands that are parameters of the operator are the same in all lanes.
        let told = (slots.end..inputs.len()).filter(is_own).all(|slot| {
            let constant = |node: &Node| place.constant(node.input(slot)?);
            let lead = constant(lead);
            lead.is_some_and(|lead| nodes.iter().all(|(_, node)| constant(node).is_some_and(|own| own.same(lead))))
        });
        if !told || !differs(slots.clone()) {
            return None;
        }
        for slot in slots {
            let own: Vec<ValueId> = nodes.iter().map(|(_, node)| node.input(slot)).collect::<Option<_>>()?;
            *inputs.get_mut(slot)? = Some(self.pack(&own, axis, depth)?);
        }
        let ids = nodes.iter().map(|&(id, _)| id);
        self.met.extend(ids.clone());
        self.computing.extend(ids);
        let all = self.edit.new_value(first, "lanes");
        let node = NewNode { inputs, ..NewNode::like(lead) };
        self.push(node, all, 1)
    }

    fn have_one_shape(&self, lanes: &[ValueId], first: ValueId) -> bool {
        lanes
            .iter()
            .all(|&lane| self.place.dtype(lane) == self.place.dtype(first) && self.place.same_shape(lane, first))
    }

    /// Packs lanes that are the columns of one tensor.
    fn columns(&mut self, lanes: &[ValueId], axis: Axis) -> Option<ValueId> {
        let is_new = match axis {
            Axis::Last => false,
            Axis::New(0) => true,
            Axis::New(_) => return None,
        };
        let columns: Vec<Column> = lanes.iter().map(|&lane| self.column(lane, is_new)).collect::<Option<_>>()?;
        let lead = columns.first()?;
        let alike = |own: &Column| own.of == lead.of && own.layout == lead.layout && own.width == lead.width;
        if !columns.iter().all(alike) || !self.have_one_shape(lanes, *lanes.first()?) {
            return None;
        }
        let axis = self.place.shape(lead.of)?.len().checked_sub(1)?;
        let axis = if lead.layout == Layout::Itself { axis } else { axis.checked_add(1)? };
        let places: Vec<i64> = columns.iter().map(|column| column.at).collect();
        let whole = self.lay_out(lead.of, lead.layout.clone(), lead.width)?;
        self.met.extend(columns.iter().map(|column| column.taken_by));
        let follow = places.windows(2).all(|pair| matches!(pair, [a, b] if a.checked_add(1) == Some(*b)));
        if follow && i64::try_from(places.len()).ok() == Some(lead.width) {
            return Some(whole);
        }
        let taken = self.edit.new_value(*lanes.first()?, "lanes");
        let (first, last) = (*places.first()?, *places.last()?);
        let mut build = self.place.build(&mut self.edit, taken);
        let node = match follow {
            true => {
                let along = super::build::axes([axis]);
                build.slice(whole, vec![first], vec![last.checked_add(1)?], along, vec![1])?
            }
            false => build.gather_at(whole, Tensor::vector(places), axis),
        };
        self.push(node, taken, 1)
    }

    /// Returns the column of a tensor that a lane is.
    fn column(&self, lane: ValueId, is_new: bool) -> Option<Column> {
        let place = self.place;
        let taken_by = place.model.value(lane).producer()?;
        let node = place.model.node(taken_by).filter(|node| Some(node.graph()) == place.graph())?;
        let (of, shape) = (node.input(0)?, place.shape(lane)?);
        let dims = place.shape(of)?;
        let (last, width) = (dims.len().checked_sub(1)?, dims.last()?.as_const()?);
        let with = |layout: Layout, width: i64, at: i64| Some(Column { of, layout, width, at, taken_by });
        let kept = if is_new { Layout::Rows } else { Layout::Itself };
        if node.is("Gather") && place.read(node).axis(dims.len())? == last {
            let index = place.constant(node.input(1)?)?;
            let &[at] = index.to_i64s()?.as_slice() else { return None };
            let at = if at < 0 { at.checked_add(width)? } else { at };
            // A Gather of a scalar index from a vector gives a scalar.
            let is_dropped = index.rank() == 0 && (is_new || shape.is_empty());
            let layout = if is_dropped { Layout::Itself } else { kept };
            return ((0..width).contains(&at) && (is_dropped || index.rank() == 1)).then(|| with(layout, width, at))?;
        }
        if node.is("Split") && place.read(node).axis(dims.len())? == last && shape.last()?.is_const(1) {
            let parts: Vec<ValueId> = node.outputs().iter().copied().collect::<Option<_>>()?;
            let before = parts.iter().take_while(|&&part| part != lane);
            let sizes = before.map(|&part| place.shape(part)?.last()?.as_const()).collect::<Option<Vec<i64>>>()?;
            return with(kept, width, sizes.iter().sum());
        }
        if !node.is("Slice") {
            return None;
        }
        let cuts = cuts_of(place, taken_by)?;
        let mut cut = cuts.cut();
        let ((axis, cut), None) = (cut.next()?, cut.next()) else { return None };
        let (start, len) = cut.exact.as_ref()?;
        let (start, len, step) = (start.as_const()?, len.as_const()?, cut.range.step?);
        if axis != last || step < 1 {
            return None;
        }
        if len == 1 {
            return with(kept, width, start);
        }
        let is_part = is_new && start < step && len.checked_mul(step) == Some(width);
        is_part.then(|| with(Layout::Parts(step), step, start))?
    }

    /// Returns a value in another layout.
    fn lay_out(&mut self, value: ValueId, layout: Layout, width: i64) -> Option<ValueId> {
        if layout == Layout::Itself {
            return Some(value);
        }
        if let Some(&known) = self.laid_out.get(&(value, layout.clone())) {
            return Some(known);
        }
        let from = self.place.shape(value)?;
        let (last, front) = from.split_last()?;
        let parts = match layout {
            Layout::Parts(size) => last.as_const()?.checked_div(size)?,
            _ => 1,
        };
        let mut to = front.to_vec();
        to.extend([Dim::constant(parts), Dim::constant(width)]);
        let made = self.edit.new_value(value, "lanes");
        let mut build = self.place.build(&mut self.edit, made);
        let node = match layout {
            Layout::Parts(_) => build.reshape_to(self.place.scope(), value, from, &to)?,
            _ => build.unsqueeze(value, vec![i64::try_from(front.len()).ok()?]),
        };
        self.laid_out.insert((value, layout), made);
        self.push(node, made, 1)
    }

    /// Packs lanes with a Concat of their values.
    fn beside(&mut self, lanes: &[ValueId], axis: Axis) -> Option<ValueId> {
        let &first = lanes.first()?;
        let shape = self.place.shape(first)?;
        if !self.have_one_shape(lanes, first) {
            return None;
        }
        let (parts, at) = match axis {
            Axis::Last => (
                lanes.to_vec(),
                shape.len().checked_sub(1).filter(|_| shape.last().is_some_and(|dim| dim.is_const(1)))?,
            ),
            Axis::New(behind) => {
                let wide = lanes.iter().map(|&lane| self.with_axis(lane, axis)).collect::<Option<Vec<ValueId>>>()?;
                (wide, shape.len().checked_sub(behind)?)
            }
        };
        let all = self.edit.new_value(first, "lanes");
        self.push(Build::concat(parts, at), all, 1)
    }

    /// Adds a node that counts as `count` nodes.
    fn push(&mut self, node: NewNode, output: ValueId, count: usize) -> Option<ValueId> {
        self.edit.insert.push(node.output(output));
        self.made = self.made.checked_add(count)?;
        Some(output)
    }
}

/// Returns `true` if the nodes have the same operator, the same attributes, and one result each.
fn are_alike(nodes: &[(NodeId, &Node)]) -> bool {
    let Some(&(_, lead)) = nodes.first() else { return false };
    nodes.iter().all(|&(_, node)| {
        let same = node.is(&lead.op_type) && rebuilt_alike(lead, node);
        same && node.inputs().len() == lead.inputs().len() && node.outputs().len() == 1
    })
}

/// Returns the type of a node's first operand.
fn dtype_of(place: &Place<'_>, node: &Node) -> Option<DType> {
    place.dtype(node.input(0)?)
}
