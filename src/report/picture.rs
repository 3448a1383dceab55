//! Pictures of index maps: bars for the axes of operands (left) and of the result (right), and a line between axes that vary
//! together. A picture is an SVG element without styles; `picture.css` styles it on all pages. Positions along a bar are
//! percentages, so a picture fits any width and its text keeps its size.

use std::fmt::Write as _;

use super::markup::escaped;
use super::table::cut;
use crate::explain::{MappedAxis, MappedRange, MappedTensor, MovementMap, RangeDensity};
use crate::sort;

/// The largest number of drawn operands.
const MOST_SOURCES: usize = 4;
/// The largest number of characters of a label, which has about 130 px on a narrow page.
const LABEL: usize = 18;
/// The number of colours.
const COLOURS: usize = 6;
/// The largest number of operands that a bar draws above each other.
const MOST_LANES: usize = 4;
/// The largest size of an axis with drawn borders between elements.
const MOST_TICKS: i64 = 32;
/// The smallest share of an axis with room for a letter.
const LETTER: f64 = 9.0;

/// In pixels: the height of a heading, of a label above a bar, of a bar, and of an axis.
const HEADING: usize = 20;
const ABOVE: usize = 16;
const BAR: usize = 14;
const ROW: usize = 38;

/// Columns: the width of each side's bars and the left end of the result, in percent.
const WIDTH: usize = 42;
const RIGHT: usize = 58;

impl MovementMap {
    /// Returns the map as an SVG element.
    pub fn svg(&self) -> String {
        let drawn = self.sources.get(..MOST_SOURCES).unwrap_or(&self.sources);
        let rows = |tensor: &MappedTensor| HEADING.saturating_add(ROW.saturating_mul(tensor.axes.len()));
        let mut left = 0usize;
        let mut tops = Vec::new();
        let mut body = String::new();
        for (number, source) in drawn.iter().enumerate() {
            tops.push(left);
            self.column(&mut body, source, (0, left), Some(number));
            left = left.saturating_add(rows(source));
        }
        if let Some(more) = self.sources.len().checked_sub(MOST_SOURCES).filter(|more| *more > 0) {
            let _ = write!(
                body,
                "<text x=\"0\" y=\"{}\">and {more} more operands</text>",
                left.saturating_add(HEADING - 6)
            );
            left = left.saturating_add(HEADING);
        }
        self.column(&mut body, &self.result, (RIGHT, 0), None);
        for &(source, axis, to) in &self.links {
            let Some(top) = tops.get(source) else { continue };
            let middle = |top: usize, axis: usize| {
                top.saturating_add(HEADING + ABOVE + BAR / 2).saturating_add(ROW.saturating_mul(axis))
            };
            let _ = write!(
                body,
                "<line class=\"link source{}\" x1=\"{WIDTH}%\" y1=\"{}\" x2=\"{RIGHT}%\" y2=\"{}\"/>",
                source % COLOURS,
                middle(*top, axis),
                middle(0, to)
            );
        }
        let height = left.max(rows(&self.result));
        let label = escaped(&cut(&format!("index map of {}", self.node), 100));
        let text = escaped(&self.lines().join("; "));
        format!(
            "<svg class=\"movement\" role=\"img\" aria-label=\"{label}\" width=\"100%\" height=\"{height}\"><desc>{text}</desc>{body}</svg>"
        )
    }

    fn column(&self, body: &mut String, tensor: &MappedTensor, (x, top): (usize, usize), source: Option<usize>) {
        let key = source.map_or_else(String::new, |number| format!(" source{}", number % COLOURS));
        let heading = escaped(&cut(&tensor.name, LABEL.saturating_sub(tensor.symbol.len())));
        let _ = write!(
            body,
            "<svg x=\"{x}%\" y=\"{top}\" width=\"{WIDTH}%\" height=\"{HEADING}\"><text class=\"heading{key}\" y=\"13\"><tspan>{}</tspan> {heading}</text></svg>",
            tensor.symbol
        );
        for (number, axis) in tensor.axes.iter().enumerate() {
            let y = top.saturating_add(HEADING).saturating_add(ROW.saturating_mul(number));
            let label = escaped(&cut(&format!("axis {number}: {}", axis.size), LABEL));
            let _ = write!(
                body,
                "<svg x=\"{x}%\" y=\"{y}\" width=\"{WIDTH}%\" height=\"{}\"><text y=\"11\">{label}</text><svg y=\"{ABOVE}\" width=\"100%\" height=\"{BAR}\">",
                ABOVE + BAR
            );
            self.bar(body, axis, source);
            body.push_str("</svg></svg>");
        }
    }

    /// Draws the ranges of an axis of the operand `own`, or of the result. Constants are drawn first, below elements of operands at the
    /// same positions. If several operands have elements at the same positions of the axis, each has a lane.
    fn bar(&self, body: &mut String, axis: &MappedAxis, own: Option<usize>) {
        let source = |range: &MappedRange| own.or(self.pieces.get(range.piece)?.source);
        let mut ranges: Vec<(Option<usize>, &MappedRange)> =
            axis.ranges.iter().map(|range| (source(range), range)).collect();
        sort::by_key(&mut ranges, |(source, range)| (*source, range.start));
        ranges.dedup_by_key(|(source, range)| (*source, range.start, range.len, range.density == RangeDensity::All));
        let mut lanes: Vec<usize> = ranges.iter().filter_map(|(source, _)| *source).collect();
        lanes.dedup();
        let ends = |range: &MappedRange| (range.start, range.start.saturating_add(range.len));
        let overlap = ranges.iter().any(|(a, one)| {
            let is_common = |(b, other): &(Option<usize>, &MappedRange)| {
                a.is_some() && b > a && ends(one).0 < ends(other).1 && ends(other).0 < ends(one).1
            };
            ranges.iter().any(is_common)
        });
        lanes.truncate(if overlap { MOST_LANES } else { 1 });
        let height = BAR as f64 / lanes.len().max(1) as f64;
        let scale = Scale::of(axis);
        let mut letters = String::new();
        for (source, range) in ranges {
            let (begin, end) = (scale.share(ends(range).0), scale.share(ends(range).1));
            let width = (end - begin).max(0.6);
            let lane = source.and_then(|source| lanes.iter().position(|lane| *lane == source)).unwrap_or(0);
            let top = if source.is_some() { lane as f64 * height } else { 0.0 };
            let height = if source.is_some() { height } else { BAR as f64 };
            let key = source.map_or_else(String::new, |source| format!(" source{}", source % COLOURS));
            let class = match (source, range.density) {
                (None, _) => "constant",
                (_, RangeDensity::All) => "all",
                (_, RangeDensity::Some) => "some",
                (_, RangeDensity::RunTime) => "at-run-time",
            };
            let _ = match class {
                "all" => write!(
                    body,
                    "<rect class=\"all{key}\" x=\"{begin:.2}%\" y=\"{top}\" width=\"{width:.2}%\" height=\"{height}\"/>"
                ),
                class => write!(
                    body,
                    "<line class=\"{class}{key}\" x1=\"{begin:.2}%\" x2=\"{end:.2}%\" y1=\"{0}\" y2=\"{0}\" stroke-width=\"{height}\"/>",
                    top + height / 2.0
                ),
            };
            let symbol = source.and_then(|source| self.sources.get(source)).map_or("", |source| source.symbol.as_str());
            let letter = match (own, self.sources.len()) {
                (Some(_), _) if range.is_reversed => "←",
                (None, 2..) if !overlap => symbol,
                _ => "",
            };
            if !letter.is_empty() && width >= LETTER && class == "all" {
                let _ = write!(letters, "<text x=\"{:.2}%\" y=\"11\">{letter}</text>", begin + width / 2.0);
            }
        }
        for tick in 1..scale.ticks() {
            let at = scale.share(tick);
            let _ = write!(body, "<line class=\"tick\" x1=\"{at:.2}%\" x2=\"{at:.2}%\" y1=\"0\" y2=\"{BAR}\"/>");
        }
        let class = if axis.is_open || axis.extent.is_none() { "axis open" } else { "axis" };
        let _ =
            write!(body, "<rect class=\"{class}\" width=\"100%\" height=\"{BAR}\"/><g class=\"letter\">{letters}</g>");
    }
}

/// The positions along a bar: to scale for a constant size, else with equal distances between the borders of the ranges.
struct Scale {
    extent: i64,
    /// The borders of the ranges of an axis of unknown size.
    borders: Option<Vec<i64>>,
}

impl Scale {
    fn of(axis: &MappedAxis) -> Scale {
        let extent = axis.extent.unwrap_or(0);
        let ends = |range: &MappedRange| [range.start, range.start.saturating_add(range.len)];
        let borders = axis.is_open.then(|| {
            let mut borders: Vec<i64> = axis.ranges.iter().flat_map(ends).chain([0, extent]).collect();
            borders.sort_unstable();
            borders.dedup();
            borders
        });
        Scale { extent, borders }
    }

    /// Returns the percentage of the width before a position.
    fn share(&self, at: i64) -> f64 {
        let (part, whole) = match &self.borders {
            Some(borders) => {
                (borders.partition_point(|border| *border < at) as f64, borders.len().saturating_sub(1) as f64)
            }
            None => (at as f64, self.extent as f64),
        };
        if whole > 0.0 { part / whole * 100.0 } else { 0.0 }
    }

    /// Returns the number of elements, if borders between them are drawn, else 0.
    fn ticks(&self) -> i64 {
        if self.borders.is_none() && self.extent <= MOST_TICKS { self.extent } else { 0 }
    }
}
