//! Why what is left is left: for each node that stays, and each size that nobody knows, the chain from there to an input, an operator or a
//! size that only a run decides; and what would let more be done if it were known of the inputs.
//!
//! | file | what it does |
//! | --- | --- |
//! | `reach` | finds for each value what its elements depend on: sizes of inputs, their values, operators that are not known |
//! | `cause` | says of a node that stays why it does |
//! | `sizes` | says of a size that nobody knows where it comes from |
//! | `supposition` | what could be known of the inputs, by the questions that the prover could not answer |
//! | `search` | folds again under such suppositions, and keeps those that change something |
//! | `place` | answers for one node, tensor or size |
//! | `movement` | describes the index maps of nodes that move elements |
//! | `misses` | names the premise of a rule that fails at each remaining node |
//! | `text` | writes all of it down |
//!
//! Nothing here is guessed: a supposition is named only with what came of folding under it.

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

/// Why what is left of a model is left, and what would let more be done.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Explanation {
    /// Nodes before, and nodes left.
    pub nodes: (usize, usize),
    /// Results of nodes that are left, and how many of these have a size that the inputs' sizes do not tell.
    pub tensors: (usize, usize),
    /// What would let more be done, each tried by folding again.
    pub suggestions: Vec<Suggestion>,
    /// How many times the model was folded again, and whether there was more to try.
    pub trials: (usize, bool),
    /// Why each node that is left is left, in an order to compute in.
    pub causes: Vec<Cause>,
    /// Where each size comes from that the inputs' sizes do not tell.
    pub sizes: Vec<OpenSize>,
    /// What was asked about by name, and the answer: several lines.
    pub answers: Vec<(String, String)>,
    /// The index maps of the results of the named nodes.
    pub maps: Vec<MovementMap>,
}

/// What an explanation is made from.
pub(crate) struct Folded<'f> {
    /// The model as it was.
    pub original: &'f Model,
    /// The model as it is.
    pub model: &'f Model,
    /// What came of folding it, over a scope that noted its doubts.
    pub outcome: &'f Outcome,
    /// The options it was folded under.
    pub options: &'f Options,
    /// Bytes of the file it came from.
    pub bytes: usize,
    /// How much work folding was, in the units of a [`Meter`].
    pub work: u64,
}

/// A name that nothing in the model has.
#[derive(Clone, Debug, thiserror::Error)]
#[error("the model has no node, tensor or dim named '{name}'{}", nearest.as_ref().map(|name| format!("; did you mean '{name}'?")).unwrap_or_default())]
pub struct NoPlace {
    /// The name.
    pub name: String,
    /// The one that it was most likely meant to be.
    pub nearest: Option<String>,
}

/// Explains what is left; `names` are asked about in particular. The model is folded again at most `trials` times.
///
/// # Errors
/// Nothing has one of these names.
pub(crate) fn explain(folded: &Folded<'_>, names: &[String], trials: usize) -> Result<Explanation, NoPlace> {
    let facts = &folded.outcome.facts;
    let reaches = Reaches::of(folded.model, facts);
    let causes = cause::causes(folded, &reaches);
    let sizes = sizes::open_sizes(folded.model, facts, &reaches);
    let open = misses::open_questions(folded);
    let candidates = Candidates::new(folded.original, folded.model, facts, open);
    // A name that is nowhere is told before anything is tried.
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

/// Why each node that is left is left.
pub(crate) fn causes(folded: &Folded<'_>) -> Vec<Cause> {
    cause::causes(folded, &Reaches::of(folded.model, &folded.outcome.facts))
}

/// How many nodes are left that only compute with sizes.
pub(crate) fn size_nodes(model: &Model, facts: &Facts) -> usize {
    let reaches = Reaches::of(model, facts);
    let graphs = model.graphs().filter(|&graph| model.is_live(graph));
    let nodes = graphs.flat_map(|graph| model.graph(graph).nodes()).filter_map(|id| model.node(id));
    nodes.filter(|node| reaches.is_about_sizes(node)).count()
}

/// Folds a model anew under more assumptions; nothing, if they cannot be made.
fn folded_under(original: &Model, options: &Options, bytes: usize, meter: &Meter) -> Option<(Model, Outcome)> {
    let mut model = original.clone();
    let outcome: Result<Outcome, RunError> =
        crate::passes::run(&mut model, Rc::new(Scope::metered(meter)), options, bytes, &mut |_| {});
    Some((model, outcome.ok()?))
}
