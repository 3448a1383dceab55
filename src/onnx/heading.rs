//! Prints the properties of the model as a whole, as entries of the ONNX text syntax.

use prost::Message as _;

use super::proto::ModelProto;
use crate::ir::Model;
use crate::ir::text::quote_plainly;

/// Returns the name and the version of the program that wrote the model, as the file declares them.
pub fn producer(model: &Model) -> (String, String) {
    let said = ModelProto::decode(model.extra.clone()).unwrap_or_default();
    (said.producer_name.unwrap_or_default(), said.producer_version.unwrap_or_default())
}

/// Returns the present keys and their values in the form and order of the text syntax.
pub fn heading(model: &Model) -> Vec<(&'static str, String)> {
    // This program encoded the bytes at import, so they decode. Undecodable bytes are not shown.
    let Ok(said) = ModelProto::decode(model.extra.clone()) else { return Vec::new() };
    let text = |key, text: Option<String>| text.map(|text| (key, quote_plainly(text.as_bytes())));
    let mut entries: Vec<(&'static str, String)> = Vec::new();
    entries.extend(text("producer_name", said.producer_name));
    entries.extend(text("producer_version", said.producer_version));
    entries.extend(text("domain", said.domain));
    entries.extend(said.model_version.map(|version| ("model_version", version.to_string())));
    entries.extend(text("doc_string", said.doc_string));
    if !said.metadata_props.is_empty() {
        let quoted = |text: &Option<String>| quote_plainly(text.as_deref().unwrap_or_default().as_bytes());
        let pairs = said.metadata_props.iter().map(|entry| format!("{}: {}", quoted(&entry.key), quoted(&entry.value)));
        entries.push(("metadata_props", format!("[{}]", pairs.collect::<Vec<_>>().join(", "))));
    }
    entries
}
