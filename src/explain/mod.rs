//! Explains why nodes remain and sizes are unknown: the chain to an input, an operator or a size that is known only at run time. Suggests assumptions
//! about the inputs under which folding does more.
//!
//! | file | what it does |
//! | --- | --- |
//! | `reach` | finds the dependencies of each value: sizes of inputs, their values, unknown operators |
//! | `cause` | finds the reason why a node is kept |
//! | `sizes` | finds the origin of an unknown size |
//! | `supposition` | derives suppositions about the inputs from the questions that the prover could not answer |
//! | `search` | folds again under such suppositions, and keeps those with an effect |
//! | `place` | explains one node, tensor or dim |
//! | `movement` | describes the index maps of nodes that move elements |
//! | `misses` | names the premise of a rule that fails at each remaining node |
//! | `text` | prints the explanation |
//!
//! Each supposition is reported with the measured result of folding under it.

mod cause;
mod misses;
mod movement;
mod place;
mod reach;
mod search;
mod sizes;
mod supposition;
mod text;

use std::rc::Rc;

use crate::dim::{Meter, Scope};
use crate::ir::{Facts, Model};
use crate::passes::{Options, Outcome, RunError};

pub use cause::{Cause, CauseKind};
pub(crate) use misses::NoAttempt;
pub use misses::{FailedPremise, RuleAtNode, RuleExplanation};
pub use movement::{MapDigit, MapPiece, MappedAxis, MappedRange, MappedTensor, MovementMap, RangeDensity};
pub use search::Suggestion;
pub use sizes::OpenSize;
pub use supposition::shell_word;

pub(crate) use misses::explain_rule;
pub(crate) use movement::{merged_maps, movement_maps};
use place::answers;
use reach::Reaches;
use search::Search;
use supposition::Candidates;

/// The reasons why nodes remain, and the assumptions under which folding does more.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Explanation {
    /// The number of nodes before and after folding.
    pub nodes: (usize, usize),
    /// The number of results of remaining nodes, and of those with a size that the input sizes do not determine.
    pub tensors: (usize, usize),
    /// The assumptions with an effect, each tried by folding again.
    pub suggestions: Vec<Suggestion>,
    /// The number of trial folds, and `true` if candidates remain untried.
    pub trials: (usize, bool),
    /// The reason for each remaining node, in topological order.
    pub causes: Vec<Cause>,
    /// The origin of each size that the input sizes do not determine.
    pub sizes: Vec<OpenSize>,
    /// The requested names, each with an answer of several lines.
    pub answers: Vec<(String, String)>,
    /// The index maps of the results of the named nodes.
    pub maps: Vec<MovementMap>,
}

/// A folded model, with everything that an explanation needs.
pub(crate) struct Folded<'f> {
    /// The model before folding.
    pub original: &'f Model,
    /// The model after folding.
    pub model: &'f Model,
    /// The outcome of folding with a scope that recorded open questions.
    pub outcome: &'f Outcome,
    /// The folding options.
    pub options: &'f Options,
    /// The size of the model file in bytes.
    pub bytes: usize,
    /// The work of folding, in the units of a [`Meter`].
    pub work: u64,
}

/// The error for a name that nothing in the model has.
#[derive(Clone, Debug, thiserror::Error)]
#[error("the model has no node, tensor or dim named '{name}'{}", nearest.as_ref().map(|name| format!("; did you mean '{name}'?")).unwrap_or_default())]
pub struct NoPlace {
    /// The name.
    pub name: String,
    /// The most similar existing name.
    pub nearest: Option<String>,
}

/// Explains the remaining nodes, and each of `names` in particular. Folds the model again at most `trials` times.
///
/// # Errors
/// A name does not exist in the model.
pub(crate) fn explain(folded: &Folded<'_>, names: &[String], trials: usize) -> Result<Explanation, NoPlace> {
    let facts = &folded.outcome.facts;
    let reaches = Reaches::of(folded.model, facts);
    let causes = cause::causes(folded, &reaches);
    let sizes = sizes::open_sizes(folded.model, facts, &reaches);
    let open = misses::open_questions(folded);
    let candidates = Candidates::new(folded.original, folded.model, facts, open);
    // Reports an unknown name before the search starts.
    for name in names {
        place::find(folded, &candidates, name)?;
    }
    let mut search = Search::new(folded, trials);
    search.all(&candidates, names);
    let mut explanation = Explanation {
        nodes: (search::nodes_of(folded.original), search.base().nodes),
        tensors: (search.base().results, search.base().open),
        trials: search.trials(),
        suggestions: search.into_suggestions(),
        causes,
        sizes,
        answers: Vec::new(),
        maps: Vec::new(),
    };
    (explanation.answers, explanation.maps) = answers(folded, &candidates, &reaches, &explanation, names)?;
    Ok(explanation)
}

/// Returns the reason for each remaining node.
pub(crate) fn causes(folded: &Folded<'_>) -> Vec<Cause> {
    cause::causes(folded, &Reaches::of(folded.model, &folded.outcome.facts))
}

/// Returns the number of remaining nodes that only compute with sizes.
pub(crate) fn size_nodes(model: &Model, facts: &Facts) -> usize {
    let reaches = Reaches::of(model, facts);
    let graphs = model.graphs().filter(|&graph| model.is_live(graph));
    let nodes = graphs.flat_map(|graph| model.graph(graph).nodes()).filter_map(|id| model.node(id));
    nodes.filter(|node| reaches.is_about_sizes(node)).count()
}

/// Folds a model again under other options; `None` if folding fails.
fn folded_under(original: &Model, options: &Options, bytes: usize, meter: &Meter) -> Option<(Model, Outcome)> {
    let mut model = original.clone();
    let outcome: Result<Outcome, RunError> =
        crate::passes::run(&mut model, Rc::new(Scope::metered(meter)), options, bytes, &mut |_| {});
    Some((model, outcome.ok()?))
}
