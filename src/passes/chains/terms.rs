//! Terms: the elements of small tensors, identified by their content and not by their producer.
//!
//! Two elements that are the same expression, or the same operation on the same terms, are one term. A [`Formula`] computes a term by one operation
//! from other terms. Formulas have two sources: a node of the graph was observed to compute the term so, or the expression itself can be split
//! (`Scope::parts`). A node gives equal results for equal operands, so an observed formula holds wherever its operands are computed.

use std::rc::Rc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::dim::{Dim, Operation, Scope};
use crate::ir::{Scalar, ValueId};
use crate::ops::{self, Opset, traits::Variation};
use crate::tensor::DType;

/// The most observed formulas that are recorded for one term.
const MAX_FORMULAS: usize = 8;

/// The index of a term.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct TermId(u32);

impl TermId {
    /// Returns this term's bit in masks of terms.
    pub fn bit(self) -> u64 {
        1 << (self.0 % 64)
    }
}

/// Terms in order.
pub(super) type Terms = SmallVec<[TermId; 4]>;

/// The content of one element.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Term {
    /// An integer of any type.
    Int(Dim),
    /// The float `num / den`, `den` a power of two.
    Real { num: Dim, den: i64 },
    /// A known float, by its bits as a double.
    Float(u64),
    /// The result of an operation without a known expression.
    Applied(Formula),
    /// An element of a value.
    Element(ValueId, usize),
}

/// One operation on terms: an element-wise operator, or a reduction of all operands to one element.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Formula {
    pub operator: &'static str,
    /// The type of the operands.
    pub from: DType,
    /// The type of the result.
    pub to: DType,
    pub operands: Terms,
}

/// Returns the name of an element-wise operator whose results do not depend on the place of an element. Only Cast and Mod may have attributes, which
/// their users check.
pub(super) fn elementwise(operator: &str) -> Option<&'static str> {
    let own = ops::operator("", operator)?;
    let pointwise = own.traits.pointwise?;
    let exact = own.traits.kernels.place == Variation::None;
    let plain = pointwise.attributes.is_empty() || matches!(own.name, "Cast" | "Mod");
    (exact && plain).then_some(own.name)
}

/// Returns the name of an operator that reduces elements to one by a binary operator.
pub(super) fn reduction(operator: &str) -> Option<&'static str> {
    let own = ops::operator("", operator)?;
    own.traits.reduces?.folds.map(|_| own.name)
}

/// Returns the binary operator that a reduction applies from element to element; any other operator itself.
pub(super) fn pairwise(operator: &str) -> &str {
    ops::operator("", operator).and_then(|own| own.traits.reduces?.folds).unwrap_or(operator)
}

/// Returns the name of the reduction that applies a binary operator from element to element.
fn reduction_with(operator: &str) -> Option<&'static str> {
    let mut own = ops::operators().filter(|own| own.domain.is_empty());
    own.find(|own| own.traits.reduces.is_some_and(|own| own.folds == Some(operator))).map(|own| own.name)
}

/// Adds the formula of a binary operator, and those of its reduction over a vector of both operands in either order.
fn add_pair(
    found: &mut Vec<Formula>,
    (operator, folding): (&'static str, Option<&'static str>),
    to: DType,
    [left, right]: [TermId; 2],
) {
    let of =
        |operator, operands: [TermId; 2]| Formula { operator, from: to, to, operands: operands.into_iter().collect() };
    let vectors = folding.into_iter().flat_map(|folding| [[left, right], [right, left]].map(|pair| of(folding, pair)));
    for formula in std::iter::once(of(operator, [left, right])).chain(vectors) {
        if !found.contains(&formula) {
            found.push(formula);
        }
    }
}

/// Returns `true` if the results of an operator are flags for any operands.
pub(super) fn gives_flags(operator: &str) -> bool {
    ops::operator("", operator).is_some_and(|own| own.traits.gives_flags)
}

/// Returns `true` if an operator exists for operands of this type, and broadcasts.
pub(super) fn is_available(operator: &str, from: DType, opset: Opset) -> bool {
    if reduction(operator).is_some() {
        return true;
    }
    let Some(own) = ops::operator("", operator) else { return false };
    let Some(pointwise) = own.traits.pointwise else { return false };
    opset.has(own.name) && opset.arithmetic_broadcasts() && pointwise.meets(opset) && pointwise.takes(opset, from)
}

/// Returns `true` if elements of a type are followed from operation to operation.
pub(super) fn is_followed(dtype: DType) -> bool {
    matches!(dtype, DType::Int64 | DType::Int32 | DType::Float | DType::Double | DType::Bool)
}

/// All terms, by index, and the formulas by which nodes of the graph compute them.
#[derive(Default)]
pub(super) struct TermTable {
    list: Vec<Term>,
    ids: FxHashMap<Term, TermId>,
    observed: FxHashMap<TermId, Vec<Formula>>,
    looked_up: FxHashMap<(TermId, DType), Rc<[Formula]>>,
}

impl TermTable {
    pub fn intern(&mut self, term: Term) -> TermId {
        if let Some(&id) = self.ids.get(&term) {
            return id;
        }
        let id = TermId(u32::try_from(self.list.len()).unwrap_or(u32::MAX));
        self.list.push(term.clone());
        self.ids.insert(term, id);
        id
    }

    pub fn get(&self, id: TermId) -> Option<&Term> {
        self.list.get(usize::try_from(id.0).ok()?)
    }

    pub fn int(&mut self, value: i64) -> TermId {
        self.intern(Term::Int(Dim::constant(value)))
    }

    /// Returns the term of a known element; `None` for an unknown one. Facts may be older than the knowledge of symbols, so expressions are brought
    /// to their current form. Otherwise one size would be two terms.
    pub fn of_scalar(&mut self, scalar: &Scalar, scope: &Scope) -> Option<TermId> {
        Some(match scalar {
            Scalar::Int(dim) => self.intern(Term::Int(scope.current(dim))),
            Scalar::Real { num, den } => self.intern(Term::Real { num: scope.current(num), den: *den }),
            Scalar::Float(value) => self.intern(Term::Float(value.to_bits())),
            Scalar::Unknown => return None,
        })
    }

    pub fn as_dim(&self, id: TermId) -> Option<&Dim> {
        match self.get(id)? {
            Term::Int(dim) => Some(dim),
            _ => None,
        }
    }

    pub fn as_const(&self, id: TermId) -> Option<i64> {
        self.as_dim(id)?.as_const()
    }

    pub fn as_float(&self, id: TermId) -> Option<f64> {
        match self.get(id)? {
            Term::Float(bits) => Some(f64::from_bits(*bits)),
            _ => None,
        }
    }

    /// Returns `true` if the term is a number.
    pub fn is_number(&self, id: TermId) -> bool {
        self.as_const(id).is_some() || self.as_float(id).is_some()
    }

    /// Returns `true` if some of the terms are numbers and some are not.
    pub fn has_numbers(&self, terms: &[TermId]) -> bool {
        let numbers = terms.iter().filter(|&&term| self.is_number(term)).count();
        (1..terms.len()).contains(&numbers)
    }

    /// Returns `true` if numbers separate terms that are none.
    pub fn has_numbers_between(&self, terms: &[TermId]) -> bool {
        let runs = terms.chunk_by(|&a, &b| self.is_number(a) == self.is_number(b));
        runs.filter(|run| run.first().is_some_and(|&term| !self.is_number(term))).count() > 1
    }

    /// Records that a node computes a term by this formula.
    pub fn observe(&mut self, id: TermId, formula: Formula) {
        let known = self.observed.entry(id).or_default();
        if known.len() < MAX_FORMULAS && !known.contains(&formula) && !formula.operands.contains(&id) {
            known.push(formula);
        }
    }

    /// Returns the formulas by which nodes of the graph compute a term, for any result type.
    pub fn observed(&self, id: TermId) -> &[Formula] {
        self.observed.get(&id).map_or(&[], Vec::as_slice)
    }

    /// Returns the formulas for a term as an element of type `to`, observed ones first.
    pub fn formulas(&mut self, id: TermId, to: DType, opset: Opset, scope: &Scope) -> Rc<[Formula]> {
        if let Some(known) = self.looked_up.get(&(id, to)) {
            return Rc::clone(known);
        }
        let found: Rc<[Formula]> = self.find_formulas(id, to, opset, scope).into();
        self.looked_up.insert((id, to), Rc::clone(&found));
        found
    }

    fn find_formulas(&mut self, id: TermId, to: DType, opset: Opset, scope: &Scope) -> Vec<Formula> {
        let mut found: Vec<Formula> = self.observed(id).iter().filter(|formula| formula.to == to).cloned().collect();
        match self.get(id).cloned() {
            Some(Term::Int(dim)) if to == DType::Int64 => {
                for (operation, left, right) in scope.parts(&dim) {
                    let operator = match operation {
                        Operation::Add => "Add",
                        Operation::Sub => "Sub",
                        Operation::Mul => "Mul",
                        Operation::Div => "Div",
                        Operation::Mod => "Mod",
                        Operation::Min => "Min",
                        Operation::Max => "Max",
                    };
                    // A reduction of a vector of both operands equals the operator on them, if the plan has such a vector.
                    let is_open = left != right && left.as_const().is_none() && right.as_const().is_none();
                    let folding = reduction_with(operator).filter(|_| is_open);
                    let operands = [self.intern(Term::Int(left)), self.intern(Term::Int(right))];
                    add_pair(&mut found, (operator, folding), to, operands);
                }
            }
            // The denominator is a power of two, so an exact fraction is exact at every step.
            Some(Term::Real { num, den: 1 }) if matches!(to, DType::Float | DType::Double) => {
                // A Cast preserves order, so Min and Max may follow or precede it.
                for (operation, left, right) in scope.parts(&num) {
                    let operator = match operation {
                        Operation::Min => "Min",
                        Operation::Max => "Max",
                        _ => continue,
                    };
                    let operands = [left, right].map(|num| self.intern(Term::Real { num, den: 1 }));
                    add_pair(&mut found, (operator, reduction_with(operator)), to, operands);
                }
                let operands = std::iter::once(self.intern(Term::Int(num))).collect();
                found.push(Formula { operator: "Cast", from: DType::Int64, to, operands });
            }
            Some(Term::Real { num, den }) if matches!(to, DType::Float | DType::Double) => {
                let share = Term::Float((1.0 / den as f64).to_bits());
                let operands = [self.intern(Term::Real { num, den: 1 }), self.intern(share)];
                found.push(Formula { operator: "Mul", from: to, to, operands: operands.into_iter().collect() });
            }
            Some(Term::Applied(formula)) if formula.to == to && !found.contains(&formula) => found.push(formula),
            _ => {}
        }
        found.retain(|formula| is_available(formula.operator, formula.from, opset));
        found
    }
}
