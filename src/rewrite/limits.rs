//! How far a rule looks from one place, for all rules that look in the same way.
//!
//! Each limit belongs to one attempt at one node, so no part of a model takes anything from another. Where a rule needs a limit of its own,
//! its file states it with the case that needs it.

/// The most nodes that an attempt follows from one place. Without it, a rule that is asked at each node of a chain of N nodes follows N²: a chain
/// of 100,000 element-wise nodes takes hours.
pub(super) const NODES: usize = 64;

/// The most operators that an attempt follows one after the other where paths branch. Each operator with two followed operands doubles the
/// paths, and the recursion must fit in a small stack.
pub(super) const DEPTH: usize = 32;

/// The most readers of one value, or parts of one whole, that are compared with one another. Without it, a value with N readers takes N³:
/// each of them compares each two.
pub(super) const READERS: usize = 128;

/// The most elements of a constant that a rule looks at one by one, or writes as a list. Longer ones are weights: looking at them takes longer
/// than reading the file, and a list of indices takes 8 bytes an element where a Slice or a Range takes none.
pub(super) const LISTED: usize = crate::ir::MAX_ELEMENTS;

/// The most bytes that new tables may take beyond the constants they replace, where a node less is all that is gained for them. Without it, a
/// table for each length of a sequence makes a model of 1 MB one of 100 MB.
pub(super) const ADDED: usize = 256 << 10;

/// The same where a computation is replaced that runtimes do nearly for free.
pub(super) const ADDED_FOR_LITTLE: usize = 64 << 10;
