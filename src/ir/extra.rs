//! Merges and edits documentation and metadata in the kept wire bytes of nodes and of the model.
//!
//! The bytes were a complete message when the file was read. If they cannot be decoded here, they are kept unchanged.

use super::Extra;
use super::fields::{Field, fields};

/// The field numbers of a `NodeProto`.
const NODE_DOC: u64 = 6;
const NODE_METADATA: u64 = 9;
/// The field number of a `ModelProto`.
const MODEL_METADATA: u64 = 14;
/// The limit in bytes for merged texts of one key.
const LONGEST: usize = 4096;

/// Returns the fields of a message; `None` if the bytes are not a message.
fn all_fields(message: &[u8]) -> Option<Vec<Field<'_>>> {
    fields(message).collect()
}

fn put_varint(to: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        to.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    to.push(value as u8);
}

fn put(to: &mut Vec<u8>, number: u64, content: &[u8]) {
    put_varint(to, number << 3 | 2);
    put_varint(to, content.len() as u64);
    to.extend_from_slice(content);
}

fn entry(key: &[u8], value: &[u8]) -> Vec<u8> {
    let mut entry = Vec::new();
    put(&mut entry, 1, key);
    put(&mut entry, 2, value);
    entry
}

/// Returns key and value of a metadata entry.
fn pair(content: &[u8]) -> Option<(&[u8], &[u8])> {
    let fields = all_fields(content)?;
    let text = |number: u64| fields.iter().rev().find(|field| field.number == number).and_then(|field| field.content);
    Some((text(1).unwrap_or_default(), text(2).unwrap_or_default()))
}

/// Appends a text as a new line, unless the texts contain it or would exceed the limit.
fn join(texts: &mut Vec<u8>, text: &[u8]) {
    let known = text.is_empty() || texts.windows(text.len()).any(|part| part == text);
    if texts.is_empty() {
        texts.extend_from_slice(text);
    } else if !known && texts.len().saturating_add(text.len()) <= LONGEST {
        texts.push(b'\n');
        texts.extend_from_slice(text);
    }
}

/// Merges documentation and metadata of several nodes: each key once, with differing values on separate lines.
pub(super) fn merged<'e>(extras: impl IntoIterator<Item = &'e Extra>) -> Extra {
    let (mut doc, mut entries) = (Vec::new(), Vec::<(Vec<u8>, Vec<u8>)>::new());
    for extra in extras {
        for field in all_fields(extra).unwrap_or_default() {
            match (field.number, field.content) {
                (NODE_DOC, Some(text)) => join(&mut doc, text),
                (NODE_METADATA, Some(content)) => {
                    let Some((key, value)) = pair(content) else { continue };
                    match entries.iter_mut().find(|(own, _)| own == key) {
                        Some((_, values)) => join(values, value),
                        None => entries.push((key.to_vec(), value.to_vec())),
                    }
                }
                _ => {}
            }
        }
    }
    let mut merged = Vec::new();
    if !doc.is_empty() {
        put(&mut merged, NODE_DOC, &doc);
    }
    for (key, value) in entries {
        put(&mut merged, NODE_METADATA, &entry(&key, &value));
    }
    merged.into()
}

/// Removes documentation and metadata from a node's bytes.
pub(super) fn without_texts(extra: &Extra) -> Extra {
    let Some(fields) = all_fields(extra) else { return extra.clone() };
    let others = fields.iter().filter(|field| !matches!(field.number, NODE_DOC | NODE_METADATA));
    others.flat_map(|field| field.whole).copied().collect::<Vec<u8>>().into()
}

/// Sets a metadata entry in a model's bytes, or removes it if `value` is `None`.
pub(super) fn with_metadata(extra: &Extra, key: &str, value: Option<&str>) -> Extra {
    let Some(fields) = all_fields(extra) else { return extra.clone() };
    let is_own = |field: &Field<'_>| {
        let pair = field.content.filter(|_| field.number == MODEL_METADATA).and_then(pair);
        pair.is_some_and(|(own, _)| own == key.as_bytes())
    };
    let own = value.map(|value| entry(key.as_bytes(), value.as_bytes()));
    let mut bytes = Vec::with_capacity(extra.len().saturating_add(own.as_ref().map_or(0, Vec::len)));
    let mut placed = own.is_none();
    for field in &fields {
        match (is_own(field), placed) {
            (false, _) => bytes.extend_from_slice(field.whole),
            (true, false) => put(&mut bytes, MODEL_METADATA, own.as_deref().unwrap_or_default()),
            (true, true) => {}
        }
        placed |= is_own(field);
    }
    if let Some(own) = own.filter(|_| !placed) {
        put(&mut bytes, MODEL_METADATA, &own);
    }
    bytes.into()
}

/// Returns the text of a metadata entry of a model.
pub(super) fn metadata(extra: &Extra, key: &str) -> Option<String> {
    let fields = all_fields(extra)?;
    let mut pairs =
        fields.iter().filter(|field| field.number == MODEL_METADATA).filter_map(|field| pair(field.content?));
    let (_, value) = pairs.find(|(own, _)| *own == key.as_bytes())?;
    Some(std::str::from_utf8(value).ok()?.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(doc: &str, metadata: &[(&str, &str)]) -> Extra {
        let mut bytes = Vec::new();
        if !doc.is_empty() {
            put(&mut bytes, NODE_DOC, doc.as_bytes());
        }
        for (key, value) in metadata {
            put(&mut bytes, NODE_METADATA, &entry(key.as_bytes(), value.as_bytes()));
        }
        bytes.into()
    }

    #[test]
    fn metadata_of_nodes_is_merged() {
        let (a, b) = (
            node("first", &[("layer", "1"), ("line", "7")]),
            node("second", &[("line", "9"), ("layer", "1"), ("x", "")]),
        );
        assert_eq!(merged([&a, &b, &a]), node("first\nsecond", &[("layer", "1"), ("line", "7\n9"), ("x", "")]));
        assert_eq!(merged([&a]), a);
        assert!(merged([&Extra::new()]).is_empty() && merged([]).is_empty());
        let long = "z".repeat(LONGEST);
        assert_eq!(merged([&a, &node(&long, &[])]), a);
        // An invalid message, a group, and a device configuration, which belongs to one node only.
        for other in [&b"\x0b"[..], b"\x32\x7f", b"\x52\x00"] {
            assert_eq!(merged([&a, &Extra::from_static(other)]), a);
        }
    }

    #[test]
    fn texts_of_a_node_can_be_removed() {
        let mut both = node("first", &[("layer", "1")]).to_vec();
        both.extend_from_slice(b"\x52\x00");
        assert_eq!(without_texts(&both.into()), Extra::from_static(b"\x52\x00"));
    }

    #[test]
    fn a_model_has_one_entry_of_a_key() {
        let mut model = Vec::new();
        put(&mut model, 2, b"exporter");
        for (key, value) in [("a", "1"), ("b", "2"), ("a", "3")] {
            put(&mut model, MODEL_METADATA, &entry(key.as_bytes(), value.as_bytes()));
        }
        let once = with_metadata(&model.clone().into(), "a", Some("4"));
        let again = with_metadata(&once, "a", Some("4"));
        assert_eq!(once, again);
        let metadata = |extra: &Extra| {
            let held: Vec<_> = all_fields(extra)
                .unwrap()
                .iter()
                .filter(|f| f.number == MODEL_METADATA)
                .filter_map(|f| f.content.and_then(pair))
                .map(|(k, v)| (k.to_vec(), v.to_vec()))
                .collect();
            held
        };
        assert_eq!(metadata(&once), [(b"a".to_vec(), b"4".to_vec()), (b"b".to_vec(), b"2".to_vec())]);
        assert_eq!(metadata(&with_metadata(&once, "c", Some("5"))).len(), 3);
        assert!(once.starts_with(b"\x12\x08exporter"));
    }
}
