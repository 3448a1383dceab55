//! The command line.
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

/// Folding allocates many small objects: see Cargo.toml for what this saves.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    onnx_slice_fold::pages::choose();
    onnx_slice_fold::cli::main()
}
