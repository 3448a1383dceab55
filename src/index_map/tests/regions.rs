//! Regions, evaluated element by element.

use super::super::*;
use super::{Array, evaluated};
use crate::dim::{Dim, Scope};

/// The elements that the regions of a map give at these sizes. Each element of the result is in one region.
pub fn elements(map: &IndexMap, regions: &[Region], value: &dyn Fn(&Dim) -> i64) -> Vec<Element> {
    let sizes = |dims: &[Dim]| dims.iter().map(value).collect::<Vec<i64>>();
    let result = sizes(map.result());
    let mut found: Vec<Option<Element>> = vec![None; result.iter().product::<i64>() as usize];
    for region in regions {
        let digits: Vec<(i64, i64)> =
            region.digits.iter().map(|digit| (value(&digit.start), value(&digit.len))).collect();
        let flat = |positions: &[Position], shape: &[i64], at: &[i64]| {
            let places: Vec<i64> = positions.iter().map(|position| place(position, &digits, at, value)).collect();
            if places.len() != shape.len() {
                return places[0];
            }
            places.iter().zip(shape).fold(0, |flat, (place, size)| {
                assert!((0..*size).contains(place), "{place} of {size} in {region:?}");
                flat * size + place
            })
        };
        let whole = Array::source(0, digits.iter().map(|(_, len)| *len).collect());
        for number in 0..whole.data.len() as i64 {
            let at = super::plain::indices(number, &whole.shape);
            let to = flat(&region.result, &result, &at) as usize;
            let element = match &region.origin {
                RegionOrigin::Fill(fill) => Element::Fill(*fill),
                RegionOrigin::Source(source, positions) => {
                    Element::Source { source: *source, position: flat(positions, &sizes(&map.sources()[*source]), &at) }
                }
            };
            assert!(found[to].replace(element).is_none(), "element {to} is in two regions of {regions:?}");
        }
    }
    found.into_iter().map(|element| element.expect("each element is in a region")).collect()
}

fn place(position: &Position, digits: &[(i64, i64)], at: &[i64], value: &dyn Fn(&Dim) -> i64) -> i64 {
    let variable = |variable: &Variable| match variable {
        Variable::Digit(digit) => digits[*digit].0 + at[*digit],
        Variable::Table(own, values) => {
            values[own.iter().fold(0, |place, &digit| place * digits[digit].1 + at[digit]) as usize]
        }
        Variable::Lookup(..) => panic!("a run-time position"),
    };
    value(&position.offset) + position.terms.iter().map(|(weight, own)| value(weight) * variable(own)).sum::<i64>()
}

#[test]
fn run_time_positions_have_an_index_for_each_axis_of_the_indices() {
    let scope = Scope::new();
    let dims = |text: &str| text.split(' ').map(|dim| scope.parse(dim).unwrap()).collect::<Vec<Dim>>();
    let map = IndexMap::gather_at_run_time(&scope, &dims("n 4"), 0, &dims("k 2")).unwrap();
    let regions = map.regions(&scope).unwrap();
    let [Region { origin: RegionOrigin::Source(0, positions), result, .. }] = regions.as_slice() else {
        panic!("{regions:?}")
    };
    assert_eq!((result.len(), positions.len()), (3, 2));
    let [(_, Variable::Lookup(1, own))] = positions[0].terms.as_slice() else { panic!("{positions:?}") };
    assert_eq!(own.len(), 2);
}

#[test]
fn positions_that_do_not_follow_the_axes_are_in_row_major_order() {
    let scope = Scope::new();
    let dims = |text: &str| text.split(' ').map(|dim| scope.parse(dim).unwrap()).collect::<Vec<Dim>>();
    for (source, result) in [("6 4", "4 6"), ("4 n", "n 2 2"), ("n 4", "8 m")] {
        let map = IndexMap::reshape(&scope, &dims(source), &dims(result));
        let regions = map.regions(&scope).unwrap();
        let [Region { result: to, origin: RegionOrigin::Source(0, from), .. }] = regions.as_slice() else {
            panic!("{regions:?}")
        };
        assert!(to.len() != map.result().len() || from.len() != map.sources()[0].len(), "{regions:?}");
        let sizes = [("n", 4), ("m", 2)];
        let value = |dim: &Dim| {
            dim.evaluate(&|symbol| sizes.iter().find(|(name, _)| **name == *scope.name(symbol)).map(|(_, size)| *size))
                .unwrap()
        };
        assert_eq!(elements(&map, &regions, &value), evaluated(&scope, &map, &sizes, &source));
    }
}
