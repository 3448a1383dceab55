//! The C interface of `include/onnx_slice_fold.h`. No panic unwinds into C: it becomes an internal error.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use onnx_slice_fold::{Construct, Error, ErrorKind, OnnxModel, OpenOptions, Options, Shapes};

/// The status of a call; the numbers are the header's.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(non_camel_case_types, reason = "the header's name")]
pub enum osf_status {
    Ok = 0,
    Malformed = 1,
    Unsupported = 2,
    Limit = 3,
    Assumption = 4,
    Impossible = 5,
    Usage = 6,
    Internal = 7,
}

/// Bytes that the library owns until [`osf_buffer_free`].
#[repr(C)]
#[allow(non_camel_case_types, reason = "the header's name")]
pub struct osf_buffer {
    data: *mut u8,
    length: usize,
}

/// Options, opaque to C: how a model is folded, and how it is opened.
#[allow(non_camel_case_types, reason = "the header's name")]
pub struct osf_options(Options, OpenOptions);

thread_local! {
    static LAST_ERROR: RefCell<CString> = RefCell::default();
}

fn tell(text: &str) {
    // A zero inside would end the text early.
    let text = CString::new(text.replace('\0', "\u{fffd}")).unwrap_or_default();
    LAST_ERROR.with(|last| *last.borrow_mut() = text);
}

/// Runs a call. An error or a panic becomes a status and a text.
fn call(work: impl FnOnce() -> Result<(), (osf_status, String)>) -> osf_status {
    tell("");
    let (status, text) = match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(())) => return osf_status::Ok,
        Ok(Err(failure)) => failure,
        Err(_) => (osf_status::Internal, "a defect of the library ended the call".to_string()),
    };
    tell(&text);
    status
}

fn usage(text: &str) -> (osf_status, String) {
    (osf_status::Usage, text.to_string())
}

fn failed(error: Error) -> (osf_status, String) {
    let status = match error.kind() {
        ErrorKind::Malformed => osf_status::Malformed,
        ErrorKind::Unsupported => osf_status::Unsupported,
        ErrorKind::Limit => osf_status::Limit,
        ErrorKind::Assumption => osf_status::Assumption,
        ErrorKind::Impossible => osf_status::Impossible,
        ErrorKind::Usage => osf_status::Usage,
        // A data file that cannot be read, among others.
        _ => osf_status::Internal,
    };
    (status, format!("{error:#}"))
}

/// Changes options by a text.
///
/// # Safety
/// Both pointers are null or valid, and the text ends with a zero.
unsafe fn with_text(
    options: *mut osf_options,
    text: *const c_char,
    change: fn(Options, &str) -> Options,
) -> osf_status {
    call(|| {
        // SAFETY: the caller's promise.
        let text = unsafe { text_of(text) }?;
        // SAFETY: the caller's promise.
        unsafe { changed(options, |options| change(options, text)) }
    })
}

/// # Safety
/// The pointer is null or valid, and the text ends with a zero.
unsafe fn text_of<'a>(text: *const c_char) -> Result<&'a str, (osf_status, String)> {
    if text.is_null() {
        return Err(usage("the text is a null pointer"));
    }
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(text) }.to_str().map_err(|_| usage("the text is not UTF-8"))
}

/// # Safety
/// The pointer is null or valid, and no other thread uses the options.
unsafe fn changed(
    options: *mut osf_options,
    change: impl FnOnce(Options) -> Options,
) -> Result<(), (osf_status, String)> {
    // SAFETY: the caller's promise.
    let options = unsafe { options.as_mut() }.ok_or_else(|| usage("the options are a null pointer"))?;
    options.0 = change(std::mem::take(&mut options.0));
    Ok(())
}

#[unsafe(no_mangle)]
pub extern "C" fn osf_options_new() -> *mut osf_options {
    Box::into_raw(Box::new(osf_options(Options::new(), OpenOptions::new())))
}

/// # Safety
/// `options` is null, or comes from [`osf_options_new`] and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn osf_options_free(options: *mut osf_options) {
    if !options.is_null() {
        // SAFETY: the caller's promise.
        drop(unsafe { Box::from_raw(options) });
    }
}

/// # Safety
/// As [`with_text`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn osf_options_add_dim(options: *mut osf_options, text: *const c_char) -> osf_status {
    // SAFETY: the caller's promise.
    unsafe { with_text(options, text, |options, text| options.dim(text)) }
}

/// # Safety
/// As [`with_text`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn osf_options_add_relation(options: *mut osf_options, text: *const c_char) -> osf_status {
    // SAFETY: the caller's promise.
    unsafe { with_text(options, text, |options, text| options.assume(text)) }
}

/// # Safety
/// As [`with_text`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn osf_options_add_input_shape(options: *mut osf_options, text: *const c_char) -> osf_status {
    // SAFETY: the caller's promise.
    unsafe { with_text(options, text, |options, text| options.input_shape(text)) }
}

/// # Safety
/// As [`with_text`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn osf_options_add_external_data_root(
    options: *mut osf_options,
    directory: *const c_char,
) -> osf_status {
    call(|| {
        if options.is_null() || directory.is_null() {
            return Err(usage("the options or the directory is a null pointer"));
        }
        // SAFETY: the caller's promise.
        let directory = unsafe { CStr::from_ptr(directory) }.to_str().map_err(|_| usage("the text is not UTF-8"))?;
        // SAFETY: the caller's promise.
        let osf_options(_, opening) = unsafe { &mut *options };
        *opening = std::mem::take(opening).external_data_root(directory);
        Ok(())
    })
}

/// # Safety
/// As [`with_text`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn osf_options_skip(options: *mut osf_options, rule: *const c_char) -> osf_status {
    // SAFETY: the caller's promise.
    unsafe { with_text(options, rule, |options, rule| options.skip([rule])) }
}

/// # Safety
/// As [`with_text`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn osf_options_avoid(options: *mut osf_options, construct: *const c_char) -> osf_status {
    call(|| {
        // SAFETY: the caller's promise.
        let construct =
            unsafe { text_of(construct) }?.parse::<Construct>().map_err(|error| usage(&error.to_string()))?;
        // SAFETY: the caller's promise.
        unsafe { changed(options, |options| options.avoid([construct])) }
    })
}

/// # Safety
/// `options` is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn osf_options_set_exact(options: *mut osf_options, exact: c_int) -> osf_status {
    // SAFETY: the caller's promise.
    call(|| unsafe { changed(options, |options| options.exact(exact != 0)) })
}

/// # Safety
/// `options` is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn osf_options_set_strict(options: *mut osf_options, strict: c_int) -> osf_status {
    // SAFETY: the caller's promise.
    call(|| unsafe { changed(options, |options| options.strict(strict != 0)) })
}

/// # Safety
/// As [`with_text`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn osf_options_set_shapes(options: *mut osf_options, which: *const c_char) -> osf_status {
    call(|| {
        // SAFETY: the caller's promise.
        let shapes: Shapes = unsafe { text_of(which) }?.parse().map_err(|error: String| usage(&error))?;
        // SAFETY: the caller's promise.
        unsafe { changed(options, |options| options.shapes(shapes)) }
    })
}

/// # Safety
/// `options` is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn osf_options_set_fold(options: *mut osf_options, fold: c_int) -> osf_status {
    // SAFETY: the caller's promise.
    call(|| unsafe { changed(options, |options| options.fold(fold != 0)) })
}

/// # Safety
/// `model` has `length` bytes, `options` is null or valid, `result` is null or can be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn osf_fold(
    model: *const u8,
    length: usize,
    options: *const osf_options,
    result: *mut osf_buffer,
) -> osf_status {
    call(|| {
        if model.is_null() || result.is_null() {
            return Err(usage("the model or the result is a null pointer"));
        }
        // SAFETY: the caller's promise.
        unsafe { result.write(osf_buffer { data: ptr::null_mut(), length: 0 }) };
        // SAFETY: the caller's promise. Copied, because the folded model may hold on to it.
        let bytes = unsafe { std::slice::from_raw_parts(model, length) }.to_vec();
        // SAFETY: the caller's promise.
        let (options, opening) = unsafe { options.as_ref() }
            .map_or_else(|| (Options::new(), OpenOptions::new()), |options| (options.0.clone(), options.1.clone()));
        let mut model = OnnxModel::from_bytes_with(bytes, &opening).map_err(failed)?;
        model.fold(&options).map_err(failed)?;
        let folded = model.to_bytes().map_err(failed)?.into_boxed_slice();
        let length = folded.len();
        let data = Box::into_raw(folded).cast::<u8>();
        // SAFETY: the caller's promise.
        unsafe { result.write(osf_buffer { data, length }) };
        Ok(())
    })
}

/// # Safety
/// `buffer` is null, or holds a result of [`osf_fold`], or is empty.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn osf_buffer_free(buffer: *mut osf_buffer) {
    // SAFETY: the caller's promise.
    let Some(buffer) = (unsafe { buffer.as_mut() }) else { return };
    if !buffer.data.is_null() {
        // SAFETY: it came from a box of a slice of this length.
        drop(unsafe { Box::from_raw(ptr::slice_from_raw_parts_mut(buffer.data, buffer.length)) });
    }
    *buffer = osf_buffer { data: ptr::null_mut(), length: 0 };
}

#[unsafe(no_mangle)]
pub extern "C" fn osf_last_error() -> *const c_char {
    LAST_ERROR.with(|last| last.borrow().as_ptr())
}

#[unsafe(no_mangle)]
pub extern "C" fn osf_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}
