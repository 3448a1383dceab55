//! Times inference and folding as functions of the number of nodes.
//!
//! ```console
//! cargo bench --bench scale -- [MODEL ...]
//! ```
//!
//! Each line is a kind of model at one size, or a given model: the seconds of inference alone and of the whole optimization, and the same
//! per node. The time per node should be constant from 1,000 to 100,000 nodes.

use std::fmt::Write;
use std::time::Instant;

use onnx_slice_fold::ir::{Model, text};
use onnx_slice_fold::{OnnxModel, Options};

/// The allocator of the command line.
#[cfg(feature = "cli")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const SIZES: [usize; 4] = [1_000, 10_000, 20_000, 100_000];

fn main() {
    let kinds: [(&str, fn(usize) -> String); 6] = [
        ("chain", chain),
        ("fan", fan),
        ("residual blocks", residual),
        ("slices", slices),
        ("branches", branches),
        ("transformer", transformer),
    ];
    println!(
        "{:<16} {:>8} {:>10} {:>10} {:>12} {:>12}",
        "", "nodes", "infer s", "fold s", "infer ns/node", "fold ns/node"
    );
    for (kind, source) in kinds {
        for nodes in SIZES {
            line(kind, nodes, &text::parse(&source(nodes)).expect("what is generated parses"));
        }
    }
    for path in std::env::args().skip(1).filter(|argument| !argument.starts_with("--")) {
        let document = OnnxModel::open(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
        let model = document.model();
        let nodes = model.graphs().map(|graph| model.graph(graph).node_count()).sum();
        line(path.rsplit('/').next().unwrap_or(&path), nodes, model);
    }
}

/// Times a model with this number of nodes and prints its line.
fn line(name: &str, nodes: usize, model: &Model) {
    let seconds = |fold: bool| {
        let mut document = OnnxModel::of(model.clone());
        let begin = Instant::now();
        document.fold(&Options::new().fold(fold)).expect("it folds");
        begin.elapsed().as_secs_f64()
    };
    let (infer, fold) = (seconds(false), seconds(true));
    let each = |seconds: f64| seconds * 1e9 / nodes.max(1) as f64;
    println!("{name:<16} {nodes:>8} {infer:>10.3} {fold:>10.3} {:>12.0} {:>12.0}", each(infer), each(fold));
}

/// Returns a model of opset 17 with these inputs, initializers and nodes, and the output `y`.
fn model(inputs: &str, initializers: &str, nodes: &str) -> String {
    format!("<ir_version: 8, opset_import: [\"\" : 17]> g ({inputs}) => (y) <{initializers}> {{ {nodes} }}")
}

/// A chain of element-wise operators.
fn chain(nodes: usize) -> String {
    let mut body = String::from("v0 = Abs (x)\n");
    for i in 1..nodes - 1 {
        let _ = writeln!(body, "v{i} = {} (v{})", ["Relu", "Sigmoid", "Tanh", "Exp"][i % 4], i - 1);
    }
    let _ = writeln!(body, "y = Neg (v{})", nodes - 2);
    model("float[N,8] x", "float one = {1}", &body)
}

/// One value with very many consumers.
fn fan(nodes: usize) -> String {
    let (mut body, mut constants, mut sum) = (String::new(), String::from("float c = {0}"), String::from("y = Sum (x"));
    for i in 0..nodes - 1 {
        let _ = writeln!(body, "v{i} = Mul (x, w{i})");
        let _ = write!(constants, ", float w{i} = {{{i}.5}}");
        let _ = write!(sum, ", v{i}");
    }
    model("float[N,8] x", &constants, &format!("{body}{sum})"))
}

/// Blocks that reshape by a chain from their operand's shape, and add to it.
fn residual(nodes: usize) -> String {
    let (mut body, mut last) = (String::new(), String::from("x"));
    for i in 0..nodes / 11 {
        let _ = writeln!(
            body,
            "s{i} = Shape ({last})  g{i} = Gather (s{i}, zero)  u{i} = Unsqueeze (g{i}, axis)
             h{i} = Gather (s{i}, one)  w{i} = Unsqueeze (h{i}, axis)
             t{i} = Concat <axis = 0> (u{i}, w{i}, four, sixteen)  r{i} = Reshape ({last}, t{i})  a{i} = Relu (r{i})
             k{i} = Concat <axis = 0> (u{i}, w{i}, whole)  q{i} = Reshape (a{i}, k{i})  b{i} = Add (q{i}, {last})"
        );
        last = format!("b{i}");
    }
    let constants = "int64 zero = {0}, int64 one = {1}, int64[1] axis = {0}, int64[1] four = {4}, int64[1] sixteen = {16}, int64[1] whole = {64}";
    model("float[N,S,64] x", constants, &format!("{body}y = Neg ({last})"))
}

/// Halves of halves, concatenated again: expressions that could grow.
fn slices(nodes: usize) -> String {
    let (mut body, mut last) = (String::new(), String::from("x"));
    for i in 0..nodes / 8 {
        let _ = writeln!(
            body,
            "s{i} = Shape ({last})  n{i} = Gather (s{i}, one)  h{i} = Div (n{i}, two)  u{i} = Unsqueeze (h{i}, zero)
             a{i} = Slice ({last}, zero, u{i}, axis)  b{i} = Slice ({last}, u{i}, end, axis)  c{i} = Neg (b{i})
             d{i} = Concat <axis = 1> (c{i}, a{i})"
        );
        last = format!("d{i}");
    }
    let constants = "int64 one = {1}, int64 two = {2}, int64[1] zero = {0}, int64[1] axis = {1}, int64[1] end = {9223372036854775807}";
    model("float[N,S] x", constants, &format!("{body}y = Neg ({last})"))
}

/// Conditions on sizes, each with two subgraphs.
fn branches(nodes: usize) -> String {
    let (mut body, mut last) = (String::new(), String::from("x"));
    for i in 0..nodes / 6 {
        let _ = writeln!(
            body,
            "s{i} = Shape ({last})  g{i} = Gather (s{i}, zero)  c{i} = Greater (g{i}, five)
             b{i} = If <then_branch: graph = t{i} () => (p{i}) {{ p{i} = Relu ({last}) }},
                        else_branch: graph = e{i} () => (q{i}) {{ q{i} = Neg ({last}) }}> (c{i})"
        );
        last = format!("b{i}");
    }
    model("float[N,8] x", "int64 zero = {0}, int64 five = {5}", &format!("{body}y = Abs ({last})"))
}

/// Layers of a transformer as exporters write them: normalizations in basic operators, and a separate shape chain for every Reshape.
fn transformer(nodes: usize) -> String {
    const WEIGHTS: [&str; 6] = ["q", "k", "v", "o", "up", "down"];
    let (mut body, mut last) = (String::new(), String::from("x"));
    let mut constants = String::from(
        "int64 zero = {0}, int64 one = {1}, int64[1] axis = {0}, int64[1] heads = {2}, int64[1] each = {2}, int64[1] whole = {4}, \
         float two = {2}, float eps = {0.00001}, float root = {1.41421354}, float half = {0.5}, float unit = {1}",
    );
    for i in 0..nodes / 77 {
        for (w, name) in WEIGHTS.into_iter().enumerate() {
            let numbers: Vec<String> = (0..16).map(|n| format!("{}.{}", (n * 7 + w) % 5, i * 6 + w)).collect();
            let _ = write!(constants, ", float[4,4] w{name}{i} = {{{}}}", numbers.join(","));
            let _ = write!(constants, ", float[4] b{name}{i} = {{{i}.25, 0.5, {w}.75, 1}}");
        }
        let normed = normalization(&mut body, &mut constants, &format!("{i}a"), &last);
        for name in ["q", "k", "v"] {
            let _ =
                writeln!(body, "m{name}{i} = MatMul ({normed}, w{name}{i})  a{name}{i} = Add (m{name}{i}, b{name}{i})");
            let to = format!("{name}{i}");
            reshape(&mut body, &to, &format!("a{name}{i}"), "heads, each");
            let perm = if name == "k" { "[0, 2, 3, 1]" } else { "[0, 2, 1, 3]" };
            let _ = writeln!(body, "t{to} = Transpose <perm = {perm}> (r{to})");
        }
        let _ = writeln!(
            body,
            "sc{i} = MatMul (tq{i}, tk{i})  sd{i} = Div (sc{i}, root)  sm{i} = Softmax <axis = -1> (sd{i})
             at{i} = MatMul (sm{i}, tv{i})  tt{i} = Transpose <perm = [0, 2, 1, 3]> (at{i})"
        );
        reshape(&mut body, &format!("o{i}"), &format!("tt{i}"), "whole");
        let _ = writeln!(body, "mo{i} = MatMul (ro{i}, wo{i})  ao{i} = Add (bo{i}, mo{i})  x{i} = Add (ao{i}, {last})");
        let normed = normalization(&mut body, &mut constants, &format!("{i}b"), &format!("x{i}"));
        let _ = writeln!(
            body,
            "mu{i} = MatMul ({normed}, wup{i})  au{i} = Add (mu{i}, bup{i})  gd{i} = Div (au{i}, root)  ge{i} = Erf (gd{i})
             ga{i} = Add (ge{i}, unit)  gm{i} = Mul (au{i}, ga{i})  gh{i} = Mul (gm{i}, half)
             md{i} = MatMul (gh{i}, wdown{i})  ad{i} = Add (md{i}, bdown{i})  y{i} = Add (ad{i}, x{i})"
        );
        last = format!("y{i}");
    }
    model("float[N,S,4] x", &constants, &format!("{body}y = Identity ({last})"))
}

/// A layer normalization of `value` in nine nodes. Returns its result.
fn normalization(body: &mut String, constants: &mut String, name: &str, value: &str) -> String {
    let _ = write!(constants, ", float[4] g{name} = {{1, 2, 3, {}}}, float[4] h{name} = {{1, 2, 3, 4}}", name.len());
    let _ = writeln!(
        body,
        "lm{name} = ReduceMean <axes = [-1]> ({value})  ls{name} = Sub ({value}, lm{name})  lp{name} = Pow (ls{name}, two)
         lv{name} = ReduceMean <axes = [-1]> (lp{name})  le{name} = Add (lv{name}, eps)  lr{name} = Sqrt (le{name})
         ld{name} = Div (ls{name}, lr{name})  lg{name} = Mul (ld{name}, g{name})  ln{name} = Add (lg{name}, h{name})"
    );
    format!("ln{name}")
}

/// A Reshape that keeps the first two sizes, each computed by a separate chain.
fn reshape(body: &mut String, name: &str, value: &str, rest: &str) {
    let _ = writeln!(
        body,
        "rs{name} = Shape ({value})  rg{name} = Gather (rs{name}, zero)  rt{name} = Shape ({value})  rh{name} = Gather (rt{name}, one)
         ru{name} = Unsqueeze (rg{name}, axis)  rw{name} = Unsqueeze (rh{name}, axis)
         rc{name} = Concat <axis = 0> (ru{name}, rw{name}, {rest})  r{name} = Reshape ({value}, rc{name})"
    );
}
