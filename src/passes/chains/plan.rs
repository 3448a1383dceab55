//! The plan: for every size that is asked for, the steps that read or compute it.
//!
//! What is asked for is a row of terms. It is read from the shape of a tensor, picked from a row that is there, put together from
//! shorter rows, or computed: by one operation on rows where every term of the row has a way to be computed by it. Of all that is
//! tried the fewest new steps win. The search has a budget; where it is used up, the first that works is taken.

use std::rc::Rc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::survey::{Survey, Want};
use super::terms::{Lanes, Term, TermId, Way, reduction};
use crate::ir::{Facts, Model, NodeId, ValueId};
use crate::tensor::{DType, Tensor};

/// How deep a plan may go.
const MAX_DEPTH: usize = 48;

/// How many rows a plan may look for before it is given up.
const MAX_TRIED: usize = 200_000;

/// How many tensors a row is tried to be read from.
const MAX_READS: usize = 2;

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
    /// An operation, element by element; a Cast to a type.
    Apply(&'static str, Vec<Planned>, Option<DType>),
    /// A reduction to one element, which is a vector of one or a scalar.
    Reduce(&'static str, Planned, bool),
    /// A node that is there, on these operands.
    Again(NodeId, Vec<Option<Planned>>),
}

impl Step {
    pub fn is_node(&self) -> bool {
        !matches!(self, Step::Constant(_))
    }
}

/// What is planned so far, in the order it was planned in.
enum Entry {
    Want(Want, Planned),
    Shape(ValueId, Planned),
    Value(ValueId, Planned),
}

/// One way to answer.
enum Answer {
    /// Axes of a tensor.
    Read(ValueId, SmallVec<[usize; 4]>),
    /// Entries of a row that is there.
    Pick(Planned, usize, SmallVec<[usize; 4]>),
    /// One operation on rows.
    Apply(Way, Vec<Lanes>),
    /// The same term again and again.
    Repeat,
    /// The same integers in another type.
    Cast(DType),
    /// A scalar as a vector, or the other way round.
    Other,
    /// Rows of these lengths one after the other.
    Concat(Vec<usize>),
    /// A node that computes just that.
    Again(ValueId),
}

impl Answer {
    /// Whether it ends with a step that is not there yet.
    fn takes_a_step(&self) -> bool {
        !matches!(self, Answer::Read(..) | Answer::Again(_))
    }
}

/// How an answer ends.
enum Made {
    There(Planned),
    Step(Step),
}

/// How a plan is made.
#[derive(Clone, Copy, Default)]
pub(super) struct Strategy {
    /// Shapes are read as a whole, for others to use.
    pub whole: bool,
    /// What may be said by convention is tried first.
    pub by_convention: bool,
    /// A tensor whose Shape is there from the start.
    pub seed: Option<(ValueId, usize)>,
    /// Nothing is computed but what is computed now.
    pub plain: bool,
    /// What is there only to be measured is not, and does not ask.
    pub kept_only: bool,
    /// How much is tried for each that asks.
    pub fuel: usize,
}

pub(super) struct Plan<'a> {
    survey: &'a mut Survey,
    model: &'a Model,
    facts: &'a Facts,
    strategy: Strategy,
    pub steps: Vec<Step>,
    /// After which place each step can be done.
    ready: Vec<usize>,
    nodes: usize,
    /// The number of nodes a plan may not reach.
    bound: usize,
    fuel: usize,
    /// How many rows were looked for.
    tried: usize,
    log: Vec<Entry>,
    wants: FxHashMap<Want, Planned>,
    shapes: FxHashMap<ValueId, Planned>,
    values: FxHashMap<ValueId, Planned>,
    open: Vec<Want>,
}

/// How far a plan was.
#[derive(Clone, Copy)]
struct Mark {
    steps: usize,
    entries: usize,
    nodes: usize,
}

/// What was planned after a mark.
struct Tail {
    steps: Vec<Step>,
    ready: Vec<usize>,
    entries: Vec<Entry>,
    nodes: usize,
}

/// Who asked, and the answer.
pub(super) type Rewired = (NodeId, usize, Planned);

impl<'a> Plan<'a> {
    /// An empty plan.
    pub fn new(survey: &'a mut Survey, model: &'a Model, facts: &'a Facts, strategy: Strategy) -> Self {
        Plan {
            survey,
            model,
            facts,
            strategy,
            steps: Vec::new(),
            ready: Vec::new(),
            nodes: 0,
            bound: usize::MAX,
            fuel: 0,
            tried: 0,
            log: Vec::new(),
            wants: FxHashMap::default(),
            shapes: FxHashMap::default(),
            values: FxHashMap::default(),
            open: Vec::new(),
        }
    }

    /// Plans everything that is asked, in the order it is asked in, unless it comes to take this many nodes.
    pub fn all(&mut self, bound: usize) -> Option<Vec<Rewired>> {
        self.bound = bound;
        if let Some((tensor, position)) = self.strategy.seed {
            self.shape(tensor, position)?;
        }
        let mut answers = Vec::with_capacity(self.survey.asked.len());
        for at in 0..self.survey.asked.len() {
            let asked = self.survey.asked.get(at)?;
            if self.strategy.kept_only && !asked.is_kept {
                continue;
            }
            let (reader, slot, value, place) = (asked.reader, asked.slot, asked.value, asked.place);
            let mut wants = asked.wants.clone();
            self.fuel = self.strategy.fuel;
            if self.strategy.by_convention {
                let exact = wants.len().min(1);
                wants.rotate_left(exact);
            }
            let planned = if wants.is_empty() { self.value(value, place) } else { self.cheapest(&wants, place) };
            let planned = planned?;
            answers.push((reader, slot, planned));
        }
        Some(answers)
    }

    /// The values that hold now what the steps will.
    pub fn counterparts(&self) -> FxHashMap<usize, ValueId> {
        let mut found = FxHashMap::default();
        for entry in &self.log {
            if let Entry::Want(want, Planned::Step(step)) = entry
                && let Some(&(value, _)) = self.survey.computed.get(want)
            {
                found.entry(*step).or_insert(value);
            }
        }
        found
    }

    /// The nodes that are there only to be measured.
    pub fn measured(&self) -> usize {
        self.survey.measured
    }

    /// The nodes that the answers need.
    pub fn cost(&self, answers: &[Rewired]) -> usize {
        let mut needed = vec![false; self.steps.len()];
        let mark = |needed: &mut Vec<bool>, planned: &Planned| {
            if let Planned::Step(step) = planned
                && let Some(flag) = needed.get_mut(*step)
            {
                *flag = true;
            }
        };
        answers.iter().for_each(|(_, _, planned)| mark(&mut needed, planned));
        let mut nodes = 0;
        for (at, step) in self.steps.iter().enumerate().rev() {
            if needed.get(at) != Some(&true) {
                continue;
            }
            nodes += usize::from(step.is_node());
            match step {
                Step::Constant(_) | Step::Shape(..) => {}
                Step::Entries(of, ..) | Step::Vector(of) | Step::Scalar(of) | Step::Reduce(_, of, _) => {
                    mark(&mut needed, of);
                }
                Step::Concat(pieces) | Step::Apply(_, pieces, _) => {
                    pieces.iter().for_each(|piece| mark(&mut needed, piece));
                }
                Step::Again(_, inputs) => inputs.iter().flatten().for_each(|input| mark(&mut needed, input)),
            }
        }
        nodes
    }

    fn ready(&self, planned: Planned) -> usize {
        match planned {
            Planned::Step(step) => self.ready.get(step).copied().unwrap_or(usize::MAX),
            Planned::Value(value) => {
                let producer = self.model.value(value).producer();
                producer.and_then(|producer| self.survey.position(producer)).unwrap_or(0)
            }
        }
    }

    /// Adds a step, unless the plan then has too many nodes.
    fn step(&mut self, step: Step, position: usize) -> Option<Planned> {
        let nodes = self.nodes + usize::from(step.is_node());
        if nodes >= self.bound && step.is_node() {
            return None;
        }
        let ready = match &step {
            Step::Constant(_) => 0,
            Step::Shape(..) => position,
            Step::Entries(of, ..) | Step::Vector(of) | Step::Scalar(of) | Step::Reduce(_, of, _) => self.ready(*of),
            Step::Concat(pieces) | Step::Apply(_, pieces, _) => {
                pieces.iter().map(|piece| self.ready(*piece)).max().unwrap_or(0)
            }
            Step::Again(_, inputs) => inputs.iter().flatten().map(|input| self.ready(*input)).max().unwrap_or(0),
        };
        self.nodes = nodes;
        self.steps.push(step);
        self.ready.push(ready);
        Some(Planned::Step(self.steps.len() - 1))
    }

    fn note(&mut self, entry: Entry) {
        match &entry {
            Entry::Want(want, planned) => {
                self.wants.insert(want.clone(), *planned);
            }
            Entry::Shape(tensor, planned) => {
                self.shapes.insert(*tensor, *planned);
            }
            Entry::Value(value, planned) => {
                self.values.insert(*value, *planned);
            }
        }
        self.log.push(entry);
    }

    fn mark(&self) -> Mark {
        Mark { steps: self.steps.len(), entries: self.log.len(), nodes: self.nodes }
    }

    /// Takes back what was planned after a mark.
    fn cut(&mut self, mark: Mark) -> Tail {
        let entries = self.log.split_off(mark.entries);
        for entry in &entries {
            match entry {
                Entry::Want(want, _) => drop(self.wants.remove(want)),
                Entry::Shape(tensor, _) => drop(self.shapes.remove(tensor)),
                Entry::Value(value, _) => drop(self.values.remove(value)),
            }
        }
        let nodes = self.nodes - mark.nodes;
        self.nodes = mark.nodes;
        Tail { steps: self.steps.split_off(mark.steps), ready: self.ready.split_off(mark.steps), entries, nodes }
    }

    fn paste(&mut self, tail: Tail) {
        self.steps.extend(tail.steps);
        self.ready.extend(tail.ready);
        self.nodes += tail.nodes;
        tail.entries.into_iter().for_each(|entry| self.note(entry));
    }

    /// The cheapest of several attempts.
    fn best<T>(&mut self, attempts: Vec<T>, attempt: impl Fn(&mut Self, T) -> Option<Planned>) -> Option<Planned> {
        let mark = self.mark();
        let outer = self.bound;
        let mut best: Option<(Tail, Planned)> = None;
        let mut left = attempts.len();
        for one in attempts {
            if let Some((tail, _)) = &best {
                // Few can be beaten: a row that is not there takes a step.
                if tail.nodes <= 1 || self.fuel == 0 {
                    break;
                }
                self.bound = outer.min(mark.nodes + tail.nodes);
            }
            // Each has its share of what may be tried.
            let fuel = self.fuel;
            self.fuel = fuel.div_ceil(left.max(1));
            let share = self.fuel;
            left -= 1;
            let planned = attempt(self, one);
            self.fuel = fuel.saturating_sub(share.saturating_sub(self.fuel));
            let tail = self.cut(mark);
            if let Some(planned) = planned
                && best.as_ref().is_none_or(|(best, _)| tail.nodes < best.nodes)
            {
                best = Some((tail, planned));
            }
        }
        self.bound = outer;
        let (tail, planned) = best?;
        self.paste(tail);
        Some(planned)
    }

    fn cheapest(&mut self, wants: &[Want], place: usize) -> Option<Planned> {
        if let Some(known) = wants.iter().find_map(|want| self.there(want, place)) {
            return Some(known);
        }
        self.best(wants.iter().collect(), |plan, want| plan.row(want, place))
    }

    /// Something that holds what the value holds.
    fn value(&mut self, value: ValueId, place: usize) -> Option<Planned> {
        let Some(_) = self.model.value(value).producer().filter(|id| self.survey.chain.contains(id)) else {
            return self.may_measure(value).then_some(Planned::Value(value));
        };
        if let Some(&known) = self.values.get(&value) {
            return Some(known);
        }
        match self.survey.want(value).cloned() {
            Some(want) => self.row(&want, place),
            None => self.again(value, place),
        }
    }

    /// The node as it is, on operands that hold the same.
    fn again(&mut self, value: ValueId, place: usize) -> Option<Planned> {
        if let Some(&known) = self.values.get(&value).filter(|&&known| self.ready(known) < place) {
            return Some(known);
        }
        let Some(id) = self.model.value(value).producer().filter(|id| self.survey.chain.contains(id)) else {
            return self.may_measure(value).then_some(Planned::Value(value));
        };
        let node = self.model.node(id)?;
        let [Some(_)] = *node.outputs() else { return None };
        if let [Some(tensor)] = *node.inputs()
            && node.is("Shape")
            && node.attributes.is_empty()
        {
            return self.shape(tensor, self.ready(Planned::Value(tensor)));
        }
        let mut inputs = Vec::with_capacity(node.inputs().len());
        for input in node.inputs() {
            if node.is("Shape") && input.is_some_and(|input| !self.may_measure(input)) {
                return None;
            }
            inputs.push(match input {
                Some(input) => Some(self.value(*input, place)?),
                None => None,
            });
        }
        let planned = self.step(Step::Again(id, inputs), 0)?;
        self.note(Entry::Value(value, planned));
        Some(planned)
    }

    /// The whole shape of a tensor, which is there after a place.
    fn shape(&mut self, tensor: ValueId, position: usize) -> Option<Planned> {
        if let Some(&known) = self.shapes.get(&tensor) {
            return Some(known);
        }
        if !self.may_measure(tensor) {
            return None;
        }
        let planned = self.step(Step::Shape(tensor, None), position)?;
        self.note(Entry::Shape(tensor, planned));
        if let Some(shape) = self.facts.get(tensor).and_then(|fact| fact.shape()).filter(|shape| !shape.is_empty()) {
            let lanes = shape.iter().map(|dim| self.survey.terms.intern(Term::Int(dim.clone()))).collect();
            let want = Want { dtype: DType::Int64, is_vector: true, lanes };
            if !self.wants.contains_key(&want) {
                self.note(Entry::Want(want, planned));
            }
        }
        Some(planned)
    }

    /// Whether a tensor that is not of the chain may be read.
    fn may_measure(&self, tensor: ValueId) -> bool {
        !self.strategy.kept_only || self.survey.is_kept(self.model, tensor)
    }

    fn there(&self, want: &Want, place: usize) -> Option<Planned> {
        self.wants.get(want).copied().filter(|&known| self.ready(known) < place)
    }

    fn constant(&self, want: &Want) -> Option<Tensor> {
        fn made<T: crate::tensor::Element>(elements: Vec<T>, is_vector: bool) -> Option<Tensor> {
            if is_vector { Some(Tensor::vector(elements)) } else { elements.into_iter().next().map(Tensor::scalar) }
        }
        let terms = &self.survey.terms;
        let ints = || want.lanes.iter().map(|&lane| terms.as_const(lane)).collect::<Option<Vec<i64>>>();
        let floats = || want.lanes.iter().map(|&lane| terms.as_float(lane)).collect::<Option<Vec<f64>>>();
        match want.dtype {
            DType::Int64 => made(ints()?, want.is_vector),
            DType::Int32 => made(
                ints()?.into_iter().map(|int| i32::try_from(int).ok()).collect::<Option<Vec<_>>>()?,
                want.is_vector,
            ),
            DType::Float => made(floats()?.into_iter().map(|float| float as f32).collect(), want.is_vector),
            DType::Double => made(floats()?, want.is_vector),
            _ => None,
        }
    }

    /// A scalar or vector that holds these terms.
    fn row(&mut self, want: &Want, place: usize) -> Option<Planned> {
        if let Some(known) = self.there(want, place) {
            return Some(known);
        }
        if let Some(tensor) = self.constant(want) {
            let planned = self.step(Step::Constant(tensor), 0)?;
            self.note(Entry::Want(want.clone(), planned));
            return Some(planned);
        }
        if self.open.len() >= MAX_DEPTH || self.open.contains(want) || self.tried >= MAX_TRIED {
            return None;
        }
        self.tried += 1;
        self.fuel = self.fuel.saturating_sub(1);
        self.open.push(want.clone());
        let answers = self.answers(want, place);
        let planned = self.best(answers, |plan, answer| {
            // The answer itself takes a step, so what it needs may take one less.
            let bound = plan.bound;
            let last = answer.takes_a_step();
            if last {
                if plan.nodes + 1 >= bound {
                    return None;
                }
                plan.bound = bound - 1;
            }
            let step = plan.answer(want, answer, place);
            plan.bound = bound;
            let planned = match step? {
                Made::There(planned) => planned,
                Made::Step(step) => plan.step(step, 0)?,
            };
            Some(planned)
        });
        self.open.pop();
        let planned = planned?;
        if self.there(want, place).is_none() {
            self.note(Entry::Want(want.clone(), planned));
        }
        Some(planned)
    }

    /// What can be tried, what is likely to be cheap first.
    fn answers(&mut self, want: &Want, place: usize) -> Vec<Answer> {
        let mut answers = Vec::new();
        let count = want.lanes.len();
        if let Some(pick) = self.pick(want, place) {
            answers.push(pick);
        }
        if want.dtype == DType::Int64 {
            answers.extend(self.reads(want, place));
        }
        let again = self.survey.computed.get(want).copied().filter(|&(_, position)| position < place);
        // What is there sets the mark for what may be better.
        if let Some((value, _)) = again {
            answers.push(Answer::Again(value));
        }
        if self.fuel == 0 && !answers.is_empty() {
            return answers;
        }
        let repeated = count > 1 && want.lanes.iter().all(|lane| want.lanes.first() == Some(lane));
        if repeated {
            answers.push(Answer::Repeat);
        }
        if !self.strategy.plain {
            answers.extend(self.applications(want));
        }
        for dtype in [DType::Int64, DType::Int32] {
            if want.dtype != dtype && matches!(want.dtype, DType::Int64 | DType::Int32) && self.survey.opset >= 7 {
                answers.push(Answer::Cast(dtype));
            }
        }
        if count == 1 {
            answers.push(Answer::Other);
        }
        if count > 1 && !repeated {
            answers.extend(self.partitions(want, place).into_iter().map(Answer::Concat));
        }
        answers
    }

    /// What the answer takes, and its last step.
    fn answer(&mut self, want: &Want, answer: Answer, place: usize) -> Option<Made> {
        let step = match answer {
            Answer::Read(tensor, axes) => return self.read(tensor, axes, want.is_vector).map(Made::There),
            Answer::Pick(from, length, entries) => match (length, entries.as_slice(), want.is_vector) {
                (1, [0], false) => Step::Scalar(from),
                _ => Step::Entries(from, entries, want.is_vector),
            },
            Answer::Apply(way, columns) => self.apply(want, way, columns, place)?,
            Answer::Repeat => {
                let one = Want { lanes: want.lanes.iter().take(1).copied().collect(), ..want.clone() };
                let planned = self.row(&one, place)?;
                Step::Entries(planned, SmallVec::from_elem(0, want.lanes.len()), true)
            }
            Answer::Cast(from) => {
                // From 32 bits only what is there: nothing is computed in fewer bits.
                let other = Want { dtype: from, ..want.clone() };
                let planned = match from {
                    DType::Int64 => self.row(&other, place)?,
                    _ => match self.there(&other, place) {
                        Some(known) => known,
                        None => {
                            let &(value, position) = self.survey.computed.get(&other)?;
                            self.again(value, place).filter(|_| position < place)?
                        }
                    },
                };
                Step::Apply("Cast", vec![planned], Some(want.dtype))
            }
            Answer::Other => {
                let other = Want { is_vector: !want.is_vector, ..want.clone() };
                let planned = self.row(&other, place)?;
                if want.is_vector { Step::Vector(planned) } else { Step::Scalar(planned) }
            }
            Answer::Concat(lengths) => {
                let mut pieces = Vec::with_capacity(lengths.len());
                let mut rest = want.lanes.as_slice();
                for length in lengths {
                    let lanes = rest.get(..length)?.iter().copied().collect();
                    rest = rest.get(length..)?;
                    pieces.push(self.row(&Want { lanes, ..want.clone() }, place)?);
                }
                Step::Concat(pieces)
            }
            Answer::Again(value) => return self.again(value, place).map(Made::There),
        };
        Some(Made::Step(step))
    }

    /// Entries of a row that is there.
    fn pick(&self, want: &Want, place: usize) -> Option<Answer> {
        self.log.iter().rev().find_map(|entry| {
            let Entry::Want(row, planned) = entry else { return None };
            if row.dtype != want.dtype || !row.is_vector || self.ready(*planned) >= place {
                return None;
            }
            let entries: Option<SmallVec<[usize; 4]>> =
                want.lanes.iter().map(|lane| row.lanes.iter().position(|own| own == lane)).collect();
            let is_constant =
                matches!(planned, Planned::Step(step) if matches!(self.steps.get(*step), Some(Step::Constant(_))));
            entries.filter(|_| !is_constant).map(|entries| Answer::Pick(*planned, row.lanes.len(), entries))
        })
    }

    /// Tensors that have these sizes, the best first.
    fn reads(&self, want: &Want, place: usize) -> Vec<Answer> {
        let terms = &self.survey.terms;
        let Some(dims) = want.lanes.iter().map(|&lane| terms.as_dim(lane)).collect::<Option<Vec<_>>>() else {
            return Vec::new();
        };
        let Some(first) = dims.iter().find(|dim| dim.as_const().is_none()) else { return Vec::new() };
        let mut found = Vec::new();
        for source in self.survey.sources.get(*first).into_iter().flatten().filter(|source| source.position < place) {
            if !self.may_measure(source.tensor) {
                continue;
            }
            let Some(shape) = self.facts.get(source.tensor).and_then(|fact| fact.shape()) else { continue };
            let is_row = |run: &[crate::dim::Dim]| run.iter().zip(&dims).all(|(own, dim)| own == *dim);
            let row = shape.windows(dims.len()).position(is_row);
            let axes: Option<SmallVec<[usize; 4]>> = match row {
                Some(start) => Some((start..start + dims.len()).collect()),
                None => dims.iter().map(|dim| shape.iter().position(|own| own == *dim)).collect(),
            };
            let Some(axes) = axes else { continue };
            let planned = self.shapes.contains_key(&source.tensor);
            // The whole shape needs one node, and so does a row where Shape can say it; others two, or one if the Shape is there.
            let whole = row.is_some() && axes.len() == shape.len() && want.is_vector;
            let nodes = usize::from(!planned) + usize::from(!whole);
            let at_once = row.is_some() && want.is_vector && self.survey.opset >= 15;
            let nodes = if at_once { nodes.min(1) } else { nodes };
            let score = self.survey.score.get(&source.tensor).copied().unwrap_or(0);
            let rank = (usize::MAX - nodes, planned, score, std::cmp::Reverse(source.position));
            found.push((rank, source.tensor, axes));
        }
        found.sort_by(|(a, ..), (b, ..)| b.cmp(a));
        found.into_iter().take(MAX_READS).map(|(_, tensor, axes)| Answer::Read(tensor, axes)).collect()
    }

    fn read(&mut self, tensor: ValueId, axes: SmallVec<[usize; 4]>, is_vector: bool) -> Option<Planned> {
        let rank = self.facts.get(tensor)?.shape()?.len();
        let position = self.ready(Planned::Value(tensor));
        let in_row = axes.windows(2).all(|pair| pair.first().zip(pair.last()).is_some_and(|(a, b)| a + 1 == *b));
        let first = *axes.first()?;
        if is_vector && in_row && axes.len() == rank {
            return self.shape(tensor, position);
        }
        let whole = self.strategy.whole || self.shapes.contains_key(&tensor);
        if is_vector && in_row && self.survey.opset >= 15 && !whole {
            return self.step(Step::Shape(tensor, Some((first, first + axes.len()))), position);
        }
        let shape = self.shape(tensor, position)?;
        if rank == 1 && axes.len() == 1 {
            return if is_vector { Some(shape) } else { self.step(Step::Scalar(shape), 0) };
        }
        self.step(Step::Entries(shape, axes, is_vector), 0)
    }

    /// The operations that give every term of the row.
    fn applications(&mut self, want: &Want) -> Vec<Answer> {
        let scope = self.facts.scope();
        let opset = self.survey.opset;
        let Some(&first) = want.lanes.iter().find(|&&lane| !self.survey.terms.is_known(lane)) else {
            return Vec::new();
        };
        let ways: Vec<Rc<[Way]>> =
            want.lanes.iter().map(|&lane| self.survey.terms.ways(lane, want.dtype, opset, scope)).collect();
        let mut found: Vec<(Way, Vec<Lanes>)> = Vec::new();
        let Some(at) = want.lanes.iter().position(|&lane| lane == first) else { return Vec::new() };
        for way in ways.get(at).into_iter().flat_map(|ways| ways.iter()).cloned().collect::<Vec<Way>>() {
            if reduction(way.operator).is_some() {
                if want.lanes.len() == 1 {
                    found.push((way.clone(), vec![way.operands.clone()]));
                }
                continue;
            }
            let mut columns: Vec<Lanes> = vec![Lanes::new(); way.operands.len()];
            let complete = want.lanes.iter().zip(&ways).all(|(&lane, own)| {
                let alike = |other: &&Way| {
                    other.operator == way.operator
                        && other.from == way.from
                        && other.operands.len() == way.operands.len()
                };
                let kinship = |other: &Way| {
                    let pairs = other.operands.iter().zip(&way.operands);
                    pairs
                        .map(|(&a, &b)| {
                            let known = self.survey.terms.is_known(a) == self.survey.terms.is_known(b);
                            2 * usize::from(a == b) + usize::from(known)
                        })
                        .sum::<usize>()
                };
                let own = own.iter().filter(alike).max_by_key(|other| kinship(other));
                let operands = match own {
                    Some(own) => Some(own.operands.clone()),
                    None => neutral(&mut self.survey.terms, lane, &way),
                };
                let Some(operands) = operands else { return false };
                columns.iter_mut().zip(operands).for_each(|(column, operand)| column.push(operand));
                true
            });
            if complete && !found.iter().any(|(other, lanes)| other.operator == way.operator && *lanes == columns) {
                found.push((way, columns));
            }
        }
        found.into_iter().map(|(way, columns)| Answer::Apply(way, columns)).collect()
    }

    fn apply(&mut self, want: &Want, way: Way, columns: Vec<Lanes>, place: usize) -> Option<Step> {
        if reduction(way.operator).is_some() {
            let lanes = columns.into_iter().next()?;
            let planned = self.row(&Want { dtype: way.from, is_vector: true, lanes }, place)?;
            return Some(Step::Reduce(way.operator, planned, want.is_vector));
        }
        let count = want.lanes.len();
        let uniform = |lanes: &Lanes| lanes.iter().all(|lane| lanes.first() == Some(lane));
        if count > 1 && columns.iter().all(uniform) {
            return None;
        }
        let mut operands = Vec::with_capacity(columns.len());
        for lanes in columns {
            let full = Want { dtype: way.from, is_vector: want.is_vector, lanes };
            if count == 1 || !uniform(&full.lanes) {
                operands.push(self.row(&full, place)?);
                continue;
            }
            // One element is broadcast, be it a vector or a scalar.
            let one: Lanes = full.lanes.iter().take(1).copied().collect();
            let vector = Want { lanes: one, ..full };
            let scalar = Want { is_vector: false, ..vector.clone() };
            operands.push(self.cheapest(&[vector, scalar], place)?);
        }
        let to = (way.operator == "Cast").then_some(way.to);
        Some(Step::Apply(way.operator, operands, to))
    }

    /// The ways to cut a row into shorter ones, by their lengths.
    fn partitions(&mut self, want: &Want, place: usize) -> Vec<Vec<usize>> {
        let lanes = &want.lanes;
        let (opset, scope) = (self.survey.opset, self.facts.scope());
        // What is computed by the same operation belongs together, and so does what is not computed.
        let kinds: Vec<Option<&'static str>> = lanes
            .iter()
            .map(|&lane| self.survey.terms.ways(lane, want.dtype, opset, scope).first().map(|way| way.operator))
            .collect();
        let mut kin: Vec<usize> = Vec::new();
        let known = |at: usize| lanes.get(at).is_some_and(|&lane| self.survey.terms.is_known(lane));
        // What is readable at once, else one by one.
        let mut greedy = Vec::new();
        let mut at = 0;
        while at < lanes.len() {
            let run = (at..lanes.len()).take_while(|&other| known(other)).count();
            let longest = if run > 0 { run } else { self.longest_read(want, at, place).unwrap_or(1) };
            greedy.push(longest);
            at += longest;
        }
        let mut runs: Vec<usize> = Vec::new();
        let mut singles: Vec<usize> = Vec::new();
        for at in 0..lanes.len() {
            let joins = at > 0 && known(at) == known(at - 1);
            let alike = joins && (known(at) || kinds.get(at) == kinds.get(at - 1));
            match kin.last_mut().filter(|_| alike) {
                Some(last) => *last += 1,
                None => kin.push(1),
            }
            match runs.last_mut().filter(|_| joins) {
                Some(last) => *last += 1,
                None => runs.push(1),
            }
            match singles.last_mut().filter(|_| joins && known(at)) {
                Some(last) => *last += 1,
                None => singles.push(1),
            }
        }
        let mut found: Vec<Vec<usize>> = Vec::new();
        for lengths in [greedy, kin, runs, singles] {
            if lengths.len() > 1 && !found.contains(&lengths) {
                found.push(lengths);
            }
        }
        found
    }

    /// The length of the longest row of at least two from here that one tensor has, or that is there.
    fn longest_read(&self, want: &Want, at: usize, place: usize) -> Option<usize> {
        let rest = want.lanes.get(at..)?;
        (2..=rest.len().min(want.lanes.len() - 1)).rev().find(|&length| {
            let lanes: Lanes = rest.iter().take(length).copied().collect();
            let part = Want { lanes, ..want.clone() };
            let at_once = |answer: &Answer| match answer {
                Answer::Read(_, axes) => {
                    axes.windows(2).all(|pair| pair.first().zip(pair.last()).is_some_and(|(a, b)| a + 1 == *b))
                }
                _ => true,
            };
            self.there(&part, place).is_some()
                || self.pick(&part, place).is_some()
                || want.dtype == DType::Int64 && self.reads(&part, place).first().is_some_and(at_once)
        })
    }
}

/// Operands with which an operation leaves a term as it is.
fn neutral(terms: &mut super::terms::Terms, lane: TermId, way: &Way) -> Option<Lanes> {
    if way.from != DType::Int64 {
        // A known float may be the Cast of an integer.
        return None;
    }
    if way.operator == "Cast" {
        let float = terms.as_float(lane)?;
        let whole = float as i64;
        let exact = whole as f64 == float && whole.unsigned_abs() < 1 << 24 && (whole != 0 || float.is_sign_positive());
        return exact.then(|| std::iter::once(terms.int(whole)).collect());
    }
    terms.as_dim(lane)?;
    let other = match way.operator {
        "Add" | "Sub" => 0,
        "Mul" | "Div" => 1,
        _ => return None,
    };
    let other = terms.int(other);
    Some([lane, other].into_iter().collect())
}
