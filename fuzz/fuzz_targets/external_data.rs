//! Models in a folder with a data file: the locations of their data.
#![no_main]

#[path = "../../tests/support/readers.rs"]
#[allow(dead_code)]
mod readers;

use std::sync::LazyLock;

static FOLDER: LazyLock<(tempfile::TempDir, std::path::PathBuf)> = LazyLock::new(|| {
    let folder = tempfile::TempDir::new().expect("a folder");
    let (model, _) = readers::data_folder(folder.path());
    (folder, model)
});

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    readers::external_data(&FOLDER.1, bytes);
});
