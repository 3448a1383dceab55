//! Models in the wire format: read, written, read again.
#![no_main]

#[path = "../../tests/support/readers.rs"]
#[allow(dead_code)]
mod readers;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    readers::model_bytes(bytes);
});
