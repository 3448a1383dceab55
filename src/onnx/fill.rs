//! Filling a new file: what is small or new is gathered, what lies in a file already is copied by the kernel.
//!
//! A payload that nobody changed is a range of a file. Writing it from the map would have the kernel fault in page after page of it,
//! which took several times as long as copying. So:
//!
//! * ranges are copied by `copy_file_range`, which shares the blocks instead where the file system can (both ends on a block);
//! * neighbours in the old file that are neighbours in the new one, with equal bytes between them, are one run and one call;
//! * what is a hole in the old file becomes one in the new: nothing is read there, written, or kept on the disk;
//! * where the kernel will not copy, the range is read and written piece by piece;
//! * everything else goes through a buffer that is written whole, at multiples of its own size;
//! * the system is asked to begin writing to the disk meanwhile, so that making the file durable at the end is no wait of its own.
//!
//! A source that is cut meanwhile gives an error here, or stops being what it was; [`Source::verify`] tells either way.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};

use super::encode::Destination;
use super::file::Origin;
use super::save::{NewFile, SaveError};
use super::source::Source;
use crate::tensor::Tensor;

/// What is gathered before it is written, and where writes end: at multiples of this.
const BUFFER: usize = 256 << 10;
/// A payload of this size is not gathered.
const LARGE: usize = 64 << 10;
/// The system is asked to write to the disk whenever there is this much more.
const WRITE_BACK: u64 = 16 << 20;
/// What is copied in one call, so that the disk is busy from early on.
const RUN: u64 = WRITE_BACK;
/// Ranges are shared in blocks of this size, by every file system that can.
const BLOCK: u64 = 4096;

/// A hole of this size is left out.
const HOLE: u64 = 1 << 20;

/// A new file that is written from its beginning.
pub(super) trait NewData: Destination {
    /// Returns the number of bytes so far.
    fn len(&self) -> u64;

    /// Fails now if there cannot be a file of so many bytes.
    ///
    /// # Errors
    /// The reason.
    fn must_hold(&self, len: u64) -> Result<(), SaveError>;

    /// Adds the place to an error of the system.
    fn failed(&self, error: io::Error) -> SaveError;
}

/// Copies from a place in a file to the position of another, as many bytes as it likes; 0 if it cannot.
type CopyRange = fn(&File, u64, &File, usize) -> io::Result<usize>;

/// A file that is being filled from its beginning.
pub(super) struct Filler<'a> {
    pub new: NewFile,
    source: Option<&'a Source>,
    /// The bytes of the file so far, those yet to be written included.
    len: u64,
    /// What is gathered. Only one of this and `run` has anything in it.
    buffer: Vec<u8>,
    /// What is to be copied.
    run: Option<Run>,
    /// The file that the last range was in.
    last: Option<Origin>,
    /// How much of the file the system was asked to write to the disk.
    asked: u64,
    copy: CopyRange,
    /// Where payloads are computed.
    block: Vec<u8>,
}

/// A range of the file in `Filler::last`.
struct Run {
    from: u64,
    len: u64,
}

impl<'a> Filler<'a> {
    /// Fills an empty file. Payloads may lie in files of the source.
    pub fn new(new: NewFile, source: Option<&'a Source>) -> Self {
        let buffer = Vec::new();
        Filler { new, source, len: 0, buffer, run: None, last: None, asked: 0, copy: copy_range, block: Vec::new() }
    }

    /// Tells how long the file will be, so that the system can find a place for all of it at once.
    pub fn expect(&mut self, len: u64) {
        #[cfg(target_os = "linux")]
        if len >= WRITE_BACK {
            // Where the system cannot, or has no room, writing will tell.
            let _ = rustix::fs::fallocate(&self.new.file, rustix::fs::FallocateFlags::empty(), 0, len);
        }
        #[cfg(not(target_os = "linux"))]
        let _ = len;
    }

    /// Writes all that is left.
    pub fn finish(&mut self) -> io::Result<()> {
        self.end_run()?;
        self.flush()
    }

    /// Gathers bytes, writing whenever the buffer is full.
    fn gather(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        if self.buffer.capacity() == 0 {
            self.buffer.reserve_exact(BUFFER);
        }
        while !bytes.is_empty() {
            let room = BUFFER - usize::try_from(self.len % BUFFER as u64).unwrap_or(0);
            let (head, tail) = bytes.split_at(room.min(bytes.len()));
            let whole = bytes.len() / BUFFER * BUFFER;
            if room == BUFFER && self.buffer.is_empty() && whole > 0 {
                // From where it lies, as much of it as ends where a buffer would.
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

    /// Has the system begin to write what is in the file so far. It is advice: nothing depends on it.
    fn write_back(&mut self) {
        let more = self.len.saturating_sub(self.asked);
        if more < WRITE_BACK {
            return;
        }
        #[cfg(target_os = "linux")]
        {
            // What is not on the disk yet begins its way there, and is kept; nothing else in this range is worth keeping.
            let len = std::num::NonZeroU64::new(more);
            let _ = rustix::fs::fadvise(&self.new.file, self.asked, len, rustix::fs::Advice::DontNeed);
        }
        self.asked = self.len;
    }

    /// Where a payload lies in a file of the source.
    fn origin(&mut self, payload: &[u8]) -> Option<u64> {
        if let Some(from) = self.last.as_ref().and_then(|last| last.find(payload)) {
            return Some(from);
        }
        let found = self.source?.origin(payload)?;
        let from = found.find(payload)?;
        self.last = Some(found);
        Some(from)
    }

    /// Takes bytes into the run if they are what follows it in its file.
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
        // Up to where there are no holes that are worth leaving out.
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
                // Blocks can be shared where both ranges begin on one.
                let head = if from % BLOCK == to % BLOCK { from.next_multiple_of(BLOCK) - from } else { 0 };
                let piece = match head {
                    0 if left >= BLOCK && from % BLOCK == to % BLOCK => left.min(RUN) / BLOCK * BLOCK,
                    0 => left.min(RUN),
                    _ => head.min(left),
                };
                let piece = usize::try_from(piece).unwrap_or(usize::MAX);
                let copied = match (self.copy)(&origin.file, from, &self.new.file, piece) {
                    Ok(copied) if copied > 0 => copied,
                    // It will not, or there is nothing more to copy. Reading finds out.
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

    /// Goes on so much further on without writing anything.
    fn leave_out(&mut self, at: u64, len: u64) -> io::Result<()> {
        let to = at.saturating_add(len);
        if self.new.file.metadata()?.len() < to {
            self.new.file.set_len(to)?;
        }
        self.new.file.seek(SeekFrom::Start(to)).map(|_| ())
    }

    /// While a run is copied: what of the file is there.
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

/// Where the next bytes of a file lie that are not in a hole, and where the next hole is behind them; the place itself, and one beyond all, where
/// nobody can tell or the file ends before.
#[cfg(target_os = "linux")]
fn extent(file: &File, at: u64) -> (u64, u64) {
    use rustix::fs::{SeekFrom, seek};
    let unknown = (at, u64::MAX);
    let Ok(len) = file.metadata().map(|known| known.len()) else { return unknown };
    match seek(file, SeekFrom::Data(at)) {
        // Nothing but a hole is left, unless the file was cut.
        Err(rustix::io::Errno::NXIO) if at < len => (len, u64::MAX),
        Err(_) => unknown,
        Ok(data) => (data, seek(file, SeekFrom::Hole(data)).unwrap_or(u64::MAX)),
    }
}

#[cfg(not(target_os = "linux"))]
fn extent(_: &File, at: u64) -> (u64, u64) {
    (at, u64::MAX)
}

/// Copies through memory. Returns how much, at least a byte.
///
/// # Errors
/// The file ends before `at`; otherwise what the system reports.
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
