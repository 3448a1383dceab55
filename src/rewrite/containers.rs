//! Sequences of known tensors: scripted exports pass lists of tensors around, and few runtimes know the type.

use super::{Place, Rule};
use crate::dim::Dim;
use crate::ir::{Edit, NewNode, Node, ValueId};
use crate::ops::axis_in;
use crate::tensor::counted_in;

pub(super) const RULES: &[Rule] = &[
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
];

/// The node that puts the first operand together.
fn made_of<'a>(place: &Place<'a>, operator: &str) -> Option<&'a Node> {
    Some(place.producer(place.input(0)?, operator)?.1)
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
