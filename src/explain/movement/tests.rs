//! Tests of the notation, and of the ranges of pictures.

use super::{Mapped, MovementMap, RangeDensity};
use crate::dim::{Dim, Scope};
use crate::index_map::{Fill, IndexMap, PadMode, Shape};
use crate::tensor::DType;

fn dims(scope: &Scope, text: &str) -> Vec<Dim> {
    text.split(' ').filter(|dim| !dim.is_empty()).map(|dim| scope.parse(dim).unwrap()).collect()
}

fn drawn(scope: &Scope, map: &IndexMap) -> MovementMap {
    let names = (0..map.sources().len()).map(|number| format!("value {number}")).collect();
    Mapped::of(scope, map, Some(DType::Float)).unwrap().named("result".to_string(), names)
}

fn lines(scope: &Scope, map: &IndexMap) -> String {
    drawn(scope, map).lines().join("\n")
}

#[test]
fn each_axis_has_an_affine_position() {
    let scope = Scope::new();
    let w = Dim::symbol(scope.named("w"));
    let source = dims(&scope, "8 w");
    let number = Dim::constant;
    let rows = IndexMap::range(&scope, &source, 0, number(1), 2, number(4)).unwrap();
    let last = scope.sub(&w, &number(1));
    let backwards = IndexMap::range(&scope, rows.result(), 1, last, -1, w.clone()).unwrap();
    let both = rows.then(&scope, &backwards).unwrap();
    assert_eq!(lines(&scope, &both), "out[i, j] = data[2·i + 1, w − 1 − j]");
    let turned = IndexMap::transpose(&scope, &dims(&scope, "n 3 w"), &[1, 2, 0]).unwrap();
    assert_eq!(lines(&scope, &turned), "out[i, j, k] = data[k, i, j]");
    let spread = IndexMap::expand(&scope, &dims(&scope, "1 w"), &dims(&scope, "n w")).unwrap();
    assert_eq!(lines(&scope, &spread), "out[i, j] = data[0, j]");
    let gather = IndexMap::gather(&scope, &dims(&scope, "6 w"), 0, &[3], &[2, 0, -1]).unwrap();
    assert_eq!(lines(&scope, &gather), "out[i, j] = data[[2, 0, 5][i], j]");
    let lookup = IndexMap::gather_at_run_time(&scope, &dims(&scope, "n w"), 1, &dims(&scope, "k 2")).unwrap();
    assert_eq!(lines(&scope, &lookup), "out[i, j, l] = a[i, b[j, l]]");
}

#[test]
fn split_axes_have_digits_with_ranges() {
    let scope = Scope::new();
    let windows = IndexMap::reshape(&scope, &dims(&scope, "7*p w"), &dims(&scope, "p 7 w"));
    assert_eq!(lines(&scope, &windows), "out[i, j, k] = data[7·i + j, k]");
    let flat = IndexMap::reshape(&scope, &dims(&scope, "p 7 w"), &dims(&scope, "7*p w"));
    assert_eq!(lines(&scope, &flat), "0 ≤ i < p, 0 ≤ j < 7: out[7·i + j, k] = data[i, j, k]");
    let unaligned = IndexMap::reshape(&scope, &dims(&scope, "6 4"), &dims(&scope, "4 6"));
    assert_eq!(lines(&scope, &unaligned), "out[i, j] = data.flat[6·i + j]");
}

#[test]
fn each_piece_has_a_line_and_constants_are_the_rest() {
    let scope = Scope::new();
    let (source, other) = (dims(&scope, "n 2"), dims(&scope, "m 2"));
    let concat = IndexMap::concat(&scope, &[source.as_slice().into(), other.as_slice().into()], 0).unwrap();
    assert_eq!(lines(&scope, &concat), "0 ≤ i < n: out[i, j] = a[i, j]\nn ≤ i < n + m: out[i, j] = b[i − n, j]");
    let (one, two) = (Dim::constant(1), Dim::constant(2));
    let fill = Fill(u64::from(1.5f32.to_bits()));
    let pad = IndexMap::pad(&scope, &source, 0, (&one, &two), PadMode::Constant(fill)).unwrap();
    assert_eq!(lines(&scope, &pad), "1 ≤ i < n + 1: out[i, j] = data[i − 1, j]\notherwise: 1.5");
    let map = IndexMap::filled(&scope, &source, fill);
    assert_eq!(lines(&scope, &map), "out[i, j] = 1.5");
    let stacked = [Shape::from(dims(&scope, "1 k")), Shape::from(dims(&scope, "1 k"))];
    let stack = IndexMap::concat(&scope, &stacked, 0).unwrap();
    assert_eq!(lines(&scope, &stack), "out[0, j] = a[0, j]\nout[1, j] = b[0, j]");
}

#[test]
fn sizes_of_0_and_1_have_no_variable() {
    let scope = Scope::new();
    let map = |source: &str| IndexMap::identity(&scope, &dims(&scope, source));
    assert_eq!(lines(&scope, &map("")), "out = data");
    assert_eq!(lines(&scope, &map("1 1")), "out[0, 0] = data[0, 0]");
    assert_eq!(lines(&scope, &map("1 n")), "out[0, i] = data[0, i]");
    assert_eq!(lines(&scope, &map("0 n")), "out has no elements");
}

/// Variables, operands and dims have different names, and quoted names keep their signs.
#[test]
fn names_of_dims_are_no_names_of_variables_and_operands() {
    let scope = Scope::new();
    let map = IndexMap::transpose(&scope, &dims(&scope, "i k"), &[1, 0]).unwrap();
    assert_eq!(lines(&scope, &map), "out[j, l] = data[l, j]");
    let parts = [Shape::from(dims(&scope, "a")), Shape::from(dims(&scope, "c"))];
    let concat = IndexMap::concat(&scope, &parts, 0).unwrap();
    assert_eq!(lines(&scope, &concat), "0 ≤ i < a: out[i] = b[i]\na ≤ i < a + c: out[i] = d[i − a]");
    let named = Dim::symbol(scope.named("past-1"));
    let shape = [scope.mul(&named, &Dim::constant(2))];
    let legend = drawn(&scope, &IndexMap::identity(&scope, &shape)).legend();
    assert!(legend.contains("2·") && legend.contains("past-1"), "{legend}");
}

#[test]
fn ranges_are_the_elements_that_a_map_reads() {
    let scope = Scope::new();
    let read = |map: &IndexMap, axis: usize| -> Vec<(i64, i64, RangeDensity)> {
        let ranges = drawn(&scope, map).sources[0].axes[axis].ranges.clone();
        ranges.iter().map(|range| (range.start, range.len, range.density)).collect()
    };
    let number = Dim::constant;
    let (source, open) = (dims(&scope, "8 4"), dims(&scope, "n 4"));
    let steps = IndexMap::range(&scope, &source, 0, number(1), 3, number(2)).unwrap();
    assert_eq!(read(&steps, 0), [(1, 1, RangeDensity::All), (4, 1, RangeDensity::All)]);
    assert_eq!(read(&steps, 1), [(0, 4, RangeDensity::All)]);
    let gather = IndexMap::gather(&scope, &source, 0, &[4], &[6, 2, 7, 2]).unwrap();
    assert_eq!(read(&gather, 0), [(2, 1, RangeDensity::All), (6, 2, RangeDensity::All)]);
    let half = scope.parse("floor(n/2)").unwrap();
    let every_other = IndexMap::range(&scope, &open, 0, number(0), 2, half).unwrap();
    assert_eq!(read(&every_other, 0), [(0, 5039, RangeDensity::Some)]);
    let lookup = IndexMap::gather_at_run_time(&scope, &open, 0, &dims(&scope, "k")).unwrap();
    assert_eq!(read(&lookup, 0), [(0, 5040, RangeDensity::RunTime)]);
    let windows = IndexMap::reshape(&scope, &dims(&scope, "7*p 4"), &dims(&scope, "p 7 4"));
    assert_eq!(read(&windows, 0), [(0, 35280, RangeDensity::All)]);
    assert_eq!(drawn(&scope, &windows).links, [(0, 0, 0), (0, 0, 1), (0, 1, 2)]);
}
