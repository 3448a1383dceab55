//! Compiles `proto/onnx.proto` without `protoc`, and derives everything that must agree with it from the one
//! descriptor, so that no second hand-written schema exists:
//!
//! * `onnx.rs`: the message types, by prost;
//! * `schema.rs`: a table of messages and fields for the wire walker;
//! * `encode.rs`: the fields of each message in ascending order for the encoder.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use protox::prost_reflect::{Cardinality, DescriptorPool, FieldDescriptor, Kind, MessageDescriptor};

/// Large optional messages that are rarely present. Inline they would make every attribute of a node ten times as big.
const BOXED: [&str; 6] = [
    ".onnx.AttributeProto.t",
    ".onnx.AttributeProto.g",
    ".onnx.AttributeProto.sparse_tensor",
    ".onnx.AttributeProto.tp",
    ".onnx.SparseTensorProto.values",
    ".onnx.SparseTensorProto.indices",
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=proto/onnx.proto");
    println!("cargo::rerun-if-changed=build.rs");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?);

    let mut compiler = protox::Compiler::new(["proto"])?;
    compiler.include_source_info(false);
    compiler.open_file("onnx.proto")?;
    let descriptors = compiler.file_descriptor_set();
    let pool = DescriptorPool::from_file_descriptor_set(descriptors.clone())?;

    let mut config = prost_build::Config::new();
    config.bytes(["."]).btree_map(["."]).out_dir(&out);
    for field in BOXED {
        config.boxed(field);
    }
    config.compile_fds(descriptors)?;

    // Ordered by name, nested messages included: the order of the table is the order of nothing else.
    let mut messages: Vec<MessageDescriptor> = pool.all_messages().collect();
    messages.sort_by(|a, b| a.full_name().cmp(b.full_name()));
    write(&out.join("schema.rs"), &schema(&messages)?)?;
    write(&out.join("encode.rs"), &encode(&messages)?)?;
    Ok(())
}

fn write(path: &Path, text: &str) -> std::io::Result<()> {
    std::fs::write(path, text)
}

/// The table: message → field number → kind, place among the repeated fields, size in memory.
fn schema(messages: &[MessageDescriptor]) -> Result<String, Box<dyn std::error::Error>> {
    let index = |m: &MessageDescriptor| messages.iter().position(|x| x == m).ok_or("a message outside the schema");
    let mut text = String::new();
    let mut most_repeated = 0;
    writeln!(text, "pub(super) static MESSAGES: [Message; {}] = [", messages.len())?;
    for message in messages {
        writeln!(text, "Message {{ size: size_of::<{}>(), fields: &[", rust_type(message))?;
        if message.oneofs().len() > 1 {
            return Err(format!("{}: the walker knows one oneof to a message", message.full_name()).into());
        }
        let fields = by_number(message);
        let mut repeated = 0;
        for number in 0..=fields.last().map_or(0, FieldDescriptor::number) {
            let Some(field) = fields.iter().find(|f| f.number() == number) else {
                writeln!(text, "None,")?;
                continue;
            };
            let (kind, size) = match field.kind() {
                Kind::Int32 | Kind::Enum(_) => ("Varint".into(), "4".into()),
                Kind::Int64 | Kind::Uint64 => ("Varint".into(), "8".into()),
                Kind::Float => ("Fixed32".into(), "4".into()),
                Kind::Double => ("Fixed64".into(), "8".into()),
                Kind::String => ("Text".into(), "size_of::<String>()".into()),
                Kind::Bytes => ("Bytes".into(), "size_of::<Bytes>()".into()),
                Kind::Message(m) => (format!("Message({})", index(&m)?), format!("size_of::<{}>()", rust_type(&m))),
                other => return Err(format!("{}: no rule for {other:?}", field.full_name()).into()),
            };
            let slot = match field.cardinality() {
                Cardinality::Repeated => {
                    repeated += 1;
                    format!("Some({})", repeated - 1)
                }
                _ => "None".into(),
            };
            writeln!(
                text,
                "Some(Field {{ name: {:?}, kind: Kind::{kind}, repeated: {slot}, oneof: {}, size: {size} }}),",
                field.name(),
                field.containing_oneof().is_some()
            )?;
        }
        writeln!(text, "] }},")?;
        most_repeated = most_repeated.max(repeated);
    }
    writeln!(text, "];")?;
    writeln!(text, "/// The most repeated fields one message has.")?;
    writeln!(text, "pub(super) const REPEATED: usize = {most_repeated};")?;
    let model = messages.iter().position(|m| m.name() == "ModelProto").ok_or("no ModelProto")?;
    writeln!(text, "/// Where the table holds ModelProto.")?;
    writeln!(text, "pub(super) const MODEL: u16 = {model};")?;
    Ok(text)
}

/// For each message, its present fields in ascending order of number, which is the order every serializer writes.
fn encode(messages: &[MessageDescriptor]) -> Result<String, Box<dyn std::error::Error>> {
    let mut text = String::new();
    for message in messages {
        writeln!(text, "impl Put for {} {{ fn put<S: Sink>(&self, sink: &mut S) {{", rust_type(message))?;
        for field in by_number(message) {
            let number = field.number();
            let name = rust_field(field.name());
            let put = match field.kind() {
                Kind::String => format!("text(sink, {number}, v)"),
                Kind::Bytes => format!("payload(sink, {number}, v)"),
                Kind::Message(_) if field.is_list() => format!("v.put_in(sink, {number}, i)"),
                Kind::Message(_) => format!("v.put_in(sink, {number}, 0)"),
                _ => format!("scalar(sink, {number}, *v)"),
            };
            if message.name() == "GraphProto" && matches!(field.name(), "node" | "value_info") {
                // Of the main graph they may be no messages.
                writeln!(text, "sink.apart({number});")?;
            }
            if let Some(oneof) = field.containing_oneof() {
                let variant =
                    format!("{}::{}::{}", module(message, message.name()), camel(oneof.name()), camel(field.name()));
                writeln!(text, "if let Some({variant}(v)) = &self.{} {{ {put} }}", rust_field(oneof.name()))?;
            } else if field.is_list() && field.is_packed() {
                writeln!(text, "packed(sink, {number}, &self.{name});")?;
            } else if field.is_list() && matches!(field.kind(), Kind::Message(_)) {
                writeln!(text, "for (i, v) in (0u32..).zip(&self.{name}) {{ {put} }}")?;
            } else if field.is_list() {
                writeln!(text, "for v in &self.{name} {{ {put} }}")?;
            } else {
                writeln!(text, "if let Some(v) = &self.{name} {{ {put} }}")?;
            }
        }
        writeln!(text, "}} }}")?;
    }
    Ok(text)
}

fn by_number(message: &MessageDescriptor) -> Vec<FieldDescriptor> {
    let mut fields: Vec<FieldDescriptor> = message.fields().collect();
    fields.sort_by_key(FieldDescriptor::number);
    fields
}

/// `proto::type_proto::Tensor`: where prost puts a message.
fn rust_type(message: &MessageDescriptor) -> String {
    match message.parent_message() {
        Some(parent) => format!("{}::{}", module(&parent, parent.name()), message.name()),
        None => format!("proto::{}", message.name()),
    }
}

/// The module that prost creates for nested messages.
fn module(message: &MessageDescriptor, name: &str) -> String {
    let outer = message.parent_message().map_or_else(|| "proto".into(), |m| module(&m, m.name()));
    format!("{outer}::{}", snake(name))
}

fn rust_field(name: &str) -> String {
    if name == "type" { "r#type".into() } else { name.into() }
}

/// `TypeProto` → `type_proto`.
fn snake(name: &str) -> String {
    let mut text = String::new();
    for c in name.chars() {
        if c.is_ascii_uppercase() && !text.is_empty() {
            text.push('_');
        }
        text.push(c.to_ascii_lowercase());
    }
    text
}

/// `tensor_type` → `TensorType`.
fn camel(name: &str) -> String {
    name.split('_').map(|word| word[..1].to_ascii_uppercase() + &word[1..]).collect()
}
