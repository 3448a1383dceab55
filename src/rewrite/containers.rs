//! Sequences and optionals that are taken apart where they are put together: scripted exports pass lists of tensors and optional
//! arguments around, and few runtimes know these types.

use super::build::Build;
use super::{Place, Rule};
use crate::dim::Dim;
use crate::ir::{Edit, NewNode, Node, Type, ValueId};
use crate::ops::axis_in;
use crate::tensor::counted_in;

pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "element-of-sequence",
        law: "SequenceAt(SequenceConstruct(a₀, …, aₙ₋₁), i) = aⱼ with j = i, or i + n where i < 0",
        sentence: "Replaces a SequenceAt on a sequence of known tensors by the selected tensor.",
        premises: &[("decided-index", "the index is constant and within the sequence")],
        exact: true,
        operators: &["SequenceAt"],
        apply: element_of_sequence,
    },
    Rule {
        name: "element-of-parts",
        law: "SequenceAt(SplitToSequence(x; axis, keepdims = 0), i) = Gather(x, i; axis)",
        sentence: "Replaces an element of a split tensor by a Gather in the tensor.",
        premises: &[
            (
                "parts-of-one",
                "the split sizes are omitted and keepdims is 0, so that each part is one element of the axis, without that axis",
            ),
            ("scalar-index", "the index is proved to be a scalar: of a vector Gather keeps the axis"),
            ("no-strings", "the data is not a string tensor, for which ONNX Runtime's Gather returns wrong elements"),
        ],
        exact: true,
        operators: &["SequenceAt"],
        apply: element_of_parts,
    },
    Rule {
        name: "part-of-split",
        law: "SequenceAt(SplitToSequence(x; sizes s₀, s₁, …), i) = x[s₀ + … + sᵢ₋₁ : s₀ + … + sᵢ]",
        sentence: "Replaces an element of a split tensor by a Slice of the tensor.",
        premises: &[
            (
                "decided-places",
                "the sizes of the parts and the index are constants, and the output of this part is present",
            ),
            ("keeps-axis", "keepdims is 1, or the sizes are a vector, which makes keepdims irrelevant"),
            ("is-there", "the axis is proved to have these elements, because otherwise a part is missing or shorter"),
        ],
        exact: true,
        operators: &["SequenceAt"],
        apply: part_of_split,
    },
    Rule {
        name: "parts-together",
        law: "ConcatFromSequence(SplitToSequence(x; axis); axis, new_axis = 0) = x",
        sentence: "Removes a split followed by a concatenation along the same axis.",
        premises: &[
            ("same-axis", "both use the same axis, and keep it"),
            ("some-parts", "the axis is proved not to be empty, because otherwise no part exists"),
            ("decided-sizes", "the sizes of the parts are constants, and proved to be those of the axis"),
        ],
        exact: true,
        operators: &["ConcatFromSequence"],
        apply: parts_together,
    },
    Rule {
        name: "insert-into-known",
        law: "SequenceInsert(SequenceConstruct(…, aⱼ₋₁, aⱼ, …), x, j) = SequenceConstruct(…, aⱼ₋₁, x, aⱼ, …)",
        sentence: "Replaces SequenceInsert into a sequence of known tensors by a new SequenceConstruct.",
        premises: &[
            ("known-elements", "the sequence is made of at most 256 tensors, or of none"),
            ("decided-place", "the position is a constant within the sequence, or omitted, which means the end"),
            ("one-reader", "the sequence has no other consumer"),
        ],
        exact: true,
        operators: &["SequenceInsert"],
        apply: insert_into_known,
    },
    Rule {
        name: "erase-from-known",
        law: "SequenceErase(SequenceConstruct(…, aⱼ₋₁, aⱼ, aⱼ₊₁, …), j) = SequenceConstruct(…, aⱼ₋₁, aⱼ₊₁, …)",
        sentence: "Replaces SequenceErase from a sequence of known tensors by a new SequenceConstruct.",
        premises: &[
            ("known-elements", "the sequence is made of 2 to 256 tensors"),
            ("decided-place", "the position is a constant within the sequence, or omitted, which means the end"),
            ("one-reader", "the sequence has no other consumer"),
        ],
        exact: true,
        operators: &["SequenceErase"],
        apply: erase_from_known,
    },
    Rule {
        name: "concat-of-sequence",
        law: "ConcatFromSequence(SequenceConstruct(a₀, …, aₙ₋₁); axis, new_axis = 0) = Concat(a₀, …, aₙ₋₁; axis)",
        sentence: "Replaces the concatenation of a sequence of known tensors by a Concat.",
        premises: &[
            ("no-new-axis", "new_axis is 0: with a new axis each tensor would need an Unsqueeze"),
            ("known-ranks", "the tensors are proved to have the same rank, at least 1"),
            (
                "sizes-agree",
                "no two tensors are proved to differ on another axis: runtimes refuse such a Concat at load, but accept an empty element in a sequence",
            ),
        ],
        exact: true,
        operators: &["ConcatFromSequence"],
        apply: concat_of_sequence,
    },
    Rule {
        name: "element-of-optional",
        law: "OptionalGetElement(Optional(x)) = x",
        sentence: "Replaces the element of an optional by the tensor from which the optional was made.",
        premises: &[(
            "a-tensor",
            "the element is proved to be a tensor, because ONNX Runtime moves sequences into loops that change them",
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
    let element = elements.get(counted_in(index, elements.len())?)?;
    place.forward((*element)?)
}

fn element_of_parts(place: &Place<'_>) -> Option<Edit> {
    let split = made_of(place, "SplitToSequence")?;
    let (data, index) = (split.input(0)?, place.input(1)?);
    let is_of_rows = split.input(1).is_none() && split.int("keepdims", 1)? == 0;
    if !is_of_rows || !place.shape(index)?.is_empty() || !place.may_be_looked_up(data) {
        return None;
    }
    let axis = split.int("axis", 0)?;
    place.instead(place.edit()?, Build::gather(data, index, axis))
}

/// What a SplitToSequence takes apart, along which axis, and the sizes of the parts: a number for each, or one for all.
struct Parts {
    data: ValueId,
    axis: usize,
    sizes: Sizes,
}

enum Sizes {
    Each(i64),
    List(Vec<i64>),
}

impl Parts {
    /// The parts of the sequence that is the first operand, where they keep the axis and their sizes are constants.
    fn of(place: &Place<'_>) -> Option<Parts> {
        let split = made_of(place, "SplitToSequence")?;
        let data = split.input(0)?;
        let axis = axis_in(split.int("axis", 0)?, place.shape(data)?.len()).ok()?;
        let keeps = split.int("keepdims", 1)? != 0;
        let sizes = match split.input(1) {
            None => Sizes::Each(1),
            Some(sizes) => match (place.shape(sizes)?, place.const_ints(sizes)?) {
                ([], one) => Sizes::Each(*one.first()?),
                (_, list) => Sizes::List(list),
            },
        };
        let positive = match &sizes {
            Sizes::Each(size) => *size > 0 && keeps,
            Sizes::List(list) => list.iter().all(|&size| size >= 0),
        };
        positive.then_some(Parts { data, axis, sizes })
    }

    /// Where part `index` begins and ends, were the axis long enough.
    fn range(&self, index: i64) -> Option<(i64, i64)> {
        match &self.sizes {
            Sizes::Each(size) if index >= 0 => {
                Some((index.checked_mul(*size)?, index.checked_add(1)?.checked_mul(*size)?))
            }
            Sizes::Each(_) => None,
            Sizes::List(list) => {
                let at = counted_in(index, list.len())?;
                let sum = |sizes: &[i64]| sizes.iter().try_fold(0i64, |sum, &size| sum.checked_add(size));
                Some((sum(list.get(..at)?)?, sum(list.get(..=at)?)?))
            }
        }
    }
}

fn part_of_split(place: &Place<'_>) -> Option<Edit> {
    let parts = Parts::of(place)?;
    let [index] = place.const_ints(place.input(1)?)?.try_into().ok()?;
    let (begin, end) = parts.range(index)?;
    let size = place.shape(parts.data)?.get(parts.axis)?;
    // The last of equal parts may be shorter.
    let reaches = match &parts.sizes {
        Sizes::Each(_) => begin.checked_add(1)?,
        Sizes::List(_) => end,
    };
    if !place.scope().ge(size, &Dim::constant(reaches)).is_yes() {
        return None;
    }
    let mut edit = place.edit()?;
    let axis = i64::try_from(parts.axis).ok()?;
    let node =
        place.build(&mut edit, place.output(0)?).slice(parts.data, vec![begin], vec![end], vec![axis], vec![1])?;
    place.instead(edit, node)
}

fn parts_together(place: &Place<'_>) -> Option<Edit> {
    let (parts, node) = (Parts::of(place)?, place.node()?);
    let shape = place.shape(parts.data)?;
    // It has no default.
    let axis = node.attribute("axis").and(node.int("axis", 0))?;
    if node.int("new_axis", 0)? != 0 || axis_in(axis, shape.len()).ok()? != parts.axis {
        return None;
    }
    let size = shape.get(parts.axis)?;
    let whole = match &parts.sizes {
        Sizes::Each(_) => place.scope().ge(size, &Dim::constant(1)).is_yes(),
        Sizes::List(list) => {
            let sum = list.iter().try_fold(0i64, |sum, &size| sum.checked_add(size))?;
            !list.is_empty() && place.scope().eq(size, &Dim::constant(sum)).is_yes()
        }
    };
    if whole { place.forward(parts.data) } else { None }
}

/// Longer sequences are left alone: each tensor that is put in or taken out writes the whole list anew.
const MOST_ELEMENTS: usize = 256;

/// What the sequence that is the first operand is made of, if nothing else reads it.
fn elements_of(place: &Place<'_>) -> Option<Vec<Option<ValueId>>> {
    let sequence = place.input(0)?;
    if place.model.is_named(sequence) || place.model.users(sequence).len() != 1 {
        return None;
    }
    let elements = match place.producer(sequence, "SequenceEmpty") {
        Some(_) => Vec::new(),
        None => made_of(place, "SequenceConstruct")?.inputs().to_vec(),
    };
    (elements.len() <= MOST_ELEMENTS).then_some(elements)
}

/// The number in an operand that may be left out; `None` if it is not known.
fn told(place: &Place<'_>, slot: usize, otherwise: i64) -> Option<i64> {
    match place.input(slot) {
        None => Some(otherwise),
        Some(value) => <[i64; 1]>::try_from(place.const_ints(value)?).ok().map(|[number]| number),
    }
}

fn insert_into_known(place: &Place<'_>) -> Option<Edit> {
    let mut elements = elements_of(place)?;
    let count = elements.len();
    let at = told(place, 2, i64::try_from(count).ok()?)?;
    let at = if at < 0 { at.checked_add(i64::try_from(count).ok()?)? } else { at };
    let at = usize::try_from(at).ok().filter(|&at| at <= count)?;
    elements.insert(at, Some(place.input(1)?));
    place.instead(place.edit()?, NewNode::new("SequenceConstruct", elements))
}

fn erase_from_known(place: &Place<'_>) -> Option<Edit> {
    let mut elements = elements_of(place)?;
    let at = counted_in(told(place, 1, -1)?, elements.len())?;
    elements.remove(at);
    // An empty one would have to say of what type its elements are.
    (!elements.is_empty()).then_some(())?;
    place.instead(place.edit()?, NewNode::new("SequenceConstruct", elements))
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
