//! Movements at known places, against loops over their definitions.

use super::*;

fn number(value: i64) -> Dim {
    Dim::constant(value)
}

fn numbers(dims: &[i64]) -> Vec<Dim> {
    dims.iter().map(|&dim| number(dim)).collect()
}

fn elements(scope: &Scope, map: &IndexMap) -> Vec<Element> {
    evaluated(scope, map, &[], &"a map")
}

fn of(source: usize, position: i64) -> Element {
    Element::Source { source, position }
}

#[test]
fn reverse_sequence_turns_each_row_as_far_as_its_length() {
    let scope = Scope::new();
    let lens = [4, 1, 0, 3];
    let map = IndexMap::reverse_sequence(&scope, &numbers(&[4, 5, 2]), 0, 1, &lens).unwrap();
    let mut expected = vec![];
    for (row, len) in (0..).zip(lens) {
        for time in 0..5 {
            let from = if time < len { len - 1 - time } else { time };
            expected.extend((0..2).map(|column| of(0, (row * 5 + from) * 2 + column)));
        }
    }
    assert_eq!(elements(&scope, &map), expected);
}

#[test]
fn an_eye_has_its_constant_on_the_diagonal() {
    for size in [1, 2, 5] {
        let scope = Scope::new();
        let n = scope.named("n");
        scope.restrict(n, Some(1), None);
        let map = IndexMap::eye(&scope, &Dim::symbol(n), Fill(0), Fill(1)).unwrap();
        let expected: Vec<Element> =
            (0..size * size).map(|at| Element::Fill(Fill(u64::from(at / size == at % size)))).collect();
        assert_eq!(evaluated(&scope, &map, &[("n", size)], &size), expected);
    }
}

#[test]
fn gathers_at_known_places() {
    let scope = Scope::new();
    let source = numbers(&[3, 4]);
    let map = IndexMap::gather_elements(&scope, &source, 0, &[2, 4], &[0, -1, 2, 1, 1, 1, 0, 2]).unwrap();
    let rows = [0, 2, 2, 1, 1, 1, 0, 2];
    let expected: Vec<Element> = (0i64..8).map(|at| of(0, rows[at as usize] * 4 + at % 4)).collect();
    assert_eq!(elements(&scope, &map), expected);

    let map = IndexMap::gather_nd(&scope, &source, 0, &[3], 2, &[2, 3, 0, -1, 1, 0]).unwrap();
    assert_eq!(elements(&scope, &map), [of(0, 11), of(0, 3), of(0, 4)]);
    let map = IndexMap::gather_nd(&scope, &source, 0, &[2], 1, &[2, 0]).unwrap();
    assert_eq!(elements(&scope, &map), [8, 9, 10, 11, 0, 1, 2, 3].map(|at| of(0, at)));

    let map = IndexMap::compress(&scope, &source, 1, &[true, false, false, true]).unwrap();
    assert_eq!(elements(&scope, &map), [0, 3, 4, 7, 8, 11].map(|at| of(0, at)));
}

#[test]
fn a_scatter_at_known_places_has_rows_of_both() {
    let scope = Scope::new();
    let n = Dim::symbol(scope.named("n"));
    let data = [number(4), n.clone()];
    let updates = [number(2), n.clone()];
    let map = IndexMap::scatter(&scope, &data, &updates, &n, &[None, Some(1), None, Some(0)]).unwrap();
    for size in [0, 1, 3] {
        let rows = [(0, 0), (1, 1), (0, 2), (1, 0)];
        let row = |(source, row): (usize, i64)| (0..size).map(move |column| of(source, row * size + column));
        assert_eq!(evaluated(&scope, &map, &[("n", size)], &size), rows.into_iter().flat_map(row).collect::<Vec<_>>());
    }
}

#[test]
fn pads_of_each_mode() {
    let scope = Scope::new();
    let expected = [
        (PadMode::Constant(Fill(3)), vec![-1, -1, 0, 1, 2, -1]),
        (PadMode::Reflect, vec![2, 1, 0, 1, 2, 1]),
        (PadMode::Edge, vec![0, 0, 0, 1, 2, 2]),
        (PadMode::Wrap, vec![1, 2, 0, 1, 2, 0]),
    ];
    for (mode, positions) in expected {
        let map = IndexMap::pad(&scope, &[number(3)], 0, (&number(2), &number(1)), mode).unwrap();
        let element = |at: i64| if at < 0 { Element::Fill(Fill(3)) } else { of(0, at) };
        assert_eq!(elements(&scope, &map), positions.into_iter().map(element).collect::<Vec<_>>(), "{mode:?}");
    }
}

#[test]
fn runs_are_rows_of_a_source_or_a_constant() {
    let scope = Scope::new();
    let n = Dim::symbol(scope.named("n"));
    let shape = [n.clone(), number(5)];
    let runs =
        [Run { len: 2, from: Origin::Fill(Fill(7)) }, Run { len: 3, from: Origin::Source { source: 0, start: 1 } }];
    let map = IndexMap::runs(&scope, &[shape.as_slice().into()], &shape, (&n, &number(1)), &runs).unwrap();
    for size in [0, 1, 3] {
        let row =
            |row: i64| [Element::Fill(Fill(7)); 2].into_iter().chain((1..4).map(move |column| of(0, row * 5 + column)));
        assert_eq!(evaluated(&scope, &map, &[("n", size)], &size), (0..size).flat_map(row).collect::<Vec<_>>());
    }
}
