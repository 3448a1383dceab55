//! Removes a broadcast before operators that broadcast anyway.
//!
//! Law: broadcasting is idempotent. If `v` is `w` broadcast to a larger shape, `f(v, y) = f(w, y)` for every element-wise `f` whose other
//! operands alone determine the shape of the result. If they do not, `f(v, y)` is `f(w, y)` broadcast, and the rule continues with its
//! consumers. The nodes in between compute on the smaller tensor, and the broadcast is removed. [`super::narrow`] describes the other
//! operators on broadcast operands. A node that computes nothing on an empty broadcast operand, but might fail on the smaller one, is kept.

use super::RULES;
use crate::rewrite::miss::{Miss, ensure};
use crate::rewrite::rule::miss;
use std::collections::VecDeque;

use super::narrow::{Form, Shapes, on_narrow};
use super::uniform;
use crate::dim::Dim;
use crate::ir::{Edit, NewNode, Node, NodeId, ValueId};
use crate::ops::traits::{Commutes, Movement, traits_of};
use crate::rewrite::build::rebuilt;
use crate::rewrite::limits::{NODES, READERS};
use crate::rewrite::place::Place;
use crate::tensor::{DType, StridedView, Tensor, gather};

/// The most visits of a node because one more of its operands has a smaller form: once for each operand of the widest element-wise
/// operators. Without it, a Concat of N operands is visited N times.
const MAX_LOOKS: usize = 4;

/// The most elements of a uniform constant. A longer one is broadcast from one element, and takes no bytes.
const MAX_SPLAT: i64 = 1024;

/// A value and its smaller form, once that exists.
#[derive(Clone)]
struct Narrow {
    wide: ValueId,
    narrow: Option<ValueId>,
    shape: Vec<Dim>,
}

/// Keeps results equal bit for bit.
pub(super) fn spread(place: &Place<'_>) -> Result<Edit, Miss> {
    narrowed(place, true)
}

/// Allows another order of summation: a product with fewer rows is blocked differently.
pub(super) fn spread_before_product(place: &Place<'_>) -> Result<Edit, Miss> {
    narrowed(place, false)
}

fn narrowed(place: &Place<'_>, exact: bool) -> Result<Edit, Miss> {
    let node = place.root()?;
    let [Some(wide)] = *node.outputs() else { return Err(miss!("alike")) };
    ensure(place.opset.everything_broadcasts() && is_free(place, wide), miss!("alike"))?;
    if node.is("ConstantOfShape") {
        let number = uniform(place, wide).ok_or(miss!("alike"))?;
        let scalar = region(place, exact, Narrow { wide, narrow: None, shape: Vec::new() }, Some(number.clone()));
        if scalar.is_some() || exact {
            return scalar.ok_or(miss!("reaches").of(wide));
        }
        // Some operators need the axes, so those of constant size are kept.
        let one = Dim::constant(1);
        let keep = |dim: &Dim| if dim.as_const().is_some() { dim.clone() } else { one.clone() };
        let shape: Vec<Dim> = place.dims(wide)?.iter().map(keep).collect();
        let number = splat(&number, &shape).ok_or(miss!("alike"))?;
        return region(place, exact, Narrow { wide, narrow: None, shape }, Some(number))
            .ok_or(miss!("reaches").of(wide));
    }
    if place.constant(wide).is_none()
        && let Some(number) = uniform(place, wide).filter(|number| Some(number.dtype()) == place.dtype(wide))
    {
        let root = Narrow { wide, narrow: None, shape: Vec::new() };
        if let Some(edit) = region(place, exact, root, Some(number)) {
            return Ok(edit);
        }
    }
    let node = place.root()?;
    let narrow = match traits_of(place.model, node).moves {
        Some(Movement::Spread) => spread_from(place, node).ok_or(miss!("alike"))?,
        Some(Movement::Layout) => {
            led_by_ones(place, node).or_else(|| shorter_layout(place, node)).ok_or(miss!("alike"))?
        }
        _ => unchanged(place, node, exact).ok_or(miss!("alike"))?,
    };
    ensure(place.constant(narrow).is_none() || !is_quantized(place, wide), Miss::ROOT)?;
    let shape = place.dims(narrow)?.to_vec();
    // The smaller form may be an outer value or the value of a graph output; only the types must agree.
    region(place, exact, Narrow { wide, narrow: Some(narrow), shape }, None).ok_or(miss!("reaches").of(wide))
}

/// Returns `true` if a value is quantized at run time. OpenVINO fails on a product with a constant that is quantized and dequantized.
fn is_quantized(place: &Place<'_>, value: ValueId) -> bool {
    let users = place.model.users(value);
    users.iter().any(|&(id, _)| place.model.node(id).is_some_and(|node| node.is("QuantizeLinear")))
}

/// Returns `true` if a stack of matrices has more than one. OpenCV broadcasts a constant second operand wrongly.
fn has_batch(shape: &[Dim]) -> bool {
    shape.iter().rev().skip(2).any(|dim| !dim.is_const(1))
}

/// Returns the operand of an Expand or Tile that only repeats positions of size 1.
pub(in crate::rewrite) fn spread_from(place: &Place<'_>, node: &Node) -> Option<ValueId> {
    let input = node.input(0)?;
    let (from, to) = (place.shape(input)?, place.shape(node.output(0)?)?);
    let added = to.len().checked_sub(from.len())?;
    let repeats =
        |(from, to): (&Dim, &Dim)| node.is("Expand") || from.is_const(1) || place.scope().eq(from, to).is_yes();
    from.iter().zip(to.get(added..)?).all(repeats).then_some(input)
}

/// Returns the operand of a layout that only inserts leading axes of size 1.
fn led_by_ones(place: &Place<'_>, node: &Node) -> Option<ValueId> {
    let input = node.input(0)?;
    place.is_led_by_ones(place.shape(input)?, place.shape(node.output(0)?)?).then_some(input)
}

/// Returns another layout of the same operand that only lacks leading axes of size 1.
fn shorter_layout(place: &Place<'_>, node: &Node) -> Option<ValueId> {
    let input = node.input(0)?;
    let to = place.shape(node.output(0)?)?;
    let readers = place.model.users(input);
    readers.iter().take(READERS).find_map(|&(id, slot)| {
        let other =
            place.model.node(id).filter(|other| slot == 0 && id != place.id && other.graph() == node.graph())?;
        let is_layout = traits_of(place.model, other).moves == Some(Movement::Layout);
        let mut sizes = other.inputs().iter().skip(1).flatten();
        let value = other.output(0).filter(|_| is_layout && sizes.all(|&size| place.constant(size).is_some()))?;
        place.is_led_by_ones(place.shape(value)?, to).then_some(value)
    })
}

/// Returns `true` if a node only broadcasts its first operand or one number, and could broadcast another value to the same sizes.
fn spreads(place: &Place<'_>, id: NodeId) -> bool {
    let Some(node) = place.model.node(id) else { return false };
    let fills = node.is("ConstantOfShape") && place.opset.has("Expand");
    fills || traits_of(place.model, node).moves == Some(Movement::Spread)
}

/// Returns a uniform tensor of this shape.
fn splat(number: &Tensor, shape: &[Dim]) -> Option<Tensor> {
    let count = shape.iter().try_fold(1i64, |product, dim| product.checked_mul(dim.as_const()?))?;
    if !(1..=MAX_SPLAT).contains(&count) {
        return None;
    }
    let shape: Option<Vec<usize>> = shape.iter().map(|dim| usize::try_from(dim.as_const()?).ok()).collect();
    let view = StridedView::of(number).broadcast_to(&shape?).ok()?;
    gather(number, &view).ok()
}

/// Computes all consumers of a value on the smaller form; `number` is that form if it is a new constant.
fn region(place: &Place<'_>, exact: bool, root: Narrow, number: Option<Tensor>) -> Option<Edit> {
    let is_constant = number.is_some() || root.narrow.is_some_and(|narrow| place.constant(narrow).is_some());
    let may_spread = is_constant && spreads(place, place.id);
    let mut region =
        Region { known: vec![root], seen: Vec::new(), exact, is_constant, is_measured: false, may_spread, last: None };
    region.grow(place)?;
    let mut edit = place.edit()?;
    if !region.is_measured {
        edit.remove.push(place.id);
    }
    if let Some(number) = number {
        let root = region.known.first_mut()?;
        root.narrow = Some(edit.constant(root.wide, "value", number));
    }
    region.build(place, &mut edit)?;
    Some(edit)
}

/// Returns `true` if a node is a mean that is subtracted or added, as in a normalization in basic operators.
fn is_mean_of_normalization(place: &Place<'_>, id: NodeId) -> bool {
    let Some(node) = place.model.node(id).filter(|node| node.is("ReduceMean")) else { return false };
    let readers = node.output(0).map(|mean| place.model.users(mean)).unwrap_or_default();
    readers.iter().any(|&(id, _)| place.model.node(id).is_some_and(|node| node.is("Sub") || node.is("Add")))
}

/// Returns `true` if a normalization, the operator or written in basic operators, is the only reader of a value.
fn is_only_normalized(place: &Place<'_>, value: ValueId) -> bool {
    let readers = place.model.users(value);
    let is = |id: NodeId, operator: &str| place.model.node(id).is_some_and(|node| node.is(operator));
    match readers.as_slice() {
        [(id, 0)] => is(*id, "LayerNormalization"),
        readers => {
            let is_inside = |&(id, _): &(NodeId, usize)| is(id, "Sub") || is_mean_of_normalization(place, id);
            readers.iter().all(is_inside) && readers.iter().any(|&(id, _)| is_mean_of_normalization(place, id))
        }
    }
}

/// Returns `true` if the value has consumers, and all of them are nodes.
fn is_free(place: &Place<'_>, value: ValueId) -> bool {
    !place.model.is_named(value) && !place.model.is_unused(value)
}

/// Returns the operand that a pointwise operator returns unchanged except for its size: the other operand is a uniform neutral element, or
/// a uniform condition selects it. ONNX Runtime's Where turns a selected −0 of floats into 0 for a true condition.
fn unchanged(place: &Place<'_>, node: &Node, exact: bool) -> Option<ValueId> {
    let output = node.output(0)?;
    let value = if node.is("Where") {
        let condition = uniform(place, node.input(0)?)?.to_i64s()?;
        let takes_first = condition == [1];
        if exact && takes_first && place.dtype(output).is_none_or(DType::is_float) {
            return None;
        }
        node.input(if takes_first { 1 } else { 2 })?
    } else {
        beside_neutral(place, node)?
    };
    (place.dtype(value).is_some() && place.dtype(value) == place.dtype(output)).then_some(value)
}

/// Returns the operand `x` of `f(x, e)` or, if `f` commutes, of `f(e, x)`, with a uniform neutral `e`: the node only broadcasts it.
fn beside_neutral(place: &Place<'_>, node: &Node) -> Option<ValueId> {
    let traits = traits_of(place.model, node);
    let neutral = traits.neutral.filter(|_| node.canonical_domain().is_empty())?;
    let &[Some(a), Some(b)] = node.inputs() else { return None };
    let is_neutral = |x: ValueId, other: ValueId| {
        place.dtype(x).zip(uniform(place, other)).is_some_and(|(dtype, number)| (neutral.is)(dtype, &number))
    };
    if is_neutral(a, b) {
        return Some(a);
    }
    (traits.commutes == Commutes::Always && is_neutral(b, a)).then_some(b)
}

/// Returns `true` if a node joins its operands.
fn joins(place: &Place<'_>, id: NodeId) -> bool {
    place.model.node(id).is_some_and(|node| traits_of(place.model, node).moves == Some(Movement::Join))
}

/// A consumer of a value with a smaller form.
struct Reader {
    id: NodeId,
    looks: usize,
}

struct Region {
    /// Values with a smaller form; the root first.
    known: Vec<Narrow>,
    /// The nodes that read one of them.
    seen: Vec<Reader>,
    exact: bool,
    /// `true` if the root is constant, so that most results computed from it are constant.
    is_constant: bool,
    /// `true` if the producer of the root can broadcast another value instead.
    may_spread: bool,
    /// A value that is broadcast again, because one of its consumers distinguishes positions.
    last: Option<ValueId>,
    /// `true` if the size of the root is read as well: the root is kept for that, until the sizes are planned.
    is_measured: bool,
}

impl Shapes for Region {
    fn narrow(&self, value: ValueId) -> Option<&[Dim]> {
        self.find(value).map(|known| known.shape.as_slice())
    }
}

impl Region {
    fn find(&self, value: ValueId) -> Option<&Narrow> {
        self.known.iter().find(|known| known.wide == value)
    }

    /// Finds all nodes to compute on smaller operands. A further operand with a smaller form can only shrink the result, so the loop ends.
    fn grow(&mut self, place: &Place<'_>) -> Option<()> {
        let mut waiting: VecDeque<NodeId> = VecDeque::new();
        let root = self.known.first()?.wide;
        self.meet_readers(place, root, &mut waiting)?;
        // Parts must repeat in the same way; a part that does not may do so once the next one is known.
        let mut refused: Vec<NodeId> = Vec::new();
        while let Some(id) = waiting.pop_front() {
            let node = place.model.node(id)?;
            refused.retain(|other| *other != id);
            let form = match self.form(place, id) {
                None if joins(place, id) => {
                    refused.push(id);
                    continue;
                }
                None => {
                    self.spread_again(place, id)?;
                    continue;
                }
                Some(form) => form,
            };
            if form.is_whole() {
                continue;
            }
            let [Some(output)] = *node.outputs() else { return None };
            let shape = form.shape().to_vec();
            match self.known.iter_mut().find(|known| known.wide == output) {
                Some(known) if known.shape == shape => continue,
                Some(known) => known.shape = shape,
                None => {
                    if !is_free(place, output) {
                        return None;
                    }
                    self.known.push(Narrow { wide: output, narrow: None, shape });
                }
            }
            self.meet_readers(place, output, &mut waiting)?;
        }
        for id in refused {
            self.spread_again(place, id)?;
        }
        (!self.seen.is_empty()).then_some(())
    }

    /// Returns the form of a node on smaller operands ([`on_narrow`]), unless a normalization in basic operators would become constant.
    /// Runtimes fuse the sum after it into the next normalization only if both operands have the batch, and a sum with its normalization
    /// only if both operands have the rank of the sum.
    fn form(&self, place: &Place<'_>, id: NodeId) -> Option<Form> {
        let is_kept =
            self.is_constant && is_mean_of_normalization(place, id) || self.flattens_normalized_sum(place, id);
        if is_kept {
            return None;
        }
        on_narrow(place, id, self, self.exact)
    }

    /// Returns `true` if a node is a sum of two tensors of one shape that a normalization reads, and one of them would lose axes of its layout.
    fn flattens_normalized_sum(&self, place: &Place<'_>, id: NodeId) -> bool {
        let is_layout = |node: &Node| traits_of(place.model, node).moves == Some(Movement::Layout);
        let Some(node) = place.model.node(id).filter(|node| node.is("Add") && place.node().is_some_and(is_layout))
        else {
            return false;
        };
        let (&[Some(a), Some(b)], &[Some(sum)]) = (node.inputs(), node.outputs()) else { return false };
        let rank = |value: ValueId| place.shape(value).map(<[Dim]>::len);
        let loses_axes = |value: ValueId| self.find(value).is_some_and(|known| Some(known.shape.len()) != rank(value));
        (loses_axes(a) || loses_axes(b)) && place.same_shape(a, b) && is_only_normalized(place, sum)
    }

    /// Lets a node read its present operand: the one value with a smaller form is broadcast again, like the root. Results computed from a
    /// constant are then constant.
    fn spread_again(&mut self, place: &Place<'_>, id: NodeId) -> Option<()> {
        let mut inputs = place.model.node(id)?.inputs().iter().flatten().filter(|&&input| self.find(input).is_some());
        let (&value, None) = (inputs.next()?, inputs.next()) else { return None };
        let (root, again) = (self.known.first()?, self.find(value)?);
        if !self.may_spread || value == root.wide || self.last.is_some_and(|last| last != value) {
            return None;
        }
        // A ConstantOfShape can fill another number.
        let fills = place.node()?.is("ConstantOfShape");
        if fills && again.shape.iter().all(|dim| dim.is_const(1)) {
            return None;
        }
        let (root_wide, wide) = (place.shape(root.wide)?, place.shape(value)?);
        let equal = |a: &Dim, b: &Dim| place.scope().eq(a, b).is_yes();
        let is_tile = place.node()?.is("Tile");
        let operand =
            place.node()?.input(0).filter(|_| !fills).map_or(Some(&[][..]), |operand| place.shape(operand))?;
        let like_root = |axis: usize| {
            // A ConstantOfShape gets all sizes; an Expand may get 1 where its operand is larger; a Tile gets the numbers of repetitions.
            if !is_tile {
                let whole = wide.get(axis)?;
                let own = |shape: &[Dim]| {
                    (axis + shape.len()).checked_sub(wide.len()).and_then(|axis| shape.get(axis)).cloned()
                };
                let is_told = own(operand).is_none_or(|size| size.is_const(1));
                let is_kept = || own(&again.shape).is_some_and(|size| equal(&size, whole));
                return Some(equal(whole, root_wide.get(axis)?) && (is_told || is_kept()));
            }
            let (narrow, whole) = (again.shape.get(axis)?, wide.get(axis)?);
            let (root_narrow, root_whole) = (root.shape.get(axis)?, root_wide.get(axis)?);
            let repeats = !equal(root_narrow, root_whole);
            let same_size = equal(whole, root_whole) && equal(narrow, root_narrow);
            Some(same_size || !repeats && equal(narrow, whole))
        };
        let same_ranks = !is_tile || again.shape.len() == wide.len() && root.shape.len() == root_wide.len();
        let fits = same_ranks
            && wide.len() == root_wide.len()
            && (0..root_wide.len()).all(|axis| like_root(axis) == Some(true));
        self.last = Some(value).filter(|_| fits);
        self.last.map(|_| ())
    }

    fn meet_readers(&mut self, place: &Place<'_>, value: ValueId, waiting: &mut VecDeque<NodeId>) -> Option<()> {
        let readers = place.model.users(value);
        if readers.len() > READERS {
            return None;
        }
        let is_root = self.known.first().is_some_and(|root| root.wide == value);
        for (id, _) in readers {
            let node = place.model.node(id)?;
            if is_root && traits_of(place.model, node).of_shape {
                self.is_measured = true;
                continue;
            }
            if Some(node.graph()) != place.graph() || !node.canonical_domain().is_empty() {
                return None;
            }
            let count = self.seen.len();
            match self.seen.iter_mut().find(|reader| reader.id == id) {
                Some(reader) if reader.looks >= MAX_LOOKS => return None,
                Some(reader) => reader.looks += 1,
                None if count >= NODES => return None,
                None => self.seen.push(Reader { id, looks: 1 }),
            }
            if !waiting.contains(&id) {
                waiting.push_back(id);
            }
        }
        Some(())
    }

    /// Lets every consumer read the smaller forms, in topological order.
    fn build(&mut self, place: &Place<'_>, edit: &mut Edit) -> Option<()> {
        let mut waiting: Vec<NodeId> = self.seen.iter().map(|reader| reader.id).collect();
        while !waiting.is_empty() {
            let reads_last = |id: &NodeId| {
                let node = place.model.node(*id);
                self.last.is_some_and(|last| node.is_some_and(|node| node.inputs().contains(&Some(last))))
            };
            waiting.retain(|id| !(reads_last(id) && self.form(place, *id).is_none()));
            let is_ready = |id: &NodeId| {
                let node = place.model.node(*id);
                node.is_some_and(|node| {
                    let known = node.inputs().iter().flatten().filter_map(|&input| self.find(input));
                    known.into_iter().all(|known| known.narrow.is_some())
                })
            };
            if waiting.is_empty() {
                break;
            }
            let next = waiting.iter().position(is_ready)?;
            let id = waiting.remove(next);
            self.build_reader(place, edit, id)?;
        }
        Some(())
    }

    fn build_reader(&mut self, place: &Place<'_>, edit: &mut Edit, id: NodeId) -> Option<()> {
        let node = place.model.node(id)?;
        let old = node;
        let form = self.form(place, id)?;
        let [Some(output)] = *node.outputs() else { return None };
        match form {
            Form::Same { whole: true, .. } => {
                for (slot, input) in node.inputs().iter().enumerate() {
                    if let Some(known) = input.and_then(|input| self.find(input)) {
                        if self.is_constant && node.is("MatMul") && slot == 1 && has_batch(&known.shape) {
                            return None;
                        }
                        if self.last != input.as_ref().copied() {
                            edit.rewire.push((id, slot, Some(known.narrow?)));
                        }
                    }
                }
            }
            Form::Same { .. } => {
                let mut copy = NewNode::like(node);
                let smaller = |input: ValueId| self.find(input).map_or(Some(input), |known| known.narrow);
                copy.inputs = node.inputs().iter().map(|input| input.and_then(smaller)).collect();
                let narrow = edit.new_value(output, "narrow");
                edit.insert.push(copy.output(narrow));
                edit.remove.push(id);
                self.made(output, narrow)?;
                self.spread(place, edit, output, narrow)?;
            }
            Form::Layout { whole, shape } => {
                let known = self.find(node.input(0)?)?;
                let (source, from) = (known.narrow?, known.shape.clone());
                edit.remove.push(id);
                if whole {
                    let node = place.build(edit, output).reshape_to(place.scope(), source, &from, &shape)?;
                    edit.insert.push(rebuilt(old, node).output(output));
                } else if from == shape {
                    self.made(output, source)?;
                } else {
                    let narrow = edit.new_value(output, "narrow");
                    let node = place.build(edit, narrow).reshape_to(place.scope(), source, &from, &shape)?;
                    edit.insert.push(rebuilt(old, node).output(narrow));
                    self.made(output, narrow)?;
                    self.spread(place, edit, output, narrow)?;
                }
            }
        }
        Some(())
    }

    /// Broadcasts the value that is to be broadcast again.
    fn spread(&self, place: &Place<'_>, edit: &mut Edit, wide: ValueId, narrow: ValueId) -> Option<()> {
        if self.last == Some(wide) {
            let root = place.node()?;
            let node = match root.is("ConstantOfShape") {
                true => NewNode::new("Expand", [Some(narrow), root.input(0)]),
                false => NewNode::like(root).reading(0, narrow),
            };
            edit.insert.push(node.output(wide));
        }
        Some(())
    }

    fn made(&mut self, wide: ValueId, narrow: ValueId) -> Option<()> {
        self.known.iter_mut().find(|known| known.wide == wide)?.narrow = Some(narrow);
        Some(())
    }
}
