//! The results and errors of inference and evaluation, and the budget of evaluation.

use std::cell::{Cell, RefCell};

use rustc_hash::FxHashMap;

use crate::ir::{Data, Fact, NodeId};
use crate::tensor::TensorError;

/// The reason why inference gives no facts of a node.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The node violates the standard: the model cannot run, except in a lax runtime.
    #[error("{0}")]
    Invalid(String),
    /// The node violates the standard, but ONNX Runtime accepts it: a run may succeed.
    #[error("{0}")]
    Lax(String),
    /// The result depends on unknown facts, or the program does not support the case.
    #[error("{0}")]
    Unsupported(String),
}

impl Refusal {
    /// Creates an error for a violated rule.
    pub fn invalid(reason: impl Into<String>) -> Self {
        Refusal::Invalid(reason.into())
    }

    /// Creates an error for a violated rule that ONNX Runtime ignores.
    pub fn lax(reason: impl Into<String>) -> Self {
        Refusal::Lax(reason.into())
    }

    /// Creates an error for an unsupported or undecided case.
    pub fn unsupported(reason: impl Into<String>) -> Self {
        Refusal::Unsupported(reason.into())
    }
}

/// One fact per output of the node, including omitted ones. Facts of missing trailing outputs are unknown.
pub type InferResult = Result<Vec<Fact>, Refusal>;

/// The reason why a node with constant operands is not evaluated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Decline {
    /// The operands or attributes violate the standard.
    #[error("{0}")]
    Invalid(String),
    /// The evaluator does not support this case, or runtimes disagree about it.
    #[error("{0}")]
    Unsupported(String),
    /// The evaluation exceeds the budget.
    #[error("{0}")]
    OverBudget(String),
}

impl Decline {
    /// Creates an error for a violated rule.
    pub fn invalid(reason: impl Into<String>) -> Self {
        Decline::Invalid(reason.into())
    }

    /// Creates an error for an unsupported or disputed case.
    pub fn unsupported(reason: impl Into<String>) -> Self {
        Decline::Unsupported(reason.into())
    }
}

impl From<Refusal> for Decline {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Invalid(reason) | Refusal::Lax(reason) => Decline::Invalid(reason),
            Refusal::Unsupported(reason) => Decline::Unsupported(reason),
        }
    }
}

impl From<Decline> for Refusal {
    fn from(decline: Decline) -> Self {
        match decline {
            Decline::Invalid(reason) => Refusal::Invalid(reason),
            Decline::Unsupported(reason) | Decline::OverBudget(reason) => Refusal::Unsupported(reason),
        }
    }
}

impl From<TensorError> for Decline {
    /// Converts an error. A tensor that is too large violates no rule, so it exceeds the budget instead of being invalid.
    fn from(error: TensorError) -> Self {
        if is_too_large(&error) { Decline::OverBudget(error.to_string()) } else { Decline::Invalid(error.to_string()) }
    }
}

impl From<TensorError> for Refusal {
    fn from(error: TensorError) -> Self {
        if is_too_large(&error) { Refusal::Unsupported(error.to_string()) } else { Refusal::Invalid(error.to_string()) }
    }
}

fn is_too_large(error: &TensorError) -> bool {
    matches!(error, TensorError::OutOfMemory { .. } | TensorError::ElementCount { .. } | TensorError::ByteCount { .. })
}

/// One value per output of the node. Values of omitted outputs are ignored; missing trailing outputs are absent.
pub type EvalResult = Result<Vec<Data>, Decline>;

/// Limits memory and work of constant folding. Both are charged before memory is allocated or work begins.
///
/// An attempt is the evaluation of a node, or of a rule at a node. Each has a small allowance that no other attempt
/// can use, so that small attempts are independent. Larger ones take the rest from a shared reserve, which grows with
/// the bytes of the model's constants. A failed attempt returns its memory, and its work up to an amount per node. So
/// the work of all failed attempts is at most proportional to the number of nodes.
#[derive(Debug)]
pub struct Budget {
    /// The largest number of bytes of a result.
    pub node_bytes: usize,
    /// The largest number of elementary operations of a node.
    pub node_work: u64,
    bytes: Cell<u64>,
    work: Cell<u64>,
    /// The remaining allowance of the current attempt.
    own_bytes: Cell<u64>,
    own_work: Cell<u64>,
    /// The remaining bytes of deferred results, and the largest of one result; `None` if results may not be deferred.
    later: Option<(Cell<usize>, usize)>,
    /// `true` if more deferred bytes have been computed than the memory limit allows.
    is_over: Cell<bool>,
    /// The limit that the current attempt exceeded.
    cut: Cell<Option<&'static str>>,
    /// The returned work of failed attempts, by node.
    refunded: RefCell<FxHashMap<NodeId, u64>>,
}

/// The state of a budget at the start of an attempt.
#[derive(Debug)]
pub struct Attempt {
    bytes: u64,
    work: u64,
    later: Option<usize>,
    is_over: bool,
}

/// The names of the limits in reports.
pub const RESULT_BYTES: &str = "result-bytes";
const RESULT_WORK: &str = "result-work";
const CONSTANT_MEMORY: &str = "constant-memory";
const CONSTANT_WORK: &str = "constant-work";

/// The allowance of an attempt, enough for a shape, an index or a small table. 100,000 nodes that use all of it take
/// 400 MiB and one minute.
const OWN_BYTES: u64 = 4 << 10;
const OWN_WORK: u64 = 1 << 20;

/// The largest amount of work that is returned per node. Without it, 100,000 nodes that each read a large constant
/// without result in every round would take hours.
const REFUNDED_WORK: u64 = 4 * OWN_WORK;

impl Budget {
    /// Creates a budget with these limits per node and in the reserve.
    pub fn new(node_bytes: usize, total_bytes: usize, node_work: u64, total_work: u64) -> Self {
        Budget {
            node_bytes,
            node_work,
            bytes: Cell::new(total_bytes as u64),
            work: Cell::new(total_work),
            own_bytes: Cell::new(0),
            own_work: Cell::new(0),
            later: None,
            is_over: Cell::new(false),
            cut: Cell::new(None),
            refunded: RefCell::default(),
        }
    }

    /// Starts an attempt with a full allowance.
    pub fn begin(&self) -> Attempt {
        self.own_bytes.set(OWN_BYTES);
        self.own_work.set(OWN_WORK);
        self.cut.set(None);
        Attempt {
            bytes: self.bytes.get(),
            work: self.work.get(),
            later: self.later.as_ref().map(|(later, _)| later.get()),
            is_over: self.is_over.get(),
        }
    }

    /// Returns the memory of a failed attempt at a node, and its work up to a limit per node. Returns the name of the
    /// limit that stopped the attempt, if any.
    pub fn refund(&self, node: NodeId, attempt: Attempt) -> Option<&'static str> {
        self.bytes.set(attempt.bytes);
        let spent = attempt.work.saturating_sub(self.work.get());
        if spent > 0 {
            let mut refunded = self.refunded.borrow_mut();
            let before = refunded.entry(node).or_default();
            let back = spent.min(REFUNDED_WORK.saturating_sub(*before));
            *before = before.saturating_add(back);
            self.work.set(self.work.get().saturating_add(back));
        }
        if let (Some((later, _)), Some(before)) = (&self.later, attempt.later) {
            later.set(before);
        }
        self.is_over.set(attempt.is_over);
        self.cut.take()
    }

    fn refuse(&self, limit: &'static str, reason: String) -> Decline {
        self.cut.set(Some(limit));
        Decline::OverBudget(format!("{reason} (limit {limit})"))
    }

    /// Charges a deferred result. Returns `false`, and charges nothing, if the result may not be deferred.
    pub fn take_later(&self, bytes: usize) -> bool {
        let Some((later, most)) = &self.later else { return false };
        let left = later.get().checked_sub(bytes).filter(|_| bytes <= *most);
        left.inspect(|&left| later.set(left)).is_some()
    }

    /// Charges the bytes of deferred operands that a node computed completely. A budget without deferred results
    /// charges nothing: the operands belong to another budget.
    pub(super) fn take_made(&self, bytes: usize) {
        if self.later.is_some() && !take(&self.own_bytes, &self.bytes, bytes as u64) {
            self.is_over.set(true);
        }
    }

    /// Rejects operands with `bytes` deferred bytes if the memory for them is exhausted.
    ///
    /// # Errors
    /// [`Decline::OverBudget`].
    pub(super) fn may_make(&self, bytes: usize) -> Result<(), Decline> {
        if self.is_over.get() && bytes > 0 {
            return Err(self.refuse(CONSTANT_MEMORY, "the limit of memory for folding is reached".into()));
        }
        Ok(())
    }

    /// Charges `bytes` of memory for a result.
    ///
    /// # Errors
    /// [`Decline::OverBudget`] if the result is too large or the reserve is exhausted.
    pub fn take_bytes(&self, bytes: usize) -> Result<(), Decline> {
        if bytes > self.node_bytes {
            let reason = format!("a result of {bytes} bytes is over the limit of {}", self.node_bytes);
            return Err(self.refuse(RESULT_BYTES, reason));
        }
        match take(&self.own_bytes, &self.bytes, bytes as u64) {
            true => Ok(()),
            false => Err(self.refuse(CONSTANT_MEMORY, "the limit of memory for folding is reached".into())),
        }
    }

    /// Charges `work` elementary operations (multiply-adds, comparisons).
    ///
    /// # Errors
    /// [`Decline::OverBudget`] if the node is too expensive or the reserve is exhausted.
    pub fn take_work(&self, work: u64) -> Result<(), Decline> {
        if work > self.node_work {
            return Err(self.refuse(RESULT_WORK, format!("{work} operations are over the limit of {}", self.node_work)));
        }
        match take(&self.own_work, &self.work, work) {
            true => Ok(()),
            false => Err(self.refuse(CONSTANT_WORK, "the limit of work for folding is reached".into())),
        }
    }
}

/// Takes an amount from the allowance, and the rest from the reserve. Returns `false`, and takes nothing, if both
/// together are too small.
fn take(own: &Cell<u64>, reserve: &Cell<u64>, amount: u64) -> bool {
    let own_share = amount.min(own.get());
    let left = reserve.get().checked_sub(amount.saturating_sub(own_share));
    if let Some(left) = left {
        own.set(own.get().saturating_sub(own_share));
        reserve.set(left);
    }
    left.is_some()
}

impl Default for Budget {
    /// 256 MiB per result, 768 MiB in total; 2·10¹⁰ operations in total, all of which one node may use: one or two
    /// seconds.
    fn default() -> Self {
        // Two walks may keep their results at the same time: together within 2 GiB.
        Budget::new(NODE_BYTES, MOST_BYTES, WORK, WORK)
    }
}

/// The memory limits of a result, and of all results of a walk (largest and smallest); the work limit.
const NODE_BYTES: usize = 256 << 20;
const MOST_BYTES: usize = 768 << 20;
const LEAST_BYTES: usize = 192 << 20;
const WORK: u64 = 20_000_000_000;

/// The number of times that a model's constants may be recomputed from each other without using memory.
const LATER: usize = 8;

/// The number of operations per byte of the model's constants: a dozen rules may read each constant in several
/// rounds.
const WORK_OF_BYTE: u64 = 64;

impl Budget {
    /// Returns the default budget for a model with this many bytes of constants: a small file should not use much
    /// memory.
    pub fn for_payload(bytes: usize) -> Self {
        let total = LEAST_BYTES.saturating_add(bytes.saturating_mul(2)).min(MOST_BYTES);
        let later = LEAST_BYTES.saturating_add(bytes.saturating_mul(LATER));
        let later = Some((Cell::new(later), bytes.max(NODE_BYTES)));
        Budget { bytes: Cell::new(total as u64), later, ..Budget::for_rules(bytes) }
    }

    /// Returns the budget of rules for a model with this many bytes of constants. Rules replace constants by new
    /// ones.
    pub fn for_rules(bytes: usize) -> Self {
        let work = WORK.saturating_add((bytes as u64).saturating_mul(WORK_OF_BYTE));
        Budget::new(NODE_BYTES, MOST_BYTES.saturating_add(bytes), WORK, work)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deferred_results_are_charged_at_creation() {
        let budget = Budget::for_payload(1 << 20);
        assert!(!budget.take_later(NODE_BYTES + 1), "one result is that large");
        assert!(budget.take_later(LEAST_BYTES) && budget.take_later(LATER << 20) && !budget.take_later(1));
        budget.take_made(LEAST_BYTES);
        assert!(budget.may_make(1).is_ok() && budget.take_bytes(2 << 20).is_ok());
        budget.take_made(1);
        assert!(budget.may_make(0).is_ok() && budget.may_make(1).is_err());
        // Other budgets have no deferred results.
        let budget = Budget::new(1, 1, 1, 1);
        budget.take_made(2);
        assert!(!budget.take_later(1) && budget.may_make(2).is_ok());
    }

    #[test]
    fn attempts_of_ordinary_size_do_not_depend_on_one_another() {
        let budget = Budget::new(usize::MAX, 100, u64::MAX, 100);
        for _ in 0..1_000 {
            budget.begin();
            assert!(budget.take_bytes(OWN_BYTES as usize).is_ok() && budget.take_work(OWN_WORK).is_ok());
        }
        let [node, ..] = nodes();
        let attempt = budget.begin();
        assert!(budget.take_bytes(OWN_BYTES as usize + 100).is_ok() && budget.take_work(OWN_WORK + 60).is_ok());
        assert_eq!(budget.refund(node, attempt), None);
        let attempt = budget.begin();
        assert!(budget.take_bytes(OWN_BYTES as usize + 100).is_ok() && budget.take_work(OWN_WORK + 101).is_err());
        assert_eq!(budget.refund(node, attempt), Some(CONSTANT_WORK));
        assert!(budget.take_work(OWN_WORK + 100).is_ok() && budget.take_bytes(OWN_BYTES as usize + 101).is_err());
    }

    #[test]
    fn wasted_work_is_refunded_up_to_a_limit_for_each_node() {
        let budget = Budget::new(0, 0, u64::MAX, REFUNDED_WORK + 10);
        let [first, second, third] = nodes();
        let spend = |node: NodeId, work: u64| {
            let attempt = budget.begin();
            let has_enough = budget.take_work(OWN_WORK + work).is_ok();
            budget.refund(node, attempt);
            has_enough
        };
        assert!(spend(first, REFUNDED_WORK) && spend(second, REFUNDED_WORK), "each node has its own limit");
        assert!(spend(first, 10), "the reserve pays for more");
        assert!(!spend(third, REFUNDED_WORK + 1) && spend(third, REFUNDED_WORK));
    }

    fn nodes() -> [NodeId; 3] {
        let source = "<ir_version: 8, opset_import: [\"\" : 17]> g (float x) => (float y) { a = Relu (x) b = Relu (a) y = Relu (b) }";
        let model = crate::ir::text::parse(source).expect("the model parses");
        let nodes: Vec<NodeId> = model.graph(model.main()).nodes().collect();
        nodes.try_into().expect("it has three nodes")
    }

    #[test]
    fn too_large_a_tensor_breaks_no_rule() {
        assert!(matches!(Decline::from(TensorError::OutOfMemory { bytes: 1 }), Decline::OverBudget(_)));
        assert!(matches!(Refusal::from(TensorError::OutOfMemory { bytes: 1 }), Refusal::Unsupported(_)));
        assert!(matches!(Decline::from(TensorError::StringPayload), Decline::Invalid(_)));
    }
}
