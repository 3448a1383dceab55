//! Tests of random expressions against integer arithmetic.
//!
//! Each expression is built twice: as a [`Dim`], operation by operation, and as a value for given bindings. The tests compare each result
//! and answer about the dim with the value.

use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
enum Tree {
    Constant(i64),
    Symbol(usize),
    Binary(Binary, Box<Tree>, Box<Tree>),
    Negated(Box<Tree>),
    Absolute(Box<Tree>),
}

#[derive(Clone, Copy, Debug)]
enum Binary {
    Add,
    Sub,
    Mul,
    FloorDiv,
    CeilDiv,
    Modulo,
    TruncDiv,
    Rem,
    Min,
    Max,
}

/// The number of symbols: two sizes, one within 1 ..= 6, any integer, a size that is a multiple of 4, and one within −3 ..= 5.
const SYMBOLS: usize = 6;

fn tree() -> impl Strategy<Value = Tree> {
    let constant = prop_oneof![-12i64..13, Just(0), Just(1), Just(2), Just(4)].prop_map(Tree::Constant);
    let symbol = prop_oneof![2 => 0..SYMBOLS, 1 => 0..2usize].prop_map(Tree::Symbol);
    let leaf = prop_oneof![2 => constant.clone(), 3 => symbol];
    leaf.prop_recursive(5, 14, 2, move |inner| {
        let operation = prop_oneof![
            4 => Just(Binary::Add),
            4 => Just(Binary::Sub),
            2 => Just(Binary::Mul),
            2 => Just(Binary::FloorDiv),
            1 => Just(Binary::CeilDiv),
            1 => Just(Binary::Modulo),
            1 => Just(Binary::TruncDiv),
            1 => Just(Binary::Rem),
            3 => Just(Binary::Min),
            3 => Just(Binary::Max),
        ];
        let pair = (operation, inner.clone(), prop_oneof![inner.clone(), constant.clone()]);
        prop_oneof![
            10 => pair.prop_map(|(operation, a, b)| Tree::Binary(operation, Box::new(a), Box::new(b))),
            1 => inner.clone().prop_map(|a| Tree::Negated(Box::new(a))),
            1 => inner.prop_map(|a| Tree::Absolute(Box::new(a))),
        ]
    })
}

/// Assignments within the known facts of the symbols: mostly small values, and the ends of every range. They are generated here, because
/// proptest strategies would take longer than the tested code.
fn bindings(mut seed: u64, count: usize) -> Vec<[i64; SYMBOLS]> {
    let mut draw = |low: i64, high: i64| {
        // A linear congruential generator; its upper bits are good enough to pick test values.
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        low + ((seed >> 33) as i64) % (high - low + 1)
    };
    let mut all = vec![[0, 0, 1, 0, 0, 0], [1, 1, 1, 1, 4, 1], [0, 0, 6, -1, 0, -3]];
    while all.len() < count {
        let reach = if draw(0, 7) == 0 { 100_000 } else { 11 };
        let (d, e) = (draw(-reach, reach), 4 * draw(0, reach / 3));
        all.push([draw(0, reach), draw(0, reach), draw(1, 6), d, e, draw(-3, 5)]);
    }
    all
}

struct World {
    scope: Scope,
    symbols: [Symbol; SYMBOLS],
}

impl World {
    fn new() -> World {
        let scope = Scope::new();
        let of = |dim: Dim| dim.as_symbol().unwrap();
        let symbols = [
            scope.named("a"),
            scope.named("b"),
            scope.named("c"),
            of(scope.fresh_value("d")),
            scope.named("e"),
            of(scope.fresh_within("f", Some(-3), Some(5))),
        ];
        scope.restrict(symbols[2], Some(1), Some(6));
        scope.set_multiple(symbols[4], 4);
        // Named, so that written expressions can be parsed.
        scope.rename(symbols[3], "d");
        scope.rename(symbols[5], "f");
        World { scope, symbols }
    }

    fn build(&self, tree: &Tree) -> Dim {
        let scope = &self.scope;
        match tree {
            Tree::Constant(value) => Dim::constant(*value),
            Tree::Symbol(index) => Dim::symbol(self.symbols[*index]),
            Tree::Negated(a) => scope.neg(&self.build(a)),
            Tree::Absolute(a) => scope.abs(&self.build(a)),
            Tree::Binary(operation, a, b) => {
                let (a, b) = (self.build(a), self.build(b));
                match operation {
                    Binary::Add => scope.add(&a, &b),
                    Binary::Sub => scope.sub(&a, &b),
                    Binary::Mul => scope.mul(&a, &b),
                    Binary::FloorDiv => scope.floor_div(&a, &b),
                    Binary::CeilDiv => scope.ceil_div(&a, &b),
                    Binary::Modulo => scope.modulo(&a, &b),
                    Binary::TruncDiv => scope.trunc_div(&a, &b),
                    Binary::Rem => scope.rem(&a, &b),
                    Binary::Min => scope.min(&a, &b),
                    Binary::Max => scope.max(&a, &b),
                }
            }
        }
    }

    fn value(&self, dim: &Dim, binding: &[i64; SYMBOLS]) -> Option<i64> {
        dim.evaluate(&|symbol| Some(binding[self.symbols.iter().position(|own| *own == symbol)?]))
    }

    /// Returns `true` if the dim contains our symbols only, and no fresh symbol of a failed operation.
    fn states(&self, dim: &Dim) -> bool {
        dim.symbols().iter().all(|symbol| self.symbols.contains(symbol))
    }
}

fn value(tree: &Tree, binding: &[i64; SYMBOLS]) -> Option<i128> {
    Some(match tree {
        Tree::Constant(value) => i128::from(*value),
        Tree::Symbol(index) => i128::from(binding[*index]),
        Tree::Negated(a) => value(a, binding)?.checked_neg()?,
        Tree::Absolute(a) => value(a, binding)?.checked_abs()?,
        Tree::Binary(operation, a, b) => {
            let (a, b) = (value(a, binding)?, value(b, binding)?);
            let floor = |a: i128, b: i128| Some(a.checked_div(b)? - i128::from(a % b != 0 && (a < 0) != (b < 0)));
            match operation {
                Binary::Add => a.checked_add(b)?,
                Binary::Sub => a.checked_sub(b)?,
                Binary::Mul => a.checked_mul(b)?,
                Binary::FloorDiv => floor(a, b)?,
                Binary::CeilDiv => -floor(-a, b)?,
                Binary::Modulo => a - b * floor(a, b)?,
                Binary::TruncDiv => a.checked_div(b)?,
                Binary::Rem => a.checked_rem(b)?,
                Binary::Min => a.min(b),
                Binary::Max => a.max(b),
            }
        }
    })
}

/// Returns `true` if an answer agrees with the truth at one binding.
fn agrees(answer: Answer, truth: bool) -> bool {
    match answer {
        Answer::Yes => truth,
        Answer::No => !truth,
        Answer::Unknown => true,
    }
}

/// Checks every answer about two expressions at every binding.
fn check(world: &World, trees: [&Tree; 2], bindings: &[[i64; SYMBOLS]]) -> Result<(), TestCaseError> {
    let scope = &world.scope;
    let [a, b] = trees.map(|tree| world.build(tree));
    let (low, high) = scope.bounds(&a);
    let (le, eq, divides) = (scope.le(&a, &b), scope.eq(&a, &b), scope.divides(&a, &b));
    let exact = scope.exact_div(&a, &b);
    for binding in bindings {
        let known = [(&a, trees[0]), (&b, trees[1])].map(|(dim, tree)| {
            let truth = value(tree, binding);
            if world.states(dim) && truth.is_some() {
                // An expression has a value wherever its symbols have one.
                let held = truth.and_then(|truth| i64::try_from(truth).ok());
                prop_assert_eq!(world.value(dim, binding), held, "{:?} at {:?}", dim, binding);
            }
            Ok((world.states(dim), truth))
        });
        let [a_known, b_known] = known;
        let ((a_stated, x), (b_stated, y)) = (a_known?, b_known?);
        let Some(x) = x.filter(|_| a_stated) else { continue };
        prop_assert!(low.is_none_or(|low| i128::from(low) <= x), "{:?} >= {:?}, {:?}", a, low, binding);
        prop_assert!(high.is_none_or(|high| x <= i128::from(high)), "{:?} <= {:?}, {:?}", a, high, binding);
        let Some(y) = y.filter(|_| b_stated) else { continue };
        prop_assert!(agrees(le, x <= y), "{:?} <= {:?} is {:?}, {:?}", a, b, le, binding);
        prop_assert!(agrees(eq, x == y), "{:?} = {:?} is {:?}, {:?}", a, b, eq, binding);
        let truth = if x == 0 { y == 0 } else { y % x == 0 };
        prop_assert!(agrees(divides, truth), "{:?} | {:?} is {:?}, {:?}", a, b, divides, binding);
        if let Some(exact) = &exact {
            prop_assert!(y != 0 && x % y == 0, "{:?} / {:?} = {:?}, {:?}", a, b, exact, binding);
            prop_assert_eq!(world.value(exact, binding), i64::try_from(x / y).ok());
        }
    }
    Ok(())
}

/// Checks that both written forms of an expression parse to an expression with the same values and answers.
fn round_trip(world: &World, tree: &Tree) -> Result<(), TestCaseError> {
    let dim = world.build(tree);
    if !world.states(&dim) {
        return Ok(());
    }
    let (text, dense) = (world.scope.format(&dim), world.scope.format_densely(&dim));
    prop_assert!(!dense.contains(' '), "{}", dense);
    for text in [&text, &dense] {
        let Some(back) = world.scope.parse(text) else { return Err(TestCaseError::fail(text.clone())) };
        prop_assert_ne!(world.scope.eq(&back, &dim), Answer::No, "{}", text);
        for binding in bindings(7, 64) {
            // An intermediate result may be too large in one form and not in another.
            if let Some((a, b)) = world.value(&back, &binding).zip(world.value(&dim, &binding)) {
                prop_assert_eq!(a, b, "{} is {:?} at {:?}", text, dim, binding);
            }
        }
    }
    Ok(())
}

/// Returns the configuration for `cases` cases, or for `PROPTEST_CASES` if that is more.
fn config(cases: u32) -> ProptestConfig {
    let default = ProptestConfig::default();
    ProptestConfig { cases: cases.max(default.cases), failure_persistence: None, ..default }
}

proptest! {
    #![proptest_config(config(10_000))]

    #[test]
    fn answers_and_results_are_true(a in tree(), b in tree(), seed in any::<u64>()) {
        check(&World::new(), [&a, &b], &bindings(seed, 24))?;
    }

    #[test]
    fn substitution_is_evaluation(a in tree(), b in tree(), seed in any::<u64>()) {
        let world = World::new();
        let (dim, inner) = (world.build(&a), world.build(&b));
        // The unbounded symbol may have any value.
        let replaced = world.scope.substitute(&dim, &|symbol| (symbol == world.symbols[3]).then(|| inner.clone()));
        for mut binding in bindings(seed, 16) {
            let before = value(&b, &binding).and_then(|inner| i64::try_from(inner).ok());
            let (Some(inner), true) = (before, world.states(&dim) && world.states(&replaced)) else { continue };
            let found = world.value(&replaced, &binding);
            binding[3] = inner;
            if let Some(truth) = value(&a, &binding) {
                prop_assert_eq!(found, i64::try_from(truth).ok(), "{:?} at {:?}", replaced, binding);
            }
        }
        prop_assert_eq!(world.scope.sum([&dim, &inner]), world.scope.add(&dim, &inner));
        prop_assert_eq!(world.scope.product([&dim, &inner]), world.scope.mul(&dim, &inner));
    }

    #[test]
    fn written_expressions_parse_to_equal_ones(a in tree()) {
        round_trip(&World::new(), &a)?;
    }
}

proptest! {
    #![proptest_config(config(3_000))]

    #[test]
    fn answers_under_assumptions_are_true(
        given in prop::collection::vec((tree(), tree(), any::<bool>()), 1..3),
        a in tree(),
        b in tree(),
        seed in any::<u64>(),
    ) {
        let world = World::new();
        let early = world.build(&a);
        for (left, right, equal) in &given {
            let (left, right) = (world.build(left), world.build(right));
            if *equal { world.scope.assume_eq(&left, &right) } else { world.scope.assume_le(&left, &right) }
        }
        let holds = |binding: &&[i64; SYMBOLS]| given.iter().all(|(left, right, equal)| {
            let sides = value(left, binding).zip(value(right, binding));
            sides.is_some_and(|(left, right)| if *equal { left == right } else { left <= right })
        });
        let kept: Vec<_> = bindings(seed, 64).iter().filter(holds).copied().collect();
        check(&world, [&a, &b], &kept)?;
        // Results from before the assumptions are still true.
        for binding in kept.iter().filter(|_| world.states(&early)) {
            if let Some(truth) = value(&a, binding) {
                prop_assert_eq!(world.value(&early, binding), i64::try_from(truth).ok());
            }
        }
        if !kept.is_empty() && value(&a, &kept[0]).is_some() {
            prop_assert_ne!(world.scope.eq(&early, &world.build(&a)), Answer::No);
        }
    }
}

/// A polynomial over three integers of any sign: coefficients and exponents of up to four terms.
fn polynomial() -> impl Strategy<Value = Vec<(i64, [u32; 3])>> {
    let coefficient = prop_oneof![-3i64..4, Just(1), Just(-1), Just(2_000_000_000)];
    prop::collection::vec((coefficient, [0u32..4, 0u32..3, 0u32..3]), 1..5)
}

proptest! {
    #![proptest_config(config(4_000))]

    /// Every bound, comparison and maximum of polynomials in run-time integers, at all small values and at large ones.
    #[test]
    fn proofs_about_integers_of_any_sign_are_true(terms in polynomial(), other in polynomial(), low in -3i64..2) {
        let scope = Scope::new();
        let symbols: Vec<Symbol> = [
            scope.fresh_value("j"),
            scope.fresh_value("k"),
            scope.fresh_integer("l", Some(low), Some(low + 4)),
        ].iter().filter_map(Dim::as_symbol).collect();
        let build = |terms: &[(i64, [u32; 3])]| {
            let term = |(coefficient, exponents): &(i64, [u32; 3])| {
                let powers = exponents.iter().zip(&symbols).flat_map(|(&n, &s)| (0..n).map(move |_| Dim::symbol(s)));
                powers.fold(Dim::constant(*coefficient), |product, factor| scope.mul(&product, &factor))
            };
            terms.iter().map(term).fold(Dim::constant(0), |sum, term| scope.add(&sum, &term))
        };
        let value = |terms: &[(i64, [u32; 3])], at: &[i128; 3]| -> i128 {
            let power = |(n, x): (&u32, &i128)| x.pow(*n);
            terms.iter().map(|(c, n)| i128::from(*c) * n.iter().zip(at).map(power).product::<i128>()).sum()
        };
        let (a, b) = (build(&terms), build(&other));
        let bounds = scope.bounds(&a);
        let (le, eq, most, least) = (scope.le(&a, &b), scope.eq(&a, &b), scope.max(&a, &b), scope.min(&a, &b));
        let wide = |range: std::ops::RangeInclusive<i128>| range.chain([-100_003, -1001, 1001, 99_991]);
        for j in wide(-4..=4) {
            for k in wide(-4..=4) {
                for l in i128::from(low)..=i128::from(low + 4) {
                    let at = [j, k, l];
                    let (x, y) = (value(&terms, &at), value(&other, &at));
                    prop_assert!(bounds.0.is_none_or(|low| i128::from(low) <= x), "{a:?} ≥ {:?} at {at:?}", bounds.0);
                    prop_assert!(bounds.1.is_none_or(|high| x <= i128::from(high)), "{a:?} ≤ {:?} at {at:?}", bounds.1);
                    prop_assert!(agrees(le, x <= y) && agrees(eq, x == y), "{a:?}, {b:?} at {at:?}");
                    let bind = |symbol: Symbol| {
                        let index = symbols.iter().position(|own| *own == symbol)?;
                        i64::try_from(*at.get(index)?).ok()
                    };
                    for (dim, truth) in [(&most, x.max(y)), (&least, x.min(y))] {
                        // A result that cannot be expressed is a fresh symbol without a value here.
                        prop_assert!(dim.evaluate(&bind).is_none_or(|found| i128::from(found) == truth), "{dim:?} at {at:?}");
                    }
                }
            }
        }
    }
}
