//! Element-wise operators.
//!
//! | file | operators |
//! | --- | --- |
//! | [`arithmetic`] | Add, Sub, Mul, Div, Mod, Pow; Min, Max, Sum, Mean |
//! | [`functions`] | functions of one number, from Neg to Atanh, Round, Erf, IsNaN, IsInf |
//! | [`exponential`] | binary32 versions of Exp, Tanh and Sigmoid |
//! | [`activation`] | Relu and variants, Sigmoid, Gelu, Swish, SwiGLU, PRelu, Shrink … |
//! | [`logic`] | comparisons, And, Or, Xor, Not |
//! | [`bits`] | BitwiseAnd and variants, BitShift, BitCast |
//! | [`select`] | Where, Clip, Identity, Dropout |
//! | [`cast`] | Cast, CastLike |
//! | [`random`] | the random operators: types only |
//!
//! [`symbolic`] does arithmetic on symbolic elements; [`kernel`] and [`convert`] contain the loops over values; [`later`] contains
//! the deferred ones.
//!
//! Element types that only a later version of an operator lists are accepted. Such a model does not conform, but its meaning is
//! unambiguous.

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

/// The relation between the shapes of two operands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Meeting {
    /// Multidirectional broadcasting.
    Broadcast,
    /// All shapes are equal.
    Equal,
    /// The second operand broadcasts to the first, aligned at this axis; see [`placed_shape`].
    Placed(Option<i64>),
}

impl Meeting {
    /// Returns the mode of operators that broadcast since operator set 7, and by attribute before.
    fn of(site: &Site<'_>) -> Result<Meeting, Refusal> {
        if site.version >= 7 {
            return Ok(Meeting::Broadcast);
        }
        Ok(match site.attr_flag("broadcast", false)? {
            true => Meeting::Placed(site.attr_int("axis")?),
            false => Meeting::Equal,
        })
    }

    /// Infers the shape of the result, as far as it is known.
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

    /// Returns the broadcast of operands of these shapes.
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

/// Merges equal shapes and keeps the most descriptive name of each dim. Returns `None` without shapes.
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

/// Infers the shape of an operand that another broadcasts to (unidirectional broadcasting): its own dims, refined by those of the
/// other.
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

/// Returns the element type of all these operands, if one is known.
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

/// Returns the elements of an operand, if they are known.
fn scalars(fact: &Fact) -> Option<Vec<Scalar>> {
    let mut elements = fact.elements()?;
    if !fact.dtype()?.is_float() {
        // Values of `uint64` beyond the signed range are rounded, so drop them.
        for element in &mut elements {
            if matches!(element, Scalar::Float(_) | Scalar::Real { .. }) {
                *element = Scalar::Unknown;
            }
        }
    }
    Some(elements)
}

/// Adds elements to the result's fact, if the operand's elements are known. Constants are evaluated instead.
fn with_mapped(result: Fact, operand: &Fact, function: impl Fn(&Scalar) -> Scalar) -> Fact {
    if operand.data().is_some() {
        return result;
    }
    match scalars(operand) {
        Some(elements) => result.with_elements(elements.iter().map(function).collect()),
        None => result,
    }
}

/// Adds elements to the result's fact, from operands that broadcast as in `way`. An operand without known elements counts as
/// unknown, unless all lack them. Constants are evaluated instead.
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
    // One float alone never determines the result.
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

/// Returns the shapes of the operands, if all dims are constant.
fn static_shapes<const N: usize>(operands: [&Fact; N]) -> Option<[Vec<usize>; N]> {
    let shapes: Option<Vec<Vec<usize>>> = operands.into_iter().map(Fact::static_shape).collect();
    shapes?.try_into().ok()
}

/// Infers a result with the operand's type and shape, without elements.
fn like_operand(cx: &mut InferCx<'_>) -> InferResult {
    let operand = cx.required(0)?;
    Ok(vec![Fact::tensor(operand.dtype(), operand.shape().map(<[Dim]>::to_vec))])
}

/// Like [`like_operand`], with elements computed by `function` if the operand's are known.
fn like_operand_with(cx: &InferCx<'_>, function: impl Fn(&Elements<'_>, &Scalar) -> Scalar) -> InferResult {
    let operand = cx.required(0)?;
    let result = Fact::tensor(operand.dtype(), operand.shape().map(<[Dim]>::to_vec));
    let Some(dtype) = operand.dtype() else { return Ok(vec![result]) };
    let elements = Elements::new(cx.scope(), dtype);
    Ok(vec![with_mapped(result, operand, |element| function(&elements, element))])
}
