//! Symbolic dimensions: exact integer expressions over the dynamic sizes of a model.
//!
//! A [`Dim`] is an integer polynomial in canonical form over atoms: symbols, floor divisions and maxima. (A remainder is `a − b·⌊a/b⌋`, a
//! minimum the negated maximum of the negations.) Equality, order and hash are structural on that form. A [`Scope`] holds the symbols and
//! the facts about them, and does the arithmetic.
//!
//! ```
//! use onnx_slice_fold::dim::{Answer, Dim, Scope};
//!
//! let scope = Scope::new();
//! let size = Dim::symbol(scope.named("S"));
//! let rest = scope.max(&Dim::constant(0), &scope.sub(&size, &Dim::constant(1))); // x[1:]
//! assert_eq!(scope.format(&rest), "max(0, S - 1)");
//! assert_eq!(scope.le(&rest, &size), Answer::Yes);
//! assert_eq!(scope.lt(&rest, &size), Answer::Unknown); // not for S = 0
//!
//! scope.restrict(size.as_symbol().unwrap(), Some(1), None);
//! assert_eq!(scope.lt(&rest, &size), Answer::Yes);
//! assert_eq!(scope.sub(&size, &Dim::constant(1)), scope.parse("max(0, S - 1)").unwrap());
//! ```
//!
//! Invariants:
//! - A result equals its operation for every assignment of the symbols within the known facts. Where it cannot be expressed (overflow, a
//!   divisor that may be zero, an expression over budget), it is a fresh symbol without facts. Nothing wraps and nothing panics.
//! - [`Answer::Yes`] and [`Answer::No`] are proved for every such assignment. Sampled values only refute.
//! - Every expression is bounded in terms, nesting and degree, so all functions here take bounded time and stack.
//! - Facts are only added. An older expression remains correct, although the same operations may give a shorter one now.
//!
//! The modules: `monomial` and `expr` are the canonical form, `scope` the symbol table, `arith` the operations with `quotient` and
//! `maximum` for the two that make atoms. `meet` computes broadcast sizes, `bounds` and `prove` prove bounds, and `size` defines which
//! integers are sizes. `ask` holds the questions, `answer` their answers, `doubts` the unanswered ones, and `shorten`, `text` and `parse`
//! the written form.

mod answer;
mod arith;
mod ask;
mod attempts;
mod bounds;
mod doubts;
mod expr;
mod integer;
mod maximum;
mod meet;
mod monomial;
mod parse;
mod parts;
mod piecewise;
mod prove;
mod quotient;
mod refute;
mod scope;
mod shorten;
mod size;
mod text;
mod work;

pub use answer::{Answer, Question};
#[cfg(feature = "seeded-faults")]
pub use ask::belief::believing;
pub use doubts::{comparisons, divisors};
pub use expr::{Dim, Symbol};
pub use integer::{greatest_common_divisor, least_common_multiple};
pub use parse::{is_word, quoted};
pub use parts::Operation;
pub use scope::{Law, PROOF_STEPS, Scope, is_identifier, is_numbered};
pub use size::LONGEST_AXIS;
pub use work::Meter;

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
