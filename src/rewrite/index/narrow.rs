//! What operators make of operands that are spread from smaller ones.
//!
//! Law: let `v` be `w` repeated along some axes. An operator that treats the places of an axis alike, each for itself, repeats its
//! result along that axis: `f(v)` is `f(w)` repeated. Which axes an operator treats so is told here, operator by operator; along
//! the others `w` must have its full size.

use smallvec::SmallVec;

use crate::dim::{Dim, Scope};
use crate::ir::{Node, ValueId};
use crate::ops::axis_in;
use crate::rewrite::Place;
use crate::rewrite::slices::cuts::taken;

/// Shapes of what values are spread from.
pub(super) trait Shapes {
    /// The dims of the smaller form of a value, if it has one. They line up with those of the value at the end.
    fn narrow(&self, value: ValueId) -> Option<&[Dim]>;
}

/// How a node is computed on smaller operands.
pub(super) enum Form {
    /// By the same operator with the same attributes.
    Same { shape: Vec<Dim>, whole: bool },
    /// By another layout of its first operand.
    Layout { shape: Vec<Dim>, whole: bool },
}

impl Form {
    /// The shape of the result.
    pub fn shape(&self) -> &[Dim] {
        match self {
            Form::Same { shape, .. } | Form::Layout { shape, .. } => shape,
        }
    }

    /// Whether that is the shape the result has now.
    pub fn is_whole(&self) -> bool {
        matches!(self, Form::Same { whole: true, .. } | Form::Layout { whole: true, .. })
    }
}

/// The node on the smaller forms of its operands, unless it tells apart places where they only repeat. If `exact`, only if the
/// result stays equal bit for bit.
pub(super) fn on_narrow(place: &Place<'_>, node: &Node, shapes: &dyn Shapes, exact: bool) -> Option<Form> {
    let [Some(output)] = *node.outputs() else { return None };
    let goal = place.shape(output)?;
    let cx = Cx { place, node, shapes, goal };
    match node.op_type.as_str() {
        "Add" | "Sub" | "Mul" | "Div" | "Pow" | "Mod" | "And" | "Or" | "Xor" | "Equal" | "Less" | "LessOrEqual"
        | "Greater" | "GreaterOrEqual" | "Where" | "Min" | "Max" | "BitwiseAnd" | "BitwiseOr" | "BitwiseXor"
        | "Cast" | "Not" | "Neg" | "Abs" | "Cos" | "Sin" | "Sqrt" | "Exp" | "Log" | "Floor" | "Ceil" | "Round"
        | "Reciprocal" | "Relu" | "Sigmoid" | "Tanh" | "Sign" | "Erf" => cx.elementwise(),
        "QuantizeLinear" | "DequantizeLinear" | "Clip" => cx.by_numbers(),
        "Gather" => cx.gather(),
        "Reshape" | "Unsqueeze" | "Squeeze" | "Flatten" => cx.layout(),
        "Expand" => cx.expand(),
        "Transpose" => cx.transpose(),
        "Concat" => cx.concat(),
        "Slice" => cx.slice(),
        "MatMul" if !exact => cx.product(),
        "Softmax" | "LogSoftmax" if !exact && place.opset.softmax_along_one_axis() => cx.along(&[cx.axis()?]),
        "CumSum" => {
            let [axis] = place.const_ints(node.input(1)?)?[..] else { return None };
            cx.along(&[cx.counted(axis)?])
        }
        // Each row has a mean of its own.
        "InstanceNormalization" if !exact => cx.along(&(1..goal.len()).collect::<Vec<_>>()),
        "LayerNormalization" if !exact && cx.scales_fit()? => cx.along(&(cx.axis()?..goal.len()).collect::<Vec<_>>()),
        _ => None,
    }
}

struct Cx<'a, 'p> {
    place: &'a Place<'p>,
    node: &'a Node,
    shapes: &'a dyn Shapes,
    goal: &'a [Dim],
}

impl Cx<'_, '_> {
    fn scope(&self) -> &Scope {
        self.place.scope()
    }

    fn equal(&self, a: &Dim, b: &Dim) -> bool {
        self.scope().eq(a, b).is_yes()
    }

    /// The dims of an operand, of its smaller form where there is one.
    fn dims(&self, value: ValueId) -> Option<&[Dim]> {
        self.shapes.narrow(value).or_else(|| self.place.shape(value))
    }

    /// The dims of the first operand's smaller form, which must have all axes; no other operand may have one.
    fn only_first(&self) -> Option<(&[Dim], &[Dim])> {
        let data = self.node.input(0)?;
        let mut rest = self.node.inputs().iter().skip(1).flatten();
        let (narrow, wide) = (self.dims(data)?, self.place.shape(data)?);
        (rest.all(|&other| self.shapes.narrow(other).is_none()) && narrow.len() == wide.len()).then_some((narrow, wide))
    }

    /// An axis counted from the front.
    fn counted(&self, axis: i64) -> Option<usize> {
        axis_in(axis, self.place.shape(self.node.input(0)?)?.len()).ok()
    }

    /// The axis the node names.
    fn axis(&self) -> Option<usize> {
        self.place.read(self.node).axis(self.place.shape(self.node.input(0)?)?.len())
    }

    fn same(&self, shape: Vec<Dim>) -> Form {
        let whole = shape.len() == self.goal.len() && shape.iter().zip(self.goal).all(|(a, b)| self.equal(a, b));
        Form::Same { shape, whole }
    }

    fn elementwise(&self) -> Option<Form> {
        let shapes: SmallVec<[&[Dim]; 4]> =
            self.node.inputs().iter().map(|input| self.dims((*input)?)).collect::<Option<_>>()?;
        let (shape, whole) = broadcast(self.scope(), &shapes, self.goal)?;
        Some(Form::Same { shape, whole })
    }

    /// Element by element, with single numbers as further operands.
    fn by_numbers(&self) -> Option<Form> {
        let data = self.shapes.narrow(self.node.input(0)?)?;
        let mut rest = self.node.inputs().iter().skip(1).flatten();
        let single = rest.all(|&other| {
            self.shapes.narrow(other).is_none() && self.place.shape(other).is_some_and(<[Dim]>::is_empty)
        });
        single.then(|| self.same(data.to_vec()))
    }

    fn gather(&self) -> Option<Form> {
        let (data, indices) = (self.node.input(0)?, self.node.input(1)?);
        if self.shapes.narrow(data).is_none() {
            // Entries are looked up one by one; each brings the data's other axes.
            if self.axis()? != 0 {
                return None;
            }
            let mut shape = self.dims(indices)?.to_vec();
            shape.extend_from_slice(self.place.shape(data)?.get(1..)?);
            let (shape, whole) = broadcast(self.scope(), &[&shape], self.goal)?;
            return Some(Form::Same { shape, whole });
        }
        let (narrow, wide) = self.only_first()?;
        let axis = self.axis()?;
        if !self.equal(narrow.get(axis)?, wide.get(axis)?) {
            return None;
        }
        let mut shape = narrow.get(..axis)?.to_vec();
        shape.extend_from_slice(self.place.shape(indices)?);
        shape.extend_from_slice(narrow.get(axis.checked_add(1)?..)?);
        Some(self.same(shape))
    }

    /// Elements stay in order; axes that are run together or taken apart must all repeat, or none of them.
    fn layout(&self) -> Option<Form> {
        let data = self.node.input(0)?;
        let wide = self.place.shape(data)?;
        let narrow = self.shapes.narrow(data)?;
        let mut rest = self.node.inputs().iter().skip(1).flatten();
        if rest.any(|&other| self.shapes.narrow(other).is_some()) {
            return None;
        }
        let one = Dim::constant(1);
        let added = wide.len().checked_sub(narrow.len())?;
        let mut full = vec![one.clone(); added];
        full.extend_from_slice(narrow);
        let (from, to) = (wide, self.goal);
        let (mut i, mut j) = (0, 0);
        let mut shape = Vec::with_capacity(to.len());
        while i < from.len() || j < to.len() {
            match (from.get(i), to.get(j)) {
                (Some(a), Some(b)) if self.equal(a, b) => {
                    shape.push(full.get(i)?.clone());
                    (i, j) = (i + 1, j + 1);
                }
                (_, Some(b)) if b.is_const(1) => {
                    shape.push(one.clone());
                    j += 1;
                }
                (Some(a), _) if a.is_const(1) => i += 1,
                _ => {
                    let (a, b) = (from.get(i..)?, to.get(j..)?);
                    let back = a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| self.equal(a, b)).count();
                    let (a, b) = (a.get(..a.len().checked_sub(back)?)?, b.get(..b.len().checked_sub(back)?)?);
                    let own = full.get(i..)?.get(..a.len())?;
                    if !self.equal(&self.scope().product(a), &self.scope().product(b)) {
                        return None;
                    }
                    if own.iter().zip(a).all(|(own, dim)| self.equal(own, dim)) {
                        shape.extend_from_slice(b);
                    } else if own.iter().all(|own| own.is_const(1)) {
                        shape.extend(b.iter().map(|_| one.clone()));
                    } else {
                        return None;
                    }
                    (i, j) = (i + a.len(), j + b.len());
                }
            }
        }
        let whole = shape.iter().zip(to).all(|(a, b)| self.equal(a, b));
        Some(Form::Layout { shape, whole })
    }

    /// Spreading what is spread: the sizes that are asked for remain.
    fn expand(&self) -> Option<Form> {
        let narrow = self.shapes.narrow(self.node.input(0)?)?;
        let sizes = self.node.input(1)?;
        if self.shapes.narrow(sizes).is_some() {
            return None;
        }
        let sizes = self.place.fact(sizes)?.ints()?;
        let (shape, whole) = broadcast(self.scope(), &[narrow, &sizes], self.goal)?;
        Some(Form::Same { shape, whole })
    }

    /// Whether what a normalization is scaled by has none of the axes that are not normalized.
    fn scales_fit(&self) -> Option<bool> {
        let most = self.goal.len().checked_sub(self.axis()?)?;
        let mut scales = self.node.inputs().iter().skip(1).flatten();
        Some(scales.all(|&scale| self.place.shape(scale).is_some_and(|dims| dims.len() <= most)))
    }

    fn transpose(&self) -> Option<Form> {
        let (narrow, _) = self.only_first()?;
        let order = self.place.read(self.node).permutation(narrow.len())?;
        Some(self.same(order.iter().map(|&axis| narrow.get(axis).cloned()).collect::<Option<_>>()?))
    }

    /// Every part must repeat along the other axes, or none.
    fn concat(&self) -> Option<Form> {
        let axis = self.axis()?;
        let mut shape: Option<Vec<Dim>> = None;
        for part in self.node.inputs() {
            let part = (*part)?;
            let (own, wide) = (self.dims(part)?, self.place.shape(part)?);
            if own.len() != wide.len() || !self.equal(own.get(axis)?, wide.get(axis)?) {
                return None;
            }
            let known = shape.get_or_insert_with(|| own.to_vec());
            let agree = |(at, (a, b)): (usize, (&Dim, &Dim))| at == axis || self.equal(a, b);
            if known.len() != own.len() || !known.iter().zip(own).enumerate().all(agree) {
                return None;
            }
        }
        let mut shape = shape?;
        *shape.get_mut(axis)? = self.goal.get(axis)?.clone();
        Some(self.same(shape))
    }

    fn slice(&self) -> Option<Form> {
        let (narrow, wide) = self.only_first()?;
        let id = self.place.model.value(self.node.output(0)?).producer()?;
        let (ranges, _) = taken(self.place, id)?;
        let mut shape = narrow.to_vec();
        for (axis, range) in ranges.iter().enumerate() {
            if range.is_some() {
                if !self.equal(narrow.get(axis)?, wide.get(axis)?) {
                    return None;
                }
                *shape.get_mut(axis)? = self.goal.get(axis)?.clone();
            }
        }
        Some(self.same(shape))
    }

    /// Rows of the first matrix and columns of the second are treated alike; what is summed over is not.
    fn product(&self) -> Option<Form> {
        let (a, b) = (self.node.input(0)?, self.node.input(1)?);
        let ([.., wide_inner], [.., other_inner, _]) = (self.place.shape(a)?, self.place.shape(b)?) else {
            return None;
        };
        let ([front @ .., rows, inner], [back @ .., depth, columns]) = (self.dims(a)?, self.dims(b)?) else {
            return None;
        };
        let [lead @ .., all_rows, all_columns] = self.goal else { return None };
        if !self.equal(inner, wide_inner) || !self.equal(depth, other_inner) {
            return None;
        }
        let (mut shape, _) = broadcast(self.scope(), &[front, back], lead)?;
        for (own, goal) in [(rows, all_rows), (columns, all_columns)] {
            if !own.is_const(1) && !self.equal(own, goal) {
                return None;
            }
            shape.push(own.clone());
        }
        Some(self.same(shape))
    }

    /// An operator that keeps the shape and looks at these axes only.
    fn along(&self, axes: &[usize]) -> Option<Form> {
        let (narrow, wide) = self.only_first()?;
        for &axis in axes {
            if !self.equal(narrow.get(axis)?, wide.get(axis)?) {
                return None;
            }
        }
        Some(self.same(narrow.to_vec()))
    }
}

/// What shapes broadcast to that are known to be spread to `goal`, and whether that is all of `goal`. `None` if it is not clear.
fn broadcast(scope: &Scope, shapes: &[&[Dim]], goal: &[Dim]) -> Option<(Vec<Dim>, bool)> {
    let rank = shapes.iter().map(|shape| shape.len()).max()?;
    let mut whole = rank == goal.len();
    let mut result = Vec::with_capacity(rank);
    for (axis, dim) in goal.iter().enumerate().skip(goal.len().checked_sub(rank)?) {
        let along = |shape: &&[Dim]| Some(shape.get((axis + shape.len()).checked_sub(goal.len())?)?.clone());
        let mut dims = shapes.iter().filter_map(along);
        let reaches = dims.clone().any(|own| scope.eq(&own, dim).is_yes());
        if !reaches && !dims.all(|own| own.is_const(1)) {
            return None;
        }
        whole &= reaches;
        result.push(if reaches { dim.clone() } else { Dim::constant(1) });
    }
    Some((result, whole))
}
