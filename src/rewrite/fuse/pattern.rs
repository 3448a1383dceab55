//! Reads connected nodes as a formula.

use super::magnitude::has_room;
use crate::ir::{Node, NodeId, ValueId};
use crate::rewrite::place::Place;
use crate::tensor::DType;

/// The most factors of a product, and the most nodes that multiply them. The matcher tries each order of the factors, so without the limit
/// a product of N factors takes N! attempts.
const MOST: usize = 8;

/// `coefficient · Π factors`.
pub(super) struct Product {
    pub coefficient: f64,
    pub factors: Vec<ValueId>,
    /// The nodes that multiply and divide.
    pub nodes: Vec<NodeId>,
}

impl Product {
    /// Decomposes `value` into factors. Products with other consumers, and `atom`, are factors themselves.
    pub fn of(place: &Place<'_>, value: ValueId, atom: Option<ValueId>) -> Option<Product> {
        let dtype = place.dtype(value)?;
        let mut product = Product { coefficient: 1.0, factors: Vec::new(), nodes: Vec::new() };
        let mut open: Vec<(ValueId, Option<NodeId>)> = vec![(value, None)];
        while let Some((value, reader)) = open.pop() {
            if let Some(number) = place.scalar(value) {
                // The new formula would no longer compute the product of this constant and values of ordinary size.
                if !has_room(dtype, number) {
                    return None;
                }
                product.coefficient *= number;
                continue;
            }
            let inside = || reader.is_none_or(|reader| place.is_internal(value, &[reader]));
            match place.multiplication(value).filter(|_| Some(value) != atom && inside()) {
                // A squared value is a factor twice, and cannot be decomposed twice.
                Some((id, ..)) if product.nodes.contains(&id) || product.nodes.len() == MOST => return None,
                Some((id, a, b, divides)) => {
                    product.nodes.push(id);
                    match place.scalar(b).filter(|_| divides) {
                        Some(number) if !has_room(dtype, number.recip()) => return None,
                        Some(number) => product.coefficient /= number,
                        None => open.push((b, Some(id))),
                    }
                    open.push((a, Some(id)));
                }
                None => product.factors.push(value),
            }
            if product.factors.len() > MOST {
                return None;
            }
        }
        Some(product)
    }
}

impl Place<'_> {
    /// Returns the node that computes `value = a·b`, or `a/b` for a constant scalar `b`, and `true` if it divides.
    fn multiplication(&self, value: ValueId) -> Option<(NodeId, ValueId, ValueId, bool)> {
        let divides = self.producer(value, "Div");
        let (id, node) = divides.or_else(|| self.producer(value, "Mul"))?;
        let &[Some(a), Some(b)] = node.inputs() else { return None };
        let covered = divides.is_none() || self.scalar(b).is_some();
        covered.then_some((id, a, b, divides.is_some()))
    }
}

/// Reads a formula and records its nodes. The caller checks that the intermediate values have no other consumers before it removes the
/// nodes.
pub(super) struct Reader<'a, 'p> {
    pub place: &'a Place<'p>,
    /// The nodes read so far.
    pub nodes: Vec<NodeId>,
    /// The element type of all values in the formula.
    pub dtype: DType,
}

impl<'a> Reader<'a, '_> {
    /// Returns the producer of a value, if it has this operator.
    pub fn node(&mut self, value: ValueId, operator: &str) -> Option<&'a Node> {
        let (id, node) = self.place.producer(value, operator)?;
        self.nodes.push(id);
        Some(node)
    }

    /// Returns `true` if a constant equals a number up to a few roundings of its type.
    pub fn is(&self, number: f64, wanted: f64) -> bool {
        let precision = match self.dtype {
            DType::Double => 1e-14,
            DType::Float16 => 1e-3,
            _ => 4e-7,
        };
        (number - wanted).abs() <= wanted.abs() * precision
    }

    /// Reads `value = term + constant`.
    pub fn sum(&mut self, value: ValueId) -> Option<(ValueId, f64)> {
        let &[Some(a), Some(b)] = self.node(value, "Add")?.inputs() else { return None };
        match (self.place.scalar(a), self.place.scalar(b)) {
            (None, Some(number)) => Some((a, number)),
            (Some(number), None) => Some((b, number)),
            _ => None,
        }
    }

    /// Reads `value = factor · x^power`.
    pub fn monomial(&mut self, value: ValueId, x: ValueId) -> Option<(f64, u32)> {
        let product = Product::of(self.place, value, Some(x))?;
        self.nodes.extend(&product.nodes);
        let mut power = 0;
        for &factor in &product.factors {
            power += if factor == x { 1 } else { self.power(factor, x)? };
        }
        Some((product.coefficient, power))
    }

    /// Reads `value = x²` or `x³` and returns the exponent.
    fn power(&mut self, value: ValueId, x: ValueId) -> Option<u32> {
        let node = self.node(value, "Pow")?;
        let exponent = self.place.scalar(node.input(1)?)?;
        let power = [2u32, 3].into_iter().find(|&power| exponent == f64::from(power))?;
        (node.input(0) == Some(x)).then_some(power)
    }
}
