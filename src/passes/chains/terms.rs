//! The elements of small tensors, each known by what it is and not by who computes it.
//!
//! Two elements that are the same expression, or the same operation on the same elements, are one term. A way to compute a term
//! is an operation on other terms: one that a node of the graph does, or one that follows from the expression.

use std::rc::Rc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::dim::{Dim, Operation, Scope};
use crate::ir::{Scalar, ValueId};
use crate::ops::{self, traits::Variation};
use crate::tensor::DType;

/// How many ways are remembered for one term.
const MAX_WAYS: usize = 8;

/// A term, by number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct TermId(u32);

/// Some terms in a row.
pub(super) type Lanes = SmallVec<[TermId; 4]>;

/// What one element is.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Term {
    /// An integer, of whatever type.
    Int(Dim),
    /// The float `num / den`, `den` a power of two.
    Real { num: Dim, den: i64 },
    /// A known float, by its bits as a double.
    Float(u64),
    /// The result of an operation of which nothing more is known.
    Applied(Way),
    /// What a value holds there.
    Element(ValueId, usize),
}

/// One operation, element by element, or a reduction of all operands to one element.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Way {
    pub operator: &'static str,
    /// The type of the operands.
    pub from: DType,
    /// The type of the result.
    pub to: DType,
    pub operands: Lanes,
}

/// The name of an operator that works element by element and gives the same bits whatever is beside an element. Attributes do not
/// matter, but for those of the two that are looked at where they are used.
pub(super) fn elementwise(operator: &str) -> Option<&'static str> {
    let own = ops::operator("", operator)?;
    let pointwise = own.traits.pointwise?;
    let exact = own.traits.kernels.place == Variation::None;
    let plain = pointwise.attributes.is_empty() || matches!(own.name, "Cast" | "Mod");
    (exact && plain).then_some(own.name)
}

/// The name of an operator that makes one element of many, one after the other.
pub(super) fn reduction(operator: &str) -> Option<&'static str> {
    let own = ops::operator("", operator)?;
    own.traits.reduces?.folds.map(|_| own.name)
}

/// Whether an operator is there for operands of this type, and broadcasts.
pub(super) fn is_available(operator: &str, from: DType, opset: i64) -> bool {
    const BROADCASTS: i64 = 7;
    let Some(own) = ops::operator("", operator) else { return false };
    let Some(pointwise) = own.traits.pointwise else { return false };
    let there = own.since(opset).is_some() && opset >= pointwise.since.max(BROADCASTS);
    there && (!from.is_integer() || opset >= pointwise.integers_since)
}

/// Types whose elements are followed from operation to operation.
pub(super) fn is_followed(dtype: DType) -> bool {
    matches!(dtype, DType::Int64 | DType::Int32 | DType::Float | DType::Double | DType::Bool)
}

/// All terms there are, and the ways to compute them that were seen in the graph.
#[derive(Default)]
pub(super) struct Terms {
    list: Vec<Term>,
    ids: FxHashMap<Term, TermId>,
    ways: FxHashMap<TermId, Vec<Way>>,
    looked_up: FxHashMap<(TermId, DType), Rc<[Way]>>,
}

impl Terms {
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

    /// The term of a known element; `None` if nobody knows it.
    pub fn of_scalar(&mut self, scalar: &Scalar) -> Option<TermId> {
        Some(match scalar {
            Scalar::Int(dim) => self.intern(Term::Int(dim.clone())),
            Scalar::Real { num, den } => self.intern(Term::Real { num: num.clone(), den: *den }),
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

    /// Whether the term is a number.
    pub fn is_known(&self, id: TermId) -> bool {
        self.as_const(id).is_some() || self.as_float(id).is_some()
    }

    /// Notes that a node computes a term so.
    pub fn note(&mut self, id: TermId, way: Way) {
        let known = self.ways.entry(id).or_default();
        if known.len() < MAX_WAYS && !known.contains(&way) && !way.operands.contains(&id) {
            known.push(way);
        }
    }

    /// The ways to compute a term as an element of type `to`.
    pub fn ways(&mut self, id: TermId, to: DType, opset: i64, scope: &Scope) -> Rc<[Way]> {
        if let Some(known) = self.looked_up.get(&(id, to)) {
            return Rc::clone(known);
        }
        let found: Rc<[Way]> = self.find_ways(id, to, opset, scope).into();
        self.looked_up.insert((id, to), Rc::clone(&found));
        found
    }

    fn find_ways(&mut self, id: TermId, to: DType, opset: i64, scope: &Scope) -> Vec<Way> {
        let noted = self.ways.get(&id).into_iter().flatten();
        let mut found: Vec<Way> = noted.filter(|way| way.to == to).cloned().collect();
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
                    let operands = [self.intern(Term::Int(left)), self.intern(Term::Int(right))];
                    let way = Way { operator, from: to, to, operands: operands.into_iter().collect() };
                    if !found.contains(&way) {
                        found.push(way);
                    }
                }
            }
            // What is an exact fraction is exact on the way, for the denominator is a power of two.
            Some(Term::Real { num, den: 1 }) if matches!(to, DType::Float | DType::Double) => {
                let operands = std::iter::once(self.intern(Term::Int(num))).collect();
                found.push(Way { operator: "Cast", from: DType::Int64, to, operands });
            }
            Some(Term::Real { num, den }) if matches!(to, DType::Float | DType::Double) => {
                let share = Term::Float((1.0 / den as f64).to_bits());
                let operands = [self.intern(Term::Real { num, den: 1 }), self.intern(share)];
                found.push(Way { operator: "Mul", from: to, to, operands: operands.into_iter().collect() });
            }
            Some(Term::Applied(way)) if way.to == to && !found.contains(&way) => found.push(way),
            _ => {}
        }
        found.retain(|way| is_available(way.operator, way.from, opset) || reduction(way.operator).is_some());
        found
    }
}
