//! Builders of traits: a class of operators first, then further properties.

use super::*;

impl Traits {
    const EXACT: Kernels = Kernels { place: Variation::None, scalar: Variation::None, integer_scalar: Variation::None };

    const fn pointwise(operands: Operands, since: i64) -> Traits {
        let pointwise = Pointwise { operands, since, integers_since: 1, attributes: &[] };
        let own = Traits { pointwise: Some(pointwise), kernels: Traits::EXACT, fails: Failure::Never, ..Traits::NONE };
        own.inferred_by_shapes()
    }

    /// Creates the traits of a unary function with exactly defined bits.
    pub const fn function() -> Traits {
        Traits::pointwise(Operands::First, 1)
    }

    /// Creates the traits of a unary function that kernels approximate.
    pub const fn approximate() -> Traits {
        Traits::function().rounded()
    }

    /// Creates the traits of a function whose operands are broadcast against each other since this opset.
    pub const fn broadcast(since: i64) -> Traits {
        Traits::pointwise(Operands::Broadcast, since)
    }

    /// Sets the operands that are indexed.
    pub const fn with_operands(mut self, operands: Operands) -> Traits {
        if let Some(pointwise) = &mut self.pointwise {
            pointwise.operands = operands;
        }
        self
    }

    /// Sets the first opset that accepts integers.
    pub const fn integers_since(mut self, opset: i64) -> Traits {
        if let Some(pointwise) = &mut self.pointwise {
            pointwise.integers_since = opset;
        }
        self
    }

    /// Sets the attributes that determine the function.
    pub const fn attributes(mut self, names: &'static [&'static str]) -> Traits {
        if let Some(pointwise) = &mut self.pointwise {
            pointwise.attributes = names;
        }
        self
    }

    /// Creates the traits of an operator that moves elements and fails for no values.
    pub const fn movement(movement: Movement) -> Traits {
        Traits {
            moves: Some(movement),
            any_type: true,
            kernels: Traits::EXACT,
            fails: Failure::Never,
            homogeneous: true,
            ..Traits::NONE
        }
        .inferred_by_shapes()
    }

    /// Declares the index map: each element of a result is an element of an operand or a constant.
    pub const fn index_map(mut self, map: IndexMapOf) -> Traits {
        self.index_map = Some(map);
        self
    }

    /// Creates the traits of a reduction.
    pub const fn reduction(axes: Reduced, folds: Option<&'static str>) -> Traits {
        Traits { reduces: Some(Reduction { axes, folds }), fails: Failure::Never, ..Traits::NONE }.inferred_by_shapes()
    }

    /// Creates the traits of an operator that kernels approximate, and that maps all slices along the other axes
    /// equally.
    pub const fn mixing(axes: fn(&NodeFacts<'_>) -> Option<Vec<usize>>) -> Traits {
        Traits { mixes: Some(axes), fails: Failure::Never, ..Traits::NONE }
            .inferred_by_numbers(NumbersOf::SameAxisOfFirst)
    }

    /// Declares that rounding in kernels may depend on an element's position.
    pub const fn rounded(mut self) -> Traits {
        self.kernels = Traits::NONE.kernels;
        self
    }

    /// Declares that kernels give the same bits at every position.
    pub const fn exact(mut self) -> Traits {
        self.kernels = Traits::EXACT;
        self
    }

    /// Declares that kernels depend on which operand is a scalar.
    pub const fn by_scalar(mut self, floats: Variation, integers: Variation) -> Traits {
        self.kernels.scalar = floats;
        self.kernels.integer_scalar = integers;
        self
    }

    /// Declares that a run may fail unless this is proved.
    pub const fn fails_unless(mut self, proved: fn(&NodeFacts<'_>) -> bool) -> Traits {
        self.fails = Failure::Unless(proved);
        self
    }

    /// Declares a range of the results.
    pub const fn range(mut self, range: RangeOf) -> Traits {
        self.range = Some(range);
        self
    }

    /// Declares that results increase with the operand.
    pub const fn rising(mut self) -> Traits {
        self.monotone = Some(Direction::Rising);
        self
    }

    /// Declares that results decrease with the operand.
    pub const fn falling(mut self) -> Traits {
        self.monotone = Some(Direction::Falling);
        self
    }

    /// Declares that results are monotone in each of the first `operands` operands.
    pub const fn ordered(mut self, operands: usize) -> Traits {
        self.ordered = Some(Ordered { operands, one_sign: false });
        self
    }

    /// Declares that results are monotone for operands of one sign.
    pub const fn ordered_by_sign(mut self) -> Traits {
        self.ordered = Some(Ordered { operands: 1, one_sign: true });
        self
    }

    /// Declares a neutral element.
    pub const fn neutral(mut self, is: fn(DType, &Tensor) -> bool) -> Traits {
        self.neutral = Some(Neutral { is });
        self
    }

    /// Declares that two operands commute.
    pub const fn commuting(mut self, commutes: Commutes) -> Traits {
        self.commutes = commutes;
        self
    }

    /// Declares that results do not depend on the sign of a zero.
    pub const fn ignoring_zero_sign(mut self) -> Traits {
        self.ignores_zero_sign = true;
        self
    }

    /// Declares that the sign of a zero in this operand can change a result's value.
    pub const fn showing_zero_sign(mut self, slot: usize) -> Traits {
        self.shows_zero_sign = Some(slot);
        self
    }

    /// Declares that this operand divides.
    pub const fn dividing_by(mut self, slot: usize) -> Traits {
        self.divisor = Some(slot);
        self
    }

    /// Declares that a factor of the first operand is a factor of the result.
    pub const fn homogeneous(mut self) -> Traits {
        self.homogeneous = true;
        self
    }

    /// Declares that results are sums of products of elements of the first two operands.
    pub const fn bilinear(mut self) -> Traits {
        self.bilinear = true;
        self
    }

    /// Declares that runtimes move quantizations across the operator.
    pub const fn carrying_quantization(mut self) -> Traits {
        self.carries_quantization = true;
        self
    }

    /// Declares any number of operands; the result for one operand is that operand.
    pub const fn variadic(mut self) -> Traits {
        self.variadic = true;
        self
    }

    /// Declares that the result depends only on the operand's shape.
    pub const fn of_shape(mut self) -> Traits {
        self.of_shape = true;
        self.fails = Failure::Never;
        self.inferred_by_shapes()
    }

    /// Declares that results are boolean.
    pub const fn giving_flags(mut self) -> Traits {
        self.gives_flags = true;
        self
    }

    /// Declares that the operator creates a sequence or an optional of its operands.
    pub const fn container(mut self) -> Traits {
        self.makes_container = true;
        self
    }

    /// Declares that runtimes fuse the operator with the next one.
    pub const fn fused_with_next(mut self) -> Traits {
        self.fused_with_next = true;
        self
    }

    /// Declares that a rule moves a Slice before the operator.
    pub const fn passing_slices(mut self) -> Traits {
        self.passes_slices = true;
        self
    }

    /// Declares that some runtimes do not move elements of all types.
    pub const fn some_types(mut self) -> Traits {
        self.any_type = false;
        self
    }

    /// Declares dims that the operator rejects.
    pub const fn needs(mut self, needs: Needs) -> Traits {
        self.needs = Some(needs);
        self
    }

    /// Declares dims that must be equal.
    pub const fn needs_equal(mut self, needs: NeedsEqual) -> Traits {
        self.needs_equal = Some(needs);
        self
    }

    /// Declares that the first operand is broadcast with the dims in this operand; incompatible dims are rejected.
    pub const fn broadcast_with(mut self, slot: usize) -> Traits {
        self.broadcast_with = Some(slot);
        self
    }

    /// Declares that runtimes infer shapes from shapes. Pointwise operators, movements, reductions, mixing operators
    /// and functions of a shape imply this.
    pub const fn inferred_by_shapes(self) -> Traits {
        self.inferred_by_numbers(NumbersOf::Any)
    }

    /// Declares that runtimes infer shapes from shapes in which these dims are constant.
    pub const fn inferred_by_numbers(mut self, numbers: NumbersOf) -> Traits {
        self.shape_inference = Some(ShapeInference { numbers, ..self.inference() });
        self
    }

    /// Declares that runtimes infer shapes from the contents of operands from this slot on, and from the shapes of
    /// earlier ones.
    pub const fn inferred_by_contents(mut self, slot: usize) -> Traits {
        self.shape_inference = Some(ShapeInference { contents_from: slot, ..self.inference() });
        self
    }

    /// Declares that runtimes infer wrong dims if this flag is set.
    pub const fn inferred_without(mut self, flag: &'static str) -> Traits {
        self.shape_inference = Some(ShapeInference { without: Some(flag), ..self.inference() });
        self
    }

    const fn inference(&self) -> ShapeInference {
        match self.shape_inference {
            Some(own) => own,
            None => ShapeInference::BY_SHAPES,
        }
    }

    /// Declares that runtimes infer no shapes.
    pub const fn not_inferred(mut self) -> Traits {
        self.shape_inference = None;
        self
    }

    /// Declares the affine form of results.
    pub const fn counts(mut self, counts: Counts) -> Traits {
        self.counts = Some(counts);
        self
    }

    /// Declares that such operands with equal elements give equal elements.
    pub const fn uniform(mut self, uniform: Uniform) -> Traits {
        self.uniform = Some(uniform);
        self
    }

    /// Declares the number of summed products.
    pub const fn macs(mut self, macs: Macs) -> Traits {
        self.macs = Some(macs);
        self
    }

    /// Declares the number of runs of a subgraph.
    pub const fn iterations(mut self, iterations: Macs) -> Traits {
        self.iterations = Some(iterations);
        self
    }

    /// Declares the smaller result of smaller operands.
    pub const fn repeats(mut self, repeats: Repeats) -> Traits {
        self.repeats = Some(repeats);
        self
    }
}
