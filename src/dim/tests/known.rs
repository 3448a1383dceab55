//! Facts about symbols: bounds, relations, equations, suppositions.

use super::*;

#[test]
fn facts_shorten_results() {
    let scope = Scope::new();
    let s = scope.named("S");
    scope.restrict(s, Some(1), Some(100));
    check(&scope, "max(0, S - 1)", "S - 1");
    check(&scope, "min(S, 100)", "S");
    check(&scope, "S // 101", "0");
    check(&scope, "max(1, S)", "S");
    assert_eq!(scope.bounds(&scope.parse("100 - S").unwrap()), (Some(0), Some(99)));
    scope.restrict(s, Some(7), Some(7));
    check(&scope, "S*T + S", "7*T + 7");
    assert_eq!(scope.eq(&Dim::symbol(s), &Dim::constant(7)), Answer::Yes);
}

#[test]
fn relations_are_used() {
    let scope = Scope::new();
    let [a, b, c] = ["a", "b", "c"].map(|name| Dim::symbol(scope.named(name)));
    assert_eq!(scope.le(&a, &b), Answer::Unknown);
    scope.assume_le(&a, &b);
    scope.assume_le(&b, &c);
    assert_eq!(scope.le(&a, &c), Answer::Yes);
    assert_eq!(scope.gt(&a, &c), Answer::No);
    assert_eq!(scope.min(&a, &c), a);
    assert_eq!(scope.max(&scope.add(&a, &1.into()), &scope.add(&c, &1.into())), scope.add(&c, &1.into()));
    assert_eq!(scope.le(&scope.mul(&a, &b), &scope.mul(&c, &b)), Answer::Yes);
    // A relation with one symbol bounds it in either direction.
    scope.assume_le(&Dim::constant(5), &scope.mul(&Dim::constant(2), &a));
    assert_eq!(scope.bounds(&a), (Some(3), None));
    assert_eq!(scope.bounds(&c), (Some(3), None));
}

#[test]
fn equations_rewrite_one_symbol() {
    let scope = Scope::new();
    let [a, b, c] = ["a", "b", "c"].map(|name| Dim::symbol(scope.named(name)));
    scope.assume_eq(&c, &scope.add(&a, &b));
    assert_eq!(scope.add(&c, &Dim::constant(0)), scope.add(&a, &b));
    assert_eq!(scope.eq(&scope.sub(&c, &a), &b), Answer::Yes);
    let extra = scope.fresh_dim("extra");
    scope.assume_eq(&scope.mul(&Dim::constant(2), &extra), &scope.mul(&Dim::constant(2), &a));
    assert_eq!(scope.mul(&extra, &Dim::constant(1)), a);
    // The third equation closes a cycle and adds no information.
    scope.assume_eq(&extra, &a);
    scope.assume_eq(&a, &b);
    assert_eq!(scope.eq(&c, &scope.mul(&Dim::constant(2), &extra)), Answer::Yes);
    // Facts about a replaced symbol are still in force.
    scope.assume_le(&Dim::constant(10), &c);
    assert_eq!(scope.bounds(&a), (Some(5), None));
    scope.restrict(c.as_symbol().unwrap(), None, Some(20));
    assert_eq!(scope.bounds(&a), (Some(5), Some(10)));
}

#[test]
fn unlike_sums_are_compared() {
    let scope = Scope::new();
    let ask = |left: &str, right: &str| {
        let [a, b] = [left, right].map(|text| scope.parse(text).unwrap());
        (scope.le(&a, &b), scope.eq(&a, &b))
    };
    assert_eq!(ask("S//2 + (S + 1)//2", "S"), (Answer::Yes, Answer::Yes));
    assert_eq!(ask("2*S", "2*T + 1").1, Answer::No);
    assert_eq!(ask("S % 7", "6").0, Answer::Yes);
    assert_eq!(ask("7", "S % 7").0, Answer::No);
    assert_eq!(ask("S", "S*S").0, Answer::Yes);
    assert_eq!(ask("S*T", "S*S*T*T").0, Answer::Yes);
    assert_eq!(ask("min(S, T)", "max(S, T)").0, Answer::Yes);
    assert_eq!(ask("max(S, T)", "S + T").0, Answer::Yes);
    assert_eq!(ask("abs(S - T)", "max(S, T)").0, Answer::Yes);
    assert_eq!(ask("min(S, 5) + max(S, 5)", "S + 5").1, Answer::Yes);
    assert_eq!(ask("max(0, min(2, S) - max(0, S - 3))", "2").0, Answer::Yes);
    assert_eq!(ask("(S//4)*4", "S").0, Answer::Yes);
    assert_eq!(ask("S//3", "S//2").0, Answer::Yes);
    assert_eq!(ask("S", "T"), (Answer::Unknown, Answer::Unknown));
    assert_eq!(ask("(S//(T + 1))*(T + 1)", "S").0, Answer::Yes);
    assert_eq!(ask("S % (T + 1)", "T").0, Answer::Yes);
    assert_eq!(scope.bounds(&scope.parse("min(S, 5) - max(0, S - 3)").unwrap()), (None, Some(3)));
    assert_eq!(scope.bounds(&scope.parse("max(0, min(2, S) - max(0, S - 3))").unwrap()), (Some(0), Some(2)));
    assert_eq!(scope.bounds(&scope.parse("S % 7 + T % 3").unwrap()), (Some(0), Some(8)));
}

/// A proof is valid only under its suppositions, and a minimum that they decided is undecided afterwards.
#[test]
fn proofs_under_a_supposition_are_dropped_with_it() {
    let scope = Scope::new();
    let n: Dim = scope.named("n").into();
    let three = Dim::constant(3);
    let above = scope.sub(&n, &Dim::constant(6));
    let below = scope.sub(&Dim::constant(5), &n);
    scope.supposing(&[above], || {
        assert_eq!(scope.le(&three, &n), Answer::Yes);
        assert_eq!(scope.min(&three, &n), three);
    });
    scope.supposing(&[below], || {
        assert_eq!(scope.le(&three, &n), Answer::Unknown);
        assert_eq!(scope.le(&n, &Dim::constant(5)), Answer::Yes);
        assert_eq!(scope.format(&scope.min(&three, &n)), "min(3, n)");
    });
    assert_eq!(scope.le(&three, &n), Answer::Unknown);
    assert_eq!(scope.le(&n, &Dim::constant(5)), Answer::Unknown);
}

#[test]
fn suppositions_are_dropped() {
    let scope = Scope::new();
    let [a, b] = ["a", "b"].map(|name| Dim::symbol(scope.named(name)));
    // The same questions before and after.
    assert_eq!(scope.le(&a, &b), Answer::Unknown);
    let slack = scope.sub(&b, &scope.add(&a, &Dim::constant(2)));
    let inner = scope.supposing(std::slice::from_ref(&slack), || {
        assert_eq!(scope.ge(&b, &Dim::constant(2)), Answer::Yes);
        assert_eq!(scope.max(&a, &b), b);
        let inner = scope.fresh_dim("inner");
        scope.assume_le(&inner, &Dim::constant(9));
        // These facts may follow from the supposition.
        scope.assume_le(&Dim::constant(2), &b);
        scope.assume_eq(&a, &scope.sub(&b, &Dim::constant(2)));
        scope.set_multiple(b.as_symbol().unwrap(), 2);
        inner
    });
    // Two suppositions in sequence, with opposite answers.
    let ask = || (scope.ge(&a, &b), scope.le(&a, &b));
    assert_eq!(scope.supposing(&[scope.sub(&a, &b)], ask), (Answer::Yes, Answer::Unknown));
    assert_eq!(scope.supposing(&[scope.sub(&b, &a)], ask), (Answer::Unknown, Answer::Yes));
    assert_eq!(ask(), (Answer::Unknown, Answer::Unknown));
    assert_eq!(scope.ge(&b, &Dim::constant(2)), Answer::Unknown);
    assert_eq!(scope.le(&a, &b), Answer::Unknown);
    assert_ne!(scope.max(&a, &b), b);
    assert_eq!(scope.bounds(&b), (Some(0), None));
    assert_eq!(scope.bounds(&inner), (Some(0), Some(9)));
}

#[test]
fn results_of_a_supposition_are_cached_until_new_facts() {
    let scope = Scope::new();
    let [a, b, c] = ["a", "b", "c"].map(|name| Dim::symbol(scope.named(name)));
    let is_less =
        || scope.supposing(&[scope.sub(&b, &a)], || (scope.le(&a, &c), scope.quotient(&scope.mul(&a, &c), &c)));
    let first = is_less();
    assert_eq!(first, (Answer::Unknown, Some(a.clone())));
    assert_eq!(is_less(), first);
    // Different suppositions have different results.
    assert_eq!(scope.supposing(&[scope.sub(&c, &a)], || scope.le(&a, &c)), Answer::Yes);
    assert_eq!((is_less(), scope.le(&a, &c)), (first, Answer::Unknown));
    scope.assume_le(&b, &c);
    assert_eq!(is_less().0, Answer::Yes);
    assert_eq!(scope.le(&a, &c), Answer::Unknown);
    // Results of relations that were assumed meanwhile are not kept.
    let within = scope.supposing(&[scope.sub(&a, &c)], || {
        scope.assume_le(&a, &b);
        scope.le(&a, &b)
    });
    assert_eq!((within, scope.supposing(&[scope.sub(&a, &c)], || scope.le(&a, &b))), (Answer::Yes, Answer::Unknown));
}
