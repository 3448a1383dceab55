//! The loops that copy strided elements of whole bytes.
//!
//! Memory access dominates: the loops read and write each cache line once, in runs, on few pages. The output is contiguous along
//! the last axis of a view, the input along the axis of the smallest stride. If these are the same axis, rows are copied
//! (`fill_rows`). Else tiles that fit the L1 cache are transposed (`transpose`).
//!
//! An element has `N` bytes, a power of two or not: a pixel of three bytes moves as one (`widened`). Elements are `[u8; N]`,
//! because payloads in a mapped file may be unaligned, which costs no time on current processors.
#![allow(
    clippy::indexing_slicing,
    reason = "gather checks that a view stays inside its tensor before anything is copied; the loops run over every element"
)]

use super::index::Strides;
use super::strided::StridedView;
use super::threads;

/// The size of a cache line in bytes.
const LINE: usize = 64;

/// The elements per row processed at a time, if rows share lines: with one line per element, an eighth of the L2 cache.
const STRETCH: usize = 1024;

/// The minimum output in bytes for several threads.
const PARALLEL: usize = 4 << 20;

/// Copies a view of elements of 1, 2, 4, 8 or 16 bytes. The view must be coalesced, not empty, within `source`, and have as many
/// elements as `out`.
pub(super) fn copy(source: &[u8], view: &StridedView, width: usize, out: &mut [u8]) {
    let (view, width) = widened(view, width);
    match width {
        1 => copy_elements::<1, 64>(source, &view, out),
        2 => copy_elements::<2, 64>(source, &view, out),
        3 => copy_elements::<3, 32>(source, &view, out),
        4 => copy_elements::<4, 32>(source, &view, out),
        6 => copy_elements::<6, 16>(source, &view, out),
        8 => copy_elements::<8, 16>(source, &view, out),
        12 => copy_elements::<12, 8>(source, &view, out),
        16 => copy_elements::<16, 8>(source, &view, out),
        _ => debug_assert!(false, "no element is {width} bytes wide"),
    }
}

/// Merges short rows into wider elements, if each row begins at a multiple of its length: `[.., 2]` of 4 bytes is `[..]` of 8
/// bytes.
fn widened(view: &StridedView, width: usize) -> (StridedView, usize) {
    let unchanged = (view.clone(), width);
    let (Some((&dim, outer_dims)), Some((&1, outer_strides))) =
        (view.shape().split_last(), view.strides().split_last())
    else {
        return unchanged;
    };
    let wide = dim.saturating_mul(width);
    let whole = |elements: &isize| elements % dim as isize == 0;
    if !matches!(wide, 2 | 3 | 4 | 6 | 8 | 12 | 16) || !whole(&view.offset()) || !outer_strides.iter().all(whole) {
        return unchanged;
    }
    let strides: Strides = outer_strides.iter().map(|stride| stride / dim as isize).collect();
    StridedView::new(outer_dims, &strides, view.offset() / dim as isize)
        .map_or(unchanged, |view| (view.coalesced(), wide))
}

fn copy_elements<const N: usize, const TILE: usize>(source: &[u8], view: &StridedView, out: &mut [u8]) {
    // The output contains whole elements. After merging rows, the source may end with a partial element, which no row reads.
    split::<N, TILE>(source.as_chunks().0, view, out.as_chunks_mut().0);
}

/// Splits large copies along their outermost axis for two threads. The split position does not depend on the number of threads.
fn split<const N: usize, const TILE: usize>(source: &[[u8; N]], view: &StridedView, out: &mut [[u8; N]]) {
    let plane = Plane::of(view);
    // Splitting the contiguous input axis into parts smaller than tiles would read its lines repeatedly.
    let unit = if plane.transposes::<N>() && plane.row == 0 { TILE } else { 1 };
    let dim = view.shape().first().copied().unwrap_or(1);
    let middle = (dim / 2).next_multiple_of(unit);
    if size_of_val(out) < PARALLEL || middle == 0 || middle >= dim {
        return fill::<N, TILE>(source, view, &plane, out);
    }
    let (Ok(front), Ok(back)) = (view.slice_axis(0, 0, 1, middle), view.slice_axis(0, middle, 1, dim - middle)) else {
        return fill::<N, TILE>(source, view, &plane, out);
    };
    let inner = out.len() / dim;
    let (front_out, back_out) = out.split_at_mut(middle * inner);
    threads::join(
        || split::<N, TILE>(source, &front.coalesced(), front_out),
        || split::<N, TILE>(source, &back.coalesced(), back_out),
    );
}

/// The two axes of the inner loops: the last axis, which is contiguous in the output, and another one.
struct Plane {
    /// The other axis: the contiguous input axis, or the second-to-last axis if the input is contiguous along the last.
    row: usize,
    rows: usize,
    columns: usize,
    /// The source strides.
    row_stride: isize,
    column_stride: isize,
    /// The output stride of a row, in elements.
    row_pitch: usize,
}

impl Plane {
    fn of(view: &StridedView) -> Plane {
        let (dims, strides) = (view.shape(), view.strides());
        let last = dims.len().saturating_sub(1);
        let columns = dims.last().copied().unwrap_or(1);
        let column_stride = strides.last().copied().unwrap_or(1);
        let moving = (0..dims.len()).rev().filter(|&axis| strides[axis] != 0);
        let fastest = moving.min_by_key(|&axis| strides[axis].unsigned_abs()).unwrap_or(last);
        let row = if column_stride == 0 || fastest == last { last.checked_sub(1) } else { Some(fastest) };
        match row {
            None => Plane { row: 0, rows: 1, columns, row_stride: 0, column_stride, row_pitch: columns },
            Some(row) => Plane {
                row,
                rows: dims[row],
                columns,
                row_stride: strides[row],
                column_stride,
                row_pitch: dims[row + 1..].iter().product(),
            },
        }
    }

    /// Returns `true` if the input is contiguous along the row axis and the lines of a row are too far apart to read row by row.
    fn transposes<const N: usize>(&self) -> bool {
        self.row_stride != 0
            && self.row_stride.unsigned_abs() < self.column_stride.unsigned_abs()
            && self.column_stride.unsigned_abs() * N >= LINE
    }
}

/// Fills the output on this thread, plane by plane.
fn fill<const N: usize, const TILE: usize>(source: &[[u8; N]], view: &StridedView, plane: &Plane, out: &mut [[u8; N]]) {
    let mut outer = Outer::new(view, plane);
    loop {
        let (start, out) = (outer.source, &mut out[outer.out..]);
        if plane.transposes::<N>() {
            transpose::<N, TILE>(source, start, plane, out);
        } else {
            fill_rows(source, start, plane, out);
        }
        if !outer.advance() {
            return;
        }
    }
}

/// Iterates over the axes outside of a plane.
struct Outer {
    axes: smallvec::SmallVec<[Wheel; 4]>,
    /// The source index of the current plane.
    source: isize,
    out: usize,
}

struct Wheel {
    dim: usize,
    at: usize,
    stride: isize,
    pitch: usize,
}

impl Outer {
    fn new(view: &StridedView, plane: &Plane) -> Outer {
        let mut axes = smallvec::SmallVec::new();
        let mut pitch = 1;
        let last = view.rank().saturating_sub(1);
        for (axis, (&dim, &stride)) in view.shape().iter().zip(view.strides()).enumerate().rev() {
            if axis != last && axis != plane.row {
                axes.push(Wheel { dim, at: 0, stride, pitch });
            }
            pitch *= dim;
        }
        Outer { axes, source: view.offset(), out: 0 }
    }

    /// Advances to the next plane; returns `false` after the last.
    fn advance(&mut self) -> bool {
        for wheel in &mut self.axes {
            wheel.at += 1;
            if wheel.at < wheel.dim {
                self.source += wheel.stride;
                self.out += wheel.pitch;
                return true;
            }
            let back = wheel.dim - 1;
            self.source -= back as isize * wheel.stride;
            self.out -= back * wheel.pitch;
            wheel.at = 0;
        }
        false
    }
}

/// Copies the rows of a plane. Rows that read the same lines are processed together, a stretch at a time, so that the lines are
/// still cached for the last of them.
fn fill_rows<const N: usize>(source: &[[u8; N]], start: isize, plane: &Plane, out: &mut [[u8; N]]) {
    if plane.row_pitch == plane.columns {
        let out = &mut out[..plane.rows * plane.columns];
        if fill_short_rows(source, start, plane, out) {
            return;
        }
    }
    let shared = plane.row_stride.unsigned_abs() < plane.column_stride.unsigned_abs();
    let stretch = if shared { STRETCH } else { plane.columns };
    let mut column = 0;
    while column < plane.columns {
        let len = stretch.min(plane.columns - column);
        let mut start = start + column as isize * plane.column_stride;
        for out in out[column..].chunks_mut(plane.row_pitch).take(plane.rows) {
            fill_row(source, start, plane.column_stride, &mut out[..len]);
            start += plane.row_stride;
        }
        column += len;
    }
}

/// Copies rows of a few elements, with a length known at compile time; returns `false` for other lengths.
fn fill_short_rows<const N: usize>(source: &[[u8; N]], start: isize, plane: &Plane, out: &mut [[u8; N]]) -> bool {
    match (plane.columns, plane.column_stride) {
        (1, _) => fill_row(source, start, plane.row_stride, out),
        (2, 1) => fill_runs::<N, 2>(source, start, plane, out),
        (3, 1) => fill_runs::<N, 3>(source, start, plane, out),
        (4, 1) => fill_runs::<N, 4>(source, start, plane, out),
        (5, 1) => fill_runs::<N, 5>(source, start, plane, out),
        (6, 1) => fill_runs::<N, 6>(source, start, plane, out),
        (7, 1) => fill_runs::<N, 7>(source, start, plane, out),
        (8, 1) => fill_runs::<N, 8>(source, start, plane, out),
        (2, _) => fill_picks::<N, 2>(source, start, plane, out),
        (3, _) => fill_picks::<N, 3>(source, start, plane, out),
        (4, _) => fill_picks::<N, 4>(source, start, plane, out),
        _ => return false,
    }
    true
}

/// Copies rows of `R` contiguous elements.
fn fill_runs<const N: usize, const R: usize>(source: &[[u8; N]], start: isize, plane: &Plane, out: &mut [[u8; N]]) {
    let mut at = start;
    for row in out.as_chunks_mut::<R>().0 {
        row.copy_from_slice(&source[at as usize..][..R]);
        at += plane.row_stride;
    }
}

/// Copies rows of `R` elements at any stride.
fn fill_picks<const N: usize, const R: usize>(source: &[[u8; N]], start: isize, plane: &Plane, out: &mut [[u8; N]]) {
    let mut at = start;
    for row in out.as_chunks_mut::<R>().0 {
        *row = std::array::from_fn(|column| source[(at + column as isize * plane.column_stride) as usize]);
        at += plane.row_stride;
    }
}

/// Copies one row: elements `start + k·stride`. The compiler vectorizes the loops of common strides.
fn fill_row<const N: usize>(source: &[[u8; N]], start: isize, stride: isize, out: &mut [[u8; N]]) {
    let start = start as usize;
    let len = out.len();
    match stride {
        0 => out.fill(source[start]),
        1 => out.copy_from_slice(&source[start..][..len]),
        -1 => {
            let run = &source[start + 1 - len..=start];
            out.iter_mut().zip(run.iter().rev()).for_each(|(to, from)| *to = *from);
        }
        2 => fill_every::<N, 2>(source, start, out),
        3 => fill_every::<N, 3>(source, start, out),
        4 => fill_every::<N, 4>(source, start, out),
        _ => {
            let mut at = start;
            for to in out {
                *to = source[at];
                at = at.wrapping_add_signed(stride);
            }
        }
    }
}

/// Copies every `S`-th element.
fn fill_every<const N: usize, const S: usize>(source: &[[u8; N]], start: usize, out: &mut [[u8; N]]) {
    // The last element may not have a whole group after it.
    let Some((last, front)) = out.split_last_mut() else { return };
    let span = front.len() * S;
    let groups = source[start..][..span].as_chunks::<S>().0;
    front.iter_mut().zip(groups).for_each(|(to, group)| *to = group[0]);
    *last = source[start + span];
}

/// Copies a plane whose input is contiguous along the row axis, tile by tile: reads a tile along the input, transposes it, and
/// writes it along the output. Each line is accessed once, so conflicts between lines a power of two apart do not matter.
fn transpose<const N: usize, const TILE: usize>(source: &[[u8; N]], start: isize, plane: &Plane, out: &mut [[u8; N]]) {
    let mut tile = [[[0u8; N]; TILE]; TILE];
    let mut turned = [[[0u8; N]; TILE]; TILE];
    for column in (0..plane.columns).step_by(TILE) {
        let columns = TILE.min(plane.columns - column);
        for row in (0..plane.rows).step_by(TILE) {
            let rows = TILE.min(plane.rows - row);
            let mut at = start + column as isize * plane.column_stride + row as isize * plane.row_stride;
            for line in &mut tile[..columns] {
                fill_row(source, at, plane.row_stride, &mut line[..rows]);
                at += plane.column_stride;
            }
            turn(&tile, &mut turned, rows, columns);
            let out = &mut out[row * plane.row_pitch + column..];
            for (line, out) in turned[..rows].iter().zip(out.chunks_mut(plane.row_pitch)) {
                out[..columns].copy_from_slice(&line[..columns]);
            }
        }
    }
}

/// `turned[row][column] = tile[column][row]` for at least the given rows and columns.
///
/// Elements of 1, 2 and 4 bytes are transposed in words: exchanges halves of pairs of words, then quarters, then eighths.
fn turn<const N: usize, const TILE: usize>(
    tile: &[[[u8; N]; TILE]; TILE],
    turned: &mut [[[u8; N]; TILE]; TILE],
    rows: usize,
    columns: usize,
) {
    const WORD: usize = size_of::<u64>();
    if !matches!(N, 1 | 2 | 4) {
        for (row, line) in turned[..rows].iter_mut().enumerate() {
            line[..columns].iter_mut().zip(tile).for_each(|(to, from)| *to = from[row]);
        }
        return;
    }
    let side = WORD / N;
    for row in (0..rows).step_by(side) {
        for column in (0..columns).step_by(side) {
            let mut words = [0u64; WORD];
            for (word, line) in words[..side].iter_mut().zip(&tile[column..]) {
                let mut bytes = [0; WORD];
                bytes.copy_from_slice(line[row..][..side].as_flattened());
                *word = u64::from_le_bytes(bytes);
            }
            let mut apart = 1;
            while apart < side {
                let shift = 8 * N * apart;
                // The lower of each two groups of `shift` bits.
                let lower = u64::MAX / ((1 << shift) + 1);
                for at in (0..side).filter(|at| at & apart == 0) {
                    let swap = (words[at] >> shift ^ words[at + apart]) & lower;
                    words[at] ^= swap << shift;
                    words[at + apart] ^= swap;
                }
                apart *= 2;
            }
            for (word, line) in words[..side].iter().zip(&mut turned[row..]) {
                line[column..][..side].as_flattened_mut().copy_from_slice(&word.to_le_bytes());
            }
        }
    }
}
