//! The text syntax: parsing a printed model gives an equal model.

use onnx_slice_fold::ir::text;

/// Checks that a text prints as itself.
fn round_trip(source: &str) {
    let model = text::parse(source).unwrap_or_else(|error| panic!("{error}\n{source}"));
    let printed = text::print(&model);
    let again = text::parse(&printed).unwrap_or_else(|error| panic!("{error}\n{printed}"));
    assert_eq!(printed, text::print(&again));
}

#[test]
fn graphs_attributes_and_types() {
    round_trip(
        r#"<ir_version: 8, opset_import: ["" : 17, "my.dom" : 1]>
        "main graph" (float[N,3,?] x, bool cond, float[] u, seq(float[a]) q) => (float[N] z, map(int64, string) m)
        <int64[2,2] w = {1,2,-3,4}, float s = {1.5}, string[2] st = {"a\"b", "c"}, bool[2] bb = {1,0}, float["2*N"] t>
        {
            c = Constant <value: tensor = float[2] {1.5,inf}> ()
            ["n/1"] z = If <then_branch: graph = a () => (float[N] y) { y = Identity (x) },
                            else_branch: graph = b () => (float[N] y2) { y2 = Identity (x) }> (cond)
            t, "" = my.dom.Foo <i: int = -3, f: float = 1.0, fl: floats = [1.0, 2.5], ints: ints = [1, 2], e: ints = [], s: string = "a\nb",
                ss: strings = ["a", "b"]> (x, "", c)
            m = Bar (w, s, st, bb, u, q)
        }"#,
    );
}

#[test]
fn operators_whose_names_are_no_words() {
    round_trip(
        r#"<ir_version: 10, opset_import: ["" : 17, "com.my-domain" : 1, "a..b" : 1]>
        g (float[N] x) => (float[N] z)
        {
            a = "1 p-" (x)
            b = com."my-domain"."aten::add":"over load" (a)
            c = a."".b."with.dots" (b)
            z = com.microsoft.Gelu (c)
        }"#,
    );
}

#[test]
fn functions() {
    round_trip(
        r#"<ir_version: 8, opset_import: ["" : 17, "f" : 1]>
        g (float[N] x) => (float[N] y) { y = f.Scale <by: float = 2.0> (x) }
        <domain: "f", opset_import: ["" : 17]>
        Scale <by>(a) => (b) { c = Constant <value_float: float = @by> () b = Mul (a, c) }"#,
    );
}

#[test]
fn errors_name_the_place() {
    for (source, place) in [
        ("<ir_version: 8>\ng (float[N x) => () {}", "line 2, column 12"),
        ("<ir_version: 8> g () => (float y) { y = Foo (x) }", "line 1, column 1: Foo node that computes 'y' reads 'x'"),
        ("<ir_version: 8> g () => () <float[2] w = {1}> {}", "line 1"),
        ("<ir_version: 8> g (float x, float x) => () {}", "'x' is defined twice"),
        ("<", "line 1, column 2"),
        ("\"abc", "the string does not end"),
    ] {
        let error = text::parse(source).expect_err(source).to_string();
        assert!(error.contains(place), "{source}: {error}");
    }
}

#[test]
fn any_prefix_is_an_error_or_a_model() {
    let source = r#"<ir_version: 8, opset_import: ["" : 17]> g (float[N,3] x) => (y) <int64[1] w = {1}> { y = Foo <a: graph = h () => (z) { z = Bar (x) }> (x, "é") }"#;
    for (end, _) in source.char_indices() {
        assert!(text::parse(&source[..end]).is_err(), "{}", &source[..end]);
    }
    assert!(text::parse(&source.replace(", \"é\"", "")).is_ok());
}
