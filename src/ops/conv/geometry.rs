//! The shapes of a convolution's operands, and the conversion of images to matrices and back.

use std::ops::Range;

use crate::dim::Dim;
use crate::ops::lane::Ring;
use crate::ops::traits::NodeFacts;
use crate::ops::window::{AxisWindows, Window, read_numbers};
use crate::ops::{Decline, InferCx, Refusal, Site};
use crate::tensor::threads;
use crate::tensor::{Shape, product};

/// Reads the attribute `group`.
///
/// # Errors
/// The attribute is less than 1.
pub(super) fn group(site: &Site<'_>) -> Result<i64, Refusal> {
    match site.attr_int("group")?.unwrap_or(1) {
        group if group >= 1 => Ok(group),
        group => Err(Refusal::invalid(format!("attribute 'group' is {group}, which is not valid"))),
    }
}

/// The known facts of a convolution's operands, for inference.
pub(super) struct Operands<'a> {
    /// The image's dims, if known.
    pub x: Option<&'a [Dim]>,
    /// The weights' dims, if known.
    pub w: Option<&'a [Dim]>,
    /// The taps of the kernel on each axis.
    pub kernel: Vec<Dim>,
}

impl<'a> Operands<'a> {
    /// Reads operands `x` and `w` and the attribute `kernel_shape`; `None` if the number of axes is unknown.
    ///
    /// # Errors
    /// The ranks or kernel sizes differ.
    pub fn known(cx: &'a InferCx<'_>, x: usize, w: usize) -> Result<Option<Self>, Refusal> {
        let (x, w) = (cx.shape(x), cx.shape(w));
        let attribute = cx.attr_ints("kernel_shape")?.filter(|kernel| !kernel.is_empty());
        let axes = |shape: &[Dim]| shape.len().checked_sub(2).filter(|&axes| axes > 0);
        let too_flat = || Refusal::invalid("the data of the convolution has no spatial axis");
        let count = match (x, w, attribute) {
            (Some(shape), ..) | (None, Some(shape), _) => axes(shape).ok_or_else(too_flat)?,
            (None, None, Some(kernel)) => kernel.len(),
            (None, None, None) => return Ok(None),
        };
        if let Some(w) = w
            && w.len() != count + 2
        {
            return Err(Refusal::invalid(format!("'W' has rank {}, but 'X' has rank {}", w.len(), count + 2)));
        }
        let given = read_numbers(cx, "kernel_shape", count, 1)?;
        let given: Option<Vec<Dim>> = given.map(|kernel| kernel.into_iter().map(Dim::constant).collect());
        let kernel = match (w, given) {
            (Some(w), given) => {
                let of_weights = w.get(2..).unwrap_or_default();
                let differs = |(a, b): (&Dim, &Dim)| cx.scope().eq(a, b).is_no();
                if given.iter().flatten().zip(of_weights).any(differs) {
                    return Err(Refusal::invalid("attribute 'kernel_shape' differs from the spatial dims of 'W'"));
                }
                given.unwrap_or_else(|| of_weights.to_vec())
            }
            (None, Some(given)) => given,
            (None, None) => cx.fresh_shape(count),
        };
        Ok(Some(Operands { x, w, kernel }))
    }

    /// Returns a dim of the image.
    pub fn x(&self, axis: usize) -> Option<&'a Dim> {
        self.x.and_then(|shape| shape.get(axis))
    }

    /// Returns a dim of the weights.
    pub fn w(&self, axis: usize) -> Option<&'a Dim> {
        self.w.and_then(|shape| shape.get(axis))
    }
}

/// Returns lower bounds for the axes of a convolved image. ONNX Runtime rejects images that the kernel does not fit, even for an
/// empty batch (`Invalid input shape`), and rounds the number of positions down.
pub(super) fn fitting(view: &NodeFacts<'_>, x: usize, w: usize) -> Vec<(Dim, i64)> {
    let least = || {
        let (image, weights) = (view.shape(x)?.get(2..)?, view.shape(w)?.get(2..)?);
        let window = Window::read(&view.site()?, image.len()).ok().filter(|_| image.len() == weights.len())?;
        let sizes = image.iter().zip(weights).enumerate();
        let least = |(axis, (size, kernel)): (usize, (&Dim, &Dim))| {
            Some((size.clone(), window.least_size(view.scope(), axis, kernel)?))
        };
        sizes.map(least).collect::<Option<Vec<_>>>()
    };
    least().unwrap_or_default()
}

/// The constant sizes of a convolution: `N` images of `groups·channels` channels. One side has the elements of `axes`, the other
/// one element per window position.
pub(super) struct Geometry {
    pub batch: usize,
    pub groups: usize,
    /// The number of input channels per group.
    pub in_channels: usize,
    /// The number of output channels per group.
    pub out_channels: usize,
    /// The spatial axes the windows slide over.
    pub axes: Vec<AxisWindows>,
    /// The number of elements per channel.
    pub elements: usize,
    /// The number of window positions.
    pub places: usize,
    /// The number of taps of the kernel.
    pub taps: usize,
}

impl Geometry {
    /// # Errors
    /// The channels do not match the groups, or the sizes are not addressable.
    pub fn new(
        batch: usize,
        groups: i64,
        in_channels: usize,
        out_channels: usize,
        axes: Vec<AxisWindows>,
    ) -> Result<Self, Decline> {
        let groups = usize::try_from(groups).unwrap_or(usize::MAX);
        if !in_channels.is_multiple_of(groups) || !out_channels.is_multiple_of(groups) {
            let channels = format!("{in_channels} and {out_channels} channels");
            return Err(Decline::invalid(format!(
                "the number of channels ({channels}) is not a multiple of attribute 'group' ({groups})"
            )));
        }
        let all = |of: fn(&AxisWindows) -> usize| -> Result<usize, Decline> {
            let dims: Vec<usize> = axes.iter().map(of).collect();
            product(&dims).ok_or_else(|| Decline::OverBudget("the windows exceed the address space".into()))
        };
        let (elements, places, taps) = (all(|axis| axis.size)?, all(|axis| axis.places)?, all(|axis| axis.kernel)?);
        let (in_channels, out_channels) = (in_channels / groups, out_channels / groups);
        if in_channels.checked_mul(taps).is_none() || out_channels.checked_mul(taps).is_none() {
            return Err(Decline::OverBudget("the kernel exceeds the address space".into()));
        }
        Ok(Geometry { batch, groups, in_channels, out_channels, axes, elements, places, taps })
    }

    /// Returns the number of multiplications.
    pub fn work(&self) -> u64 {
        [self.batch, self.groups, self.in_channels, self.out_channels, self.taps, self.places]
            .iter()
            .fold(1, |work: u64, &factor| work.saturating_mul(factor as u64))
    }

    /// Returns `true` if the matrix of an image equals the image.
    pub fn is_pointwise(&self) -> bool {
        let trivial =
            |axis: &AxisWindows| axis.kernel == 1 && axis.begin == 0 && axis.stride == 1 && axis.size == axis.places;
        self.axes.iter().all(trivial)
    }

    /// Returns the index of tap `tap` on each axis, in row-major order.
    pub fn tap_index(&self, mut tap: usize) -> Shape {
        let mut index = Shape::from_elem(0, self.axes.len());
        for (at, axis) in index.iter_mut().zip(&self.axes).rev() {
            *at = tap % axis.kernel.max(1);
            tap /= axis.kernel.max(1);
        }
        index
    }

    /// Visits the runs of adjacent positions within `range` (flattened) whose tap is on elements. Each run has its positions,
    /// relative to the start of `range`, and the first element; further elements are a stride of the last axis apart.
    pub fn runs(&self, tap: &[usize], range: Range<usize>, mut visit: impl FnMut(Range<usize>, usize)) {
        let Some((last, outer)) = self.axes.split_last() else { return };
        let Some((&last_tap, outer_taps)) = tap.split_last() else { return };
        let inside = last.places_on_elements(last_tap);
        if last.places == 0 || inside.is_empty() {
            return;
        }
        let mut line = range.start / last.places;
        while line * last.places < range.end {
            let first = line * last.places;
            let start = (first + inside.start).max(range.start);
            let end = (first + inside.end).min(range.end);
            if start < end
                && let Some(row) = element_of_line(outer, outer_taps, line)
                && let Some(element) = last.element(start - first, last_tap)
            {
                visit(start - range.start..end - range.start, row * last.size + element);
            }
            line += 1;
        }
    }

    /// Writes the matrix of an image: one row per channel and tap, one column per position of `range`; padding is 0.
    pub fn unfold<T: Ring>(&self, image: &[T], range: Range<usize>, matrix: &mut [T]) {
        let width = range.len().max(1);
        let step = self.axes.last().map_or(1, |axis| axis.stride);
        threads::for_each_row(matrix, width, |(at, row)| {
            let channel = image.get(at / self.taps.max(1) * self.elements..).unwrap_or_default();
            row.fill(T::default());
            self.runs(&self.tap_index(at % self.taps.max(1)), range.clone(), |places, element| {
                let (Some(to), Some(from)) = (row.get_mut(places), channel.get(element..)) else { return };
                if step == 1 {
                    to.iter_mut().zip(from).for_each(|(to, &from)| *to = from);
                } else {
                    to.iter_mut().zip(from.iter().step_by(step)).for_each(|(to, &from)| *to = from);
                }
            });
        });
    }

    /// Adds a matrix back to a channel: one row per tap from `first` on, one column per position.
    pub fn fold<T: Ring>(&self, first: usize, matrix: &[T], channel: &mut [T]) {
        let step = self.axes.last().map_or(1, |axis| axis.stride);
        for (at, row) in matrix.chunks_exact(self.places.max(1)).enumerate() {
            self.runs(&self.tap_index(first + at), 0..self.places, |places, element| {
                let (Some(from), Some(to)) = (row.get(places), channel.get_mut(element..)) else { return };
                to.iter_mut().step_by(step).zip(from).for_each(|(to, &from)| *to = to.plus(from));
            });
        }
    }
}

/// Returns the row of elements under the outer taps of a row of positions, unless it is padding.
fn element_of_line(axes: &[AxisWindows], taps: &[usize], line: usize) -> Option<usize> {
    let (mut line, mut row, mut stride) = (line, 0, 1);
    for (axis, &tap) in axes.iter().zip(taps).rev() {
        row += axis.element(line % axis.places, tap)? * stride;
        line /= axis.places;
        stride *= axis.size;
    }
    Some(row)
}
