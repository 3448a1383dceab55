use super::{number, one_sided};
use crate::dim::Dim;
use crate::ir::Fact;
use crate::ops::{InferCx, InferResult, Operator, Refusal, Site, axis_in};

pub(super) const DFT: Operator = Operator::infer_only("DFT", &[17, 20], infer);

/// What the attributes say.
struct Kind {
    inverse: bool,
    one_sided: bool,
}

impl Kind {
    fn of(site: &Site<'_>) -> Result<Kind, Refusal> {
        Ok(Kind { inverse: site.attr_flag("inverse", false)?, one_sided: site.attr_flag("onesided", false)? })
    }
}

fn infer(cx: &mut InferCx<'_>) -> InferResult {
    let kind = Kind::of(cx)?;
    let dtype = cx.required(0)?.dtype();
    let Some(data) = cx.shape(0) else { return Ok(vec![Fact::tensor(dtype, None)]) };
    let [signal @ .., _] = data else { return Err(Refusal::invalid("the signal has no axis of numbers")) };
    let last = Dim::constant(if kind.inverse && kind.one_sided { 1 } else { 2 });
    let axis = match cx.version {
        ..20 => Some(cx.attr_int("axis")?.unwrap_or(1)),
        _ if !cx.has_input(2) => Some(-2),
        _ => number(cx, 2).and_then(|axis| axis.as_const()),
    };
    let Some(axis) = axis else {
        let mut shape = cx.fresh_shape(signal.len());
        shape.push(last);
        return Ok(vec![Fact::tensor(dtype, Some(shape))]);
    };
    let axis = axis_in(axis, data.len())?;
    let Some(dim) = signal.get(axis) else { return Err(Refusal::invalid("the axis of numbers is no signal")) };
    let scope = cx.scope();
    let length = match (cx.has_input(1), kind.inverse && kind.one_sided) {
        (true, _) => number(cx, 1).unwrap_or_else(|| cx.fresh_dim()),
        (false, true) => scope.mul(&scope.sub(dim, &Dim::constant(1)), &Dim::constant(2)),
        (false, false) => dim.clone(),
    };
    let size = if kind.one_sided && !kind.inverse { one_sided(cx, &length) } else { length };
    if size.as_const().is_some_and(|size| size < 0) {
        return Err(Refusal::invalid("the transform has a negative length"));
    }
    let mut shape = signal.to_vec();
    if let Some(place) = shape.get_mut(axis) {
        *place = size;
    }
    shape.push(last);
    Ok(vec![Fact::tensor(dtype, Some(shape))])
}
