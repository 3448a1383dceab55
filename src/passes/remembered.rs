//! What is learned of the sizes, and what earlier runs learned.
//!
//! A node that a run takes away may have said something of the sizes: that a Reshape works tells that a sequence is not empty. Shapes are
//! written with that in mind (`2*seq - 1` for `max(0, 2*seq - 1)`), and a run over the result, which no longer has the node, would write
//! them otherwise. So what the nodes that are left do not say is kept in the model's metadata, as inequalities.
//!
//! Anybody can write metadata. So these inequalities decide one thing: whether a shape that the file declares stays as it is, where what is
//! proved reads longer and would be the same if they held. No rule sees a scope that has them, and nothing is written that the file does
//! not say already.

use std::rc::Rc;

use super::contract::Contract;
use super::dead;
use super::options::Options;
use super::outcome::RunError;
use crate::dim::{Dim, Scope, Symbol};
use crate::ir::{Definition, Fact, Facts, Model, Node, ValueId};
use crate::ops::{Budget, Walk};
use crate::sort;

/// More inequalities, or longer ones, are not kept and not read.
const MOST: usize = 32;
const LONGEST: usize = 120;
/// Nor are those of more terms, whose shortest form is not even looked for.
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

/// A copy of the scope in which the inequalities hold that the model's metadata has; `None` if there are none that can hold.
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

/// The inequalities between sizes of the inputs that hold in a scope, and that `zeros` are 0 where nothing is empty, as far as the model's
/// nodes do not tell it, in one text.
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
    // A size that is a number by now is no symbol of a fact any more.
    let declared = inputs.iter().filter_map(|&input| model.value(input).declared.as_ref()?.shape()).flatten();
    symbols.extend(declared.filter_map(|dim| scope.lookup(dim.claim.name()?)));
    symbols.sort_unstable();
    symbols.dedup();
    symbols.retain(|&symbol| !scope.is_fresh(symbol));
    // What is too long to be kept is not asked about. The shortest text takes a search, and most of what is known is told.
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

/// Infers until what the nodes need of the sizes tells nothing new, and forgets what can now be said more simply.
///
/// # Errors
/// The model is inconsistent.
pub(super) fn learn(model: &Model, walk: &mut Walk) -> Result<(), RunError> {
    learn_until(model, walk, &|_| false)
}

/// The same, but it stops once `enough` holds.
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

/// Bounds symbols by the needs of the remaining nodes, as a second run would. Returns `true` if a bound is new, so that values have to be
/// inferred again.
pub(super) fn learn_again(model: &Model, walk: &mut Walk) -> bool {
    let learned = walk.learn(model, &dead::live_nodes(model));
    if learned {
        forget_longer(model, walk, true);
    }
    learned
}

/// Removes the facts that may have a simpler form after new bounds. Facts with run-time sizes can be kept: inferred again, these sizes would
/// get new symbols without bounds.
fn forget_longer(model: &Model, walk: &mut Walk, keeps_open_sizes: bool) {
    let is_input = |value| matches!(model.value(value).definition(), Definition::Input(_));
    let scope = Rc::clone(walk.scope());
    let names_sizes = |fact: &Fact| keeps_open_sizes && names_open_sizes(fact, &scope);
    let trusts = walk.trust_declared;
    let is_plain = |value, fact: &Fact| !trusts && names_sizes_alone(fact, &scope) && is_of_main(model, value);
    // What was told of a node that is not inferred again is not told again.
    let (facts, mut events) = (&walk.facts, std::mem::take(&mut walk.events));
    events.retain(|event| {
        let mut results = model.node(event.node).into_iter().flat_map(Node::outputs).flatten().peekable();
        results.peek().is_some() && results.all(|&result| facts.get(result).is_some_and(|fact| is_plain(result, fact)))
    });
    walk.events = events;
    walk.facts
        .retain(|value, fact| fact.data().is_some() || is_input(value) || names_sizes(fact) || is_plain(value, fact));
}

/// Whether all dims are numbers or names that others gave, at least one a name, which is not another one's by now: that is not said more
/// simply either, whatever becomes known. There are no elements to become known where a dim is no number.
fn names_sizes_alone(fact: &Fact, scope: &Scope) -> bool {
    let dims = || fact.shape().into_iter().flatten().filter(|dim| dim.as_const().is_none());
    let is_name =
        |dim: &Dim| dim.as_symbol().is_some_and(|symbol| !scope.is_fresh(symbol)) && scope.current(dim) == *dim;
    fact.dtype().is_some() && dims().next().is_some() && dims().all(is_name)
}

/// Whether a value is computed by a node of the main graph that has nothing inside.
fn is_of_main(model: &Model, value: ValueId) -> bool {
    let node = model.value(value).producer().and_then(|id| model.node(id));
    node.is_some_and(|node| {
        node.graph() == model.main() && node.subgraphs().next().is_none() && model.function_of(node).is_none()
    })
}

/// Whether all dims are numbers or names, one of them of a size that only a run decides: that is not said more simply.
fn names_open_sizes(fact: &Fact, scope: &Scope) -> bool {
    let dims = || fact.shape().into_iter().flatten().filter(|dim| dim.as_const().is_none());
    fact.elements().is_none()
        && dims().all(|dim| dim.as_symbol().is_some())
        && dims().filter_map(Dim::as_symbol).any(|symbol| scope.is_fresh(symbol))
}
