//! Finds the reason why each remaining node is kept.

use crate::dim::{Dim, Scope, Symbol};
use crate::ir::{Definition, Fact, Facts, Model, Node, NodeId, ValueId};
use crate::ops::{EventKind, operator_of, slice_cuts};
use crate::slicing::Bound;

use super::Folded;
use super::reach::{Kind, Reach, Reaches, integers, is_unknown};
use super::supposition::thresholds;

/// The most characters of a printed expression.
const LONG: usize = 60;

/// The kind of reason that keeps a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum CauseKind {
    /// The node computes with input values, as the model intends.
    Values,
    /// The node selects or moves input values.
    Moves,
    /// The node computes integers from sizes that are known only at run time.
    Sizes,
    /// The operator of the node, or of one before it, is unknown.
    Operator,
    /// The node draws random numbers, or computes with some.
    Random,
    /// The node keeps constants quantized for the runtime.
    Quantized,
    /// The node could be evaluated, but was not.
    Declined,
    /// The node is invalid or disputed, or computes operands of such a node.
    Untouched,
}

impl CauseKind {
    /// Returns the name of the kind.
    pub fn name(self) -> &'static str {
        match self {
            CauseKind::Values => "values",
            CauseKind::Moves => "moves",
            CauseKind::Sizes => "sizes",
            CauseKind::Operator => "operator",
            CauseKind::Random => "random",
            CauseKind::Quantized => "quantized",
            CauseKind::Declined => "declined",
            CauseKind::Untouched => "untouched",
        }
    }

    /// Returns a heading for nodes of this kind.
    pub fn title(self) -> &'static str {
        match self {
            CauseKind::Values => "Depend on input values",
            CauseKind::Moves => "Select or rearrange input values",
            CauseKind::Sizes => "Shape computations: these nodes compute tensor sizes that are known only at run time",
            CauseKind::Operator => "Depend on an unknown operator",
            CauseKind::Random => "Depend on random numbers",
            CauseKind::Quantized => "Keep constants quantized",
            CauseKind::Declined => "Could be folded, but were not",
            CauseKind::Untouched => "Invalid or disputed, and kept unchanged",
        }
    }
}

/// The reason why a node is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Cause {
    /// The node: its operator, and its name or the name of a result.
    pub node: String,
    /// The operator, with the domain unless it is the default one.
    pub operator: String,
    /// The first result.
    pub result: String,
    /// The kind of reason.
    pub kind: CauseKind,
    /// The reason, as a clause.
    pub reason: String,
    /// The path from the node to an input or an operator, one value or node per entry.
    pub chain: Vec<String>,
}

/// Returns the reason for each remaining node in topological order, subgraphs after the graph that contains them.
pub(super) fn causes(folded: &Folded<'_>, reaches: &Reaches) -> Vec<Cause> {
    let model = folded.model;
    let mut found = Vec::new();
    let mut graphs = vec![model.main()];
    while let Some(graph) = graphs.pop() {
        let order = model.topological(graph).unwrap_or_else(|_| model.graph(graph).nodes().collect());
        for id in order {
            found.extend(cause(folded, reaches, id));
            graphs.extend(model.node(id).into_iter().flat_map(Node::subgraphs));
        }
    }
    found
}

/// Returns the reason why one node is kept.
pub(super) fn cause(folded: &Folded<'_>, reaches: &Reaches, id: NodeId) -> Option<Cause> {
    let model = folded.model;
    let node = model.node(id)?;
    let view = View { model, facts: &folded.outcome.facts, reaches };
    let (kind, reason, from) = reason(folded, &view, id, node);
    let result = node.outputs().iter().flatten().next().map_or_else(String::new, |&value| view.name(value).to_string());
    let chain = from.map_or_else(Vec::new, |value| view.chain(value));
    Some(Cause { node: model.describe(id), operator: node.operator(), result, kind, reason, chain })
}

type Reason = (CauseKind, String, Option<ValueId>);

fn reason(folded: &Folded<'_>, view: &View<'_>, id: NodeId, node: &Node) -> Reason {
    if is_unknown(view.model, node) {
        return (CauseKind::Operator, format!("the operator '{}' is unknown", node.operator()), None);
    }
    if view.model.function_of(node).is_some() {
        return (CauseKind::Values, "it calls a function of the model".to_string(), None);
    }
    let described = view.model.describe(id);
    let note = folded.outcome.notes.iter().find(|(place, kind, _)| {
        *place == described && !matches!(kind, EventKind::Claimed | EventKind::FalseClaim | EventKind::NamedSize)
    });
    let results: Vec<ValueId> = node.outputs().iter().flatten().copied().collect();
    let first = Reach { kind: Kind::Constant, via: None };
    let reach = results.iter().map(|&value| view.reaches.get(value)).max_by_key(|reach| reach.kind).unwrap_or(first);
    let from = reach.via;
    let limited = |(place, kind, _): &&(String, EventKind, String)| *place == described && *kind == EventKind::Limited;
    if let Some((_, _, reason)) = folded.outcome.notes.iter().find(limited) {
        return (CauseKind::Declined, reason.clone(), from);
    }
    match (note, reach.kind) {
        (Some((_, EventKind::Invalid | EventKind::Disputed, reason)), _) => {
            (CauseKind::Untouched, reason.clone(), from)
        }
        (Some((_, _, reason)), Kind::Constant) => (CauseKind::Declined, reason.clone(), from),
        (None, Kind::Constant) => constant(view, node),
        (_, Kind::Random) => match from {
            None => (CauseKind::Random, "it draws random numbers, different ones in each run".to_string(), None),
            Some(_) => (CauseKind::Random, "it computes with random numbers".to_string(), from),
        },
        (_, Kind::Sizes) => sizes(view, node, &results, from),
        (_, Kind::Opaque) => (CauseKind::Operator, "it depends on the result of an unknown operator".to_string(), from),
        (_, Kind::Values) => values(view, id, node, from),
    }
}

/// Explains a node whose results are the same in every run.
fn constant(view: &View<'_>, node: &Node) -> Reason {
    if ["DequantizeLinear", "QuantizeLinear", "DynamicQuantizeLinear"].iter().any(|name| node.is(name)) {
        let reason = "it keeps a constant quantized for the integer kernels of runtimes; --fold-dequantize folds it";
        let reason = if node.is("DequantizeLinear") { reason } else { "it keeps a constant quantized" };
        return (CauseKind::Quantized, reason.to_string(), None);
    }
    let operand = node.inputs().iter().flatten().copied().find_map(|value| view.model.value(value).producer());
    let is_quantized = operand.and_then(|id| view.model.node(id)).is_some_and(|node| node.is("DequantizeLinear"));
    if is_quantized {
        let reason = "it rearranges a constant that is kept quantized for the integer kernels of runtimes".to_string();
        return (CauseKind::Quantized, reason, None);
    }
    if operator_of(view.model, node).is_some_and(|operator| operator.eval.is_none()) {
        return (CauseKind::Declined, "this program has no evaluator for its operator".to_string(), None);
    }
    let is_known =
        node.outputs().iter().flatten().any(|&value| view.facts.get(value).is_some_and(|f| f.data().is_some()));
    let reason = match is_known {
        true => "its result is constant, but a consumer needs the node, or the constant would enlarge the model",
        false => "its operands are constants, but it was not evaluated",
    };
    (CauseKind::Declined, reason.to_string(), None)
}

/// Explains a node that computes only with sizes.
fn sizes(view: &View<'_>, node: &Node, results: &[ValueId], from: Option<ValueId>) -> Reason {
    let (mut told, mut limits): (Vec<String>, String) = (Vec::new(), String::new());
    for &value in results {
        let Some(fact) = view.facts.get(value) else { continue };
        let elements = integers(fact);
        let dims = if elements.is_empty() { fact.shape().unwrap_or_default().to_vec() } else { elements };
        told.extend(dims.iter().filter(|dim| dim.as_const().is_none()).take(3).map(|dim| view.size(dim)));
        limits = view.limits(dims.iter().take(3));
    }
    told.dedup();
    told.truncate(3);
    let what = match (node.is("Shape") || node.is("Size"), told.is_empty()) {
        (true, false) => format!("it returns {}", told.join(", ")),
        (_, true) => "it computes with sizes".to_string(),
        (false, false)
            if results.iter().any(|&value| view.facts.get(value).is_some_and(|f| !integers(f).is_empty())) =>
        {
            format!("it computes {}", told.join(", "))
        }
        (false, false) => format!("its result has the dynamic dims {}", told.join(", ")),
    };
    let names = view.input_sizes(results, node);
    let known = if names.is_empty() { String::new() } else { format!("; {} known only at run time", is(&names)) };
    let readers = view.readers(results);
    (CauseKind::Sizes, format!("{what}{known}{limits}{readers}"), from)
}

fn is(names: &[String]) -> String {
    match names {
        [one] => format!("{one} is"),
        [rest @ .., last] => format!("{} and {last} are", rest.join(", ")),
        [] => String::new(),
    }
}

/// Explains a node that computes with input values.
fn values(view: &View<'_>, id: NodeId, node: &Node, from: Option<ValueId>) -> Reason {
    let reach = |slot: usize| node.input(slot).map(|value| (value, view.reaches.get(value).kind));
    let name = |slot: usize| node.input(slot).map_or("", |value| view.name(value));
    let moves = |reason: String| (CauseKind::Moves, reason, from);
    match node.op_type.as_str() {
        "Slice" => moves(slice(view, id, node)),
        "Shape" | "Size" => {
            let text = "it returns sizes that depend on input values".to_string();
            (CauseKind::Sizes, format!("{text}{}", view.readers(&outputs(node))), from)
        }
        "Gather" | "GatherElements" | "GatherND" => match (reach(0), reach(1)) {
            (_, Some((indices, Kind::Values))) => {
                let text = format!("its indices '{}' depend on values of {}", view.name(indices), view.root(indices));
                (CauseKind::Moves, text, Some(indices))
            }
            (_, Some((indices, Kind::Sizes))) => moves(format!(
                "its indices '{}' depend on dims that are known only at run time, and its data depends on values of {}",
                view.name(indices),
                view.root_of(from)
            )),
            _ => {
                moves(format!("it selects elements of '{}', which depend on values of {}", name(0), view.root_of(from)))
            }
        },
        "Expand" => moves(format!("it repeats '{}'{}{}", name(0), view.shapes(node), view.readers(&outputs(node)))),
        "Where" => match reach(0) {
            Some((condition, Kind::Values)) => {
                let text =
                    format!("its condition '{}' depends on values of {}", view.name(condition), view.root(condition));
                (CauseKind::Moves, text, Some(condition))
            }
            Some((condition, Kind::Sizes)) => moves(format!(
                "its condition '{}' depends on sizes, and it selects between values of {}",
                view.name(condition),
                view.root_of(from)
            )),
            _ => moves(format!(
                "its condition '{}' is constant but mixed, and it selects between values of {}",
                name(0),
                view.root_of(from)
            )),
        },
        "Range" => moves(format!("its limits depend on values of {}", view.root_of(from))),
        "Reshape" | "Transpose" | "Concat" | "Split" | "Squeeze" | "Unsqueeze" | "Identity" | "Pad" | "Tile"
        | "Flatten" => moves(format!("it rearranges values of {}{}", view.root_of(from), view.shapes(node))),
        _ => (CauseKind::Values, format!("it computes with values of {}", view.root_of(from)), from),
    }
}

fn outputs(node: &Node) -> Vec<ValueId> {
    node.outputs().iter().flatten().copied().collect()
}

/// Describes the elements that a Slice selects, and if they may be the whole axis.
fn slice(view: &View<'_>, id: NodeId, node: &Node) -> String {
    let data = node.input(0).map_or("", |value| view.name(value));
    let Some(cuts) = slice_cuts(view.model, view.facts, id) else {
        let open =
            (1..5).filter_map(|slot| node.input(slot)).find(|&value| view.reaches.get(value).kind > Kind::Constant);
        return match open {
            Some(bound) => format!("its operand '{}' depends on {}", view.name(bound), view.depends(bound)),
            None => {
                format!("the shape of '{data}' is unknown, or ONNX Runtime and the standard disagree about the slice")
            }
        };
    };
    let (mut told, mut limits) = (Vec::new(), String::new());
    for (axis, cut) in cuts.cut() {
        let Some(dim) = cuts.dims.get(axis) else { continue };
        let bounds = [&cut.range.begin, &cut.range.end].into_iter().filter_map(|bound| match bound {
            Bound::At(dim) => Some(dim),
            Bound::Open | Bound::Unknown => None,
        });
        let exact = cut.exact.iter().flat_map(|(start, len)| [start, len]);
        limits.push_str(&view.limits(bounds.chain(exact)));
        told.push(match &cut.exact {
            Some((start, len)) => {
                let never = view.facts.scope().eq(len, dim).is_no();
                let never = if never { "" } else { ", the whole axis only for some sizes" };
                let (start, len, dim) = (view.size(start), view.size(len), view.size(dim));
                format!("{len} of {dim} elements on axis {axis} from index {start}{never}")
            }
            None => {
                let bound = |bound: &Bound| match bound {
                    Bound::At(dim) => view.size(dim),
                    Bound::Open => String::new(),
                    Bound::Unknown => "?".to_string(),
                };
                let range = format!("{}:{}", bound(&cut.range.begin), bound(&cut.range.end));
                format!("[{range}] of {} elements on axis {axis}, an unknown number of elements", view.size(dim))
            }
        });
    }
    if told.is_empty() {
        return format!("it selects all of '{data}', but its name or a consumer keeps it");
    }
    format!("it selects from '{data}': {}{limits}", told.join("; "))
}

/// A model with its facts, and the names of its values and dims.
pub(super) struct View<'v> {
    pub model: &'v Model,
    pub facts: &'v Facts,
    pub reaches: &'v Reaches,
}

impl View<'_> {
    pub fn scope(&self) -> &Scope {
        self.facts.scope()
    }

    pub fn name(&self, value: ValueId) -> &str {
        &self.model.value(value).name
    }

    /// Prints a dim, truncated if it is long. Integers that a runtime computes in a type are printed as such: `int32(n**2)`.
    pub fn size(&self, dim: &Dim) -> String {
        self.with_types(self.scope().format_within(dim, LONG), dim)
    }

    fn with_types(&self, text: String, dim: &Dim) -> String {
        let computed = dim.symbols().into_iter().filter_map(|symbol| Some((symbol, self.computed(symbol)?)));
        computed.fold(text, |text, (symbol, computed)| {
            let name = self.scope().name(symbol);
            let is_part = |c: char| c.is_alphanumeric() || c == '_';
            let mut replaced = String::new();
            let mut rest = text.as_str();
            while let Some((before, after)) = rest.split_once(&*name) {
                let is_whole = !before.ends_with(is_part) && !after.starts_with(is_part);
                replaced.push_str(before);
                replaced.push_str(if is_whole { &computed } else { &name });
                rest = after;
            }
            replaced + rest
        })
    }

    /// Prints an integer as computed by a runtime in a type: `int32(n**2)`.
    pub fn computed(&self, symbol: Symbol) -> Option<String> {
        let (law, operand) = self.scope().computed(symbol)?;
        Some(format!("{}({})", law.kind().0, self.scope().format_within(&operand, LONG)))
    }

    /// Describes up to which size a computed integer is exact: `the int32 value of n**2 overflows if n >= 46341`.
    pub fn limit(&self, symbol: Symbol) -> Option<String> {
        let (law, operand) = self.scope().computed(symbol)?;
        let (ty, fault) = law.kind();
        let text = self.scope().format_within(&operand, LONG);
        let slack = self.scope().sub(&Dim::constant(law.reach), &operand);
        let symbols = slack.symbols();
        let only = symbols.first().filter(|_| symbols.len() == 1).copied();
        let bound = only.and_then(|only| Some((only, thresholds(&slack, only, 1).1?)));
        Some(match bound {
            Some((symbol, most)) => {
                let name = self.scope().name(symbol);
                format!("the {ty} value of {text} {fault} if {name} >= {}", most.saturating_add(1))
            }
            None => format!("the {ty} value of {text} {fault} if {text} exceeds {}", law.reach),
        })
    }

    /// Describes the limits of all computed integers in the dims.
    pub fn limits<'d>(&self, dims: impl Iterator<Item = &'d Dim>) -> String {
        let mut limits: Vec<String> = Vec::new();
        for limit in dims.flat_map(Dim::symbols).filter_map(|symbol| self.limit(symbol)) {
            if !limits.contains(&limit) {
                limits.push(limit);
            }
        }
        limits.iter().take(2).map(|limit| format!("; {limit}")).collect()
    }

    /// Describes the last value of the path from a value: an input, or a computed value.
    pub fn root(&self, value: ValueId) -> String {
        let last = self.reaches.chain(value).last().copied().unwrap_or(value);
        match self.model.value(last).definition() {
            Definition::Input(graph) if graph == self.model.main() => format!("input '{}'", self.name(last)),
            Definition::Input(_) => format!("'{}', an input of a subgraph", self.name(last)),
            _ => format!("'{}'", self.name(last)),
        }
    }

    pub fn root_of(&self, value: Option<ValueId>) -> String {
        value.map_or_else(|| "the inputs".to_string(), |value| self.root(value))
    }

    /// Describes the dependencies of a value, as a noun.
    pub fn depends(&self, value: ValueId) -> String {
        match self.reaches.get(value).kind {
            Kind::Constant => "constants only".to_string(),
            Kind::Sizes => "sizes of the inputs".to_string(),
            Kind::Random => "random numbers".to_string(),
            Kind::Opaque => format!("an unknown operator through {}", self.root(value)),
            Kind::Values => format!("values of {}", self.root(value)),
        }
    }

    /// Describes the path from a value to an input or operator: the producer of each value.
    pub fn chain(&self, value: ValueId) -> Vec<String> {
        const MOST: usize = 12;
        let chain = self.reaches.chain(value);
        let told = |value: &ValueId| match self.model.value(*value).definition() {
            Definition::Node(node, _) => format!("'{}' from {}", self.name(*value), self.model.describe(node)),
            Definition::Input(graph) if graph == self.model.main() => format!("input '{}'", self.name(*value)),
            _ => format!("'{}'", self.name(*value)),
        };
        if chain.len() <= MOST {
            return chain.iter().map(told).collect();
        }
        let mut shown: Vec<String> = chain.iter().take(MOST - 2).map(told).collect();
        shown.push(format!("{} more", chain.len() - MOST + 1));
        shown.extend(chain.last().map(told));
        shown
    }

    /// Describes the shapes of the first operand and result, if they are known and differ.
    fn shapes(&self, node: &Node) -> String {
        let shape = |value: Option<ValueId>| {
            let dims = self.facts.get(value?).and_then(Fact::shape)?;
            Some(format!("[{}]", dims.iter().map(|dim| self.size(dim)).collect::<Vec<_>>().join(", ")))
        };
        match (shape(node.input(0)), shape(node.output(0))) {
            (Some(before), Some(after)) if before != after => format!(" from {before} to {after}"),
            _ => String::new(),
        }
    }

    /// Describes the consumers of these values.
    fn readers(&self, values: &[ValueId]) -> String {
        let mut readers: Vec<String> = Vec::new();
        for &value in values {
            for (user, _) in self.model.users(value) {
                let text = self.model.describe(user);
                if !readers.contains(&text) {
                    readers.push(text);
                }
            }
        }
        let is_output = values.iter().any(|&value| self.model.is_output(value));
        match (readers.as_slice(), is_output) {
            ([], true) => "; it is a model output".to_string(),
            ([], false) => String::new(),
            ([one], _) => format!("; consumer: {one}"),
            ([first, rest @ ..], _) => format!("; consumers: {first} and {} more", rest.len()),
        }
    }

    /// Returns the input dims that the results depend on, or the operands if the results have none: `dim h of input 'x'`.
    fn input_sizes(&self, results: &[ValueId], node: &Node) -> Vec<String> {
        let of = |values: &[ValueId]| {
            let mut names: Vec<String> = Vec::new();
            for fact in values.iter().filter_map(|&value| self.facts.get(value)) {
                let elements = integers(fact);
                for symbol in fact.shape().into_iter().flatten().chain(&elements).flat_map(|dim| dim.symbols()) {
                    let name = self.scope().name(symbol).to_string();
                    if self.reaches.inputs.contains(&symbol) && !names.contains(&name) {
                        names.push(name);
                    }
                }
            }
            names
        };
        let mut names = of(results);
        if names.is_empty() {
            names = of(&node.inputs().iter().flatten().copied().collect::<Vec<_>>());
        }
        names.truncate(4);
        names
    }
}
