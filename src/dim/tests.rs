//! Laws, one test each; what random expressions do is in `properties`.

use super::*;

fn check(scope: &Scope, text: &str, expected: &str) {
    let dim = scope.parse(text).unwrap_or_else(|| panic!("{text} does not parse"));
    assert_eq!(scope.format(&dim), expected, "{text}");
}

fn same(scope: &Scope, left: &str, right: &str) {
    let [a, b] = [left, right].map(|text| scope.parse(text).unwrap_or_else(|| panic!("{text} does not parse")));
    assert_eq!(a, b, "{left} and {right}");
}

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
fn slices_of_a_symbolic_axis_come_out_short() {
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
    check(&scope, "S % 3", "mod(S, 3)");
    check(&scope, "(2*S - 1) % 3", "mod(2*S + 2, 3)");
    check(&scope, "(S + 1) % 3 + 5", "mod(S + 1, 3) + 5");
    check(&scope, "(h + 1)//2", "floor((h + 1)/2)");
    check(&scope, "B*(S % 4)", "B*mod(S, 4)");
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
    check(&scope, "N % S", "mod(N, S)");
    check(&scope, "N // (2*S)", "floor(N/(2*S))");
    check(&scope, "(S - 1) // S", "0");
    check(&scope, "floor(S*N/(S*2)) - N//2", "0");
}

/// The core rule of slicing on one axis: `(length, reference length)`.
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

fn length(dim: i64, begin: Option<i64>, end: Option<i64>, step: i64) -> i64 {
    let (low, high) = if step > 0 { (0, dim) } else { (-1, dim - 1) };
    let clamp = |at: i64| (if at < 0 { at + dim } else { at }).clamp(low, high);
    let (first, last) = if step > 0 { (low, high) } else { (high, low) };
    let span = end.map_or(last, clamp) - begin.map_or(first, clamp);
    (span * step.signum()).max(0).div_euclid(step.abs()) + i64::from((span * step.signum()).max(0) % step.abs() != 0)
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
            println!("{text}");
            longest = longest.max((dim.term_count(), text));
        }
    }
    println!("{longest:?}");
}
