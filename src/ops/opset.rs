//! What an operator set can say.
//!
//! A version of the default domain, with its number hidden: whoever writes or reads nodes asks what the version can say and never
//! compares numbers. Whether an operator is there at all, the table of operators knows.

use super::registry::operator;
use crate::ir::{GraphId, Model};

/// A version of the operator set of the default domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opset(i64);

/// Names for "since this version".
macro_rules! since {
    ($($(#[$doc:meta])* $name:ident: $version:literal,)*) => {
        $($(#[$doc])*
        pub fn $name(self) -> bool {
            self.0 >= $version
        })*
    };
}

impl Opset {
    /// This version; 0 is none.
    pub fn new(version: i64) -> Self {
        Opset(version)
    }

    /// The version in force in a graph; none where it is not known.
    pub fn of(model: &Model, graph: GraphId) -> Self {
        Opset(model.opset(graph, "").unwrap_or(0))
    }

    /// The number.
    pub fn version(self) -> i64 {
        self.0
    }

    /// Whether the operator set has an operator.
    pub fn has(self, name: &str) -> bool {
        operator("", name).is_some_and(|operator| operator.since(self.0).is_some())
    }

    since! {
        /// Whether there is one.
        is_known: 1,
        /// Whether Split and Pad have the attributes `split` and `pads`.
        has_split_and_pads: 2,
        /// Whether a Concat must name its axis. Before it is 1 where none is named.
        concat_names_its_axis: 4,
        /// Whether a Reshape has its sizes as an operand. Before they are the attribute `shape`.
        reshape_has_operand: 5,
        /// Whether Cast names its type by number, and a Tile has repeats for every axis.
        cast_by_number_and_tile_by_axis: 6,
        /// Whether arithmetic, logic, comparisons and the `C` of a Gemm broadcast. Before they do as attributes say.
        arithmetic_broadcasts: 7,
        /// Whether a BatchNormalization or Dropout is told apart in training by its results. Before `is_test` tells.
        training_is_told_by_results: 7,
        /// Whether an AveragePool may count its padding.
        pools_count_padding: 7,
        /// Whether Max, Min, Mean and Sum broadcast as well, there is an Expand, and movements take every type.
        everything_broadcasts: 8,
        /// Whether a BatchNormalization always has one number a channel. Before `spatial` tells.
        normalizes_by_channel: 9,
        /// Whether a Flatten takes every type. Before it takes floats.
        flatten_takes_every_type: 9,
        /// Whether a Slice has its bounds as operands, and steps. Before they are attributes.
        slice_has_operands: 10,
        /// Whether axes and indices may be counted from the end.
        counts_from_the_end: 11,
        /// Whether Pad and Clip have their numbers as operands. Before they are attributes.
        pad_and_clip_have_operands: 11,
        /// Whether a Gemm can do without its `C`.
        gemm_without_bias: 11,
        /// Whether a Resize may be told sizes.
        resize_to_sizes: 11,
        /// Whether the axes of a Squeeze, an Unsqueeze and a ReduceSum and the sizes of a Split are operands. Before they are attributes.
        axes_are_operands: 13,
        /// Whether operators compute in bfloat16.
        computes_in_bfloat16: 13,
        /// Whether a Softmax works along one axis. Before, on all from that axis on.
        softmax_along_one_axis: 13,
        /// Whether a Dropout is in training as an operand says.
        has_dropout_training: 12,
        /// Whether a BatchNormalization is in training as an attribute says.
        training_is_an_attribute: 14,
        /// Whether a size of 0 that a Reshape is told may be meant.
        reshape_may_keep_zero: 14,
        /// Whether a Shape may be that of a run of axes.
        shape_of_a_run: 15,
        /// Whether the axes of all reductions are operands. Before those of all but ReduceSum are attributes.
        reduces_axes_of_an_operand: 18,
        /// Whether a Split may be told how many parts there are.
        split_by_count: 18,
        /// Whether a GroupNormalization has a scale for each channel. Before it has one for each group.
        scales_channels_of_groups: 21,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operator_set_has_what_came_before_it() {
        assert!(Opset::new(8).has("Expand") && !Opset::new(7).has("Expand"));
        assert!(Opset::new(20).has("Gelu") && !Opset::new(19).has("Gelu"));
        assert!(!Opset::new(28).has("NoSuchOperator"));
    }

    #[test]
    fn what_the_table_knows_as_well_agrees() {
        // Where a spelling changed, the operator has a version: the first one that has it.
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
