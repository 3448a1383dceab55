//! Reasons of rules that decline: `explain --rule` on fixtures of `tests/rules` in which one premise fails.

use std::collections::BTreeSet;

use onnx_slice_fold::OnnxModel;
use onnx_slice_fold::ir::text;
use onnx_slice_fold::rewrite::{GUARDS, SHARED, rules};

use crate::rules::{FOLDERS, Fixture, Kind};

/// Returns the names of the premises that fail at the nodes of a fixture, with this rule only.
fn failed(fixture: &Fixture, rule: &str) -> BTreeSet<&'static str> {
    let model = text::parse(&fixture.source).expect("the fixture parses");
    let (_, told) =
        OnnxModel::of(model).explain_rule(&fixture.options(Some(rule)), rule, None).expect("it is explained");
    told.nodes.iter().filter_map(|at| at.failed.as_ref()).map(|failed| failed.name).collect()
}

/// Fixtures in which the rule names another premise than the broken one, by rule: the broken premises, and the reason.
const OTHERS: &[(&str, &[&str], &str)] = &[
    ("attention-heads", &["heads-known"], "a Reshape with an open number of heads is not read as the parting of heads"),
    (
        "axes-before-functions",
        &["by-element"],
        "an operand with axes of its own would be laid out, which takes the node that is saved",
    ),
    ("columns-by-choice", &["pays"], "columns that remain are not read as broadcast"),
    (
        "front-of-longer",
        &["by-place", "no-output"],
        "the function of positions ends before the node that breaks the premise",
    ),
    ("lookup-in-rows", &["rows"], "indices of other rows do not begin at the front of the data"),
    (
        "movement",
        &["no-convolution", "no-embedding", "no-sibling", "of-its-kind"],
        "after the program that breaks the premise the rule tries others, and names the premise of the last one",
    ),
    (
        "normalization-as-quotient",
        &["epsilon-read_of_several"],
        "an epsilon of several elements is not read as a normalization",
    ),
    ("range-and-sum", &["open-length"], "a Range of known length is a constant"),
    ("repeats-to-lookup", &["beside", "few-places"], "the sizes are looked at first"),
    ("saturated-lookup", &["pays"], "the rule looks for a longer chain of functions of positions"),
    (
        "slices-to-split",
        &["known-places", "not-squeezed"],
        "Slices at unknown places, or squeezed ones, do not count as parts",
    ),
    (
        "spelled-attention",
        &["in-range"],
        "a factor out of range is not read as the scale, so no product of scores is found",
    ),
    ("spelled-rotary", &["own-length", "pays"], "angles of another length are not read as those of the positions"),
    (
        "spread-before-broadcast",
        &["cannot-fail", "no-normalized-sum", "no-quantized-constant"],
        "the walk ends at the node that breaks the premise",
    ),
    (
        "spread-before-product",
        &["cannot-fail", "no-constant-stack", "no-normalization"],
        "the walk ends at the node that breaks the premise",
    ),
    (
        "stream-in-rows",
        &["row-by-row"],
        "a node that is not computed by rows ends the stream, and a shorter stream saves nothing",
    ),
    (
        "table-of-positions",
        &["by-place", "no-circle", "no-output", "pays"],
        "the function of positions ends before the node that breaks the premise",
    ),
];

/// Each fixture `RULE__not_PREMISE` breaks one premise. The rule names that premise, except in the listed fixtures. It always names a
/// premise of its record, or a shared one.
#[test]
fn a_miss_names_the_broken_premise() {
    let shared: BTreeSet<&str> =
        SHARED.iter().chain(GUARDS.iter().map(|(premise, _)| premise)).map(|(name, _)| *name).collect();
    let mut wrong = Vec::new();
    for fixture in FOLDERS.iter().flat_map(|folder| Fixture::of(folder)) {
        let Kind::Not(name, broken) = fixture.kind() else { continue };
        // A pass visits no single nodes.
        let Some(rule) = rules().find(|rule| rule.name == name) else { continue };
        let failed = failed(&fixture, &name);
        let is_known =
            |premise: &&&str| shared.contains(**premise) || rule.premises.iter().any(|(own, _)| own == *premise);
        if let Some(premise) = failed.iter().find(|premise| !is_known(premise)) {
            wrong.push(format!("{}: {premise} is no premise of the rule", fixture.name));
        }
        let case = fixture.name.split("__not_").nth(1).unwrap_or_default();
        let is_listed = OTHERS.iter().any(|(rule, cases, _)| *rule == name && cases.contains(&case));
        match (failed.contains(broken.as_str()), is_listed) {
            (true, true) => wrong.push(format!("{}: it names the broken premise, and is listed", fixture.name)),
            (false, false) => wrong.push(format!("{}: it names {failed:?}", fixture.name)),
            _ => {}
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// One case of each kind: the premise is about a dim with an open question, a constant, the consumers, the types, the opset or a runtime.
#[test]
fn ten_rules_give_their_reasons() {
    let cases = [
        ("identity", "same-shape__not_same-shape"),
        ("identity", "cast-same-type__not_same-type"),
        ("neutral", "neutral-element__not_neutral"),
        ("neutral", "comparison-of-casts__not_only-reader"),
        ("index", "lookup-in-rows__not_looked-up"),
        ("identity", "concat-of-nothing__not_agrees"),
        ("fuse", "spelled-activation__not_known"),
        ("fuse", "matmul-add-to-gemm__not_one-reader"),
        ("slices", "slices-to-split__not_no-overlap"),
        ("strided_slice", "lower-strided-slice__not_same-reading"),
    ];
    let mut told = String::new();
    for (folder, wanted) in cases {
        let found = Fixture::of(folder).into_iter().find(|fixture| fixture.name.starts_with(wanted));
        let fixture = found.unwrap_or_else(|| panic!("there is no fixture {wanted} in {folder}"));
        let rule = fixture.name.split("__").next().expect("a fixture names its rule");
        let model = text::parse(&fixture.source).expect("the fixture parses");
        let (_, explained) =
            OnnxModel::of(model).explain_rule(&fixture.options(Some(rule)), rule, None).expect("it is explained");
        told.push_str(&format!("# {}\n{explained}\n", fixture.name));
    }
    insta::assert_snapshot!(told);
}

/// The name of a node, or of its result, restricts the answer to that node.
#[test]
fn one_node_is_selected_by_name() {
    let source = "<ir_version: 10, opset_import: [\"\" : 17]> g (float[n] x, float[m] z) => (float[k] y, float[l] w)
        <int64[1] five = {5}> { y = Reshape (x, five) w = Reshape (z, five) }";
    let open = || OnnxModel::of(text::parse(source).expect("it parses"));
    let options = onnx_slice_fold::Options::new();
    let (_, all) = open().explain_rule(&options, "same-shape", None).expect("it is explained");
    let (_, one) = open().explain_rule(&options, "same-shape", Some("w")).expect("it is explained");
    assert_eq!((all.nodes.len(), one.nodes.len()), (2, 1), "{all}{one}");
    let question = one.nodes.first().and_then(|at| at.failed.as_ref()).and_then(|failed| failed.question.clone());
    assert_eq!(question.as_deref(), Some("m == 5"), "{one}");
    let no_node = open().explain_rule(&options, "same-shape", Some("nothing")).expect_err("there is no such node");
    assert_eq!(no_node.kind(), onnx_slice_fold::ErrorKind::Extraction);
    let no_rule = open().explain_rule(&options, "same-shap", None).expect_err("there is no such rule");
    assert!(no_rule.to_string().contains("same-shape"), "{no_rule}");
}
