//! The one table of operators, put together from the families.

use std::sync::OnceLock;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::signature;
use crate::ir::{GraphId, Model, Node, NodeId};
use crate::ops::traits::Traits;
use crate::ops::{EvalCx, EvalResult, InferCx, InferResult};
use crate::sort;

/// States the facts about a node's outputs.
pub type Infer = fn(&mut InferCx<'_>) -> InferResult;

/// Computes a node's outputs from its operands' values.
pub type Eval = fn(&mut EvalCx<'_>) -> EvalResult;

/// An operator of some domain, all its versions together.
#[derive(Clone, Copy, Debug)]
pub struct Operator {
    /// The domain; `""` is the default one.
    pub domain: &'static str,
    /// The name.
    pub name: &'static str,
    /// The versions in which its definition changed, ascending: the `since_version`s.
    pub versions: &'static [i64],
    /// Inference.
    pub infer: Infer,
    /// Evaluation, if there is any.
    pub eval: Option<Eval>,
    /// Whether equal operands always give equal results. Random operators are not.
    pub deterministic: bool,
    /// What it says of itself to general rules.
    pub traits: Traits,
}

impl Operator {
    /// A deterministic operator of the default domain.
    pub const fn new(name: &'static str, versions: &'static [i64], infer: Infer, eval: Eval) -> Self {
        Operator { domain: "", name, versions, infer, eval: Some(eval), deterministic: true, traits: Traits::NONE }
    }

    /// A deterministic operator of the default domain that is not evaluated.
    pub const fn infer_only(name: &'static str, versions: &'static [i64], infer: Infer) -> Self {
        Operator { domain: "", name, versions, infer, eval: None, deterministic: true, traits: Traits::NONE }
    }

    /// The same in another domain.
    pub const fn in_domain(mut self, domain: &'static str) -> Self {
        self.domain = domain;
        self
    }

    /// The same, with what it says of itself.
    pub const fn with(mut self, traits: Traits) -> Self {
        self.traits = traits;
        self
    }

    /// The same, giving other results at each run.
    pub const fn random(mut self) -> Self {
        self.deterministic = false;
        self
    }

    /// The `since_version` that is in force at operator set `opset`; `None` when the operator came later.
    pub fn since(&self, opset: i64) -> Option<i64> {
        self.versions.iter().rev().find(|&&version| version <= opset).copied()
    }

    /// The `since_version` by which a node in operator set `opset` is read: that in force, or the first one of an operator that ONNX Runtime
    /// has in older sets of the default domain as well, by the same definition.
    pub fn read_as(&self, opset: i64) -> Option<i64> {
        let is_older = self.domain.is_empty() && OLDER_IN_RUNTIME.contains(&self.name);
        self.since(opset).or_else(|| self.versions.first().copied().filter(|_| is_older))
    }
}

/// What ONNX Runtime and its transformer optimizer write into models of any operator set.
const OLDER_IN_RUNTIME: &[&str] = &["LayerNormalization"];

/// What the table says of a node.
#[derive(Clone, Copy, Debug)]
pub enum Status {
    /// The operator, and the `since_version` in force.
    Known(&'static Operator, i64),
    /// Not in the table: opaque.
    Unknown,
    /// In the table, but the model's operator set is older than the operator.
    TooOld,
    /// The model's operator set is newer than this program: the definition may have changed.
    TooNew,
    /// The node has something that the version in force does not have, which [`surplus`] names.
    Surplus,
}

/// What the table says of a node, where it stands.
pub(in crate::ops) fn status(model: &Model, node: &Node) -> Status {
    status_with(model, node, &mut Imported::default())
}

/// The operator sets that were looked up: for each graph those of its domains, which are few.
pub(in crate::ops) type Imported = FxHashMap<GraphId, SmallVec<[(&'static str, Option<i64>); 2]>>;

/// The same, remembering the operator sets it has looked up.
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
        // Converters leave operators of their own domains behind without importing them.
        (None, None) => 1,
        (None, Some(_)) => return Status::Unknown,
    };
    match operator.read_as(opset) {
        None => Status::TooOld,
        Some(since) if signature::surplus(operator, since, node).is_some() => Status::Surplus,
        Some(since) => Status::Known(operator, since),
    }
}

/// Those of these nodes that have something which their operators do not have in the version in force.
pub fn with_surplus(model: &Model, nodes: Vec<NodeId>) -> Vec<NodeId> {
    let mut seen = Imported::default();
    let mut has_surplus = |node: &Node| {
        matches!(status_with(model, node, &mut seen), Status::Surplus) && model.function_of(node).is_none()
    };
    nodes.into_iter().filter(|&id| model.node(id).is_some_and(&mut has_surplus)).collect()
}

/// Why a node is not what its operator defines, in words.
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

/// What a node has that its operator does not have in the version in force, in words: an attribute, an operand or a result.
pub fn surplus(model: &Model, node: &Node) -> Option<String> {
    let operator = operator_of(model, node).filter(|_| model.function_of(node).is_none())?;
    signature::surplus(operator, operator.read_as(model.opset(node.graph(), operator.domain)?)?, node)
}

/// What the standard's checker refuses of a node by itself, in words: [`surplus`], and an attribute that no version of the operator has.
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

/// Finds an operator by domain (`""` and `ai.onnx` are one) and name.
pub fn operator(domain: &str, name: &str) -> Option<&'static Operator> {
    let table = Table::get();
    table.operators.get(table.find(domain, name)?).copied()
}

/// Where an operator stands among all of them, counted from 0.
pub(super) fn place_of(operator: &Operator) -> Option<usize> {
    Table::get().find(operator.domain, operator.name)
}

/// The same of the operator of a node, which is marked with the place unless it goes by another name.
pub(super) fn place_at(operator: &Operator, node: &Node) -> Option<usize> {
    let is_it = |place: &usize| Table::get().operators.get(*place).is_some_and(|known| std::ptr::eq(*known, operator));
    node.mark().map(usize::from).filter(is_it).or_else(|| place_of(operator))
}

/// The operators by name. Rules ask for them at every node, so a name is not hashed as a whole: its length and three of its letters
/// leave one operator in most cases, and two comparisons the right one.
struct Table {
    /// The places of each key in `operators`, and one end more.
    begins: Vec<u16>,
    operators: Vec<&'static Operator>,
}

/// How many different keys there are.
const KEYS: usize = 4096;

impl Table {
    fn get() -> &'static Table {
        static TABLE: OnceLock<Table> = OnceLock::new();
        TABLE.get_or_init(Table::new)
    }

    fn new() -> Self {
        // There are some hundreds.
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

    /// Where an operator stands.
    fn find(&self, domain: &str, name: &str) -> Option<usize> {
        let domain = if domain == "ai.onnx" { "" } else { domain };
        let key = Self::key(name);
        let mut places = usize::from(*self.begins.get(key)?)..usize::from(*self.begins.get(key + 1)?);
        let is_it = |known: &&Operator| known.name == name && known.domain == domain;
        places.find(|&place| self.operators.get(place).is_some_and(is_it))
    }
}

/// The operator a node is taken for, whatever version is in force.
pub fn operator_of(model: &Model, node: &Node) -> Option<&'static Operator> {
    if model.has_synonyms() {
        let (domain, name) = model.meaning(node);
        return operator(domain, name);
    }
    // General rules ask for it many times at every node, so the node is marked with the place, or with one that is none.
    let table = Table::get();
    let place = node.mark().unwrap_or_else(|| {
        let place = table.find(&node.domain, &node.op_type).and_then(|place| u16::try_from(place).ok());
        node.set_mark(place.unwrap_or(NO_OPERATOR));
        place.unwrap_or(NO_OPERATOR)
    });
    table.operators.get(usize::from(place)).copied()
}

/// Beyond the end of the table.
const NO_OPERATOR: u16 = u16::MAX - 1;

/// Every operator, family by family.
pub fn operators() -> impl Iterator<Item = &'static Operator> {
    FAMILIES.iter().flat_map(|family| family.iter())
}

#[rustfmt::skip]
pub(in crate::ops) const FAMILIES: &[&[Operator]] = &[
    // One line for each family.
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
