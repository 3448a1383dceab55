//! The wire schema as a table, made by build.rs from `proto/onnx.proto`.

use bytes::Bytes;

use super::proto;

/// One message type.
pub(super) struct Message {
    /// Bytes the decoded message takes in memory, without what it points to.
    pub size: usize,
    /// By field number.
    fields: &'static [Option<Field>],
}

/// One field of a message.
pub(super) struct Field {
    pub name: &'static str,
    pub kind: Kind,
    /// The place among the repeated fields of its message, if it is one.
    pub repeated: Option<u8>,
    /// Whether it excludes the other fields of its message that say so.
    pub oneof: bool,
    /// Bytes one decoded element takes in memory, without what it points to.
    pub size: usize,
}

/// What a field holds, as far as the wire can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Varint,
    Fixed32,
    Fixed64,
    Text,
    Bytes,
    /// The place of the message in [`MESSAGES`].
    Message(u16),
}

impl Message {
    pub fn field(&self, number: u32) -> Option<&Field> {
        self.fields.get(usize::try_from(number).ok()?)?.as_ref()
    }
}

/// The message at a place that the table itself gave.
#[allow(clippy::indexing_slicing, reason = "build.rs writes the table and every place in it")]
pub(super) fn message(place: u16) -> &'static Message {
    &MESSAGES[usize::from(place)]
}

include!(concat!(env!("OUT_DIR"), "/schema.rs"));
