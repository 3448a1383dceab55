//! Products of matrices that take up what is beside them.
//!
//! Laws, for `Gemm(A, B, C) = A·B + C` of operands of rank 2, either of the first two transposed by a flag:
//!
//! * `MatMul(A, B) + C = Gemm(A, B, C)` where `C` broadcasts to the product and not the other way round
//! * `Gemm(Aᵀ, B, C) = Gemm(A, B, C; transA)`, and so for `B`
//!
//! Results stay equal up to rounding: how a kernel sums is its own business.

use super::kernels::has_gemm;
use super::normalized::is_of_normalized_rows;
use super::{Fusion, Place, Rule};
use crate::dim::Dim;
use crate::ir::{Attribute, Edit, NamedAttribute, Node, NodeId, ValueId};

pub(in crate::rewrite) const RULES: &[Rule] = &[
    Rule {
        name: "matmul-add-to-gemm",
        law: "A·B + C = Gemm(A, B, C)",
        sentence: "Merges MatMul and Add into Gemm.",
        premises: &[
            ("matrices", "A and B have two axes"),
            ("broadcasts-in", "C broadcasts to the product, and does not enlarge it"),
            ("summed", "the summed axes are proved not to be empty, because runtimes differ on sums of empty axes"),
            ("covered-type", "the type is a float that Gemm takes in the model's operator set"),
            (
                "not-normalized",
                "A is not a Reshape of the result of a layer normalization: a transformer optimizer treats such a Gemm and the following Reshape as a product of the whole tensor, for any Reshape",
            ),
            ("one-reader", "the values in between have no other consumer"),
        ],
        exact: false,
        operators: &["Add"],
        apply: add,
    },
    Rule {
        name: "transpose-into-gemm",
        law: "Gemm(Aᵀ, B, C) = Gemm(A, B, C; transA = 1), and so for B",
        sentence: "Merges a Transpose of an operand into Gemm.",
        premises: &[
            ("swaps", "the Transpose swaps the two axes of a matrix"),
            ("summed", "the summed axes are proved not to be empty, because runtimes differ on sums of empty axes"),
            ("covered-type", "the type is a float that Gemm takes in the model's operator set"),
            ("no-c", "a MatMul has operand set 11, since which a Gemm does without C"),
            ("one-reader", "the values in between have no other consumer"),
        ],
        exact: false,
        operators: &["Gemm", "MatMul"],
        apply: transpose,
    },
];

/// Whether both operands of a MatMul have rank 2, and there is something to sum: of nothing, runtimes make this and that.
fn is_flat(place: &Place<'_>, node: &Node) -> Option<bool> {
    let &[Some(a), Some(b)] = node.inputs() else { return None };
    let (a, b) = (place.shape(a)?, place.shape(b)?);
    let summed = || a.get(1).is_some_and(|dim| place.scope().ge(dim, &Dim::constant(1)).is_yes());
    Some(a.len() == 2 && b.len() == 2 && summed())
}

/// Looks at the addition.
fn add(place: &Place<'_>) -> Option<Edit> {
    if !place.opset.arithmetic_broadcasts() {
        return None;
    }
    let &[Some(a), Some(b)] = place.node()?.inputs() else { return None };
    let found = [(a, b), (b, a)].into_iter().find_map(|(product, term)| {
        let (id, inner) = place.producer(product, "MatMul")?;
        let fits = is_flat(place, inner)? && broadcasts_to(place, term, product)? && has_gemm(place, product);
        let is_free = place.is_internal(product, &[place.id]) && !is_of_normalized_rows(place, inner);
        (fits && term != product && is_free).then(|| (id, inner.inputs(), term))
    });
    let (id, inputs, term) = found?;
    let operands = inputs.iter().copied().chain([Some(term)]).map(Into::into).collect();
    let remove = vec![id, place.id];
    Fusion { remove, like: id, operator: "Gemm", attributes: Vec::new(), operands }.edit(place)
}

/// Whether `value` broadcasts to the shape of `product`.
fn broadcasts_to(place: &Place<'_>, value: ValueId, product: ValueId) -> Option<bool> {
    let (from, to) = (place.shape(value)?, place.shape(product)?);
    let mut pairs = from.iter().rev().zip(to.iter().rev());
    Some(from.len() <= to.len() && pairs.all(|(from, to)| from.is_const(1) || place.scope().eq(from, to).is_yes()))
}

/// Looks at the product.
fn transpose(place: &Place<'_>) -> Option<Edit> {
    let node = place.node()?;
    let is_gemm = node.is("Gemm");
    // Before opset 11 a Gemm needs its `C`.
    if !is_gemm
        && (!place.opset.gemm_without_bias() || !is_flat(place, node)? || !has_gemm(place, place.only_output()?))
    {
        return None;
    }
    let (slot, id, matrix) = [0, 1].into_iter().find_map(|slot| transposed(place, node, slot))?;
    let name = if slot == 0 { "transA" } else { "transB" };
    let flag = node.int(name, 0)?;
    let mut attributes = node.attributes.clone();
    attributes.retain(|attribute| attribute.name != name);
    if flag == 0 {
        attributes.push(NamedAttribute::new(name, Attribute::Int(1)));
    }
    let value = |(at, &value): (usize, &Option<ValueId>)| if at == slot { Some(matrix) } else { value };
    let operands = node.inputs().iter().enumerate().map(value).map(Into::into).collect();
    let remove = vec![id, place.id];
    Fusion { remove, like: place.id, operator: "Gemm", attributes, operands }.edit(place)
}

/// The node that transposes operand `slot` for this product only, and what it transposes.
fn transposed(place: &Place<'_>, node: &Node, slot: usize) -> Option<(usize, NodeId, ValueId)> {
    let value = node.input(slot)?;
    let (id, inner) = place.producer(value, "Transpose")?;
    let swaps = place.read(inner).permutation(2)? == [1, 0];
    let once = node.times_read(value) == 1;
    let flat = place.shape(value)?.len() == 2;
    let fits = swaps && once && flat && place.is_internal(value, &[place.id]);
    Some((slot, id, inner.input(0).filter(|_| fits)?))
}
