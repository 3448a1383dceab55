//! Tests that decoding and encoding preserve a file, including the unknown fields of all messages. Folding preserves
//! the fields of parts that it does not change.
//!
//! `MODELS=folder cargo test --lib lossless -- --nocapture` also tests the models of a folder, and counts identical
//! files.

use std::path::{Path, PathBuf};

use bytes::Bytes;
use prost::Message;

use super::encode::Encoded;
use super::export::Externals;
use super::proto::{
    FunctionProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, StringStringEntryProto, TensorAnnotation,
    ValueInfoProto,
};
use super::schema::{self, Kind, MODEL};
use super::wire::{Descent, Limits, UnknownFields};
use super::{Source, decode, export, import, to_bytes};
use crate::sort;
use crate::{OnnxModel, Options};

/// A field number that no version of the schema has.
const UNKNOWN: u64 = 15_000;

fn varint(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number >= 0x80 {
        bytes.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}

fn read_varint(bytes: &[u8], at: &mut usize) -> u64 {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let byte = bytes[*at];
        *at += 1;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            break;
        }
    }
    number
}

/// Appends an unknown field with a distinct value to a message and to every nested message.
fn with_unknown(bytes: &[u8], place: u16, count: &mut u64) -> Vec<u8> {
    let mut made = Vec::with_capacity(bytes.len() + 16);
    let mut at = 0;
    while at < bytes.len() {
        let begin = at;
        let tag = read_varint(bytes, &mut at);
        let field = schema::message(place).field(u32::try_from(tag >> 3).unwrap());
        match (tag & 7, field.map(|field| field.kind)) {
            (2, kind) => {
                let length = usize::try_from(read_varint(bytes, &mut at)).unwrap();
                let payload = &bytes[at..at + length];
                at += length;
                if let Some(Kind::Message(inner)) = kind {
                    let inner = with_unknown(payload, inner, count);
                    made.extend([varint(tag), varint(inner.len() as u64), inner].concat());
                    continue;
                }
            }
            (0, _) => drop(read_varint(bytes, &mut at)),
            (1, _) => at += 8,
            (5, _) => at += 4,
            (kind, _) => panic!("wire type {kind}"),
        }
        made.extend_from_slice(&bytes[begin..at]);
    }
    *count += 1;
    made.extend([varint(UNKNOWN << 3), varint(*count)].concat());
    made
}

/// Decodes a file to its messages and their unknown fields.
fn said(bytes: &[u8]) -> (ModelProto, UnknownFields) {
    decode(&Bytes::copy_from_slice(bytes), &Limits::default()).expect("the model is decoded")
}

/// Decodes, imports, exports and encodes a file.
fn again(bytes: &[u8], folder: &Path) -> Vec<u8> {
    let mut source = Source::of_bytes(Bytes::copy_from_slice(bytes));
    source.data.also_beneath([folder.to_path_buf()]);
    let (proto, unknown) = decode(source.bytes(), &Limits::default()).expect("the model is decoded");
    let model = import(proto, &unknown, &mut source.data).expect("the model is imported");
    let bytes = to_bytes(&model, Some(&source)).expect("the model is encoded");
    // Parts written from the model itself must equal their messages.
    let (proto, unknown, deferred) = export(&model, &Externals::default()).expect("the model is sound");
    let encoded = Encoded::measure_with(&proto, &unknown, &deferred, None).expect("it is not too large");
    let mut whole = Vec::new();
    encoded.write(&mut whole).expect("there is memory");
    assert!(whole == bytes);
    bytes
}

fn models_of(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("the folder is listed") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            models_of(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "onnx") {
            found.push(path);
        }
    }
}

/// Returns the models of the repository and of the folder in `MODELS`.
fn models() -> Vec<PathBuf> {
    let mut found = Vec::new();
    models_of(&Path::new(env!("CARGO_MANIFEST_DIR")).join("models"), &mut found);
    if let Some(folder) = std::env::var_os("MODELS") {
        models_of(Path::new(&folder), &mut found);
    }
    sort::sort(&mut found);
    assert!(!found.is_empty());
    found
}

/// Returns `true` if tensors of the model are in other files: the bytes then differ.
fn has_data_files(proto: &ModelProto) -> bool {
    let graph = proto.graph.as_ref();
    graph.is_some_and(|graph| graph.initializer.iter().any(|tensor| tensor.data_location.is_some_and(|at| at == 1)))
}

/// Encodes a message canonically: fields ordered by number, stable within a number, without fields that equal their
/// default.
fn canonical(bytes: &[u8], place: u16) -> Vec<u8> {
    let mut fields: Vec<(u64, Vec<u8>)> = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let begin = at;
        let tag = read_varint(bytes, &mut at);
        let field = schema::message(place).field(u32::try_from(tag >> 3).unwrap());
        let is_single = field.is_some_and(|field| field.repeated.is_none() && !field.oneof);
        let mut says_nothing = false;
        let mut whole = None;
        match tag & 7 {
            0 => says_nothing = read_varint(bytes, &mut at) == 0 && is_single,
            1 => at += 8,
            2 => {
                let length = usize::try_from(read_varint(bytes, &mut at)).unwrap();
                let payload = &bytes[at..at + length];
                at += length;
                match field.map(|field| field.kind) {
                    Some(Kind::Message(inner)) => {
                        let inner = canonical(payload, inner);
                        whole = Some([varint(tag), varint(inner.len() as u64), inner].concat());
                    }
                    _ => says_nothing = length == 0 && is_single,
                }
            }
            _ => at += 4,
        }
        if !says_nothing {
            fields.push((tag >> 3, whole.unwrap_or_else(|| bytes[begin..at].to_vec())));
        }
    }
    sort::by_key(&mut fields, |(number, _)| *number);
    fields.into_iter().flat_map(|(_, bytes)| bytes).collect()
}

#[test]
fn models_are_written_as_they_were_read() {
    let (mut identical, mut equal) = (0, Vec::new());
    for path in models() {
        let bytes = std::fs::read(&path).expect("the model is read");
        if has_data_files(&said(&bytes).0) {
            continue;
        }
        let written = again(&bytes, path.parent().expect("a folder"));
        if written == bytes {
            identical += 1;
            continue;
        }
        assert!(canonical(&written, MODEL) == canonical(&bytes, MODEL), "{} says something else", path.display());
        equal.push(path.file_name().expect("a name").to_string_lossy().into_owned());
    }
    println!("{identical} models are identical, {} say the same: {equal:?}", equal.len());
}

/// Returns the unknown fields of messages that are kept. Declared types are decoded and encoded, which drops unknown
/// fields.
fn kept(unknown: &UnknownFields) -> Vec<(Vec<Descent>, Vec<u8>)> {
    let name = |path: &[Descent]| {
        let mut place = MODEL;
        let mut names = Vec::new();
        for step in path {
            let Some(field) = schema::message(place).field(step.field) else { break };
            names.push(field.name);
            if let Kind::Message(inner) = field.kind {
                place = inner;
            }
        }
        names
    };
    let stays = |path: &[Descent]| !name(path).iter().any(|name| ["type", "tp", "type_protos"].contains(name));
    let found = unknown.iter().filter(|(path, _)| stays(path));
    found.map(|(path, pieces)| (path.to_vec(), pieces.concat())).collect()
}

#[test]
fn unknown_fields_of_every_message_stay() {
    for path in models() {
        let bytes = std::fs::read(&path).expect("the model is read");
        if has_data_files(&said(&bytes).0) || bytes.len() > 4 << 20 {
            continue;
        }
        let mut count = 0;
        let bytes = with_unknown(&bytes, MODEL, &mut count);
        let (before, after) = (said(&bytes), said(&again(&bytes, path.parent().expect("a folder"))));
        assert_eq!(before.1.iter().count() as u64, count, "{}: every message has one", path.display());
        let (before, after) = (kept(&before.1), kept(&after.1));
        let lost = before.iter().find(|field| !after.contains(field));
        assert!(before == after, "{}: {} of {} are left; {lost:?}", path.display(), after.len(), before.len());
    }
}

/// Returns the unknown fields of messages that folding keeps: the model, its imports, its graph and the graph's
/// inputs and outputs.
fn lasting(unknown: &UnknownFields) -> Vec<(Vec<Descent>, Vec<u8>)> {
    let lasts = |path: &[Descent]| match path {
        [] => true,
        [first, ..] if first.field == 7 => path.get(1).is_none_or(|second| [11, 12, 14, 16].contains(&second.field)),
        _ => true,
    };
    kept(unknown).into_iter().filter(|(path, _)| lasts(path)).collect()
}

/// The entry before that of `gone` describes an existing value and is written elsewhere.
#[test]
fn unknown_fields_of_declarations_without_a_value_are_kept() {
    let named = |name: &str| Some(name.to_string());
    let told = |name: &str| ValueInfoProto { name: named(name), doc_string: named("said"), ..Default::default() };
    let node =
        NodeProto { op_type: named("Relu"), input: vec!["x".into()], output: vec!["y".into()], ..Default::default() };
    let graph = GraphProto {
        node: vec![node],
        input: vec![told("x")],
        output: vec![told("y")],
        value_info: vec![told("x"), told("gone")],
        ..Default::default()
    };
    let model = ModelProto { graph: Some(graph), ..Default::default() };
    let bytes = with_unknown(&model.encode_to_vec(), MODEL, &mut 0);
    let at = bytes.windows(4).position(|part| part == b"gone").expect("it is said");
    let own = &bytes[at..at + 4 + 2 + 4 + 4];
    let written = again(&bytes, Path::new("."));
    assert!(written.windows(own.len()).any(|part| part == own), "{own:?} in {written:?}");
    assert!(again(&written, Path::new(".")) == written);
}

/// Two functions of one name must be equal; they differed when only the first one kept this.
#[test]
fn declarations_of_unknown_values_are_kept_in_each_function() {
    let told = ValueInfoProto { name: Some("gone".to_string()), ..Default::default() };
    let function = FunctionProto { name: Some("f".to_string()), value_info: vec![told; 2], ..Default::default() };
    let model = ModelProto { graph: Some(Default::default()), functions: vec![function; 2], ..Default::default() };
    let written = again(&model.encode_to_vec(), Path::new("."));
    let functions = said(&again(&written, Path::new("."))).0.functions;
    assert_eq!(functions.len(), 2);
    assert!(functions.iter().all(|function| function.value_info.len() == 2), "{functions:?}");
}

#[test]
fn folding_keeps_unrelated_fields() {
    for path in models() {
        let bytes = std::fs::read(&path).expect("the model is read");
        let (mut proto, _) = said(&bytes);
        if has_data_files(&proto) || bytes.len() > 1 << 20 {
            continue;
        }
        let entry = |key: &str, value: &str| StringStringEntryProto {
            key: Some(key.to_string()),
            value: Some(value.to_string()),
        };
        proto.metadata_props.push(entry("owner", "somebody"));
        proto.training_info.push(Default::default());
        let graph = proto.graph.as_mut().expect("a graph");
        graph.metadata_props.push(entry("layer", "all"));
        graph.doc_string = Some("what it is for".to_string());
        let (input, output) = (graph.input[0].name.clone(), graph.output[0].name.clone());
        for name in [input, output] {
            graph.quantization_annotation.push(TensorAnnotation {
                tensor_name: name,
                quant_parameter_tensor_names: vec![entry("SCALE_TENSOR", "none")],
            });
        }
        // A node that no pass supports keeps all its fields.
        let named = |name: &str| Some(name.to_string());
        graph.node.push(NodeProto {
            op_type: named("Strange"),
            domain: named("com.example"),
            name: named("strange"),
            input: graph.input[0].name.clone().into_iter().collect(),
            output: vec!["strange".to_string()],
            doc_string: named("it is strange"),
            metadata_props: vec![entry("from", "elsewhere")],
            ..NodeProto::default()
        });
        let mut output = graph.output[0].clone();
        (output.name, output.r#type) = (named("strange"), None);
        graph.output.push(output);
        proto.opset_import.push(OperatorSetIdProto { domain: named("com.example"), version: Some(1) });
        let mut count = 0;
        let bytes = with_unknown(&prost::Message::encode_to_vec(&proto), MODEL, &mut count);
        let mut model = OnnxModel::from_bytes_in(bytes.clone(), path.parent().expect("a folder")).expect("it opens");
        model.fold(&Options::new().stamp(false)).expect("it folds");
        let (before, after) = (said(&bytes), said(&model.to_bytes().expect("it is written")));
        let place = path.display();
        assert_eq!(after.0.metadata_props, before.0.metadata_props, "{place}");
        assert_eq!(after.0.training_info, before.0.training_info, "{place}");
        let (from, to) = (before.0.graph.expect("a graph"), after.0.graph.expect("a graph"));
        assert_eq!(to.metadata_props, from.metadata_props, "{place}");
        assert_eq!(to.doc_string, from.doc_string, "{place}");
        assert_eq!(to.quantization_annotation, from.quantization_annotation, "{place}");
        let strange = |nodes: &[NodeProto]| nodes.iter().find(|node| node.name.as_deref() == Some("strange")).cloned();
        assert!(strange(&to.node).is_some() && strange(&to.node) == strange(&from.node), "{place}");
        assert_eq!(lasting(&after.1), lasting(&before.1), "{place}");
    }
}

/// An annotation is written with the graph of the values that it names, and is dropped if they are gone.
#[test]
fn annotations_stay_with_their_values() {
    let source = r#"<ir_version: 8, opset_import: ["" : 17]>
        g (float[n,4] x, float[4] s, int64 m) => (y, z) <float scale = {0.5}, bool true = {1}> {
            sh = Shape (x)  c = Reshape (x, sh)  y = Exp (c)
            a, z = Loop (m, true, s, s) <body: graph = b (int64 i, bool go, float[4] k, float[4] v) => (d, k2, v2) {
                d = Identity (go)  k2 = Identity (k)  w = Add (v, k)  v2 = Exp (w) }> }"#;
    let written =
        OnnxModel::of(crate::ir::text::parse(source).expect("it is a model")).to_bytes().expect("it is written");
    let mut proto = ModelProto::decode(written.as_slice()).expect("it is read");
    let graph = proto.graph.as_mut().expect("a graph");
    let annotation = |name: &str| TensorAnnotation {
        tensor_name: Some(name.to_string()),
        quant_parameter_tensor_names: vec![StringStringEntryProto {
            key: Some("SCALE_TENSOR".to_string()),
            value: Some("scale".to_string()),
        }],
    };
    graph.quantization_annotation.push(annotation("c"));
    let body = graph.node.iter_mut().find_map(|node| node.attribute.first_mut()?.g.as_mut()).expect("a body");
    body.quantization_annotation.extend(["k", "w"].map(annotation));
    let mut model = OnnxModel::from_bytes(proto.encode_to_vec()).expect("it is read");
    model.fold(&Default::default()).expect("it is folded");
    let bytes = model.to_bytes().expect("it is written");
    let graph = ModelProto::decode(bytes.as_slice()).expect("it is read").graph.expect("a graph");
    let body = graph.node.iter().find_map(|node| node.attribute.first()?.g.as_ref()).expect("a body");
    let named = |graph: &GraphProto| {
        graph.quantization_annotation.iter().filter_map(|own| own.tensor_name.clone()).collect::<Vec<_>>()
    };
    assert_eq!((named(&graph), named(body)), (vec!["c".to_string()], vec!["w".to_string()]));
    assert!(graph.initializer.iter().any(|tensor| tensor.name() == "scale"));
}
