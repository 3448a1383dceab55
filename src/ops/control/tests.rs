use crate::ir::{Attribute, Data, DeclaredType};
use crate::ops::bodies::Bodies;
use crate::ops::{Budget, Decline, evaluate_graph};
use crate::slicing::SliceRule;
use crate::tensor::{DType, Tensor};

fn ints(data: &Data) -> (Vec<usize>, Vec<i64>) {
    let tensor = data.tensor().unwrap();
    (tensor.shape().to_vec(), tensor.to_i64s().unwrap())
}

/// Adds `doubled = Concat(x, x)` along axis 0.
fn doubled(bodies: &mut Bodies, graph: crate::ir::GraphId, x: &str, doubled: &str) {
    let pair = format!("{doubled}_pair");
    bodies.node(graph, "SequenceConstruct", &format!("{x} {x}"), &pair, &[]);
    bodies.node(graph, "ConcatFromSequence", &pair, doubled, &[("axis", Attribute::Int(0))]);
}

fn branching(condition: Option<bool>) -> Bodies {
    let mut b = Bodies::new(13);
    b.input("x", DType::Float, "N 3");
    b.input("y", DType::Float, "M 3");
    match condition {
        Some(condition) => b.constant(b.main(), "c", Tensor::from_bools(&[], &[condition]).unwrap()),
        None => b.input("c", DType::Bool, ""),
    }
    let (ours, others) = (b.graph(""), b.graph(""));
    b.outputs(ours, "x x x");
    b.outputs(others, "y y x");
    let attributes = [("then_branch", Attribute::Graph(ours)), ("else_branch", Attribute::Graph(others))];
    b.node(b.main(), "If", "c", "p q r", &attributes);
    b
}

#[test]
fn branches_join_and_the_same_choice_has_the_same_symbol() {
    assert_eq!(branching(None).facts("p q r"), ["float[?a,3]", "float[?a,3]", "float[N,3]"]);
    assert_eq!(branching(Some(true)).facts("p q r"), ["float[N,3]", "float[N,3]", "float[N,3]"]);
    assert_eq!(branching(Some(false)).facts("p q r"), ["float[M,3]", "float[M,3]", "float[N,3]"]);
}

#[test]
fn branches_join_contents_ranks_and_types() {
    let mut b = Bodies::new(13);
    b.input("c", DType::Bool, "1");
    b.input("x", DType::Float, "N");
    let (ours, others) = (b.graph(""), b.graph(""));
    b.constant(ours, "a", Tensor::vector(vec![1i64, 2, 3]));
    b.constant(others, "b", Tensor::vector(vec![1i64, 5, 3]));
    b.outputs(ours, "a a x a");
    b.outputs(others, "b x c b");
    let attributes = [("then_branch", Attribute::Graph(ours)), ("else_branch", Attribute::Graph(others))];
    b.node(b.main(), "If", "c", "p q r s", &attributes);
    // 2 or 5: the same new integer in both results.
    assert_eq!(b.facts("p q r s"), ["int64[3]={1,?a,3}", "?[?b]", "?[?c]", "int64[3]={1,?a,3}"]);
}

#[test]
fn a_decided_branch_is_evaluated() {
    let mut b = Bodies::new(13);
    b.constant(b.main(), "c", Tensor::from_bools(&[1], &[true]).unwrap());
    b.constant(b.main(), "x", Tensor::vector(vec![3i64, 4]));
    let (ours, others) = (b.graph(""), b.graph(""));
    b.node(ours, "ReduceSum", "x", "sum", &[("keepdims", Attribute::Int(0))]);
    b.outputs(ours, "sum");
    b.outputs(others, "x");
    let attributes = [("then_branch", Attribute::Graph(ours)), ("else_branch", Attribute::Graph(others))];
    b.node(b.main(), "If", "c", "p", &attributes);
    b.outputs(b.main(), "p");
    assert_eq!(b.facts("p"), ["int64[]={7}"]);
    assert_eq!(ints(&b.eval().unwrap()[0]), (vec![], vec![7]));
}

/// Builds a loop whose body returns its condition, keeps `x`, doubles `y` and `z`, and outputs its iteration number.
fn looping(limit: Option<i64>, condition: &str) -> Bodies {
    let mut b = Bodies::new(13);
    b.input("x0", DType::Float, "N 3");
    b.input("y0", DType::Float, "K");
    b.input("z0", DType::Int32, "K");
    match limit {
        Some(limit) => b.constant(b.main(), "m", Tensor::scalar(limit)),
        None => b.input("m", DType::Int64, ""),
    }
    match condition {
        "true" | "false" => b.constant(b.main(), "c", Tensor::from_bools(&[], &[condition == "true"]).unwrap()),
        "run time" => b.input("c", DType::Bool, ""),
        _ => {}
    }
    let body = b.graph("i ci x y z");
    doubled(&mut b, body, "y", "y2");
    doubled(&mut b, body, "z", "z2");
    b.outputs(body, "ci x y2 z2 i x");
    let condition = if condition == "none" { "_" } else { "c" };
    b.node(
        b.main(),
        "Loop",
        &format!("m {condition} x0 y0 z0"),
        "x1 y1 z1 numbers xs",
        &[("body", Attribute::Graph(body))],
    );
    b
}

#[test]
fn values_that_change_equally_share_a_symbol() {
    let facts = looping(None, "run time").facts("x1 y1 z1 numbers xs");
    assert_eq!(facts, ["float[N,3]", "float[?a]", "int32[?a]", "int64[?b]", "float"]);
}

#[test]
fn facts_inside_a_body_hold_for_every_iteration() {
    let facts = looping(None, "true").facts("x y z y2 z2");
    assert_eq!(facts, ["float[N,3]", "float[?a]", "int32[?a]", "float[2*?a]", "int32[2*?a]"]);
}

#[test]
fn the_trip_count_leads_the_scan_outputs() {
    assert_eq!(looping(Some(5), "true").facts("numbers xs"), ["int64[5]", "float[5,N,3]"]);
    assert_eq!(looping(Some(5), "none").facts("numbers xs"), ["int64[5]", "float[5,N,3]"]);
    // Without an iteration the shape of a scan output is unknown; runtimes use the declared shape.
    assert_eq!(looping(Some(-5), "true").facts("xs y1"), ["float", "float[K]"]);
    let mut bodies = looping(Some(5), "false");
    let number = bodies.value("i");
    bodies.model.declare(number, DeclaredType::tensor(DType::Int64, Some(Vec::new())));
    assert_eq!(bodies.facts("numbers y1"), ["int64[0]={}", "float[K]"]);
    let bodies = looping(Some(5), "run time");
    let walk = bodies.infer();
    let mut bodies = bodies;
    let numbers = bodies.value("numbers");
    let length = walk.facts.get(numbers).unwrap().shape().unwrap()[0].clone();
    assert_eq!(walk.scope().bounds(&length), (Some(0), Some(5)));
}

#[test]
fn a_symbolic_trip_count_is_kept() {
    let mut b = Bodies::new(13);
    b.input("m", DType::Int64, "1");
    b.constant(b.main(), "c", Tensor::from_bools(&[], &[true]).unwrap());
    let body = b.graph("i ci");
    b.outputs(body, "ci i");
    b.node(b.main(), "Loop", "m c", "numbers", &[("body", Attribute::Graph(body))]);
    // A negative count means no iteration.
    assert_eq!(b.facts("m numbers"), ["int64[1]={?a}", "int64[max(0, ?a)]"]);
}

#[test]
fn carried_numbers_are_followed() {
    let mut b = Bodies::new(13);
    b.input("m", DType::Int64, "");
    b.constant(b.main(), "c", Tensor::from_bools(&[], &[true]).unwrap());
    b.constant(b.main(), "k0", Tensor::vector(vec![4i64, 7]));
    b.constant(b.main(), "j0", Tensor::vector(vec![1i64, 7]));
    let body = b.graph("i ci k j");
    b.node(body, "ReduceMax", "k j", "unused", &[]);
    b.node(body, "SequenceConstruct", "k k", "pair", &[]);
    b.node(body, "ConcatFromSequence", "pair", "kk", &[("axis", Attribute::Int(0)), ("new_axis", Attribute::Int(1))]);
    b.outputs(body, "ci k kk");
    b.node(b.main(), "Loop", "m c k0 j0", "k1 j1", &[("body", Attribute::Graph(body))]);
    // Constant values are kept; values of changing rank keep their type.
    assert_eq!(b.facts("k1 j1 k j"), ["int64[2]={4,7}", "int64", "int64[2]={4,7}", "int64"]);
}

#[test]
fn swapped_values_are_unknown() {
    let mut b = Bodies::new(13);
    b.input("m", DType::Int64, "");
    b.constant(b.main(), "c", Tensor::from_bools(&[], &[true]).unwrap());
    b.constant(b.main(), "p0", Tensor::vector(vec![1i64, 2]));
    b.constant(b.main(), "q0", Tensor::vector(vec![1i64, 3]));
    let body = b.graph("i ci p q");
    b.outputs(body, "ci q p");
    b.node(b.main(), "Loop", "m c p0 q0", "p1 q1", &[("body", Attribute::Graph(body))]);
    assert_eq!(b.facts("p1 q1"), ["int64[2]={1,?a}", "int64[2]={1,?b}"]);
}

#[test]
fn values_with_constant_increments_are_known_after_the_loop() {
    let growing = |limit: Option<i64>, condition: bool| {
        let mut b = Bodies::new(13);
        match limit {
            Some(limit) => b.constant(b.main(), "m", Tensor::scalar(limit)),
            None => b.input("m", DType::Int64, ""),
        }
        match condition {
            true => b.constant(b.main(), "c", Tensor::from_bools(&[], &[true]).unwrap()),
            false => b.input("c", DType::Bool, ""),
        }
        b.input("w", DType::Float, "L 2");
        b.input("y0", DType::Float, "K 2");
        let body = b.graph("i ci y z");
        for (before, after) in [("y", "y1"), ("z", "z1")] {
            b.node(body, "SequenceConstruct", &format!("{before} w"), &format!("{before}w"), &[]);
            b.node(body, "ConcatFromSequence", &format!("{before}w"), after, &[("axis", Attribute::Int(0))]);
        }
        b.outputs(body, "ci y1 z1 i");
        b.node(b.main(), "Loop", "m c y0 w", "last other numbers", &[("body", Attribute::Graph(body))]);
        b
    };
    let facts = growing(None, false).facts("last other numbers");
    assert_eq!(facts, ["float[L*?a + K,2]", "float[L*(?a + 1),2]", "int64[?a]"]);
    assert_eq!(growing(Some(3), true).facts("last other"), ["float[3*L + K,2]", "float[4*L,2]"]);
    assert_eq!(growing(Some(1), true).facts("last other"), ["float[L + K,2]", "float[2*L,2]"]);
    assert_eq!(growing(Some(1), false).facts("last numbers"), ["float[L*?a + K,2]", "int64[?a]"]);
    assert_eq!(growing(Some(0), true).facts("last other"), ["float[K,2]", "float[L,2]"]);
    // In the body: expressions in the iteration number.
    assert_eq!(growing(None, false).facts("i y y1"), ["int64[]={?a}", "float[L*?a + K,2]", "float[L*(?a + 1) + K,2]"]);
}

#[test]
fn groups_of_equal_values_split_later() {
    // `y` and `z` are equal initially; `y` doubles and `z` takes the previous `y`. They are equal in the first
    // iteration only.
    let mut b = Bodies::new(13);
    b.input("m", DType::Int64, "");
    b.constant(b.main(), "c", Tensor::from_bools(&[], &[true]).unwrap());
    b.input("x", DType::Float, "K");
    b.input("w", DType::Float, "L");
    let body = b.graph("i ci y z");
    doubled(&mut b, body, "y", "y2");
    b.outputs(body, "ci y2 y");
    b.node(b.main(), "Loop", "m c x x", "y1 z1", &[("body", Attribute::Graph(body))]);
    assert_eq!(b.facts("y1 z1 y z"), ["float[?a]", "float[?b]", "float[?c]", "float[?d]"]);
}

#[test]
fn a_running_loop_has_the_results_of_its_body() {
    let mut b = Bodies::new(13);
    b.constant(b.main(), "m", Tensor::scalar(3i64));
    b.constant(b.main(), "c", Tensor::from_bools(&[], &[true]).unwrap());
    b.input("x", DType::Float, "K");
    b.constant(b.main(), "y0", Tensor::vector::<f32>(vec![]));
    let body = b.graph("i ci y");
    doubled(&mut b, body, "x", "x2");
    b.outputs(body, "ci x2");
    b.node(b.main(), "Loop", "m c y0", "y1", &[("body", Attribute::Graph(body))]);
    assert_eq!(b.facts("y1"), ["float[2*K]"]);
}

#[test]
fn an_empty_sequence_gets_the_type_of_inserted_elements() {
    let mut b = Bodies::new(13);
    b.input("m", DType::Int64, "");
    b.input("x", DType::Float, "K 2");
    b.node(b.main(), "SequenceEmpty", "", "s0", &[]);
    let body = b.graph("i ci s");
    b.node(body, "SequenceInsert", "s x", "s1", &[]);
    b.outputs(body, "ci s1");
    b.node(b.main(), "Loop", "m _ s0", "all", &[("body", Attribute::Graph(body))]);
    b.node(b.main(), "ConcatFromSequence", "all", "y", &[("axis", Attribute::Int(1))]);
    assert_eq!(b.facts("all s y"), ["seq(float[K,2])", "seq(float[K,2])", "float[K,?a]"]);
}

#[test]
fn elements_of_a_carried_sequence_differ() {
    let mut b = Bodies::new(13);
    b.input("m", DType::Int64, "");
    b.input("x", DType::Float, "K 2");
    b.constant(b.main(), "y0", Tensor::zeros(DType::Float, &[1, 2]).unwrap());
    b.node(b.main(), "SequenceConstruct", "y0", "s0", &[]);
    let body = b.graph("i ci s y");
    doubled(&mut b, body, "y", "y2");
    b.node(body, "SequenceInsert", "s y2", "s1", &[]);
    b.node(body, "SequenceAt", "s1 i", "e", &[]);
    b.outputs(body, "ci s1 y2");
    b.node(b.main(), "Loop", "m _ s0 y0", "all last", &[("body", Attribute::Graph(body))]);
    b.constant(b.main(), "one", Tensor::scalar(1i64));
    b.node(b.main(), "SequenceAt", "all one", "p", &[]);
    b.node(b.main(), "SequenceAt", "all one", "q", &[]);
    assert_eq!(b.facts("all p q"), ["seq(float[?a,2])", "float[?b,2]", "float[?c,2]"]);
    let walk = b.infer();
    for name in ["p", "e"] {
        let value = b.value(name);
        let size = walk.facts.get(value).unwrap().shape().unwrap()[0].clone();
        assert_eq!(walk.scope().bounds(&size), (Some(0), None), "{name}");
    }
}

#[test]
fn loops_are_evaluated() {
    let mut b = Bodies::new(13);
    b.constant(b.main(), "m", Tensor::scalar(3i64));
    b.constant(b.main(), "x0", Tensor::vector(vec![1i64, 2]));
    let body = b.graph("i ci x");
    doubled(&mut b, body, "x", "x2");
    b.node(body, "ReduceSum", "x", "sum", &[("keepdims", Attribute::Int(0))]);
    b.outputs(body, "ci x2 i sum");
    b.node(b.main(), "Loop", "m _ x0", "x1 numbers sums", &[("body", Attribute::Graph(body))]);
    b.outputs(b.main(), "x1 numbers sums");
    let results = b.eval().unwrap();
    assert_eq!(ints(&results[0]).0, [16]);
    assert_eq!(ints(&results[1]), (vec![3], vec![0, 1, 2]));
    assert_eq!(ints(&results[2]), (vec![3], vec![3, 6, 12]));
    assert_eq!(b.facts("numbers sums"), ["int64[3]={0,1,2}", "int64[3]={3,6,12}"]);
}

#[test]
fn the_condition_ends_a_loop_and_disputes_are_declined() {
    let ending = |condition: bool, limit: i64| {
        let mut b = Bodies::new(13);
        b.constant(b.main(), "m", Tensor::scalar(limit));
        b.constant(b.main(), "c", Tensor::from_bools(&[], &[true]).unwrap());
        let body = b.graph("i ci");
        b.constant(body, "stop", Tensor::from_bools(&[], &[false]).unwrap());
        b.outputs(body, "stop i");
        let inputs = if condition { "m c" } else { "m _" };
        b.node(b.main(), "Loop", inputs, "numbers", &[("body", Attribute::Graph(body))]);
        b.outputs(b.main(), "numbers");
        b
    };
    assert_eq!(ints(&ending(true, 9).eval().unwrap()[0]), (vec![1], vec![0]));
    assert_eq!(ending(true, 9).facts("numbers"), ["int64[1]={0}"]);
    assert!(matches!(ending(false, 9).eval(), Err(Decline::Unsupported(_))));
    assert_eq!(ints(&ending(false, 1).eval().unwrap()[0]), (vec![1], vec![0]));
    assert_eq!(ending(false, 9).facts("numbers"), ["int64[?a]"]);
}

#[test]
fn a_loop_without_end_is_declined() {
    let mut b = Bodies::new(13);
    b.constant(b.main(), "c", Tensor::from_bools(&[], &[true]).unwrap());
    b.constant(b.main(), "x", Tensor::scalar(1i64));
    let body = b.graph("i ci x0");
    b.outputs(body, "ci x0");
    b.node(b.main(), "Loop", "_ c x", "y", &[("body", Attribute::Graph(body))]);
    b.outputs(b.main(), "y");
    let budget = Budget::new(1 << 20, 1 << 20, 100_000_000, u64::MAX);
    let result = evaluate_graph(&b.model, b.main(), Vec::new(), &budget, SliceRule::default());
    assert!(matches!(result, Err(Decline::OverBudget(_))));
}

#[test]
fn nested_loops_use_facts_about_outer_values() {
    let mut b = Bodies::new(13);
    b.constant(b.main(), "m", Tensor::scalar(2i64));
    b.constant(b.main(), "x0", Tensor::vector(vec![1i64]));
    let outer = b.graph("i ci x");
    let inner = b.graph("j cj y");
    b.node(inner, "SequenceConstruct", "y x", "pair", &[]);
    b.node(inner, "ConcatFromSequence", "pair", "yx", &[("axis", Attribute::Int(0))]);
    b.outputs(inner, "cj yx");
    b.node(outer, "Loop", "m _ x", "grown", &[("body", Attribute::Graph(inner))]);
    b.outputs(outer, "ci grown");
    b.node(b.main(), "Loop", "m _ x0", "x1", &[("body", Attribute::Graph(outer))]);
    b.outputs(b.main(), "x1");
    assert_eq!(ints(&b.eval().unwrap()[0]).0, [9]);
    assert_eq!(b.facts("x1 x y"), ["int64[9]", "int64[?a]", "int64[?a*(?b + 1)]"]);
}

#[test]
fn bodies_of_the_wrong_arity_are_invalid() {
    let mut b = Bodies::new(13);
    b.input("x", DType::Float, "N");
    let body = b.graph("i ci");
    b.outputs(body, "ci");
    b.node(b.main(), "Loop", "_ _ x", "y", &[("body", Attribute::Graph(body))]);
    assert!(b.facts("y")[0].starts_with("invalid"));
}

/// Builds a scan that sums its slices and outputs each partial sum.
fn scanning(opset: i64, attributes: &[(&str, Attribute)]) -> (Bodies, Vec<(String, Attribute)>) {
    let mut b = Bodies::new(opset);
    let body = b.graph("s x");
    b.node(body, "SequenceConstruct", "s x", "pair", &[]);
    b.node(body, "ConcatFromSequence", "pair", "both", &[("axis", Attribute::Int(0)), ("new_axis", Attribute::Int(1))]);
    let reduced = if opset < 13 {
        vec![("keepdims", Attribute::Int(0)), ("axes", Attribute::Ints(vec![0]))]
    } else {
        b.constant(body, "zero", Tensor::vector(vec![0i64]));
        vec![("keepdims", Attribute::Int(0))]
    };
    b.node(body, "ReduceSum", if opset < 13 { "both" } else { "both zero" }, "sum", &reduced);
    b.outputs(body, "sum sum");
    let mut all =
        vec![("body".to_string(), Attribute::Graph(body)), ("num_scan_inputs".to_string(), Attribute::Int(1))];
    all.extend(attributes.iter().map(|(name, value)| (name.to_string(), value.clone())));
    (b, all)
}

fn scan(b: &mut Bodies, inputs: &str, attributes: &[(String, Attribute)]) {
    let attributes: Vec<(&str, Attribute)> =
        attributes.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
    b.node(b.main(), "Scan", inputs, "last sums", &attributes);
    b.outputs(b.main(), "last sums");
}

#[test]
fn scans_are_evaluated_along_axes_and_backwards() {
    let run = |attributes: &[(&str, Attribute)]| {
        let (mut b, attributes) = scanning(13, attributes);
        b.constant(b.main(), "s0", Tensor::vector(vec![0i64, 0]));
        b.constant(b.main(), "xs", Tensor::from_vec(&[2, 3], vec![1i64, 2, 3, 10, 20, 30]).unwrap());
        scan(&mut b, "s0 xs", &attributes);
        let results = b.eval().unwrap();
        (ints(&results[0]), ints(&results[1]))
    };
    let (last, sums) = run(&[("scan_input_axes", Attribute::Ints(vec![1]))]);
    assert_eq!(last, (vec![2], vec![6, 60]));
    assert_eq!(sums, (vec![3, 2], vec![1, 10, 3, 30, 6, 60]));
    let (_, sums) = run(&[
        ("scan_input_axes", Attribute::Ints(vec![-1])),
        ("scan_input_directions", Attribute::Ints(vec![1])),
        ("scan_output_axes", Attribute::Ints(vec![-1])),
        ("scan_output_directions", Attribute::Ints(vec![1])),
    ]);
    assert_eq!(sums, (vec![2, 3], vec![6, 5, 3, 60, 50, 30]));
}

#[test]
fn scans_of_a_batch() {
    let batch = |attributes: &[(&str, Attribute)], lengths: Option<Vec<i64>>| {
        let mut b = Bodies::new(8);
        let body = b.graph("s x");
        b.node(body, "ReduceSum", "x", "sum", &[]);
        b.outputs(body, "s sum");
        b.constant(b.main(), "s0", Tensor::from_vec(&[2, 1], vec![7i64, 8]).unwrap());
        b.constant(b.main(), "xs", Tensor::from_vec(&[2, 3, 1], vec![1i64, 2, 3, 4, 5, 6]).unwrap());
        let given = lengths.is_some();
        if let Some(lengths) = lengths {
            b.constant(b.main(), "lengths", Tensor::vector(lengths));
        }
        let mut all = vec![("body", Attribute::Graph(body)), ("num_scan_inputs", Attribute::Int(1))];
        all.extend(attributes.iter().cloned());
        b.node(b.main(), "Scan", if given { "lengths s0 xs" } else { "_ s0 xs" }, "last sums", &all);
        b.outputs(b.main(), "last sums");
        b
    };
    let results = batch(&[], None).eval().unwrap();
    assert_eq!(ints(&results[0]), (vec![2, 1], vec![7, 8]));
    assert_eq!(ints(&results[1]), (vec![2, 3, 1], vec![1, 2, 3, 4, 5, 6]));
    assert_eq!(batch(&[], Some(vec![3, 3])).facts("sums"), ["int64[2,3,1]={1,2,3,4,5,6}"]);
    let reversed = batch(&[("directions", Attribute::Ints(vec![1]))], None).eval().unwrap();
    assert_eq!(ints(&reversed[1]).1, [3, 2, 1, 6, 5, 4]);
    // The result after the end of a shorter sequence is undefined.
    assert!(matches!(batch(&[], Some(vec![3, 2])).eval(), Err(Decline::Unsupported(_))));
    assert_eq!(batch(&[], Some(vec![3, 2])).facts("last sums"), ["int64[2,1]", "int64[2,3,1]"]);
}

#[test]
fn scans_are_inferred() {
    let (mut b, attributes) = scanning(13, &[("scan_input_axes", Attribute::Ints(vec![1]))]);
    b.input("s0", DType::Float, "D");
    b.input("xs", DType::Float, "D T");
    scan(&mut b, "s0 xs", &attributes);
    assert_eq!(b.facts("last sums x s"), ["float[D]", "float[T,D]", "float[D]", "float[D]"]);
}

/// Builds `while i < n: i = i + step, output x`, with `n` the first dim of `x`, and an iteration limit.
fn counting(limit: Option<i64>, step: i64, first: &str) -> Bodies {
    let mut b = Bodies::new(16);
    b.input("x", DType::Float, "N 3");
    b.input("z", DType::Bool, "");
    b.constant(b.main(), "one", Tensor::scalar(step));
    b.constant(b.main(), "zero", Tensor::scalar(0i64));
    b.constant(b.main(), "yes", Tensor::from_bools(&[], &[true]).unwrap());
    b.node(b.main(), "Shape", "x", "v", &[("end", Attribute::Int(1))]);
    b.node(b.main(), "Squeeze", "v", "n", &[]);
    b.node(b.main(), "Less", "zero n", "less", &[]);
    if let Some(limit) = limit {
        b.constant(b.main(), "m", Tensor::scalar(limit));
    }
    let body = b.graph("k c i");
    b.node(body, "Add", "i one", "j", &[]);
    b.node(body, "Less", "j n", "below", &[]);
    b.node(body, "And", "below yes", "d", &[]);
    b.outputs(body, "d j x");
    let limit = if limit.is_some() { "m" } else { "_" };
    b.node(b.main(), "Loop", &format!("{limit} {first} zero"), "i1 xs", &[("body", Attribute::Graph(body))]);
    b
}

#[test]
fn a_counting_condition_determines_the_trip_count() {
    assert_eq!(counting(None, 1, "less").facts("i1 xs"), ["int64[]={N}", "float[N,N,3]"]);
    assert_eq!(counting(Some(i64::MAX), 1, "less").facts("i1"), ["int64[]={N}"]);
    assert_eq!(counting(Some(7), 1, "less").facts("i1"), ["int64[]={min(7, N)}"]);
    // At least one iteration, even for `N = 0`.
    assert_eq!(counting(None, 1, "yes").facts("i1"), ["int64[]={max(1, N)}"]);
    let half = "floor((N + 1)/2)";
    let xs = format!("float[{half},N*min(1, {half}),3]");
    assert_eq!(counting(None, 2, "less").facts("i1 xs"), ["int64[]={N + Mod(N, 2)}".to_string(), xs]);
    assert_eq!(counting(Some(7), 3, "less").facts("i1"), ["int64[]={3*min(7, floor((N + 2)/3))}"]);
    assert_eq!(counting(None, 3, "yes").facts("i1"), ["int64[]={3*max(1, floor((N + 2)/3))}"]);
    // Loops that count down or have another initial condition have an unknown number of iterations.
    assert_eq!(counting(None, -2, "less").facts("i1"), ["int64[]={-2*?a}"]);
    assert_eq!(counting(None, 1, "z").facts("i1"), ["int64[]={?a}"]);
}

#[test]
fn facts_during_an_iteration() {
    let mut b = Bodies::new(16);
    b.input("x", DType::Float, "N T");
    b.constant(b.main(), "one", Tensor::vector(vec![1i64]));
    b.constant(b.main(), "two", Tensor::vector(vec![2i64]));
    b.constant(b.main(), "yes", Tensor::from_bools(&[], &[true]).unwrap());
    b.node(b.main(), "Shape", "x", "v", &[("start", Attribute::Int(1))]);
    b.node(b.main(), "Sub", "v one", "m", &[]);
    b.node(b.main(), "Min", "v two", "w", &[]);
    b.node(b.main(), "Shape", "x", "rows", &[("end", Attribute::Int(1))]);
    b.node(b.main(), "Concat", "rows w", "s", &[("axis", Attribute::Int(0))]);
    b.node(b.main(), "ConstantOfShape", "s", "a0", &[]);
    let body = b.graph("i c a");
    b.constant(body, "axis", Tensor::vector(vec![0i64]));
    b.node(body, "Unsqueeze", "i axis", "from", &[]);
    b.node(body, "Add", "from two", "to", &[]);
    b.node(body, "Slice", "x from to one", "window", &[]);
    b.node(body, "Add", "a window", "a1", &[]);
    b.outputs(body, "c a1");
    b.node(b.main(), "Loop", "m yes a0", "y", &[("body", Attribute::Graph(body))]);
    assert_eq!(b.facts("window a y"), ["float[N,2]", "float[N,min(2, T)]", "float[N,min(2, T)]"]);
    // Outside the loop, T is unbounded.
    let walk = b.infer();
    let (scope, value) = (walk.scope(), b.value("x"));
    let size = walk.facts.get(value).unwrap().shape().unwrap()[1].clone();
    assert_eq!(scope.bounds(&size), (Some(0), None));
    assert!(!scope.ge(&size, &crate::dim::Dim::constant(2)).is_yes());
}

#[test]
fn a_condition_holds_in_its_branch() {
    let choosing = |operator: &str| {
        let mut b = Bodies::new(16);
        b.input("x", DType::Float, "N");
        b.constant(b.main(), "two", Tensor::vector(vec![2i64]));
        b.constant(b.main(), "zero", Tensor::vector(vec![0i64]));
        b.node(b.main(), "Shape", "x", "n", &[]);
        b.node(b.main(), operator, "n two", "c", &[]);
        let (ours, others) = (b.graph(""), b.graph(""));
        b.node(ours, "Slice", "x zero two", "part", &[]);
        b.outputs(ours, "part");
        b.outputs(others, "x");
        let attributes = [("then_branch", Attribute::Graph(ours)), ("else_branch", Attribute::Graph(others))];
        b.node(b.main(), "If", "c", "y", &attributes);
        b.facts("part y")
    };
    assert_eq!(choosing("Greater"), ["float[2]", "float[min(2, N)]"]);
    assert_eq!(choosing("GreaterOrEqual"), ["float[2]", "float[min(2, N)]"]);
    assert_eq!(choosing("Less"), ["float[N]", "float[N]"]);
    assert_eq!(choosing("Equal"), ["float[N]", "float[N]"]);
}

#[test]
fn a_scan_state_may_change_its_shape() {
    // Runtimes accept a scan of one slice whose body turns one row into two.
    let state = |result: &str, length: &str, axes: &str| {
        let mut b = Bodies::new(16);
        b.input("s0", DType::Float, "W 3");
        b.input("x", DType::Float, length);
        b.input("w", DType::Float, axes);
        let body = b.graph("s e");
        b.node(body, "Identity", result, "s1", &[]);
        b.outputs(body, "s1");
        let all = [("body", Attribute::Graph(body)), ("num_scan_inputs", Attribute::Int(1))];
        b.node(b.main(), "Scan", "s0 x", "y", &all);
        b.facts("y s").join(" ")
    };
    assert_eq!(state("w", "L 3", "2 3"), "float[min(1, L)*(2 - W) + W,3] float[?a,3]");
    assert_eq!(state("w", "5 3", "2 3"), "float[2,3] float[?a,3]");
    assert_eq!(state("w", "1 3", "2 3"), "float[2,3] float[W,3]");
    assert_eq!(state("w", "0 3", "2 3"), "float[W,3] float[?a,3]");
    assert_eq!(state("w", "L 3", "1 W 3"), "float float");
    assert_eq!(state("s", "L 3", "2 3"), "float[W,3] float[W,3]");
    assert_eq!(state("w", "L 3", "W 3"), "float[W,3] float[W,3]");
}

#[test]
fn a_scan_that_adds_slices_of_another_size() {
    let sums = |shape: &str| {
        let mut b = Bodies::new(16);
        b.input("s0", DType::Float, "N");
        b.input("x", DType::Float, shape);
        let body = b.graph("s e");
        b.node(body, "Add", "s e", "s1", &[]);
        b.outputs(body, "s1 s1");
        let all = [("body", Attribute::Graph(body)), ("num_scan_inputs", Attribute::Int(1))];
        b.node(b.main(), "Scan", "s0 x", "y rows", &all);
        b.facts("y rows").join(" ")
    };
    assert_eq!(sums("L N"), "float[N] float[L,N]");
    assert_eq!(sums("L 1"), "float[N] float[L,N]");
    assert_eq!(sums("7 4"), "float[4] float[7,4]");
    let met = "min(1, M, N)*max(M, N)";
    assert_eq!(sums("7 M"), format!("float[{met}] float[7,{met}]"));
    // Without a slice the state is unchanged.
    assert_eq!(sums("L 4"), "float[min(1, L)*(4 - N) + N] float[L,4]");
}
