//! Finds the terms of the results of size nodes, and the formulas that compute them.

use super::row::Row;
use super::survey::{Survey, movement, small};
use super::terms::{Formula, Term, TermId, Terms, elementwise, is_followed, reduction};
use crate::dim::{Dim, Scope};
use crate::ir::{Attribute, Facts, Model, Node, Scalar, ValueId};
use crate::ops::traits::Movement;
use crate::tensor::DType;

impl Survey {
    /// Records the content of a size node's results, and the formulas that compute it. An element is its known expression, or otherwise the operation
    /// on its operands, the moved element, or an opaque element of this value.
    pub(super) fn observe(&mut self, model: &Model, facts: &Facts, node: &Node, position: usize) {
        for &input in node.inputs().iter().flatten() {
            self.elements_of(facts, input);
            let is_constant = facts.get(input).is_some_and(|fact| fact.data().is_some());
            if !self.is_size(model, input) && !is_constant {
                let position = self.position_of(model, input);
                self.add_row(facts, input, position);
            }
        }
        for &output in node.outputs().iter().flatten() {
            let Some(fact) = facts.get(output) else { continue };
            let Some(count) = small(fact) else { continue };
            let scalars = fact.elements();
            let formulas = self.formulas_of(facts, node, count).unwrap_or_default();
            let moved = self.moved(facts, node, count);
            let mut terms = Terms::new();
            for at in 0..count {
                let scalar = scalars.as_ref().and_then(|scalars| scalars.get(at)).unwrap_or(&Scalar::Unknown);
                let formula = formulas.get(at);
                let term = match (
                    self.terms.of_scalar(scalar, facts.scope()),
                    formula,
                    moved.as_ref().and_then(|moved| moved.get(at)),
                ) {
                    (Some(term), ..) => term,
                    (None, Some(formula), _) => self.terms.intern(Term::Applied(formula.clone())),
                    (None, None, Some(&term)) => term,
                    (None, None, None) => self.terms.intern(Term::Element(output, at)),
                };
                if let Some(formula) = formula.map(|formula| widened(formula, &node.op_type))
                    && (fact.dtype() == Some(formula.to) || self.holds_in_64_bits(facts.scope(), &formula, term))
                {
                    self.terms.observe(term, formula);
                }
                terms.push(term);
            }
            self.elements.insert(output, terms);
            self.add_row(facts, output, position);
        }
    }

    fn add_row(&mut self, facts: &Facts, value: ValueId, position: usize) {
        let Some(fact) = facts.get(value).filter(|fact| fact.rank() <= Some(1)) else { return };
        let (Some(dtype), Some(terms)) = (fact.dtype(), self.elements.get(&value)) else { return };
        let row = Row { dtype, is_vector: fact.rank() == Some(1), terms: terms.clone() };
        self.rows.insert(value, row.clone());
        self.first.entry(row).or_insert((value, position));
    }

    /// Returns the elements of a small value.
    fn elements_of(&mut self, facts: &Facts, value: ValueId) -> Option<Terms> {
        if let Some(terms) = self.elements.get(&value) {
            return Some(terms.clone());
        }
        let fact = facts.get(value)?;
        let count = small(fact)?;
        let scalars = fact.elements();
        let mut terms = Terms::new();
        for at in 0..count {
            let scalar = scalars.as_ref().and_then(|scalars| scalars.get(at)).unwrap_or(&Scalar::Unknown);
            let term = self.terms.of_scalar(scalar, facts.scope());
            terms.push(term.unwrap_or_else(|| self.terms.intern(Term::Element(value, at))));
        }
        self.elements.insert(value, terms.clone());
        Some(terms)
    }

    /// Returns the formula of each element of a node's result, if formulas support the operator, in the node's own types: an element that only its
    /// formula describes may have wrapped around in them.
    fn formulas_of(&mut self, facts: &Facts, node: &Node, count: usize) -> Option<Vec<Formula>> {
        let inputs: Vec<ValueId> = node.inputs().iter().copied().collect::<Option<_>>()?;
        let &first = inputs.first()?;
        let dtype = facts.get(first)?.dtype().filter(|&dtype| is_followed(dtype))?;
        let to = facts.get(node.output(0)?)?.dtype().filter(|&dtype| is_followed(dtype))?;
        let from = dtype;
        if let Some(operator) = reduction(&node.op_type) {
            let vector = facts.get(first)?.rank()? == 1 && count == 1;
            if !vector || node.attribute("noop_with_empty_axes").is_some() {
                return None;
            }
            let operands = self.elements_of(facts, first)?;
            return Some(vec![Formula { operator, from, to, operands }]);
        }
        let operator = elementwise(&node.op_type)?;
        let plain = match operator {
            "Mod" => !matches!(node.attribute("fmod"), Some(Attribute::Int(flag)) if *flag != 0),
            "Cast" => !(dtype.is_float() && to == DType::Int32) && to != DType::Bool && dtype != DType::Bool,
            _ => true,
        };
        if !plain {
            return None;
        }
        let result = facts.get(node.output(0)?)?.static_shape()?;
        let mut columns = Vec::with_capacity(inputs.len());
        for &input in &inputs {
            let fact = facts.get(input)?;
            let shape = fact.static_shape()?;
            // An operand either has the result's shape or one element.
            if fact.dtype() != Some(dtype) || (shape != result && fact.static_len() != Some(1)) {
                return None;
            }
            columns.push(self.elements_of(facts, input)?);
        }
        (0..count)
            .map(|at| {
                let operands = columns.iter().map(|terms| terms.get(if terms.len() == 1 { 0 } else { at }).copied());
                Some(Formula { operator, from, to, operands: operands.collect::<Option<Terms>>()? })
            })
            .collect()
    }

    /// Returns `true` if the operation in 64 bits gives the term that a node gave in fewer bits, where it may have overflowed.
    fn holds_in_64_bits(&self, scope: &Scope, formula: &Formula, term: TermId) -> bool {
        if formula.from != DType::Int64 {
            return true;
        }
        let dims: Option<Vec<&Dim>> = formula.operands.iter().map(|&operand| self.terms.as_dim(operand)).collect();
        let Some(dims) = dims else { return false };
        let is_exempt = formula.to != DType::Int64 || reduction(formula.operator).is_some();
        let (Some(result), [a, b]) = (self.terms.as_dim(term), dims.as_slice()) else {
            return is_exempt || formula.operands.len() == 1;
        };
        match integer_result(scope, formula.operator, a, b) {
            Some(expected) => expected == *result,
            None => is_exempt,
        }
    }

    /// Returns the elements of a result that only rearranges elements of the operands.
    fn moved(&mut self, facts: &Facts, node: &Node, count: usize) -> Option<Terms> {
        let first = node.input(0)?;
        let terms = match node.op_type.as_str() {
            operator if matches!(movement(operator), Some(Movement::Through | Movement::Layout)) => {
                self.elements_of(facts, first)?
            }
            "Concat" if facts.get(first)?.rank()? == 1 => {
                let mut all = Terms::new();
                for &input in node.inputs() {
                    all.extend(self.elements_of(facts, input?)?);
                }
                all
            }
            "Gather" if facts.get(first)?.rank()? == 1 => {
                let data = self.elements_of(facts, first)?;
                let length = i64::try_from(data.len()).ok()?;
                let indices = facts.get(node.input(1)?)?.const_ints()?;
                let entry = |index: i64| {
                    let index = if index < 0 { index.checked_add(length)? } else { index };
                    data.get(usize::try_from(index).ok()?).copied()
                };
                indices.into_iter().map(entry).collect::<Option<Terms>>()?
            }
            _ => return None,
        };
        (terms.len() == count).then_some(terms)
    }
}

/// Widens a formula of elements with known expressions from 32 to 64 bits, so that a plan may compute in 64 bits.
fn widened(formula: &Formula, operator: &str) -> Formula {
    let wide = |dtype: DType| if dtype == DType::Int32 { DType::Int64 } else { dtype };
    let is_integer = operator == "Cast" || formula.from.is_integer() || reduction(operator).is_some();
    let to = if is_integer { wide(formula.to) } else { formula.to };
    Formula { from: wide(formula.from), to, ..formula.clone() }
}

/// Returns the result of an operator on two integers, if it is an integer. Div rounds towards 0, Mod has the sign of the divisor.
pub(super) fn integer_result(scope: &Scope, operator: &str, a: &Dim, b: &Dim) -> Option<Dim> {
    Some(match operator {
        "Add" => scope.add(a, b),
        "Sub" => scope.sub(a, b),
        "Mul" => scope.mul(a, b),
        "Div" => scope.trunc_div(a, b),
        "Mod" => scope.modulo(a, b),
        "Min" => scope.min(a, b),
        "Max" => scope.max(a, b),
        _ => return None,
    })
}
