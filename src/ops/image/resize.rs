use super::sizes;
use crate::ops::Operator;

pub(super) const RESIZE: Operator = Operator::infer_only("Resize", &[10, 11, 13, 18, 19], sizes::infer);
pub(super) const UPSAMPLE: Operator = Operator::infer_only("Upsample", &[1, 7, 9, 10], sizes::infer);
