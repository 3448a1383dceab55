//! How an entry of the table declares traits: what it is, and then what else holds of it.

use super::*;

impl Traits {
    const EXACT: Kernels = Kernels { place: Variation::None, scalar: Variation::None, integer_scalar: Variation::None };

    const fn pointwise(operands: Operands, since: i64) -> Traits {
        let pointwise = Pointwise { operands, since, integers_since: 1, attributes: &[] };
        let own = Traits { pointwise: Some(pointwise), kernels: Traits::EXACT, fails: Failure::Never, ..Traits::NONE };
        own.inferred_by_shapes()
    }

    /// A function of one number that has no choice of bits.
    pub const fn function() -> Traits {
        Traits::pointwise(Operands::First, 1)
    }

    /// A function of one number that kernels approximate.
    pub const fn approximate() -> Traits {
        Traits::function().rounded()
    }

    /// A function of numbers that are broadcast against each other since this operator set.
    pub const fn broadcast(since: i64) -> Traits {
        Traits::pointwise(Operands::Broadcast, since)
    }

    /// The same with other operands.
    pub const fn with_operands(mut self, operands: Operands) -> Traits {
        if let Some(pointwise) = &mut self.pointwise {
            pointwise.operands = operands;
        }
        self
    }

    /// The same, with integers since this operator set.
    pub const fn integers_since(mut self, opset: i64) -> Traits {
        if let Some(pointwise) = &mut self.pointwise {
            pointwise.integers_since = opset;
        }
        self
    }

    /// The same, with attributes that decide what is computed.
    pub const fn attributes(mut self, names: &'static [&'static str]) -> Traits {
        if let Some(pointwise) = &mut self.pointwise {
            pointwise.attributes = names;
        }
        self
    }

    /// What moves elements; of no value it fails.
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

    /// Each element of a result is an element of an operand or a constant, by this map.
    pub const fn index_map(mut self, map: IndexMapOf) -> Traits {
        self.index_map = Some(map);
        self
    }

    /// What reduces axes.
    pub const fn reduction(axes: Reduced, folds: Option<&'static str>) -> Traits {
        Traits { reduces: Some(Reduction { axes, folds }), fails: Failure::Never, ..Traits::NONE }.inferred_by_shapes()
    }

    /// What treats places alike along all axes but some, and kernels approximate.
    pub const fn mixing(axes: fn(&NodeFacts<'_>) -> Option<Vec<usize>>) -> Traits {
        Traits { mixes: Some(axes), fails: Failure::Never, ..Traits::NONE }
            .inferred_by_numbers(NumbersOf::SameAxisOfFirst)
    }

    /// Kernels may round by where an element stands.
    pub const fn rounded(mut self) -> Traits {
        self.kernels = Traits::NONE.kernels;
        self
    }

    /// Kernels give the same bits wherever an element stands.
    pub const fn exact(mut self) -> Traits {
        self.kernels = Traits::EXACT;
        self
    }

    /// Kernels look at which operand is a single number.
    pub const fn by_scalar(mut self, floats: Variation, integers: Variation) -> Traits {
        self.kernels.scalar = floats;
        self.kernels.integer_scalar = integers;
        self
    }

    /// A run may fail unless this is proved.
    pub const fn fails_unless(mut self, proved: fn(&NodeFacts<'_>) -> bool) -> Traits {
        self.fails = Failure::Unless(proved);
        self
    }

    /// Results lie in a range.
    pub const fn range(mut self, range: RangeOf) -> Traits {
        self.range = Some(range);
        self
    }

    /// Results rise with the operand.
    pub const fn rising(mut self) -> Traits {
        self.monotone = Some(Direction::Rising);
        self
    }

    /// Results fall as the operand rises.
    pub const fn falling(mut self) -> Traits {
        self.monotone = Some(Direction::Falling);
        self
    }

    /// Results rise or fall all along in each of the first so many operands alone.
    pub const fn ordered(mut self, operands: usize) -> Traits {
        self.ordered = Some(Ordered { operands, one_sign: false });
        self
    }

    /// Results rise or fall all along for numbers of one sign.
    pub const fn ordered_by_sign(mut self) -> Traits {
        self.ordered = Some(Ordered { operands: 1, one_sign: true });
        self
    }

    /// An operand may leave the other as it is.
    pub const fn neutral(mut self, is: fn(DType, &Tensor) -> bool) -> Traits {
        self.neutral = Some(Neutral { is });
        self
    }

    /// Two operands may change places.
    pub const fn commuting(mut self, commutes: Commutes) -> Traits {
        self.commutes = commutes;
        self
    }

    /// Zeros of either sign are one.
    pub const fn ignoring_zero_sign(mut self) -> Traits {
        self.ignores_zero_sign = true;
        self
    }

    /// The sign of a zero in the operand of this slot makes another number.
    pub const fn showing_zero_sign(mut self, slot: usize) -> Traits {
        self.shows_zero_sign = Some(slot);
        self
    }

    /// The operand of this slot divides.
    pub const fn dividing_by(mut self, slot: usize) -> Traits {
        self.divisor = Some(slot);
        self
    }

    /// A factor of the first operand is one of the result.
    pub const fn homogeneous(mut self) -> Traits {
        self.homogeneous = true;
        self
    }

    /// A sum of products of what is in the first operand and in the second.
    pub const fn bilinear(mut self) -> Traits {
        self.bilinear = true;
        self
    }

    /// Runtimes carry quantizations over it.
    pub const fn carrying_quantization(mut self) -> Traits {
        self.carries_quantization = true;
        self
    }

    /// Any number of operands, of which one alone is the result.
    pub const fn variadic(mut self) -> Traits {
        self.variadic = true;
        self
    }

    /// Depends on the operand's shape alone.
    pub const fn of_shape(mut self) -> Traits {
        self.of_shape = true;
        self.fails = Failure::Never;
        self.inferred_by_shapes()
    }

    /// Results are flags.
    pub const fn giving_flags(mut self) -> Traits {
        self.gives_flags = true;
        self
    }

    /// Makes a sequence or an optional of its operands.
    pub const fn container(mut self) -> Traits {
        self.makes_container = true;
        self
    }

    /// Runtimes compute what follows with it.
    pub const fn fused_with_next(mut self) -> Traits {
        self.fused_with_next = true;
        self
    }

    /// There is a rule that takes a Slice before it.
    pub const fn passing_slices(mut self) -> Traits {
        self.passes_slices = true;
        self
    }

    /// Not every runtime moves elements of every type.
    pub const fn some_types(mut self) -> Traits {
        self.any_type = false;
        self
    }

    /// Refuses sizes.
    pub const fn needs(mut self, needs: Needs) -> Traits {
        self.needs = Some(needs);
        self
    }

    /// Refuses sizes that are not equal.
    pub const fn needs_equal(mut self, needs: NeedsEqual) -> Traits {
        self.needs_equal = Some(needs);
        self
    }

    /// Broadcasts its first operand with the sizes that this operand holds, and refuses those that do not go with it.
    pub const fn broadcast_with(mut self, slot: usize) -> Traits {
        self.broadcast_with = Some(slot);
        self
    }

    /// Runtimes infer shapes from shapes. What computes element by element, moves elements, reduces or mixes axes, or depends on a shape alone
    /// needs not say so.
    pub const fn inferred_by_shapes(self) -> Traits {
        self.inferred_by_numbers(NumbersOf::Any)
    }

    /// Runtimes infer shapes from shapes of which these sizes are numbers.
    pub const fn inferred_by_numbers(mut self, numbers: NumbersOf) -> Traits {
        self.shape_inference = Some(ShapeInference { numbers, ..self.inference() });
        self
    }

    /// Runtimes infer shapes from what the operands from this slot on hold, and from the shapes of those before.
    pub const fn inferred_by_contents(mut self, slot: usize) -> Traits {
        self.shape_inference = Some(ShapeInference { contents_from: slot, ..self.inference() });
        self
    }

    /// Runtimes infer other sizes than kernels give where this flag is set.
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

    /// Runtimes infer no shapes.
    pub const fn not_inferred(mut self) -> Traits {
        self.shape_inference = None;
        self
    }

    /// Makes positions of positions.
    pub const fn counts(mut self, counts: Counts) -> Traits {
        self.counts = Some(counts);
        self
    }

    /// Makes one number everywhere of such operands.
    pub const fn uniform(mut self, uniform: Uniform) -> Traits {
        self.uniform = Some(uniform);
        self
    }

    /// Sums this number of products.
    pub const fn macs(mut self, macs: Macs) -> Traits {
        self.macs = Some(macs);
        self
    }

    /// Runs one of its subgraphs this number of times.
    pub const fn iterations(mut self, iterations: Macs) -> Traits {
        self.iterations = Some(iterations);
        self
    }

    /// Makes a smaller result of smaller operands.
    pub const fn repeats(mut self, repeats: Repeats) -> Traits {
        self.repeats = Some(repeats);
        self
    }
}
