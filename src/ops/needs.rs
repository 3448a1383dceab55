//! What a run that succeeds needs of the sizes.
//!
//! Some operators refuse some sizes, whatever the data: a model that has such a node on its main path cannot run on them, so
//! for every run that gives a result the opposite holds. Only refusals that the standard states and the runtimes carry
//! out are used:
//!
//! * a Reshape cannot tell what −1 stands for when its other sizes multiply to 0, be the −1 a computed one;
//! * a Gather with a fixed index needs that many entries;
//! * a Resize wants positive scales, and `0 / 0` is none: what is a multiple of a size, divided by the size, needs a size that is not 0;
//! * no integer is divided by 0;
//! * no tensor has a negative dim: a convolution whose kernel does not fit has no result.

use super::Walk;
use crate::dim::{Dim, Scope, Symbol};
use crate::ir::{Attribute, Fact, Model, Node, Scalar, ValueId};
use crate::tensor::DType;

/// How many expressions are noted not to be negative: each is looked at by later proofs.
const MOST_RELATIONS: usize = 32;

impl Walk {
    /// Tightens the bounds of symbols by what the nodes of the main graph need. Returns whether anything was learned; what was
    /// stated before is still true, but may be said more simply.
    pub fn learn(&mut self, model: &Model) -> bool {
        let mut learned = false;
        let mut relations = MOST_RELATIONS;
        for node in model.graph(model.main()).nodes().filter_map(|id| model.node(id)) {
            let needs = if node.is("Reshape") {
                self.reshape_needs(node)
            } else if node.is("Gather") {
                self.gather_needs(node)
            } else if node.is("Resize") || node.is("Upsample") {
                self.resize_needs(model, node)
            } else if node.is("Div") || node.is("Mod") {
                self.division_needs(node)
            } else {
                None
            };
            for (dim, least) in needs.unwrap_or_default() {
                learned |= at_least(&self.scope, &dim, least);
            }
            let results = node.outputs().iter().flatten().filter_map(|&value| self.facts.get(value)?.shape());
            for symbol in results.clone().flatten().filter_map(Dim::as_symbol) {
                if !self.scope.is_of_sizes(&Dim::symbol(symbol)) {
                    self.scope.set_size(symbol);
                    learned = true;
                }
            }
            for dim in results.flatten().filter(|dim| dim.as_const().is_none() && dim.as_symbol().is_none()) {
                if relations > 0 && !self.scope.ge(dim, &Dim::constant(0)).is_yes() {
                    relations -= 1;
                    learned = true;
                    self.scope.assume_le(&Dim::constant(0), dim);
                }
            }
        }
        learned
    }

    fn fact(&self, node: &Node, input: usize) -> Option<&Fact> {
        self.facts.get(node.input(input)?)
    }

    fn reshape_needs(&self, node: &Node) -> Option<Vec<(Dim, i64)>> {
        // With `allowzero` ONNX Runtime leaves the zeros out of the product, and succeeds.
        if matches!(node.attribute("allowzero"), Some(Attribute::Int(flag)) if *flag != 0) {
            return None;
        }
        let target = self.fact(node, 1)?.ints()?;
        let Some(open) = target.iter().position(|size| size.is_const(-1)) else {
            return Some(self.never_open(&target, self.fact(node, 0)?.shape()?));
        };
        let output = self.facts.get(node.output(0)?)?.shape()?;
        (output.len() == target.len()).then(|| {
            let others = output.iter().enumerate().filter(|(axis, _)| *axis != open);
            others.map(|(_, dim)| (dim.clone(), 1)).collect()
        })
    }

    /// The symbols that are not 0 because an entry of the target would be −1 then, beside another one that gives 0: so
    /// `[S, 2·S − 1]` needs an `S` of 1.
    fn never_open(&self, target: &[Dim], operand: &[Dim]) -> Vec<(Dim, i64)> {
        const LONGEST: usize = 64;
        if target.len() > LONGEST {
            return Vec::new();
        }
        let mut symbols: Vec<Symbol> = target.iter().flat_map(Dim::symbols).collect();
        symbols.sort_unstable();
        symbols.dedup();
        symbols.retain(|&symbol| {
            let at_zero = |dim: &Dim| self.scope.substitute(dim, &|other| (other == symbol).then(|| Dim::constant(0)));
            let mut sizes = target.iter().map(at_zero).enumerate();
            // An entry of 0 copies the operand's dim.
            let empty = |(axis, size): (usize, Dim)| {
                size.is_const(0) && operand.get(axis).is_some_and(|copied| at_zero(copied).is_const(0))
            };
            sizes.clone().any(|(_, size)| size.is_const(-1)) && sizes.any(empty)
        });
        symbols.into_iter().map(|symbol| (Dim::symbol(symbol), 1)).collect()
    }

    /// The divisors of the quotients among the scales, directly or joined from parts, where the dividend is a multiple of them.
    fn resize_needs(&self, model: &Model, node: &Node) -> Option<Vec<(Dim, i64)>> {
        const PLACES: usize = 16;
        // Resize-11 puts the region of interest before the scales.
        let scales = if node.inputs().len() > 2 { 2 } else { 1 };
        let computed = |value: ValueId| {
            let node = model.node(model.value(value).producer()?)?;
            model.function_of(node).is_none().then_some(node)
        };
        let source = computed(node.input(scales)?)?;
        let parts: Vec<&Node> = if source.is("Concat") {
            source.inputs().iter().flatten().take(PLACES).filter_map(|&part| computed(part)).collect()
        } else {
            vec![source]
        };
        let mut needs = Vec::new();
        for quotient in parts.into_iter().filter(|part| part.is("Div")) {
            let operand = |at: usize| self.fact(quotient, at)?.elements().filter(|elements| elements.len() <= PLACES);
            let (Some(dividends), Some(divisors)) = (operand(0), operand(1)) else { continue };
            for (at, divisor) in divisors.iter().enumerate() {
                let Scalar::Real { num: divisor, .. } = divisor else { continue };
                // One dividend may stand for all.
                let dividend = if dividends.len() == 1 { dividends.first() } else { dividends.get(at) };
                let Some(Scalar::Real { num: dividend, .. }) = dividend else { continue };
                let multiple = self.scope.quotient(dividend, divisor).is_some();
                if multiple && self.scope.ge(divisor, &Dim::constant(0)).is_yes() {
                    needs.push((divisor.clone(), 1));
                }
            }
        }
        Some(needs)
    }

    fn division_needs(&self, node: &Node) -> Option<Vec<(Dim, i64)>> {
        let divisors = self.fact(node, 1)?.ints()?;
        // Of nothing nothing is divided.
        let all = self.facts.get(node.output(0)?)?;
        if !all.dtype().is_some_and(DType::is_integer) || all.static_len().is_none_or(|len| len == 0) {
            return None;
        }
        let size = |dim: &Dim| dim.as_const().is_none() && self.scope.ge(dim, &Dim::constant(0)).is_yes();
        Some(divisors.into_iter().filter(size).map(|dim| (dim, 1)).collect())
    }

    fn gather_needs(&self, node: &Node) -> Option<Vec<(Dim, i64)>> {
        let data = self.fact(node, 0)?.shape()?;
        let indices = self.fact(node, 1)?.const_ints()?;
        let axis = match node.attribute("axis") {
            Some(Attribute::Int(axis)) => *axis,
            None => 0,
            Some(_) => return None,
        };
        let dim = data.get(super::axis_in(axis, data.len()).ok()?)?;
        let least = indices.iter().map(|&index| if index < 0 { index.checked_neg() } else { index.checked_add(1) });
        let least = least.collect::<Option<Vec<i64>>>()?.into_iter().max()?;
        // When another axis of the data is empty no entry is looked up, and runtimes differ in whether they check the index.
        let mut others = data.iter().filter(|other| *other != dim);
        if !others.all(|other| self.scope.ge(other, &Dim::constant(1)).is_yes()) {
            return None;
        }
        Some(vec![(dim.clone(), least)])
    }
}

/// Notes that a size is at least `least`, if that is news: a symbol is more than what would make the size smaller, whatever
/// the others are.
fn at_least(scope: &Scope, dim: &Dim, least: i64) -> bool {
    const STEPS: usize = 64;
    let least = Dim::constant(least);
    if scope.ge(dim, &least).is_yes() {
        return false;
    }
    if let Some(symbol) = dim.as_symbol() {
        scope.restrict(symbol, least.as_const(), None);
        return true;
    }
    let mut learned = false;
    for symbol in dim.symbols() {
        for _ in 0..STEPS {
            let (Some(low), _) = scope.bounds(&Dim::symbol(symbol)) else { break };
            let there = scope.substitute(dim, &|other| (other == symbol).then(|| Dim::constant(low)));
            let Some(next) = low.checked_add(1).filter(|_| scope.lt(&there, &least).is_yes()) else { break };
            scope.restrict(symbol, Some(next), None);
            learned = true;
        }
    }
    learned
}
