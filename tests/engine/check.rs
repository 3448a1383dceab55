//! `--check`: equal models pass, a difference is reported with both values, and skipped comparisons are reported.

use std::collections::BTreeMap;

use onnx_slice_fold::check::{Trial, check};
use onnx_slice_fold::ir::text;
use onnx_slice_fold::{Checked, Data, OnnxModel, Options, Tensor};

use crate::support::folded_unrun;

const HEAD: &str = "<ir_version: 8, opset_import: [\"\" : 17]>\n";

/// Compares two models as if the second were the folded first one.
fn compared(original: &str, folded: &str, options: &Options) -> Checked {
    let parsed = |source: &str| text::parse(&format!("{HEAD}{source}")).unwrap();
    check(&parsed(original), &parsed(folded), options, &Trial::drawn(8))
}

fn difference(original: &str, folded: &str) -> String {
    let checked = compared(original, folded, &Options::new());
    checked.difference.clone().unwrap_or_else(|| panic!("no difference is found: {checked:?}")).what
}

#[test]
fn differences_are_found() {
    let slice = |end: i64| {
        format!("g (float[n] x) => (float[m] y) <int64[1] a = {{0}}, int64[1] b = {{{end}}}> {{ y = Slice (x, a, b) }}")
    };
    // They differ only for more than four elements.
    let told = difference(&slice(i64::MAX), &slice(4));
    assert!(told.contains("[4] instead of "), "{told}");
    let binary = |operator: &str| format!("g (float[n] x, float[n] z) => (float[n] y) {{ y = {operator} (x, z) }}");
    assert!(difference(&binary("Sub"), &binary("Add")).contains("instead of"));
    // Only negative inputs show the difference.
    let unary = |operator: &str| format!("g (float[n] x) => (float[n] y) {{ y = {operator} (x) }}");
    assert!(difference(&unary("Relu"), &unary("Identity")).contains("instead of"));
    // Only a rarely taken branch shows it.
    let choice =
        "g (bool b, float[n] x) => (float[n] y) { y = If (b) <then_branch: graph = t () => (float[n] p) { p = Neg (x) },
        else_branch: graph = e () => (float[n] q) { q = Abs (x) }> }";
    assert!(difference(choice, "g (bool b, float[n] x) => (float[n] y) { y = Neg (x) }").contains("instead of"));
}

#[test]
fn a_default_that_was_taken_for_a_constant_is_found() {
    let with = |y: &str| format!("g (float[n] x, float[1] w) => (float[n] y) <float[1] w = {{1}}> {{ {y} }}");
    assert!(difference(&with("y = Mul (x, w)"), &with("y = Identity (x)")).contains("instead of"));
}

#[test]
fn a_false_shape_is_found() {
    let model = |shape: &str| {
        format!("g (float[n] x) => (float[m] y) <float[{shape}] c> {{ c = Concat <axis = 0> (x, x)\n y = Neg (c) }}")
    };
    let told = difference(&model("k"), &model("n"));
    assert!(told.starts_with("'c' is declared with shape [n], but has shape ["), "{told}");
    assert!(compared(&model("k"), &model("\"2*n\""), &Options::new()).difference.is_none());
}

#[test]
fn a_label_that_was_read_as_arithmetic_is_found() {
    let with = |nodes: &str| {
        format!(
            "g (float[n] x, float[\"n + 1\"] m) => (int64[1] y) <int64[1] one = {{1}}> {{ s = Shape (x)\n {nodes} }}"
        )
    };
    assert!(difference(&with("y = Shape (m)"), &with("y = Add (s, one)")).contains("instead of"));
    let trusting = Options::new().trust_input_names(true);
    assert!(compared(&with("y = Shape (m)"), &with("y = Add (s, one)"), &trusting).difference.is_none());
}

#[test]
fn signs_of_zero_and_nan_count_only_bit_for_bit() {
    let (sum, same) = (
        "g (float[n] x) => (float[n] y) <float z = {0}> { y = Add (x, z) }",
        "g (float[n] x) => (float[n] y) { y = Identity (x) }",
    );
    assert!(compared(sum, same, &Options::new()).difference.is_none());
    assert!(compared(sum, same, &Options::new().exact(true)).difference.is_some());
}

#[test]
fn sizes_are_those_the_options_allow() {
    let original = "g (float[n] x) => (float[m] y) <int64[1] a = {0}, int64[1] b = {3}> { y = Slice (x, a, b) }";
    let folded = "g (float[n] x) => (float[n] y) { y = Identity (x) }";
    for options in [Options::new().dim("n=1..3"), Options::new().assume("n <= 3")] {
        let checked = compared(original, folded, &options);
        assert_eq!((checked.agreed, checked.difference), (8, None), "{:?}", checked.unchecked);
    }
    assert!(compared(original, folded, &Options::new().dim("n=1..4")).difference.is_some());
}

#[test]
fn models_that_do_not_run_with_ordinary_sizes_are_compared_with_larger_ones() {
    let windows = |last: &str| {
        format!(
            "g (float[n, 1, h, w] x) => (float[n, 1, p, q] y) <float[1, 1, 20, 20] k> {{
                k = ConstantOfShape <value: tensor = float[1] {{1}}> (s)
                c = Conv <strides = [20, 20]> (x, k)
                y = {last} (c)
            }}"
        )
        .replace("<float[1, 1, 20, 20] k>", "<int64[4] s = {1, 1, 20, 20}, float[1, 1, 20, 20] k>")
    };
    let checked = compared(&windows("Neg"), &windows("Neg"), &Options::new());
    assert_eq!((checked.agreed, checked.difference), (8, None), "{:?}", checked.unchecked);
    assert!(difference(&windows("Neg"), &windows("Identity")).contains("instead of"));
}

#[test]
fn sizes_that_depend_on_each_other_are_found() {
    let cache = |last: &str| {
        format!(
            "g (float[past] a, float[new] b, float[all] mask) => (float[all] y) {{
                c = Concat <axis = 0> (a, b)
                d = Add (c, mask)
                y = {last} (d)
            }}"
        )
    };
    let checked = compared(&cache("Neg"), &cache("Neg"), &Options::new());
    assert_eq!((checked.agreed, checked.difference), (8, None), "{:?}", checked.unchecked);
    assert!(difference(&cache("Neg"), &cache("Identity")).contains("instead of"));
}

#[test]
fn masks_of_0_and_1_are_among_the_inputs() {
    // The model runs only if every element is at most 1.
    let looked_up = |last: &str| {
        format!(
            "g (float[n, 40] x, int64[n, 40] mask) => (float[n, 40] y) <float[2] t = {{0.5, 2}}> {{
                m = Gather (t, mask)
                c = Mul (x, m)
                y = {last} (c)
            }}"
        )
    };
    let checked = compared(&looked_up("Neg"), &looked_up("Neg"), &Options::new());
    assert_eq!((checked.agreed, checked.difference), (8, None), "{:?}", checked.unchecked);
}

#[test]
fn a_model_with_empty_results_is_not_run_with_larger_sizes() {
    // Tanh never reaches the bound, so NonZero finds no indices.
    let source = "g (float[n, h, w] x) => (int64[3, k] y) <float most = {1000000}> {
        t = Tanh (x)
        g = Greater (t, most)
        y = NonZero (g)
    }";
    let checked = compared(source, source, &Options::new());
    assert_eq!(checked.agreed, 8, "{:?}", checked.unchecked);
    assert!(checked.seconds < 10.0, "{}", checked.seconds);
}

#[test]
fn sums_that_processors_make_differently_are_compared_as_the_standard_defines_them() {
    // A weight of 100 times a byte of 255: two such products exceed 16 bits, so they are not constant.
    let product = |more: &str, y: &str| {
        format!(
            "g (uint8[n,2] x) => (int32[n,1] y) <int8[2,1] w = {{100, 127}}, uint8 z = {{3}}> {{
                p = MatMulInteger (x, w{more})\n {y} }}"
        )
    };
    let same = compared(&product("", "y = Identity (p)"), &product("", "y = Identity (p)"), &Options::new());
    assert_eq!((same.difference.as_ref(), same.agreed), (None, 8), "{same:?}");
    assert!(difference(&product("", "y = Identity (p)"), &product(", z", "y = Identity (p)")).contains("instead of"));
    let constant = "g () => (int32[1,1] y) <uint8[1,2] x = {255, 255}, int8[2,1] w = {100, 127}> {
        y = MatMulInteger (x, w) }";
    let (folded, _) = folded_unrun(&format!("{HEAD}{constant}"), &Options::new());
    assert!(text::print(&folded).contains("MatMulInteger"));
}

#[test]
fn skipped_comparisons_are_reported() {
    let unknown = "g (float[n] x) => (float[n] y) { y = com.example.Thing (x) }";
    let checked = compared(unknown, unknown, &Options::new());
    assert_eq!(checked.agreed, 0);
    assert_eq!(checked.unchecked.values().sum::<usize>(), 8);
    assert!(checked.to_string().contains("not checked, 8 times: the original: "), "{checked}");
}

/// If one node prevents every run from finishing, the runs do not begin, however large the model is.
#[test]
fn no_run_begins_if_one_node_never_ends() {
    let source = "g (float[n, m] x) => (y) { a = MatMul (x, x) b = MatMul (a, x) c = SizeSqrt (b) y = Div (b, c) }";
    let checked = compared(source, source, &Options::new());
    let reason = "the original: SizeSqrt node that computes 'c': there is no definition of SizeSqrt";
    assert_eq!(checked.unchecked, BTreeMap::from([(reason.to_string(), 8)]));
    assert_eq!((checked.asked, checked.agreed), (8, 0));
}

#[test]
fn a_model_that_is_folded_rightly_passes() {
    let source = "g (float[batch,n,4] x) => (float[batch,m] y) <int64[1] a = {1}, int64[1] b = {9}, int64[1] c = {2}, int64[2] s = {0,-1}> {
        cut = Slice (x, a, b, c)
        two = Concat <axis = 2> (cut, cut)
        some = Relu (two)
        more = Relu (some)
        y = Reshape (more, s)
    }";
    for options in [Options::new(), Options::new().exact(true), Options::new().dim("batch=2")] {
        let mut model = OnnxModel::of(text::parse(&format!("{HEAD}{source}")).unwrap());
        let (report, checked) = model.fold_checked(&options, 8, &mut |_| {}).unwrap();
        assert!(report.after.nodes() < report.before.nodes());
        // The Reshape fails for 0 elements; other inputs are drawn then.
        assert_eq!((checked.agreed, checked.difference), (8, None), "{:?}", checked.unchecked);
    }
}

/// A 0 in the target of a Reshape copies a dim. If n and h are both 0, the result is [0, 4, 2], and [n, 2*h, 2] is declared.
#[test]
fn the_position_of_a_0_dim_is_ignored_if_two_sizes_are_0() {
    let source = "g (float[n,4,h] x) => (y) <int64[1] i = {0}, int64[1] j = {2}, int64[1] two = {2}> {
        s = Shape (x)
        n = Gather (s, i)
        h = Gather (s, j)
        m = Mul (h, two)
        t = Concat <axis = 0> (n, m, two)
        r = Relu (x)
        y = Reshape (r, t)
    }";
    let mut model = OnnxModel::of(text::parse(&format!("{HEAD}{source}")).unwrap());
    let (_, checked) = model.fold_checked(&Options::new(), 8, &mut |_| {}).unwrap();
    assert!(model.text().contains(r#"float[n,"2*h",2] y"#), "{}", model.text());
    assert_eq!((checked.agreed, checked.difference), (8, None), "{:?}", checked.unchecked);
}

#[test]
fn given_values_are_compared_as_well() {
    // They differ only at 1000, which is never drawn.
    let model = |top: &str| {
        format!(
            "g (float[n] x) => (float[n] y) <float low = {{-9999}}, float high = {{{top}}}> {{ y = Clip (x, low, high) }}"
        )
    };
    let parsed = |source: &str| text::parse(&format!("{HEAD}{source}")).unwrap();
    let values =
        |name: &str, number: f32| BTreeMap::from([(name.to_string(), Data::Tensor(Tensor::vector(vec![number])))]);
    let mut document = OnnxModel::of(parsed(&model("20000")));
    let given = vec![("'a.npz'".to_string(), values("x", 30_000.0))];
    let (_, checked) = document.fold_checked_on(&Options::new(), 2, given, &mut |_| {}).unwrap();
    assert_eq!((checked.asked, checked.agreed, checked.difference), (3, 3, None), "{:?}", checked.unchecked);
    // The assumptions about sizes exclude the given values, which is reported.
    let mut document = OnnxModel::of(parsed(&model("20000")));
    let given = vec![("'a.npz'".to_string(), values("x", 1.0))];
    let (_, checked) = document.fold_checked_on(&Options::new().dim("n=2"), 0, given, &mut |_| {}).unwrap();
    let told = checked.to_string();
    assert!(
        checked.agreed == 0 && told.contains("the assumptions exclude the inputs n = 1, values of 'a.npz'"),
        "{told}"
    );
    // Values for unknown inputs are refused before folding.
    let mut document = OnnxModel::of(parsed(&model("20000")));
    let given = vec![("'a.npz'".to_string(), values("z", 1.0))];
    let error = document.fold_checked_on(&Options::new(), 0, given, &mut |_| {}).unwrap_err();
    assert_eq!(error.kind(), onnx_slice_fold::ErrorKind::Usage);
    let cause = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
    assert_eq!((error.to_string().as_str(), cause.as_str()), ("'a.npz'", "the value of input 'x' is missing"));
}

#[test]
fn each_pass_is_compared_on_request() {
    let source = "g (float[n,4] x) => (float[n,4] y) <float a = {1}, float b = {2}> {
        s = Shape (x)
        c = Add (a, b)
        r = Reshape (x, s)
        t = Relu (r)
        u = Relu (t)
        y = Mul (u, c)
    }";
    let mut model = OnnxModel::of(text::parse(&format!("{HEAD}{source}")).unwrap());
    let (report, checked) = model.fold_checked(&Options::new().verify_each(true), 2, &mut |_| {}).unwrap();
    let count = report.pass_ends.len();
    assert!(count >= 2, "{:?}", report.pass_ends);
    assert_eq!((checked.passes, checked.difference.as_ref()), (Some((count, count)), None));
    assert!(checked.to_string().contains(&format!("the models after {count} of {count} passes")), "{checked}");
}
