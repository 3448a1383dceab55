//! Tests random demands over random shapes: each plan meets them at every size, and so does each changed plan that passes the check.

use std::rc::Rc;

use super::demand::Demand;
use super::demands::Demands;
use super::row::Row;
use super::search::{Search, SearchLimits};
use super::step::{Claim, Operand, Plan, Step};
use super::survey::Group;
use super::survey::Survey;
use super::terms::{Formula, Term, TermId, Terms};
use super::verify::{Mismatch, verify};
use crate::dim::{Dim, Scope, Symbol};
use crate::ir::{Facts, Model, Scalar, text};
use crate::ops::{Budget, Walk};
use crate::slicing::SliceRule;
use crate::tensor::{DType, Tensor};

/// Pseudorandom numbers that are the same on every machine.
struct Numbers(u64);

impl Numbers {
    fn new(seed: u64) -> Self {
        Numbers((seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }

    fn one_of<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }
}

const NAMES: [&str; 4] = ["a", "b", "c", "d"];

/// Creates a graph with tensors of random shapes, and some nodes that compute sizes.
fn graph(numbers: &mut Numbers) -> Model {
    let mut shape = || (0..4).map(|_| numbers.one_of(&["a", "b", "c", "d", "3"])).collect::<Vec<_>>().join(",");
    let (x, y) = (shape(), shape());
    let opset = numbers.one_of(&[9, 11, 13, 15, 18]);
    text::parse(&format!(
        "<ir_version: 8, opset_import: [\"\" : {opset}]> g (float[{x}] x, float[{y}] y, float[a,b,c,d] z) => (o, p, q)
        <int64 two = {{2}}, int64[2] first = {{0, 1}}, double half = {{0.5}}> {{
            r = Relu (x)  s = Shape (r)  t = Gather (s, first)  u = Div (t, two)  v = Shape (y)  o = ConstantOfShape (u)
            e = Concat <axis = 0> (t, v)  f = Cast <to = 11> (e)  g = Mul (f, half)  h = Cast <to = 7> (g)  p = Expand (two, h)
            n = Relu (z)  l = Cast <to = 6> (t)  q = Cast <to = 1> (l) }}"
    ))
    .expect("the text is a model")
}

fn facts(model: &Model) -> Facts {
    let mut walk = Walk::new(Rc::new(Scope::new()), SliceRule::Agree, Budget::default());
    walk.infer_main(model).expect("the graph has no cycle");
    walk.facts
}

fn size(numbers: &mut Numbers, scope: &Scope, depth: usize) -> Dim {
    if depth == 0 || numbers.below(3) == 0 {
        return match numbers.below(6) {
            0 => Dim::constant(numbers.below(9) as i64 - 3),
            _ => Dim::symbol(scope.named(numbers.one_of(&NAMES))),
        };
    }
    let left = size(numbers, scope, depth - 1);
    let divisor = match numbers.below(3) {
        0 => scope.add(&Dim::symbol(scope.named(numbers.one_of(&NAMES))), &Dim::constant(1)),
        _ => Dim::constant(numbers.below(4) as i64 + 1),
    };
    let right = size(numbers, scope, depth - 1);
    match numbers.below(7) {
        0 => scope.add(&left, &right),
        1 => scope.sub(&left, &right),
        2 => scope.mul(&left, &right),
        3 => scope.floor_div(&left, &divisor),
        4 => scope.modulo(&left, &divisor),
        5 => scope.min(&left, &right),
        _ => scope.max(&left, &right),
    }
}

fn row(numbers: &mut Numbers, survey: &mut Survey, scope: &Scope) -> Row {
    let count = 1 + numbers.below(4);
    let dtype = numbers.one_of(&[DType::Int64, DType::Int64, DType::Int64, DType::Int32, DType::Double]);
    let terms = (0..count).map(|_| {
        let num = size(numbers, scope, 2);
        let scalar = match (dtype, num.as_const()) {
            (DType::Double, Some(int)) => Scalar::Float(int as f64 / 4.0),
            (DType::Double, None) => Scalar::Real { num, den: 1 << numbers.below(3) },
            _ => Scalar::Int(num),
        };
        survey.terms.of_scalar(&scalar, scope).expect("a known element")
    });
    let terms = terms.collect();
    Row { dtype, is_vector: count > 1 || numbers.below(2) == 0, terms }
}

/// Knowledge of sizes that is added after all facts are inferred.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Learnt {
    Nothing,
    /// `b = a`
    Equal,
    /// `c = a + 1`
    Longer,
    /// `d = 2`
    Two,
    /// `a` is even.
    Even,
}

impl Learnt {
    const ALL: [Learnt; 5] = [Learnt::Nothing, Learnt::Equal, Learnt::Longer, Learnt::Two, Learnt::Even];

    fn tell(self, scope: &Scope) {
        let [a, b, c, d] = NAMES.map(|name| scope.named(name));
        match self {
            Learnt::Nothing => {}
            Learnt::Equal => scope.assume_eq(&Dim::symbol(b), &Dim::symbol(a)),
            Learnt::Longer => {
                scope.assume_eq(&Dim::symbol(c), &scope.add(&Dim::symbol(a), &Dim::constant(1)));
            }
            Learnt::Two => scope.restrict(d, Some(2), Some(2)),
            Learnt::Even => scope.set_multiple(a, 2),
        }
    }

    fn allows(self, sizes: &[(Symbol, i64)]) -> bool {
        let [a, b, c, d] = [sizes[0].1, sizes[1].1, sizes[2].1, sizes[3].1];
        match self {
            Learnt::Nothing => true,
            Learnt::Equal => b == a,
            Learnt::Longer => c == a + 1,
            Learnt::Two => d == 2,
            Learnt::Even => a % 2 == 0,
        }
    }
}

/// Returns the survey of all size nodes as one group.
fn whole(model: &Model, facts: &Facts) -> Survey {
    let survey = Survey::of(model, facts, model.main()).expect("no cycle").expect("there are size nodes");
    let group = Group { nodes: survey.order.clone(), shape_only: 0 };
    survey.part(model, facts, &group)
}

/// A graph, its facts, and random demands of its last node in addition to its own.
struct Case {
    model: Model,
    facts: Facts,
    survey: Survey,
    demands: Demands,
    learnt: Learnt,
}

impl Case {
    fn new(numbers: &mut Numbers) -> Self {
        Case::knowing(numbers, Learnt::Nothing)
    }

    fn knowing(numbers: &mut Numbers, learnt: Learnt) -> Self {
        let model = graph(numbers);
        let facts = facts(&model);
        learnt.tell(facts.scope());
        let mut survey = whole(&model, &facts);
        let mut demands = Demands::of(&mut survey, &model, &facts).expect("every reader has a place");
        let position = model.graph(model.main()).node_count() + 1;
        let (reader, value) = (demands.list[0].reader, demands.list[0].value);
        for _ in 0..1 + numbers.below(3) {
            let rows = vec![row(numbers, &mut survey, facts.scope())];
            demands.list.push(Demand { reader, slot: 0, value, position, is_kept: true, rows });
        }
        Case { model, facts, survey, demands, learnt }
    }

    fn plan(&mut self, effort: usize) -> Option<Plan> {
        let options = SearchLimits { effort, ..SearchLimits::default() };
        Search::new((&self.model, &self.facts), &mut self.survey, &self.demands, options, usize::MAX).run()
    }

    fn check(&self, plan: &Plan) -> Result<(), Mismatch> {
        verify(plan, &self.demands, &self.survey, &self.model, &self.facts)
    }

    /// Returns every assignment of 0, 1, 2 and 7 to the symbols that the added knowledge allows.
    fn assignments(&self) -> impl Iterator<Item = Vec<(Symbol, i64)>> + '_ {
        let symbols = NAMES.map(|name| self.facts.scope().named(name));
        let all = (0..256usize).map(move |code| {
            let sizes = symbols.iter().enumerate();
            sizes.map(|(at, &symbol)| (symbol, [0, 1, 2, 7][code >> (2 * at) & 3])).collect::<Vec<_>>()
        });
        all.filter(|sizes| self.learnt.allows(sizes))
    }

    fn dim(&self, dim: &Dim, sizes: &[(Symbol, i64)]) -> Option<f64> {
        let size = |symbol| sizes.iter().find(|(own, _)| *own == symbol).map(|(_, size)| *size);
        dim.evaluate(&size).map(|int| int as f64)
    }

    fn term(&self, term: TermId, sizes: &[(Symbol, i64)]) -> Option<f64> {
        match self.survey.terms.get(term)? {
            Term::Int(dim) => self.dim(dim, sizes),
            Term::Real { num, den } => Some(self.dim(num, sizes)? / *den as f64),
            Term::Float(bits) => Some(f64::from_bits(*bits)),
            Term::Applied(Formula { operator, from, to, operands }) => {
                let operands: Option<Vec<f64>> = operands.iter().map(|&operand| self.term(operand, sizes)).collect();
                apply(operator, *from, *to, &operands?)
            }
            Term::Element(..) => None,
        }
    }

    fn terms(&self, terms: &Terms, sizes: &[(Symbol, i64)]) -> Option<Vec<f64>> {
        terms.iter().map(|&term| self.term(term, sizes)).collect()
    }

    /// Computes each step at these sizes; `None` for one that fails.
    fn run(&self, plan: &Plan, sizes: &[(Symbol, i64)]) -> Vec<Option<Vec<f64>>> {
        let mut made: Vec<Option<Vec<f64>>> = Vec::new();
        for planned in &plan.steps {
            let value = |operand: Operand| match operand {
                Operand::Step(at) => made.get(at)?.clone(),
                Operand::Value(value) => self.terms(self.survey.elements(value)?, sizes),
            };
            let dtype = |operand: Operand| match operand {
                Operand::Step(at) => match &plan.steps.get(at)?.claim {
                    Claim::Row(row) => Some(row.dtype),
                    Claim::Value(value) => self.facts.get(*value)?.dtype(),
                },
                Operand::Value(value) => self.facts.get(value)?.dtype(),
            };
            let result = (|| match &planned.step {
                Step::Constant(tensor) => {
                    tensor.to_f64s().or_else(|| Some(tensor.to_i64s()?.iter().map(|&int| int as f64).collect()))
                }
                Step::Shape(tensor, part) => {
                    let shape = self.facts.get(*tensor)?.shape()?;
                    let (start, end) = part.unwrap_or((0, shape.len()));
                    shape.get(start..end)?.iter().map(|dim| self.dim(dim, sizes)).collect()
                }
                Step::Gather { data, indices, .. } => {
                    let data = value(*data)?;
                    indices.iter().map(|&at| data.get(at).copied()).collect()
                }
                Step::Concat(pieces) => {
                    Some(pieces.iter().map(|&piece| value(piece)).collect::<Option<Vec<_>>>()?.concat())
                }
                Step::Unsqueeze(operand) | Step::Squeeze(operand) => value(*operand),
                Step::Apply { operator, operands, to } => {
                    let from = dtype(*operands.first()?)?;
                    let operands: Vec<Vec<f64>> =
                        operands.iter().map(|&operand| value(operand)).collect::<Option<_>>()?;
                    let count = operands.iter().map(Vec::len).max()?;
                    let at = |at: usize| {
                        let own = operands.iter().map(|own| own.get(if own.len() == 1 { 0 } else { at }).copied());
                        apply(operator, from, to.unwrap_or(from), &own.collect::<Option<Vec<f64>>>()?)
                    };
                    (0..count).map(at).collect()
                }
                Step::Reduce { operator, operand, .. } => {
                    Some(vec![apply(operator, dtype(*operand)?, dtype(*operand)?, &value(*operand)?)?])
                }
                // The check covers the operands; the node itself gives the known result.
                Step::Copy(id, _) => self.terms(self.survey.elements(self.model.node(*id)?.output(0)?)?, sizes),
            })();
            made.push(result);
        }
        made
    }

    /// Returns `true` if every demand gets one of its rows, at all sizes where the row is defined.
    fn is_right(&self, plan: &Plan) -> bool {
        self.assignments().all(|sizes| {
            let made = self.run(plan, &sizes);
            plan.answers.iter().all(|(at, operand)| {
                let Operand::Step(step) = operand else { return false };
                let rows = &self.demands.list[*at].rows;
                rows.iter().any(|row| match self.terms(&row.terms, &sizes) {
                    Some(asked) => made[*step].as_ref() == Some(&asked),
                    None => true,
                })
            })
        })
    }
}

/// Applies an operator to numbers: integer division rounds towards 0, the remainder has the divisor's sign.
fn apply(operator: &str, from: DType, to: DType, operands: &[f64]) -> Option<f64> {
    let is_int = !from.is_float();
    Some(match (operator, operands) {
        ("Cast", [of]) => {
            if to.is_float() {
                *of
            } else {
                of.trunc()
            }
        }
        ("Add", [a, b]) => a + b,
        ("Sub", [a, b]) => a - b,
        ("Mul", [a, b]) => a * b,
        ("Div", [_, b]) | ("Mod", [_, b]) if is_int && *b == 0.0 => return None,
        ("Div", [a, b]) => {
            if is_int {
                (a / b).trunc()
            } else {
                a / b
            }
        }
        ("Mod", [a, b]) => a - b * (a / b).floor(),
        ("Min", [a, b]) => a.min(*b),
        ("Max", [a, b]) => a.max(*b),
        ("ReduceSum", all) => all.iter().sum(),
        ("ReduceProd", all) => all.iter().product(),
        ("ReduceMin", all) => all.iter().copied().reduce(f64::min)?,
        ("ReduceMax", all) => all.iter().copied().reduce(f64::max)?,
        _ => return None,
    })
}

#[test]
fn plans_compute_the_demanded_sizes() {
    let mut planned = 0;
    for seed in 0..80 {
        for learnt in Learnt::ALL {
            let mut numbers = Numbers::new(seed);
            let mut case = Case::knowing(&mut numbers, learnt);
            let Some(plan) = case.plan(30) else { continue };
            planned += 1;
            assert_eq!(case.check(&plan), Ok(()), "seed {seed}, {learnt:?}");
            assert!(case.is_right(&plan), "seed {seed}, {learnt:?}: {:#?}", plan.steps);
        }
    }
    assert!(planned >= 200, "only {planned} of 400 demands could be planned");
}

/// Returns a plan that differs in one place.
fn changed(plan: &Plan, numbers: &mut Numbers) -> Plan {
    let mut changed = Plan { steps: plan.steps.clone(), answers: plan.answers.clone() };
    let count = changed.steps.len();
    let other = |numbers: &mut Numbers| Operand::Step(numbers.below(count));
    let at = numbers.below(count);
    let planned = &mut changed.steps[at];
    match &mut planned.step {
        Step::Constant(tensor) if planned_dtype(&planned.claim) == Some(DType::Int64) => {
            let mut ints = tensor.to_i64s().expect("integers");
            let place = numbers.below(ints.len());
            ints[place] += 1;
            *tensor = if tensor.shape().is_empty() { Tensor::scalar(ints[0]) } else { Tensor::vector(ints) };
        }
        Step::Gather { indices, .. } => {
            let place = numbers.below(indices.len());
            indices[place] = numbers.below(4);
        }
        Step::Concat(pieces) => match numbers.below(2) {
            0 => drop(pieces.remove(numbers.below(pieces.len()))),
            _ => pieces.reverse(),
        },
        Step::Shape(_, Some((start, end))) => (*start, *end) = (*start + 1, *end + 1),
        Step::Apply { operands, .. } if operands.len() > 1 && numbers.below(2) == 0 => operands.reverse(),
        Step::Apply { operator, .. } if *operator != "Cast" => {
            *operator = numbers.one_of(&["Add", "Sub", "Mul", "Div", "Max"])
        }
        Step::Apply { operands, .. } => operands[0] = other(numbers),
        Step::Unsqueeze(of) | Step::Squeeze(of) => *of = other(numbers),
        _ => {
            let answer = numbers.below(changed.answers.len());
            changed.answers[answer].1 = other(numbers);
        }
    }
    changed
}

fn planned_dtype(claim: &Claim) -> Option<DType> {
    match claim {
        Claim::Row(row) => Some(row.dtype),
        Claim::Value(_) => None,
    }
}

#[test]
fn checked_plans_are_correct() {
    let (mut passed, mut refused) = (0, 0);
    for seed in 0..80 {
        let mut numbers = Numbers::new(seed);
        let mut case = Case::new(&mut numbers);
        let Some(plan) = case.plan(30) else { continue };
        for _ in 0..12 {
            let changed = changed(&plan, &mut numbers);
            if case.check(&changed).is_err() {
                refused += 1;
                continue;
            }
            passed += 1;
            assert!(case.is_right(&changed), "seed {seed}: {:#?}", changed.steps);
        }
    }
    assert!(refused > 300, "only {refused} changes were refused, {passed} passed");
}

#[test]
fn a_plan_is_refused_that_reads_what_comes_after_its_reader() {
    let mut case = Case::new(&mut Numbers::new(3));
    let last = case.model.graph(case.model.main()).nodes().find(|&id| {
        case.model
            .node(id)
            .is_some_and(|node| node.is("Relu") && node.output(0).is_some_and(|n| case.model.value(n).name == "n"))
    });
    let tensor = case.model.node(last.expect("the node is there")).and_then(|node| node.output(0)).expect("a result");
    let shape = case.facts.get(tensor).and_then(|fact| fact.shape()).expect("a shape").to_vec();
    let row = Row::of_shape(&mut case.survey.terms, &shape);
    let position = case.survey.position_of(&case.model, tensor);
    let (reader, value) = (case.demands.list[0].reader, case.demands.list[0].value);
    let steps = vec![super::step::PlannedStep {
        step: Step::Shape(tensor, None),
        claim: Claim::Row(std::rc::Rc::new(row.clone())),
    }];
    let plan = Plan { steps, answers: vec![(0, Operand::Step(0))] };
    for (position, expected) in [(position, Err(Mismatch::Demand(0))), (position + 1, Ok(()))] {
        case.demands.list = vec![Demand { reader, slot: 0, value, position, is_kept: true, rows: vec![row.clone()] }];
        assert_eq!(case.check(&plan), expected);
    }
}

#[test]
fn a_step_is_refused_that_reads_a_later_one() {
    let mut case = Case::new(&mut Numbers::new(5));
    let plan = (0..50).find_map(|seed| {
        case = Case::new(&mut Numbers::new(seed));
        case.plan(30).filter(|plan| plan.steps.iter().any(|planned| matches!(planned.step, Step::Gather { .. })))
    });
    let mut plan = plan.expect("some plan gathers");
    let at = plan.steps.iter().position(|planned| matches!(planned.step, Step::Gather { .. })).expect("a Gather");
    assert_eq!(case.check(&plan), Ok(()));
    let last = plan.steps.len();
    if let Step::Gather { data, .. } = &mut plan.steps[at].step
        && let Operand::Step(read) = *data
    {
        *data = Operand::Step(last);
        let copy = plan.steps[read].clone();
        plan.steps.push(copy);
    }
    assert_eq!(case.check(&plan), Err(Mismatch::Step(at)));
}

/// Returns a case with demands of these sizes only, each a vector or a scalar.
fn demanding(text: &str, rows: &[(&[&str], bool)]) -> Case {
    let model = text::parse(text).expect("the text is a model");
    let facts = facts(&model);
    let mut survey = whole(&model, &facts);
    let mut demands = Demands::of(&mut survey, &model, &facts).expect("every reader has a place");
    let (reader, value) = (demands.list[0].reader, demands.list[0].value);
    let position = model.graph(model.main()).node_count() + 1;
    let demand = |&(sizes, is_vector): &(&[&str], bool)| {
        let dims = sizes.iter().map(|size| facts.scope().parse(size).expect("a size")).map(Term::Int);
        let terms = dims.map(|dim| survey.terms.intern(dim)).collect();
        let rows = vec![Row { dtype: DType::Int64, is_vector, terms }];
        Demand { reader, slot: 0, value, position, is_kept: true, rows }
    };
    demands.list = rows.iter().map(demand).collect();
    Case { model, facts, survey, demands, learnt: Learnt::Nothing }
}

/// Two nodes compute sizes, and the shape of `x` is `[a, b, c]`.
const THREE_SIZES: &str = "<ir_version: 8, opset_import: [\"\" : 13]> g (float[a,b,c] x) => (y) <int64[1] one = {1}> {
    s = Shape (x)  t = Gather (s, one)  y = ConstantOfShape (t) }";

#[test]
fn demands_share_what_is_read_and_what_is_computed() {
    for (rows, cost) in [
        // One Shape for both, and one Gather each.
        (&[(&["c", "a"][..], true), (&["b"][..], true)][..], 3),
        // One Add computes two sizes, after Shape and Gather.
        (&[(&["a + 1", "c + 2"][..], true)][..], 3),
        // Both are picked from the existing row: three nodes and two.
        (&[(&["a + 1", "c + 2"][..], true), (&["c + 2"][..], true), (&["a + 1"][..], false)][..], 5),
        // A number costs nothing.
        (&[(&["3"][..], true)][..], 0),
    ] {
        let mut case = demanding(THREE_SIZES, rows);
        let plan = case.plan(100).expect("all sizes can be read");
        assert_eq!((plan.cost(), case.check(&plan)), (cost, Ok(())), "{rows:?}: {:#?}", plan.steps);
        // Without effort there is still a plan, perhaps a more expensive one.
        let hasty = case.plan(0).expect("the first candidates work");
        assert!(hasty.cost() >= cost && case.check(&hasty).is_ok());
    }
}

#[test]
fn a_sentinel_is_put_beside_a_quotient_and_not_divided() {
    let mut case = demanding(THREE_SIZES, &[(&["floor(a / 2)", "floor(c / 2)", "2147483646"], true)]);
    let plan = case.plan(100).expect("all sizes can be read");
    for planned in &plan.steps {
        let Step::Apply { operator: "Div", operands, .. } = &planned.step else { continue };
        for operand in operands {
            let Operand::Step(at) = operand else { continue };
            let Claim::Row(row) = &plan.steps[*at].claim else { continue };
            assert!(row.terms.iter().all(|&term| case.survey.terms.as_const(term) != Some(2_147_483_646)));
        }
    }
    assert!(case.is_right(&plan) && plan.steps.iter().any(|planned| matches!(planned.step, Step::Concat(_))));
}

#[test]
fn unavailable_sizes_are_not_planned() {
    assert!(demanding(THREE_SIZES, &[(&["d"], true)]).plan(100).is_none());
}
