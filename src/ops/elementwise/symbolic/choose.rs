//! Comparison and selection of elements.

use super::{Elements, Relation};
use crate::dim::{Answer, Dim};
use crate::ir::Scalar;

impl Elements<'_> {
    /// Decides if two elements are in a relation. Comparisons with NaN are false.
    pub(in crate::ops::elementwise) fn compare(&self, relation: Relation, a: &Scalar, b: &Scalar) -> Option<Answer> {
        if let (Scalar::Int(a), Scalar::Int(b)) = (a, b) {
            if relation == Relation::Equal && self.scope.differ_wrapped(a, b) {
                return Some(Answer::No);
            }
            let (a, b) = self.unwrapped(a, b);
            return self.compare_expressions(relation, &Scalar::Int(a), &Scalar::Int(b));
        }
        self.compare_expressions(relation, a, b)
    }

    fn compare_expressions(&self, relation: Relation, a: &Scalar, b: &Scalar) -> Option<Answer> {
        let dims = |a: &Dim, b: &Dim| match relation {
            Relation::Equal => self.scope.eq(a, b),
            Relation::Less => self.scope.lt(a, b),
            Relation::LessOrEqual => self.scope.le(a, b),
        };
        if let (Scalar::Int(a), Scalar::Int(b)) = (a, b) {
            return Some(dims(a, b));
        }
        let floats = |a: f64, b: f64| {
            let holds = match relation {
                Relation::Equal => a == b,
                Relation::Less => a < b,
                Relation::LessOrEqual => a <= b,
            };
            if holds { Answer::Yes } else { Answer::No }
        };
        match (a, b) {
            (Scalar::Float(a), Scalar::Float(b)) => Some(floats(*a, *b)),
            // An exact fraction is finite: any finite number can replace it in a comparison with an infinity or NaN.
            (Scalar::Float(a), Scalar::Real { .. }) if !a.is_finite() => Some(floats(*a, 0.0)),
            (Scalar::Real { .. }, Scalar::Float(b)) if !b.is_finite() => Some(floats(0.0, *b)),
            _ => self.common(a, b).map(|(a, b, _)| dims(&a, &b)),
        }
    }

    /// Selects one of two elements by a condition, 0 or 1.
    pub(in crate::ops::elementwise) fn select(&self, condition: &Scalar, x: &Scalar, y: &Scalar) -> Scalar {
        match condition.as_const_int() {
            Some(0) => return y.clone(),
            Some(_) => return x.clone(),
            None => {}
        }
        let (Scalar::Int(a), Scalar::Int(b)) = (x, y) else {
            return if self.alike(x, y) { x.clone() } else { Scalar::Unknown };
        };
        if self.scope.eq(a, b).is_yes() {
            return x.clone();
        }
        let Scalar::Int(condition) = condition else { return self.hull(a, b) };
        if condition.symbols().into_iter().any(|symbol| self.scope.is_fresh(symbol)) {
            return self.hull(a, b);
        }
        // `y + c·(x − y)` for c in {0, 1}.
        let step = self.scope.mul(condition, &self.scope.sub(a, b));
        self.int(self.scope.add(b, &step))
    }

    /// Returns an integer that is one of two, with bounds that cover both.
    fn hull(&self, a: &Dim, b: &Dim) -> Scalar {
        let ((a_low, a_high), (b_low, b_high)) = (self.scope.bounds(a), self.scope.bounds(b));
        let low = a_low.zip(b_low).map(|(a, b)| a.min(b));
        let high = a_high.zip(b_high).map(|(a, b)| a.max(b));
        match low {
            Some(0..) if self.scope.is_of_sizes(a) && self.scope.is_of_sizes(b) && self.room.get() > 0 => {
                self.room.set(self.room.get() - 1);
                Scalar::Int(self.scope.fresh_within("selected", low, high))
            }
            _ => self.new_symbol("selected", low, high),
        }
    }

    fn alike(&self, x: &Scalar, y: &Scalar) -> bool {
        match (x, y) {
            (Scalar::Float(x), Scalar::Float(y)) => x.to_bits() == y.to_bits(),
            (Scalar::Real { num: x, den: x_den }, Scalar::Real { num: y, den: y_den }) => {
                x_den == y_den && self.scope.eq(x, y).is_yes()
            }
            _ => false,
        }
    }
}
