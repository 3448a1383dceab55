//! A user's operators: the results of their functions reach all later nodes, and wrong results do not.

use onnx_slice_fold::{CustomOperator, CustomType, DType, Data, EventKind, OnnxModel, Options, Tensor};

use crate::support;

fn opened(source: &str) -> OnnxModel {
    OnnxModel::of(onnx_slice_fold::ir::text::parse(source).expect("the model is right"))
}

/// `Grow<by>(x)` appends `by` zeros.
fn grow() -> CustomOperator {
    CustomOperator::new("com.example", "Grow", |node| {
        let by = node.int("by").ok_or("attribute 'by' is missing")?;
        let (Some(dtype), Some([size])) = (node.dtype(0), node.shape(0)) else { return Ok(Vec::new()) };
        Ok(vec![CustomType::new(dtype, [format!("{size} + {by}")])])
    })
    .evaluated_by(|node| {
        let mut numbers = node.tensor(0).and_then(Tensor::to_i64s).ok_or("operand 0 should hold integers")?;
        let by = node.int("by").and_then(|by| usize::try_from(by).ok()).unwrap_or(0);
        numbers.resize(numbers.len() + by, 0);
        Tensor::from_vec(&[numbers.len()], numbers).map(|tensor| vec![tensor]).map_err(|error| error.to_string())
    })
}

#[test]
fn shapes_flow_through_a_custom_operator() {
    let mut model = opened(
        r#"<ir_version: 8, opset_import: ["" : 17, "com.example" : 1]>
        g (int64[n] x) => (y, s) { h = com.example.Grow <by = 3> (x)  y = Neg (h)  s = Shape (y) }"#,
    );
    model.register(grow()).expect("the name is free");
    model.fold(&Options::new()).expect("it is folded");
    assert!(model.text().contains(r#"int64["n + 3"] y"#), "{}", model.text());
    let given = Data::Tensor(Tensor::from_vec(&[2], vec![5i64, 6]).expect("a tensor"));
    let outputs = model.evaluate([("x", given)]).expect("it is evaluated");
    assert_eq!(outputs[0].1.tensor().and_then(Tensor::to_i64s), Some(vec![-5, -6, 0, 0, 0]));
}

#[test]
fn a_custom_operator_of_constants_is_computed() {
    let source = r#"<ir_version: 8, opset_import: ["" : 17, "com.example" : 1]>
        g (float[n] x) => (y) <int64[2] c = {3, 1}, int64 one = {1}> { h = com.example.Grow <by = 1> (c)  e = Add (h, one)  y = Reshape (x, e) }"#;
    let mut model = opened(source);
    model.register(grow()).expect("the name is free");
    let report = model.fold(&Options::new()).expect("it is folded");
    assert_eq!(report.after.nodes(), 1, "{:?}", report.notes);
    // Without a description the node and its consumers are kept.
    let mut unknown = opened(source);
    assert_eq!(unknown.fold(&Options::new()).expect("it is folded").after.nodes(), 3);
}

#[test]
fn functions_bind_the_attributes_of_a_custom_operator() {
    let mut model = opened(
        r#"<ir_version: 8, opset_import: ["" : 17, "local" : 1, "com.example" : 1]>
        g (int64[n] x) => (y) { y = local.F <more = 5> (x) }
        <domain: "local", opset_import: ["" : 17, "com.example" : 1]>
        F <more> (a) => (b) { b = com.example.Grow <by : int = @more> (a) }"#,
    );
    model.register(grow()).expect("the name is free");
    model.fold(&Options::new()).expect("it is folded");
    assert!(model.text().contains(r#"int64["n + 5"] y"#), "{}", model.text());
}

#[test]
fn implausible_results_are_reported_and_not_used() {
    let source = r#"<ir_version: 8, opset_import: ["" : 17, "com.example" : 1]>
        g (float[n] x) => (y) { h = com.example.Odd (x)  y = Neg (h) }"#;
    for (size, wrong) in
        [("n - 1", "may be negative"), ("rows", "not an expression"), ("n +", "not an expression"), ("-2", "negative")]
    {
        let mut model = opened(source);
        let odd = CustomOperator::new("com.example", "Odd", move |_| Ok(vec![CustomType::new(DType::Float, [size])]));
        model.register(odd).expect("the name is free");
        let report = model.fold(&Options::new()).expect("it is folded");
        let told = report.notes.iter().any(|note| note.kind == EventKind::Undetermined && note.reason.contains(wrong));
        assert!(told, "{size}: {:?}", report.notes);
        assert!(model.text().contains("=> (y)"), "{}", model.text());
    }
    let mut model = opened(source);
    let unknown = CustomOperator::new("com.example", "Odd", |_| Ok(vec![CustomType::new(DType::Float, ["?", "2"])]));
    model.register(unknown).expect("the name is free");
    model.fold(&Options::new()).expect("it is folded");
    let shape = support::shape(model.model(), "y");
    assert_eq!(shape, "h__0,2");
}

/// Evaluation that contradicts inference is not folded.
#[test]
fn a_description_that_contradicts_itself_folds_nothing() {
    let mut model = opened(
        r#"<ir_version: 8, opset_import: ["" : 17, "com.example" : 1]>
        g (float[n] x) => (y) <float[2] c = {4, 5}> { h = com.example.Odd (c)  y = Add (h, h) }"#,
    );
    let odd = CustomOperator::new("com.example", "Odd", |_| Ok(vec![CustomType::new(DType::Float, [3])]))
        .evaluated_by(|node| Ok(vec![node.tensor(0).cloned().ok_or("no value")?]));
    model.register(odd).expect("the name is free");
    let report = model.fold(&Options::new()).expect("it is folded");
    assert!(report.notes.iter().any(|note| note.kind == EventKind::Declined), "{:?}", report.notes);
    assert_eq!(report.after.nodes(), 2);
}

#[test]
fn operators_that_are_known_keep_their_meaning() {
    let mut model = opened(r#"<ir_version: 8, opset_import: ["" : 17]> g (float[n] x) => (y) { y = Neg (x) }"#);
    for domain in ["", "ai.onnx"] {
        let error = model.register(CustomOperator::new(domain, "Neg", |_| Ok(Vec::new()))).expect_err("it is known");
        assert_eq!(error.to_string(), "the program already defines the operator Neg, so it cannot be registered");
    }
    let mut own = opened(
        r#"<ir_version: 8, opset_import: ["" : 17, "com.example" : 1]> g (int64[n] x) => (y) { y = com.example.Grow (x) }
        <domain: "com.example", opset_import: ["" : 17]> Grow (a) => (b) { b = Neg (a) }"#,
    );
    own.register(grow()).expect("the name is free");
    own.fold(&Options::new()).expect("the model's own function comes first");
    assert!(own.text().contains("Neg") && own.text().contains("int64[n] y"), "{}", own.text());
}
