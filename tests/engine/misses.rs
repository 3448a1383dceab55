//! Rules that decline say why: `explain --rule` on fixtures of `tests/rules` in which one premise fails.

use std::collections::BTreeSet;

use onnx_slice_fold::OnnxModel;
use onnx_slice_fold::ir::text;
use onnx_slice_fold::rewrite::{GUARDS, SHARED, rules};

use crate::rules::{FOLDERS, Fixture, Kind};

/// The names of the premises that fail at the nodes of a fixture, if the rule alone is in force.
fn failed(fixture: &Fixture, rule: &str) -> BTreeSet<&'static str> {
    let model = text::parse(&fixture.source).expect("the fixture parses");
    let (_, told) =
        OnnxModel::of(model).explain_rule(&fixture.options(Some(rule)), rule, None).expect("it is explained");
    told.nodes.iter().filter_map(|at| at.failed.as_ref()).map(|failed| failed.name).collect()
}

/// Each fixture `RULE__not_PREMISE` breaks one premise. The rule must name a premise of its record or one of every rule; fixtures in which that is
/// another one than the broken premise, or in which the rule does not find its pattern, are in the snapshot.
#[test]
fn a_miss_names_a_premise() {
    let shared: BTreeSet<&str> =
        SHARED.iter().chain(GUARDS.iter().map(|(premise, _)| premise)).map(|(name, _)| *name).collect();
    let mut wrong = Vec::new();
    let mut others = String::new();
    let (mut same, mut all) = (0usize, 0usize);
    for fixture in FOLDERS.iter().flat_map(|folder| Fixture::of(folder)) {
        let Kind::Not(name, broken) = fixture.kind() else { continue };
        // A pass looks at no single node.
        let Some(rule) = rules().find(|rule| rule.name == name) else { continue };
        let failed = failed(&fixture, &name);
        let known =
            |premise: &&&str| shared.contains(**premise) || rule.premises.iter().any(|(own, _)| own == *premise);
        wrong.extend(
            failed.iter().filter(|premise| !known(premise)).map(|premise| format!("{}: {premise}", fixture.name)),
        );
        all += 1;
        if failed.contains(broken.as_str()) {
            same += 1;
        } else {
            let named = if failed.is_empty() {
                "no pattern".to_string()
            } else {
                failed.into_iter().collect::<Vec<_>>().join(", ")
            };
            others.push_str(&format!("{}: {named}\n", fixture.name));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(same * 3 > all * 2, "only {same} of {all} fixtures name the premise that they break:\n{others}");
    insta::assert_snapshot!(others);
}

/// One case of each kind: the premise is about a dim with an open question, a constant, the readers, the types, the operator set or a consumer.
#[test]
fn ten_rules_say_why() {
    let cases = [
        ("identity", "same-shape__not_same-shape"),
        ("identity", "cast-same-type__not_same-type"),
        ("neutral", "neutral-element__not_neutral"),
        ("neutral", "comparison-of-casts__not_only-reader"),
        ("containers", "part-of-split__not_is-there"),
        ("counted", "counted-loop__not_same-limit"),
        ("fuse", "spelled-activation__not_known"),
        ("fuse", "matmul-add-to-gemm__not_one-reader"),
        ("slices", "slice-nothing__not_whole"),
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
fn one_node_is_told_by_name() {
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
