//! Protects normalizations in basic operators from Transposes before and after them.
//!
//! ONNX Runtime moves a Transpose through reductions and arithmetic until it cancels with another one. If a normalization is between the
//! two, the means are then over an axis other than the last, and the normalization kernel no longer matches: nine nodes run instead of one.
//! ONNX Runtime moves no Transpose through a Reshape, so each rule inserts one:
//!
//! * `Transpose(Reshape(x)) = Reshape(Transpose(x))` where the Reshape merges axes. The number of nodes is unchanged.
//! * `Transpose(x, q) = Reshape(Transpose(Reshape(x)))` where `q` keeps runs of axes adjacent. This takes two more nodes.
//!
//! Both apply only in opsets without LayerNormalization, because the operator itself is not affected.

use super::normalized::{is_normalized, normalized};
use crate::dim::Dim;
use crate::ir::Edit;
use crate::rewrite::build::Build;
use crate::rewrite::groups::groups;
use crate::rewrite::miss::{Miss, ensure};
use crate::rewrite::place::Place;
use crate::rewrite::rule::{Rule, miss};
use crate::sort;

pub(in crate::rewrite) const RULES: &[Rule] = &[
    Rule {
        name: "transpose-before-flattening",
        law: "Transpose(Reshape(x), p) = Reshape(Transpose(x, p′)) where the Reshape merges adjacent axes",
        sentence: "Moves a Transpose before the Reshape that flattens the operand of a decomposed normalization, so that runtimes do not move the Transpose into the normalization.",
        premises: &[
            (
                "spelled",
                "a decomposed normalization consumes the result, and the model's operator set contains no LayerNormalization",
            ),
            (
                "runs-together",
                "each axis of the Reshape's output is an axis of x or merges adjacent axes of x, and at least one axis of the output merges several axes of x",
            ),
            ("sizes-said", "a constant can express the shape of the new Reshape"),
            ("one-reader", "the output of the Reshape has no other consumer"),
        ],
        exact: true,
        operators: &["Transpose"],
        apply: before_flattening,
    },
    Rule {
        name: "transpose-behind-normalization",
        law: "Transpose(x, q) = Reshape(Transpose(Reshape(x))) where q keeps some axes adjacent",
        sentence: "Adds Reshapes around a Transpose after a decomposed normalization, so that runtimes do not move the Transpose into the normalization.",
        premises: &[
            (
                "spelled",
                "a decomposed normalization produces x, and the model's operator set contains no LayerNormalization",
            ),
            (
                "turned-back",
                "the operand of the normalization is the result of a Transpose with the inverse permutation",
            ),
            ("side-by-side", "the permutation q keeps at least two axes adjacent and in order"),
            ("sizes-said", "constants can express the shapes of the new Reshapes"),
        ],
        exact: true,
        operators: &["Transpose"],
        apply: behind_normalization,
    },
];

/// Matches a Transpose of a flattened value.
fn before_flattening(place: &Place<'_>) -> Result<Edit, Miss> {
    let (flat, output) = (place.operand(0)?, place.result()?);
    let (reshape, node) = place.layout(flat).ok_or(Miss::ROOT)?;
    let x = node.input(0).ok_or(Miss::ROOT)?;
    ensure(!place.opset.has("LayerNormalization") && is_normalized(place, output), miss!("spelled"))?;
    let (from, to) = (place.dims(x)?, place.dims(flat)?);
    let groups = groups(place.scope(), from, to).ok_or(miss!("runs-together"))?;
    let runs_together = groups.iter().all(|group| group.to.len() == 1);
    let several = groups.iter().any(|group| group.from.len() > 1);
    ensure(runs_together && several, miss!("runs-together"))?;
    ensure(place.model.is_read_only_by(flat, &[place.id]), miss!("one-reader").of(flat))?;
    let turned = place.reading()?.permutation(to.len()).ok_or(Miss::ROOT)?;
    let axes: Vec<usize> =
        turned.iter().filter_map(|&axis| groups.get(axis)).flat_map(|group| group.from.clone()).collect();
    let dims: Vec<Dim> = axes.iter().map(|&axis| from.get(axis).cloned()).collect::<Option<_>>().ok_or(Miss::ROOT)?;
    let mut edit = place.begin()?;
    let middle = edit.new_value(output, "turned");
    edit.insert.push(Build::transpose(x, axes).output(middle));
    let node = place
        .build(&mut edit, output)
        .reshape_to(place.scope(), middle, &dims, place.dims(output)?)
        .ok_or(miss!("sizes-said").of(output))?;
    place.instead(edit.removing(reshape), node)
}

/// Matches a Transpose that reverts one before a normalization.
fn behind_normalization(place: &Place<'_>) -> Result<Edit, Miss> {
    let (input, output) = (place.operand(0)?, place.result()?);
    ensure(!place.opset.has("LayerNormalization"), miss!("spelled"))?;
    let dims = place.dims(input)?;
    let back = place.reading()?.permutation(dims.len()).ok_or(Miss::ROOT)?;
    let x = normalized(place, input).ok_or(miss!("spelled"))?;
    let (_, turning) = place.producer(x, "Transpose").ok_or(miss!("turned-back").of(x))?;
    let first = place.read(turning).permutation(dims.len()).ok_or(miss!("turned-back"))?;
    let undoes = back.iter().enumerate().all(|(at, &axis)| first.get(axis) == Some(&at));
    // The runs of axes that are adjacent before and after, in order.
    let mut runs: Vec<Vec<usize>> = Vec::new();
    for &axis in &back {
        match runs.last_mut() {
            Some(run) if run.last().is_some_and(|last| last.checked_add(1) == Some(axis)) => run.push(axis),
            _ => runs.push(vec![axis]),
        }
    }
    ensure(undoes, miss!("turned-back"))?;
    ensure(!runs.iter().all(|run| run.len() == 1), miss!("side-by-side"))?;
    let whole = |run: &[usize]| {
        let sizes = run.iter().map(|&axis| dims.get(axis)).collect::<Option<Vec<_>>>()?;
        Some(place.scope().product(sizes))
    };
    let mut order: Vec<usize> = (0..runs.len()).collect();
    sort::by_key(&mut order, |&at| runs.get(at).and_then(|run| run.first().copied()));
    let flat: Vec<Dim> =
        order.iter().map(|&at| whole(runs.get(at)?)).collect::<Option<_>>().ok_or(miss!("side-by-side"))?;
    let perm: Vec<usize> = (0..runs.len())
        .map(|at| order.iter().position(|&own| own == at))
        .collect::<Option<_>>()
        .ok_or(miss!("side-by-side"))?;
    let turned_dims: Vec<Dim> =
        runs.iter().map(|run| whole(run)).collect::<Option<_>>().ok_or(miss!("side-by-side"))?;
    let mut edit = place.begin()?;
    let (joined, turned) = (edit.new_value(output, "joined"), edit.new_value(output, "turned"));
    let join =
        place.build(&mut edit, joined).reshape_to(place.scope(), input, dims, &flat).ok_or(miss!("sizes-said"))?;
    edit.insert.push(join.output(joined));
    edit.insert.push(Build::transpose(joined, perm).output(turned));
    let part = place
        .build(&mut edit, output)
        .reshape_to(place.scope(), turned, &turned_dims, place.dims(output)?)
        .ok_or(miss!("sizes-said").of(output))?;
    place.instead(edit, part)
}
