//! Operations: a row as the result of one operator on other rows.
//!
//! Law: let every term of a row have a formula with the same operator and types. Then the row is that operator applied to the columns of the
//! formulas' operands. A term without such a formula gets a neutral one: `t + 0`, `t − 0`, `t · 1`, `t / 1`, and `t mod d` for a number `0 ≤ t < d`.

use std::cmp::Reverse;
use std::rc::Rc;

use smallvec::SmallVec;

use super::candidate::Operation;
use super::partition::Kind;
use super::policy;
use super::row::{Row, RowId, is_uniform};
use super::search::Search;
use super::step::Step;
use super::terms::{Formula, TermId, TermTable, Terms, reduction};
use crate::tensor::DType;

impl Search<'_> {
    /// Returns the kind of a term as an element of this type.
    pub(super) fn kind(&mut self, term: TermId, dtype: DType) -> Kind {
        match self.survey.terms.is_number(term) {
            true => Kind::Number,
            false => Kind::Computed(self.formulas(term, dtype).first().map(|formula| formula.operator)),
        }
    }

    fn formulas(&mut self, term: TermId, dtype: DType) -> Rc<[Formula]> {
        self.survey.terms.formulas(term, dtype, self.survey.opset, self.facts.scope())
    }

    /// Returns the operations that compute a row: one for each formula of the first computed term that has any, if the other terms have matching
    /// ones.
    pub(super) fn operations(&mut self, id: RowId) -> Rc<[Rc<Operation>]> {
        let Some(own) = self.survey.numbered.get(id) else { return Rc::default() };
        if let Some(known) = &own.operations {
            return Rc::clone(known);
        }
        let row = Rc::clone(&own.row);
        let found = self.find_operations(&row);
        let found: Rc<[Rc<Operation>]> =
            found.into_iter().map(|application| Rc::new(self.operation(&row, application))).collect();
        if let Some(own) = self.survey.numbered.get_mut(id) {
            own.operations = Some(Rc::clone(&found));
        }
        found
    }

    fn find_operations(&mut self, row: &Row) -> Vec<Application> {
        if row.terms.iter().all(|&term| self.survey.terms.is_number(term)) {
            return Vec::new();
        }
        let formulas: Vec<Rc<[Formula]>> = row.terms.iter().map(|&term| self.formulas(term, row.dtype)).collect();
        let computed = || row.terms.iter().zip(&formulas).filter(|(term, _)| !self.survey.terms.is_number(**term));
        let leads = computed().find(|(_, own)| !own.is_empty()).map(|(_, own)| Rc::clone(own));
        let skips_first = computed().next().is_some_and(|(_, own)| own.is_empty());
        let mut found: Vec<Application> = Vec::new();
        for (at, lead) in leads.iter().flat_map(|leads| leads.iter()).enumerate() {
            let columns = match reduction(lead.operator) {
                Some(_) if row.len() == 1 => Some(vec![lead.operands.clone()]),
                Some(_) => None,
                None => columns(&mut self.survey.terms, row, &formulas, (at, lead)),
            };
            let Some(columns) = columns else { continue };
            let turned = matches!(lead.operator, "Add" | "Mul").then(|| self.turned(row, &columns)).flatten();
            for columns in std::iter::once(columns).chain(turned) {
                let (operator, from, to) = (lead.operator, lead.from, lead.to);
                let application = Application { operator, from, to, skips_first, columns };
                if policy::may_compute(&self.survey.terms, lead, &application.columns) && !found.contains(&application)
                {
                    found.push(application);
                }
            }
        }
        found
    }

    /// Swaps the operands of a sum or a product for those elements that are numbers: `[h, 0] + [1, 5]` for `[h, 5] + [1, 0]`.
    fn turned(&self, row: &Row, columns: &[Terms]) -> Option<Vec<Terms>> {
        let [left, right] = columns else { return None };
        let is_number = |at: usize| row.terms.get(at).is_some_and(|&term| self.survey.terms.is_number(term));
        let turn = |own: &Terms, other: &Terms| -> Terms {
            own.iter()
                .zip(other)
                .enumerate()
                .map(|(at, (&own, &other))| if is_number(at) { other } else { own })
                .collect()
        };
        Some(vec![turn(left, right), turn(right, left)]).filter(|turned| turned.as_slice() != columns)
    }

    /// Returns the operand rows of an application that computes a row.
    fn operation(&mut self, row: &Row, application: Application) -> Operation {
        let Application { operator, from, to, skips_first, columns } = application;
        let reduces = reduction(operator).is_some();
        let count = row.len();
        if !reduces && count > 1 && columns.iter().all(is_uniform) {
            return Operation { operator, reduces, to, skips_first, operands: None };
        }
        let is_vector = reduces || row.is_vector;
        let mut operands = Vec::with_capacity(columns.len());
        for terms in columns {
            let full = Row { dtype: from, is_vector, terms };
            let mut rows: SmallVec<[RowId; 2]> = SmallVec::new();
            if reduces || count == 1 || !full.is_uniform() {
                rows.push(self.survey.number(&full));
            } else {
                // One element is broadcast, as a vector or as a scalar.
                let vector = full.with_terms(full.terms.iter().take(1).copied().collect());
                rows.push(self.survey.number(&vector));
                rows.extend(vector.other_rank().map(|scalar| self.survey.number(&scalar)));
            }
            operands.push(rows);
        }
        Operation { operator, reduces, to, skips_first, operands: Some(operands) }
    }

    /// Computes the operands, and returns the step that computes the row from them.
    pub(super) fn apply(&mut self, row: &Row, operation: &Operation, before: usize) -> Option<Step> {
        let Operation { operator, reduces, to, operands: rows, .. } = operation;
        let mut operands = Vec::new();
        for rows in rows.as_ref()? {
            operands.push(match rows.as_slice() {
                [row] => self.row(*row, before)?,
                rows => self.cheapest(rows, before)?,
            });
        }
        if *reduces {
            let operand = operands.first().copied()?;
            return Some(Step::Reduce { operator, operand, keeps_axis: row.is_vector });
        }
        Some(Step::Apply { operator, operands, to: (*operator == "Cast").then_some(*to) })
    }
}

/// An operator, and the terms of each of its operands.
#[derive(PartialEq)]
struct Application {
    operator: &'static str,
    /// The type of the operands.
    from: DType,
    /// The type of the result.
    to: DType,
    /// `true` if it keeps the first term that is no number.
    skips_first: bool,
    columns: Vec<Terms>,
}

/// Returns the operands of one operation that computes every term of a row: those of the lead's formula, and for each other term those of the most
/// similar formula of the same kind. Ties prefer the lead's place among the formulas of its term: height and width have the same formulas, in the
/// same order.
fn columns(
    table: &mut TermTable,
    row: &Row,
    formulas: &[Rc<[Formula]>],
    (at, lead): (usize, &Formula),
) -> Option<Vec<Terms>> {
    let mut columns: Vec<Terms> = vec![Terms::new(); lead.operands.len()];
    for (&term, own) in row.terms.iter().zip(formulas) {
        let of_a_kind = |(_, other): &(usize, &Formula)| {
            other.operator == lead.operator && other.from == lead.from && other.operands.len() == lead.operands.len()
        };
        let rank = |&(own_at, other): &(usize, &Formula)| (likeness(table, other, lead), Reverse(own_at.abs_diff(at)));
        let operands = match own.iter().enumerate().filter(of_a_kind).max_by_key(rank) {
            Some((_, own)) => own.operands.clone(),
            None => neutral(table, term, lead)?,
        };
        columns.iter_mut().zip(operands).for_each(|(column, operand)| column.push(operand));
    }
    Some(columns)
}

/// Scores the similarity of two formulas' operands: 2 for each equal pair, plus 1 for each pair of two numbers or of two computed terms.
fn likeness(table: &TermTable, a: &Formula, b: &Formula) -> usize {
    let pairs = a.operands.iter().zip(&b.operands);
    let alike =
        |(&a, &b): (&TermId, &TermId)| 2 * usize::from(a == b) + usize::from(table.is_number(a) == table.is_number(b));
    pairs.map(alike).sum()
}

/// Returns operands with which the lead's operator keeps a term unchanged. An integer below 2²⁴ is cast to the equal float.
fn neutral(table: &mut TermTable, term: TermId, lead: &Formula) -> Option<Terms> {
    if lead.from != DType::Int64 {
        return None;
    }
    if lead.operator == "Cast" {
        let float = table.as_float(term)?;
        let whole = float as i64;
        let exact = whole as f64 == float && whole.unsigned_abs() < 1 << 24 && (whole != 0 || float.is_sign_positive());
        return exact.then(|| std::iter::once(table.int(whole)).collect());
    }
    if lead.operator == "Mod" {
        // A number less than the divisor is its own remainder.
        let &divisor = lead.operands.get(1)?;
        let (number, most) = (table.as_const(term)?, table.as_const(divisor)?);
        return (0..most).contains(&number).then(|| [term, divisor].into_iter().collect());
    }
    table.as_dim(term)?;
    let other = match lead.operator {
        "Add" | "Sub" => 0,
        "Mul" | "Div" => 1,
        _ => return None,
    };
    let other = table.int(other);
    Some([term, other].into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dim::{Dim, Scope};
    use crate::ir::Scalar;
    use crate::ops::Opset;

    #[test]
    fn terms_of_one_operator_share_an_operation() {
        let scope = Scope::new();
        let mut table = TermTable::default();
        let (a, b) = (Dim::symbol(scope.named("a")), Dim::symbol(scope.named("b")));
        let half = |dim: &Dim| scope.floor_div(dim, &Dim::constant(2));
        let mut int = |dim: &Dim| table.of_scalar(&Scalar::Int(dim.clone()), &scope).expect("an integer");
        let row = Row::sizes([int(&half(&a)), int(&half(&b)), int(&b)].into_iter().collect());
        let (a, b) = (int(&a), int(&b));
        let formulas: Vec<Rc<[Formula]>> =
            row.terms.iter().map(|&term| table.formulas(term, DType::Int64, Opset::new(13), &scope)).collect();
        let lead = formulas[0].iter().find(|formula| formula.operator == "Div").expect("a quotient");
        let columns = columns(&mut table, &row, &formulas, (0, lead)).expect("every term can follow");
        let (one, two) = (table.int(1), table.int(2));
        assert_eq!(columns[0].as_slice(), [a, b, b]);
        assert_eq!(columns[1].as_slice(), [two, two, one]);
    }

    #[test]
    fn only_unchanged_terms_take_a_neutral_operand() {
        let mut table = TermTable::default();
        let lead = |operator, from, to| Formula { operator, from, to, operands: Terms::new() };
        let (seven, half) = (table.int(7), table.of_scalar(&Scalar::Float(0.5), &Scope::new()).expect("a float"));
        let whole = table.of_scalar(&Scalar::Float(3.0), &Scope::new()).expect("a float");
        let negative_zero = table.of_scalar(&Scalar::Float(-0.0), &Scope::new()).expect("a float");
        let cast = lead("Cast", DType::Int64, DType::Float);
        assert!(neutral(&mut table, half, &cast).is_none() && neutral(&mut table, negative_zero, &cast).is_none());
        assert_eq!(neutral(&mut table, whole, &cast).expect("a whole number").as_slice(), [table.int(3)]);
        assert!(neutral(&mut table, seven, &lead("Mod", DType::Int64, DType::Int64)).is_none());
        let mut modulo = |divisor: i64| {
            let operands = [seven, table.int(divisor)].into_iter().collect();
            let lead = Formula { operands, ..lead("Mod", DType::Int64, DType::Int64) };
            neutral(&mut table, seven, &lead)
        };
        assert!(modulo(7).is_none() && modulo(8).is_some_and(|operands| operands.first() == Some(&seven)));
        assert!(neutral(&mut table, half, &lead("Mul", DType::Float, DType::Float)).is_none());
    }
}
