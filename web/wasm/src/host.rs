//! The interface between the module and JavaScript: exports and imports.
//!
//! JavaScript calls `reserve` for memory, writes a request into it, and calls `run`. While the module runs, it calls back: for the bytes of a
//! source, with the bytes of a result, and at the end with an answer or a failure. All of these calls pass bytes as an address and a length, and
//! positions as a double, which holds each integer up to 2⁵³.

#![allow(unsafe_code, reason = "this is the boundary to the host")]

use std::time::Duration;

mod imports {
    #[link(wasm_import_module = "host")]
    unsafe extern "C" {
        pub fn now() -> f64;
        pub fn answer(at: *const u8, len: usize);
        pub fn fail(at: *const u8, len: usize);
        pub fn progress(at: *const u8, len: usize);
        pub fn size(source: u32) -> f64;
        pub fn read(source: u32, from: f64, at: *mut u8, len: usize) -> u32;
        pub fn find(model: u32, at: *const u8, len: usize) -> i32;
        pub fn reason(at: *mut u8, len: usize);
        pub fn write(file: u32, at: *const u8, len: usize);
        pub fn copy(file: u32, source: u32, from: f64, len: f64);
    }
}

/// The memory for a request, and the number of its bytes.
static REQUEST: std::sync::Mutex<Vec<u8>> = std::sync::Mutex::new(Vec::new());

/// Returns the address of `len` bytes for a request.
#[unsafe(no_mangle)]
pub extern "C" fn reserve(len: usize) -> *mut u8 {
    match REQUEST.lock() {
        Ok(mut request) => {
            *request = vec![0; len];
            request.as_mut_ptr()
        }
        Err(_) => std::ptr::null_mut(),
    }
}

/// Runs the request.
#[unsafe(no_mangle)]
pub extern "C" fn run() {
    let request = REQUEST.lock().map(|mut request| std::mem::take(&mut *request)).unwrap_or_default();
    crate::run(&request);
}

/// Returns the time since a fixed moment.
pub fn now() -> Duration {
    // SAFETY: the host returns a number.
    Duration::try_from_secs_f64(unsafe { imports::now() } / 1000.0).unwrap_or_default()
}

/// Passes on the answer, at the end of a successful run.
pub fn answer(text: &str) {
    // SAFETY: the host copies the bytes before it returns.
    unsafe { imports::answer(text.as_ptr(), text.len()) }
}

/// Passes on an error.
pub fn fail(text: &str) {
    // SAFETY: the host copies the bytes before it returns.
    unsafe { imports::fail(text.as_ptr(), text.len()) }
}

/// Passes on the progress of the run.
pub fn progress(text: &str) {
    // SAFETY: the host copies the bytes before it returns.
    unsafe { imports::progress(text.as_ptr(), text.len()) }
}

/// Returns the size of a source in bytes.
pub fn size(source: u32) -> u64 {
    // SAFETY: the host returns a number.
    unsafe { imports::size(source) as u64 }
}

/// Reads bytes of a source. Returns `false` if the host cannot.
pub fn read(source: u32, from: u64, out: &mut [u8]) -> bool {
    // SAFETY: the host writes at most this number of bytes to the address.
    unsafe { imports::read(source, from as f64, out.as_mut_ptr(), out.len()) != 0 }
}

/// Returns the source that holds the data file of a model at `location`, if there is one.
///
/// # Errors
/// The reason why the host refuses the file.
pub fn find(model: u32, location: &str) -> Result<Option<u32>, String> {
    // SAFETY: the host copies the bytes before it returns.
    match unsafe { imports::find(model, location.as_ptr(), location.len()) } {
        found @ 0.. => Ok(Some(found.unsigned_abs())),
        -1 => Ok(None),
        refused => {
            // The host counts the bytes of its reason from -2 down.
            let mut reason = vec![0; (refused.unsigned_abs() - 2) as usize];
            // SAFETY: the host writes at most this number of bytes to the address.
            unsafe { imports::reason(reason.as_mut_ptr(), reason.len()) };
            Err(String::from_utf8_lossy(&reason).into_owned())
        }
    }
}

/// Appends bytes to a file of the result: 0 is the model, 1 its data file.
pub fn write(file: u32, bytes: &[u8]) {
    // SAFETY: the host copies the bytes before it returns.
    unsafe { imports::write(file, bytes.as_ptr(), bytes.len()) }
}

/// Appends bytes of a source to a file of the result.
pub fn copy(file: u32, source: u32, from: u64, len: u64) {
    // SAFETY: numbers only.
    unsafe { imports::copy(file, source, from as f64, len as f64) }
}
