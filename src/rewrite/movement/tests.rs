//! Chains of Slices against their evaluation.

use crate::ir::{Constant, Data, DeclaredType, DimClaim, Extra, Model, NewNode, OpsetImport, ValueId};
use crate::ops::{Budget, evaluate_graph};
use crate::slicing::SliceRule;
use crate::tensor::{DType, Tensor};
use crate::{OnnxModel, Options};

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
    let results = evaluate_graph(model, model.main(), vec![Data::Tensor(data)], &Budget::default(), SliceRule::Agree);
    results.unwrap().first().and_then(Data::tensor).unwrap().clone()
}

/// Returns the remaining operators, after checking that the results are equal.
fn folded(slices: &[Slice<'_>], opset: i64) -> Vec<String> {
    let model = chain(slices, opset);
    let mut document = OnnxModel::of(model.clone());
    document.fold(&Options::default()).unwrap();
    for size in 0..9 {
        assert!(run(&model, size).same(&run(document.model(), size)), "{size} {slices:?}");
    }
    let folded = document.model();
    let nodes = folded.graph(folded.main()).nodes().filter_map(|node| folded.node(node));
    nodes.map(|node| node.op_type.to_string()).collect()
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
        [(&[-5], &[-1], &[0], &[1]), (&[-2], &[i64::MAX], &[0], &[1])],
        [(&[-5], &[-2], &[0], &[1]), (&[0], &[-1], &[0], &[1])],
        [(&[0], &[-1], &[0], &[1]), (&[-3], &[i64::MAX], &[0], &[1])],
        [(&[0], &[3], &[0], &[1]), (&[-1], &[i64::MIN], &[0], &[-1])],
        [(&[-1], &[i64::MIN], &[0], &[-1]), (&[-3], &[i64::MAX], &[0], &[1])],
    ];
    for pair in stepped {
        assert_eq!(folded(pair, 13), ["Slice"], "{pair:?}");
    }
    assert_eq!(folded(&[(&[-1], &[i64::MIN], &[0], &[-1]), (&[-1], &[i64::MIN], &[0], &[-1])], 13), ["Identity"]);
    // Selections between two reversals are selections from the other end.
    let reversed: Slice<'_> = (&[-1], &[i64::MIN], &[0], &[-1]);
    assert_eq!(folded(&[reversed, (&[2], &[-1], &[0], &[1]), reversed], 13), ["Slice"]);
    assert_eq!(folded(&[reversed, (&[-5], &[-1], &[0], &[1]), reversed], 13), ["Slice"]);
    // Without its first row: for one row, NumPy and ONNX Runtime read a start of −2 differently.
    assert_eq!(folded(&[reversed, (&[1], &[i64::MAX], &[0], &[1])], 13), ["Slice", "Slice"]);
    // The number of rows decides which of the last two rows the second Slice selects.
    assert_eq!(folded(&[(&[0], &[4], &[0], &[1]), (&[-2], &[9], &[0], &[1])], 13), ["Slice", "Slice"]);
}

#[test]
fn axes_that_stay_whole_are_not_named() {
    let model = chain(&[(&[0, 1], &[i64::MAX, 4], &[0, 1], &[1, 2])], 13);
    let mut document = OnnxModel::of(model);
    document.fold(&Options::default()).unwrap();
    let folded = document.model();
    let slice = folded.graph(folded.main()).nodes().find_map(|node| folded.node(node)).unwrap();
    let operand = |i: usize| folded.value(slice.input(i).unwrap()).tensor().unwrap().to_i64s().unwrap();
    assert_eq!([operand(1), operand(2), operand(3), operand(4)], [vec![1], vec![5], vec![1], vec![2]]);
}
