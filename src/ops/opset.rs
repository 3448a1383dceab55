//! Features of operator sets.
//!
//! A version of the default domain with a hidden number: readers and writers of nodes query features instead of comparing numbers.
//! The table of operators knows which operators exist.

use super::registry::operator;
use crate::ir::{GraphId, Model};

/// A version of the default domain's operator set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opset(i64);

/// Defines predicates for "since this version".
macro_rules! since {
    ($($(#[$doc:meta])* $name:ident: $version:literal,)*) => {
        $($(#[$doc])*
        pub fn $name(self) -> bool {
            self.0 >= $version
        })*
    };
}

impl Opset {
    /// Returns this version; 0 means unknown.
    pub fn new(version: i64) -> Self {
        Opset(version)
    }

    /// Returns the version in force in a graph; 0 if it is unknown.
    pub fn of(model: &Model, graph: GraphId) -> Self {
        Opset(model.opset(graph, "").unwrap_or(0))
    }

    /// Returns the number.
    pub fn version(self) -> i64 {
        self.0
    }

    /// Returns `true` if the operator set contains an operator.
    pub fn has(self, name: &str) -> bool {
        operator("", name).is_some_and(|operator| operator.since(self.0).is_some())
    }

    since! {
        /// Returns `true` if the version is known.
        is_known: 1,
        /// Returns `true` if Split and Pad have the attributes `split` and `pads`.
        has_split_and_pads: 2,
        /// Returns `true` if Concat requires an axis. Earlier versions default to 1.
        concat_names_its_axis: 4,
        /// Returns `true` if Reshape has its sizes as an operand. Earlier versions have the attribute `shape`.
        reshape_has_operand: 5,
        /// Returns `true` if Cast has its type as a number, and Tile has repeats for every axis.
        cast_by_number_and_tile_by_axis: 6,
        /// Returns `true` if arithmetic, logic, comparisons and the `C` of a Gemm broadcast. Earlier versions need attributes.
        arithmetic_broadcasts: 7,
        /// Returns `true` if the results of a BatchNormalization or Dropout determine its mode. Earlier versions have `is_test`.
        training_is_told_by_results: 7,
        /// Returns `true` if AveragePool may include its padding.
        pools_count_padding: 7,
        /// Returns `true` if Max, Min, Mean and Sum broadcast, Expand exists, and data movement accepts all types.
        everything_broadcasts: 8,
        /// Returns `true` if BatchNormalization always has one number per channel. Earlier versions have `spatial`.
        normalizes_by_channel: 9,
        /// Returns `true` if Flatten accepts all types. Earlier versions accept floats only.
        flatten_takes_every_type: 9,
        /// Returns `true` if Slice has its bounds as operands, and steps. Earlier versions have attributes.
        slice_has_operands: 10,
        /// Returns `true` if axes and indices may be negative.
        counts_from_the_end: 11,
        /// Returns `true` if Pad and Clip have their numbers as operands. Earlier versions have attributes.
        pad_and_clip_have_operands: 11,
        /// Returns `true` if the `C` of a Gemm is optional.
        gemm_without_bias: 11,
        /// Returns `true` if Resize accepts sizes.
        resize_to_sizes: 11,
        /// Returns `true` if Squeeze, Unsqueeze and ReduceSum have axes as operands, and Split sizes. Earlier versions have attributes.
        axes_are_operands: 13,
        /// Returns `true` if operators compute in bfloat16.
        computes_in_bfloat16: 13,
        /// Returns `true` if Softmax works along one axis. Earlier versions use all axes from `axis` on.
        softmax_along_one_axis: 13,
        /// Returns `true` if Dropout has the operand `training_mode`.
        has_dropout_training: 12,
        /// Returns `true` if BatchNormalization has the attribute `training_mode`.
        training_is_an_attribute: 14,
        /// Returns `true` if Reshape has `allowzero`, for sizes of 0.
        reshape_may_keep_zero: 14,
        /// Returns `true` if Shape can select a range of axes.
        shape_of_a_run: 15,
        /// Returns `true` if all reductions have axes as operands. Earlier, only ReduceSum does.
        reduces_axes_of_an_operand: 18,
        /// Returns `true` if Split accepts the number of parts.
        split_by_count: 18,
        /// Returns `true` if GroupNormalization has one scale per channel. Earlier versions have one per group.
        scales_channels_of_groups: 21,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_opset_includes_earlier_features() {
        assert!(Opset::new(8).has("Expand") && !Opset::new(7).has("Expand"));
        assert!(Opset::new(20).has("Gelu") && !Opset::new(19).has("Gelu"));
        assert!(!Opset::new(28).has("NoSuchOperator"));
    }

    #[test]
    fn features_agree_with_the_operator_table() {
        // If the spelling changed, the operator has a version: the first one with the new spelling.
        let changed: &[(&str, i64, fn(Opset) -> bool)] = &[
            ("Split", 2, Opset::has_split_and_pads),
            ("Concat", 4, Opset::concat_names_its_axis),
            ("Reshape", 5, Opset::reshape_has_operand),
            ("Tile", 6, Opset::cast_by_number_and_tile_by_axis),
            ("Cast", 6, Opset::cast_by_number_and_tile_by_axis),
            ("Add", 7, Opset::arithmetic_broadcasts),
            ("Max", 8, Opset::everything_broadcasts),
            ("Slice", 10, Opset::slice_has_operands),
            ("Pad", 11, Opset::pad_and_clip_have_operands),
            ("Clip", 11, Opset::pad_and_clip_have_operands),
            ("Gemm", 11, Opset::gemm_without_bias),
            ("Squeeze", 13, Opset::axes_are_operands),
            ("Split", 13, Opset::axes_are_operands),
            ("ReduceSum", 13, Opset::axes_are_operands),
            ("Softmax", 13, Opset::softmax_along_one_axis),
            ("Dropout", 12, Opset::has_dropout_training),
            ("Reshape", 14, Opset::reshape_may_keep_zero),
            ("BatchNormalization", 14, Opset::training_is_an_attribute),
            ("Shape", 15, Opset::shape_of_a_run),
            ("ReduceMean", 18, Opset::reduces_axes_of_an_operand),
            ("Split", 18, Opset::split_by_count),
            ("GroupNormalization", 21, Opset::scales_channels_of_groups),
        ];
        for &(name, version, can) in changed {
            assert!(can(Opset::new(version)) && !can(Opset::new(version - 1)), "{name}");
            let operator = operator("", name).unwrap();
            assert!(operator.versions.contains(&version), "{name}-{version} is no version of the table");
        }
    }
}
