//! Declared shapes of inner values: they give names, fill gaps and cause errors, but are no premises.

use onnx_slice_fold::ir::{DeclaredType, DimClaim, Model, text};
use onnx_slice_fold::ops::EventKind;
use onnx_slice_fold::{OnnxModel, Options, Report};

use crate::support::{folded_unrun, operators, shape};

fn inferred(source: &str) -> (Model, Report) {
    folded_unrun(source, &Options::new().fold(false))
}

fn notes(report: &Report, kind: EventKind) -> Vec<String> {
    report.notes.iter().filter(|note| note.kind == kind).map(|note| note.reason.clone()).collect()
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
    // Equal sizes have one name, whatever their declarations are.
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
    // Outputs keep their labels; inside the model the symbol `found` is used for both sizes.
    assert_eq!(shape(&model, "more"), "1,m");
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
    assert_eq!(
        notes(&report, EventKind::Claimed),
        ["part of the shape of 'at' comes from the file, and is not proved"]
    );
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
        ["'y' is declared float[n,5], but is proved to be float[n,4], which the result declares"]
    );
}

/// Equal nodes are merged before inference, except those with declared shapes.
#[test]
fn declarations_of_merged_nodes_are_checked() {
    let source = r#"<ir_version: 8, opset_import: ["" : 17]>
        agraph (float[2] x) => (y, z) <float[3] b>
        {
            a = Relu (x)
            b = Relu (x)
            c = Relu (x)
            d = Exp (b)
            e = Exp (c)
            y = Sub (d, a)
            z = Sub (e, a)
        }"#;
    let (_, report) = folded_unrun(source, &Options::new());
    assert_eq!(
        notes(&report, EventKind::FalseClaim),
        ["'b' is declared float[3], but is proved to be float[2], which the result declares"]
    );
    assert_eq!(report.passes[0].name, "common-subexpression");
    assert_eq!(report.after.nodes(), 4);
}

#[test]
fn only_trusted_claims_are_premises() {
    // The Slice is an identity if NonZero finds at most 3 indices.
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
    let (plain, _) = folded_unrun(source, &Options::default());
    assert!(has_slice(&plain));
    assert_eq!(shape(&plain, "at"), "1,3");
    let (trusted, report) = folded_unrun(source, &Options::new().trust_declared_shapes(true));
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
    let (model, report) = folded_unrun(source, &Options::new().trust_declared_shapes(true));
    assert_eq!(shape(&model, "y"), "n,4");
    assert_eq!(notes(&report, EventKind::FalseClaim).len(), 1);
}

/// A caller may give another target.
#[test]
fn the_default_of_an_input_is_no_fact() {
    let source = r#"<ir_version: 8, opset_import: ["" : 17]>
        agraph (float[n, 4] x, int64[2] target) => (float[a, b] y) <int64[2] target = {-1, 2}>
        {
            y = Reshape (x, target)
        }"#;
    let (model, report) = inferred(source);
    assert!(!shape(&model, "y").contains('2'));
    assert_eq!(notes(&report, EventKind::Claimed).len(), 0);
}

/// A run with the default has the sizes of the default; a run with a given kernel has the declared ones.
#[test]
fn a_default_with_another_shape_leaves_the_common_facts() {
    let source = |declared: &str| {
        format!(
            r#"<ir_version: 8, opset_import: ["" : 17]>
            agraph (float[n, 1, h] x, {declared} k) => (y) <float[2, 1, 1] k = {{1, 2}}>
            {{
                y = Conv (x, k)
            }}"#
        )
    };
    let (model, report) = inferred(&source("float[3, 1, 1]"));
    assert!(!shape(&model, "y").contains(['2', '3']), "{}", shape(&model, "y"));
    assert_eq!(
        notes(&report, EventKind::FalseClaim),
        ["its default is float[2,1,1], which contradicts the declaration"]
    );
    let (model, report) = inferred(&source("float[2, 1, one]"));
    assert_eq!(shape(&model, "y"), "n,2,h - one + 1");
    assert_eq!(notes(&report, EventKind::FalseClaim), [""; 0]);
    for declared in ["float[3, 1]", "int64[2, 1, 1]"] {
        let (_, report) = inferred(&source(declared));
        assert_eq!(notes(&report, EventKind::FalseClaim).len(), 1, "{declared}");
    }
}

#[test]
fn the_number_of_sizes_of_a_resize_is_constant_or_undeclared() {
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

#[test]
fn a_false_expression_is_no_name() {
    let (model, report) = inferred(
        r#"<ir_version: 8, opset_import: ["" : 17]>
        agraph (float[n] x) => (int64[1, "n + 1"] y, int64[1, n] longer, z)
        {
            y = NonZero (x)
            z = Transpose (y)
            one = Constant <value_ints = [1]> ()
            s = Shape (x)
            more = Add (s, one)
            target = Concat <axis = 0> (one, more)
            zeros = ConstantOfShape <value = int64[1] {0}> (target)
            longer = Concat <axis = 1> (y, zeros)
        }"#,
    );
    assert_eq!(shape(&model, "y"), "1,y__0");
    assert_eq!(shape(&model, "z"), "y__0,1");
    assert_eq!(shape(&model, "longer"), "1,n + y__0 + 1");
    assert_eq!(notes(&report, EventKind::FalseClaim).len(), 2, "{report:?}");
}

#[test]
fn placeholders_for_unknown_sizes_are_no_names() {
    for text in ["-1", "3", "?", "None", ""] {
        let source = format!(
            r#"<ir_version: 8, opset_import: ["" : 17]>
            agraph (float[n, "{text}", "{text}"] x) => (int64[3] s, y, z) {{ s = Shape (x)  y = Relu (x)  z = Transpose <perm = [0, 2, 1]> (x) }}"#
        );
        let (model, _) = folded_unrun(&source, &Options::default());
        assert_eq!(shape(&model, "z"), "n,dim__1,dim__0", "{text:?}");
        assert!(text::print(&model).contains("s = Shape (x)"));
    }
}

#[test]
fn claims_are_mended_of_what_becomes_an_initializer_and_of_inputs_of_bodies() {
    let (model, report) = folded_unrun(
        r#"<ir_version: 8, opset_import: ["" : 17]>
        agraph (float[n, 3] x, int64 t) => (y) <float[9] k, float[1] a = {1}, float[2] b = {2, 3}, bool c = {1}> {
            k = Concat <axis = 0> (a, b)
            r = Mul (x, k)
            y = Loop (t, c, r) <body: graph = b (int64 i, bool ci, float[9, 9] st) => (bool co, float[p, q] so) {
                co = Identity (ci)  so = Add (st, st) }> }"#,
        &Options::default(),
    );
    let printed = text::print(&model);
    assert!(printed.contains("float[n,3] st") && !printed.contains("[9"), "{printed}");
    assert_eq!(notes(&report, EventKind::FalseClaim).len(), 2, "{report:?}");
}

#[test]
fn a_function_s_names_are_its_own() {
    let mut model = text::parse(
        r#"<ir_version: 10, opset_import: ["" : 18, "own" : 1]>
        agraph (float[n] x, float[m] w) => (y, z) { y = own.F (x)  z = own.F (w) }
        <domain: "own", opset_import: ["" : 18]> F (a) => (c) { b = NonZero (a)  d = Neg (b)  e = Mul (d, b)  c = Add (d, e) }"#,
    )
    .expect("the model is right");
    let found = model.functions().flat_map(|(_, function)| {
        let nodes = model.graph(function.body).nodes().filter_map(|id| model.node(id));
        nodes.filter(|node| node.is("NonZero")).filter_map(|node| node.output(0)).collect::<Vec<_>>()
    });
    let found: Vec<_> = found.collect();
    for value in found {
        let claims = vec![DimClaim::Value(1), DimClaim::Param("n".to_string())];
        model.declare(value, DeclaredType::tensor(onnx_slice_fold::tensor::DType::Int64, Some(claims)));
    }
    for trust_declared_shapes in [false, true] {
        let mut document = OnnxModel::of(model.clone());
        document.fold(&Options::new().trust_declared_shapes(trust_declared_shapes)).expect("the model folds");
        assert_ne!(shape(document.model(), "y"), "1,n");
        assert_ne!(shape(document.model(), "z"), "1,n");
    }
}

#[test]
fn a_name_from_a_branch_that_does_not_run_is_no_bound() {
    let (model, _) = folded_unrun(
        r#"<ir_version: 8, opset_import: ["" : 17]>
        agraph (float[1, 1, ?] x, bool c) => (y, z)
        <float[1, 1, 3] k = {1, 1, 1}, int64[1] two = {2}, int64[1] big = {9223372036854775807}> {
            z = Slice (x, two, big, two)
            y = If (c) <then_branch: graph = t () => (float[1, 1, total] u) { u = Conv (x, k) }, else_branch: graph = e () => (v) { v = Relu (x) }> }"#,
        &Options::default(),
    );
    // After the second of one element nothing remains.
    assert_eq!(shape(&model, "z"), "1,1,max(0, x_dim_2 - 2)");
}

#[test]
fn given_sizes_are_substituted_in_expressions() {
    use onnx_slice_fold::passes::Assumption;
    let source = r#"<ir_version: 8, opset_import: ["" : 17]>
        agraph (float[b, seq] x, float[b, past] p, float[b, "past + seq"] m) => (y, w) { y = Concat <axis = 1> (x, p)  w = Relu (m) }"#;
    let dim = |text: &str| Assumption::Dim(text.to_string());
    let input = |text: &str| Assumption::InputShape(text.to_string());
    let with = |assumptions: Vec<Assumption>| {
        let mut document = OnnxModel::of(text::parse(source).expect("the model is right"));
        let options = Options::new().assumptions(assumptions).trust_input_names(true);
        document.fold(&options).map(|_| (shape(document.model(), "y"), shape(document.model(), "w")))
    };
    let pair = |y: &str, w: &str| (y.to_string(), w.to_string());
    assert_eq!(with(vec![dim("seq=4")]).expect("fits"), pair("b,past + 4", "b,past + 4"));
    assert_eq!(with(vec![dim("seq=4"), dim("past=3"), dim("seq=4")]).expect("fits"), pair("b,7", "b,7"));
    assert_eq!(with(vec![input("x:2,4"), input("p:2,3"), dim("b=2")]).expect("fits"), pair("2,7", "2,7"));
    assert_eq!(with(vec![input("x:k,4")]).expect("fits"), pair("k,past + 4", "k,past + 4"));
    assert!(with(vec![input("x:2,4"), input("p:2,3"), input("m:2,9")]).is_err());
    assert!(with(vec![dim("seq=4"), dim("seq=5")]).is_err());
}

#[test]
fn names_survive_trials_of_functions() {
    let (model, report) = folded_unrun(
        r#"<ir_version: 8, opset_import: ["" : 18, "own" : 1]>
        agraph (float[b, ?, 4] past, float[b, seq, 4] x) => (float[b, total_seq, 4] y, z, w) {
            y = Concat <axis = 1> (past, x)  z = own.F (y)  w = own.F (past) }
        <domain: "own", opset_import: ["" : 18]> F (a) => (c) { b = Neg (a)  d = Neg (b)  e = Identity (d)  c = Neg (e) }"#,
        &Options::default(),
    );
    assert_eq!(
        (shape(&model, "y"), shape(&model, "w")),
        ("b,total_seq,4".to_string(), "b,total_seq - seq,4".to_string())
    );
    assert_eq!(notes(&report, EventKind::Claimed), [""; 0]);
}

#[test]
fn a_declaration_without_a_value_applies_to_no_other_value() {
    use onnx_slice_fold::onnx::{self, proto};
    let parsed = text::parse(
        r#"<ir_version: 8, opset_import: ["" : 18]>
        g (float[n] x) => (y) <bool c = {1}> {
            y = If (c) <then_branch: graph = t () => (u) { tmp = Neg (x)  u = Mul (tmp, x) }, else_branch: graph = e () => (v) { v = Relu (x) }> }"#,
    )
    .expect("the model is right");
    let (mut message, unknown, _) = onnx::export(&parsed, &Default::default()).expect("the model is sound");
    let graph = message.graph.as_mut().expect("there is a graph");
    let size = |size: i64| proto::tensor_shape_proto::Dimension {
        value: Some(proto::tensor_shape_proto::dimension::Value::DimValue(size)),
        ..Default::default()
    };
    for name in ["tmp", "nobody"] {
        let tensor = proto::type_proto::Tensor {
            elem_type: Some(7),
            shape: Some(proto::TensorShapeProto { dim: vec![size(9)] }),
        };
        graph.value_info.push(proto::ValueInfoProto {
            name: Some(name.to_string()),
            r#type: Some(proto::TypeProto {
                value: Some(proto::type_proto::Value::TensorType(tensor)),
                ..Default::default()
            }),
            ..Default::default()
        });
    }
    let mut files = onnx::DataFiles::default();
    let model = onnx::import(message, &unknown, &mut files).expect("the model is sound");
    let mut document = OnnxModel::of(model);
    document.fold(&Options::default()).expect("the model folds");
    let (message, ..) = onnx::export(document.model(), &Default::default()).expect("the model is sound");
    let infos = message.graph.expect("there is a graph").value_info;
    assert_eq!(infos.iter().filter(|info| info.name.as_deref() == Some("tmp")).count(), 1, "{infos:?}");
}

#[test]
fn operators_of_two_versions_are_kept() {
    let (model, _) = folded_unrun(
        r#"<ir_version: 8, opset_import: ["" : 18, "ai.onnx" : 11]>
        g (float[n] x) => (y) <float[1, 2, 2] w = {1, 2, 3, 4}> { y = Softmax (w) }"#,
        &Options::default(),
    );
    assert!(text::print(&model).contains("Softmax"));
}

#[test]
fn equal_computations_have_one_size() {
    let (model, _) = folded_unrun(
        r#"<ir_version: 8, opset_import: ["" : 18]>
        g (float[n] x) => (a, b, c) { y1 = NonZero (x)  y2 = NonZero (x)  a = Neg (y1)  b = Abs (y2)  c = Add (a, b) }"#,
        &Options::default(),
    );
    assert_eq!(shape(&model, "a"), shape(&model, "b"));
    assert_eq!(shape(&model, "a"), shape(&model, "c"));
}

#[test]
fn sizes_for_unnamed_dims_apply_to_one_dim_each() {
    use onnx_slice_fold::passes::Assumption;
    for text in ["None", "?", "-1"] {
        let source = format!(
            r#"<ir_version: 8, opset_import: ["" : 17]>
            g (float["{text}", "{text}"] x, float["{text}"] w) => (float["{text}", "{text}"] y, z) {{ y = Relu (x)  z = Neg (w) }}"#
        );
        let mut document = OnnxModel::of(text::parse(&source).expect("the model is right"));
        let assumptions = vec![Assumption::InputShape("x:4,5".to_string())];
        document.fold(&Options::new().assumptions(assumptions)).expect("both fit");
        assert_eq!(shape(document.model(), "y"), "4,5");
        assert!(!shape(document.model(), "z").contains(['4', '5']), "{text}");
        // The author's name for a size is not a premise either.
        let (model, _) = folded_unrun(&source, &Options::default());
        assert_ne!(shape(&model, "z"), text);
    }
    // A name that is not an identifier is still a name.
    let (model, _) = folded_unrun(
        r#"<ir_version: 8, opset_import: ["" : 17]>
        g (float["2x"] x, float["2x"] w) => (y) { y = Add (x, w) }"#,
        &Options::default(),
    );
    assert_eq!(shape(&model, "y"), "2x");
}

#[test]
fn names_that_onnx_s_own_parser_does_not_take_for_words_are_in_quotes() {
    let source = r#"<ir_version: 8, opset_import: ["" : 17]>
        g (float["größe"] x) => (y) { y = Relu (x) }"#;
    let printed = text::print(&text::parse(source).expect("the model is right"));
    assert!(printed.contains(r#"float["größe"] x"#), "{printed}");
    assert_eq!(text::print(&text::parse(&printed).expect("it reads back")), printed);
}

#[test]
fn names_of_attributes_that_are_no_words_are_in_quotes() {
    let source = r#"<ir_version: 8, opset_import: ["" : 17, "d" : 1]>
        g (float[2] x) => (y) { y = d.F <"an axis": int = 1> (x) }
        <domain: "d", opset_import: ["" : 17]>
        F <"an axis"> (x) => (y) { y = Softmax <axis: int = @"an axis"> (x) }"#;
    let printed = text::print(&text::parse(source).expect("the model is right"));
    assert!(printed.contains(r#"axis: int = @"an axis""#), "{printed}");
    assert_eq!(text::print(&text::parse(&printed).expect("it reads back")), printed);
}

/// Runtimes trust a subgraph's declaration of a captured value. If an inner node fails for the declared shape, they refuse the model once
/// they know enough about its other operands, and folding increases that knowledge. So such a declaration is not written.
#[test]
fn claims_on_which_an_inner_node_would_fail_are_not_written() {
    let body = |inside: &str| {
        format!(
            r#"<ir_version: 8, opset_import: ["" : 17]>
            g (float[4] a, int64[1] size, int64 trips, bool flag, float[rows, 2] q) => (z) <int64[1] one = {{1}}>
            {{
                s = Shape (a)  larger = Greater (s, one)  shape = Compress (s, larger)  x = Reshape (a, shape)
                y = Resize <mode = "nearest"> (a, "", "", size)
                {inside}
            }}"#
        )
    };
    let bodies = [
        r#"z = Loop <body: graph = b (int64 number, bool on, float[6] carried) => (bool still, float sum) {
            still = Identity (on)  sum = Add (x, carried) }> (trips, "", y)"#,
        r#"z, unread = Loop <body: graph = b (int64 number, bool on, float[6] carried, float[k] same) => (bool still, float sum, float[k] same_out) {
            still = Identity (on)  same_out = Identity (same)  sum = Add (same, carried) }> (trips, "", y, x)"#,
        r#"z, unread = Scan <num_scan_inputs = 1, body: graph = b (float[6] carried, float[2] row) => (float sum, float[2] row_out) {
            row_out = Identity (row)  sum = Add (x, carried) }> (y, q)"#,
        r#"z = If <then_branch: graph = t () => (float sum) <float[6] inner> { inner = Resize <mode = "nearest"> (a, "", "", size)  sum = Add (x, inner) },
            else_branch: graph = e () => (float same) { same = Identity (a) }> (flag)"#,
    ];
    for inside in bodies {
        for options in [Options::default(), Options::new().exact(true)] {
            let (model, _) = folded_unrun(&body(inside), &options);
            assert!(!text::print(&model).contains("float[6]"), "{}", text::print(&model));
        }
    }
    // An undisputed declaration is kept.
    let kept = body(bodies[0]).replace("Add (x, carried)", "Neg (carried)");
    let (model, _) = folded_unrun(&kept, &Options::default());
    assert!(text::print(&model).contains("float[6] carried"), "{}", text::print(&model));
}

/// ONNX Runtime ignores a declaration that contradicts its inference. If only one size were corrected, the others would take effect, and
/// might contradict another operand.
#[test]
fn a_partly_false_claim_is_not_written() {
    let (model, _) = folded_unrun(
        r#"<ir_version: 8, opset_import: ["" : 17]>
        g (float[n, 3] x, int64[2] sizes) => (y, z) <float[0, 6] wide, float[4, 1] column = {1, 2, 3, 4}>
        { wide = Expand (x, sizes)  y = Concat <axis = 1> (wide, column)  z = Neg (wide) }"#,
        &Options::default(),
    );
    assert!(!shape(&model, "wide").starts_with('0'), "{}", text::print(&model));
}

/// ONNX Runtime ignores the shape, which contradicts its inference. If only the false number were corrected, it would trust the rest and
/// fail.
#[test]
fn a_false_shape_in_a_loop_that_may_not_run_is_kept() {
    let (model, _) = folded_unrun(
        r#"<ir_version: 8, opset_import: ["" : 13]>
        g (float[n, 2] x, bool b, int64 trips) => (y)
        {
            t = Transpose <perm = [1, 0]> (x)
            y = Loop (trips, "") <body: graph = body (int64 trip, bool flag) => (bool going, row) <int64[1] at = {-1}>
                {
                    r = Unsqueeze (t, at)
                    row = If (b) <
                        then_branch: graph = p () => (float[1, 2, n] u) { u = Neg (r) },
                        else_branch: graph = q () => (float[1, 2, n] v) { v = Abs (r) }>
                    going = Identity (flag)
                }>
        }"#,
        &Options::default(),
    );
    let printed = text::print(&model);
    assert!(printed.contains("=> (float[1,2,n] u)") && printed.contains("=> (float[1,2,n] v)"), "{printed}");
}

fn outputs(source: &str, options: &Options) -> Vec<String> {
    let (model, _) = folded_unrun(source, options);
    let names: Vec<String> =
        model.graph(model.main()).outputs().iter().map(|&value| model.value(value).name.to_string()).collect();
    names.iter().map(|name| shape(&model, name)).collect()
}

/// Outputs keep labels that no input has. They also keep declarations that no run with sizes of at least 1 contradicts, in the file's own
/// spelling.
#[test]
fn an_output_keeps_what_the_file_declares() {
    let source = r#"<ir_version: 8, opset_import: ["" : 17]>
        agraph (float[seq, 4] x, float[past, 4] z) =>
            (float[total, 4] a, float["past + seq", width] b, float[1, 4] c, float[seq, 4] d, float[two, unk__7] e, float[Add9_dim_0, 4] f)
        <int64[1] zero = {0}, int64[1] one = {1}, int64[1] two = {2}> {
            a = Concat <axis = 0> (x, z)
            b = Concat <axis = 0> (z, x)
            c = Slice (x, zero, one, zero)
            d = Concat <axis = 0> (z, c)
            e = Slice (x, zero, two, zero)
            f = Neg (a)
        }"#;
    assert_eq!(
        outputs(source, &Options::default()),
        // `d` has `past + 1` rows, and an exporter made up the labels of `e` and `f`.
        ["total,4", "past + seq,width", "1,4", "past + min(1, seq),4", "two,4", "total,4"]
    );
    // Labels whose size depends on the user's size are replaced, all others are kept.
    let with = Options::new().assumptions(vec![onnx_slice_fold::passes::Assumption::Dim("past=3".to_string())]);
    assert_eq!(
        outputs(source, &with),
        ["seq + 3,4", "seq + 3,width", "1,4", "min(1, seq) + 3,4", "two,4", "seq + 3,4"]
    );
}

/// A Concat of the even and the odd columns requires an even number of columns. The output keeps its declared size when the Concat is
/// removed.
#[test]
fn sizes_that_a_concat_requires_to_be_equal_rename_no_output() {
    let source = r#"<ir_version: 8, opset_import: ["" : 13]>
        g (float[n, 1, h, w] x) => (float[n, 1, "((h + 1)//2)", "((w + 1)//2)"] y)
        <int64[2] a = {0, 0}, int64[2] b = {1, 0}, int64[2] c = {0, 1}, int64[2] d = {1, 1},
         int64[2] end = {9223372036854775807, 9223372036854775807}, int64[2] axes = {2, 3}, int64[2] two = {2, 2},
         float[1,4,1,1] k = {1, 2, 3, 4}>
        {
            p = Slice (x, a, end, axes, two)  q = Slice (x, b, end, axes, two)
            r = Slice (x, c, end, axes, two)  s = Slice (x, d, end, axes, two)
            t = Concat <axis = 1> (p, q, r, s)  y = Conv (t, k)
        }"#;
    let model = folded_unrun(source, &Options::default()).0;
    assert_eq!(operators(&model), ["Conv"]);
    assert_eq!(shape(&model, "y"), "n,1,((h + 1)//2),((w + 1)//2)");
}

/// A table cut at its end adds as many rows as there are tokens, or none. The output keeps its label although a run may be empty.
#[test]
fn an_empty_run_renames_no_size() {
    let source = r#"<ir_version: 8, opset_import: ["" : 17]>
        agraph (float[n, t, 4] q, float[n, p, 4] past) => (float[n, t, 4] y) <int64 one = {1}, int64[1] ax = {0}, float[8, 4] table> {
            sp = Shape (past)  p = Gather (sp, one)  sq = Shape (q)  t = Gather (sq, one)  e = Add (p, t)
            p1 = Unsqueeze (p, ax)  e1 = Unsqueeze (e, ax)  pos = Slice (table, p1, e1, ax)  s = Add (q, pos)  y = Exp (s)
        }"#;
    let table: Vec<String> = (0..32).map(|i| format!("{i}.5")).collect();
    let source = source.replace("float[8, 4] table", &format!("float[8, 4] table = {{{}}}", table.join(", ")));
    let (model, report) = folded_unrun(&source, &Options::default());
    // Inner tensors of this size have the output's label.
    assert_eq!((shape(&model, "s"), shape(&model, "y")), ("n,t,4".to_string(), "n,t,4".to_string()));
    let [note] = notes(&report, EventKind::Declared).try_into().expect("one note");
    assert!(note.starts_with("axis 1 is declared t, which is kept; the proved size is"), "{note}");
}
