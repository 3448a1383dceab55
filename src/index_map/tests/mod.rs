#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, clippy::arithmetic_side_effects)]

mod constructors;
mod examples;
mod plain;
mod regions;
mod writer;

use plain::{Array, Random, draw, draw_shape};

use super::*;
use crate::dim::{Dim, Scope};

/// Evaluates a map at one size of each symbol.
fn evaluated(scope: &Scope, map: &IndexMap, sizes: &[(&str, i64)], chain: &dyn std::fmt::Debug) -> Vec<Element> {
    let value = |symbol| {
        let name = scope.name(symbol);
        sizes.iter().find(|(known, _)| **known == *name).map(|(_, size)| *size)
    };
    let binding = Binding { sizes: &value, positions: &|_, _| None };
    map.evaluate(&binding).unwrap_or_else(|| panic!("cannot evaluate {map:?} at {sizes:?} of {chain:?}"))
}

/// The coordinate of a flat position on an axis.
fn coordinate(shape: &[i64], axis: usize, position: i64) -> i64 {
    let inner: i64 = shape.iter().skip(axis + 1).product();
    position / inner % shape[axis]
}

#[test]
fn affine_results_have_the_moved_numbers() {
    let mut found = 0;
    for seed in 0..400 {
        let mut random = Random(seed);
        random.below(9);
        let scope = Scope::new();
        let source = draw_shape(&mut random, &scope, false);
        let shape: Vec<i64> = source.iter().map(|dim| dim.as_const().unwrap()).collect();
        let Some(movement) = draw(&mut random, &scope, &source) else { continue };
        let Ok(map) = movement.map(&scope, &source) else { continue };
        if map.sources().len() != 1 {
            continue;
        }
        // Row-major numbers, and a step for each axis that is independent of the other axes.
        for is_row_major in [true, false] {
            let step = |axis: usize| match is_row_major {
                true => shape.iter().skip(axis + 1).product(),
                false => 7 * axis as i64 - 3,
            };
            let terms = (0..shape.len()).map(|axis| (axis, Dim::constant(step(axis)))).collect();
            let Some(affine) = map.affine_result(&scope, &Affine { offset: Dim::constant(5), terms }) else { continue };
            found += 1;
            let result: Vec<i64> = map.result().iter().map(|dim| dim.as_const().unwrap()).collect();
            for (at, element) in (0..).zip(evaluated(&scope, &map, &[], &movement)) {
                let Element::Source { position, .. } = element else { panic!("seed {seed}: a fill in {movement:?}") };
                let number =
                    5 + (0..shape.len()).map(|axis| step(axis) * coordinate(&shape, axis, position)).sum::<i64>();
                let terms =
                    affine.terms.iter().map(|(axis, step)| step.as_const().unwrap() * coordinate(&result, *axis, at));
                let expected = affine.offset.as_const().unwrap() + terms.sum::<i64>();
                assert_eq!(number, expected, "seed {seed}: {source:?} by {movement:?}");
            }
        }
    }
    assert!(found > 200, "{found}");
}

#[test]
fn axes_that_a_map_carries_have_equal_coordinates() {
    let (mut carried, mut missed) = (0, 0);
    for seed in 0..400 {
        let mut random = Random(seed);
        random.below(9);
        let scope = Scope::new();
        let source = draw_shape(&mut random, &scope, false);
        let shape: Vec<i64> = source.iter().map(|dim| dim.as_const().unwrap()).collect();
        let Some(movement) = draw(&mut random, &scope, &source) else { continue };
        let Ok(map) = movement.map(&scope, &source) else { continue };
        let elements = evaluated(&scope, &map, &[], &movement);
        let result: Vec<i64> = map.result().iter().map(|dim| dim.as_const().unwrap()).collect();
        if map.sources().len() != 1 || elements.is_empty() {
            continue;
        }
        for (axis, after) in (0..shape.len()).flat_map(|axis| (0..result.len()).map(move |after| (axis, after))) {
            let is_equal = (0..).zip(&elements).all(|(at, element)| match element {
                Element::Source { position, .. } => {
                    coordinate(&shape, axis, *position) == coordinate(&result, after, at)
                }
                Element::Fill(_) => false,
            });
            let expected = shape[axis] == result[after] && is_equal;
            match map.carries_axis(&scope, axis, after) {
                true => assert!(expected, "seed {seed}: axis {axis} to {after} of {source:?} by {movement:?}"),
                false => missed += usize::from(expected),
            }
            carried += usize::from(expected);
        }
    }
    assert!(missed * 50 < carried && carried > 100, "{missed} of {carried} axes are missed");
}

#[test]
fn the_map_of_a_chain_is_the_composition_of_its_maps() {
    let (mut decided, mut undecided, mut aligned) = (0, 0, 0);
    for seed in 0..1500 {
        let mut random = Random(seed);
        random.below(9);
        let scope = Scope::new();
        let open = random.below(3) > 0;
        let source = draw_shape(&mut random, &scope, open);
        let mut map = IndexMap::identity(&scope, &source);
        let sizes = [[("n", 3), ("m", 2)], [("n", 1), ("m", 0)], [("n", 0), ("m", 1)], [("n", 2), ("m", 1)]];
        let value = |sizes: &[(&'static str, i64); 2], dim: &Dim| {
            let sizes = *sizes;
            let scope = &scope;
            dim.evaluate(&move |symbol| {
                sizes.iter().find(|(name, _)| **name == *scope.name(symbol)).map(|(_, size)| *size)
            })
            .unwrap()
        };
        let mut arrays: Vec<Array> =
            sizes.iter().map(|sizes| Array::source(0, source.iter().map(|dim| value(sizes, dim)).collect())).collect();
        let mut chain = vec![];
        for _ in 0..1 + random.below(4) {
            let Some(movement) = draw(&mut random, &scope, map.result()) else { continue };
            chain.push(movement.clone());
            let step = match movement.map(&scope, map.result()) {
                Ok(step) => step,
                Err(_) => break,
            };
            for (array, sizes) in arrays.iter_mut().zip(&sizes) {
                *array = movement.act(array, &|dim| value(sizes, dim));
            }
            if arrays.iter().any(|array| array.data.len() > 3000 || array.shape.len() > 6) {
                break;
            }
            match map.then(&scope, &step) {
                Ok(next) => {
                    decided += 1;
                    map = next;
                }
                Err(reason) => {
                    assert!(!reason.question(&scope).is_empty());
                    undecided += 1;
                    break;
                }
            }
            let regions = map.regions(&scope).ok();
            aligned += usize::from(regions.is_some());
            for (array, sizes) in arrays.iter().zip(&sizes) {
                let shape: Vec<i64> = map.result().iter().map(|dim| value(sizes, dim)).collect();
                assert_eq!(shape, array.shape, "seed {seed}: {source:?} {chain:?} at {sizes:?}");
                assert_eq!(
                    evaluated(&scope, &map, sizes, &chain),
                    array.data,
                    "seed {seed}: {source:?} {chain:?} at {sizes:?}: {map:?}"
                );
                if let Some(regions) = &regions {
                    let elements = regions::elements(&map, regions, &|dim| value(sizes, dim));
                    assert_eq!(elements, array.data, "seed {seed}: {chain:?} at {sizes:?}: {regions:?} of {map:?}");
                }
            }
        }
    }
    println!("{decided} decided, {undecided} undecided, {aligned} with regions");
    assert!(aligned * 20 > decided * 19, "{aligned} of {decided} have regions");
    assert!(undecided * 20 < decided, "{decided} decided, {undecided} undecided");
}
