//! Requirements of the programs that read a result: runtimes, compilers and converters.
//!
//! Rules and passes query this module. It imports nothing above `ir`.

mod construct;

pub use construct::{Construct, ConstructError};
