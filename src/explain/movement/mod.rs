//! Index maps of the nodes that move elements, and of chains and trees of such nodes (`merged`), as data and as lines of text (`notation`).

mod merged;
mod notation;

use std::collections::BTreeSet;

pub(crate) use self::merged::merged_maps;
use self::notation::Notation;
use crate::dim::{Dim, Scope};
use crate::index_map::{IndexMap, Position, Region, RegionOrigin, Undecided, Variable};
use crate::ir::{Fact, Facts, Model, Node, NodeId, ValueId};
use crate::ops::{Opset, index_map_of};
use crate::sort;
use crate::tensor::{DType, Tensor};

/// The largest number of maps of a model.
const MOST_MAPS: usize = 1000;

/// The size of an open dim at which ranges are ordered. Most divisors in models divide it.
const EXAMPLE: i64 = 5040;

/// The most positions that are listed, and the most ranges of positions on an axis.
const MOST_POSITIONS: i64 = 512;
const MOST_RANGES: usize = 24;

/// The index map of a result of a node: which element of which operand, or which constant, each element of the result is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MovementMap {
    /// The node: its operator, its name or the name of a result.
    pub node: String,
    /// Its operator.
    pub operator: String,
    /// The nodes above it whose maps are composed with its map: none for the map of the node itself.
    pub above: Vec<String>,
    /// The result.
    pub result: MappedTensor,
    /// The operands whose elements the node moves.
    pub sources: Vec<MappedTensor>,
    /// Boxes of the result, each with one index function.
    pub pieces: Vec<MapPiece>,
    /// Axes that vary together: a source, its axis, and the axis of the result.
    pub links: Vec<(usize, usize, usize)>,
}

/// A result or an operand.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MappedTensor {
    /// The name of the value.
    pub name: String,
    /// The symbol in index functions.
    pub symbol: String,
    /// The axes.
    pub axes: Vec<MappedAxis>,
}

/// An axis, and the elements that the pieces read or write.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MappedAxis {
    /// The size.
    pub size: String,
    /// The size as a number, with an example for each open dim. `None` if the example is no valid size.
    pub extent: Option<i64>,
    /// `true` if the size depends on open dims: then only the order of ranges holds for all sizes, not their proportions.
    pub is_open: bool,
    /// The elements of each piece. Empty if the positions of the piece do not follow the axes.
    pub ranges: Vec<MappedRange>,
}

/// Elements of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MappedRange {
    /// The piece.
    pub piece: usize,
    /// The first element.
    pub start: i64,
    /// The number of elements from the first one to the last one.
    pub len: i64,
    /// The selection within the range.
    pub density: RangeDensity,
    /// `true` if the positions descend while those of the result ascend.
    pub is_reversed: bool,
}

/// The selection within a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RangeDensity {
    /// All elements.
    All,
    /// Some elements, at known positions.
    Some,
    /// Elements at positions that are computed at run time.
    RunTime,
}

/// A box of the result with one index function.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MapPiece {
    /// The variables.
    pub digits: Vec<MapDigit>,
    /// The position on each axis of the result, or one row-major position if the positions do not follow the axes.
    pub to: Vec<String>,
    /// The source; `None` for a constant.
    pub source: Option<usize>,
    /// The position on each axis of the source, one row-major position, or the constant.
    pub from: Vec<String>,
}

/// A variable `start ≤ name < end`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MapDigit {
    /// The name.
    pub name: String,
    /// The least value.
    pub start: String,
    /// The bound above.
    pub end: String,
    /// `true` if the variable runs over all of one axis of the result.
    pub is_axis: bool,
}

/// Returns the known index maps of all results of nodes.
pub(crate) fn movement_maps(model: &Model, facts: &Facts) -> Vec<MovementMap> {
    let graphs = model.graphs().filter(|&graph| model.is_live(graph));
    let nodes = graphs.flat_map(|graph| model.graph(graph).nodes());
    let maps = nodes.flat_map(|id| maps_of_node(model, facts, id)).filter_map(Result::ok);
    maps.take(MOST_MAPS).collect()
}

/// Returns the index map of each result of a node, or the reason why it is unknown. Skips operators that compute elements.
pub(crate) fn maps_of_node(model: &Model, facts: &Facts, id: NodeId) -> Vec<Result<MovementMap, Undecided>> {
    let Some(node) = model.node(id) else { return Vec::new() };
    let map = |value| {
        let (map, sources) = map_over_values(model, facts, value)?;
        described(model, facts, (id, value), &map, &sources)
    };
    let maps = node.outputs().iter().flatten().map(|&value| map(value));
    maps.filter(|map| !matches!(map, Err(Undecided::NoMovement))).collect()
}

/// Returns the index map of a result of a node, and the values that are its sources.
fn map_over_values(model: &Model, facts: &Facts, value: ValueId) -> Result<(IndexMap, Vec<ValueId>), Undecided> {
    let id = model.value(value).producer().ok_or(Undecided::NoMovement)?;
    let node = model.node(id).ok_or(Undecided::NoMovement)?;
    let slot = node.outputs().iter().position(|output| *output == Some(value)).ok_or(Undecided::NoMovement)?;
    let moved = index_map_of(model, facts, id, slot, Opset::of(model, node.graph()).version())?;
    let sources = moved.slots.iter().map(|&slot| node.input(slot).ok_or(Undecided::Operands));
    Ok((moved.map, sources.collect::<Result<_, _>>()?))
}

fn described(
    model: &Model,
    facts: &Facts,
    (id, value): (NodeId, ValueId),
    map: &IndexMap,
    sources: &[ValueId],
) -> Result<MovementMap, Undecided> {
    let name = |value: ValueId| model.value(value).name.to_string();
    let dtype = facts.get(value).and_then(Fact::dtype);
    let mapped = Mapped::of(facts.scope(), map, dtype)?;
    let operator = model.node(id).map_or_else(String::new, Node::operator);
    let names = sources.iter().map(|&source| name(source)).collect();
    Ok(MovementMap { node: model.describe(id), operator, ..mapped.named(name(value), names) })
}

/// The regions of a map with numbers for open dims.
struct Mapped<'a> {
    scope: &'a Scope,
    map: &'a IndexMap,
    regions: Vec<Region>,
    dtype: Option<DType>,
}

impl<'a> Mapped<'a> {
    fn of(scope: &'a Scope, map: &'a IndexMap, dtype: Option<DType>) -> Result<Self, Undecided> {
        Ok(Mapped { scope, map, regions: map.regions(scope)?, dtype })
    }

    fn named(&self, name: String, names: Vec<String>) -> MovementMap {
        let notation = Notation::of(self.scope, self.map, self.regions.len() > 1);
        let mut sources: Vec<MappedTensor> = names
            .into_iter()
            .zip(notation.source_symbols())
            .zip(self.map.sources())
            .map(|((name, symbol), dims)| self.tensor(name, symbol, dims))
            .collect();
        let mut result = self.tensor(name, "out".to_string(), self.map.result());
        let mut links = BTreeSet::new();
        for (piece, region) in self.regions.iter().enumerate() {
            self.add_ranges(&mut result, piece, region, &region.result);
            let RegionOrigin::Source(source, positions) = &region.origin else { continue };
            let lookups =
                positions.iter().flat_map(|position| &position.terms).filter_map(|(_, variable)| match variable {
                    Variable::Lookup(source, at) => Some((source, at)),
                    _ => None,
                });
            for (&source, positions) in std::iter::once((source, positions)).chain(lookups) {
                let Some(tensor) = sources.get_mut(source) else { continue };
                if !self.add_ranges(tensor, piece, region, positions) || region.result.len() != self.map.result().len()
                {
                    continue;
                }
                for (axis, from) in positions.iter().enumerate() {
                    let digits = self.digits_of(region, from);
                    let is_linked =
                        |to: &Position| self.digits_of(region, to).iter().any(|digit| digits.contains(digit));
                    let axes = region.result.iter().enumerate().filter(|(_, to)| is_linked(to));
                    links.extend(axes.map(|(to, _)| (source, axis, to)));
                }
            }
        }
        let pieces = self.regions.iter().map(|region| notation.piece(region, &sources, self.dtype)).collect();
        MovementMap {
            node: String::new(),
            operator: String::new(),
            above: Vec::new(),
            result,
            sources,
            pieces,
            links: links.into_iter().collect(),
        }
    }

    fn tensor(&self, name: String, symbol: String, dims: &[Dim]) -> MappedTensor {
        let axis = |dim: &Dim| MappedAxis {
            size: self.scope.format(dim),
            extent: self.number(dim),
            is_open: dim.as_const().is_none(),
            ranges: Vec::new(),
        };
        MappedTensor { name, symbol, axes: dims.iter().map(axis).collect() }
    }

    /// Returns the value of a dim in which every open dim has the example size.
    fn number(&self, dim: &Dim) -> Option<i64> {
        dim.evaluate(&|symbol| {
            let (low, high) = self.scope.bounds(&Dim::symbol(symbol));
            Some(EXAMPLE.max(low.unwrap_or(0)).min(high.unwrap_or(i64::MAX)))
        })
    }

    /// Returns the digits of a position that vary.
    fn digits_of(&self, region: &Region, position: &Position) -> BTreeSet<usize> {
        let mut found = BTreeSet::new();
        for (_, variable) in &position.terms {
            match variable {
                Variable::Digit(digit) => {
                    found.insert(*digit);
                }
                Variable::Table(digits, _) => found.extend(digits.iter().copied()),
                Variable::Lookup(_, at) => found.extend(at.iter().flat_map(|at| self.digits_of(region, at))),
            }
        }
        found.retain(|&digit| region.digits.get(digit).is_some_and(|digit| !digit.len.is_const(1)));
        found
    }

    /// Adds the elements at these positions to the axes of a tensor. Returns `false` if the positions do not follow the axes.
    fn add_ranges(&self, tensor: &mut MappedTensor, piece: usize, region: &Region, positions: &[Position]) -> bool {
        if positions.len() != tensor.axes.len() {
            // Positions in row-major order that are all elements.
            let total = tensor.axes.iter().try_fold(1i64, |total, axis| total.checked_mul(axis.extent?)).unwrap_or(0);
            let ranges = positions.first().and_then(|position| self.ranges(region, position, piece, total));
            let is_all =
                |range: &MappedRange| range.start == 0 && range.len == total && range.density == RangeDensity::All;
            if let Some([range]) = ranges.as_deref().filter(|ranges| ranges.iter().all(is_all)) {
                for axis in &mut tensor.axes {
                    axis.ranges.push(MappedRange { len: axis.extent.unwrap_or(0), ..*range });
                }
            }
            return false;
        }
        for (axis, position) in tensor.axes.iter_mut().zip(positions) {
            let Some(extent) = axis.extent else { continue };
            let found = self.ranges(region, position, piece, extent).unwrap_or_default();
            let is_inside = |range: &MappedRange| {
                range.start >= 0 && range.start.checked_add(range.len).is_some_and(|end| end <= extent)
            };
            if found.iter().all(is_inside) {
                axis.ranges.extend(found);
            }
        }
        true
    }

    fn ranges(&self, region: &Region, position: &Position, piece: usize, extent: i64) -> Option<Vec<MappedRange>> {
        let digits: Vec<(i64, i64)> = region
            .digits
            .iter()
            .map(|digit| Some((self.number(&digit.start)?, self.number(&digit.len)?)))
            .collect::<Option<_>>()?;
        if digits.iter().any(|(_, len)| *len < 1) {
            return Some(Vec::new());
        }
        let is_reversed = matches!(position.terms.as_slice(), [(weight, Variable::Digit(digit))]
            if self.number(weight)? < 0 && digits.get(*digit)?.1 > 1);
        let range = |start, len, density| MappedRange { piece, start, len, density, is_reversed };
        let terms: Vec<(i64, &Variable)> = position
            .terms
            .iter()
            .map(|(weight, variable)| Some((self.number(weight)?, variable)))
            .collect::<Option<_>>()?;
        if terms.iter().any(|(_, variable)| matches!(variable, Variable::Lookup(..))) {
            return Some(vec![range(0, extent, RangeDensity::RunTime)]);
        }
        let offset = self.number(&position.offset)?;
        let used: Vec<usize> = self.digits_of(region, position).into_iter().collect();
        let count = used.iter().try_fold(1i64, |count, &digit| count.checked_mul(digits.get(digit)?.1));
        if let Some(count) = count.filter(|&count| count <= MOST_POSITIONS) {
            let values: BTreeSet<i64> =
                (0..count).map(|number| value_at(offset, &terms, &digits, &used, number)).collect::<Option<_>>()?;
            let mut runs: Vec<MappedRange> = Vec::new();
            for value in values {
                match runs.last_mut() {
                    Some(run) if run.start.checked_add(run.len)? == value => run.len = run.len.checked_add(1)?,
                    _ => runs.push(range(value, 1, RangeDensity::All)),
                }
            }
            if runs.len() <= MOST_RANGES {
                return Some(runs);
            }
        }
        // The range from the least to the greatest position. It has no gap if each weight is at most the number of positions below the weight.
        let (mut least, mut most) = (offset, offset);
        let mut weights = Vec::new();
        let mut is_dense = true;
        for (weight, variable) in terms {
            let (low, high) = match variable {
                Variable::Digit(digit) => {
                    let (start, len) = *digits.get(*digit)?;
                    (start, start.checked_add(len)?.checked_sub(1)?)
                }
                Variable::Table(_, values) => {
                    is_dense = false;
                    (0, values.iter().copied().max()?)
                }
                Variable::Lookup(..) => return None,
            };
            let ends = (weight.checked_mul(low)?, weight.checked_mul(high)?);
            least = least.checked_add(ends.0.min(ends.1))?;
            most = most.checked_add(ends.0.max(ends.1))?;
            weights.push((weight.checked_abs()?, high.checked_sub(low)?));
        }
        sort::sort(&mut weights);
        let mut reach = 1i64;
        for (weight, steps) in weights.into_iter().filter(|(_, steps)| *steps > 0) {
            is_dense &= weight <= reach;
            reach = reach.checked_add(weight.checked_mul(steps)?)?;
        }
        let len = most.checked_sub(least)?.checked_add(1)?;
        Some(vec![range(least, len, if is_dense { RangeDensity::All } else { RangeDensity::Some })])
    }
}

/// Returns the position at one combination of the used digits, by its number in row-major order.
fn value_at(
    offset: i64,
    terms: &[(i64, &Variable)],
    digits: &[(i64, i64)],
    used: &[usize],
    number: i64,
) -> Option<i64> {
    let mut rest = number;
    let mut at: Vec<i64> = vec![0; digits.len()];
    for &digit in used.iter().rev() {
        let (_, len) = *digits.get(digit)?;
        *at.get_mut(digit)? = rest.checked_rem(len)?;
        rest = rest.checked_div(len)?;
    }
    let mut sum = offset;
    for (weight, variable) in terms {
        let value = match variable {
            Variable::Digit(digit) => digits.get(*digit)?.0.checked_add(*at.get(*digit)?)?,
            Variable::Table(own, values) => {
                let place = own.iter().try_fold(0i64, |place, &digit| {
                    place.checked_mul(digits.get(digit)?.1)?.checked_add(*at.get(digit)?)
                });
                *values.get(usize::try_from(place?).ok()?)?
            }
            Variable::Lookup(..) => return None,
        };
        sum = sum.checked_add(weight.checked_mul(value)?)?;
    }
    Some(sum)
}

/// Formats one element.
fn element_text(element: &Tensor) -> Option<String> {
    if let Some(value) = element.to_i64s().and_then(|values| values.first().copied()) {
        return Some(value.to_string());
    }
    let value = element.to_f64s()?.first().copied()?;
    Some(if element.dtype() == DType::Double { value.to_string() } else { (value as f32).to_string() })
}

#[cfg(test)]
mod tests;
