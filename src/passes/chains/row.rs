//! Rows: the content of a scalar or a vector, term by term.

use super::terms::{Term, TermTable, Terms};
use crate::dim::Dim;
use crate::tensor::{DType, Element, Tensor};

/// The content of a scalar or a vector: an element type, the rank, and one term per element. Tensors with the same row are equal.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Row {
    pub dtype: DType,
    /// `true` for rank 1. Rank 0 has exactly one term.
    pub is_vector: bool,
    pub terms: Terms,
}

impl Row {
    /// Creates a vector of 64-bit integers.
    pub fn sizes(terms: Terms) -> Self {
        Row { dtype: DType::Int64, is_vector: true, terms }
    }

    /// Creates the result of Shape for a tensor of this shape, whose dims are in their current form.
    pub fn of_shape(table: &mut TermTable, shape: &[Dim]) -> Self {
        Row::sizes(shape.iter().map(|dim| table.intern(Term::Int(dim.clone()))).collect())
    }

    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        self.terms.len()
    }

    /// Returns a row of the same type with other terms.
    pub fn with_terms(&self, terms: Terms) -> Self {
        Row { terms, ..self.clone() }
    }

    /// Returns the vector as a scalar or the scalar as a vector, if there is one element.
    pub fn other_rank(&self) -> Option<Self> {
        (self.len() == 1).then(|| Row { is_vector: !self.is_vector, ..self.clone() })
    }

    /// Returns `true` if every element is the same term.
    pub fn is_uniform(&self) -> bool {
        is_uniform(&self.terms)
    }

    /// Returns the row as a tensor, if every term is a number that the element type represents.
    pub fn as_constant(&self, table: &TermTable) -> Option<Tensor> {
        let ints = || self.terms.iter().map(|&term| table.as_const(term)).collect::<Option<Vec<i64>>>();
        let floats = || self.terms.iter().map(|&term| table.as_float(term)).collect::<Option<Vec<f64>>>();
        match self.dtype {
            DType::Int64 => self.filled(ints()?),
            DType::Int32 => {
                let narrow = ints()?.into_iter().map(|int| i32::try_from(int).ok()).collect::<Option<Vec<_>>>();
                self.filled(narrow?)
            }
            DType::Float => self.filled(floats()?.into_iter().map(|float| float as f32).collect::<Vec<_>>()),
            DType::Double => self.filled(floats()?),
            _ => None,
        }
    }

    fn filled<T: Element>(&self, elements: Vec<T>) -> Option<Tensor> {
        if self.is_vector { Some(Tensor::vector(elements)) } else { elements.into_iter().next().map(Tensor::scalar) }
    }
}

/// The index of a row in the table of rows.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct RowId(u32);

impl RowId {
    pub fn of(index: usize) -> Self {
        RowId(u32::try_from(index).unwrap_or(u32::MAX))
    }

    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Returns `true` if there is a first term and every other is the same.
pub(super) fn is_uniform(terms: &Terms) -> bool {
    terms.first().is_some_and(|first| terms.iter().all(|term| term == first))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dim::Scope;
    use crate::ir::Scalar;

    #[test]
    fn a_constant_is_of_the_row_s_type_and_rank() {
        let mut table = TermTable::default();
        let two = table.int(2);
        let row = Row::sizes([two, two].into_iter().collect());
        assert!(row.as_constant(&table).expect("two numbers").same(&Tensor::vector(vec![2i64, 2])));
        let scalar = Row { dtype: DType::Int32, is_vector: false, terms: [two].into_iter().collect() };
        assert!(scalar.as_constant(&table).expect("a number").same(&Tensor::scalar(2i32)));
        assert!(row.is_uniform() && row.other_rank().is_none());
        assert_eq!(scalar.other_rank().expect("one element").len(), 1);
    }

    #[test]
    fn constants_out_of_range_are_refused() {
        let mut table = TermTable::default();
        let (wide, half) =
            (table.int(1 << 40), table.of_scalar(&Scalar::Float(0.5), &Scope::new()).expect("a known float"));
        let narrow = Row { dtype: DType::Int32, is_vector: true, terms: [wide].into_iter().collect() };
        assert!(narrow.as_constant(&table).is_none());
        assert!(Row::sizes([half].into_iter().collect()).as_constant(&table).is_none());
    }
}
