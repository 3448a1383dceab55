//! Fills a new file: buffers small or new bytes, and lets the kernel copy ranges of existing files.
//!
//! An unchanged payload is a range of a file. Writing it from the map would fault in every page, which takes several
//! times as long as copying. Therefore:
//!
//! * `copy_file_range` copies ranges; it shares the blocks where the file system can (both ends on a block);
//! * ranges that are adjacent in both files, with equal bytes between them, form one run and one call;
//! * holes of the old file become holes in the new file: they are neither read nor written, and need no disk space;
//! * if the kernel cannot copy, the range is read and written piece by piece;
//! * all other bytes go through a buffer that is written as a whole, at multiples of its size;
//! * write-back to the disk starts early, so that the final sync hardly waits.
//!
//! If a source is truncated meanwhile, writing fails or the source no longer matches; [`Source::verify`] reports
//! both.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};

use super::encode::Destination;
use super::file::Origin;
use super::save::{NewFile, SaveError};
use super::source::Source;
use crate::tensor::Tensor;

/// The size of the buffer; writes end at multiples of it.
const BUFFER: usize = 256 << 10;
/// A payload of at least this size is not buffered.
const LARGE: usize = 64 << 10;
/// Write-back is requested after this number of new bytes.
const WRITE_BACK: u64 = 16 << 20;
/// The largest number of bytes per copy call, so that the disk is busy early.
const RUN: u64 = WRITE_BACK;
/// All file systems that can share ranges share blocks of this size.
const BLOCK: u64 = 4096;

/// The smallest hole that is not written.
const HOLE: u64 = 1 << 20;

/// A new file that is written from its beginning.
pub(super) trait NewData: Destination {
    /// Returns the number of bytes so far.
    fn len(&self) -> u64;

    /// Checks that a file of `len` bytes is possible.
    ///
    /// # Errors
    /// The reason why it is not.
    fn must_hold(&self, len: u64) -> Result<(), SaveError>;

    /// Adds the path to an error of the system.
    fn failed(&self, error: io::Error) -> SaveError;
}

/// Copies from an offset of a file to the position of another; returns the number of copied bytes, or 0 if it cannot
/// copy.
type CopyRange = fn(&File, u64, &File, usize) -> io::Result<usize>;

/// A file that is being filled from its beginning.
pub(super) struct Filler<'a> {
    pub new: NewFile,
    source: Option<&'a Source>,
    /// The bytes of the file so far, including those not yet written.
    len: u64,
    /// The buffered bytes. `buffer` or `run` is always empty.
    buffer: Vec<u8>,
    /// The range to be copied.
    run: Option<Run>,
    /// The file of the last range.
    last: Option<Origin>,
    /// The number of bytes for which write-back was requested.
    asked: u64,
    copy: CopyRange,
    /// The buffer for computed payloads.
    block: Vec<u8>,
}

/// A range of the file in `Filler::last`.
struct Run {
    from: u64,
    len: u64,
}

impl<'a> Filler<'a> {
    /// Fills an empty file. Payloads may be ranges of the source's files.
    pub fn new(new: NewFile, source: Option<&'a Source>) -> Self {
        let buffer = Vec::new();
        Filler { new, source, len: 0, buffer, run: None, last: None, asked: 0, copy: copy_range, block: Vec::new() }
    }

    /// Announces the file's final length, so that the system can allocate it at once.
    pub fn expect(&mut self, len: u64) {
        #[cfg(target_os = "linux")]
        if len >= WRITE_BACK {
            // If allocation fails, a later write reports the lack of space.
            let _ = rustix::fs::fallocate(&self.new.file, rustix::fs::FallocateFlags::empty(), 0, len);
        }
        #[cfg(not(target_os = "linux"))]
        let _ = len;
    }

    /// Writes all remaining bytes.
    pub fn finish(&mut self) -> io::Result<()> {
        self.end_run()?;
        self.flush()
    }

    /// Buffers bytes, and writes each full buffer.
    fn gather(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        if self.buffer.capacity() == 0 {
            self.buffer.reserve_exact(BUFFER);
        }
        while !bytes.is_empty() {
            let room = BUFFER - usize::try_from(self.len % BUFFER as u64).unwrap_or(0);
            let (head, tail) = bytes.split_at(room.min(bytes.len()));
            let whole = bytes.len() / BUFFER * BUFFER;
            if room == BUFFER && self.buffer.is_empty() && whole > 0 {
                // Writes whole buffers directly from their source.
                let (head, tail) = bytes.split_at(whole.min(RUN as usize));
                self.new.file.write_all(head)?;
                self.len = self.len.saturating_add(head.len() as u64);
                self.write_back();
                bytes = tail;
                continue;
            }
            self.buffer.extend_from_slice(head);
            self.len = self.len.saturating_add(head.len() as u64);
            if head.len() == room {
                self.flush()?;
            }
            bytes = tail;
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.new.file.write_all(&self.buffer)?;
        self.buffer.clear();
        self.write_back();
        Ok(())
    }

    /// Requests write-back of the file so far. This is only a hint.
    fn write_back(&mut self) {
        let more = self.len.saturating_sub(self.asked);
        if more < WRITE_BACK {
            return;
        }
        #[cfg(target_os = "linux")]
        {
            // This starts write-back of dirty pages and keeps them. Clean pages of this range may be dropped.
            let len = std::num::NonZeroU64::new(more);
            let _ = rustix::fs::fadvise(&self.new.file, self.asked, len, rustix::fs::Advice::DontNeed);
        }
        self.asked = self.len;
    }

    /// Returns the offset of a payload in a file of the source.
    fn origin(&mut self, payload: &[u8]) -> Option<u64> {
        if let Some(from) = self.last.as_ref().and_then(|last| last.find(payload)) {
            return Some(from);
        }
        let found = self.source?.origin(payload)?;
        let from = found.find(payload)?;
        self.last = Some(found);
        Some(from)
    }

    /// Extends the run by bytes that follow it in its file.
    fn follows(&mut self, bytes: &[u8]) -> bool {
        let (Some(run), Some(last)) = (&mut self.run, &self.last) else { return false };
        let follows = last.starts_with(run.from.saturating_add(run.len), bytes);
        if follows {
            run.len = run.len.saturating_add(bytes.len() as u64);
            self.len = self.len.saturating_add(bytes.len() as u64);
        }
        follows
    }

    /// Copies the run.
    fn end_run(&mut self) -> io::Result<()> {
        let Some(Run { mut from, len }) = self.run.take() else { return Ok(()) };
        let Some(origin) = self.last.take() else { return Ok(()) };
        let end = from.saturating_add(len);
        let mut to = self.len.saturating_sub(len);
        // The end of the data that has no hole worth skipping.
        let mut full = if len < HOLE { end } else { from };
        let result = (|| {
            while from < end {
                if from >= full {
                    let (data, hole) = extent(&origin.file, from);
                    full = hole;
                    let skipped = data.min(end).saturating_sub(from);
                    if skipped >= HOLE {
                        self.leave_out(to, skipped)?;
                        from = from.saturating_add(skipped);
                        to = to.saturating_add(skipped);
                        continue;
                    }
                }
                let left = end.min(full) - from;
                // Blocks can only be shared if both ranges begin on a block.
                let head = if from % BLOCK == to % BLOCK { from.next_multiple_of(BLOCK) - from } else { 0 };
                let piece = match head {
                    0 if left >= BLOCK && from % BLOCK == to % BLOCK => left.min(RUN) / BLOCK * BLOCK,
                    0 => left.min(RUN),
                    _ => head.min(left),
                };
                let piece = usize::try_from(piece).unwrap_or(usize::MAX);
                let copied = match (self.copy)(&origin.file, from, &self.new.file, piece) {
                    Ok(copied) if copied > 0 => copied,
                    // The kernel does not copy, or the file ends here. Reading decides.
                    refused => {
                        if refused.is_err() {
                            self.copy = |_, _, _, _| Ok(0);
                        }
                        read_and_write(&origin.file, from, &self.new.file, piece)?
                    }
                };
                from = from.saturating_add(copied as u64);
                to = to.saturating_add(copied as u64);
                self.len_is(to);
            }
            Ok(())
        })();
        self.last = Some(origin);
        result
    }

    /// Advances the position without writing.
    fn leave_out(&mut self, at: u64, len: u64) -> io::Result<()> {
        let to = at.saturating_add(len);
        if self.new.file.metadata()?.len() < to {
            self.new.file.set_len(to)?;
        }
        self.new.file.seek(SeekFrom::Start(to)).map(|_| ())
    }

    /// Requests write-back for the part of a run that was copied so far.
    fn len_is(&mut self, there: u64) {
        let all = std::mem::replace(&mut self.len, there);
        self.write_back();
        self.len = all;
    }
}

impl NewData for Filler<'_> {
    fn len(&self) -> u64 {
        self.len
    }

    fn must_hold(&self, len: u64) -> Result<(), SaveError> {
        self.new.must_hold(len)
    }

    fn failed(&self, error: io::Error) -> SaveError {
        self.new.failed(error)
    }
}

impl Destination for Filler<'_> {
    fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.run.is_some() {
            if self.follows(bytes) {
                return Ok(());
            }
            self.end_run()?;
        }
        self.gather(bytes)
    }

    fn payload(&mut self, payload: &[u8]) -> io::Result<()> {
        if payload.len() < LARGE {
            return self.bytes(payload);
        }
        let before = self.run.as_ref().map(|run| run.from.saturating_add(run.len));
        let is_next = |last: &Origin| last.find(payload).is_some_and(|from| Some(from) == before);
        let len = payload.len() as u64;
        if self.last.as_ref().is_some_and(is_next)
            && let Some(run) = &mut self.run
        {
            run.len = run.len.saturating_add(len);
            self.len = self.len.saturating_add(len);
            return Ok(());
        }
        self.end_run()?;
        let Some(from) = self.origin(payload) else { return self.gather(payload) };
        self.flush()?;
        self.run = Some(Run { from, len });
        self.len = self.len.saturating_add(len);
        Ok(())
    }

    fn deferred(&mut self, tensor: &Tensor) -> io::Result<()> {
        let mut block = std::mem::take(&mut self.block);
        let done = self.computed(tensor, &mut block);
        self.block = block;
        done
    }
}

#[cfg(target_os = "linux")]
fn copy_range(from: &File, mut at: u64, to: &File, len: usize) -> io::Result<usize> {
    Ok(rustix::fs::copy_file_range(from, Some(&mut at), to, None, len)?)
}

#[cfg(not(target_os = "linux"))]
fn copy_range(_: &File, _: u64, _: &File, _: usize) -> io::Result<usize> {
    Ok(0)
}

/// Returns the next offset with data at or after `at`, and the offset of the next hole after it. Returns `at` and
/// `u64::MAX` if the system cannot tell or the file ends before `at`.
#[cfg(target_os = "linux")]
fn extent(file: &File, at: u64) -> (u64, u64) {
    use rustix::fs::{SeekFrom, seek};
    let unknown = (at, u64::MAX);
    let Ok(len) = file.metadata().map(|known| known.len()) else { return unknown };
    match seek(file, SeekFrom::Data(at)) {
        // The rest of the file is a hole, unless the file was truncated.
        Err(rustix::io::Errno::NXIO) if at < len => (len, u64::MAX),
        Err(_) => unknown,
        Ok(data) => (data, seek(file, SeekFrom::Hole(data)).unwrap_or(u64::MAX)),
    }
}

#[cfg(not(target_os = "linux"))]
fn extent(_: &File, at: u64) -> (u64, u64) {
    (at, u64::MAX)
}

/// Copies through memory. Returns the number of copied bytes, at least one.
///
/// # Errors
/// The file ends before `at`, or the system reports an error.
fn read_and_write(from: &File, at: u64, mut to: &File, len: usize) -> io::Result<usize> {
    let mut piece = vec![0; len.min(BUFFER)];
    let got = read_at(from, &mut piece, at)?;
    if got == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    to.write_all(piece.get(..got).unwrap_or_default())?;
    Ok(got)
}

#[cfg(unix)]
fn read_at(file: &File, piece: &mut [u8], at: u64) -> io::Result<usize> {
    use std::os::unix::fs::FileExt;
    loop {
        match file.read_at(piece, at) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

#[cfg(not(unix))]
fn read_at(mut file: &File, piece: &mut [u8], at: u64) -> io::Result<usize> {
    use std::io::{Read, Seek, SeekFrom};
    file.seek(SeekFrom::Start(at))?;
    file.read(piece)
}

#[cfg(all(test, target_os = "linux"))]
mod tests;
