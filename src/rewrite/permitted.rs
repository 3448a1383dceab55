//! What no edit may do, whatever its rule proves: give ONNX Runtime something that it computes otherwise than the operators say, or does not
//! load. Each guard tells of its own defect; where an author has written such a thing, it stays.

use super::Place;
use super::divisors::keeps_divisors_computed;
use super::fuse::pooled::keeps_pads_from_pools;
use super::narrow::{moves_nothing_narrow, passes_nothing_narrow};
use super::ranges::looks_up_by_no_negative_range;
use super::shown::turns_no_output;
use super::strings::looks_up_no_strings;
use super::turned::multiplies_nothing_turned;
use super::weighted::multiplies_no_integers;
use crate::ir::Edit;

/// Whether an edit gives ONNX Runtime nothing that it is known to misread.
pub fn is_read_right(place: &Place<'_>, edit: &Edit) -> bool {
    keeps_pads_from_pools(place, edit)
        && keeps_divisors_computed(place, edit)
        && looks_up_no_strings(place, edit)
        && looks_up_by_no_negative_range(place, edit)
        && multiplies_nothing_turned(place, edit)
        && multiplies_no_integers(place, edit)
        && turns_no_output(place, edit)
        && passes_nothing_narrow(place, edit)
        && moves_nothing_narrow(place, edit)
}
