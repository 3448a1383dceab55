//! Checked row-major index arithmetic.

use smallvec::SmallVec;

/// The dims of a tensor, outermost first.
pub type Shape = SmallVec<[usize; 4]>;

/// Strides in elements, one per axis, outermost first.
pub type Strides = SmallVec<[isize; 4]>;

/// Returns the number of elements of a shape: 1 for rank 0, 0 if any dim is 0, for any other dims. `None` if it exceeds
/// `isize::MAX`, the addressable memory.
pub fn product(shape: &[usize]) -> Option<usize> {
    if shape.contains(&0) {
        return Some(0);
    }
    let elements = shape.iter().try_fold(1usize, |product, &dim| product.checked_mul(dim))?;
    (elements <= isize::MAX as usize).then_some(elements)
}

/// Returns the row-major strides of a dense tensor, in elements. Shapes without elements have zero strides, because the product
/// of the other dims may overflow. `None` if [`product`] is.
pub fn strides_of(shape: &[usize]) -> Option<Strides> {
    if product(shape)? == 0 {
        return Some(SmallVec::from_elem(0, shape.len()));
    }
    let mut strides = SmallVec::from_elem(0, shape.len());
    let mut stride = 1isize;
    for (place, &dim) in strides.iter_mut().zip(shape).rev() {
        *place = stride;
        // Partial products do not exceed the whole one, which fits.
        stride = stride.saturating_mul(isize::try_from(dim).unwrap_or(isize::MAX));
    }
    Some(strides)
}

/// Resolves an index into a dim; negative ones count from the end. `None` if it is out of range.
pub fn counted_in(index: i64, dim: usize) -> Option<usize> {
    let wide = i64::try_from(dim).ok()?;
    let counted = if index < 0 { index.checked_add(wide)? } else { index };
    usize::try_from(counted).ok().filter(|&counted| counted < dim)
}

/// Iterates over all indices of a shape in row-major order. A shape of rank 0 has one index, the empty one; a shape with a dim of
/// 0 has none.
#[derive(Clone, Debug)]
pub struct Indices {
    shape: Shape,
    index: Shape,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Fresh,
    Running,
    Done,
}

impl Indices {
    pub fn new(shape: &[usize]) -> Indices {
        let state = if shape.contains(&0) { State::Done } else { State::Fresh };
        Indices { shape: shape.into(), index: SmallVec::from_elem(0, shape.len()), state }
    }

    /// Returns the next index by reference, without the allocation of the iterator.
    pub fn advance(&mut self) -> Option<&[usize]> {
        match self.state {
            State::Done => return None,
            State::Fresh => self.state = State::Running,
            State::Running => {
                let wheel = self.index.iter_mut().zip(&self.shape).rev().find_map(|(at, &dim)| {
                    *at += 1;
                    if *at < dim {
                        return Some(());
                    }
                    *at = 0;
                    None
                });
                if wheel.is_none() {
                    self.state = State::Done;
                    return None;
                }
            }
        }
        Some(&self.index)
    }
}

impl Iterator for Indices {
    type Item = Shape;

    fn next(&mut self) -> Option<Shape> {
        self.advance().map(Shape::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_are_checked() {
        assert_eq!(product(&[]), Some(1));
        assert_eq!(product(&[2, 3, 4]), Some(24));
        assert_eq!(product(&[usize::MAX, usize::MAX, 0]), Some(0));
        assert_eq!(product(&[1 << 62, 2]), None);
        assert_eq!(product(&[1 << 63]), None);
        assert_eq!(product(&[usize::MAX, usize::MAX]), None);
        assert_eq!(product(&[isize::MAX as usize]), Some(isize::MAX as usize));
    }

    #[test]
    fn strides_are_row_major() {
        assert_eq!(strides_of(&[]).unwrap().as_slice(), &[] as &[isize]);
        assert_eq!(strides_of(&[2, 3, 4]).unwrap().as_slice(), &[12, 4, 1]);
        assert_eq!(strides_of(&[usize::MAX, 0, usize::MAX]).unwrap().as_slice(), &[0, 0, 0]);
        assert_eq!(strides_of(&[1, isize::MAX as usize]).unwrap().as_slice(), &[isize::MAX, 1]);
        assert_eq!(strides_of(&[1 << 32, 1 << 32]), None);
    }

    #[test]
    fn the_odometer_turns_the_last_wheel_fastest() {
        let all: Vec<Shape> = Indices::new(&[2, 1, 2]).collect();
        let expected: [&[usize]; 4] = [&[0, 0, 0], &[0, 0, 1], &[1, 0, 0], &[1, 0, 1]];
        assert_eq!(all.iter().map(|index| index.as_slice()).collect::<Vec<_>>(), expected);
        assert_eq!(Indices::new(&[]).count(), 1);
        assert_eq!(Indices::new(&[3, 0]).count(), 0);
        let mut done = Indices::new(&[1]);
        assert!(done.advance().is_some());
        assert!(done.advance().is_none());
        assert!(done.advance().is_none());
    }
}
