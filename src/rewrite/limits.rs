//! Limits of the search from one node, shared by all rules that search in the same way.
//!
//! Each limit applies to one attempt at one node, so no part of a model uses up the limit of another. A rule that needs a different limit
//! states it in its own file, with the case that needs it.

/// The most nodes that an attempt follows from one node. Without it, a rule that runs at each node of a chain of N nodes follows N²: a
/// chain of 100,000 element-wise nodes takes hours.
pub(super) const NODES: usize = 64;

/// The longest chain of operators that an attempt follows where paths branch. Each operator with two followed operands doubles the paths,
/// and the recursion must fit in a small stack.
pub(super) const DEPTH: usize = 32;

/// The most consumers of one value, or parts of one whole, that are compared in pairs. Without it, a value with N consumers takes N³: each
/// consumer compares all pairs.
pub(super) const READERS: usize = 128;

/// The most elements of a constant that a rule inspects one by one, or writes as a list. Longer constants are weights: inspecting them
/// takes longer than reading the file. A list of indices takes 8 bytes per element, a Slice or a Range takes none.
pub(super) const LISTED: usize = crate::ir::MAX_ELEMENTS;

/// The most bytes that new tables may add to the constants that they replace, if the edit saves one node only. Without it, a table for each
/// sequence length turns a model of 1 MB into one of 100 MB.
pub(super) const ADDED: usize = 256 << 10;

/// The same limit for replacing computations that cost runtimes almost nothing.
pub(super) const ADDED_FOR_LITTLE: usize = 64 << 10;
