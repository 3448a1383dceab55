//! Overflow, nesting, hostile texts and names.

use super::*;

#[test]
fn overflow_is_a_fresh_integer() {
    let scope = Scope::new();
    let is_fresh =
        |dim: Dim| dim.as_symbol().is_some_and(|symbol| scope.is_fresh(symbol) && scope.bounds(&dim) == (None, None));
    let s = Dim::symbol(scope.named("S"));
    let [least, most] = [i64::MIN, i64::MAX].map(Dim::constant);
    let [one, minus_one] = [1, -1].map(Dim::constant);
    assert!(is_fresh(scope.add(&most, &one)));
    assert!(is_fresh(scope.neg(&least)));
    assert!(is_fresh(scope.abs(&least)));
    assert!(is_fresh(scope.trunc_div(&least, &minus_one)));
    assert!(is_fresh(scope.floor_div(&least, &minus_one)));
    assert!(is_fresh(scope.mul(&scope.mul(&s, &most), &scope.add(&one, &one))));
    assert!(is_fresh(scope.rem(&s, &s)));
    let big = scope.mul(&scope.mul(&s, &most), &scope.mul(&s, &one));
    assert_eq!(big.evaluate(&|_| Some(i64::MAX)), None);
    for binary in [Scope::add, Scope::sub, Scope::mul, Scope::floor_div, Scope::ceil_div, Scope::modulo, Scope::min] {
        for a in [&least, &most, &s, &big, &minus_one] {
            for b in [&least, &most, &s, &big, &minus_one] {
                let result = binary(&scope, a, b);
                let _ = (scope.bounds(&result), scope.le(a, &result), scope.format(&result));
            }
        }
    }
}

#[test]
fn powers_and_nesting_are_bounded() {
    std::thread::Builder::new().stack_size(1 << 20).spawn(nest).unwrap().join().unwrap();
}

fn nest() {
    let scope = Scope::new();
    let [s, t] = ["S", "T"].map(|name| Dim::symbol(scope.named(name)));
    let (mut power, mut nested) = (s.clone(), s.clone());
    for round in 0..200 {
        power = scope.mul(&power, &s);
        let other = if round % 2 == 0 { scope.mul(&nested, &t) } else { scope.add(&nested, &t) };
        nested = scope.floor_div(&other, &Dim::constant(3 + round));
        nested = scope.max(&scope.min(&nested, &scope.mul(&s, &t)), &scope.sub(&t, &Dim::constant(round)));
        assert!(nested.term_count() <= 4096);
    }
    let mut deep = s.clone();
    for round in 0..70 {
        let (numerator, divisor) = (scope.add(&scope.mul(&deep, &t), &Dim::constant(round)), Dim::constant(3));
        deep = scope.floor_div(&numerator, &divisor);
        for dim in [&nested, &deep].into_iter().filter(|_| round % 23 == 0) {
            let text = scope.format(dim);
            let _ = (scope.parse(&text), scope.bounds(dim), scope.substitute(dim, &|_| Some(t.clone())));
            let _ = (dim.clone() < deep, dim.symbols(), dim.evaluate(&|_| Some(1)));
        }
    }
    let squared = scope.mul(&scope.add(&s, &t), &scope.add(&s, &t));
    let mut grown = squared.clone();
    for _ in 0..10 {
        grown = scope.mul(&grown, &grown);
    }
    assert!(grown.term_count() <= 4096);
}

#[test]
fn long_sums_stay_quick_on_a_small_stack() {
    let work = || {
        let scope = Scope::new();
        let symbols: Vec<Dim> = (0..20_000).map(|index| Dim::symbol(scope.named(&format!("s{index}")))).collect();
        let total = scope.sum(&symbols[..4000]);
        assert_eq!(total.term_count(), 4000);
        assert_eq!(total.evaluate(&|_| Some(3)), Some(12_000));
        let text = scope.format(&total);
        assert_eq!(scope.parse(&text), Some(total));
        // Over budget.
        assert!(scope.sum(&symbols).as_symbol().is_some_and(|symbol| scope.is_fresh(symbol)));
        let same = std::iter::repeat_n(&symbols[0], 20_000);
        assert_eq!(scope.format(&scope.sum(same)), "20000*s0");
        let mut chain = Dim::constant(0);
        for index in 0..100_000 {
            chain = scope.add(&chain, &symbols[index % 8]);
        }
        assert_eq!(chain.term_count(), 8);
        let mut clamps = symbols[0].clone();
        for _ in 0..10_000 {
            clamps = scope.max(&scope.sub(&clamps, &Dim::constant(1)), &Dim::constant(0));
        }
        assert_eq!(scope.format(&clamps), "max(0, s0 - 10000)");
    };
    std::thread::Builder::new().stack_size(512 << 10).spawn(work).unwrap().join().unwrap();
}

#[test]
fn names_are_kept_apart() {
    let scope = Scope::new();
    let fresh = scope.fresh("");
    let first = scope.name(fresh);
    assert_eq!(&*first, "unk__0");
    assert_eq!(scope.lookup(&first), None, "no file may refer to a fresh symbol");
    let named = scope.named(&first);
    assert_ne!(named, fresh);
    assert_ne!(scope.name(fresh), first);
    assert_eq!(scope.name(named), first);
    assert!(scope.is_fresh(fresh) && !scope.is_fresh(named));
    assert_eq!(&*scope.name(scope.fresh("seq")), "seq__2");
    scope.rename(fresh, &first);
    assert_ne!(scope.name(fresh), first, "the name is taken");
    scope.rename(fresh, "length");
    assert_eq!(scope.lookup("length"), Some(fresh));
    assert_eq!(scope.named("length"), fresh);
    assert_eq!(scope.format(&Dim::symbol(scope.named("a b"))), "\"a b\"");
    assert_eq!(scope.fresh_within("x", Some(3), Some(3)), Dim::constant(3));
}

#[test]
fn hostile_texts_fail_and_leave_nothing() {
    let scope = Scope::new();
    let nested = |count: usize| format!("{}S{}", "(".repeat(count), ")".repeat(count));
    let texts = [
        "",
        " ",
        "+",
        "S +",
        "S S",
        "2S",
        "S..T",
        "f(S)",
        "floor(",
        "floor()",
        "floor(S, T)",
        "mod(S)",
        "max()",
        "abs(S, T)",
        "S/2",
        "S/T",
        "S//T",
        "S % T",
        "S//0",
        "S**-1",
        "S**T",
        "S**99999999999",
        "S**2**2",
        "S***2",
        "99999999999999999999",
        "9223372036854775808",
        "9223372036854775807 + 1",
        "(S, T)",
        "S)",
        "(S",
        "S = T",
        "S\u{0}",
        "é é",
        "9223372036854775807*2*S",
    ];
    for text in texts {
        assert_eq!(scope.parse(text), None, "{text}");
    }
    assert_eq!(scope.parse(&nested(100_000)), None);
    assert_eq!(scope.parse(&"-".repeat(70_000)), None);
    assert_eq!(scope.parse(&format!("{}1", "(S+1)*".repeat(80))), None, "coefficients overflow");
    assert_eq!(scope.symbol_count(), 0);
    assert!(scope.parse(&nested(100)).is_some());
    assert!(scope.parse(&format!("{}S", "-".repeat(1000))).is_some());
    check(&scope, " Max( S ,0 ) + Mod(S, 2) - Min(S,T)*Abs(-2) ", "2*max(0, S - T) - 2*floor(S/2)");
    check(&scope, "ceiling(S/2) + ceil(S)", "floor((3*S + 1)/2)");
    check(&scope, "été*2", "2*été");
    check(&scope, "-2**2", "-4");
    check(&scope, "min", "min");
}

#[test]
fn dims_are_sent_between_threads() {
    fn travels<T: Send + Sync>() {}
    travels::<Dim>();
    assert_eq!(size_of::<Dim>(), 16);
}

#[test]
fn endless_questions_are_answered_by_intervals() {
    let scope = Scope::new();
    let [a, b] = ["a", "b"].map(|name| Dim::symbol(scope.named(name)));
    let product = scope.mul(&a, &b);
    let square = scope.mul(&product, &product);
    let ((), cut) = scope.attempt(|| {
        while scope.take_steps(1) {}
        assert_eq!(scope.ge(&square, &product), Answer::Unknown);
        assert!(scope.ge(&scope.add(&a, &b), &Dim::constant(0)).is_yes());
    });
    assert_eq!(cut, Some(PROOF_STEPS));
    // A proof that the limit ended is not remembered as failed, and the next attempt has its full number of steps.
    assert_eq!(scope.attempt(|| scope.ge(&square, &product).is_yes()), (true, None));
}

/// Relations about other sizes do not displace the relevant ones.
#[test]
fn relations_about_other_sizes_change_no_answer() {
    let answer = |others: usize| {
        let scope = Scope::new();
        let [a, b, c] = ["a", "b", "c"].map(|name| Dim::symbol(scope.named(name)));
        for at in 0..others {
            let [x, y] = ["x", "y"].map(|name| Dim::symbol(scope.named(&format!("{name}{at}"))));
            scope.assume_le(&x, &y);
        }
        scope.assume_le(&scope.add(&a, &b), &c);
        (scope.le(&b, &c), scope.le(&c, &a))
    };
    let alone = answer(0);
    assert!(alone.0.is_yes());
    assert_eq!([10, 100, 2_000].map(answer), [alone; 3]);
}
