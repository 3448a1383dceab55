//! Policies: sound plans that are avoided for the sake of runtimes. `verify` checks soundness.

use super::terms::{Formula, TermId, TermTable, Terms};

/// The least magnitude of a sentinel, which is no size: exporters write 2147483646, 2³¹ − 1 or 2⁶³ − 1 for "up to the end" of a Slice.
const LEAST_SENTINEL: u64 = (1 << 31) - 2;

/// Returns `true` if a plan may compute a row by formulas like `lead` from these columns of operands.
///
/// A sentinel may be moved, compared, added and multiplied, but neither divided nor cast to a float. OpenVINO divides sizes in float32, so that
/// `2147483646 / 1` is −2147483648 there and the slice empty. Operators that the model itself applies to a sentinel are kept (copied nodes skip this
/// check).
pub(super) fn may_compute(table: &TermTable, lead: &Formula, columns: &[Terms]) -> bool {
    let stays_exact = !matches!(lead.operator, "Div" | "Mod") && !lead.from.is_float() && !lead.to.is_float();
    stays_exact || !columns.iter().flatten().any(|&term| is_sentinel(table, term))
}

fn is_sentinel(table: &TermTable, term: TermId) -> bool {
    let int = table.as_const(term).is_some_and(|int| int.unsigned_abs() >= LEAST_SENTINEL);
    let float = table.as_float(term).is_some_and(|float| float.is_finite() && float.abs() >= LEAST_SENTINEL as f64);
    int || float
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dim::Scope;
    use crate::ir::Scalar;
    use crate::tensor::DType;

    fn allows(table: &TermTable, operator: &'static str, [from, to]: [DType; 2], column: &[TermId]) -> bool {
        let lead = Formula { operator, from, to, operands: Terms::new() };
        may_compute(table, &lead, &[Terms::from_slice(column)])
    }

    #[test]
    fn a_sentinel_is_added_to_but_not_divided_or_turned_into_a_float() {
        let mut table = TermTable::default();
        for sentinel in [2_147_483_646, i64::from(i32::MAX), i64::MAX, i64::from(i32::MIN), i64::MIN] {
            let column = [table.int(7), table.int(sentinel)];
            let allows = |operator, to| allows(&table, operator, [DType::Int64, to], &column);
            assert!(allows("Add", DType::Int64) && allows("Less", DType::Bool));
            assert!(!allows("Div", DType::Int64) && !allows("Mod", DType::Int64) && !allows("Cast", DType::Float));
        }
        let large = table.of_scalar(&Scalar::Float(4e9), &Scope::new()).expect("a known float");
        assert!(!allows(&table, "Mul", [DType::Float; 2], &[large]));
    }

    #[test]
    fn a_size_may_be_divided() {
        let mut table = TermTable::default();
        let column = [table.int(7), table.int(1 << 30)];
        assert!(allows(&table, "Div", [DType::Int64; 2], &column));
    }
}
