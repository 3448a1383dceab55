//! Facts: proved properties of values, in a table outside the model.

use std::rc::Rc;
use std::sync::Arc;

use super::table::Table;
use super::{Part, TensorType, Type, ValueId, Watch};
use crate::dim::{Answer, Dim, Scope};
use crate::tensor::{DType, Tensor};

/// The largest number of elements of a tensor that are tracked individually.
pub const MAX_ELEMENTS: usize = 4096;

/// A run-time value of the evaluator.
#[derive(Clone, Debug)]
pub enum Data {
    /// A dense tensor.
    Tensor(Tensor),
    /// A sequence. The context determines the element type of an empty one.
    Sequence(Arc<Vec<Data>>),
    /// An optional.
    Optional(Option<Arc<Data>>),
    /// A map as parallel keys (1-D) and values.
    Map { keys: Tensor, values: Arc<Vec<Data>> },
}

impl Data {
    /// Returns the tensor, if the value is one.
    pub fn tensor(&self) -> Option<&Tensor> {
        match self {
            Data::Tensor(tensor) => Some(tensor),
            _ => None,
        }
    }

    /// Compares bit for bit.
    pub fn same(&self, other: &Data) -> bool {
        match (self, other) {
            (Data::Tensor(a), Data::Tensor(b)) => a.same(b),
            (Data::Sequence(a), Data::Sequence(b)) => {
                a.len() == b.len() && a.iter().zip(b.iter()).all(|(x, y)| x.same(y))
            }
            (Data::Optional(None), Data::Optional(None)) => true,
            (Data::Optional(Some(a)), Data::Optional(Some(b))) => a.same(b),
            (Data::Map { keys: a, values: x }, Data::Map { keys: b, values: y }) => {
                a.same(b) && x.len() == y.len() && x.iter().zip(y.iter()).all(|(x, y)| x.same(y))
            }
            _ => false,
        }
    }

    /// Returns the number of bytes of all payloads.
    pub fn byte_len(&self) -> usize {
        match self {
            Data::Tensor(tensor) => tensor.byte_len(),
            Data::Sequence(items) => items.iter().fold(0usize, |sum, item| sum.saturating_add(item.byte_len())),
            Data::Optional(item) => item.as_ref().map_or(0, |item| item.byte_len()),
            Data::Map { keys, values } => {
                values.iter().fold(keys.byte_len(), |sum, item| sum.saturating_add(item.byte_len()))
            }
        }
    }

    /// Returns the exact type.
    pub fn ty(&self) -> Type {
        match self {
            Data::Tensor(tensor) => Type::Tensor(TensorType {
                dtype: Some(tensor.dtype()),
                shape: Some(tensor.shape().iter().map(|&dim| Dim::constant(dim as i64)).collect()),
            }),
            Data::Sequence(items) => Type::Sequence(items.first().map(|first| {
                let mut ty = first.ty();
                if let Type::Tensor(tensor) = &mut ty
                    && items.iter().any(|item| item.tensor().map(Tensor::shape) != first.tensor().map(Tensor::shape))
                {
                    tensor.shape = None;
                }
                Box::new(ty)
            })),
            Data::Optional(item) => Type::Optional(item.as_ref().map(|item| Box::new(item.ty()))),
            Data::Map { keys, values } => Type::Map(keys.dtype(), values.first().map(|value| Box::new(value.ty()))),
        }
    }
}

impl From<Tensor> for Data {
    fn from(tensor: Tensor) -> Self {
        Data::Tensor(tensor)
    }
}

/// An element of a tensor whose elements are tracked individually.
#[derive(Clone, Debug, PartialEq)]
pub enum Scalar {
    /// An integer, or a boolean as 0 or 1. An unknown run-time integer is a separate symbol.
    Int(Dim),
    /// A floating-point number with the exact real value `num / den`, `den` a positive power of two. It equals the
    /// float of that value and is only formed if the arithmetic is exact.
    Real { num: Dim, den: i64 },
    /// A known floating-point number, NaN and infinities included.
    Float(f64),
    /// An unknown element.
    Unknown,
}

impl Scalar {
    /// Returns the integer or boolean.
    pub fn as_int(&self) -> Option<&Dim> {
        match self {
            Scalar::Int(dim) => Some(dim),
            _ => None,
        }
    }

    /// Returns the element as an integer, if it is constant.
    pub fn as_const_int(&self) -> Option<i64> {
        self.as_int().and_then(Dim::as_const)
    }
}

/// The known content of a value.
#[derive(Clone, Debug)]
pub enum Content {
    /// The whole content is constant.
    Constant(Data),
    /// The elements of a tensor of constant shape, in row-major order.
    Elements(Arc<[Scalar]>),
}

/// The proved properties of a value. The default is an unknown value.
#[derive(Clone, Debug, Default)]
pub struct Fact {
    /// The type.
    pub ty: Option<Type>,
    /// The content.
    pub content: Option<Content>,
}

impl Fact {
    /// Creates a fact without properties.
    pub fn unknown() -> Self {
        Fact::default()
    }

    /// Creates the fact of a dense tensor.
    pub fn tensor(dtype: Option<DType>, shape: Option<Vec<Dim>>) -> Self {
        Fact { ty: Some(Type::Tensor(TensorType { dtype, shape })), content: None }
    }

    /// Creates the fact of a constant.
    pub fn constant(data: impl Into<Data>) -> Self {
        let data = data.into();
        Fact { ty: Some(data.ty()), content: Some(Content::Constant(data)) }
    }

    /// Creates the fact of a value of any type.
    pub fn of(ty: Type) -> Self {
        Fact { ty: Some(ty), content: None }
    }

    /// Returns `true` if runtimes copy such an operand into a subgraph: it is provably numeric. ONNX Runtime moves
    /// sequences, optionals and strings into the subgraph, and other readers find nothing.
    pub fn is_copied(&self) -> bool {
        match &self.ty {
            Some(Type::Tensor(tensor)) => tensor.dtype != Some(DType::String),
            Some(Type::SparseTensor(_)) => true,
            _ => false,
        }
    }

    /// Adds elements to this fact. Ignores them if there are too many, their number does not match the shape, or all
    /// are unknown.
    pub fn with_elements(mut self, elements: Vec<Scalar>) -> Self {
        let fits = elements.len() <= MAX_ELEMENTS && self.static_len() == Some(elements.len());
        if fits && elements.iter().any(|element| *element != Scalar::Unknown) {
            self.content = Some(Content::Elements(elements.into()));
        }
        self
    }

    /// Returns the tensor type, dense or sparse.
    pub fn as_tensor(&self) -> Option<&TensorType> {
        self.ty.as_ref().and_then(Type::as_tensor)
    }

    /// Returns the element type of a tensor.
    pub fn dtype(&self) -> Option<DType> {
        self.as_tensor().and_then(|tensor| tensor.dtype)
    }

    /// Returns the shape of a tensor.
    pub fn shape(&self) -> Option<&[Dim]> {
        self.as_tensor().and_then(|tensor| tensor.shape.as_deref())
    }

    /// Returns the rank of a tensor.
    pub fn rank(&self) -> Option<usize> {
        self.shape().map(<[Dim]>::len)
    }

    /// Returns the shape, if all dims are constant.
    pub fn static_shape(&self) -> Option<Vec<usize>> {
        self.shape()?.iter().map(|dim| dim.as_const().and_then(|dim| usize::try_from(dim).ok())).collect()
    }

    /// Returns the number of elements, if all dims are constant.
    pub fn static_len(&self) -> Option<usize> {
        self.static_shape()?.iter().try_fold(1usize, |product, &dim| product.checked_mul(dim))
    }

    /// Returns the whole content, if it is constant.
    pub fn data(&self) -> Option<&Data> {
        match &self.content {
            Some(Content::Constant(data)) => Some(data),
            _ => None,
        }
    }

    /// Returns the whole content of a tensor, if it is constant.
    pub fn constant_tensor(&self) -> Option<&Tensor> {
        self.data().and_then(Data::tensor)
    }

    /// Returns the elements of a small tensor; unknown elements are included.
    pub fn elements(&self) -> Option<Vec<Scalar>> {
        match self.content.as_ref()? {
            Content::Elements(elements) => Some(elements.to_vec()),
            Content::Constant(Data::Tensor(tensor)) if tensor.len() <= MAX_ELEMENTS => {
                if let Some(ints) = tensor.to_i64s() {
                    Some(ints.into_iter().map(|int| Scalar::Int(Dim::constant(int))).collect())
                } else if tensor.dtype() == DType::Uint64 {
                    // Integers above the range of expressions are not floats either.
                    let scalar =
                        |&int: &u64| i64::try_from(int).map_or(Scalar::Unknown, |int| Scalar::Int(Dim::constant(int)));
                    Some(tensor.elements::<u64>()?.iter().map(scalar).collect())
                } else {
                    Some(tensor.to_f64s()?.into_iter().map(Scalar::Float).collect())
                }
            }
            Content::Constant(_) => None,
        }
    }

    /// Returns the elements of a small integer or boolean tensor, if each is known at least as an expression.
    pub fn ints(&self) -> Option<Vec<Dim>> {
        self.elements()?
            .into_iter()
            .map(|element| match element {
                Scalar::Int(dim) => Some(dim),
                _ => None,
            })
            .collect()
    }

    /// Returns `true` if two facts provably have the same integers: equal type, shape and elements.
    pub fn has_same_ints(&self, other: &Fact, scope: &Scope) -> bool {
        let (Some(ours), Some(theirs)) = (self.ints(), other.ints()) else { return false };
        self.dtype() == other.dtype()
            && self.static_shape() == other.static_shape()
            && ours.len() == theirs.len()
            && ours.iter().zip(&theirs).all(|(a, b)| scope.eq(a, b).is_yes())
    }

    /// Returns the elements of a small integer or boolean tensor, if all are constant.
    pub fn const_ints(&self) -> Option<Vec<i64>> {
        match self.content.as_ref()? {
            Content::Constant(Data::Tensor(tensor)) if tensor.len() <= MAX_ELEMENTS => tensor.to_i64s(),
            Content::Elements(elements) => elements.iter().map(Scalar::as_const_int).collect(),
            Content::Constant(_) => None,
        }
    }
}

/// An error for two sources that contradict each other about a value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("two sources contradict each other: {0} and {1}")]
pub struct Contradiction(pub String, pub String);

/// The facts of all values.
#[derive(Clone, Debug)]
pub struct Facts {
    scope: Rc<Scope>,
    facts: Table<Fact>,
    watch: Watch,
}

impl Facts {
    /// Creates an empty table over the symbols of `scope`.
    pub fn new(scope: Rc<Scope>) -> Self {
        Facts { scope, facts: Table::default(), watch: Watch::default() }
    }

    /// Returns the same facts over another scope, which knows more about the same symbols.
    pub fn over(&self, scope: Rc<Scope>) -> Self {
        Facts { scope, ..self.clone() }
    }

    /// Returns the record of reads and changes.
    pub fn watch(&self) -> &Watch {
        &self.watch
    }

    /// Returns the record of reads and changes, to start or stop it.
    pub fn watch_mut(&mut self) -> &mut Watch {
        &mut self.watch
    }

    /// Returns the scope of the facts' symbols.
    pub fn scope(&self) -> &Rc<Scope> {
        &self.scope
    }

    /// Returns the fact of a value, if there is one.
    pub fn get(&self, value: ValueId) -> Option<&Fact> {
        self.watch.read_fact(value);
        self.facts.get(value.index())
    }

    /// Sets a fact, replacing the previous one.
    pub fn set(&mut self, value: ValueId, fact: Fact) {
        self.watch.changed(Part::Fact(value));
        self.facts.set(value.index(), fact);
    }

    /// Removes the fact of a value.
    pub fn forget(&mut self, value: ValueId) {
        self.watch.changed(Part::Fact(value));
        self.facts.remove(value.index());
    }

    /// Removes all facts for which `keep` returns `false`.
    pub fn retain(&mut self, keep: impl Fn(ValueId, &Fact) -> bool) {
        self.watch.changed(Part::Everything);
        self.facts.retain(|index, fact| keep(ValueId::of(index as u32), fact));
    }

    /// Merges a second fact of a value: the lattice meet of both.
    ///
    /// # Errors
    /// The sources contradict each other; the table then keeps the previous fact.
    pub fn meet(&mut self, value: ValueId, other: Fact) -> Result<(), Contradiction> {
        let merged = match self.facts.get(value.index()) {
            None => other,
            Some(fact) => meet_facts(&self.scope, fact, &other)?,
        };
        self.watch.changed(Part::Fact(value));
        self.facts.set(value.index(), merged);
        Ok(())
    }
}

fn meet_facts(scope: &Scope, a: &Fact, b: &Fact) -> Result<Fact, Contradiction> {
    let ty = match (&a.ty, &b.ty) {
        (None, ty) | (ty, None) => ty.clone(),
        (Some(a), Some(b)) => Some(meet_types(scope, a, b)?),
    };
    Ok(Fact { ty, content: a.content.clone().or_else(|| b.content.clone()) })
}

fn meet_inner(scope: &Scope, a: &Option<Box<Type>>, b: &Option<Box<Type>>) -> Result<Option<Box<Type>>, Contradiction> {
    match (a, b) {
        (None, ty) | (ty, None) => Ok(ty.clone()),
        (Some(a), Some(b)) => Ok(Some(Box::new(meet_types(scope, a, b)?))),
    }
}

/// Returns the meet of two types.
fn meet_types(scope: &Scope, a: &Type, b: &Type) -> Result<Type, Contradiction> {
    let clash = || Contradiction(format!("{a:?}"), format!("{b:?}"));
    Ok(match (a, b) {
        (Type::Tensor(x), Type::Tensor(y)) => Type::Tensor(meet_tensors(scope, x, y).ok_or_else(clash)?),
        (Type::SparseTensor(x), Type::SparseTensor(y)) => {
            Type::SparseTensor(meet_tensors(scope, x, y).ok_or_else(clash)?)
        }
        (Type::Sequence(x), Type::Sequence(y)) => Type::Sequence(meet_inner(scope, x, y)?),
        (Type::Optional(x), Type::Optional(y)) => Type::Optional(meet_inner(scope, x, y)?),
        (Type::Map(j, x), Type::Map(k, y)) if j == k => Type::Map(*j, meet_inner(scope, x, y)?),
        _ => return Err(clash()),
    })
}

fn meet_tensors(scope: &Scope, a: &TensorType, b: &TensorType) -> Option<TensorType> {
    let dtype = match (a.dtype, b.dtype) {
        (Some(a), Some(b)) if a != b => return None,
        (a, b) => a.or(b),
    };
    let shape = match (&a.shape, &b.shape) {
        (None, shape) | (shape, None) => shape.clone(),
        (Some(a), Some(b)) => {
            if a.len() != b.len() {
                return None;
            }
            let mut dims = Vec::with_capacity(a.len());
            for (a, b) in a.iter().zip(b) {
                if scope.eq(a, b) == Answer::No {
                    return None;
                }
                dims.push(preferred(scope, a, b).clone());
            }
            Some(dims)
        }
    };
    Some(TensorType { dtype, shape })
}

/// Returns the more specific of two equal dims: a number, then an expression in declared symbols, then the first.
fn preferred<'d>(scope: &Scope, a: &'d Dim, b: &'d Dim) -> &'d Dim {
    let vague = |dim: &Dim| dim.symbols().iter().any(|&symbol| scope.is_fresh(symbol));
    if a.as_const().is_some() || (!vague(a) && b.as_const().is_none()) || (vague(b) && b.as_const().is_none()) {
        a
    } else {
        b
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_beyond_an_expression_are_not_known() {
        let fact = Fact::constant(Tensor::from_vec(&[2], vec![7u64, u64::MAX]).unwrap());
        assert_eq!(fact.elements().unwrap(), [Scalar::Int(Dim::constant(7)), Scalar::Unknown]);
        assert_eq!(fact.ints(), None);
    }
}
