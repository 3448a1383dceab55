//! DFT: the discrete Fourier transform along one axis.
//!
//! | | |
//! |---|---|
//! | computes | `Y[k] = Σ X[j]·exp(−2πi·jk / n)`; with `inverse` the conjugate roots, divided by `n` |
//! | shapes | real numbers `[D…, 1]` or complex ones `[D…, 2]` to `[D…, 2]`, the axis becoming `n` long |
//! | `dft_length` | `n`; the data is cut off or filled with zeros. By default as long as the data |
//! | `onesided` | forward: real data, and only the frequencies up to `⌊n / 2⌋`; inverse: from such frequencies back to real data `[D…, 1]`, by default `2·(dim − 1)` long |
//! | versions | 17: the axis is an attribute (1); 20: an operand (−2) |
//! | refuses | one-sided transforms of complex data or of real frequencies, the last axis, an axis that is no scalar, a length of 0; not evaluated: real data of a length that does not go with the number of frequencies |

use super::fourier::{Complex, FourierTables};
use super::{length, number, one_sided, reals, rounded, scalar};
use crate::dim::Dim;
use crate::ir::Fact;
use crate::ops::size_operand::at_least;
use crate::ops::{Decline, EvalCx, EvalResult, InferCx, InferResult, Operator, Refusal, Site, axis_in};
use crate::tensor::threads;
use crate::tensor::{DType, product};

pub(super) const DFT: Operator = Operator::new("DFT", &[17, 20], infer, eval);

/// The attributes.
#[derive(Clone, Copy)]
struct Kind {
    inverse: bool,
    one_sided: bool,
}

impl Kind {
    fn of(site: &Site<'_>) -> Result<Kind, Refusal> {
        Ok(Kind { inverse: site.attr_flag("inverse", false)?, one_sided: site.attr_flag("onesided", false)? })
    }

    /// Returns `true` if the results are real.
    fn is_real(self) -> bool {
        self.inverse && self.one_sided
    }
}

fn infer(cx: &mut InferCx<'_>) -> InferResult {
    let kind = Kind::of(cx)?;
    let dtype = cx.required(0)?.dtype();
    let Some(data) = cx.shape(0) else { return Ok(vec![Fact::tensor(dtype, None)]) };
    let [signal @ .., _] = data else { return Err(Refusal::invalid("the signal has no axis to transform")) };
    let last = Dim::constant(if kind.is_real() { 1 } else { 2 });
    // For such an axis, runtimes run a computed operand, and refuse to load the model with a constant one.
    if cx.version >= 20 && cx.input(2).and_then(Fact::rank).is_some_and(|rank| rank > 0) {
        return Err(Refusal::lax("the operand 'axis' is not a scalar"));
    }
    let axis = match cx.version {
        ..20 => Some(cx.attr_int("axis")?.unwrap_or(1)),
        _ if !cx.has_input(2) => Some(-2),
        _ => number(cx, 2).and_then(|axis| axis.as_const()),
    };
    let Some(axis) = axis else {
        // Without a given length, a complete transform has the length of the signal, along every axis.
        let whole = !cx.has_input(1) && !kind.one_sided;
        let mut shape = if whole { signal.to_vec() } else { cx.fresh_shape(signal.len()) };
        shape.push(last);
        return Ok(vec![Fact::tensor(dtype, Some(shape))]);
    };
    let axis = axis_in(axis, data.len())?;
    let Some(dim) = signal.get(axis) else {
        return Err(Refusal::invalid("'axis' is the last axis, which holds the real and imaginary parts"));
    };
    let scope = cx.scope();
    let length = match (cx.has_input(1), kind.is_real()) {
        (true, _) => {
            let length = number(cx, 1).unwrap_or_else(|| cx.fresh_dim());
            at_least(scope, std::slice::from_ref(&length), 1)?;
            length
        }
        (false, true) => scope.mul(&scope.sub(dim, &Dim::constant(1)), &Dim::constant(2)),
        (false, false) => dim.clone(),
    };
    let size = if kind.one_sided && !kind.inverse { one_sided(cx, &length) } else { length };
    if size.as_const().is_some_and(|size| size < 0) {
        return Err(Refusal::invalid("'dft_length' is negative"));
    }
    let mut shape = signal.to_vec();
    if let Some(place) = shape.get_mut(axis) {
        *place = size;
    }
    shape.push(last);
    Ok(vec![Fact::tensor(dtype, Some(shape))])
}

fn eval(cx: &mut EvalCx<'_>) -> EvalResult {
    let data = cx.tensor(0)?;
    let kind = Kind::of(cx)?;
    let [signal @ .., parts @ 1..=2] = data.shape() else {
        return Err(Decline::invalid(format!(
            "the last dim of shape {:?} is neither 1 (real) nor 2 (complex)",
            data.shape()
        )));
    };
    let axis = match cx.version {
        ..20 => cx.attr_int("axis")?.unwrap_or(1),
        _ if !cx.has_input(2) => -2,
        _ => scalar(cx, 2)?,
    };
    let axis = axis_in(axis, data.rank())?;
    let dim = *signal
        .get(axis)
        .ok_or_else(|| Decline::invalid("'axis' is the last axis, which holds the real and imaginary parts"))?;
    if kind.one_sided && (*parts == 2) != kind.inverse {
        return Err(Decline::invalid(
            "attribute 'onesided' is 1, but the data is complex, or, for an inverse transform, the frequencies are real",
        ));
    }
    let size = match (cx.has_input(1), kind.is_real()) {
        (true, _) => length(scalar(cx, 1)?)?,
        (false, true) => dim.saturating_sub(1).saturating_mul(2),
        (false, false) => dim,
    };
    if size == 0 {
        return Err(Decline::invalid("'dft_length' is 0"));
    }
    if kind.is_real() && dim != size / 2 + 1 {
        return Err(Decline::unsupported(
            "the number of frequencies does not fit 'dft_length', for which runtimes return different values",
        ));
    }
    let places = if kind.one_sided && !kind.inverse { size / 2 + 1 } else { size };
    let mut shape = data.shape().to_vec();
    let out = if kind.is_real() { 1 } else { 2 };
    for (at, dim) in [(axis, places), (signal.len(), out)] {
        if let Some(place) = shape.get_mut(at) {
            *place = dim;
        }
    }
    cx.claim(data.dtype(), &shape)?;
    cx.claim(DType::Double, &shape)?;
    cx.claim(DType::Complex128, &[FourierTables::memory(size)])?;
    let of = |dims: Option<&[usize]>| dims.and_then(product).unwrap_or(0);
    let (outer, inner) = (of(signal.get(..axis)), of(signal.get(axis + 1..)));
    let lines = (outer as u64).saturating_mul(inner as u64);
    cx.budget().take_work(lines.saturating_add(2).saturating_mul(FourierTables::work(size)))?;
    let values = reals(cx, data)?;
    let mut results = vec![0.0; product(&shape).unwrap_or(0)];
    if !results.is_empty() {
        let tables = FourierTables::new(size);
        let line = Line { tables: &tables, kind, parts: *parts, inner };
        let from = dim.saturating_mul(inner).saturating_mul(*parts);
        // Empty data counts as zeros.
        threads::for_each(results.chunks_exact_mut(places * inner * out).enumerate(), |(at, to)| {
            let from = values.get(at * from..(at + 1) * from).unwrap_or_default();
            (0..inner).for_each(|offset| line.transform(from, to, offset, places));
        });
    }
    Ok(vec![rounded(data.dtype(), &shape, &results)?.into()])
}

/// The transform of the signals of a block.
struct Line<'a> {
    tables: &'a FourierTables,
    kind: Kind,
    /// 1 for real numbers, 2 for complex ones.
    parts: usize,
    /// The number of interleaved signals.
    inner: usize,
}

impl Line<'_> {
    /// Transforms signal number `offset` of a block.
    fn transform(&self, from: &[f64], to: &mut [f64], offset: usize, places: usize) {
        let size = self.tables.length();
        let read = |at: usize| -> Complex {
            let start = (at * self.inner + offset) * self.parts;
            let part = |part: usize| from.get(start + part).copied().unwrap_or(0.0);
            [part(0), if self.parts == 2 { part(1) } else { 0.0 }]
        };
        let mut line: Vec<Complex> = if self.kind.is_real() {
            (0..size).map(|at| hermitian(&read, at, size)).collect()
        } else {
            (0..size).map(read).collect()
        };
        if self.kind.inverse {
            self.tables.inverse(&mut line)
        } else {
            self.tables.forward(&mut line)
        }
        let out = if self.kind.is_real() { 1 } else { 2 };
        for (at, value) in line.iter().take(places).enumerate() {
            let start = (at * self.inner + offset) * out;
            if let Some(to) = to.get_mut(start..start + out) {
                to.iter_mut().zip(value).for_each(|(to, &part)| *to = part);
            }
        }
    }
}

/// Returns frequency `at` of real data of this size from the lower half of the frequencies: `X[n − k] = X[k]*`.
fn hermitian(read: &impl Fn(usize) -> Complex, at: usize, size: usize) -> Complex {
    let mirrored = size - at;
    // A frequency that is its own mirror image is real.
    if at == 0 || at == mirrored {
        return [read(at)[0], 0.0];
    }
    if at < mirrored {
        return read(at);
    }
    let [re, im] = read(mirrored);
    [re, -im]
}

#[cfg(test)]
mod tests {
    use crate::ops::single::Single;
    use crate::tensor::DType;

    #[test]
    fn shapes() {
        let dft = |opset: i64, shape: &str| Single::new("DFT", opset).input(DType::Float, shape);
        assert_eq!(dft(17, "N T 1").infer(), ["float[N, T, 2]"]);
        assert_eq!(dft(20, "N T 1").with("onesided", 1).infer(), ["float[N, floor(T/2) + 1, 2]"]);
        assert_eq!(dft(20, "N 9 2").with("onesided", 1).with("inverse", 1).infer(), ["float[N, 16, 1]"]);
        assert_eq!(dft(20, "N T 2").values(&[], &[32i64]).infer(), ["float[N, 32, 2]"]);
        assert_eq!(dft(20, "A B C 2").values(&[], &[32i64]).values(&[], &[0i64]).infer(), ["float[32, B, C, 2]"]);
        assert_eq!(dft(20, "A B 2").absent().input(DType::Int64, "").infer(), ["float[A, B, 2]"]);
        let one_sided = dft(20, "A B 1").with("onesided", 1).absent().input(DType::Int64, "");
        assert_eq!(one_sided.infer(), ["float[?, ?, 2]"]);
        assert_eq!(Single::new("DFT", 20).unranked(DType::Float).infer(), ["float"]);
        assert!(dft(20, "A B 2").absent().values(&[], &[-1i64]).infer()[0].starts_with("invalid"));
        assert!(dft(20, "A B 2").absent().values(&[1], &[0i64]).infer()[0].starts_with("invalid"));
    }

    #[test]
    fn values() {
        let dft = |shape: &[usize], values: &[f64]| Single::new("DFT", 20).values(shape, values);
        let close = |node: Single, expected: &[f64]| {
            let found = node.floats();
            assert_eq!(found.len(), expected.len());
            assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-12), "{found:?}");
        };
        close(dft(&[1, 2, 1], &[1.0, 2.0]), &[3.0, 0.0, -1.0, 0.0]);
        close(dft(&[1, 4, 1], &[1.0, 2.0, 0.0, 0.0]).with("onesided", 1), &[3.0, 0.0, 1.0, -2.0, -1.0, 0.0]);
        close(dft(&[1, 2, 2], &[3.0, 0.0, -1.0, 0.0]).with("inverse", 1), &[1.0, 0.0, 2.0, 0.0]);
        let back = dft(&[1, 3, 2], &[3.0, 9.0, 1.0, -2.0, -1.0, 9.0]).with("inverse", 1).with("onesided", 1);
        close(back, &[1.0, 2.0, 0.0, 0.0]);
        // Two columns, along the first axis, truncated.
        let columns = dft(&[3, 2, 1], &[1.0, 10.0, 2.0, 20.0, 9.0, 9.0]).values(&[], &[2i64]).values(&[], &[0i64]);
        close(columns, &[3.0, 0.0, 30.0, 0.0, -1.0, 0.0, -10.0, 0.0]);
        assert!(dft(&[1, 2, 2], &[0.0; 4]).with("onesided", 1).eval().is_err());
        assert!(dft(&[1, 2, 1], &[0.0; 2]).values(&[], &[0i64]).eval().is_err());
        assert!(dft(&[1, 2, 1], &[0.0; 2]).values(&[], &[1i64 << 60]).eval().is_err());
        assert!(dft(&[1, 2, 3], &[0.0; 6]).eval().is_err());
    }
}
