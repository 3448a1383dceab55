//! Maps files; the only module of this crate with `unsafe`.
//!
//! Reading a page that a truncated file no longer has raises SIGBUS, which kills the process. Anyone who may write
//! the file can cause this. The guard is a signal handler. For a fault inside a registered mapping, it maps zero
//! pages over the rest of the mapping and records the fault. The read continues with zeros; the user of the mapping
//! checks [`Mapped::faulted`] before trusting a result. All other SIGBUS signals are forwarded to the earlier
//! handler.
//!
//! The guard cannot detect a file that is truncated within its last page or rewritten in place. The caller compares
//! length and modification time for that ([`super::file`]). A slice of a mapping can therefore change during use. No
//! code in this crate relies on two equal reads of a byte for memory safety.
//!
//! Each `unsafe` block states its reason. All of them rest on two invariants:
//!
//! * a slot's range is non-empty only while its [`Mapped`] lives, so the handler replaces only our pages;
//! * the handler only reads atomics that are never freed, and calls `mmap`, `sigaction` and the earlier handler.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;

use memmap2::{Mmap, MmapOptions};

/// A file or its beginning, mapped into memory.
pub(super) struct Mapped {
    map: Mmap,
    #[cfg(unix)]
    slot: &'static guard::Slot,
}

impl Mapped {
    /// Maps the first `len` bytes of a regular file for reading. `len` must not be 0.
    ///
    /// # Errors
    /// The system cannot create the mapping or install the guard.
    pub fn new(file: &File, len: usize) -> io::Result<Self> {
        #[cfg(unix)]
        guard::install()?;
        // SAFETY: the mapping is private to this value and read-only. The file may change: the guard handles
        // truncation, and no code relies on bytes to be stable.
        let map = unsafe { MmapOptions::new().len(len).map(file)? };
        #[cfg(unix)]
        let slot = guard::register(map.as_ptr() as usize, map.len());
        Ok(Mapped {
            map,
            #[cfg(unix)]
            slot,
        })
    }

    /// Returns `true` if a read hit bytes that the file lost or the disk could not deliver, and got zeros.
    pub fn faulted(&self) -> bool {
        #[cfg(unix)]
        return self.slot.faulted();
        // On other systems a mapped file cannot be truncated.
        #[cfg(not(unix))]
        false
    }
}

impl AsRef<[u8]> for Mapped {
    fn as_ref(&self) -> &[u8] {
        &self.map
    }
}

#[cfg(unix)]
impl Drop for Mapped {
    fn drop(&mut self) {
        // Unregister before the field drops: then the addresses can be reused.
        guard::unregister(self.slot);
    }
}

#[cfg(unix)]
mod guard {
    use std::ffi::{c_int, c_void};
    use std::io;
    use std::mem::{MaybeUninit, transmute};
    use std::ptr::{null, null_mut};
    use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
    use std::sync::{Mutex, OnceLock, PoisonError};

    /// The address range of a mapping, in whole pages. Slots are reused and never freed.
    pub struct Slot {
        /// 0 if unused.
        start: AtomicUsize,
        end: AtomicUsize,
        faulted: AtomicBool,
        /// Set before the slot is added to the list, then constant.
        next: AtomicPtr<Slot>,
    }

    impl Slot {
        pub fn faulted(&self) -> bool {
            self.faulted.load(Ordering::Acquire)
        }
    }

    /// The list of all slots; it only grows.
    static SLOTS: AtomicPtr<Slot> = AtomicPtr::new(null_mut());
    /// The unused slots.
    static FREE: Mutex<Vec<&'static Slot>> = Mutex::new(Vec::new());
    static PAGE: AtomicUsize = AtomicUsize::new(0);
    /// The action of SIGBUS before ours.
    static EARLIER: OnceLock<libc::sigaction> = OnceLock::new();

    /// Registers a range with the guard.
    pub fn register(start: usize, len: usize) -> &'static Slot {
        let page = PAGE.load(Ordering::Relaxed).max(1);
        let end = start.saturating_add(len).div_ceil(page).saturating_mul(page);
        let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
        let slot = free.pop().unwrap_or_else(|| {
            let slot: &'static Slot = Box::leak(Box::new(Slot {
                start: AtomicUsize::new(0),
                end: AtomicUsize::new(0),
                faulted: AtomicBool::new(false),
                next: AtomicPtr::new(SLOTS.load(Ordering::Acquire)),
            }));
            // The list changes only here, under the lock.
            SLOTS.store(std::ptr::from_ref(slot).cast_mut(), Ordering::Release);
            slot
        });
        slot.faulted.store(false, Ordering::Release);
        slot.end.store(end, Ordering::Release);
        slot.start.store(start, Ordering::Release);
        slot
    }

    pub fn unregister(slot: &'static Slot) {
        slot.start.store(0, Ordering::Release);
        FREE.lock().unwrap_or_else(PoisonError::into_inner).push(slot);
    }

    /// Returns the guarded range that contains an address, and its end.
    ///
    /// The faulting mapping lives while the handler runs. Meanwhile another mapping can take over a slot, but the two
    /// share no address. So if the start is equal before and after, the end between belongs to it, or the address is
    /// in neither range.
    fn find(address: usize) -> Option<(&'static Slot, usize)> {
        let mut next = SLOTS.load(Ordering::Acquire);
        // SAFETY: a pointer in the list came from a leaked box and is never written through.
        while let Some(slot) = unsafe { next.as_ref() } {
            let start = slot.start.load(Ordering::Acquire);
            let end = slot.end.load(Ordering::Acquire);
            if start != 0 && (start..end).contains(&address) && slot.start.load(Ordering::Acquire) == start {
                return Some((slot, end));
            }
            next = slot.next.load(Ordering::Acquire);
        }
        None
    }

    /// Installs the handler, once in a process.
    pub fn install() -> io::Result<()> {
        static INSTALLED: OnceLock<Result<(), i32>> = OnceLock::new();
        INSTALLED.get_or_init(try_install).map_err(io::Error::from_raw_os_error)
    }

    fn try_install() -> Result<(), i32> {
        let error = || io::Error::last_os_error().raw_os_error().unwrap_or(libc::EINVAL);
        // SAFETY: sysconf takes a constant and touches no memory of ours.
        let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).map_err(|_| error())?;
        PAGE.store(page, Ordering::Release);

        let mut earlier = MaybeUninit::<libc::sigaction>::zeroed();
        // SAFETY: a null action queries the current one, which is written to a place of the right type.
        if unsafe { libc::sigaction(libc::SIGBUS, null(), earlier.as_mut_ptr()) } != 0 {
            return Err(error());
        }
        // The handler reads it, so it is stored before the handler can run. SAFETY: sigaction succeeded and filled it
        // in; all zeros would be a valid value too.
        let _ = EARLIER.set(unsafe { earlier.assume_init() });

        // SAFETY: all zeros is a valid sigaction.
        let mut ours: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
        ours.sa_sigaction = on_bus as extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) as usize;
        ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
        // SAFETY: `ours` is complete; the handler has the signature that SA_SIGINFO requires and is never unloaded
        // while code of this crate can run.
        if unsafe { libc::sigaction(libc::SIGBUS, &raw const ours, null_mut()) } != 0 {
            return Err(error());
        }
        Ok(())
    }

    extern "C" fn on_bus(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
        // SAFETY: with SA_SIGINFO the system passes a valid siginfo, and SIGBUS sets its address.
        let address = unsafe { (*info).si_addr() } as usize;
        if let Some((slot, end)) = find(address) {
            let page = PAGE.load(Ordering::Relaxed).max(1);
            let from = address - address % page;
            slot.faulted.store(true, Ordering::Release);
            // All pages after a missing page are missing, too. After a disk error some may exist, but the mapping is
            // no longer trusted. SAFETY: [from, end) lies within one of our mappings, which is alive because it is
            // being read. Readable memory replaces it, so no slice into it becomes invalid.
            let got = unsafe {
                libc::mmap(
                    from as *mut c_void,
                    end - from,
                    libc::PROT_READ,
                    libc::MAP_PRIVATE | libc::MAP_ANON | libc::MAP_FIXED,
                    -1,
                    0,
                )
            };
            if got != libc::MAP_FAILED {
                return;
            }
        }
        forward(signal, info, context);
    }

    /// Runs the earlier action of the signal.
    fn forward(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
        if let Some(earlier) = EARLIER.get() {
            let handler = earlier.sa_sigaction;
            if handler != libc::SIG_DFL && handler != libc::SIG_IGN {
                if earlier.sa_flags & libc::SA_SIGINFO != 0 {
                    // SAFETY: the system would have called this address with this signature.
                    let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) =
                        unsafe { transmute::<usize, _>(handler) };
                    handler(signal, info, context);
                } else {
                    // SAFETY: as above, without SA_SIGINFO.
                    let handler: extern "C" fn(c_int) = unsafe { transmute::<usize, _>(handler) };
                    handler(signal);
                }
                return;
            }
        }
        // The default action kills the process: the faulting read runs again. SAFETY: all zeros is a sigaction with
        // SIG_DFL.
        unsafe {
            let default: libc::sigaction = MaybeUninit::zeroed().assume_init();
            libc::sigaction(signal, &raw const default, null_mut());
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;

    use super::*;

    fn file(len: usize) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), vec![7; len]).unwrap();
        file
    }

    #[test]
    fn reads_the_bytes() {
        let file = file(10_000);
        let mapped = Mapped::new(file.as_file(), 10_000).unwrap();
        assert!(mapped.as_ref().iter().all(|byte| *byte == 7));
        assert_eq!(mapped.as_ref().len(), 10_000);
        assert!(!mapped.faulted());
    }

    #[test]
    fn a_cut_file_reads_as_zeros_and_says_so() {
        let len = 1 << 20;
        let (one, other) = (file(len), file(len));
        let cut = Mapped::new(one.as_file(), len).unwrap();
        let whole = Mapped::new(other.as_file(), len).unwrap();
        one.as_file().set_len(5000).unwrap();
        // From the middle, then from the first lost page, by several threads.
        assert_eq!(cut.as_ref()[len / 2], 0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| assert_eq!(cut.as_ref().iter().filter(|byte| **byte != 0).count(), 5000));
            }
        });
        assert!(cut.faulted());
        assert!(whole.as_ref().iter().all(|byte| *byte == 7));
        assert!(!whole.faulted());
    }

    #[test]
    fn slots_are_used_again() {
        let len = 8192;
        let file = file(len);
        let first = Mapped::new(file.as_file(), len).unwrap();
        file.as_file().set_len(0).unwrap();
        assert_eq!(first.as_ref()[100], 0);
        assert!(first.faulted());
        drop(first);
        file.as_file().set_len(8192).unwrap();
        for _ in 0..100 {
            let again = Mapped::new(file.as_file(), len).unwrap();
            assert_eq!(again.as_ref()[8191], 0);
            assert!(!again.faulted());
        }
    }

    #[test]
    fn any_other_bus_error_still_kills() {
        if std::env::var_os("ONNX_MAP_TEST_DIE").is_some() {
            let file = file(8192);
            let _guarded = Mapped::new(file.as_file(), 8192).unwrap();
            // SAFETY: nothing is written; the file is truncated next, and reading it must kill the process.
            let bare = unsafe { MmapOptions::new().map(file.as_file()).unwrap() };
            file.as_file().set_len(0).unwrap();
            std::process::exit(i32::from(std::hint::black_box(&bare)[4096]) + 40);
        }
        let run = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "onnx::map::tests::any_other_bus_error_still_kills"])
            .env("ONNX_MAP_TEST_DIE", "1")
            .output()
            .unwrap();
        assert_eq!(run.status.signal(), Some(libc::SIGBUS), "{run:?}");
    }
}
