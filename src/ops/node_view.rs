//! Nodes of the default domain, interpreted by their operator set. Fills in the standard's defaults, and reads parameters from the
//! attribute or operand of that version.
//!
//! Methods return `None` if something is unknown or violates the standard.

use super::{Opset, axis_in};
use crate::dim::Dim;
use crate::ir::{Facts, Node, ValueId};
use crate::tensor::Tensor;

/// A node with the facts of its operands and its operator set.
#[derive(Clone, Copy)]
pub struct NodeView<'a> {
    /// The node.
    pub node: &'a Node,
    /// The proved facts.
    pub facts: &'a Facts,
    /// The operator set in force.
    pub opset: Opset,
}

/// A number that an operator has as an attribute or as an operand.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// The number is absent.
    Absent,
    /// The attribute.
    Attribute(f32),
    /// The operand.
    Operand(ValueId),
}

impl<'a> NodeView<'a> {
    /// Returns the dims of an operand.
    fn shape(&self, slot: usize) -> Option<&'a [Dim]> {
        self.facts.get(self.node.input(slot)?)?.shape()
    }

    /// Returns the constant integers of an operand.
    fn const_ints(&self, slot: usize) -> Option<Vec<i64>> {
        self.facts.get(self.node.input(slot)?)?.const_ints()
    }

    /// Returns the attribute `axis`, or the operator's default, counted from the front of a tensor of this rank.
    pub fn axis(&self, rank: usize) -> Option<usize> {
        axis_in(self.node.int_or("axis", self.default_axis())?, rank).ok()
    }

    /// Returns the default axis; `None` if the attribute is required.
    fn default_axis(&self) -> Option<i64> {
        match self.node.op_type.as_str() {
            "Concat" => (!self.opset.concat_names_its_axis()).then_some(1),
            "Softmax" | "LogSoftmax" | "Hardmax" => Some(if self.opset.softmax_along_one_axis() { -1 } else { 1 }),
            "LayerNormalization" | "RMSNormalization" => Some(-1),
            "Flatten" | "QuantizeLinear" | "DequantizeLinear" => Some(1),
            "Gather" | "GatherElements" | "Split" | "ArgMax" | "ArgMin" | "Compress" | "ScatterElements" => Some(0),
            _ => None,
        }
    }

    /// Returns the operand axes of a Transpose in the order of the result: reversed without the attribute.
    pub fn permutation(&self, rank: usize) -> Option<Vec<usize>> {
        if self.node.attribute("perm").is_none() {
            return Some((0..rank).rev().collect());
        }
        let perm = self.node.ints("perm")?;
        let axis = |&axis: &i64| usize::try_from(axis).ok().filter(|&axis| axis < rank);
        if perm.len() == rank { perm.iter().map(axis).collect() } else { None }
    }

    /// Returns the axes that a Squeeze, Unsqueeze or reduction lists, ascending and without duplicates, in a tensor of this rank. Also
    /// returns `None` without a list.
    pub fn named_axes(&self, rank: usize) -> Option<Vec<usize>> {
        let axes = match (self.node.attribute("axes").is_some(), self.node.input(1)) {
            (true, None) => self.node.ints("axes")?.to_vec(),
            (false, Some(_)) => self.const_ints(1)?,
            _ => return None,
        };
        let mut axes = axes.iter().map(|&axis| axis_in(axis, rank).ok()).collect::<Option<Vec<usize>>>()?;
        axes.sort_unstable();
        axes.windows(2).all(|pair| matches!(pair, [a, b] if a != b)).then_some(axes)
    }

    /// Returns the axes of dim 1 that an Unsqueeze inserts (in its result) or a Squeeze removes (in its operand).
    pub fn ones(&self) -> Option<Vec<usize>> {
        let from = self.shape(0)?;
        let to = self.facts.get(self.node.output(0)?)?.shape()?;
        let names_none = self.node.attribute("axes").is_none() && self.node.input(1).is_none();
        if !self.node.is("Squeeze") || !names_none {
            return self.named_axes(from.len().max(to.len()));
        }
        // A Squeeze without a list removes all axes of dim 1.
        let ones: Vec<usize> =
            (0..from.len()).filter(|&axis| from.get(axis).is_some_and(|dim| dim.is_const(1))).collect();
        (ones.len() == from.len().checked_sub(to.len())?).then_some(ones)
    }

    /// Returns the axes that a reduction, ArgMax or ArgMin lists; also `None` if it reduces all axes because it lists none.
    pub fn reduced_axes(&self, rank: usize) -> Option<Vec<usize>> {
        if self.node.op_type.starts_with("Arg") { Some(vec![self.axis(rank)?]) } else { self.named_axes(rank) }
    }

    /// Returns `true` if a reduction keeps the reduced axes with dim 1.
    pub fn keeps_dims(&self) -> Option<bool> {
        self.node.flag("keepdims", true)
    }

    /// Returns the number of ranges of a Slice.
    pub fn slice_count(&self) -> Option<usize> {
        if !self.opset.slice_has_operands() {
            return Some(self.node.ints("starts")?.len());
        }
        self.facts.get(self.node.input(1)?)?.static_len()
    }

    /// Returns the axis of each range of a Slice, as written in the node: by default the first axes. `None` if the data is not known to have that many.
    pub fn slice_axes(&self) -> Option<Vec<i64>> {
        let rank = self.facts.get(self.node.input(0)?)?.shape()?.len();
        let count = self.slice_count().filter(|&count| count <= rank)?;
        let axes = if !self.opset.slice_has_operands() {
            self.node.attribute("axes").is_some().then(|| self.node.ints("axes").map(<[i64]>::to_vec))
        } else {
            self.node.input(3).map(|_| self.const_ints(3))
        };
        let first = || (0..i64::try_from(count).ok()?).map(Some).collect();
        axes.unwrap_or_else(first).filter(|axes| axes.len() == count)
    }

    /// Returns the step of each range of a Slice: by default 1.
    pub fn slice_steps(&self) -> Option<Vec<i64>> {
        let count = self.slice_count()?;
        let steps = if self.node.input(4).is_some() { self.const_ints(4)? } else { vec![1; count] };
        (steps.len() == count).then_some(steps)
    }

    /// Returns the pads of a Pad as written: all beginnings, then all ends, of the listed axes.
    pub fn pad_numbers(&self) -> Option<Vec<i64>> {
        if self.opset.pad_and_clip_have_operands() {
            return self.const_ints(1);
        }
        let name = if self.opset.has_split_and_pads() { "pads" } else { "paddings" };
        self.node.attribute(name)?;
        Some(self.node.ints(name)?.to_vec())
    }

    /// Returns the padding before and after each axis of a Pad; negative numbers crop.
    pub fn pads(&self) -> Option<Vec<(i64, i64)>> {
        let pads = self.pad_numbers()?;
        let half = pads.len() / 2;
        let axes: Vec<usize> = match self.node.input(3) {
            Some(_) => {
                let rank = self.shape(0)?.len();
                self.const_ints(3)?.iter().map(|&axis| axis_in(axis, rank).ok()).collect::<Option<_>>()?
            }
            None => (0..half).collect(),
        };
        let rank = if self.node.input(3).is_some() { self.shape(0)?.len() } else { half };
        let (begins, ends) = pads.split_at_checked(axes.len()).filter(|(_, ends)| ends.len() == axes.len())?;
        let mut all = vec![(0, 0); rank];
        for ((&begin, &end), &axis) in begins.iter().zip(ends).zip(&axes) {
            *all.get_mut(axis)? = (begin, end);
        }
        Some(all)
    }

    /// Returns `true` if a Pad uses one number as padding. Other modes repeat elements.
    pub fn pads_with_a_number(&self) -> Option<bool> {
        Some(self.node.text("mode", b"constant")? == b"constant")
    }

    /// Returns the padding value of a Pad; 0 if absent.
    pub fn pad_fill(&self) -> Option<Number> {
        if self.opset.pad_and_clip_have_operands() {
            return Some(self.node.input(2).map_or(Number::Absent, Number::Operand));
        }
        self.number("value")
    }

    /// Returns the lower and the upper bound of a Clip.
    pub fn clip_bounds(&self) -> Option<(Number, Number)> {
        if self.opset.pad_and_clip_have_operands() {
            let bound = |slot: usize| self.node.input(slot).map_or(Number::Absent, Number::Operand);
            return Some((bound(1), bound(2)));
        }
        Some((self.number("min")?, self.number("max")?))
    }

    fn number(&self, name: &str) -> Option<Number> {
        match self.node.attribute(name) {
            None => Some(Number::Absent),
            Some(_) => self.node.float(name, 0.0).map(Number::Attribute),
        }
    }

    /// Returns `true` if a Dropout forwards its operand: always before `training_mode` was an operand, apart from `is_test`.
    pub fn dropout_is_inference(&self) -> Option<bool> {
        if !self.opset.training_is_told_by_results() && !self.node.flag("is_test", false)? {
            return Some(false);
        }
        Some(self.node.input(2).is_none() || self.const_ints(2)? == [0])
    }

    /// Returns `true` if a BatchNormalization uses the given mean and variance, one number per channel. From opset 14 on,
    /// `training_mode` determines this; from 7 on, the number of results; before that, `is_test`.
    pub fn normalizes_as_given(&self) -> Option<bool> {
        let training = if self.opset.training_is_an_attribute() {
            self.node.flag("training_mode", false)?
        } else {
            !self.opset.training_is_told_by_results() && !self.node.flag("is_test", false)?
        };
        let by_channel = self.opset.normalizes_by_channel() || self.node.flag("spatial", true)?;
        Some(!training && by_channel && self.node.outputs().iter().flatten().count() == 1)
    }

    /// Returns the one-element tensor that fills a ConstantOfShape: by default 0 in float32.
    pub fn fill_value(&self) -> Option<Tensor> {
        match self.node.attribute("value") {
            None => Some(Tensor::vector(vec![0.0f32])),
            Some(_) => self.node.tensor("value").cloned(),
        }
    }
}
