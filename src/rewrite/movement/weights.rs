//! Movement of the data of a product, moved into its constant weights.
//!
//! Law: a product sums over an axis of its data, `y[o] = Σᵢ W[o, i]·d[i]`. If `d[i] = x[σ(i)]` for a bijection σ, then
//! `y[o] = Σⱼ W[o, σ⁻¹(j)]·x[j]`. A convolution sums over channels and taps. If channel `i` of its data is `x[:, c, g::b]`, then tap `u` of channel `i` is tap
//! `b·u + g` of channel `c`: a kernel of size `b·k` with strides `b·s` and pads `b·p` computes the same sums over `x`.
//!
//! Each element of `x` is read by the same number of weights as before: a new weight of 0 would turn an infinity into NaN.

use std::collections::HashMap;
use std::rc::Rc;

use super::ADDED_FOR_LITTLE;
use super::tree::{Tree, trees_above};
use crate::dim::{Dim, Operation, Scope};
use crate::index_map::{Binding, Element, IndexMap, Selected};
use crate::ir::{Attribute, Edit, Fact, Facts, NamedAttribute, NewNode, Node, NodeId, ValueId};
use crate::ops::gather_along;
use crate::rewrite::build::rebuilt;
use crate::rewrite::cache::Taken;
use crate::rewrite::limits::NODES;
use crate::rewrite::miss::{Miss, ensure};
use crate::rewrite::place::Place;
use crate::rewrite::rule::{Rule, miss};
use crate::tensor::{StridedView, Tensor, gather_later};

pub(in crate::rewrite) const RULES: &[Rule] = &[Rule {
    name: "movement-into-weights",
    law: "W·m(x) = m⁻¹(W)·x for a permutation m of the positions that the product sums over; Conv(SpaceToDepth(x), W) = Conv(x, DepthToSpace(W)), with strides and pads multiplied by the block size",
    sentence: "Applies a permutation, or a SpaceToDepth, of the data of a matrix product or convolution to the constant weights instead.",
    premises: &[
        ("constant-weights", "the weights are constant"),
        ("one-source", "one tensor x holds all elements of the data of the product"),
        (
            "bijection",
            "the product sums over each element of x exactly once; before a convolution, each channel of the data is a channel of x, or a regular grid of its elements that begins in the first block",
        ),
        (
            "plain-window",
            "if the grid has steps above 1, the convolution has a dilation of 1 along these axes, and no automatic padding",
        ),
        ("whole-groups", "each group of a convolution permutes its own channels, and all groups do so in the same way"),
    ],
    exact: false,
    operators: &["Conv", "ConvTranspose", "MatMul", "Gemm"],
    apply: into_weights,
}];

/// The largest step of a grid along one axis.
const MOST_STEP: i64 = 8;

/// The most channels whose grids are compared one by one.
const MOST_CHANNELS: usize = 128;

/// The most different dims of the operands of a Concat that are compared.
const MOST_SIZES: usize = 16;

/// The size of each symbol where positions are drawn: a multiple of all steps.
const DRAWN: i64 = 840;

/// A product of data and weights.
#[derive(Clone, Copy)]
struct Product {
    data: usize,
    weights: usize,
    /// The axis of the data that is summed over, and the axis of the weights that it meets.
    axis: usize,
    weights_axis: usize,
    groups: usize,
    is_conv: bool,
}

impl Product {
    fn of(place: &Place<'_>, node: &Node) -> Option<Product> {
        let rank = |slot: usize| Some(place.shape(node.input(slot)?)?.len());
        let weights = [1, 0].into_iter().find(|&slot| node.input(slot).is_some_and(|w| place.constant(w).is_some()))?;
        let data = 1usize.checked_sub(weights)?;
        let (data_rank, weights_rank) = (rank(data)?, rank(weights)?);
        // The second operand of a matrix product has its columns last.
        let summed = |slot: usize, rank: usize| rank.checked_sub(if slot == 0 { 1 } else { rank.min(2) });
        let product = Product { data, weights, axis: 1, weights_axis: 1, groups: 1, is_conv: false };
        match node.op_type.as_str() {
            "MatMul" => Some(Product {
                axis: summed(data, data_rank)?,
                weights_axis: summed(weights, weights_rank)?,
                ..product
            }),
            "Gemm" => {
                let axis = |slot: usize| {
                    let is_turned = node.int(if slot == 0 { "transA" } else { "transB" }, 0)? != 0;
                    Some(usize::from((slot == 0) != is_turned))
                };
                Some(Product { axis: axis(data)?, weights_axis: axis(weights)?, ..product })
            }
            "Conv" | "ConvTranspose" if data == 0 => {
                let groups = usize::try_from(node.int("group", 1)?).ok().filter(|&groups| groups > 0)?;
                let is_conv = node.is("Conv");
                Some(Product { weights_axis: usize::from(is_conv), groups, is_conv, ..product })
            }
            _ => None,
        }
    }
}

fn into_weights(place: &Place<'_>) -> Result<Edit, Miss> {
    let node = place.root()?;
    let is_moved =
        |slot: usize| node.input(slot).and_then(|data| place.producer_with(data, |own| own.index_map.is_some()));
    ensure([0, 1].into_iter().any(|slot| is_moved(slot).is_some()), Miss::ROOT)?;
    let product = Product::of(place, node).ok_or(miss!("constant-weights"))?;
    let (id, producer) = is_moved(product.data).filter(|(_, node)| !node.is("Identity")).ok_or(Miss::ROOT)?;
    let data = place.operand(product.data)?;
    ensure(place.model.is_read_only_by(data, &[place.id]), Miss::READ.of(data))?;
    let moved = moved_into(place, product, data, (id, producer));
    let Some(scope) = moved.as_ref().err().and_then(|_| scope_of_equal_sizes(place, producer)) else { return moved };
    let facts = facts_over(place, scope, data);
    let taken = Taken::default();
    moved_into(&Place { facts: &facts, taken: &taken, ..*place }, product, data, (id, producer))
}

/// The scope in which the operands of a Concat are known to have equal dims along the other axes: `⌈s/k⌉ = ⌊s/k⌋` only if `k` divides `s`. The result of
/// other operands is not defined: ONNX Runtime refuses them, or returns memory that nothing has written if one of them is empty.
fn scope_of_equal_sizes(place: &Place<'_>, node: &Node) -> Option<Scope> {
    let operands = node.inputs().iter().filter(|_| node.is("Concat"));
    let shapes = operands.map(|operand| place.shape((*operand)?)).collect::<Option<Vec<&[Dim]>>>()?;
    let joined = place.read(node).axis(shapes.first()?.len())?;
    let mut sizes: Vec<(usize, &Dim)> = Vec::new();
    for size in shapes.iter().flat_map(|shape| shape.iter().enumerate()).filter(|(axis, _)| *axis != joined) {
        if size.1.as_const().is_none() && !sizes.contains(&size) {
            sizes.push(size);
        }
    }
    let (scope, mut found) = (place.scope(), None);
    for (axis, low) in sizes.iter().take(MOST_SIZES) {
        for (operation, number, divisor) in scope.parts(low) {
            let (Operation::Div, Some(symbol), Some(factor)) = (operation, number.as_symbol(), divisor.as_const())
            else {
                continue;
            };
            let high = scope.ceil_div(&number, &divisor);
            if factor > 1 && high != **low && sizes.contains(&(*axis, &high)) {
                let known = found.get_or_insert_with(|| scope.copied());
                let quotient = known.fresh_within("quotient", Some(0), None);
                known.define(symbol, &known.mul(&divisor, &quotient));
            }
        }
    }
    // Inference has no name for a dim of the result if the operands have different expressions for it.
    let own = found.as_ref().and_then(|_| place.shape(node.output(0)?)).unwrap_or_default();
    for (axis, (own, operand)) in own.iter().zip(*shapes.first()?).enumerate() {
        let symbol = own.as_symbol().filter(|&symbol| axis != joined && scope.is_fresh(symbol));
        let named = symbol.filter(|symbol| !operand.symbols().contains(symbol));
        if let (Some(symbol), Some(known)) = (named, &found) {
            known.define(symbol, &known.current(operand));
        }
    }
    found
}

/// The facts with the dims of a value, and of those that movement computes it from, in the form that this scope gives them.
fn facts_over(place: &Place<'_>, scope: Scope, value: ValueId) -> Facts {
    let mut facts = place.facts.over(Rc::new(scope));
    let mut values = vec![value];
    let mut at = 0;
    while let Some(&value) = values.get(at).filter(|_| at < NODES) {
        at += 1;
        if let Some((_, node)) = place.producer_with(value, |own| own.index_map.is_some()) {
            values.extend(node.inputs().iter().flatten());
        }
        let Some((shape, dtype)) = place.shape(value).zip(place.dtype(value)) else { continue };
        let current: Vec<Dim> =
            shape.iter().map(|dim| facts.scope().substitute(&facts.scope().current(dim), &|_| None)).collect();
        if current != shape {
            facts.set(value, Fact::tensor(Some(dtype), Some(current)));
        }
    }
    facts
}

fn moved_into(
    place: &Place<'_>,
    product: Product,
    data: ValueId,
    (id, producer): (NodeId, &Node),
) -> Result<Edit, Miss> {
    let above = Place { id, ..*place };
    let mut trees: Vec<Tree> = Tree::of_root(&above, producer).into_iter().collect();
    trees.extend(trees_above(&above, producer).unwrap_or_default());
    let (largest, rest) = trees.split_last().ok_or(miss!("one-source").of(data))?;
    let mut miss = None;
    for tree in std::iter::once(largest).chain(rest) {
        match (Into { place, product, data, tree }).edit(&tree.removed(&above)) {
            Ok(edit) => return Ok(edit),
            Err(other) => {
                miss.get_or_insert(other);
            }
        }
    }
    Err(miss.unwrap_or(miss!("one-source")))
}

/// The movement of a tree, which the weights of a product may take instead.
struct Into<'p, 'a> {
    place: &'p Place<'a>,
    product: Product,
    data: ValueId,
    tree: &'p Tree,
}

impl Into<'_, '_> {
    fn edit(&self, removed: &[NodeId]) -> Result<Edit, Miss> {
        let (place, product, node) = (self.place, self.product, self.place.root()?);
        let ([leaf], [(_, map)]) = (self.tree.leaves.as_slice(), self.tree.results.as_slice()) else {
            return Err(miss!("one-source").of(self.data));
        };
        let (from, to) = (place.dims(*leaf)?, place.dims(self.data)?);
        let steps = self.steps(from, to).ok_or(miss!("bijection").of(self.data))?;
        let is_grid = steps.iter().any(|&step| step != 1);
        let is_laid_out = is_grid || place.same_dims(from, to);
        // A Reshape of the data is one node more.
        ensure(is_laid_out || removed.len() > 1, miss!("bijection").of(self.data))?;
        let order = self.order(map, from, to, &steps).ok_or(miss!("bijection").of(self.data))?;
        ensure(!is_grid || is_plain(node, &steps), miss!("plain-window"))?;
        let inverse = self.inverse(&order).ok_or(miss!("whole-groups"))?;
        let weights = place.operand(product.weights)?;
        let tensor = place.constant(weights).ok_or(miss!("constant-weights"))?;
        let moved = self.moved(tensor, &inverse, &steps).ok_or(Miss::COMPUTABLE)?;
        let all: Vec<NodeId> = removed.iter().copied().chain([place.id]).collect();
        ensure(moved.byte_len() <= place.allowance(&all).saturating_add(ADDED_FOR_LITTLE), Miss::LARGER)?;
        let mut edit = removed.iter().fold(place.begin()?, |edit, &id| edit.removing(id));
        let mut source = *leaf;
        if !is_laid_out {
            source = edit.new_value(self.data, "rows");
            let reshape = place.build(&mut edit, self.data).reshape_to(place.scope(), *leaf, from, to);
            edit.insert.push(reshape.ok_or(Miss::EXPRESSIBLE)?.output(source));
        }
        let moved = edit.constant(weights, "moved", moved);
        let mut inputs = node.inputs().to_vec();
        for (slot, value) in [(product.data, source), (product.weights, moved)] {
            *inputs.get_mut(slot).ok_or(Miss::ROOT)? = Some(value);
        }
        let mut new = NewNode::new(&node.op_type, inputs);
        if is_grid {
            new.attributes = window_of_steps(node, &steps).ok_or(miss!("plain-window"))?;
        }
        place.instead(edit, rebuilt(node, new))
    }

    /// The steps of the grids along the spatial axes, none for a product without such axes. `None` if the shapes do not fit.
    fn steps(&self, from: &[Dim], to: &[Dim]) -> Option<Vec<i64>> {
        let scope = self.place.scope();
        if !self.product.is_conv || self.place.same_dims(from, to) {
            return Some(vec![]);
        }
        let ([batch, _, from @ ..], [own_batch, _, to @ ..]) = (from, to) else { return None };
        let step = |(from, to): (&Dim, &Dim)| {
            (1..=MOST_STEP).find(|&step| scope.eq(from, &scope.mul(to, &Dim::constant(step))).is_yes())
        };
        let is_fit = from.len() == to.len() && scope.eq(batch, own_batch).is_yes();
        from.iter().zip(to).map(step).collect::<Option<Vec<_>>>().filter(|_| is_fit)
    }

    /// The position that each position of the summed axis has in the unmoved layout: in `x`, or in the grids of `x` in row-major order of channel and grid.
    fn order(&self, map: &IndexMap, from: &[Dim], to: &[Dim], steps: &[i64]) -> Option<Vec<usize>> {
        let (scope, axis) = (self.place.scope(), self.product.axis);
        let unmoved = unmoved(scope, from, to, steps)?;
        let mut places = HashMap::new();
        for (at, element) in first_row(scope, &unmoved, axis)?.into_iter().enumerate() {
            places.insert(element, at);
        }
        let drawn = first_row(scope, map, axis)?;
        // Each place once.
        let order: Vec<usize> = drawn.iter().map(|element| places.remove(element)).collect::<Option<_>>()?;
        let indices = order.iter().map(|&at| i64::try_from(at).ok()).collect::<Option<Vec<i64>>>()?;
        let count = i64::try_from(order.len()).ok()?;
        let gathered = IndexMap::gather(scope, to, axis, &[count], &indices).and_then(|own| unmoved.then(scope, &own));
        let is_proved = gathered.is_ok_and(|own| own.equals(scope, map))
            || order.len() <= MOST_CHANNELS
                && (0i64..).zip(&indices).all(|(channel, &place)| {
                    let own = |map: &IndexMap, at: i64| {
                        let at = IndexMap::range(scope, to, axis, Dim::constant(at), 1, Dim::constant(1)).ok()?;
                        map.then(scope, &at).ok()
                    };
                    own(map, channel).zip(own(&unmoved, place)).is_some_and(|(a, b)| a.equals(scope, &b))
                });
        (places.is_empty() && is_proved).then_some(order)
    }

    /// The inverse of the permutation within a group, if all groups have the same.
    fn inverse(&self, order: &[usize]) -> Option<Vec<usize>> {
        // The rows of a ConvTranspose are all channels, group by group.
        let groups = if self.product.is_conv { self.product.groups } else { 1 };
        let len = order.len().checked_div(groups).filter(|len| len.checked_mul(groups) == Some(order.len()))?;
        let first = order.get(..len)?;
        let mut inverse = vec![None; len];
        for (at, &place) in first.iter().enumerate() {
            *inverse.get_mut(place)? = Some(at);
        }
        let is_alike = order.chunks(len.max(1)).enumerate().all(|(group, own)| {
            let start = group.saturating_mul(len);
            own.iter().zip(first).all(|(&place, &first)| start.checked_add(first) == Some(place))
        });
        let stays = self.product.is_conv || self.product.groups == 1 || {
            let len = order.len().checked_div(self.product.groups)?.max(1);
            order.iter().enumerate().all(|(at, &place)| at.checked_div(len) == place.checked_div(len))
        };
        inverse.into_iter().collect::<Option<Vec<usize>>>().filter(|_| is_alike && stays)
    }

    /// The weights of the product of `x`.
    fn moved(&self, weights: &Tensor, inverse: &[usize], steps: &[i64]) -> Option<Tensor> {
        let gathered = gather_along(weights, self.product.weights_axis, inverse)?;
        let steps = steps.iter().map(|&step| usize::try_from(step).ok()).collect::<Option<Vec<usize>>>()?;
        if steps.iter().all(|&step| step == 1) {
            return Some(gathered);
        }
        // [o, c·b, k] to [o, c, b, k] to [o, c, k, b] to [o, c, k·b].
        let [outputs, channels, kernel @ ..] = weights.shape() else { return None };
        let block = steps.iter().try_fold(1usize, |block, &step| block.checked_mul(step))?;
        let front = [*outputs, channels.checked_div(block)?];
        let split = [&front, steps.as_slice(), kernel].concat();
        let axes = steps.len();
        let taps = (0..axes).flat_map(|axis| [axis.saturating_add(axes), axis]).map(|axis| axis.saturating_add(2));
        let perm: Vec<usize> = [0, 1].into_iter().chain(taps).collect();
        let taps = kernel.iter().zip(&steps).map(|(&size, &step)| size.checked_mul(step));
        let shape = front.into_iter().map(Some).chain(taps).collect::<Option<Vec<usize>>>()?;
        let split = gathered.reshape(&split).ok()?;
        let view = StridedView::of(&split).permute(&perm).ok()?;
        gather_later(&split, &view).ok()?.reshape(&shape).ok()
    }
}

/// `x` in the shape of the data: its elements in order, or its grids as channels.
fn unmoved(scope: &Scope, from: &[Dim], to: &[Dim], steps: &[i64]) -> Option<IndexMap> {
    if steps.iter().all(|&step| step == 1) {
        let is_whole = scope.eq(&scope.product(from), &scope.product(to)).is_yes();
        return is_whole.then(|| IndexMap::reshape(scope, from, to));
    }
    let ([batch, channels, ..], [_, all, sizes @ ..]) = (from, to) else { return None };
    let block = steps.iter().try_fold(1i64, |block, &step| block.checked_mul(step))?;
    if channels.as_const()?.checked_mul(block) != all.as_const() {
        return None;
    }
    let grids = sizes.iter().zip(steps).flat_map(|(size, &step)| [size.clone(), Dim::constant(step)]);
    let split: Vec<Dim> = [batch.clone(), channels.clone()].into_iter().chain(grids).collect();
    let along = |first: usize| (0..steps.len()).map(move |axis| axis.saturating_mul(2).saturating_add(first));
    let perm: Vec<usize> = [0, 1].into_iter().chain(along(3)).chain(along(2)).collect();
    let turned = IndexMap::transpose(scope, &split, &perm).ok()?;
    Some(IndexMap::reshape(scope, from, &split).then(scope, &turned).ok()?.reshaped(to))
}

/// The elements along an axis at the first position of all others, at sizes that are drawn.
fn first_row(scope: &Scope, map: &IndexMap, axis: usize) -> Option<Vec<Element>> {
    let first = Selected::Range { start: Dim::constant(0), step: 1, len: Dim::constant(1) };
    let entries = (0..map.result().len()).map(|own| if own == axis { Selected::All } else { first.clone() });
    let row = IndexMap::slice(scope, map.result(), &entries.collect::<Vec<_>>()).ok()?;
    let row = map.then(scope, &row).ok()?;
    row.evaluate(&Binding { sizes: &|_| Some(DRAWN), positions: &|_, _| None })
}

/// Returns `true` if a convolution has a dilation of 1 along the axes with a step above 1, and explicit pads.
fn is_plain(node: &Node, steps: &[i64]) -> bool {
    let Some(dilations) = node.ints("dilations") else { return false };
    let is_explicit = matches!(node.text("auto_pad", b"NOTSET"), Some(b"NOTSET" | b"" | b"VALID"));
    is_explicit && dilations.iter().zip(steps).all(|(&dilation, &step)| dilation == 1 || step == 1)
}

/// The attributes of a convolution whose kernel, strides and pads are multiplied by the steps.
fn window_of_steps(node: &Node, steps: &[i64]) -> Option<Vec<NamedAttribute>> {
    let multiplied = |name: &str, default: i64, count: usize| {
        let own = Some(node.ints(name)?).filter(|own| own.is_empty() || own.len() == count)?;
        let own = own.iter().copied().chain(std::iter::repeat(default)).take(count);
        own.zip(steps.iter().cycle()).map(|(own, &step)| own.checked_mul(step)).collect::<Option<Vec<i64>>>()
    };
    let axes = steps.len();
    let mut attributes = vec![NamedAttribute::new("strides", Attribute::Ints(multiplied("strides", 1, axes)?))];
    if node.ints("pads")?.iter().any(|&pad| pad != 0) {
        attributes.push(NamedAttribute::new("pads", Attribute::Ints(multiplied("pads", 0, axes.checked_mul(2)?)?)));
    }
    if !node.ints("kernel_shape")?.is_empty() {
        attributes.push(NamedAttribute::new("kernel_shape", Attribute::Ints(multiplied("kernel_shape", 1, axes)?)));
    }
    Some(attributes)
}
