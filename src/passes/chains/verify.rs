//! Checks a plan before it replaces anything.
//!
//! Every step has a claim of its result's content. In the order of the steps, each claim is recomputed from the checked claims of the step's
//! operands. In the end every reader must get a row that meets its demand, or the content of its current operand. The step must precede the reader.
//! The check shares no code with the search, only the table of terms and the arithmetic of `dim`.

use std::fmt;

use super::demand::Demand;
use super::demands::Demands;
use super::observe::integer_result;
use super::row::Row;
use super::step::{Claim, Operand, Plan, PlannedStep, Step};
use super::survey::Survey;
use super::terms::{Formula, Term, TermId, Terms, gives_flags, is_available, pairwise, reduction};
use crate::dim::Dim;
use crate::ir::{Facts, Model, NodeId, ValueId};
use crate::tensor::{DType, Tensor};

/// The first fault of a plan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Mismatch {
    /// The step does not compute its claim, or reads a later step.
    Step(usize),
    /// The demand gets other content, or too late.
    Demand(usize),
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Mismatch::Step(at) => write!(f, "step {at} of a size plan does not return its recorded value"),
            Mismatch::Demand(at) => write!(f, "demand {at} of a size plan is not met"),
        }
    }
}

/// Checks a plan.
///
/// # Errors
/// The first wrong step or demand.
pub(super) fn verify(
    plan: &Plan,
    demands: &Demands,
    survey: &Survey,
    model: &Model,
    facts: &Facts,
) -> Result<(), Mismatch> {
    let mut check = Check { survey, model, facts, steps: &plan.steps, ready: Vec::with_capacity(plan.steps.len()) };
    for (at, planned) in plan.steps.iter().enumerate() {
        let ready = check.ready_of(&planned.step).ok_or(Mismatch::Step(at))?;
        if check.holds(planned) != Some(true) {
            return Err(Mismatch::Step(at));
        }
        check.ready.push(ready);
    }
    let mut answers = plan.answers.iter().peekable();
    for (at, demand) in demands.list.iter().enumerate() {
        let answer = answers.next_if(|(answered, _)| *answered == at);
        let is_met = match answer {
            Some((_, operand)) => check.meets(*operand, demand),
            None => !demand.is_kept,
        };
        if !is_met {
            return Err(Mismatch::Demand(at));
        }
    }
    // Remaining answers are out of order, or have no demand.
    answers.next().map_or(Ok(()), |(at, _)| Err(Mismatch::Demand(*at)))
}

struct Check<'a> {
    survey: &'a Survey,
    model: &'a Model,
    facts: &'a Facts,
    steps: &'a [PlannedStep],
    /// The position after which each checked step can be computed.
    ready: Vec<usize>,
}

impl Check<'_> {
    fn operand_ready(&self, operand: Operand) -> Option<usize> {
        match operand {
            Operand::Value(value) => Some(self.survey.position_of(self.model, value)),
            Operand::Step(step) => self.ready.get(step).copied(),
        }
    }

    /// Returns the position after which a step can be computed; `None` if it reads a step that does not precede it.
    fn ready_of(&self, step: &Step) -> Option<usize> {
        let mut ready = step.measured().map_or(0, |tensor| self.survey.position_of(self.model, tensor));
        for operand in step.operands() {
            ready = ready.max(self.operand_ready(operand)?);
        }
        Some(ready)
    }

    fn row(&self, operand: Operand) -> Option<&Row> {
        match operand {
            Operand::Value(value) => self.survey.row(value),
            Operand::Step(step) => match &self.steps.get(step)?.claim {
                Claim::Row(row) => Some(row),
                Claim::Value(value) => self.survey.row(*value),
            },
        }
    }

    /// Returns `true` if an operand has the content of a value.
    fn is_same(&self, operand: Operand, value: ValueId) -> bool {
        let is_value = match operand {
            Operand::Value(own) => own == value,
            Operand::Step(step) => {
                matches!(self.steps.get(step), Some(PlannedStep { claim: Claim::Value(own), .. }) if *own == value)
            }
        };
        is_value || self.row(operand).is_some_and(|row| self.survey.row(value) == Some(row))
    }

    fn meets(&self, operand: Operand, demand: &Demand) -> bool {
        let in_time = self.operand_ready(operand).is_some_and(|ready| ready < demand.position);
        let serves = match demand.rows.as_slice() {
            [] => self.is_same(operand, demand.value),
            rows => self.row(operand).is_some_and(|row| rows.contains(row)),
        };
        in_time && serves
    }

    /// Returns `true` if the claim of a step follows from those of its operands; `None` if something is missing.
    fn holds(&self, planned: &PlannedStep) -> Option<bool> {
        let row = match (&planned.step, &planned.claim) {
            (Step::Copy(id, operands), Claim::Value(value)) => return self.copies(*id, operands, *value),
            (Step::Copy(..), Claim::Row(_)) | (_, Claim::Value(_)) => return None,
            (_, Claim::Row(row)) => row.as_ref(),
        };
        Some(match &planned.step {
            Step::Copy(..) => false,
            Step::Constant(tensor) => self.is_constant(tensor, row)?,
            Step::Shape(tensor, part) => {
                let shape = self.facts.get(*tensor)?.shape()?;
                let dims = match *part {
                    None => shape,
                    Some((start, end)) => shape.get(start..end).filter(|_| self.survey.opset.shape_of_a_run())?,
                };
                let scope = self.facts.scope();
                let is_dim = |dim: &Dim, term| self.survey.terms.as_dim(term) == Some(&scope.current(dim));
                let is_here = dims.iter().zip(&row.terms).all(|(dim, &term)| is_dim(dim, term));
                row.dtype == DType::Int64 && row.is_vector && row.len() == dims.len() && is_here
            }
            Step::Gather { data, indices, is_vector } => {
                let data = self.row(*data)?;
                let terms = indices.iter().map(|&at| data.terms.get(at).copied()).collect::<Option<Terms>>()?;
                let fits = data.is_vector && (*is_vector || indices.len() == 1);
                fits && *row == (Row { dtype: data.dtype, is_vector: *is_vector, terms })
            }
            Step::Concat(pieces) => {
                let mut terms = Terms::new();
                for &piece in pieces {
                    let piece = self.row(piece).filter(|piece| piece.is_vector && piece.dtype == row.dtype)?;
                    terms.extend_from_slice(&piece.terms);
                }
                row.is_vector && !pieces.is_empty() && row.terms == terms
            }
            Step::Unsqueeze(scalar) => !self.row(*scalar)?.is_vector && self.row(*scalar)?.other_rank()? == *row,
            Step::Squeeze(vector) => self.row(*vector)?.is_vector && self.row(*vector)?.other_rank()? == *row,
            Step::Apply { operator, operands, to } => self.applies(operator, operands, *to, row)?,
            Step::Reduce { operator, operand, keeps_axis } => {
                let of = self.row(*operand).filter(|of| of.is_vector && of.dtype == row.dtype)?;
                let formula = Formula { operator, from: of.dtype, to: row.dtype, operands: of.terms.clone() };
                let [term] = *row.terms.as_slice() else { return None };
                reduction(operator).is_some() && row.is_vector == *keeps_axis && self.derives(&formula, term)
            }
        })
    }

    fn is_constant(&self, tensor: &Tensor, row: &Row) -> Option<bool> {
        let shape: &[usize] = if row.is_vector { &[row.len()] } else { &[] };
        let is_here = match row.dtype {
            DType::Int64 | DType::Int32 => {
                let ints = tensor.to_i64s()?;
                ints.iter().zip(&row.terms).all(|(&int, &term)| self.survey.terms.as_const(term) == Some(int))
            }
            DType::Float | DType::Double => {
                let floats = tensor.to_f64s()?;
                let bits = |float: f64| float.to_bits();
                floats
                    .iter()
                    .zip(&row.terms)
                    .all(|(&float, &term)| self.survey.terms.as_float(term).map(bits) == Some(bits(float)))
            }
            _ => false,
        };
        Some(tensor.dtype() == row.dtype && tensor.shape() == shape && tensor.len() == row.len() && is_here)
    }

    /// Returns `true` if a copy has the content of a node's result, because their operands have the same content.
    fn copies(&self, id: NodeId, operands: &[Option<Operand>], value: ValueId) -> Option<bool> {
        let node = self.model.node(id)?;
        let same = |(own, operand): (&Option<ValueId>, &Option<Operand>)| match (own, operand) {
            (Some(own), Some(operand)) => self.is_same(*operand, *own),
            (own, operand) => own.is_none() && operand.is_none(),
        };
        let is_result = *node.outputs() == [Some(value)] && self.survey.size_nodes.contains(&id);
        let inputs = node.inputs();
        Some(is_result && inputs.len() == operands.len() && inputs.iter().zip(operands).all(same))
    }

    fn applies(&self, operator: &'static str, operands: &[Operand], to: Option<DType>, row: &Row) -> Option<bool> {
        let rows = operands.iter().map(|&operand| self.row(operand)).collect::<Option<Vec<&Row>>>()?;
        let from = rows.first()?.dtype;
        let result = match operator {
            "Cast" => to?,
            _ if gives_flags(operator) => DType::Bool,
            _ => from,
        };
        let longest = rows.iter().map(|own| own.len()).max()?;
        let fits = rows.iter().all(|own| own.dtype == from && (own.len() == longest || own.len() == 1))
            && is_available(operator, from, self.survey.opset)
            && (row.dtype, row.len()) == (result, longest)
            && row.is_vector == rows.iter().any(|own| own.is_vector);
        if !fits {
            return Some(false);
        }
        let mut holds = true;
        for (at, &term) in row.terms.iter().enumerate() {
            let operands = rows.iter().map(|own| own.terms.get(if own.len() == 1 { 0 } else { at }).copied());
            let formula = Formula { operator, from, to: result, operands: operands.collect::<Option<Terms>>()? };
            holds &= self.derives(&formula, term);
        }
        Some(holds)
    }

    /// Returns `true` if a formula gives a term: by the arithmetic of expressions, or because a node of the graph was observed to compute it so.
    /// Equal operands give equal results.
    fn derives(&self, formula: &Formula, term: TermId) -> bool {
        let table = &self.survey.terms;
        let is_int = |dtype: DType| matches!(dtype, DType::Int32 | DType::Int64);
        if matches!(table.get(term), Some(Term::Applied(own)) if own == formula)
            || table.observed(term).contains(formula)
        {
            return true;
        }
        match (formula.operator, formula.operands.as_slice()) {
            // Sizes are assumed to fit 32 bits where a model computes them in 32 bits.
            ("Cast", [of]) if is_int(formula.from) && is_int(formula.to) => table.as_dim(*of).is_some() && *of == term,
            ("Cast", [of]) if formula.from == DType::Int64 && formula.to.is_float() => match table.get(term) {
                Some(Term::Real { num, den: 1 }) => table.as_dim(*of) == Some(num),
                Some(Term::Float(bits)) => table
                    .as_const(*of)
                    .is_some_and(|int| int.unsigned_abs() < 1 << 24 && (int as f64).to_bits() == *bits),
                _ => false,
            },
            (operator, [a, b]) if matches!(pairwise(operator), "Min" | "Max") && formula.from.is_float() => {
                let whole = |term: TermId| match table.get(term) {
                    Some(Term::Real { num, den: 1 }) => Some(num),
                    _ => None,
                };
                let (Some(a), Some(b), Some(result)) = (whole(*a), whole(*b), whole(term)) else { return false };
                formula.from == formula.to
                    && integer_result(self.facts.scope(), pairwise(operator), a, b).as_ref() == Some(result)
            }
            ("Mul", [of, share]) if formula.from.is_float() => {
                match (table.get(term), table.get(*of), table.as_float(*share)) {
                    (Some(Term::Real { num, den }), Some(Term::Real { num: whole, den: 1 }), Some(share)) => {
                        num == whole && den.count_ones() == 1 && share == 1.0 / *den as f64
                    }
                    _ => false,
                }
            }
            (operator, [a, b]) if formula.from == DType::Int64 && formula.to == DType::Int64 => {
                let (Some(a), Some(b), Some(result)) = (table.as_dim(*a), table.as_dim(*b), table.as_dim(term)) else {
                    return false;
                };
                integer_result(self.facts.scope(), pairwise(operator), a, b).as_ref() == Some(result)
            }
            _ => false,
        }
    }
}
