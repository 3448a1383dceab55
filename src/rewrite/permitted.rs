//! Guards for every edit, whatever its rule proves: no edit introduces nodes that ONNX Runtime or another consumer computes wrongly or does
//! not load. Each guard documents one defect. Nodes that an author has written are not changed.

use super::Place;
use super::divisors::keeps_divisors_computed;
use super::fuse::pooled::keeps_pads_from_pools;
use super::introduced::introduces_nothing;
use super::narrow::{moves_nothing_narrow, passes_nothing_narrow};
use super::ranges::looks_up_by_no_negative_range;
use super::shown::turns_no_output;
use super::strings::looks_up_no_strings;
use super::turned::multiplies_nothing_turned;
use super::weighted::multiplies_no_integers;
use crate::ir::Edit;

/// Whether an edit gives consumers nothing that they are known to misread.
pub fn is_read_right(place: &Place<'_>, edit: &Edit) -> bool {
    introduces_nothing(place, edit)
        && keeps_pads_from_pools(place, edit)
        && keeps_divisors_computed(place, edit)
        && looks_up_no_strings(place, edit)
        && looks_up_by_no_negative_range(place, edit)
        && multiplies_nothing_turned(place, edit)
        && multiplies_no_integers(place, edit)
        && turns_no_output(place, edit)
        && passes_nothing_narrow(place, edit)
        && moves_nothing_narrow(place, edit)
}
