//! Canonical forms: sums, slices, minima, quotients.

use super::*;

#[test]
fn polynomials_print_in_canonical_order() {
    let scope = Scope::new();
    for symbol in ["batch", "seq", "S"] {
        scope.named(symbol);
    }
    check(&scope, "seq*batch", "batch*seq");
    check(&scope, "1 + 2*S", "2*S + 1");
    check(&scope, "S*S", "S**2");
    check(&scope, "10 - S", "10 - S");
    check(&scope, "-S - 1", "-S - 1");
    check(&scope, "(S + 1)*(S - 1)", "S**2 - 1");
    check(&scope, "S - S", "0");
    check(&scope, "-9223372036854775808*S", "-9223372036854775808*S");
    check(&scope, "-9223372036854775808", "-9223372036854775808");
}

#[test]
fn slices_of_a_symbolic_axis_have_short_forms() {
    let scope = Scope::new();
    check(&scope, "max(0, S - 1)", "max(0, S - 1)");
    check(&scope, "max(0, S)", "S");
    check(&scope, "min(S, S + 1)", "S");
    check(&scope, "min(10, S)", "min(10, S)");
    check(&scope, "max(0, min(10, S))", "min(10, S)");
    check(&scope, "S - min(max(S - 5, 0), S)", "min(5, S)");
    check(&scope, "max(0, min(2, S) - max(0, S - 3))", "max(0, min(2, S) - max(0, S - 3))");
    check(&scope, "ceil(S/2)", "floor((S + 1)/2)");
    check(&scope, "max(max(0, S - 1) - 1, 0)", "max(0, S - 2)");
    check(&scope, "floor((max(0, S - 1) + 1)/2)", "floor(S/2)");
    check(&scope, "floor((min(10, S) + 1)/2)", "min(5, floor((S + 1)/2))");
    check(&scope, "max(1, S)", "max(1, S)");
    check(&scope, "max(1, S) - 1", "max(0, S - 1)");
    check(&scope, "B*min(10, S)", "B*min(10, S)");
    check(&scope, "min(10*B, S*B)", "B*min(10, S)");
    check(&scope, "min(T, S, 5)", "min(5, T, S)");
    check(&scope, "max(0, S - 1, T)", "max(T, S - 1)");
}

#[test]
fn extrema_have_one_form() {
    let scope = Scope::new();
    same(&scope, "min(10, S)", "S - max(0, S - 10)");
    same(&scope, "min(10, S)", "10 - max(0, 10 - S)");
    same(&scope, "min(S, T) + max(S, T)", "S + T");
    same(&scope, "min(S, T) + 3", "min(S + 3, T + 3)");
    same(&scope, "3*min(S, T)", "min(3*S, 3*T)");
    same(&scope, "-min(S, T)", "max(-S, -T)");
    same(&scope, "max(0, S - 2)", "max(max(0, S - 1) - 1, 0)");
    same(&scope, "min(10, S) - min(3, S)", "min(7, max(0, S - 3))");
    same(&scope, "max(max(S, T), 5)", "max(S, max(5, T))");
    same(&scope, "min(min(S, T), 5)", "min(S, min(5, T))");
    same(&scope, "abs(S - T)", "abs(T - S)");
    same(&scope, "abs(S - T)", "max(S, T) - min(S, T)");
}

#[test]
fn quotients_have_one_form() {
    let scope = Scope::new();
    same(&scope, "(2*S + 1)//2", "S");
    same(&scope, "(6*S + T + 7)//6", "S + 1 + (T + 1)//6");
    same(&scope, "(2*S)//4", "S//2");
    same(&scope, "(2*S + 3)//4", "(S + 1)//2");
    same(&scope, "(S//2)//3", "S//6");
    same(&scope, "(S//2 + T)//3", "(S + 2*T)//6");
    same(&scope, "S//3*3 + S % 3", "S");
    same(&scope, "(-S)//2", "S//-2");
    let [up, down] = ["ceil(S/-2)", "-(S//2)"].map(|text| scope.parse(text).unwrap());
    assert_eq!(scope.eq(&up, &down), Answer::Yes);
    check(&scope, "S % 3", "Mod(S, 3)");
    check(&scope, "(2*S - 1) % 3", "2 - Mod(S, 3)");
    check(&scope, "(S + 1) % 3 + 5", "Mod(S + 1, 3) + 5");
    check(&scope, "(h + 1)//2", "floor((h + 1)/2)");
    check(&scope, "B*(S % 4)", "B*Mod(S, 4)");
    check(&scope, "floor(S/2)/1", "floor(S/2)");
    check(&scope, "(6*S)/3", "2*S");
}

#[test]
fn a_symbolic_divisor_needs_to_be_non_zero() {
    let scope = Scope::new();
    assert_eq!(scope.parse("N*S//S"), None);
    assert!(scope.lookup("N").is_none(), "a failed text leaves no symbol");
    let s = scope.named("S");
    let (zero, n) = (Dim::constant(0), Dim::symbol(scope.named("N")));
    assert!(scope.floor_div(&n, &zero).as_symbol().is_some_and(|made| scope.is_fresh(made)));
    assert!(scope.exact_div(&zero, &Dim::symbol(s)).is_none());
    scope.restrict(s, Some(1), None);
    same(&scope, "N*S//S", "N");
    same(&scope, "(N*S + N)//(S + 1)", "N");
    same(&scope, "(N*S + T)//S", "N + T//S");
    same(&scope, "(2*N*S)//(2*S*S)", "N//S");
    check(&scope, "N % S", "Mod(N, S)");
    check(&scope, "N // (2*S)", "floor(N/(2*S))");
    check(&scope, "(S - 1) // S", "0");
    check(&scope, "floor(S*N/(S*2)) - N//2", "0");
}

/// The length of a slice of one axis, as an expression.
fn slice(scope: &Scope, dim: &Dim, begin: Option<i64>, end: Option<i64>, step: i64) -> Dim {
    let zero = Dim::constant(0);
    let (low, high) =
        if step > 0 { (zero.clone(), dim.clone()) } else { (Dim::constant(-1), scope.sub(dim, &Dim::constant(1))) };
    let clamp = |at: Option<i64>, open: &Dim| match at {
        None => open.clone(),
        Some(at) if at < 0 => scope.min(&scope.max(&scope.add(dim, &at.into()), &low), &high),
        Some(at) => scope.min(&scope.max(&at.into(), &low), &high),
    };
    let (begin, end) =
        if step > 0 { (clamp(begin, &low), clamp(end, &high)) } else { (clamp(begin, &high), clamp(end, &low)) };
    scope.max(&zero, &scope.ceil_div(&scope.sub(&end, &begin), &step.into()))
}

/// The same for integers.
fn length(dim: i64, begin: Option<i64>, end: Option<i64>, step: i64) -> i64 {
    let (low, high) = if step > 0 { (0, dim) } else { (-1, dim - 1) };
    #[allow(clippy::disallowed_methods, reason = "the definition that is tested against")]
    let clamp = |at: i64| (if at < 0 { at + dim } else { at }).clamp(low, high);
    let (first, last) = if step > 0 { (low, high) } else { (high, low) };
    let span = end.map_or(last, clamp) - begin.map_or(first, clamp);
    let span = i128::from((span * step.signum()).max(0));
    -floor_quotient(-span, step.abs().into()).unwrap() as i64
}

#[test]
fn slices_are_exact_for_every_size() {
    let bound = |at: i64| if at == 6 { None } else { Some(at) };
    let mut longest = (0, String::new());
    for step in [-3, -2, -1, 1, 2, 3] {
        for (begin, end) in (-5..=6).flat_map(|begin| (-5..=6).map(move |end| (bound(begin), bound(end)))) {
            let scope = Scope::new();
            let s = scope.named("S");
            let dim = slice(&scope, &Dim::symbol(s), begin, end, step);
            let text = format!("[{begin:?}:{end:?}:{step}] {}", scope.format(&dim));
            for size in 0..20 {
                assert_eq!(dim.evaluate(&|_| Some(size)), Some(length(size, begin, end, step)), "{text} at {size}");
            }
            longest = longest.max((dim.term_count(), text));
        }
    }
    assert!(longest.0 <= 24, "{longest:?}");
}

#[test]
fn strided_slices_have_short_forms() {
    let scope = Scope::new();
    let s = Dim::symbol(scope.named("S"));
    let check = |begin, end, step, expected| {
        assert_eq!(scope.format(&slice(&scope, &s, begin, end, step)), expected, "[{begin:?}:{end:?}:{step}]");
    };
    check(None, None, 2, "floor((S + 1)/2)");
    check(None, None, -1, "S");
    check(Some(1), None, 2, "floor(S/2)");
    check(None, Some(4), 2, "min(2, floor((S + 1)/2))");
    check(Some(1), Some(5), 2, "min(2, floor(S/2))");
    check(Some(-5), Some(-1), 2, "min(2, floor(S/2))");
    check(Some(2), None, 2, "max(0, floor((S - 1)/2))");
    check(Some(1), Some(4), -3, "0");
    check(Some(3), Some(-5), 1, "max(0, max(0, S - 5) - min(3, S))");
}

#[test]
fn a_0_1_factor_selects_one_value() {
    let scope = Scope::new();
    check(&scope, "T*max(0, 1 - S)", "T*max(0, 1 - S)");
    check(&scope, "(S + T)*max(0, 1 - S)", "T*max(0, 1 - S)");
    check(&scope, "S*min(1, S)", "S");
    check(&scope, "(S + T)*max(-1, -S)", "-S - T*min(1, S)");
    check(&scope, "(S + T)*min(1, S) + T*max(0, 1 - S)", "T + S");
    check(&scope, "max(0, S - T)*max(0, 1 - S - T)", "0");
    check(&scope, "(floor(S/2) - 1)*max(0, 1 - floor(S/2))", "min(0, floor(S/2) - 1)");
}

#[test]
fn multiples_divide_exactly() {
    let scope = Scope::new();
    let s = scope.named("S");
    scope.set_multiple(s, 8);
    check(&scope, "S//8*8", "S");
    check(&scope, "S % 4", "0");
    check(&scope, "S//2*2", "S");
    check(&scope, "(S + 3)//8", "floor(S/8)");
    check(&scope, "(S + 5)//16", "floor(S/16)");
    check(&scope, "(S + T*8)//8 - T", "floor(S/8)");
    check(&scope, "max(0, S - 3)", "max(0, S - 3)");
    check(&scope, "max(0, S - 8) // 8", "max(0, floor(S/8) - 1)");
    check(&scope, "-(S//8)*8", "-S");
    let size = Dim::symbol(s);
    assert_eq!(scope.divides(&Dim::constant(4), &size), Answer::Yes);
    assert_eq!(scope.eq(&size, &Dim::constant(12)), Answer::No);
    assert_eq!(scope.exact_div(&size, &Dim::constant(8)), scope.parse("floor(S/8)"));
    scope.set_multiple(s, 12);
    assert_eq!(scope.divides(&Dim::constant(24), &size), Answer::Yes);
    scope.restrict(s, Some(1), Some(47));
    assert_eq!(scope.bounds(&size), (Some(24), Some(24)));
    scope.set_multiple(s, 0);
    scope.set_multiple(s, i64::MIN);
}

#[test]
fn divisibility() {
    let scope = Scope::new();
    let ask = |left: &str, right: &str| {
        let [a, b] = [left, right].map(|text| scope.parse(text).unwrap());
        (scope.divides(&a, &b), scope.exact_div(&b, &a).map(|quotient| scope.format(&quotient)))
    };
    let no_quotient = |answer| (answer, None);
    assert_eq!(ask("2", "4*S + 2"), (Answer::Yes, Some("2*S + 1".into())));
    assert_eq!(ask("2", "4*S + 1"), no_quotient(Answer::No));
    assert_eq!(ask("2", "S"), no_quotient(Answer::Unknown));
    assert_eq!(ask("S", "S*T"), no_quotient(Answer::Yes));
    assert_eq!(ask("S + 1", "S*T + T"), (Answer::Yes, Some("T".into())));
    assert_eq!(ask("-2", "4*S"), (Answer::Yes, Some("-2*S".into())));
    assert_eq!(ask("0", "S + 1"), no_quotient(Answer::No));
    assert_eq!(ask("S", "0"), no_quotient(Answer::Yes));
    assert_eq!(ask("2", "S//2 + (S + 1)//2 + S").0, Answer::Yes);
}

#[test]
fn division_rounds_as_named() {
    let scope = Scope::new();
    let values = [-7i64, -6, -1, 0, 1, 6, 7];
    for a in values {
        for b in [-3i64, -2, -1, 1, 2, 3] {
            let [x, y] = [a, b].map(Dim::constant);
            assert_eq!(scope.trunc_div(&x, &y), Dim::constant(a / b));
            assert_eq!(scope.rem(&x, &y), Dim::constant(a % b));
            let floor = floor_quotient(a.into(), b.into()).unwrap() as i64;
            assert_eq!(scope.floor_div(&x, &y), Dim::constant(floor));
            assert_eq!(scope.modulo(&x, &y), Dim::constant(a - b * floor));
            assert_eq!(scope.ceil_div(&x, &y), Dim::constant(-(floor_quotient((-a).into(), b.into()).unwrap() as i64)));
        }
    }
    let v = scope.fresh_value("v");
    let quotient = scope.trunc_div(&v, &Dim::constant(3));
    for value in -9..9 {
        assert_eq!(quotient.evaluate(&|_| Some(value)), Some(value / 3));
    }
}

#[test]
fn a_factor_that_is_written_as_a_sum_is_in_parentheses() {
    let scope = Scope::new();
    scope.assume_le(&Dim::constant(1), &scope.parse("c").unwrap());
    // A term of it is `c*floor(1/c)`, which is `1 - Mod(1, c)`.
    let dim = scope.parse("min(1, Mod(1, c)*min(2, a))").unwrap();
    let back = scope.parse(&scope.format(&dim)).unwrap();
    for (a, c) in [(0, 1), (1, 1), (5, 1), (1, 4), (5, 4)] {
        let value = |dim: &Dim| dim.evaluate(&|symbol| Some(if &*scope.name(symbol) == "a" { a } else { c }));
        assert_eq!(value(&back), value(&dim), "{}", scope.format(&dim));
    }
}

#[test]
fn the_shortest_equal_form_is_written() {
    let scope = Scope::new();
    let equal = |text: &str, expected: &str| check(&scope, text, expected);
    equal("S - floor(3*S/4)", "floor((S + 3)/4)");
    equal("ceil(S/4)", "floor((S + 3)/4)");
    equal("S + Mod(7*S, 8)", "8*floor((S + 7)/8)");
    equal("8*ceil(S/8) + 8", "8*floor((S + 15)/8)");
    equal("floor((S + 1)/2) - 1", "floor((S - 1)/2)");
    equal("32*B*S + 256*B + 32*B*Mod(7*S, 8)", "256*B*floor((S + 15)/8)");
    equal("max(0, S - 1) - max(0, S - 3)", "min(2, max(0, S - 1))");
    equal(
        "B*H*W - B*H*floor(3*W/4) - B*W*floor(3*H/4) + B*floor(3*H/4)*floor(3*W/4)",
        "B*floor((W + 3)/4)*floor((H + 3)/4)",
    );
    equal("3*max(0, H - 1)*max(0, W - 1) + 3*max(0, W - 1) + 3*max(1, H)", "3*max(1, W)*max(1, H)");
    equal("T*min(1, S, T) + max(0, S - T)*min(1, S, T)", "min(1, T, S)*max(T, S)");
    equal("max(S, T, 3*T - 2*S)", "max(3*T - 2*S, S)");
    equal("max(0, S - T, H - W - 4, H - W + S - T - 4)", "max(4 - T, H - W - T) + max(T, S) - 4");
    equal("Mod(S, 4)", "Mod(S, 4)");
    equal("S - floor(3*S/4)", "floor((S + 3)/4)");
    equal("max(0, S - 2)", "max(0, S - 2)");
    let dense = |text: &str| scope.parse(text).map(|dim| scope.format_densely(&dim)).unwrap();
    assert_eq!(dense("floor((S + 3)/4)*floor((H + 3)/4) - 2"), "(H+3)//4*((S+3)//4)-2");
    assert_eq!(dense("-floor((S + 3)/4)"), "(-S)//4");
    assert_eq!(dense("-floor((5*S + 3)/9)*H"), "H*((5-5*S)//9)");
}

#[test]
fn names_that_are_no_words_are_quoted() {
    let scope = Scope::new();
    let [k, w, i] = ["k", "W", "x.1:0"].map(|name| Dim::symbol(scope.named(name)));
    let sum = Dim::symbol(scope.named("S + 1"));
    let both = scope.add(&w, &i);
    let part = scope.floor_div(&scope.mul(&scope.mul(&sum, &k), &both), &Dim::constant(140));
    for (dim, text) in [
        (sum.clone(), "\"S + 1\""),
        (scope.mul(&sum, &both), "\"S + 1\"*(W + x.1:0)"),
        (scope.sub(&Dim::constant(0), &sum), "-\"S + 1\""),
        (part.clone(), "floor(k*\"S + 1\"*(W + x.1:0)/140)"),
        (scope.mul(&sum, &sum), "\"S + 1\"**2"),
        (scope.modulo(&sum, &Dim::constant(4)), "Mod(\"S + 1\", 4)"),
        (Dim::symbol(scope.named("a \"b\" + c")), "\"a \"\"b\"\" + c\""),
        (Dim::symbol(scope.named("3")), "\"3\""),
        (Dim::symbol(scope.named("a#b")), "\"a#b\""),
    ] {
        assert_eq!(scope.format(&dim), text);
        assert_eq!(scope.parse(text), Some(dim), "{text}");
    }
    assert_eq!(scope.format_densely(&part), "k*\"S + 1\"*(W+x.1:0)//140");
    assert_eq!(scope.parse("'S + 1' - 'it''s'"), Some(scope.sub(&sum, &Dim::symbol(scope.named("it's")))));
    for text in ["\"\"", "\"S", "\"S\"\"", "'S\"", "\"S\" \"T\"", "\"S\"(1)", "2.5", "1.x"] {
        assert_eq!(scope.parse(text), None, "{text}");
    }
}

#[test]
fn a_factor_decides_a_maximum() {
    let scope = Scope::new();
    check(&scope, "S*max(0, S - 1)", "S**2 - S");
    check(&scope, "S*(m*max(0, 1 - S) + 1)", "S");
    check(&scope, "S*max(0, S + m - 1)", "S*(S + m - 1)");
    check(&scope, "S*max(0, S - 2)", "S*max(0, S - 2)");
    check(&scope, "(S - 5)*max(0, S - 6)", "max(0, S - 6)*(S - 5)");
}
