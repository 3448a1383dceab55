//! `--stop-after`: a run with a limit makes the first edits of the run without one.

use std::collections::BTreeMap;
use std::path::Path;

use onnx_slice_fold::ir::{Definition, Model, text};
use onnx_slice_fold::passes::{CLOSING, PASSES, records};
use onnx_slice_fold::{OnnxModel, Options, Report};

/// Constants, equal nodes, rules, sizes, dead code.
const SIZES: &str = "<ir_version: 8, opset_import: [\"\" : 17]>
g (float[n,h,w] x) => (float[a,b] y, float[d,h,w] z, int64[2] twice) <int64 one = {1}, int64[1] two1 = {2}, int64 again = {1}, int64 two = {2}, int64[1] zero = {0}, float[2] unread = {1,2}> {
    s = Shape (x)
    t = Shape (x)
    a = Gather (s, one)
    b = Gather (t, again)
    c = Gather (t, two)
    a1 = Unsqueeze (a, zero)
    b1 = Unsqueeze (b, zero)
    c1 = Unsqueeze (c, zero)
    hw = Concat <axis = 0> (b1, c1)
    half = Div (two, two)
    more = Add (half, one)
    more1 = Unsqueeze (more, zero)
    flat = Mul (a1, c1)
    shape = Concat <axis = 0> (zero, flat)
    other = Concat <axis = 0> (zero, b1, c1)
    tiled = Concat <axis = 0> (b1, c1, more1)
    nobody = ConstantOfShape (tiled)
    y = Reshape (x, shape)
    d1 = Add (b1, b1)
    d2 = Mul (b1, two1)
    twice = Concat <axis = 0> (d1, d2)
    i = Identity (x)
    z1 = Reshape (i, other)
    z = Expand (z1, other)
}";

/// An If and Loops with constant conditions, and inner values that shadow outer ones.
const BODIES: &str = "<ir_version: 8, opset_import: [\"\" : 17]>
g (float[n] x) => (float[n] y, float[n] z, float[n] w) <bool yes = {1}, int64 once = {1}, int64 never = {0}, float two = {2}> {
    a = Abs (x)
    taken = If <then_branch: graph = t () => (float[n] b) { k = Abs (x)  l = Mul (k, two)  b = Neg (l) },
                else_branch: graph = e () => (float[n] d) { d = Exp (x) }> (yes)
    y = Add (a, taken)
    z1 = Loop <body: graph = p (int64 i, bool c, float[n] v) => (bool c1, float[n] v1) { c1 = Identity (c)  v1 = Sqrt (v) }> (once, yes, a)
    w1 = Loop <body: graph = q (int64 i2, bool c2, float[n] v2) => (bool c3, float[n] v3) { c3 = Identity (c2)  v3 = Log (v2) }>
        (never, yes, taken)
    none = Identity (two)
    s = Sum (two, none)
    z = Mul (z1, s)
    w = Div (w1, s)
}";

/// Functions: one that is called once, a small one, a large one that is kept, and an unused one.
const FUNCTIONS: &str = "<ir_version: 8, opset_import: [\"\" : 17, \"f\" : 1]>
g (float[n,4] x, float[m,4] u) => (float[n,4] y, float[m,4] z) {
    a = f.once (x)
    b = f.small (a)
    c = f.small (b)
    d = f.large (c)
    y = f.large (d)
    z = f.large (u)
}
<domain: \"f\", opset_import: [\"\" : 17]> once (p) => (q) { t = Identity (p)  q = Abs (t) }
<domain: \"f\", opset_import: [\"\" : 17]> small (p) => (q) { q = Neg (p) }
<domain: \"f\", opset_import: [\"\" : 17]> nobody (p) => (q) { q = Exp (p) }
<domain: \"f\", opset_import: [\"\" : 17]> large (p) => (q) {
    s = Shape (p)
    one = Constant <value = int64 {1}> ()
    zero = Constant <value = int64[1] {0}> ()
    w = Gather (s, one)
    w1 = Unsqueeze (w, zero)
    minus = Constant <value = int64[1] {-1}> ()
    all = Concat <axis = 0> (minus, w1)
    r = Reshape (p, all)
    t0 = Sin (r)
    t1 = Cos (t0)
    t2 = Sin (t1)
    t3 = Cos (t2)
    t4 = Sin (t3)
    t5 = Cos (t4)
    t6 = Sin (t5)
    t7 = Cos (t6)
    t8 = Abs (t7)
    t9 = Abs (t8)
    q = Exp (t9)
}";

const MODELS: [(&str, &str); 3] = [("sizes", SIZES), ("bodies", BODIES), ("functions", FUNCTIONS)];

fn folded(source: &str, options: &Options) -> (Model, Report) {
    let mut held = OnnxModel::of(text::parse(source).unwrap_or_else(|error| panic!("{error}\n{source}")));
    let report = held.fold(options).unwrap_or_else(|error| panic!("{options:?}\n{error}"));
    (held.model().clone(), report)
}

fn stopped_after(source: &str, edits: usize) -> (Model, Report) {
    folded(source, &Options::new().stop_after(edits).verify_each(true))
}

/// Nodes, initializers, inputs and outputs of every graph by name, without types.
fn skeleton(model: &Model) -> Vec<String> {
    let name = |value| model.value(value).name.clone();
    let mut lines = Vec::new();
    for graph in model.graphs().filter(|&graph| model.is_live(graph)) {
        let held = model.graph(graph);
        lines.push(format!("graph {graph:?} {}", held.name));
        lines.extend(held.inputs().iter().map(|&value| format!("input {}", name(value))));
        lines.extend(held.outputs().iter().map(|&value| format!("output {}", name(value))));
        lines.extend(held.initializers().iter().map(|&value| {
            let tensor = model.value(value).tensor();
            format!(
                "initializer {} {:?} {tensor:?}",
                name(value),
                model.value(value).definition() == Definition::Initializer(graph)
            )
        }));
        for node in held.nodes().filter_map(|id| model.node(id)) {
            let inputs: Vec<_> = node.inputs().iter().map(|value| value.map(name)).collect();
            let outputs: Vec<_> = node.outputs().iter().map(|value| value.map(name)).collect();
            let attributes = &node.attributes;
            lines.push(format!("{} {inputs:?} {outputs:?} {attributes:?}", node.operator()));
            lines.push(format!("node {:?}", node.name));
        }
    }
    lines.extend(model.functions().map(|(id, function)| format!("{id:?} {} {:?}", function.name, function.body)));
    lines
}

#[test]
fn with_no_edit_the_graph_is_that_of_the_file() {
    for (name, source) in MODELS {
        let original = text::parse(source).expect("it parses");
        let (model, report) = stopped_after(source, 0);
        assert_eq!(skeleton(&model), skeleton(&original), "{name}");
        assert_eq!(report.fired.values().sum::<usize>(), 0, "{name}");
        assert_eq!(report.last_edit, None, "{name}");
        assert!(report.after.shaped >= report.before.shaped, "{name}");
    }
}

#[test]
fn each_limit_extends_the_edits_of_the_one_before() {
    for (name, source) in MODELS {
        let (unlimited, whole) = folded(source, &Options::new());
        let total: usize = whole.fired.values().sum();
        assert!(total > 10, "{name} takes {total} edits only");
        let mut known: BTreeMap<&str, usize> = BTreeMap::new();
        for edits in 1..=total {
            let (model, report) = stopped_after(source, edits);
            let last = report.last_edit.unwrap_or_else(|| panic!("{name}: no edit of {edits}"));
            *known.entry(last.name).or_default() += 1;
            let fired: BTreeMap<&str, usize> = report.fired.iter().map(|(rule, count)| (*rule, *count)).collect();
            assert_eq!(fired, known, "{name} after {edits} edits");
            assert!(last.place.is_some() && model.verify().is_ok(), "{name} after {edits} edits");
            if edits == total {
                assert_eq!(text::print(&model), text::print(&unlimited), "{name}");
            }
        }
        let (model, report) = stopped_after(source, total + 1);
        assert_eq!(report.fired, whole.fired, "{name}");
        assert_eq!(text::print(&model), text::print(&unlimited), "{name}");
    }
}

#[test]
fn edits_of_every_kind_of_pass_are_counted() {
    let fired: BTreeMap<&str, usize> =
        MODELS.iter().flat_map(|(_, source)| folded(source, &Options::new()).1.fired).collect();
    for pass in [
        "fold-constants",
        "common-subexpression",
        "value-numbering",
        "shape-read-off",
        "decided-if",
        "decided-loop",
        "dead-code",
        "inline-function",
        "fold-function",
    ] {
        assert!(fired.get(pass).is_some_and(|&count| count > 0), "{pass}: {fired:?}");
    }
}

/// The reported changes of each pass equal the counted ones.
#[test]
fn the_report_lists_the_changes_of_each_pass() {
    let (_, report) = folded(SIZES, &Options::new());
    let changes: usize = report.passes.iter().map(|pass| pass.changes).sum();
    assert_eq!(changes, report.fired.values().sum::<usize>());
    let infer = report.passes.iter().find(|pass| pass.name == "infer-shapes");
    assert!(infer.is_some_and(|pass| pass.runs == report.rounds && pass.seconds > 0.0));
    let (_, report) = folded(SIZES, &Options::new().skip(["common-subexpression"]));
    assert!(!report.passes.iter().any(|pass| pass.name == "common-subexpression"));
}

/// Returns the names of all rules and passes.
fn all_names() -> Vec<&'static str> {
    let mut names: Vec<&str> = PASSES.iter().chain(CLOSING).map(|pass| pass.name).collect();
    names.extend(records().map(|record| record.name));
    names
}

/// Returns the models of a folder of the repository, by path.
fn models_of(folder: &str) -> Vec<(String, Model)> {
    let mut models = Vec::new();
    let mut open = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder).expect("the folder is there") {
            let path = entry.expect("an entry").path();
            let name = path.display().to_string();
            match path.extension().and_then(|extension| extension.to_str()) {
                _ if path.is_dir() => open.push(path),
                Some("onnxtxt") => {
                    let source = std::fs::read_to_string(&path).expect("the fixture is read");
                    models.push((
                        name,
                        text::parse(&source).unwrap_or_else(|error| panic!("{}: {error}", path.display())),
                    ));
                }
                Some("onnx") => {
                    let held = OnnxModel::open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
                    models.push((name, held.model().clone()));
                }
                _ => {}
            }
        }
    }
    models.sort_by(|(a, _), (b, _)| a.cmp(b));
    models
}

fn folded_model(model: &Model, options: &Options) -> (Model, Report) {
    let mut held = OnnxModel::of(model.clone());
    let report = held.fold(options).unwrap_or_else(|error| panic!("{options:?}\n{error}"));
    (held.model().clone(), report)
}

/// Returns the skeleton without the names of nodes.
fn computation(model: &Model) -> Vec<String> {
    skeleton(model).into_iter().filter(|line| !line.starts_with("node ")).collect()
}

/// Without edits the model equals the file. With all rules and passes disabled, only unnamed nodes get names; with a limit of 0 edits, not
/// even those. So only passes edit a model.
#[test]
fn nothing_but_passes_edits_a_model() {
    let none_left = Options::new().skip(all_names());
    for folder in ["tests/families", "tests/rules", "models"] {
        for (name, original) in models_of(folder) {
            let (model, report) = folded_model(&original, &Options::new().stop_after(0));
            assert_eq!(skeleton(&model), skeleton(&original), "{name} without an edit");
            assert_eq!(report.fired.len(), 0, "{name}");
            let (model, report) = folded_model(&original, &none_left);
            assert_eq!(report.fired, BTreeMap::new(), "{name} without a pass");
            assert_eq!(computation(&model), computation(&original), "{name} without a pass");
        }
    }
}

/// Each edit has a number and a name: a limit that is higher by one adds that edit, and after the last edit nothing changes.
#[test]
fn each_change_of_a_model_is_counted_and_named() {
    // A sample of the numbers of long runs, including the last one.
    const MOST: usize = 24;
    let fixtures = models_of("tests/rules/passes").into_iter().chain(models_of("tests/rules/together"));
    let models = fixtures.chain(models_of("tests/families")).chain(models_of("models"));
    let mut last = BTreeMap::<&str, usize>::new();
    for (name, original) in models {
        let (unlimited, whole) = folded_model(&original, &Options::new());
        let total: usize = whole.fired.values().sum();
        let step = total.div_ceil(MOST).max(1);
        for edits in (0..=total).rev().step_by(step) {
            let (model, report) = folded_model(&original, &Options::new().stop_after(edits));
            assert_eq!(report.fired.values().sum::<usize>(), edits, "{name}");
            assert_eq!(report.last_edit.is_some(), edits > 0, "{name} after {edits} edits");
            model.verify().unwrap_or_else(|broken| panic!("{name} after {edits} edits: {broken}"));
            if edits == total && edits > 0 {
                *last.entry(report.last_edit.expect("there is one").name).or_default() += 1;
                assert_eq!(text::print(&model), text::print(&unlimited), "{name}");
            }
        }
    }
    for pass in CLOSING {
        assert!(last.contains_key(pass.name), "no model ends with {}: {last:?}", pass.name);
    }
}
