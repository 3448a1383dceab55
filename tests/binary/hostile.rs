//! Files that violate the standard, or depend on undefined parts of it: refused with a reason, or kept.

use onnx_slice_fold::ir::{Model, text};
use onnx_slice_fold::{OnnxModel, Options};
use tempfile::TempDir;

use crate::support::operators;

fn refusal(source: &str) -> String {
    match text::parse(source) {
        Ok(model) => panic!("it is taken for a model:\n{}", text::print(&model)),
        Err(error) => error.to_string(),
    }
}

#[test]
fn attributes_refer_to_existing_values() {
    let body = |nodes: &str| {
        format!(r#"<ir_version: 8, opset_import: ["" : 17]> g (bool c, float[3] x) => (y) {{ {nodes} }}"#)
    };
    for (nodes, reason) in [
        ("y = If (c)", "If node that computes 'y' has no graph in attribute 'then_branch'"),
        ("y = If <then_branch: graph = t () => (r) { r = Neg (x) }> (c)", "has no graph in attribute 'else_branch'"),
        (r#"y = Loop ("", c, x)"#, "has no graph in attribute 'body'"),
        ("y = Scan <num_scan_inputs = 1> (x)", "has no graph in attribute 'body'"),
        ("y = Loop <body = 3> (\"\", c, x)", "has no graph in attribute 'body'"),
        ("k = Constant () y = Add (x, k)", "Constant node that computes 'k' has 0 values"),
        ("k = Constant <value_float = 1.0, value_int = 2> () y = Add (x, k)", "has 2 values"),
    ] {
        let said = refusal(&body(nodes));
        assert!(said.contains(reason), "{nodes}: {said}");
    }
}

#[test]
fn other_people_s_operators_may_be_called_the_same() {
    let source = r#"<ir_version: 8, opset_import: ["" : 17, "mine" : 1]>
        g (float[3] x) => (y) { k = mine.Constant () y = mine.If (x, k) }"#;
    assert!(text::parse(source).is_ok());
    // A function of the model redefines an operator of the standard.
    let source = r#"<ir_version: 8, opset_import: ["" : 17]>
        g (float[3] x) => (y) { y = If (x) }
        <domain: "", opset_import: ["" : 17]> If (a) => (b) { b = Neg (a) }"#;
    assert!(text::parse(source).is_ok());
    // The call may supply an attribute that the function body lacks.
    let source = r#"<ir_version: 8, opset_import: ["" : 17, "f" : 1]>
        g (float[3] x) => (y) { y = f.Scale <by = 2.0> (x) }
        <domain: "f", opset_import: ["" : 17]> Scale <by> (a) => (b) { c = Constant <value_float: float = @by> () b = Mul (a, c) }"#;
    assert!(text::parse(source).is_ok());
}

#[test]
fn functions_do_not_call_themselves() {
    let model = |functions: &str| {
        format!(
            r#"<ir_version: 8, opset_import: ["" : 17, "f" : 1]> g (float[3] x, bool c) => (y) {{ y = f.A (x) }} {functions}"#
        )
    };
    let function = |name: &str, body: &str| {
        format!(r#"<domain: "f", opset_import: ["" : 17, "f" : 1]> {name} (a) => (b) {{ {body} }} "#)
    };
    let itself = function("A", "b = f.A (a)");
    let each_other = function("A", "b = f.B (a)") + &function("B", "b = f.A (a)");
    let inside = function(
        "A",
        "k = Constant <value_int = 1> () t = Cast <to = 9> (k) \
         b = If <then_branch: graph = p () => (r) { r = f.A (a) }, else_branch: graph = q () => (s) { s = Neg (a) }> (t)",
    );
    for functions in [itself, each_other, inside] {
        let said = refusal(&model(&functions));
        assert!(said.contains("calls itself"), "{functions}: {said}");
    }
    // Two calls of one function are no recursion.
    let twice = function("A", "t = f.B (a) b = f.B (t)") + &function("B", "b = Neg (a)");
    assert!(text::parse(&model(&twice)).is_ok());
}

/// Encodes a field of a message: its number and its bytes.
fn field(number: u8, payload: &[u8]) -> Vec<u8> {
    let length = u8::try_from(payload.len()).expect("payloads are short here");
    assert!(number < 16 && length < 128);
    [&[number << 3 | 2, length][..], payload].concat()
}

/// Encodes a small number as a field of a message.
fn number(number: u8, value: i32) -> Vec<u8> {
    let mut bytes = vec![number << 3];
    let mut rest = i64::from(value) as u64;
    while rest >= 0x80 {
        bytes.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    bytes.push(rest as u8);
    bytes
}

/// Writes a model in text form as a file with more bytes at the end: protobuf merges messages.
fn file(folder: &TempDir, source: &str, more: &[u8]) -> std::path::PathBuf {
    let path = folder.path().join("model.onnx");
    let model = text::parse(source).unwrap_or_else(|error| panic!("{error}\n{source}"));
    OnnxModel::of(model).save(&path).expect("the model is written");
    let bytes = [std::fs::read(&path).expect("the file is read"), more.to_vec()].concat();
    std::fs::write(&path, bytes).expect("the file is written");
    path
}

fn opened(source: &str, more: &[u8]) -> Result<OnnxModel, String> {
    let folder = TempDir::new().expect("a folder");
    OnnxModel::open(file(&folder, source, more)).map_err(|error| format!("{error:#}"))
}

const PLAIN: &str = r#"<ir_version: 8, opset_import: ["" : 17]> g (float[3] x) => (float[3] y) { y = Neg (x) }"#;

#[test]
fn element_types_are_types() {
    let weight = |dtype: &[u8]| {
        let tensor = [&number(1, 1)[..], dtype, &field(8, b"w"), &field(9, &[0; 4])].concat();
        field(7, &field(5, &tensor))
    };
    assert!(opened(PLAIN, &weight(&number(2, 1))).is_ok());
    // An unknown element type is preserved.
    assert!(opened(PLAIN, &weight(&number(2, 99))).is_ok());
    for (dtype, shown) in
        [(Vec::new(), "0"), (number(2, 0), "0"), (number(2, -1), "-1"), (number(2, i32::MAX), "2147483647")]
    {
        let said = opened(PLAIN, &weight(&dtype)).expect_err("it is refused");
        assert!(said.contains(&format!("initializer 'w': {shown} is not an element type")), "{said}");
    }
}

#[test]
fn nodes_name_an_operator() {
    let node = [field(1, b"x"), field(2, b"z"), field(3, b"lost")].concat();
    let said = opened(PLAIN, &field(7, &field(1, &node))).expect_err("it is refused");
    assert!(said.contains("'lost'") && said.contains("it names no operator"), "{said}");
}

#[test]
fn scalars_are_not_sparse() {
    let values = [number(1, 1), number(2, 1), field(8, b"w"), field(9, &[0; 4])].concat();
    let indices = [number(1, 1), number(2, 7), field(9, &[0; 8])].concat();
    let sparse = [field(1, &values), field(2, &indices)].concat();
    let said = opened(PLAIN, &field(7, &field(15, &sparse))).expect_err("it is refused");
    assert!(said.contains("sparse initializer 'w': a scalar cannot be sparse"), "{said}");
}

/// ONNX Runtime accepts a version of 0, and refuses a missing one.
#[test]
fn a_version_of_0_is_kept() {
    let folder = TempDir::new().expect("a folder");
    let source = r#"<ir_version: 0, opset_import: ["" : 17]> g (float[3] x) => (float[3] y) { y = Neg (x) }"#;
    for (more, kept) in [(number(1, 0), true), (Vec::new(), false)] {
        let mut document = OnnxModel::open(file(&folder, source, &more)).expect("the model opens");
        document.fold(&Options::default().stamp(false)).expect("the model folds");
        let target = folder.path().join("folded.onnx");
        document.save(&target).expect("the model is written");
        let bytes = std::fs::read(&target).expect("the file is read");
        // The version is the first field or, among preserved fields, the last.
        assert_eq!(bytes.starts_with(&[8, 0]) || bytes.ends_with(&[8, 0]), kept, "{bytes:?}");
    }
}

fn folded(source: &str) -> Model {
    let mut document = opened(source, &[]).unwrap_or_else(|error| panic!("{error}"));
    document.fold(&Options::default()).expect("the model folds");
    document.model().clone()
}

/// Processors trap for this division.
#[test]
fn the_smallest_integer_is_not_divided_by_minus_one() {
    for (dtype, least) in [("int64", i64::MIN), ("int32", i64::from(i32::MIN)), ("int8", i64::from(i8::MIN))] {
        for op_type in ["Div", "Mod"] {
            let model = folded(&format!(
                r#"<ir_version: 8, opset_import: ["" : 17]> g () => ({dtype}[2] y)
                <{dtype}[2] a = {{{least}, 6}}, {dtype}[2] b = {{-1, 3}}> {{ y = {op_type} (a, b) }}"#
            ));
            assert_eq!(operators(&model), [op_type], "{dtype}");
        }
    }
    let model = folded(
        r#"<ir_version: 8, opset_import: ["" : 17]> g () => (uint8[2] y)
        <uint8[2] a = {0, 128}, uint8[2] b = {255, 2}> { y = Div (a, b) }"#,
    );
    assert!(operators(&model).is_empty());
}

/// Gradient refers to values by attributes as well as by operands.
#[test]
fn differentiated_values_are_kept() {
    let model = folded(
        r#"<ir_version: 7, opset_import: ["" : 12, "ai.onnx.preview.training" : 1]>
        g (float[n] a, float[n] b) => (da, db) {
            c = Add (a, b)
            product = Mul (c, b)
            da, db = ai.onnx.preview.training.Gradient <xs = ["a", "b"], y = "product"> (a, b)
        }"#,
    );
    assert_eq!(operators(&model), ["Add", "Mul", "Gradient"]);
}

/// Infinite loops, and extremely long ones, are neither run nor removed if something depends on their end.
#[test]
fn endless_loops_are_kept() {
    let model = |trips: &str| {
        format!(
            r#"<ir_version: 8, opset_import: ["" : 17]> g () => (float[2] y)
            <int64 many = {{9223372036854775807}}, bool yes = {{1}}, float[2] v = {{1, 2}}> {{
                y = Loop <body: graph = b (int64 i, bool go, float[2] s) => (bool on, float[2] t)
                    {{ on = Identity (go) t = Add (s, v) }}> ({trips}, yes, v)
            }}"#
        )
    };
    for trips in ["many", "\"\""] {
        assert_eq!(operators(&folded(&model(trips))), ["Loop"], "{trips}");
    }
}

#[test]
fn functions_of_one_name_compute_the_same() {
    let model = |second: &str| {
        format!(
            r#"<ir_version: 8, opset_import: ["" : 17, "f" : 1]> g (float[3] x) => (y) {{ y = f.A (x) }}
            <domain: "f", opset_import: ["" : 17]> A (a) => (b) {{ b = Neg (a) }}
            <domain: "f", opset_import: ["" : 17]> A (a) => (b) {{ b = {second} (a) }}"#
        )
    };
    assert_eq!(opened(&model("Neg"), &[]).err(), None);
    let said = opened(&model("Abs"), &[]).err().unwrap_or_default();
    assert!(said.contains("function 'f.A': two functions of this name differ"), "{said}");
}

#[test]
fn bounds_of_a_slice_are_of_one_type() {
    let left = |end: &str| {
        let source = format!(
            r#"<ir_version: 8, opset_import: ["" : 17]> g () => (float[1] y)
            <float[3] x = {{1, 2, 3}}, int32[1] a = {{0}}, {end}[1] b = {{1}}> {{ y = Slice (x, a, b) }}"#
        );
        operators(&folded(&source))
    };
    assert_eq!(left("int32"), [""; 0]);
    // ONNX Runtime refuses it at load time.
    assert_eq!(left("int64"), ["Slice"]);
}

#[test]
fn no_name_fills_the_report() {
    let name = "q".repeat(100_000);
    let source = format!(r#"<ir_version: 8, opset_import: ["" : 17]> g (float["{name}"] x) => (y) {{ y = Neg (x) }}"#);
    let mut model = OnnxModel::of(text::parse(&source).expect("it parses"));
    let report = model.fold(&Options::new()).expect("it folds").to_string();
    assert!(report.len() < 2000 && report.contains("qqq…"), "{} bytes", report.len());
}

/// The user's stack limit does not bound the depth of nested graphs.
#[cfg(unix)]
#[test]
fn a_small_stack_is_enough_for_graphs_within_graphs() {
    let mut body = "{ o = Relu (x) }".to_string();
    let mut inner = "o".to_string();
    for level in 0..28 {
        body = format!(
            "{{ o{level} = If (c) <then_branch: graph = t{level} () => ({inner}) {body},
            else_branch: graph = e{level} () => (n{level}) {{ n{level} = Neg (x) }}> }}"
        );
        inner = format!("o{level}");
    }
    let source = format!("<ir_version: 8, opset_import: [\"\" : 17]> g (float[n] x, bool c) => (o27) {body}");
    let folder = TempDir::new().expect("a folder");
    let (path, target) = (file(&folder, &source, &[]), folder.path().join("out.onnx"));
    let done = std::process::Command::new("sh")
        .args(["-c", "ulimit -s 256 && exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_onnx-slice-fold")])
        .args([&path, &"-o".into(), &target])
        .output()
        .expect("the shell runs");
    assert!(done.status.success() && target.exists(), "{:?}: {}", done.status, String::from_utf8_lossy(&done.stderr));
}
