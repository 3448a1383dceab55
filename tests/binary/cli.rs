//! The binary: its output, files and exit codes.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_onnx-slice-fold")).args(arguments).output().expect("the binary starts")
}

fn model(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("models").join(name)
}

fn copied(folder: &TempDir, name: &str) -> PathBuf {
    let path = folder.path().join(name);
    std::fs::copy(model(name), &path).expect("the model is copied");
    path
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn names(folder: &TempDir) -> Vec<String> {
    let entries = std::fs::read_dir(folder.path()).expect("the folder is listed");
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn writes_next_to_the_model_and_prints_a_table() {
    let folder = TempDir::new().expect("a folder");
    let path = copied(&folder, "focus_ts13d.onnx");
    let done = run(&[&path.to_string_lossy()]);
    assert!(done.status.success(), "{}", text(&done.stderr));
    assert_eq!(names(&folder), ["focus_ts13d.folded.onnx", "focus_ts13d.onnx"]);
    let out = text(&done.stdout);
    for row in ["all nodes", "initializers", "shapes known", "bytes", "wrote "] {
        assert!(out.contains(row), "{out}");
    }
    assert!(done.stderr.is_empty(), "{}", text(&done.stderr));
}

#[test]
fn explains_how_defaults_become_constants() {
    let folder = TempDir::new().expect("a folder");
    let (path, small) = (folder.path().join("defaults.onnx"), folder.path().join("small.onnx"));
    let source = r#"<ir_version: 3, opset_import: ["" : 13]>
        defaults (float[n] x, float[1] w, float[1] v) => (float[n] y) <float[1] w = {2.0}, float[1] v = {3.0}> {
            u = Mul(w, v)
            y = Mul(x, u)
        }"#;
    let model = onnx_slice_fold::OnnxModel::of(onnx_slice_fold::ir::text::parse(source).expect("a model"));
    model.save(&path).expect("it is written");
    let (path, small) = (path.to_string_lossy(), small.to_string_lossy());
    let told = text(&run(&[&path, "-o", &small]).stdout);
    assert!(told.contains("2 inputs have defaults") && told.contains("pass `--inputs x`"), "{told}");
    let told = text(&run(&[&path, "-o", &small, "--inputs", "x"]).stdout);
    assert!(!told.contains("have defaults") && told.contains("Mul                          2         1"), "{told}");
}

#[test]
fn writes_in_place() {
    let folder = TempDir::new().expect("a folder");
    let path = copied(&folder, "slice_zoo_ts13d.onnx");
    let before = std::fs::metadata(&path).expect("metadata").len();
    let name = path.to_string_lossy();
    assert!(run(&[&name, "-o", &name]).status.success());
    assert!(std::fs::metadata(&path).expect("metadata").len() < before);
    assert_eq!(names(&folder), ["slice_zoo_ts13d.onnx"]);
    assert!(run(&[&name, "-o", &name]).status.success());
}

#[test]
fn bad_input_is_one_message_and_exit_code_1() {
    let folder = TempDir::new().expect("a folder");
    let cases: [(&str, &[u8], &str); 4] = [
        ("empty.onnx", b"", "empty"),
        ("page.onnx", b"<!DOCTYPE html><p>not found", "HTML"),
        ("cut.onnx", &[0x3a, 0x7f, 0x0a], "truncated"),
        ("graphless.onnx", &[0x08, 0x08], "no graph"),
    ];
    for (name, bytes, reason) in cases {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).expect("the file is written");
        let target = folder.path().join("out.onnx");
        let done = run(&[&path.to_string_lossy(), "-o", &target.to_string_lossy()]);
        assert_eq!(done.status.code(), Some(1), "{name}");
        let message = text(&done.stderr);
        assert!(message.starts_with("error: ") && message.contains(reason), "{name}: {message}");
        assert_eq!(message.trim_end().lines().count(), 1, "{message}");
        assert!(done.stdout.is_empty() && !target.exists());
    }
    let done = run(&[&folder.path().join("missing.onnx").to_string_lossy()]);
    assert_eq!(done.status.code(), Some(1));
}

#[test]
fn every_truncation_of_a_model_is_refused_or_read() {
    let folder = TempDir::new().expect("a folder");
    let bytes = std::fs::read(model("tf_cond_slice_13d.onnx")).expect("the model is read");
    let target = folder.path().join("out.onnx");
    for end in (0..bytes.len()).step_by(37) {
        let path = folder.path().join("cut.onnx");
        std::fs::write(&path, &bytes[..end]).expect("the file is written");
        let done = run(&[&path.to_string_lossy(), "-o", &target.to_string_lossy()]);
        assert!(matches!(done.status.code(), Some(0 | 1)), "{end}: {:?} {}", done.status, text(&done.stderr));
    }
}

#[test]
fn wrong_usage_is_exit_code_2() {
    for arguments in
        [&[][..], &["--no-such-flag", "x.onnx"], &["a.onnx", "b.onnx", "c.onnx"], &["a.onnx", "--slice-rule", "mine"]]
    {
        assert_eq!(run(arguments).status.code(), Some(2), "{arguments:?}");
    }
    assert_eq!(run(&["--help"]).status.code(), Some(0));
    assert_eq!(run(&["--version"]).status.code(), Some(0));
}

#[test]
fn a_failed_write_leaves_no_file() {
    let folder = TempDir::new().expect("a folder");
    let path = copied(&folder, "focus_ts13d.onnx");
    let done = run(&[&path.to_string_lossy(), "-o", &folder.path().to_string_lossy()]);
    assert_eq!(done.status.code(), Some(2));
    let done = run(&[&path.to_string_lossy(), "-o", &folder.path().join("no/such/folder.onnx").to_string_lossy()]);
    assert_eq!(done.status.code(), Some(1));
    assert_eq!(names(&folder), ["focus_ts13d.onnx"]);
}

/// A model from standard input is written to standard output, and messages are written to standard error.
#[test]
fn models_are_read_from_and_written_to_pipes() {
    let folder = TempDir::new().expect("a folder");
    let path = copied(&folder, "focus_ts13d.onnx");
    let piped = |arguments: &[&str]| {
        let input = std::fs::File::open(&path).expect("the model is opened");
        let mut command = Command::new(env!("CARGO_BIN_EXE_onnx-slice-fold"));
        command.args(arguments).current_dir(folder.path()).stdin(input).output().expect("the binary starts")
    };
    assert!(run(&[&path.to_string_lossy(), "-o", &folder.path().join("file.onnx").to_string_lossy()]).status.success());
    let expected = std::fs::read(folder.path().join("file.onnx")).expect("the result is read");
    for arguments in [&["-"][..], &["/dev/stdin"], &["-", "-"], &["-", "-o", "-"], &["focus_ts13d.onnx", "-o", "-"]] {
        let done = piped(arguments);
        assert!(done.status.success(), "{arguments:?}: {}", text(&done.stderr));
        assert!(done.stdout == expected, "{arguments:?}");
        assert!(text(&done.stderr).contains("all nodes"), "{arguments:?}");
    }
    assert!(text(&piped(&["show", "-"]).stdout).contains("Concat"));
    // `/dev/null` means a dry run.
    let done = piped(&["-", "-o", "/dev/null"]);
    assert!(done.status.success() && text(&done.stdout).contains("dry run"), "{}", text(&done.stdout));
    assert_eq!(names(&folder), ["file.onnx", "focus_ts13d.onnx"]);
}

/// The result is the file; printing may fail.
#[test]
fn a_full_or_closed_standard_output_is_no_error() {
    let Ok(full) = std::fs::File::options().write(true).open("/dev/full") else { return };
    let folder = TempDir::new().expect("a folder");
    let path = copied(&folder, "focus_ts13d.onnx");
    let run = |arguments: &[&str], output: std::process::Stdio| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_onnx-slice-fold"));
        command.args(arguments).stdout(output).stderr(std::process::Stdio::piped());
        let child = command.spawn().expect("the binary starts");
        child.wait_with_output().expect("it ends")
    };
    let name = path.to_string_lossy().into_owned();
    let full = || std::process::Stdio::from(full.try_clone().expect("the file stays open"));
    assert_eq!(run(&[&name], full()).status.code(), Some(0));
    assert_eq!(names(&folder), ["focus_ts13d.folded.onnx", "focus_ts13d.onnx"]);
    let done = run(&["show", &name], full());
    assert_eq!(done.status.code(), Some(1));
    assert!(text(&done.stderr).starts_with("error: cannot write to standard output"), "{}", text(&done.stderr));
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    assert_eq!(run(&["show", &name], writer.into()).status.code(), Some(0));
}

#[test]
fn show_prints_text_that_parses() {
    // These have no weights that are too long to be printed completely.
    for name in ["tf_cond_slice_13d.onnx", "scripted_loop_slice_ts16d.onnx", "tf_masks_17d_custom.onnx"] {
        let done = run(&["show", &model(name).to_string_lossy()]);
        assert!(done.status.success());
        let shown = text(&done.stdout);
        assert!(onnx_slice_fold::ir::text::parse(&shown).is_ok(), "{shown}");
    }
}

#[test]
fn timings_and_the_last_edit_are_printed() {
    let folder = TempDir::new().expect("a folder");
    let path = copied(&folder, "bert_dy18d.onnx");
    let name = path.to_string_lossy();
    let done = run(&[&name, "--timings", "--verify-each"]);
    let said = text(&done.stdout);
    assert!(done.status.success() && said.contains("milliseconds") && said.contains("infer-shapes"), "{said}");
    let done = run(&["explain", &name, "--stop-after", "1"]);
    let said = text(&done.stdout);
    assert!(done.status.success() && said.contains("      1  ") && said.contains("last edit: "), "{said}");
    let done = run(&["explain", &name, "--stop-after", "0", "--skip", "dead-code"]);
    let said = text(&done.stdout);
    assert!(done.status.success() && !said.contains("last edit: ") && !said.contains("dead-code"), "{said}");
}

#[test]
fn explain_names_the_rules_that_fired() {
    let done = run(&["explain", &model("tf_masks_17d_custom.onnx").to_string_lossy()]);
    assert!(done.status.success());
    assert!(text(&done.stdout).contains("lower-strided-slice"), "{}", text(&done.stdout));
}

#[test]
fn assumptions_are_checked_and_used() {
    let folder = TempDir::new().expect("a folder");
    let path = copied(&folder, "bert_dy18d.onnx");
    let name = path.to_string_lossy();
    for (flag, value, reason) in [
        (
            "--dim",
            "nobody=3",
            "dimension \"nobody\" not found; the model's symbolic dimensions are s33 (input_ids, axis 0), s50 (input_ids, axis 1, 1 more) and s6 (attention_mask, axis 0)",
        ),
        ("--dim", "s50=", "is not a size"),
        ("--assume", "s50 s33", "is not a relation"),
        ("--overwrite-input-shape", "nobody:1", "no input named 'nobody'"),
        ("--overwrite-input-shape", "input_ids:1,2,3", "contradicts"),
        ("--skip", "nothing", "no rule or pass is named 'nothing'"),
        ("--only", "decided-iff", "did you mean 'decided-if'?"),
    ] {
        let done = run(&[&name, flag, value]);
        let is_usage = !reason.contains("nobody") && reason != "contradicts" || flag == "--skip";
        assert_eq!(done.status.code(), Some(if is_usage { 2 } else { 1 }), "{flag} {value}");
        assert!(text(&done.stderr).contains(reason), "{}", text(&done.stderr));
    }
    let frozen = run(&["show", "--folded", &name, "--dim", "s33=2", "--dim", "s6=2", "--dim", "s50=9"]);
    assert!(frozen.status.success(), "{}", text(&frozen.stderr));
    assert!(!text(&frozen.stdout).contains("Shape ("), "{}", text(&frozen.stdout));
}

#[test]
fn the_list_of_operators_is_up_to_date() {
    let done = run(&["ops"]);
    assert!(done.status.success(), "{}", text(&done.stderr));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("SUPPORTED_OPS.md");
    let file = std::fs::read_to_string(path).expect("SUPPORTED_OPS.md is read");
    let renew = "SUPPORTED_OPS.md is out of date; renew it with `cargo run -- ops > SUPPORTED_OPS.md`";
    assert!(text(&done.stdout) == file.replace("\r\n", "\n"), "{renew}");
}

#[test]
fn the_list_of_rules_is_up_to_date() {
    let done = run(&["rules"]);
    assert!(done.status.success(), "{}", text(&done.stderr));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("RULES.md");
    let file = std::fs::read_to_string(path).expect("RULES.md is read");
    let renew = "RULES.md is out of date; renew it with `cargo run -- rules > RULES.md`";
    assert!(text(&done.stdout) == file.replace("\r\n", "\n"), "{renew}");
}

#[test]
fn a_rule_explains_itself() {
    for (name, said) in [("slices-to-split", "Split(x)"), ("decided-if", "the condition is a known constant")] {
        let done = run(&["rules", name]);
        assert!(done.status.success() && text(&done.stdout).contains(said), "{}", text(&done.stdout));
    }
    let done = run(&["rules", "slices-to-splid"]);
    assert_eq!(done.status.code(), Some(1));
    assert!(text(&done.stderr).contains("did you mean 'slices-to-split'?"), "{}", text(&done.stderr));
    let done = run(&["rules", "no such rule"]);
    assert_eq!(done.status.code(), Some(1));
    assert!(!text(&done.stderr).contains("did you mean"), "{}", text(&done.stderr));
}

/// With one enabled rule, the effects of other rules are absent, and inference still runs.
#[test]
fn one_rule_is_used_alone() {
    let folder = TempDir::new().expect("a folder");
    let source = "<ir_version: 8, opset_import: [\"\" : 17]>\ng (float[n] x) => (y) <float one = {1}, float two = {2}> {\n a = Identity (x)  b = Relu (a)  c = Cast <to = 1> (b)  s = Add (one, two)  y = Mul (c, s) }";
    let path = written(&folder, "three.onnx", source);
    let shown = text(&run(&["show", "--folded", &path, "--only", "cast-same-type"]).stdout);
    assert!(!shown.contains("Cast"), "{shown}");
    assert!(shown.contains("Identity") && !shown.contains("Add (") && shown.contains("=> (float[n] y)"), "{shown}");
    let both = text(&run(&["show", "--folded", &path, "--only", "cast-same-type", "--only", "identity"]).stdout);
    assert!(!both.contains("Identity") && !both.contains("Cast"), "{both}");
    let done = run(&["show", "--folded", &path, "--only", "cast-same-typ"]);
    assert_eq!(done.status.code(), Some(2));
    assert!(text(&done.stderr).contains("did you mean 'cast-same-type'?"), "{}", text(&done.stderr));
    // A pass counts as a rule.
    let explained = text(&run(&["explain", &path, "--only", "common-subexpression"]).stdout);
    assert!(!explained.contains("identity") && !explained.contains("cast-same-type"), "{explained}");
}

/// Writes a model given as text.
fn written(folder: &TempDir, name: &str, source: &str) -> String {
    let model = onnx_slice_fold::ir::text::parse(source).unwrap_or_else(|error| panic!("{error}\n{source}"));
    let path = folder.path().join(name);
    onnx_slice_fold::OnnxModel::of(model).save(&path).expect("the model is written");
    path.to_string_lossy().into_owned()
}

#[test]
fn strided_slices_of_other_names_are_registered() {
    let folder = TempDir::new().expect("a folder");
    let source = r#"<ir_version: 8, opset_import: ["" : 17, "com.example" : 3]>
        g (float[n,4,6] x) => (a, b, c, d) <int64[3] begin = {0,1,0}, int64[3] end = {2,0,4}, int64[3] step = {1,1,2}, int64[2] axes = {-1,1}, int64[2] first = {1,0}, int64[2] last = {5,2}, int64[2] steps = {2,1}> {
            [one] a = com.example.Crop <begin_mask = 1, shrink_axis_mask = 2> (x, begin, end, step)
            [two] b = com.example.Window <begin_mask = "1,0,0", end_mask = "1,0,0", shrink_axis_mask = "0,1,0"> (x, begin, end, step)
            [three] c = Cut (x, first, last, steps, axes)
            [four] d = com.example.Other (x, begin, end, step) }"#;
    let path = written(&folder, "named.onnx", source);
    let unnamed = run(&["show", "--folded", &path]);
    assert!(unnamed.status.success());
    for operator in ["com.example.Crop", "com.example.Window", "Cut ("] {
        assert!(text(&unnamed.stdout).contains(operator), "{}", text(&unnamed.stdout));
    }
    let names = [
        "--strided-slice",
        "com.example::Crop=tensorflow",
        "--strided-slice",
        "com.example::Window=openvino",
        "--strided-slice",
        "Cut=openvino-slice",
    ];
    let done = run(&[&["show", "--folded", &path][..], &names].concat());
    let shown = text(&done.stdout);
    assert!(done.status.success(), "{}", text(&done.stderr));
    for operator in ["com.example.Crop", "com.example.Window", "Cut ("] {
        assert!(!shown.contains(operator), "{shown}");
    }
    assert!(shown.contains("com.example.Other"), "{shown}");
    for stated in [r#"float["min(2, n)",2] a"#, "float[n,2] b", "float[n,2,2] c"] {
        assert!(shown.contains(stated), "{stated}\n{shown}");
    }
    // Inference alone recognizes them and does not change them.
    let inferred = text(&run(&[&["show", &path][..], &names].concat()).stdout);
    assert!(inferred.contains("com.example.Crop") && inferred.contains("float[n,2] b"), "{inferred}");
}

#[test]
fn a_name_that_means_something_else_is_no_strided_slice() {
    let folder = TempDir::new().expect("a folder");
    let path = copied(&folder, "focus_ts13d.onnx");
    let name = path.to_string_lossy();
    for (given, reason) in [
        ("Relu=tensorflow", "the program already defines the operator Relu"),
        ("a::B=onnx", "unknown dialect 'onnx'"),
        ("a::B", "is not DOMAIN::OP=DIALECT"),
    ] {
        let done = run(&[&name, "--strided-slice", given]);
        assert_eq!(done.status.code(), Some(2), "{given}");
        assert!(text(&done.stderr).contains(reason), "{}", text(&done.stderr));
    }
    assert_eq!(names(&folder), ["focus_ts13d.onnx"]);
}

/// A slice that violates its operator's rules is reported with the rule and kept; the nodes around it are folded.
#[test]
fn bad_slices_are_reported_and_left_alone() {
    let folder = TempDir::new().expect("a folder");
    let masks = r#"<begin_mask = "", end_mask = "", new_axis_mask = "", shrink_axis_mask = "", ellipsis_mask = "">"#;
    let operators = [
        ("Slice", "", "(x, begin, end, axes, step)"),
        ("ai.onnx.converters.tensorflow.StridedSlice", "", "(x, begin, end, step)"),
        ("ai.intel.openvino.StridedSlice", masks, "(x, begin, end, step)"),
        ("ai.intel.openvino.Slice", "", "(x, begin, end, step, axes)"),
    ];
    let shaped = |numbers: &str| match numbers.split_once(':') {
        Some((shape, numbers)) => (shape.to_string(), numbers.to_string()),
        None => (numbers.split(',').count().to_string(), numbers.to_string()),
    };
    let cases = [
        ("0,0", "2,2", "0,1", "1,0", "a step is 0"),
        ("0,0", "2,2", "1,-2", "1,1", "axis 1 is listed twice"),
        ("0,0", "2,2", "0,3", "1,1", "axis 3 is out of range for rank 3"),
        ("0,0", "2,2", "0,-9223372036854775808", "1,1", "axis -9223372036854775808 is out of range for rank 3"),
        ("0,0", "2,2,2", "0,1", "1,1", "elements and"),
        ("1,2:0,0", "2,2", "0,1", "1,1", "should have rank 1 but has rank 2"),
        ("0,0,0,0", "2,2,2,2", "0,1,2,0", "1,1,1,1", "entries select from the axes of data of rank 3|is listed twice"),
    ];
    for (operator, masks, operands) in operators {
        for (begin, end, axes, step, reason) in cases {
            // Operators that process the axes in order name none.
            if !operands.contains("axes") && reason.starts_with("axis") {
                continue;
            }
            let constants = [("begin", begin), ("end", end), ("axes", axes), ("step", step)];
            let constants = constants.map(|(name, numbers)| {
                let (shape, numbers) = shaped(numbers);
                format!("int64[{shape}] {name} = {{{numbers}}}")
            });
            let source = format!(
                "<ir_version: 8, opset_import: [\"\" : 17]>\ng (float[n,4,6] x) => (y, z) <{}, float two = {{2.0}}, float[1] three = {{3.0}}> {{\n[bad] y = {operator} {masks} {operands}\n s = Add (two, three)\n z = Mul (x, s) }}",
                constants.join(", ")
            );
            let path = written(&folder, "bad.onnx", &source);
            let target = folder.path().join("out.onnx");
            let target = target.to_string_lossy();
            let explained = run(&["explain", &path]);
            let said = text(&explained.stdout);
            let is_reason = reason.split('|').any(|reason| said.contains(reason));
            assert!(explained.status.success() && said.contains("'bad'") && is_reason, "{source}\n{said}");
            assert!(run(&[&path, "-o", &target]).status.success(), "{source}");
            let shown = text(&run(&["show", &target]).stdout);
            let stays = format!("[bad] y = {operator} ");
            assert!(shown.contains(&stays) && shown.contains(operands) && !shown.contains("Add ("), "{shown}");
        }
        // Numbers at the ends of their range are valid bounds.
        let far = "int64[2] begin = {-9223372036854775808,9223372036854775807}, int64[2] end = {9223372036854775807,-9223372036854775808}, int64[2] axes = {0,1}, int64[2] step = {9223372036854775807,-9223372036854775808}";
        let source = format!(
            "<ir_version: 8, opset_import: [\"\" : 17]>\ng (float[3,4,6] x) => (y) <{far}> {{\n[far] y = {operator} {masks} {operands} }}"
        );
        let path = written(&folder, "far.onnx", &source);
        let shown = text(&run(&["show", "--folded", &path]).stdout);
        assert!(shown.contains("=> (float[1,1,6] y)"), "{shown}");
    }
}

#[test]
fn assumptions_are_checked() {
    let folder = TempDir::new().expect("a folder");
    let source = r#"<ir_version: 8, opset_import: ["" : 17]>
        g (float[n,c,h,w] x, float[n,h] z, float[8,3,3,3] k) => (y, u) { y = Conv (x, k)  u = Relu (z) }"#;
    let path = written(&folder, "conv.onnx", source);
    let target = folder.path().join("out.onnx");
    let target = target.to_string_lossy();
    let cases: &[(&[&str], &str)] = &[
        (&["--dim", "n"], "is not a size"),
        (&["--dim", "n=5..2"], "is not a size"),
        (&["--dim", "n=1..9:0"], "is not a size"),
        (&["--dim", "n=-1"], "is not a size"),
        (&["--dim", "n=99999999999999999999"], "is not a size"),
        (&["--dim", "m=1"], "dimension \"m\" not found; "),
        (&["--assume", "h <="], "is not a relation"),
        (&["--assume", "h <= m"], "dimension \"m\" not found; "),
        (&["--dim", "h=1..8", "--assume", "h > 10"], "'h > 10' contradicts"),
        (&["--assume", "h <= w", "--assume", "w < h"], "'w < h' contradicts"),
        (&["--dim", "h=..8", "--dim", "h=9.."], "allows no size for 'h'"),
        (&["--dim", "c=4"], "make a node invalid: Conv node"),
        (&["--overwrite-input-shape", "x"], "names no input, and the model has several"),
        (&["--overwrite-input-shape", "x:1,3,,4"], "is not an input and its shape"),
        (&["--overwrite-input-shape", "q:1"], "the model has no input named 'q'"),
        (&["--overwrite-input-shape", "x:1,3,224"], "[1,3,224] contradicts it"),
        (&["--input-shapes", "x:1,3,224,224", "--input-shapes", "z:2,224"], "[2,224] contradicts it"),
        (&["--input-shapes", "x:1,4,16,16"], "make a node invalid: Conv node"),
    ];
    for (options, message) in cases {
        let arguments = [&[path.as_str(), "-o", &target], *options].concat();
        let done = run(&arguments);
        let said = text(&done.stderr);
        let is_usage = ["is not a", "no rule named"].iter().any(|words| said.contains(words));
        assert_eq!(done.status.code(), Some(if is_usage { 2 } else { 1 }), "{options:?}: {said}");
        assert!(said.contains(message), "{options:?}: {said}");
        assert!(!Path::new(&*target).exists(), "{options:?}");
    }
    let shown = text(&run(&["show", &path, "--overwrite-input-shape", "x:1,3,224,224"]).stdout);
    assert!(shown.contains("float[1,8,222,222] y") && shown.contains("float[1,224] u"), "{shown}");
    let shown = text(&run(&["show", &path, "--dim", "h=8..512:8", "--assume", "h == w"]).stdout);
    assert!(shown.contains("float[n,8,h - 2,h - 2] y") || shown.contains("\"h - 2\",\"h - 2\""), "{shown}");
}

#[test]
fn a_model_that_cannot_run_is_reported_or_refused() {
    let folder = TempDir::new().expect("a folder");
    let source = "<ir_version: 8, opset_import: [\"\" : 17]>\ng (float[n,4] x, bool c) => (y) {\n[turn] y = Transpose <perm = [0, 0]> (x)  unread = Transpose <perm = [1, 1]> (x) }";
    let path = written(&folder, "turn.onnx", source);
    let target = folder.path().join("out.onnx");
    let refused = run(&[&path, "--strict", "-o", &target.to_string_lossy()]);
    let told = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1), "{told}");
    assert!(told.contains("every run of the model fails") && told.contains("'turn'") && !target.exists(), "{told}");
    let written_all_the_same = run(&[&path, "-o", &target.to_string_lossy()]);
    let told = text(&written_all_the_same.stderr);
    assert!(written_all_the_same.status.success() && target.exists());
    assert!(told.contains("warning: ") && told.contains("'turn'"), "{told}");
    // A declaration of an inner value that inference does not know, and a false declaration.
    for (body, place) in [
        (
            "g (float[2,3] x, int64[k] s) => (z)\n<float[1,2,3] y> { y = Reshape (x, s)  [turn] z = Transpose <perm = [1,0]> (y) }",
            "'turn'",
        ),
        ("g (float[2,3] x) => (float[2,3] y) { y = Transpose (x) }", "declared float[2,3]"),
        ("g (float[2,3] x) => (string[3,2] y) { y = Transpose (x) }", "declared string[3,2]"),
        // Attributes and results that the operator does not have.
        ("g (float[n] x) => (y) { [turn] y = Relu <nonsense = 1> (x) }", "'turn'"),
        ("g (float[n] x) => (y) { [turn] y, z = Relu (x) }", "'turn'"),
        ("g (float[n,2] x) => (y) { [turn] y = ReduceSum <axes = [1]> (x) }", "'turn'"),
        // The default of an input that callers may override.
        ("g (float[6,4] x, int64[1] s = {5}) => (y) { [turn] y = Reshape (x, s) }", "'turn'"),
        ("g (float[2] x, int64[1] s = {3}) => (float[4] y) { y = Tile (x, s) }", "declared float[4]"),
    ] {
        let path = written(&folder, "declared.onnx", &format!("<ir_version: 8, opset_import: [\"\" : 17]>\n{body}"));
        let refused = run(&[&path, "--strict", "-o", &target.to_string_lossy()]);
        let told = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(1), "{body}: {told}");
        assert!(told.contains("the model is inconsistent") && told.contains(place), "{body}: {told}");
        assert!(run(&[&path, "-o", &target.to_string_lossy()]).status.success(), "{body}");
    }
    // One name for two sizes is reported, but is no contradiction.
    let source =
        "<ir_version: 8, opset_import: [\"\" : 17]>\ng (float[n] x) => (float[n] y) { y = Concat <axis = 0> (x, x) }";
    let done = run(&[&written(&folder, "names.onnx", source), "--strict", "-o", &target.to_string_lossy()]);
    assert!(done.status.success(), "{}", text(&done.stderr));
    // ONNX Runtime does not enforce every rule.
    for body in [
        "g (float x) => (int64[i,k] y) { y = NonZero (x) }",
        "g (float[n,4] x) => (y) { y = ReduceMax <keepdims = 3> (x) }",
        "g (float[n,4] x) => (float[i,k] y) <int64[1] s = {2}> { y = CenterCropPad (x, s) }",
    ] {
        let path = written(&folder, "lax.onnx", &format!("<ir_version: 8, opset_import: [\"\" : 18]>\n{body}"));
        let done = run(&[&path, "--strict", "-o", &target.to_string_lossy()]);
        assert!(done.status.success(), "{body}: {}", text(&done.stderr));
    }
    // A branch that is not taken may be invalid, and so may dead nodes.
    let source = "<ir_version: 8, opset_import: [\"\" : 17]>\ng (float[n,4] x, bool c) => (y) {\nunread = Transpose <perm = [1, 1]> (x)  y = If (c) <then_branch: graph = t () => (u) { u = Transpose <perm = [0, 0]> (x) }, else_branch: graph = e () => (v) { v = Relu (x) }> }";
    let path = written(&folder, "branch.onnx", source);
    let done = run(&[&path, "--strict", "-o", &target.to_string_lossy()]);
    assert!(done.status.success(), "{}", text(&done.stderr));
}
