//! The names of the operators of the default domain that have a trait, for rules that look at a class of operators.
//!
//! They are worked out from the table when the program is compiled.

use super::{Movement, Operands, Pointwise, Traits};
use crate::ops::registry::FAMILIES;

/// How many operators of the default domain have a trait, and the first `COUNT` of their names.
macro_rules! search {
    ($count:ident, $operator:ident => $found:block) => {
        let (mut family, mut $count) = (0, 0);
        while family < FAMILIES.len() {
            let mut at = 0;
            while at < FAMILIES[family].len() {
                let $operator = &FAMILIES[family][at];
                if $operator.domain.is_empty() && has(&$operator.traits) {
                    $found
                    $count += 1;
                }
                at += 1;
            }
            family += 1;
        }
    };
}

macro_rules! named {
    ($($(#[$doc:meta])* $name:ident, $traits:ident => $has:expr;)*) => {
        $($(#[$doc])*
        #[allow(clippy::indexing_slicing, reason = "it is worked out when the program is compiled")]
        pub const $name: &[&str] = &{
            const fn has($traits: &Traits) -> bool {
                $has
            }
            const fn count() -> usize {
                search!(count, operator => {});
                count
            }
            let mut names = [""; count()];
            search!(count, operator => { names[count] = operator.name; });
            names
        };)*
    };
}

named! {
    /// Operators whose operands are broadcast against each other.
    BROADCASTING, traits => matches!(traits.pointwise, Some(Pointwise { operands: Operands::Broadcast, .. }));
    /// Operators that lay the elements of an operand out in another shape.
    LAYOUTS, traits => matches!(traits.moves, Some(Movement::Layout));
    /// Operators whose results are elements of the first operand, none of them repeated along an axis, whatever their type.
    MOVING, traits => traits.moves_without_repeating();
    /// Operators whose results have an index map.
    MOVED, traits => traits.index_map.is_some();
    /// Operators that keep the elements of an operand in order and at most repeat them.
    IN_ORDER, traits => matches!(traits.moves, Some(Movement::Layout | Movement::Spread));
    /// Operators that may do no more than spread an operand, or one number.
    SPREADING, traits => traits.uniform.is_some() || traits.neutral.is_some()
        || matches!(traits.moves, Some(Movement::Layout | Movement::Spread | Movement::Selection));
    /// Operators that make one number everywhere of one number everywhere.
    FILLING, traits => traits.uniform.is_some()
        || matches!(traits.moves, Some(Movement::Layout | Movement::Spread | Movement::Selection));
    /// Operators that ONNX Runtime carries quantizations over.
    CARRYING_QUANTIZATION, traits => traits.carries_quantization;
    /// Operators with a neutral element.
    WITH_NEUTRAL, traits => traits.neutral.is_some();
    /// Operators that of one operand alone give that operand.
    VARIADIC, traits => traits.variadic;
}
