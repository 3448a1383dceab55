//! What a model declares of shapes inside it: names to adopt, gaps to fill, errors to report, and no premise.

use onnx_slice_fold::ir::{DeclaredType, DimClaim, Model, text};
use onnx_slice_fold::ops::EventKind;
use onnx_slice_fold::{Document, Options, Report};

fn folded(source: &str, options: &Options) -> (Model, Report) {
    let model = text::parse(source).unwrap_or_else(|error| panic!("{error}\n{source}"));
    let mut document = Document::of(model);
    let report = document.fold(options).expect("the model folds");
    (document.model().clone(), report)
}

fn inferred(source: &str) -> (Model, Report) {
    folded(source, &Options { fold: false, ..Options::default() })
}

fn shape(model: &Model, name: &str) -> String {
    let graph = model.graph(model.main());
    let results = graph.nodes().filter_map(|id| model.node(id)).flat_map(|node| node.outputs().iter().flatten());
    let value = *results.into_iter().find(|&&value| model.value(value).name == name).expect("the value is there");
    let declared = model.value(value).declared.as_ref().and_then(DeclaredType::shape).expect("it has a shape");
    let one = |claim: &DimClaim| match claim {
        DimClaim::Unknown => "?".to_string(),
        DimClaim::Value(size) => size.to_string(),
        DimClaim::Param(name) => name.clone(),
    };
    declared.iter().map(|dim| one(&dim.claim)).collect::<Vec<_>>().join(",")
}

fn notes(report: &Report, kind: EventKind) -> Vec<String> {
    report.notes.iter().filter(|(_, other, _)| *other == kind).map(|(_, _, reason)| reason.clone()).collect()
}

#[test]
fn an_author_s_name_is_shown_wherever_its_size_occurs() {
    let (model, report) = inferred(
        r#"<ir_version: 8, opset_import: ["" : 17]>
        agraph (float[batch, ?, 4] past, float[batch, seq, 4] now) => (float[batch, total_seq, 4] all) <float[a, b, 4] twice>
        {
            all = Concat <axis = 1> (past, now)
            doubled = Concat <axis = 1> (all, all)
            twice = Relu (all)
        }"#,
    );
    assert_eq!(shape(&model, "all"), "batch,total_seq,4");
    // Equal sizes have one name, whatever else they are called.
    assert_eq!(shape(&model, "twice"), "batch,total_seq,4");
    assert_eq!(shape(&model, "doubled"), "batch,2*total_seq,4");
    assert_eq!(notes(&report, EventKind::Claimed), [""; 0]);
}

#[test]
fn a_symbol_that_an_author_names_is_shown_in_expressions() {
    let (model, _) = inferred(
        r#"<ir_version: 8, opset_import: ["" : 17]>
        agraph (float[n] x) => (int64[1, found] at, int64[1, m] more)
        {
            at = NonZero (x)
            more = Concat <axis = 1> (at, at)
            most = Concat <axis = 1> (more, at)
        }"#,
    );
    assert_eq!(shape(&model, "at"), "1,found");
    // The first name says more than the second one.
    assert_eq!(shape(&model, "more"), "1,2*found");
    assert_eq!(shape(&model, "most"), "1,3*found");
}

#[test]
fn a_name_of_an_input_is_a_claim_that_fills_a_gap() {
    let (model, report) = inferred(
        r#"<ir_version: 8, opset_import: ["" : 17]>
        agraph (float[n] x) => (int64[1, n] at)
        {
            at = NonZero (x)
        }"#,
    );
    assert_eq!(shape(&model, "at"), "1,n");
    assert_eq!(notes(&report, EventKind::Claimed), ["part of the shape of 'at' is written as claimed, and not proved"]);
}

#[test]
fn a_false_claim_is_reported_and_the_proof_is_written() {
    let (model, report) = inferred(
        r#"<ir_version: 8, opset_import: ["" : 17]>
        agraph (float[n, 4] x) => (float[n, 5] y)
        {
            y = Relu (x)
        }"#,
    );
    assert_eq!(shape(&model, "y"), "n,4");
    assert_eq!(
        notes(&report, EventKind::FalseClaim),
        ["'y' is declared float[n,5]; proved, and written, is float[n,4]"]
    );
}

#[test]
fn only_what_is_trusted_is_a_premise() {
    // The slice takes everything if what is found is no more than 3.
    let source = r#"<ir_version: 8, opset_import: ["" : 17]>
        agraph (float[n] x) => (int64[1, m] y) <int64[1, 3] at, int64[1] start = {0}, int64[1] end = {3}, int64[1] axis = {1}>
        {
            at = NonZero (x)
            y = Slice (at, start, end, axis)
        }"#;
    let has_slice = |model: &Model| {
        let graph = model.graph(model.main());
        graph.nodes().filter_map(|id| model.node(id)).any(|node| node.op_type == "Slice")
    };
    let (plain, _) = folded(source, &Options::default());
    assert!(has_slice(&plain));
    assert_eq!(shape(&plain, "at"), "1,3");
    let (trusted, report) = folded(source, &Options { trust_declared_shapes: true, ..Options::default() });
    assert!(!has_slice(&trusted), "{}", text::print(&trusted));
    assert_eq!(notes(&report, EventKind::FalseClaim), [""; 0]);
}

#[test]
fn a_trusted_claim_that_is_false_is_no_premise() {
    let source = r#"<ir_version: 8, opset_import: ["" : 17]>
        agraph (float[n, 4] x) => (float[n, 5] y)
        {
            y = Relu (x)
        }"#;
    let (model, report) = folded(source, &Options { trust_declared_shapes: true, ..Options::default() });
    assert_eq!(shape(&model, "y"), "n,4");
    assert_eq!(notes(&report, EventKind::FalseClaim).len(), 1);
}

/// A caller may give another target.
#[test]
fn the_default_of_an_input_says_nothing() {
    let source = r#"<ir_version: 8, opset_import: ["" : 17]>
        agraph (float[n, 4] x, int64[2] target) => (float[a, b] y) <int64[2] target = {-1, 2}>
        {
            y = Reshape (x, target)
        }"#;
    let (model, report) = inferred(source);
    assert!(!shape(&model, "y").contains('2'));
    assert_eq!(notes(&report, EventKind::Claimed).len(), 0);
}

#[test]
fn how_many_sizes_a_resize_takes_is_told_in_numbers_or_not_at_all() {
    let sized = |count: &str| {
        let source = format!(
            r#"<ir_version: 8, opset_import: ["" : 17]>
            agraph (float[] x, int64[{count}] s) => (float[] y, int64[{count}] other) {{
                t = Abs (s) y = Resize <mode = "nearest"> (x, "", "", t) other = Neg (s) }}"#
        );
        inferred(&source).0
    };
    let is_said = |model: &Model, name: &str| {
        let printed = text::print(model);
        [format!("int64[4] {name}"), format!("int64[K] {name}")].iter().any(|said| printed.contains(said))
    };
    assert_eq!(shape(&sized("K"), "other"), "K");
    assert!(!is_said(&sized("K"), "t") && is_said(&sized("4"), "t"));
}
