//! Written programs compute what the chain computes, with no more nodes.

use super::plain::{Array, FILL, Movement as Plain, Random, draw, draw_shape};
use super::*;

/// Computes a program on plain arrays.
fn computed(program: &Program, source: &Array, sizes: &dyn Fn(&Dim) -> i64) -> Array {
    let mut done: Vec<Vec<Array>> = vec![];
    let value = |done: &[Vec<Array>], operand: &Operand| match operand {
        Operand::Source(_) => source.clone(),
        Operand::Step(at) => done[*at][0].clone(),
        Operand::Part(at, output) => done[*at][*output].clone(),
    };
    for step in &program.steps {
        let results = match step {
            Step::Split { operand, axis, sizes: parts } => {
                let x = value(&done, operand);
                let mut start = 0;
                parts
                    .iter()
                    .map(|size| {
                        let end = start + sizes(size);
                        let part = x.positions(*axis, (start..end).collect());
                        start = end;
                        part
                    })
                    .collect()
            }
            Step::Movement(movement, operands) => {
                let operands: Vec<Array> = operands.iter().map(|operand| value(&done, operand)).collect();
                vec![applied(movement, &operands, sizes)]
            }
        };
        done.push(results);
    }
    value(&done, &program.result)
}

fn applied(movement: &Movement, operands: &[Array], sizes: &dyn Fn(&Dim) -> i64) -> Array {
    let plain = match movement {
        Movement::Slice(ranges) => {
            return ranges.iter().enumerate().fold(operands[0].clone(), |x, (axis, range)| match range {
                None => x,
                Some(AxisRange { start, step, len }) => {
                    let (start, len) = (sizes(start), sizes(len));
                    x.positions(axis, (0..len).map(|at| start + at * step).collect())
                }
            });
        }
        Movement::Concat(axis) => return Array::concat(operands, *axis),
        Movement::Filled(shape, fill) => return Array::filled(shape.iter().map(sizes).collect(), *fill),
        Movement::Pad { before, after, fill } => {
            assert_eq!(*fill, FILL);
            return before.iter().zip(after).enumerate().fold(operands[0].clone(), |x, (axis, (before, after))| {
                Plain::Pad(axis, sizes(before), sizes(after)).act(&x, sizes)
            });
        }
        Movement::Transpose(perm) => Plain::Transpose(perm.clone()),
        Movement::Reshape(shape) => Plain::Reshape(shape.to_vec()),
        Movement::Expand(shape) => Plain::Expand(shape.to_vec()),
        Movement::Tile(repeats) => Plain::Tile(repeats.iter().map(sizes).collect()),
        Movement::Gather { axis, shape, indices } => Plain::Gather(*axis, shape.clone(), indices.clone()),
        Movement::SpaceToDepth(block) => Plain::SpaceToDepth(*block),
        Movement::DepthToSpace(block, mode) => Plain::DepthToSpace(*block, *mode),
        Movement::Lookup { .. } => unreachable!("no chain has positions computed at run time"),
    };
    plain.act(&operands[0], sizes)
}

/// Writes random chains; returns how many of them take fewer nodes, and of how many.
fn shortened(seeds: std::ops::Range<u64>, length: usize, open: bool, allowed: Allowed) -> (usize, usize) {
    let (mut fewer, mut total) = (0, 0);
    for seed in seeds {
        let mut random = Random(seed * 77 + length as u64);
        random.below(9);
        let scope = Scope::new();
        let source = draw_shape(&mut random, &scope, open);
        let mut map = IndexMap::identity(&scope, &source);
        let mut chain = vec![];
        let mut is_decided = true;
        for _ in 0..50 {
            if chain.len() == length {
                break;
            }
            let Some(movement) = draw(&mut random, &scope, map.result()) else { continue };
            let Ok(next) = movement.map(&scope, map.result()) else { continue };
            chain.push(movement);
            match map.then(&scope, &next) {
                Ok(next) => map = next,
                Err(_) => {
                    is_decided = false;
                    break;
                }
            }
        }
        if !is_decided {
            continue;
        }
        total += 1;
        // A roll is three nodes, two copies that are put together one.
        let nodes: usize = chain.iter().map(|movement| if matches!(movement, Plain::Roll(..)) { 3 } else { 1 }).sum();
        let Some(program) = map.write(&scope, &Allowed { nodes, ..allowed }) else { continue };
        fewer += usize::from(program.nodes() < nodes);
        for (n, m) in [(3, 2), (1, 0), (0, 1), (2, 1)] {
            let value =
                |dim: &Dim| dim.evaluate(&|symbol| Some(if *scope.name(symbol) == *"n" { n } else { m })).unwrap();
            let x = Array::source(0, source.iter().map(value).collect());
            let expected = chain.iter().fold(x.clone(), |x, movement| movement.act(&x, &value));
            let found = computed(&program, &x, &value);
            assert_eq!(found, expected, "seed {seed}: {source:?} {chain:?} as {program:?} at n = {n}, m = {m}");
        }
        if !allowed.negative_step {
            let is_forward = |range: &AxisRange| range.step > 0;
            assert!(program.steps.iter().all(|step| match step {
                Step::Movement(Movement::Slice(ranges), _) => ranges.iter().flatten().all(is_forward),
                _ => true,
            }));
        }
    }
    (fewer, total)
}

#[test]
fn written_programs_compute_what_the_chains_compute() {
    let mut report = vec![];
    for length in 1..=4 {
        for open in [false, true] {
            let (fewer, total) = shortened(0..80, length, open, Allowed::all(0));
            report.push((length, open, fewer, total));
            assert!(total > 60, "{report:?}");
        }
    }
    println!("{report:?}");
    // More movements leave more to gain.
    let gained = |length: usize| -> usize {
        report.iter().filter(|(own, ..)| *own == length).map(|(.., fewer, _)| *fewer).sum()
    };
    assert!(gained(2) > 30 && gained(3) > gained(2) && gained(4) > gained(3), "{report:?}");
}

#[test]
fn what_is_not_allowed_is_not_written() {
    let allowed = Allowed { gather: false, negative_step: false, blocks: false, ..Allowed::all(0) };
    let (fewer, total) = shortened(0..80, 3, true, allowed);
    assert!(fewer * 3 > total, "{fewer} of {total}");
}
