//! The real exports in `models/`: the folded form of each, as text.

use std::path::Path;

use crate::support::{close, inputs, run, symbols};
use onnx_slice_fold::ir::{Model, text};
use onnx_slice_fold::{OnnxModel, Options};

fn document(name: &str) -> OnnxModel {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("models").join(format!("{name}.onnx"));
    OnnxModel::open(path).expect("the model opens")
}

fn nodes(model: &Model) -> Vec<String> {
    let graph = model.graph(model.main());
    graph.nodes().filter_map(|id| model.node(id)).map(|node| node.operator()).collect()
}

macro_rules! exports {
    ($($name:ident),* $(,)?) => {
        $(#[test]
        fn $name() {
            let mut document = document(stringify!($name));
            document.fold(&Options::default()).expect("the model folds");
            // Weights would hide the structure.
            let shown: Vec<String> = document
                .text()
                .lines()
                .map(|line| match line.split_once(" = {") {
                    Some((head, elements)) if elements.len() > 60 => format!("{head} = {{…}}"),
                    _ => line.to_string(),
                })
                .collect();
            insta::assert_snapshot!(shown.join("\n"));
        })*
    };
}

exports!(
    bert_dy18d,
    focus_ts13d,
    slice_zoo_ts13d,
    channel_shuffle_ts13d,
    scripted_loop_slice_ts16d,
    lstm_last_ts14d,
    tf_cond_slice_13d,
    tf_masks_17d_custom,
);

/// Models whose operators are all evaluated by this program give equal results before and after folding.
#[test]
fn folded_exports_compute_the_same() {
    for name in
        ["focus_ts13d", "slice_zoo_ts13d", "channel_shuffle_ts13d", "tf_cond_slice_13d", "scripted_loop_slice_ts16d"]
    {
        let original = document(name).model().clone();
        let mut folded = document(name);
        folded.fold(&Options::default()).expect("the model folds");
        let sizes = symbols(&original).into_iter().enumerate().map(|(i, symbol)| (symbol, 8 + i)).collect();
        let given = inputs(&original, &sizes, 3);
        let Ok(before) = run(&original, given.clone()) else {
            panic!("{name} is not evaluated: {:?}", run(&original, given))
        };
        let after = run(folded.model(), given).expect("the folded model runs");
        assert!(before.iter().zip(&after).all(|(a, b)| close(a, b)), "{name} differs");
    }
}

/// A second run changes nothing.
#[test]
fn folding_settles() {
    for name in ["bert_dy18d", "focus_ts13d", "slice_zoo_ts13d", "tf_masks_17d_custom"] {
        let mut once = document(name);
        once.fold(&Options::default()).expect("the model folds");
        let mut twice = OnnxModel::of(once.model().clone());
        twice.fold(&Options::default()).expect("the folded model folds");
        assert_eq!(nodes(once.model()), nodes(twice.model()), "{name}");
    }
}

/// The same input gives the same text in each run.
#[test]
fn folding_is_deterministic() {
    let fold = || {
        let mut document = document("slice_zoo_ts13d");
        document.fold(&Options::default()).expect("the model folds");
        text::print(document.model())
    };
    assert_eq!(fold(), fold());
}
