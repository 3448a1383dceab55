use std::cell::Cell;

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use super::*;
use crate::dim::{Dim, Scope, Symbol};
use crate::tensor::Tensor;

const NUMPY: Reading = tensorflow::READING;
const ONNX: Reading = openvino::READING;
const EXTREMES: [i64; 10] =
    [i64::MIN, i64::MIN + 1, -(1 << 32), i32::MIN as i64, -1, 1, i32::MAX as i64, 1 << 32, i64::MAX - 1, i64::MAX];

/// Returns the elements that `begin:end:step` selects, by walking along the axis one element at a time.
fn walk(dim: i64, begin: Option<i64>, end: Option<i64>, step: i64, floor: Floor) -> Vec<i64> {
    let (dim, step) = (i128::from(dim), i128::from(step));
    let count = |bound: i64| i128::from(bound) + if bound < 0 { dim } else { 0 };
    let forward = step > 0;
    let mut at = match begin {
        None => {
            if forward {
                0
            } else {
                dim - 1
            }
        }
        Some(begin) if forward => count(begin).max(0),
        Some(begin) => count(begin).min(dim - 1),
    };
    if !forward && floor == Floor::First && at < 0 && dim > 0 {
        at = 0;
    }
    let goes_on = |at: i128| match end {
        None => true,
        Some(end) if forward => at < count(end),
        Some(end) => at > count(end),
    };
    let mut taken = Vec::new();
    while (0..dim).contains(&at) && goes_on(at) {
        taken.push(at as i64);
        at += step;
    }
    taken
}

fn elements((start, step, len): (i64, i64, i64)) -> Vec<i64> {
    (0..len).map(|k| (i128::from(start) + i128::from(k) * i128::from(step)) as i64).collect()
}

#[test]
fn numbers_are_resolved_as_a_walk_over_the_axis_finds_them() {
    let bounds = || std::iter::once(None).chain((-11..=11).map(Some));
    let mut cases = 0;
    let rules = [SliceRule::Agree, SliceRule::OnnxRuntime, SliceRule::Spec, SliceRule::Numpy].map(onnx::reading);
    for reading in rules.into_iter().chain([tensorflow::READING, openvino::READING]) {
        for dim in 0..=9 {
            for (begin, end) in bounds().flat_map(|begin| bounds().map(move |end| (begin, end))) {
                for step in [-11, -5, -3, -2, -1, 1, 2, 3, 4, 11] {
                    let resolved = resolve_integers(dim, begin, end, step, reading).unwrap();
                    let walked = walk(dim, begin, end, step, reading.floor);
                    assert_eq!(elements(resolved), walked, "{dim} [{begin:?}:{end:?}:{step}] {reading:?}");
                    cases += 1;
                }
            }
        }
    }
    // Each of the six readings has at least 50,000 cases.
    assert!(cases > 6 * 50_000, "{cases}");
}

#[test]
fn extreme_numbers_are_resolved_without_overflow() {
    let bounds = || std::iter::once(None).chain(EXTREMES.map(Some)).chain([Some(0), Some(2), Some(-3)]);
    for reading in [NUMPY, ONNX] {
        for dim in [0, 1, 2, 5] {
            for (begin, end) in bounds().flat_map(|begin| bounds().map(move |end| (begin, end))) {
                for step in EXTREMES {
                    let resolved = resolve_integers(dim, begin, end, step, reading).unwrap();
                    assert_eq!(elements(resolved), walk(dim, begin, end, step, reading.floor));
                }
            }
        }
        // Axes too long for a walk: checks only that nothing overflows and that all elements are selected.
        for step in EXTREMES {
            for (begin, end) in bounds().flat_map(|begin| bounds().map(move |end| (begin, end))) {
                let (start, _, len) = resolve_integers(i64::MAX, begin, end, step, reading).unwrap();
                let last = i128::from(start) + i128::from(step) * i128::from(len - 1);
                assert!(len == 0 || (0..i128::from(i64::MAX)).contains(&last));
            }
        }
        assert_eq!(resolve_integers(i64::MAX, None, None, 1, reading), Ok((0, 1, i64::MAX)));
        assert_eq!(resolve_integers(i64::MAX, None, None, -1, reading), Ok((i64::MAX - 1, -1, i64::MAX)));
    }
}

#[test]
fn a_zero_step_is_refused_even_of_nothing() {
    assert_eq!(resolve_integers(0, None, None, 0, ONNX), Err(SliceError::ZeroStep));
    assert_eq!(Range::constant(None, None, 0), Err(SliceError::ZeroStep));
}

#[test]
fn readings_of_int_max() {
    for max in [i64::from(i32::MAX), i64::MAX] {
        let backward = |rule| resolve_integers(4, Some(2), Some(max), -1, onnx::reading(rule));
        assert_eq!(backward(SliceRule::Agree), Err(SliceError::Disputed { end: max }));
        assert_eq!(backward(SliceRule::OnnxRuntime), Ok((2, -1, 3)));
        assert_eq!(backward(SliceRule::Spec), Ok((0, -1, 0)));
        assert_eq!(backward(SliceRule::Numpy), Ok((0, -1, 0)));
        // On an empty axis all readings agree on the empty range.
        assert_eq!(resolve_integers(0, Some(2), Some(max), -1, onnx::reading(SliceRule::Agree)), Ok((0, -1, 0)));
        assert_eq!(resolve_integers(4, Some(2), Some(max), 1, onnx::reading(SliceRule::Agree)), Ok((2, 1, 2)));
        assert_eq!(resolve_integers(4, Some(2), Some(max - 1), -1, onnx::reading(SliceRule::Agree)), Ok((0, -1, 0)));
    }
}

/// A scope with the tests' symbols: two dims, and an integer of any sign.
struct Symbols {
    scope: Scope,
    symbols: [Symbol; 3],
}

impl Symbols {
    fn new() -> Symbols {
        let scope = Scope::new();
        let value = scope.fresh_value("v").as_symbol().unwrap();
        let symbols = [scope.named("S"), scope.named("T"), value];
        Symbols { scope, symbols }
    }

    fn dim(&self) -> Dim {
        Dim::symbol(self.symbols[0])
    }

    fn value_of(&self, dim: &Dim, values: [i64; 3]) -> Option<i64> {
        dim.evaluate(&|symbol| self.symbols.iter().position(|&known| known == symbol).map(|at| values[at]))
    }

    /// Checks a resolved range against the rule on integers.
    fn check(&self, dim: &Dim, range: &Range, reading: Reading, values: [i64; 3]) {
        let resolved = resolve(&self.scope, dim, range, reading).unwrap();
        self.check_resolved(&resolved, dim, range, reading, values);
    }

    /// Returns `true` if the length is an expression in the tests' symbols.
    fn is_stated(&self, resolved: &Resolved) -> bool {
        resolved.len.symbols().iter().all(|symbol| self.symbols.contains(symbol))
    }

    fn check_resolved(&self, resolved: &Resolved, dim: &Dim, range: &Range, reading: Reading, values: [i64; 3]) {
        let number = |bound: &Bound| match bound {
            Bound::At(at) => Some(self.value_of(at, values).unwrap()),
            _ => None,
        };
        let size = self.value_of(dim, values).unwrap();
        if size < 0 {
            return;
        }
        let (begin, end, step) = (number(&range.begin), number(&range.end), range.step.unwrap());
        let (start, _, len) = resolve_integers(size, begin, end, step, reading).unwrap();
        let say = |dim: &Dim| self.scope.format(dim);
        let place = || format!("{size} [{begin:?}:{end:?}:{step}] at {values:?} {reading:?}");
        assert_eq!(self.value_of(&resolved.len, values), Some(len), "length {} of {}", say(&resolved.len), place());
        let selection = resolved.selection.as_ref().expect("known");
        assert_eq!(selection.step, step);
        if len > 0 {
            let stated = self.value_of(&selection.start, values);
            assert_eq!(stated, Some(start), "start {} of {}", say(&selection.start), place());
        }
    }
}

#[test]
fn expressions_are_right_for_every_size_of_the_axis() {
    let symbols = Symbols::new();
    let dim = symbols.dim();
    let bounds = || std::iter::once(None).chain((-7..=7).map(Some)).chain([i64::MIN, i64::MAX].map(Some));
    for reading in [NUMPY, ONNX] {
        for (begin, end) in bounds().flat_map(|begin| bounds().map(move |end| (begin, end))) {
            for step in [1, 2, 3, 64, i64::MAX, -1, -2, -5, i64::MIN] {
                let range = Range::constant(begin, end, step).unwrap();
                let resolved = resolve(&symbols.scope, &dim, &range, reading).unwrap();
                for size in 0..18 {
                    symbols.check_resolved(&resolved, &dim, &range, reading, [size, 0, 0]);
                }
            }
        }
    }
}

#[test]
fn lengths_are_said_shortly() {
    let symbols = Symbols::new();
    let scope = &symbols.scope;
    let len = |begin, end, step| {
        let range = Range::constant(begin, end, step).unwrap();
        resolve(scope, &symbols.dim(), &range, onnx::reading(SliceRule::Agree)).unwrap().len
    };
    let same = |len: Dim, text: &str| {
        assert_eq!(len, scope.parse(text).unwrap(), "{} is not {text}", scope.format(&len));
    };
    same(len(None, None, 1), "S");
    same(len(Some(1), None, 1), "max(0, S - 1)");
    same(len(None, Some(-1), 1), "max(0, S - 1)");
    same(len(Some(-5), None, 1), "min(5, S)");
    same(len(None, Some(10), 1), "min(10, S)");
    same(len(Some(0), Some(i32::MAX.into()), 1), "S");
    same(len(Some(-1), Some(i64::MIN), -1), "S");
    same(len(None, None, -1), "S");
    same(len(None, None, 2), "floor((S + 1) / 2)");
    same(len(Some(3), Some(3), 1), "0");
    same(len(Some(5), Some(2), 1), "0");
    same(len(Some(2), Some(5), -1), "0");
}

#[test]
fn known_bounds_make_lengths_shorter() {
    let symbols = Symbols::new();
    let scope = &symbols.scope;
    scope.restrict(symbols.symbols[0], Some(1), None);
    let range = Range::constant(Some(1), None, 1).unwrap();
    let resolved = resolve(scope, &symbols.dim(), &range, ONNX).unwrap();
    assert_eq!(resolved.len, scope.parse("S - 1").unwrap());
}

/// Generates a bound: unknown, open, a number, or an expression in the symbols.
fn arbitrary_bound() -> impl Strategy<Value = (u8, i64)> {
    (0u8..10, -9i64..=9)
}

impl Symbols {
    fn bound(&self, (kind, number): (u8, i64)) -> Bound {
        let scope = &self.scope;
        let [s, t, v] = self.symbols.map(Dim::symbol);
        let number = Dim::constant(number);
        Bound::At(match kind {
            0 => return Bound::Open,
            1 => number,
            2 => scope.add(&s, &number),
            3 => scope.neg(&t),
            4 => scope.sub(&s, &t),
            5 => scope.floor_div(&s, &Dim::constant(2)),
            6 => scope.add(&v, &number),
            7 => scope.sub(&number, &v),
            8 => scope.min(&t, &scope.add(&s, &number)),
            _ => scope.add(&t, &number),
        })
    }
}

#[test]
fn expressions_are_right_for_random_bounds_and_bindings() {
    let steps = prop_oneof![Just(1i64), Just(-1), 2..5i64, -5..-1i64];
    let bindings = prop::collection::vec((0i64..14, 0i64..9, -16i64..16), 100);
    let strategy = (arbitrary_bound(), arbitrary_bound(), steps, any::<bool>(), 0u8..4, bindings);
    let checked = Cell::new(0usize);
    let config = Config { cases: 3000, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let run = runner.run(&strategy, |(begin, end, step, numpy, of, bindings)| {
        let symbols = Symbols::new();
        let range = Range::new(symbols.bound(begin), symbols.bound(end), Some(step)).unwrap();
        let [s, t, _] = symbols.symbols.map(Dim::symbol);
        let dim = match of {
            0 => symbols.scope.add(&s, &t),
            1 => symbols.scope.max(&Dim::constant(0), &symbols.scope.sub(&s, &Dim::constant(2))),
            _ => s,
        };
        let reading = if numpy { NUMPY } else { ONNX };
        let resolved = resolve(&symbols.scope, &dim, &range, reading).unwrap();
        if !symbols.is_stated(&resolved) {
            // Only run-time bounds of unknown sign are undecided.
            prop_assert!(matches!(begin.0, 6 | 7) || matches!(end.0, 6 | 7));
            return Ok(());
        }
        checked.set(checked.get() + bindings.len());
        for (s, t, v) in bindings {
            symbols.check_resolved(&resolved, &dim, &range, reading, [s, t, v]);
        }
        Ok(())
    });
    run.unwrap();
    assert!(checked.get() > 100_000, "{}", checked.get());
}

#[test]
fn what_is_not_known_leaves_sound_bounds() {
    let symbols = Symbols::new();
    let scope = &symbols.scope;
    let bounds = |begin: Bound, end: Bound, step: Option<i64>| {
        let range = Range::new(begin, end, step).unwrap();
        let resolved = resolve(scope, &Dim::constant(10), &range, ONNX).unwrap();
        assert_eq!(resolved.selection, None);
        scope.bounds(&resolved.len)
    };
    let at = |value: i64| Bound::At(Dim::constant(value));
    assert_eq!(bounds(Bound::Unknown, at(5), Some(1)), (Some(0), Some(5)));
    assert_eq!(bounds(at(3), Bound::Unknown, Some(1)), (Some(0), Some(7)));
    assert_eq!(bounds(at(3), Bound::Unknown, Some(-2)), (Some(0), Some(2)));
    assert_eq!(bounds(at(3), at(4), None), (Some(0), Some(10)));
    // An end of 0 makes the range empty for every begin.
    let nothing = Range::new(Bound::Unknown, at(0), Some(1)).unwrap();
    assert_eq!(resolve(scope, &symbols.dim(), &nothing, ONNX).unwrap().len, Dim::constant(0));
    // An unknown length is at most the dim.
    let unknown = resolve(scope, &symbols.dim(), &Range::UNKNOWN, ONNX).unwrap();
    assert!(scope.le(&unknown.len, &symbols.dim()).is_yes());
}

#[test]
fn disputed_and_possibly_disputed_lengths_are_not_stated() {
    let symbols = Symbols::new();
    let (scope, dim) = (&symbols.scope, symbols.dim());
    let agree = onnx::reading(SliceRule::Agree);
    let backward = |end: Dim| Range::new(Bound::Open, Bound::At(end), Some(-1)).unwrap();
    let disputed = resolve(scope, &dim, &backward(Dim::constant(i64::MAX)), agree).unwrap();
    assert_eq!(disputed.disputed, Some(i64::MAX));
    assert_eq!(disputed.selection, None);
    // A run-time end could be INT_MAX; one that is at most 0 could not.
    let value = Dim::symbol(symbols.symbols[2]);
    assert_eq!(resolve(scope, &dim, &backward(value), agree).unwrap().selection, None);
    let negative = backward(scope.neg(&dim));
    let resolved = resolve(scope, &dim, &negative, agree).unwrap();
    for size in 0..9 {
        symbols.check_resolved(&resolved, &dim, &negative, agree, [size, 0, 0]);
    }
}

#[test]
fn a_bound_of_unknown_sign_is_right_on_both_sides() {
    let symbols = Symbols::new();
    let value = Dim::symbol(symbols.symbols[2]);
    let position = super::resolve::position(&symbols.scope, &symbols.dim(), &value);
    for size in 0..6 {
        for value in (-9..=9).chain([i64::MIN, i64::MAX]) {
            let counted = if value < 0 { value + size } else { value };
            assert_eq!(symbols.value_of(&position, [size, 0, value]), Some(counted));
        }
    }
    // A size can be negative only as a bound counted from the end: `x[0:-T]` is empty where `T` is 0.
    let range = Range::new(Bound::Open, symbols.bound((3, 0)), Some(1)).unwrap();
    for (size, back) in (0..6).flat_map(|size| (0..6).map(move |back| (size, back))) {
        symbols.check(&symbols.dim(), &range, ONNX, [size, back, 0]);
    }
}

#[test]
fn only_whole_axes_are_identities() {
    let symbols = Symbols::new();
    let (scope, dim) = (&symbols.scope, symbols.dim());
    let is = |dim: &Dim, begin, end, step| is_identity(scope, dim, &Range::constant(begin, end, step).unwrap(), ONNX);
    assert!(is(&dim, None, None, 1));
    assert!(is(&dim, Some(0), Some(i64::MAX), 1));
    assert!(!is(&dim, Some(0), Some(100), 1));
    assert!(!is(&dim, None, None, -1));
    assert!(!is(&dim, None, None, 2));
    let one = Dim::constant(1);
    assert!(is(&one, None, None, -1));
    assert!(is(&one, None, None, 7));
    assert!(is(&Dim::constant(4), Some(-9), Some(4), 1));
    assert!(!is(&Dim::constant(4), Some(1), Some(4), 1));
    assert!(is(&Dim::constant(0), Some(1), Some(4), 1));
    assert!(!is_identity(scope, &dim, &Range::UNKNOWN, ONNX));
}

#[test]
fn bounds_become_numbers_where_that_changes_nothing() {
    let symbols = Symbols::new();
    let (scope, dim) = (&symbols.scope, symbols.dim());
    scope.restrict(symbols.symbols[0], Some(3), None);
    let bounds = || (0..10u8).flat_map(|kind| [-7, -3, -1, 0, 1, 4].map(|number| symbols.bound((kind, number))));
    let numbers = |range: &Range| {
        let is = |bound: &Bound| !matches!(bound, Bound::At(at) if at.as_const().is_none());
        usize::from(is(&range.begin)) + usize::from(is(&range.end))
    };
    let mut told = 0;
    for reading in [NUMPY, ONNX] {
        for step in [1, -1, -2] {
            let ranges = bounds().map(|bound| Range::new(bound, Bound::Open, Some(step)).unwrap());
            let ranges = ranges.chain(bounds().map(|bound| Range::new(Bound::Open, bound, Some(step)).unwrap()));
            for range in ranges {
                let same = with_numbers(scope, &dim, &range, reading);
                told += numbers(&same) - numbers(&range);
                let value = |bound: &Bound, values| match bound {
                    Bound::At(at) => symbols.value_of(at, values),
                    _ => None,
                };
                for values in [[3, 0, -9], [3, 3, 2], [4, 1, 0], [5, 8, -3], [9, 2, 5]] {
                    let take = |range: &Range| {
                        let (begin, end) = (value(&range.begin, values), value(&range.end, values));
                        elements(resolve_integers(values[0], begin, end, step, reading).unwrap())
                    };
                    assert_eq!(take(&same), take(&range), "{values:?} {range:?} {same:?}");
                }
            }
        }
    }
    assert!(told > 30, "{told}");
}

#[test]
fn operands_too_long_for_any_tensor_are_not_listed() {
    let long = Tensor::vector(vec![0i64; 5000]);
    assert_eq!(Operand::of_tensor("starts", &long), Err(SliceError::EntryLimit { entries: 5000, limit: 4096 }));
    assert_eq!(Operand::of_length(usize::MAX), Operand::Unknown);
    assert!(onnx::slice_1(&vec![0; 5000], &[0], None, SliceRule::Agree).is_err());
}

#[test]
fn masks_are_read_as_converters_write_them() {
    assert_eq!(openvino::parse_mask("end_mask", "1, 0,1"), Ok(vec![1, 0, 1]));
    assert_eq!(openvino::parse_mask("end_mask", ""), Ok(vec![]));
    for text in ["1,", "a", "1 0", "99999999999999999999"] {
        assert!(matches!(openvino::parse_mask("end_mask", text), Err(SliceError::Mask { mask: "end_mask", .. })));
    }
}

#[test]
fn an_operand_nobody_knows_is_not_one_left_out() {
    let scope = Scope::new();
    let shape = [Dim::constant(4), Dim::symbol(scope.named("S"))];
    let one = |axes: Option<Operand>| {
        let operands =
            onnx::Operands { starts: Operand::constant(&[1]), ends: Operand::constant(&[3]), axes, steps: None };
        infer(&scope, &onnx::slice(&operands, SliceRule::Agree).unwrap(), Some(&shape)).unwrap().unwrap().shape
    };
    assert_eq!(one(None)[0], Dim::constant(2));
    assert_eq!(one(Some(Operand::constant(&[-2])))[1], shape[1]);
    let unknown = one(Some(Operand::of_length(1)));
    assert_eq!(scope.bounds(&unknown[0]), (Some(0), Some(4)));
    assert_ne!(unknown[1], shape[1]);
    // One of two axes is known; the other may be any other axis.
    let two = onnx::Operands {
        starts: Operand::constant(&[1, 0]),
        ends: Operand::constant(&[3, 1]),
        axes: Some(Operand::Elements(vec![Some(Dim::constant(0)), None])),
        steps: None,
    };
    let inferred = infer(&scope, &onnx::slice(&two, SliceRule::Agree).unwrap(), Some(&shape)).unwrap().unwrap();
    assert_eq!(inferred.shape[0], Dim::constant(2));
    assert_ne!(inferred.shape[1], shape[1]);
}
