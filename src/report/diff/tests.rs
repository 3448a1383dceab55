use super::*;
use crate::ir::{Extra, text};

const SOURCE: &str = r#"<ir_version: 8, opset_import: ["" : 17, "f" : 1]>
main (float[n,4] x, float[4] scale, bool c) => (float[n,4] y, float[n,4] z)
    <float[4] scale = {1, 2, 3, 4}, float[4] bias = {5, 6, 7, 8}, float[n,4] a>
{
    a = Add (x, bias)
    b = f.twice <by = 2.0> (a)
    y = Mul (b, scale)
    z = If (c) <
        then_branch: graph = t () => (p) <float[4] k = {1, 1, 2, 2}> { q = Mul (a, k)  p = Neg (q) },
        else_branch: graph = e () => (r) { r = Loop <body: graph = l (int64 i, bool d, float[n,4] v) => (bool d1, float[n,4] v1) {
            d1 = Identity (d)  v1 = If (d) <
                then_branch: graph = s () => (m) { m = Abs (v) }, else_branch: graph = u () => (o) { o = Exp (v) }>
        }> ("", c, a) }>
}
<domain: "f", opset_import: ["" : 17, "f" : 1]>
twice <by, eps: float = 0.5> (u) => (w) { s = f.inner (u)  t = Elu <alpha: float = @by> (s)  w = LeakyRelu <alpha: float = @eps> (t) }
<domain: "f", opset_import: ["" : 17]>
inner (u) => (w) { w = Tanh (u) }"#;

fn parsed(source: &str) -> Model {
    text::parse(source).unwrap_or_else(|error| panic!("{error}\n{source}"))
}

/// Returns the differences if one text replaces another, in both directions.
fn differs(old: &str, new: &str) -> String {
    assert_eq!(SOURCE.matches(old).count(), 1, "`{old}` must be there once");
    let (a, b) = (parsed(SOURCE), parsed(&SOURCE.replace(old, new)));
    let (there, back) = (diff(&a, &b), diff(&b, &a));
    assert_eq!(there.is_empty(), back.is_empty(), "{old}: {new}");
    there
}

#[test]
fn a_model_equals_itself() {
    assert_eq!(diff(&parsed(SOURCE), &parsed(SOURCE)), "");
}

#[test]
fn each_part_of_a_model_is_compared() {
    let cases = [
        ("ir_version: 8", "ir_version: 9", "~ version of the file format: 8, now 9"),
        (
            r#""" : 17, "f" : 1]>
main"#,
            r#""" : 18, "f" : 1]>
main"#,
            "~ operator set of ai.onnx: 17, now 18",
        ),
        ("main (", "other (", "~ name of the main graph: main, now other"),
        ("float[n,4] x", "float[m,4] x", "~ input x: float[n,4], now float[m,4]"),
        ("(float[n,4] y, float[n,4] z)", "(float[n,4] z, float[n,4] y)", "~ outputs are in another order: z, y"),
        ("scale = {1, 2, 3, 4}", "scale = {1, 2, 3, 5}", "~ default of input scale: different"),
        ("float[4] scale = {1, 2, 3, 4}, ", "", "~ default of input scale: different"),
        ("bias = {5, 6, 7, 8}", "bias = {5, 6, 7, 9}", "+ constant float[4] bias"),
        ("float[n,4] a>", "float[n,5] a>", "~ type of a: float[n,4], now float[n,5]"),
        (", float[n,4] a>", ">", "- types of 1 common results"),
        ("f.twice <by = 2.0>", "f.twice <by = 3.0>", "+ b = f.twice <by: float = 3.0> (a)"),
        // Subgraphs: a constant, a node, a node two graphs further in, a captured value.
        ("k = {1, 1, 2, 2}", "k = {1, 1, 2, 3}", "~ inside If node that computes 'z':\n    ~ then_branch:"),
        ("p = Neg (q)", "p = Sin (q)", "        + p = Sin (q)"),
        ("m = Abs (v)", "m = Cos (v)", "                + m = Cos (v)"),
        ("q = Mul (a, k)", "q = Mul (x, k)", "        + q = Mul (x, k)"),
        ("o = Exp (v)", "o = Exp (a)", "+ o = Exp (a)"),
        // Functions: a node, the operator set, defaults, attributes, operands in another order, one that is called, and whole functions.
        ("w = Tanh (u)", "w = Sin (u)", "~ function f.inner:\n    ~ output 0 (w) is computed differently"),
        ("w = Tanh (u)", "w = Sin (u)", "~ output y is computed differently"),
        (r#"["" : 17]>"#, r#"["" : 18]>"#, "~ function f.inner:\n    ~ operator set of ai.onnx: 17, now 18"),
        ("eps: float = 0.5", "eps: float = 0.25", "    ~ attribute eps: float = 0.5, now float = 0.25"),
        ("<by, eps: float = 0.5>", "<by, also, eps: float = 0.5>", "    + attribute also: no default"),
        ("alpha: float = @by", "alpha: float = @eps", "t = Elu <alpha: float = @eps> (s)"),
        ("inner (u) => (w) {", "inner (u, v) => (w) {", "    ~ inputs: u, now u, v"),
        (
            "inner (u) => (w) { w = Tanh (u)",
            "inner (u) => (w, g) { w = Tanh (u)  g = Abs (u)",
            "    ~ outputs: w, now w, g",
        ),
        ("inner (u) => (w) {", "inner (u) => (w) { g = Abs (u)", "    + g = Abs (u)"),
        ("inner (u) =>", "unread (u) =>", "- function f.inner"),
    ];
    for (old, new, line) in cases {
        let text = differs(old, new);
        assert!(text.contains(line), "{old}, now {new}:\n{text}");
    }
}

#[test]
fn names_of_inner_values_and_orders_are_not_compared() {
    for (old, new) in [
        ("inner (u) => (w) { w = Tanh (u) }", "inner (in) => (out) { out = Tanh (in) }"),
        ("s = f.inner (u)  t = Elu <alpha: float = @by> (s)", "g = f.inner (u)  t = Elu <alpha: float = @by> (g)"),
        ("q = Mul (a, k)  p = Neg (q)", "[node] g = Mul (a, k)  p = Neg (g)"),
        ("d1 = Identity (d)  v1 = If (d)", "[first] d1 = Identity (d)  v1 = If (d)"),
    ] {
        assert_eq!(differs(old, new), "", "{old}, now {new}");
    }
}

#[test]
fn preserved_fields_are_compared() {
    let original = parsed(SOURCE);
    for (number, name) in
        [(2u8, "producer"), (6, "documentation of the model"), (14, "metadata"), (20, "training information")]
    {
        let mut other = parsed(SOURCE);
        let key = u16::from(number) << 3 | 2;
        other.extra = Extra::from(vec![(key & 0x7f) as u8 | 0x80, (key >> 7) as u8, 1, b'x']);
        assert!(diff(&original, &other).contains(&format!("~ {name}")), "{number}");
        assert_eq!(diff(&other, &other), "");
    }
    let mut other = parsed(SOURCE);
    other.extra = Extra::from_static(b"\xfa\x01\x01x");
    assert!(diff(&original, &other).contains("~ field 31, which this program does not know: different"));
    let (mut other, main) = (parsed(SOURCE), original.main());
    other.graph_mut(main).extra = Extra::from_static(b"\x72\x00");
    assert!(diff(&original, &other).contains("~ quantization annotations"));
}

#[test]
fn values_of_a_subgraph_differ_from_outer_values() {
    let model = |read: &str| {
        parsed(&format!(
            r#"<ir_version: 8, opset_import: ["" : 17]>
            g (float[n] x, int64 k, bool c) => (float[n] y) {{
                y = Loop <body: graph = b (int64 i, bool d, float[n] v) => (bool d1, float[n] v1) {{
                    d1 = Identity (d)
                    v1 = Loop <body: graph = b (int64 j, bool e, float[n] w) => (bool e1, float[n] w1) {{
                        e1 = Identity (e)  w1 = Abs ({read})
                    }}> (k, c, v)
                }}> (k, c, x)
            }}"#
        ))
    };
    assert!(diff(&model("v"), &model("w")).contains("+ w1 = Abs (w)"));
}
