//! Chains of nodes that are long, and the time and depth they take.

use onnx_slice_fold::Options;

use crate::support::{folded_unrun, operators};

/// However long a chain is, it is folded in time proportional to its length and without recursion.
#[test]
fn a_long_chain_of_factors() {
    let mut source = String::from(
        "<ir_version: 8, opset_import: [\"\" : 17]> g (float[n] x) => (y) <float up = {2}, float down = {0.5}> { v0 = Relu (x) ",
    );
    for i in 0..4000 {
        let factor = if i % 2 == 0 { "up" } else { "down" };
        source.push_str(&format!("v{} = Mul (v{i}, {factor}) ", i + 1));
    }
    source.push_str("y = Neg (v4000) }");
    let (model, report) = folded_unrun(&source, &Options::default());
    assert_eq!(report.fired.get("constant-chain"), Some(&3999));
    assert_eq!(operators(&model), ["Relu", "Neg"]);
}
