//! One test for each law; `properties` tests random expressions.

use super::integer::floor_quotient;
use super::*;

mod forms;
mod known;
mod limits;

fn check(scope: &Scope, text: &str, expected: &str) {
    let dim = scope.parse(text).unwrap_or_else(|| panic!("{text} does not parse"));
    assert_eq!(scope.format(&dim), expected, "{text}");
}

fn same(scope: &Scope, left: &str, right: &str) {
    let [a, b] = [left, right].map(|text| scope.parse(text).unwrap_or_else(|| panic!("{text} does not parse")));
    assert_eq!(a, b, "{left} and {right}");
}
