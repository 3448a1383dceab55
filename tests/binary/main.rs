//! Tests of the binary: the command line, real exports, and files that violate the standard.

#[path = "../support/mod.rs"]
mod support;

mod avoid;
mod book;
mod cli;
#[cfg(feature = "seeded-faults")]
mod difference;
mod exports;
mod hostile;
mod inspect;
#[cfg(unix)]
mod links;
mod memory;
mod migration;
mod mutations;
mod report;
mod usage;
