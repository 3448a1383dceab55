//! Symbolic dimensions: exact integer expressions over the sizes that a model leaves open.
mod arith;
mod ask;
mod bounds;
mod expr;
mod maximum;
mod parse;
mod prove;
mod quotient;
mod scope;
mod text;

pub use ask::Answer;
pub use expr::{Dim, Symbol};
pub use scope::Scope;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
