//! Payloads outside of memory, in a file or a browser's Blob, which are read on demand.

use std::fmt;
use std::io;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;

/// Bytes outside of memory, any part of which can be read at any time.
pub trait ByteSource: Send + Sync + UnwindSafe + RefUnwindSafe {
    /// Returns the number of bytes.
    fn size(&self) -> u64;

    /// Fills `out` with the bytes from position `from` on.
    ///
    /// # Errors
    /// The bytes cannot be read.
    fn read(&self, from: u64, out: &mut [u8]) -> io::Result<()>;

    /// Returns the host's number of the source, for hosts that number them.
    fn number(&self) -> u32 {
        0
    }
}

/// A source that records failed reads.
#[derive(Clone)]
pub struct SharedSource(Arc<Inner>);

struct Inner {
    source: Box<dyn ByteSource>,
    has_failed: AtomicBool,
}

impl SharedSource {
    /// Wraps a source.
    pub fn new(source: Box<dyn ByteSource>) -> Self {
        SharedSource(Arc::new(Inner { source, has_failed: AtomicBool::new(false) }))
    }

    /// Returns the number of bytes.
    pub fn size(&self) -> u64 {
        self.0.source.size()
    }

    /// Fills `out` with the bytes from position `from` on.
    ///
    /// # Errors
    /// The bytes cannot be read.
    pub fn read(&self, from: u64, out: &mut [u8]) -> io::Result<()> {
        let end = from.checked_add(out.len() as u64).filter(|end| *end <= self.size());
        let read = end.ok_or_else(|| io::ErrorKind::UnexpectedEof.into()).and_then(|_| self.0.source.read(from, out));
        if read.is_err() {
            self.0.has_failed.store(true, Ordering::Relaxed);
        }
        read
    }

    /// Returns the host's number of the source.
    pub fn number(&self) -> u32 {
        self.0.source.number()
    }

    /// Returns `true` if a read has failed, after which payloads contain zeros that are not in the source.
    pub fn has_failed(&self) -> bool {
        self.0.has_failed.load(Ordering::Relaxed)
    }

    /// Returns `true` for clones of one source.
    pub fn is(&self, other: &SharedSource) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl fmt::Debug for SharedSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a source of {} bytes", self.size())
    }
}

/// A part of a source.
#[derive(Clone, Debug)]
pub struct ByteRange {
    source: SharedSource,
    from: u64,
    len: usize,
    /// All bytes, once a consumer needed them in one piece.
    held: Arc<OnceLock<Bytes>>,
}

impl ByteRange {
    /// Returns a part of a source; `None` if the source ends before it.
    pub fn new(source: SharedSource, from: u64, len: usize) -> Option<Self> {
        from.checked_add(len as u64).filter(|end| *end <= source.size())?;
        Some(ByteRange { source, from, len, held: Arc::default() })
    }

    /// Returns a part of this part.
    pub(super) fn slice(&self, from: usize, to: usize) -> Option<Self> {
        let len = to.checked_sub(from).filter(|_| to <= self.len)?;
        ByteRange::new(self.source.clone(), self.from.checked_add(from as u64)?, len)
    }

    /// Returns the first `len` bytes, or all if there are fewer.
    pub(crate) fn truncated(self, len: usize) -> Self {
        if len < self.len { ByteRange { len, held: Arc::default(), ..self } } else { self }
    }

    /// Returns the source.
    pub fn source(&self) -> &SharedSource {
        &self.source
    }

    /// Returns the position in the source.
    pub fn from(&self) -> u64 {
        self.from
    }

    /// Returns the number of bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns `true` if there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the address of the source, which differs from that of each payload in memory.
    pub(super) fn address(&self) -> usize {
        Arc::as_ptr(&self.source.0) as usize
    }

    /// Fills `out` with the bytes from position `at` on, or with zeros if the source fails, which it records.
    pub(super) fn read(&self, at: usize, out: &mut [u8]) {
        if let Some(held) = self.held.get() {
            if let Some(bytes) = at.checked_add(out.len()).and_then(|end| held.get(at..end)) {
                out.copy_from_slice(bytes);
            }
        } else if self.source.read(self.from.saturating_add(at as u64), out).is_err() {
            out.fill(0);
        }
    }

    /// Returns all bytes, and keeps them in memory.
    pub(crate) fn bytes(&self) -> &Bytes {
        self.held.get_or_init(|| {
            let mut bytes = vec![0; self.len];
            self.read_unheld(&mut bytes);
            bytes.into()
        })
    }

    fn read_unheld(&self, out: &mut [u8]) {
        if self.source.read(self.from, out).is_err() {
            out.fill(0);
        }
    }
}
