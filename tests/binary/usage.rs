//! Command line options: shapes, parts of models, several models, the configuration file, and error messages.

use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;

/// An input with a constant dim, a named one and an unnamed one, and declared shapes that depend on the constant.
const SOURCE: &str = r#"<ir_version: 8, opset_import: ["" : 17]>
    g (float[2,seq,?] x, float[Height] k) => (float[2,seq,?] y, float[1] z) <float[2,seq,?] a, float[2,seq,?] b, int64[3] sizes = {2,-1,1}> {
        a = Relu (x)  b = Neg (a)  y = Abs (b)  z = ReduceSum (k) }"#;

fn folder(source: &str) -> TempDir {
    let folder = TempDir::new().expect("a folder");
    write(&folder, "m.onnx", source);
    folder
}

fn write(folder: &TempDir, name: &str, source: &str) {
    let model = onnx_slice_fold::ir::text::parse(source).unwrap_or_else(|error| panic!("{error}\n{source}"));
    let path = folder.path().join(name);
    std::fs::create_dir_all(path.parent().expect("a parent")).expect("the folder is made");
    onnx_slice_fold::OnnxModel::of(model).save(path).expect("the model is written");
}

fn run(folder: &TempDir, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_onnx-slice-fold"));
    command.args(arguments).current_dir(folder.path()).output().expect("the binary starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn shown(folder: &TempDir, arguments: &[&str]) -> String {
    let done = run(folder, &[&["show", "--folded", "m.onnx"][..], arguments].concat());
    assert!(done.status.success(), "{arguments:?}: {}", text(&done.stderr));
    text(&done.stdout)
}

#[test]
fn a_size_that_the_model_declares_is_overwritten() {
    let folder = folder(SOURCE);
    for spelling in ["x:4,6,8", "x:[4,6,8]", "x:[4, 6, 8]", "x:4x6x8", "\"x\":4,6,8"] {
        let shown = shown(&folder, &["--overwrite-input-shape", spelling]);
        assert!(shown.contains("(float[4,6,8] x,") && shown.contains("=> (float[4,6,8] y,"), "{spelling}: {shown}");
    }
    // A name replaces a constant dim, and no old number remains.
    let shown = shown(&folder, &["--overwrite-input-shape", "x:batch,-1,?"]);
    assert!(shown.contains("float[batch,seq,x_dim_2] x") && !shown.contains("[2,"), "{shown}");
}

#[test]
fn declarations_must_fit_an_overwritten_size() {
    let folder = folder(
        r#"<ir_version: 8, opset_import: ["" : 17]>
        g (float[2,3] x) => (y) <float[2,3] w = {1,2,3,4,5,6}> { y = Add (x, w) }"#,
    );
    let done = run(&folder, &["m.onnx", "-o", "/dev/null", "--overwrite-input-shape", "4,3"]);
    assert_eq!(done.status.code(), Some(1));
    assert!(text(&done.stderr).contains("the assumptions make a node invalid"), "{}", text(&done.stderr));
    // The default of an input has the declared size.
    let done = {
        write(
            &folder,
            "d.onnx",
            r#"<ir_version: 8, opset_import: ["" : 17]> g (float[2] x = {1,2}) => (y) { y = Neg (x) }"#,
        );
        run(&folder, &["d.onnx", "-o", "/dev/null", "--overwrite-input-shape", "x:4"])
    };
    assert!(text(&done.stderr).contains("contradicts"), "{}", text(&done.stderr));
}

#[test]
fn a_dim_is_named_by_its_position() {
    let folder = folder(SOURCE);
    for (said, expected) in [
        (&["--dim", "x[2]=width"][..], "float[2,seq,width] x"),
        (&["--dim", "x[-1]=width", "--dim", "width=7"], "float[2,seq,7] x"),
        (&["--dim", "x[2]=7", "seq=3"], "float[2,3,7] x"),
        (&["--dim", "x[0]=batch"], "float[batch,seq,x_dim_2] x"),
        (&["--dim", "x[2]=1..8"], "float[2,seq,x_dim_2] x"),
        (&["--dim", "x[1]=1..8"], "float[2,seq,x_dim_2] x"),
    ] {
        let shown = shown(&folder, said);
        assert!(shown.contains(expected), "{said:?}: {shown}");
    }
}

#[test]
fn a_wrong_dim_is_answered_with_the_dims_that_the_inputs_have() {
    let refused = |inputs: &str, flags: [&str; 2]| {
        let folder =
            folder(&format!(r#"<ir_version: 8, opset_import: ["" : 17]> g ({inputs}) => (y) {{ y = Neg (x) }}"#));
        let done = run(&folder, &["m.onnx", "-o", "/dev/null", flags[0], flags[1]]);
        assert_eq!(done.status.code(), Some(1), "{flags:?}");
        text(&done.stderr).trim_end().to_string()
    };
    let ids = "int64[s33,s50] x, int64[s33,s50] mask";
    let known = "the model's symbolic dimensions are s33 (x, axis 0, 1 more) and s50 (x, axis 1, 1 more)";
    for (inputs, flags, expected) in [
        // First by similar letters, then by usual meanings of axis names.
        (ids, ["--dim", "s34=1"], format!("error: dimension \"s34\" not found; {known}; did you mean s33?")),
        (ids, ["--dim", "batch=1"], format!("error: dimension \"batch\" not found; {known}; did you mean s33?")),
        (ids, ["--dim", "seq_len=1..8"], format!("error: dimension \"seq_len\" not found; {known}; did you mean s50?")),
        (ids, ["--assume", "s33 <= heads"], format!("error: dimension \"heads\" not found; {known}")),
        (
            "float[n,4] x",
            ["--dim", "rows=1"],
            "error: dimension \"rows\" not found; the model's only symbolic dimension is n (x, axis 0); did you mean n?".to_string(),
        ),
        (
            "float[n,\"past + 1\"] x",
            ["--dim", "past=1"],
            "error: dimension \"past\" not found; the model's symbolic dimensions are n (x, axis 0) and \"past + 1\" (x, axis 1); \
             --assume needs the double quotes, --dim does not"
                .to_string(),
        ),
        (
            "float[1,4] x",
            ["--dim", "batch=1"],
            "error: dimension \"batch\" not found; the model's inputs have no symbolic dimensions".to_string(),
        ),
        (
            "float[?,4] x",
            ["--dim", "batch=1"],
            "error: dimension \"batch\" not found; the model's inputs have no symbolic dimensions; x[0] has no name, which \
             --dim 'x[0]=NAME' gives"
                .to_string(),
        ),
    ] {
        assert_eq!(refused(inputs, flags), expected, "{flags:?}");
    }
    let many: Vec<String> = (10..40).map(|at| format!("d{at}")).collect();
    let said = refused(&format!("float[{}] x", many.join(",")), ["--dim", "nothing=1"]);
    assert!(said.contains("d21 (x, axis 11) and 18 more") && !said.contains("d22"), "{said}");
}

#[test]
fn parts_of_a_model_are_taken() {
    let folder = folder(SOURCE);
    let part = shown(&folder, &["--inputs", "a", "--outputs", "b"]);
    assert!(part.contains("(float[2,seq,") && part.contains(" a) => (float") && part.contains(" b) "), "{part}");
    assert!(part.contains("Neg") && !part.contains("Relu") && !part.contains("Abs"), "{part}");
    let part = shown(&folder, &["--outputs", "[ab]"]);
    assert!(part.contains("Relu") && part.contains("Neg") && !part.contains("Abs"), "{part}");
    let part = shown(&folder, &["--unused-output", "z"]);
    assert!(part.contains("Abs") && !part.contains("ReduceSum") && part.contains("float[Height] k"), "{part}");
    // An inner value that becomes an input may be given a shape.
    let part = shown(&folder, &["--inputs", "a", "--outputs", "b", "--overwrite-input-shape", "2,5,6"]);
    assert!(part.contains("(float[2,5,6] a) => (float[2,5,6] b)"), "{part}");
}

/// A node with a second result in use is kept when its first result becomes an input.
#[test]
fn a_result_becomes_an_input_and_its_node_is_kept() {
    let folder = folder(
        r#"<ir_version: 8, opset_import: ["" : 17]>
        g (float[4] x, bool c) => (y) {
            p, q = Split (x)  n = Neg (p)
            y = If (c) <then_branch: graph = t () => (u) { u = Add (n, q) }, else_branch: graph = e () => (v) { v = Sub (p, q) }> }"#,
    );
    let part = shown(&folder, &["--no-rules", "--inputs", "p", "x", "c"]);
    assert!(part.contains("(float[2] p, float[4] x, bool c)") && part.contains("Split"), "{part}");
    let done = run(&folder, &["m.onnx", "-o", "/dev/null", "--inputs", "p", "c"]);
    assert!(text(&done.stderr).contains("output 'y' needs input 'x'"), "{}", text(&done.stderr));
}

#[test]
fn several_models_are_folded() {
    let folder = folder(SOURCE);
    write(&folder, "more/deep/n.onnx", SOURCE);
    write(&folder, "more/o.onnx", SOURCE);
    std::fs::write(folder.path().join("more/bad.onnx"), b"").expect("the file is written");
    let done = run(&folder, &["more", "m.onnx", "--out-dir", "out", "--jobs", "2"]);
    assert_eq!(done.status.code(), Some(1));
    let lines: Vec<String> =
        text(&done.stdout).lines().map(|line| line.split(':').next().unwrap_or("").to_string()).collect();
    assert_eq!(lines, ["more/deep/n.onnx", "more/o.onnx", "m.onnx"]);
    let said = text(&done.stderr);
    assert!(said.contains("error: more/bad.onnx: ") && said.contains("1 of 4 models failed"), "{said}");
    for name in ["deep/n.onnx", "o.onnx", "m.onnx"] {
        assert!(folder.path().join("out").join(name).is_file(), "{name}");
    }
    let done = run(&folder, &["more/o*.onnx", "--out-dir", "out2", "--report", "json"]);
    let line: serde_json::Value = serde_json::from_slice(&done.stdout).expect("a line of JSON");
    assert_eq!((line["schema"].as_str(), line["model"].as_str()), (Some("1.4"), Some("more/o.onnx")));
    assert_eq!(line["files"][0]["path"].as_str(), Some("out2/o.onnx"));
}

/// A product that is parallelized is computed on one thread if the system starts no other.
#[test]
fn a_model_is_folded_without_threads() {
    let folder = folder(
        r#"<ir_version: 8, opset_import: ["" : 17]>
        g (float[n,128] x) => (float[n,128] y) <float start = {0}, float end = {16384}, float step = {1}, int64[2] square = {128,128}> {
            row = Range (start, end, step)  table = Reshape (row, square)  sine = Sin (table)
            product = MatMul (sine, sine)  y = MatMul (x, product) }"#,
    );
    // A stack size that no system provides.
    let alone = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_onnx-slice-fold"));
        command.args(arguments).current_dir(folder.path()).env("RUST_MIN_STACK", (1u64 << 46).to_string());
        command.output().expect("the binary starts")
    };
    let done = alone(&["m.onnx", "-o", "alone.onnx"]);
    assert!(done.status.success(), "{}", text(&done.stderr));
    let done = alone(&["m.onnx", "--out-dir", "several"]);
    assert!(done.status.success(), "{}", text(&done.stderr));
    assert!(run(&folder, &["m.onnx", "-o", "together.onnx"]).status.success());
    let read = |name: &str| std::fs::read(folder.path().join(name)).expect("a model");
    assert_eq!(read("alone.onnx"), read("together.onnx"));
    assert_eq!(read("several/m.onnx"), read("together.onnx"));
}

/// docs/report.md lists exactly the existing fields.
#[test]
fn the_json_report_is_as_documented() {
    let folder = folder(SOURCE);
    let done = run(&folder, &["m.onnx", "-o", "n.onnx", "--report", "json"]);
    let report: serde_json::Value = serde_json::from_slice(&done.stdout).expect("a line of JSON");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/report.md");
    let file = std::fs::read_to_string(path).expect("the schema is read");
    let of_reports = file.split("\n## Inspections").next().expect("the schema of reports");
    let rows = of_reports.lines().filter_map(|line| line.strip_prefix("| `"));
    let documented: std::collections::BTreeSet<String> = rows
        .filter_map(|line| line.split(" | ").next())
        .flat_map(|cell| cell.split(", ").map(|name| name.trim_matches('`').to_string()))
        .collect();
    let mut fields = std::collections::BTreeSet::new();
    fields.extend(report.as_object().expect("an object").keys().cloned());
    fields.extend(report["after"].as_object().expect("an object").keys().cloned());
    assert_eq!(documented, fields);
    let bytes = std::fs::metadata(folder.path().join("n.onnx")).expect("the result").len();
    assert_eq!(report["after"]["bytes"].as_u64(), Some(bytes));
    assert_eq!(report["outputs"][0]["name"].as_str(), Some("y"));
}

#[test]
fn flags_come_from_a_file() {
    let folder = folder(SOURCE);
    let config = folder.path().join("onnx-slice-fold.toml");
    std::fs::write(&config, "dim = [\"seq=5\", \"x[2]=6\"]\nexact = true\nreport = \"text\"\n").expect("it is written");
    let done = run(&folder, &["m.onnx", "-o", "/dev/null"]);
    assert!(done.status.success(), "{}", text(&done.stderr));
    assert!(
        text(&done.stdout).contains("float[2,5,6]")
            && text(&done.stderr).contains("note: using the flags of 'onnx-slice-fold.toml'")
    );
    assert!(shown(&folder, &[]).contains("float[2,5,6] x"));
    assert!(shown(&folder, &["--no-config"]).contains("float[2,seq,x_dim_2] x"));
    for (content, said) in [
        ("dim = 3", None),
        ("exakt = true", Some("unknown key 'exakt' in 'onnx-slice-fold.toml'; did you mean 'exact'?")),
        ("output = \"a\"", Some("unknown key 'output'")),
        ("exact = 1", Some("'exact' must be true or false, but is integer")),
        ("exact", Some("is not valid TOML")),
    ] {
        std::fs::write(&config, content).expect("it is written");
        let done = run(&folder, &["m.onnx", "-o", "/dev/null"]);
        assert_eq!(done.status.code(), Some(2), "{content}");
        assert!(text(&done.stderr).contains(said.unwrap_or("is not a size")), "{content}: {}", text(&done.stderr));
    }
}

/// The shell may expand `*.onnx` to two models.
#[test]
fn another_model_is_not_overwritten() {
    let folder = folder(SOURCE);
    let other = r#"<ir_version: 8, opset_import: ["" : 17]> g (float[n] p) => (q) { q = Neg (p) }"#;
    write(&folder, "n.onnx", other);
    let done = run(&folder, &["m.onnx", "n.onnx"]);
    assert_eq!(done.status.code(), Some(2), "{}", text(&done.stderr));
    assert!(run(&folder, &["m.onnx", "-o", "n.onnx"]).status.success());
    // An earlier result may be overwritten.
    assert!(run(&folder, &["m.onnx", "n.onnx"]).status.success());
}

#[test]
fn colour_is_for_terminals() {
    let folder = folder(SOURCE);
    for (flag, is_coloured) in [("--color=auto", false), ("--color=never", false), ("--color=always", true)] {
        let done = run(&folder, &["m.onnx", "-o", "/dev/null", "--cleanup", flag]);
        assert_eq!(text(&done.stderr).contains("\u{1b}["), is_coloured, "{flag}");
    }
    let done = run(&folder, &["m.onnx", "-o", "/dev/null", "--cleanup", "-q"]);
    assert!(done.status.success() && done.stdout.is_empty() && done.stderr.is_empty());
    let done = run(&folder, &["m.onnx", "-o", "/dev/null", "-vv"]);
    assert!(text(&done.stdout).contains("milliseconds"));
}

#[test]
fn shells_and_man_know_the_flags() {
    let folder = folder(SOURCE);
    for shell in ["bash", "zsh", "fish"] {
        let done = run(&folder, &["completions", shell]);
        assert!(done.status.success() && text(&done.stdout).contains("overwrite-input-shape"), "{shell}");
    }
    assert!(text(&run(&folder, &["man"]).stdout).starts_with(".ie"));
    let help = text(&run(&folder, &["--help"]).stdout);
    assert!(help.contains("Flags of other tools") && help.contains("--no-large-tensor"), "{help}");
    assert!(run(&folder, &["help", "--help"]).status.success());
}

#[test]
fn models_are_compared_by_their_functions() {
    let folder = folder(SOURCE);
    // The same under other names and in another order, with Tanh in place of Neg.
    let other = SOURCE
        .replace("b = Neg (a)", "b = Tanh (a)")
        .replace("a = Relu (x)", "first = Relu (x)")
        .replace("(a)", "(first)")
        .replace("> a,", "> first,")
        .replace("float[2,seq,?] a,", "");
    write(&folder, "n.onnx", &other);
    let said = text(&run(&folder, &["diff", "m.onnx", "n.onnx"]).stdout);
    insta::assert_snapshot!(said);
    assert_eq!(text(&run(&folder, &["diff", "m.onnx", "m.onnx"]).stdout), "");
}

#[test]
fn functions_are_compared_as_graphs() {
    let source = r#"<ir_version: 8, opset_import: ["" : 17, "f" : 1]>
        g (float[n] x) => (float[n] y) { a = f.inner (x)  y = f.inner (a) }
        <domain: "f", opset_import: ["" : 17]> inner (u) => (w) { w = Tanh (u) }
        <domain: "f", opset_import: ["" : 17]> unread (u) => (w) { w = Tanh (u) }"#;
    let folder = folder(source);
    let unread = r#"opset_import: ["" : 17]> unread"#;
    for (name, old, new) in [
        ("body.onnx", "inner (u) => (w) { w = Tanh", "inner (u) => (w) { w = Sin"),
        ("opset.onnx", unread, r#"opset_import: ["" : 18]> unread"#),
        ("name.onnx", "unread (u) =>", "read (u) =>"),
        ("renamed.onnx", "inner (u) => (w) { w = Tanh (u)", "inner (in) => (out) { out = Tanh (in)"),
    ] {
        assert_eq!(source.matches(old).count(), 1, "{old}");
        write(&folder, name, &source.replace(old, new));
    }
    let diff = |name: &str| text(&run(&folder, &["diff", "m.onnx", name]).stdout);
    let said = ["body.onnx", "opset.onnx", "name.onnx"].map(diff).join("\n");
    insta::assert_snapshot!(said);
    assert_eq!(diff("renamed.onnx"), "");
    assert!(text(&run(&folder, &["diff", "--help"]).stdout).contains("does not compare: names of nodes"));
}

#[test]
fn errors_are_described() {
    let folder = folder(SOURCE);
    std::fs::write(folder.path().join("page.onnx"), "<!DOCTYPE html>").expect("it is written");
    let lines = [
        "m.onnx --dim batch=1",
        "m.onnx --dim height=1",
        "m.onnx --dim seq",
        "m.onnx --dim seq=abc",
        "m.onnx --dim x[7]=a",
        "m.onnx --dim x[0]=1..8",
        "m.onnx --assume seq<=N",
        "m.onnx --overwrite-input-shape 1,2,3",
        "m.onnx --overwrite-input-shape X:1,2,3",
        "m.onnx --overwrite-input-shape x:1,2",
        "m.onnx --overwrite-input-shape x:[1,2,3",
        "m.onnx --overwrite-input-shape x:N+1,2,3",
        "m.onnx --outputs q",
        "m.onnx --inputs sizes",
        "m.onnx --unused-output y z",
        "m.onnx --unused-output Z",
        "m.onnx --skip slices-to-splt",
        "m.onnx --max-growth abc",
        "m.onnx --max-growth -5",
        "m.onnx --fold-size-threshold 5Q",
        "m.onnx --strided-slice Crop",
        "m.onnx --foo",
        "m.onnx --dtype fp16",
        "m.onnx a.onnx b.onnx",
        "m.onnx a.onnx -o b.onnx",
        "missing.onnx",
        "page.onnx",
        "page.onnx -o no/such/folder.onnx",
        "m.onnx -o no/such/folder.onnx",
        "shwo m.onnx",
        "q*.onnx --out-dir out",
        "m.onnx --out-dir .",
        "",
    ];
    let mut said = String::new();
    for line in lines {
        let done = run(&folder, &line.split(' ').filter(|word| !word.is_empty()).collect::<Vec<_>>());
        let code = done.status.code().expect("it ends by itself");
        assert!(code == 1 || code == 2, "{line}: {code}");
        let message = text(&done.stderr);
        let first = message.split("\n\nUsage").next().unwrap_or_default().trim_end();
        said.push_str(&format!("$ {line}\n[{code}] {first}\n\n"));
    }
    insta::assert_snapshot!(said);
}
