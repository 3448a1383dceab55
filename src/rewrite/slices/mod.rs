//! Slice algebra. What a slice takes and how slices compose is the business of [`crate::slicing`]; here it becomes edits.
//!
//! Slices move towards where the data comes from, and meet there what they cancel with. Every rule here leaves as many nodes as there
//! were or fewer, and of those that only move a slice each makes the operators behind it work on less; so they come to an
//! end. A value that something else reads as well stays, and a slice is moved across it only where that costs no node.

pub(super) mod cast;
pub(super) mod compose;
pub(super) mod concat;
pub(super) mod elementwise;
pub(super) mod expand;
pub(super) mod gather;
pub(super) mod pad;
pub(super) mod reshape;
pub(super) mod select;
pub(super) mod split;
pub(super) mod transpose;

use std::cell::RefCell;
use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::Place;
use crate::dim::{Dim, Scope};
use crate::ir::{Attribute, Edit, Fact, GraphId, NewNode, Node, NodeId, ValueId};
use crate::ops;
use crate::slicing::{self, AxisOp, Bound, Range, Reading, onnx};
use crate::tensor::{DType, Tensor};

/// How the slices that are written here are read: where the readings of the operator differ they are not written.
const READING: Reading = onnx::reading(slicing::Rule::Agree);

/// What a slice takes of one axis.
#[derive(Clone, Debug)]
struct Cut {
    /// The range, in numbers where they can be told.
    range: Range,
    /// The first element and how many there are, if that is known; where there are none, the first means nothing.
    exact: Option<(Dim, Dim)>,
}

/// What a Slice takes of each axis of its data; `None` is all of it.
struct Cuts {
    axes: Vec<Option<Cut>>,
    dims: Vec<Dim>,
    /// How many axes the node names.
    named: usize,
}

impl Cuts {
    /// The axes that are cut.
    fn cut(&self) -> impl Iterator<Item = (usize, &Cut)> {
        self.axes.iter().enumerate().filter_map(|(axis, cut)| Some((axis, cut.as_ref()?)))
    }
}

/// What slices take, and which values hold a size, as far as it has been worked out. It goes by what the slices read, so edits do not
/// spoil it; when more is proved of that than before, begin with a new one.
#[derive(Default)]
pub struct Taken {
    slices: RefCell<FxHashMap<NodeId, Entry>>,
    /// For each graph the first value that holds an expression as a 64-bit scalar.
    scalars: RefCell<FxHashMap<GraphId, FxHashMap<Dim, ValueId>>>,
}

impl Taken {
    /// The first value of the place's graph that holds `number` as a scalar of 64 bits, if it is still there. Values made since are not
    /// found.
    pub(super) fn scalar(&self, place: &Place<'_>, number: &Dim) -> Option<ValueId> {
        let graph = place.graph()?;
        let mut scalars = self.scalars.borrow_mut();
        let known = scalars.entry(graph).or_insert_with(|| scalars_of(place, graph));
        known.get(number).copied().filter(|&value| place.model.graph_of(value) == Some(graph))
    }
}

/// The first value that holds each expression as a 64-bit scalar, in an order to compute in.
fn scalars_of(place: &Place<'_>, graph: GraphId) -> FxHashMap<Dim, ValueId> {
    let mut found = FxHashMap::default();
    let nodes = place.model.topological(graph).unwrap_or_default();
    let results = nodes.iter().filter_map(|&id| place.model.node(id)).flat_map(|node| node.outputs().iter().flatten());
    for &value in place.model.graph(graph).inputs().iter().chain(results) {
        let is_scalar = |fact: &&Fact| fact.dtype() == Some(DType::Int64) && fact.rank() == Some(0);
        let number = place.fact(value).filter(is_scalar).filter(|fact| fact.data().is_none()).and_then(Fact::ints);
        if let Some([number]) = number.as_deref() {
            found.entry(number.clone()).or_insert(value);
        }
    }
    found
}

/// The operands of a slice and what it takes.
struct Entry {
    inputs: Vec<Option<ValueId>>,
    cuts: Option<Rc<Cuts>>,
}

/// What the Slice `id` takes. Where readings of the operator are in dispute its ranges are not resolved by what is built on this.
fn cuts_of(place: &Place<'_>, id: NodeId) -> Option<Rc<Cuts>> {
    let inputs = place.model.node(id)?.inputs();
    if let Some(entry) = place.taken.slices.borrow().get(&id).filter(|entry| entry.inputs == inputs) {
        return entry.cuts.clone();
    }
    let cuts = work_out_cuts(place, id).map(Rc::new);
    let entry = Entry { inputs: inputs.to_vec(), cuts: cuts.clone() };
    place.taken.slices.borrow_mut().insert(id, entry);
    cuts
}

fn work_out_cuts(place: &Place<'_>, id: NodeId) -> Option<Cuts> {
    let spec = ops::slice_spec(place.model, place.facts, id, slicing::Rule::Agree).ok()??;
    let dims = place.shape(place.model.node(id)?.input(0)?)?.to_vec();
    let scope = place.scope();
    let mut named = 0;
    let mut axes = Vec::with_capacity(dims.len());
    for (op, dim) in spec.dense(dims.len()).ok()??.into_iter().zip(&dims) {
        axes.push(match op {
            AxisOp::Keep => None,
            AxisOp::Range(range) => {
                named += 1;
                let range = slicing::with_numbers(scope, dim, &range, spec.reading);
                let exact = slicing::resolve_exactly(scope, dim, &range, spec.reading);
                let exact = exact.map(|(selection, len)| (selection.start, len));
                let whole = exact.as_ref().is_some_and(|(_, len)| slicing::takes_all(scope, dim, &range, len));
                Some(Cut { range, exact }).filter(|_| !whole)
            }
            AxisOp::Index(_) | AxisOp::NewAxis => return None,
        });
    }
    Some(Cuts { axes, dims, named })
}

/// The elements `start + k·step`, for `k` below `len`, of an axis.
pub(super) struct Elements {
    pub axis: usize,
    pub start: usize,
    pub step: i64,
    pub len: usize,
}

/// What the Slice at a place takes of each axis that it cuts, if all of that is numbers, and takes something.
pub(super) fn cut_elements(place: &Place<'_>) -> Option<Vec<Elements>> {
    let cuts = cuts_of(place, place.id)?;
    let elements = |(axis, cut): (usize, &Cut)| {
        let (start, len) = cut.exact.as_ref()?;
        let number = |dim: &Dim| dim.as_const().and_then(|dim| usize::try_from(dim).ok());
        Some(Elements { axis, start: number(start)?, step: cut.range.step?, len: number(len).filter(|len| *len > 0)? })
    };
    let found: Vec<Elements> = cuts.cut().map(elements).collect::<Option<_>>()?;
    (!found.is_empty() && found.len() == cuts.named).then_some(found)
}

/// Whether two cuts of one axis take the same elements, whatever the symbols are.
fn same_cut(scope: &Scope, a: Option<&Cut>, b: Option<&Cut>) -> bool {
    let (a, b) = match (a, b) {
        (None, None) => return true,
        (Some(a), Some(b)) => (a, b),
        _ => return false,
    };
    let known = a.range.begin != Bound::Unknown && a.range.end != Bound::Unknown && a.range.step.is_some();
    if known && a.range == b.range {
        return true;
    }
    let Some(((start, len), (other_start, other_len))) = a.exact.as_ref().zip(b.exact.as_ref()) else { return false };
    let equal = |a: &Dim, b: &Dim| scope.eq(a, b).is_yes();
    let same_step = a.range.step == b.range.step || scope.le(len, &Dim::constant(1)).is_yes();
    equal(len, other_len) && (len.is_const(0) || (same_step && equal(start, other_start)))
}

/// More readers of one value than this are not compared with each other.
const MOST_READERS: usize = 128;

/// The other nodes of these operators, in the same graph, that read a value as their data.
fn siblings(place: &Place<'_>, data: ValueId, operators: &[&str]) -> Vec<NodeId> {
    let users = place.model.users(data);
    if users.len() > MOST_READERS {
        return Vec::new();
    }
    let graph = place.node().map(Node::graph);
    let is_one = |id: NodeId| {
        let node = place.model.node(id).filter(|node| Some(node.graph()) == graph);
        node.is_some_and(|node| operators.iter().any(|operator| node.is(operator)))
    };
    users.into_iter().filter(|&(id, slot)| slot == 0 && id != place.id && is_one(id)).map(|(id, _)| id).collect()
}

/// Whether a node can be computed before this one: what it reads beside its data is given, or read by this one as well.
fn can_precede(place: &Place<'_>, other: &Node) -> bool {
    let own = place.node().map(Node::inputs).unwrap_or_default();
    let mut rest = other.inputs().iter().skip(1).flatten();
    rest.all(|&value| place.model.value(value).producer().is_none() || own.contains(&Some(value)))
}

/// What the Slice `id` takes of each axis of its data, `None` being all of it, and the dims of the data.
pub(super) fn taken(place: &Place<'_>, id: NodeId) -> Option<(Vec<Option<Range>>, Vec<Dim>)> {
    let cuts = cuts_of(place, id)?;
    Some((ranges_of(&cuts.axes), cuts.dims.clone()))
}

/// The cuts as ranges.
fn ranges_of(axes: &[Option<Cut>]) -> Vec<Option<Range>> {
    axes.iter().map(|cut| cut.as_ref().map(|cut| cut.range.clone())).collect()
}

/// The range of numbers that takes the `len` elements `start + k·step` of an axis of `dim`; `Some(None)` is all of the axis. The
/// range is a guess until the core, laid over the axis, finds the same elements.
fn range_of(scope: &Scope, dim: &Dim, start: &Dim, step: i64, len: &Dim) -> Option<Option<Range>> {
    let zero = Dim::constant(0);
    let yes = |a: &Dim, b: &Dim| scope.eq(a, b).is_yes();
    if len.is_const(0) {
        return Some(Some(Range::constant(Some(0), Some(0), 1).ok()?));
    }
    if step == 1 && yes(len, dim) && yes(start, &zero) {
        return Some(None);
    }
    if !scope.ge(start, &zero).is_yes() {
        return None;
    }
    let stop = scope.add(start, &scope.mul(len, &Dim::constant(step)));
    let end = match step > 0 {
        true if scope.ge(&stop, dim).is_yes() => Bound::Open,
        false if scope.lt(&stop, &zero).is_yes() => Bound::Open,
        _ if scope.ge(&stop, &zero).is_yes() => Bound::At(stop),
        _ => return None,
    };
    let guess =
        slicing::with_numbers(scope, dim, &Range::new(Bound::At(start.clone()), end, Some(step)).ok()?, READING);
    let is_number = |bound: &Bound| match bound {
        Bound::Open => true,
        Bound::At(at) => at.as_const().is_some(),
        Bound::Unknown => false,
    };
    if !is_number(&guess.begin) || !is_number(&guess.end) {
        return None;
    }
    let (found, found_len) = slicing::resolve_exactly(scope, dim, &guess, READING)?;
    if !yes(&found_len, len) || !yes(&found.start, start) || found.step != step {
        return None;
    }
    Some(Some(guess).filter(|guess| !slicing::takes_all(scope, dim, guess, &found_len)))
}

/// A Slice of these ranges of numbers; its operands become constants of the edit. `None` where a number is not known, or cannot
/// be said at this operator set.
fn sliced(place: &mut Place<'_>, edit: &mut Edit, data: ValueId, ranges: &[Option<Range>]) -> Option<NewNode> {
    let (mut starts, mut ends, mut axes, mut steps) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (axis, range) in ranges.iter().enumerate() {
        let Some(range) = range else { continue };
        let step = range.step?;
        starts.push(onnx::start_of(&range.begin, step)?);
        ends.push(onnx::end_of(&range.end, step)?);
        axes.push(i64::try_from(axis).ok()?);
        steps.push(step);
    }
    let has_steps = steps.iter().any(|&step| step != 1);
    if place.opset < 10 {
        let node = NewNode::new("Slice", [Some(data)]).with("starts", starts).with("ends", ends).with("axes", axes);
        return Some(node).filter(|_| !has_steps);
    }
    let mut operands = vec![Some(data)];
    let steps = Some(steps).filter(|_| has_steps);
    let vectors = [("starts", Some(starts)), ("ends", Some(ends)), ("axes", Some(axes)), ("steps", steps)];
    for (name, vector) in vectors {
        let Some(vector) = vector else { continue };
        operands.push(Some(constant(place, edit, data, name, Tensor::vector(vector))));
    }
    Some(NewNode::new("Slice", operands))
}

/// A new constant.
fn constant(place: &mut Place<'_>, edit: &mut Edit, like: ValueId, name: &str, tensor: Tensor) -> ValueId {
    let value = place.new_value(like, name);
    edit.constants.push((value, tensor));
    value
}

/// The Slice `id` on other data of which axis `a` is axis `to(a)`, with operands as they are, known or not.
fn moved(
    place: &mut Place<'_>,
    edit: &mut Edit,
    id: NodeId,
    data: ValueId,
    rank: usize,
    to: &dyn Fn(usize) -> Option<usize>,
) -> Option<NewNode> {
    // An axis may be counted from the end.
    let stays = place.shape(data)?.len() == rank && (0..rank).all(|axis| to(axis) == Some(axis));
    let node = place.model.node(id)?;
    let mut new = NewNode::like(node);
    if let Some(slot) = new.inputs.first_mut() {
        *slot = Some(data);
    }
    if stays {
        return Some(new);
    }
    let by_attribute = place.opset < 10;
    let entries = match node.attribute("starts") {
        Some(Attribute::Ints(starts)) if by_attribute => starts.len(),
        _ => place.fact(node.input(1)?)?.static_len()?,
    };
    let named = match node.attribute("axes") {
        Some(Attribute::Ints(axes)) if by_attribute => Some(axes.clone()),
        _ if by_attribute => None,
        _ => match node.input(3) {
            Some(axes) => Some(place.const_ints(axes)?),
            None => None,
        },
    };
    let places: Vec<usize> = match named {
        Some(axes) => axes.iter().map(|&axis| place_of_axis(axis, rank)).collect::<Option<_>>()?,
        None => (0..entries).collect(),
    };
    let axes = places.into_iter().map(|axis| i64::try_from(to(axis)?).ok()).collect::<Option<Vec<i64>>>()?;
    if by_attribute {
        new.attributes.retain(|attribute| attribute.name != "axes");
        return Some(new.with("axes", axes));
    }
    // All bounds are of one type.
    let axes = match place.dtype(node.input(1)?)? {
        DType::Int32 => Tensor::vector(axes.into_iter().map(i32::try_from).collect::<Result<Vec<_>, _>>().ok()?),
        _ => Tensor::vector(axes),
    };
    let axes = constant(place, edit, data, "axes", axes);
    match new.inputs.get_mut(3) {
        Some(slot) => *slot = Some(axes),
        None => new.inputs.push(Some(axes)),
    }
    Some(new)
}

/// Whether every runtime moves elements of this type.
fn is_common(dtype: DType) -> bool {
    use DType::*;
    matches!(
        dtype,
        Bool | Int8 | Int16 | Int32 | Int64 | Uint8 | Uint16 | Uint32 | Uint64 | Float16 | Float | Double | String
    )
}

/// An axis counted from the front.
fn place_of_axis(axis: i64, rank: usize) -> Option<usize> {
    ops::axis_in(axis, rank).ok()
}

/// The axis a node names in its attribute, or this one.
fn axis_of(node: &Node, rank: usize, default: Option<i64>) -> Option<usize> {
    match node.attribute("axis") {
        Some(Attribute::Int(axis)) => place_of_axis(*axis, rank),
        None => place_of_axis(default?, rank),
        Some(_) => None,
    }
}

/// The axes that a Squeeze or Unsqueeze names, ascending; `rank` is that of what they count in.
fn axes_of(place: &Place<'_>, node: &Node, rank: usize) -> Option<Vec<usize>> {
    let axes = if place.opset >= 13 {
        place.const_ints(node.input(1)?)?
    } else {
        match node.attribute("axes")? {
            Attribute::Ints(axes) => axes.clone(),
            _ => return None,
        }
    };
    let mut axes = axes.iter().map(|&axis| place_of_axis(axis, rank)).collect::<Option<Vec<_>>>()?;
    axes.sort_unstable();
    axes.windows(2).all(|pair| matches!(pair, [a, b] if a != b)).then_some(axes)
}

/// A Squeeze or Unsqueeze of these axes.
fn with_axes(place: &mut Place<'_>, edit: &mut Edit, operator: &str, data: ValueId, axes: &[usize]) -> Option<NewNode> {
    let axes = axes.iter().map(|&axis| i64::try_from(axis).ok()).collect::<Option<Vec<i64>>>()?;
    if place.opset < 13 {
        return Some(NewNode::new(operator, [Some(data)]).with("axes", axes));
    }
    let axes = constant(place, edit, data, "axes", Tensor::vector(axes));
    Some(NewNode::new(operator, [Some(data), Some(axes)]))
}
