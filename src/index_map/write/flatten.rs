//! Programs: movements in the order in which they are computed.

use smallvec::SmallVec;

use super::movement::{AxisRange, Movement};
use crate::dim::{Dim, Scope};
use crate::index_map::form::{IndexMap, Shape, is_equal, plus, zero};
use crate::index_map::undecided::Undecided;

/// Movements as an expression: a source, or a node of operands.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::large_enum_variant, reason = "nearly every tree is a node")]
pub(super) enum Tree {
    Source(usize),
    Node(Movement, Vec<Tree>),
}

impl Tree {
    pub fn after(self, chain: Vec<Movement>) -> Tree {
        chain.into_iter().fold(self, |tree, movement| match movement {
            Movement::Lookup { positions, .. } => Tree::Node(movement, vec![tree, Tree::Source(positions)]),
            _ => Tree::Node(movement, vec![tree]),
        })
    }
}

/// A source of the map, or the result of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    /// Source `i`.
    Source(usize),
    /// The result of step `i`.
    Step(usize),
    /// Output `i.1` of step `i.0`, which is a Split.
    Part(usize, usize),
}

/// One node of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// A movement of its operands.
    Movement(Movement, Vec<Operand>),
    /// All ranges of an axis, one after the other.
    Split {
        /// What is split.
        operand: Operand,
        /// The axis.
        axis: usize,
        /// The size of each part.
        sizes: Vec<Dim>,
    },
}

/// Steps, each after its operands, and the result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// The steps.
    pub steps: Vec<Step>,
    /// The shape of the first result of each step.
    pub shapes: Vec<Shape>,
    /// The value of the program.
    pub result: Operand,
}

impl Program {
    /// The number of nodes.
    pub fn nodes(&self) -> usize {
        self.steps.len()
    }

    pub(super) fn of(scope: &Scope, tree: &Tree, sources: &[Shape], splits: bool) -> Program {
        let mut program = Program { steps: Vec::new(), shapes: Vec::new(), result: Operand::Source(0) };
        program.result = program.add(tree);
        if splits {
            program.share_splits(scope, sources);
        }
        program
    }

    fn add(&mut self, tree: &Tree) -> Operand {
        match tree {
            Tree::Source(source) => Operand::Source(*source),
            Tree::Node(movement, operands) => {
                let operands: Vec<Operand> = operands.iter().map(|operand| self.add(operand)).collect();
                let step = Step::Movement(movement.clone(), operands);
                // Equal steps are one.
                let at = self.steps.iter().position(|other| *other == step).unwrap_or_else(|| {
                    self.steps.push(step);
                    self.steps.len() - 1
                });
                Operand::Step(at)
            }
        }
    }

    /// Makes slices that cover an axis of a source one Split.
    fn share_splits(&mut self, scope: &Scope, sources: &[Shape]) {
        let ranges: Vec<(usize, usize, usize, AxisRange)> = self
            .steps
            .iter()
            .enumerate()
            .filter_map(|(at, step)| {
                let Step::Movement(Movement::Slice(ranges), operands) = step else { return None };
                let [Operand::Source(source)] = operands.as_slice() else { return None };
                let mut own = ranges.iter().enumerate().filter_map(|(axis, range)| Some((axis, range.clone()?)));
                let (axis, range) = own.next().filter(|(_, range)| range.step == 1)?;
                own.next().is_none().then_some((at, *source, axis, range))
            })
            .collect();
        for &(_, source, axis, _) in &ranges {
            let Some(size) = sources.get(source).and_then(|shape| shape.get(axis)) else { continue };
            let mut parts: Vec<(usize, Dim)> = Vec::new();
            let mut end = zero();
            while let Some((at, .., range)) = ranges.iter().find(|(at, s, a, range)| {
                (*s, *a) == (source, axis)
                    && is_equal(scope, &range.start, &end)
                    && !parts.iter().any(|(seen, _)| seen == at)
            }) {
                parts.push((*at, range.len.clone()));
                end = plus(scope, &end, &range.len);
            }
            if parts.len() > 1 && is_equal(scope, &end, size) {
                let split = Step::Split {
                    operand: Operand::Source(source),
                    axis,
                    sizes: parts.iter().map(|(_, len)| len.clone()).collect(),
                };
                self.replace(split, &parts.iter().map(|(at, _)| *at).collect::<Vec<_>>());
                return;
            }
        }
    }

    /// Puts a Split first, instead of the steps whose results it has.
    fn replace(&mut self, split: Step, parts: &[usize]) {
        let to = |operand: Operand| match operand {
            Operand::Step(at) => match parts.iter().position(|&part| part == at) {
                Some(output) => Operand::Part(0, output),
                None => Operand::Step(at + 1 - parts.iter().filter(|&&part| part < at).count()),
            },
            other => other,
        };
        let kept = self.steps.iter().enumerate().filter(|(at, _)| !parts.contains(at)).map(|(_, step)| match step {
            Step::Movement(movement, operands) => {
                Step::Movement(movement.clone(), operands.iter().map(|&operand| to(operand)).collect())
            }
            Step::Split { operand, axis, sizes } => {
                Step::Split { operand: to(*operand), axis: *axis, sizes: sizes.clone() }
            }
        });
        let steps = std::iter::once(split).chain(kept).collect();
        self.result = to(self.result);
        self.steps = steps;
    }

    /// Computes the shapes of the steps, and returns the map that the steps compose to.
    ///
    /// # Errors
    /// A question about dims that is not decided.
    pub fn map(&mut self, scope: &Scope, sources: &[Shape]) -> Result<IndexMap, Undecided> {
        let numbers: Vec<usize> = (0..sources.len()).collect();
        let source = |at: usize| -> Result<IndexMap, Undecided> {
            let shape = sources.get(at).ok_or(Undecided::Rank)?;
            let own = numbers.get(at..).unwrap_or_default();
            IndexMap::identity(scope, shape).with_sources(scope, sources, own)
        };
        let mut done: Vec<SmallVec<[IndexMap; 1]>> = Vec::with_capacity(self.steps.len());
        let value = |done: &[SmallVec<[IndexMap; 1]>], operand: Operand| match operand {
            Operand::Source(at) => source(at),
            Operand::Step(at) => done.get(at).and_then(|maps| maps.first()).cloned().ok_or(Undecided::Rank),
            Operand::Part(at, output) => done.get(at).and_then(|maps| maps.get(output)).cloned().ok_or(Undecided::Rank),
        };
        for step in &self.steps {
            let maps = match step {
                Step::Movement(movement, operands) => {
                    let inner = operands.iter().map(|&operand| value(&done, operand)).collect::<Result<Vec<_>, _>>()?;
                    let shapes: Vec<Shape> = inner.iter().map(|map| map.result().into()).collect();
                    movement.check(scope, &shapes)?;
                    let map = movement.map(scope, &shapes)?.applied_to(scope, &inner.iter().collect::<Vec<_>>())?;
                    // Each operand brought all sources.
                    let to: Vec<usize> = inner.iter().flat_map(|_| numbers.iter().copied()).collect();
                    std::iter::once(map.with_sources(scope, sources, &to)?).collect()
                }
                Step::Split { operand, axis, sizes } => {
                    let inner = value(&done, *operand)?;
                    let mut start = zero();
                    let mut parts = SmallVec::new();
                    for size in sizes {
                        let range = IndexMap::range(scope, inner.result(), *axis, start.clone(), 1, size.clone())?;
                        parts.push(inner.then(scope, &range)?);
                        start = plus(scope, &start, size);
                    }
                    parts
                }
            };
            done.push(maps);
        }
        self.shapes = done.iter().filter_map(|maps| Some(maps.first()?.result().into())).collect();
        value(&done, self.result)
    }
}
