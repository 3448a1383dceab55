//! Writing expressions: arithmetic that a Python evaluator with `floor`, `min`, `max` and `Mod` reads back.
//!
//! `floor(a/b)` is the quotient rounded down. The canonical form knows neither `mod` nor `min`; where terms make up
//! `a − b·⌊a/b⌋`, `x − max(0, d)` or `y + max(0, d)`, they are written as `Mod(a, b)`, `min(x, x − d)` and
//! `max(y, y + d)`.

use std::fmt::{self, Write};
use std::sync::Arc;

use super::Symbol;
use super::expr::Dim;
use super::monomial::{Atom, Floor, Monomial, Summand};
use super::scope::Scope;

impl Scope {
    /// The expression as text. A symbol appears under its name as it is; one whose name could be read as something else is put
    /// in parentheses where it is a part of something.
    pub fn format(&self, a: &Dim) -> String {
        if let Some(text) = self.recall_text(a) {
            return text.to_string();
        }
        let name = |symbol| self.name(symbol);
        let settle = |a: &Dim| self.settle(a.clone()).unwrap_or_else(|| a.clone());
        let text = write_sum(a, &Style { name: &name, settle: &settle });
        self.remember_text(a, &text);
        text
    }
}

/// As [`Scope::format`] writes it, symbols by number: `s0`, `s1`.
impl fmt::Debug for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&write_sum(self, &Style::NUMBERED))
    }
}

impl fmt::Debug for Atom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        write_atom(&mut text, self, &Style::NUMBERED);
        f.write_str(&text)
    }
}

/// What a scope knows about writing.
struct Style<'s> {
    name: &'s dyn Fn(Symbol) -> Arc<str>,
    /// Brings what stands inside an atom into the form that is shortest to write.
    settle: &'s dyn Fn(&Dim) -> Dim,
}

impl Style<'_> {
    const NUMBERED: Style<'static> = Style { name: &|symbol| format!("s{}", symbol.0).into(), settle: &Dim::clone };
}

/// `cofactor · name(arguments)`; without a name, the cofactor alone.
struct Piece {
    cofactor: Summand,
    call: Option<Call>,
}

struct Call {
    name: &'static str,
    arguments: Vec<Dim>,
}

fn write_sum(a: &Dim, style: &Style) -> String {
    if let Some(value) = a.as_const() {
        return value.to_string();
    }
    if let Some(Atom::Symbol(symbol)) = a.as_atom() {
        return (style.name)(*symbol).to_string();
    }
    let mut pieces = pieces_of(&(style.settle)(a), style);
    // A sum starts with something positive, if there is anything.
    if let Some(first) = pieces.iter().position(|piece| piece.cofactor.coefficient > 0) {
        pieces.get_mut(..=first).into_iter().for_each(|head| head.rotate_right(1));
    }
    let mut text = String::new();
    for (index, piece) in pieces.iter().enumerate() {
        let coefficient = piece.cofactor.coefficient;
        text.push_str(match (index, coefficient) {
            (0, 0..) => "",
            (0, _) => "-",
            (_, 0..) => " + ",
            // Its absolute value is no integer literal by itself.
            (_, i64::MIN) => " + -",
            _ => " - ",
        });
        write_piece(&mut text, piece, style);
    }
    text
}

fn write_piece(text: &mut String, piece: &Piece, style: &Style) {
    let mut separator = "";
    let size = piece.cofactor.coefficient.unsigned_abs();
    if size != 1 || (piece.cofactor.monomial.is_one() && piece.call.is_none()) {
        // Writing to a string cannot fail.
        let _ = write!(text, "{size}");
        separator = "*";
    }
    for factor in piece.cofactor.monomial.factors() {
        text.push_str(separator);
        write_atom(text, &factor.atom, style);
        if factor.exponent > 1 {
            let _ = write!(text, "**{}", factor.exponent);
        }
        separator = "*";
    }
    if let Some(call) = &piece.call {
        text.push_str(separator);
        write_call(text, call.name, &call.arguments, style);
    }
}

fn write_atom(text: &mut String, atom: &Atom, style: &Style) {
    match atom {
        Atom::Symbol(symbol) => {
            let name = (style.name)(*symbol);
            let (open, close) = if is_one_word(&name) { ("", "") } else { ("(", ")") };
            text.extend([open, &name, close]);
        }
        Atom::Floor(floor) => {
            text.push_str("floor(");
            write_operand(text, &floor.numerator, style);
            text.push('/');
            write_operand(text, &floor.denominator, style);
            text.push(')');
        }
        Atom::Max(members) => write_call(text, "max", members.as_slice(), style),
    }
}

/// Whether a name cannot be taken for an expression of several names.
fn is_one_word(name: &str) -> bool {
    !name.is_empty()
        && name.chars().all(|letter| letter.is_alphanumeric() || ['_', '.', ':', '$', '@', '#'].contains(&letter))
}

fn write_call(text: &mut String, name: &str, arguments: &[Dim], style: &Style) {
    text.push_str(name);
    for (index, argument) in arguments.iter().enumerate() {
        text.push_str(if index == 0 { "(" } else { ", " });
        text.push_str(&write_sum(argument, style));
    }
    text.push(')');
}

/// An operand of a division: in parentheses unless it is a name, a call or a literal.
fn write_operand(text: &mut String, operand: &Dim, style: &Style) {
    if let Some(atom) = operand.as_atom() {
        return write_atom(text, atom, style);
    }
    let written = write_sum(operand, style);
    if operand.as_const().is_some_and(|value| value >= 0) {
        text.push_str(&written);
    } else {
        text.push('(');
        text.push_str(&written);
        text.push(')');
    }
}

/// The summands to write, in order: terms that make up a known function together are one.
fn pieces_of(a: &Dim, style: &Style) -> Vec<Piece> {
    let (mut rest, mut calls) = (a.clone(), Vec::new());
    // From the back: of `S − max(0, S − 3) − max(0, S − 2)` the tighter clamp is made the minimum.
    let terms = a.terms();
    let holds_atom = |term: &&Summand| term.monomial.factors().iter().any(|f| !matches!(f.atom, Atom::Symbol(_)));
    for term in terms.iter().rev().filter(holds_atom) {
        let present = rest.terms().iter().any(|own| own == term);
        let call = present
            .then(|| term.monomial.factors().iter().find_map(|factor| as_call(&rest, term, &factor.atom, style)));
        if let Some((piece, remaining)) = call.flatten() {
            calls.push(piece);
            rest = remaining;
        }
    }
    let (constant, terms): (Vec<Summand>, Vec<Summand>) =
        rest.terms().iter().cloned().partition(|term| term.monomial.is_one());
    calls.reverse();
    let plain = |term| Piece { cofactor: term, call: None };
    terms.into_iter().map(plain).chain(calls).chain(constant.into_iter().map(plain)).collect()
}

/// `term`, which has `atom` as a factor, as part of a call: the call, and what is left of `sum` without it.
fn as_call(sum: &Dim, term: &Summand, atom: &Atom, style: &Style) -> Option<(Piece, Dim)> {
    if matches!(atom, Atom::Symbol(_)) || term.monomial.exponent_of(atom) > 1 {
        return None;
    }
    let cofactor = term.monomial.over(&Monomial::atom(atom.clone()))?;
    let cofactor = Summand { monomial: cofactor, coefficient: term.coefficient };
    let rest = sum.minus(&Dim::from_sorted(vec![term.clone()])?)?;
    match atom {
        Atom::Symbol(_) => None,
        Atom::Floor(floor) => as_modulo(&rest, &cofactor, floor),
        Atom::Max(members) => match members.as_slice() {
            [zero, difference] if zero.is_const(0) => as_extremum(&rest, &cofactor, &(style.settle)(difference)),
            others => as_large_extremum(&rest, cofactor, others),
        },
    }
}

/// `n·a − n·b·⌊a/b⌋ = n·Mod(a, b)`.
fn as_modulo(rest: &Dim, cofactor: &Summand, floor: &Floor) -> Option<(Piece, Dim)> {
    let terms = floor.denominator.terms();
    let [divisor] = &*terms else { return None };
    let coefficient = cofactor.coefficient.checked_neg()?;
    if coefficient.checked_rem(divisor.coefficient)? != 0 {
        return None;
    }
    let coefficient = coefficient.checked_div(divisor.coefficient)?;
    let cofactor = Summand { monomial: cofactor.monomial.over(&divisor.monomial)?, coefficient };
    let dividend = floor.numerator.times_term(&cofactor)?;
    if !dividend.terms().iter().all(|term| term.monomial.is_one() || holds(rest, term)) {
        return None;
    }
    let arguments = vec![floor.numerator.clone(), floor.denominator.clone()];
    Some((Piece { cofactor, call: Some(Call { name: "Mod", arguments }) }, rest.minus(&dividend)?))
}

/// `n·x − n·max(0, d) = n·min(x, x − d)` and `n·y + n·max(0, d) = n·max(y, y + d)`, with as much of `d` in `x`, or of
/// `−d` in `y`, as the sum holds.
fn as_extremum(rest: &Dim, cofactor: &Summand, difference: &Dim) -> Option<(Piece, Dim)> {
    let minimum = cofactor.coefficient < 0;
    // n·max(0, d) − n·d = n·max(0, −d), unless reading that back would open it.
    let negated = difference.scaled(-1)?;
    let shift = negated.times_term(cofactor)?;
    let is_added = |term: &&Summand| term.coefficient > 0 && matches!(term.monomial.as_atom(), Some(Atom::Max(_)));
    if !minimum && shift.terms().iter().all(|t| holds(rest, t)) && negated.terms().iter().filter(is_added).count() != 1
    {
        let call = Call { name: "max", arguments: vec![Dim::constant(0), negated] };
        return Some((Piece { cofactor: cofactor.clone(), call: Some(call) }, rest.minus(&shift)?));
    }
    let cofactor = Summand { monomial: cofactor.monomial.clone(), coefficient: cofactor.coefficient.checked_abs()? };
    let sign = if minimum { 1 } else { -1 };
    let mut taken = Vec::new();
    for term in difference.terms().iter() {
        let own = term.scaled(sign)?;
        // Another maximum is no part of the base: reading it back would open it.
        let plain = !own.monomial.factors().iter().any(|factor| matches!(factor.atom, Atom::Max(_)));
        if plain && holds(rest, &own.times(&cofactor)?) {
            taken.push(own);
        }
    }
    if minimum && taken.is_empty() {
        return None;
    }
    let base = Dim::from_sorted(taken)?;
    let remaining = rest.minus(&base.times_term(&cofactor)?)?;
    let mut arguments = vec![base.plus_scaled(difference, -sign)?, base.clone()];
    // n·max(y, y + d) = −n·min(−y, −y − d), where that saves signs.
    if !minimum && base.leading().coefficient < 0 && !base.is_const(0) {
        arguments = arguments.iter().map(|argument| argument.scaled(-1)).collect::<Option<_>>()?;
        arguments.sort();
        let cofactor = cofactor.scaled(-1)?;
        return Some((Piece { cofactor, call: Some(Call { name: "min", arguments }) }, remaining));
    }
    arguments.sort();
    Some((Piece { cofactor, call: Some(Call { name: if minimum { "min" } else { "max" }, arguments }) }, remaining))
}

/// `−n·max(mᵢ) = n·min(−mᵢ)`.
fn as_large_extremum(rest: &Dim, cofactor: Summand, members: &[Dim]) -> Option<(Piece, Dim)> {
    if cofactor.coefficient > 0 {
        return None;
    }
    let cofactor = Summand { monomial: cofactor.monomial, coefficient: cofactor.coefficient.checked_neg()? };
    let mut arguments = members.iter().map(|member| member.scaled(-1)).collect::<Option<Vec<_>>>()?;
    arguments.sort();
    Some((Piece { cofactor, call: Some(Call { name: "min", arguments }) }, rest.clone()))
}

/// Whether `sum` has at least `part` in it: the same constant, or as much of the same monomial with the same sign.
fn holds(sum: &Dim, part: &Summand) -> bool {
    sum.terms().iter().any(|term| {
        let enough = term.coefficient.unsigned_abs() >= part.coefficient.unsigned_abs();
        let same = term.coefficient == part.coefficient;
        let same_sign = (term.coefficient < 0) == (part.coefficient < 0);
        term.monomial == part.monomial && if part.monomial.is_one() { same } else { same_sign && enough }
    })
}
