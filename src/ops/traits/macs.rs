//! Multiply-accumulates: the number of products of two elements that an operator sums, as an expression in the dims.
//!
//! Only sums of products count: convolutions, matrix products, attention, recurrent cells. Padding counts like data,
//! since kernels may compute it. Bias, softmax and activations do not count.

use super::NodeFacts;
use crate::dim::Dim;

/// The number of multiply-accumulates of a node; `None` if facts do not determine it.
pub type Macs = fn(&NodeFacts<'_>) -> Option<Dim>;

impl NodeFacts<'_> {
    /// Returns the number of elements of operand `slot`.
    pub fn elements(&self, slot: usize) -> Option<Dim> {
        Some(self.scope().product(self.shape(slot)?))
    }

    /// Returns the number of elements of the first result.
    pub fn result_elements(&self) -> Option<Dim> {
        Some(self.scope().product(self.result_shape()?))
    }

    /// Returns the multiply-accumulates of a product that sums `terms` products for each element of the result.
    pub fn terms_per_result(&self, terms: &Dim) -> Option<Dim> {
        Some(self.scope().mul(&self.result_elements()?, terms))
    }
}

/// Returns the multiply-accumulates of a matrix product whose first operand is `[…, K]`.
pub(in crate::ops) fn matrix_product(view: &NodeFacts<'_>) -> Option<Dim> {
    view.terms_per_result(view.shape(0)?.last()?)
}

/// Returns the multiply-accumulates of a matrix product whose first operand is `[…, K]`, or `[…, K, M]` if `transA` is set.
pub(in crate::ops) fn turned_product(view: &NodeFacts<'_>) -> Option<Dim> {
    let summed = match view.shape(0)? {
        [.., summed, _] if view.int("transA", 0)? != 0 => summed,
        [.., summed] => summed,
        [] => return None,
    };
    view.terms_per_result(summed)
}

/// Returns the multiply-accumulates of a convolution with weights `[M, C/group, k…]` in operand `weights`.
pub(in crate::ops) fn convolution(view: &NodeFacts<'_>, weights: usize) -> Option<Dim> {
    view.terms_per_result(&view.scope().product(view.shape(weights)?.get(1..)?))
}

/// Returns the multiply-accumulates of a transposed convolution with weights `[C, M/group, k…]`: each element of the image is multiplied with
/// each tap, including taps that fall into the padding.
pub(in crate::ops) fn transposed_convolution(view: &NodeFacts<'_>) -> Option<Dim> {
    let taps = view.scope().product(view.shape(1)?.get(1..)?);
    Some(view.scope().mul(&view.elements(0)?, &taps))
}

/// Returns the multiply-accumulates of a recurrent network over all steps: each step multiplies all weights. Ignores
/// `lengths`, which may end it earlier.
pub(in crate::ops) fn recurrence(view: &NodeFacts<'_>) -> Option<Dim> {
    let scope = view.scope();
    let [first, second, _] = view.shape(0)? else { return None };
    let weights = scope.add(&view.elements(1)?, &view.elements(2)?);
    Some(scope.product([first, second, &weights]))
}

/// Returns the multiply-accumulates of attention over `length` keys: `Q·Kᵀ` sums one product for each element of the queries and each key,
/// `P·V` one for each element of the result and each key. Masks reduce nothing.
pub(in crate::ops) fn attention(view: &NodeFacts<'_>, queries: &Dim, length: &Dim) -> Option<Dim> {
    let scope = view.scope();
    Some(scope.mul(&scope.add(queries, &view.result_elements()?), length))
}
