//! Assumptions: what the user knows of the inputs' sizes and the model does not say. These are sizes, ranges, relations and whole shapes.

use thiserror::Error;

use crate::dim::{Dim, Scope, is_identifier};
use crate::ir::{DeclaredDim, DeclaredType, DimClaim, Extra, Model, ValueId};

/// One thing to assume, in the words of the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Assumption {
    /// `batch=1`, `seq=1..4096`, `seq=1..4096:8`, `seq=1..`, `seq=:8`: the size of a symbol, its range, what it is a multiple of.
    Dim(String),
    /// `past + seq <= 2048`, `total = past + seq`, also `<`, `>=`, `>`, `==`.
    Relation(String),
    /// `x:1,3,224,224` or `x:batch,3,h,w`: the shape of an input.
    InputShape(String),
}

/// An assumption that cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AssumeError {
    /// Not in a form that is understood.
    #[error("'{text}' is not {expected}")]
    Syntax {
        /// What was given.
        text: String,
        /// What is understood.
        expected: &'static str,
    },
    /// The model has no such symbol.
    #[error("no input of the model has a dimension named '{0}'")]
    NoSymbol(String),
    /// No value of a symbol satisfies both the assumptions and what the graph needs.
    #[error("'{text}' leaves no size for '{symbol}' beside what else is assumed and what the graph needs")]
    Impossible {
        /// The assumptions.
        text: String,
        /// The symbol without a value.
        symbol: String,
    },
    /// A relation that no sizes satisfy.
    #[error("'{0}' cannot be beside what else is assumed")]
    False(String),
    /// A node cannot work on the sizes given.
    #[error("what is assumed does not fit the graph: {node}: {reason}")]
    Misfit {
        /// The node.
        node: String,
        /// What it says.
        reason: String,
    },
    /// The model has no such input.
    #[error("the model has no input named '{0}'")]
    NoInput(String),
    /// What is assumed contradicts what the model declares.
    #[error("input '{input}' is declared with shape [{declared}], which [{given}] contradicts")]
    Contradiction {
        /// The input.
        input: String,
        /// Its shape in the model.
        declared: String,
        /// The shape given.
        given: String,
    },
}

/// Makes the assumptions: shapes of inputs first, then symbols, then relations between them.
///
/// Sizes that are given are written into the declared types of the inputs. If the shape of one input gives a size or a new name
/// for a symbol, every other input that is declared with that symbol gets it too, and so do dims declared as expressions with it.
///
/// # Errors
/// An assumption that is not understood, names nothing, or contradicts the model.
pub fn assume(model: &mut Model, scope: &Scope, assumptions: &[Assumption]) -> Result<(), AssumeError> {
    let mut names = symbols(model);
    for assumption in assumptions {
        if let Assumption::InputShape(text) = assumption {
            input_shape(model, scope, &names, text)?;
        }
    }
    names.extend(symbols(model));
    for assumption in assumptions {
        if let Assumption::Dim(text) = assumption {
            dim(model, scope, &names, text)?;
        }
    }
    write_sizes(model, scope, &names);
    for assumption in assumptions {
        if let Assumption::Relation(text) = assumption {
            relation(model, scope, text)?;
        }
    }
    possible(scope, assumptions)
}

/// Whether all of this can be assumed of a model at once.
pub fn is_possible(model: &Model, assumptions: &[Assumption]) -> bool {
    assume(&mut model.clone(), &Scope::new(), assumptions).is_ok()
}

/// Checks that every symbol can still have a value.
///
/// # Errors
/// A symbol that can have no value.
pub fn possible(scope: &Scope, assumptions: &[Assumption]) -> Result<(), AssumeError> {
    let Some(symbol) = scope.impossible().filter(|_| !assumptions.is_empty()) else { return Ok(()) };
    let texts = assumptions.iter().map(|assumption| match assumption {
        Assumption::Dim(text) | Assumption::Relation(text) | Assumption::InputShape(text) => text.as_str(),
    });
    let text = texts.collect::<Vec<_>>().join("', '");
    Err(AssumeError::Impossible { text, symbol: scope.name(symbol).to_string() })
}

/// The dimensions of inputs that have a name.
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
    let one = |claim: &DimClaim| match claim {
        DimClaim::Unknown => "?".to_string(),
        DimClaim::Value(size) => size.to_string(),
        DimClaim::Param(name) => name.clone(),
    };
    dims.iter().map(one).collect::<Vec<_>>().join(",")
}

fn input_shape(model: &mut Model, scope: &Scope, names: &[String], text: &str) -> Result<(), AssumeError> {
    let syntax =
        || AssumeError::Syntax { text: text.to_string(), expected: "an input and its shape, such as x:1,3,224,224" };
    let (name, list) = text.rsplit_once(':').ok_or_else(syntax)?;
    let value = inputs(model).into_iter().find(|&value| model.value(value).name == name);
    let value = value.ok_or_else(|| AssumeError::NoInput(name.to_string()))?;
    let entry = |text: &str| {
        let text = text.trim();
        match text.parse::<i64>() {
            Ok(size) if size >= 0 => Some(DimClaim::Value(size)),
            Ok(-1) => Some(DimClaim::Unknown),
            Ok(_) => None,
            Err(_) if !text.is_empty() => Some(DimClaim::Param(text.to_string())),
            Err(_) => None,
        }
    };
    let given: Vec<DimClaim> = if list.trim().is_empty() {
        Vec::new()
    } else {
        list.split(',').map(entry).collect::<Option<_>>().ok_or_else(syntax)?
    };
    let shape = shape_mut(model, value).ok_or_else(|| AssumeError::NoInput(name.to_string()))?;
    let mut sizes: Vec<(String, i64)> = Vec::new();
    let mut renamed: Vec<(String, DimClaim)> = Vec::new();
    if let Some(declared) = shape {
        let old: Vec<DimClaim> = declared.iter().map(|dim| dim.claim.clone()).collect();
        let mut clash = |(old, new): (&DimClaim, &DimClaim)| match (old, old.name(), new) {
            (DimClaim::Value(old), _, DimClaim::Value(new)) => old != new,
            (_, Some(symbol), DimClaim::Param(_)) if is_identifier(symbol) => {
                renamed.push((symbol.to_string(), new.clone()));
                false
            }
            (_, Some(symbol), DimClaim::Value(new)) => {
                let other = sizes.iter().find(|(known, _)| known == symbol).map(|(_, size)| *size);
                sizes.push((symbol.to_string(), *new));
                let size = expression(scope, names, symbol);
                let differs = size.is_some_and(|size| scope.eq(&size, &Dim::constant(*new)).is_no());
                differs || other.is_some_and(|other| other != *new)
            }
            _ => false,
        };
        if old.len() != given.len() || old.iter().zip(&given).any(&mut clash) {
            return Err(AssumeError::Contradiction {
                input: name.to_string(),
                declared: shown(&old),
                given: shown(&given),
            });
        }
        for (dim, claim) in declared.iter_mut().zip(given) {
            // -1 leaves the dimension as it is declared, and so does a name where a number is declared.
            let stays = match (&dim.claim, &claim) {
                (_, DimClaim::Unknown) | (DimClaim::Value(_), DimClaim::Param(_)) => true,
                // A new name in place of an old one is written into every input at once, by `replace` below.
                (old, DimClaim::Param(_)) => old.name().is_some_and(is_identifier),
                _ => false,
            };
            if !stays {
                dim.claim = claim;
            }
        }
    } else {
        *shape = Some(given.into_iter().map(|claim| DeclaredDim { claim, extra: Extra::new() }).collect());
    }
    for (symbol, size) in &sizes {
        if let Some(dim) = expression(scope, names, symbol) {
            scope.assume_eq(&dim, &Dim::constant(*size));
        }
    }
    replace(model, &|name| {
        let size = sizes.iter().find(|(symbol, _)| symbol == name).map(|(_, size)| DimClaim::Value(*size));
        size.or_else(|| renamed.iter().find(|(symbol, _)| symbol == name).map(|(_, new)| new.clone()))
    });
    Ok(())
}

/// Replaces named dimensions in every input: `other` says by what, if at all.
fn replace(model: &mut Model, other: &dyn Fn(&str) -> Option<DimClaim>) {
    for value in inputs(model) {
        for dim in shape_mut(model, value).into_iter().flatten().flatten() {
            if let Some(claim) = dim.claim.name().and_then(other) {
                dim.claim = claim;
            }
        }
    }
}

/// The size that a dimension of an input is declared as: a symbol, or an expression in symbols that are dimensions of inputs themselves.
fn expression(scope: &Scope, names: &[String], text: &str) -> Option<Dim> {
    match is_identifier(text) {
        true => Some(Dim::symbol(scope.named(text))),
        false => scope.parse_known(text, &|name| names.iter().any(|known| known == name)),
    }
}

/// Writes numbers for dimensions of inputs that are declared as expressions, where the sizes given make them numbers.
fn write_sizes(model: &mut Model, scope: &Scope, names: &[String]) {
    replace(model, &|text| {
        let dim = expression(scope, names, text).filter(|_| !is_identifier(text))?;
        scope.sum([&dim]).as_const().filter(|size| *size >= 0).map(DimClaim::Value)
    });
}

fn dim(model: &mut Model, scope: &Scope, names: &[String], text: &str) -> Result<(), AssumeError> {
    let expected = "a size, range or multiple, such as batch=1, seq=1..4096 or seq=8..4096:8";
    let syntax = || AssumeError::Syntax { text: text.to_string(), expected };
    let (name, range) = text.rsplit_once('=').ok_or_else(syntax)?;
    let name = name.trim();
    if !names.iter().any(|known| known == name) {
        return Err(AssumeError::NoSymbol(name.to_string()));
    }
    let number = |text: &str| text.trim().parse::<i64>().ok().filter(|&size| size >= 0).ok_or_else(syntax);
    if let Ok(size) = range.trim().parse::<i64>() {
        if size < 0 {
            return Err(syntax());
        }
        let (symbol, size) = (Dim::symbol(scope.named(name)), Dim::constant(size));
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
    let symbols = symbols(model);
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let has = |text: &String, name: &str| text == name || text.split(|c| !is_part(c)).any(|word| word == name);
    let unknown = |name: &str| !symbols.iter().any(|symbol| has(symbol, name));
    let mentioned = left.symbols().into_iter().chain(right.symbols()).map(|symbol| scope.name(symbol));
    if let Some(name) = mentioned.into_iter().find(|name| unknown(name)) {
        return Err(AssumeError::NoSymbol(name.to_string()));
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
        _ => scope.assume_eq(&left, &right),
    }
    Ok(())
}
