//! Finds nominal expressions of dims that inference creates.
//!
//! Inference creates a new symbol for a dim that depends on a computed integer, which may have wrapped or been
//! rounded. A second inference uses the nominal operands and assumes that dims do not overflow. Its result becomes
//! the nominal expression of the symbol. Its other results are dropped.

use std::rc::Rc;

use super::walk::Walk;
use crate::dim::{Dim, Scope};
use crate::ir::{Content, Fact, Scalar, Type};

impl Walk {
    /// Sets nominal expressions of symbols in `facts` that are newer than the first `symbols`.
    pub(super) fn state_nominal(
        &mut self,
        facts: &[Fact],
        symbols: usize,
        inputs: &[Option<Fact>],
        infer: impl FnOnce(&mut Walk, Vec<Option<Fact>>) -> Option<Vec<Fact>>,
    ) {
        let scope = Rc::clone(&self.scope);
        if !scope.has_assumed() || scope.symbol_count() == symbols {
            return;
        }
        let told = self.events.len();
        let operands = inputs.iter().map(|fact| fact.as_ref().map(|fact| nominal_fact(&scope, fact))).collect();
        let found = scope.trusting(|| infer(self, operands)).unwrap_or_default();
        self.events.truncate(told);
        let is_new = |dim: &Dim| scope.has_newer(dim, symbols);
        let state = |made: &Dim, nominal: &Dim| {
            if made.as_symbol().is_some() && is_new(made) && !is_new(nominal) && scope.nominal(made) == *made {
                scope.set_nominal(made, nominal.clone());
            }
        };
        for (fact, found) in facts.iter().zip(&found) {
            if let (Some(dims), Some(nominal)) = (fact.shape(), found.shape())
                && dims.len() == nominal.len()
            {
                dims.iter().zip(nominal).for_each(|(dim, nominal)| state(dim, nominal));
            }
            let (Some(Content::Elements(elements)), Some(Content::Elements(nominal))) = (&fact.content, &found.content)
            else {
                continue;
            };
            for pair in elements.iter().zip(nominal.iter()) {
                match pair {
                    (Scalar::Int(made), Scalar::Int(nominal)) => state(made, nominal),
                    (Scalar::Real { num, den }, Scalar::Real { num: nominal, den: other }) if den == other => {
                        state(num, nominal);
                    }
                    _ => {}
                }
            }
        }
    }
}

fn nominal_fact(scope: &Scope, fact: &Fact) -> Fact {
    let mut nominal = fact.clone();
    if let Some(Type::Tensor(tensor)) = &mut nominal.ty
        && let Some(dims) = &mut tensor.shape
    {
        dims.iter_mut().for_each(|dim| *dim = scope.nominal(dim));
    }
    if let Some(Content::Elements(elements)) = &fact.content {
        let element = |element: &Scalar| match element {
            Scalar::Int(dim) => Scalar::Int(scope.nominal(dim)),
            Scalar::Real { num, den } => Scalar::Real { num: scope.nominal(num), den: *den },
            other => other.clone(),
        };
        nominal.content = Some(Content::Elements(elements.iter().map(element).collect()));
    }
    nominal
}
