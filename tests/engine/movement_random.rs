//! Random graphs of data movement, folded and compared with the original at every small size: rules must also be correct in combination.

use std::collections::BTreeMap;

use crate::support::{Numbers, inputs, run};
use onnx_slice_fold::ir::text;
use onnx_slice_fold::{OnnxModel, Options};

/// A value of the graph: its name, and its constant dims.
#[derive(Clone)]
struct Value {
    name: String,
    dims: Vec<Option<i64>>,
}

/// A graph under construction.
struct Writer {
    numbers: Numbers,
    values: Vec<Value>,
    constants: Vec<String>,
    nodes: Vec<String>,
}

const HUGE: [i64; 2] = [i64::MAX, i64::MIN];

impl Writer {
    fn new(seed: u64) -> Writer {
        let x = Value { name: "x".into(), dims: vec![None, Some(4), Some(6)] };
        let y = Value { name: "y".into(), dims: vec![Some(5), None] };
        let values = vec![x, y];
        Writer { numbers: Numbers::new(seed), values, constants: Vec::new(), nodes: Vec::new() }
    }

    fn below(&mut self, end: usize) -> usize {
        (self.numbers.next() % end.max(1) as u64) as usize
    }

    fn between(&mut self, low: i64, high: i64) -> i64 {
        low + self.below((high - low + 1) as usize) as i64
    }

    fn constant(&mut self, numbers: &[i64]) -> String {
        let name = format!("c{}", self.constants.len());
        let list = numbers.iter().map(i64::to_string).collect::<Vec<_>>().join(",");
        self.constants.push(format!("int64[{}] {name} = {{{list}}}", numbers.len()));
        name
    }

    fn scalar(&mut self, number: i64) -> String {
        let name = format!("c{}", self.constants.len());
        self.constants.push(format!("int64 {name} = {{{number}}}"));
        name
    }

    fn push(&mut self, dims: Vec<Option<i64>>, node: String) -> Value {
        let name = format!("v{}", self.nodes.len());
        self.nodes.push(format!("{name} = {node}"));
        let value = Value { name, dims };
        self.values.push(value.clone());
        value
    }

    /// Prefers recent values, so that chains form.
    fn pick(&mut self) -> Value {
        let last = self.values.len() - 1;
        let back = if self.below(3) == 0 { self.below(self.values.len()) } else { self.below(2).min(last) };
        self.values[last - back].clone()
    }

    fn bound(&mut self) -> i64 {
        if self.below(6) == 0 { HUGE[self.below(2)] } else { self.between(-7, 7) }
    }

    fn sliced(&mut self, of: &Value, axis: usize, start: i64, end: i64, step: i64) -> Value {
        let mut dims = of.dims.clone();
        dims[axis] = dims[axis].map(|dim| {
            let at = |bound: i64| if bound < 0 { bound.saturating_add(dim) } else { bound };
            let (mut at, stop) = (at(start), at(end));
            let (low, high) = if step > 0 { (0, dim) } else { (0, dim - 1) };
            at = at.max(low).min(high.max(low));
            let mut count = 0;
            while (0..dim).contains(&at) && if step > 0 { at < stop } else { at > stop.max(-1) } {
                count += 1;
                at += step;
            }
            count
        });
        let along = if self.below(2) == 0 { axis as i64 } else { axis as i64 - of.dims.len() as i64 };
        let operands = [start, end, along, step].map(|number| self.constant(&[number]));
        self.push(dims, format!("Slice ({}, {})", of.name, operands.join(", ")))
    }

    fn slice(&mut self, of: &Value) -> Option<Value> {
        let axis = self.below(of.dims.len());
        let step = [1, 1, 1, 2, 3, -1, -2][self.below(7)];
        let (start, end) = (self.bound(), self.bound());
        // Runtimes interpret this end differently.
        let end = if step < 0 && end == i64::MAX { i64::MIN } else { end };
        Some(self.sliced(of, axis, start, end, step))
    }

    fn step(&mut self) -> Option<Value> {
        let of = self.pick();
        let rank = of.dims.len();
        if rank == 0 || rank > 4 {
            return None;
        }
        let axis = self.below(rank);
        match self.below(17) {
            0..5 => self.slice(&of),
            5 => {
                // A Concat of two parts, which may be adjacent.
                let (a, m, b) = (self.bound(), self.bound(), self.bound());
                let next = if self.below(3) == 0 { self.bound() } else { m };
                let open = self.below(2) == 0;
                let first = self.sliced(&of, axis, if open { 0 } else { a }, m, 1);
                let second = self.sliced(&of, axis, next, if open { i64::MAX } else { b }, 1);
                let mut dims = of.dims.clone();
                dims[axis] = first.dims[axis].zip(second.dims[axis]).map(|(a, b)| a + b);
                Some(self.push(dims, format!("Concat <axis = {axis}> ({}, {})", first.name, second.name)))
            }
            6 => {
                let mut dims = of.dims.clone();
                dims[axis] = dims[axis].map(|dim| 2 * dim);
                Some(self.push(dims, format!("Concat <axis = {axis}> ({0}, {0})", of.name)))
            }
            7 => {
                let pads: Vec<i64> = (0..2 * rank).map(|_| self.between(0, 2)).collect();
                let dims = (0..rank).map(|at| Some(of.dims[at]? + pads[at] + pads[rank + at])).collect();
                let pads = self.constant(&pads);
                let fill = self.scalar(7);
                Some(self.push(dims, format!("Pad ({}, {pads}, {fill})", of.name)))
            }
            8 | 9 => {
                let mut perm: Vec<usize> = (0..rank).collect();
                perm.rotate_left(self.below(rank));
                let dims = perm.iter().map(|&at| of.dims[at]).collect();
                Some(self.push(dims, format!("Transpose <perm = {perm:?}> ({})", of.name)))
            }
            10 => {
                let at = self.below(rank + 1);
                let mut dims = of.dims.clone();
                dims.insert(at, Some(1));
                let axes = self.constant(&[at as i64]);
                Some(self.push(dims, format!("Unsqueeze ({}, {axes})", of.name)))
            }
            11 => {
                let index = self.between(-3, 2);
                let one = if index == -1 { i64::MAX } else { index + 1 };
                let taken = self.sliced(&of, axis, index, one, 1);
                let mut dims = taken.dims.clone();
                dims.remove(axis);
                let axes = self.constant(&[axis as i64]);
                Some(self.push(dims, format!("Squeeze ({}, {axes})", taken.name)))
            }
            12 => {
                let node = ["Neg", "Abs", "Sign"][self.below(3)];
                Some(self.push(of.dims.clone(), format!("{node} ({})", of.name)))
            }
            13 => {
                let other = if self.below(2) == 0 { of.name.clone() } else { self.scalar(3) };
                Some(self.push(of.dims.clone(), format!("Add ({}, {other})", of.name)))
            }
            14 => {
                let dim = of.dims[axis].filter(|dim| dim % 2 == 0 && *dim > 0)?;
                let names = [0, 1].map(|part| format!("v{}_{part}", self.nodes.len()));
                self.nodes.push(format!("{} = Split <axis = {axis}> ({})", names.join(", "), of.name));
                let mut dims = of.dims.clone();
                dims[axis] = Some(dim / 2);
                let parts = names.map(|name| Value { name, dims: dims.clone() });
                self.values.extend(parts.clone());
                if self.below(2) == 0 {
                    let [a, b] = &parts;
                    return Some(self.push(of.dims, format!("Concat <axis = {axis}> ({}, {})", a.name, b.name)));
                }
                parts.into_iter().next()
            }
            15 => {
                let dim = of.dims[axis].filter(|dim| *dim > 1)?;
                let (start, step) = (self.between(0, dim - 1), [1, 1, -1, 2][self.below(4)]);
                let listed: Vec<i64> = (0..3).map(|k| start + k * step).filter(|at| (0..dim).contains(at)).collect();
                let mut dims = of.dims.clone();
                dims[axis] = Some(listed.len() as i64);
                let indices = self.constant(&listed);
                Some(self.push(dims, format!("Gather <axis = {axis}> ({}, {indices})", of.name)))
            }
            _ => {
                // Concatenates rows, or inserts a broadcast axis.
                if rank > 1 && self.below(2) == 0 {
                    let rest: Vec<i64> = of.dims[2..].iter().copied().collect::<Option<_>>()?;
                    let codes: Vec<i64> = std::iter::once(-1).chain(rest).collect();
                    let both = of.dims[0].zip(of.dims[1]).map(|(a, b)| a * b);
                    let dims = std::iter::once(both).chain(of.dims[2..].iter().copied()).collect();
                    let codes = self.constant(&codes);
                    return Some(self.push(dims, format!("Reshape ({}, {codes})", of.name)));
                }
                let sizes: Vec<i64> = std::iter::once(3).chain((0..rank).map(|_| 1)).collect();
                let dims = std::iter::once(Some(3)).chain(of.dims.iter().copied()).collect();
                let sizes = self.constant(&sizes);
                Some(self.push(dims, format!("Expand ({}, {sizes})", of.name)))
            }
        }
    }

    fn source(mut self, steps: usize) -> String {
        while self.nodes.len() < steps {
            self.step();
        }
        let last = self.values.len() - 1;
        let mut outputs = vec![self.values[last].name.clone()];
        let at = self.below(self.values.len());
        let other = self.values[at].name.clone();
        if !outputs.contains(&other) && other.starts_with('v') {
            outputs.push(other);
        }
        format!(
            "<ir_version: 8, opset_import: [\"\" : 17]>\ng (int64[n,4,6] x, int64[5,n] y) => ({}) <{}> {{\n{}\n}}",
            outputs.join(", "),
            self.constants.join(", "),
            self.nodes.join("\n")
        )
    }
}

#[test]
fn random_graphs_of_data_movement_compute_the_same() {
    let (mut compared, mut before, mut after) = (0, 0, 0);
    for seed in 1..=1500u64 {
        let source = Writer::new(seed).source(3 + (seed % 6) as usize);
        let original = text::parse(&source).unwrap_or_else(|error| panic!("{error}\n{source}"));
        let mut document = OnnxModel::of(original.clone());
        document.fold(&Options::default()).unwrap_or_else(|error| panic!("{error}\n{source}"));
        let folded = document.model();
        for size in [5usize, 0, 1, 2, 3, 4, 7] {
            let given = inputs(&original, &BTreeMap::from([("n".to_string(), size)]), seed);
            let Ok(expected) = run(&original, given.clone()) else { continue };
            let say = || format!("seed {seed}, size {size}\n{source}\n{}", text::print(folded));
            let found = run(folded, given).unwrap_or_else(|error| panic!("{error}\n{}", say()));
            let same = expected.len() == found.len() && expected.iter().zip(&found).all(|(a, b)| a.same(b));
            assert!(same, "{}", say());
            compared += 1;
        }
        before += original.graph(original.main()).node_count();
        after += folded.graph(folded.main()).node_count();
        assert!(folded.graph(folded.main()).node_count() <= original.graph(original.main()).node_count(), "{source}");
    }
    assert!(compared > 7_000, "{compared}");
    assert!(after * 3 < before * 2, "{after} of {before} nodes are left");
}
