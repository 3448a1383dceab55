//! A second run on a folded model changes nothing.

use std::path::Path;

use onnx_slice_fold::ir::{Data, Model, text};
use onnx_slice_fold::passes::CLOSING;
use onnx_slice_fold::tensor::Tensor;
use onnx_slice_fold::{OnnxModel, Options, Report};

use crate::rules::Fixture;

fn folded(model: Model) -> (Model, Report) {
    let mut document = OnnxModel::of(model);
    let report = document.fold(&Options::default()).expect("the model folds");
    (document.model().clone(), report)
}

/// Returns the edits of a second run, by name.
fn left(model: Model) -> Vec<&'static str> {
    let (once, _) = folded(model);
    let (_, report) = folded(once);
    report.fired.into_iter().filter(|(_, count)| *count > 0).map(|(name, _)| name).collect()
}

/// A closing pass writes a form that the other passes revert in the next run, so it must keep all names.
#[test]
fn closing_passes_keep_names_in_a_second_run() {
    let closing: Vec<&str> = CLOSING.iter().map(|pass| pass.name).collect();
    let fixtures = ["passes", "together"].into_iter().flat_map(Fixture::of);
    let mut seen = 0;
    for fixture in fixtures {
        let (once, report) = folded(text::parse(&fixture.source).expect("it parses"));
        if !closing.iter().any(|name| report.fired.contains_key(name)) {
            continue;
        }
        seen += 1;
        let (twice, _) = folded(once.clone());
        assert_eq!(text::print(&twice), text::print(&once), "{}", fixture.name);
    }
    assert!(seen >= 8, "{seen}");
}

/// The Slices of a Slice become Slices of its data, with new bounds inside the body. The facts of these bounds are needed before the Slices
/// can become a Split.
#[test]
fn constants_made_inside_a_body_are_known_there() {
    let source = r#"<ir_version: 8, opset_import: ["" : 17]>
g (float[3,8] x, int64 n) => (float[3,8] y)
<bool yes = {1}, int64[1] zero = {0}, int64[1] one = {1}, int64[1] two = {2}, int64[1] six = {6}, int64[1] seven = {7}> {
  y = Loop <body: graph = b (int64 i, bool c, float[3,8] h) => (bool c2, float[3,8] h2) {
    c2 = Identity (c)
    m = Slice (h, one, seven, one)
    p = Slice (m, zero, two, one)
    q = Slice (m, two, six, one)
    r = Exp (p)
    s = Neg (q)
    h2 = Concat <axis = 1> (s, r, p)
  }> (n, yes, x)
}"#;
    let model = text::parse(source).expect("it parses");
    let (once, report) = folded(model);
    assert!(report.fired.contains_key("slices-to-split"), "{:?}", report.fired);
    let (_, again) = folded(once);
    assert!(again.fired.values().all(|count| *count == 0), "{:?}", again.fired);
}

/// A removed node has no effect: nodes that were kept because of it are folded in the same run.
#[test]
fn nodes_kept_because_of_a_removed_node_are_folded() {
    // A dead product of invalid shapes.
    let dead = r#"<ir_version: 8, opset_import: ["" : 18]>
        g (float[n] x) => (float[1,1] y, float[n] z) <float[2,3] a = {1, 2, 3, 4, 5, 6}, float[1,1] b = {1.5}> {
            y = Floor (b)  unread = Einsum <equation = "ij,kj->ik"> (y, a)  z = Neg (x) }"#;
    // A dequantized constant whose consumer at run time is dead.
    let quantized = r#"<ir_version: 8, opset_import: ["" : 18]>
        g (float[n,1] x) => (float[1,3] y, float[n] z) <int8[1,3] q = {-3, -2, -1}, float s = {0.5}, int8 o = {0}, int64[1] axis = {1}> {
            y = DequantizeLinear (q, s, o)  unread = MatMul (x, y)  z = Squeeze (x, axis) }"#;
    // The length of the expanded value is known only after a rule has proved that it is 1.
    let decided = r#"<ir_version: 8, opset_import: ["" : 15]>
        g (float[m,1] x, int64[1] least) => (int64[2] y) <int64[2] ones = {1, 1}, int64[1] axis = {0}, int64 first = {0}> {
            s = Shape (x)  rows = Gather (s, first)  row = Unsqueeze (rows, axis)  most = Max (row, least)  y = Expand (ones, most) }"#;
    // A Loop that may not run, with unread rows.
    let rows = r#"<ir_version: 8, opset_import: ["" : 18]>
        g (float[n] x, int64 trips) => (float[1,1] y, float[n] z) <float[1,1] b = {1.5}> {
            y = Floor (b)  z = Neg (x)
            unread = Loop <body: graph = b (int64 i, bool c) => (bool d, float[] r) { d = Identity (c)  r = Neg (y) }> (trips, "") }"#;
    for source in [dead, quantized, decided, rows] {
        let model = text::parse(source).expect("it parses");
        let (once, _) = folded(model.clone());
        assert_eq!(left(model), [""; 0], "{}", text::print(&once));
        let left = crate::support::operators(&once);
        assert!(left.iter().all(|operator| ["Neg", "Squeeze"].contains(&operator.as_str())), "{left:?}");
    }
}

/// Sizes that pass through int32 may have wrapped. The size planner reads them in int64 instead. The shapes inferred from the new nodes
/// enable further rewrites in the same run.
#[test]
fn sizes_without_a_cast_are_inferred_again() {
    let source = r#"<ir_version: 8, opset_import: ["" : 17]>
        g (float[n,m,2] x) => (float[a,b,3] y)
        <int64[1] zero = {0}, int64[1] two = {2}, int64[2] rows = {-1, 2}, float[2,3] w = {1, 2, 3, 4, 5, 6}, int32[1] columns = {3}> {
            s = Shape (x)  c = Cast <to = 6> (s)  lead = Slice (c, zero, two)
            joined = Concat <axis = 0> (lead, columns)  sizes = Cast <to = 7> (joined)
            flat = Reshape (x, rows)  p = MatMul (flat, w)  y = Reshape (p, sizes) }"#;
    let (once, _) = folded(text::parse(source).expect("it parses"));
    assert_eq!(crate::support::operators(&once), ["MatMul"], "{}", text::print(&once));
}

#[test]
fn families_and_rules_together() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let mut changed = Vec::new();
    let mut seen = 0;
    for folder in ["families", "rules/together"] {
        let entries = std::fs::read_dir(tests.join(folder)).expect("a folder");
        let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
        paths.sort();
        for path in paths.into_iter().filter(|path| path.extension().is_some_and(|end| end == "onnxtxt")) {
            let source = std::fs::read_to_string(&path).expect("a file");
            let model = text::parse(&source).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            let left = left(model);
            seen += 1;
            if !left.is_empty() {
                changed.push(format!(
                    "{}: {}",
                    path.file_name().unwrap_or_default().to_string_lossy(),
                    left.join(", ")
                ));
            }
        }
    }
    assert!(seen > 100 && changed.is_empty(), "{seen} models\n{}", changed.join("\n"));
}

/// Facts about sizes that an earlier run learned from removed nodes affect the written shapes only, because anybody can write metadata.
#[test]
fn remembered_sizes_are_no_premises() {
    let folded = |sizes: &str, body: &str| {
        let source = format!("<ir_version: 8, opset_import: [\"\" : 17]>\n{body}");
        let mut model = text::parse(&source).unwrap();
        model.remember(sizes);
        folded(model).0
    };
    let shape = |sizes: &str, declared: &str| {
        let behind = format!(
            "g (float[n] x) => (float[?] y) <{declared} s, int64[1] one = {{1}}, int64[1] end = {{9223372036854775807}}> {{
                s = Slice (x, one, end)  y = Neg (s) }}"
        );
        let printed = text::print(&folded(sizes, &behind));
        let line = printed.lines().find(|line| line.contains("] s")).map(str::to_string);
        line.unwrap_or(printed)
    };
    let short = "float[\"n - 1\"]";
    assert!(shape("n >= 1", short).contains("float[\"n - 1\"] s"), "{}", shape("n >= 1", short));
    assert!(shape("1 <= n; m >= 2; what is this", short).contains("\"n - 1\""));
    for nothing in ["n >= 0", "n", "", "n >= 1 and more", "n >= 5; n <= 2"] {
        assert!(shape(nothing, short).contains("max(0, n - 1)"), "{nothing}: {}", shape(nothing, short));
    }
    // Only shapes that the file declares itself are written.
    for declared in ["float[k]", "float[3]", "float[\"n - 2\"]", "float[\"max(0, n - 1)\"]", "float[?]"] {
        let written = shape("n >= 1", declared);
        assert!(written.contains("max(0, n - 1)"), "{declared}: {written}");
    }
    // The same for a sum of sizes next to another.
    let sum = |sizes: &str, declared: &str| {
        let front = format!(
            "g (float[a] x, float[b] y, float[c] z) => ({declared} w) <int64[1] zero = {{0}}> {{
                sx = Shape (x) sy = Shape (y) e = Add (sx, sy) s = Slice (z, zero, e)  w = Neg (s) }}"
        );
        text::print(&folded(sizes, &front)).contains("(float[\"a + b\"] w)")
    };
    assert!(sum("a + b <= c", "float[\"a + b\"]"));
    for (sizes, declared) in [
        ("a + b <= c + 1", "float[\"a + b\"]"),
        ("a + b <= d", "float[\"a + b\"]"),
        ("a + b <= c; c <= 3; a >= 4", "float[\"a + b\"]"),
        ("a + b <= c", ""),
        ("a + b <= c", "float[k]"),
    ] {
        assert!(!sum(sizes, declared), "{sizes} {declared}");
    }
    // If it were a premise, the size would be 1.
    let front =
        "g (float[n] x) => (y) <int64[1] zero = {0}, int64[1] one = {1}> { s = Slice (x, zero, one)  y = Shape (s) }";
    let model = folded("n >= 1", front);
    let none = Tensor::from_vec(&[0], Vec::<f32>::new()).unwrap();
    let results = crate::support::run(&model, vec![Data::Tensor(none)]).unwrap();
    assert_eq!(results[0].tensor().and_then(Tensor::to_i64s).as_deref(), Some(&[0i64][..]));
}

/// A run on the result writes the same shapes as the first run, although the node that determined the size is gone.
#[test]
fn shapes_stay_as_they_are_written() {
    // A Gather, which becomes a Slice, requires that x has a first row.
    let source = "<ir_version: 8, opset_import: [\"\" : 17]>
        g (float[n,4] x) => (y, z) <int64[1] first = {0}, int64[1] one = {1}, int64[1] end = {9223372036854775807}> {
            y = Gather (x, first)  s = Slice (x, one, end)  z = Neg (s) }";
    assert_stays(source);
    // A Gather, which becomes a Slice, requires that a row of the mask is as long as the past and the new tokens together.
    let source = "<ir_version: 8, opset_import: [\"\" : 13]>
        g (float[2,p] mask, float[2,seq] x, float[2,past] z) => (y, f)
        <int64 zero = {0}, int64 one = {1}, int64[4] rows = {-1,1,1,1}, int64[2] flat = {-1,1}> {
            sx = Shape (x) batch = Gather (sx, zero) new = Gather (sx, one) sz = Shape (z) kept = Gather (sz, one) n = Add (kept, new)
            sm = Shape (mask) p = Gather (sm, one) i = Range (zero, batch, one) k = Range (zero, n, one) ir = Reshape (i, rows)
            start = Mul (ir, p) places = Add (start, k) m = Reshape (mask, flat) g = Gather <axis = 0> (m, places)
            y = Neg (g) f = Gather <axis = 1> (x, zero) }";
    let remembered = assert_stays(source);
    assert!(remembered.contains("seq + past <= p"), "{remembered}");
}

/// Asserts that a second run changes nothing; returns the metadata of the first one.
fn assert_stays(source: &str) -> String {
    let mut first = OnnxModel::of(text::parse(source).unwrap());
    first.fold(&Options::new()).unwrap();
    let bytes = first.to_bytes().unwrap();
    let mut second = OnnxModel::from_bytes(bytes).unwrap();
    let remembered = second.model().remembered().unwrap_or_default();
    second.fold(&Options::new()).unwrap();
    assert_eq!(first.text(), second.text());
    remembered
}

/// An earlier run has replaced a name by its size. The same assumption is still accepted, also in relations with the name. Any other
/// assumption about a missing name is an error as before, even if only the size differs.
#[test]
fn sizes_are_assumed_again() {
    let source = r#"<ir_version: 8, opset_import: ["" : 17]> g (float[n,s,8] x) => (float[n,s,8] y) { y = Relu (x) }"#;
    let options = Options::new().dim("n=2").dim("s=1..9").assume("n + s <= 8");
    let mut model = OnnxModel::of(text::parse(source).expect("it parses"));
    model.fold(&options).expect("it folds");
    let mut again = OnnxModel::of(model.model().clone());
    again.fold(&options).expect("the same is assumed again");
    assert_eq!(again.to_bytes().expect("it is written"), model.to_bytes().expect("it is written"));

    for other in ["n=3", "m=2", "n=1..4"] {
        let refused = OnnxModel::of(model.model().clone()).fold(&Options::new().dim(other));
        assert!(refused.is_err_and(|error| error.to_string().contains("not found; the model")), "{other}");
    }
}

/// Values that only a branch that is not taken read are removed in the same run, and so are the nodes that this read kept.
#[test]
fn a_removed_branch_reads_nothing() {
    let source = r#"<ir_version: 8, opset_import: ["" : 19]>
        g (float[s,1,3] x) => (y, z) <int64[2] parts = {1, 2}, bool no = {0}> {
            a, b = Split <axis = -1> (x, parts)
            y = If <then_branch: graph = t () => (p) { c = Neg (b)  d = Abs (c)  p = Concat <axis = -1> (a, d) },
                    else_branch: graph = e () => (q) { q = Neg (x) }> (no)
            z = Exp (a) }"#;
    assert_eq!(left(text::parse(source).expect("it parses")), Vec::<&str>::new());
}

/// Both runs keep a declared 1 that follows from views and broadcasting, although an empty run may have another batch.
#[test]
fn a_constant_dim_of_an_output_is_kept_if_views_imply_it() {
    let one = r#"<ir_version: 8, opset_import: ["" : 17]>
        g (float[batch,seq,12] x) => (float[1,seq,12] y) <int64[1] at = {1}, int64[1] end = {2}, int64[2] heads = {6, 2}, int64[2] back = {1, 12}> {
            s = Shape (x)  n = Slice (s, at, end)  t = Transpose <perm = [1, 0, 2]> (x)
            g = Concat <axis = 0> (n, heads)  r = Reshape (t, g)  p = Softmax (r)
            h = Concat <axis = 0> (n, back)  k = Reshape (p, h)  l = Transpose <perm = [1, 0, 2]> (k)  y = Add (x, l) }"#;
    // The −1 accepts several sequences, but then the next sum fails.
    let counted = r#"<ir_version: 8, opset_import: ["" : 17]>
        g (float[batch,seq,12] x) => (float[1,seq,12] y) <int64[3] rows = {1, -1, 12}> {
            a = Exp (x)  b = Reshape (a, rows)  c = Add (x, b)
            d = Exp (c)  e = Reshape (d, rows)  y = Add (c, e) }"#;
    for source in [one, counted] {
        let (once, _) = folded(text::parse(source).expect("it parses"));
        let printed = text::print(&once);
        assert!(printed.contains("(float[1,seq,12] y)"), "{printed}");
        assert_eq!(text::print(&folded(once).0), printed);
    }
    // Without the second sum, a run with two sequences of one row each succeeds.
    let open = counted.replace("y = Add (c, e)", "y = Add (x, b)");
    let printed = text::print(&folded(text::parse(&open).expect("it parses")).0);
    assert!(printed.contains("(float[batch,"), "{printed}");
}

/// A lookup of counted positions needs as many rows, and a Squeeze needs an axis of dim 1. The metadata keeps both facts if the nodes are
/// replaced.
#[test]
fn requirements_of_removed_nodes_are_remembered() {
    let lookup = r#"<ir_version: 8, opset_import: ["" : 15]>
        g (bool[c,4] m, float[b,4] x) => (y)
        <int64 zero = {0}, int64 one = {1}, int64[2] rows = {-1, 1}, int64[2] columns = {1, -1}, int64[1] last = {2}> {
            s = Shape (x)  b = Gather (s, zero)  n = Gather (s, one)  i = Range (zero, b, one)  j = Range (zero, n, one)
            u = Reshape (i, rows)  v = Reshape (j, columns)  p = Expand (u, s)  q = Expand (v, s)
            p1 = Unsqueeze (p, last)  q1 = Unsqueeze (q, last)  k = Concat <axis = -1> (p1, q1)
            g = GatherND (m, k)  w = Cast <to = 1> (g)  y = Add (x, w) }"#;
    let squeezed = r#"<ir_version: 8, opset_import: ["" : 15]>
        g (float[n,m] x) => (y) <int64[1] first = {0}, int64[1] two = {2}, int64[1] end = {9223372036854775807}> {
            a = Squeeze (x, first)  b = Unsqueeze (a, first)  c = Exp (b)  y = Concat <axis = 0> (c, c) }"#;
    for (source, known, written) in [(lookup, "b <= c", "[b,4] g"), (squeezed, "n ", "[2,m] y")] {
        let (once, _) = folded(text::parse(source).expect("it parses"));
        let printed = text::print(&once);
        assert!(once.remembered().is_some_and(|sizes| sizes.contains(known)), "{printed}");
        assert!(printed.contains(written), "{printed}");
        assert_eq!(text::print(&folded(once).0), printed);
    }
}
