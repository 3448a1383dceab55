//! Explains one node, tensor or dim, by its name.

use std::fmt::Write as _;

use super::cause::{View, cause};
use super::movement::maps_of_node;
use super::reach::Reaches;
use super::search::key;
use super::supposition::{Candidates, Size};
use super::{Explanation, Folded, MovementMap, NoPlace};
use crate::dim::{Dim, Symbol};
use crate::ir::text::type_text;
use crate::ir::{DeclaredType, DimClaim, Fact, Model, NodeId, ValueId};
use crate::ops::EventKind;
use crate::rewrite::meant;

/// The thing that a name denotes.
pub(super) enum Place {
    /// A symbolic dim of the inputs.
    Size(Size),
    /// A dim that is written with this name, and a value with this dim.
    Written(ValueId, Option<Dim>),
    /// A remaining node.
    Node(NodeId),
    /// A remaining value without a producer.
    Value(ValueId),
    /// A removed node, with its description.
    Gone(String),
}

/// Finds the thing with a name: first in the folded model, then in the original.
pub(super) fn find(folded: &Folded<'_>, candidates: &Candidates, name: &str) -> Result<Place, NoPlace> {
    let scope = folded.outcome.facts.scope();
    if let Some(size) = candidates.size(scope, name) {
        return Ok(Place::Size(size.clone()));
    }
    let (model, original) = (folded.model, folded.original);
    if let Some(id) = node_named(model, name) {
        return Ok(Place::Node(id));
    }
    if let Some(value) = values(model).find(|&value| model.value(value).name == name) {
        return Ok(model.value(value).producer().map_or(Place::Value(value), Place::Node));
    }
    if let Some((value, axis)) = written(model, name) {
        let dims = folded.outcome.facts.get(value).and_then(Fact::shape);
        return Ok(Place::Written(value, dims.and_then(|dims| dims.get(axis)).cloned()));
    }
    let by_value = || {
        let value = values(original).find(|&value| original.value(value).name == name)?;
        Some(original.value(value).producer().map_or_else(|| format!("'{name}'"), |id| original.describe(id)))
    };
    if let Some(described) = node_named(original, name).map(|id| original.describe(id)).or_else(by_value) {
        return Ok(Place::Gone(described));
    }
    Err(NoPlace { name: name.to_string(), nearest: nearest(folded, candidates, name) })
}

fn nearest(folded: &Folded<'_>, candidates: &Candidates, name: &str) -> Option<String> {
    let mut names: Vec<&str> = candidates.sizes.iter().map(|size| size.name.as_str()).collect();
    for model in [folded.model, folded.original] {
        names.extend(nodes(model).filter_map(|id| model.node(id)).map(|node| node.name.as_str()));
        names.extend(values(model).map(|value| model.value(value).name.as_str()));
    }
    names.retain(|name| !name.is_empty());
    meant(name, names.iter().copied()).map(str::to_string)
}

fn nodes(model: &Model) -> impl Iterator<Item = NodeId> + '_ {
    model.graphs().filter(|&graph| model.is_live(graph)).flat_map(|graph| model.graph(graph).nodes())
}

/// Returns inputs, initializers and results of nodes.
fn values(model: &Model) -> impl Iterator<Item = ValueId> + '_ {
    let graphs = model.graphs().filter(|&graph| model.is_live(graph));
    let held = graphs.flat_map(|graph| model.graph(graph).inputs().iter().chain(model.graph(graph).initializers()));
    held.copied()
        .chain(nodes(model).filter_map(|id| model.node(id)).flat_map(|node| node.outputs().iter().flatten().copied()))
}

fn node_named(model: &Model, name: &str) -> Option<NodeId> {
    nodes(model).find(|&id| model.node(id).is_some_and(|node| node.name == name && !name.is_empty()))
}

/// Returns the first value with a dim of this name in its written shape.
fn written(model: &Model, name: &str) -> Option<(ValueId, usize)> {
    values(model).find_map(|value| {
        let dims = model.value(value).declared.as_ref().and_then(DeclaredType::shape)?;
        let has = |dim: &crate::ir::DeclaredDim| matches!(&dim.claim, DimClaim::Param(text) if text == name);
        Some((value, dims.iter().position(has)?))
    })
}

/// Returns the answer for each of these names.
pub(super) fn answers(
    folded: &Folded<'_>,
    candidates: &Candidates,
    reaches: &Reaches,
    explanation: &Explanation,
    names: &[String],
) -> Result<(Vec<(String, String)>, Vec<MovementMap>), NoPlace> {
    let view = View { model: folded.model, facts: &folded.outcome.facts, reaches };
    let mut maps = Vec::new();
    let mut answer = |name: &String| {
        let text = match find(folded, candidates, name)? {
            Place::Size(size) => of_size(&view, explanation, &size),
            Place::Written(value, dim) => of_written(folded, &view, name, value, dim.as_ref()),
            Place::Node(id) => of_node(folded, &view, explanation, id, &mut maps),
            Place::Value(value) => of_value(&view, value),
            Place::Gone(described) => of_gone(folded, name, &described),
        };
        Ok((name.clone(), text))
    };
    let answers = names.iter().map(&mut answer).collect::<Result<_, NoPlace>>()?;
    Ok((answers, maps))
}

fn of_size(view: &View<'_>, explanation: &Explanation, size: &Size) -> String {
    let (input, axis) = &size.place;
    let mut text = format!("size '{}': axis {axis} of input '{input}'", size.name);
    let (low, high) = view.scope().bounds(&Dim::symbol(size.symbol));
    let range = match (low.filter(|low| *low > 0), high) {
        (Some(low), Some(high)) => format!("every valid run has {low} to {high}"),
        (Some(low), None) => format!("every valid run has at least {low}"),
        (None, Some(high)) => format!("every valid run has at most {high}"),
        (None, None) => "any size is possible".to_string(),
    };
    let has = |value: ValueId| {
        let dims = view.facts.get(value).and_then(Fact::shape);
        dims.is_some_and(|dims| dims.iter().any(|dim| dim.symbols().contains(&size.symbol)))
    };
    let results: Vec<ValueId> = nodes(view.model)
        .filter_map(|id| view.model.node(id))
        .flat_map(|node| node.outputs().iter().flatten().copied())
        .collect();
    let with = results.iter().filter(|&&value| has(value)).count();
    let _ = writeln!(text, "; {range}");
    let _ = writeln!(text, "  {with} of {} node outputs have this dim in their shapes", results.len());
    let about: Vec<_> = explanation.suggestions.iter().collect();
    for found in &about {
        let _ = writeln!(text, "  {}", found.told(explanation));
    }
    if about.is_empty() {
        text.push_str("  none of the assumptions about this dim that were tried allows further folding\n");
    }
    text
}

fn of_written(folded: &Folded<'_>, view: &View<'_>, name: &str, value: ValueId, dim: Option<&Dim>) -> String {
    let mut text = format!("size '{name}' of '{}'", view.name(value));
    if let Some((_, _, reason)) = folded
        .outcome
        .notes
        .iter()
        .find(|(place, kind, _)| *kind == EventKind::NamedSize && place.contains(&format!("'{name}'")))
    {
        let _ = writeln!(text, ": a name that replaces a long expression; {reason}");
    } else {
        text.push('\n');
    }
    open_sizes_of(view, dim.into_iter().flat_map(|dim| view.reaches.open(dim)).collect(), &mut text);
    text
}

fn open_sizes_of(view: &View<'_>, mut symbols: Vec<Symbol>, text: &mut String) {
    symbols.sort_unstable();
    symbols.dedup();
    for symbol in symbols.into_iter().take(4) {
        let size = view.open_size(symbol, 0);
        let _ = writeln!(text, "  its dim '{}': {}", size.name.unwrap_or_default(), size.reason);
        chain(text, &size.chain);
    }
}

fn chain(text: &mut String, chain: &[String]) {
    for step in chain {
        let _ = writeln!(text, "    <- {step}");
    }
}

fn of_node(
    folded: &Folded<'_>,
    view: &View<'_>,
    explanation: &Explanation,
    id: NodeId,
    maps: &mut Vec<MovementMap>,
) -> String {
    let Some((node, cause)) = view.model.node(id).zip(cause(folded, view.reaches, id)) else { return String::new() };
    let mut text = format!("{}: {}\n", cause.node, cause.reason);
    chain(&mut text, &cause.chain);
    let mut open = Vec::new();
    for &value in node.outputs().iter().flatten() {
        let ty = view.model.value(value).declared.as_ref().map_or_else(|| "unknown type".to_string(), type_text);
        let _ = writeln!(text, "  result '{}': {ty}", view.name(value));
        let dims = view.facts.get(value).and_then(Fact::shape).into_iter().flatten();
        open.extend(dims.flat_map(|dim| view.reaches.open(dim)));
    }
    for map in maps_of_node(view.model, view.facts, id) {
        match map {
            Ok(map) => {
                let _ = writeln!(text, "  index map: {}", map.legend());
                map.lines().iter().for_each(|line| _ = writeln!(text, "    {line}"));
                maps.push(map);
            }
            Err(undecided) => _ = writeln!(text, "  index map not known: {}", undecided.question(view.scope())),
        }
    }
    open_sizes_of(view, open, &mut text);
    let own = key(view.model, node);
    let mut settles = explanation.suggestions.iter().filter(|found| found.gone.contains(&own)).peekable();
    match settles.peek() {
        Some(_) => settles.for_each(|found| _ = writeln!(text, "  removed by {}", found.told(explanation))),
        None if explanation.trials.0 > 0 => text.push_str("  none of the assumptions that were tried removes it\n"),
        None => {}
    }
    text
}

fn of_value(view: &View<'_>, value: ValueId) -> String {
    let ty = view.model.value(value).declared.as_ref().map_or_else(|| "of unknown type".to_string(), type_text);
    let what = if view.model.value(value).is_constant() { "constant" } else { "input" };
    format!("{what} '{}': {ty}\n", view.name(value))
}

/// Lists the edits at a removed node.
fn of_gone(folded: &Folded<'_>, name: &str, described: &str) -> String {
    let mut text = format!("{described} was removed\n");
    let quoted = format!("'{name}'");
    let edits = folded.outcome.edits.iter().filter_map(|edit| Some((edit.name, edit.place.as_ref()?)));
    for (rule, place) in edits.filter(|(_, place)| place.contains(&quoted)).take(6) {
        let _ = writeln!(text, "  {rule} at {place}");
    }
    text
}
