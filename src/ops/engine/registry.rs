//! The table of all operators, collected from the families.

use std::sync::OnceLock;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::signature;
use crate::ir::{GraphId, Model, Node, NodeId};
use crate::ops::traits::Traits;
use crate::ops::{EvalCx, EvalResult, InferCx, InferResult};
use crate::sort;

/// Infers the facts of a node's outputs.
pub type Infer = fn(&mut InferCx<'_>) -> InferResult;

/// Computes a node's outputs from its operands' values.
pub type Eval = fn(&mut EvalCx<'_>) -> EvalResult;

/// An operator with all its versions.
#[derive(Clone, Copy, Debug)]
pub struct Operator {
    /// The domain; `""` is the default one.
    pub domain: &'static str,
    /// The name.
    pub name: &'static str,
    /// The `since_version`s in ascending order: the versions that changed the definition.
    pub versions: &'static [i64],
    /// The inference function.
    pub infer: Infer,
    /// The evaluation function, if any.
    pub eval: Option<Eval>,
    /// `true` if equal operands always give equal results; `false` for random operators.
    pub deterministic: bool,
    /// The operator's properties for general rules.
    pub traits: Traits,
}

impl Operator {
    /// Creates a deterministic operator of the default domain.
    pub const fn new(name: &'static str, versions: &'static [i64], infer: Infer, eval: Eval) -> Self {
        Operator { domain: "", name, versions, infer, eval: Some(eval), deterministic: true, traits: Traits::NONE }
    }

    /// Creates a deterministic operator of the default domain without evaluation.
    pub const fn infer_only(name: &'static str, versions: &'static [i64], infer: Infer) -> Self {
        Operator { domain: "", name, versions, infer, eval: None, deterministic: true, traits: Traits::NONE }
    }

    /// Sets the domain.
    pub const fn in_domain(mut self, domain: &'static str) -> Self {
        self.domain = domain;
        self
    }

    /// Sets the traits.
    pub const fn with(mut self, traits: Traits) -> Self {
        self.traits = traits;
        self
    }

    /// Marks the operator as random: its results differ between runs.
    pub const fn random(mut self) -> Self {
        self.deterministic = false;
        self
    }

    /// Returns the `since_version` that applies in `opset`; `None` if the operator is newer.
    pub fn since(&self, opset: i64) -> Option<i64> {
        self.versions.iter().rev().find(|&&version| version <= opset).copied()
    }

    /// Returns the `since_version` for a node in `opset`: the one that applies, or the first one. The latter is used
    /// for operators of the default domain that ONNX Runtime also accepts in older opsets.
    pub fn read_as(&self, opset: i64) -> Option<i64> {
        let is_older = self.domain.is_empty() && OLDER_IN_RUNTIME.contains(&self.name);
        self.since(opset).or_else(|| self.versions.first().copied().filter(|_| is_older))
    }
}

/// The operators that ONNX Runtime and its transformer optimizer write into models of any opset.
const OLDER_IN_RUNTIME: &[&str] = &["LayerNormalization"];

/// The status of a node in the table.
#[derive(Clone, Copy, Debug)]
pub enum Status {
    /// The operator, and the `since_version` that applies.
    Known(&'static Operator, i64),
    /// The operator is not in the table: the node is opaque.
    Unknown,
    /// The model's opset is older than the operator.
    TooOld,
    /// The model's opset is newer than this program supports: the definition may have changed.
    TooNew,
    /// The node has an attribute, operand or result that the version lacks; [`surplus`] describes it.
    Surplus,
}

/// Returns the status of a node in its graph.
pub(in crate::ops) fn status(model: &Model, node: &Node) -> Status {
    status_with(model, node, &mut Imported::default())
}

/// A cache of opsets: for each graph those of its few domains.
pub(in crate::ops) type Imported = FxHashMap<GraphId, SmallVec<[(&'static str, Option<i64>); 2]>>;

/// Returns the status of a node, with a cache of opsets.
pub(in crate::ops) fn status_with(model: &Model, node: &Node, seen: &mut Imported) -> Status {
    let Some(operator) = operator_of(model, node) else { return Status::Unknown };
    let domain = operator.domain;
    let known = seen.entry(node.graph()).or_default();
    let imported = match known.iter().find(|(other, _)| *other == domain) {
        Some(&(_, imported)) => imported,
        None => {
            let imported = model.opset(node.graph(), domain);
            known.push((domain, imported));
            imported
        }
    };
    let opset = match (imported, newest_opset(domain)) {
        (Some(opset), Some(newest)) if opset > newest => return Status::TooNew,
        (Some(opset), _) => opset,
        // Converters keep operators of their own domains without importing these.
        (None, None) => 1,
        (None, Some(_)) => return Status::Unknown,
    };
    match operator.read_as(opset) {
        None => Status::TooOld,
        Some(since) if signature::surplus(operator, since, node).is_some() => Status::Surplus,
        Some(since) => Status::Known(operator, since),
    }
}

/// Returns the nodes with parts that their operator's version lacks.
pub fn with_surplus(model: &Model, nodes: Vec<NodeId>) -> Vec<NodeId> {
    let mut seen = Imported::default();
    let mut has_surplus = |node: &Node| {
        matches!(status_with(model, node, &mut seen), Status::Surplus) && model.function_of(node).is_none()
    };
    nodes.into_iter().filter(|&id| model.node(id).is_some_and(&mut has_surplus)).collect()
}

/// Explains why a node has no definition.
pub(super) fn why_not_known(model: &Model, node: &Node, status: Status) -> String {
    let name = node.operator();
    match status {
        Status::TooOld => format!("{name} is newer than the operator set the model imports"),
        Status::TooNew => format!(
            "the model imports a newer operator set of domain '{}' than the newest this program knows",
            node.canonical_domain()
        ),
        Status::Surplus => surplus(model, node).unwrap_or_default(),
        Status::Unknown | Status::Known(..) => format!("there is no definition of {name}"),
    }
}

/// Describes the attribute, operand or result of a node that the operator's version lacks.
pub fn surplus(model: &Model, node: &Node) -> Option<String> {
    let operator = operator_of(model, node).filter(|_| model.function_of(node).is_none())?;
    signature::surplus(operator, operator.read_as(model.opset(node.graph(), operator.domain)?)?, node)
}

/// Describes what the standard's checker rejects: a [`surplus`], or an attribute that no version of the operator has.
pub fn nonstandard(model: &Model, node: &Node) -> Option<String> {
    let unknown = || {
        let operator = operator_of(model, node).filter(|_| model.function_of(node).is_none())?;
        signature::unknown_attribute(operator, node)
    };
    surplus(model, node).or_else(unknown)
}

/// Returns the newest supported operator set of a domain, or `None` for an unknown domain.
pub fn newest_opset(domain: &str) -> Option<i64> {
    Some(match domain {
        "" | "ai.onnx" => 28,
        "ai.onnx.ml" => 6,
        "ai.onnx.preview" | "ai.onnx.preview.training" => 1,
        _ => return None,
    })
}

/// Finds an operator by domain (`""` and `ai.onnx` are equal) and name.
pub fn operator(domain: &str, name: &str) -> Option<&'static Operator> {
    let table = Table::get();
    table.operators.get(table.find(domain, name)?).copied()
}

/// Returns the index of an operator in the table.
pub(super) fn place_of(operator: &Operator) -> Option<usize> {
    Table::get().find(operator.domain, operator.name)
}

/// Returns the index of a node's operator. The node's mark is this index unless the operator is a synonym.
pub(super) fn place_at(operator: &Operator, node: &Node) -> Option<usize> {
    let is_it = |place: &usize| Table::get().operators.get(*place).is_some_and(|known| std::ptr::eq(*known, operator));
    node.mark().map(usize::from).filter(is_it).or_else(|| place_of(operator))
}

/// The operators by name. Rules look them up at every node, so a key only uses the length and three letters of the
/// name. A key usually has one operator; two comparisons confirm it.
struct Table {
    /// The first index of each key in `operators`, and the end.
    begins: Vec<u16>,
    operators: Vec<&'static Operator>,
}

/// The number of keys.
const KEYS: usize = 4096;

impl Table {
    fn get() -> &'static Table {
        static TABLE: OnceLock<Table> = OnceLock::new();
        TABLE.get_or_init(Table::new)
    }

    fn new() -> Self {
        // There are only some hundreds of operators.
        let number = |place: usize| u16::try_from(place).unwrap_or(NO_OPERATOR);
        let mut keyed: Vec<(usize, &'static Operator)> =
            operators().map(|known| (Self::key(known.name), known)).collect();
        sort::by_key(&mut keyed, |&(key, _)| key);
        let mut begins = Vec::with_capacity(KEYS + 1);
        for (place, &(key, _)) in keyed.iter().enumerate() {
            begins.resize((key + 1).max(begins.len()), number(place));
        }
        begins.resize(KEYS + 1, number(keyed.len()));
        Table { begins, operators: keyed.into_iter().map(|(_, known)| known).collect() }
    }

    fn key(name: &str) -> usize {
        let letters = name.as_bytes();
        let at = |place: usize| usize::from(letters.get(place).copied().unwrap_or(0));
        let last = usize::from(letters.last().copied().unwrap_or(0));
        let mixed = at(0).wrapping_mul(31) ^ at(letters.len() / 2).wrapping_mul(7) ^ last.wrapping_mul(131);
        (mixed ^ letters.len().wrapping_mul(521)) % KEYS
    }

    /// Returns the index of an operator.
    fn find(&self, domain: &str, name: &str) -> Option<usize> {
        let domain = if domain == "ai.onnx" { "" } else { domain };
        let key = Self::key(name);
        let mut places = usize::from(*self.begins.get(key)?)..usize::from(*self.begins.get(key + 1)?);
        let is_it = |known: &&Operator| known.name == name && known.domain == domain;
        places.find(|&place| self.operators.get(place).is_some_and(is_it))
    }
}

/// Returns the operator of a node, independent of its version.
pub fn operator_of(model: &Model, node: &Node) -> Option<&'static Operator> {
    if model.has_synonyms() {
        let (domain, name) = model.meaning(node);
        return operator(domain, name);
    }
    // General rules look up the operator many times per node, so the index, or an invalid one, is stored in the
    // node's mark.
    let table = Table::get();
    let place = node.mark().unwrap_or_else(|| {
        let place = table.find(&node.domain, &node.op_type).and_then(|place| u16::try_from(place).ok());
        node.set_mark(place.unwrap_or(NO_OPERATOR));
        place.unwrap_or(NO_OPERATOR)
    });
    table.operators.get(usize::from(place)).copied()
}

/// An index beyond the end of the table.
const NO_OPERATOR: u16 = u16::MAX - 1;

/// Returns all operators, family by family.
pub fn operators() -> impl Iterator<Item = &'static Operator> {
    FAMILIES.iter().flat_map(|family| family.iter())
}

#[rustfmt::skip]
pub(in crate::ops) const FAMILIES: &[&[Operator]] = &[
    // One line per family.
    crate::ops::attention::OPERATORS,
    crate::ops::control::OPERATORS,
    crate::ops::conv::OPERATORS,
    crate::ops::elementwise::activation::OPERATORS,
    crate::ops::elementwise::arithmetic::OPERATORS,
    crate::ops::elementwise::bits::OPERATORS,
    crate::ops::elementwise::cast::OPERATORS,
    crate::ops::elementwise::functions::OPERATORS,
    crate::ops::elementwise::logic::OPERATORS,
    crate::ops::elementwise::random::OPERATORS,
    crate::ops::elementwise::select::OPERATORS,
    crate::ops::image::OPERATORS,
    crate::ops::linear::OPERATORS,
    crate::ops::microsoft::ATTENTION,
    crate::ops::microsoft::GENERATION,
    crate::ops::microsoft::MATRIX,
    crate::ops::microsoft::MOVEMENT,
    crate::ops::microsoft::OPERATORS,
    crate::ops::microsoft::QUANTIZED,
    crate::ops::microsoft::RECURRENT,
    crate::ops::ml::OPERATORS,
    crate::ops::movement::col2im::OPERATORS,
    crate::ops::movement::concat_split::OPERATORS,
    crate::ops::movement::constants::OPERATORS,
    crate::ops::movement::cumulate::OPERATORS,
    crate::ops::movement::expand_tile::OPERATORS,
    crate::ops::movement::gather::OPERATORS,
    crate::ops::movement::one_hot::OPERATORS,
    crate::ops::movement::pad::OPERATORS,
    crate::ops::movement::range::OPERATORS,
    crate::ops::movement::reshape::OPERATORS,
    crate::ops::movement::reverse_sequence::OPERATORS,
    crate::ops::movement::scatter::OPERATORS,
    crate::ops::movement::select::OPERATORS,
    crate::ops::movement::shape::OPERATORS,
    crate::ops::movement::squeeze::OPERATORS,
    crate::ops::movement::topk::OPERATORS,
    crate::ops::movement::transpose::OPERATORS,
    crate::ops::movement::triangle::OPERATORS,
    crate::ops::pool::OPERATORS,
    crate::ops::quantize::OPERATORS,
    crate::ops::recurrent::OPERATORS,
    crate::ops::reduce::OPERATORS,
    crate::ops::sequence::OPERATORS,
    crate::ops::signal::OPERATORS,
    crate::ops::slice::OPERATORS,
    crate::ops::text::OPERATORS,
];
