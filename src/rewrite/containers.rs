//! Removes sequences of known tensors. Scripted exports store tensors in lists, and few runtimes support the sequence type.

use super::miss::{Miss, ensure, prove};
use super::place::Place;
use super::rule::{Rule, miss};
use crate::dim::Dim;
use crate::ir::{Edit, Node, ValueId};
use crate::ops::axis_in;
use crate::tensor::counted_in;

pub(super) const RULES: &[Rule] = &[Rule {
    name: "part-of-split",
    law: "SequenceAt(SplitToSequence(x; sizes s₀, s₁, …), i) = x[s₀ + … + sᵢ₋₁ : s₀ + … + sᵢ]",
    sentence: "Replaces SequenceAt on the result of SplitToSequence by a Slice of the split tensor.",
    premises: &[
        ("decided-places", "the sizes of the parts and the index i are constants, and part i exists"),
        ("keeps-axis", "keepdims is 1, or has no effect because the operand split is a vector"),
        (
            "is-there",
            "the axis is proved to be long enough for part i, because part i of a shorter axis would be shorter or missing",
        ),
    ],
    exact: true,
    operators: &["SequenceAt"],
    apply: part_of_split,
}];

/// Returns the producer of the first operand.
fn made_of<'a>(place: &Place<'a>, operator: &str) -> Result<&'a Node, Miss> {
    Ok(place.producer(place.operand(0)?, operator).ok_or(Miss::ROOT)?.1)
}

/// The operand of a SplitToSequence, its axis, and the sizes of the parts: one for each part, or one for all.
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
    /// Returns the parts of the sequence in the first operand, if `keepdims` is 1 and the sizes are constants.
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

    /// Returns the begin and end of part `index`, provided that the axis is long enough.
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
    let size = place.dims(parts.data)?.get(parts.axis).ok_or(miss!("is-there").of(parts.data))?;
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
