//! Sequences and optionals that are taken apart where they are put together: scripted exports pass lists of tensors and optional
//! arguments around, and few runtimes know these types.

use super::build::Build;
use super::miss::{Miss, ensure, prove};
use super::place::Place;
use super::rule::{Rule, miss};
use crate::dim::Dim;
use crate::ir::{Edit, NewNode, Node, Type, ValueId};
use crate::ops::axis_in;
use crate::tensor::counted_in;

pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "element-of-sequence",
        law: "SequenceAt(SequenceConstruct(a₀, …, aₙ₋₁), i) = aⱼ with j = i, or i + n where i < 0",
        sentence: "Replaces an element of a sequence of known tensors by the tensor.",
        premises: &[("decided-index", "the index is a constant, and the sequence has such an element")],
        exact: true,
        operators: &["SequenceAt"],
        apply: element_of_sequence,
    },
    Rule {
        name: "element-of-parts",
        law: "SequenceAt(SplitToSequence(x; axis, keepdims = 0), i) = Gather(x, i; axis)",
        sentence: "Replaces an element of a split tensor by a Gather in the tensor.",
        premises: &[
            ("parts-of-one", "no sizes are given and keepdims is 0: each part is one place of the axis, without it"),
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
                "the sizes of the parts and the index are constants, and there is such a part among those named",
            ),
            ("keeps-axis", "keepdims is 1, or the sizes are a vector, which makes keepdims irrelevant"),
            (
                "is-there",
                "the axis is proved to reach as far: where it does not, there is no such part, and a slice takes less",
            ),
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
            ("some-parts", "the axis is proved to hold something: there is nothing to concatenate otherwise"),
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
            ("decided-place", "the place is a constant within the sequence, or left out: at the end"),
            ("one-reader", "nothing else reads the sequence"),
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
            ("decided-place", "the place is a constant within the sequence, or left out: at the end"),
            ("one-reader", "nothing else reads the sequence"),
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
            "the element is proved to be a tensor: ONNX Runtime moves a sequence into a loop that changes it, and leaves nothing for a second consumer",
        )],
        exact: true,
        operators: &["OptionalGetElement"],
        apply: element_of_optional,
    },
];

/// The node that puts the first operand together.
fn made_of<'a>(place: &Place<'a>, operator: &str) -> Result<&'a Node, Miss> {
    Ok(place.producer(place.operand(0)?, operator).ok_or(Miss::ROOT)?.1)
}

fn element_of_sequence(place: &Place<'_>) -> Result<Edit, Miss> {
    let elements = made_of(place, "SequenceConstruct")?.inputs();
    let [index] = place
        .const_ints(place.operand(1)?)
        .ok_or(miss!("decided-index"))?
        .try_into()
        .or(Err(miss!("decided-index")))?;
    let element =
        elements.get(counted_in(index, elements.len()).ok_or(miss!("decided-index"))?).ok_or(miss!("decided-index"))?;
    place.forward((*element).ok_or(Miss::ROOT)?)
}

fn element_of_parts(place: &Place<'_>) -> Result<Edit, Miss> {
    let split = made_of(place, "SplitToSequence")?;
    let (data, index) = (split.input(0).ok_or(Miss::ROOT)?, place.operand(1)?);
    let is_of_rows = split.input(1).is_none() && split.int("keepdims", 1).ok_or(Miss::ROOT)? == 0;
    ensure(is_of_rows, miss!("parts-of-one"))?;
    ensure(place.shape(index).ok_or(miss!("scalar-index").of(index))?.is_empty(), miss!("scalar-index").of(index))?;
    ensure(place.may_be_looked_up(data), miss!("no-strings").of(data))?;
    let axis = split.int("axis", 0).ok_or(Miss::ROOT)?;
    place.instead(place.begin()?, Build::gather(data, index, axis))
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
    fn of(place: &Place<'_>, decided: Miss, keeps_axis: Miss) -> Result<Parts, Miss> {
        let split = made_of(place, "SplitToSequence")?;
        let data = split.input(0).ok_or(Miss::ROOT)?;
        let axis = axis_in(split.int("axis", 0).ok_or(Miss::ROOT)?, place.shape(data).ok_or(decided.of(data))?.len())
            .or(Err(decided.of(data)))?;
        let keeps = split.int("keepdims", 1).ok_or(Miss::ROOT)? != 0;
        let sizes = match split.input(1) {
            None => Sizes::Each(1),
            Some(sizes) => {
                match (place.shape(sizes).ok_or(decided.of(sizes))?, place.const_ints(sizes).ok_or(decided.of(sizes))?)
                {
                    ([], one) => Sizes::Each(*one.first().ok_or(Miss::ROOT)?),
                    (_, list) => Sizes::List(list),
                }
            }
        };
        let positive = match &sizes {
            Sizes::Each(size) => *size > 0 && keeps,
            Sizes::List(list) => list.iter().all(|&size| size >= 0),
        };
        ensure(positive, keeps_axis)?;
        Ok(Parts { data, axis, sizes })
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

fn part_of_split(place: &Place<'_>) -> Result<Edit, Miss> {
    let parts = Parts::of(place, miss!("decided-places"), miss!("keeps-axis"))?;
    let [index] = place
        .const_ints(place.operand(1)?)
        .ok_or(miss!("decided-places"))?
        .try_into()
        .or(Err(miss!("decided-places")))?;
    let (begin, end) = parts.range(index).ok_or(miss!("decided-places"))?;
    let size = place
        .shape(parts.data)
        .ok_or(miss!("is-there").of(parts.data))?
        .get(parts.axis)
        .ok_or(miss!("is-there").of(parts.data))?;
    // The last of equal parts may be shorter.
    let reaches = match &parts.sizes {
        Sizes::Each(_) => begin.checked_add(1).ok_or(Miss::COMPUTABLE)?,
        Sizes::List(_) => end,
    };
    prove(place.scope().ge(size, &Dim::constant(reaches)), miss!("is-there").dim(parts.data, parts.axis))?;
    let mut edit = place.begin()?;
    let axis = i64::try_from(parts.axis).or(Err(Miss::COMPUTABLE))?;
    let node = place
        .build(&mut edit, place.result()?)
        .slice(parts.data, vec![begin], vec![end], vec![axis], vec![1])
        .ok_or(Miss::EXPRESSIBLE)?;
    place.instead(edit, node)
}

fn parts_together(place: &Place<'_>) -> Result<Edit, Miss> {
    let (parts, node) = (Parts::of(place, miss!("decided-sizes"), miss!("same-axis"))?, place.root()?);
    let shape = place.shape(parts.data).ok_or(miss!("same-axis").of(parts.data))?;
    // It has no default.
    let axis = node.attribute("axis").and(node.int("axis", 0)).ok_or(miss!("same-axis"))?;
    ensure(node.int("new_axis", 0).ok_or(Miss::ROOT)? == 0, miss!("same-axis"))?;
    ensure(axis_in(axis, shape.len()).or(Err(miss!("same-axis")))? == parts.axis, miss!("same-axis"))?;
    let size = shape.get(parts.axis).ok_or(Miss::ROOT)?;
    let (some, decided) = (miss!("some-parts"), miss!("decided-sizes"));
    match &parts.sizes {
        Sizes::Each(_) => {
            prove(place.scope().ge(size, &Dim::constant(1)), some.dim(parts.data, parts.axis))?;
        }
        Sizes::List(list) => {
            ensure(!list.is_empty(), some)?;
            let sum = list.iter().try_fold(0i64, |sum, &size| sum.checked_add(size)).ok_or(Miss::COMPUTABLE)?;
            prove(place.scope().eq(size, &Dim::constant(sum)), decided.dim(parts.data, parts.axis))?;
        }
    }
    place.forward(parts.data)
}

/// Longer sequences are left alone: each tensor that is put in or taken out writes the whole list anew.
const MOST_ELEMENTS: usize = 256;

/// What the sequence that is the first operand is made of, if nothing else reads it.
fn elements_of(place: &Place<'_>) -> Result<Vec<Option<ValueId>>, Miss> {
    let sequence = place.operand(0)?;
    ensure(!place.model.is_named(sequence), miss!("one-reader").of(sequence))?;
    ensure(place.model.users(sequence).len() == 1, miss!("one-reader").of(sequence))?;
    let elements = match place.producer(sequence, "SequenceEmpty") {
        Some(_) => Vec::new(),
        None => made_of(place, "SequenceConstruct").or(Err(miss!("known-elements").of(sequence)))?.inputs().to_vec(),
    };
    ensure(elements.len() <= MOST_ELEMENTS, miss!("known-elements").of(sequence))?;
    Ok(elements)
}

/// The number in an operand that may be left out; `None` if it is not known.
fn told(place: &Place<'_>, slot: usize, otherwise: i64) -> Result<i64, Miss> {
    match place.input(slot) {
        None => Ok(otherwise),
        Some(value) => match place.const_ints(value).as_deref() {
            Some(&[number]) => Ok(number),
            _ => Err(miss!("decided-place").of(value)),
        },
    }
}

fn insert_into_known(place: &Place<'_>) -> Result<Edit, Miss> {
    let mut elements = elements_of(place)?;
    let count = elements.len();
    let at = told(place, 2, i64::try_from(count).or(Err(Miss::COMPUTABLE))?)?;
    let at = if at < 0 {
        at.checked_add(i64::try_from(count).or(Err(Miss::COMPUTABLE))?).ok_or(Miss::COMPUTABLE)?
    } else {
        at
    };
    let at = usize::try_from(at).ok().filter(|&at| at <= count).ok_or(miss!("decided-place"))?;
    elements.insert(at, Some(place.operand(1)?));
    place.instead(place.begin()?, NewNode::new("SequenceConstruct", elements))
}

fn erase_from_known(place: &Place<'_>) -> Result<Edit, Miss> {
    let mut elements = elements_of(place)?;
    let at = counted_in(told(place, 1, -1)?, elements.len()).ok_or(miss!("decided-place"))?;
    elements.remove(at);
    // An empty one would have to say of what type its elements are.
    ensure(!elements.is_empty(), miss!("known-elements"))?;
    place.instead(place.begin()?, NewNode::new("SequenceConstruct", elements))
}

fn concat_of_sequence(place: &Place<'_>) -> Result<Edit, Miss> {
    let parts: Vec<ValueId> =
        made_of(place, "SequenceConstruct")?.inputs().iter().copied().collect::<Option<_>>().ok_or(Miss::ROOT)?;
    let node = place.root()?;
    let shapes: Vec<&[Dim]> =
        parts.iter().map(|&part| place.shape(part)).collect::<Option<_>>().ok_or(miss!("known-ranks"))?;
    let rank = shapes.first().ok_or(Miss::ROOT)?.len();
    ensure(node.int("new_axis", 0).ok_or(Miss::ROOT)? == 0, miss!("no-new-axis"))?;
    ensure(rank != 0, miss!("known-ranks"))?;
    ensure(!shapes.iter().any(|shape| shape.len() != rank), miss!("known-ranks"))?;
    // It has no default.
    let axis = node.attribute("axis").and(node.int("axis", 0)).ok_or(Miss::ROOT)?;
    let joined = if axis < 0 {
        axis.checked_add(i64::try_from(rank).or(Err(Miss::COMPUTABLE))?).ok_or(Miss::COMPUTABLE)?
    } else {
        axis
    };
    let joined = usize::try_from(joined).ok().filter(|&joined| joined < rank).ok_or(miss!("known-ranks"))?;
    // A size that runtimes know only by name is compared with none.
    let others = |shape: &&[Dim]| {
        shape.iter().enumerate().filter(|&(at, _)| at != joined).map(|(_, dim)| dim.clone()).collect::<Vec<_>>()
    };
    let sizes: Vec<Vec<Dim>> = shapes.iter().map(others).collect();
    let differ = |a: &Vec<Dim>, b: &Vec<Dim>| a.iter().zip(b).any(|(a, b)| place.scope().eq(a, b).is_no());
    ensure(
        !(sizes.iter().enumerate().any(|(at, one)| sizes.iter().skip(at + 1).any(|other| differ(one, other)))),
        miss!("known-ranks"),
    )?;
    place.instead(place.begin()?, Build::concat(parts, axis))
}

fn element_of_optional(place: &Place<'_>) -> Result<Edit, Miss> {
    let element = made_of(place, "Optional")?.input(0).ok_or(Miss::ROOT)?;
    let is_tensor = matches!(place.fact(element).ok_or(miss!("a-tensor").of(element))?.ty, Some(Type::Tensor(_)));
    ensure(is_tensor, miss!("a-tensor").of(element))?;
    place.forward(element)
}
