//! Between tensors and sequences of their parts.

use std::sync::Arc;

use super::elements::{any_element, element_type, sequence, total};
use super::lineage;
use super::pieces::{concat, part, pick, stack};
use crate::dim::{Dim, Scope};
use crate::ir::{Attribute, Data, Fact, MAX_ELEMENTS, Node, Scalar, TensorType, Type, ValueId};
use crate::ops::{Decline, EvalCx, EvalResult, InferCx, InferResult, Refusal, axis_in};
use crate::tensor::Tensor;

/// The sizes that a SplitToSequence asks for.
enum Sizes {
    /// All of this size, the last one of what is left.
    Each(Dim),
    /// One by one.
    List(Vec<Dim>),
}

impl Sizes {
    /// The sizes in the operand; `None` when nothing is known of them.
    fn of(operand: Option<&Fact>) -> Option<Sizes> {
        let Some(fact) = operand else { return Some(Sizes::Each(Dim::constant(1))) };
        let mut sizes = fact.ints()?;
        match fact.rank()? {
            0 => Some(Sizes::Each(sizes.pop()?)),
            _ => Some(Sizes::List(sizes)),
        }
    }
}

/// Whether the parts of a SplitToSequence keep the axis, where everybody agrees on it. `keepdims` is its attribute.
///
/// The operator's text, and the reference, overlook `keepdims` wherever sizes are given. ONNX Runtime, and the exporters that write
/// `x.unbind(1)` as parts of size 1 without their axis, overlook it only where the sizes are a vector: a scalar size says
/// nothing about the rank of the parts.
pub(super) fn keeps_axis(keepdims: bool, sizes: Option<&Fact>) -> Option<bool> {
    match sizes {
        _ if keepdims => Some(true),
        None => Some(false),
        Some(sizes) => (sizes.rank() == Some(1)).then_some(true),
    }
}

/// What a SplitToSequence makes parts of, and how.
pub(super) struct Split {
    tensor: Fact,
    sizes: Option<Fact>,
    axis: i64,
    keepdims: bool,
}

impl Split {
    /// The split that a node stands for, whose attributes are all given in place. `known` is what is known of an operand.
    pub(super) fn of(node: &Node, known: impl Fn(ValueId) -> Fact) -> Option<Split> {
        let keepdims = match node.attribute("keepdims") {
            None => true,
            Some(Attribute::Int(flag)) => *flag != 0,
            Some(_) => return None,
        };
        let axis = match node.attribute("axis") {
            None => 0,
            Some(Attribute::Int(axis)) => *axis,
            Some(_) => return None,
        };
        Some(Split { tensor: known(node.input(0)?), sizes: node.input(1).map(known), axis, keepdims })
    }

    /// How many parts there are.
    pub(super) fn count(&self, scope: &Scope) -> Option<Dim> {
        match Sizes::of(self.sizes.as_ref()) {
            Some(Sizes::List(sizes)) => Some(Dim::constant(i64::try_from(sizes.len()).ok()?)),
            Some(Sizes::Each(size)) => {
                let (_, dim) = self.dim()?;
                is_size(scope, &size).then(|| scope.ceil_div(dim, &size))
            }
            // Even of unknown sizes the number is known.
            None => match self.sizes.as_ref()?.shape()? {
                [count] => Some(count.clone()),
                _ => None,
            },
        }
    }

    /// The axis, counted from the front, and its dim.
    fn dim(&self) -> Option<(usize, &Dim)> {
        let shape = self.tensor.shape()?;
        let axis = axis_in(self.axis, shape.len()).ok()?;
        Some((axis, shape.get(axis)?))
    }

    /// The parts one by one, if there are at most `most` of them.
    pub(super) fn parts(&self, most: usize) -> Option<Vec<Fact>> {
        let (_, dim) = self.dim()?;
        let sizes = match Sizes::of(self.sizes.as_ref())? {
            Sizes::List(list) => list,
            Sizes::Each(size) => {
                let (dim, size) = (dim.as_const()?, size.as_const().filter(|&size| size > 0)?);
                let starts = (0..dim).step_by(usize::try_from(size).ok()?).take(most.saturating_add(1));
                starts.map(|start| Dim::constant(size.min(dim - start))).collect()
            }
        };
        // Negative sizes are an error like sizes that do not add up, which is for the operator to tell.
        if sizes.len() > most || sizes.iter().any(|size| size.as_const().is_some_and(|size| size < 0)) {
            return None;
        }
        let elements = self.tensor.elements().filter(|_| self.tensor.rank() == Some(1));
        let mut start = Some(0);
        let parts = sizes.into_iter().map(|size| {
            let len = size.as_const().and_then(|size| usize::try_from(size).ok());
            let range = start.zip(len).and_then(|(start, len)| Some((start, usize::checked_add(start, len)?)));
            start = range.map(|(_, end)| end);
            let inside = elements.as_deref().zip(range).and_then(|(elements, (start, end))| elements.get(start..end));
            self.part(size, inside)
        });
        let parts = parts.collect::<Option<Vec<Fact>>>()?;
        let adds_up = |dim: i64| start.is_none_or(|sum| i64::try_from(sum).ok() == Some(dim));
        dim.as_const().is_none_or(adds_up).then_some(parts)
    }

    /// The part of this size, with these elements if they are known.
    fn part(&self, size: Dim, elements: Option<&[Scalar]>) -> Option<Fact> {
        let (axis, _) = self.dim()?;
        let mut shape = self.tensor.shape()?.to_vec();
        match (keeps_axis(self.keepdims, self.sizes.as_ref())?, shape.get_mut(axis)) {
            (true, Some(dim)) => *dim = size,
            _ => drop(shape.remove(axis)),
        }
        let part = Fact::tensor(self.tensor.dtype(), Some(shape));
        Some(match elements {
            Some(elements) => part.with_elements(elements.to_vec()),
            None => part,
        })
    }

    /// The part at a position, counted from the back if negative, of a run that has it: of parts that are all of size `s` along
    /// a dim `d`, part `k` is as long as `min(s, d − k·s)`, and the last one as `(d − 1) mod s + 1`.
    pub(super) fn part_at(&self, scope: &Scope, position: i64) -> Option<Fact> {
        let Some(Sizes::Each(size)) = Sizes::of(self.sizes.as_ref()) else { return None };
        let (_, dim) = self.dim()?;
        let one = Dim::constant(1);
        if !is_size(scope, &size) {
            return None;
        }
        let length = match position {
            -1 => scope.add(&scope.modulo(&scope.sub(dim, &one), &size), &one),
            0.. => {
                let rest = scope.sub(dim, &scope.mul(&size, &Dim::constant(position)));
                // A size beyond the end would be no size.
                let exists = position == 0 || scope.ge(&rest, &one).is_yes();
                exists.then(|| scope.min(&size, &rest))?
            }
            _ => return None,
        };
        self.part(length, None)
    }

    /// What the parts are when put together again along `axis`, a new one if `stacked`: what they are parts of.
    pub(super) fn whole(&self, axis: i64, stacked: bool) -> Option<Fact> {
        let rank = self.tensor.rank()?;
        let same = axis_in(axis, rank).ok()? == axis_in(self.axis, rank).ok()?;
        if let Some(Sizes::List(sizes)) = Sizes::of(self.sizes.as_ref())
            && let Some(dim) = self.dim()?.1.as_const()
        {
            // Not everybody minds sizes that do not add up where there is nothing to split.
            let sum = sizes.iter().try_fold(0i64, |sum, size| sum.checked_add(size.as_const()?));
            if sum.is_some_and(|sum| sum != dim) {
                return None;
            }
        }
        (same && keeps_axis(self.keepdims, self.sizes.as_ref())? != stacked).then(|| self.tensor.clone())
    }
}

/// Whether this is the size of parts for certain: at least 1.
fn is_size(scope: &Scope, size: &Dim) -> bool {
    scope.ge(size, &Dim::constant(1)).is_yes()
}

pub(super) fn infer_split(cx: &mut InferCx<'_>) -> InferResult {
    let tensor = cx.required(0)?;
    let axis = cx.attr_int("axis")?.unwrap_or(0);
    let keeps = keeps_axis(cx.attr_flag("keepdims", true)?, cx.input(1));
    let sizes = Sizes::of(cx.input(1));
    let nonpositive = |size: &Dim, least: i64| size.as_const().is_some_and(|size| size < least);
    match &sizes {
        Some(Sizes::Each(size)) if nonpositive(size, 1) => {
            return Err(Refusal::invalid("the size of the parts is not positive"));
        }
        Some(Sizes::List(list)) if list.iter().any(|size| nonpositive(size, 0)) => {
            return Err(Refusal::invalid("the size of a part is negative"));
        }
        _ => {}
    }
    let shape = match tensor.shape() {
        None => None,
        Some(shape) => {
            let at = axis_in(axis, shape.len())?;
            let mut shape = shape.to_vec();
            match (keeps, shape.get_mut(at)) {
                (Some(true), Some(dim)) => *dim = part_size(cx, sizes.as_ref(), dim),
                _ => drop(shape.remove(at)),
            }
            keeps.map(|_| shape)
        }
    };
    let element = Type::Tensor(TensorType::new(tensor.dtype(), shape));
    Ok(vec![Fact::of(Type::Sequence(Some(Box::new(element))))])
}

/// The size that every part has, or a symbol for "some size".
fn part_size(cx: &InferCx<'_>, sizes: Option<&Sizes>, dim: &Dim) -> Dim {
    let scope = cx.scope();
    match sizes {
        Some(Sizes::Each(size)) => {
            if scope.divides(size, dim).is_yes() {
                size.clone()
            } else if scope.le(dim, size).is_yes() {
                dim.clone()
            } else {
                any_size(cx, scope.upper_bound(size))
            }
        }
        Some(Sizes::List(list)) => match list.split_first() {
            Some((first, rest)) if rest.iter().all(|size| scope.eq(first, size).is_yes()) => first.clone(),
            _ => any_size(cx, scope.upper_bound(dim)),
        },
        None => any_size(cx, scope.upper_bound(dim)),
    }
}

fn any_size(cx: &InferCx<'_>, most: Option<i64>) -> Dim {
    cx.scope().fresh_within(&crate::ops::control::stem_of(cx), Some(0), most)
}

pub(super) fn eval_split(cx: &mut EvalCx<'_>) -> EvalResult {
    let tensor = cx.tensor(0)?;
    let axis = axis_in(cx.attr_int("axis")?.unwrap_or(0), tensor.rank())?;
    let dim = tensor.shape().get(axis).copied().unwrap_or(0);
    let mut items = Vec::new();
    let Some(sizes) = cx.optional_tensor(1)? else {
        let keep = cx.attr_flag("keepdims", true)?;
        cx.budget().take_bytes(dim.saturating_mul(size_of::<Data>()))?;
        for index in 0..dim {
            let item = if keep { part(cx, tensor, axis, index, 1) } else { pick(cx, tensor, axis, index) };
            items.push(Data::Tensor(item?));
        }
        return Ok(vec![Data::Sequence(Arc::new(items))]);
    };
    let given = sizes.to_i64s().ok_or_else(|| Decline::invalid("the sizes of the parts are not integers"))?;
    let given = given.into_iter().map(usize::try_from).collect::<Result<Vec<_>, _>>();
    let given = given.map_err(|_| Decline::invalid("the size of a part is negative"))?;
    let lens = match (sizes.rank(), given.as_slice()) {
        (0, [0]) => return Err(Decline::invalid("the size of the parts is not positive")),
        (0, [size]) => {
            let count = dim.div_ceil(*size);
            cx.budget().take_bytes(count.saturating_mul(size_of::<Data>()))?;
            (0..count).map(|at| (*size).min(dim - at * size)).collect()
        }
        (1, _) => given,
        _ => return Err(Decline::invalid("the sizes of the parts are neither a scalar nor a vector")),
    };
    if keeps_axis(cx.attr_flag("keepdims", true)?, Some(&Fact::constant(sizes.clone()))).is_none() {
        return Err(Decline::unsupported("runtimes do not agree whether parts of a scalar size keep their axis"));
    }
    if lens.iter().try_fold(0usize, |sum, &len| sum.checked_add(len)) != Some(dim) {
        return Err(Decline::invalid("the sizes of the parts do not add up to the axis"));
    }
    let mut start = 0;
    for len in lens {
        items.push(Data::Tensor(part(cx, tensor, axis, start, len)?));
        start += len;
    }
    Ok(vec![Data::Sequence(Arc::new(items))])
}

pub(super) fn infer_concat(cx: &mut InferCx<'_>) -> InferResult {
    let element = element_type(cx, 0)?;
    let axis = cx.attr_int("axis")?.ok_or_else(|| Refusal::invalid("attribute 'axis' is missing"))?;
    let stacked = cx.attr_flag("new_axis", false)?;
    let value = cx.node.input(0);
    if let Some(whole) = value.and_then(|value| lineage::split(cx, value)?.whole(axis, stacked)) {
        return Ok(vec![whole]);
    }
    let items = value.and_then(|value| lineage::items(cx, value)).filter(|items| !items.is_empty());
    // The elements agree in every dim but the joined one: what is known of any of them is known of the result.
    let known = match items.as_deref() {
        Some(items) => items.iter().filter_map(Fact::as_tensor).max_by_key(|item| item.shape.is_some()).cloned(),
        None => element.and_then(|element| any_element(cx, &element).as_tensor().cloned()),
    };
    let Some(known) = known else { return Ok(vec![Fact::unknown()]) };
    let Some(mut shape) = known.shape else { return Ok(vec![Fact::tensor(known.dtype, None)]) };
    if let Some(items) = items.as_deref() {
        let joined = if stacked { None } else { Some(axis_in(axis, shape.len())?) };
        prefer_numbers(cx, &mut shape, items, joined);
    }
    if stacked {
        let at = axis_in(axis, shape.len() + 1)?;
        let count = value.and_then(|value| lineage::length(cx, value)).unwrap_or_else(|| cx.fresh_dim());
        shape.insert(at, count);
        return Ok(vec![one_after_another(Fact::tensor(known.dtype, Some(shape)), at, items.as_deref())]);
    }
    let at = axis_in(axis, shape.len())?;
    let sizes = items.as_deref().and_then(|items| {
        items.iter().map(|item| item.shape().and_then(|shape| shape.get(at)).cloned()).collect::<Option<Vec<Dim>>>()
    });
    if let Some(dim) = shape.get_mut(at) {
        *dim = match sizes {
            Some(sizes) => total(cx, &sizes),
            None => joined_size(cx, at),
        };
    }
    Ok(vec![one_after_another(Fact::tensor(known.dtype, Some(shape)), at, items.as_deref())])
}

/// The result with its elements, where they are those of one item after another: along the first axis.
fn one_after_another(result: Fact, axis: usize, items: Option<&[Fact]>) -> Fact {
    let joined = items.filter(|_| axis == 0).and_then(|items| {
        let unknown = |item: &Fact| Some(vec![Scalar::Unknown; item.static_len().filter(|&len| len <= MAX_ELEMENTS)?]);
        let parts = items.iter().map(|item| item.elements().or_else(|| unknown(item)));
        Some(parts.collect::<Option<Vec<Vec<Scalar>>>>()?.concat())
    });
    match joined {
        Some(elements) => result.with_elements(elements),
        None => result,
    }
}

/// Takes a number from any element where the shape has none. Where elements have different numbers on another axis than the joined
/// one the size is left open: empty tensors are joined for all that.
fn prefer_numbers(cx: &InferCx<'_>, shape: &mut [Dim], items: &[Fact], joined: Option<usize>) {
    let shapes = || items.iter().filter_map(Fact::shape).filter(|other| other.len() == shape.len());
    let agreed: Vec<Option<Option<i64>>> = (0..shape.len())
        .map(|axis| {
            let mut numbers = shapes().filter_map(|other| other.get(axis)?.as_const());
            let Some(first) = numbers.next() else { return Some(None) };
            numbers.all(|number| number == first).then_some(Some(first))
        })
        .collect();
    for (axis, (dim, agreed)) in shape.iter_mut().zip(agreed).enumerate() {
        match agreed {
            _ if joined == Some(axis) => {}
            Some(Some(number)) => *dim = Dim::constant(number),
            Some(None) => {}
            None => *dim = cx.fresh_dim(),
        }
    }
}

/// The size of the joined axis of a sequence whose elements are not known one by one: as many times the size that all of
/// them have, if there is one.
fn joined_size(cx: &InferCx<'_>, at: usize) -> Dim {
    let value = cx.node.input(0);
    let count = value.and_then(|value| lineage::length(cx, value));
    let element = match cx.input(0).and_then(|fact| fact.ty.as_ref()) {
        Some(Type::Sequence(Some(element))) => element.as_tensor().and_then(|element| element.shape.clone()),
        _ => None,
    };
    let dim = element.and_then(|shape| shape.get(at).cloned());
    let shared = |dim: &Dim| !dim.symbols().into_iter().any(|symbol| cx.scope().is_fresh(symbol));
    match (count, dim.filter(shared)) {
        (Some(count), Some(dim)) => cx.scope().mul(&count, &dim),
        _ => cx.fresh_dim(),
    }
}

pub(super) fn eval_concat(cx: &mut EvalCx<'_>) -> EvalResult {
    let items = sequence(cx, 0)?;
    let tensors = items.iter().map(|item| item.tensor().cloned()).collect::<Option<Vec<Tensor>>>();
    let tensors = tensors.ok_or_else(|| Decline::invalid("an element is no tensor"))?;
    let axis = cx.attr_int("axis")?.ok_or_else(|| Decline::invalid("attribute 'axis' is missing"))?;
    let joined = if cx.attr_flag("new_axis", false)? {
        stack(cx, &tensors, axis)?
    } else {
        let rank = tensors.first().map_or(0, Tensor::rank);
        concat(cx, &tensors, axis_in(axis, rank)?)?
    };
    Ok(vec![Data::Tensor(joined)])
}
