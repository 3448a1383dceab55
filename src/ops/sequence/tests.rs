use crate::ir::{Attribute, Data, DeclaredType, DimClaim, Extra};
use crate::ops::Decline;
use crate::ops::bodies::Bodies;
use crate::tensor::{DType, Tensor};

fn tensors(data: &Data) -> Vec<(Vec<usize>, Vec<i64>)> {
    match data {
        Data::Tensor(tensor) => vec![(tensor.shape().to_vec(), tensor.to_i64s().unwrap())],
        Data::Sequence(items) => items.iter().flat_map(tensors).collect(),
        Data::Optional(item) => item.iter().flat_map(|item| tensors(item)).collect(),
        Data::Map { .. } => Vec::new(),
    }
}

fn constants(opset: i64) -> Bodies {
    let mut b = Bodies::new(opset);
    for (name, values) in [("p", vec![1i64, 2]), ("q", vec![3]), ("r", vec![4, 5, 6])] {
        b.constant(b.main(), name, Tensor::vector(values));
    }
    for (name, value) in [("zero", 0i64), ("one", 1), ("last", -1), ("far", 7)] {
        b.constant(b.main(), name, Tensor::scalar(value));
    }
    b
}

#[test]
fn sequences_are_built_and_split() {
    let mut b = constants(13);
    let main = b.main();
    b.node(main, "SequenceConstruct", "p q", "s", &[]);
    b.node(main, "SequenceInsert", "s r", "t", &[]);
    b.node(main, "SequenceInsert", "t p last", "u", &[]);
    b.node(main, "SequenceErase", "u zero", "v", &[]);
    b.node(main, "SequenceErase", "v", "w", &[]);
    b.node(main, "SequenceAt", "v last", "at", &[]);
    b.node(main, "SequenceLength", "u", "len", &[]);
    b.node(main, "ConcatFromSequence", "u", "cat", &[("axis", Attribute::Int(-1))]);
    b.outputs(main, "u w at len cat");
    let results = b.eval().unwrap();
    let (p, q, r) = ((vec![2], vec![1, 2]), (vec![1], vec![3]), (vec![3], vec![4, 5, 6]));
    assert_eq!(tensors(&results[0]), [p.clone(), q.clone(), p.clone(), r.clone()]);
    assert_eq!(tensors(&results[1]), [q, p]);
    assert_eq!(tensors(&results[2]), [r]);
    assert_eq!(tensors(&results[3]), [(vec![], vec![4])]);
    assert_eq!(tensors(&results[4]), [(vec![8], vec![1, 2, 3, 1, 2, 4, 5, 6])]);
    assert_eq!(b.facts("at len cat"), ["int64[3]={4,5,6}", "int64[]={4}", "int64[8]={1,2,3,1,2,4,5,6}"]);
}

#[test]
fn positions_out_of_range_are_errors() {
    for (op_type, inputs) in [("SequenceAt", "s far"), ("SequenceErase", "s far"), ("SequenceInsert", "s q far")] {
        let mut b = constants(13);
        let main = b.main();
        b.node(main, "SequenceConstruct", "p q", "s", &[]);
        b.node(main, op_type, inputs, "t", &[]);
        b.outputs(main, "t");
        assert!(matches!(b.eval(), Err(Decline::Invalid(_))), "{op_type}");
    }
}

#[test]
fn elements_at_known_positions_keep_their_facts() {
    let mut b = Bodies::new(13);
    let main = b.main();
    b.input("x", DType::Float, "N 3");
    b.input("y", DType::Float, "M 3");
    b.input("k", DType::Int64, "");
    b.constant(main, "one", Tensor::scalar(1i64));
    b.node(main, "SequenceEmpty", "", "s0", &[]);
    b.node(main, "SequenceInsert", "s0 x", "s1", &[]);
    b.node(main, "SequenceInsert", "s1 y", "s2", &[]);
    b.node(main, "SequenceAt", "s2 one", "known", &[]);
    b.node(main, "SequenceAt", "s2 k", "some", &[]);
    b.node(main, "SequenceLength", "s2", "len", &[]);
    b.node(main, "ConcatFromSequence", "s2", "cat", &[("axis", Attribute::Int(0))]);
    assert_eq!(b.facts("s1 s2"), ["seq(float[N,3])", "seq(float[?a,3])"]);
    assert_eq!(b.facts("known len"), ["float[M,3]", "int64[]={2}"]);
    // The size differs from the one in the sequence's type, which is any size.
    assert_eq!(b.facts("s2 some"), ["seq(float[?a,3])", "float[?b,3]"]);
    assert_eq!(b.facts("cat"), ["float[N + M,3]"]);
}

#[test]
fn constructions_of_different_types_are_invalid() {
    let mut b = Bodies::new(13);
    b.input("x", DType::Float, "N");
    b.input("y", DType::Int64, "N");
    b.node(b.main(), "SequenceConstruct", "x y", "s", &[]);
    assert!(b.facts("s")[0].starts_with("invalid"));
}

#[test]
fn splits() {
    let split = |sizes: Option<Tensor>, attributes: &[(&str, Attribute)]| {
        let mut b = Bodies::new(24);
        let main = b.main();
        b.constant(main, "x", Tensor::from_vec(&[2, 3], vec![1i64, 2, 3, 4, 5, 6]).unwrap());
        let inputs = if sizes.is_some() { "x sizes" } else { "x" };
        if let Some(sizes) = sizes {
            b.constant(main, "sizes", sizes);
        }
        b.node(main, "SplitToSequence", inputs, "s", attributes);
        b.outputs(main, "s");
        b.eval().map(|results| tensors(&results[0]))
    };
    let axis = |axis| ("axis", Attribute::Int(axis));
    assert_eq!(split(None, &[]).unwrap(), [(vec![1, 3], vec![1, 2, 3]), (vec![1, 3], vec![4, 5, 6])]);
    let squeezed = split(None, &[axis(1), ("keepdims", Attribute::Int(0))]).unwrap();
    assert_eq!(squeezed, [(vec![2], vec![1, 4]), (vec![2], vec![2, 5]), (vec![2], vec![3, 6])]);
    let halves = split(Some(Tensor::scalar(2i64)), &[axis(-1)]).unwrap();
    assert_eq!(halves, [(vec![2, 2], vec![1, 2, 4, 5]), (vec![2, 1], vec![3, 6])]);
    // The operator's text ignores `keepdims` with any sizes, ONNX Runtime only with a vector of sizes.
    for size in [1i64, 2] {
        let disputed = split(Some(Tensor::scalar(size)), &[axis(-1), ("keepdims", Attribute::Int(0))]);
        assert!(matches!(disputed, Err(Decline::Unsupported(_))));
    }
    let listed = split(Some(Tensor::vector(vec![0i32, 3])), &[axis(1), ("keepdims", Attribute::Int(0))]).unwrap();
    assert_eq!(listed, [(vec![2, 0], vec![]), (vec![2, 3], vec![1, 2, 3, 4, 5, 6])]);
    for sizes in [Tensor::scalar(0i64), Tensor::vector(vec![1i64, 1]), Tensor::vector(vec![-1i64, 4])] {
        assert!(split(Some(sizes), &[axis(1)]).is_err());
    }
}

#[test]
fn splits_are_inferred() {
    let facts = |x: &str, sizes: Option<Tensor>, attributes: &[(&str, Attribute)]| {
        let mut b = Bodies::new(24);
        let main = b.main();
        b.input("x", DType::Float, x);
        let inputs = if sizes.is_some() { "x sizes" } else { "x" };
        if let Some(sizes) = sizes {
            b.constant(main, "sizes", sizes);
        }
        b.node(main, "SplitToSequence", inputs, "s", attributes);
        b.node(main, "SequenceLength", "s", "len", &[]);
        b.facts("s len")
    };
    let squeezed = [("keepdims", Attribute::Int(0))];
    assert_eq!(facts("N 3", None, &[]), ["seq(float[1,3])", "int64[]={N}"]);
    assert_eq!(facts("N 3", None, &squeezed), ["seq(float[3])", "int64[]={N}"]);
    assert_eq!(facts("N 6", Some(Tensor::scalar(2i64)), &[("axis", Attribute::Int(1))])[0], "seq(float[N,2])");
    let uneven = facts("N 5", Some(Tensor::scalar(2i64)), &[("axis", Attribute::Int(1))]);
    assert_eq!(uneven, ["seq(float[N,?a])", "int64[]={3}"]);
    let listed = facts("N 3", Some(Tensor::vector(vec![2i64, 2])), &[]);
    assert_eq!(listed, ["seq(float[2,3])", "int64[]={2}"]);
    assert!(facts("N 3", Some(Tensor::scalar(0i64)), &[])[0].starts_with("invalid"));
    // The rank of the parts is disputed, their number is not.
    let disputed = facts("N 3", Some(Tensor::scalar(1i64)), &squeezed);
    assert_eq!(disputed, ["seq(float)", "int64[]={N}"]);
    let listed = facts("N 3", Some(Tensor::vector(vec![2i64, 2])), &squeezed);
    assert_eq!(listed[0], "seq(float[2,3])");
}

#[test]
fn parts_of_a_disputed_rank_are_not_followed() {
    let mut b = constants(17);
    let main = b.main();
    b.input("x", DType::Float, "N 3");
    b.node(main, "Shape", "x", "sizes", &[]);
    b.node(main, "SplitToSequence", "sizes one", "parts", &[("keepdims", Attribute::Int(0))]);
    b.node(main, "SequenceAt", "parts zero", "first", &[]);
    b.node(main, "ConcatFromSequence", "parts", "again", &[("axis", Attribute::Int(0))]);
    assert_eq!(b.facts("first again"), ["int64", "int64"]);
}

#[test]
fn parts_at_known_positions_have_their_size() {
    let mut b = constants(13);
    let main = b.main();
    b.input("x", DType::Float, "N 3");
    b.constant(main, "two", Tensor::scalar(2i64));
    let along = |axis: i64| [("axis", Attribute::Int(axis))];
    b.node(main, "SplitToSequence", "x p", "listed", &along(-1));
    b.node(main, "SequenceAt", "listed zero", "first", &[]);
    b.node(main, "SequenceAt", "listed last", "rest", &[]);
    b.node(main, "ConcatFromSequence", "listed", "again", &along(1));
    assert_eq!(b.facts("first rest again"), ["float[N,1]", "float[N,2]", "float[N,3]"]);
    // The last part is shorter.
    b.node(main, "SplitToSequence", "x two", "even", &along(1));
    b.node(main, "SequenceAt", "even zero", "long", &[]);
    b.node(main, "SequenceAt", "even one", "short", &[]);
    assert_eq!(b.facts("long short"), ["float[N,2]", "float[N,1]"]);
    // The number of parts is unknown.
    b.node(main, "SplitToSequence", "x two", "open", &along(0));
    b.node(main, "SequenceAt", "open zero", "front", &[]);
    b.node(main, "SequenceAt", "open one", "perhaps", &[]);
    b.node(main, "SequenceAt", "open last", "back", &[]);
    b.node(main, "ConcatFromSequence", "open", "whole", &along(0));
    assert_eq!(b.facts("front back whole"), ["float[min(2, N),3]", "float[2 - Mod(N, 2),3]", "float[N,3]"]);
    assert!(b.facts("perhaps")[0].contains('?'));
    // Parts of different sizes are stacked only if they are empty, and then the size is unknown.
    b.node(main, "ConcatFromSequence", "listed", "stacked", &[along(0), [("new_axis", Attribute::Int(1))]].concat());
    assert_eq!(b.facts("stacked"), ["float[2,N,?a]"]);
    assert!(!b.facts("nothing")[0].contains("-1"));
    // Sizes with a wrong sum and negative sizes are not followed.
    b.node(main, "SplitToSequence", "x r", "wrong", &along(1));
    b.node(main, "SequenceAt", "wrong zero", "none", &[]);
    assert!(b.facts("none")[0].contains('?'));
    b.node(main, "ConcatFromSequence", "wrong", "never", &along(1));
    assert_ne!(b.facts("never"), ["float[N,3]"]);
    b.constant(main, "below", Tensor::vector(vec![-1i64, 4]));
    b.node(main, "SplitToSequence", "x below", "negative", &along(1));
    b.node(main, "SequenceAt", "negative zero", "nothing", &[]);
}

#[test]
fn sequences_of_either_branch_are_joined() {
    let mut b = constants(13);
    let main = b.main();
    b.input("c", DType::Bool, "");
    b.input("x", DType::Float, "N");
    b.input("z", DType::Float, "M");
    let choose = |b: &mut Bodies, then_items: &str, else_items: &str, name: &str| {
        let branches =
            [("then_branch", then_items, "t"), ("else_branch", else_items, "e")].map(|(attribute, items, at)| {
                let branch = b.graph("");
                let made = format!("{name}_{at}");
                b.node(branch, "SequenceConstruct", items, &made, &[]);
                b.outputs(branch, &made);
                (attribute, Attribute::Graph(branch))
            });
        b.node(main, "If", "c", name, &branches);
    };
    choose(&mut b, "x x", "z x", "chosen");
    b.node(main, "SequenceAt", "chosen one", "same", &[]);
    b.node(main, "SequenceAt", "chosen zero", "either", &[]);
    b.node(main, "SequenceLength", "chosen", "two", &[]);
    b.node(main, "SequenceInsert", "chosen z", "longer", &[]);
    b.node(main, "SequenceLength", "longer", "three", &[]);
    assert_eq!(b.facts("same two three"), ["float[N]", "int64[]={2}", "int64[]={3}"]);
    assert_eq!(b.facts("either"), ["float[?a]"]);
    choose(&mut b, "x x", "x", "uneven");
    b.node(main, "SequenceAt", "uneven zero", "first", &[]);
    b.node(main, "SequenceLength", "uneven", "count", &[]);
    assert_eq!(b.facts("first"), ["float[N]"]);
    assert!(b.facts("count")[0].contains('?'));
}

#[test]
fn stacking_needs_the_number_of_elements() {
    let mut b = Bodies::new(13);
    let main = b.main();
    b.input("x", DType::Float, "N 3");
    b.node(main, "SplitToSequence", "x", "s", &[("keepdims", Attribute::Int(0))]);
    let stacked = [("axis", Attribute::Int(-1)), ("new_axis", Attribute::Int(1))];
    b.node(main, "ConcatFromSequence", "s", "y", &stacked);
    b.node(main, "ConcatFromSequence", "s", "z", &[("axis", Attribute::Int(0))]);
    assert_eq!(b.facts("y z"), ["float[3,N]", "float[3*N]"]);
}

#[test]
fn bodies_are_mapped_over_elements() {
    let mut b = constants(17);
    let main = b.main();
    b.node(main, "SequenceConstruct", "p q", "s", &[]);
    let body = b.graph("x y");
    b.node(body, "SequenceConstruct", "x y", "pair", &[]);
    b.node(body, "ConcatFromSequence", "pair", "xy", &[("axis", Attribute::Int(0))]);
    b.outputs(body, "xy x");
    b.node(main, "SequenceMap", "s r", "t u", &[("body", Attribute::Graph(body))]);
    b.outputs(main, "t u");
    let results = b.eval().unwrap();
    assert_eq!(tensors(&results[0]), [(vec![5], vec![1, 2, 4, 5, 6]), (vec![4], vec![3, 4, 5, 6])]);
    assert_eq!(tensors(&results[1]), [(vec![2], vec![1, 2]), (vec![1], vec![3])]);

    let mut b = Bodies::new(17);
    let main = b.main();
    b.input("p", DType::Float, "N 3");
    b.input("q", DType::Float, "M 3");
    b.node(main, "SequenceConstruct", "p q", "s", &[]);
    let body = b.graph("x");
    b.constant(body, "axis", Tensor::vector(vec![0i64]));
    b.node(body, "ReduceSum", "x axis", "sum", &[]);
    b.outputs(body, "sum x");
    b.node(main, "SequenceMap", "s", "t u", &[("body", Attribute::Graph(body))]);
    b.node(main, "SequenceLength", "t", "len", &[]);
    assert_eq!(b.facts("t len"), ["seq(float[1,3])", "int64[]={2}"]);
    assert_eq!(b.facts("u"), ["seq(float[?a,3])"]);
}

#[test]
fn optionals() {
    let optional = DeclaredType::Optional {
        elem: Some(Box::new(DeclaredType::tensor(DType::Float, Some(vec![DimClaim::Value(4)])))),
        extra: Extra::new(),
    };
    let mut b = Bodies::new(18);
    let main = b.main();
    b.typed_input("o", optional);
    b.input("x", DType::Float, "N");
    b.node(main, "OptionalHasElement", "o", "has", &[]);
    b.node(main, "OptionalGetElement", "o", "value", &[]);
    b.node(main, "OptionalHasElement", "x", "has_tensor", &[]);
    b.node(main, "OptionalGetElement", "x", "tensor", &[]);
    b.node(main, "OptionalHasElement", "", "has_nothing", &[]);
    b.node(main, "Optional", "x", "full", &[]);
    b.node(main, "OptionalHasElement", "full", "has_full", &[]);
    b.node(main, "OptionalGetElement", "full", "inside", &[]);
    let declared = DeclaredType::tensor(DType::Int32, Some(vec![DimClaim::Value(2)]));
    b.node(main, "Optional", "", "empty", &[("type", Attribute::Type(declared))]);
    b.node(main, "OptionalHasElement", "empty", "has_empty", &[]);
    assert_eq!(b.facts("has has_tensor has_nothing"), ["bool[]", "bool[]={1}", "bool[]={0}"]);
    assert_eq!(b.facts("value tensor"), ["float[4]", "float[N]"]);
    assert_eq!(b.facts("full has_full inside"), ["opt(float[N])", "bool[]={1}", "float[N]"]);
    assert_eq!(b.facts("empty has_empty"), ["opt(int32[2])", "bool[]={0}"]);
    b.node(main, "OptionalGetElement", "empty", "nothing", &[]);
    b.outputs(main, "nothing");
    assert!(b.facts("nothing")[0].starts_with("invalid"));
}

#[test]
fn before_version_18_only_optionals_have_elements() {
    for op_type in ["OptionalHasElement", "OptionalGetElement"] {
        let mut b = constants(15);
        b.node(b.main(), op_type, "p", "y", &[]);
        b.outputs(b.main(), "y");
        assert!(b.facts("y")[0].starts_with("invalid"));
        assert!(matches!(b.eval(), Err(Decline::Invalid(_))));
    }
}

#[test]
fn strings_and_packed_elements_are_joined_and_split() {
    let mut b = Bodies::new(25);
    let main = b.main();
    let words = ["a", "b", "c", "d"].map(|word| bytes::Bytes::from_static(word.as_bytes()));
    b.constant(main, "w", Tensor::from_strings(&[2, 2], words.to_vec()).unwrap());
    b.node(main, "SplitToSequence", "w", "s", &[("axis", Attribute::Int(1))]);
    b.node(main, "ConcatFromSequence", "s", "y", &[("axis", Attribute::Int(0))]);
    b.constant(main, "n", Tensor::from_bytes(DType::Int4, &[3], vec![0x21, 0x03].into()).unwrap());
    b.node(main, "SequenceConstruct", "n n", "t", &[]);
    b.node(main, "ConcatFromSequence", "t", "z", &[("axis", Attribute::Int(0))]);
    b.outputs(main, "y z");
    let results = b.eval().unwrap();
    let text: Vec<&[u8]> = results[0].tensor().unwrap().strings().unwrap().iter().map(|word| word.as_ref()).collect();
    assert_eq!(text, [b"a", b"c", b"b", b"d"]);
    assert_eq!(tensors(&results[1]), [(vec![6], vec![1, 2, 3, 1, 2, 3])]);
}

#[test]
fn sizes_go_through_sequences() {
    let mut b = constants(13);
    let main = b.main();
    b.input("x", DType::Float, "N S");
    b.node(main, "Shape", "x", "sizes", &[]);
    b.node(main, "Gather", "sizes zero", "n", &[]);
    b.node(main, "Gather", "sizes one", "m", &[]);
    b.node(main, "SequenceConstruct", "n m", "pair", &[]);
    b.node(main, "SequenceInsert", "pair m", "three", &[]);
    let along = |axis: i64| ("axis", Attribute::Int(axis));
    b.node(main, "ConcatFromSequence", "three", "vector", &[along(0), ("new_axis", Attribute::Int(1))]);
    b.node(main, "SplitToSequence", "vector one", "parts", &[along(0)]);
    b.node(main, "ConcatFromSequence", "parts", "again", &[along(-1)]);
    b.node(main, "SequenceAt", "parts last", "end", &[]);
    b.node(main, "SplitToSequence", "vector", "scalars", &[along(0), ("keepdims", Attribute::Int(0))]);
    b.node(main, "SequenceAt", "scalars zero", "first", &[]);
    b.node(main, "SplitToSequence", "vector p", "uneven", &[along(0)]);
    b.node(main, "SequenceAt", "uneven one", "rest", &[]);
    b.node(main, "SequenceConstruct", "p p", "rows", &[]);
    b.node(main, "ConcatFromSequence", "rows", "columns", &[along(1), ("new_axis", Attribute::Int(1))]);
    assert_eq!(
        b.facts("vector again end first rest"),
        ["int64[3]={N,S,S}", "int64[3]={N,S,S}", "int64[1]={S}", "int64[]={N}", "int64[2]={S,S}"]
    );
    assert_eq!(b.facts("columns"), ["int64[2,2]={1,1,2,2}"]);
}
