//! Graphs in which each byte chooses something, folded and compared with the originals.
#![no_main]

#[path = "../../tests/support/readers.rs"]
#[allow(dead_code)]
mod readers;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    readers::generated_graph(bytes);
});
