//! Scan: infers and evaluates its body.

use super::iterate::{Iteration, Meter, iterate};
use crate::dim::Dim;
use crate::ir::{Data, Fact, GraphId};
use crate::ops::join::stem_of;
use crate::ops::pieces::{pick, stack};
use crate::ops::traits::NodeFacts;
use crate::ops::{Decline, EvalCx, EvalResult, InferCx, InferResult, Refusal, Site, axis_in};
use crate::tensor::Tensor;

/// The attributes and the layout of the operands.
struct ScanLayout {
    body: GraphId,
    /// The index of the first initial state: 1 in version 8, after the sequence lengths.
    first: usize,
    states: usize,
    scans: usize,
    /// The axis of each scanned operand.
    input_axes: Vec<i64>,
    input_reversed: Vec<bool>,
    /// The axes of the first scan outputs; the others have the default.
    output_axes: Vec<i64>,
    output_reversed: Vec<bool>,
}

impl ScanLayout {
    fn read(site: &Site<'_>, operands: usize) -> Result<ScanLayout, Refusal> {
        let body = site.attr_graph("body")?.ok_or_else(|| Refusal::invalid("attribute 'body' is missing"))?;
        let scans = site.attr_int("num_scan_inputs")?;
        let scans = scans.and_then(|scans| usize::try_from(scans).ok()).filter(|&scans| scans > 0);
        let scans = scans.ok_or_else(|| Refusal::invalid("attribute 'num_scan_inputs' is not a positive number"))?;
        let batched = site.version < 9;
        let first = usize::from(batched);
        let states = operands.checked_sub(first).and_then(|rest| rest.checked_sub(scans));
        let states = states.ok_or_else(|| Refusal::invalid("the node has fewer operands than scan inputs"))?;
        let ints = |name: &str| Ok::<_, Refusal>(site.attr_ints(name)?.unwrap_or_default().to_vec());
        let flags = |name: &str| Ok::<_, Refusal>(ints(name)?.into_iter().map(|flag| flag != 0).collect::<Vec<_>>());
        let for_each_scan = |len: usize, name: &str| match len {
            0 => Ok(()),
            len if len == scans => Ok(()),
            len => Err(Refusal::invalid(format!(
                "attribute '{name}' has {len} elements, but there are {scans} scan inputs"
            ))),
        };
        let directions = if batched { "directions" } else { "scan_input_directions" };
        let mut input_reversed = flags(directions)?;
        for_each_scan(input_reversed.len(), directions)?;
        input_reversed.resize(scans, false);
        let mut input_axes = if batched { Vec::new() } else { ints("scan_input_axes")? };
        for_each_scan(input_axes.len(), "scan_input_axes")?;
        input_axes.resize(scans, 0);
        let (output_axes, output_reversed) = if batched {
            (Vec::new(), Vec::new())
        } else {
            (ints("scan_output_axes")?, flags("scan_output_directions")?)
        };
        Ok(ScanLayout { body, first, states, scans, input_axes, input_reversed, output_axes, output_reversed })
    }

    fn output_axis(&self, scan: usize) -> i64 {
        self.output_axes.get(scan).copied().unwrap_or(0)
    }

    fn scan_operands(&self) -> std::ops::Range<usize> {
        let start = self.first + self.states;
        start..start + self.scans
    }
}

/// Returns the most specific of several equal dims.
fn agreed(sizes: &[Dim]) -> Option<Dim> {
    sizes.iter().find(|size| size.as_const().is_some()).or_else(|| sizes.first()).cloned()
}

/// Returns the number of iterations: the dim of the first scanned operand along its axis.
pub(super) fn iterations(view: &NodeFacts<'_>) -> Option<Dim> {
    let layout = ScanLayout::read(&view.site()?, view.node.inputs().len()).ok()?;
    // Version 8 runs the body for each sequence of a batch.
    if layout.first == 1 {
        return None;
    }
    let shape = view.shape(layout.scan_operands().start)?;
    shape.get(axis_in(*layout.input_axes.first()?, shape.len()).ok()?).cloned()
}

pub(super) fn infer(cx: &mut InferCx<'_>) -> InferResult {
    let layout = ScanLayout::read(cx, cx.inputs().len())?;
    let batched = layout.first == 1;
    let fact = |i: usize| cx.input(i).cloned().unwrap_or_default();
    let without = |fact: Fact, axes: usize| {
        let shape = fact.shape().and_then(|shape| shape.get(axes..)).map(<[Dim]>::to_vec);
        Fact::tensor(fact.dtype(), shape)
    };
    let (mut lengths, mut batches) = (Vec::new(), Vec::new());
    let mut trailing = Vec::with_capacity(layout.scans);
    for (operand, &axis) in layout.scan_operands().zip(&layout.input_axes) {
        let scanned = fact(operand);
        let Some(shape) = scanned.shape() else {
            trailing.push(Fact::tensor(scanned.dtype(), None));
            continue;
        };
        let mut shape = shape.to_vec();
        let at = if batched { 1 } else { axis_in(axis, shape.len())? };
        if at >= shape.len() {
            return Err(Refusal::invalid(format!("operand {operand} has no axis to iterate over")));
        }
        lengths.push(shape.remove(at));
        if batched {
            batches.push(shape.remove(0));
        }
        trailing.push(Fact::tensor(scanned.dtype(), Some(shape)));
    }
    let states = layout.first..layout.first + layout.states;
    let starts: Vec<Fact> = states.map(fact).collect();
    if batched {
        batches.extend(starts.iter().filter_map(|start| start.shape().and_then(<[Dim]>::first).cloned()));
    }
    let length = agreed(&lengths).unwrap_or_else(|| cx.fresh_dim());
    cx.walk.trips.remove(&cx.site.id);
    cx.walk.surely.remove(&cx.site.id);
    if let Some(decided) = length.as_const().and_then(|length| usize::try_from(length).ok()).filter(|_| !batched) {
        cx.walk.trips.insert(cx.site.id, decided);
        // The facts of values in the body hold for the only iteration.
        if decided == 1 {
            return once(cx, &layout, starts, trailing);
        }
    }
    let initial = starts.iter().map(|start| if batched { without(start.clone(), 1) } else { start.clone() }).collect();
    let run = Iteration {
        body: layout.body,
        leading: Vec::new(),
        initial,
        trailing,
        mark: cx.scope().fresh(&stem_of(cx)),
        number: None,
        supposed: Vec::new(),
        conditional: false,
    };
    let mut found = iterate(cx, &run)?;

    // Sequences of a batch may be shorter than the longest, or empty.
    let same_length = !batched || cx.input(0).is_none();
    let batch = batched.then(|| agreed(&batches).unwrap_or_else(|| cx.fresh_dim()));
    let at_least_once = cx.scope().ge(&length, &Dim::constant(1)).is_yes();
    if at_least_once && !batched {
        cx.walk.surely.insert(cx.site.id);
    }
    let mut results = Vec::with_capacity(cx.node.outputs().len());
    for (index, start) in starts.into_iter().enumerate() {
        let item = if batched { without(start.clone(), 1) } else { start.clone() };
        let last = match same_length {
            true if at_least_once => found.last(index, true),
            true => found.after(index, &item, &length),
            false => found.last(index, false),
        };
        results.push(match &batch {
            None if length.is_const(0) => start,
            None => last,
            Some(batch) => with_batch(last, batch),
        });
    }
    for (scan, index) in found.extra_outputs().enumerate() {
        // Runtimes reject a scan without iterations.
        let stacked = found.stacked((cx.model, &cx.walk.facts), index, layout.output_axis(scan), &length, false)?;
        results.push(match &batch {
            None => stacked,
            Some(batch) => with_batch(stacked, batch),
        });
    }
    Ok(results)
}

/// Infers a scan of one slice.
fn once(cx: &mut InferCx<'_>, layout: &ScanLayout, starts: Vec<Fact>, slices: Vec<Fact>) -> InferResult {
    let wanted = cx.model.graph(layout.body).inputs().len();
    let mut inputs = starts;
    inputs.extend(slices);
    if inputs.len() != wanted {
        return Err(Refusal::invalid(format!(
            "the subgraph has {wanted} inputs, but the node passes {}",
            inputs.len()
        )));
    }
    let mut results = cx.infer_graph(layout.body, inputs)?;
    if results.len() < layout.states {
        return Err(Refusal::invalid("the subgraph has fewer outputs than there are loop-carried values"));
    }
    for (scan, left) in results.iter_mut().skip(layout.states).enumerate() {
        let Some(element) = left.shape() else {
            *left = Fact::tensor(left.dtype(), None);
            continue;
        };
        let mut shape = element.to_vec();
        shape.insert(axis_in(layout.output_axis(scan), shape.len() + 1)?, Dim::constant(1));
        // An additional dim of 1 does not change the order of elements.
        let elements = left.elements();
        let stacked = Fact::tensor(left.dtype(), Some(shape));
        *left = elements.into_iter().fold(stacked, Fact::with_elements);
    }
    Ok(results)
}

fn with_batch(fact: Fact, batch: &Dim) -> Fact {
    let shape = fact.shape().map(|shape| std::iter::once(batch).chain(shape).cloned().collect());
    Fact::tensor(fact.dtype(), shape)
}

pub(super) fn eval(cx: &mut EvalCx<'_>) -> EvalResult {
    let layout = ScanLayout::read(cx, cx.inputs().len())?;
    let operands = |range: std::ops::Range<usize>| range.map(|i| cx.tensor(i).cloned()).collect::<Result<Vec<_>, _>>();
    let states = operands(layout.first..layout.first + layout.states)?;
    let scans = operands(layout.scan_operands())?;
    if layout.first == 0 {
        let mut meter = Meter::new(cx, layout.body);
        return Ok(run(cx, &layout, states, &scans, &mut meter)?.into_iter().map(Data::Tensor).collect());
    }
    let first = scans.first().map(Tensor::shape).unwrap_or_default();
    let (&[batch, length], _) =
        first.split_first_chunk().ok_or_else(|| Decline::invalid("a scan input has no axis to iterate over"))?;
    if let Some(lengths) = cx.optional_tensor(0)? {
        let lengths =
            lengths.to_i64s().ok_or_else(|| Decline::invalid("the operand 'sequence_lens' has no integer type"))?;
        if lengths.iter().any(|&given| usize::try_from(given) != Ok(length)) {
            return Err(Decline::unsupported(
                "the elements of 'sequence_lens' differ, so that part of the outputs is undefined",
            ));
        }
    }
    let mut columns: Vec<Vec<Tensor>> = Vec::new();
    let mut meter = Meter::new(cx, layout.body);
    for item in 0..batch {
        meter.iteration(cx)?;
        let of_item = |tensors: &[Tensor]| tensors.iter().map(|t| pick(cx, t, 0, item)).collect::<Result<Vec<_>, _>>();
        let results = run(cx, &layout, of_item(&states)?, &of_item(&scans)?, &mut meter)?;
        columns.resize(results.len(), Vec::new());
        for (column, result) in columns.iter_mut().zip(results) {
            column.push(result);
        }
    }
    if columns.is_empty() {
        return Err(Decline::unsupported("the batch is empty, so that the shapes of the outputs are unknown"));
    }
    columns.iter().map(|column| Ok(Data::Tensor(stack(cx, column, 0)?))).collect()
}

/// Runs all iterations over one batch element of the scanned tensors.
fn run(
    cx: &EvalCx<'_>,
    layout: &ScanLayout,
    mut states: Vec<Tensor>,
    scans: &[Tensor],
    meter: &mut Meter,
) -> Result<Vec<Tensor>, Decline> {
    let mut length = None;
    let mut axes = Vec::with_capacity(scans.len());
    for (tensor, &axis) in scans.iter().zip(&layout.input_axes) {
        let axis = axis_in(axis, tensor.rank())?;
        axes.push(axis);
        let size = tensor.shape().get(axis).copied();
        if length.is_some() && length != size {
            return Err(Decline::invalid("the scan inputs have different lengths"));
        }
        length = size;
    }
    let made = cx.model.graph(layout.body).outputs().len();
    let Some(extra) = made.checked_sub(states.len()) else {
        return Err(Decline::invalid("the subgraph has fewer outputs than state variables"));
    };
    if cx.model.graph(layout.body).inputs().len() != states.len() + scans.len() {
        return Err(Decline::invalid("the inputs of the subgraph do not match the operands of the node"));
    }
    let shapes: Vec<Vec<usize>> = states.iter().map(|state| state.shape().to_vec()).collect();
    let mut left: Vec<Vec<Tensor>> = vec![Vec::new(); extra];
    let length = length.unwrap_or(0);
    for at in 0..length {
        meter.iteration(cx)?;
        let mut inputs: Vec<Data> = states.drain(..).map(Data::Tensor).collect();
        for ((tensor, &axis), &reversed) in scans.iter().zip(&axes).zip(&layout.input_reversed) {
            let index = if reversed { length - 1 - at } else { at };
            inputs.push(Data::Tensor(pick(cx, tensor, axis, index)?));
        }
        let outputs = cx.evaluate_graph(layout.body, inputs)?.into_iter().map(|output| match output {
            Data::Tensor(tensor) => Ok(tensor),
            _ => Err(Decline::invalid("an output of the subgraph is not a tensor")),
        });
        let mut outputs = outputs.collect::<Result<Vec<_>, _>>()?.into_iter();
        states.extend(outputs.by_ref().take(shapes.len()));
        if states.iter().zip(&shapes).any(|(state, shape)| state.shape() != shape.as_slice()) {
            return Err(Decline::invalid("the shape of a state variable changes between iterations"));
        }
        for (column, output) in left.iter_mut().zip(outputs) {
            column.push(output);
        }
    }
    for (scan, mut column) in left.into_iter().enumerate() {
        if layout.output_reversed.get(scan) == Some(&true) {
            column.reverse();
        }
        states.push(stack(cx, &column, layout.output_axis(scan))?);
    }
    Ok(states)
}
