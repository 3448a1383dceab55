//! Times the evaluation of a model of constants: `cargo bench --bench evaluate -- MODEL RUNS` prints the minimum over the runs, in
//! milliseconds. `scripts/compare_speed.py` generates models and compares with ONNX Runtime.

use std::time::Instant;

use onnx_slice_fold::OnnxModel;
use onnx_slice_fold::ops::{Budget, evaluate_graph};
use onnx_slice_fold::slicing::SliceRule;

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let [path, runs] = arguments.as_slice() else { return Ok(()) };
    let document = OnnxModel::open(path)?;
    let model = document.model();
    let mut shortest = f64::INFINITY;
    for _ in 0..runs.parse::<usize>()? {
        let start = Instant::now();
        let results = evaluate_graph(model, model.main(), Vec::new(), &Budget::default(), SliceRule::default());
        shortest = shortest.min(start.elapsed().as_secs_f64() * 1e3);
        results.map_err(|decline| anyhow::anyhow!("{path}: {decline}"))?;
    }
    println!("{shortest:.2}");
    Ok(())
}
