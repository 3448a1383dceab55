//! Merges a matrix product and a bias into a Gemm.
//!
//! Law: `MatMul(A, B) + C = Gemm(A, B, C)` for operands of rank 2, where `C` broadcasts to the shape of the product. Results are equal up
//! to rounding, because the order of summation depends on the kernel.

use super::Fusion;
use super::kernels::has_gemm;
use super::normalized::is_of_normalized_rows;
use crate::dim::Dim;
use crate::ir::{Edit, Node, ValueId};
use crate::rewrite::miss::{Miss, ensure, first_of, prove};
use crate::rewrite::place::Place;
use crate::rewrite::rule::{Rule, miss};

pub(in crate::rewrite) const RULES: &[Rule] = &[Rule {
    name: "matmul-add-to-gemm",
    law: "A·B + C = Gemm(A, B, C)",
    sentence: "Merges MatMul and Add into Gemm.",
    premises: &[
        ("matrices", "A and B have rank 2"),
        ("broadcasts-in", "C broadcasts to the shape of A·B"),
        ("summed", "the axis over which A·B sums is proved not to be empty, because runtimes differ on empty sums"),
        ("covered-type", "the element type is a float type that Gemm accepts in the model's operator set"),
        (
            "not-normalized",
            "A is not the Reshape of the result of a layer normalization. ONNX Runtime's transformer optimizer would remove this Reshape, and a Reshape after the Gemm, without checking the shapes",
        ),
        ("one-reader", "the result of the MatMul has no other consumer"),
    ],
    exact: false,
    operators: &["Add"],
    apply: add,
}];

/// Checks that both operands of a MatMul have rank 2 and that the summed axis is not empty: runtimes differ on empty sums.
fn check_matrices(place: &Place<'_>, node: &Node) -> Result<(), Miss> {
    let &[Some(a), Some(b)] = node.inputs() else { return Err(Miss::ROOT) };
    let [Some([_, summed]), Some([_, _])] = [a, b].map(|operand| place.shape(operand)) else {
        return Err(miss!("matrices").of(a));
    };
    prove(place.scope().ge(summed, &Dim::constant(1)), miss!("summed").dim(a, 1))
}

/// Matches the addition.
fn add(place: &Place<'_>) -> Result<Edit, Miss> {
    ensure(place.opset.arithmetic_broadcasts(), Miss::EXPRESSIBLE)?;
    let &[Some(a), Some(b)] = place.root()?.inputs() else { return Err(Miss::ROOT) };
    let found = [(a, b), (b, a)].into_iter().map(|(product, term)| {
        let (id, inner) = place.producer(product, "MatMul").ok_or(Miss::ROOT)?;
        check_matrices(place, inner)?;
        ensure(broadcasts_to(place, term, product) == Some(true), miss!("broadcasts-in").of(term))?;
        ensure(has_gemm(place, product), miss!("covered-type").of(product))?;
        ensure(term != product && place.is_internal(product, &[place.id]), Miss::READ.of(product))?;
        ensure(!is_of_normalized_rows(place, inner), miss!("not-normalized").of(product))?;
        Ok((id, inner.inputs(), term))
    });
    let (id, inputs, term) = first_of(found)?;
    let operands = inputs.iter().copied().chain([Some(term)]).map(Into::into).collect();
    let remove = vec![id, place.id];
    Fusion { remove, like: id, operator: "Gemm", attributes: Vec::new(), operands }.edit(place)
}

/// Returns `true` if `value` broadcasts to the shape of `product`.
fn broadcasts_to(place: &Place<'_>, value: ValueId, product: ValueId) -> Option<bool> {
    let (from, to) = (place.shape(value)?, place.shape(product)?);
    let mut pairs = from.iter().rev().zip(to.iter().rev());
    Some(from.len() <= to.len() && pairs.all(|(from, to)| from.is_const(1) || place.scope().eq(from, to).is_yes()))
}
