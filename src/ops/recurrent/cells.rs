//! Evaluation of RNN, GRU and LSTM.
//!
//! The products `x·Wᵀ`, `h·Rᵀ` and the biases are split into gates, each `hidden` wide (GRU: z, r, h; LSTM: i, o, f, c):
//!
//! | cell | step |
//! | --- | --- |
//! | RNN | `h = f(x + h)` |
//! | GRU | `z, r = f(…)`, `n = g(x + (r∘h)·Rᵀ + b)`, or `g(x + r∘(h·Rᵀ + b))` if `linear_before_reset`; `h = (1−z)∘n + z∘h` |
//! | LSTM | `i, f = f(… + p∘c)`, `c = f∘c + i∘g(…)`, `o = f(… + p∘c)`, `h = o∘h(c)`; `f = 1−i` if `input_forget` |
//!
//! Inputs of activations are clipped to `±clip`. An instance shorter than the sequence has zeros after its end; in reverse
//! direction, it starts at its end. Not evaluated: empty sequences, whose last state is disputed, and LSTM states beyond `±clip`,
//! which the text clips before computing `h`, but ONNX Runtime does not.

use std::borrow::Cow;

use super::activation::{Activation, activations};
use crate::ops::lane::{Lane, in_lane, read, same_dtype};
use crate::ops::linear::{Matrix, multiply_add};
use crate::ops::{Decline, EvalCx, EvalResult};
use crate::tensor::{DType, Tensor, product};

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Rnn,
    Gru,
    Lstm,
}

pub(super) fn eval_rnn(cx: &mut EvalCx<'_>) -> EvalResult {
    eval(cx, Kind::Rnn)
}

pub(super) fn eval_gru(cx: &mut EvalCx<'_>) -> EvalResult {
    eval(cx, Kind::Gru)
}

pub(super) fn eval_lstm(cx: &mut EvalCx<'_>) -> EvalResult {
    eval(cx, Kind::Lstm)
}

fn eval(cx: &EvalCx<'_>, kind: Kind) -> EvalResult {
    let dtype = cx.tensor(0)?.dtype();
    in_lane!(dtype, T => run::<T>(cx, kind, dtype))
}

impl Kind {
    fn gates(self) -> usize {
        match self {
            Kind::Rnn => 1,
            Kind::Gru => 3,
            Kind::Lstm => 4,
        }
    }

    fn activations(self) -> &'static [&'static str] {
        match self {
            Kind::Rnn => &["Tanh"],
            Kind::Gru => &["Sigmoid", "Tanh"],
            Kind::Lstm => &["Sigmoid", "Tanh", "Tanh"],
        }
    }
}

/// Returns an optional operand of this shape.
fn given<'c, T: Lane>(
    cx: &'c EvalCx<'_>,
    i: usize,
    dtype: DType,
    shape: &[usize],
) -> Result<Option<Cow<'c, [T]>>, Decline> {
    let Some(tensor) = cx.optional_tensor(i)? else { return Ok(None) };
    same_dtype(dtype, &[tensor])?;
    if tensor.shape() != shape {
        return Err(Decline::invalid(format!("operand {i} has shape {:?} instead of {shape:?}", tensor.shape())));
    }
    cx.claim(DType::Double, shape)?;
    read::<T>(tensor).map(Some)
}

/// One direction of a cell.
struct Cell<'a, T> {
    kind: Kind,
    hidden: usize,
    clip: f64,
    activations: &'a [Activation],
    recurrence: &'a [T],
    bias: &'a [T],
    peephole: &'a [T],
    linear_before_reset: bool,
    input_forget: bool,
}

impl<T: Lane> Cell<'_, T> {
    fn activate(&self, function: usize, x: f64) -> f64 {
        let clipped = if x.is_nan() { x } else { x.clamp(-self.clip, self.clip) };
        self.activations.get(function).map_or(clipped, |activation| activation.apply(clipped))
    }

    /// Returns the bias of the input side of a gate (`0 .. gates`) or of its recurrent side (`gates ..`).
    fn bias(&self, gate: usize, j: usize) -> f64 {
        self.bias.get(gate * self.hidden + j).map_or(0.0, |bias| bias.to_f64())
    }

    fn peephole(&self, gate: usize, j: usize, state: f64) -> f64 {
        self.peephole.get(gate * self.hidden + j).map_or(0.0, |weight| weight.to_f64() * state)
    }

    /// Computes `states · Rᵀ` for the gates from `first` on.
    fn recur(&self, batch: usize, states: &[T], first: usize) -> Vec<T> {
        let columns = (self.kind.gates() - first) * self.hidden;
        let weights = self.recurrence.get(first * self.hidden * self.hidden..).unwrap_or_default();
        let mut sums = vec![T::default(); batch * columns];
        let states = Matrix::dense(states, self.hidden);
        multiply_add(batch, self.hidden, columns, states, Matrix::transposed(weights, self.hidden), &mut sums);
        sums
    }

    /// Computes one step of one instance: `x` and `sums` are the products of input and states; `h` and `c` are replaced. `reset` is
    /// the product of the reset state for the last gate of a GRU.
    fn step(&self, x: &[T], sums: &[T], reset: &[T], h: &mut [T], c: &mut [T]) {
        let gates = self.kind.gates();
        let at = |values: &[T], gate: usize, j: usize| values.get(gate * self.hidden + j).map_or(0.0, |v| v.to_f64());
        let side = |gate: usize, j: usize| at(sums, gate, j) + self.bias(gates + gate, j);
        let input = |gate: usize, j: usize| at(x, gate, j) + self.bias(gate, j);
        for (j, (h, c)) in h.iter_mut().zip(c).enumerate() {
            match self.kind {
                Kind::Rnn => *h = T::of(self.activate(0, input(0, j) + side(0, j))),
                Kind::Gru => {
                    let z = self.activate(0, input(0, j) + side(0, j));
                    let recurrent = if self.linear_before_reset {
                        self.activate(0, input(1, j) + side(1, j)) * side(2, j)
                    } else {
                        at(reset, 0, j) + self.bias(gates + 2, j)
                    };
                    let new = self.activate(1, input(2, j) + recurrent);
                    *h = T::of((1.0 - z) * new + z * h.to_f64());
                }
                Kind::Lstm => {
                    let before = c.to_f64();
                    let i = self.activate(0, input(0, j) + side(0, j) + self.peephole(0, j, before));
                    let f = if self.input_forget {
                        1.0 - i
                    } else {
                        self.activate(0, input(2, j) + side(2, j) + self.peephole(2, j, before))
                    };
                    let state = f * before + i * self.activate(1, input(3, j) + side(3, j));
                    let o = self.activate(0, input(1, j) + side(1, j) + self.peephole(1, j, state));
                    *c = T::of(state);
                    *h = T::of(o * self.activate(2, state));
                }
            }
        }
    }

    /// Computes the product of the reset states of a GRU, which the last gate needs unless the product precedes the reset.
    fn reset(&self, batch: usize, x_row: impl Fn(usize) -> Option<usize>, x: &[T], sums: &[T], h: &[T]) -> Vec<T> {
        if self.kind != Kind::Gru || self.linear_before_reset {
            return Vec::new();
        }
        let width = 3 * self.hidden;
        let mut states = h.to_vec();
        for (b, states) in states.chunks_exact_mut(self.hidden).enumerate() {
            let Some(row) = x_row(b) else { continue };
            for (j, state) in states.iter_mut().enumerate() {
                let of = |values: &[T], row: usize| {
                    values.get(row * width + self.hidden + j).map_or(0.0, |value| value.to_f64())
                };
                let r = self.activate(0, of(x, row) + of(sums, b) + self.bias(1, j) + self.bias(4, j));
                *state = T::of(r * state.to_f64());
            }
        }
        self.recur(batch, &states, 2)
    }
}

fn rank_3(tensor: &Tensor) -> Result<[usize; 3], Decline> {
    tensor
        .shape()
        .try_into()
        .map_err(|_| Decline::invalid(format!("an operand has rank {} instead of 3", tensor.rank())))
}

fn run<T: Lane>(cx: &EvalCx<'_>, kind: Kind, dtype: DType) -> EvalResult {
    let reversed: &[bool] = match cx.attr_str("direction")?.unwrap_or("forward") {
        "forward" => &[false],
        "reverse" => &[true],
        "bidirectional" => &[false, true],
        other => return Err(Decline::invalid(format!("attribute 'direction' is '{other}', which is not defined"))),
    };
    let batch_first = cx.version >= 14 && cx.attr_flag("layout", false)?;
    let (gates, directions) = (kind.gates(), reversed.len());
    let (outer, inner, width) = rank_3(cx.tensor(0)?)?.into();
    let (length, batch) = if batch_first { (inner, outer) } else { (outer, inner) };
    let [_, _, hidden] = rank_3(cx.tensor(2)?)?;
    let all = gates.checked_mul(hidden).ok_or_else(|| Decline::invalid("attribute 'hidden_size' is too large"))?;
    if cx.attr_int("hidden_size")?.is_some_and(|size| usize::try_from(size) != Ok(hidden)) {
        return Err(Decline::invalid("attribute 'hidden_size' differs from the dims of the weights"));
    }
    if length == 0 || batch == 0 || hidden == 0 || width == 0 {
        return Err(Decline::unsupported("the sequence, the batch or the hidden state is empty"));
    }
    let lengths = match cx.has_input(4) {
        true => cx.ints(4)?.into_iter().map(|own| usize::try_from(own).unwrap_or(0)).collect(),
        false => vec![length; batch],
    };
    if lengths.len() != batch || lengths.iter().any(|&own| own == 0 || own > length) {
        return Err(Decline::unsupported("an element of 'sequence_lens' is 0, or larger than the sequence"));
    }

    let terms = width.saturating_add(hidden).saturating_add(32);
    let work = product(&[length, batch, directions, all]).and_then(|count| count.checked_mul(terms));
    cx.budget().take_work(work.map_or(u64::MAX, |work| work as u64))?;
    cx.claim(DType::Double, &[length, batch, all])?;
    cx.claim(DType::Double, &[batch, all])?;
    let x = given::<T>(cx, 0, dtype, cx.tensor(0)?.shape())?.unwrap_or_default();
    let w = given::<T>(cx, 1, dtype, &[directions, all, width])?.unwrap_or_default();
    let r = given::<T>(cx, 2, dtype, &[directions, all, hidden])?.unwrap_or_default();
    let b = given::<T>(cx, 3, dtype, &[directions, 2 * all])?.unwrap_or_default();
    let state = if batch_first { [batch, directions, hidden] } else { [directions, batch, hidden] };
    let first_h = given::<T>(cx, 5, dtype, &state)?.unwrap_or_default();
    let (first_c, p) = if kind == Kind::Lstm {
        (
            given::<T>(cx, 6, dtype, &state)?.unwrap_or_default(),
            given::<T>(cx, 7, dtype, &[directions, 3 * hidden])?.unwrap_or_default(),
        )
    } else {
        Default::default()
    };
    let functions = activations(cx, directions, kind.activations())?;
    let clip = cx.attr_float("clip")?.map_or(f64::INFINITY, f64::from);
    if clip.is_nan() || clip < 0.0 {
        return Err(Decline::invalid(format!("attribute 'clip' is {clip}, which is not valid")));
    }

    let shape = if batch_first { [batch, length, directions, hidden] } else { [length, directions, batch, hidden] };
    cx.claim(dtype, &shape)?;
    let mut y = vec![T::default(); product(&shape).unwrap_or(0)];
    let mut met_nan = false;
    let mut last_h = vec![T::default(); product(&state).unwrap_or(0)];
    let mut last_c = last_h.clone();
    let state_row = |direction: usize, b: usize| {
        if batch_first { b * directions + direction } else { direction * batch + b }
    };
    let y_row = |t: usize, direction: usize, b: usize| {
        if batch_first { (b * length + t) * directions + direction } else { (t * directions + direction) * batch + b }
    };
    for (direction, &backwards) in reversed.iter().enumerate() {
        let part = |values: &'_ [T], size: usize| -> std::ops::Range<usize> {
            if values.is_empty() { 0..0 } else { direction * size..(direction + 1) * size }
        };
        let cell = Cell {
            kind,
            hidden,
            clip,
            activations: functions.get(direction * kind.activations().len()..).unwrap_or_default(),
            recurrence: r.get(part(&r, all * hidden)).unwrap_or_default(),
            bias: b.get(part(&b, 2 * all)).unwrap_or_default(),
            peephole: p.get(part(&p, 3 * hidden)).unwrap_or_default(),
            linear_before_reset: cx.attr_flag("linear_before_reset", false)?,
            input_forget: cx.attr_flag("input_forget", false)?,
        };
        let weights = w.get(part(&w, all * width)).unwrap_or_default();
        let mut inputs = vec![T::default(); length * batch * all];
        let dense = Matrix::dense(&x[..], width);
        multiply_add(length * batch, width, all, dense, Matrix::transposed(weights, width), &mut inputs);
        met_nan |= inputs.iter().any(|value| value.to_f64().is_nan());

        let start = |values: &[T]| -> Vec<T> {
            let row = |b: usize| state_row(direction, b) * hidden;
            (0..batch)
                .flat_map(|b| (0..hidden).map(move |j| (b, j)))
                .map(|(b, j)| values.get(row(b) + j).copied().unwrap_or_default())
                .collect()
        };
        let (mut h, mut c) = (start(&first_h), start(&first_c));
        for step in 0..length {
            let time = |b: usize| {
                let own = lengths.get(b).copied().filter(|&own| step < own)?;
                Some(if backwards { own - 1 - step } else { step })
            };
            let x_row = |b: usize| time(b).map(|t| if batch_first { b * length + t } else { t * batch + b });
            let sums = cell.recur(batch, &h, 0);
            let reset = cell.reset(batch, x_row, &inputs, &sums, &h);
            let states = h.chunks_exact_mut(hidden).zip(c.chunks_exact_mut(hidden));
            for (b, (h, c)) in states.enumerate() {
                let (Some(t), Some(row)) = (time(b), x_row(b)) else { continue };
                let x = inputs.get(row * all..(row + 1) * all).unwrap_or_default();
                let sums = sums.get(b * all..(b + 1) * all).unwrap_or_default();
                let reset = reset.get(b * hidden..(b + 1) * hidden).unwrap_or_default();
                cell.step(x, sums, reset, h, c);
                if kind == Kind::Lstm && c.iter().any(|c| c.to_f64().abs() > clip) {
                    return Err(Decline::unsupported(
                        "attribute 'clip' is set, but runtimes do not clip the cell state of an LSTM",
                    ));
                }
                let row = y_row(t, direction, b) * hidden;
                if let Some(to) = y.get_mut(row..row + hidden) {
                    to.copy_from_slice(h);
                }
            }
        }
        for (last, own) in [(&mut last_h, &h), (&mut last_c, &c)] {
            for (b, own) in own.chunks_exact(hidden).enumerate() {
                let row = state_row(direction, b) * hidden;
                if let Some(to) = last.get_mut(row..row + hidden) {
                    to.copy_from_slice(own);
                }
            }
        }
    }
    // The error of an activation's input is the rounding error of its terms; a saturated activation depends only on the sign.
    let largest = |values: &[T]| values.iter().fold(0.0f64, |most, value| most.max(value.to_f64().abs()));
    let states = largest(&y).max(largest(&first_h));
    let bound = largest(&x) * largest(&w) * width as f64 + states * largest(&r) * hidden as f64 + largest(&b);
    let cells = largest(&p) * largest(&first_c).max(largest(&last_c));
    let precise = if dtype == DType::Double { 1u64 << 47 } else { 1 << 18 } as f64;
    if bound + cells > precise {
        return Err(Decline::unsupported(
            "rounding of the operand of an activation changes the result of the activation",
        ));
    }
    // Kernels clamp inputs of activations, which converts NaN to a number.
    let is_nan = |value: &T| value.to_f64().is_nan();
    if met_nan || [&y, &last_h, &last_c].into_iter().any(|values| values.iter().any(is_nan)) {
        return Err(Decline::unsupported(
            "the operand of an activation is NaN, for which runtimes return different values",
        ));
    }
    let mut outputs = vec![T::write(dtype, &shape, y)?.into(), T::write(dtype, &state, last_h)?.into()];
    if kind == Kind::Lstm {
        outputs.push(T::write(dtype, &state, last_c)?.into());
    }
    Ok(outputs)
}
