//! Builders for nodes of the standard's operators, in the form of the opset in force.
//!
//! Only this file knows which parameter is an operand in one version and an attribute in another. A builder returns a node without name and
//! results; the caller adds both. The constants that are operands of the node are already in the edit. `None` means that the opset has no
//! form for the node.

use super::miss::Miss;
use super::place::Place;
use crate::dim::{Dim, Scope};
use crate::ir::{Attribute, Edit, NamedAttribute, NewNode, Node, ValueId};
use crate::ops::{Opset, size_operand};
use crate::slicing::{Range, onnx};
use crate::tensor::{DType, Tensor};

/// The source of the names of constants.
enum Naming {
    /// The name of this value, followed by the operand's name in the standard.
    After(ValueId),
    /// This name for every constant.
    Always(String),
}

/// Builds nodes for an edit.
pub struct Build<'e> {
    edit: &'e mut Edit,
    opset: Opset,
    naming: Naming,
}

/// An axis; a negative one counts from the end.
#[derive(Clone, Copy)]
pub struct Axis(i64);

impl From<usize> for Axis {
    fn from(axis: usize) -> Self {
        // No rank exceeds `i64::MAX`.
        Axis(i64::try_from(axis).unwrap_or(i64::MAX))
    }
}

impl From<i64> for Axis {
    fn from(axis: i64) -> Self {
        Axis(axis)
    }
}

/// A bound of a Clip.
pub struct ClipBound {
    /// The value of the bound.
    pub number: f64,
    /// The bound as a scalar tensor of the operand's type.
    pub tensor: Tensor,
    /// The name of the constant.
    pub name: String,
}

/// Converts axes to the integers of an attribute or operand.
pub fn axes<A: Into<Axis>>(axes: impl IntoIterator<Item = A>) -> Vec<i64> {
    axes.into_iter().map(|axis| axis.into().0).collect()
}

impl<'e> Build<'e> {
    /// Names constants after a value and their operand: `x_axes`.
    pub fn after(edit: &'e mut Edit, opset: Opset, like: ValueId) -> Self {
        Build { edit, opset, naming: Naming::After(like) }
    }

    /// Gives constants this name, with a suffix if it is not unique.
    pub fn named(edit: &'e mut Edit, opset: Opset, name: impl Into<String>) -> Self {
        Build { edit, opset, naming: Naming::Always(name.into()) }
    }

    /// Adds a constant to the edit.
    pub fn constant(&mut self, operand: &'static str, tensor: Tensor) -> ValueId {
        match &self.naming {
            Naming::After(like) => self.edit.constant(*like, operand, tensor),
            Naming::Always(name) => self.edit.constant_named(name.as_str(), tensor),
        }
    }

    fn vector(&mut self, operand: &'static str, numbers: Vec<i64>) -> Option<ValueId> {
        Some(self.constant(operand, Tensor::vector(numbers)))
    }

    /// Builds a Squeeze of these axes.
    pub fn squeeze(&mut self, data: impl Into<Option<ValueId>>, axes: Vec<i64>) -> NewNode {
        self.with_axes("Squeeze", data.into(), axes)
    }

    /// Builds an Unsqueeze; the axes are those of the result.
    pub fn unsqueeze(&mut self, data: impl Into<Option<ValueId>>, axes: Vec<i64>) -> NewNode {
        self.with_axes("Unsqueeze", data.into(), axes)
    }

    fn with_axes(&mut self, operator: &str, data: Option<ValueId>, axes: Vec<i64>) -> NewNode {
        if !self.opset.axes_are_operands() {
            return NewNode::new(operator, [data]).with("axes", axes);
        }
        let axes = self.vector("axes", axes);
        NewNode::new(operator, [data, axes])
    }

    /// Builds a reduction of these axes with `keepdims = 1`.
    pub fn reduce(&mut self, operator: &str, data: ValueId, axes: Vec<i64>) -> NewNode {
        let takes_operand = match operator {
            "ReduceSum" => self.opset.axes_are_operands(),
            _ => self.opset.reduces_axes_of_an_operand(),
        };
        if !takes_operand {
            return NewNode::new(operator, [Some(data)]).with("axes", axes);
        }
        let axes = self.vector("axes", axes);
        NewNode::new(operator, [Some(data), axes])
    }

    /// Builds a Split into parts of these sizes. ONNX Runtime represents each size and their sum in 32 bits.
    pub fn split(&mut self, data: ValueId, axis: usize, sizes: Vec<i64>) -> Option<NewNode> {
        let all = sizes.iter().try_fold(0i64, |sum, size| sum.checked_add(*size))?;
        i32::try_from(all).ok()?;
        let mut node = NewNode::new("Split", [Some(data)]).with("axis", Axis::from(axis).0);
        if self.opset.axes_are_operands() {
            node.inputs.push(self.vector("sizes", sizes));
        } else {
            node = node.with("split", sizes);
        }
        self.opset.has_split_and_pads().then_some(node)
    }

    /// Builds a Split into equal parts, one for each result. From Split-18 on the node needs `num_outputs`, and ONNX Runtime refuses a dim
    /// of 0 then, so this returns `None`.
    pub fn split_evenly(&self, data: ValueId, axis: usize) -> Option<NewNode> {
        let node = NewNode::new("Split", [Some(data)]).with("axis", Axis::from(axis).0);
        (self.opset.has_split_and_pads() && !self.opset.split_by_count()).then_some(node)
    }

    /// Builds a Slice of constant ranges, one for each axis; `None` keeps the axis whole.
    pub fn slice_of_ranges(&mut self, data: ValueId, ranges: &[Option<Range>]) -> Option<NewNode> {
        let (mut starts, mut ends, mut along, mut steps) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for (axis, range) in ranges.iter().enumerate() {
            let Some(range) = range else { continue };
            let step = range.step?;
            starts.push(onnx::start_of(&range.begin, step)?);
            ends.push(onnx::end_of(&range.end, step)?);
            along.push(axis);
            steps.push(step);
        }
        self.slice(data, starts, ends, axes(along), steps)
    }

    /// Builds a Slice with constant bounds.
    pub fn slice(
        &mut self,
        data: impl Into<Option<ValueId>>,
        starts: Vec<i64>,
        ends: Vec<i64>,
        axes: Vec<i64>,
        steps: Vec<i64>,
    ) -> Option<NewNode> {
        let has_steps = steps.iter().any(|&step| step != 1);
        if !self.opset.slice_has_operands() {
            let node = NewNode::new("Slice", [data.into()]);
            let node = node.with("starts", starts).with("ends", ends).with("axes", axes);
            return Some(node).filter(|_| !has_steps);
        }
        let (starts, ends) = (self.vector("starts", starts)?, self.vector("ends", ends)?);
        self.slice_between(data, starts, ends, axes, steps)
    }

    /// Builds a Slice with computed bounds.
    pub fn slice_between(
        &mut self,
        data: impl Into<Option<ValueId>>,
        starts: ValueId,
        ends: ValueId,
        axes: Vec<i64>,
        steps: Vec<i64>,
    ) -> Option<NewNode> {
        if !self.opset.slice_has_operands() {
            return None;
        }
        let has_steps = steps.iter().any(|&step| step != 1);
        let axes = self.vector("axes", axes);
        let mut node = NewNode::new("Slice", [data.into(), Some(starts), Some(ends), axes]);
        if has_steps {
            node.inputs.push(self.vector("steps", steps));
        }
        Some(node)
    }

    /// Builds a Reshape to these constant codes; see [`size_operand`].
    pub fn reshape(&mut self, data: ValueId, codes: Vec<i64>) -> NewNode {
        if !self.opset.reshape_has_operand() {
            return NewNode::new("Reshape", [Some(data)]).with("shape", codes);
        }
        let shape = self.vector("shape", codes);
        NewNode::new("Reshape", [Some(data), shape])
    }

    /// Builds a node that changes the dims `from` to the dims `to`: a Reshape if a constant operand can express `to`. If not, and only axes
    /// of size 1 differ, a Squeeze or an Unsqueeze.
    pub fn reshape_to(&mut self, scope: &Scope, data: ValueId, from: &[Dim], to: &[Dim]) -> Option<NewNode> {
        if let Some(codes) = size_operand::reshape_codes(scope, from, to) {
            return Some(self.reshape(data, codes));
        }
        let grows = from.len() < to.len();
        let (short, long) = if grows { (from, to) } else { (to, from) };
        let axes = size_operand::inserted_ones(scope, short, long).filter(|axes| !axes.is_empty())?;
        Some(if grows { self.unsqueeze(data, axes) } else { self.squeeze(data, axes) })
    }

    /// Builds a Flatten at `axis`.
    pub fn flatten(data: ValueId, axis: usize) -> NewNode {
        NewNode::new("Flatten", [Some(data)]).with("axis", Axis::from(axis).0)
    }

    /// Builds a Transpose with this permutation.
    pub fn transpose(data: ValueId, perm: impl IntoIterator<Item = usize>) -> NewNode {
        NewNode::new("Transpose", [Some(data)]).with("perm", axes(perm))
    }

    /// Builds a Gather along an axis.
    pub fn gather(data: impl Into<Option<ValueId>>, indices: ValueId, axis: impl Into<Axis>) -> NewNode {
        NewNode::new("Gather", [data.into(), Some(indices)]).with("axis", axis.into().0)
    }

    /// Builds a Gather with constant indices.
    pub fn gather_at(&mut self, data: impl Into<Option<ValueId>>, indices: Tensor, axis: impl Into<Axis>) -> NewNode {
        let name = if indices.len() == 1 { "index" } else { "indices" };
        let indices = self.constant(name, indices);
        Self::gather(data, indices, axis)
    }

    /// Builds a Concat along an axis.
    pub fn concat(parts: impl IntoIterator<Item = ValueId>, axis: impl Into<Axis>) -> NewNode {
        NewNode::new("Concat", parts.into_iter().map(Some)).with("axis", axis.into().0)
    }

    /// Builds an Expand to constant sizes.
    pub fn expand(&mut self, data: ValueId, sizes: Vec<i64>) -> Option<NewNode> {
        let sizes = self.vector("sizes", sizes);
        self.opset.has("Expand").then(|| NewNode::new("Expand", [Some(data), sizes]))
    }

    /// Builds a Cast.
    pub fn cast(&self, data: ValueId, to: DType) -> Option<NewNode> {
        let node = || NewNode::new("Cast", [Some(data)]).with("to", to);
        self.opset.cast_by_number_and_tile_by_axis().then(node)
    }

    /// Builds a Shape.
    pub fn shape(data: ValueId) -> NewNode {
        NewNode::new("Shape", [Some(data)])
    }

    /// Builds a Shape of consecutive axes.
    pub fn shape_of_run(&self, data: ValueId, run: std::ops::Range<usize>) -> Option<NewNode> {
        let (start, end) = (Axis::from(run.start).0, Axis::from(run.end).0);
        self.opset.shape_of_a_run().then(|| Self::shape(data).with("start", start).with("end", end))
    }

    /// Builds a reduction of all axes.
    pub fn reduce_all(operator: &str, data: Option<ValueId>, keeps_dims: bool) -> NewNode {
        NewNode::new(operator, [data]).with("keepdims", i64::from(keeps_dims))
    }

    /// Replaces the pads of a Pad: one number before and one after each axis. The other parameters are kept.
    pub fn padded(&mut self, mut pad: NewNode, pads: &[(i64, i64)]) -> Option<NewNode> {
        let pads = pads.iter().map(|pads| pads.0).chain(pads.iter().map(|pads| pads.1)).collect::<Vec<i64>>();
        if !self.opset.pad_and_clip_have_operands() {
            return self.opset.has_split_and_pads().then(|| pad.set("pads", pads));
        }
        // The new pads are for all axes, so the operand *axes* is dropped.
        pad.inputs.truncate(3);
        let pads = self.constant("pads", Tensor::vector(pads));
        Some(pad.reading(1, pads))
    }

    /// Builds a Clip from another Clip or from a node with the same first operand. An absent bound is left out. Attributes hold bounds in
    /// float32: returns `None` if the conversion is not exact.
    pub fn clip(&mut self, mut clip: NewNode, bounds: [Option<ClipBound>; 2]) -> Option<NewNode> {
        clip.inputs.truncate(1);
        let by_operands = self.opset.pad_and_clip_have_operands();
        for (name, bound) in ["min", "max"].into_iter().zip(bounds) {
            clip = clip.without(name);
            let Some(ClipBound { number, tensor, name: constant }) = bound else {
                clip.inputs.extend(by_operands.then_some(None));
                continue;
            };
            if by_operands {
                clip.inputs.push(Some(self.edit.constant_named(constant, tensor)));
            } else {
                let narrow = Some(number as f32).filter(|&narrow| f64::from(narrow) == number)?;
                clip = clip.with(name, Attribute::Float(narrow));
            }
        }
        while clip.inputs.last() == Some(&None) {
            clip.inputs.pop();
        }
        Some(clip)
    }
}

/// The attributes that the builders of this file set.
const SPELLED: &[&str] =
    &["allowzero", "axes", "axis", "ends", "num_outputs", "paddings", "pads", "perm", "shape", "split", "starts"];

fn is_spelled(held: &NamedAttribute) -> bool {
    SPELLED.contains(&held.name.as_str())
}

/// Copies the other attributes of a replaced node, known or unknown, to a new node of the same operator.
pub fn rebuilt(old: &Node, mut new: NewNode) -> NewNode {
    if old.is(&new.op_type) {
        let lacks = |held: &&NamedAttribute| !new.attributes.iter().any(|own| own.name == held.name);
        let more: Vec<_> = old.attributes.iter().filter(|held| !is_spelled(held)).filter(lacks).cloned().collect();
        new.attributes.extend(more);
        new.extra = old.extra.clone();
    }
    new
}

/// Returns `true` if two nodes of one operator have the same attributes, apart from those that the builders of this file set.
pub fn rebuilt_alike(a: &Node, b: &Node) -> bool {
    let count = |node: &Node| node.attributes.iter().filter(|held| !is_spelled(held)).count();
    let same = |held: &NamedAttribute| b.attribute(&held.name).is_some_and(|other| held.value.same(other));
    count(a) == count(b) && a.attributes.iter().filter(|held| !is_spelled(held)).all(same)
}

impl Place<'_> {
    /// Returns a builder for nodes of the opset in force. Constants are named after `like`.
    pub fn build<'e>(&self, edit: &'e mut Edit, like: ValueId) -> Build<'e> {
        Build::after(edit, self.opset, like)
    }

    /// Returns the edit that replaces the current node by `node`, with the same name and first result. A node of the same operator keeps
    /// its other attributes, see [`rebuilt`].
    pub fn instead(&self, edit: Edit, node: NewNode) -> Result<Edit, Miss> {
        let (old, output) = (self.root()?, self.result()?);
        Ok(edit.removing(self.id).inserting(rebuilt(old, node).named(old.name.clone()).output(output)))
    }

    /// Returns the edit that replaces the current node by a Reshape of `source` to the node's shape. If no constant operand expresses this
    /// shape for `source`, the edit reshapes the data of the reshapes above `source`, because these keep the order of the elements.
    pub fn reshape_instead(&self, mut source: ValueId) -> Result<Edit, Miss> {
        const REACH: usize = 4;
        let (first, output) = (source, self.result()?);
        for _ in 0..REACH {
            if self.same_shape(source, output) && !self.model.is_named(output) {
                return self.forward(source);
            }
            let mut edit = self.begin()?;
            let shapes = self.shape(source).zip(self.shape(output));
            let (from, to) = shapes.ok_or(Miss::EXPRESSIBLE.of(source))?;
            if let Some(node) = self.build(&mut edit, output).reshape_to(self.scope(), source, from, to) {
                return self.instead(edit, node);
            }
            let above = self.layout(source).and_then(|(_, node)| node.input(0));
            source = above.ok_or(Miss::EXPRESSIBLE.of(first))?;
        }
        Err(Miss::EXPRESSIBLE.of(first))
    }
}
