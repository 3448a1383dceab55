//! What operators say of themselves beside what they compute: whatever a general rule or pass may want to know.
//!
//! A rule that works for a class of operators asks for the class here and names no operator. Each entry of the table carries its
//! [`Traits`] as plain data, written in the family's file beside inference and evaluation; `tests` compares every one of them
//! with both, on random operands. What is not declared is not promised.
//!
//! | trait | promise |
//! | --- | --- |
//! | `pointwise` | a result at a place depends on the operands at the place |
//! | [`moves`](Traits::moves) | results are elements of the operands, unchanged |
//! | [`index_map`](Traits::index_map) | each element of a result is an element of an operand or a constant: the map gives which |
//! | [`reduces`](Traits::reduces) | axes are reduced to one element each, kept with size 1 or dropped |
//! | [`mixes`](Traits::mixes) | the result has the first operand's shape, and places differ along these axes only |
//! | [`kernels`](Traits::kernels) | what else the bits of a result depend on, in the kernels of runtimes |
//! | [`commutes`](Traits::commutes) | two operands may change places |
//! | [`fails`](Traits::fails) | whether values may make a run fail |
//! | [`range`](Traits::range), [`monotone`](Traits::monotone), [`ordered`](Traits::ordered) | between which numbers results lie, and how they are ordered |
//! | [`needs`](Traits::needs), [`needs_equal`](Traits::needs_equal) | which sizes it refuses |
//! | [`shape_inference`](Traits::shape_inference) | by what runtimes know the sizes of results when they load a model |
//! | [`macs`](Traits::macs), [`iterations`](Traits::iterations) | how many products it sums, and how often its subgraphs run |
//! | [`counts`](Traits::counts), [`uniform`](Traits::uniform), [`repeats`](Traits::repeats) | what becomes of positions, of one number everywhere, of operands that repeat |

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
pub(in crate::ops) use counting::{laid_out, pair};
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

/// Which operands of a pointwise operator have places.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operands {
    /// The first. Others hold one number for all places, or nothing that matters but their type.
    First,
    /// The first. Others hold one number for all places if they have rank 0, else one for each place along an axis.
    Scaled,
    /// All of them, broadcast against each other (multidirectional broadcasting).
    Broadcast,
    /// All of them; others are stretched to the first's shape (unidirectional broadcasting).
    Stretched,
}

/// A result at a place depends on the operands at the place, and on nothing else.
#[derive(Clone, Copy, Debug)]
pub struct Pointwise {
    /// Which operands have places.
    pub operands: Operands,
    /// The operator set from which on operands meet so; before, attributes tell how.
    pub since: i64,
    /// The operator set from which on integers are taken.
    pub integers_since: i64,
    /// The attributes that decide what is computed.
    pub attributes: &'static [&'static str],
}

impl Pointwise {
    /// Whether operands meet so in this operator set.
    pub fn meets(&self, opset: Opset) -> bool {
        opset.version() >= self.since
    }

    /// Whether operands of this type are taken.
    pub fn takes(&self, opset: Opset, dtype: DType) -> bool {
        !dtype.is_integer() || opset.version() >= self.integers_since
    }
}

/// What happens to a result when the same elements are computed elsewhere: in a tensor of another shape, or beside others.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Variation {
    /// It has the same bits. The sign and payload of NaN aside.
    None,
    /// It may be rounded otherwise, or a zero may have the other sign.
    Rounding,
    /// It may be another number.
    Values,
}

/// What the kernels of runtimes look at beside the elements themselves.
///
/// Measured on ONNX Runtime: kernels of transcendental functions compute most elements in vectors and the rest one by one, by other
/// approximations; Pow with a single exponent of 2 or 3 multiplies, and of integers else goes through doubles; which operand of
/// Max is a single number decides on the sign of zero.
#[derive(Clone, Copy, Debug)]
pub struct Kernels {
    /// How much depends on where an element stands.
    pub place: Variation,
    /// How much depends on whether an operand is a single number, for floats.
    pub scalar: Variation,
    /// The same for integers.
    pub integer_scalar: Variation,
}

impl Kernels {
    /// Whether a result has the same bits wherever its elements stand and whatever is a single number.
    pub fn are_exact(&self) -> bool {
        [self.place, self.scalar, self.integer_scalar].iter().all(|varies| *varies == Variation::None)
    }
}

/// Where the elements of a result come from, unchanged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Movement {
    /// The first operand, whole and in its shape.
    Through,
    /// The first operand, whole and in order, in another shape.
    Layout,
    /// The first operand, in order, repeated along axes: where nothing is repeated it is the operand.
    Spread,
    /// Elements of the first operand.
    Selection,
    /// Elements of all operands.
    Join,
}

/// Which axes of the first operand are reduced, and whether they stay with size 1. `None` where it is not known.
pub type Reduced = fn(&NodeFacts<'_>) -> Option<(Vec<usize>, bool)>;

/// An operator that reduces axes.
#[derive(Clone, Copy, Debug)]
pub struct Reduction {
    /// The axes.
    pub axes: Reduced,
    /// The pointwise operator of two operands that, applied from element to element, gives the result, where there is one.
    pub folds: Option<&'static str>,
}

/// Whether a run may fail because of the values of operands. What decides on the shape of results is not meant: inference sees it.
#[derive(Clone, Copy, Debug)]
pub enum Failure {
    /// Never.
    Never,
    /// Unless this is proved.
    Unless(fn(&NodeFacts<'_>) -> bool),
    /// It may, for all that is declared.
    Undeclared,
}

/// Numbers that results lie between, both included, as kernels compute them. Results of floats only.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ValueRange {
    /// No result is below it.
    pub low: f64,
    /// No result is above it.
    pub high: f64,
    /// Whether a result may be NaN, which is no number.
    pub nan: bool,
}

impl ValueRange {
    /// Results of a function that makes NaN of NaN.
    pub const fn between(low: f64, high: f64) -> Self {
        ValueRange { low, high, nan: true }
    }
}

/// How far an approximation may reach beyond the bound that the function has in theory, relative to 1. ONNX Runtime's Sigmoid of
/// binary32 gives 1 + 2⁻²³, Tanh and Softsign 1 + 2⁻²²; this is wide enough for the types of 16 bits.
pub const OVERSHOOT: f64 = 1.0 / 64.0;

/// The range of a node's results; the closure tells those of its operands.
pub type RangeOf = fn(&NodeFacts<'_>, &dyn Fn(usize) -> Option<ValueRange>) -> Option<ValueRange>;

/// The order of results of a function of one number, as far as numbers are concerned and up to rounding.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// Of a larger operand no smaller result.
    Rising,
    /// Of a larger operand no larger result.
    Falling,
}

/// In which operands results rise all along or fall all along while the other operands are held, up to rounding.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ordered {
    /// In each of the first so many.
    pub operands: usize,
    /// Only while the operand has numbers of one sign, 0 included.
    pub one_sign: bool,
}

/// An operand that leaves the other as it is: `f(x, e) = x`, bit for bit.
#[derive(Clone, Copy, Debug)]
pub struct Neutral {
    /// Whether this number (of rank 0) is such beside an `x` of this type.
    pub is: fn(DType, &Tensor) -> bool,
}

/// The types of operands for which `f(x, y) = f(y, x)`, bit for bit but for the payload of NaN.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Commutes {
    /// None, for all that is declared.
    Never,
    /// Integers. Of floats kernels may take either one of two zeros.
    Integers,
    /// All that the operator takes.
    Always,
}

/// Sizes that a node refuses, the other way round: what is at least how much in every run that gives a result.
pub type Needs = fn(&NodeFacts<'_>) -> Vec<(Dim, i64)>;

/// Two sizes of operands that are equal in every run that gives a result.
pub type NeedsEqual = fn(&NodeFacts<'_>) -> Option<(Dim, Dim)>;

/// By what the shape inference of ONNX Runtime tells, when it loads a model, which numbers the sizes of results are. It tells less than could
/// be told, and less than this program proves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ShapeInference {
    /// The slot from which on the contents of operands decide on sizes (data-dependent shapes): these must be constants.
    pub contents_from: usize,
    /// Which sizes of operands must be numbers.
    pub numbers: NumbersOf,
    /// The flag with which it infers other sizes than kernels give.
    pub without: Option<&'static str>,
}

/// Which sizes of operands must be numbers for ONNX Runtime to infer that a size of a result is one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NumbersOf {
    /// Those that it is computed from.
    Any,
    /// All of the first so many operands, also where it is computed from one of them.
    Whole(usize),
    /// That of the same axis of the first operand, even if another operand tells it.
    SameAxisOfFirst,
    /// That of the same axis of each operand.
    SameAxisOfEach,
}

impl ShapeInference {
    /// Sizes tell sizes, whatever operands hold.
    pub const BY_SHAPES: ShapeInference =
        ShapeInference { contents_from: usize::MAX, numbers: NumbersOf::Any, without: None };
}

/// The positions that a node's result of this shape holds; the closure tells those that its operands hold.
pub type Counts = fn(&NodeFacts<'_>, &[Dim], &dyn Fn(usize) -> Option<Counting>) -> Option<Counting>;

/// The one number that every element of a node's result is, of rank 0; the closure tells those of its operands.
pub type Uniform = fn(&NodeFacts<'_>, &dyn Fn(usize) -> Option<Tensor>) -> Option<Tensor>;

/// The shape of a node's result on smaller operands; see [`Repetition`].
pub type Repeats = fn(&Repetition<'_>) -> Option<Vec<Dim>>;

/// What an operator says of itself.
#[derive(Clone, Copy, Debug)]
pub struct Traits {
    /// A result at a place depends on the operands at the place.
    pub pointwise: Option<Pointwise>,
    /// Elements are moved and not looked at.
    pub moves: Option<Movement>,
    /// Every runtime moves elements of every common type.
    pub any_type: bool,
    /// Where each element of a result comes from.
    pub index_map: Option<IndexMapOf>,
    /// Axes are reduced.
    pub reduces: Option<Reduction>,
    /// The first result has the first operand's shape, and along all axes but these it treats places alike, each for itself, given that
    /// the other operands are the same for all.
    pub mixes: Option<fn(&NodeFacts<'_>) -> Option<Vec<usize>>>,
    /// What the bits of results depend on.
    pub kernels: Kernels,
    /// Whether values may make a run fail.
    pub fails: Failure,
    /// Between which numbers results lie.
    pub range: Option<RangeOf>,
    /// How a function of one number orders results.
    pub monotone: Option<Direction>,
    /// In which operands, each alone, results are ordered.
    pub ordered: Option<Ordered>,
    /// Which operand leaves the other as it is; either operand may be it if they [commute](Traits::commutes).
    pub neutral: Option<Neutral>,
    /// Whether two operands that are broadcast against each other may change places.
    pub commutes: Commutes,
    /// The sign of a zero in an operand makes no difference.
    pub ignores_zero_sign: bool,
    /// The slot of the operand in which the sign of a zero decides between numbers that are not equal: a divisor, of which come infinities,
    /// or what is taken bit by bit.
    pub shows_zero_sign: Option<usize>,
    /// The slot of the operand that divides: integers must not be divided by 0.
    pub divisor: Option<usize>,
    /// `f(c·x) = c·f(x)` for the first operand, up to rounding, whatever the sign of `c`.
    pub homogeneous: bool,
    /// Linear in the first operand and in the second, each while the other is held: elements of the result are sums of products, to which a third
    /// operand may be added.
    pub bilinear: bool,
    /// ONNX Runtime carries quantizations over it (measured on 1.31): it quantizes before the operator what is quantized behind it, and
    /// dequantizes behind it what is dequantized before. `f(DequantizeLinear(x)) = DequantizeLinear(f(x))` for one scale above 0.
    pub carries_quantization: bool,
    /// Takes any number of operands; of one alone the result is that operand.
    pub variadic: bool,
    /// The result depends on the shape of the operand alone.
    pub of_shape: bool,
    /// Results are flags (bool), whatever the operands are.
    pub gives_flags: bool,
    /// Makes a sequence or an optional of its operands and does nothing else.
    pub makes_container: bool,
    /// Runtimes compute it together with what is done to its result element by element.
    pub fused_with_next: bool,
    /// A Slice of its result can be taken of its operands instead, or cancels with it; there is a rule for that.
    pub passes_slices: bool,
    /// Which sizes it refuses.
    pub needs: Option<Needs>,
    /// Which sizes it refuses unless they are equal.
    pub needs_equal: Option<NeedsEqual>,
    /// The operand whose numbers are sizes that the first operand is broadcast with; sizes that do not go together are refused.
    pub broadcast_with: Option<usize>,
    /// By what runtimes know the sizes of results when they load a model; `None` if they know none, for all that is measured.
    pub shape_inference: Option<ShapeInference>,
    /// What positions it makes of positions.
    pub counts: Option<Counts>,
    /// What it makes of operands that hold one number everywhere. What moves elements of the first operand keeps the number.
    pub uniform: Option<Uniform>,
    /// What it makes of operands that repeat along axes. Pointwise operators, and those that mix axes, need not tell.
    pub repeats: Option<Repeats>,
    /// The number of multiply-accumulates; `None` if the operator sums no products.
    pub macs: Option<Macs>,
    /// The number of times that one of its subgraphs runs, at most.
    pub iterations: Option<Macs>,
}

impl Traits {
    /// Nothing is declared.
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

    /// Whether the operator moves elements of its first operand, and of no other.
    pub const fn moves_first(&self) -> bool {
        matches!(self.moves, Some(Movement::Through | Movement::Layout | Movement::Spread | Movement::Selection))
    }

    /// Whether results are elements of the first operand, none of them repeated along an axis, whatever their type.
    pub const fn moves_without_repeating(&self) -> bool {
        self.any_type && matches!(self.moves, Some(Movement::Through | Movement::Layout | Movement::Selection))
    }

    /// Whether the operator is a product that sums over axes, as those with weights are.
    pub const fn is_product(&self) -> bool {
        self.bilinear && self.pointwise.is_none()
    }

    /// Whether the operator is a function of its first operand's numbers.
    pub const fn is_function(&self) -> bool {
        matches!(self.pointwise, Some(Pointwise { operands: Operands::First, .. }))
    }

    /// Whether the operator is pointwise and, at this operator set, broadcasts its operands against each other.
    pub fn is_broadcasting(&self, opset: i64) -> bool {
        self.pointwise.is_some_and(|own| own.operands == Operands::Broadcast && opset >= own.since)
    }

    /// Returns `true` if a node with two operands of this type gives the same if they change places, in this operator set.
    pub fn commutes_for(&self, dtype: Option<DType>, opset: i64) -> bool {
        let takes = match self.commutes {
            Commutes::Never => false,
            Commutes::Integers => dtype.is_some_and(|dtype| !dtype.is_float()),
            Commutes::Always => true,
        };
        takes && self.is_broadcasting(opset)
    }

    /// What may become of results where the same elements are computed in other places and shapes, operands being of this type.
    pub fn variation(&self, dtype: DType) -> Variation {
        if dtype.is_float() {
            self.kernels.place.max(self.kernels.scalar)
        } else if self.pointwise.is_some() {
            self.kernels.integer_scalar.max(Variation::None)
        } else {
            self.kernels.place
        }
    }

    /// What may become of results where an operand becomes a single number, or ceases to be one, at the same places.
    pub fn variation_by_scalar(&self, dtype: DType) -> Variation {
        if dtype.is_float() { self.kernels.scalar } else { self.kernels.integer_scalar }
    }

    /// Whether it is proved that no value makes the node fail.
    pub fn cannot_fail(&self, view: &NodeFacts<'_>) -> bool {
        match self.fails {
            Failure::Never => true,
            Failure::Unless(proved) => proved(view),
            Failure::Undeclared => false,
        }
    }
}
