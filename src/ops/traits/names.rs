//! The names of the default domain's operators with a trait, for rules that match a class of operators.
//!
//! The lists are computed from the table at compile time.

use super::{Movement, Operands, Pointwise, Traits};
use crate::ops::registry::FAMILIES;

/// Counts the operators of the default domain with a trait, and lists the first `COUNT` names.
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
    /// Operators that return the elements of an operand in another shape.
    LAYOUTS, traits => matches!(traits.moves, Some(Movement::Layout));
    /// Operators whose results are elements of the first operand of any type, none repeated along an axis.
    MOVING, traits => traits.moves_without_repeating();
    /// Operators whose results have an index map.
    MOVED, traits => traits.index_map.is_some();
    /// Operators that keep the elements of an operand in order, possibly repeated.
    IN_ORDER, traits => matches!(traits.moves, Some(Movement::Layout | Movement::Spread));
    /// Operators that may only spread an operand or a scalar.
    SPREADING, traits => traits.uniform.is_some() || traits.neutral.is_some()
        || matches!(traits.moves, Some(Movement::Layout | Movement::Spread | Movement::Selection));
    /// Operators whose result has equal elements if the operands do.
    FILLING, traits => traits.uniform.is_some()
        || matches!(traits.moves, Some(Movement::Layout | Movement::Spread | Movement::Selection));
    /// Operators across which ONNX Runtime moves quantizations.
    CARRYING_QUANTIZATION, traits => traits.carries_quantization;
    /// Operators with a neutral element.
    WITH_NEUTRAL, traits => traits.neutral.is_some();
    /// Operators that return a single operand unchanged.
    VARIADIC, traits => traits.variadic;
}
