//! Sequences and optionals.
//!
//! | operator | computes | versions |
//! | --- | --- | --- |
//! | SequenceConstruct, SequenceEmpty | a sequence of the operands, an empty sequence | 11 |
//! | SequenceInsert, SequenceErase | inserts or erases an element; at the end without a position | 11 |
//! | SequenceAt, SequenceLength | an element, the number of elements | 11 |
//! | SplitToSequence | the parts of a tensor along an axis | 11; 24 adds `bfloat16` |
//! | ConcatFromSequence | the concatenation of the elements, or their stack along a new axis | 11 |
//! | SequenceMap | applies a subgraph to each element | 17 |
//! | Optional | an optional with or without a value | 15; 28 adds types |
//! | OptionalHasElement, OptionalGetElement | whether there is a value, the value | 15; 18 accepts any value (the first also an absent one); 28 adds types |
//!
//! Sources differ on whether the parts of SplitToSequence keep the axis for `keepdims` 0 and a scalar size. Only their element type
//! is inferred then, and nothing is folded.
//!
//! Negative positions count from the end. Positions out of range, the value of an empty optional and elements of different types
//! are errors and never folded. Sequences are followed to the nodes that build them ([`lineage`]), so an element at a known
//! position has an exact fact.

mod elements;
mod lineage;
mod map;
mod optional;
mod parts;
mod split;

#[cfg(test)]
mod tests;

use super::Operator;
use super::traits::Traits;

pub(super) const OPERATORS: &[Operator] = &[
    Operator::new("SequenceConstruct", &[11], elements::infer_construct, elements::eval_construct)
        .with(Traits::NONE.container()),
    Operator::new("SequenceEmpty", &[11], elements::infer_empty, elements::eval_empty).with(Traits::NONE.container()),
    Operator::new("SequenceInsert", &[11], elements::infer_insert, elements::eval_insert),
    Operator::new("SequenceErase", &[11], elements::infer_erase, elements::eval_erase),
    Operator::new("SequenceAt", &[11], elements::infer_at, elements::eval_at),
    Operator::new("SequenceLength", &[11], elements::infer_length, elements::eval_length),
    Operator::new("SplitToSequence", &[11, 24], split::infer_split, split::eval_split),
    Operator::new("ConcatFromSequence", &[11], split::infer_concat, split::eval_concat),
    Operator::new("SequenceMap", &[17], map::infer, map::eval),
    Operator::new("Optional", &[15, 28], optional::infer_optional, optional::eval_optional)
        .with(Traits::NONE.container()),
    Operator::new("OptionalHasElement", &[15, 18, 28], optional::infer_has, optional::eval_has),
    Operator::new("OptionalGetElement", &[15, 18, 28], optional::infer_get, optional::eval_get),
];
