//! The worked examples of the design: each is a map that is easy to state and was hard to find by cases.

use super::*;
use crate::index_map::form::Form;

fn number(value: i64) -> Dim {
    Dim::constant(value)
}

fn symbol(scope: &Scope, name: &str, least: i64) -> Dim {
    let symbol = scope.named(name);
    scope.restrict(symbol, Some(least), None);
    Dim::symbol(symbol)
}

/// The map of one movement after another.
fn chain(scope: &Scope, source: &[Dim], steps: &[Movement]) -> IndexMap {
    steps.iter().fold(IndexMap::identity(scope, source), |map, step| {
        let next = step.map(scope, &[map.result().into()]).unwrap();
        map.then(scope, &next).unwrap()
    })
}

fn movements(program: &Program) -> Vec<Movement> {
    program
        .steps
        .iter()
        .map(|step| match step {
            Step::Movement(movement, _) => movement.clone(),
            Step::Split { .. } => panic!("no Split was expected"),
        })
        .collect()
}

fn shape(dims: &[&Dim]) -> Shape {
    dims.iter().map(|&dim| dim.clone()).collect()
}

#[test]
fn window_partition_is_a_transpose_of_rank_four() {
    let scope = Scope::new();
    let [n, p, q, c] = ["N", "p", "q", "C"].map(|name| symbol(&scope, name, 0));
    let seven = number(7);
    let source = [n.clone(), scope.mul(&p, &seven), scope.mul(&q, &seven), c.clone()];
    let result = shape(&[&scope.product([&n, &p, &q]), &number(49), &c]);
    let map = chain(
        &scope,
        &source,
        &[
            Movement::Reshape(shape(&[&n, &p, &seven, &q, &seven, &c])),
            Movement::Transpose(vec![0, 1, 3, 2, 4, 5]),
            Movement::Reshape(result.clone()),
        ],
    );
    let program = map.write(&scope, &Allowed::all(3)).unwrap();
    let blocks = shape(&[&scope.mul(&n, &p), &seven, &q, &scope.mul(&seven, &c)]);
    assert_eq!(
        movements(&program),
        [Movement::Reshape(blocks), Movement::Transpose(vec![0, 2, 1, 3]), Movement::Reshape(result)]
    );
}

#[test]
fn a_roll_and_the_opposite_one_are_the_identity() {
    let scope = Scope::new();
    for (size, shift) in [(symbol(&scope, "d", 3), number(3)), (number(7), number(3)), (number(3), number(3))] {
        let source = [number(2), size.clone(), number(5)];
        let back = scope.sub(&size, &shift);
        let first = IndexMap::roll(&scope, &source, 1, &shift).unwrap();
        let second = IndexMap::roll(&scope, &source, 1, &back).unwrap();
        let both = first.then(&scope, &second).unwrap();
        assert!(both.equals(&scope, &IndexMap::identity(&scope, &source)), "{both:?}");
        assert!(!first.equals(&scope, &IndexMap::identity(&scope, &source)) || size == shift);
    }
}

#[test]
fn a_slice_of_a_gather_is_affine_if_the_table_is() {
    let scope = Scope::new();
    let source = [symbol(&scope, "n", 0), number(9)];
    let gather = IndexMap::gather(&scope, &source, 1, &[3], &[7, 4, 1]).unwrap();
    let slice = IndexMap::range(&scope, gather.result(), 1, number(1), 1, number(2)).unwrap();
    let map = gather.then(&scope, &slice).unwrap();
    assert!(map.equals(&scope, &IndexMap::range(&scope, &source, 1, number(4), -3, number(2)).unwrap()));
    let backward = AxisRange { start: number(4), step: -3, len: number(2) };
    let program = map.write(&scope, &Allowed::all(1)).unwrap();
    assert_eq!(movements(&program), [Movement::Slice(vec![None, Some(backward)])]);
    // A Gather, where no step may be negative.
    let allowed = Allowed { negative_step: false, ..Allowed::all(1) };
    let program = map.write(&scope, &allowed).unwrap();
    assert_eq!(movements(&program), [Movement::Gather { axis: 1, shape: vec![2], indices: vec![4, 1] }]);
}

#[test]
fn a_pad_that_is_cropped_again_is_the_identity() {
    let scope = Scope::new();
    let (size, l, r) = (symbol(&scope, "d", 0), symbol(&scope, "l", 0), symbol(&scope, "r", 0));
    let source = [number(3), size.clone()];
    let pad = IndexMap::pad(&scope, &source, 1, (&l, &r), PadMode::Constant(Fill(0))).unwrap();
    let crop = IndexMap::range(&scope, pad.result(), 1, l.clone(), 1, size).unwrap();
    assert!(pad.then(&scope, &crop).unwrap().equals(&scope, &IndexMap::identity(&scope, &source)));
    // Pads of one constant are one Pad; pads of two constants are not.
    let outer = |fill| IndexMap::pad(&scope, pad.result(), 1, (&r, &l), PadMode::Constant(Fill(fill))).unwrap();
    let both = pad.then(&scope, &outer(0)).unwrap();
    assert_eq!(movements(&both.write(&scope, &Allowed::all(3)).unwrap()).len(), 1);
    let unlike = pad.then(&scope, &outer(1)).unwrap();
    assert_eq!(movements(&unlike.write(&scope, &Allowed::all(3)).unwrap()).len(), 2);
}

#[test]
fn a_split_of_a_concat_at_its_seam_is_a_part() {
    let scope = Scope::new();
    let (n, s, t) = (symbol(&scope, "n", 0), symbol(&scope, "s", 0), symbol(&scope, "t", 0));
    let sources = [shape(&[&n, &s]), shape(&[&n, &t])];
    let concat = IndexMap::concat(&scope, &sources, 1).unwrap();
    let first = IndexMap::range(&scope, concat.result(), 1, number(0), 1, s.clone()).unwrap();
    let second = IndexMap::range(&scope, concat.result(), 1, s, 1, t).unwrap();
    for (part, source) in [(first, 0), (second, 1)] {
        let program = concat.then(&scope, &part).unwrap().write(&scope, &Allowed::all(1)).unwrap();
        assert_eq!((program.nodes(), program.result), (0, Operand::Source(source)));
    }
}

#[test]
fn reversing_twice_is_the_identity() {
    let scope = Scope::new();
    let size = symbol(&scope, "d", 0);
    let last = scope.sub(&size, &number(1));
    let reverse = IndexMap::range(&scope, std::slice::from_ref(&size), 0, last, -1, size.clone()).unwrap();
    let identity = IndexMap::identity(&scope, std::slice::from_ref(&size));
    assert!(!reverse.equals(&scope, &identity));
    assert!(reverse.then(&scope, &reverse).unwrap().equals(&scope, &identity));
    let inverse = reverse.inverse(&scope).unwrap();
    assert!(inverse.equals(&scope, &reverse));
}

#[test]
fn blocks_are_written_with_their_mode() {
    let scope = Scope::new();
    let [n, p, q] = ["N", "p", "q"].map(|name| symbol(&scope, name, 0));
    let (two, c) = (number(2), number(3));
    let source = [n.clone(), c.clone(), scope.mul(&p, &two), scope.mul(&q, &two)];
    let to_depth = chain(
        &scope,
        &source,
        &[
            Movement::Reshape(shape(&[&n, &c, &p, &two, &q, &two])),
            Movement::Transpose(vec![0, 3, 5, 1, 2, 4]),
            Movement::Reshape(shape(&[&n, &number(12), &p, &q])),
        ],
    );
    let program = to_depth.write(&scope, &Allowed::all(3)).unwrap();
    assert_eq!(movements(&program), [Movement::SpaceToDepth(2)]);
    let spelled = to_depth.write(&scope, &Allowed { blocks: false, ..Allowed::all(3) }).unwrap();
    assert_eq!(spelled.nodes(), 3);
    for mode in [BlockMode::DepthColumnRow, BlockMode::ColumnRowDepth] {
        let map = IndexMap::depth_to_space(&scope, to_depth.result(), 2, mode).unwrap();
        assert_eq!(movements(&map.write(&scope, &Allowed::all(3)).unwrap()), [Movement::DepthToSpace(2, mode)]);
        let back = to_depth.then(&scope, &map).unwrap();
        let is_inverse = back.equals(&scope, &IndexMap::identity(&scope, &source));
        assert_eq!(is_inverse, mode == BlockMode::DepthColumnRow);
    }
    let inverse = to_depth.inverse(&scope).unwrap();
    let blocks = IndexMap::depth_to_space(&scope, to_depth.result(), 2, BlockMode::DepthColumnRow).unwrap();
    assert!(inverse.equals(&scope, &blocks));
}

#[test]
fn an_axis_that_is_repeated_and_merged_is_a_tile() {
    let scope = Scope::new();
    let (n, c) = (symbol(&scope, "N", 0), symbol(&scope, "C", 0));
    let source = [number(1), c.clone()];
    let merged = scope.mul(&n, &c);
    let spread =
        chain(&scope, &source, &[Movement::Expand(shape(&[&n, &c])), Movement::Reshape(shape(&[&number(1), &merged]))]);
    let program = spread.write(&scope, &Allowed::all(2)).unwrap();
    assert_eq!(movements(&program), [Movement::Tile(shape(&[&number(1), &n]))]);
}

#[test]
fn a_roll_is_two_parts_or_one_gather() {
    let scope = Scope::new();
    let source = [symbol(&scope, "n", 0), number(7)];
    let roll = IndexMap::roll(&scope, &source, 1, &number(2)).unwrap();
    assert_eq!(roll.write(&scope, &Allowed::all(3)).unwrap().nodes(), 1);
    let program = roll.write(&scope, &Allowed { gather: false, ..Allowed::all(3) }).unwrap();
    let sizes = vec![number(5), number(2)];
    assert_eq!(program.steps.first(), Some(&Step::Split { operand: Operand::Source(0), axis: 1, sizes }));
    assert_eq!(
        program.steps.get(1),
        Some(&Step::Movement(Movement::Concat(1), vec![Operand::Part(0, 1), Operand::Part(0, 0)]))
    );
}

#[test]
fn run_time_positions_compose_on_all_axes() {
    let scope = Scope::new();
    let (n, k) = (symbol(&scope, "n", 1), symbol(&scope, "k", 1));
    let source = [n.clone(), number(4), number(6)];
    let gather = IndexMap::gather_at_run_time(&scope, &source, 0, std::slice::from_ref(&k)).unwrap();
    // Every other index, and positions 1 to 3 of the middle axis; the last axis first.
    let slice = IndexMap::slice(
        &scope,
        gather.result(),
        &[
            Selected::Range { start: number(0), step: 2, len: scope.ceil_div(&k, &number(2)) },
            Selected::Range { start: number(1), step: 1, len: number(3) },
            Selected::All,
        ],
    )
    .unwrap();
    let turned = IndexMap::transpose(&scope, slice.result(), &[2, 0, 1]).unwrap();
    let map = gather.then(&scope, &slice).unwrap().then(&scope, &turned).unwrap();
    let sizes = |symbol| if *scope.name(symbol) == *"n" { Some(5) } else { Some(3) };
    let positions = [4, 0, -2];
    let at = |source: usize, position: i64| if source == 1 { positions.get(position as usize).copied() } else { None };
    let found = map.evaluate(&Binding { sizes: &sizes, positions: &at }).unwrap();
    let mut expected = vec![];
    for column in 0..6 {
        for row in [4, 3] {
            for middle in 1..4 {
                expected.push(Element::Source { source: 0, position: (row * 4 + middle) * 6 + column });
            }
        }
    }
    assert_eq!(found, expected);
}

#[test]
fn what_is_not_known_is_an_answer_with_the_question() {
    let scope = Scope::new();
    let h = symbol(&scope, "h", 1);
    let source = [h.clone(), number(5)];
    let pad = IndexMap::pad(&scope, &source, 0, (&number(1), &number(1)), PadMode::Constant(Fill(0))).unwrap();
    let folded = pad.reshaped(&[scope.sum([&h, &number(2)]), number(5)]);
    let middle = IndexMap::transpose(
        &scope,
        &[number(7), scope.floor_div(folded.result().first().unwrap(), &number(7)), number(5)],
        &[1, 0, 2],
    );
    let reason = folded.then(&scope, &middle.unwrap()).unwrap_err();
    assert!(reason.question(&scope).starts_with("does `"), "{}", reason.question(&scope));
    assert!(matches!(IndexMap::pad(&scope, &source, 0, (&h, &h), PadMode::Reflect), Err(Undecided::AtMost(..))));
    assert!(matches!(IndexMap::gather(&scope, &source, 1, &[1], &[5]), Err(Undecided::OutOfRange)));
}

#[test]
fn bounds_are_named() {
    let scope = Scope::new();
    let wide: Vec<Dim> = (0..17).map(|axis| symbol(&scope, &format!("d{axis}"), 0)).collect();
    let perm: Vec<usize> = (0..17).rev().collect();
    assert_eq!(IndexMap::transpose(&scope, &wide, &perm).unwrap_err(), Undecided::DigitLimit);
    let sources: Vec<Shape> = (0..65).map(|_| shape(&[&number(2)])).collect();
    assert_eq!(IndexMap::concat(&scope, &sources, 0).unwrap_err(), Undecided::PieceLimit);
    assert!(IndexMap::concat(&scope, &sources[..64], 0).is_ok());
    let indices: Vec<i64> = (0..65_537).map(|at| at * at % 7).collect();
    let gather = |count: usize| IndexMap::gather(&scope, &[number(7)], 0, &[count as i64], &indices[..count]);
    assert_eq!(gather(65_537).unwrap_err(), Undecided::TableLimit);
    assert!(gather(65_536).is_ok());
}

#[test]
fn an_affine_table_has_no_table() {
    let scope = Scope::new();
    for indices in [vec![0, 1, 2, 3, 0, 1, 2, 3], vec![6, 4, 2, 0], vec![5, 5, 5], vec![2, 3, 0, 1]] {
        let map = IndexMap::gather(&scope, &[number(8)], 0, &[indices.len() as i64], &indices).unwrap();
        let Form::Read(read) = &map.core.form else { panic!() };
        let is_table =
            |term: &crate::index_map::form::Term| matches!(term.atom, crate::index_map::form::Atom::Table(_));
        assert!(!read.axes.iter().flat_map(|axis| &axis.at.terms).any(is_table), "{indices:?}");
    }
}

#[test]
fn a_slice_between_two_transposes_is_a_slice() {
    let scope = Scope::new();
    let source = [symbol(&scope, "n", 0), number(6), number(4)];
    let turned = IndexMap::transpose(&scope, &source, &[2, 1, 0]).unwrap();
    let rows = IndexMap::range(&scope, turned.result(), 1, number(1), 1, number(3)).unwrap();
    let back = IndexMap::transpose(&scope, rows.result(), &[2, 1, 0]).unwrap();
    let map = turned.then(&scope, &rows).unwrap().then(&scope, &back).unwrap();
    let range = AxisRange { start: number(1), step: 1, len: number(3) };
    let program = map.write(&scope, &Allowed::all(3)).unwrap();
    assert_eq!(movements(&program), [Movement::Slice(vec![None, Some(range), None])]);
}

#[test]
fn pads_of_two_axes_are_one_pad_in_any_order() {
    let scope = Scope::new();
    let source = [number(4), symbol(&scope, "n", 0), number(6)];
    let pad = |map: &IndexMap, axis| {
        let pad =
            IndexMap::pad(&scope, map.result(), axis, (&number(1), &number(2)), PadMode::Constant(Fill(0))).unwrap();
        map.then(&scope, &pad).unwrap()
    };
    let identity = IndexMap::identity(&scope, &source);
    let (one, other) = (pad(&pad(&identity, 0), 2), pad(&pad(&identity, 2), 0));
    assert!(one.equals(&scope, &other));
    assert_eq!(one.write(&scope, &Allowed::all(2)).unwrap().nodes(), 1);
}

#[test]
fn of_equally_short_programs_the_transpose_has_the_least_rank() {
    let scope = Scope::new();
    let source = [2, 3, 4].map(number);
    let rows = Movement::Reshape(shape(&[&number(4), &number(6)]));
    let map = chain(&scope, &source, &[Movement::Transpose(vec![2, 0, 1]), rows]);
    let program = map.write(&scope, &Allowed::all(2)).unwrap();
    let expected = [Movement::Reshape(shape(&[&number(6), &number(4)])), Movement::Transpose(vec![1, 0])];
    assert_eq!(movements(&program), expected);
}

#[test]
fn a_row_of_a_pad_is_several_rows_of_the_result() {
    let scope = Scope::new();
    let n = symbol(&scope, "n", 0);
    let (zero, one, six) = (number(0), number(1), number(6));
    let pad = |after: &[&Dim]| {
        let before = after.iter().map(|_| zero.clone()).collect();
        Movement::Pad { before, after: shape(after), fill: Fill(0) }
    };
    let rows = scope.mul(&scope.add(&n, &one), &six);
    let steps = [pad(&[&one, &zero, &zero]), Movement::Reshape(shape(&[&rows, &number(8)]))];
    let map = chain(&scope, &[n.clone(), six.clone(), number(8)], &steps);
    let program = map.write(&scope, &Allowed::all(2)).unwrap();
    let expected = [Movement::Reshape(shape(&[&scope.mul(&n, &six), &number(8)])), pad(&[&six, &zero])];
    assert_eq!(movements(&program), expected);
}

#[test]
fn a_table_of_rows_is_a_step_and_a_table() {
    let scope = Scope::new();
    let source = [number(24)];
    let values = [4, 6, 5, 1, 12, 14, 13, 9, 20, 22, 21, 17];
    let table = IndexMap::gather(&scope, &source, 0, &[3, 4], &values).unwrap();
    let columns = Movement::Gather { axis: 1, shape: vec![4], indices: vec![4, 6, 5, 1] };
    let map = chain(&scope, &source, &[Movement::Reshape(shape(&[&number(3), &number(8)])), columns]);
    assert!(table.equals(&scope, &map));
    assert_eq!(map.write(&scope, &Allowed::all(2)).unwrap().nodes(), 1);
}

#[test]
fn a_roll_of_a_tile_is_one_table() {
    let scope = Scope::new();
    let n = symbol(&scope, "n", 0);
    let tile = chain(&scope, &[n.clone(), number(6)], &[Movement::Tile(shape(&[&number(1), &number(3)]))]);
    let roll = IndexMap::roll(&scope, tile.result(), 1, &number(2)).unwrap();
    let program = tile.then(&scope, &roll).unwrap().write(&scope, &Allowed::all(1)).unwrap();
    let indices = [4, 5, 0, 1, 2, 3].repeat(3);
    assert_eq!(movements(&program), [Movement::Gather { axis: 1, shape: vec![18], indices }]);
    // Permuted before it is repeated.
    let order = Movement::Gather { axis: 1, shape: vec![6], indices: vec![3, 0, 4, 5, 1, 2] };
    let tile = chain(&scope, &[n.clone(), number(6)], &[order, Movement::Tile(shape(&[&number(1), &number(3)]))]);
    let program = tile.then(&scope, &roll).unwrap().write(&scope, &Allowed::all(1)).unwrap();
    let indices = [1, 2, 3, 0, 4, 5].repeat(3);
    assert_eq!(movements(&program), [Movement::Gather { axis: 1, shape: vec![18], indices }]);
}
