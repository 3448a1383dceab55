//! How long models of constants take to evaluate: `cargo bench --bench evaluate -- MODEL ...` prints the shortest of three runs of each, in
//! milliseconds. `scripts/compare_speed.py` makes models and compares with ONNX Runtime.

use std::time::Instant;

use onnx_slice_fold::Document;
use onnx_slice_fold::ops::{Budget, evaluate_graph};
use onnx_slice_fold::slicing::Rule;

fn main() -> anyhow::Result<()> {
    for path in std::env::args().skip(1).filter(|argument| !argument.starts_with("--")) {
        let document = Document::open(&path)?;
        let model = document.model();
        let mut shortest = f64::INFINITY;
        for _ in 0..3 {
            let start = Instant::now();
            let results = evaluate_graph(model, model.main(), Vec::new(), &Budget::default(), Rule::default());
            shortest = shortest.min(start.elapsed().as_secs_f64() * 1e3);
            results.map_err(|decline| anyhow::anyhow!("{path}: {decline}"))?;
        }
        println!("{path} {shortest:.2}");
    }
    Ok(())
}
