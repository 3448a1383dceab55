//! `explain`: every kept node has a reason, every printed flag has the described effect, and every statement was tested by a trial.

use onnx_slice_fold::ir::text;
use onnx_slice_fold::{CauseKind, ErrorKind, Explanation, OnnxModel, Options};

fn model(source: &str) -> OnnxModel {
    OnnxModel::of(text::parse(&format!("<ir_version: 10, opset_import: [\"\" : 17]> {source}")).expect("it parses"))
}

fn explained(source: &str, names: &[&str]) -> Explanation {
    let names: Vec<String> = names.iter().map(|name| name.to_string()).collect();
    model(source).explain(&Options::new(), &names, 12).expect("it is explained").1
}

/// The Slice is an identity for an axis of up to 100 elements.
const FIRST: &str =
    "g (float[n,8] x) => (float[m,8] y) <int64[1] zero = {0}, int64[1] most = {100}, int64[1] axis = {0}> {
    part = Slice (x, zero, most, axis)
    y = Neg (part)
}";

/// Pairs of an axis are split and concatenated: an identity if the axis is a multiple of 2.
const PAIRS: &str = "g (float[n] x) => (float[m] y) <int64[1] two = {2}, int64[1] zero = {0}, int64[1] axis = {0}> {
    size = Shape (x)
    half = Div (size, two)
    even = Mul (half, two)
    part = Slice (x, zero, even, axis)
    y = Neg (part)
}";

/// A Slice that begins at `min(n, 7)`; the result is the whole for seven or more.
const LOW: &str =
    "g (float[n] x) => (float[m] y) <int64[1] seven = {7}, int64[1] end = {9223372036854775807}, int64[1] axis = {0}> {
    size = Shape (x)
    most = Max (size, seven)
    start = Sub (most, size)
    part = Slice (x, start, end, axis)
    y = Neg (part)
}";

#[test]
fn a_printed_flag_has_the_described_effect() {
    for (source, flag) in [(FIRST, "--dim n=..100"), (PAIRS, "--dim n=:2"), (LOW, "--dim n=7..")] {
        let told = explained(source, &[]);
        assert!(told.suggestions.iter().any(|found| found.flags == flag), "{flag}: {told}");
        for found in &told.suggestions {
            let options = Options::new().assumptions(found.assumptions.iter().cloned());
            let again = model(source).explain(&options, &[], 0).expect("it is explained").1;
            assert_eq!((again.nodes.1, again.tensors.1), (found.nodes, found.open), "{}", found.flags);
            assert!((found.nodes, found.open) < (told.nodes.1, told.tensors.1), "{} changes nothing", found.flags);
        }
    }
}

/// A product in int32 wraps, so nodes that depend on it are kept. The bound that excludes a wrap is suggested, with the product as its
/// reason.
#[test]
fn a_type_that_may_be_too_small_is_named_with_the_bound_that_removes_the_doubt() {
    let source = "g (float[n] x, float[n,m] z) => (y, u) <int64[1] zero = {0}, int64[1] most = {2147483647}> {
        size = Shape (x)
        small = Cast <to = 6> (size)
        square = Mul (small, small)
        end = Cast <to = 7> (square)
        y = Slice (x, zero, end)
        least = Min (end, most)
        part = Slice (z, zero, least)
        u = Neg (part)
    }";
    let told = explained(source, &[]);
    let text = told.to_string();
    assert!(text.contains("int32(n**2)") && text.contains("the int32 value of n**2 overflows if n >= 46341"), "{text}");
    assert!(!text.contains("wrapped__"), "{text}");
    let best = told.suggestions.first().map(|found| found.flags.as_str());
    assert_eq!(best, Some("--dim n=..46340"), "{text}");
    assert!(told.suggestions.iter().all(|found| !found.flags.contains("n=1")), "{text}");
}

#[test]
fn every_statement_was_tried() {
    let (_, told) = model(FIRST).explain(&Options::new(), &[], 0).expect("it is explained");
    assert!(told.suggestions.is_empty() && told.trials == (0, true), "{told}");
    // Exactly one trial.
    let (_, told) = model(FIRST).explain(&Options::new(), &[], 1).expect("it is explained");
    assert_eq!(told.trials, (1, true));
}

#[test]
fn every_kept_node_has_a_reason() {
    let source = "g (float[n,8] x, int64[k] i, float[3] c) => (y, z, r, u, s) <int64[1] axis = {1}, int64[1] zero = {0}, int64[1] four = {4}> {
        part = Slice (x, zero, four, axis)
        y = Gather (part, i)
        size = Shape (x)
        s = Identity (size)
        z = NonZero (x)
        r = RandomNormal <shape = [2, 3]> ()
        u = com.example.Mystery (c)
    }";
    let told = explained(source, &[]);
    let kinds: Vec<(&str, CauseKind)> = told.causes.iter().map(|cause| (cause.operator.as_str(), cause.kind)).collect();
    for expected in [
        ("Slice", CauseKind::Moves),
        ("Gather", CauseKind::Moves),
        ("NonZero", CauseKind::Values),
        ("RandomNormal", CauseKind::Random),
        ("com.example.Mystery", CauseKind::Operator),
        ("Shape", CauseKind::Sizes),
    ] {
        assert!(kinds.contains(&expected), "{expected:?} is not among {kinds:?}");
    }
    assert_eq!(told.causes.len(), told.nodes.1);
    let text = told.to_string();
    for reason in [
        "its indices 'i' depend on values of input 'i'",
        "4 of 8 elements on axis 1 from index 0",
        "NonZero node 'z': it depends on 'x', and thereby on values of input 'x'",
        "the rank of 1 tensor(s), first of 'u'",
    ] {
        assert!(text.contains(reason), "{reason} is not in\n{text}");
    }
}

#[test]
fn a_name_is_answered() {
    let told = explained(FIRST, &["part"]).to_string();
    assert!(told.contains("removed by --dim n=..100: 2 -> 1 nodes"), "{told}");
    let told = explained(FIRST, &["n"]).to_string();
    assert!(told.starts_with("size 'n': axis 0 of input 'x'; any size is possible"), "{told}");
    assert!(told.contains("--dim n=..100: 2 -> 1 nodes; valid only if n is at most 100"), "{told}");
    let gone = "g (float[n] x) => (y) { [nothing] a = Identity (x) y = Neg (a) }";
    let told = explained(gone, &["nothing"]).to_string();
    assert!(told.contains("Identity node 'nothing' was removed\n  "), "{told}");
    let told = explained(PAIRS, &["half"]).to_string();
    assert!(told.contains("Div node 'half': it computes floor(n/2); n is known only at run time"), "{told}");
    let error = model(FIRST).explain(&Options::new(), &["parts".to_string()], 1).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Extraction);
    assert_eq!(error.to_string(), "the model has no node, tensor or dim named 'parts'; did you mean 'part'?");
}
