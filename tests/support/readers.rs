//! Checks that run on arbitrary bytes: by `tests/binary/mutations.rs` in the tests, and by the targets of `fuzz/` with coverage guidance.
//!
//! Each takes an input and returns `true` if the input was valid. A panic is a finding.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use onnx_slice_fold::check::{Trial, check};
use onnx_slice_fold::dim::Scope;
use onnx_slice_fold::ir::{Model, text};
use onnx_slice_fold::{ErrorKind, OnnxModel, Options};

/// A model in the wire format. The written model reads back with the same bytes.
pub fn model_bytes(bytes: &[u8]) -> bool {
    let Ok(model) = OnnxModel::from_bytes(bytes.to_vec()) else { return false };
    let Ok(written) = model.to_bytes() else { return false };
    let again = OnnxModel::from_bytes(written.clone()).unwrap_or_else(|error| panic!("{error:#}"));
    assert!(again.to_bytes().is_ok_and(|bytes| bytes == written), "what was written is written otherwise");
    true
}

/// A model as text. The printed model parses to the same model, unless the text abbreviates long tensors.
pub fn model_text(bytes: &[u8]) -> bool {
    let source = String::from_utf8_lossy(bytes);
    let Ok(model) = text::parse(&source) else { return false };
    let printed = text::print(&model);
    if printed.contains(",...}") {
        return true;
    }
    let again = text::parse(&printed).unwrap_or_else(|error| panic!("{error}:\n{printed}"));
    assert_eq!(text::print(&again), printed);
    true
}

/// A size as an expression. The written form parses to the same expression.
pub fn size(bytes: &[u8]) -> bool {
    let scope = Scope::new();
    let Some(dim) = scope.parse(&String::from_utf8_lossy(bytes)) else { return false };
    let written = scope.format(&dim);
    if let Some(again) = scope.parse(&written) {
        assert!(!scope.eq(&again, &dim).is_no(), "{written} is another size");
    }
    true
}

/// A model in a folder with a data file, next to files that it must not read. `model` is the path to write it to.
pub fn external_data(model: &Path, bytes: &[u8]) -> bool {
    fs::write(model, bytes).expect("the model is written");
    let Ok(opened) = OnnxModel::open(model) else { return false };
    let written = opened.to_bytes().unwrap_or_default();
    assert!(!written.windows(6).any(|window| window == b"SECRET"), "it reads outside of its folder");
    true
}

/// Creates a folder for [`external_data`]. Returns the path for the model, and a model that reads its data file.
pub fn data_folder(folder: &Path) -> (std::path::PathBuf, Vec<u8>) {
    let inner = folder.join("model");
    fs::create_dir_all(&inner).expect("a folder");
    fs::write(folder.join("secret.bin"), b"SECRETSECRETSECRET").expect("a file");
    fs::write(inner.join("w.bin"), [0; 64]).expect("a file");
    // A graph `g` with an initializer of one element, whose data is in `w.bin`.
    let field = |number: u8, payload: &[u8]| [&[number << 3 | 2, payload.len() as u8][..], payload].concat();
    let entry = |key: &str, value: &str| field(13, &[field(1, key.as_bytes()), field(2, value.as_bytes())].concat());
    let place = [entry("location", "w.bin"), entry("offset", "4"), entry("length", "4")].concat();
    let tensor = [&[0x08, 1, 0x10, 1][..], &field(8, b"w"), &place, &[0x70, 1]].concat();
    let graph = [field(2, b"g"), field(5, &tensor), field(12, &field(1, b"w"))].concat();
    let seed = [&[0x08, 8][..], &field(7, &graph), &field(8, &[0x10, 17])].concat();
    (inner.join("model.onnx"), seed)
}

/// Folds a model and compares it with the original.
fn folds_to_the_same(original: &Model) -> bool {
    let mut model = OnnxModel::of(original.clone());
    let options = Options::new().verify_each(true);
    match model.fold(&options) {
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::Internal => panic!("{error:#}"),
        Err(_) => return false,
    }
    let checked = check(original, model.model(), &options, &Trial::drawn(3));
    assert!(checked.difference.is_none(), "{checked}:\n{}", text::print(original));
    checked.agreed > 0
}

/// A model in the wire format through the whole program: it is folded, computes the same, is written and read again.
pub fn whole_program(bytes: &[u8]) -> bool {
    let Ok(mut model) = OnnxModel::from_bytes(bytes.to_vec()) else { return false };
    let same = folds_to_the_same(model.model());
    match model.fold(&Options::new()) {
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::Internal => panic!("{error:#}"),
        Err(_) => return false,
    }
    if let Ok(written) = model.to_bytes() {
        OnnxModel::from_bytes(written).unwrap_or_else(|error| panic!("{error:#}"));
    }
    same
}

/// A model as text that is folded.
pub fn folded_text(bytes: &[u8]) -> bool {
    text::parse(&String::from_utf8_lossy(bytes)).is_ok_and(|original| folds_to_the_same(&original))
}

/// A graph in which each byte chooses something: nodes about sizes, slices and movements, each on any earlier values.
pub fn generated_graph(bytes: &[u8]) -> bool {
    folds_to_the_same(&text::parse(&graph_of(bytes)).expect("a generated graph is well formed"))
}

/// Nodes with an operand for each `$`, and a size for each `%`.
const NODES: &[&str] = &[
    "Shape (%)",
    "Shape <start = -1> ($)",
    "Gather ($, %)",
    "Concat <axis = 0> ($, $)",
    "Concat <axis = -1> ($, $)",
    "Slice ($, %, %, zero)",
    "Slice ($, %, %, zero, back)",
    "Reshape ($, %)",
    "Reshape ($, all)",
    "Expand ($, %)",
    "Unsqueeze ($, zero)",
    "Squeeze ($, zero)",
    "Transpose ($)",
    "Add ($, $)",
    "Mul ($, %)",
    "Sub ($, $)",
    "Div ($, two)",
    "Mod (%, two)",
    "Min ($, $)",
    "Relu ($)",
    "Neg ($)",
    "Cast <to = 1> ($)",
    "Cast <to = 6> ($)",
    "Cast <to = 7> ($)",
    "ReduceSum <keepdims = 0> ($, zero)",
    "Where (flag, $, $)",
    "Tile ($, %)",
    "Pad ($, %)",
    "Identity ($)",
    "MatMul ($, $)",
];

fn graph_of(bytes: &[u8]) -> String {
    let mut bytes = bytes.iter().copied();
    let mut next = |count: usize| usize::from(bytes.next().unwrap_or(0)) % count.max(1);
    let sizes = ["n", "m", "1", "2", "0", "3"];
    let mut shape = || (0..next(4)).map(|_| sizes[next(sizes.len())]).collect::<Vec<_>>().join(",");
    let (x, k) = (shape(), shape());
    let mut source = format!(
        "<ir_version: 8, opset_import: [\"\" : 17]> g (float[{x}] x, int64[{k}] k, int64[n] z, bool flag) => (OUT)
        <int64[1] zero = {{0}}, int64[1] back = {{-1}}, int64[1] all = {{-1}}, int64[1] two = {{2}}, int64[2] ends = {{1, 9223372036854775807}},
        int64[3] some = {{2, -1, 3}}> {{\n"
    );
    let (mut all, mut whole) = (
        vec!["x".to_string(), "k".into()],
        vec!["zero".to_string(), "back".into(), "two".into(), "ends".into(), "some".into(), "k".into()],
    );
    for number in 0..2 + next(10) {
        let name = format!("v{number}");
        let template = NODES[next(NODES.len())];
        let mut node = String::new();
        for letter in template.chars() {
            match letter {
                // The latest values are the most interesting ones.
                '$' => node.push_str(&all[all.len() - 1 - next(all.len().min(5))]),
                '%' => node.push_str(&whole[whole.len() - 1 - next(whole.len())]),
                letter => node.push(letter),
            }
        }
        let _ = writeln!(source, "{name} = {node}");
        if template.starts_with("Shape") || template.contains('%') || template.contains("to = 7") {
            whole.push(name.clone());
        }
        all.push(name);
    }
    let outputs = all.iter().skip(2).rev().take(3).cloned().collect::<Vec<_>>().join(", ");
    source.push('}');
    source.replace("OUT", &outputs)
}
