//! Search operators that run a decoder in a loop, and containers of compiled subgraphs.
//!
//! | operator | result |
//! |---|---|
//! | BeamSearch, WhisperBeamSearch | int32 `[B, num_return_sequences, max_length]`, scores `[B, num_return_sequences]`, scores of each step `[steps, B, num_beams, V]` |
//! | GreedySearch, Sampling | int32 `[B, max_length]`, logits `[B, V]` |
//! | BifurcationDetector | the tokens `[T]`, the start of the next match |
//! | EPContext, Snpe | unknown: defined by the container |

use super::movement::size_at;
use super::{dim, like, operator, or_fresh};
use crate::dim::Dim;
use crate::ir::Fact;
use crate::ops::{InferCx, InferResult, Operator, Refusal};
use crate::tensor::DType;

pub(in crate::ops) const OPERATORS: &[Operator] = &[
    operator("BeamSearch", infer_beams),
    operator("BifurcationDetector", infer_bifurcation),
    operator("EPContext", infer_container).random(),
    operator("GreedySearch", infer_greedy),
    operator("Sampling", infer_sampling).random(),
    operator("Snpe", infer_container).random(),
    operator("WhisperBeamSearch", infer_whisper_beams),
];

/// Returns the size of the vocabulary, if an attribute defines it.
fn vocabulary(cx: &InferCx<'_>) -> Result<Dim, Refusal> {
    let size = cx.attr_int("vocab_size")?.filter(|&size| size > 0);
    Ok(or_fresh(cx, size.map(Dim::constant)))
}

fn sequences(cx: &InferCx<'_>, mut shape: Vec<Dim>) -> Fact {
    shape.push(size_at(cx, 1, 0));
    Fact::tensor(Some(DType::Int32), Some(shape))
}

fn infer_beams(cx: &mut InferCx<'_>) -> InferResult {
    let scores = cx.dtype(5).or(cx.dtype(6));
    let (batch, returned) = (or_fresh(cx, dim(cx, 0, 0)), size_at(cx, 4, 0));
    // The number of steps depends on the length of the decoder's initial input.
    let steps = vec![cx.fresh_dim(), batch.clone(), size_at(cx, 3, 0), vocabulary(cx)?];
    Ok(vec![
        sequences(cx, vec![batch.clone(), returned.clone()]),
        Fact::tensor(scores, Some(vec![batch, returned])),
        Fact::tensor(scores, Some(steps)),
    ])
}

fn infer_whisper_beams(cx: &mut InferCx<'_>) -> InferResult {
    let mut facts = infer_beams(cx)?;
    let scores = cx.dtype(5).or(cx.dtype(6));
    let batch = or_fresh(cx, dim(cx, 0, 0));
    facts.extend([Fact::unknown(), Fact::tensor(scores, Some(vec![batch]))]);
    Ok(facts)
}

fn infer_greedy(cx: &mut InferCx<'_>) -> InferResult {
    let batch = or_fresh(cx, dim(cx, 0, 0));
    Ok(vec![sequences(cx, vec![batch])])
}

fn infer_sampling(cx: &mut InferCx<'_>) -> InferResult {
    let batch = or_fresh(cx, dim(cx, 0, 0));
    let logits = Fact::tensor(cx.dtype(3), Some(vec![batch.clone(), vocabulary(cx)?]));
    Ok(vec![sequences(cx, vec![batch]), logits])
}

fn infer_bifurcation(cx: &mut InferCx<'_>) -> InferResult {
    let tokens = Fact::tensor(cx.dtype(0).or(cx.dtype(1)), Some(vec![cx.fresh_dim()]));
    Ok(vec![tokens, like(cx, 2)])
}

fn infer_container(cx: &mut InferCx<'_>) -> InferResult {
    Ok(vec![Fact::unknown(); cx.output_count()])
}

#[cfg(test)]
mod tests {
    use crate::ops::single::Single;
    use crate::tensor::DType::{Float, Int32, Int64};

    fn node(op_type: &str) -> Single {
        Single::new(op_type, 17).in_domain("com.microsoft")
    }

    #[test]
    fn searches() {
        let beams = |name: &str| {
            let node = node(name).output().output().input(Int32, "B S").values(&[1], &[20i32]).absent();
            node.values(&[1], &[4i32]).values(&[1], &[2i32]).input(Float, "1").with("vocab_size", 99)
        };
        let known = ["int32[B, 2, 20]", "float[B, 2]", "float[?, B, 4, 99]"];
        assert_eq!(beams("BeamSearch").infer(), known);
        let whisper = beams("WhisperBeamSearch").output().output().infer();
        assert_eq!(whisper[..3], known);
        assert_eq!(whisper[4], "float[B]");
        let greedy = node("GreedySearch").input(Int32, "B S").input(Int32, "1");
        assert_eq!(greedy.infer(), ["int32[B, ?]"]);
        let sampling = node("Sampling").output().input(Int32, "B S").values(&[1], &[20i32]).absent();
        assert_eq!(sampling.input(Float, "1").infer(), ["int32[B, 20]", "float[B, ?]"]);
        let detector = node("BifurcationDetector").output().input(Int64, "A").input(Int64, "C").input(Int64, "");
        assert_eq!(detector.infer(), ["int64[?]", "int64[]"]);
    }

    #[test]
    fn containers() {
        assert_eq!(node("EPContext").output().input(Float, "N").infer(), ["?", "?"]);
    }
}
