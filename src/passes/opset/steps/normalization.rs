//! Converts the training mode and parameters of BatchNormalization, GroupNormalization and Dropout.

use super::operands::known_sizes;
use crate::ir::NewNode;
use crate::passes::opset::draft::{NodeDraft, STATE_SHAPES};
use crate::tensor::{DType, Tensor};

/// The error for a node in training mode, if the target has no attribute or operand for it.
const TRAINS: &str =
    "it is in training mode (is_test is 0), which this operator set cannot express; set is_test to 1 for inference";

/// Converts `is_test` of a BatchNormalization: without it, mean and variance are those of the batch.
pub(in crate::passes::opset) fn normalization_test(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    let is_test = draft.int("is_test", 0)? != 0;
    let says_later = draft.target.training_is_an_attribute();
    if is_test {
        draft.take("is_test");
    } else if says_later {
        // Kept until the step that sets `training_mode`.
        draft.set("is_test", 0);
    } else {
        return Err(TRAINS.to_string());
    }
    Ok(())
}

/// Removes `spatial`, if there is one number for each channel.
pub(in crate::passes::opset) fn spatial(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    if draft.int("spatial", 1)? == 0 && draft.rank(0)? > 2 {
        return Err("it has a mean for each element of a channel (spatial is 0), which no newer version has; write it as Sub, Div, Mul and Add".to_string());
    }
    draft.take("spatial");
    Ok(())
}

/// Sets `training_mode`, which the listed results or `is_test` implied before.
pub(in crate::passes::opset) fn normalization_mode(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    let trains = draft.take("is_test").is_some() || draft.node.outputs.iter().skip(1).flatten().next().is_some();
    if !trains {
        draft.node.outputs.truncate(1);
        return Ok(());
    }
    if (3..5).any(|slot| draft.is_read(slot)) {
        return Err(
            "its results saved_mean and saved_var have consumers, but newer versions lack them; compute them with ReduceMean"
                .to_string(),
        );
    }
    draft.node.outputs.truncate(3);
    draft.set("training_mode", 1);
    Ok(())
}

/// Converts `is_test` of a Dropout: without it, elements are dropped at random.
pub(in crate::passes::opset) fn dropout_test(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    let is_test = draft.int("is_test", 0)? != 0;
    if is_test {
        draft.take("is_test");
    } else if draft.target.has_dropout_training() {
        draft.set("is_test", 0);
    } else {
        return Err(TRAINS.to_string());
    }
    Ok(())
}

/// Casts the mask, which had the type of the data.
pub(in crate::passes::opset) fn mask(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    if !draft.is_read(1) {
        return Ok(());
    }
    let dtype = draft.dtype(0).ok_or_else(|| format!("the element type of operand 0 is unknown; {STATE_SHAPES}"))?;
    draft.behind(1, "bools", |mask| NewNode::new("Cast", [Some(mask)]).with("to", dtype));
    Ok(())
}

/// Turns `ratio`, which only training uses, into operand 1. Since then the mask is true if nothing is dropped. Before, ONNX Runtime returns a mask of
/// zeros.
pub(in crate::passes::opset) fn dropout_ratio(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    if draft.is_read(1) && draft.attribute("is_test").is_none() {
        return Err("the mask has a consumer, and the older version does not define its contents".to_string());
    }
    let ratio = draft.float("ratio")?;
    draft.take("ratio");
    if let Some(ratio) = ratio {
        let ratio = draft.constant("ratio", Tensor::scalar(ratio));
        draft.set_input(1, ratio);
    }
    if draft.take("is_test").is_some() {
        let trains = Tensor::from_bools(&[], &[true]).map_err(|error| error.to_string())?;
        let trains = draft.constant("training_mode", trains);
        draft.set_input(2, trains);
    }
    Ok(())
}

/// Repeats the scale and bias of a group for each of its channels.
pub(in crate::passes::opset) fn channels(draft: &mut NodeDraft<'_>) -> Result<(), String> {
    if draft.attribute("num_groups").is_none() {
        return Err("attribute 'num_groups' is missing; correct the model".to_string());
    }
    let groups = draft.int("num_groups", 1)?;
    let channels = draft.shape(0).and_then(|dims| dims.get(1)?.as_const());
    let channels = channels.ok_or_else(|| format!("the number of channels of operand 0 is unknown; {STATE_SHAPES}"))?;
    let each = channels.checked_div(groups).filter(|each| *each > 0 && each.checked_mul(groups) == Some(channels));
    let each = each.ok_or_else(|| format!("{channels} channels are not {groups} equal groups; correct the model"))?;
    for slot in [1, 2] {
        let given = known_sizes(draft, slot).unwrap_or_default();
        if given.iter().any(|&size| i64::try_from(size).ok() != Some(groups)) {
            return Err(format!("operand {slot} is not of one number for each of {groups} groups; correct the model"));
        }
        let Some(data) = draft.input(slot).filter(|_| each > 1) else { continue };
        let column = draft.build("column").unsqueeze(data, vec![1]);
        let column = draft.before(column, "column");
        let spread = draft.build("spread").expand(column, vec![groups, each]).ok_or("there is no Expand")?;
        let spread = draft.before(spread, "spread");
        let row = draft.build("channels").reshape(spread, vec![channels]);
        let row = draft.before(row, "channels");
        draft.set_input(slot, row);
    }
    // Version 18 computes in the type of the data.
    match draft.dtype(0) {
        Some(DType::Float) => {}
        Some(dtype) => draft.set("stash_type", dtype),
        None => return Err(format!("the element type of operand 0 is unknown; {STATE_SHAPES}")),
    }
    Ok(())
}
