//! Slice algebra. What a slice takes and how slices compose is the business of [`crate::slicing`]; here it becomes edits.

use super::{Place, Rule};
use crate::dim::Dim;
use crate::ir::{Edit, NewNode, NodeId, ValueId};
use crate::ops;
use crate::slicing::{self, AxisOp, Range, Reading, onnx};
use crate::tensor::Tensor;

pub(super) const RULES: &[Rule] = &[
    Rule { name: "slice-nothing", operators: &["Slice"], exact: true, apply: slice_nothing },
    Rule { name: "slice-slice", operators: &["Slice"], exact: true, apply: slice_slice },
    Rule { name: "slice-fewer-axes", operators: &["Slice"], exact: true, apply: slice_fewer_axes },
];

/// What a Slice takes of each axis of its data; `None` is all of it.
pub(super) struct Taken {
    pub(super) ranges: Vec<Option<Range>>,
    pub(super) dims: Vec<Dim>,
    pub(super) reading: Reading,
    /// How many axes the node names.
    named: usize,
}

/// What the Slice `id` takes. Where readings of the operator are in dispute its ranges are not resolved by what is built on this.
pub(super) fn taken(place: &Place<'_>, id: NodeId) -> Option<Taken> {
    let spec = ops::slice_spec(place.model, place.facts, id, slicing::Rule::Agree).ok()??;
    let dims = place.shape(place.model.node(id)?.input(0)?)?.to_vec();
    let mut named = 0;
    let mut ranges = Vec::with_capacity(dims.len());
    for (op, dim) in spec.dense(dims.len()).ok()??.into_iter().zip(&dims) {
        ranges.push(match op {
            AxisOp::Keep => None,
            AxisOp::Range(range) => {
                named += 1;
                let range = slicing::with_numbers(place.scope(), dim, &range, spec.reading);
                Some(range).filter(|range| !slicing::is_identity(place.scope(), dim, range, spec.reading))
            }
            AxisOp::Index(_) | AxisOp::NewAxis => return None,
        });
    }
    Some(Taken { ranges, dims, reading: spec.reading, named })
}

/// `x[0:dim] = x`, on every axis.
fn slice_nothing(place: &mut Place<'_>) -> Option<Edit> {
    let value = place.input(0)?;
    if taken(place, place.id)?.ranges.iter().any(Option::is_some) {
        return None;
    }
    place.forward("slice-nothing", value)
}

/// How many readers of one slice are looked at.
const MOST_READERS: usize = 16;

/// `x[r][s] = x[r∘s]` on every axis. All that reads the first slice must be such: else it would stay, and nothing be saved.
fn slice_slice(place: &mut Place<'_>) -> Option<Edit> {
    let middle = place.input(0)?;
    let (id, node) = place.producer(middle, "Slice")?;
    let data = node.input(0)?;
    let first = taken(place, id)?;
    let both = composed(place, &first, place.id)?;
    if !place.has_one_reader(middle) {
        let users = place.model.users(middle);
        let goes = |&(user, slot): &(NodeId, usize)| {
            let slice =
                place.model.node(user).filter(|slice| slice.is("Slice") && Some(slice.graph()) == place.graph());
            let ranges = slice.filter(|_| slot == 0).and_then(|_| composed(place, &first, user));
            ranges.is_some_and(|ranges| Numbers::of(&ranges).is_some_and(|numbers| numbers.can_be_said(place)))
        };
        let named = place.model.is_output(middle) || place.model.value(middle).pinned;
        if named || users.len() > MOST_READERS || !users.iter().all(goes) {
            return None;
        }
    }
    let edit = place.edit("slice-slice")?;
    resliced(place, edit, data, &both)
}

/// What the Slice `second` takes of the data of the slice it reads.
fn composed(place: &Place<'_>, first: &Taken, second: NodeId) -> Option<Vec<Option<Range>>> {
    let second = taken(place, second)?;
    let reading = first.reading;
    let axes = first.dims.iter().zip(&first.ranges).zip(second.ranges);
    let both = axes.map(|((dim, first), second)| match (first, second) {
        (Some(one), Some(second)) => slicing::compose(place.scope(), dim, one, &second, reading).map(Some),
        (one, None) => Some(one.clone()),
        (None, one) => Some(one),
    });
    both.collect()
}

/// An axis that is taken whole need not be named.
fn slice_fewer_axes(place: &mut Place<'_>) -> Option<Edit> {
    let data = place.input(0)?;
    let Taken { ranges, named, .. } = taken(place, place.id)?;
    let kept = ranges.iter().flatten().count();
    if kept == 0 || kept == named {
        return None;
    }
    let edit = place.edit("slice-fewer-axes")?;
    resliced(place, edit, data, &ranges)
}

/// Ranges of numbers as a Slice says them.
#[derive(Default)]
struct Numbers {
    starts: Vec<i64>,
    ends: Vec<i64>,
    axes: Vec<i64>,
    steps: Vec<i64>,
}

impl Numbers {
    fn of(ranges: &[Option<Range>]) -> Option<Numbers> {
        let mut numbers = Numbers::default();
        for (axis, range) in ranges.iter().enumerate() {
            let Some(range) = range else { continue };
            let step = range.step?;
            numbers.starts.push(onnx::start_of(&range.begin, step)?);
            numbers.ends.push(onnx::end_of(&range.end, step)?);
            numbers.axes.push(i64::try_from(axis).ok()?);
            numbers.steps.push(step);
        }
        Some(numbers)
    }

    fn has_steps(&self) -> bool {
        self.steps.iter().any(|&step| step != 1)
    }

    /// Whether the operator set has a Slice that takes these.
    fn can_be_said(&self, place: &Place<'_>) -> bool {
        place.opset >= 10 || !self.has_steps()
    }
}

/// An edit that puts a Slice of these ranges of numbers in the node's place.
fn resliced(place: &mut Place<'_>, mut edit: Edit, data: ValueId, ranges: &[Option<Range>]) -> Option<Edit> {
    let numbers = Numbers::of(ranges).filter(|numbers| numbers.can_be_said(place))?;
    let output = place.output(0)?;
    let name = place.node()?.name.clone();
    let has_steps = numbers.has_steps();
    let Numbers { starts, ends, axes, steps } = numbers;
    let node = if place.opset >= 10 {
        let mut operands = vec![Some(data)];
        let steps = Some(steps).filter(|_| has_steps);
        let vectors = [("starts", Some(starts)), ("ends", Some(ends)), ("axes", Some(axes)), ("steps", steps)];
        for (name, vector) in vectors {
            let Some(vector) = vector else { continue };
            let value = place.new_value(output, name);
            edit.constants.push((value, Tensor::vector(vector)));
            operands.push(Some(value));
        }
        NewNode::new("Slice", operands)
    } else {
        NewNode::new("Slice", [Some(data)]).with("starts", starts).with("ends", ends).with("axes", axes)
    };
    Some(edit.removing(place.id).inserting(node.named(name).output(output)))
}

#[cfg(test)]
mod tests {
    use crate::ir::{Constant, Data, DeclaredType, DimClaim, Extra, Model, NewNode, OpsetImport, ValueId};
    use crate::ops::{Budget, evaluate_graph};
    use crate::slicing::Rule;
    use crate::tensor::{DType, Tensor};
    use crate::{Document, Options};

    /// Starts, ends, axes, steps of one Slice.
    type Slice<'s> = (&'s [i64], &'s [i64], &'s [i64], &'s [i64]);

    /// A chain of slices of `x[S, 6]` at an operator set.
    fn chain(slices: &[Slice<'_>], opset: i64) -> Model {
        let mut model = Model::new();
        model.ir_version = 8;
        model.opsets.push(OpsetImport { domain: String::new(), version: opset, extra: Extra::new() });
        let main = model.main();
        let x = model.add_value("x");
        let dims = vec![DimClaim::Param("S".into()), DimClaim::Value(6)];
        model.declare(x, DeclaredType::tensor(DType::Int64, Some(dims)));
        model.add_input(main, x).unwrap();
        let mut value = x;
        for (at, &(starts, ends, axes, steps)) in slices.iter().enumerate() {
            let operand = |model: &mut Model, name: &str, numbers: &[i64]| -> ValueId {
                let value = model.add_value(format!("{name}{at}"));
                model.add_initializer(main, value, Constant::dense(Tensor::vector(numbers.to_vec()))).unwrap();
                value
            };
            let node = if opset < 10 {
                let node = NewNode::new("Slice", [Some(value)]);
                node.with("starts", starts.to_vec()).with("ends", ends.to_vec()).with("axes", axes.to_vec())
            } else {
                let named = [("starts", starts), ("ends", ends), ("axes", axes), ("steps", steps)];
                let operands = named.map(|(name, numbers)| Some(operand(&mut model, name, numbers)));
                NewNode::new("Slice", std::iter::once(Some(value)).chain(operands))
            };
            value = model.add_value(format!("y{at}"));
            model.add_node(main, node.output(value)).unwrap();
        }
        model.add_output(main, value);
        model
    }

    fn run(model: &Model, size: usize) -> Tensor {
        let data = Tensor::from_vec(&[size, 6], (0..size as i64 * 6).collect::<Vec<i64>>()).unwrap();
        let results = evaluate_graph(model, model.main(), vec![Data::Tensor(data)], &Budget::default(), Rule::Agree);
        results.unwrap().first().and_then(Data::tensor).unwrap().clone()
    }

    /// The operators that are left, after checking that the result is the same.
    fn folded(slices: &[Slice<'_>], opset: i64) -> Vec<String> {
        let model = chain(slices, opset);
        let mut document = Document::of(model.clone());
        document.fold(&Options::default()).unwrap();
        for size in 0..9 {
            assert!(run(&model, size).same(&run(document.model(), size)), "{size} {slices:?}");
        }
        let folded = document.model();
        let nodes = folded.graph(folded.main()).nodes().filter_map(|node| folded.node(node));
        nodes.map(|node| node.op_type.clone()).collect()
    }

    #[test]
    fn slices_of_everything_go_away() {
        for opset in [9, 10, 13] {
            assert_eq!(folded(&[(&[0], &[i64::MAX], &[0], &[1]), (&[1], &[2], &[0], &[1])], opset), ["Slice"]);
            assert_eq!(folded(&[(&[0, -6], &[i64::MAX, 9], &[0, 1], &[1, 1])], opset), ["Identity"]);
        }
    }

    #[test]
    fn slices_of_slices_become_one() {
        let pairs: &[[Slice<'_>; 2]] = &[
            [(&[1], &[i64::MAX], &[0], &[1]), (&[2], &[i64::MAX], &[0], &[1])],
            [(&[1], &[5], &[0], &[1]), (&[1], &[2], &[-2], &[1])],
            [(&[0], &[-1], &[0], &[1]), (&[0], &[-1], &[0], &[1])],
            [(&[1], &[i64::MAX], &[0], &[1]), (&[1], &[3], &[1], &[1])],
            [(&[0, 1], &[4, 5], &[0, 1], &[1, 1]), (&[1], &[-1], &[1], &[1])],
        ];
        for (pair, opset) in pairs.iter().flat_map(|pair| [9, 11, 13].map(|opset| (pair, opset))) {
            assert_eq!(folded(pair, opset), ["Slice"], "{pair:?}");
        }
        let stepped: &[[Slice<'_>; 2]] = &[
            [(&[0], &[i64::MAX], &[0], &[2]), (&[1], &[i64::MAX], &[0], &[3])],
            [(&[-1], &[i64::MIN], &[0], &[-1]), (&[0], &[3], &[0], &[1])],
            [(&[1], &[i64::MAX], &[0], &[1]), (&[-1], &[i64::MIN], &[0], &[-1])],
            [(&[5], &[0], &[1], &[-2]), (&[1], &[3], &[1], &[1])],
        ];
        for pair in stepped {
            assert_eq!(folded(pair, 13), ["Slice"], "{pair:?}");
        }
        assert_eq!(folded(&[(&[-1], &[i64::MIN], &[0], &[-1]), (&[-1], &[i64::MIN], &[0], &[-1])], 13), ["Identity"]);
        // Of how many rows the last two are left depends on how many there are.
        assert_eq!(folded(&[(&[0], &[4], &[0], &[1]), (&[-2], &[9], &[0], &[1])], 13), ["Slice", "Slice"]);
    }

    #[test]
    fn axes_that_stay_whole_are_not_named() {
        let model = chain(&[(&[0, 1], &[i64::MAX, 4], &[0, 1], &[1, 2])], 13);
        let mut document = Document::of(model);
        document.fold(&Options::default()).unwrap();
        let folded = document.model();
        let slice = folded.graph(folded.main()).nodes().find_map(|node| folded.node(node)).unwrap();
        let operand = |i: usize| folded.value(slice.input(i).unwrap()).tensor().unwrap().to_i64s().unwrap();
        assert_eq!([operand(1), operand(2), operand(3), operand(4)], [vec![1], vec![4], vec![1], vec![2]]);
    }
}
