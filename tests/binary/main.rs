//! The program as its users meet it: the command line, real exports, and files that break the standard.

#[path = "../support/mod.rs"]
mod support;

mod book;
mod cli;
mod exports;
mod hostile;
mod migration;
mod report;
mod usage;
