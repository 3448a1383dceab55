//! The plan: for every size that is asked for, the steps that read or compute it.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::survey::{Content, Source, Survey, content};
use crate::dim::{Dim, Scope};
use crate::ir::{Attribute, Facts, Model, NodeId, ValueId};
use crate::tensor::Tensor;

/// How deep a plan may follow the nodes that are there.
const MAX_DEPTH: usize = 64;

/// A value of the plan.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Planned {
    /// One that is there.
    Value(ValueId),
    /// The result of a step.
    Step(usize),
}

/// One step of the plan.
pub(super) enum Step {
    Constant(Tensor),
    /// Shape of a tensor, from one axis to another if the operator can.
    Shape(ValueId, Option<(usize, usize)>),
    /// Entries of a vector; one of them as a scalar if there is no list.
    Entries(Planned, SmallVec<[usize; 4]>, bool),
    Concat(Vec<Planned>),
    /// A scalar as a vector of one.
    Vector(Planned),
    /// A vector of one as a scalar.
    Scalar(Planned),
    /// A node that is there, on these operands.
    Again(NodeId, Vec<Option<Planned>>),
}

impl Step {
    pub fn is_node(&self) -> bool {
        !matches!(self, Step::Constant(_))
    }
}

#[derive(Clone, PartialEq, Eq, Hash)]
enum Key {
    Content(Content),
    Value(ValueId),
    Shape(ValueId),
}

pub(super) struct Plan<'a> {
    survey: &'a Survey,
    model: &'a Model,
    facts: &'a Facts,
    /// The operators that are told sizes by convention.
    conventions: &'static [&'static str],
    pub steps: Vec<Step>,
    known: FxHashMap<Key, Planned>,
}

/// Someone who asked, and the answer.
pub(super) type Answer = (NodeId, usize, Planned);

impl<'a> Plan<'a> {
    /// An empty plan.
    pub fn new(survey: &'a Survey, model: &'a Model, facts: &'a Facts, conventions: &'static [&'static str]) -> Self {
        Plan { survey, model, facts, conventions, steps: Vec::new(), known: FxHashMap::default() }
    }

    fn scope(&self) -> &Scope {
        self.facts.scope()
    }

    pub fn cost(&self) -> usize {
        self.steps.iter().filter(|step| step.is_node()).count()
    }

    fn step(&mut self, step: Step) -> Planned {
        self.steps.push(step);
        Planned::Step(self.steps.len() - 1)
    }

    /// Plans everything that is asked, in the order it is asked in.
    pub fn all(&mut self) -> Option<Vec<Answer>> {
        let survey = self.survey;
        let mut answers = Vec::with_capacity(survey.asked.len());
        for &(reader, slot, value, place) in &survey.asked {
            let planned = match self.by_convention(reader, slot, value) {
                Some(content) => self.content(&content, place, MAX_DEPTH)?,
                None => self.value(value, place, MAX_DEPTH)?,
            };
            answers.push((reader, slot, planned));
        }
        Some(answers)
    }

    /// What may stand for the sizes of this operand: Reshape is told 0 for a dim that it keeps, Expand 1.
    fn by_convention(&self, reader: NodeId, slot: usize, value: ValueId) -> Option<Content> {
        let node = self.model.node(reader).filter(|node| slot == 1 && node.canonical_domain().is_empty())?;
        if !self.conventions.contains(&node.op_type.as_str()) {
            return None;
        }
        let reshapes = node.is("Reshape");
        if reshapes && matches!(node.attribute("allowzero"), Some(Attribute::Int(flag)) if *flag != 0) {
            return None;
        }
        let (is_vector, mut elements) = content(self.facts, value)?;
        let from = self.facts.get(node.input(0)?)?.shape()?;
        let to = self.facts.get(node.output(0)?)?.shape()?;
        if !is_vector || elements.len() != to.len() {
            return None;
        }
        let added = if reshapes { 0 } else { to.len().checked_sub(from.len())? };
        for (axis, (element, dim)) in elements.iter_mut().zip(to).enumerate() {
            let own = axis.checked_sub(added).and_then(|axis| from.get(axis));
            if element.as_const().is_none() && own.is_some_and(|own| self.scope().eq(own, dim).is_yes()) {
                *element = Dim::constant(i64::from(!reshapes));
            }
        }
        Some((true, elements))
    }

    /// Something that holds what the value holds.
    fn value(&mut self, value: ValueId, place: usize, depth: usize) -> Option<Planned> {
        let Some(id) = self.model.value(value).producer().filter(|id| self.survey.chain.contains(id)) else {
            return Some(Planned::Value(value));
        };
        if let Some(content) = content(self.facts, value) {
            return self.content(&content, place, depth);
        }
        if let Some(&known) = self.known.get(&Key::Value(value)) {
            return Some(known);
        }
        let planned = self.again(id, place, depth)?;
        self.known.insert(Key::Value(value), planned);
        Some(planned)
    }

    /// The node as it is, on operands that hold the same.
    fn again(&mut self, id: NodeId, place: usize, depth: usize) -> Option<Planned> {
        let depth = depth.checked_sub(1)?;
        let node = self.model.node(id)?;
        if let [Some(tensor)] = *node.inputs()
            && node.is("Shape")
            && node.attributes.is_empty()
        {
            return Some(self.shape(tensor));
        }
        let mut inputs = Vec::with_capacity(node.inputs().len());
        for input in node.inputs() {
            inputs.push(match input {
                Some(input) => Some(self.value(*input, place, depth)?),
                None => None,
            });
        }
        Some(self.step(Step::Again(id, inputs)))
    }

    /// The whole shape of a tensor.
    fn shape(&mut self, tensor: ValueId) -> Planned {
        if let Some(&known) = self.known.get(&Key::Shape(tensor)) {
            return known;
        }
        let planned = self.step(Step::Shape(tensor, None));
        self.known.insert(Key::Shape(tensor), planned);
        planned
    }

    /// The node that computes this content already, before `place`.
    fn computed(&self, is_vector: bool, elements: &[Dim], place: usize) -> Option<NodeId> {
        let &(id, position) = self.survey.computed.get(&(is_vector, elements.to_vec()))?;
        (position < place).then_some(id)
    }

    /// What `plan` comes to, or nothing of it.
    fn attempt(&mut self, plan: impl FnOnce(&mut Self) -> Option<Planned>) -> Option<Planned> {
        let before = self.steps.len();
        let planned = plan(self);
        if planned.is_none() {
            self.steps.truncate(before);
            self.known.retain(|_, known| !matches!(known, Planned::Step(step) if *step >= before));
        }
        planned
    }

    fn content(&mut self, wanted: &Content, place: usize, depth: usize) -> Option<Planned> {
        let key = Key::Content(wanted.clone());
        if let Some(&known) = self.known.get(&key) {
            return Some(known);
        }
        let depth = depth.checked_sub(1)?;
        let planned =
            if wanted.0 { self.vector(&wanted.1, place, depth) } else { self.scalar(wanted.1.first()?, place, depth) }?;
        self.known.insert(key, planned);
        Some(planned)
    }

    /// A tensor to read a size from: one that has the most of what is asked, and has its Shape in the plan already if possible.
    fn source(&self, dim: &Dim, place: usize) -> Option<Source> {
        let candidates = self.survey.sources.get(dim)?.iter().copied().filter(|source| source.position < place);
        candidates.max_by_key(|source| {
            let planned = self.known.contains_key(&Key::Shape(source.tensor));
            let score = self.survey.score.get(&source.tensor).copied().unwrap_or(0);
            (planned, score, std::cmp::Reverse(source.position), std::cmp::Reverse(source.tensor))
        })
    }

    fn scalar(&mut self, dim: &Dim, place: usize, depth: usize) -> Option<Planned> {
        if let Some(number) = dim.as_const() {
            return Some(self.step(Step::Constant(Tensor::scalar(number))));
        }
        let vector = Key::Content((true, vec![dim.clone()]));
        if let Some(&known) = self.known.get(&vector) {
            return Some(self.step(Step::Scalar(known)));
        }
        if let Some(source) = self.source(dim, place) {
            if self.survey.opset >= 15 && !self.known.contains_key(&Key::Shape(source.tensor)) {
                let one = self.step(Step::Shape(source.tensor, Some((source.axis, source.axis + 1))));
                self.known.insert(vector, one);
                return Some(self.step(Step::Scalar(one)));
            }
            let shape = self.shape(source.tensor);
            return Some(self.step(Step::Entries(shape, SmallVec::from_slice(&[source.axis]), false)));
        }
        if let Some(id) = self.computed(false, std::slice::from_ref(dim), place) {
            return self.again(id, place, depth);
        }
        let one = self.content(&(true, vec![dim.clone()]), place, depth)?;
        Some(self.step(Step::Scalar(one)))
    }

    fn is_arithmetic(&self, id: NodeId) -> bool {
        self.model.node(id).is_some_and(|node| {
            matches!(node.op_type.as_str(), "Add" | "Sub" | "Mul" | "Div" | "Mod" | "Min" | "Max" | "Neg" | "Abs")
        })
    }

    fn vector(&mut self, elements: &[Dim], place: usize, depth: usize) -> Option<Planned> {
        if let Some(numbers) = elements.iter().map(Dim::as_const).collect::<Option<Vec<i64>>>() {
            return Some(self.step(Step::Constant(Tensor::vector(numbers))));
        }
        if let Some(run) = self.read(elements, place) {
            return Some(run);
        }
        if let [dim] = elements {
            return self.single(dim, place, depth);
        }
        // Arithmetic on whole vectors is kept as that.
        let computed = self.computed(true, elements, place);
        if let Some(id) = computed.filter(|&id| self.is_arithmetic(id)) {
            return self.again(id, place, depth);
        }
        let mut pieces = Vec::new();
        let mut rest = elements;
        while !rest.is_empty() {
            let numbers = rest.iter().take_while(|dim| dim.as_const().is_some()).count();
            let (piece, used) = if numbers > 0 {
                (self.content(&(true, rest.get(..numbers)?.to_vec()), place, depth)?, numbers)
            } else {
                let open = rest.iter().take_while(|dim| dim.as_const().is_none()).count();
                let longest = (2..=open.min(elements.len() - 1)).rev().find_map(|length| {
                    let run = rest.get(..length)?;
                    Some((self.read_known(run, place)?, length))
                });
                match longest {
                    Some(found) => found,
                    None => (self.content(&(true, vec![rest.first()?.clone()]), place, depth)?, 1),
                }
            };
            pieces.push(piece);
            rest = rest.get(used..)?;
        }
        Some(self.step(Step::Concat(pieces)))
    }

    fn read_known(&mut self, elements: &[Dim], place: usize) -> Option<Planned> {
        let key = Key::Content((true, elements.to_vec()));
        if let Some(&known) = self.known.get(&key) {
            return Some(known);
        }
        let planned = self.read(elements, place)?;
        self.known.insert(key, planned);
        Some(planned)
    }

    /// Sizes that one tensor has.
    fn read(&mut self, elements: &[Dim], place: usize) -> Option<Planned> {
        let first = elements.first()?;
        let mut best: Option<((usize, bool, usize, std::cmp::Reverse<usize>), ValueId, SmallVec<[usize; 4]>)> = None;
        for source in self.survey.sources.get(first)?.iter().filter(|source| source.position < place) {
            let shape = self.facts.get(source.tensor)?.shape()?;
            let in_row =
                shape.get(source.axis..).and_then(|rest| rest.get(..elements.len())).is_some_and(|run| run == elements);
            let axes: Option<SmallVec<[usize; 4]>> = if in_row {
                Some((source.axis..source.axis + elements.len()).collect())
            } else {
                elements.iter().map(|dim| shape.iter().position(|own| own == dim)).collect()
            };
            let Some(axes) = axes else { continue };
            let planned = self.known.contains_key(&Key::Shape(source.tensor));
            // The whole shape needs one node, and so does a row where Shape can say it; others two, or one if the Shape is there.
            let whole = in_row && axes.len() == shape.len();
            let nodes = usize::from(!planned) + usize::from(!whole);
            let nodes = if in_row && self.survey.opset >= 15 { nodes.min(1) } else { nodes };
            let score = self.survey.score.get(&source.tensor).copied().unwrap_or(0);
            let rank = (usize::MAX - nodes, planned, score, std::cmp::Reverse(source.position));
            if best.as_ref().is_none_or(|(other, ..)| rank > *other) {
                best = Some((rank, source.tensor, axes));
            }
        }
        let (_, tensor, axes) = best?;
        let rank = self.facts.get(tensor)?.shape()?.len();
        let in_row = axes.windows(2).all(|pair| pair.first().zip(pair.last()).is_some_and(|(a, b)| a + 1 == *b));
        let first = *axes.first()?;
        if in_row && axes.len() == rank {
            return Some(self.shape(tensor));
        }
        if in_row && self.survey.opset >= 15 && !self.known.contains_key(&Key::Shape(tensor)) {
            return Some(self.step(Step::Shape(tensor, Some((first, first + axes.len())))));
        }
        let shape = self.shape(tensor);
        Some(self.step(Step::Entries(shape, axes, true)))
    }

    /// A vector of one size that no tensor has.
    fn single(&mut self, dim: &Dim, place: usize, depth: usize) -> Option<Planned> {
        if let Some(&known) = self.known.get(&Key::Content((false, vec![dim.clone()]))) {
            return Some(self.step(Step::Vector(known)));
        }
        let vector = self.computed(true, std::slice::from_ref(dim), place);
        if let Some(id) = vector.filter(|&id| self.is_arithmetic(id)) {
            return self.again(id, place, depth);
        }
        let Some(id) = self.computed(false, std::slice::from_ref(dim), place) else {
            return self.again(vector?, place, depth);
        };
        if self.is_arithmetic(id)
            && let Some(planned) = self.attempt(|plan| plan.on_vectors(id, place, depth))
        {
            return Some(planned);
        }
        let scalar = self.again(id, place, depth)?;
        self.known.insert(Key::Content((false, vec![dim.clone()])), scalar);
        Some(self.step(Step::Vector(scalar)))
    }

    /// The same arithmetic on vectors of one.
    fn on_vectors(&mut self, id: NodeId, place: usize, depth: usize) -> Option<Planned> {
        let depth = depth.checked_sub(1)?;
        let mut inputs = Vec::new();
        for input in self.model.node(id)?.inputs() {
            let (_, elements) = content(self.facts, (*input)?)?;
            inputs.push(Some(self.content(&(true, elements), place, depth)?));
        }
        Some(self.step(Step::Again(id, inputs)))
    }
}
