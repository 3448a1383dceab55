//! Movements on plain arrays, element by element, and random chains of them.

use crate::dim::{Dim, Scope};
use crate::index_map::{BlockMode, Element, Fill, IndexMap, PadMode, Shape, Undecided};

pub const FILL: Fill = Fill(7);

/// An array that knows where each of its elements comes from.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    pub shape: Vec<i64>,
    pub data: Vec<Element>,
}

impl Array {
    pub fn source(source: usize, shape: Vec<i64>) -> Array {
        let total = shape.iter().product();
        Array { data: (0..total).map(|position| Element::Source { source, position }).collect(), shape }
    }

    /// An array of this shape, whose element at a position is found by its indices.
    fn made(shape: Vec<i64>, mut at: impl FnMut(&[i64]) -> Element) -> Array {
        let total: i64 = shape.iter().product();
        let data = (0..total).map(|position| at(&indices(position, &shape))).collect();
        Array { shape, data }
    }

    pub fn filled(shape: Vec<i64>, fill: Fill) -> Array {
        Array::made(shape, |_| Element::Fill(fill))
    }

    /// The elements at these positions of an axis.
    pub fn positions(&self, axis: usize, positions: Vec<i64>) -> Array {
        let mut shape = self.shape.clone();
        shape[axis] = positions.len() as i64;
        Array::made(shape, |at| {
            let mut at = at.to_vec();
            at[axis] = positions[at[axis] as usize];
            self.at(&at)
        })
    }

    pub fn concat(parts: &[Array], axis: usize) -> Array {
        let mut shape = parts[0].shape.clone();
        shape[axis] = parts.iter().map(|part| part.shape[axis]).sum();
        Array::made(shape, |at| {
            let mut at = at.to_vec();
            let mut parts = parts.iter();
            loop {
                let part = parts.next().unwrap();
                match at[axis] - part.shape[axis] {
                    rest if rest >= 0 => at[axis] = rest,
                    _ => return part.at(&at),
                }
            }
        })
    }

    fn at(&self, indices: &[i64]) -> Element {
        let place = indices.iter().zip(&self.shape).fold(0, |place, (at, size)| {
            assert!((0..*size).contains(at), "{indices:?} of {:?}", self.shape);
            place * size + at
        });
        self.data[place as usize]
    }
}

pub fn indices(mut position: i64, shape: &[i64]) -> Vec<i64> {
    let mut found = vec![0; shape.len()];
    for (at, size) in found.iter_mut().zip(shape).rev() {
        *at = position % size;
        position /= size;
    }
    found
}

#[derive(Clone, Debug)]
pub enum Movement {
    /// `[begin:end:step]` on an axis; `None` is open.
    Slice(usize, Option<i64>, Option<i64>, i64),
    Transpose(Vec<usize>),
    Reshape(Vec<Dim>),
    Expand(Vec<Dim>),
    Tile(Vec<i64>),
    Gather(usize, Vec<i64>, Vec<i64>),
    Pad(usize, i64, i64),
    Reflect(usize, i64),
    Roll(usize, i64),
    /// Two copies, one after the other.
    Twice(usize),
    SpaceToDepth(i64),
    DepthToSpace(i64, BlockMode),
}

impl Movement {
    pub fn map(&self, scope: &Scope, source: &[Dim]) -> Result<IndexMap, Undecided> {
        let number = Dim::constant;
        match self {
            Movement::Slice(axis, begin, end, step) => {
                let range = crate::slicing::Range::constant(*begin, *end, *step).unwrap();
                let reading = crate::slicing::Reading {
                    int_max: crate::slicing::IntMax::Open,
                    floor: crate::slicing::Floor::First,
                };
                let (taken, len) = crate::slicing::resolve_exactly(scope, &source[*axis], &range, reading)
                    .ok_or(Undecided::Symbolic)?;
                IndexMap::range(scope, source, *axis, taken.start, taken.step, len)
            }
            Movement::Transpose(perm) => IndexMap::transpose(scope, source, perm),
            Movement::Reshape(result) => Ok(IndexMap::reshape(scope, source, result)),
            Movement::Expand(result) => IndexMap::expand(scope, source, result),
            Movement::Tile(repeats) => {
                IndexMap::tile(scope, source, &repeats.iter().map(|&count| number(count)).collect::<Vec<_>>())
            }
            Movement::Gather(axis, shape, indices) => IndexMap::gather(scope, source, *axis, shape, indices),
            Movement::Pad(axis, before, after) => {
                IndexMap::pad(scope, source, *axis, (&number(*before), &number(*after)), PadMode::Constant(FILL))
            }
            Movement::Reflect(axis, count) => {
                IndexMap::pad(scope, source, *axis, (&number(*count), &number(*count)), PadMode::Reflect)
            }
            Movement::Roll(axis, shift) => IndexMap::roll(scope, source, *axis, &number(*shift)),
            Movement::Twice(axis) => {
                let map = IndexMap::concat(scope, &[source.into(), source.into()], *axis)?;
                map.with_sources(scope, &[source.into()], &[0, 0])
            }
            Movement::SpaceToDepth(block) => IndexMap::space_to_depth(scope, source, *block, BlockMode::DepthColumnRow),
            Movement::DepthToSpace(block, mode) => IndexMap::depth_to_space(scope, source, *block, *mode),
        }
    }

    pub fn act(&self, x: &Array, sizes: &dyn Fn(&Dim) -> i64) -> Array {
        let rank = x.shape.len();
        let with = |axis: usize, size: i64| {
            let mut shape = x.shape.clone();
            shape[axis] = size;
            shape
        };
        let moved = |at: &[i64], axis: usize, to: i64| {
            let mut at = at.to_vec();
            at[axis] = to;
            x.at(&at)
        };
        match self {
            Movement::Slice(axis, begin, end, step) => {
                let size = x.shape[*axis];
                // As Python's `range(*slice(begin, end, step).indices(size))`.
                let (low, high) = if *step > 0 { (0, size) } else { (-1, size - 1) };
                let bound = |bound: Option<i64>, open: i64| {
                    bound.map_or(open, |bound| (if bound < 0 { bound + size } else { bound }).max(low).min(high))
                };
                let (first, last) = if *step > 0 { (low, high) } else { (high, low) };
                let (begin, end) = (bound(*begin, first), bound(*end, last));
                let mut positions = vec![];
                let mut at = begin;
                while if *step > 0 { at < end } else { at > end } {
                    positions.push(at);
                    at += step;
                }
                Array::made(with(*axis, positions.len() as i64), |at| moved(at, *axis, positions[at[*axis] as usize]))
            }
            Movement::Transpose(perm) => Array::made(perm.iter().map(|&axis| x.shape[axis]).collect(), |at| {
                let mut from = vec![0; rank];
                perm.iter().zip(at).for_each(|(&axis, &at)| from[axis] = at);
                x.at(&from)
            }),
            Movement::Reshape(result) => Array { shape: result.iter().map(sizes).collect(), data: x.data.clone() },
            Movement::Expand(result) => {
                let shape: Vec<i64> = result.iter().map(sizes).collect();
                let more = shape.len() - rank;
                Array::made(shape, |at| {
                    let own = at[more..].iter().zip(&x.shape);
                    x.at(&own.map(|(&at, &size)| if size == 1 { 0 } else { at }).collect::<Vec<_>>())
                })
            }
            Movement::Tile(repeats) => {
                let shape = x.shape.iter().zip(repeats).map(|(size, count)| size * count).collect();
                Array::made(shape, |at| x.at(&at.iter().zip(&x.shape).map(|(at, size)| at % size).collect::<Vec<_>>()))
            }
            Movement::Gather(axis, shape, values) => {
                let mut result = x.shape.clone();
                result.splice(*axis..=*axis, shape.iter().copied());
                Array::made(result, |at| {
                    let place =
                        at[*axis..axis + shape.len()].iter().zip(shape).fold(0, |place, (at, size)| place * size + at);
                    let value = values[place as usize];
                    let value = if value < 0 { value + x.shape[*axis] } else { value };
                    let mut from = at.to_vec();
                    from.splice(*axis..axis + shape.len(), [value]);
                    x.at(&from)
                })
            }
            Movement::Pad(axis, before, after) => {
                let size = x.shape[*axis];
                Array::made(with(*axis, before + size + after), |at| {
                    let place = at[*axis] - before;
                    if (0..size).contains(&place) { moved(at, *axis, place) } else { Element::Fill(FILL) }
                })
            }
            Movement::Reflect(axis, count) => {
                let size = x.shape[*axis];
                Array::made(with(*axis, size + 2 * count), |at| {
                    let place = (at[*axis] - count).abs();
                    moved(at, *axis, if place >= size { 2 * (size - 1) - place } else { place })
                })
            }
            Movement::Roll(axis, shift) => {
                let size = x.shape[*axis];
                Array::made(x.shape.clone(), |at| moved(at, *axis, (at[*axis] - shift).rem_euclid(size)))
            }
            Movement::Twice(axis) => {
                let size = x.shape[*axis];
                Array::made(with(*axis, 2 * size), |at| moved(at, *axis, at[*axis] % size))
            }
            Movement::SpaceToDepth(block) => {
                let [n, c, h, w] = x.shape[..] else { panic!() };
                Array::made(vec![n, c * block * block, h / block, w / block], |at| {
                    let (part, channel) = (at[1] / c, at[1] % c);
                    x.at(&[at[0], channel, at[2] * block + part / block, at[3] * block + part % block])
                })
            }
            Movement::DepthToSpace(block, mode) => {
                let [n, c, h, w] = x.shape[..] else { panic!() };
                let depth = c / (block * block);
                Array::made(vec![n, depth, h * block, w * block], |at| {
                    let (row, column) = (at[2] % block, at[3] % block);
                    let channel = match mode {
                        BlockMode::DepthColumnRow => (row * block + column) * depth + at[1],
                        BlockMode::ColumnRowDepth => (at[1] * block + row) * block + column,
                    };
                    x.at(&[at[0], channel, at[2] / block, at[3] / block])
                })
            }
        }
    }
}

/// A small generator of numbers that are the same in every run.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % bound.max(1)
    }

    pub fn of<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())].clone()
    }

    fn shuffled(&mut self, count: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..count).collect();
        for at in (1..count).rev() {
            order.swap(at, self.below(at + 1));
        }
        order
    }
}

/// A random movement of a tensor with these dims; `None` if this attempt gave none.
pub fn draw(random: &mut Random, scope: &Scope, dims: &[Dim]) -> Option<Movement> {
    let rank = dims.len();
    let axis = random.below(rank);
    let fixed = dims.get(axis)?.as_const();
    let at_least = |count: i64| scope.ge(&dims[axis], &Dim::constant(count)).is_yes();
    Some(match random.below(14) {
        0 | 1 => match fixed {
            Some(size) if size >= 2 => {
                let step = random.of(&[1, 1, 1, 2, 3, -1, -1, -2]);
                let (a, b) = (random.below(size as usize) as i64, random.below(size as usize) as i64);
                let (low, high) = (a.min(b), a.max(b));
                if step > 0 {
                    Movement::Slice(axis, Some(low), Some(high + 1), step)
                } else {
                    Movement::Slice(axis, Some(high), low.checked_sub(1).filter(|&end| end >= 0), step)
                }
            }
            _ => random.of(&[
                Movement::Slice(axis, Some(1), None, 1),
                Movement::Slice(axis, Some(0), Some(-1), 1),
                Movement::Slice(axis, None, None, -1),
                Movement::Slice(axis, Some(2), None, 1),
                Movement::Slice(axis, Some(-1), None, 1),
            ]),
        },
        2 | 3 if rank > 1 => Movement::Transpose(random.shuffled(rank)),
        4..=6 => {
            let mut wanted = dims.to_vec();
            let merges = random.below(2) == 0 && axis + 1 < rank;
            if merges {
                let merged = scope.mul(&dims[axis], &dims[axis + 1]);
                wanted.splice(axis..axis + 2, [merged]);
            }
            if !merges || random.below(2) == 0 {
                let factor = random.of(&[1, 2, 2, 3, 4, 6]);
                let rest = scope.exact_div(&wanted[axis], &Dim::constant(factor))?;
                let mut pair = vec![Dim::constant(factor), rest];
                if random.below(2) == 0 {
                    pair.reverse();
                }
                wanted.splice(axis..=axis, pair);
            }
            Movement::Reshape(wanted)
        }
        7 => {
            let mut result = dims.to_vec();
            if fixed == Some(1) {
                result[axis] = random.of(&[Dim::constant(2), Dim::symbol(scope.named("m"))]);
            } else {
                result.insert(0, Dim::constant(2));
            }
            Movement::Expand(result)
        }
        8 => {
            let mut repeats = vec![1; rank];
            repeats[axis] = random.of(&[2, 3, 0, 1]);
            Movement::Tile(repeats)
        }
        9 => {
            let size = fixed.filter(|&size| size > 0)?;
            let index = |random: &mut Random| random.below(size as usize) as i64 - random.of(&[0, 0, size]);
            match random.below(4) {
                0 => Movement::Gather(axis, vec![], vec![index(random)]),
                1 => Movement::Gather(axis, vec![2, 2], (0..4).map(|_| index(random)).collect()),
                2 => Movement::Gather(
                    axis,
                    vec![size],
                    random.shuffled(size as usize).iter().map(|&at| at as i64).collect(),
                ),
                _ => Movement::Gather(axis, vec![3], (0..3).map(|_| index(random)).collect()),
            }
        }
        10 => Movement::Pad(axis, random.of(&[0, 1, 2]), random.of(&[0, 1, 2])),
        11 if at_least(2) => random.of(&[Movement::Roll(axis, 1), Movement::Roll(axis, 2), Movement::Reflect(axis, 1)]),
        12 => Movement::Twice(axis),
        _ if rank == 4 => random.of(&[
            Movement::SpaceToDepth(2),
            Movement::DepthToSpace(2, BlockMode::DepthColumnRow),
            Movement::DepthToSpace(2, BlockMode::ColumnRowDepth),
        ]),
        _ => return None,
    })
}

/// A shape with an open `n`, or without.
pub fn draw_shape(random: &mut Random, scope: &Scope, open: bool) -> Shape {
    let n = Dim::symbol(scope.named("n"));
    let number = Dim::constant;
    let two = scope.mul(&n, &number(2));
    let shapes: Vec<Vec<Dim>> = if open {
        vec![
            vec![n.clone(), number(12)],
            vec![number(4), n.clone(), number(6)],
            vec![number(6), number(8), n.clone()],
            vec![n.clone(), number(4), two.clone(), number(6)],
            vec![number(2), number(4), two.clone(), two],
            vec![n, number(1), number(8)],
        ]
    } else {
        let of = |dims: &[i64]| dims.iter().map(|&dim| number(dim)).collect();
        vec![of(&[8, 12]), of(&[4, 6, 8]), of(&[24]), of(&[1, 8, 4]), of(&[2, 8, 4, 6]), of(&[1, 4, 6, 1]), of(&[0, 3])]
    };
    random.of(&shapes).into_iter().collect()
}
