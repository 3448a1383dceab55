//! Large weights are written without being held in memory: folding under a hard memory limit.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// The private memory that the program may use, in KiB: a fraction of the weights.
const LIMIT: usize = 64 << 10;

/// Weights of 4 MiB.
const SIDE: usize = 1024;
const WEIGHTS: usize = 20;

/// Encodes a length-delimited field of a protobuf message.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut out = varint(usize::from(number) << 3 | 2);
    out.extend(varint(bytes.len()));
    out.extend_from_slice(bytes);
    out
}

/// Encodes an integer field of a protobuf message.
fn integer(number: u8, value: usize) -> Vec<u8> {
    let mut out = varint(usize::from(number) << 3);
    out.extend(varint(value));
    out
}

fn varint(mut value: usize) -> Vec<u8> {
    let mut out = Vec::new();
    while value > 127 {
        out.push(value as u8 | 128);
        value >>= 7;
    }
    out.push(value as u8);
    out
}

/// Encodes an initializer of floats. Each has another first element, so that no two are equal and merged.
fn weight(name: &str, shape: &[usize], seed: usize) -> Vec<u8> {
    let len: usize = shape.iter().product();
    let number = |n: usize| ((n.wrapping_mul(2_654_435_761) >> 7) % 2001) as f32 / 25_000.0 - 0.04 + seed as f32 / 1e5;
    let bytes: Vec<u8> = (0..len).flat_map(|n| number(n).to_le_bytes()).collect();
    let dims = shape.iter().flat_map(|&dim| integer(1, dim));
    let tensor = [dims.collect(), integer(2, 1), field(8, name.as_bytes()), field(9, &bytes)].concat();
    field(5, &tensor)
}

fn node(operator: &str, inputs: &[&str], output: &str, attributes: &[u8]) -> Vec<u8> {
    let inputs = inputs.iter().flat_map(|name| field(1, name.as_bytes()));
    let rest = [field(2, output.as_bytes()), field(4, operator.as_bytes()), attributes.to_vec()].concat();
    field(1, &[inputs.collect(), rest].concat())
}

/// Encodes a `Transpose` of a matrix.
fn turned(input: &str, output: &str) -> Vec<u8> {
    let perm = [field(1, b"perm"), integer(8, 1), integer(8, 0), integer(20, 7)].concat();
    node("Transpose", &[input], output, &field(5, &perm))
}

/// Encodes a `Cast` to an element type.
fn cast(input: &str, output: &str, to: usize) -> Vec<u8> {
    let to = [field(1, b"to"), integer(3, to), integer(20, 2)].concat();
    node("Cast", &[input], output, &field(5, &to))
}

/// Encodes an input or output of floats, `[n, SIDE]`.
fn end(number: u8, name: &str, element: usize) -> Vec<u8> {
    let dims = [field(1, &field(2, b"n")), field(1, &integer(1, SIDE))].concat();
    let tensor = [integer(1, element), field(2, &dims)].concat();
    field(number, &[field(1, name.as_bytes()), field(2, &field(1, &tensor))].concat())
}

/// Writes a file with a chain of products. `prepare` returns, for each index, the nodes that compute a layer's weight, and its name.
fn model(
    folder: &Path,
    name: &str,
    element: usize,
    prepare: &dyn Fn(usize) -> (Vec<u8>, String, Option<String>),
) -> PathBuf {
    let mut graph = Vec::new();
    let mut value = "x".to_string();
    for layer in 0..WEIGHTS {
        let (nodes, weight, factor) = prepare(layer);
        graph.extend(nodes);
        let (product, scaled, relu) = (format!("m{layer}"), format!("p{layer}"), format!("r{layer}"));
        graph.extend(node("MatMul", &[&value, &weight], &product, &[]));
        let product = match factor {
            Some(factor) => {
                graph.extend(node("Mul", &[&product, &factor], &scaled, &[]));
                scaled
            }
            None => product,
        };
        graph.extend(node("Relu", &[&product], &relu, &[]));
        value = relu;
    }
    graph.extend(field(2, b"g"));
    graph.extend([end(11, "x", element), end(12, &value, element)].concat());
    let bytes = [integer(1, 8), field(8, &integer(2, 17)), field(7, &graph)].concat();
    let path = folder.join(name);
    std::fs::write(&path, bytes).expect("the model is written");
    path
}

/// Folds under the limit. Returns the bytes of the folded file.
fn folded(path: &Path) -> Vec<u8> {
    let target = path.with_extension("out.onnx");
    let script = format!("ulimit -d {LIMIT} && exec \"$0\" \"$@\"");
    let mut command = Command::new("sh");
    command.args(["-c", &script, env!("CARGO_BIN_EXE_onnx-slice-fold")]).arg(path).arg("-o").arg(&target);
    let done = command.stdout(Stdio::null()).output().expect("the shell runs");
    assert!(done.status.success(), "{}: {:?}: {}", path.display(), done.status, String::from_utf8_lossy(&done.stderr));
    std::fs::read(&target).expect("the result is there")
}

/// Returns `true` if a file contains an operator.
fn has(bytes: &[u8], operator: &str) -> bool {
    let wanted = field(4, operator.as_bytes());
    bytes.windows(wanted.len()).any(|window| window == wanted)
}

#[cfg(target_os = "linux")]
#[test]
fn changed_weights_take_no_memory() {
    let folder = TempDir::new().expect("a folder");
    let name = |layer: usize| format!("w{layer}");
    let large = |layer: usize| weight(&format!("w{layer}"), &[SIDE, SIDE], layer);
    let path = model(folder.path(), "turned.onnx", 1, &|layer| {
        let nodes = [large(layer), turned(&name(layer), &format!("t{layer}"))].concat();
        (nodes, format!("t{layer}"), None)
    });
    assert!(!has(&folded(&path), "Transpose"));
    // Three movements, one other step, and a factor for each column.
    let path = model(folder.path(), "several.onnx", 1, &|layer| {
        let row = weight(&format!("c{layer}"), &[SIDE], layer + 1);
        let add = node("Add", &[&name(layer), &format!("c{layer}")], &format!("a{layer}"), &[]);
        let turn = turned(&format!("a{layer}"), &format!("t{layer}"));
        let factor = weight(&format!("s{layer}"), &[SIDE], 100_000 + layer);
        ([large(layer), row, add, turn, factor].concat(), format!("t{layer}"), Some(format!("s{layer}")))
    });
    let bytes = folded(&path);
    assert!(!has(&bytes, "Transpose") && !has(&bytes, "Add") && !has(&bytes, "Mul"));
    let path = model(folder.path(), "halved.onnx", 10, &|layer| {
        let nodes = [
            large(layer),
            turned(&name(layer), &format!("t{layer}")),
            cast(&format!("t{layer}"), &format!("h{layer}"), 10),
        ];
        (nodes.concat(), format!("h{layer}"), None)
    });
    let bytes = folded(&path);
    assert!(!has(&bytes, "Cast") && bytes.len() < WEIGHTS * SIDE * SIDE * 2 + (1 << 20));
}
