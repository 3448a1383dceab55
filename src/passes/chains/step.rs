//! Steps: the nodes and constants of a plan.

use std::rc::Rc;

use smallvec::SmallVec;

use super::row::Row;
use crate::ir::{NodeId, ValueId};
use crate::tensor::{DType, Tensor};

/// Positions in a vector, in order.
pub(super) type Indices = SmallVec<[usize; 4]>;

/// The operand of a step or a reader.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Operand {
    /// A value of the graph outside the plan.
    Value(ValueId),
    /// The result of an earlier step, by its index.
    Step(usize),
}

/// The operation of a step.
#[derive(Clone, Debug)]
pub(super) enum Step {
    Constant(Tensor),
    /// Shape of a tensor, or of its axes `start .. end` (operator set 15).
    Shape(ValueId, Option<(usize, usize)>),
    /// Gather of entries of a vector: a vector, or the only one as a scalar.
    Gather {
        data: Operand,
        indices: Indices,
        is_vector: bool,
    },
    /// Concat of vectors.
    Concat(Vec<Operand>),
    /// Unsqueeze of a scalar to a vector of one element.
    Unsqueeze(Operand),
    /// Squeeze of a vector of one element to a scalar.
    Squeeze(Operand),
    /// An element-wise operator. Only a Cast has a type `to`.
    Apply {
        operator: &'static str,
        operands: Vec<Operand>,
        to: Option<DType>,
    },
    /// A reduction of a vector to one element: a vector if the axis is kept, else a scalar.
    Reduce {
        operator: &'static str,
        operand: Operand,
        keeps_axis: bool,
    },
    /// A copy of a node of the graph, on these operands.
    Copy(NodeId, Vec<Option<Operand>>),
}

impl Step {
    /// Returns the number of nodes of the step.
    pub fn cost(&self) -> usize {
        usize::from(!matches!(self, Step::Constant(_)))
    }

    /// Returns the operands of the step, except a tensor whose shape it reads.
    pub fn operands(&self) -> impl Iterator<Item = Operand> + '_ {
        let (one, many, optional): (Option<Operand>, &[Operand], &[Option<Operand>]) = match self {
            Step::Constant(_) | Step::Shape(..) => (None, &[], &[]),
            Step::Gather { data: operand, .. }
            | Step::Unsqueeze(operand)
            | Step::Squeeze(operand)
            | Step::Reduce { operand, .. } => (Some(*operand), &[], &[]),
            Step::Concat(operands) | Step::Apply { operands, .. } => (None, operands, &[]),
            Step::Copy(_, operands) => (None, &[], operands),
        };
        one.into_iter().chain(many.iter().copied()).chain(optional.iter().flatten().copied())
    }

    /// Returns the tensor whose shape the step reads.
    pub fn measured(&self) -> Option<ValueId> {
        match self {
            Step::Shape(tensor, _) => Some(*tensor),
            _ => None,
        }
    }
}

/// The claimed content of a step's result. [`super::verify`] checks it.
#[derive(Clone, Debug)]
pub(super) enum Claim {
    /// These terms.
    Row(Rc<Row>),
    /// The content of this value of the graph.
    Value(ValueId),
}

/// A step with the claimed content of its result.
#[derive(Clone, Debug)]
pub(super) struct PlannedStep {
    pub step: Step,
    pub claim: Claim,
}

/// A finished plan.
pub(super) struct Plan {
    /// The steps in topological order: a step only reads earlier steps.
    pub steps: Vec<PlannedStep>,
    /// The new operand of each demand's reader, by the index of the demand.
    pub answers: Vec<(usize, Operand)>,
}

impl Plan {
    /// Returns the number of nodes that the answers need. A shared node counts once.
    pub fn cost(&self) -> usize {
        let mut needed = vec![false; self.steps.len()];
        let need = |needed: &mut Vec<bool>, operand: Operand| {
            if let Operand::Step(at) = operand
                && let Some(flag) = needed.get_mut(at)
            {
                *flag = true;
            }
        };
        self.answers.iter().for_each(|(_, operand)| need(&mut needed, *operand));
        let mut cost = 0;
        for (at, planned) in self.steps.iter().enumerate().rev() {
            if needed.get(at) == Some(&true) {
                cost += planned.step.cost();
                planned.step.operands().for_each(|operand| need(&mut needed, operand));
            }
        }
        cost
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::passes::chains::terms::Terms;

    #[test]
    fn a_shared_step_is_charged_once_and_an_unneeded_one_not_at_all() {
        let row = || Claim::Row(Rc::new(Row::sizes(Terms::new())));
        let planned = |step| PlannedStep { step, claim: row() };
        let steps = vec![
            planned(Step::Constant(Tensor::vector(vec![1i64]))),
            planned(Step::Squeeze(Operand::Step(0))),
            planned(Step::Unsqueeze(Operand::Step(1))),
            planned(Step::Concat(vec![Operand::Step(2), Operand::Step(2)])),
            planned(Step::Unsqueeze(Operand::Step(1))),
        ];
        let plan = Plan { steps, answers: vec![(0, Operand::Step(3)), (1, Operand::Step(2))] };
        assert_eq!(plan.cost(), 3);
    }
}
