//! Properties of operators for general rules and passes.
//!
//! A rule for a class of operators queries the class here and names no operator. Each entry of the operator table
//! contains its [`Traits`] as plain data, in the family's file next to inference and evaluation. `tests` compares all
//! traits with both, on random operands. Undeclared properties are not guaranteed.
//!
//! | trait | property |
//! | --- | --- |
//! | `pointwise` | an element of the result depends only on the operands' elements at the same index |
//! | [`moves`](Traits::moves) | results are unchanged elements of the operands |
//! | [`index_map`](Traits::index_map) | maps each element of a result to an element of an operand or to a constant |
//! | [`reduces`](Traits::reduces) | axes are reduced to one element each, kept with dim 1 or dropped |
//! | [`mixes`](Traits::mixes) | the result has the first operand's shape, and only these axes are mixed |
//! | [`kernels`](Traits::kernels) | other dependencies of a result's bits, in the kernels of runtimes |
//! | [`commutes`](Traits::commutes) | two operands commute |
//! | [`fails`](Traits::fails) | whether a run may fail for some values |
//! | [`range`](Traits::range), [`monotone`](Traits::monotone), [`ordered`](Traits::ordered) | bounds and order of results |
//! | [`needs`](Traits::needs), [`needs_equal`](Traits::needs_equal) | rejected dims |
//! | [`shape_inference`](Traits::shape_inference) | the facts from which runtimes infer shapes when they load a model |
//! | [`macs`](Traits::macs), [`iterations`](Traits::iterations) | the numbers of summed products and of runs of its subgraphs |
//! | [`counts`](Traits::counts), [`uniform`](Traits::uniform), [`repeats`](Traits::repeats) | results for affine, uniform and repeated operands |

mod counting;
mod declare;
mod macs;
mod moved;
mod names;
mod repeats;
#[cfg(test)]
mod tests;
mod view;

pub use counting::{Counting, in_steps};
pub(in crate::ops) use counting::{moved, pair};
pub use macs::Macs;
pub(in crate::ops) use macs::{
    attention, convolution, matrix_product, recurrence, transposed_convolution, turned_product,
};
pub use moved::{IndexMapOf, Moved, index_map_of};
pub use names::*;
pub use repeats::{Repetition, broadcast_narrow};
pub use view::{NodeFacts, Place, traits_of};

use crate::dim::Dim;
use crate::ops::opset::Opset;
use crate::tensor::{DType, Tensor};

/// The operands of a pointwise operator that are indexed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operands {
    /// The first. Other operands are scalars, or only their type matters.
    First,
    /// The first. Other operands are scalars if they have rank 0, else they have one element per index of an axis.
    Scaled,
    /// All, broadcast against each other (multidirectional broadcasting).
    Broadcast,
    /// All; others are broadcast to the first's shape (unidirectional broadcasting).
    Stretched,
}

/// A result's element depends only on the operands' elements at the same index.
#[derive(Clone, Copy, Debug)]
pub struct Pointwise {
    /// The indexed operands.
    pub operands: Operands,
    /// The first opset with this broadcasting; earlier ones use attributes.
    pub since: i64,
    /// The first opset that accepts integers.
    pub integers_since: i64,
    /// The attributes that determine the function.
    pub attributes: &'static [&'static str],
}

impl Pointwise {
    /// Returns `true` if this broadcasting applies in the opset.
    pub fn meets(&self, opset: Opset) -> bool {
        opset.version() >= self.since
    }

    /// Returns `true` if the opset accepts operands of this type.
    pub fn takes(&self, opset: Opset, dtype: DType) -> bool {
        !dtype.is_integer() || opset.version() >= self.integers_since
    }
}

/// The change of a result if the same elements are computed in a tensor of another shape or content.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Variation {
    /// The bits are equal, except sign and payload of NaN.
    None,
    /// Rounding or the sign of a zero may differ.
    Rounding,
    /// The value may differ.
    Values,
}

/// Dependencies of runtime kernels on more than the elements.
///
/// Measured on ONNX Runtime. Kernels of transcendental functions compute most elements in vectors and the rest one by
/// one, with other approximations. Pow with a scalar exponent of 2 or 3 multiplies; integer Pow otherwise uses
/// doubles. In Max, the scalar operand determines the sign of zero.
#[derive(Clone, Copy, Debug)]
pub struct Kernels {
    /// The dependency on an element's position.
    pub place: Variation,
    /// The dependency on whether an operand is a scalar, for floats.
    pub scalar: Variation,
    /// The dependency on whether an operand is a scalar, for integers.
    pub integer_scalar: Variation,
}

impl Kernels {
    /// Returns `true` if a result has the same bits for all positions and scalar operands.
    pub fn are_exact(&self) -> bool {
        [self.place, self.scalar, self.integer_scalar].iter().all(|varies| *varies == Variation::None)
    }
}

/// The origin of a result's elements, which are unchanged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Movement {
    /// All elements of the first operand, in its shape.
    Through,
    /// All elements of the first operand, in order, in another shape.
    Layout,
    /// All elements of the first operand, in order, repeated along axes.
    Spread,
    /// Some elements of the first operand.
    Selection,
    /// Elements of all operands.
    Join,
}

/// Returns the reduced axes of the first operand, and `true` if they are kept with dim 1. `None` if unknown.
pub type Reduced = fn(&NodeFacts<'_>) -> Option<(Vec<usize>, bool)>;

/// An operator that reduces axes.
#[derive(Clone, Copy, Debug)]
pub struct Reduction {
    /// The axes.
    pub axes: Reduced,
    /// The binary pointwise operator whose fold over the elements gives the result, if any.
    pub folds: Option<&'static str>,
}

/// The possible failures of a run for some operand values. Values that determine a result's shape do not count: inference
/// handles them.
#[derive(Clone, Copy, Debug)]
pub enum Failure {
    /// No value makes a run fail.
    Never,
    /// No value makes a run fail if this is proved.
    Unless(fn(&NodeFacts<'_>) -> bool),
    /// Undeclared: some value may make a run fail.
    Undeclared,
}

/// The inclusive bounds of results, as kernels compute them. Only for floats.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ValueRange {
    /// The lower bound.
    pub low: f64,
    /// The upper bound.
    pub high: f64,
    /// `true` if a result may be NaN.
    pub nan: bool,
}

impl ValueRange {
    /// Creates the range of a function that maps NaN to NaN.
    pub const fn between(low: f64, high: f64) -> Self {
        ValueRange { low, high, nan: true }
    }
}

/// The largest excess of an approximation over the theoretical bound, relative to 1. ONNX Runtime's binary32 Sigmoid
/// gives 1 + 2⁻²³, Tanh and Softsign 1 + 2⁻²²; this value also covers 16-bit types.
pub const OVERSHOOT: f64 = 1.0 / 64.0;

/// Returns the range of a node's results; the closure returns those of its operands.
pub type RangeOf = fn(&NodeFacts<'_>, &dyn Fn(usize) -> Option<ValueRange>) -> Option<ValueRange>;

/// The monotonicity of a unary function, for numbers and up to rounding.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// A larger operand never has a smaller result.
    Rising,
    /// A larger operand never has a larger result.
    Falling,
}

/// The operands in which results are monotone if the other operands are fixed, up to rounding.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ordered {
    /// The number of leading operands; results are monotone in each.
    pub operands: usize,
    /// `true` if this holds only for operands of one sign, including 0.
    pub one_sign: bool,
}

/// A neutral element: `f(x, e) = x`, bit for bit.
#[derive(Clone, Copy, Debug)]
pub struct Neutral {
    /// Returns `true` if this scalar (of rank 0) is neutral for an `x` of this type.
    pub is: fn(DType, &Tensor) -> bool,
}

/// The operand types for which `f(x, y) = f(y, x)`, bit for bit except the payload of NaN.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Commutes {
    /// Undeclared: no type.
    Never,
    /// Integers. For floats, kernels may return either of two zeros.
    Integers,
    /// All types that the operator accepts.
    Always,
}

/// Returns lower bounds of dims that hold in every successful run: (dim, bound). A node rejects smaller dims.
pub type Needs = fn(&NodeFacts<'_>) -> Vec<(Dim, i64)>;

/// Returns two dims of operands that are equal in every successful run.
pub type NeedsEqual = fn(&NodeFacts<'_>) -> Option<(Dim, Dim)>;

/// The facts from which ONNX Runtime infers constant result dims when it loads a model. It infers less than possible,
/// and less than this program proves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ShapeInference {
    /// The first slot whose contents determine dims (data-dependent shapes): these operands must be constant.
    pub contents_from: usize,
    /// The dims of operands that must be constant.
    pub numbers: NumbersOf,
    /// The flag with which ONNX Runtime infers other dims than kernels produce.
    pub without: Option<&'static str>,
}

/// The dims of operands that must be constant for ONNX Runtime to infer a constant result dim.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NumbersOf {
    /// The dims from which it is computed.
    Any,
    /// All dims of the first operands, even if the result dim depends on one of them.
    Whole(usize),
    /// The dim of the same axis of the first operand, even if another operand determines it.
    SameAxisOfFirst,
    /// The dim of the same axis of each operand.
    SameAxisOfEach,
}

impl ShapeInference {
    /// Dims determine dims, independent of contents.
    pub const BY_SHAPES: ShapeInference =
        ShapeInference { contents_from: usize::MAX, numbers: NumbersOf::Any, without: None };
}

/// Returns the affine form of a node's result of this shape; the closure returns those of its operands.
pub type Counts = fn(&NodeFacts<'_>, &[Dim], &dyn Fn(usize) -> Option<Counting>) -> Option<Counting>;

/// Returns the value of all elements of a node's result, as a tensor of rank 0; the closure returns those of its
/// operands.
pub type Uniform = fn(&NodeFacts<'_>, &dyn Fn(usize) -> Option<Tensor>) -> Option<Tensor>;

/// Returns the shape of a node's result for smaller operands; see [`Repetition`].
pub type Repeats = fn(&Repetition<'_>) -> Option<Vec<Dim>>;

/// The properties of an operator.
#[derive(Clone, Copy, Debug)]
pub struct Traits {
    /// A result's element depends only on the operands' elements at the same index.
    pub pointwise: Option<Pointwise>,
    /// Elements are moved without being read.
    pub moves: Option<Movement>,
    /// Every runtime moves elements of every common type.
    pub any_type: bool,
    /// The origin of each element of a result.
    pub index_map: Option<IndexMapOf>,
    /// Axes are reduced.
    pub reduces: Option<Reduction>,
    /// The first result has the first operand's shape. All slices along the other axes are mapped equally and
    /// independently, if the other operands are equal for all slices.
    pub mixes: Option<fn(&NodeFacts<'_>) -> Option<Vec<usize>>>,
    /// The dependencies of results' bits.
    pub kernels: Kernels,
    /// The possible failures for some values.
    pub fails: Failure,
    /// The bounds of results.
    pub range: Option<RangeOf>,
    /// The monotonicity of a unary function.
    pub monotone: Option<Direction>,
    /// The operands in each of which results are monotone.
    pub ordered: Option<Ordered>,
    /// The neutral element; either operand may be it if they [commute](Traits::commutes).
    pub neutral: Option<Neutral>,
    /// The operand types for which two broadcast operands commute.
    pub commutes: Commutes,
    /// The sign of a zero in an operand has no effect.
    pub ignores_zero_sign: bool,
    /// The operand in which the sign of a zero can change a result's value: a divisor, which gives infinities, or an
    /// operand that is read bit by bit.
    pub shows_zero_sign: Option<usize>,
    /// The operand that divides: integers must not be divided by 0.
    pub divisor: Option<usize>,
    /// `f(c·x) = c·f(x)` for the first operand, up to rounding, for every sign of `c`.
    pub homogeneous: bool,
    /// Linear in each of the first two operands: elements of the result are sums of products, to which a third
    /// operand may be added.
    pub bilinear: bool,
    /// ONNX Runtime moves quantizations across it (measured on 1.31): a quantization after the operator moves before
    /// it, a dequantization before the operator moves after it. `f(DequantizeLinear(x)) = DequantizeLinear(f(x))` for
    /// one scale above 0.
    pub carries_quantization: bool,
    /// Accepts any number of operands; for one operand the result is that operand.
    pub variadic: bool,
    /// The result depends only on the operand's shape.
    pub of_shape: bool,
    /// Results are boolean, for all operands.
    pub gives_flags: bool,
    /// Only creates a sequence or an optional of its operands.
    pub makes_container: bool,
    /// Runtimes fuse it with pointwise consumers of its result.
    pub fused_with_next: bool,
    /// A rule replaces a Slice of its result by Slices of its operands, or cancels both.
    pub passes_slices: bool,
    /// The rejected dims.
    pub needs: Option<Needs>,
    /// The dims that must be equal.
    pub needs_equal: Option<NeedsEqual>,
    /// The operand that contains dims to broadcast the first operand with; incompatible dims are rejected.
    pub broadcast_with: Option<usize>,
    /// The facts from which runtimes infer result dims when they load a model; `None` if no inference is known.
    pub shape_inference: Option<ShapeInference>,
    /// The affine form of results for affine operands.
    pub counts: Option<Counts>,
    /// The result for operands with equal elements. Movements of the first operand keep the value.
    pub uniform: Option<Uniform>,
    /// The result for operands that repeat along axes. Pointwise and mixing operators need no declaration.
    pub repeats: Option<Repeats>,
    /// The number of multiply-accumulates; `None` if the operator sums no products.
    pub macs: Option<Macs>,
    /// The largest number of runs of one of its subgraphs.
    pub iterations: Option<Macs>,
}

impl Traits {
    /// No property is declared.
    pub const NONE: Traits = Traits {
        pointwise: None,
        moves: None,
        any_type: false,
        index_map: None,
        reduces: None,
        mixes: None,
        kernels: Kernels {
            place: Variation::Rounding,
            scalar: Variation::Rounding,
            integer_scalar: Variation::Rounding,
        },
        fails: Failure::Undeclared,
        range: None,
        monotone: None,
        ordered: None,
        neutral: None,
        commutes: Commutes::Never,
        ignores_zero_sign: false,
        shows_zero_sign: None,
        divisor: None,
        homogeneous: false,
        bilinear: false,
        carries_quantization: false,
        variadic: false,
        of_shape: false,
        gives_flags: false,
        makes_container: false,
        fused_with_next: false,
        passes_slices: false,
        needs: None,
        needs_equal: None,
        broadcast_with: None,
        shape_inference: None,
        counts: None,
        uniform: None,
        repeats: None,
        macs: None,
        iterations: None,
    };

    /// Returns `true` if the operator moves elements of its first operand only.
    pub const fn moves_first(&self) -> bool {
        matches!(self.moves, Some(Movement::Through | Movement::Layout | Movement::Spread | Movement::Selection))
    }

    /// Returns `true` if results are elements of the first operand of any type, none repeated along an axis.
    pub const fn moves_without_repeating(&self) -> bool {
        self.any_type && matches!(self.moves, Some(Movement::Through | Movement::Layout | Movement::Selection))
    }

    /// Returns `true` if the operator sums products over axes, as those with weights do.
    pub const fn is_product(&self) -> bool {
        self.bilinear && self.pointwise.is_none()
    }

    /// Returns `true` if the operator is pointwise in its first operand only.
    pub const fn is_function(&self) -> bool {
        matches!(self.pointwise, Some(Pointwise { operands: Operands::First, .. }))
    }

    /// Returns `true` if the operator is pointwise and broadcasts its operands against each other in this opset.
    pub fn is_broadcasting(&self, opset: i64) -> bool {
        self.pointwise.is_some_and(|own| own.operands == Operands::Broadcast && opset >= own.since)
    }

    /// Returns `true` if two operands of this type commute in this opset.
    pub fn commutes_for(&self, dtype: Option<DType>, opset: i64) -> bool {
        let takes = match self.commutes {
            Commutes::Never => false,
            Commutes::Integers => dtype.is_some_and(|dtype| !dtype.is_float()),
            Commutes::Always => true,
        };
        takes && self.is_broadcasting(opset)
    }

    /// Returns the possible change of results if operands of this type are computed at other positions and in other
    /// shapes.
    pub fn variation(&self, dtype: DType) -> Variation {
        if dtype.is_float() {
            self.kernels.place.max(self.kernels.scalar)
        } else if self.pointwise.is_some() {
            self.kernels.integer_scalar.max(Variation::None)
        } else {
            self.kernels.place
        }
    }

    /// Returns the possible change of results if an operand becomes a scalar or stops being one, at the same
    /// positions.
    pub fn variation_by_scalar(&self, dtype: DType) -> Variation {
        if dtype.is_float() { self.kernels.scalar } else { self.kernels.integer_scalar }
    }

    /// Returns `true` if the node provably fails for no value.
    pub fn cannot_fail(&self, view: &NodeFacts<'_>) -> bool {
        match self.fails {
            Failure::Never => true,
            Failure::Unless(proved) => proved(view),
            Failure::Undeclared => false,
        }
    }
}
