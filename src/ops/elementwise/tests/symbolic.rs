//! Symbolic elements.

use super::*;

/// Formats the element under the assumption that sizes fit their types.
fn text(scope: &Scope, element: &Scalar) -> String {
    let element = match element {
        Scalar::Int(dim) => &Scalar::Int(scope.nominal(dim)),
        Scalar::Real { num, den } => &Scalar::Real { num: scope.nominal(num), den: *den },
        other => other,
    };
    match element {
        Scalar::Int(dim) if dim.symbols().iter().any(|&symbol| scope.is_fresh(symbol)) => "fresh".into(),
        Scalar::Int(dim) => scope.format(dim),
        Scalar::Real { num, den } => format!("({}) / {den}", scope.format(num)),
        Scalar::Float(value) => format!("{value:?}"),
        Scalar::Unknown => "?".into(),
    }
}

#[test]
fn sizes_go_through_integer_arithmetic() {
    let scope = Scope::new();
    let n = Scalar::Int(Dim::symbol(scope.named("n")));
    let int = |value: i64| Scalar::Int(Dim::constant(value));
    let e = Elements::new(&scope, DType::Int64);
    let show = |element: Scalar| text(&scope, &element);
    assert_eq!(show(e.add(&n, &int(2))), "n + 2");
    assert_eq!(show(e.sub(&n, &n)), "0");
    assert_eq!(show(e.mul(&int(0), &Scalar::Unknown)), "0");
    assert_eq!(show(e.mul(&int(3), &Scalar::Unknown)), "?");
    assert_eq!(show(e.div(&e.mul(&n, &int(6)), &int(4))), show(Scalar::Int(scope.parse("floor(3*n/2)").unwrap())));
    assert_eq!(show(e.div(&int(1), &int(0))), "?");
    // A successful run does not divide by 0.
    assert_eq!(show(e.div(&int(6), &n)), "floor(6/max(1, n))");
    assert_eq!(show(e.modulo(&e.mul(&n, &int(6)), &int(3), false)), "0");
    assert_eq!(show(e.pow(&n, &int(2))), "n**2");
    assert_eq!(show(e.neg(&e.neg(&n))), "n");
    assert_eq!(show(e.abs(&n)), "n");
    assert_eq!(e.compare(Relation::Less, &n, &int(0)), Some(Answer::No));
    assert_eq!(e.compare(Relation::Equal, &n, &int(-1)), Some(Answer::No));
    assert_eq!(e.compare(Relation::Equal, &n, &int(3)), Some(Answer::Unknown));
    assert_eq!(show(e.truth(Answer::Unknown)), "fresh");
    assert_eq!(show(e.select(&int(1), &n, &int(3))), "n");
    assert_eq!(show(e.select(&Scalar::Unknown, &n, &n)), "n");
    // The unknown choice between two elements is at least their lower bound.
    let Scalar::Int(one_of) = e.select(&Scalar::Unknown, &n, &int(3)) else { panic!() };
    assert_eq!(scope.bounds(&one_of), (Some(0), None));
}

/// Results that may wrap or be rounded have a nominal expression, but decide no comparison.
#[test]
fn sizes_that_may_not_fit_decide_nothing() {
    let scope = Scope::new();
    let n = Scalar::Int(Dim::symbol(scope.named("n")));
    let int = |value: i64| Scalar::Int(Dim::constant(value));
    let (e32, e64, f32) = (DType::Int32, DType::Int64, DType::Float);
    let [narrow, wide, float, flags] = [e32, e64, f32, DType::Bool].map(|dtype| Elements::new(&scope, dtype));
    let square = narrow.mul(&narrow.cast(&n, e64), &narrow.cast(&n, e64));
    assert_eq!(text(&scope, &square), "n**2");
    assert_eq!(flags.compare(Relation::Less, &square, &int(0)), Some(Answer::Unknown));
    let quarter = wide.mul(&n, &int(4));
    assert_eq!(text(&scope, &quarter), "4*n");
    assert_eq!(flags.compare(Relation::LessOrEqual, &n, &quarter), Some(Answer::Unknown));
    assert_eq!(flags.compare(Relation::Equal, &quarter, &quarter), Some(Answer::Yes));
    // Wrapping preserves the last two bits.
    assert_eq!(flags.compare(Relation::Equal, &quarter, &int(-1)), Some(Answer::No));
    assert!(!scope.le(wide.min(&quarter, &n).as_int().unwrap(), &Dim::constant(0)).is_yes());
    assert_eq!(text(&scope, &wide.min(&quarter, &n)), "n");
    assert_eq!(text(&scope, &wide.div(&quarter, &int(4))), "n");
    assert_ne!(wide.div(&quarter, &int(4)), n);
    let twice = wide.cast(&float.mul(&float.cast(&n, e64), &Scalar::Float(2.0)), f32);
    assert_eq!(text(&scope, &twice), "2*n");
    assert_eq!(flags.compare(Relation::Equal, &twice, &wide.mul(&n, &int(2))), Some(Answer::Unknown));
    // Equal computations yield the same integer.
    assert_eq!(twice, wide.cast(&float.mul(&Scalar::Float(2.0), &float.cast(&n, e64)), f32));
    // With bounds, the comparison is decided.
    scope.restrict(scope.named("n"), None, Some(46_340));
    let square = narrow.mul(&narrow.cast(&n, e64), &narrow.cast(&n, e64));
    assert_eq!(flags.compare(Relation::Less, &square, &int(0)), Some(Answer::No));
    assert_eq!(wide.div(&quarter, &int(4)), n);
}

#[test]
fn narrow_integers_must_fit() {
    let scope = Scope::new();
    let n = Scalar::Int(Dim::symbol(scope.named("n")));
    let small = Scalar::Int(scope.fresh_within("small", Some(0), Some(20)));
    let one = Scalar::Int(Dim::constant(1));
    assert_eq!(Elements::new(&scope, DType::Int16).add(&n, &one), Scalar::Unknown);
    assert!(matches!(Elements::new(&scope, DType::Int16).add(&small, &one), Scalar::Int(_)));
    assert!(matches!(Elements::new(&scope, DType::Int32).add(&n, &one), Scalar::Int(_)));
    // An integer that may have wrapped is unknown.
    let Scalar::Int(wrapped) = Elements::new(&scope, DType::Uint32).sub(&n, &one) else { panic!() };
    assert_eq!(scope.bounds(&wrapped), (Some(0), Some(u32::MAX.into())));
    assert!(wrapped.as_symbol().is_some() && !scope.is_of_sizes(&wrapped));
    let big = Scalar::Int(Dim::constant(300));
    assert_eq!(Elements::new(&scope, DType::Int8).cast(&big, DType::Int64).as_const_int(), Some(44));
    assert_eq!(
        Elements::new(&scope, DType::Uint8).cast(&Scalar::Int(Dim::constant(-1)), DType::Int64).as_const_int(),
        Some(255)
    );
}

#[test]
fn sizes_go_through_exact_float_arithmetic() {
    let scope = Scope::new();
    let n = Scalar::Int(Dim::symbol(scope.named("n")));
    let float = Elements::new(&scope, DType::Float);
    let int = Elements::new(&scope, DType::Int64);
    let real = float.cast(&n, DType::Int64);
    let show = |element: &Scalar| text(&scope, element);
    let back = |element: &Scalar| show(&int.cast(element, DType::Float));
    assert_eq!(show(&real), "(n) / 1");
    assert_eq!(back(&float.mul(&real, &Scalar::Float(2.0))), "2*n");
    // The usual way to halve a size.
    let half = float.mul(&real, &Scalar::Float(0.5));
    assert_eq!(show(&half), "(n) / 2");
    assert_eq!(back(&float.floor(&half)), show(&int.div(&n, &Scalar::Int(Dim::constant(2)))));
    assert_eq!(back(&half), back(&float.floor(&half)));
    assert_eq!(show(&float.add(&half, &half)), "(n) / 1");
    assert_eq!(show(&float.div(&real, &Scalar::Float(-4.0))), "(-n) / 4");
    assert_eq!(show(&float.div(&float.mul(&real, &Scalar::Float(1.5)), &Scalar::Float(3.0))), "?");
    assert_eq!(show(&float.sub(&real, &real)), "0.0");
    // Not exact: more than 24 bits, or not a power of two.
    assert_eq!(float.mul(&real, &Scalar::Float(3.0)), Scalar::Unknown);
    assert_eq!(float.div(&real, &Scalar::Float(3.0)), Scalar::Unknown);
    assert_eq!(float.mul(&real, &Scalar::Float(f64::from(0.1f32))), Scalar::Unknown);
    assert_eq!(float.mul(&real, &real), Scalar::Unknown);
    let double = Elements::new(&scope, DType::Double);
    assert_eq!(show(&double.mul(&double.cast(&n, DType::Int64), &Scalar::Float(3.0))), "(3*n) / 1");
    assert_eq!(Elements::new(&scope, DType::Float16).cast(&n, DType::Int64), Scalar::Unknown);
    // A run-time integer is not a size and has no bound.
    let value = Scalar::Int(scope.fresh_value("value"));
    assert_eq!(float.cast(&value, DType::Int64), Scalar::Unknown);
    // The negated size may be −0, which is not a fraction; a product with 0 may be −0, too.
    assert_eq!(float.mul(&float.neg(&real), &Scalar::Float(0.0)), Scalar::Unknown);
    assert_eq!(float.compare(Relation::Less, &real, &Scalar::Float(f64::INFINITY)), Some(Answer::Yes));
    assert_eq!(float.compare(Relation::Less, &real, &Scalar::Float(-0.5)), Some(Answer::No));
    let flag = Elements::new(&scope, DType::Bool).cast(&real, DType::Float);
    assert_eq!(show(&flag), show(&Scalar::Int(scope.parse("min(n, 1)").unwrap())));
}

/// Symbolic elements have, at all sizes, the value that floating-point operations compute.
#[test]
fn symbolic_contents_equal_computed_ones() {
    let constants = [0.5f32, 2.0, 0.25, 1.0, 3.0, -1.0, 1.5, 0.75, -0.5, 7.0, 1024.0, 0.1];
    let mut state = 1u64;
    let mut draw = |below: usize| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as usize % below
    };
    let mut followed = 0;
    for _ in 0..400 {
        let scope = Scope::new();
        let symbol = scope.named("n");
        let sizes = [0i64, 1, 2, 3, 5, 8, 13, 1023, 99_999, (1 << 24) - 1];
        let e = Elements::new(&scope, DType::Float);
        let mut element = e.cast(&Scalar::Int(Dim::symbol(symbol)), DType::Int64);
        let mut values = sizes.map(|size| size as f32);
        for _ in 0..6 {
            let constant = constants[draw(constants.len())];
            let other = Scalar::Float(constant.into());
            let operation = draw(10);
            element = match operation {
                0 => e.add(&element, &other),
                1 => e.sub(&other, &element),
                2 | 3 => e.mul(&element, &other),
                4 | 5 => e.div(&element, &other),
                6 => e.floor(&element),
                7 => e.ceil(&element),
                8 => e.round(&element),
                _ => e.max(&element, &other),
            };
            values = values.map(|x| match operation {
                0 => x + constant,
                1 => constant - x,
                2 | 3 => x * constant,
                4 | 5 => x / constant,
                6 => x.floor(),
                7 => x.ceil(),
                8 => x.round_ties_even(),
                _ => x.max(constant),
            });
            for (&size, &value) in sizes.iter().zip(&values) {
                match &element {
                    Scalar::Real { num, den } => {
                        let num = scope.nominal(num).evaluate(&|_| Some(size)).unwrap();
                        assert_eq!(
                            num as f64 / *den as f64,
                            f64::from(value),
                            "{} / {den} at {size}",
                            scope.format(num_of(&element))
                        );
                        followed += 1;
                    }
                    Scalar::Float(constant) => assert_eq!(*constant, f64::from(value)),
                    _ => {}
                }
            }
            if element == Scalar::Unknown {
                break;
            }
        }
    }
    assert!(followed > 5000, "{followed}");
}

fn num_of(element: &Scalar) -> &Dim {
    match element {
        Scalar::Real { num, .. } | Scalar::Int(num) => num,
        other => panic!("{other:?}"),
    }
}

#[test]
fn rounding_of_fractions_is_that_of_floats() {
    for den in [2i64, 4, 8] {
        for value in -20i64..=20 {
            let scope = Scope::new();
            let symbol = scope.named("n");
            scope.restrict(symbol, Some(-40), Some(40));
            let fraction = Scalar::Real { num: Dim::symbol(symbol), den };
            let elements = Elements::new(&scope, DType::Float);
            let at = |element: Scalar| match element {
                Scalar::Real { num, den } => num.evaluate(&|_| Some(value)).unwrap() as f64 / den as f64,
                other => panic!("{other:?}"),
            };
            let x = value as f64 / den as f64;
            assert_eq!(at(elements.round(&fraction)), x.round_ties_even(), "{x}");
            assert_eq!(at(elements.floor(&fraction)), x.floor(), "{x}");
            assert_eq!(at(elements.ceil(&fraction)), x.ceil(), "{x}");
        }
    }
}
