//! Index maps as text: `out[i, j] = data[2·i + 1, W − 1 − j]`, and a line for each piece: `n ≤ i < n + m: out[i] = b[i − n]`.

use std::collections::{BTreeMap, BTreeSet};

use super::{MapDigit, MapPiece, MappedTensor, MovementMap, element_text};
use crate::dim::{Dim, Scope};
use crate::index_map::{Fill, IndexMap, Position, Region, RegionOrigin, Variable};
use crate::tensor::DType;

/// The most lines of a map, and the most entries of a table.
const MOST_LINES: usize = 16;
const MOST_ENTRIES: usize = 8;

impl MovementMap {
    /// Returns the lines of the map: one for each piece, but one for all pieces with the most frequent constant.
    pub fn lines(&self) -> Vec<String> {
        if self.result.axes.iter().any(|axis| axis.size == "0") {
            return vec!["out has no elements".to_string()];
        }
        let mut constants: BTreeMap<&[String], usize> = BTreeMap::new();
        for piece in self.pieces.iter().filter(|piece| piece.source.is_none()) {
            *constants.entry(&piece.from).or_default() += 1;
        }
        let most = constants
            .iter()
            .max_by_key(|(from, count)| (from.iter().eq(["0"]), **count))
            .filter(|(_, count)| **count < self.pieces.len());
        let is_rest = |piece: &MapPiece| piece.source.is_none() && most.is_some_and(|(from, _)| **from == piece.from);
        let mut lines: Vec<String> =
            self.pieces.iter().filter(|piece| !is_rest(piece)).map(|piece| self.line(piece)).collect();
        if let Some(more) = lines.len().checked_sub(MOST_LINES).filter(|more| *more > 0) {
            lines.truncate(MOST_LINES);
            lines.push(format!("{more} more pieces"));
        }
        if let Some(piece) = self.pieces.iter().find(|piece| is_rest(piece)) {
            lines.push(format!("otherwise: {}", piece.from.join(", ")));
        }
        lines
    }

    /// Returns the names and shapes of the symbols as one line.
    pub fn legend(&self) -> String {
        let tensors = std::iter::once(&self.result).chain(&self.sources);
        let one = |tensor: &MappedTensor| {
            let sizes: Vec<String> = tensor.axes.iter().map(|axis| math(&axis.size)).collect();
            format!("{} = '{}' [{}]", tensor.symbol, tensor.name, sizes.join(", "))
        };
        tensors.map(one).collect::<Vec<_>>().join("; ")
    }

    fn line(&self, piece: &MapPiece) -> String {
        let range = |digit: &MapDigit| format!("{} ≤ {} < {}", digit.start, digit.name, digit.end);
        let ranges: Vec<String> = piece.digits.iter().filter(|digit| !digit.is_axis).map(range).collect();
        let ranges = if ranges.is_empty() { String::new() } else { format!("{}: ", ranges.join(", ")) };
        let to = element("out", self.result.axes.len(), &piece.to);
        let from = match piece.source.and_then(|source| self.sources.get(source)) {
            Some(source) => element(&source.symbol, source.axes.len(), &piece.from),
            None => piece.from.join(", "),
        };
        format!("{ranges}{to} = {from}")
    }
}

/// Formats an element of a tensor at positions: one per axis, or one in row-major order.
fn element(symbol: &str, rank: usize, positions: &[String]) -> String {
    match positions.len() == rank {
        true if rank == 0 => symbol.to_string(),
        true => format!("{symbol}[{}]", positions.join(", ")),
        false => format!("{symbol}.flat[{}]", positions.join(", ")),
    }
}

/// Formats positions over the variables of a map.
pub(super) struct Notation<'a> {
    scope: &'a Scope,
    map: &'a IndexMap,
    has_pieces: bool,
    /// The names of dims. Variables and operands get other names.
    used: BTreeSet<String>,
}

impl<'a> Notation<'a> {
    pub fn of(scope: &'a Scope, map: &'a IndexMap, has_pieces: bool) -> Self {
        let dims = map.result().iter().chain(map.sources().iter().flatten());
        let used = dims.flat_map(Dim::symbols).map(|symbol| scope.name(symbol).to_string()).collect();
        Notation { scope, map, has_pieces, used }
    }

    /// Returns the symbols of the operands: `data` for one, letters for some, numbers for many.
    pub fn source_symbols(&self) -> Vec<String> {
        let count = self.map.sources().len();
        let letters: Vec<String> = ('a'..='h').map(String::from).filter(|name| !self.used.contains(name)).collect();
        match count {
            0 | 1 => vec!["data".to_string()],
            _ if count <= letters.len() => letters,
            _ => (0..count).map(|number| format!("s{number}")).collect(),
        }
    }

    /// Returns the names of variables.
    fn names(&self) -> impl Iterator<Item = String> {
        let names = ('i'..='z').map(String::from).chain((0..).map(|number| format!("i{number}")));
        names.filter(|name| !self.used.contains(name))
    }

    pub fn piece(&self, region: &Region, sources: &[MappedTensor], dtype: Option<DType>) -> MapPiece {
        // Names follow the order of the result. In cut axes, an axis has the same name in all pieces, also where it is constant.
        let mut order: Vec<Option<usize>> = Vec::new();
        for position in &region.result {
            let digits = position.terms.iter().map(|(_, variable)| match variable {
                Variable::Digit(digit) => Some(*digit),
                _ => None,
            });
            order.extend(digits);
            if position.terms.is_empty() && self.has_pieces {
                order.push(None);
            }
        }
        let writer = Writer { notation: self, region, sources, order: &order };
        let is_flat = region.result.len() != self.map.result().len();
        let is_axis = |digit: usize| {
            let is_whole = |(position, size): (&Position, &Dim)| {
                let is_alone = matches!(position.terms.as_slice(), [(weight, Variable::Digit(own))] if weight.is_const(1) && *own == digit);
                let range = region.digits.get(digit);
                is_alone
                    && range.is_some_and(|range| range.start.is_const(0) && self.scope.eq(&range.len, size).is_yes())
            };
            !is_flat && region.result.iter().zip(self.map.result()).any(is_whole)
        };
        let digits = order.iter().filter_map(|&digit| {
            let digit = digit?;
            let range = region.digits.get(digit)?;
            Some(MapDigit {
                name: writer.name(digit),
                start: self.text(&range.start),
                end: self.text(&self.scope.add(&range.start, &range.len)),
                is_axis: is_axis(digit),
            })
        });
        let (source, from) = match &region.origin {
            RegionOrigin::Source(source, positions) => {
                (Some(*source), positions.iter().map(|position| writer.position(position)).collect())
            }
            RegionOrigin::Fill(fill) => (None, vec![fill_text(*fill, dtype)]),
        };
        let to = region.result.iter().map(|position| writer.position(position)).collect();
        MapPiece { digits: digits.collect(), to, source, from }
    }

    fn text(&self, dim: &Dim) -> String {
        math(&self.scope.format(dim))
    }
}

fn fill_text(fill: Fill, dtype: Option<DType>) -> String {
    let element = dtype.and_then(|dtype| fill.to_element(dtype));
    element.as_ref().and_then(element_text).unwrap_or_else(|| "a constant".to_string())
}

struct Writer<'a> {
    notation: &'a Notation<'a>,
    region: &'a Region,
    sources: &'a [MappedTensor],
    order: &'a [Option<usize>],
}

impl Writer<'_> {
    fn name(&self, digit: usize) -> String {
        let at = self.order.iter().position(|own| *own == Some(digit));
        at.and_then(|at| self.notation.names().nth(at)).unwrap_or_else(|| "?".to_string())
    }

    /// Formats a position, positive terms first: `2·i + 1`, `W − 1 − j`.
    fn position(&self, position: &Position) -> String {
        let scope = self.notation.scope;
        let (mut added, mut subtracted) = (Vec::new(), Vec::new());
        for (weight, variable) in &position.terms {
            let is_negative = scope.le(weight, &Dim::constant(-1)).is_yes();
            let size = if is_negative { scope.neg(weight) } else { weight.clone() };
            let variable = self.variable(variable);
            let text = self.notation.text(&size);
            let product = match size.term_count() {
                _ if size.is_const(1) => variable,
                0 | 1 => format!("{text}·{variable}"),
                _ => format!("({text})·{variable}"),
            };
            if is_negative { subtracted.push(product) } else { added.push(product) }
        }
        let offset = self.notation.text(&position.offset);
        if !position.offset.is_const(0) || added.is_empty() && subtracted.is_empty() {
            added.push(offset);
        }
        if added.is_empty() {
            added.push("0".to_string());
        }
        let mut text = String::new();
        for (at, part) in added.iter().enumerate() {
            match (at, part.strip_prefix('−')) {
                (0, _) => text.push_str(part),
                (_, Some(part)) => text.extend([" − ", part]),
                (_, None) => text.extend([" + ", part.as_str()]),
            }
        }
        subtracted.iter().for_each(|part| text.extend([" − ", part.as_str()]));
        text
    }

    fn variable(&self, variable: &Variable) -> String {
        match variable {
            Variable::Digit(digit) => self.name(*digit),
            Variable::Table(digits, values) => {
                let mut entries: Vec<String> = values.iter().take(MOST_ENTRIES).map(i64::to_string).collect();
                if let Some(more) = values.len().checked_sub(MOST_ENTRIES).filter(|more| *more > 0) {
                    entries.push(format!("… {more} more"));
                }
                let at: Vec<String> = digits.iter().map(|&digit| self.local_index(digit)).collect();
                format!("[{}][{}]", entries.join(", "), at.join(", "))
            }
            Variable::Lookup(source, positions) => {
                let at: Vec<String> = positions.iter().map(|position| self.position(position)).collect();
                let source = self.sources.get(*source);
                source.map_or_else(String::new, |source| element(&source.symbol, source.axes.len(), &at))
            }
        }
    }

    /// Formats the distance of a digit from its start.
    fn local_index(&self, digit: usize) -> String {
        let one = (Dim::constant(1), Variable::Digit(digit));
        let start = self.region.digits.get(digit).map_or(Dim::constant(0), |digit| digit.start.clone());
        self.position(&Position { offset: self.notation.scope.neg(&start), terms: vec![one] })
    }
}

/// Replaces operators by mathematical signs, except in quoted names.
fn math(text: &str) -> String {
    let parts = text.split_inclusive(['\'', '"']).enumerate();
    let signs = |part: &str| part.replace("**", "^").replace('*', "·").replace('-', "−");
    parts.map(|(at, part)| if at % 2 == 0 { signs(part) } else { part.to_string() }).collect()
}
