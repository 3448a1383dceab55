//! Tests of runtimes' shape inference: contents of operands determine dims exactly where that is declared.
//!
//! Measurements show that runtimes infer at least as much; here our inference is the upper limit.

use super::*;

/// Checks that inferred dims do not depend on contents before the declared slot, and do depend on those from it on.
pub(super) fn inferring(operator: &Operator) -> Result<usize, String> {
    let ShapeInference { contents_from, numbers, .. } = operator.traits.shape_inference.unwrap();
    let mut random = Numbers(0x5eed);
    let samples = match operator.traits.pointwise {
        Some(_) => TYPES
            .into_iter()
            .map(|dtype| operands(operator, &mut random, dtype, &|_| vec![5, 4]))
            .filter(|sample| sample.eval().is_some())
            .collect(),
        None => samples(operator.name),
    };
    let mut counts = contents_from == usize::MAX;
    for sample in &samples {
        let sizes = sample.sizes_without(&[]).ok_or("the sizes of constant operands are not inferred")?;
        let (free, read): (Vec<usize>, Vec<usize>) = (0..sample.operands.len()).partition(|&slot| slot < contents_from);
        if sample.sizes_without(&free).as_ref() != Some(&sizes) {
            return Err(format!("sizes depend on what operands before operand {contents_from} hold"));
        }
        counts |= sample.sizes_without(&read).as_ref() != Some(&sizes);
        let joined = match numbers {
            NumbersOf::Any | NumbersOf::Whole(_) => 0,
            NumbersOf::SameAxisOfFirst => 1,
            NumbersOf::SameAxisOfEach => sample.operands.len(),
        };
        if (0..joined).any(|slot| sample.operand(slot).rank() != sizes.len()) {
            return Err("the axes of the result are not those of the operands".into());
        }
    }
    if !counts && !samples.is_empty() {
        return Err(format!("sizes do not depend on what operands from operand {contents_from} on hold"));
    }
    Ok(samples.len())
}
