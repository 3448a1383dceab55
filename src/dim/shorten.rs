//! Chooses the written form of an expression: the shortest equal form that the search finds. A name costs more than a sign.
//!
//! The canonical form serves arithmetic. It has `s − ⌊3s/4⌋` for `⌈s/4⌉`, and expands products of sums. So other forms are tried before an
//! expression is written. These laws for atoms hold for all integers (`m ≥ 1`, `k ≥ 0`):
//!
//! * `⌊a/m⌋ = ⌊(a + m·x)/m⌋ − x`, which moves an addend into the quotient;
//! * `⌊a/m⌋ = x − ⌊(m·x − a + m − 1)/m⌋`, for `−⌊a/m⌋ = ⌈−a/m⌉`;
//! * `max(aᵢ) = max(aᵢ + x) − x`;
//! * `max(0, d − k) = max(0, d) − min(k, max(0, d))`;
//! * `max(aᵢ, aᵢ + d) = max(0, d) + max(aᵢ)`, and of `a`, `a + k·x` and `a + m·x` with `0 < k < m` the middle one is redundant;
//!
//! Sums are also factored. Each step makes the text cheaper, so the search ends. The number of tried forms is bounded; above the bound, the
//! canonical form is written. The forms serve output only.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::Symbol;
use super::expr::Dim;
use super::monomial::{Atom, Floor, Monomial, Summand};
use super::scope::Scope;
use super::text::{Form, Part, Style, Sum, write_atom, write_product, write_sum};

/// The largest expression for which other forms are tried.
const MAX_SEARCHED: usize = 48;
/// The most forms that are tried for one expression.
const MAX_TRIED: usize = 600;
/// The cost of a name in addition to its letters: `floor((s + 3)/4)` is easier to read than `s - floor(3*s/4)`.
const COST_OF_NAME: usize = 4;
/// The cost of a leading sign: `floor((s + 3)/4)` is easier to read than `-floor((-s)/4)`.
const COST_OF_SIGN: usize = 4;

impl Scope {
    /// Formats the expression. A symbol appears under its name; a name that could be parsed as something else is quoted.
    pub fn format(&self, a: &Dim) -> String {
        if let Some(text) = self.recall_text(a) {
            return text.to_string();
        }
        let text = self.format_as(a, false);
        self.remember_text(a, &text);
        text
    }

    /// Formats without spaces, and with `a//b` for `floor(a/b)`.
    pub fn format_densely(&self, a: &Dim) -> String {
        self.format_as(a, true)
    }

    /// Returns the first `most` characters of the text, and an ellipsis if there are more. For a long expression, the shortest form is not
    /// searched.
    pub fn format_within(&self, a: &Dim, most: usize) -> String {
        let is_long = a.size() as usize > most / 2;
        let text = if is_long { self.format_tried(a, false, MAX_TRIED) } else { self.format(a) };
        match text.char_indices().nth(most) {
            Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
            None => text,
        }
    }

    /// Formats the expression without the search for a shorter form.
    pub(super) fn format_plainly(&self, a: &Dim) -> String {
        self.format_tried(a, false, MAX_TRIED)
    }

    fn format_as(&self, a: &Dim, dense: bool) -> String {
        self.format_tried(a, dense, 0)
    }

    /// Formats with a search in which `tried` forms count as tried already.
    fn format_tried(&self, a: &Dim, dense: bool, tried: usize) -> String {
        let name = |symbol| self.name(symbol);
        let settle = |a: &Dim| self.settle(a.clone()).unwrap_or_else(|| a.clone());
        let (known, atoms) = (RefCell::default(), RefCell::default());
        let search = Search { name: &name, settle: &settle, dense, known, atoms, tried: Cell::new(tried) };
        search.settled(a).text(dense)
    }
}

/// The state of the search.
struct Search<'s> {
    name: &'s dyn Fn(Symbol) -> Arc<str>,
    settle: &'s dyn Fn(&Dim) -> Dim,
    dense: bool,
    known: RefCell<FxHashMap<Dim, Rc<Sum>>>,
    atoms: RefCell<FxHashMap<Atom, Part>>,
    tried: Cell<usize>,
}

/// An expression, its written form, and the cost of that.
struct Found {
    form: Dim,
    written: Sum,
    cost: usize,
}

impl Search<'_> {
    /// Returns the best form of `a`, after known multiples are replaced.
    fn settled(&self, a: &Dim) -> Rc<Sum> {
        self.best(&(self.settle)(a))
    }

    /// Returns the cheapest written form of `a` that is found.
    fn best(&self, a: &Dim) -> Rc<Sum> {
        if let Some(known) = self.known.borrow().get(a) {
            return Rc::clone(known);
        }
        let mut best = self.found(without_middles(a), false);
        while let Some(better) =
            self.other_atoms(&best.form).into_iter().map(|form| self.found(form, false)).min_by_key(|found| found.cost)
            && better.cost < best.cost
        {
            best = better;
        }
        let factored = self.found(best.form.clone(), true);
        let written = Rc::new(if factored.cost < best.cost { factored.written } else { best.written });
        self.known.borrow_mut().insert(a.clone(), Rc::clone(&written));
        written
    }

    /// Returns the cheaper of the sum and its factored forms. The content of the parentheses is written without a search, or with one if
    /// `deep` is set.
    fn found(&self, form: Dim, deep: bool) -> Found {
        let (inner, known) = (|inner: &Dim| self.settled(inner), Some(&self.atoms));
        let style = Style { name: self.name, settle: self.settle, inner: &inner, known, dense: self.dense };
        let written = write_sum(&form, &style);
        let mut found = Found { cost: self.cost(&written), written, form };
        self.tried.set(self.tried.get().saturating_add(1));
        let part: &dyn Fn(&Dim) -> Sum =
            if deep { &|part| self.best(part).as_ref().clone() } else { &|part| write_sum(part, &style) };
        for written in self.factored(&found.form, &style, part) {
            let cost = self.cost(&written);
            if cost < found.cost {
                (found.cost, found.written) = (cost, written);
            }
        }
        found
    }

    fn is_spent(&self, a: &Dim) -> bool {
        a.term_count() > MAX_SEARCHED || self.tried.get() >= MAX_TRIED
    }

    /// Returns the cost of a sum's text, without building the text.
    fn cost(&self, written: &Sum) -> usize {
        let (mut cost, mut is_first) = (0usize, true);
        written.for_each_piece(self.dense, |piece| {
            let is_sign = std::mem::take(&mut is_first) && piece.starts_with('-');
            cost = cost.saturating_add(cost_of(piece)).saturating_add(if is_sign { COST_OF_SIGN } else { 0 });
        });
        cost
    }

    /// Factors a sum by its greatest common factor, and by each atom: `factor · quotient + rest`.
    fn factored(&self, a: &Dim, style: &Style, part: &dyn Fn(&Dim) -> Sum) -> Vec<Sum> {
        let terms = a.terms();
        if terms.len() < 2 || self.is_spent(a) {
            return Vec::new();
        }
        let mut forms = Vec::new();
        forms.extend(self.over_common(a, style, part));
        for atom in atoms_of(a) {
            if terms.iter().filter(|term| term.monomial.exponent_of(&atom) > 0).count() < 2 || self.is_spent(a) {
                continue;
            }
            let Some((quotient, rest)) = taken_out(a, &atom) else { continue };
            let rest = if rest.is_const(0) { Sum::default() } else { part(&rest) };
            forms.push(self.times(whole(write_atom(&atom, style)), part(&quotient), rest.clone()));
            // −x·max(mᵢ) = x·min(−mᵢ)
            let least = negated_maximum(&atom).zip(quotient.scaled(-1));
            if let Some((least, negated)) = least {
                let text = super::text::write_call("min", &least, style);
                forms.push(self.times((text, Form::Whole), part(&negated), rest));
            }
        }
        forms
    }

    /// Returns the greatest common factor of all terms, times the quotient.
    fn over_common(&self, a: &Dim, style: &Style, part: &dyn Fn(&Dim) -> Sum) -> Option<Sum> {
        let (content, monomial) = (i64::try_from(a.content()).ok()?, a.common_monomial());
        if content <= 1 && monomial.is_one() {
            return None;
        }
        let rest = a.over_const(content.max(1))?.over_monomial(&monomial)?;
        let factor = Summand { monomial, coefficient: content.max(1) };
        // One term may have several parts: `b·⌊a/b⌋` is `a − Mod(a, b)`.
        let factor = match write_sum(&Dim::from_sorted(vec![factor])?, style) {
            Sum(mut parts) if parts.len() == 1 && parts.iter().all(|part| !part.negative) => whole(parts.pop()?),
            several => (several.operand(Form::Product, self.dense), Form::Whole),
        };
        Some(self.times(factor, part(&rest), Sum::default()))
    }

    /// Returns `factor · sum + rest`.
    fn times(&self, factor: (String, Form), sum: Sum, rest: Sum) -> Sum {
        let negative = sum.0.iter().all(|part| part.negative);
        let sum = if negative { sum.negated() } else { sum };
        let is_number = |text: &str| text.starts_with(|letter: char| letter.is_ascii_digit());
        let factors = match sum.0.as_slice() {
            [only] if only.text == "1" => vec![factor],
            // A number precedes other factors.
            [only] if is_number(&only.text) && !is_number(&factor.0) => vec![(only.text.clone(), only.form), factor],
            _ => vec![factor, (sum.operand(Form::Product, self.dense), Form::Whole)],
        };
        let product = Part { negative, ..write_product(factors) };
        Sum(std::iter::once(product).chain(rest.0).collect())
    }

    /// Returns equal expressions that differ in one atom.
    fn other_atoms(&self, a: &Dim) -> Vec<Dim> {
        let mut forms = Vec::new();
        for atom in atoms_of(a) {
            if self.is_spent(a) {
                break;
            }
            let equals = match &atom {
                Atom::Symbol(_) => Vec::new(),
                Atom::Floor(floor) => [complement(floor)]
                    .into_iter()
                    .flatten()
                    .chain(added_to(a, &atom).iter().filter_map(|x| shifted_floor(floor, x)))
                    .collect(),
                Atom::Max(members) => {
                    let offsets = members.iter().map(|member| Dim::constant(member.offset().saturating_neg()));
                    let shifts = offsets.chain(added_to(a, &atom)).filter(|x| !x.is_const(0));
                    let shifted = shifts.filter_map(|x| shifted_maximum(members.as_slice(), &x));
                    let whole = shifted.chain(clipped(a, members.as_slice()));
                    whole.chain(of_two(members.as_slice())).collect()
                }
            };
            forms.extend(equals.iter().filter_map(|equal| a.replace_atom(&atom, equal)).filter(|form| form != a));
        }
        forms
    }
}

/// Returns the cost of a text: its letters, its names, and its signs directly after an opening parenthesis.
fn cost_of(text: &str) -> usize {
    let (mut cost, mut before) = (0usize, ' ');
    // `true` if the previous letter belongs to a word, and if that word begins like a name.
    let (mut in_word, mut begins_name) = (false, false);
    for letter in text.chars() {
        let is_part = letter == '_' || letter.is_alphanumeric();
        let ends_name = in_word && begins_name && !is_part && letter != '(';
        if is_part && !in_word {
            begins_name = !letter.is_ascii_digit();
        }
        cost = cost.saturating_add(match (ends_name, before == '(' && letter == '-') {
            (true, _) => 1 + COST_OF_NAME,
            (false, true) => 1 + COST_OF_SIGN,
            (false, false) => 1,
        });
        (in_word, before) = (is_part, letter);
    }
    cost.saturating_add(if in_word && begins_name { COST_OF_NAME } else { 0 })
}

fn whole(part: Part) -> (String, Form) {
    (part.text, part.form)
}

/// Returns the distinct atoms of the terms.
fn atoms_of(a: &Dim) -> Vec<Atom> {
    let mut atoms: Vec<Atom> = Vec::new();
    for factor in a.terms().iter().flat_map(|term| term.monomial.factors()) {
        if !atoms.contains(&factor.atom) {
            atoms.push(factor.atom.clone());
        }
    }
    atoms
}

/// Returns `(q, r)` with `a = atom · q + r`, where `r` does not have the atom as a factor.
fn taken_out(a: &Dim, atom: &Atom) -> Option<(Dim, Dim)> {
    let single = Monomial::atom(atom.clone());
    let (mut quotient, mut rest) = (Vec::new(), Vec::new());
    for term in a.terms().iter() {
        match term.monomial.over(&single) {
            Some(monomial) => quotient.push(Summand { monomial, coefficient: term.coefficient }),
            None => rest.push(term.clone()),
        }
    }
    Some((Dim::from_terms(quotient)?, Dim::from_terms(rest)?))
}

/// Returns the `−mᵢ` of `max(mᵢ)`.
fn negated_maximum(atom: &Atom) -> Option<Vec<Dim>> {
    let Atom::Max(members) = atom else { return None };
    let mut negated = members.iter().map(|member| member.scaled(-1)).collect::<Option<Vec<_>>>()?;
    negated.sort();
    Some(negated)
}

/// Returns each `x` of terms `n·atom + n·x` with the same cofactor `n`.
fn added_to(a: &Dim, atom: &Atom) -> Vec<Dim> {
    let single = Monomial::atom(atom.clone());
    let terms = a.terms();
    let mut found: Vec<Dim> = Vec::new();
    for term in terms.iter() {
        let Some(cofactor) = term.monomial.over(&single) else { continue };
        for other in terms.iter() {
            let share = other.coefficient.checked_rem(term.coefficient).filter(|rest| *rest == 0);
            let unit = other.monomial.over(&cofactor).filter(|unit| unit.exponent_of(atom) == 0);
            let quotient = share.and_then(|_| other.coefficient.checked_div(term.coefficient));
            let x = unit
                .zip(quotient)
                .and_then(|(monomial, coefficient)| Dim::from_terms(vec![Summand { monomial, coefficient }]));
            found.extend(x.filter(|x| !found.contains(x)));
        }
    }
    found
}

/// Returns `⌊(a + m·x)/m⌋ − x`.
fn shifted_floor(floor: &Floor, x: &Dim) -> Option<Dim> {
    let by = floor.denominator.as_const().filter(|by| *by > 0)?;
    let numerator = floor.numerator.plus_scaled(x, by)?;
    if numerator.as_const().is_some() {
        return None;
    }
    Atom::floor(numerator, floor.denominator.clone()).dim()?.minus(x)
}

/// Returns `x − ⌊(m·x − a + m − 1)/m⌋`, with an `x` that reduces the coefficients to `0 .. m`.
fn complement(floor: &Floor) -> Option<Dim> {
    let by = floor.denominator.as_const().filter(|by| *by > 0)?;
    let variable = floor.numerator.terms();
    let variable = variable.iter().filter(|term| !term.monomial.is_one());
    let up = |coefficient: i64| coefficient.checked_neg()?.checked_div_euclid(by)?.checked_neg();
    let x = variable.map(|term| Some(Summand { monomial: term.monomial.clone(), coefficient: up(term.coefficient)? }));
    let x = Dim::from_terms(x.collect::<Option<Vec<_>>>()?)?;
    let numerator = x.scaled(by)?.minus(&floor.numerator)?.plus(&Dim::constant(by.checked_sub(1)?))?;
    if numerator.as_const().is_some() {
        return None;
    }
    x.minus(&Atom::floor(numerator, floor.denominator.clone()).dim()?)
}

/// Returns `max(aᵢ + x) − x`.
fn shifted_maximum(members: &[Dim], x: &Dim) -> Option<Dim> {
    let mut shifted = members.iter().map(|member| member.plus(x)).collect::<Option<Vec<_>>>()?;
    shifted.sort();
    Atom::max(shifted).dim()?.minus(x)
}

/// Returns `max(0, d) − min(k, max(0, d))` for `max(0, d − k)`, for each `max(0, d)` in the sum.
fn clipped(a: &Dim, members: &[Dim]) -> Vec<Dim> {
    let [zero, low] = members else { return Vec::new() };
    if !zero.is_const(0) {
        return Vec::new();
    }
    let others = atoms_of(a);
    let clipped = others.iter().filter_map(|other| {
        let Atom::Max(members) = other else { return None };
        let [zero, high] = members.as_slice() else { return None };
        let distance = high.minus(low)?.as_const().filter(|distance| *distance > 0 && zero.is_const(0))?;
        let wide = other.clone().dim()?;
        let mut negated = vec![Dim::constant(distance.checked_neg()?), wide.scaled(-1)?];
        negated.sort();
        wide.plus(&Atom::max(negated).dim()?)
    });
    clipped.collect()
}

/// Returns `max(b, b + d) + max(aᵢ − b)` for `max(aᵢ, aᵢ + d)`, where half of the members have the addend `d`, for each `b` of the other
/// half.
fn of_two(members: &[Dim]) -> Vec<Dim> {
    if members.len() < 4 || !members.len().is_multiple_of(2) {
        return Vec::new();
    }
    let Some((first, others)) = members.split_first() else { return Vec::new() };
    let halves = others.iter().filter_map(|other| {
        let d = other.minus(first)?;
        Some((lower_half(members, &d)?, d))
    });
    let split = |lower: &[Dim], d: &Dim, base: &Dim| {
        let mut two = vec![base.clone(), base.plus(d)?];
        two.sort();
        let mut rest = lower.iter().map(|member| member.minus(base)).collect::<Option<Vec<_>>>()?;
        rest.sort();
        Atom::max(two).dim()?.plus(&Atom::max(rest).dim()?)
    };
    halves.flat_map(|(lower, d)| lower.iter().filter_map(|base| split(&lower, &d, base)).collect::<Vec<_>>()).collect()
}

/// Returns the half of the members to which the other half adds `d`.
fn lower_half(members: &[Dim], d: &Dim) -> Option<Vec<Dim>> {
    let mut open: Vec<&Dim> = members.iter().collect();
    let mut lower = Vec::new();
    while let Some(member) = open.pop() {
        let partner = |other: &Dim| open.iter().position(|own| *own == other);
        if let Some(at) = partner(&member.plus(d)?) {
            lower.push(member.clone());
            open.swap_remove(at);
        } else {
            let below = member.minus(d)?;
            open.swap_remove(partner(&below)?);
            lower.push(below);
        }
    }
    Some(lower)
}

/// Returns an equal expression without redundant members of maxima.
fn without_middles(a: &Dim) -> Dim {
    let mut form = a.clone();
    let shorter = |form: &Dim| {
        atoms_of(form).into_iter().find_map(|atom| match &atom {
            Atom::Max(members) => form.replace_atom(&atom, &without_middle(members.as_slice())?),
            _ => None,
        })
    };
    while let Some(less) = shorter(&form) {
        form = less;
    }
    form
}

/// Returns the maximum without a member between two others: `a + k·x` of `a` and `a + m·x`, with `0 < k < m`.
fn without_middle(members: &[Dim]) -> Option<Dim> {
    const MOST: usize = 16;
    let is_between = |member: &Dim, least: &Dim| {
        let step = member.minus(least)?;
        let times = i64::try_from(step.content()).ok().filter(|times| *times > 0)?;
        let unit = step.over_const(times)?;
        let is_further = |other: &Dim| {
            let whole = other.minus(least)?;
            let more = i64::try_from(whole.content()).ok().filter(|more| *more > times)?;
            (unit.scaled(more)? == whole).then_some(())
        };
        members.iter().any(|other| is_further(other).is_some()).then_some(())
    };
    let is_middle = |member: &Dim| {
        let mut others = members.iter().filter(|other| *other != member);
        members.len() > 2 && others.any(|least| is_between(member, least).is_some())
    };
    let at = members.iter().take(MOST).position(is_middle)?;
    let mut rest = members.to_vec();
    rest.remove(at);
    Atom::max(rest).dim()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_leading_signs_cost_more_than_letters() {
        assert_eq!(cost_of("floor((s + 3)/4)"), 16 + COST_OF_NAME);
        assert_eq!(cost_of("max(-a, 2*b_1)"), 14 + 2 * COST_OF_NAME + COST_OF_SIGN);
        assert_eq!(cost_of("größe"), 5 + COST_OF_NAME);
        assert_eq!(cost_of("17"), 2);
    }

    #[test]
    fn the_cost_of_a_sum_is_that_of_its_text() {
        let scope = Scope::new();
        let name = |symbol| scope.name(symbol);
        let settle = Dim::clone;
        for (text, dense) in [("a - 3*b", false), ("0 - a*b - 7", false), ("0 - floor(a/4)", true), ("a", true)] {
            let (known, atoms) = (RefCell::default(), RefCell::default());
            let search = Search { name: &name, settle: &settle, dense, known, atoms, tried: Cell::new(0) };
            let sum = search.best(&scope.parse(text).expect("an expression"));
            let text = sum.text(dense);
            let sign = if text.starts_with('-') { COST_OF_SIGN } else { 0 };
            assert_eq!(search.cost(&sum), cost_of(&text) + sign, "{text}");
        }
    }
}
