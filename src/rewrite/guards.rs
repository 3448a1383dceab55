//! The edit check: conditions on every edit, whatever its rule proves. No edit introduces nodes that ONNX Runtime or another consumer
//! computes wrongly or does not load. Each guard documents one defect. Nodes that an author has written are not changed.

use super::divisors::keeps_divisors_computed;
use super::fuse::idiom::Idioms;
use super::fuse::pooled::keeps_pads_from_pools;
use super::introduced::introduces_nothing;
use super::miss::{Miss, ensure};
use super::narrow::{moves_nothing_narrow, passes_nothing_narrow};
use super::place::Place;
use super::ranges::looks_up_by_no_negative_range;
use super::rule::Premise;
use super::shown::turns_no_output;
use super::strings::looks_up_no_strings;
use super::turned::multiplies_nothing_turned;
use super::weighted::multiplies_no_integers;
use crate::ir::{Edit, Fact, Node, ValueId};

/// A condition on every edit.
pub trait Guard {
    /// Returns the name and statement, in the form of a rule's premise.
    fn premise(&self) -> Premise;

    /// Returns `true` if the edit keeps the condition.
    fn permits(&self, place: &Place<'_>, edit: &Edit) -> bool;
}

impl Guard for (Premise, fn(&Place<'_>, &Edit) -> bool) {
    fn premise(&self) -> Premise {
        self.0
    }

    fn permits(&self, place: &Place<'_>, edit: &Edit) -> bool {
        (self.1)(place, edit)
    }
}

impl Guard for Idioms {
    fn premise(&self) -> Premise {
        (
            "idiom-whole",
            "if a runtime computes a group of nodes with one kernel, the edit replaces the entire group or none of its nodes",
        )
    }

    fn permits(&self, _: &Place<'_>, edit: &Edit) -> bool {
        self.leaves_whole(edit)
    }
}

/// A guard without state.
type Stateless = (Premise, fn(&Place<'_>, &Edit) -> bool);

/// The guards without state, in the order they are checked.
#[rustfmt::skip]
pub const GUARDS: &[Stateless] = &[
    (("not-taken", "the edit adds no consumer to a value that a node with a subgraph reads, if the value is a sequence, an optional or a string tensor. Runtimes may move this value into the subgraph instead of copying the value"), leaves_taken_alone),
    (("one-grid", "the edit does not place two pairs of QuantizeLinear and DequantizeLinear with different scales next to each other, because ONNX Runtime merges the two pairs into one pair with a third scale"), keeps_grids_apart),
    (("accepted-form", "the edit adds a Slice with a negative step only in place of another Slice with a negative step, and a Loop without a condition only in place of another Loop without a condition. Some runtimes refuse these two forms, or compute wrong results. The same holds for operators that `--avoid` names"), introduces_nothing),
    (("pad-before-pool", "the edit makes no pool read the result of a Pad, if ONNX Runtime would merge the Pad and the pool and compute another result"), keeps_pads_from_pools),
    (("computed-divisor", "the edit gives no integer division a constant divisor that contains 0, because ONNX Runtime refuses to load a model with this divisor"), keeps_divisors_computed),
    (("no-lookup-of-strings", "the edit adds no Gather of a string tensor, because ONNX Runtime's Gather returns wrong elements for strings"), looks_up_no_strings),
    (("no-negative-range", "the edit makes no Gather read its indices from a Range that may contain a negative number, because ONNX Runtime replaces the Range and the Gather by a wrong Slice"), looks_up_by_no_negative_range),
    (("no-turned-product", "the edit makes no float16 matrix product read the result of a Transpose, if ONNX Runtime would merge the Transpose into the product: the kernel of the merged node reads outside of its memory"), multiplies_nothing_turned),
    (("float-product", "the edit makes no matrix product of floats read the DequantizeLinear of a constant, because ONNX Runtime would compute the product with integers"), multiplies_no_integers),
    (("output-in-floats", "the edit makes no graph output the operand of a Transpose whose result a QuantizeLinear reads. ONNX Runtime exchanges the Transpose and the QuantizeLinear, and would return the quantized values as the graph output"), turns_no_output),
    (("wide-quantization", "the edit places no data movement operator before a QuantizeLinear or after a DequantizeLinear, if the quantized type is an 8-bit float, a smaller float or a 2-bit integer, and ONNX Runtime has no kernel that moves elements of this type"), passes_nothing_narrow),
    (("wide-elements", "the edit adds no data movement operator on 8-bit floats, or on types of fewer bits, if ONNX Runtime has no kernel of the operator for the type"), moves_nothing_narrow),
    (("no-reader-behind", "no remaining node reads an output of a removed node"), |place, edit| place.model.leaves_no_reader_behind(edit)),
    (("one-definition", "exactly one node, input or initializer defines each value after the edit"), |place, edit| place.model.leaves_one_definition(edit)),
];

/// Checks an edit that a rule offers. The miss names the guard that refuses it.
pub fn check(place: &Place<'_>, edit: &Edit, idioms: &Idioms) -> Result<(), Miss> {
    let stateless = GUARDS.iter().map(|guard| guard as &dyn Guard);
    for guard in [idioms as &dyn Guard].into_iter().chain(stateless) {
        ensure(guard.permits(place, edit), Miss::new(guard.premise().0))?;
    }
    Ok(())
}

/// Returns the pairs of a replaced value and the existing value that its consumers read after the edit.
fn forwarded(edit: &Edit) -> impl Iterator<Item = (ValueId, ValueId)> + '_ {
    edit.replace.iter().copied().filter(|(old, new)| !old.is_placeholder() && !new.is_placeholder())
}

fn leaves_taken_alone(place: &Place<'_>, edit: &Edit) -> bool {
    !forwarded(edit).any(|(old, new)| is_copy_of_taken(place, new) || is_taken(place, old))
}

fn keeps_grids_apart(place: &Place<'_>, edit: &Edit) -> bool {
    !forwarded(edit).any(|(old, new)| parts_grids(place, old, new))
}

/// Returns `true` if `value` and the consumers of `output` belong to two consecutive pairs of QuantizeLinear and DequantizeLinear with
/// different grids. If the pairs are adjacent, ONNX Runtime merges them into one pair on a third grid, and results change by up to one
/// step.
fn parts_grids(place: &Place<'_>, output: ValueId, value: ValueId) -> bool {
    if place.producer(value, "DequantizeLinear").is_some() {
        return is_quantized_before(place, value) && is_quantized_behind(place, output, value);
    }
    let Some((_, quantized)) = place.producer(value, "QuantizeLinear") else { return false };
    // The pair that contains the current node: it follows or precedes another pair.
    let is_second = quantized.input(0).is_some_and(|data| {
        let inner = place.producer(data, "DequantizeLinear");
        inner.is_some_and(|(_, inner)| !place.same_grid(quantized, inner)) && is_quantized_before(place, data)
    });
    place.model.users(output).into_iter().filter_map(|(id, _)| place.model.node(id)).any(|node| {
        let result = node.output(0).filter(|_| node.is("DequantizeLinear"));
        result.is_some_and(|result| is_second || is_quantized_behind(place, result, result))
    })
}

/// Returns `true` if a DequantizeLinear computes a value from the result of a QuantizeLinear.
fn is_quantized_before(place: &Place<'_>, value: ValueId) -> bool {
    let codes = place.producer(value, "DequantizeLinear").and_then(|(_, node)| node.input(0));
    codes.is_some_and(|codes| place.producer(codes, "QuantizeLinear").is_some())
}

/// Returns `true` if a consumer of `value` quantizes on another grid than the producer of `dequantized`.
fn is_quantized_behind(place: &Place<'_>, value: ValueId, dequantized: ValueId) -> bool {
    let Some((_, inner)) = place.producer(dequantized, "DequantizeLinear") else { return false };
    let is_other = |outer: &Node| outer.is("QuantizeLinear") && !place.same_grid(outer, inner);
    place.model.users(value).into_iter().any(|(id, _)| place.model.node(id).is_some_and(is_other))
}

/// Returns `true` if a node with a subgraph takes the value or its original, if the value is a copy. ONNX Runtime orders the copy and the
/// node by the consumers of the copy. With one copy fewer, it may copy a value that it has already moved.
fn is_copy_of_taken(place: &Place<'_>, mut value: ValueId) -> bool {
    while !is_taken(place, value) {
        let Some(source) = place.producer(value, "Identity").and_then(|(_, node)| node.input(0)) else {
            return false;
        };
        value = source;
    }
    true
}

/// Returns `true` if a node with a subgraph reads the value and may take it, see [`Fact::is_copied`].
fn is_taken(place: &Place<'_>, value: ValueId) -> bool {
    let is_copied = place.fact(value).is_some_and(Fact::is_copied);
    let has_body = |id| place.model.node(id).is_some_and(|node| node.subgraphs().next().is_some());
    !is_copied && place.model.users(value).into_iter().any(|(reader, _)| has_body(reader))
}
