//! Whether a folded model gives what the original gives: both are run by this program's evaluator on inputs made to tell them apart.
//!
//! | file | what it does |
//! | --- | --- |
//! | `inputs` | draws sizes and inputs |
//! | `evaluate` | runs a main graph node by node, and compares the shapes that are stated with those that come out |
//! | `compare` | tells two results apart |
//! | `bisect` | finds the first edit after which a difference is there |
//!
//! A comparison proves nothing for inputs that were not tried, and sees nothing where the evaluator declines: what was not compared is part
//! of the answer.

mod bisect;
mod compare;
mod evaluate;
mod inputs;

use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, Instant};

use crate::ir::{Data, Model};
use crate::ops::Decline;
use crate::passes::Options;

pub use bisect::{Culprit, culprit};
use evaluate::{Limits, evaluate};
use inputs::{Case, Draw};

/// Bytes of results that a run may make.
const MOST_BYTES: usize = 1 << 30;
/// Elementary operations a run may take.
const MOST_WORK: u64 = 1 << 33;
/// How long checking may take, the search for the edit at fault not counted.
const MOST_TIME: Duration = Duration::from_secs(60);
/// How often other inputs are drawn where the original does not run.
const ATTEMPTS: usize = 6;

/// What came of checking.
#[derive(Clone, Debug, Default)]
pub struct Checked {
    /// How many inputs were asked for.
    pub asked: usize,
    /// On how many both models ran and agreed.
    pub agreed: usize,
    /// Why others could not be compared, and how many times.
    pub unchecked: BTreeMap<String, usize>,
    /// The first difference that was found.
    pub difference: Option<Difference>,
    /// The first edit after which it is there; nothing if it is there before any edit.
    pub culprit: Option<Culprit>,
    /// Seconds it took.
    pub seconds: f64,
}

/// A difference between a model and its folded form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// What was given: sizes, and what kind of numbers.
    pub given: String,
    /// What differs, with both values.
    pub what: String,
}

impl fmt::Display for Checked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(difference) = &self.difference {
            writeln!(f, "the folded model differs: {} (inputs: {})", difference.what, difference.given)?;
            return match &self.culprit {
                Some(culprit) => write!(f, "{culprit}"),
                None => f.write_str("it differs before any edit is made, so the shapes that are stated or the conversion to another operator set are at fault"),
            };
        }
        write!(f, "checked: equal on {} of {} inputs in {:.1} s", self.agreed, self.asked, self.seconds)?;
        let (memory, seconds) = (MOST_BYTES >> 20, MOST_TIME.as_secs());
        write!(f, " (limits: {memory} MiB of results a run, {seconds} s in all)")?;
        for (reason, count) in &self.unchecked {
            write!(f, "\nnot checked, {count} times: {reason}")?;
        }
        Ok(())
    }
}

/// Compares a model with its folded form on `count` inputs; `Limits` and rules of comparison as the options for folding have it.
pub fn check(original: &Model, folded: &Model, options: &Options, count: usize) -> Checked {
    let begin = Instant::now();
    let mut checked = Checked { asked: count, ..Checked::default() };
    let draw = match Draw::new(original, folded, options) {
        Ok(draw) => draw,
        Err(reason) => {
            checked.unchecked.insert(reason, count);
            return checked;
        }
    };
    for number in 0..count {
        if begin.elapsed() > MOST_TIME {
            *checked.unchecked.entry("the time is spent".to_string()).or_default() += count - number;
            break;
        }
        let mut reason = String::new();
        for attempt in 0..ATTEMPTS {
            match once(original, folded, options, &draw.case(number, attempt), begin + MOST_TIME) {
                Ok(None) => {
                    checked.agreed += 1;
                    reason.clear();
                    break;
                }
                Ok(difference) => {
                    checked.difference = difference;
                    checked.seconds = begin.elapsed().as_secs_f64();
                    return checked;
                }
                Err(why) => reason = why,
            }
        }
        if !reason.is_empty() {
            *checked.unchecked.entry(reason).or_default() += 1;
        }
    }
    checked.seconds = begin.elapsed().as_secs_f64();
    checked
}

/// Runs both models on one input.
///
/// # Errors
/// Why they cannot be compared on it.
fn once(
    original: &Model,
    folded: &Model,
    options: &Options,
    case: &Case,
    until: Instant,
) -> Result<Option<Difference>, String> {
    let limits = Limits { bytes: MOST_BYTES, work: MOST_WORK, until, rule: options.slice_rule };
    let before = evaluate(original, case, None, &limits).map_err(|decline| format!("the original: {decline}"))?;
    let found = |what: String| Some(Difference { given: case.told(original), what });
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
    let pairs: Vec<(&String, (&Data, &Data))> = names.zip(before.outputs.iter().zip(&after.outputs)).collect();
    let differing = pairs.into_iter().find_map(|(name, (a, b))| {
        let difference = compare::difference(a, b, options.exact)?;
        Some(format!("output '{name}' {difference}"))
    });
    Ok(differing.and_then(found))
}
