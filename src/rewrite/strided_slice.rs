//! Lowers slices of other dialects to the standard's operators.
//!
//! A StridedSlice (or OpenVINO Slice) becomes a Slice of its ranges, then a Squeeze or Gathers of its single indices, then an Unsqueeze of
//! its new axes. Where the dialects differ, the rule requires a proof that the difference has no effect:
//! * a backward range that begins before the first element is empty in TensorFlow, and begins at the first element in ONNX.
//!   `x[b:e:-s] = x[:b + 1][:e:-s]` for `b < -1`, where an `e` that counts from the end counts from the new end;
//! * an end of `INT_MAX` with a negative step is an ordinary bound in TensorFlow, and disputed in ONNX;
//! * a single index is checked. Gather checks it too, and `Squeeze(x[i:i + 1])` fails where there is no element `i`.
//!
//! Bounds that are known only at run time are copied from the operand, element by element if the masks disable some of them.

use super::build::Build;
use super::miss::{Miss, ensure};
use super::place::Place;
use super::rule::{Rule, miss};
use crate::dim::{Dim, Scope};
use crate::ir::{Edit, NewNode, ValueId};
use crate::ops;
use crate::rewrite::limits::LISTED;
use crate::slicing::{self, Bound, Entry, Floor, Range, Reading, SliceSpec};
use crate::sort;
use crate::tensor::{DType, Tensor};

pub(super) const RULES: &[Rule] = &[Rule {
    name: "lower-strided-slice",
    law: "StridedSlice(x) = Unsqueeze(Squeeze(Slice(x)))",
    sentence: "Lowers strided slices of TensorFlow and OpenVINO to standard operators.",
    premises: &[
        ("same-reading", "cases that TensorFlow and OpenVINO define differently are proved to be absent"),
        ("can-run", "the operands and attributes of the node are valid by the definition of the operator"),
        ("sayable", "the standard Slice of the model's operator set can express the bounds"),
    ],
    exact: true,
    operators: &[
        "StridedSlice",
        "ai.onnx.converters.tensorflow.StridedSlice",
        "ai.intel.openvino.StridedSlice",
        "ai.intel.openvino.Slice",
    ],
    apply: lower,
}];

/// The operands with the begins and ends of ranges, in every dialect that is lowered here.
const BEGIN: usize = 1;
const END: usize = 2;

/// A bound of a range, or a single index: a constant, or an element of the operand, at the position of the slice entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Number {
    Constant(i64),
    RunTime(usize),
}

/// A range in the standard's form, on an axis of the data; a negative axis counts from the end.
#[derive(Clone, Copy, Debug)]
struct AxisRange {
    axis: i64,
    start: Number,
    end: Number,
    step: i64,
}

/// The plan of a slice in the standard's operators.
#[derive(Debug, Default)]
struct Lowered {
    /// Forward ranges that are sliced first.
    first: Vec<AxisRange>,
    cuts: Vec<AxisRange>,
    /// Axes with a single index.
    indices: Vec<(i64, Number)>,
    /// The new axes, as axes of the result.
    new_axes: Vec<i64>,
}

/// An entry with its axis: of the data, or of the result for a new axis.
type Placed<'s> = (i64, usize, &'s Entry);

/// Lowers a slice of another dialect.
fn lower(place: &Place<'_>) -> Result<Edit, Miss> {
    let spec = ops::slice_spec(place.model, place.facts, place.id, slicing::SliceRule::Agree)
        .or(Err(miss!("can-run")))?
        .ok_or(miss!("same-reading"))?;
    let (data, output) = (place.operand(0)?, place.result()?);
    ensure(place.root()?.outputs().len() == 1, miss!("can-run"))?;
    ensure(place.opset.is_known(), miss!("sayable"))?;
    let shape = place.shape(data).map(<[Dim]>::to_vec);
    // A node that cannot run is kept.
    if let Some(shape) = &shape {
        spec.dense(shape.len()).or(Err(miss!("can-run")))?;
    }
    let entries = entries_of(&spec).ok_or(miss!("same-reading"))?;
    let placed =
        placed(&entries, spec.entries().is_none(), shape.as_ref().map(Vec::len)).ok_or(miss!("same-reading"))?;
    ensure(
        shape.is_some() || place.opset.counts_from_the_end() || placed.iter().all(|(axis, ..)| *axis >= 0),
        miss!("sayable").of(data),
    )?;
    let keep_whole = shape.is_none() && spec.entries().is_none();
    let mut plan = Lowered::default();
    for (axis, entry, what) in placed {
        let dim = shape.as_ref().and_then(|shape| shape.get(usize::try_from(axis).ok()?));
        match what {
            Entry::Ellipsis => {}
            Entry::NewAxis => plan.new_axes.push(axis),
            Entry::Index(index) => {
                if let Some(dim) = dim {
                    slicing::resolve_index(place.scope(), dim, index).or(Err(miss!("can-run")))?;
                }
                plan.indices.push((axis, number(index, entry).ok_or(miss!("sayable"))?));
            }
            Entry::Range(range) => {
                let told = dim.map(|dim| slicing::with_numbers(place.scope(), dim, range, spec.reading));
                let range = told.as_ref().unwrap_or(range);
                if keep_whole || !is_whole(place.scope(), dim, range, spec.reading) {
                    plan.range(place.scope(), axis, entry, dim, range, spec.reading)
                        .ok_or(miss!("same-reading").of(data))?;
                }
            }
        }
    }
    // TensorFlow refuses a single index with a negative stride, whatever the index is at run time.
    if !plan.indices.is_empty() && place.model.meaning(place.root()?).0 != "ai.intel.openvino" {
        place.const_ints(place.operand(3)?).ok_or(miss!("same-reading"))?;
    }
    // Without a Slice no node would refuse a scalar, as a slice on named axes does.
    ensure(!keep_whole || !plan.cuts.is_empty(), miss!("sayable"))?;
    plan.new_axes.sort_unstable();
    let mut lowering = Lowering { edit: place.begin()?, place, shape, output, steps: Vec::new() };
    lowering.build(plan).ok_or(miss!("sayable"))?;
    lowering.finish(data).ok_or(Miss::ROOT)
}

/// Returns the entries of a slice, with the axis of each entry that names one.
fn entries_of(spec: &SliceSpec) -> Option<Vec<(Option<i64>, Entry)>> {
    if let Some(entries) = spec.entries() {
        return Some(entries.iter().map(|entry| (None, entry.clone())).collect());
    }
    let named = spec.named_ranges()?.iter();
    named.map(|(axis, range)| Some((Some((*axis)?), Entry::Range(range.clone())))).collect()
}

/// Finds the axis of each entry. With a known rank all count from the front; with an unknown one, those after an ellipsis count from the
/// end.
fn placed(entries: &[(Option<i64>, Entry)], named: bool, rank: Option<usize>) -> Option<Vec<Placed<'_>>> {
    let rank = rank.map(i64::try_from).transpose().ok()?;
    let from_front = |axis: i64, length: Option<i64>| match length {
        Some(length) if axis < 0 => axis.checked_add(length),
        _ => Some(axis),
    };
    if named {
        let named = entries.iter().enumerate();
        let placed = named.map(|(at, (axis, entry))| Some((from_front((*axis)?, rank)?, at, entry)));
        return placed.collect();
    }
    let count = |kind: fn(&Entry) -> bool| i64::try_from(entries.iter().filter(|(_, entry)| kind(entry)).count()).ok();
    let new_axes = count(|entry| matches!(entry, Entry::NewAxis))?;
    let gone = count(|entry| matches!(entry, Entry::Index(_)))?;
    let result_rank = rank.map(|rank| rank - gone + new_axes);
    let ellipsis = entries.iter().position(|(_, entry)| *entry == Entry::Ellipsis).unwrap_or(entries.len());
    let mut placed = Vec::with_capacity(entries.len());
    let (mut axis, mut result_axis) = (0i64, 0i64);
    for (at, (_, entry)) in entries.iter().enumerate().take(ellipsis) {
        match entry {
            Entry::NewAxis => placed.push((result_axis, at, entry)),
            _ => placed.push((axis, at, entry)),
        }
        axis += i64::from(*entry != Entry::NewAxis);
        result_axis += i64::from(!matches!(entry, Entry::Index(_)));
    }
    let (mut axis, mut result_axis) = (-1i64, -1i64);
    for (at, (_, entry)) in entries.iter().enumerate().skip(ellipsis.saturating_add(1)).rev() {
        match entry {
            Entry::NewAxis => placed.push((from_front(result_axis, result_rank)?, at, entry)),
            _ => placed.push((from_front(axis, rank)?, at, entry)),
        }
        axis -= i64::from(*entry != Entry::NewAxis);
        result_axis -= i64::from(!matches!(entry, Entry::Index(_)));
    }
    Some(placed)
}

/// Returns a bound that is not open.
fn number(bound: &Bound, entry: usize) -> Option<Number> {
    match bound {
        Bound::Open => None,
        Bound::At(at) => Some(at.as_const().map_or(Number::RunTime(entry), Number::Constant)),
        Bound::Unknown => Some(Number::RunTime(entry)),
    }
}

/// Returns `true` if a range selects its whole axis.
fn is_whole(scope: &Scope, dim: Option<&Dim>, range: &Range, reading: Reading) -> bool {
    let says_so = range.begin == Bound::Open && range.end == Bound::Open && range.step == Some(1);
    says_so || dim.is_some_and(|dim| slicing::is_identity(scope, dim, range, reading))
}

fn is_int_max(value: i64) -> bool {
    value == i64::from(i32::MAX) || value == i64::MAX
}

impl Lowered {
    /// Plans a range; `None` if ONNX cannot express it.
    fn range(
        &mut self,
        scope: &Scope,
        axis: i64,
        entry: usize,
        dim: Option<&Dim>,
        range: &Range,
        reading: Reading,
    ) -> Option<()> {
        let step = range.step?;
        let (start, end) = (number(&range.begin, entry), number(&range.end, entry));
        if step > 0 {
            let start = start.unwrap_or(Number::Constant(0));
            let end = end.unwrap_or(Number::Constant(i64::MAX));
            self.cuts.push(AxisRange { axis, start, end, step });
            return Some(());
        }
        let nothing = AxisRange { axis, start: Number::Constant(0), end: Number::Constant(0), step: 1 };
        match (&range.end, end) {
            // The end is after the last element, unless the axis is longer than `INT_MAX`.
            (_, Some(Number::Constant(end))) if is_int_max(end) => {
                let is_beyond = end == i64::MAX || dim.is_some_and(|dim| scope.le(dim, &Dim::constant(end)).is_yes());
                self.cuts.push(Some(nothing).filter(|_| is_beyond)?);
                return Some(());
            }
            // A bound known at run time must be less than every value that ONNX may read as open.
            (Bound::At(at), Some(Number::RunTime(_))) => {
                scope.bounds(at).1.filter(|&high| high < i64::from(i32::MAX))?;
            }
            (_, Some(Number::RunTime(_))) => return None,
            _ => {}
        }
        let end_is_in_front = matches!(end, Some(Number::Constant(end)) if end >= 0);
        let start_is_safe = match &range.begin {
            _ if reading.floor == Floor::First || end_is_in_front => true,
            Bound::Open => true,
            Bound::At(at) => {
                let reaches = |dim: &Dim| scope.ge(&scope.add(at, dim), &Dim::constant(0)).is_yes();
                scope.ge(at, &Dim::constant(-1)).is_yes() || dim.is_some_and(reaches)
            }
            Bound::Unknown => false,
        };
        let open_end = Number::Constant(i64::MIN);
        if start_is_safe {
            let start = start.unwrap_or(Number::Constant(-1));
            self.cuts.push(AxisRange { axis, start, end: end.unwrap_or(open_end), step });
            return Some(());
        }
        let Some(Number::Constant(begin)) = start else { return None };
        let end = match end {
            None => open_end,
            Some(Number::Constant(end)) if end > begin => {
                self.cuts.push(nothing);
                return Some(());
            }
            Some(Number::Constant(end)) => Number::Constant(end.checked_sub(begin)?.checked_sub(1)?),
            Some(Number::RunTime(_)) => return None,
        };
        let kept = Number::Constant(begin.checked_add(1)?);
        self.first.push(AxisRange { axis, start: Number::Constant(0), end: kept, step: 1 });
        self.cuts.push(AxisRange { axis, start: Number::Constant(-1), end, step });
        Some(())
    }
}

/// An edit under construction: nodes that compute operands are inserted at once, nodes on the data are chained at the end.
struct Lowering<'p, 'a> {
    place: &'p Place<'a>,
    edit: Edit,
    shape: Option<Vec<Dim>>,
    output: ValueId,
    /// Nodes whose first operand is the result of the node before.
    steps: Vec<NewNode>,
}

impl Lowering<'_, '_> {
    fn build(&mut self, plan: Lowered) -> Option<()> {
        let Lowered { first, mut cuts, indices, new_axes } = plan;
        // Chooses between a Squeeze of a Slice and Gathers by the number of nodes. Gather supports negative indices only in newer opsets.
        let constant = |&(_, index): &(i64, Number)| matches!(index, Number::Constant(_));
        let from_end = |&(_, index): &(i64, Number)| matches!(index, Number::Constant(index) if index < 0);
        let squeeze = !indices.is_empty()
            && indices.iter().all(constant)
            && (indices.len() > 1
                || !cuts.is_empty()
                || (!self.place.opset.counts_from_the_end() && indices.iter().any(from_end)));
        if squeeze {
            for &(axis, index) in &indices {
                let Number::Constant(index) = index else { return None };
                let end = if index == -1 { i64::MAX } else { index.checked_add(1)? };
                let (start, end) = (Number::Constant(index), Number::Constant(end));
                cuts.push(AxisRange { axis, start, end, step: 1 });
            }
        }
        self.slice(first.clone())?;
        self.shorten(&first);
        self.slice(cuts)?;
        let mut axes: Vec<i64> = indices.iter().map(|&(axis, _)| axis).collect();
        axes.sort_unstable();
        if squeeze {
            let node = self.write().squeeze(None, axes);
            self.steps.push(node);
        } else {
            self.gather_indices(indices)?;
        }
        if !new_axes.is_empty() {
            let node = self.write().unsqueeze(None, new_axes);
            self.steps.push(node);
        }
        Some(())
    }

    /// Replaces the dims by the lengths of these forward ranges.
    fn shorten(&mut self, cuts: &[AxisRange]) {
        for &AxisRange { axis, start, end, step } in cuts {
            let at = usize::try_from(axis).ok();
            let Some(dim) = self.shape.as_mut().zip(at).and_then(|(shape, at)| shape.get_mut(at)) else { continue };
            let len = match (dim.as_const(), start, end) {
                (Some(dim), Number::Constant(start), Number::Constant(end)) => {
                    slicing::resolve_integers(dim, Some(start), Some(end), step, slicing::tensorflow::READING).ok()
                }
                _ => None,
            };
            match len {
                Some((_, _, len)) => *dim = Dim::constant(len),
                None => self.shape = None,
            }
        }
    }

    /// Adds one Slice of these ranges.
    fn slice(&mut self, mut cuts: Vec<AxisRange>) -> Option<()> {
        if cuts.is_empty() {
            return Some(());
        }
        sort::by_key(&mut cuts, |cut| cut.axis);
        if !self.place.opset.slice_has_operands() {
            return self.slice_by_attributes(cuts);
        }
        let starts = self.vector(cuts.iter().map(|cut| cut.start), BEGIN)?;
        let ends = self.vector(cuts.iter().map(|cut| cut.end), END)?;
        let (axes, steps) = (cuts.iter().map(|cut| cut.axis).collect(), cuts.iter().map(|cut| cut.step).collect());
        let slice = self.write().slice_between(None, starts, ends, axes, steps)?;
        self.steps.push(slice);
        Some(())
    }

    /// Slice-1 has attributes and no steps. Ranges with steps become a Gather with listed indices.
    fn slice_by_attributes(&mut self, cuts: Vec<AxisRange>) -> Option<()> {
        let (mut starts, mut ends, mut axes) = (Vec::new(), Vec::new(), Vec::new());
        for AxisRange { axis, start, end, step } in cuts {
            let (Number::Constant(start), Number::Constant(end)) = (start, end) else { return None };
            if step == 1 {
                starts.push(start);
                ends.push(end);
                axes.push(axis);
                continue;
            }
            let dim = self.shape.as_ref()?.get(usize::try_from(axis).ok()?)?.as_const()?;
            let onnx = slicing::onnx::reading(slicing::SliceRule::Agree);
            let (start, step, len) = slicing::resolve_integers(dim, Some(start), Some(end), step, onnx).ok()?;
            if len > (LISTED as i64) {
                return None;
            }
            let listed = (0..len).map(|k| k.checked_mul(step)?.checked_add(start)).collect::<Option<Vec<i64>>>()?;
            let listed = self.constant(Tensor::vector(listed), "indices");
            self.steps.push(Build::gather(None, listed, axis));
        }
        if !axes.is_empty() {
            let steps = vec![1; axes.len()];
            let slice = self.write().slice(None, starts, ends, axes, steps)?;
            self.steps.push(slice);
        }
        Some(())
    }

    /// Adds one Gather for each index, in an order in which no Gather shifts the axis of a later one.
    fn gather_indices(&mut self, indices: Vec<(i64, Number)>) -> Option<()> {
        let (mut front, mut back): (Vec<_>, Vec<_>) = indices.into_iter().partition(|(axis, _)| *axis >= 0);
        sort::by_key(&mut front, |(axis, _)| std::cmp::Reverse(*axis));
        sort::by_key(&mut back, |(axis, _)| *axis);
        for (axis, index) in front.into_iter().chain(back) {
            let index = match index {
                Number::Constant(index) => self.constant(Tensor::scalar(index), "index"),
                Number::RunTime(entry) => self.index_at_run_time(entry, axis)?,
            };
            self.steps.push(Build::gather(None, index, axis));
        }
        Some(())
    }

    /// Returns element `entry` of the operand with the begins, as a scalar for a Gather.
    fn index_at_run_time(&mut self, entry: usize, axis: i64) -> Option<ValueId> {
        let known = self.place.fact(self.place.input(BEGIN)?).and_then(|fact| fact.elements());
        let source = self.operand(BEGIN)?;
        let at = self.constant(Tensor::scalar(i64::try_from(entry).ok()?), "entry");
        let index = self.side(Build::gather(source, at, 0usize), "index");
        let never_negative = known
            .as_ref()
            .and_then(|known| known.get(entry)?.as_int())
            .is_some_and(|index| self.place.scope().ge(index, &Dim::constant(0)).is_yes());
        if self.place.opset.counts_from_the_end() || never_negative {
            return Some(index);
        }
        if !self.place.opset.has("Where") {
            return None;
        }
        // Normalizes a negative index before the Gather. An index before the first element must not turn into a valid negative one: it is
        // replaced by the dim, which is out of range as well.
        let data = self.place.input(0)?;
        let shape = self.side(Build::shape(data), "shape");
        let axis = self.constant(Tensor::scalar(axis), "axis");
        let dim = self.side(Build::gather(shape, axis, 0usize), "dim");
        let counted = self.side(NewNode::new("Add", [Some(index), Some(dim)]), "counted");
        let zero = self.constant(Tensor::scalar(0i64), "zero");
        let outside = self.side(NewNode::new("Less", [Some(counted), Some(zero)]), "outside");
        let counted = self.side(NewNode::new("Where", [Some(outside), Some(dim), Some(counted)]), "counted");
        let negative = self.side(NewNode::new("Less", [Some(index), Some(zero)]), "negative");
        Some(self.side(NewNode::new("Where", [Some(negative), Some(counted), Some(index)]), "index"))
    }

    /// Returns a vector of these numbers: a constant, or a Concat of constants and slices of the operand.
    fn vector(&mut self, numbers: impl Iterator<Item = Number>, slot: usize) -> Option<ValueId> {
        enum Piece {
            Constant(Vec<i64>),
            Stretch(usize, usize),
        }
        let mut pieces: Vec<Piece> = Vec::new();
        for number in numbers {
            match (number, pieces.last_mut()) {
                (Number::Constant(value), Some(Piece::Constant(values))) => values.push(value),
                (Number::Constant(value), _) => pieces.push(Piece::Constant(vec![value])),
                (Number::RunTime(entry), Some(Piece::Stretch(_, end))) if *end == entry => *end += 1,
                (Number::RunTime(entry), _) => pieces.push(Piece::Stretch(entry, entry.checked_add(1)?)),
            }
        }
        let name = if slot == BEGIN { "starts" } else { "ends" };
        let mut values = Vec::with_capacity(pieces.len());
        for piece in pieces {
            values.push(match piece {
                Piece::Constant(numbers) => self.constant(Tensor::vector(numbers), name),
                Piece::Stretch(begin, end) => self.stretch(slot, begin, end)?,
            });
        }
        match values.as_slice() {
            [only] => Some(*only),
            _ => Some(self.side(Build::concat(values, 0usize), name)),
        }
    }

    /// Returns elements `begin..end` of an operand.
    fn stretch(&mut self, slot: usize, begin: usize, end: usize) -> Option<ValueId> {
        let length = self.place.fact(self.place.input(slot)?).and_then(|fact| fact.static_len());
        let source = self.operand(slot)?;
        if begin == 0 && length == Some(end) {
            return Some(source);
        }
        let mut number = |value: usize, name: &'static str| {
            let tensor = Tensor::vector(vec![i64::try_from(value).ok()?]);
            Some(Some(self.constant(tensor, name)))
        };
        let operands = [Some(source), number(begin, "first")?, number(end, "last")?];
        Some(self.side(NewNode::new("Slice", operands), "stretch"))
    }

    /// Returns an operand as `int64`.
    fn operand(&mut self, slot: usize) -> Option<ValueId> {
        let value = self.place.input(slot)?;
        match self.place.dtype(value)? {
            DType::Int64 => Some(value),
            // Cast names types by number since version 6.
            dtype if dtype.is_integer() => {
                let cast = self.write().cast(value, DType::Int64)?;
                Some(self.side(cast, "int64"))
            }
            _ => None,
        }
    }

    /// Returns a builder whose constants are named after the result.
    fn write(&mut self) -> Build<'_> {
        self.place.build(&mut self.edit, self.output)
    }

    fn constant(&mut self, tensor: Tensor, name: &'static str) -> ValueId {
        self.edit.constant(self.output, name, tensor)
    }

    /// Inserts a node that computes an operand, and returns its result.
    fn side(&mut self, node: NewNode, name: &'static str) -> ValueId {
        let value = self.edit.new_value(self.output, name);
        self.edit.insert.push(node.output(value));
        value
    }

    /// Chains the nodes on the data. Without any, the slice is an identity.
    fn finish(mut self, data: ValueId) -> Option<Edit> {
        let name = self.place.node()?.name.clone();
        let mut steps = std::mem::take(&mut self.steps);
        if steps.is_empty() {
            steps.push(NewNode::new("Identity", [None]));
        }
        let mut value = data;
        let last = steps.len().saturating_sub(1);
        for (at, mut node) in steps.into_iter().enumerate() {
            if let Some(slot) = node.inputs.first_mut() {
                *slot = Some(value);
            }
            value = if at == last { self.output } else { self.edit.new_value(self.output, "sliced") };
            let node = if at == last { node.named(name.as_str()) } else { node };
            self.edit.insert.push(node.output(value));
        }
        Some(self.edit.removing(self.place.id))
    }
}
