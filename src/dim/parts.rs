//! Decomposes an expression into one operation on smaller expressions.

use super::expr::Dim;
use super::integer::greatest_common_divisor;
use super::monomial::{Atom, Monomial, Summand};
use super::scope::Scope;

/// The most terms of an expression that is decomposed.
const MAX_TERMS: usize = 16;

/// The most terms of a sum that are tried.
const MAX_PARTS: usize = 6;

/// An operation on two integers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    /// `a + b`.
    Add,
    /// `a − b`.
    Sub,
    /// `a · b`.
    Mul,
    /// `⌊a / b⌋` of an `a ≥ 0` and a `b ≥ 1`, so that it does not matter which way it is rounded.
    Div,
    /// `a − b·⌊a / b⌋` for a `b ≥ 1`.
    Mod,
    /// The smaller of the two.
    Min,
    /// The larger of the two.
    Max,
}

impl Scope {
    /// Returns the ways to compute an expression by one operation on simpler ones. Each equals `a` for every assignment of the symbols.
    pub fn parts(&self, a: &Dim) -> Vec<(Operation, Dim, Dim)> {
        let mut found = Vec::new();
        if a.as_const().is_none() && a.term_count() <= MAX_TERMS {
            self.linear_parts(a, &mut found);
            self.atom_parts(a, &mut found);
        }
        found.retain(|(operation, left, right)| left != a && right != a && self.gives(*operation, left, right, a));
        found
    }

    fn gives(&self, operation: Operation, left: &Dim, right: &Dim, a: &Dim) -> bool {
        let result = match operation {
            Operation::Add => self.try_add(left, right),
            Operation::Sub => self.try_sub(left, right),
            Operation::Mul => self.try_mul(left, right),
            Operation::Div if self.at_least(left, 0) && self.at_least(right, 1) => self.try_floor_div(left, right),
            Operation::Mod if self.at_least(right, 1) => self.try_modulo(left, right),
            Operation::Min => self.try_min(left, right),
            Operation::Max => self.try_max(left, right),
            Operation::Div | Operation::Mod => None,
        };
        result.as_ref() == Some(a)
    }

    fn linear_parts(&self, a: &Dim, found: &mut Vec<(Operation, Dim, Dim)>) {
        let offset = a.offset();
        let terms: Vec<Summand> = a.terms().iter().filter(|term| !term.monomial.is_one()).cloned().collect();
        let constant = Dim::constant(offset);
        let single = |term: &Summand| Dim::from_sorted(vec![term.clone()]);
        if let Some(rest) = self.try_sub(a, &constant).filter(|_| offset != 0) {
            if terms.iter().all(|term| term.coefficient < 0)
                && let Some(opposite) = self.try_neg(&rest)
            {
                found.push((Operation::Sub, constant.clone(), opposite));
            }
            found.push((Operation::Add, rest, constant));
        }
        let divisor = terms.iter().fold(offset.unsigned_abs(), |divisor, term| {
            greatest_common_divisor(divisor, term.coefficient.unsigned_abs())
        });
        if let Ok(divisor) = i64::try_from(divisor)
            && divisor > 0
        {
            let negative = terms.iter().all(|term| term.coefficient < 0);
            let factor = Dim::constant(if negative { -divisor } else { divisor });
            if !factor.is_const(1)
                && let Some(rest) = self.exact_div(a, &factor)
            {
                found.push((Operation::Mul, rest, factor));
            }
        }
        if terms.len() < 2 || terms.len() > MAX_PARTS {
            return;
        }
        let (above, below): (Vec<&Summand>, Vec<&Summand>) = terms.iter().partition(|term| term.coefficient > 0);
        let sum = |terms: &[&Summand]| {
            let dims = terms.iter().map(|term| single(term)).collect::<Option<Vec<Dim>>>()?;
            self.try_sum(&dims)
        };
        if let (false, false, Some(above), Some(below)) =
            (above.is_empty(), below.is_empty(), sum(&above), sum(&below).and_then(|below| self.try_neg(&below)))
            && let Some(above) = self.try_add(&above, &Dim::constant(offset))
        {
            found.push((Operation::Sub, above, below));
        }
        for part in terms.iter().filter_map(single) {
            if let Some(rest) = self.try_sub(a, &part) {
                found.push((Operation::Add, rest, part));
            }
        }
    }

    fn atom_parts(&self, a: &Dim, found: &mut Vec<(Operation, Dim, Dim)>) {
        let terms: Vec<Summand> = a.terms().to_vec();
        if let [Summand { monomial, coefficient: 1 }] = terms.as_slice() {
            self.factors(a, monomial, found);
        }
        for term in terms.iter().take(MAX_PARTS) {
            match term.monomial.as_atom() {
                Some(Atom::Floor(floor)) => {
                    let (numerator, denominator) = (floor.numerator.clone(), floor.denominator.clone());
                    let operation = if term.coefficient == 1 { Operation::Div } else { Operation::Mod };
                    // ⌊n/d⌋ + k = ⌊(n + k·d)/d⌋
                    let offset = self.try_mul(&Dim::constant(a.offset()), &denominator);
                    if let Some(moved) = offset.filter(|_| a.offset() != 0 && term.coefficient == 1)
                        && let Some(numerator) = self.try_add(&numerator, &moved)
                    {
                        found.push((operation, numerator, denominator.clone()));
                    }
                    self.next_multiple(a, (term.coefficient, &numerator, &denominator), found);
                    self.rest_of_quotient(a, term, &denominator, found);
                    found.push((operation, numerator, denominator));
                }
                Some(Atom::Max(members)) => {
                    let Some((first, others)) = members.as_slice().split_first() else { continue };
                    let rest = Dim::from_sorted(vec![term.clone()]).and_then(|own| self.try_sub(a, &own));
                    let others = self.try_max_of(others.to_vec());
                    let Some((rest, others)) = rest.zip(others) else { continue };
                    let (operation, pair) = match term.coefficient {
                        1 => (Operation::Max, (self.try_add(&rest, first), self.try_add(&rest, &others))),
                        -1 => (Operation::Min, (self.try_sub(&rest, first), self.try_sub(&rest, &others))),
                        _ => continue,
                    };
                    if let (Some(left), Some(right)) = pair {
                        found.push((operation, left, right));
                    }
                }
                Some(Atom::Symbol(_)) | None => {}
            }
        }
    }

    /// Decomposes `d·⌊(m + d − 1)/d⌋`, the next multiple of `d`, into `m` plus the distance to it, which is `(d − 1)·m mod d`.
    fn next_multiple(&self, a: &Dim, floor: (i64, &Dim, &Dim), found: &mut Vec<(Operation, Dim, Dim)>) {
        let (coefficient, numerator, denominator) = floor;
        let Some(divisor) = denominator.as_const().filter(|&divisor| divisor == coefficient) else { return };
        let most = Dim::constant(divisor.saturating_sub(1));
        let Some(number) = self.try_sub(numerator, &most) else { return };
        if let Some(missing) = self.try_sub(a, &number).filter(|_| a.terms().len() == 1) {
            found.push((Operation::Add, number.clone(), missing));
        }
        if let Some(left) = self.try_mul(&number, &most) {
            found.push((Operation::Mod, left, denominator.clone()));
        }
    }

    /// Decomposes `⌊n/d⌋ − c·⌊n/(d·c)⌋` as `⌊n/d⌋ mod c`, because a quotient of a quotient is a quotient.
    fn rest_of_quotient(&self, a: &Dim, term: &Summand, denominator: &Dim, found: &mut Vec<(Operation, Dim, Dim)>) {
        let Some(divisor) = term.coefficient.checked_neg().filter(|&divisor| divisor > 1) else { return };
        let taken = Dim::from_sorted(vec![term.clone()]);
        let number = taken.filter(|_| !denominator.is_const(divisor)).and_then(|taken| self.try_sub(a, &taken));
        found.extend(number.map(|number| (Operation::Mod, number, Dim::constant(divisor))));
    }

    /// Decomposes a product, factor by factor.
    fn factors(&self, a: &Dim, monomial: &Monomial, found: &mut Vec<(Operation, Dim, Dim)>) {
        if monomial.degree() < 2 {
            return;
        }
        for factor in monomial.factors().iter().take(MAX_PARTS) {
            if let Some(factor) = factor.atom.clone().dim()
                && let Some(rest) = self.quotient(a, &factor)
            {
                found.push((Operation::Mul, rest, factor));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn parts(text: &str) -> Vec<String> {
        let scope = Scope::new();
        let dim = scope.parse(text).expect("it is an expression");
        let write = |(operation, left, right): (Operation, Dim, Dim)| {
            format!("{operation:?}({}, {})", scope.format(&left), scope.format(&right))
        };
        scope.parts(&dim).into_iter().map(write).collect()
    }

    #[test]
    fn a_size_is_its_own_part() {
        assert!(parts("h").is_empty() && parts("7").is_empty());
    }

    #[track_caller]
    fn has(text: &str, part: &str) {
        let found = parts(text);
        assert!(found.iter().any(|own| own == part), "{found:?}");
    }

    #[test]
    fn sums_and_products() {
        has("h + 3", "Add(h, 3)");
        has("4 - h", "Sub(4, h)");
        has("h - w + 1", "Sub(h + 1, w)");
        has("6*h", "Mul(h, 6)");
        has("-h", "Mul(h, -1)");
        has("h*w", "Mul(w, h)");
    }

    #[test]
    fn atoms() {
        has("floor(h/4)", "Div(h, 4)");
        has("floor(h/4) + 2", "Div(h + 8, 4)");
        has("Mod(3*h, 4)", "Mod(3*h, 4)");
        has("floor(h/2) - 2*floor(h/4)", "Mod(floor(h/2), 2)");
        has("32*floor((h + 31)/32) - h", "Mod(31*h, 32)");
        has("4*floor((h + 3)/4)", "Add(h, Mod(3*h, 4))");
        has("max(h, w)", "Max(w, h)");
        has("min(h, 30)", "Min(h, 30)");
    }

    #[test]
    fn a_quotient_that_may_be_negative_is_none() {
        assert!(parts("floor((h - 3)/4)").iter().all(|part| !part.starts_with("Div")));
    }
}
