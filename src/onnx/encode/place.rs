//! Where in a model the message is that is being written, and what goes there that the message does not have.

use bytes::Bytes;

use super::DeferredPayloads;
use crate::onnx::wire::{Descent, UnknownFields};
use crate::tensor::Tensor;

/// What goes to messages by their paths, in the order of these, which is the order in which the messages open.
struct Addressed<'a, T: ?Sized> {
    all: Vec<(&'a [Descent], &'a T)>,
    /// The first for a message that has not been opened yet.
    next: usize,
    /// For open messages: how deep each lies, and what goes there.
    open: Vec<(usize, &'a T)>,
}

impl<'a, T: ?Sized> Addressed<'a, T> {
    fn new(all: Vec<(&'a [Descent], &'a T)>) -> Self {
        Addressed { all, next: 0, open: Vec::new() }
    }

    fn enter(&mut self, path: &[Descent]) {
        // A path that no message has is passed over.
        while let Some(&(next, what)) = self.all.get(self.next).filter(|(next, _)| *next <= path) {
            if next == path {
                self.open.push((path.len(), what));
            }
            self.next += 1;
        }
    }

    /// Hands over what goes to the innermost message, once.
    fn take(&mut self, depth: usize) -> Option<&'a T> {
        self.open.pop_if(|(at, _)| *at == depth).map(|(_, what)| what)
    }
}

/// The path of the message that is being written, kept only if a message may have unknown fields or a payload to be computed.
pub(super) struct Place<'a> {
    path: Vec<Descent>,
    is_kept: bool,
    /// How many messages are open but for the model.
    depth: u32,
    unknown: Addressed<'a, [Bytes]>,
    deferred: Addressed<'a, Tensor>,
    /// How many messages had unknown fields.
    pub met: usize,
}

impl<'a> Place<'a> {
    /// The model itself.
    pub fn new(unknown: &'a UnknownFields, deferred: &'a DeferredPayloads) -> Self {
        let mut place = Place {
            path: Vec::new(),
            is_kept: !unknown.is_empty() || !deferred.is_empty(),
            depth: 0,
            unknown: Addressed::new(unknown.iter().collect()),
            deferred: Addressed::new(deferred.iter().map(|(path, tensor)| (path.as_slice(), tensor)).collect()),
            met: 0,
        };
        place.look();
        place
    }

    fn look(&mut self) {
        self.unknown.enter(&self.path);
        self.deferred.enter(&self.path);
    }

    /// Goes on to a message in it, of which each comes after those of lesser steps.
    pub fn open(&mut self, step: Descent) {
        self.depth += 1;
        if self.is_kept {
            self.path.push(step);
            self.look();
        }
    }

    /// Goes back to the message around it.
    pub fn close(&mut self) {
        self.depth = self.depth.saturating_sub(1);
        self.path.pop();
    }

    /// Whether a graph that is being written is the main graph: no other lies in the model itself.
    pub fn is_in_main(&self) -> bool {
        self.depth == 1
    }

    /// The payload that goes to this message.
    pub fn deferred(&mut self) -> Option<&'a Tensor> {
        self.deferred.take(self.path.len())
    }

    /// The unknown fields that go to this message.
    pub fn pieces(&mut self) -> &'a [Bytes] {
        let pieces = self.unknown.take(self.path.len());
        self.met += usize::from(pieces.is_some());
        pieces.unwrap_or_default()
    }
}
