//! Walks over a model's bytes before they are decoded.
//!
//! One pass skips payloads, keeps its own stack and checks:
//!
//! * All fields are complete and of the schema's type. An error contains the place: `graph.node[12].attribute[0].t`.
//! * The memory of the decoded messages is bounded. Two bytes on the wire can be an empty message of several hundred
//!   bytes in memory, so a small file could need any amount.
//! * Fields that the schema does not define are recorded with their message, and written back.
//!
//! The walk follows protobuf's rules for repeated occurrences: repeated fields continue, parts of one message merge.
//! The index in a path therefore equals the index in the decoded message.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use bytes::Bytes;
use thiserror::Error;

use super::schema::{self, Field, Kind, MODEL, Message, REPEATED};

/// The resource limits of a model.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The largest depth of messages and unknown groups. prost's own limit is 100; larger values have no effect.
    pub depth: usize,
    /// The memory in bytes that the decoded messages of every file may use.
    pub memory: u64,
    /// The additional memory in bytes per byte of the file.
    pub memory_per_byte: u64,
    /// The memory in bytes that the decoded messages of no file may exceed.
    pub memory_at_most: u64,
}

impl Default for Limits {
    fn default() -> Self {
        // Messages need half of the memory with 32-bit addresses. Limits in words reject the same files on all
        // platforms.
        const WORD: u64 = size_of::<usize>() as u64;
        Limits { depth: 100, memory: (8 << 20) * WORD, memory_per_byte: 8 * WORD, memory_at_most: 16 << 30 }
    }
}

/// A step from a message to a nested message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Descent {
    /// The number of the field.
    pub field: u32,
    /// The index of the element in a repeated field; 0 in other fields.
    pub index: u32,
}

/// Fields that the schema does not define, by the path of their message.
///
/// A path is the list of steps from the model; the model's own path is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnknownFields {
    at: BTreeMap<Vec<Descent>, Vec<Bytes>>,
}

impl UnknownFields {
    /// Returns `true` if there are no unknown fields, so that no path is needed.
    pub fn is_empty(&self) -> bool {
        self.at.is_empty()
    }

    /// Returns the unknown fields of a message: whole fields with tags, in file order, in one or more pieces.
    pub fn at(&self, path: &[Descent]) -> &[Bytes] {
        self.at.get(path).map_or(&[], Vec::as_slice)
    }

    /// Adds whole fields to the message at `path`. They are written unchanged.
    pub fn add(&mut self, path: &[Descent], fields: impl IntoIterator<Item = Bytes>) {
        let mut fields = fields.into_iter().filter(|piece| !piece.is_empty()).peekable();
        if fields.peek().is_some() {
            self.at.entry(path.to_vec()).or_default().extend(fields);
        }
    }

    /// Returns all unknown fields, in the order of their paths.
    pub fn iter(&self) -> impl Iterator<Item = (&[Descent], &[Bytes])> {
        self.at.iter().map(|(path, pieces)| (path.as_slice(), pieces.as_slice()))
    }
}

/// An error for bytes that are not a model or exceed a limit.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{place}: {problem} at byte {offset}")]
pub struct WireError {
    /// The faulty message, such as `graph.node[12].attribute[0].t`; `model` for the outermost.
    pub place: String,
    /// The position of the field in the file.
    pub offset: u64,
    /// The reason.
    pub problem: Problem,
}

/// The reason why the bytes of a message are rejected.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Problem {
    #[error("the tag of a field is truncated")]
    TruncatedTag,
    #[error("the tag of a field is invalid")]
    BadTag,
    #[error("{0} is truncated")]
    Truncated(FieldName),
    #[error("{0} has a varint of more than 64 bits")]
    LongVarint(FieldName),
    #[error("{field} has wire type {found}, which does not fit its type")]
    WireType { field: FieldName, found: u8 },
    #[error("{field} packs elements of {width} bytes into {len} bytes")]
    PackedLength { field: FieldName, width: u64, len: u64 },
    #[error("{0} is not UTF-8")]
    NotUtf8(FieldName),
    #[error("group {0} ends without a start")]
    StrayGroupEnd(u32),
    #[error("group {0} does not end")]
    OpenGroup(u32),
    #[error("nested deeper than {0} levels")]
    TooDeep(usize),
    #[error("{field}: decoding needs more than {limit} bytes of memory for a file of {file} bytes,")]
    TooLarge { field: FieldName, limit: u64, file: u64 },
}

/// A field in messages: `field 9 (raw_data)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldName {
    /// The number on the wire.
    pub number: u32,
    /// The standard's name, if the schema defines the number.
    pub name: Option<&'static str>,
}

impl fmt::Display for FieldName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name {
            Some(name) => write!(f, "field {} ({name})", self.number),
            None => write!(f, "field {}", self.number),
        }
    }
}

/// Walks over a whole model. Returns the fields that the schema does not define.
///
/// # Errors
/// The first place with malformed bytes, or that exceeds `limits`.
pub fn walk(file: &Bytes, limits: &Limits) -> Result<UnknownFields, WireError> {
    let mut census = Walk::new(file, limits, false);
    census.run()?;
    if census.unknown.is_none() {
        return Ok(UnknownFields::default());
    }
    // Unknown fields are rare, and paths in merged messages are costly to track; so only a second walk tracks them.
    let mut keep = Walk::new(file, limits, true);
    keep.run()?;
    let pieces = |ranges: Vec<Range<usize>>| ranges.into_iter().map(|range| file.slice(range)).collect();
    Ok(UnknownFields { at: keep.kept.into_iter().map(|(path, ranges)| (path, pieces(ranges))).collect() })
}

/// A message that is being walked.
struct Frame {
    message: &'static Message,
    /// The step from the enclosing message.
    step: Descent,
    /// The end of its bytes.
    end: usize,
    tally: Tally,
}

/// The number of elements so far in the repeated fields of a message.
#[derive(Default)]
struct Tally {
    counts: [u32; REPEATED],
    /// The tallies of its singular messages, by field number: such a message may continue later.
    inner: Vec<(u32, Tally)>,
}

struct Walk<'a> {
    file: &'a [u8],
    limits: Limits,
    /// The current position, at most the end of the innermost frame.
    at: usize,
    /// The begin of the last tag, for errors.
    tag_at: usize,
    stack: Vec<Frame>,
    memory: u64,
    memory_limit: u64,
    /// The end of the last unknown field, if any.
    unknown: Option<usize>,
    /// `true` if `kept` is filled.
    keep: bool,
    kept: BTreeMap<Vec<Descent>, Vec<Range<usize>>>,
}

/// The reason why a varint or a length is unreadable.
enum Fault {
    Truncated,
    Long,
}

impl Fault {
    fn of(self, field: FieldName) -> Problem {
        match self {
            Fault::Truncated => Problem::Truncated(field),
            Fault::Long => Problem::LongVarint(field),
        }
    }
}

impl<'a> Walk<'a> {
    fn new(file: &'a [u8], limits: &Limits, keep: bool) -> Self {
        let len = u64::try_from(file.len()).unwrap_or(u64::MAX);
        let memory_limit =
            limits.memory.saturating_add(limits.memory_per_byte.saturating_mul(len)).min(limits.memory_at_most);
        let root = Frame {
            message: schema::message(MODEL),
            step: Descent { field: 0, index: 0 },
            end: file.len(),
            tally: Tally::default(),
        };
        Walk {
            file,
            limits: *limits,
            at: 0,
            tag_at: 0,
            stack: vec![root],
            memory: 0,
            memory_limit,
            unknown: None,
            keep,
            kept: BTreeMap::new(),
        }
    }

    fn run(&mut self) -> Result<(), WireError> {
        while let Some(top) = self.stack.last() {
            if self.at >= top.end {
                self.leave();
                continue;
            }
            let (message, end) = (top.message, top.end);
            self.field(message, end).map_err(|problem| self.error(problem))?;
        }
        Ok(())
    }

    /// Walks over a field of the innermost message.
    fn field(&mut self, message: &'static Message, end: usize) -> Result<(), Problem> {
        let start = self.at;
        let (number, wire) = self.tag(end)?;
        let Some(field) = message.field(number) else {
            return self.skip_unknown(number, wire, start, end);
        };
        let name = FieldName { number, name: Some(field.name) };
        match (field.kind, wire) {
            (Kind::Varint, 0) => {
                self.varint(end).map_err(|fault| fault.of(name))?;
                self.hold_elements(field, number, 1)
            }
            (Kind::Fixed32, 5) => {
                self.skip(4, end).map_err(|fault| fault.of(name))?;
                self.hold_elements(field, number, 1)
            }
            (Kind::Fixed64, 1) => {
                self.skip(8, end).map_err(|fault| fault.of(name))?;
                self.hold_elements(field, number, 1)
            }
            (Kind::Varint | Kind::Fixed32 | Kind::Fixed64, 2) if field.repeated.is_some() => {
                let packed = self.length(end).map_err(|fault| fault.of(name))?;
                let elements = match field.kind {
                    Kind::Varint => self.packed_varints(packed.clone()).map_err(|fault| fault.of(name))?,
                    Kind::Fixed32 => fixed(&packed, 4, name)?,
                    _ => fixed(&packed, 8, name)?,
                };
                self.at = packed.end;
                self.hold_elements(field, number, elements)
            }
            (Kind::Text, 2) => {
                let text = self.length(end).map_err(|fault| fault.of(name))?;
                let bytes = self.file.get(text.clone()).unwrap_or_default();
                if std::str::from_utf8(bytes).is_err() {
                    return Err(Problem::NotUtf8(name));
                }
                self.at = text.end;
                self.hold_elements(field, number, 1)?;
                // The text is copied; each allocation has a fixed cost.
                if text.is_empty() { Ok(()) } else { self.hold(as_u64(text.len()).saturating_add(16), name) }
            }
            (Kind::Bytes, 2) => {
                self.at = self.length(end).map_err(|fault| fault.of(name))?.end;
                self.hold_elements(field, number, 1)
            }
            (Kind::Message(place), 2) => {
                let inner = self.length(end).map_err(|fault| fault.of(name))?;
                self.enter(field, number, schema::message(place), inner)
            }
            (_, found) => Err(Problem::WireType { field: name, found }),
        }
    }

    fn enter(
        &mut self,
        field: &Field,
        number: u32,
        message: &'static Message,
        inner: Range<usize>,
    ) -> Result<(), Problem> {
        if self.stack.len() > self.limits.depth {
            return Err(Problem::TooDeep(self.limits.depth));
        }
        let index = match (field.repeated, self.stack.last()) {
            (Some(slot), Some(parent)) => parent.tally.counts.get(usize::from(slot)).copied().unwrap_or(0),
            _ => 0,
        };
        self.hold_elements(field, number, 1)?;
        if field.repeated.is_none() {
            self.hold(as_u64(message.size), FieldName { number, name: Some(field.name) })?;
        }
        let mut tally = Tally::default();
        if self.keep && field.repeated.is_none() {
            if field.oneof {
                self.forget_others(number);
            }
            let known = self.stack.last_mut().map(|parent| &mut parent.tally.inner);
            if let Some((_, earlier)) = known.and_then(|inner| inner.iter_mut().find(|(n, _)| *n == number)) {
                tally = std::mem::take(earlier);
            }
        }
        self.at = inner.start;
        self.stack.push(Frame { message, step: Descent { field: number, index }, end: inner.end, tally });
        Ok(())
    }

    /// In a oneof, the last message counts; removes the unknown fields of earlier ones of another kind.
    fn forget_others(&mut self, number: u32) {
        let mut path: Vec<Descent> = self.stack.iter().skip(1).map(|frame| frame.step).collect();
        let Some(parent) = self.stack.last_mut() else { return };
        let message = parent.message;
        let gone = |n: u32| n != number && message.field(n).is_some_and(|field| field.oneof);
        for (n, _) in parent.tally.inner.extract_if(.., |(n, _)| gone(*n)) {
            path.push(Descent { field: n, index: 0 });
            let inside = self.kept.range(path.clone()..).map(|(key, _)| key).take_while(|key| key.starts_with(&path));
            for key in inside.cloned().collect::<Vec<_>>() {
                self.kept.remove(&key);
            }
            path.pop();
        }
    }

    fn leave(&mut self) {
        let Some(done) = self.stack.pop() else { return };
        let Some(parent) = self.stack.last_mut() else { return };
        let number = done.step.field;
        let singular = parent.message.field(number).is_some_and(|field| field.repeated.is_none());
        if self.keep && singular {
            match parent.tally.inner.iter_mut().find(|(n, _)| *n == number) {
                Some((_, tally)) => *tally = done.tally,
                None => parent.tally.inner.push((number, done.tally)),
            }
        }
    }

    /// Skips an unknown field, including its groups, and records it.
    fn skip_unknown(&mut self, number: u32, wire: u8, start: usize, end: usize) -> Result<(), Problem> {
        let mut open: Vec<u32> = Vec::new();
        let (mut number, mut wire) = (number, wire);
        loop {
            // prost counts one level per group, and one for the field in it.
            if self.stack.len().saturating_add(open.len()) > self.limits.depth {
                return Err(Problem::TooDeep(self.limits.depth));
            }
            let name = FieldName { number, name: None };
            match wire {
                0 => drop(self.varint(end).map_err(|fault| fault.of(name))?),
                1 => self.skip(8, end).map_err(|fault| fault.of(name))?,
                2 => self.at = self.length(end).map_err(|fault| fault.of(name))?.end,
                5 => self.skip(4, end).map_err(|fault| fault.of(name))?,
                3 => open.push(number),
                _ => return Err(Problem::StrayGroupEnd(number)),
            }
            // Skips ends of groups up to the next field of the innermost open group.
            loop {
                let Some(group) = open.last().copied() else {
                    return self.remember(start);
                };
                if self.at >= end {
                    return Err(Problem::OpenGroup(group));
                }
                (number, wire) = self.tag(end)?;
                if wire != 4 {
                    break;
                }
                if number != group {
                    return Err(Problem::StrayGroupEnd(number));
                }
                open.pop();
            }
        }
    }

    /// Records the unknown field from `start` to the current position.
    fn remember(&mut self, start: usize) -> Result<(), Problem> {
        // Adjacent fields share a slice. Any other field costs a slice, and at worst a path and a map entry.
        if self.unknown.replace(self.at) != Some(start) {
            let cost = as_u64(self.stack.len()).saturating_mul(8).saturating_add(192);
            self.hold(cost, FieldName { number: 0, name: Some("unknown") })?;
        }
        if self.keep {
            let path = self.stack.iter().skip(1).map(|frame| frame.step).collect();
            let ranges: &mut Vec<Range<usize>> = self.kept.entry(path).or_default();
            match ranges.last_mut() {
                Some(last) if last.end == start => last.end = self.at,
                _ => ranges.push(start..self.at),
            }
        }
        Ok(())
    }

    /// Counts elements of a field. A vector starts with room for four and doubles.
    fn hold_elements(&mut self, field: &Field, number: u32, elements: u64) -> Result<(), Problem> {
        let Some(slot) = field.repeated else { return Ok(()) };
        let count = self.stack.last_mut().and_then(|top| top.tally.counts.get_mut(usize::from(slot)));
        let Some(count) = count else { return Ok(()) };
        let before = u64::from(*count);
        let after = before.saturating_add(elements);
        *count = u32::try_from(after).unwrap_or(u32::MAX);
        let room = |n: u64| if n == 0 { 0 } else { n.checked_next_power_of_two().unwrap_or(u64::MAX).max(4) };
        let more = room(after).saturating_sub(room(before));
        if more == 0 {
            return Ok(());
        }
        self.hold(more.saturating_mul(as_u64(field.size)), FieldName { number, name: Some(field.name) })
    }

    fn hold(&mut self, bytes: u64, field: FieldName) -> Result<(), Problem> {
        self.memory = self.memory.saturating_add(bytes);
        if self.memory > self.memory_limit {
            return Err(Problem::TooLarge { field, limit: self.memory_limit, file: as_u64(self.file.len()) });
        }
        Ok(())
    }

    fn tag(&mut self, end: usize) -> Result<(u32, u8), Problem> {
        self.tag_at = self.at;
        let key = self.varint(end).map_err(|fault| match fault {
            Fault::Truncated => Problem::TruncatedTag,
            Fault::Long => Problem::BadTag,
        })?;
        let key = u32::try_from(key).map_err(|_| Problem::BadTag)?;
        let (number, wire) = (key >> 3, (key & 7) as u8);
        if number == 0 || wire > 5 { Err(Problem::BadTag) } else { Ok((number, wire)) }
    }

    fn varint(&mut self, end: usize) -> Result<u64, Fault> {
        let bytes = self.file.get(self.at..end).unwrap_or_default();
        let mut value = 0;
        for (place, &byte) in bytes.iter().enumerate().take(10) {
            // The tenth byte can only contribute one bit.
            if place == 9 && byte > 1 {
                return Err(Fault::Long);
            }
            value |= u64::from(byte & 0x7f) << (7 * place);
            if byte < 0x80 {
                self.at = self.at.saturating_add(place + 1);
                return Ok(value);
            }
        }
        Err(Fault::Truncated)
    }

    /// Reads a length and returns the range that it covers, without skipping the range.
    fn length(&mut self, end: usize) -> Result<Range<usize>, Fault> {
        let len = self.varint(end)?;
        let stop = usize::try_from(len).ok().and_then(|len| self.at.checked_add(len)).filter(|stop| *stop <= end);
        Ok(self.at..stop.ok_or(Fault::Truncated)?)
    }

    fn skip(&mut self, len: usize, end: usize) -> Result<(), Fault> {
        self.at = self.at.checked_add(len).filter(|stop| *stop <= end).ok_or(Fault::Truncated)?;
        Ok(())
    }

    /// Counts the varints that fill a range exactly.
    fn packed_varints(&mut self, packed: Range<usize>) -> Result<u64, Fault> {
        let mut elements = 0u64;
        self.at = packed.start;
        while self.at < packed.end {
            // Skips eight one-byte elements at a time, the size of small integers.
            let word = self.file.get(self.at..packed.end).and_then(|rest| rest.first_chunk::<8>());
            if word.is_some_and(|word| u64::from_ne_bytes(*word) & 0x8080_8080_8080_8080 == 0) {
                self.at += 8;
                elements = elements.saturating_add(8);
            } else {
                self.varint(packed.end)?;
                elements = elements.saturating_add(1);
            }
        }
        Ok(elements)
    }

    #[cold]
    fn error(&self, problem: Problem) -> WireError {
        let mut place = String::new();
        for (outer, inner) in self.stack.iter().zip(self.stack.iter().skip(1)) {
            if !place.is_empty() {
                place.push('.');
            }
            if let Some(field) = outer.message.field(inner.step.field) {
                place.push_str(field.name);
                if field.repeated.is_some() {
                    place.push_str(&format!("[{}]", inner.step.index));
                }
            }
        }
        if place.is_empty() {
            place.push_str("model");
        }
        WireError { place, offset: as_u64(self.tag_at), problem }
    }
}

/// Counts the elements of `width` bytes in a range.
fn fixed(packed: &Range<usize>, width: u64, field: FieldName) -> Result<u64, Problem> {
    let len = as_u64(packed.len());
    if len.is_multiple_of(width) { Ok(len / width) } else { Err(Problem::PackedLength { field, width, len }) }
}

fn as_u64(n: usize) -> u64 {
    u64::try_from(n).unwrap_or(u64::MAX)
}

#[cfg(test)]
pub(super) mod tests;
