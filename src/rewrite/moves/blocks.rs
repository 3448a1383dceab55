//! Where the elements of a value stand in the one that it is made of, in blocks of elements that nothing takes apart.

use crate::tensor::{Indices, product, strides_of};

/// A value as blocks of the source, all of one size: in its own order, the number of each in the order of the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Blocks {
    /// How many blocks stand along each axis.
    pub shape: Vec<usize>,
    /// Which block of the source stands at each place.
    pub from: Vec<usize>,
}

impl Blocks {
    /// The source itself, if it has no more blocks than this.
    pub fn of_source(shape: Vec<usize>, most: usize) -> Option<Blocks> {
        let count = product(&shape).filter(|count| (1..=most).contains(count))?;
        Some(Blocks { shape, from: (0..count).collect() })
    }

    /// The same blocks in order, in another shape.
    pub fn laid_out(&self, shape: Vec<usize>) -> Option<Blocks> {
        (product(&shape)? == self.from.len()).then(|| Blocks { shape, from: self.from.clone() })
    }

    /// Axis `i` of the result is axis `perm[i]`.
    pub fn turned(&self, perm: &[usize]) -> Option<Blocks> {
        let own = strides_of(&self.shape)?;
        let axes = || perm.iter().map(|&axis| Some((*self.shape.get(axis)?, usize::try_from(*own.get(axis)?).ok()?)));
        let (shape, steps): (Vec<usize>, Vec<usize>) = axes().collect::<Option<_>>()?;
        let mut from = Vec::with_capacity(self.from.len());
        let mut indices = Indices::new(&shape);
        while let Some(index) = indices.advance() {
            let place =
                index.iter().zip(&steps).try_fold(0usize, |sum, (at, step)| sum.checked_add(at.checked_mul(*step)?));
            from.push(*self.from.get(place?)?);
        }
        Some(Blocks { shape, from })
    }

    /// The blocks at these places of an axis, which become axes of this shape, if there are no more than that.
    pub fn taken(&self, axis: usize, places: &[usize], shape: &[usize], most: usize) -> Option<Blocks> {
        let (before, rest) = self.shape.split_at_checked(axis)?;
        let (&size, behind) = rest.split_first()?;
        let inner = product(behind)?;
        let all = product(before)?.checked_mul(places.len())?.checked_mul(inner)?;
        if all > most || product(shape)? != places.len() {
            return None;
        }
        let mut from = Vec::with_capacity(all);
        for outer in self.from.chunks(size.checked_mul(inner).filter(|&width| width > 0)?) {
            for &place in places {
                let start = place.checked_mul(inner)?;
                from.extend_from_slice(outer.get(start..start.checked_add(inner)?)?);
            }
        }
        Some(Blocks { shape: [before, shape, behind].concat(), from })
    }

    /// Blocks one behind the other along an axis, if there are no more than that.
    pub fn joined(parts: &[&Blocks], axis: usize, most: usize) -> Option<Blocks> {
        let mut shape = parts.first()?.shape.clone();
        let size = |part: &Blocks| part.shape.get(axis).copied();
        *shape.get_mut(axis)? = parts.iter().try_fold(0usize, |sum, part| sum.checked_add(size(part)?))?;
        let all = product(&shape).filter(|&all| all <= most)?;
        let outer = product(shape.get(..axis)?)?;
        let mut from = Vec::with_capacity(all);
        for at in 0..outer {
            for part in parts {
                let width = part.from.len().checked_div(outer)?;
                let start = at.checked_mul(width)?;
                from.extend_from_slice(part.from.get(start..start.checked_add(width)?)?);
            }
        }
        (from.len() == all).then_some(Blocks { shape, from })
    }
}

/// A lookup that says where blocks come from: along the axes `before..behind` of the source as one, at these places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Lookup {
    pub before: usize,
    pub behind: usize,
    pub places: Vec<usize>,
}

/// The lookups along neighbouring axes of a source of this shape that give these blocks.
///
/// With `P` blocks in front of these axes, `K` along them and `Q` behind, block `(p, r, q)` of the result is block `(p, places[r], q)`.
pub(super) fn lookups(source: &[usize], from: &[usize]) -> Vec<Lookup> {
    let rank = source.len();
    let pairs = (0..rank).flat_map(|before| (before + 1..=rank).map(move |behind| (before, behind)));
    pairs.filter_map(|(before, behind)| lookup(source, from, before, behind)).collect()
}

fn lookup(source: &[usize], from: &[usize], before: usize, behind: usize) -> Option<Lookup> {
    let outer = product(source.get(..before)?)?;
    let along = product(source.get(before..behind)?)?;
    let inner = product(source.get(behind..)?)?;
    let each = outer.checked_mul(inner).filter(|&each| each > 0)?;
    if !from.len().is_multiple_of(each) {
        return None;
    }
    let rows = from.len() / each;
    let places: Vec<usize> = from.iter().step_by(inner).take(rows).map(|at| at / inner).collect();
    let expected = |at: usize| {
        let (row, q) = (at / inner, at % inner);
        let (p, r) = (row / rows, row % rows);
        let place = places.get(r).filter(|&&place| place < along)?;
        p.checked_mul(along)?.checked_add(*place)?.checked_mul(inner)?.checked_add(q)
    };
    from.iter().enumerate().all(|(at, &own)| expected(at) == Some(own)).then_some(Lookup { before, behind, places })
}

/// The axes of a tensor that is turned: the size of each in the order of the result, and how far neighbours are apart in the source.
pub(super) type Digits = Vec<(usize, usize)>;

/// The fewest axes by which blocks are those of the source in another order of axes. `None` if they are not.
///
/// Neighbours stand a fixed step apart along the innermost axis, for as many places as that holds; and so on outwards.
pub(super) fn digits(from: &[usize], all: usize) -> Option<Digits> {
    if from.len() != all || from.first() != Some(&0) {
        return None;
    }
    let mut found: Digits = Vec::new();
    let mut width = 1usize;
    while width < all {
        let step = *from.get(width)?;
        let holds = |k: usize| Some(*from.get(k.checked_mul(width)?)? == k.checked_mul(step)?);
        let rest = all / width;
        let run = (2..rest).take_while(|&k| holds(k) == Some(true)).count().checked_add(2)?;
        // As many as fit into the rest evenly.
        let size = (2..=run).rev().find(|&size| rest.is_multiple_of(size))?;
        found.insert(0, (size, step));
        width = width.checked_mul(size)?;
    }
    let mut sorted = found.clone();
    sorted.sort_by_key(|&(_, step)| step);
    let tiles =
        sorted.iter().try_fold(1usize, |next, &(size, step)| if step == next { next.checked_mul(size) } else { None });
    let place = |at: usize| {
        let (mut rest, mut sum) = (at, 0usize);
        for &(size, step) in found.iter().rev() {
            sum = sum.checked_add((rest % size).checked_mul(step)?)?;
            rest /= size;
        }
        Some(sum)
    };
    let fits = tiles == Some(all) && from.iter().enumerate().all(|(at, &own)| place(at) == Some(own));
    fits.then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(shape: &[usize]) -> Blocks {
        Blocks::of_source(shape.to_vec(), 4096).unwrap()
    }

    #[test]
    fn a_turn_is_found_again() {
        let blocks = source(&[8, 8]);
        let windows = blocks.laid_out(vec![2, 4, 2, 4]).unwrap().turned(&[0, 2, 1, 3]).unwrap();
        assert_eq!(windows.from.get(4..6), Some(&[8, 9][..]));
        assert_eq!(digits(&windows.from, 64), Some(vec![(2, 32), (2, 4), (4, 8), (4, 1)]));
    }

    #[test]
    fn a_roll_is_a_lookup_and_no_turn() {
        let blocks = source(&[2, 4, 3]);
        let rolled = blocks.taken(1, &[2, 3, 0, 1], &[4], 4096).unwrap();
        assert_eq!(digits(&rolled.from, 24), None);
        let found = lookups(&[2, 4, 3], &rolled.from);
        assert!(found.contains(&Lookup { before: 1, behind: 2, places: vec![2, 3, 0, 1] }));
        assert!(!found.iter().any(|found| (found.before, found.behind) == (2, 3)));
    }

    #[test]
    fn parts_that_are_joined_are_taken_in_turn() {
        let blocks = source(&[4, 1]);
        let (even, odd) = (blocks.taken(0, &[0, 2], &[2], 64).unwrap(), blocks.taken(0, &[1, 3], &[2], 64).unwrap());
        let joined = Blocks::joined(&[&odd, &even], 1, 64).unwrap();
        assert_eq!(joined, Blocks { shape: vec![2, 2], from: vec![1, 0, 3, 2] });
        assert_eq!(Blocks::joined(&[&odd, &even], 1, 3), None);
        assert_eq!(blocks.taken(0, &[4], &[1], 64), None);
    }

    #[test]
    fn steps_that_do_not_hold_throughout_are_no_turn() {
        assert_eq!(digits(&[0, 1, 3, 2], 4), None);
        assert_eq!(digits(&[0, 2, 1, 3], 4), Some(vec![(2, 1), (2, 2)]));
        assert_eq!(digits(&[0], 1), Some(vec![]));
        assert_eq!(digits(&[0, 0], 2), None);
    }
}
