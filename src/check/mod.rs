//! Checks that a folded model computes the same results as the original: runs both with this program's evaluator.
//!
//! | file | what it does |
//! | --- | --- |
//! | `inputs` | draws sizes and inputs |
//! | `borders` | finds the sizes at which an assumption about dims stops holding |
//! | `evaluate` | runs a main graph, and compares declared shapes with computed ones |
//! | `compare` | compares two results |
//! | `bisect` | finds the first edit after which the output differs |
//!
//! A check proves nothing about untried inputs, or about nodes that the evaluator declines. So the answer lists what was not compared.

mod bisect;
mod borders;
mod compare;
mod evaluate;
mod inputs;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use crate::clock::Instant;
use crate::dim::Scope;
use crate::ir::{Data, Model, Name};
use crate::ops::{Decline, may_be_evaluated};
use crate::passes::{Options, RunError, run};

pub use bisect::{Culprit, culprit};
use borders::borders;
use evaluate::{Limits, evaluate};
use inputs::{Case, Draw};

/// The most bytes of results of one run.
const MOST_BYTES: usize = 1 << 30;
/// The most elementary operations of one run.
const MOST_WORK: u64 = 1 << 33;
/// The time limit of a check, without the search for the faulty edit.
const MOST_TIME: Duration = Duration::from_secs(60);

/// The inputs on which both models run.
#[derive(Clone, Debug, Default)]
pub struct Trial {
    drawn: usize,
    given: Vec<Case>,
}

impl Trial {
    /// Creates a trial of `count` drawn inputs.
    pub fn drawn(count: usize) -> Self {
        Trial { drawn: count, given: Vec::new() }
    }

    /// Adds input values by name, which come from `source`, and the sizes of the names in declared shapes.
    #[must_use]
    pub fn also(mut self, source: &str, sizes: BTreeMap<String, usize>, values: BTreeMap<String, Data>) -> Self {
        self.given.push(Case::given(source, sizes, values));
        self
    }
}

/// The result of a check.
#[derive(Clone, Debug, Default)]
pub struct Checked {
    /// The number of requested comparisons.
    pub asked: usize,
    /// The number of inputs on which both models ran and agreed.
    pub agreed: usize,
    /// The border sizes of assumptions at which both models agreed.
    pub borders: Vec<String>,
    /// The reasons why other inputs were not compared, each with its count.
    pub unchecked: BTreeMap<String, usize>,
    /// The first difference.
    pub difference: Option<Difference>,
    /// The first edit after which the output differs; `None` if it differs before any edit.
    pub culprit: Option<Culprit>,
    /// The number of models compared after passes with edits, and the number of such passes; `None` if not requested.
    pub passes: Option<(usize, usize)>,
    /// The duration in seconds.
    pub seconds: f64,
}

/// A difference between a model and its folded form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The sizes, and the kind of numbers.
    pub given: String,
    /// The output or shape that differs, with both values.
    pub what: String,
}

impl fmt::Display for Checked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(difference) = &self.difference {
            writeln!(f, "the folded model differs: {} (inputs: {})", difference.what, difference.given)?;
            return match &self.culprit {
                Some(culprit) => write!(f, "{culprit}"),
                None => f.write_str(
                    "the difference exists before the first edit, so the written shapes or the conversion to another operator set cause \
                     it",
                ),
            };
        }
        write!(f, "checked: equal on {} of {} inputs in {:.1} s", self.agreed, self.asked, self.seconds)?;
        let (memory, seconds) = (MOST_BYTES >> 20, MOST_TIME.as_secs());
        write!(f, " (limits: {memory} MiB of results per run, {seconds} s in total)")?;
        if let Some((compared, all)) = self.passes {
            write!(f, "\nthe models after {compared} of {all} passes with edits are equal, too")?;
            if compared < all {
                f.write_str("; the time limit prevented further comparisons")?;
            }
        }
        for border in &self.borders {
            write!(f, "\nequal at {border}")?;
        }
        for (reason, count) in &self.unchecked {
            write!(f, "\nnot checked, {count} times: {reason}")?;
        }
        Ok(())
    }
}

/// Compares a model with its folded form, with the limits and comparison rules of the folding options.
pub fn check(original: &Model, folded: &Model, options: &Options, trial: &Trial) -> Checked {
    let begin = Instant::now();
    let asked = trial.drawn + trial.given.len();
    let mut checked = Checked { asked, ..Checked::default() };
    // If a node prevents every run, large inputs only take time.
    if let Err(decline) = may_be_evaluated(original, original.main()) {
        checked.unchecked.insert(format!("the original: {decline}"), asked);
        return checked;
    }
    let draw = match Draw::new(original, folded, options) {
        Ok(draw) => draw,
        Err(reason) => {
            checked.unchecked.insert(reason, asked);
            return checked;
        }
    };
    let until = begin + MOST_TIME;
    let both = |case: &Case| compared(original, folded, options, case, until);
    let mut ran = Ran::default();
    for number in 0..asked {
        if begin.elapsed() > MOST_TIME {
            *checked.unchecked.entry("the time limit is reached".to_string()).or_default() += asked - number;
            break;
        }
        let came = match trial.given.get(number) {
            Some(case) if !draw.allows(case) => {
                Err(format!("the assumptions exclude the inputs {}", case.told(original)))
            }
            Some(case) => both(case).map(|(difference, _)| difference),
            None => drawn(&draw, number - trial.given.len(), &mut ran, until, &both),
        };
        match came {
            Ok(None) => checked.agreed += 1,
            Ok(difference) => {
                checked.difference = difference;
                break;
            }
            Err(reason) => *checked.unchecked.entry(reason).or_default() += 1,
        }
    }
    if checked.difference.is_none() && trial.drawn > 0 {
        check_borders(&borders(original, options), &draw, &mut checked, until, &both);
    }
    checked.seconds = begin.elapsed().as_secs_f64();
    checked
}

/// Runs both models at the border sizes of assumptions.
fn check_borders(
    borders: &[(String, i64)],
    draw: &Draw<'_>,
    checked: &mut Checked,
    until: Instant,
    both: &dyn Fn(&Case) -> Result<(Option<Difference>, Told), String>,
) {
    for (name, size) in borders {
        let told = format!("{name} = {size}, a limit of an assumption about dims");
        let Some(case) = draw.case_at(name, *size).filter(|_| Instant::now() < until) else {
            *checked.unchecked.entry(format!("{told}: the inputs are too large")).or_default() += 1;
            continue;
        };
        match both(&case) {
            Ok((None, _)) => checked.borders.push(told),
            Ok((difference, _)) => {
                checked.difference = difference;
                return;
            }
            Err(reason) => *checked.unchecked.entry(format!("{told}: {reason}")).or_default() += 1,
        }
    }
}

/// The sizes with which the original ran.
#[derive(Default)]
struct Ran {
    /// The attempt at which the previous case ran; 0 if its sizes were ordinary.
    attempt: usize,
    sizes: BTreeMap<String, i64>,
}

/// Runs both models on the inputs of a case. Tries other inputs while the original does not run, or returns only empty tensors although no size is 0:
/// inputs that are bounds often select nothing. Starts with the kind of sizes of the previous run (`before`), and ends with its exact sizes.
///
/// # Errors
/// The reason why no inputs can be compared.
fn drawn(
    draw: &Draw<'_>,
    number: usize,
    before: &mut Ran,
    until: Instant,
    both: &dyn Fn(&Case) -> Result<(Option<Difference>, Told), String>,
) -> Result<Option<Difference>, String> {
    let mut came = Err(String::new());
    let first = before.attempt;
    let attempts = std::iter::once(first).chain((0..draw.attempts()).filter(|&attempt| attempt != first));
    let cases = attempts.map(|attempt| (attempt, draw.case(number, attempt)));
    let again = (!before.sizes.is_empty()).then(|| (first, draw.case_of(number, before.sizes.clone())));
    for (attempt, case) in cases.chain(again) {
        // If the original returns only empty tensors, larger sizes do not help.
        if came.is_ok() && !draw.is_ordinary(attempt) {
            break;
        }
        match both(&case) {
            Ok((None, Told::Nothing)) if case.sizes().values().all(|&size| size > 0) => came = Ok(None),
            Ok((difference, _)) => {
                let attempt = if draw.is_ordinary(attempt) { 0 } else { attempt };
                *before = Ran { attempt, sizes: case.sizes().clone() };
                return Ok(difference);
            }
            Err(reason) if came.is_err() => came = Err(reason),
            Err(_) => {}
        }
        // Drawing takes time, too.
        if Instant::now() > until {
            break;
        }
    }
    came
}

/// The results of the original that a comparison covered.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Told {
    Elements,
    /// Only empty tensors, so that only shapes were compared.
    Nothing,
}

/// Compares a model with its form after each of these numbers of edits, within the time limit. Returns the first difference with its number of edits,
/// and the number of comparisons.
///
/// # Errors
/// A pass fails.
pub fn check_each(
    original: &Model,
    options: &Options,
    trial: &Trial,
    ends: &[(&'static str, usize)],
) -> Result<(Option<(Difference, usize)>, usize), RunError> {
    let begin = Instant::now();
    let mut compared = 0;
    for &(_, edits) in ends {
        if begin.elapsed() > MOST_TIME {
            break;
        }
        let mut model = original.clone();
        run(&mut model, Scope::new().into(), &options.clone().stop_after(edits), 0, &mut |_| {})?;
        if let Some(difference) = check(original, &model, options, trial).difference {
            return Ok((Some((difference, edits)), compared));
        }
        compared += 1;
    }
    Ok((None, compared))
}

/// Runs both models on one input.
///
/// # Errors
/// The reason why the results cannot be compared.
fn compared(
    original: &Model,
    folded: &Model,
    options: &Options,
    case: &Case,
    until: Instant,
) -> Result<(Option<Difference>, Told), String> {
    let limits = Limits { bytes: MOST_BYTES, work: MOST_WORK, until, rule: options.slice_rule };
    let before = evaluate(original, case, None, &limits).map_err(|decline| format!("the original: {decline}"))?;
    let is_empty = |data: &Data| data.tensor().is_some_and(|tensor| tensor.is_empty());
    let told = if before.outputs.iter().all(is_empty) { Told::Nothing } else { Told::Elements };
    let found = |what: String| (Some(Difference { given: case.told(original), what }), told);
    let after = match evaluate(folded, case, Some(original), &limits) {
        Ok(after) => after,
        Err(decline @ Decline::OverBudget(_)) => return Err(format!("the folded model: {decline}")),
        Err(decline @ Decline::Unsupported(_)) => return Err(format!("the folded model: {decline}")),
        Err(Decline::Invalid(reason)) => return Ok(found(format!("the folded model does not run: {reason}"))),
    };
    if let Some(wrong) = after.wrong_shape {
        return Ok(found(wrong));
    }
    let names = original.graph(original.main()).outputs().iter().map(|&value| &original.value(value).name);
    let pairs: Vec<(&Name, (&Data, &Data))> = names.zip(before.outputs.iter().zip(&after.outputs)).collect();
    let differing = pairs.into_iter().find_map(|(name, (a, b))| {
        let difference = compare::difference(a, b, options.exact)?;
        Some(format!("output '{name}' {difference}"))
    });
    Ok(differing.map_or((None, told), found))
}
