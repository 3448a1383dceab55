//! The path of the message that is being written, and the content that is stored by this path outside the message.

use bytes::Bytes;

use super::DeferredPayloads;
use crate::onnx::wire::{Descent, UnknownFields};
use crate::tensor::Tensor;

/// Content by the path of its message, in path order, which is the order in which the messages open.
struct Addressed<'a, T: ?Sized> {
    all: Vec<(&'a [Descent], &'a T)>,
    /// The first item for a message that has not been opened yet.
    next: usize,
    /// The content of open messages, with the depth of each.
    open: Vec<(usize, &'a T)>,
}

impl<'a, T: ?Sized> Addressed<'a, T> {
    fn new(all: Vec<(&'a [Descent], &'a T)>) -> Self {
        Addressed { all, next: 0, open: Vec::new() }
    }

    fn enter(&mut self, path: &[Descent]) {
        // Skips paths without a message.
        while let Some(&(next, what)) = self.all.get(self.next).filter(|(next, _)| *next <= path) {
            if next == path {
                self.open.push((path.len(), what));
            }
            self.next += 1;
        }
    }

    /// Takes the content of the innermost message.
    fn take(&mut self, depth: usize) -> Option<&'a T> {
        self.open.pop_if(|(at, _)| *at == depth).map(|(_, what)| what)
    }
}

/// The path of the current message. It is tracked only if there are unknown fields or payloads to be computed.
pub(super) struct Place<'a> {
    path: Vec<Descent>,
    is_kept: bool,
    /// The number of open messages, without the model.
    depth: u32,
    unknown: Addressed<'a, [Bytes]>,
    deferred: Addressed<'a, Tensor>,
    /// The number of messages with unknown fields so far.
    pub met: usize,
}

impl<'a> Place<'a> {
    /// Starts at the model itself.
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

    /// Descends to a message. Siblings must come in ascending order.
    pub fn open(&mut self, step: Descent) {
        self.depth += 1;
        if self.is_kept {
            self.path.push(step);
            self.look();
        }
    }

    /// Returns to the enclosing message.
    pub fn close(&mut self) {
        self.depth = self.depth.saturating_sub(1);
        self.path.pop();
    }

    /// Returns `true` if the graph that is being written is the main graph: no other graph is a direct field of the
    /// model.
    pub fn is_in_main(&self) -> bool {
        self.depth == 1
    }

    /// Takes the deferred payload of the current message.
    pub fn deferred(&mut self) -> Option<&'a Tensor> {
        self.deferred.take(self.path.len())
    }

    /// Takes the unknown fields of the current message.
    pub fn pieces(&mut self) -> &'a [Bytes] {
        let pieces = self.unknown.take(self.path.len());
        self.met += usize::from(pieces.is_some());
        pieces.unwrap_or_default()
    }
}
