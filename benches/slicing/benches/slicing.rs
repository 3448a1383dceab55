//! Resolving, inferring and copying slices, compared with ndarray and tract.
//!
//! `cargo bench --manifest-path benches/slicing/Cargo.toml`. The compared functions differ in scope: ndarray supports numbers only
//! and clamps nothing, tract slices one axis with step 1. Each copy makes a new contiguous tensor on one thread.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use ndarray::{Array3, s};
use onnx_slice_fold::dim::{Dim, Scope};
use onnx_slice_fold::slicing::{self, Bound, Operand, Range, SliceRule, SliceSpec, onnx};
use onnx_slice_fold::tensor::Tensor;

const READING: slicing::Reading = onnx::reading(SliceRule::Agree);

fn spec(starts: &[i64], ends: &[i64], steps: &[i64]) -> SliceSpec {
    let operands = onnx::Operands {
        starts: Operand::constant(starts),
        ends: Operand::constant(ends),
        axes: None,
        steps: Some(Operand::constant(steps)),
    };
    onnx::slice(&operands, SliceRule::Agree).expect("the operands are valid")
}

fn resolve(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("resolve");
    group.bench_function("numbers", |bencher| {
        bencher.iter(|| slicing::resolve_integers(black_box(1000), black_box(Some(-7)), None, black_box(2), READING));
    });
    group.bench_function("ndarray, numbers", |bencher| {
        let array = Array3::<u8>::zeros((1000, 1, 1));
        bencher.iter(|| array.slice(s![black_box(-7isize)..;2, .., ..]).len());
    });
    group.bench_function("symbols", |bencher| {
        bencher.iter(|| {
            let scope = Scope::new();
            let dim = Dim::symbol(scope.named("S"));
            let end = Bound::At(scope.sub(&dim, &Dim::constant(3)));
            let range = Range::new(Bound::At(Dim::constant(-9)), end, Some(2)).expect("the step is not 0");
            slicing::resolve(&scope, &dim, &range, READING)
        });
    });
    group.bench_function("tract, symbols", |bencher| {
        use tract_core::internal::DimLike;
        use tract_core::prelude::{SymbolScope, ToDim};
        bencher.iter(|| {
            let scope = SymbolScope::default();
            let dim = scope.sym("S").to_dim();
            let start = dim.clone() - 9;
            (dim - 3 - start).divceil(2)
        });
    });
    group.finish();
}

fn infer(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("infer");
    let spec = spec(&[1, 0, -1], &[i64::MAX, 10, i64::MIN], &[1, 2, -1]);
    group.bench_function("symbols", |bencher| {
        let scope = Scope::new();
        let shape = [Dim::symbol(scope.named("N")), Dim::symbol(scope.named("S")), Dim::constant(64)];
        bencher.iter(|| slicing::infer(&scope, black_box(&spec), Some(&shape)));
    });
    group.bench_function("numbers", |bencher| {
        let scope = Scope::new();
        let shape = [8, 128, 64].map(Dim::constant);
        bencher.iter(|| slicing::infer(&scope, black_box(&spec), Some(&shape)));
    });
    group.bench_function("tract, symbols", |bencher| {
        use tract_core::ops::array::Slice;
        use tract_core::prelude::{DatumType, SymbolScope, ToDim, TypedFact, TypedOp};
        let scope = SymbolScope::default();
        let shape = [scope.sym("N").to_dim(), scope.sym("S").to_dim(), 64.to_dim()];
        let fact = TypedFact::dt_shape(DatumType::F32, shape);
        let slice = Slice::new(0, 1, fact.shape[0].clone());
        bencher.iter(|| black_box(&slice).output_facts(&[&fact]));
    });
    group.finish();
}

/// A name, and start, end and step of each axis.
type Pattern = (&'static str, [i64; 3], [i64; 3], [i64; 3]);

fn copy(criterion: &mut Criterion) {
    const DIMS: [usize; 3] = [64, 256, 256];
    const MAX: i64 = i64::MAX;
    const MIN: i64 = i64::MIN;
    let count = DIMS.iter().product::<usize>();
    let values: Vec<f32> = (0..count).map(|at| at as f32).collect();
    let array = Array3::from_shape_vec(DIMS, values.clone()).expect("the shape fits the values");
    let tract = tract_core::prelude::Tensor::from_shape(&DIMS, &values).expect("the shape fits the values");
    let tensor = Tensor::from_vec(&DIMS, values).expect("the shape fits the values");
    let patterns: [Pattern; 9] = [
        ("outer 1", [1, 0, 0], [MAX; 3], [1, 1, 1]),
        ("outer 2", [0; 3], [MAX; 3], [2, 1, 1]),
        ("outer -1", [-1, 0, 0], [MIN, MAX, MAX], [-1, 1, 1]),
        ("middle 1", [0, 1, 0], [MAX; 3], [1, 1, 1]),
        ("middle 2", [0; 3], [MAX; 3], [1, 2, 1]),
        ("middle -1", [0, -1, 0], [MAX, MIN, MAX], [1, -1, 1]),
        ("inner 1", [0, 0, 1], [MAX; 3], [1, 1, 1]),
        ("inner 2", [0; 3], [MAX; 3], [1, 1, 2]),
        ("inner -1", [0, 0, -1], [MAX, MAX, MIN], [1, 1, -1]),
    ];
    let mut group = criterion.benchmark_group("copy");
    for (name, starts, ends, steps) in patterns {
        let spec = spec(&starts, &ends, &steps);
        let view = slicing::view(&tensor, &spec).expect("the slice is valid");
        group.throughput(Throughput::Bytes(4 * view.shape().iter().product::<usize>() as u64));
        group.bench_function(BenchmarkId::new(name, "this"), |bencher| {
            bencher.iter(|| slicing::slice(black_box(&tensor), &spec));
        });
        group.bench_function(BenchmarkId::new(name, "ndarray"), |bencher| {
            let axes = [0usize, 1, 2].map(|axis| {
                // ndarray reverses the selected range, so an open one is selected whole.
                let start = if steps[axis] > 0 { starts[axis] as isize } else { 0 };
                ndarray::Slice::new(start, None, steps[axis] as isize)
            });
            bencher.iter(|| {
                black_box(&array).slice_each_axis(|axis| axes[axis.axis.index()]).as_standard_layout().into_owned()
            });
        });
        if let Some(axis) = (0..3).find(|&axis| starts[axis] == 1 && steps == [1, 1, 1]) {
            group.bench_function(BenchmarkId::new(name, "tract"), |bencher| {
                bencher.iter(|| black_box(&tract).slice(axis, 1, DIMS[axis]));
            });
        }
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(20);
    targets = resolve, infer, copy
}
criterion_main!(benches);
