//! `--avoid`: replaced constructs, remaining nodes and their reasons, and the exit code.

use std::process::{Command, Output};

use onnx_slice_fold::{Construct, OnnxModel, Options, ir::text};
use tempfile::TempDir;

/// A model, the constructs to avoid, the operators of the result, and the nodes that remain.
struct Case {
    model: &'static str,
    avoid: &'static [&'static str],
    operators: &'static [&'static str],
    remaining: usize,
}

const CASES: &[Case] = &[
    // A reversed axis of constant size, and one of symbolic size, which only a negative step reverses.
    Case {
        model: "(float[2,200] x) => (y) <int64[1] s = {-1}, int64[1] e = {-9223372036854775808}, int64[1] a = {1}, int64[1] t = {-1}>
            { r = Relu (x)  y = Slice (r, s, e, a, t) }",
        avoid: &["negative-steps"],
        operators: &["Gather", "Relu"],
        remaining: 0,
    },
    Case {
        model: "(float[2,n] x) => (y) <int64[1] s = {-1}, int64[1] e = {-9223372036854775808}, int64[1] a = {1}, int64[1] t = {-1}>
            { r = Relu (x)  y = Slice (r, s, e, a, t) }",
        avoid: &["negative-steps"],
        operators: &["Relu", "Slice"],
        remaining: 1,
    },
    Case {
        model: "(float[4,5] x) => (y) <int64[3,2] i = {0, 1, 2, 3, 3, 0}> { y = GatherND (x, i) }",
        avoid: &["GatherND"],
        operators: &["Gather", "Reshape"],
        remaining: 0,
    },
    // The other operators to avoid restrict the replacement.
    Case {
        model: "(float[4,5] x) => (y) <int64[3,1] i = {0, 2, 3}> { y = GatherND (x, i) }",
        avoid: &["GatherND,Gather"],
        operators: &["Concat", "Slice", "Slice"],
        remaining: 0,
    },
    Case {
        model: "(float[4,1] x) => (y) <int64[3] i = {3, 4, 6}> { y = Expand (x, i) }",
        avoid: &["Expand"],
        operators: &["Reshape", "Tile"],
        remaining: 0,
    },
    Case {
        model: "(float[4,2] x) => (y) <int64[4] i = {0, 1, 0, 1}> { y = Pad (x, i) }",
        avoid: &["Pad"],
        operators: &["Concat"],
        remaining: 0,
    },
    Case {
        model: "(float[1,8,3,3] x) => (y) { y = DepthToSpace <blocksize = 2> (x) }",
        avoid: &["DepthToSpace", "rank>5"],
        operators: &["Reshape", "Reshape", "Transpose"],
        remaining: 0,
    },
    // The division of an image into windows by a Transpose of six axes.
    Case {
        model: "(uint8[2,14,14,3] x) => (y) <int64[6] s = {2, 2, 7, 2, 7, 3}, int64[3] t = {8, 49, 3}>
            { q = Reshape (x, s)  r = Transpose <perm = [0, 1, 3, 2, 4, 5]> (q)  y = Reshape (r, t) }",
        avoid: &["rank>4"],
        operators: &["Reshape", "Reshape", "Transpose"],
        remaining: 0,
    },
    // No rule writes the Split that replaces both Slices by default.
    Case {
        model: "(float[4,2] x) => (y, z) <int64[1] o = {0}, int64[1] p = {1}, int64[1] q = {4}>
            { y = Slice (x, o, p, o)  s = Slice (x, p, q, o)  z = Relu (s) }",
        avoid: &["Split"],
        operators: &["Relu", "Slice", "Slice"],
        remaining: 0,
    },
    Case {
        model: "(float[2] x) => (y) <int64 n = {3}, bool c = {1}> {
            y = Loop <body : graph = b (int64 i, bool k, float[2] v) => (bool o, float[2] w) { o = Identity (k)  w = Exp (v) }> (n, c, x) }",
        avoid: &["Loop"],
        operators: &["Exp", "Exp", "Exp"],
        remaining: 0,
    },
    Case {
        model: "(float[2] x, int64 n) => (y) <bool c = {1}> {
            y = Loop <body : graph = b (int64 i, bool k, float[2] v) => (bool o, float[2] w) { o = Identity (k)  w = Exp (v) }> (n, c, x) }",
        avoid: &["Loop"],
        operators: &["Exp", "Loop"],
        remaining: 1,
    },
    Case {
        model: "(float[n] x, int64[2] i) => (y) { s = SequenceConstruct (x, x)  y = ConcatFromSequence <axis = 0> (s)  }",
        avoid: &["sequences", "int64", "dynamic"],
        operators: &["ConcatFromSequence", "SequenceConstruct"],
        remaining: 3,
    },
];

fn parsed(model: &str) -> OnnxModel {
    let source = format!("<ir_version: 8, opset_import: [\"\" : 17]> g {model}");
    OnnxModel::of(text::parse(&source).unwrap_or_else(|error| panic!("{error}\n{source}")))
}

fn constructs(avoid: &[&str]) -> Vec<Construct> {
    avoid.iter().flat_map(|text| text.split(',')).map(|text| text.parse().expect("a construct")).collect()
}

#[test]
fn avoided_constructs_are_replaced_or_listed() {
    for case in CASES {
        let mut model = parsed(case.model);
        let options = Options::new().avoid(constructs(case.avoid));
        let (report, checked) = model.fold_checked(&options, 6, &mut |_| {}).expect("the model is folded");
        assert!(checked.difference.is_none(), "{}: {checked}", case.model);
        let counts = report.after.operators.iter();
        let mut operators: Vec<&str> =
            counts.flat_map(|(name, &count)| std::iter::repeat_n(name.as_str(), count)).collect();
        let mut expected = case.operators.to_vec();
        operators.sort_unstable();
        expected.sort_unstable();
        assert_eq!(operators, expected, "{}", case.model);
        assert_eq!(report.avoided.len(), case.remaining, "{}: {:?}", case.model, report.avoided);
        let again = model.fold(&options).expect("the result is folded");
        assert_eq!(again.fired.values().sum::<usize>(), 0, "{}: {:?}", case.model, again.fired);
    }
}

#[test]
fn constructs_are_printed_as_they_are_parsed() {
    let all = ["Loop", "com.microsoft::Gelu", "negative-steps", "sequences", "rank>5", "dynamic", "int64", "float16"];
    for text in all {
        assert_eq!(text.parse::<Construct>().expect("a construct").to_string(), text);
    }
    assert_eq!("ai.onnx::Loop".parse::<Construct>().expect("a construct").to_string(), "Loop");
    for text in ["", "loop", "rank>", "rank>x", "rank>-1", "negative steps", "::", "a::", "Loop!"] {
        assert!(text.parse::<Construct>().is_err(), "{text}");
    }
}

fn run(folder: &TempDir, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_onnx-slice-fold"));
    command.args(arguments).current_dir(folder.path()).output().expect("the binary starts")
}

#[test]
fn the_exit_code_says_that_nodes_remain() {
    let folder = TempDir::new().expect("a folder");
    for (case, name) in [(&CASES[0], "fixed.onnx"), (&CASES[1], "open.onnx")] {
        parsed(case.model).save(folder.path().join(name)).expect("the model is written");
    }
    let done = run(&folder, &["fixed.onnx", "-o", "a.onnx", "--avoid", "negative-steps", "GatherND"]);
    assert_eq!(done.status.code(), Some(0), "{done:?}");
    let done = run(&folder, &["open.onnx", "-o", "b.onnx", "--avoid", "GatherND,negative-steps"]);
    let message = String::from_utf8_lossy(&done.stderr).into_owned();
    assert_eq!(done.status.code(), Some(4), "{message}");
    assert!(folder.path().join("b.onnx").exists());
    for part in [
        "warning: Slice node 'x_sliced' remains (--avoid 'negative-steps'): it selects from 'x'",
        "error: the result was written, but 1 node remains with constructs that --avoid names",
    ] {
        assert!(message.contains(part), "{message}");
    }
    let done = run(&folder, &["fixed.onnx", "open.onnx", "--out-dir", "out", "--avoid", "negative-steps"]);
    assert_eq!(done.status.code(), Some(4), "{done:?}");
    assert!(folder.path().join("out/open.onnx").exists());
    let done = run(&folder, &["open.onnx", "-o", "c.onnx", "--avoid", "negative-steps", "--report", "json"]);
    let report: serde_json::Value = serde_json::from_slice(&done.stdout).expect("a line of JSON");
    assert_eq!(report["avoided"][0]["construct"], "negative-steps");
    for (construct, reason) in [
        ("Scann", "neither the standard nor the model has an operator 'Scann'; did you mean 'Scan'?"),
        ("rank>x", "'rank>x' names no construct"),
    ] {
        let done = run(&folder, &["open.onnx", "-o", "d.onnx", "--avoid", construct]);
        let message = String::from_utf8_lossy(&done.stderr).into_owned();
        assert_eq!(done.status.code(), Some(2), "{message}");
        assert!(message.contains(reason), "{message}");
        assert!(!folder.path().join("d.onnx").exists());
    }
}
