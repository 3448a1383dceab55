//! A part of a model folds in the same way alone and next to many unrelated parts: they share no budget, table or list that affects the
//! result.

use std::collections::HashMap;

use onnx_slice_fold::ir::{Model, NodeId, ValueId, text};
use onnx_slice_fold::{OnnxModel, Options, Report};

/// A part of a model: its inputs, outputs, initializers and nodes, with names that begin with a prefix.
struct Part {
    input: String,
    output: String,
    initializers: String,
    nodes: String,
}

/// Returns a part; `@` is replaced by the prefix of its names.
fn part(prefix: &str, [input, output, initializers, nodes]: [&str; 4]) -> Part {
    let named = |text: &str| text.replace('@', prefix);
    Part { input: named(input), output: named(output), initializers: named(initializers), nodes: named(nodes) }
}

/// Returns a permutation of the numbers below `count`.
fn shuffled(count: usize) -> String {
    let numbers: Vec<String> = (0..count).map(|at| (at * 37 % count).to_string()).collect();
    numbers.join(", ")
}

/// Lookups that merge into one, with this many blocks of elements per side.
fn lookups(prefix: &str, side: usize) -> Part {
    let all = side * side;
    let order = shuffled(side);
    let initializers =
        format!("int64[{side}] @i = {{{order}}}, int64[3] @r = {{{side}, {side}, 8}}, int64[2] @s = {{{all}, 8}}");
    let nodes = "@0 = Reshape (@x, @r) @1 = Gather <axis = 0> (@0, @i) @2 = Gather <axis = 1> (@1, @i) \
        @3 = Gather <axis = 0> (@2, @i) @y = Reshape (@3, @s)";
    part(prefix, [&format!("float[{all},8] @x"), &format!("float[{all},8] @y"), &initializers, nodes])
}

/// The parts under test.
fn subjects() -> Vec<Part> {
    let factors: Vec<String> = (0..64).map(|at| format!("{}.25", at % 7)).collect();
    let weights = format!("float[8,8] @w = {{{}}}, float @f = {{0.5}}, float @g = {{3}}", factors.join(", "));
    vec![
        lookups("a", 8),
        // A Slice of a sum of sizes, whose removal needs proofs.
        part(
            "b",
            [
                "float[@n,@s,8] @x, float[@n,@t,8] @z",
                "float[@n,o,8] @y",
                "int64[1] @0 = {0}, int64[1] @1 = {1}, int64[1] @m = {64}",
                "@c = Concat <axis = 1> (@x, @z) @h = Shape <start = 1, end = 2> (@x) @d = Slice (@c, @0, @h, @1) \
                 @e = Slice (@d, @0, @m, @1) @f = Slice (@e, @0, @h, @1) @k = Shape <start = 1, end = 2> (@f) \
                 @l = Slice (@x, @0, @k, @1) @y = Add (@f, @l)",
            ],
        ),
        // An image in windows of 4 by 4.
        part(
            "c",
            [
                "float[@n,@h,@w,8] @x",
                "float[o,4,4,8] @y",
                "int64 @0 = {0}, int64 @1 = {1}, int64 @2 = {2}, int64 @4 = {4}, int64[1] @i = {0}, int64[1] @k = {4}, \
                 int64[1] @c = {8}",
                "@s = Shape (@x) @p = Gather (@s, @0) @q = Gather (@s, @1) @r = Gather (@s, @2) @qq = Div (@q, @4) \
                 @rr = Div (@r, @4) @up = Unsqueeze (@p, @i) @uq = Unsqueeze (@qq, @i) @ur = Unsqueeze (@rr, @i) \
                 @t = Concat <axis = 0> (@up, @uq, @k, @ur, @k, @c) @v = Reshape (@x, @t) \
                 @z = Transpose <perm = [0, 1, 3, 2, 4, 5]> (@v) @o = Mul (@p, @qq) @oo = Mul (@o, @rr) \
                 @uo = Unsqueeze (@oo, @i) @tt = Concat <axis = 0> (@uo, @k, @k, @c) @y = Reshape (@z, @tt)",
            ],
        ),
        // Factors that move into a weight.
        part(
            "d",
            ["float[@n,8] @x", "float[@n,8] @y", &weights, "@a = Mul (@x, @f) @b = MatMul (@a, @w) @y = Mul (@b, @g)"],
        ),
        // A mask of sizes.
        part(
            "e",
            [
                "int64[@n,@s] @x",
                "float[@n,1,1,@s] @y",
                "int64 @0 = {0}, int64 @1 = {1}, float @one = {1}, float @low = {-10000}, int64[2] @ax = {1, 2}, \
                 int64[1] @a = {0}",
                "@h = Shape (@x) @l = Gather (@h, @1) @r = Range (@0, @l, @1) @u = Unsqueeze (@r, @a) @b = Less (@u, @l) \
                 @c = Cast <to = 1> (@x) @f = Unsqueeze (@c, @ax) @q = Sub (@one, @f) @m = Mul (@q, @low) \
                 @d = Cast <to = 1> (@b) @y = Add (@m, @d)",
            ],
        ),
    ]
}

/// A chain with separate sizes, lookups and a factor.
fn chain(at: usize) -> Part {
    let initializers = format!(
        "int64 @0 = {{0}}, int64 @1 = {{1}}, int64[1] @i = {{0}}, int64[1] @q = {{4}}, int64[2] @g = {{3, 1}}, \
         int64[2] @k = {{1, 0}}, float @f = {{{}.5}}",
        at % 17 + 2
    );
    let nodes = "@a = Mul (@x, @f) @s = Shape (@a) @m = Gather (@s, @0) @p = Gather (@s, @1) @mp = Mul (@m, @p) \
        @u = Unsqueeze (@mp, @i) @t = Concat <axis = 0> (@u, @q) @r = Reshape (@a, @t) @v = Gather <axis = 1> (@r, @g) \
        @w = Gather <axis = 1> (@v, @k) @y = Exp (@w)";
    part(&format!("u{at}_"), ["float[@n,@o,4] @x", "float[o,2] @y", &initializers, nodes])
}

fn folded(parts: &[&Part]) -> (Model, Report) {
    let join = |of: &dyn Fn(&Part) -> &str, by: &str| parts.iter().map(|part| of(part)).collect::<Vec<_>>().join(by);
    let source = format!(
        "<ir_version: 9, opset_import: [\"\" : 18]> g ({}) => ({}) <{}> {{ {} }}",
        join(&|part| &part.input, ", "),
        join(&|part| &part.output, ", "),
        join(&|part| &part.initializers, ", "),
        join(&|part| &part.nodes, " ")
    );
    let mut document = OnnxModel::of(text::parse(&source).unwrap_or_else(|error| panic!("{error}")));
    let report = document.fold(&Options::default()).expect("the model folds");
    (document.model().clone(), report)
}

/// Prints the computation of an output: each node once, with input names only. Equal texts compute equal values.
fn printed(model: &Model, output: &str) -> String {
    let outputs = model.graph(model.main()).outputs();
    let found = outputs.iter().find(|&&value| model.value(value).name.as_str() == output);
    let mut known: HashMap<NodeId, usize> = HashMap::new();
    let mut lines = Vec::new();
    operand(model, *found.expect("the output is there"), &mut known, &mut lines);
    lines.join("\n")
}

fn operand(model: &Model, value: ValueId, known: &mut HashMap<NodeId, usize>, lines: &mut Vec<String>) -> String {
    let place = model.value(value);
    let Some((id, node)) = place.producer().and_then(|id| Some((id, model.node(id)?))) else {
        return match place.tensor() {
            Some(tensor) => format!("{:?}{:?}{:x}", tensor.dtype(), tensor.shape(), tensor.hash_content()),
            None => place.name.to_string(),
        };
    };
    if let Some(number) = known.get(&id) {
        return format!("%{number}");
    }
    let operands: Vec<String> = node
        .inputs()
        .iter()
        .map(|input| input.map_or(String::new(), |input| operand(model, input, known, lines)))
        .collect();
    let attributes: Vec<String> =
        node.attributes.iter().map(|held| format!("{} = {:?}", held.name, held.value)).collect();
    let number = lines.len();
    known.insert(id, number);
    lines.push(format!("%{number} = {} <{}> ({})", node.op_type, attributes.join(", "), operands.join(", ")));
    format!("%{number}")
}

/// Asserts that every subject folds next to these parts, which are computed first, as it does alone.
fn beside(parts: &[Part]) {
    let subjects = subjects();
    let all: Vec<&Part> = parts.iter().chain(&subjects).collect();
    let (model, report) = folded(&all);
    for subject in &subjects {
        let output = format!("{}y", &subject.nodes[..1]);
        let (alone, _) = folded(&[subject]);
        assert_eq!(printed(&model, &output), printed(&alone, &output), "beside {} parts", parts.len());
    }
    let limited: Vec<_> = report.notes.iter().filter(|note| note.reason.contains("limit")).collect();
    assert!(limited.is_empty(), "{limited:?}");
}

#[test]
fn parts_fold_as_they_do_alone_beside_a_few() {
    for count in [0, 1, 10] {
        beside(&(0..count).map(chain).collect::<Vec<_>>());
    }
}

#[test]
fn parts_fold_as_they_do_alone_beside_a_thousand_chains() {
    beside(&(0..1000).map(chain).collect::<Vec<_>>());
}

/// Each part takes as much work as a rule may do at one node.
#[test]
fn parts_fold_as_they_do_alone_beside_a_thousand_lookups() {
    beside(&(0..1000).map(|at| lookups(&format!("u{at}_"), 128)).collect::<Vec<_>>());
}
