//! Operators that work element by element.
//!
//! | file | operators |
//! | --- | --- |
//! | [`arithmetic`] | Add, Sub, Mul, Div, Mod, Pow; Min, Max, Sum, Mean |
//! | [`functions`] | functions of one number, from Neg to Atanh, Round, Erf, IsNaN, IsInf |
//! | [`exponential`] | what Exp, Tanh and Sigmoid compute in binary32 |
//! | [`activation`] | Relu and its kin, Sigmoid, Gelu, Swish, SwiGLU, PRelu, Shrink … |
//! | [`logic`] | comparisons, And, Or, Xor, Not |
//! | [`bits`] | BitwiseAnd and its kin, BitShift, BitCast |
//! | [`select`] | Where, Clip, Identity, Dropout |
//! | [`cast`] | Cast, CastLike |
//! | [`random`] | the random operators: types only |
//!
//! [`symbolic`] is the arithmetic on elements that are expressions, [`kernel`] and [`convert`] are the loops over values,
//! [`later`] those that wait until the result is read.
//!
//! What an operator does not refuse: element types its version does not list yet but a later one does. Such a model does not
//! conform, yet its meaning is not in doubt.

pub(super) mod activation;
pub(super) mod arithmetic;
pub(super) mod bits;
pub(super) mod cast;
mod convert;
pub(super) mod exponential;
pub(super) mod functions;
mod kernel;
mod later;
pub(super) mod logic;
pub(super) mod random;
mod remainder;
pub(super) mod select;
pub(super) mod symbolic;
#[cfg(test)]
mod tests;

use symbolic::Elements;

use super::broadcast::{Broadcast, broadcast_shapes, placed_shape};
use super::{InferCx, InferResult, Refusal, Site};
use crate::dim::{Dim, Scope};
use crate::ir::{Fact, MAX_ELEMENTS, Scalar};
use crate::tensor::DType;

/// How the operands of an operator with two of them meet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Meeting {
    /// Multidirectional broadcasting.
    Broadcast,
    /// All shapes are equal.
    Equal,
    /// The second operand is stretched to the first, from this axis on; see [`placed_shape`].
    Placed(Option<i64>),
}

impl Meeting {
    /// The way of the operators that broadcast freely since operator set 7, and by attribute before.
    fn of(site: &Site<'_>) -> Result<Meeting, Refusal> {
        if site.version >= 7 {
            return Ok(Meeting::Broadcast);
        }
        Ok(match site.attr_flag("broadcast", false)? {
            true => Meeting::Placed(site.attr_int("axis")?),
            false => Meeting::Equal,
        })
    }

    /// The shape of the result, as far as it follows from what is known.
    fn shape(self, scope: &Scope, a: Option<&[Dim]>, b: Option<&[Dim]>) -> Result<Option<Vec<Dim>>, Refusal> {
        match self {
            Meeting::Broadcast => match (a, b) {
                (Some(a), Some(b)) => broadcast_shapes(scope, &[a, b]).map(Some),
                _ => Ok(None),
            },
            Meeting::Equal => equal_shapes(scope, [a, b].into_iter().flatten()),
            Meeting::Placed(axis) => match (a, b) {
                (Some(a), Some(b)) => stretched_shape(scope, a, &placed_shape(a.len(), b, axis, 1.into())?).map(Some),
                (a, _) => Ok(a.map(<[Dim]>::to_vec)),
            },
        }
    }

    /// The way through the elements of operands of these shapes.
    fn way(self, a: &[usize], b: &[usize]) -> Result<Broadcast<2>, Refusal> {
        let way = match self {
            Meeting::Broadcast => Broadcast::new([a, b]),
            Meeting::Equal => (a == b).then(|| Broadcast::new([a, b])).flatten(),
            Meeting::Placed(axis) => {
                let placed = placed_shape(a.len(), b, axis, 1)?;
                Broadcast::new([a, &placed]).filter(|way| way.shape() == a)
            }
        };
        way.ok_or_else(|| Refusal::invalid(format!("operands of shapes {a:?} and {b:?} do not broadcast")))
    }
}

/// The one shape that all these are; the most telling of each dim's names. `None` when there are none.
fn equal_shapes<'d>(scope: &Scope, shapes: impl Iterator<Item = &'d [Dim]>) -> Result<Option<Vec<Dim>>, Refusal> {
    let mut result: Option<Vec<Dim>> = None;
    for shape in shapes {
        let Some(known) = &mut result else {
            result = Some(shape.to_vec());
            continue;
        };
        if known.len() != shape.len() || known.iter().zip(shape).any(|(a, b)| scope.eq(a, b).is_no()) {
            return Err(Refusal::invalid("the operands' shapes differ, and this operator version does not broadcast"));
        }
        for (known, dim) in known.iter_mut().zip(shape) {
            if dim.as_const().is_some() {
                *known = dim.clone();
            }
        }
    }
    Ok(result)
}

/// The shape of an operand that another is stretched to (unidirectional broadcasting): its own, where the other does not know
/// better.
fn stretched_shape(scope: &Scope, shape: &[Dim], other: &[Dim]) -> Result<Vec<Dim>, Refusal> {
    let fails = || Refusal::invalid("the operands do not broadcast");
    let front = shape.len().checked_sub(other.len()).ok_or_else(fails)?;
    let mut result = shape.to_vec();
    for (dim, with) in result.iter_mut().skip(front).zip(other) {
        let is_one = scope.eq(with, &Dim::constant(1));
        if is_one.is_no() && scope.eq(dim, with).is_no() {
            return Err(fails());
        }
        if is_one.is_no() && with.as_const().is_some() {
            *dim = with.clone();
        }
    }
    Ok(result)
}

/// The element type that all these operands have, if any is known.
fn common_dtype(cx: &InferCx<'_>, operands: impl Iterator<Item = usize>) -> Result<Option<DType>, Refusal> {
    let mut common = None;
    for dtype in operands.filter_map(|i| cx.dtype(i)) {
        match common {
            Some(known) if known != dtype => {
                return Err(Refusal::invalid(format!("the operands' element types differ: {known} and {dtype}")));
            }
            _ => common = Some(dtype),
        }
    }
    Ok(common)
}

/// The elements of an operand that is followed element by element.
fn scalars(fact: &Fact) -> Option<Vec<Scalar>> {
    let mut elements = fact.elements()?;
    if !fact.dtype()?.is_float() {
        // A `uint64` beyond the signed range is given rounded.
        for element in &mut elements {
            if matches!(element, Scalar::Float(_) | Scalar::Real { .. }) {
                *element = Scalar::Unknown;
            }
        }
    }
    Some(elements)
}

/// The result's fact with its elements, where the operand's are followed. Constants are left to evaluation.
fn with_mapped(result: Fact, operand: &Fact, function: impl Fn(&Scalar) -> Scalar) -> Fact {
    if operand.data().is_some() {
        return result;
    }
    match scalars(operand) {
        Some(elements) => result.with_elements(elements.iter().map(function).collect()),
        None => result,
    }
}

/// The result's fact with its elements, where those of operands that meet in `way` are followed. An operand that is not counts
/// as unknown throughout, unless none is. Constants are left to evaluation.
fn with_zipped<const N: usize>(
    result: Fact,
    operands: [&Fact; N],
    way: Option<Broadcast<N>>,
    function: impl Fn([&Scalar; N]) -> Scalar,
) -> Fact {
    let Some(way) = way.filter(|way| way.len() <= MAX_ELEMENTS) else { return result };
    if operands.iter().all(|operand| operand.data().is_some()) {
        return result;
    }
    let elements = operands.map(scalars);
    // Of two floats neither settles the result alone.
    let hopeless = N == 2 && operands.iter().any(|operand| operand.dtype().is_some_and(DType::is_float));
    let unknown = elements.iter().filter(|elements| elements.is_none()).count();
    if unknown == N || (unknown > 0 && hopeless) {
        return result;
    }
    let at = |operand: usize, position: usize| {
        let elements = elements.get(operand).and_then(Option::as_ref);
        elements.and_then(|elements| elements.get(position)).unwrap_or(&Scalar::Unknown)
    };
    let compute =
        |positions: &[usize; N]| function(std::array::from_fn(|i| at(i, positions.get(i).copied().unwrap_or(0))));
    let computed = way.positions().iter().map(compute).collect();
    result.with_elements(computed)
}

/// The shapes of the operands, if each is a number throughout.
fn static_shapes<const N: usize>(operands: [&Fact; N]) -> Option<[Vec<usize>; N]> {
    let shapes: Option<Vec<Vec<usize>>> = operands.into_iter().map(Fact::static_shape).collect();
    shapes?.try_into().ok()
}

/// A result of the operand's own type and shape, of whose elements nothing is said.
fn like_operand(cx: &mut InferCx<'_>) -> InferResult {
    let operand = cx.required(0)?;
    Ok(vec![Fact::tensor(operand.dtype(), operand.shape().map(<[Dim]>::to_vec))])
}

/// The same, with elements computed by `function` where the operand's are followed.
fn like_operand_with(cx: &InferCx<'_>, function: impl Fn(&Elements<'_>, &Scalar) -> Scalar) -> InferResult {
    let operand = cx.required(0)?;
    let result = Fact::tensor(operand.dtype(), operand.shape().map(<[Dim]>::to_vec));
    let Some(dtype) = operand.dtype() else { return Ok(vec![result]) };
    let elements = Elements::new(cx.scope(), dtype);
    Ok(vec![with_mapped(result, operand, |element| function(&elements, element))])
}
