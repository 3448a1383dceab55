//! Programs of movements as nodes of the operator set in force.
//!
//! A constant operand states each size by the conventions of [`size_operand`]. Where constants cannot state a size, the operand of a node that
//! the edit removes is read again if it holds the same sizes.

use smallvec::SmallVec;

use super::Programs;
use super::tree::Tree;
use crate::dim::{Dim, Operation, Scope};
use crate::index_map::{AxisRange, BlockMode, Fill, Movement, Operand, Program, Shape, Step, holds_equal};
use crate::ir::{Attribute, Edit, NewNode, NodeId, ValueId};
use crate::ops::size_operand;
use crate::rewrite::build::{Build, axes, rebuilt};
use crate::rewrite::miss::Miss;
use crate::rewrite::place::Place;
use crate::slicing::{self, Bound, Range, Reading, SliceRule, onnx};
use crate::tensor::{DType, Tensor};

/// Writes the programs of a tree's results.
pub(super) struct Spelling<'p, 'a> {
    place: &'p Place<'a>,
    tree: &'p Tree,
}

/// The results of a step: their values and shapes.
type Results = SmallVec<[(ValueId, Shape); 1]>;

impl<'p, 'a> Spelling<'p, 'a> {
    pub fn new(place: &'p Place<'a>, tree: &'p Tree) -> Self {
        Spelling { place, tree }
    }

    /// The edit that replaces the tree.
    pub fn edit(&self, programs: &Programs, removed: &[NodeId]) -> Result<Edit, Miss> {
        let place = self.place;
        let others = removed.iter().copied().filter(|&id| id != place.id);
        if let ([program], [(result, _)]) = (programs.as_slice(), self.tree.results.as_slice())
            && let Operand::Source(source) = program.result
            && place.output(0) == Some(*result)
        {
            let &leaf = self.tree.leaves.get(source).ok_or(Miss::EXPRESSIBLE)?;
            return Ok(others.fold(place.forward(leaf)?, Edit::removing));
        }
        let mut edit = others.fold(place.begin()?.removing(place.id), Edit::removing);
        for (program, (result, _)) in programs.iter().zip(&self.tree.results) {
            self.write(&mut edit, program, *result)?;
        }
        let old = |node: &NewNode| {
            let mut nodes = removed.iter().filter_map(|&id| place.model.node(id));
            nodes.find(|old| old.is(&node.op_type))
        };
        for node in &mut edit.insert {
            if let Some(old) = old(node) {
                *node = rebuilt(old, std::mem::take(node));
            }
        }
        if let Some(last) = edit.insert.last_mut() {
            last.name = place.root()?.name.clone();
        }
        Ok(edit)
    }

    /// Adds the nodes that compute a result.
    fn write(&self, edit: &mut Edit, program: &Program, result: ValueId) -> Result<(), Miss> {
        let place = self.place;
        let mut done: Vec<Results> = Vec::with_capacity(program.steps.len());
        for (at, step) in program.steps.iter().enumerate() {
            let name = |edit: &mut Edit, output: usize, operand: Operand, suffix: &'static str| {
                let is_result = program.result == operand || program.result == Operand::Part(at, output);
                if is_result { result } else { edit.new_value(result, suffix) }
            };
            match step {
                Step::Movement(movement, operands) => {
                    let operands: Results = operands
                        .iter()
                        .map(|&operand| self.operand(&done, operand))
                        .collect::<Option<_>>()
                        .ok_or(Miss::EXPRESSIBLE)?;
                    let shapes: Vec<Shape> = operands.iter().map(|(_, shape)| shape.clone()).collect();
                    let map = movement.map(place.scope(), &shapes).or(Err(Miss::EXPRESSIBLE))?;
                    let shape: Shape = map.result().into();
                    let node = self.node(edit, movement, &operands, &shape, result);
                    let value = name(edit, 0, Operand::Step(at), "moved");
                    edit.insert.push(node.ok_or(Miss::EXPRESSIBLE)?.output(value));
                    done.push(std::iter::once((value, shape)).collect());
                }
                Step::Split { operand, axis, sizes } => {
                    let (data, shape) = self.operand(&done, *operand).ok_or(Miss::EXPRESSIBLE)?;
                    let numbers = sizes.iter().map(Dim::as_const).collect::<Option<Vec<i64>>>();
                    let split = numbers.and_then(|sizes| place.build(edit, result).split(data, *axis, sizes));
                    let mut node = split.ok_or(Miss::EXPRESSIBLE)?;
                    let mut parts = Results::new();
                    for (output, size) in sizes.iter().enumerate() {
                        let value = name(edit, output, Operand::Part(at, output), "part");
                        node = node.output(value);
                        let mut own = shape.clone();
                        *own.get_mut(*axis).ok_or(Miss::EXPRESSIBLE)? = size.clone();
                        parts.push((value, own));
                    }
                    edit.insert.push(node);
                    done.push(parts);
                }
            }
        }
        if let Operand::Source(source) = program.result {
            edit.replace.push((result, *self.tree.leaves.get(source).ok_or(Miss::EXPRESSIBLE)?));
        }
        Ok(())
    }

    fn operand(&self, done: &[Results], operand: Operand) -> Option<(ValueId, Shape)> {
        match operand {
            Operand::Source(source) => {
                let &leaf = self.tree.leaves.get(source)?;
                Some((leaf, self.tree.shape(self.place, leaf)?))
            }
            Operand::Step(at) => done.get(at)?.first().cloned(),
            Operand::Part(at, output) => done.get(at)?.get(output).cloned(),
        }
    }

    /// The node of a movement, without results. `None` if the operator set, or constants, cannot express it.
    fn node(
        &self,
        edit: &mut Edit,
        movement: &Movement,
        operands: &[(ValueId, Shape)],
        shape: &[Dim],
        like: ValueId,
    ) -> Option<NewNode> {
        let place = self.place;
        if let Movement::Concat(axis) = movement {
            return Some(Build::concat(operands.iter().map(|&(value, _)| value), *axis));
        }
        if let Movement::Filled(_, fill) = movement {
            let sizes = self.vector(edit, "sizes", shape, like)?;
            let value = Attribute::from(self.element(*fill)?.reshape(&[1]).ok()?);
            let node = NewNode::new("ConstantOfShape", [Some(sizes)]).with("value", value);
            return place.opset.has("ConstantOfShape").then_some(node);
        }
        let &(data, ref from) = operands.first()?;
        match movement {
            Movement::Slice(ranges) => self.slice(edit, data, from, ranges),
            Movement::Transpose(perm) => Some(Build::transpose(data, perm.iter().copied())),
            Movement::Reshape(_) => self.reshape(edit, data, from, shape, like),
            Movement::Expand(_) => self.expand(edit, data, from, shape, like),
            Movement::Tile(repeats) => {
                let counts = self.vector(edit, "repeats", repeats, like)?;
                let has_counts = place.opset.cast_by_number_and_tile_by_axis();
                has_counts.then(|| NewNode::new("Tile", [Some(data), Some(counts)]))
            }
            Movement::Gather { axis, shape, indices } => {
                let sizes = shape.iter().map(|&size| usize::try_from(size).ok()).collect::<Option<Vec<_>>>()?;
                let is_counted = indices.iter().all(|&index| index >= 0) || place.opset.counts_from_the_end();
                is_counted.then_some(())?;
                let indices = Tensor::vector(indices.clone()).reshape(&sizes).ok()?;
                Some(place.build(edit, like).gather_at(data, indices, *axis))
            }
            Movement::Lookup { axis, .. } => self.lookup(edit, data, operands.get(1)?.0, *axis),
            Movement::Pad { before, after, fill } => self.pad(edit, data, (before, after), *fill, like),
            Movement::SpaceToDepth(block) => Some(NewNode::new("SpaceToDepth", [Some(data)]).with("blocksize", *block)),
            Movement::DepthToSpace(block, mode) => {
                let node = NewNode::new("DepthToSpace", [Some(data)]).with("blocksize", *block);
                match mode {
                    BlockMode::DepthColumnRow => Some(node),
                    BlockMode::ColumnRowDepth => {
                        (place.opset.version() >= 11).then(|| node.with("mode", Attribute::String("CRD".into())))
                    }
                }
            }
            _ => None,
        }
    }

    /// A Slice by constants, or by the bounds of a Slice in the tree.
    fn slice(&self, edit: &mut Edit, data: ValueId, from: &[Dim], ranges: &[Option<AxisRange>]) -> Option<NewNode> {
        let (place, scope) = (self.place, self.place.scope());
        let stated = from.iter().zip(ranges).map(|(dim, range)| match range {
            None => Some(None),
            Some(range) => range_by_numbers(scope, dim, range).map(Some),
        });
        if let Some(stated) = stated.collect::<Option<Vec<_>>>() {
            return place.build(edit, data).slice_of_ranges(data, &stated);
        }
        let cut = || ranges.iter().enumerate().filter_map(|(axis, range)| Some((axis, range.as_ref()?)));
        if cut().any(|(_, range)| range.step < 1) {
            return None;
        }
        let starts: Vec<Dim> = cut().map(|(_, range)| range.start.clone()).collect();
        let end = |range: &AxisRange| scope.add(&range.start, &scope.mul(&Dim::constant(range.step), &range.len));
        let ends: Vec<Dim> = cut().map(|(_, range)| end(range)).collect();
        let steps = cut().map(|(_, range)| range.step).collect();
        let along = axes(cut().map(|(axis, _)| axis));
        let starts = self.vector(edit, "starts", &starts, data)?;
        let ends = self.vector(edit, "ends", &ends, data)?;
        place.build(edit, data).slice_between(data, starts, ends, along, steps)
    }

    /// A Gather by an operand, or a Slice by the bounds of a Slice of the tree.
    fn lookup(&self, edit: &mut Edit, data: ValueId, positions: ValueId, axis: usize) -> Option<NewNode> {
        let place = self.place;
        let Some(&(_, own)) = self.tree.positions.iter().find(|(value, _)| *value == positions) else {
            return Some(Build::gather(data, positions, axis));
        };
        let (_, slice) = place.producer(positions, "Slice")?;
        let mut inputs = slice.inputs().to_vec();
        *inputs.first_mut()? = Some(data);
        let has_axes = inputs.get(3).is_some_and(Option::is_some);
        let is_counted =
            own == axis && (!has_axes || place.const_ints((*inputs.get(3)?)?)? == [i64::try_from(axis).ok()?]);
        if !is_counted {
            let axis = i64::try_from(axis).ok()?;
            let axes = match place.dtype(slice.input(1)?)? {
                DType::Int32 => Tensor::vector(vec![i32::try_from(axis).ok()?]),
                _ => Tensor::vector(vec![axis]),
            };
            let axes = Some(place.build(edit, data).constant("axes", axes));
            match inputs.get_mut(3) {
                Some(slot) => *slot = axes,
                None => inputs.push(axes),
            }
        }
        Some(NewNode::new("Slice", inputs))
    }

    fn reshape(&self, edit: &mut Edit, data: ValueId, from: &[Dim], to: &[Dim], like: ValueId) -> Option<NewNode> {
        let (place, scope) = (self.place, self.place.scope());
        if let Some(node) = place.build(edit, like).reshape_to(scope, data, from, to) {
            return Some(node);
        }
        if let [first, second] = to {
            let fits = |axis: &usize| {
                let (before, after) = from.split_at_checked(*axis).unwrap_or_default();
                place.same_dims(&[scope.product(before), scope.product(after)], &[first.clone(), second.clone()])
            };
            if let Some(axis) = (0..=from.len()).find(fits) {
                return Some(Build::flatten(data, axis));
            }
        }
        // In the operand of a Reshape 0 is not a size.
        let is_size = |(axis, dim): (usize, &Dim)| {
            size_operand::reshape_copies(scope, from, axis, dim) || scope.ge(dim, &Dim::constant(1)).is_yes()
        };
        let sizes = self.held(to).filter(|_| to.iter().enumerate().all(is_size))?;
        place.opset.reshape_has_operand().then(|| NewNode::new("Reshape", [Some(data), Some(sizes)]))
    }

    fn expand(&self, edit: &mut Edit, data: ValueId, from: &[Dim], to: &[Dim], like: ValueId) -> Option<NewNode> {
        let (place, scope) = (self.place, self.place.scope());
        if size_operand::expand_is_left_out(to) {
            return None;
        }
        let code = |(axis, dim): (usize, &Dim)| match dim.as_const() {
            Some(size) => Some(size),
            None => size_operand::expand_keeps(scope, from, to, axis).then_some(1),
        };
        if let Some(codes) = to.iter().enumerate().map(code).collect::<Option<Vec<i64>>>() {
            return place.build(edit, like).expand(data, codes);
        }
        let sizes = self.held(to)?;
        place.opset.has("Expand").then(|| NewNode::new("Expand", [Some(data), Some(sizes)]))
    }

    fn pad(
        &self,
        edit: &mut Edit,
        data: ValueId,
        (before, after): (&[Dim], &[Dim]),
        fill: Fill,
        like: ValueId,
    ) -> Option<NewNode> {
        let place = self.place;
        let pads: Vec<Dim> = before.iter().chain(after).cloned().collect();
        if place.opset.pad_and_clip_have_operands() {
            let mut inputs = vec![Some(data), Some(self.vector(edit, "pads", &pads, like)?)];
            if fill != Fill(0) {
                inputs.push(Some(edit.constant(like, "fill", self.element(fill)?)));
            }
            return Some(NewNode::new("Pad", inputs));
        }
        let numbers = pads.iter().map(Dim::as_const).collect::<Option<Vec<i64>>>()?;
        let node = NewNode::new("Pad", [Some(data)]).with("pads", numbers);
        let node = match (fill, self.dtype()?) {
            (Fill(0), DType::Float | DType::Double | DType::Float16) => node,
            (fill, DType::Float) => {
                let value = *self.element(fill)?.to_f64s()?.first()?;
                node.with("value", Attribute::Float(value as f32))
            }
            _ => return None,
        };
        place.opset.has_split_and_pads().then_some(node)
    }

    /// The element type of the result.
    fn dtype(&self) -> Option<DType> {
        self.place.dtype(self.tree.results.first()?.0)
    }

    /// A constant of the map as a tensor of rank 0.
    fn element(&self, fill: Fill) -> Option<Tensor> {
        fill.to_element(self.dtype()?)
    }

    /// A vector of sizes: a constant, or an operand that holds it.
    fn vector(&self, edit: &mut Edit, operand: &'static str, sizes: &[Dim], like: ValueId) -> Option<ValueId> {
        match sizes.iter().map(Dim::as_const).collect::<Option<Vec<i64>>>() {
            Some(numbers) => Some(self.place.build(edit, like).constant(operand, Tensor::vector(numbers))),
            None => self.held(sizes),
        }
    }

    /// The operand of a node of the tree that holds these sizes.
    fn held(&self, sizes: &[Dim]) -> Option<ValueId> {
        let place = self.place;
        let nodes = self.tree.nodes.iter().filter_map(|&id| place.model.node(id));
        let mut operands = nodes.flat_map(|node| node.inputs().iter().skip(1).flatten().copied());
        operands.find(|&value| {
            let fact = place.fact(value).filter(|fact| fact.dtype() == Some(DType::Int64) && fact.rank() == Some(1));
            fact.and_then(|fact| fact.ints()).is_some_and(|held| place.same_dims(&held, sizes))
        })
    }
}

/// Replaces each Reshape that only moves axes of size 1 by a Transpose, if constants cannot state its sizes.
pub(super) fn transpose_ones(place: &Place<'_>, tree: &Tree, program: &mut Program) {
    let scope = place.scope();
    let Program { steps, shapes, .. } = program;
    for step in steps {
        let Step::Movement(movement @ Movement::Reshape(_), operands) = step else { continue };
        let from: Option<&[Dim]> = match operands.first() {
            Some(Operand::Source(source)) => tree.leaves.get(*source).and_then(|&leaf| place.shape(leaf)),
            Some(Operand::Step(at)) => shapes.get(*at).map(Shape::as_slice),
            _ => None,
        };
        let Movement::Reshape(to) = &*movement else { continue };
        let Some(from) = from.filter(|from| size_operand::reshape_codes(scope, from, to).is_none()) else { continue };
        if let Some(perm) = moves_ones(place, from, to) {
            *movement = Movement::Transpose(perm);
        }
    }
}

/// The permutation from one shape to another that keeps the order of all axes but those of size 1.
fn moves_ones(place: &Place<'_>, from: &[Dim], to: &[Dim]) -> Option<Vec<usize>> {
    let (ones, others): (Vec<usize>, Vec<usize>) =
        (0..from.len()).partition(|&axis| from.get(axis).is_some_and(|size| size.is_const(1)));
    let (mut ones, mut others) = (ones.into_iter(), others.into_iter());
    let perm = to.iter().map(|size| if size.is_const(1) { ones.next() } else { others.next() });
    let perm = perm.collect::<Option<Vec<usize>>>().filter(|_| from.len() == to.len())?;
    let moved = perm.iter().map(|&axis| from.get(axis).cloned()).collect::<Option<Vec<Dim>>>()?;
    place.same_dims(&moved, to).then_some(perm)
}

/// How the written slices are read: none of them is one that readings of the operator differ about.
const READING: Reading = onnx::reading(SliceRule::Agree);

/// The most expressions that are tried as the end of a range.
const MOST_ENDS: usize = 8;

/// A range by numbers that selects these positions of an axis, which lie on the axis wherever there are any. The range is a guess until it is
/// proved to select `len` positions from `start` on. Bounds of Slices of Slices are clamped: they are numbers, or distances from the end, for all
/// large axes, so that the guess is that number.
fn range_by_numbers(scope: &Scope, dim: &Dim, wanted: &AxisRange) -> Option<Range> {
    let AxisRange { start, step, len } = wanted;
    let number_at_last = |position: &Dim| number_of(scope, dim, &scope.asymptote(position)?);
    let mut lens = vec![len.clone()];
    lens.extend(scope.upper_bound(len).map(Dim::constant));
    let mut at = 0;
    // Where there is a position, max(0, e) is e; and an end beyond another bound is clamped.
    while let Some(len) = lens.get(at).filter(|_| lens.len() < MOST_ENDS).cloned() {
        for (operation, left, right) in scope.parts(&len) {
            match operation {
                Operation::Max if left.is_const(0) => lens.push(right),
                Operation::Max if right.is_const(0) => lens.push(left),
                Operation::Min => lens.extend([left, right]),
                _ => {}
            }
        }
        at += 1;
    }
    let end_of = |len: &Dim| scope.add(start, &scope.mul(len, &Dim::constant(*step)));
    let ends = lens.iter().filter_map(|len| {
        let end = end_of(len);
        match end.as_const() {
            Some(end) if end < 0 => Some(Bound::Open),
            _ if *step > 0 && scope.ge(&end, dim).is_yes() => Some(Bound::Open),
            _ => number_of(scope, dim, &end),
        }
    });
    let ends: Vec<Bound> = ends.chain(number_at_last(&end_of(len))).chain([Bound::Open]).collect();
    let find = |begin: &Bound, is_start: &dyn Fn(&Dim) -> bool| {
        let mut ranges = ends.iter().filter_map(|end| Range::new(begin.clone(), end.clone(), Some(*step)).ok());
        ranges.find(|range| {
            let found = slicing::resolve_exactly(scope, dim, range, READING);
            found.is_some_and(|(selection, found)| {
                selection.step == *step && scope.eq(&found, len).is_yes() && is_start(&selection.start)
            })
        })
    };
    // Where there is a position, max(0, e) is e, or clamped to 0 as e is. No bound is clamped there.
    let begin = number_of(scope, dim, start).or_else(|| {
        let mut parts = scope.parts(start).into_iter().filter(|(operation, ..)| *operation == Operation::Max);
        parts.find_map(|(_, left, right)| match (left.is_const(0), right.is_const(0)) {
            (true, _) => number_of(scope, dim, &right),
            (_, true) => number_of(scope, dim, &left),
            _ => None,
        })
    });
    begin
        .and_then(|begin| find(&begin, &|_| true))
        .or_else(|| find(&number_at_last(start)?, &|found| holds_equal(scope, std::slice::from_ref(len), start, found)))
}

/// The number for a position: the position itself, or its distance from the end of the axis.
fn number_of(scope: &Scope, dim: &Dim, position: &Dim) -> Option<Bound> {
    let number = match position.as_const() {
        Some(number) => Some(number).filter(|&number| number >= 0),
        None => scope.sub(dim, position).as_const().filter(|&before| before > 0).and_then(i64::checked_neg),
    };
    number.map(|number| Bound::At(Dim::constant(number)))
}
