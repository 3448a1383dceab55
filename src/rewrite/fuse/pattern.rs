//! Reading a few nodes as a formula.

use super::magnitude::has_room;
use crate::ir::{Node, NodeId, ValueId};
use crate::rewrite::place::Place;
use crate::tensor::DType;

/// The most factors of a product, and the most nodes that multiply them. Each order of the factors is tried, so without it a product of N factors
/// takes N! tries.
const MOST: usize = 8;

/// `coefficient · Π factors`.
pub(super) struct Product {
    pub coefficient: f64,
    pub factors: Vec<ValueId>,
    /// The nodes that multiply and divide.
    pub nodes: Vec<NodeId>,
}

impl Product {
    /// Takes `value` apart into factors. Products that something outside reads, and `atom`, are factors themselves.
    pub fn of(place: &Place<'_>, value: ValueId, atom: Option<ValueId>) -> Option<Product> {
        let dtype = place.dtype(value)?;
        let mut product = Product { coefficient: 1.0, factors: Vec::new(), nodes: Vec::new() };
        let mut open: Vec<(ValueId, Option<NodeId>)> = vec![(value, None)];
        while let Some((value, reader)) = open.pop() {
            if let Some(number) = place.scalar(value) {
                // What values of ordinary size make of it would not be computed any more.
                if !has_room(dtype, number) {
                    return None;
                }
                product.coefficient *= number;
                continue;
            }
            let inside = || reader.is_none_or(|reader| place.is_internal(value, &[reader]));
            match place.multiplication(value).filter(|_| Some(value) != atom && inside()) {
                // What is squared is a factor twice, and cannot be taken apart twice.
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
    /// The node that computes `value = a·b`, or `a/b` of a constant scalar `b`, and whether it divides.
    fn multiplication(&self, value: ValueId) -> Option<(NodeId, ValueId, ValueId, bool)> {
        let divides = self.producer(value, "Div");
        let (id, node) = divides.or_else(|| self.producer(value, "Mul"))?;
        let &[Some(a), Some(b)] = node.inputs() else { return None };
        let covered = divides.is_none() || self.scalar(b).is_some();
        covered.then_some((id, a, b, divides.is_some()))
    }
}

/// Reads a formula, and takes note of the nodes it is made of. Whether something else reads what lies between is for
/// whoever takes the nodes away to see.
pub(super) struct Reader<'a, 'p> {
    pub place: &'a Place<'p>,
    /// The nodes read so far.
    pub nodes: Vec<NodeId>,
    /// The type of everything in the formula.
    pub dtype: DType,
}

impl<'a> Reader<'a, '_> {
    /// The node of this operator that computes a value.
    pub fn node(&mut self, value: ValueId, operator: &str) -> Option<&'a Node> {
        let (id, node) = self.place.producer(value, operator)?;
        self.nodes.push(id);
        Some(node)
    }

    /// Whether a constant is a number up to a few roundings of its type.
    pub fn is(&self, number: f64, wanted: f64) -> bool {
        let precision = match self.dtype {
            DType::Double => 1e-14,
            DType::Float16 => 1e-3,
            _ => 4e-7,
        };
        (number - wanted).abs() <= wanted.abs() * precision
    }

    /// `value = term + constant`.
    pub fn sum(&mut self, value: ValueId) -> Option<(ValueId, f64)> {
        let &[Some(a), Some(b)] = self.node(value, "Add")?.inputs() else { return None };
        match (self.place.scalar(a), self.place.scalar(b)) {
            (None, Some(number)) => Some((a, number)),
            (Some(number), None) => Some((b, number)),
            _ => None,
        }
    }

    /// `value = factor · x^power`.
    pub fn monomial(&mut self, value: ValueId, x: ValueId) -> Option<(f64, u32)> {
        let product = Product::of(self.place, value, Some(x))?;
        self.nodes.extend(&product.nodes);
        let mut power = 0;
        for &factor in &product.factors {
            power += if factor == x { 1 } else { self.power(factor, x)? };
        }
        Some((product.coefficient, power))
    }

    /// `value = x²` or `x³`.
    fn power(&mut self, value: ValueId, x: ValueId) -> Option<u32> {
        let node = self.node(value, "Pow")?;
        let exponent = self.place.scalar(node.input(1)?)?;
        let power = [2u32, 3].into_iter().find(|&power| exponent == f64::from(power))?;
        (node.input(0) == Some(x)).then_some(power)
    }
}
