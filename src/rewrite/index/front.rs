//! Replaces a recomputed tensor by the front of a table, or of a longer tensor.
//!
//! Laws, for a position-wise function of `Range(s, n, d)` ([`super::positional`]): it is the front of the same function of `Range(s, m, d)`
//! for `n ≤ m`. If `n` is at most a constant `N`, it is the front of a constant. A lookup of each position in a table of `N` rows implies
//! this bound, because a lookup outside of the table fails. A function of positions that count down from a size `p ≤ P` is a part of the
//! function of positions that count down from `P`, from position `P − p` on.

use crate::rewrite::miss::{Miss, ensure};
use crate::rewrite::rule::miss;
use rustc_hash::{FxHashMap, FxHashSet};

use super::counting::counting;
use super::positional::{Cone, alike, cone, descent, is_exact, origin, wide_cone};
use crate::dim::Dim;
use crate::ir::{Data, Edit, NewNode, Node, NodeId, ValueId};
use crate::ops::traits::traits_of;
use crate::ops::{Environment, evaluate_node};
use crate::rewrite::build::{Build, axes};
use crate::rewrite::limits::{ADDED, DEPTH};
use crate::rewrite::place::Place;
use crate::slicing::SliceRule;
use crate::tensor::{DType, Tensor};

/// The most elements of a computed table. Without it, a bound of a million positions makes a table of 10^12 pairs.
const MAX_ELEMENTS: i64 = 1 << 20;

/// The most Ranges that are compared in search of a longer one. Without it, N Ranges take N² comparisons.
const MAX_RANGES: usize = 16;

/// The most nodes that are visited to prove that a tensor does not depend on another. Without it, each of N tables follows the whole model.
const MAX_ABOVE: usize = 1 << 14;

/// A tensor that is a part of another one: begin and end along each sliced axis.
struct Front {
    root: ValueId,
    cuts: Vec<Cut>,
}

/// The positions along an axis: the first one, and their number.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Counted {
    origin: Dim,
    len: Dim,
}

/// The position sequences that each tensor of a cone depends on.
type Ways = FxHashMap<ValueId, Vec<Counted>>;

/// Replaces a position-wise function by the front of a constant, if the number of positions has an upper bound.
pub(super) fn of_table(place: &Place<'_>) -> Result<Edit, Miss> {
    let cone = wide_cone(place).ok_or(miss!(super::FRONT_RULES, "by-place"))?;
    let ways = ways(place, &cone).ok_or(miss!(super::FRONT_RULES, "bounded"))?;
    let most = bounds(place, &cone, &ways);
    ensure(!most.is_empty(), miss!(super::FRONT_RULES, "bounded"))?;
    let tables = tables(place, &cone, &ways, &most).ok_or(miss!(super::FRONT_RULES, "by-place"))?;
    let (mut fronts, mut added) = (Vec::new(), 0usize);
    for &root in &cone.roots {
        let (shape, Some(table)) =
            (place.shape(root).ok_or(miss!(super::FRONT_RULES, "by-place").of(root))?, tables.get(&root))
        else {
            continue;
        };
        let mut cuts = Vec::new();
        for (axis, dim) in shape.iter().enumerate().filter(|(_, dim)| dim.as_const().is_none()) {
            let Counted { origin, len } = ways
                .get(&root)
                .ok_or(miss!(super::FRONT_RULES, "by-place"))?
                .iter()
                .find(|way| way.len == *dim)
                .ok_or(miss!(super::FRONT_RULES, "by-place"))?;
            cuts.push((axis, origin.clone(), place.scope().add(origin, len)));
        }
        fronts.push(Front { root, cuts });
        added = added.checked_add(table.byte_len()).ok_or(Miss::COMPUTABLE)?;
    }
    ensure(added <= ADDED.saturating_add(freed_bytes(place, &cone)), miss!(super::FRONT_RULES, "small"))?;
    ensure(pays(place, &cone, &fronts), miss!(super::FRONT_RULES, "pays"))?;
    let mut edit = place.begin()?;
    let mut sources = Vec::with_capacity(fronts.len());
    for front in &fronts {
        sources.push(edit.constant(
            front.root,
            "table",
            tables.get(&front.root).ok_or(miss!(super::FRONT_RULES, "by-place"))?.clone(),
        ));
    }
    cut(place, &cone.nodes, edit, &fronts, &sources)
}

/// Replaces a position-wise function by the front of the same function of more positions.
pub(super) fn of_longer(place: &Place<'_>) -> Result<Edit, Miss> {
    let cone = cone(place).ok_or(miss!(super::FRONT_RULES, "by-place"))?;
    let start = place.operand(0)?;
    let ranges = place.model.users(start);
    ensure(ranges.len() <= MAX_RANGES.saturating_mul(4), miss!(super::FRONT_RULES, "no-longer"))?;
    ensure(is_exact(place, &cone.nodes), miss!(super::FRONT_RULES, "no-rounding"))?;
    let mut miss = miss!(super::FRONT_RULES, "no-longer");
    let others = ranges.iter().map(|&(id, _)| id).filter(|&id| id != place.id && !cone.nodes.contains(&id));
    for other in others.take(MAX_RANGES) {
        let is_beside = |node: &&Node| node.is("Range") && Some(node.graph()) == place.graph();
        let Some(first) = place.model.node(other).filter(is_beside).and_then(|node| node.output(0)) else { continue };
        let longer = |&root: &ValueId| {
            let source = path(place, &cone, root).and_then(|path| follow(place, first, &path));
            let source = source.filter(|&source| alike(place, root, source, DEPTH));
            let source = source.ok_or(miss!(super::FRONT_RULES, "alike").of(root))?;
            let front = front_of(place, root, source).ok_or(miss!(super::FRONT_RULES, "no-longer").of(root))?;
            Ok((front, source))
        };
        let found: Result<Vec<(Front, ValueId)>, Miss> = cone.roots.iter().map(longer).collect();
        let (fronts, sources): (Vec<Front>, Vec<ValueId>) = match found {
            Ok(found) => found.into_iter().unzip(),
            Err(other) => {
                miss = other;
                continue;
            }
        };
        if !pays(place, &cone, &fronts) {
            miss = miss!(super::FRONT_RULES, "pays");
        } else if !sources.iter().all(|&source| is_apart(place, source, &cone.nodes)) {
            miss = miss!(super::FRONT_RULES, "no-circle");
        } else {
            return cut(place, &cone.nodes, place.begin()?, &fronts, &sources);
        }
    }
    Err(miss)
}

/// Returns the position sequences of each tensor of a cone. `None` if two axes of equal length count in different ways, because they cannot
/// be distinguished.
fn ways(place: &Place<'_>, cone: &Cone) -> Option<Ways> {
    let mut ways = Ways::default();
    for &id in &cone.nodes {
        let node = place.model.node(id)?;
        let output = node.output(0)?;
        let mut own: Vec<Counted> = Vec::new();
        if node.is("Range") {
            let [len] = place.shape(output)? else { return None };
            own.push(Counted { origin: begin(place, node)?, len: len.clone() });
        }
        for way in node.inputs().iter().flatten().filter_map(|input| ways.get(input)).flatten() {
            if !own.contains(way) {
                own.push(way.clone());
            }
        }
        let is_told = |way: &Counted| own.iter().filter(|other| other.len == way.len).count() == 1;
        if !own.iter().all(is_told) {
            return None;
        }
        ways.insert(output, own);
    }
    Some(ways)
}

/// Returns the position in a longer Range at which a Range begins.
fn begin(place: &Place<'_>, node: &Node) -> Option<Dim> {
    Some(match descent(place, node) {
        Some(descent) => place.scope().sub(&Dim::constant(descent.most), &descent.from),
        None => origin(place, node).unwrap_or(Dim::constant(0)),
    })
}

/// Returns the known upper bounds of position sequences.
fn bounds(place: &Place<'_>, cone: &Cone, ways: &Ways) -> FxHashMap<Counted, i64> {
    let mut most: FxHashMap<Counted, i64> = FxHashMap::default();
    for way in ways.values().flatten() {
        if let Some(bound) = place.scope().upper_bound(&place.scope().add(&way.origin, &way.len)) {
            most.insert(way.clone(), bound);
        }
    }
    for &id in &cone.nodes {
        if let Some((way, bound)) = implied(place, id, ways) {
            let known = most.entry(way).or_insert(bound);
            *known = bound.min(*known);
        }
    }
    most.retain(|_, bound| *bound >= 1);
    most
}

/// Returns a position sequence and its upper bound, if a Gather looks up a row at each of its consecutive positions.
fn implied(place: &Place<'_>, id: NodeId, ways: &Ways) -> Option<(Counted, i64)> {
    let node = place.model.node(id).filter(|node| node.is("Gather"))?;
    let data = place.shape(node.input(0)?)?;
    let rows = data.get(place.read(node).axis(data.len())?)?.as_const()?;
    let index = node.input(1)?;
    let count = counting(place, index)?;
    let [moves] = count.moving()[..] else { return None };
    let len = count.shape.get(moves)?;
    let way = ways.get(&index)?.iter().find(|way| way.len == *len)?;
    let offset = place.scope().sub(&count.offset, &way.origin).as_const().filter(|offset| *offset >= 0)?;
    let others = count.shape.iter().enumerate().filter(|(axis, _)| *axis != moves);
    let is_looked_up = others.into_iter().all(|(_, dim)| dim.as_const().is_some_and(|dim| dim >= 1));
    let bound = rows.checked_sub(offset)?;
    // A lookup of no positions implies no bound. The front is then empty, too, but inference does not know its length.
    let scope = place.scope();
    let is_measured = || scope.le(&scope.add(&way.origin, &way.len), &Dim::constant(bound)).is_yes();
    let is_seen = way.origin.is_const(0) || is_measured();
    (count.steps.get(moves)?.is_const(1) && is_looked_up && is_seen).then_some((way.clone(), bound))
}

/// Returns the tensors of a cone with bounded lengths, computed for the longest positions.
fn tables(
    place: &Place<'_>,
    cone: &Cone,
    ways: &Ways,
    most: &FxHashMap<Counted, i64>,
) -> Option<FxHashMap<ValueId, Tensor>> {
    let environment = Environment::of(place.model);
    let mut tables: FxHashMap<ValueId, Tensor> = FxHashMap::default();
    for &id in &cone.nodes {
        let node = place.model.node(id)?;
        let output = node.output(0)?;
        let own = ways.get(&output)?;
        let way = |dim: &Dim| own.iter().find(|way| way.len == *dim);
        let longest = |dim: &Dim| dim.as_const().or_else(|| most.get(way(dim)?).copied());
        let Some(shape) = place.shape(output)?.iter().map(longest).collect::<Option<Vec<i64>>>() else { continue };
        let count = shape.iter().try_fold(1i64, |count, dim| count.checked_mul(*dim))?;
        if count > MAX_ELEMENTS {
            continue;
        }
        let Some(operands) = operands(place, id, &tables, &shape) else { continue };
        let results = evaluate_node(&environment, id, node, operands, place.budget, SliceRule::Agree, 0).ok()?;
        let tensor = results.first().and_then(Data::tensor)?.clone();
        let same = |(own, goal): (&usize, &i64)| i64::try_from(*own).is_ok_and(|own| own == *goal);
        if tensor.rank() != shape.len() || !tensor.shape().iter().zip(&shape).all(same) {
            return None;
        }
        tables.insert(output, tensor);
    }
    Some(tables)
}

/// Returns the operands of a node of a cone, of the greatest length.
fn operands(
    place: &Place<'_>,
    id: NodeId,
    tables: &FxHashMap<ValueId, Tensor>,
    shape: &[i64],
) -> Option<Vec<Option<Data>>> {
    let node = place.model.node(id)?;
    let is_range = node.is("Range");
    let from_size = is_range && origin(place, node).is_some();
    let from_most = if is_range { descent(place, node).map(|descent| descent.most) } else { None };
    let operand = |(slot, input): (usize, &Option<ValueId>)| {
        let Some(input) = *input else { return Some(None) };
        let tensor = match tables.get(&input).or_else(|| place.constant(input)) {
            _ if let (0, Some(most)) = (slot, from_most) => number(place, id, most)?,
            _ if let (1, Some(most)) = (slot, from_most) => number(place, id, most.checked_sub(*shape.first()?)?)?,
            Some(tensor) => tensor.clone(),
            None if slot == 0 && from_size => number(place, id, 0)?,
            None if slot == 1 && is_range => limit(place, id, *shape.first()?, from_size)?,
            None => return None,
        };
        Some(Some(Data::Tensor(tensor)))
    };
    node.inputs().iter().enumerate().map(operand).collect()
}

/// Returns the limit of a Range with this many numbers, in its type.
fn limit(place: &Place<'_>, id: NodeId, count: i64, from_size: bool) -> Option<Tensor> {
    let node = place.model.node(id)?;
    let given = |slot| place.constant(node.input(slot)?)?.to_i64s()?.first().copied();
    let first = if from_size { 0 } else { given(0)? };
    number(place, id, first.checked_add(given(2)?.checked_mul(count)?)?)
}

/// Returns a number in the type of a Range.
fn number(place: &Place<'_>, id: NodeId, number: i64) -> Option<Tensor> {
    match place.dtype(place.model.node(id)?.output(0)?)? {
        DType::Int64 => Some(Tensor::scalar(number)),
        DType::Int32 => Some(Tensor::scalar(i32::try_from(number).ok()?)),
        DType::Float => Some(Tensor::scalar(number as f32)),
        _ => None,
    }
}

/// Returns the bytes of constants that only the nodes of a cone read.
fn freed_bytes(place: &Place<'_>, cone: &Cone) -> usize {
    let nodes = cone.nodes.iter().filter_map(|&id| place.model.node(id));
    let inputs: FxHashSet<ValueId> = nodes.flat_map(|node| node.inputs().iter().flatten().copied()).collect();
    let freed = inputs.iter().filter(|&&input| place.model.is_read_only_by(input, &cone.nodes));
    freed.filter_map(|&input| place.constant(input)).fold(0usize, |sum, tensor| sum.saturating_add(tensor.byte_len()))
}

/// Returns `true` if the edit removes more nodes than it adds. It adds a Slice for each front and a vector of sizes for each list of
/// bounds. It removes the producers of the tensors, and nodes that only compute numbers for the Ranges.
fn pays(place: &Place<'_>, cone: &Cone, fronts: &[Front]) -> bool {
    let is_root = |value: ValueId| fronts.iter().any(|front| front.root == value);
    let mut gone: Vec<NodeId> = Vec::new();
    for &id in cone.nodes.iter().rev() {
        let Some(output) = place.model.node(id).and_then(|node| node.output(0)) else { continue };
        // A node whose result is only measured is dead once its size is read elsewhere.
        let is_left = |&(reader, _): &(NodeId, usize)| gone.contains(&reader) || measures(place, reader);
        if is_root(output) || !place.model.is_named(output) && place.model.users(output).iter().all(is_left) {
            gone.push(id);
        }
    }
    let limits: FxHashSet<ValueId> = gone.iter().flat_map(|&id| numbers_of(place, id)).flatten().collect();
    let spared = limits.iter().filter(|&&limit| place.model.is_read_only_by(limit, &gone)).count();
    let slices: Vec<&[Cut]> = slices(fronts).into_iter().flatten().collect();
    let lists = slices.iter().flat_map(|cuts| [starts(cuts), ends(cuts)]);
    let lists: FxHashSet<Vec<Dim>> = lists.filter(|list| list.iter().any(|at| at.as_const().is_none())).collect();
    let sizes: FxHashSet<&Dim> = lists.iter().flatten().filter(|at| at.as_const().is_none()).collect();
    let sums = sizes.into_iter().filter(|&at| size(place, &cone.nodes, at).is_none()).count();
    slices.len().saturating_add(lists.len()).saturating_add(sums) < gone.len().saturating_add(spared)
}

/// Returns `true` if a node only reads the shape of its operand.
fn measures(place: &Place<'_>, id: NodeId) -> bool {
    place.model.node(id).is_some_and(|node| traits_of(place.model, node).of_shape)
}

/// Returns the limit of a Range, and the size from which it counts down, if nodes compute them.
fn numbers_of(place: &Place<'_>, id: NodeId) -> [Option<ValueId>; 2] {
    let Some(node) = place.model.node(id).filter(|node| node.is("Range")) else { return [None; 2] };
    let computed = |slot: usize| node.input(slot).filter(|&value| place.model.value(value).producer().is_some());
    [computed(1), computed(0).filter(|_| descent(place, node).is_some())]
}

/// A part of an axis: axis, begin and end.
type Cut = (usize, Dim, Dim);

/// Returns the cuts of each Slice for each front: all axes at once, or one axis each if that takes fewer nodes than the Concats of all
/// bounds.
fn slices(fronts: &[Front]) -> Vec<Vec<&[Cut]>> {
    let is_open = |list: &Vec<Dim>| list.len() > 1 && list.iter().any(|at| at.as_const().is_none());
    let lists = fronts.iter().flat_map(|front| [starts(&front.cuts), ends(&front.cuts)]).filter(is_open);
    let lists: FxHashSet<Vec<Dim>> = lists.collect();
    let apart = fronts.iter().fold(0usize, |sum, front| sum.saturating_add(front.cuts.len()));
    let length = if apart < fronts.len().saturating_add(lists.len()) { 1 } else { usize::MAX };
    fronts.iter().map(|front| front.cuts.chunks(length).collect()).collect()
}

fn starts(cuts: &[Cut]) -> Vec<Dim> {
    cuts.iter().map(|(_, start, _)| start.clone()).collect()
}

fn ends(cuts: &[Cut]) -> Vec<Dim> {
    cuts.iter().map(|(.., end)| end.clone()).collect()
}

/// Returns a scalar with a number, if these nodes do not compute it: the size of a replaced tensor is no bound of its replacement.
fn size(place: &Place<'_>, nodes: &[NodeId], number: &Dim) -> Option<ValueId> {
    place.taken.scalar(place, number).filter(|&scalar| is_apart(place, scalar, nodes))
}

/// The vectors of sizes of an edit, without duplicates.
struct Vectors<'a> {
    known: FxHashMap<Vec<Dim>, ValueId>,
    /// The nodes that may be removed; sizes of their results must not be read.
    nodes: &'a [NodeId],
}

impl Vectors<'_> {
    /// Returns a vector with these numbers, built from existing scalars.
    fn of(&mut self, place: &Place<'_>, edit: &mut Edit, like: ValueId, numbers: Vec<Dim>) -> Option<ValueId> {
        if let Some(&known) = self.known.get(&numbers) {
            return Some(known);
        }
        let made = if let Some(numbers) = numbers.iter().map(Dim::as_const).collect::<Option<Vec<i64>>>() {
            edit.constant(like, "bounds", Tensor::vector(numbers))
        } else if let [number] = numbers.as_slice() {
            match size(place, self.nodes, number) {
                Some(scalar) => {
                    let vector = edit.new_value(like, "size");
                    let node = place.build(edit, vector).unsqueeze(scalar, vec![0]);
                    edit.insert.push(node.output(vector));
                    vector
                }
                None => self.sum(place, edit, like, number)?,
            }
        } else {
            let parts: Vec<ValueId> =
                numbers.iter().map(|number| self.of(place, edit, like, vec![number.clone()])).collect::<Option<_>>()?;
            let vector = edit.new_value(like, "sizes");
            edit.insert.push(Build::concat(parts, 0usize).output(vector));
            vector
        };
        self.known.insert(numbers, made);
        Some(made)
    }

    /// Returns a vector with an existing scalar plus or minus a constant.
    fn sum(&mut self, place: &Place<'_>, edit: &mut Edit, like: ValueId, number: &Dim) -> Option<ValueId> {
        let offset = Dim::constant(number.offset());
        let rest = place.scope().sub(number, &offset);
        let opposite = place.scope().sub(&offset, number);
        let is_there = |number: &Dim| size(place, self.nodes, number).is_some();
        let (operator, term) = match is_there(&rest) {
            true => ("Add", rest),
            false if is_there(&opposite) => ("Sub", opposite),
            false => return None,
        };
        let offset = edit.constant(like, "bound", Tensor::vector(vec![offset.as_const()?]));
        let term = self.of(place, edit, like, vec![term])?;
        let sum = edit.new_value(like, "bound");
        edit.insert.push(NewNode::new(operator, [Some(offset), Some(term)]).output(sum));
        Some(sum)
    }
}

/// Slices each front out of its source, in place of the producer of the front.
fn cut(
    place: &Place<'_>,
    nodes: &[NodeId],
    mut edit: Edit,
    fronts: &[Front],
    sources: &[ValueId],
) -> Result<Edit, Miss> {
    let mut vectors = Vectors { known: FxHashMap::default(), nodes };
    for ((front, &source), slices) in fronts.iter().zip(sources).zip(slices(fronts)) {
        let mut source = source;
        for (at, cuts) in slices.iter().enumerate() {
            let starts =
                vectors.of(place, &mut edit, front.root, starts(cuts)).ok_or(miss!(super::FRONT_RULES, "no-circle"))?;
            let ends =
                vectors.of(place, &mut edit, front.root, ends(cuts)).ok_or(miss!(super::FRONT_RULES, "no-circle"))?;
            let along = axes(cuts.iter().map(|(axis, ..)| *axis));
            let slice = place
                .build(&mut edit, front.root)
                .slice_between(source, starts, ends, along, vec![1; cuts.len()])
                .ok_or(Miss::EXPRESSIBLE)?;
            let result = if at + 1 == slices.len() { front.root } else { edit.new_value(front.root, "part") };
            edit.insert.push(slice.output(result));
            source = result;
        }
        edit.remove.push(place.model.value(front.root).producer().ok_or(Miss::ROOT)?);
    }
    Ok(edit)
}

/// Returns the path down a cone from its Range to a root: each consumer's operator and operand slot.
fn path(place: &Place<'_>, cone: &Cone, root: ValueId) -> Option<Vec<(NodeId, usize)>> {
    let first = place.output(0)?;
    let mut path = Vec::new();
    let mut at = root;
    while at != first {
        let id = place.model.value(at).producer().filter(|_| path.len() < DEPTH)?;
        let inputs = place.model.node(id)?.inputs();
        let depends = |value: ValueId| value == first || reaches(place, cone, value, first);
        let slot = inputs.iter().position(|input| input.is_some_and(depends))?;
        path.push((id, slot));
        at = (*inputs.get(slot)?)?;
    }
    path.reverse();
    Some(path)
}

/// Returns `true` if a value of a cone depends on another.
fn reaches(place: &Place<'_>, cone: &Cone, value: ValueId, first: ValueId) -> bool {
    let mut from: FxHashSet<ValueId> = FxHashSet::default();
    from.insert(first);
    for &id in &cone.nodes {
        let Some(node) = place.model.node(id) else { continue };
        if node.inputs().iter().flatten().any(|input| from.contains(input)) {
            from.extend(node.outputs().iter().flatten());
        }
    }
    from.contains(&value)
}

/// Returns the result of consumers with the same operators, from another value.
fn follow(place: &Place<'_>, first: ValueId, path: &[(NodeId, usize)]) -> Option<ValueId> {
    let mut at = first;
    for &(id, slot) in path {
        let model = place.model.node(id)?;
        let readers = place.model.users(at);
        at = readers.into_iter().find_map(|(reader, own)| {
            let node = place.model.node(reader).filter(|node| own == slot && Some(node.graph()) == place.graph())?;
            let same = node.op_type == model.op_type && node.same_attributes(model);
            node.output(0).filter(|_| same)
        })?;
    }
    Some(at)
}

/// Returns the cuts along the axes where the source is longer, if it is nowhere shorter.
fn front_of(place: &Place<'_>, root: ValueId, source: ValueId) -> Option<Front> {
    let (own, whole) = (place.shape(root)?, place.shape(source)?);
    let mut cuts = Vec::new();
    for (axis, (size, most)) in own.iter().zip(whole).enumerate() {
        if place.scope().eq(size, most).is_yes() {
            continue;
        }
        if !place.scope().le(size, most).is_yes() {
            return None;
        }
        cuts.push((axis, Dim::constant(0), size.clone()));
    }
    (own.len() == whole.len() && !cuts.is_empty()).then_some(Front { root, cuts })
}

/// Returns `true` if a value depends on none of these nodes.
fn is_apart(place: &Place<'_>, value: ValueId, nodes: &[NodeId]) -> bool {
    let mut waiting = vec![value];
    let mut seen: FxHashSet<NodeId> = FxHashSet::default();
    while let Some(value) = waiting.pop() {
        let Some(id) = place.model.value(value).producer() else { continue };
        if nodes.contains(&id) || seen.len() >= MAX_ABOVE {
            return false;
        }
        if !seen.insert(id) {
            continue;
        }
        let Some(node) = place.model.node(id) else { return false };
        waiting.extend(node.inputs().iter().flatten());
        waiting.extend(node.subgraphs().flat_map(|graph| place.model.captures(graph)));
    }
    true
}
