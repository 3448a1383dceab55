//! Sliding windows over spatial axes, shared by convolutions and pooling.
//!
//! On each axis a window has `kernel` taps, `dilation` apart. It moves over the input and its padding in steps of `stride`. Tap
//! `t` of position `p` is on input element `p·stride − begin + t·dilation`. The length of a window is
//! `extent = (kernel − 1)·dilation + 1`. The number of positions is
//!
//! | padding | positions |
//! |---|---|
//! | explicit | `⌊(size + begin + end − extent) / stride⌋ + 1` |
//! | explicit, `ceil_mode` | the same with `⌈ ⌉`, but no window starts after `size + begin`; if one would, the number is unknown before version 22 |
//! | VALID | as explicit, with no padding |
//! | SAME | `⌈size / stride⌉`; the padding is `(positions − 1)·stride + extent − size`, at least 0; an odd one is at the end (UPPER) or beginning (LOWER) |
//!
//! `pads` contains all beginnings, then all ends. If texts and runtimes differ in the number of positions (`ceil_mode` with VALID,
//! padding by both attributes), it is unknown.
#![allow(
    clippy::indexing_slicing,
    reason = "the numbers of sizes, strides, dilations and pads are checked to be that of the axes"
)]

use std::ops::Range;

use crate::dim::{Dim, Scope};
use crate::ops::{Decline, Refusal, Site};

/// The padding mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::ops) enum AutoPad {
    /// Padding by `pads`.
    Explicit,
    SameUpper,
    SameLower,
    Valid,
}

/// The attributes of windows.
#[derive(Clone, Debug)]
pub(in crate::ops) struct Window {
    /// One per axis, at least 1.
    pub strides: Vec<i64>,
    /// One per axis, at least 1.
    pub dilations: Vec<i64>,
    /// The beginning and end of each axis, nonnegative.
    pub pads: Vec<[i64; 2]>,
    /// The padding mode.
    pub auto_pad: AutoPad,
    /// `true` if the last window may be partial.
    pub ceil_mode: bool,
    /// `true` if the version's text counts windows that start after the data, as before version 22. Runtimes never count them.
    pub counts_padding: bool,
}

impl Window {
    /// Reads the attributes `strides`, `dilations`, `pads`, `auto_pad` and `ceil_mode` for this many spatial axes.
    ///
    /// # Errors
    /// An attribute has a wrong length or an invalid value.
    pub fn read(site: &Site<'_>, axes: usize) -> Result<Window, Refusal> {
        let auto_pad = match site.attr_str("auto_pad")? {
            None | Some("NOTSET" | "") => AutoPad::Explicit,
            Some("SAME_UPPER") => AutoPad::SameUpper,
            Some("SAME_LOWER") => AutoPad::SameLower,
            Some("VALID") => AutoPad::Valid,
            Some(other) => {
                return Err(Refusal::invalid(format!("attribute 'auto_pad' is '{other}', which is not valid")));
            }
        };
        let pads = read_numbers(site, "pads", axes.saturating_mul(2), 0)?.unwrap_or_else(|| vec![0; 2 * axes]);
        let (begins, ends) = pads.split_at(axes);
        Ok(Window {
            strides: read_numbers(site, "strides", axes, 1)?.unwrap_or_else(|| vec![1; axes]),
            dilations: read_numbers(site, "dilations", axes, 1)?.unwrap_or_else(|| vec![1; axes]),
            pads: begins.iter().zip(ends).map(|(&begin, &end)| [begin, end]).collect(),
            auto_pad,
            ceil_mode: site.attr_flag("ceil_mode", false)?,
            counts_padding: site.version < 22,
        })
    }

    /// Returns `true` if both `pads` and `auto_pad` define padding: the standard forbids it, runtimes differ.
    pub fn is_disputed(&self) -> bool {
        self.auto_pad != AutoPad::Explicit && self.pads.iter().flatten().any(|&pad| pad != 0)
    }

    /// Returns the number of positions of a window of `kernel` taps over an axis of `size`, for a model that runs. Returns `None` if
    /// it is disputed, or the window is larger than the padded axis.
    pub fn places(&self, scope: &Scope, axis: usize, size: &Dim, kernel: &Dim) -> Option<Dim> {
        let (&stride, &[begin, end]) = (self.strides.get(axis)?, self.pads.get(axis)?);
        if self.is_disputed() {
            return None;
        }
        let (one, stride) = (Dim::constant(1), Dim::constant(stride));
        let extent = self.extent(scope, axis, kernel)?;
        let floor = |padding: i64| {
            let free = scope.sub(&scope.add(size, &Dim::constant(padding)), &extent);
            let fits = !scope.lt(&free, &Dim::constant(0)).is_yes();
            fits.then(|| scope.add(&scope.floor_div(&free, &stride), &one))
        };
        match self.auto_pad {
            AutoPad::SameUpper | AutoPad::SameLower => Some(scope.ceil_div(size, &stride)),
            AutoPad::Valid if self.ceil_mode => {
                let full = floor(0)?;
                let partial = self.ceil(scope, size, &extent, &stride, [0, 0])?;
                scope.eq(&full, &partial).is_yes().then_some(full)
            }
            AutoPad::Valid => floor(0),
            AutoPad::Explicit if self.ceil_mode => {
                floor(begin.checked_add(end)?)?;
                self.ceil(scope, size, &extent, &stride, [begin, end])
            }
            AutoPad::Explicit => floor(begin.checked_add(end)?),
        }
    }

    /// Like [`places`](Self::places), for operators where ONNX Runtime runs windows that do not fit: pools and DeformConv.
    ///
    /// With `free = size + begin + end − extent`, ONNX Runtime rounds `free / stride` towards 0, the text rounds down. In runtimes, a
    /// window that exceeds the padded axis by less than a stride has one position; if by less than two strides, it has none.
    /// `max(⌊free / stride⌋ + 1, min(1, max(0, free + stride)))` equals both where they agree, else the runtime's result. Axes of 0
    /// are rejected, so padding of all taps but one excludes such sizes.
    pub fn places_rounded(&self, scope: &Scope, axis: usize, size: &Dim, kernel: &Dim) -> Option<Dim> {
        let places = self.places(scope, axis, size, kernel)?;
        let stride = *self.strides.get(axis)?;
        let down = matches!(self.auto_pad, AutoPad::Explicit | AutoPad::Valid) && !self.ceil_mode;
        if !down || stride == 1 || size.as_const().is_some() {
            return Some(places);
        }
        let &[begin, end] = self.pads.get(axis)?;
        let extent = self.extent(scope, axis, kernel)?.as_const()?;
        let fits_from = extent.checked_sub(begin)?.checked_sub(end)?;
        if fits_from <= 1 || scope.ge(size, &Dim::constant(fits_from)).is_yes() {
            return Some(places);
        }
        let longer_by = fits_from.checked_sub(stride)?;
        let mut short = scope.sub(size, &Dim::constant(longer_by));
        if longer_by > 1 {
            short = scope.max(&short, &Dim::constant(0));
        }
        Some(scope.max(&places, &scope.min(&short, &Dim::constant(1))))
    }

    /// Returns `true` if a window of `kernel` taps exceeds the padded axis of `size`, for all values of the symbols.
    pub fn never_fits(&self, scope: &Scope, axis: usize, size: &Dim, kernel: &Dim) -> bool {
        let padding = match (self.auto_pad, self.pads.get(axis)) {
            (AutoPad::Valid, _) => Some(0),
            (AutoPad::Explicit, Some(&[begin, end])) => begin.checked_add(end),
            _ => None,
        };
        let (Some(padding), Some(extent)) = (padding, self.extent(scope, axis, kernel)) else { return false };
        scope.lt(&scope.add(size, &Dim::constant(padding)), &extent).is_yes()
    }

    /// Returns the smallest size of an axis, without padding, that a window of `kernel` taps fits into. With SAME padding, this is one
    /// element. Returns `None` if padding is disputed.
    pub fn least_size(&self, scope: &Scope, axis: usize, kernel: &Dim) -> Option<i64> {
        if self.is_disputed() {
            return None;
        }
        let extent = self.extent(scope, axis, kernel)?.as_const()?;
        match (self.auto_pad, self.pads.get(axis)?) {
            (AutoPad::SameUpper | AutoPad::SameLower, _) => Some(1),
            (AutoPad::Valid, _) => Some(extent),
            (AutoPad::Explicit, &[begin, end]) => extent.checked_sub(begin)?.checked_sub(end),
        }
    }

    /// Returns the length of a window of `kernel` taps.
    fn extent(&self, scope: &Scope, axis: usize, kernel: &Dim) -> Option<Dim> {
        let (one, dilation) = (Dim::constant(1), Dim::constant(*self.dilations.get(axis)?));
        Some(scope.add(&scope.mul(&scope.sub(kernel, &one), &dilation), &one))
    }

    /// Returns the positions in `ceil_mode`. With `free = size + begin + end − extent` there are `⌈free / stride⌉ + 1` windows, which
    /// is `⌈(size + begin + over) / stride⌉` with `over = end − extent + stride`. Windows that start before `size + begin` are
    /// `⌈(size + begin) / stride⌉`, so the sign of `over` selects the minimum. Before version 22, the text counts all of them.
    fn ceil(&self, scope: &Scope, size: &Dim, extent: &Dim, stride: &Dim, [begin, end]: [i64; 2]) -> Option<Dim> {
        let end = Dim::constant(end);
        if !scope.le(&end, extent).is_yes() {
            // Runtimes drop one window that starts in the padding; here there may be more.
            return None;
        }
        let over = scope.add(&scope.sub(&end, extent), stride);
        let places = |over: &Dim| scope.ceil_div(&scope.add(&scope.add(size, &Dim::constant(begin)), over), stride);
        let started = places(&scope.min(&over, &Dim::constant(0)));
        (!self.counts_padding || scope.eq(&started, &places(&over)).is_yes()).then_some(started)
    }

    /// Returns the windows over axes of constant sizes.
    ///
    /// # Errors
    /// The positions are disputed, a window does not fit, SAME padding would be negative, or numbers overflow.
    pub fn over(&self, sizes: &[usize], kernel: &[usize]) -> Result<Vec<AxisWindows>, Decline> {
        if sizes.len() != self.strides.len() || kernel.len() != self.strides.len() {
            return Err(Decline::invalid("the rank of the kernel does not fit the rank of the data"));
        }
        if self.is_disputed() {
            return Err(Decline::unsupported("both attributes 'pads' and 'auto_pad' define the padding"));
        }
        (0..sizes.len())
            .map(|at| {
                let numbers = (self.strides[at], self.dilations[at], self.pads[at]);
                let axis = self.axis(sizes[at] as i128, kernel[at] as i128, numbers);
                let axis = axis.ok_or_else(|| {
                    Decline::unsupported(format!(
                        "the window has size {}, but the padded axis has size {}",
                        kernel[at], sizes[at]
                    ))
                })?;
                if matches!(self.auto_pad, AutoPad::SameUpper | AutoPad::SameLower) && axis.leaves_out() {
                    return Err(Decline::unsupported(
                        "runtimes differ on SAME padding of windows that are smaller than the stride",
                    ));
                }
                Ok(axis)
            })
            .collect()
    }

    /// Returns the windows over one axis. All numbers are below 2⁶³, so products are below 2¹²⁷.
    fn axis(&self, size: i128, kernel: i128, (stride, dilation, pads): (i64, i64, [i64; 2])) -> Option<AxisWindows> {
        let (stride, dilation) = (i128::from(stride), i128::from(dilation));
        let [begin, end] = pads.map(i128::from);
        let extent = (kernel - 1) * dilation + 1;
        let up = |a: i128| (a + stride - 1).div_euclid(stride);
        let free = size + begin + end - extent;
        let floor = free.div_euclid(stride) + 1;
        let all = up(free) + 1;
        let ceil = all.min(up(size + begin));
        let same = up(size);
        let missing = ((same - 1) * stride + extent - size).max(0);
        let (places, begin, end) = match self.auto_pad {
            AutoPad::SameUpper => (same, missing / 2, missing - missing / 2),
            AutoPad::SameLower => (same, missing - missing / 2, missing / 2),
            _ if free < 0 || kernel < 1 || self.ceil_mode && end > extent => return None,
            AutoPad::Valid if self.ceil_mode && floor != ceil => return None,
            _ if self.ceil_mode && self.counts_padding && all != ceil => return None,
            _ if self.ceil_mode => (ceil, begin, end),
            _ => (floor, begin, end),
        };
        Some(AxisWindows {
            size: usize::try_from(size).ok()?,
            kernel: usize::try_from(kernel).ok()?,
            stride: usize::try_from(stride).ok()?,
            dilation: usize::try_from(dilation).ok()?,
            begin: usize::try_from(begin).ok()?,
            end: usize::try_from(end).ok()?,
            places: usize::try_from(places).ok()?,
        })
    }
}

/// Reads an INTS attribute of a fixed length; an empty one counts as absent.
///
/// # Errors
/// The length differs, or a number is below `least`.
pub(in crate::ops) fn read_numbers(
    site: &Site<'_>,
    name: &str,
    count: usize,
    least: i64,
) -> Result<Option<Vec<i64>>, Refusal> {
    let Some(numbers) = site.attr_ints(name)?.filter(|numbers| !numbers.is_empty()) else { return Ok(None) };
    if numbers.len() != count {
        return Err(Refusal::invalid(format!("attribute '{name}' has {} elements instead of {count}", numbers.len())));
    }
    match numbers.iter().find(|&&number| number < least) {
        Some(number) => Err(Refusal::invalid(format!("attribute '{name}' contains {number}"))),
        None => Ok(Some(numbers.to_vec())),
    }
}

/// The windows over one axis of constant size.
#[derive(Clone, Debug)]
pub(in crate::ops) struct AxisWindows {
    /// The axis without padding.
    pub size: usize,
    /// The number of taps per window.
    pub kernel: usize,
    pub stride: usize,
    pub dilation: usize,
    /// Padding at the beginning.
    pub begin: usize,
    /// Padding at the end.
    pub end: usize,
    /// The number of windows.
    pub places: usize,
}

impl AxisWindows {
    /// Returns the element under tap `tap` of position `place`, unless it is padding.
    pub fn element(&self, place: usize, tap: usize) -> Option<usize> {
        let at = place as i128 * self.stride as i128 + tap as i128 * self.dilation as i128 - self.begin as i128;
        usize::try_from(at).ok().filter(|&at| at < self.size)
    }

    /// Returns `true` if elements remain after the last window although there is no padding.
    fn leaves_out(&self) -> bool {
        let [size, kernel, stride, dilation, places] =
            [self.size, self.kernel, self.stride, self.dilation, self.places].map(|number| number as i128);
        self.begin == 0 && self.end == 0 && (places - 1) * stride + (kernel - 1) * dilation + 1 < size
    }

    /// Returns the taps of a position that are on elements.
    pub fn taps(&self, place: usize) -> Range<usize> {
        self.taps_within(place, 0, self.size as i128)
    }

    /// Returns the number of taps of a position that are on elements or padding; a partial last window exceeds both.
    pub fn padded_taps(&self, place: usize) -> usize {
        self.taps_within(place, -(self.begin as i128), self.size as i128 + self.end as i128).len()
    }

    fn taps_within(&self, place: usize, low: i128, high: i128) -> Range<usize> {
        let start = place as i128 * self.stride as i128 - self.begin as i128;
        let dilation = self.dilation as i128;
        #[allow(clippy::disallowed_methods, reason = "a number of taps")]
        let tap = |bound: i128| (bound - start + dilation - 1).div_euclid(dilation).clamp(0, self.kernel as i128);
        let (first, end) = (tap(low), tap(high));
        first as usize..end.max(first) as usize
    }

    /// Returns the positions whose tap `tap` is on an element: a contiguous range.
    pub fn places_on_elements(&self, tap: usize) -> Range<usize> {
        let shift = tap as i128 * self.dilation as i128 - self.begin as i128;
        let stride = self.stride as i128;
        #[allow(clippy::disallowed_methods, reason = "a number of places")]
        let place = |bound: i128| (bound - shift + stride - 1).div_euclid(stride).clamp(0, self.places as i128);
        let (first, end) = (place(0), place(self.size as i128));
        first as usize..end.max(first) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(stride: i64, dilation: i64, pads: [i64; 2], auto_pad: AutoPad, ceil_mode: bool) -> Window {
        let (strides, dilations, pads) = (vec![stride], vec![dilation], vec![pads]);
        Window { strides, dilations, pads, auto_pad, ceil_mode, counts_padding: false }
    }

    #[test]
    fn symbols_and_numbers_give_the_same_places() {
        let scope = Scope::new();
        let symbol = scope.named("H");
        for auto_pad in [AutoPad::Explicit, AutoPad::SameUpper, AutoPad::SameLower, AutoPad::Valid] {
            for (stride, dilation, kernel) in [(1, 1, 3), (2, 1, 3), (3, 1, 2), (2, 2, 2), (3, 1, 1), (5, 3, 2)] {
                for (pads, ceil_mode) in
                    [([0, 0], false), ([0, 0], true), ([1, 0], true), ([1, 2], true), ([2, 1], false)]
                {
                    let window = window(stride, dilation, pads, auto_pad, ceil_mode);
                    let kernel_dim = Dim::constant(kernel);
                    for size in 0..20i64 {
                        let fixed = window.over(&[size as usize], &[kernel as usize]);
                        let from_number = window.places(&scope, 0, &Dim::constant(size), &kernel_dim);
                        let from_symbol = window.places(&scope, 0, &Dim::symbol(symbol), &kernel_dim);
                        let expected = fixed.as_ref().ok().map(|axes| axes[0].places as i64);
                        let from_number = from_number.and_then(|dim| dim.as_const());
                        // With SAME padding, the number of positions is agreed on even if the omitted elements are not.
                        let same = matches!(auto_pad, AutoPad::SameUpper | AutoPad::SameLower);
                        if !(same && expected.is_none()) {
                            assert_eq!(from_number, expected, "{window:?} over {size}");
                        }
                        if let (Some(dim), Some(expected)) = (from_symbol, expected) {
                            assert_eq!(dim.evaluate(&|_| Some(size)), Some(expected), "{window:?} over {size}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn windows_longer_than_the_axis_are_rounded_as_onnxruntime_does() {
        let scope = Scope::new();
        let symbol = scope.named("H");
        for (kernel, stride, dilation) in [(2, 2, 1), (3, 2, 1), (4, 2, 1), (5, 2, 1), (5, 3, 2), (3, 7, 2), (1, 3, 1)]
        {
            for pads in [[0, 0], [1, 0], [0, 1]] {
                let window = window(stride, dilation, pads, AutoPad::Explicit, false);
                let size = Dim::symbol(symbol);
                let places = window.places_rounded(&scope, 0, &size, &Dim::constant(kernel)).unwrap();
                for size in 1..15 {
                    let expected = (size + pads[0] + pads[1] - (kernel - 1) * dilation - 1) / stride + 1;
                    // No run yields a negative size.
                    if expected >= 0 {
                        assert_eq!(
                            places.evaluate(&|_| Some(size)),
                            Some(expected),
                            "{window:?} of {kernel} over {size}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn windows_fit_from_the_least_size_on() {
        let scope = Scope::new();
        for auto_pad in [AutoPad::Explicit, AutoPad::SameUpper, AutoPad::Valid] {
            for (stride, dilation, kernel, pads) in
                [(1, 1, 3, [0, 0]), (2, 1, 3, [1, 1]), (2, 2, 3, [0, 1]), (3, 1, 6, [2, 2])]
            {
                let padded = if auto_pad == AutoPad::Explicit { pads } else { [0, 0] };
                let window = window(stride, dilation, padded, auto_pad, false);
                let least = window.least_size(&scope, 0, &Dim::constant(kernel)).unwrap();
                let same = auto_pad == AutoPad::SameUpper;
                for size in 0..9 {
                    let places = window.places(&scope, 0, &Dim::constant(size), &Dim::constant(kernel));
                    let places = places.and_then(|places| places.as_const()).filter(|&places| !same || places > 0);
                    assert_eq!(places.is_some(), size >= least, "{window:?} of {kernel} over {size}");
                }
            }
        }
    }

    #[test]
    fn no_window_starts_in_the_padding() {
        let axes = window(2, 1, [0, 1], AutoPad::Explicit, true).over(&[4], &[2]).unwrap();
        assert_eq!(axes[0].places, 2);
        let axes = window(3, 1, [1, 1], AutoPad::Explicit, true).over(&[5], &[3]).unwrap();
        assert_eq!(axes[0].places, 2);
    }

    #[test]
    fn taps_and_places_agree_with_elements() {
        for (stride, dilation, pads, kernel) in [(1, 1, [1, 1], 3), (2, 3, [4, 5], 3), (3, 1, [0, 0], 2)] {
            let window = window(stride, dilation, pads, AutoPad::Explicit, false);
            let axis = &window.over(&[9], &[kernel]).unwrap()[0];
            for place in 0..axis.places {
                let taps = (0..kernel).filter(|&tap| axis.element(place, tap).is_some());
                assert!(taps.eq(axis.taps(place)));
                assert_eq!(axis.padded_taps(place), kernel);
            }
            for tap in 0..kernel {
                let places = (0..axis.places).filter(|&place| axis.element(place, tap).is_some());
                assert!(places.eq(axis.places_on_elements(tap)));
            }
        }
    }

    #[test]
    fn hostile_numbers_do_not_overflow() {
        let huge = window(i64::MAX, i64::MAX, [i64::MAX, i64::MAX], AutoPad::Explicit, true);
        assert!(huge.over(&[usize::MAX >> 1], &[usize::MAX >> 1]).is_err());
        let wide = window(1, 1, [i64::MAX / 2, i64::MAX / 2], AutoPad::Explicit, false);
        let axis = &wide.over(&[3], &[2]).unwrap()[0];
        assert_eq!(axis.taps(axis.places - 1), 0..0);
    }
}
