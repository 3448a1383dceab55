//! Keeps messages as wire bytes, with their unknown fields at their original messages.

use prost::encoding::{WireType, decode_key, decode_varint, encode_key, encode_varint};
use rustc_hash::FxHashMap;

use super::schema::{self, Kind, MODEL};
use super::wire::{Descent, UnknownFields};
use crate::ir::Extra;

/// Inserts unknown fields into the encoded message at `path` and its nested messages, after the known fields. Earlier
/// removals from the message removed whole fields, so the indices of the others match the file.
pub(super) fn with_unknown(encoded: Vec<u8>, unknown: &UnknownFields, path: &[Descent]) -> Extra {
    let place = path.iter().try_fold(MODEL, |place, step| match schema::message(place).field(step.field)?.kind {
        Kind::Message(inner) => Some(inner),
        _ => None,
    });
    let mut made = Vec::with_capacity(encoded.len());
    match place.and_then(|place| spliced(&encoded, place, unknown, &mut path.to_vec(), &mut made)) {
        Some(()) => made.into(),
        None => [encoded, unknown.at(path).concat()].concat().into(),
    }
}

/// Returns `None` if the bytes are not such a message. The decoder bounds the recursion depth.
fn spliced(
    bytes: &[u8],
    place: u16,
    unknown: &UnknownFields,
    path: &mut Vec<Descent>,
    made: &mut Vec<u8>,
) -> Option<()> {
    let mut left = bytes;
    let mut met: FxHashMap<u32, u32> = FxHashMap::default();
    while !left.is_empty() {
        let field = left;
        let (number, wire) = decode_key(&mut left).ok()?;
        match wire {
            WireType::Varint => {
                decode_varint(&mut left).ok()?;
            }
            WireType::SixtyFourBit => left = left.get(8..)?,
            WireType::ThirtyTwoBit => left = left.get(4..)?,
            WireType::LengthDelimited => {
                let length = usize::try_from(decode_varint(&mut left).ok()?).ok()?;
                let payload = left.get(..length)?;
                left = left.get(length..)?;
                if let Some(Kind::Message(inner)) = schema::message(place).field(number).map(|field| field.kind) {
                    let index = met.entry(number).or_default();
                    path.push(Descent { field: number, index: *index });
                    *index = index.saturating_add(1);
                    let mut whole = Vec::with_capacity(payload.len());
                    spliced(payload, inner, unknown, path, &mut whole)?;
                    path.pop();
                    encode_key(number, wire, made);
                    encode_varint(u64::try_from(whole.len()).ok()?, made);
                    made.append(&mut whole);
                    continue;
                }
            }
            WireType::StartGroup | WireType::EndGroup => return None,
        }
        made.extend_from_slice(field.get(..field.len().checked_sub(left.len())?)?);
    }
    unknown.at(path).iter().for_each(|piece| made.extend_from_slice(piece));
    Some(())
}
