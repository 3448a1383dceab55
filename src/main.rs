//! The command line.
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

/// Folding allocates many small objects: see Cargo.toml for what this saves.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    take_small_pages();
    onnx_slice_fold::cli::main()
}

/// What is allocated first lies in one huge page, which the allocator has by now and which takes less time than many small ones. From here on the
/// system gives small ones: it clears a page as a whole, which takes a sixth more of the time of a graph of 500 nodes, and of one of a million on a
/// virtual machine, where huge pages are given slowly. Those of 30,000 nodes would take a tenth less.
fn take_small_pages() {
    // Where the system has no such choice only the time is another.
    #[cfg(target_os = "linux")]
    let _ = rustix::thread::disable_transparent_huge_pages(true);
}
