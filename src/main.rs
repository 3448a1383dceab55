//! The command line.

mod cli;

/// Folding allocates many small objects: see Cargo.toml for what this saves.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    cli::main()
}
