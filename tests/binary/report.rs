//! Other forms of the report: an HTML page, detailed JSON, and drawings; and `explain` in the binary.

use std::path::PathBuf;
use std::process::{Command, Output};

use onnx_slice_fold::OnnxModel;
use onnx_slice_fold::ir::text;
use tempfile::TempDir;

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_onnx-slice-fold")).args(arguments).output().expect("the binary starts")
}

fn told(arguments: &[&str]) -> String {
    let done = run(arguments);
    assert!(done.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).expect("it is text")
}

/// Writes a model given as text.
fn written(folder: &TempDir, source: &str) -> PathBuf {
    let path = folder.path().join("model.onnx");
    let model = text::parse(&format!("<ir_version: 10, opset_import: [\"\" : 17]> {source}")).expect("it parses");
    OnnxModel::of(model).save(&path).expect("it is written");
    path
}

fn corpus(name: &str) -> String {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("models").join(name).to_string_lossy().into_owned()
}

/// Returns the data of the page's script.
fn data(page: &str) -> serde_json::Value {
    let begin = "<script type=\"application/json\" id=\"data\">";
    let rest = page.split_once(begin).expect("the page has data").1;
    serde_json::from_str(rest.split_once("</script>").expect("they end").0).expect("they are JSON")
}

/// Counts the begin and end tags of an element.
fn balance(page: &str, element: &str) -> (usize, usize) {
    let begins = [" ", ">"].iter().map(|end| page.matches(&format!("<{element}{end}")).count()).sum();
    (begins, page.matches(&format!("</{element}>")).count())
}

#[test]
fn the_page_is_complete_and_self_contained() {
    let page = told(&[&corpus("focus_ts13d.onnx"), "-o", "/dev/null", "--report", "html", "--no-config"]);
    assert!(page.starts_with("<!doctype html>\n<html lang=\"en\">") && page.trim_end().ends_with("</html>"));
    for element in ["section", "table", "tbody", "figure", "details", "h2", "main", "script", "style", "ul", "label"] {
        let (begins, ends) = balance(&page, element);
        assert!(begins == ends && begins > 0, "<{element}> begins {begins} times and ends {ends} times");
    }
    for part in ["summary", "suggestions", "operators", "rules", "remaining", "movement", "nodes", "graph"] {
        assert!(page.contains(&format!("<section id=\"{part}\" aria-labelledby=\"{part}-title\">")), "{part}");
        assert!(page.contains(&format!("href=\"#{part}\"")), "nothing leads to {part}");
    }
    // Nothing is loaded: the only address is the namespace of SVG, and the page's policy forbids loading.
    let addresses: Vec<&str> =
        page.match_indices("://").map(|(at, _)| &page[at.saturating_sub(5)..(at + 22).min(page.len())]).collect();
    assert!(addresses.iter().all(|address| address.contains("www.w3.org/2000/svg")), "{addresses:?}");
    assert!(!page.contains(" src=") && page.contains("default-src 'none'"));
    // Every picture has a name, every column and field has a label.
    assert_eq!(page.matches("role=\"img\"").count(), page.matches("role=\"img\" aria-label").count());
    for field in ["query", "side", "depth"] {
        assert!(page.contains("<label>") && page.contains(&format!("id=\"{field}\"")), "{field}");
    }
    let data = data(&page);
    let strings = data["s"].as_array().expect("texts").len() as u64;
    for side in ["a", "b"] {
        for node in data[side].as_array().expect("nodes") {
            let lists = [2, 3, 4].iter().flat_map(|at| node[*at].as_array().expect("a list").iter());
            let numbers = lists.chain([&node[0], &node[1]]).map(|number| number.as_u64().expect("a number"));
            assert!(numbers.into_iter().all(|number| number < strings), "{node}");
        }
    }
}

#[test]
fn hostile_names_are_only_text_on_the_page() {
    let folder = TempDir::new().expect("a folder");
    let evil = "</script><script>alert(1)</script><img src=x onerror=alert(2)>";
    let quoted = format!("\"{evil}\"");
    let source = format!(
        "\"<b>g\" (float[n,8] \"<i>x' \\\"\") => (float[n,4] {quoted}) <int64[1] zero = {{0}}, int64[1] four = {{4}}, int64[1] one = {{1}}> {{
            [\"--><svg onload=alert(3)>\"] {quoted} = Slice (\"<i>x' \\\"\", zero, four, one)
        }}"
    );
    let path = written(&folder, &source);
    let page = told(&[&path.to_string_lossy(), "-o", "/dev/null", "--report", "html", "--no-config"]);
    for markup in ["<img", "<i>", "<b>g", "onload=alert(3)>\"", "<script>alert", "<svg onload"] {
        assert!(!page.contains(markup), "{markup} is markup on the page");
    }
    assert_eq!(balance(&page, "script"), (2, 2));
    let data = data(&page);
    assert!(data["s"].as_array().expect("texts").iter().any(|text| text == evil), "the name itself is kept");
    for form in ["--dot", "--mermaid"] {
        let drawn = told(&["show", &path.to_string_lossy(), form, "--no-config"]);
        assert!(form == "--dot" || !drawn.contains("</script>"), "{drawn}");
    }
}

#[test]
fn the_page_of_a_large_model_is_small() {
    let folder = TempDir::new().expect("a folder");
    let mut source = String::from("g (float[batch,channels,height] v0) => (y) {\n");
    for node in 0..4999 {
        let operator = ["Sigmoid", "Softplus", "Erf", "Tanh"][node % 4];
        let next = node + 1;
        source.push_str(&format!(
            "[\"/model/encoder/layers.{node}/attention/{operator}\"] v{next} = {operator} (v{node})\n"
        ));
    }
    source.push_str("y = Neg (v4999)\n}");
    let path = written(&folder, &source);
    let page = told(&[&path.to_string_lossy(), "-o", "/dev/null", "--report", "html", "--no-config"]);
    assert_eq!(data(&page)["a"].as_array().expect("nodes").len(), 5000);
    assert!(page.len() < 2_000_000, "{} bytes", page.len());
}

#[test]
fn json_has_every_edit_and_every_type() {
    let line = told(&[&corpus("focus_ts13d.onnx"), "-o", "/dev/null", "--report", "json", "--no-config"]);
    let report: serde_json::Value = serde_json::from_str(&line).expect("it is JSON");
    assert_eq!(report["schema"], "1.4");
    let (edits, rules) = (report["edits"].as_array().expect("edits"), report["rules"].as_array().expect("rules"));
    let counted: u64 = rules.iter().map(|rule| rule["edits"].as_u64().expect("a number")).sum();
    assert_eq!(edits.len() as u64, counted);
    assert!(
        edits
            .iter()
            .all(|edit| edit["place"].as_str().is_some_and(|place| place.contains("node") || place.contains('\'')))
    );
    assert!(rules.iter().any(|rule| rule["law"].as_str().is_some_and(|law| !law.is_empty())));
    let values = report["values"].as_array().expect("values");
    let after = values.iter().filter(|value| !value["after"].is_null()).count() as u64;
    assert_eq!(after, report["after"]["tensors"].as_u64().expect("a number"));
}

#[test]
fn invalid_combinations_are_refused() {
    let path = corpus("focus_ts13d.onnx");
    for (arguments, code, reason) in [
        (vec!["show", &path, "--around", "x"], 2, "add --dot or --mermaid"),
        (
            vec!["show", &path, "--dot", "--around", "nothing like it"],
            1,
            "no node and no tensor named 'nothing like it'",
        ),
        (vec!["explain", &path, "nothing like it"], 1, "no node, tensor or dim named 'nothing like it'"),
        (vec![&path, "--out-dir", "x", "--report", "html"], 2, "an HTML report describes one model"),
        (vec![&path, "-o", "page.html"], 2, "add --report html"),
    ] {
        let done = run(&arguments);
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(done.status.code() == Some(code) && said.contains(reason), "{arguments:?}: {said}");
    }
}

#[test]
fn the_page_is_written_to_its_file_and_the_model_to_its_own() {
    let folder = TempDir::new().expect("a folder");
    let source =
        "g (float[n] x) => (y) <int64[1] most = {100}, int64[1] zero = {0}> { a = Slice (x, zero, most) y = Neg (a) }";
    let model = written(&folder, source).to_string_lossy().into_owned();
    let (page, result) = (folder.path().join("page.html"), folder.path().join("result.onnx"));
    let (page_name, result_name) = (page.to_string_lossy(), result.to_string_lossy());
    let printed = told(&[&model, &result_name, "--report", "html", "-o", &page_name, "--no-config"]);
    assert!(printed.contains(&format!("wrote {page_name}: the report")) && !printed.contains("<!doctype"), "{printed}");
    assert!(OnnxModel::open(&result).is_ok());
    let page = std::fs::read_to_string(&page).expect("the page");
    for part in [
        "<ul class=\"figures\">",
        "multiply-accumulates",
        "peak activation memory",
        "<dt>opsets</dt>",
        "<dt>command</dt><dd><code>onnx-slice-fold ",
        "data-copy=\"--dim n=..100\"",
        "1 fewer nodes, 1 remain",
    ] {
        assert!(page.contains(part), "{part} is not in\n{page}");
    }
    // Without a name for the model, it is written to the default path.
    told(&[&model, "--report", "html", "-o", &page_name, "--no-config"]);
    assert!(OnnxModel::open(folder.path().join("model.folded.onnx")).is_ok());
}

/// The part of a page about data movement.
fn movement(page: &str) -> &str {
    let section = page.split_once("<section id=\"movement\"").expect("the index maps").1;
    section.split_once("</section>").expect("its end").0
}

/// Axes of open sizes show the order of their parts, without proportions and without an example of the size.
#[test]
fn pictures_of_open_sizes_invent_no_numbers() {
    let folder = TempDir::new().expect("a folder");
    let source = "g (float[n,8] x) => (y, z) <int64[1] zero = {0}, int64[1] one = {1}, int64[1] two = {2}, int64[1] most = {100}> {
        a = Slice (x, zero, most, zero)
        b = Slice (a, two, most, one)
        size = Shape (x)
        half = Div (size, two)
        first = Gather <axis = 0> (half, zero)
        c = Slice (x, zero, first, zero)
        y = Neg (b)
        z = Neg (c)
    }";
    let model = written(&folder, source).to_string_lossy().into_owned();
    let page = told(&[&model, "-o", "/dev/null", "--report", "html", "--no-config"]);
    let section = movement(&page);
    assert!(section.contains("out[i, j] = data[i, j + 2]"), "{section}");
    // The Slice omits the first two of eight elements, and the end of an open axis.
    assert!(section.contains("x=\"25.00%\" y=\"0\" width=\"75.00%\""), "{section}");
    assert!(
        section.contains("x=\"0.00%\" y=\"0\" width=\"50.00%\" height=\"14\"/><rect class=\"axis open\""),
        "{section}"
    );
    assert!(!section.contains("5040"), "{section}");
}

#[test]
fn pieces_have_the_colors_of_their_operands() {
    let folder = TempDir::new().expect("a folder");
    let source = "g (float[2,n] x, float[6,n] y) => (c, p, t) <int64[4] pads = {1, 0, 1, 0}> {
        c = Concat <axis = 0> (x, y)
        p = Pad (x, pads)
        t = Transpose <perm = [1, 0]> (x)
    }";
    let model = written(&folder, source).to_string_lossy().into_owned();
    let page = told(&[&model, "-o", "/dev/null", "--report", "html", "--no-config"]);
    let section = movement(&page);
    for part in [
        "0 ≤ i &lt; 2: out[i, j] = a[i, j]<br>2 ≤ i &lt; 8: out[i, j] = b[i − 2, j]",
        // The first quarter of the result is x, the rest is y.
        "<rect class=\"all source0\" x=\"0.00%\" y=\"0\" width=\"25.00%\"",
        "<rect class=\"all source1\" x=\"25.00%\" y=\"0\" width=\"75.00%\"",
        // Pad adds a row on each side of two.
        "<line class=\"constant\" x1=\"0.00%\" x2=\"25.00%\"",
        "<line class=\"constant\" x1=\"75.00%\" x2=\"100.00%\"",
        "out[i, j] = data[j, i]",
    ] {
        assert!(section.contains(part), "{part} is not in\n{section}");
    }
    // Each axis of Concat is connected from both operands, and Transpose crosses.
    assert_eq!(section.matches("<line class=\"link source1\"").count(), 4, "{section}");
}

/// A terminal shows no HTML; a pipe and a file do.
#[cfg(target_os = "linux")]
#[test]
fn the_page_does_not_go_to_a_terminal() {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&controller).expect("its permission");
    unlockpt(&controller).expect("its lock");
    let name = ptsname(&controller, Vec::new()).expect("its name");
    let terminal = || {
        let path = std::path::Path::new(std::ffi::OsStr::new(name.to_str().expect("a path")));
        std::fs::OpenOptions::new().read(true).write(true).open(path).expect("it opens")
    };
    let model = corpus("focus_ts13d.onnx");
    let program = || Command::new(env!("CARGO_BIN_EXE_onnx-slice-fold"));
    let report = [&model, "-o", "/dev/null", "--report", "html", "--no-config"];
    let done = program().args(report).stdout(terminal()).output().expect("the binary starts");
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert_eq!(done.status.code(), Some(2), "{said}");
    assert!(said.contains("refusing to write an HTML report to a terminal") && said.contains("-o FILE.html"), "{said}");
    // With the model on standard output, the report is printed to standard error.
    let stream = [&model, "-o", "-", "--report", "html", "--no-config"];
    let done = program().args(stream).stderr(terminal()).output().expect("the binary starts");
    assert!(done.status.code() == Some(2) && done.stdout.is_empty());
    assert!(program().args(stream).output().expect("the binary starts").stderr.starts_with(b"<!doctype html>"));
}

#[test]
fn explain_prints_the_index_map_of_a_node() {
    let folder = TempDir::new().expect("a folder");
    let source = "g (float[n,w] x, float[m,w] y, int64 k) => (c, s, r) <int64[1] zero = {0}, int64[1] one = {1}, int64[1] end = {9223372036854775807}, int64[1] two = {2}> {
        c = Concat <axis = 0> (x, y)
        s = Slice (x, one, end, one, two)
        first = Unsqueeze (k, zero)
        r = Slice (y, first, end, zero)
    }";
    let model = written(&folder, source).to_string_lossy().into_owned();
    let asked = |more: &[&str]| told(&[&["explain", &model, "--trials", "0", "--no-config"], more].concat());
    let printed = asked(&["c"]);
    for line in [
        "  index map: out = 'c' [n + m, w]; a = 'x' [n, w]; b = 'y' [m, w]\n",
        "    0 ≤ i < n: out[i, j] = a[i, j]\n",
        "    n ≤ i < n + m: out[i, j] = b[i − n, j]\n",
    ] {
        assert!(printed.contains(line), "{line} is not in\n{printed}");
    }
    assert!(asked(&["--node", "s"]).contains("    out[i, j] = data[i, 2·j + 1]\n"));
    assert!(asked(&["r"]).contains(
        "  index map not known: shapes or contents of operands that determine the positions are not known\n"
    ));
    let told: serde_json::Value = serde_json::from_str(&asked(&["c", "--report", "json"])).expect("it is JSON");
    let map = &told["maps"][0];
    assert_eq!(map["sources"][1], serde_json::json!({ "name": "y", "symbol": "b", "shape": ["m", "w"] }));
    let digits =
        serde_json::json!([{ "name": "i", "start": "n", "end": "n + m" }, { "name": "j", "start": "0", "end": "w" }]);
    let piece = serde_json::json!({ "digits": digits, "to": ["i", "j"], "source": 1, "from": ["i − n", "j"] });
    assert_eq!(map["pieces"][1], piece);
}

#[test]
fn explain_as_json_has_a_cause_for_each_node() {
    let line = told(&["explain", &corpus("bert_dy18d.onnx"), "--report", "json", "--no-config"]);
    let told: serde_json::Value = serde_json::from_str(&line).expect("it is JSON");
    assert_eq!(told["causes"].as_array().expect("causes").len() as u64, told["nodes"].as_u64().expect("a number"));
    assert!(told["headline"].as_str().is_some_and(|text| text.contains("nodes remain")));
}
