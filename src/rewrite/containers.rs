//! Sequences and optionals that are taken apart where they are put together: scripted exports pass lists of tensors and optional
//! arguments around, and few runtimes know these types.

use super::build::Build;
use super::{Place, Rule};
use crate::dim::Dim;
use crate::ir::{Edit, Node, Type, ValueId};

pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "element-of-sequence",
        law: "SequenceAt(SequenceConstruct(a₀, …, aₙ₋₁), i) = aⱼ with j = i, or i + n where i < 0",
        sentence: "An element of a sequence that is made of tensors is that tensor.",
        premises: &[("decided-index", "the index is a constant, and the sequence has such an element")],
        exact: true,
        operators: &["SequenceAt"],
        apply: element_of_sequence,
    },
    Rule {
        name: "element-of-parts",
        law: "SequenceAt(SplitToSequence(x; axis, keepdims = 0), i) = Gather(x, i; axis)",
        sentence: "An element of a sequence of rows is looked up in the tensor that was split.",
        premises: &[
            ("parts-of-one", "no sizes are given and keepdims is 0: each part is one place of the axis, without it"),
            ("scalar-index", "the index is proved to be a scalar: of a vector Gather keeps the axis"),
        ],
        exact: true,
        operators: &["SequenceAt"],
        apply: element_of_parts,
    },
    Rule {
        name: "concat-of-sequence",
        law: "ConcatFromSequence(SequenceConstruct(a₀, …, aₙ₋₁); axis, new_axis = 0) = Concat(a₀, …, aₙ₋₁; axis)",
        sentence: "Tensors that become a sequence to be concatenated are concatenated.",
        premises: &[
            ("no-new-axis", "new_axis is 0: with a new axis each tensor would need a node of its own"),
            ("known-ranks", "the tensors are proved to have the same rank, at least 1"),
            (
                "sizes-agree",
                "on no other axis two of the tensors are proved to differ: runtimes refuse such a Concat when they load it, and join the \
                    elements of a sequence all the same if one is empty",
            ),
        ],
        exact: true,
        operators: &["ConcatFromSequence"],
        apply: concat_of_sequence,
    },
    Rule {
        name: "element-of-optional",
        law: "OptionalGetElement(Optional(x)) = x",
        sentence: "What an optional that is made of a tensor holds is the tensor.",
        premises: &[(
            "a-tensor",
            "what it holds is proved to be a tensor: of a sequence ONNX Runtime leaves nothing for a second reader where a loop \
                changes it",
        )],
        exact: true,
        operators: &["OptionalGetElement"],
        apply: element_of_optional,
    },
];

/// The node that puts the first operand together.
fn made_of<'a>(place: &Place<'a>, operator: &str) -> Option<&'a Node> {
    Some(place.producer(place.input(0)?, operator)?.1)
}

fn element_of_sequence(place: &Place<'_>) -> Option<Edit> {
    let elements = made_of(place, "SequenceConstruct")?.inputs();
    let [index] = place.const_ints(place.input(1)?)?.try_into().ok()?;
    let count = i64::try_from(elements.len()).ok()?;
    let at = if index < 0 { index.checked_add(count)? } else { index };
    let element = elements.get(usize::try_from(at).ok()?)?;
    place.forward((*element)?)
}

fn element_of_parts(place: &Place<'_>) -> Option<Edit> {
    let split = made_of(place, "SplitToSequence")?;
    let (data, index) = (split.input(0)?, place.input(1)?);
    let is_of_rows = split.input(1).is_none() && split.int("keepdims", 1)? == 0;
    if !is_of_rows || !place.shape(index)?.is_empty() {
        return None;
    }
    let axis = split.int("axis", 0)?;
    place.instead(place.edit()?, Build::gather(data, index, axis))
}

fn concat_of_sequence(place: &Place<'_>) -> Option<Edit> {
    let parts: Vec<ValueId> = made_of(place, "SequenceConstruct")?.inputs().iter().copied().collect::<Option<_>>()?;
    let node = place.node()?;
    let shapes: Vec<&[Dim]> = parts.iter().map(|&part| place.shape(part)).collect::<Option<_>>()?;
    let rank = shapes.first()?.len();
    if node.int("new_axis", 0)? != 0 || rank == 0 || shapes.iter().any(|shape| shape.len() != rank) {
        return None;
    }
    // It has no default.
    let axis = node.attribute("axis").and(node.int("axis", 0))?;
    let joined = if axis < 0 { axis.checked_add(i64::try_from(rank).ok()?)? } else { axis };
    let joined = usize::try_from(joined).ok().filter(|&joined| joined < rank)?;
    // A size that runtimes know only by name is compared with none.
    let others = |shape: &&[Dim]| {
        shape.iter().enumerate().filter(|&(at, _)| at != joined).map(|(_, dim)| dim.clone()).collect::<Vec<_>>()
    };
    let sizes: Vec<Vec<Dim>> = shapes.iter().map(others).collect();
    let differ = |a: &Vec<Dim>, b: &Vec<Dim>| a.iter().zip(b).any(|(a, b)| place.scope().eq(a, b).is_no());
    if sizes.iter().enumerate().any(|(at, one)| sizes.iter().skip(at + 1).any(|other| differ(one, other))) {
        return None;
    }
    place.instead(place.edit()?, Build::concat(parts, axis))
}

fn element_of_optional(place: &Place<'_>) -> Option<Edit> {
    let element = made_of(place, "Optional")?.input(0)?;
    let is_tensor = matches!(place.fact(element)?.ty, Some(Type::Tensor(_)));
    if is_tensor { place.forward(element) } else { None }
}
