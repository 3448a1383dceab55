//! Facts: what is proved of values, in a table beside the model.

use std::rc::Rc;
use std::sync::Arc;

use super::table::Table;
use super::{Part, TensorType, Type, ValueId, Watch};
use crate::dim::{Answer, Dim, Scope};
use crate::tensor::{DType, Tensor};

/// Tensors with more elements than this are not followed element by element.
pub const MAX_ELEMENTS: usize = 4096;

/// A value at rest, as evaluation passes it around.
#[derive(Clone, Debug)]
pub enum Data {
    /// A dense tensor.
    Tensor(Tensor),
    /// A sequence. The type of an empty one is the business of whoever holds it.
    Sequence(Arc<Vec<Data>>),
    /// An optional.
    Optional(Option<Arc<Data>>),
    /// A map as parallel keys (1-D) and values.
    Map { keys: Tensor, values: Arc<Vec<Data>> },
}

impl Data {
    /// The tensor, if it is one.
    pub fn tensor(&self) -> Option<&Tensor> {
        match self {
            Data::Tensor(tensor) => Some(tensor),
            _ => None,
        }
    }

    /// Bit-for-bit equality.
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

    /// Bytes of all payloads inside.
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

    /// The exact type.
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

/// One element of a tensor whose content is followed element by element.
#[derive(Clone, Debug, PartialEq)]
pub enum Scalar {
    /// An integer or, as 0 or 1, a boolean. A run-time integer that nobody knows is a symbol of its own.
    Int(Dim),
    /// A floating-point number with the exact real value `num / den`, `den` a positive power of two. It stands for the
    /// float of that value and is only formed where the arithmetic is exact.
    Real { num: Dim, den: i64 },
    /// A known floating-point number, NaN and infinities included.
    Float(f64),
    /// Nobody knows.
    Unknown,
}

impl Scalar {
    /// The integer or boolean.
    pub fn as_int(&self) -> Option<&Dim> {
        match self {
            Scalar::Int(dim) => Some(dim),
            _ => None,
        }
    }

    /// The element when it is decided, as an integer.
    pub fn as_const_int(&self) -> Option<i64> {
        self.as_int().and_then(Dim::as_const)
    }
}

/// What is known of a value's content.
#[derive(Clone, Debug)]
pub enum Content {
    /// All of it.
    Constant(Data),
    /// Each element of a tensor of known, constant shape, in row-major order.
    Elements(Arc<[Scalar]>),
}

/// What is proved of one value. The default knows nothing.
#[derive(Clone, Debug, Default)]
pub struct Fact {
    /// The type.
    pub ty: Option<Type>,
    /// The content.
    pub content: Option<Content>,
}

impl Fact {
    /// Nothing known.
    pub fn unknown() -> Self {
        Fact::default()
    }

    /// A dense tensor.
    pub fn tensor(dtype: Option<DType>, shape: Option<Vec<Dim>>) -> Self {
        Fact { ty: Some(Type::Tensor(TensorType { dtype, shape })), content: None }
    }

    /// A value known to the last bit.
    pub fn constant(data: impl Into<Data>) -> Self {
        let data = data.into();
        Fact { ty: Some(data.ty()), content: Some(Content::Constant(data)) }
    }

    /// A value of any type.
    pub fn of(ty: Type) -> Self {
        Fact { ty: Some(ty), content: None }
    }

    /// Whether runtimes copy what a node with a body takes: proved to be numbers. Sequences, optionals and strings ONNX Runtime moves into the
    /// body, and leaves nothing for another reader.
    pub fn is_copied(&self) -> bool {
        match &self.ty {
            Some(Type::Tensor(tensor)) => tensor.dtype != Some(DType::String),
            Some(Type::SparseTensor(_)) => true,
            _ => false,
        }
    }

    /// This fact with known elements, unless there are too many to follow, their number is not the shape's, or none of them
    /// says anything.
    pub fn with_elements(mut self, elements: Vec<Scalar>) -> Self {
        let fits = elements.len() <= MAX_ELEMENTS && self.static_len() == Some(elements.len());
        if fits && elements.iter().any(|element| *element != Scalar::Unknown) {
            self.content = Some(Content::Elements(elements.into()));
        }
        self
    }

    /// The tensor type, dense or sparse.
    pub fn as_tensor(&self) -> Option<&TensorType> {
        self.ty.as_ref().and_then(Type::as_tensor)
    }

    /// The element type of a tensor.
    pub fn dtype(&self) -> Option<DType> {
        self.as_tensor().and_then(|tensor| tensor.dtype)
    }

    /// The shape of a tensor.
    pub fn shape(&self) -> Option<&[Dim]> {
        self.as_tensor().and_then(|tensor| tensor.shape.as_deref())
    }

    /// The rank of a tensor.
    pub fn rank(&self) -> Option<usize> {
        self.shape().map(<[Dim]>::len)
    }

    /// The shape, when every dimension is a number.
    pub fn static_shape(&self) -> Option<Vec<usize>> {
        self.shape()?.iter().map(|dim| dim.as_const().and_then(|dim| usize::try_from(dim).ok())).collect()
    }

    /// The number of elements, when every dimension is a number.
    pub fn static_len(&self) -> Option<usize> {
        self.static_shape()?.iter().try_fold(1usize, |product, &dim| product.checked_mul(dim))
    }

    /// The whole content, when all of it is known.
    pub fn data(&self) -> Option<&Data> {
        match &self.content {
            Some(Content::Constant(data)) => Some(data),
            _ => None,
        }
    }

    /// The whole content of a tensor, when all of it is known.
    pub fn constant_tensor(&self) -> Option<&Tensor> {
        self.data().and_then(Data::tensor)
    }

    /// The elements of a small tensor, known ones and unknown ones.
    pub fn elements(&self) -> Option<Vec<Scalar>> {
        match self.content.as_ref()? {
            Content::Elements(elements) => Some(elements.to_vec()),
            Content::Constant(Data::Tensor(tensor)) if tensor.len() <= MAX_ELEMENTS => {
                if let Some(ints) = tensor.to_i64s() {
                    Some(ints.into_iter().map(|int| Scalar::Int(Dim::constant(int))).collect())
                } else if tensor.dtype() == DType::Uint64 {
                    // What is beyond the integers of an expression is not a float either.
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

    /// The elements of a small integer or boolean tensor, if each is known at least as an expression.
    pub fn ints(&self) -> Option<Vec<Dim>> {
        self.elements()?
            .into_iter()
            .map(|element| match element {
                Scalar::Int(dim) => Some(dim),
                _ => None,
            })
            .collect()
    }

    /// Returns `true` if two facts are proved to state the same integers: of one type, in one shape, with equal elements.
    pub fn has_same_ints(&self, other: &Fact, scope: &Scope) -> bool {
        let (Some(ours), Some(theirs)) = (self.ints(), other.ints()) else { return false };
        self.dtype() == other.dtype()
            && self.static_shape() == other.static_shape()
            && ours.len() == theirs.len()
            && ours.iter().zip(&theirs).all(|(a, b)| scope.eq(a, b).is_yes())
    }

    /// The elements of a small integer or boolean tensor, if each is a number.
    pub fn const_ints(&self) -> Option<Vec<i64>> {
        match self.content.as_ref()? {
            Content::Constant(Data::Tensor(tensor)) if tensor.len() <= MAX_ELEMENTS => tensor.to_i64s(),
            Content::Elements(elements) => elements.iter().map(Scalar::as_const_int).collect(),
            Content::Constant(_) => None,
        }
    }
}

/// Two sources that say different things of one value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("two sources contradict each other: {0} and {1}")]
pub struct Contradiction(pub String, pub String);

/// What is proved, by value.
#[derive(Clone, Debug)]
pub struct Facts {
    scope: Rc<Scope>,
    facts: Table<Fact>,
    watch: Watch,
}

impl Facts {
    /// An empty table over the symbols of `scope`.
    pub fn new(scope: Rc<Scope>) -> Self {
        Facts { scope, facts: Table::default(), watch: Watch::default() }
    }

    /// The same facts over another scope, in which more is known of the same symbols.
    pub fn over(&self, scope: Rc<Scope>) -> Self {
        Facts { scope, ..self.clone() }
    }

    /// What is read and changes here.
    pub fn watch(&self) -> &Watch {
        &self.watch
    }

    /// The same, to begin or to end.
    pub fn watch_mut(&mut self) -> &mut Watch {
        &mut self.watch
    }

    /// The symbols the facts speak of.
    pub fn scope(&self) -> &Rc<Scope> {
        &self.scope
    }

    /// What is known of a value, if anything was stated.
    pub fn get(&self, value: ValueId) -> Option<&Fact> {
        self.watch.read_fact(value);
        self.facts.get(value.index())
    }

    /// States a fact, replacing what stood there.
    pub fn set(&mut self, value: ValueId, fact: Fact) {
        self.watch.changed(Part::Fact(value));
        self.facts.set(value.index(), fact);
    }

    /// Forgets a value.
    pub fn forget(&mut self, value: ValueId) {
        self.watch.changed(Part::Fact(value));
        self.facts.remove(value.index());
    }

    /// Forgets every value that `keep` does not hold for.
    pub fn retain(&mut self, keep: impl Fn(ValueId, &Fact) -> bool) {
        self.watch.changed(Part::Everything);
        self.facts.retain(|index, fact| keep(ValueId::of(index as u32), fact));
    }

    /// Adds a second source of knowledge about a value: the meet of both.
    ///
    /// # Errors
    /// When the sources cannot both be right; the table then keeps what stood there.
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

/// The type that has everything both say.
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

/// The more telling of two names for one size: a number, then an expression in declared symbols, then the first.
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
