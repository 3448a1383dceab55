//! How the time to infer and to fold grows with the number of nodes.
//!
//! ```console
//! cargo bench --bench scale
//! ```
//!
//! Each line is a kind of model at one size: the seconds that inference alone and the whole optimisation take, and the same per
//! node. Per node the figures should stay as they are from 1,000 to 100,000 nodes.

use std::fmt::Write;
use std::time::Instant;

use onnx_slice_fold::ir::text;
use onnx_slice_fold::{Document, Options};

const SIZES: [usize; 4] = [1_000, 10_000, 20_000, 100_000];

fn main() {
    let kinds: [(&str, fn(usize) -> String); 5] =
        [("chain", chain), ("fan", fan), ("residual blocks", residual), ("slices", slices), ("branches", branches)];
    println!(
        "{:<16} {:>8} {:>10} {:>10} {:>12} {:>12}",
        "", "nodes", "infer s", "fold s", "infer ns/node", "fold ns/node"
    );
    for (kind, source) in kinds {
        for nodes in SIZES {
            let model = text::parse(&source(nodes)).expect("what is generated parses");
            let seconds = |fold: bool| {
                let mut document = Document::of(model.clone());
                let begin = Instant::now();
                document.fold(&Options { fold, ..Options::default() }).expect("it folds");
                begin.elapsed().as_secs_f64()
            };
            let (infer, fold) = (seconds(false), seconds(true));
            let each = |seconds: f64| seconds * 1e9 / nodes as f64;
            println!("{kind:<16} {nodes:>8} {infer:>10.3} {fold:>10.3} {:>12.0} {:>12.0}", each(infer), each(fold));
        }
    }
}

/// A model of opset 17 with these inputs, initializers and nodes, and `y` for its output.
fn model(inputs: &str, initializers: &str, nodes: &str) -> String {
    format!("<ir_version: 8, opset_import: [\"\" : 17]> g ({inputs}) => (y) <{initializers}> {{ {nodes} }}")
}

/// One elementwise operator after the other.
fn chain(nodes: usize) -> String {
    let mut body = String::from("v0 = Abs (x)\n");
    for i in 1..nodes - 1 {
        let _ = writeln!(body, "v{i} = {} (v{})", ["Relu", "Sigmoid", "Tanh", "Exp"][i % 4], i - 1);
    }
    let _ = writeln!(body, "y = Neg (v{})", nodes - 2);
    model("float[N,8] x", "float one = {1}", &body)
}

/// One value with very many readers.
fn fan(nodes: usize) -> String {
    let (mut body, mut constants, mut sum) = (String::new(), String::from("float c = {0}"), String::from("y = Sum (x"));
    for i in 0..nodes - 1 {
        let _ = writeln!(body, "v{i} = Mul (x, w{i})");
        let _ = write!(constants, ", float w{i} = {{{i}.5}}");
        let _ = write!(sum, ", v{i}");
    }
    model("float[N,8] x", &constants, &format!("{body}{sum})"))
}

/// Blocks that reshape by a chain that starts from their operand's shape, and add to it.
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

/// Halves of halves, put together again: expressions that could grow.
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

/// Conditions on sizes, each with two bodies.
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
