//! Records knowledge about sizes in the model's metadata, and reads the records of earlier runs.
//!
//! A removed node may have implied facts about sizes: a Reshape that succeeds implies that a sequence is not empty. Shapes are written under these
//! facts (`2*seq - 1` for `max(0, 2*seq - 1)`). A run over the result, without the node, would write them differently. So inequalities that the
//! remaining nodes do not imply are recorded in the metadata.
//!
//! Anyone can write metadata. So these inequalities decide only one thing: whether a declared shape is kept, if the proved one is longer and would be
//! equal under them. No rule sees a scope with them, and no new shape is written because of them.

use std::rc::Rc;

use super::contract::Contract;
use super::dead;
use super::options::Options;
use super::outcome::RunError;
use crate::dim::{Dim, Scope, Symbol};
use crate::ir::{Definition, Fact, Facts, Model, Node, ValueId};
use crate::ops::{Budget, Walk};
use crate::sort;

/// The most inequalities that are recorded and read, and the most characters of one.
const MOST: usize = 32;
const LONGEST: usize = 120;
/// The most terms of an inequality whose shortest form is computed.
const MOST_TERMS: usize = LONGEST / 4;

/// Returns the expressions that are 0 according to the model's metadata where no input and no output is empty.
pub(super) fn remembered_zeros(model: &Model, scope: &Scope) -> Vec<Dim> {
    let is_known = |name: &str| scope.lookup(name).is_some();
    let side = |text: &str| scope.parse_over(text.trim(), &is_known);
    let text = model.remembered().unwrap_or_default();
    let entries = text.split("; ").take(MOST);
    let sides = entries.filter(|entry| entry.len() <= LONGEST).filter_map(|entry| entry.split_once("=="));
    sides.filter_map(|(a, b)| Some(scope.sub(&side(a)?, &side(b)?))).collect()
}

/// Returns a copy of the scope with the inequalities in the model's metadata; `None` if there are none or they are impossible.
pub(super) fn with_remembered(model: &Model, scope: &Scope) -> Option<Scope> {
    let text = model.remembered()?;
    let copy = scope.copied();
    let is_known = |name: &str| scope.lookup(name).is_some();
    for entry in text.split("; ").take(MOST).filter(|entry| entry.len() <= LONGEST) {
        let side = |text: &str| copy.parse_over(text.trim(), &is_known);
        let sides = entry.split_once("<=").or_else(|| entry.split_once(">=").map(|(a, b)| (b, a)));
        if let Some((a, b)) = sides.and_then(|(a, b)| Some((side(a)?, side(b)?))) {
            copy.assume_le(&a, &b);
        }
    }
    copy.impossible().is_none().then_some(copy)
}

/// Returns the inequalities between input sizes that hold in a scope as text, and the equations of `zeros` where nothing is empty. Omits those that
/// the model's nodes imply.
///
/// # Errors
/// The model is inconsistent.
pub(super) fn to_remember(
    model: &Model,
    facts: &Facts,
    (scope, zeros): (&Scope, &[Dim]),
    options: &Options,
) -> Result<String, RunError> {
    let inputs = model.graph(model.main()).inputs();
    let dims = inputs.iter().filter_map(|&input| facts.get(input)?.shape()).flatten();
    let mut symbols: Vec<Symbol> = dims.flat_map(Dim::symbols).collect();
    // A size that has become a number is no symbol of a fact any more.
    let declared = inputs.iter().filter_map(|&input| model.value(input).declared.as_ref()?.shape()).flatten();
    symbols.extend(declared.filter_map(|dim| scope.lookup(dim.claim.name()?)));
    symbols.sort_unstable();
    symbols.dedup();
    symbols.retain(|&symbol| !scope.is_fresh(symbol));
    // Excludes inequalities that are too long first: the shortest text takes a search, and nodes imply most of them.
    let is_short = |text: &String| text.len() <= LONGEST;
    let is_said_shortly = |slack: &Dim| is_short(&scope.plain_inequality(slack)) || is_short(&scope.inequality(slack));
    let known = scope.known_of(&symbols).into_iter().filter(|slack| slack.term_count() <= MOST_TERMS);
    let slacks: Vec<Dim> = known.filter(is_said_shortly).collect();
    let is_of_inputs = |zero: &&Dim| !zero.has_symbol(|symbol| !symbols.contains(&symbol));
    let is_kept =
        |zero: &&Dim| is_of_inputs(zero) && zero.term_count() <= MOST_TERMS && is_short(&equation(scope, zero));
    let zeros: Vec<&Dim> = zeros.iter().filter(is_kept).collect();
    if slacks.is_empty() && zeros.is_empty() {
        return Ok(String::new());
    }
    let told = || -> Result<Vec<bool>, RunError> {
        let mut anew = Walk::new(Rc::new(Scope::metered(scope.meter())), options.slice_rule, Budget::default());
        anew.evaluate = false;
        let renamed = |dim: &Dim, there: &Scope| {
            let named = |symbol: Symbol| there.lookup(&scope.name(symbol)).map(Dim::symbol);
            (!dim.has_symbol(|symbol| named(symbol).is_none())).then(|| there.substitute(dim, &named))
        };
        let is_told = |slack: &Dim, there: &Scope| {
            renamed(slack, there).is_some_and(|slack| there.ge(&slack, &Dim::constant(0)).is_yes())
        };
        learn_until(model, &mut anew, &|there| zeros.is_empty() && slacks.iter().all(|slack| is_told(slack, there)))?;
        let there = Contract::of(model, &anew.facts, (anew.scope(), &[]), &[]).zeros;
        let is_zero = |zero: &Dim| {
            let zero = renamed(zero, anew.scope());
            zero.is_some_and(|zero| {
                [&zero, &anew.scope().sub(&Dim::constant(0), &zero)].iter().any(|zero| there.contains(zero))
            })
        };
        let told = slacks.iter().map(|slack| is_told(slack, anew.scope()));
        Ok(told.chain(zeros.iter().map(|zero| is_zero(zero))).collect())
    };
    let told = told()?;
    let texts =
        slacks.iter().map(|slack| scope.inequality(slack)).chain(zeros.iter().map(|zero| equation(scope, zero)));
    let kept = texts.zip(told).filter(|(text, is_told)| !is_told && is_short(text)).map(|(text, _)| text);
    Ok(kept.take(MOST).collect::<Vec<_>>().join("; "))
}

/// Formats the equation `zero = 0` without subtraction, such as `a + b == c`. Both signs of an expression give the same text.
fn equation(scope: &Scope, zero: &Dim) -> String {
    let text = scope.inequality(zero).replacen(">=", "<=", 1);
    let mut sides: Vec<&str> = text.splitn(2, " <= ").collect();
    sort::sort(&mut sides);
    sides.join(" == ")
}

/// Infers until the needs of the nodes add no knowledge about sizes, and forgets facts that now have a simpler form.
///
/// # Errors
/// The model is inconsistent.
pub(super) fn learn(model: &Model, walk: &mut Walk) -> Result<(), RunError> {
    learn_until(model, walk, &|_| false)
}

/// Infers like [`learn`], but stops once `enough` holds.
fn learn_until(model: &Model, walk: &mut Walk, enough: &dyn Fn(&Scope) -> bool) -> Result<(), RunError> {
    const ROUNDS: usize = 3;
    let computed = dead::live_nodes(model);
    for round in 0..ROUNDS {
        walk.infer_main(model)?;
        if !walk.learn(model, &computed) || enough(walk.scope()) {
            break;
        }
        forget_longer(model, walk, round > 0);
    }
    Ok(())
}

/// Bounds symbols by the needs of the remaining nodes, as a second run would. Returns `true` if a bound is new, so that values must be inferred
/// again.
pub(super) fn learn_again(model: &Model, walk: &mut Walk) -> bool {
    let learned = walk.learn(model, &dead::live_nodes(model));
    if learned {
        forget_longer(model, walk, true);
    }
    learned
}

/// Removes the facts that may have a simpler form after new bounds. Facts with run-time sizes can be kept: inferred again, these sizes would get new
/// symbols without bounds.
fn forget_longer(model: &Model, walk: &mut Walk, keeps_open_sizes: bool) {
    let is_input = |value| matches!(model.value(value).definition(), Definition::Input(_));
    let scope = Rc::clone(walk.scope());
    let names_sizes = |fact: &Fact| keeps_open_sizes && names_open_sizes(fact, &scope);
    let trusts = walk.trust_declared;
    let is_plain = |value, fact: &Fact| !trusts && names_sizes_alone(fact, &scope) && is_of_main(model, value);
    // Keeps the events of nodes that are not inferred again, because inference would not report them again.
    let (facts, mut events) = (&walk.facts, std::mem::take(&mut walk.events));
    events.retain(|event| {
        let mut results = model.node(event.node).into_iter().flat_map(Node::outputs).flatten().peekable();
        results.peek().is_some() && results.all(|&result| facts.get(result).is_some_and(|fact| is_plain(result, fact)))
    });
    walk.events = events;
    walk.facts
        .retain(|value, fact| fact.data().is_some() || is_input(value) || names_sizes(fact) || is_plain(value, fact));
}

/// Returns `true` if all dims are numbers or given names, at least one a name that stands for itself. No knowledge gives such a fact a simpler form,
/// and a symbolic dim excludes known elements.
fn names_sizes_alone(fact: &Fact, scope: &Scope) -> bool {
    let dims = || fact.shape().into_iter().flatten().filter(|dim| dim.as_const().is_none());
    let is_name =
        |dim: &Dim| dim.as_symbol().is_some_and(|symbol| !scope.is_fresh(symbol)) && scope.current(dim) == *dim;
    fact.dtype().is_some() && dims().next().is_some() && dims().all(is_name)
}

/// Returns `true` if a main graph node without subgraphs or function computes a value.
fn is_of_main(model: &Model, value: ValueId) -> bool {
    let node = model.value(value).producer().and_then(|id| model.node(id));
    node.is_some_and(|node| {
        node.graph() == model.main() && node.subgraphs().next().is_none() && model.function_of(node).is_none()
    })
}

/// Returns `true` if all dims are numbers or names, at least one of a run-time size: this has no simpler form.
fn names_open_sizes(fact: &Fact, scope: &Scope) -> bool {
    let dims = || fact.shape().into_iter().flatten().filter(|dim| dim.as_const().is_none());
    fact.elements().is_none()
        && dims().all(|dim| dim.as_symbol().is_some())
        && dims().filter_map(Dim::as_symbol).any(|symbol| scope.is_fresh(symbol))
}
