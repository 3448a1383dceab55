//! Assumptions: sizes, ranges, relations and shapes of inputs that the user states and the model does not declare.

mod overwrite;
mod spelling;

use thiserror::Error;

use crate::dim::{Dim, Scope, is_word, quoted};
use crate::ir::{DeclaredDim, DeclaredType, DimClaim, Extra, Model, ValueId};
use crate::ops::{input_labels, label_relations, label_size};
use crate::rewrite::meant;

/// One assumption, in the syntax of the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Assumption {
    /// `batch=1`, `seq=1..4096`, `seq=1..4096:8`, `seq=1..`, `seq=:8`: the size, range or multiple of a symbol. A place denotes an input dim:
    /// `x[0]=batch` names it, `x[0]=1` and `x[0]=1..8` give its size or range. The text before the last `=` is a label, character by character:
    /// `past + 1=8` sets the dim labelled `past + 1`.
    Dim(String),
    /// `past + seq <= 2048`, `total = past + seq`, also `<`, `>=`, `>`, `==`. Labels other than words are quoted: `"past + 1" = past + seq`.
    Relation(String),
    /// `x:1,3,224,224` or `x:batch,3,h,w`, also `[1,3,224,224]` or `1x3x224x224` if there is one input: the shape of an input, which overrides the
    /// declared sizes.
    InputShape(String),
}

/// The reason why an assumption is rejected.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AssumeError {
    /// The text has no valid syntax.
    #[error("'{text}' is not {expected}")]
    Syntax {
        /// The given text.
        text: String,
        /// The expected syntax.
        expected: &'static str,
    },
    /// The model has no such symbol.
    #[error("dimension \"{name}\" not found; {known}")]
    NoSymbol {
        /// The name.
        name: String,
        /// The existing names.
        known: String,
    },
    /// No size of a symbol satisfies both the assumptions and the graph.
    #[error("'{text}' allows no size for '{symbol}': it contradicts another assumption or a node of the model")]
    Impossible {
        /// The assumptions.
        text: String,
        /// The symbol without a value.
        symbol: String,
    },
    /// A relation that no sizes satisfy.
    #[error("'{0}' contradicts another assumption")]
    False(String),
    /// A node is invalid with the assumed sizes.
    #[error("the assumptions make a node invalid: {node}: {reason}")]
    Misfit {
        /// The node.
        node: String,
        /// The reason.
        reason: String,
    },
    /// The model has no such input.
    #[error("the model has no input named '{name}'; {known}")]
    NoInput {
        /// The name.
        name: String,
        /// The existing names.
        known: String,
    },
    /// A shape without an input name, although there are several inputs.
    #[error("'{text}' names no input, and the model has several; pass INPUT:SHAPE; {known}")]
    WhichInput {
        /// The given text.
        text: String,
        /// The existing names.
        known: String,
    },
    /// The input is not a tensor.
    #[error("input '{0}' is not a tensor and has no shape")]
    NoShape(String),
    /// An input has no such axis.
    #[error("input '{input}' has rank {rank}, so '{place}' is not one of its dims")]
    NoAxis {
        /// The input.
        input: String,
        /// The rank of the input.
        rank: usize,
        /// The given place.
        place: String,
    },
    /// An assumption contradicts a declared shape.
    #[error("the model declares shape [{declared}] for input '{input}', and [{given}] contradicts it")]
    Contradiction {
        /// The input.
        input: String,
        /// The declared shape.
        declared: String,
        /// The given shape.
        given: String,
    },
}

/// Applies the assumptions: shapes of inputs first, then symbols, then relations between them.
///
/// Writes given sizes into the declared types of the inputs. If an input's shape gives a size or a new name to a symbol, every other input declared
/// with that symbol gets it, too. With `trust_labels`, dims declared as expressions in that symbol get it as well.
///
/// # Errors
/// An assumption has invalid syntax or an unknown name, or contradicts the model.
pub fn assume(
    model: &mut Model,
    scope: &Scope,
    assumptions: &[Assumption],
    trust_labels: bool,
) -> Result<(), AssumeError> {
    let mut names = symbols(model);
    if trust_labels {
        define_labels(scope, &names);
    }
    let numbers = overwrite::numbers(model);
    for assumption in assumptions {
        if let Assumption::InputShape(text) = assumption {
            input_shape(model, scope, (&names, &numbers), text)?;
        }
    }
    names.extend(symbols(model));
    // Dims given by place get their names before assumptions about names are applied.
    let mut by_name: Vec<String> = Vec::new();
    for assumption in assumptions {
        if let Assumption::Dim(text) = assumption {
            by_name.extend(at_place(model, scope, (&names, &numbers), text)?);
            names.extend(symbols(model));
        }
    }
    for text in by_name {
        // An earlier run may have replaced the name by the size: the same assumption still holds.
        names.extend(text.split_once('=').map(|(name, _)| name.trim().to_string()).filter(|_| was_made(model, &text)));
        dim(model, scope, &names, &text)?;
    }
    if !assumptions.is_empty() {
        write_sizes(model, scope);
    }
    for assumption in assumptions {
        if let Assumption::Relation(text) = assumption {
            relation(model, scope, text)?;
        }
    }
    possible(scope, assumptions)
}

/// Returns `true` if an earlier run made this assumption about a dim, according to the model's metadata. Forged metadata only hides errors about
/// misspelled names.
fn was_made(model: &Model, text: &str) -> bool {
    let made = format!("{:?}", Assumption::Dim(text.to_string()));
    model.stamped().is_some_and(|told| told.contains(&made))
}

/// Returns `true` if a model allows all of these assumptions at once.
pub fn is_possible(model: &Model, assumptions: &[Assumption], trust_labels: bool) -> bool {
    assume(&mut model.clone(), &Scope::new(), assumptions, trust_labels).is_ok()
}

/// Sets each label that parses as an expression in other labels equal to that expression.
fn define_labels(scope: &Scope, names: &[String]) {
    for label in label_relations(names) {
        if let Some(value) = scope.parse(label) {
            scope.define(scope.named(label), &value);
        }
    }
}

/// Returns the labels of inputs that parse as expressions in other labels of inputs, each as the relation `"past + 1" == past + 1`. Omits
/// relations that are known to hold.
pub fn relations_in_labels(model: &Model, scope: &Scope) -> Vec<String> {
    let names = input_labels(model, model.main());
    let is_open = |label: &&str| {
        let value = scope.parse(label);
        value.is_none_or(|value| !scope.eq(&label_size(scope, label), &value).is_yes())
    };
    label_relations(&names).into_iter().filter(is_open).map(|label| format!("{} == {label}", quoted(label))).collect()
}

/// Checks that every symbol still has a possible value.
///
/// # Errors
/// A symbol has no possible value.
pub fn possible(scope: &Scope, assumptions: &[Assumption]) -> Result<(), AssumeError> {
    let Some(symbol) = scope.impossible().filter(|_| !assumptions.is_empty()) else { return Ok(()) };
    let texts = assumptions.iter().map(|assumption| match assumption {
        Assumption::Dim(text) | Assumption::Relation(text) | Assumption::InputShape(text) => text.as_str(),
    });
    let text = texts.collect::<Vec<_>>().join("', '");
    Err(AssumeError::Impossible { text, symbol: scope.name(symbol).to_string() })
}

/// Returns the named dims of inputs.
fn symbols(model: &Model) -> Vec<String> {
    let mut names = Vec::new();
    for value in inputs(model) {
        let shape = model.value(value).declared.as_ref().and_then(DeclaredType::shape);
        names.extend(shape.into_iter().flatten().filter_map(|dim| dim.claim.name()).map(str::to_string));
    }
    names
}

fn inputs(model: &Model) -> Vec<ValueId> {
    model.graph(model.main()).inputs().to_vec()
}

fn shape_mut(model: &mut Model, value: ValueId) -> Option<&mut Option<Vec<DeclaredDim>>> {
    match model.value_mut(value).declared.as_mut()? {
        DeclaredType::Tensor { shape, .. } => Some(shape),
        _ => None,
    }
}

fn shown(dims: &[DimClaim]) -> String {
    dims.iter().map(DimClaim::to_string).collect::<Vec<_>>().join(",")
}

/// Lists the inputs, and suggests the one that a wrong name most likely means.
fn known_inputs(model: &Model, wrong: &str) -> String {
    let names: Vec<String> = inputs(model).into_iter().map(|value| model.value(value).name.to_string()).collect();
    listed(&names) + &meaning(&names, wrong)
}

/// The number of names that an error lists.
const LISTED: usize = 12;

/// A symbolic dim of the inputs: its name, the first input and axis with it, and the number of other places.
struct Symbolic {
    name: String,
    input: String,
    axis: usize,
    others: usize,
}

/// Lists the symbolic dims of the inputs, and the places of dims without a name.
fn symbolic_dims(model: &Model) -> (Vec<Symbolic>, Vec<String>) {
    let (mut named, mut nameless): (Vec<Symbolic>, Vec<String>) = (Vec::new(), Vec::new());
    for value in inputs(model) {
        let place = model.value(value);
        let shape = place.declared.as_ref().and_then(DeclaredType::shape);
        for (axis, dim) in shape.into_iter().flatten().enumerate() {
            let Some(name) = dim.claim.name() else {
                nameless.extend((dim.claim == DimClaim::Unknown).then(|| format!("{}[{axis}]", place.name)));
                continue;
            };
            match named.iter_mut().find(|known| known.name == name) {
                Some(known) => known.others = known.others.saturating_add(1),
                None => {
                    let (name, input) = (name.to_string(), place.name.to_string());
                    named.push(Symbolic { name, input, axis, others: 0 });
                }
            }
        }
    }
    (named, nameless)
}

/// Lists the symbolic dims of the inputs with their places, and suggests the one that a wrong name most likely means.
fn known_dims(model: &Model, wrong: &str) -> String {
    let (named, nameless) = symbolic_dims(model);
    let spelled = |name: &str| if is_word(name) { name.to_string() } else { quoted(name).to_string() };
    let mut shown: Vec<String> = named
        .iter()
        .take(LISTED)
        .map(|Symbolic { name, input, axis, others }| {
            let others = if *others > 0 { format!(", {others} more") } else { String::new() };
            format!("{} ({input}, axis {axis}{others})", spelled(name))
        })
        .collect();
    let more = named.len().saturating_sub(LISTED);
    shown.extend((more > 0).then(|| format!("{more} more")));
    let mut text = match shown.as_slice() {
        [] => "the model's inputs have no symbolic dimensions".to_string(),
        [one] => format!("the model's only symbolic dimension is {one}"),
        [rest @ .., last] => format!("the model's symbolic dimensions are {} and {last}", rest.join(", ")),
    };
    if let Some(first) = nameless.first() {
        let more = nameless.len().saturating_sub(1);
        let more = if more > 0 { format!(" and {more} more have") } else { " has".to_string() };
        text.push_str(&format!("; {first}{more} no name, which --dim '{first}=NAME' gives"));
    }
    if named.iter().any(|dim| !is_word(&dim.name)) {
        text.push_str("; --assume needs the double quotes, --dim does not");
    }
    let meant = meant(wrong, named.iter().map(|dim| dim.name.as_str())).or_else(|| by_convention(&named, wrong));
    text + &meant.map_or_else(String::new, |name| format!("; did you mean {}?", spelled(name)))
}

/// Returns the axis that dims with such a name conventionally have.
fn usual_axis(name: &str) -> Option<usize> {
    const AXES: [(&[&str], usize); 4] = [
        (&["batch", "bs", "b", "n"], 0),
        (&["seq", "sequence", "length", "len", "tokens", "s", "t"], 1),
        (&["height", "h"], 2),
        (&["width", "w"], 3),
    ];
    let small = name.to_lowercase();
    // The letters of `s33` are no abbreviation: only whole words count.
    let mut words = small.split(|c: char| !c.is_alphanumeric());
    words.find_map(|word| AXES.iter().find(|(names, _)| names.contains(&word))).map(|(_, axis)| *axis)
}

/// Returns the first symbolic dim on the axis that a name conventionally has, or the only symbolic dim.
fn by_convention<'n>(named: &'n [Symbolic], wrong: &str) -> Option<&'n str> {
    let axis = usual_axis(wrong);
    let may_be =
        |dim: &&Symbolic| Some(dim.axis) == axis && usual_axis(&dim.name).is_none_or(|usual| usual == dim.axis);
    let by_axis = named.iter().find(may_be);
    by_axis.or_else(|| named.first().filter(|_| named.len() == 1)).map(|dim| dim.name.as_str())
}

/// Lists names of inputs.
fn listed(names: &[String]) -> String {
    if names.is_empty() {
        return "the model has no inputs".to_string();
    }
    let shown: Vec<String> = names.iter().take(LISTED).map(|name| format!("'{name}'")).collect();
    let more = names.len().checked_sub(LISTED).filter(|more| *more > 0);
    let more = more.map_or_else(String::new, |more| format!(" and {more} more"));
    format!("the model has inputs {}{more}", shown.join(", "))
}

/// Suggests the name that a wrong one most likely means.
fn meaning(names: &[String], wrong: &str) -> String {
    let nearest = meant(wrong, names.iter().map(String::as_str));
    nearest.map_or_else(String::new, |name| format!("; did you mean '{name}'?"))
}

fn no_input(model: &Model, name: &str) -> AssumeError {
    AssumeError::NoInput { name: name.to_string(), known: known_inputs(model, name) }
}

fn no_symbol(model: &Model, name: &str) -> AssumeError {
    AssumeError::NoSymbol { name: name.to_string(), known: known_dims(model, name) }
}

fn input_named(model: &Model, name: &str) -> Result<ValueId, AssumeError> {
    let value = inputs(model).into_iter().find(|&value| model.value(value).name == name);
    value.ok_or_else(|| no_input(model, name))
}

fn input_shape(model: &mut Model, scope: &Scope, known: Known<'_>, text: &str) -> Result<(), AssumeError> {
    let expected = "an input and its shape, such as x:1,3,224,224 or x:batch,3,-1,-1";
    let syntax = || AssumeError::Syntax { text: text.to_string(), expected };
    let spelled = spelling::read(text, known.0).ok_or_else(syntax)?;
    let value = match (spelled.input, required(model).as_slice()) {
        (Some(name), _) => input_named(model, name)?,
        (None, [only]) => *only,
        (None, _) => {
            return Err(AssumeError::WhichInput { text: text.to_string(), known: known_inputs(model, "") });
        }
    };
    give_shape(model, scope, known.1, value, spelled.shape)
}

/// Returns the inputs without a default, which every run must provide.
fn required(model: &Model) -> Vec<ValueId> {
    inputs(model).into_iter().filter(|&value| model.value(value).constant.is_none()).collect()
}

/// The names of input dims, and the numbers that the file declares.
type Known<'a> = (&'a [String], &'a overwrite::Numbers);

/// Gives an input a shape. Numbers replace names and other numbers, names replace names and numbers, and an unknown size keeps the declared one.
fn give_shape(
    model: &mut Model,
    scope: &Scope,
    numbers: &overwrite::Numbers,
    value: ValueId,
    given: Vec<DimClaim>,
) -> Result<(), AssumeError> {
    let input = model.value(value).name.to_string();
    let has_default = model.value(value).constant.is_some();
    let shape = shape_mut(model, value).ok_or_else(|| AssumeError::NoShape(input.clone()))?;
    let Some(declared) = shape else {
        *shape = Some(given.into_iter().map(|claim| DeclaredDim { claim, extra: Extra::new() }).collect());
        return Ok(());
    };
    let old: Vec<DimClaim> = declared.iter().map(|dim| dim.claim.clone()).collect();
    let contradiction = AssumeError::Contradiction { input, declared: shown(&old), given: shown(&given) };
    let mut change = overwrite::Change::default();
    if old.len() != given.len() {
        return Err(contradiction);
    }
    for (axis, ((dim, old), new)) in declared.iter_mut().zip(&old).zip(given).enumerate() {
        // A number from another assumption is not overwritten.
        let is_declared = matches!(old, DimClaim::Value(size) if numbers.get(&(value, axis)) == Some(size));
        let is_possible = change.note((old, is_declared), &new, &|symbol, size| {
            scope.eq(&label_size(scope, symbol), &Dim::constant(size)).is_no()
        });
        // The default of an input fixes its sizes.
        if !is_possible || (change.overwrites && has_default) {
            return Err(contradiction);
        }
        let stays = match (old, &new) {
            (_, DimClaim::Unknown) => true,
            // `replace` below writes a new name for an old one into every input at once.
            (old, DimClaim::Param(_)) => old.name().is_some(),
            _ => false,
        };
        if !stays {
            dim.claim = new;
        }
    }
    for (symbol, size) in &change.sizes {
        scope.assume_eq(&label_size(scope, symbol), &Dim::constant(*size));
    }
    replace(model, &|name| change.of(name));
    if change.overwrites {
        overwrite::forget_shapes(model);
    }
    Ok(())
}

/// Applies an assumption about a place, such as `x[0]=batch` or `x[0]=1..8`. Writes names and sizes into the model, and returns a range as an
/// assumption about the dim's name. Returns an assumption about a name unchanged.
fn at_place(model: &mut Model, scope: &Scope, known: Known<'_>, text: &str) -> Result<Option<String>, AssumeError> {
    let names = known.0;
    let by_name = || Ok(Some(text.to_string()));
    let Some((place, said)) = text.rsplit_once('=') else { return by_name() };
    let (place, said) = (place.trim(), said.trim());
    let Some((input, axis)) = place.strip_suffix(']').and_then(|place| place.rsplit_once('[')) else {
        return by_name();
    };
    let Ok(axis) = axis.trim().parse::<i64>() else { return by_name() };
    if names.iter().any(|name| name == place) {
        return by_name();
    }
    let value = input_named(model, input.trim())?;
    let dims: Vec<DimClaim> = match shape_mut(model, value) {
        Some(Some(dims)) => dims.iter().map(|dim| dim.claim.clone()).collect(),
        _ => return Err(AssumeError::NoShape(input.to_string())),
    };
    let rank = i64::try_from(dims.len()).unwrap_or(i64::MAX);
    let at = usize::try_from(if axis < 0 { axis.saturating_add(rank) } else { axis });
    let Some((at, old)) = at.ok().and_then(|at| Some((at, dims.get(at)?.clone()))) else {
        let (input, place) = (input.to_string(), place.to_string());
        return Err(AssumeError::NoAxis { input, rank: dims.len(), place });
    };
    let new = match said.parse::<i64>() {
        Ok(size) if size >= 0 => DimClaim::Value(size),
        Err(_) if is_word(said) || names.iter().any(|name| name == said) => DimClaim::Param(said.to_string()),
        // A range of the dim's name, or of a new name made from its place.
        _ => match old.name() {
            Some(name) => return Ok(Some(format!("{name}={said}"))),
            None => DimClaim::Param(place_name(input, at, names)),
        },
    };
    let is_range = matches!(&new, DimClaim::Param(name) if name != said);
    if is_range && matches!(old, DimClaim::Value(_)) {
        let given: Vec<&str> = (0..dims.len()).map(|i| if i == at { said } else { "?" }).collect();
        return Err(AssumeError::Contradiction {
            input: input.to_string(),
            declared: shown(&dims),
            given: given.join(","),
        });
    }
    let further = match &new {
        DimClaim::Param(name) if is_range => Some(format!("{name}={said}")),
        _ => None,
    };
    let given = (0..dims.len()).map(|i| if i == at { new.clone() } else { DimClaim::Unknown }).collect();
    give_shape(model, scope, known.1, value, given)?;
    Ok(further)
}

/// Returns a name for a nameless dim, made of its input and axis.
fn place_name(input: &str, axis: usize, names: &[String]) -> String {
    let letters = input.chars().map(|c| if c.is_alphanumeric() { c } else { '_' });
    let mut name: String =
        std::iter::once('_').filter(|_| !input.starts_with(char::is_alphabetic)).chain(letters).collect();
    name.push_str(&format!("_dim_{axis}"));
    while names.iter().any(|known| known == &name) {
        name.push('_');
    }
    name
}

/// Replaces the named dims of every input for which `other` returns a claim.
fn replace(model: &mut Model, other: &dyn Fn(&str) -> Option<DimClaim>) {
    for value in inputs(model) {
        for dim in shape_mut(model, value).into_iter().flatten().flatten() {
            if let Some(claim) = dim.claim.name().and_then(other) {
                dim.claim = claim;
            }
        }
    }
}

/// Replaces input labels that parse as expressions by numbers, where the given sizes determine them.
fn write_sizes(model: &mut Model, scope: &Scope) {
    replace(model, &|label| {
        let size = label_size(scope, label).as_const().filter(|size| *size >= 0 && !is_word(label));
        size.map(DimClaim::Value)
    });
}

fn dim(model: &mut Model, scope: &Scope, names: &[String], text: &str) -> Result<(), AssumeError> {
    let expected = "a size, range or multiple, such as batch=1, seq=1..4096 or seq=8..4096:8";
    let syntax = || AssumeError::Syntax { text: text.to_string(), expected };
    let (name, range) = text.rsplit_once('=').ok_or_else(syntax)?;
    let is_known = |name: &str| names.iter().any(|known| known == name);
    // Labels may begin with blanks and contain quotes.
    let readings = [name, name.trim(), spelling::unquoted(name)];
    let name = readings.into_iter().find(|name| is_known(name)).unwrap_or(name.trim());
    let number = |text: &str| text.trim().parse::<i64>().ok().filter(|&size| size >= 0).ok_or_else(syntax);
    let known = || if is_known(name) { Ok(()) } else { Err(no_symbol(model, name)) };
    if let Ok(size) = range.trim().parse::<i64>() {
        if size < 0 {
            return Err(syntax());
        }
        known()?;
        let (symbol, size) = (label_size(scope, name), Dim::constant(size));
        if scope.eq(&symbol, &size).is_no() {
            return Err(AssumeError::False(text.to_string()));
        }
        // The declared types get the number; expressions in other declared types may still contain the symbol.
        scope.assume_eq(&symbol, &size);
        replace(model, &|other| (other == name).then(|| size.as_const().map(DimClaim::Value)).flatten());
        return Ok(());
    }
    let (range, multiple) = match range.split_once(':') {
        Some((range, multiple)) => {
            (range.trim(), Some(number(multiple).ok().filter(|multiple| *multiple > 0).ok_or_else(syntax)?))
        }
        None => (range.trim(), None),
    };
    let (low, high) = match range.split_once("..") {
        None if range.is_empty() && multiple.is_some() => (None, None),
        None => return Err(syntax()),
        Some((low, high)) => {
            let bound = |text: &str| if text.trim().is_empty() { Ok(None) } else { number(text).map(Some) };
            (bound(low)?, bound(high)?)
        }
    };
    if low.zip(high).is_some_and(|(low, high)| low > high) {
        return Err(syntax());
    }
    known()?;
    let symbol = scope.named(name);
    scope.restrict(symbol, low, high);
    if let Some(multiple) = multiple {
        scope.set_multiple(symbol, multiple);
    }
    Ok(())
}

fn relation(model: &Model, scope: &Scope, text: &str) -> Result<(), AssumeError> {
    let expected = "a relation between sizes, such as past + seq <= 2048";
    let syntax = || AssumeError::Syntax { text: text.to_string(), expected };
    let signs = ["<=", ">=", "==", "<", ">", "="];
    let (sign, (left, right)) =
        signs.iter().find_map(|sign| Some((*sign, text.split_once(sign)?))).ok_or_else(syntax)?;
    let side = |text: &str| scope.parse(text.trim()).ok_or_else(syntax);
    let (left, right) = (side(left)?, side(right)?);
    let known = symbols(model);
    let unknown = |name: &str| !known.iter().any(|known| known == name);
    let mentioned = left.symbols().into_iter().chain(right.symbols()).map(|symbol| scope.name(symbol));
    if let Some(name) = mentioned.into_iter().find(|name| unknown(name)) {
        return Err(no_symbol(model, &name));
    }
    let one = Dim::constant(1);
    let answer = match sign {
        "<=" => scope.le(&left, &right),
        ">=" => scope.ge(&left, &right),
        "<" => scope.lt(&left, &right),
        ">" => scope.gt(&left, &right),
        _ => scope.eq(&left, &right),
    };
    if answer.is_no() {
        return Err(AssumeError::False(text.to_string()));
    }
    match sign {
        "<=" => scope.assume_le(&left, &right),
        ">=" => scope.assume_le(&right, &left),
        "<" => scope.assume_le(&scope.add(&left, &one), &right),
        ">" => scope.assume_le(&scope.add(&right, &one), &left),
        _ => {
            // Later results contain the plain names instead of the label.
            let is_label = |side: &Dim| side.as_symbol().filter(|&symbol| !is_word(&scope.name(symbol)));
            match (is_label(&left), is_label(&right)) {
                (Some(label), None) => scope.define(label, &right),
                (None, Some(label)) => scope.define(label, &left),
                _ => scope.assume_eq(&left, &right),
            }
        }
    }
    Ok(())
}
