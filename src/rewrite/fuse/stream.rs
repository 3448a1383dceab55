//! Flattens nodes that process each row of an image separately, between products that read and compute rows.
//!
//! Law: with `rows(x)` the matrix of the last-axis vectors of `x`, `rows(f(x, y)) = f(rows(x), rows(y))` for an `f` that computes each
//! vector of a result from the vectors of the operands at the same index. Sums, element-wise functions, normalizations of the last axis,
//! and products with a matrix of weights have this property.
//!
//! If all sizes are static, runtimes compute products with biases on rows ([`rows`](super::rows)). This rule flattens the residual sums and
//! normalizations between them as well, so that only nodes that use the other axes need a Reshape. The rule applies to values of rank 4 or
//! more: optimizers fuse a sum with its normalization only for rank 3, so those are kept.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::dim::Dim;
use crate::ir::{Edit, NewNode, Node, NodeId, ValueId};
use crate::ops::traits::{LAYOUTS, Movement, Operands, traits_of};
use crate::rewrite::build::Build;
use crate::rewrite::miss::{Miss, ensure};
use crate::rewrite::place::Place;
use crate::rewrite::rule::{Rule, miss};
use crate::sort;

pub(in crate::rewrite) const RULES: &[Rule] = &[Rule {
    name: "stream-in-rows",
    law: "rows(f(x, y)) = f(rows(x), rows(y)) for an f that computes each vector along the last axis separately; rows(x) is x flattened to a matrix",
    sentence: "Keeps values between matrix products, sums and normalizations flattened to matrices.",
    premises: &[
        (
            "from-rows",
            "the node reshapes a float matrix to rank 4 or more, and each row of the matrix becomes a vector along the last axis",
        ),
        ("all-numbers", "all dims are positive constants"),
        (
            "row-by-row",
            "each node in f is one of three: (1) an element-wise operator with constants of rank 1 at most; (2) a normalization along the last axis with constants of rank 1 at most; (3) a product with a constant matrix",
        ),
        ("pays", "the rewrite removes more nodes than it adds"),
    ],
    exact: false,
    operators: LAYOUTS,
    apply: in_rows,
}];

/// The most nodes that are flattened at once. Each is compared with the others, so without it one edit over a model of N nodes takes N².
const MOST_NODES: usize = 2048;

/// The least rank of a value.
const FEWEST_AXES: usize = 4;

fn in_rows(place: &Place<'_>) -> Result<Edit, Miss> {
    let (rows, first) = (place.operand(0)?, place.result()?);
    let dims = place.dims(first)?;
    let is_float = place.dtype(first).is_some_and(|dtype| dtype.is_float());
    ensure(dims.len() >= FEWEST_AXES, miss!("from-rows"))?;
    ensure(is_float, miss!("row-by-row"))?;
    ensure(dims.iter().all(|dim| dim.as_const().is_some()), miss!("all-numbers").of(first))?;
    ensure(are_rows(place, rows, dims), miss!("from-rows"))?;
    ensure(place.runs_in_rows(dims), miss!("all-numbers"))?;
    let stream = Stream::around(place, first, dims).ok_or(miss!("pays"))?;
    stream.edit()
}

/// Returns `true` if a value is the matrix of rows of a value with these dims.
fn are_rows(place: &Place<'_>, value: ValueId, dims: &[Dim]) -> bool {
    let (Some([count, size]), Some((last, lead))) = (place.shape(value), dims.split_last()) else { return false };
    let scope = place.scope();
    scope.eq(size, last).is_yes() && scope.eq(count, &scope.product(lead)).is_yes()
}

/// The nodes that are flattened, and their shared properties.
struct Stream<'p, 'a> {
    place: &'p Place<'a>,
    /// The leading dims of all values, without the last.
    lead: &'a [Dim],
    /// In topological order.
    nodes: Vec<NodeId>,
    /// The same nodes as a set.
    members: FxHashSet<NodeId>,
    /// The values that exist as rows already.
    given: Vec<ValueId>,
}

impl<'p, 'a> Stream<'p, 'a> {
    /// Returns the connected nodes around a value that compute row by row.
    fn around(place: &'p Place<'a>, first: ValueId, dims: &'a [Dim]) -> Option<Self> {
        let (_, lead) = dims.split_last()?;
        let mut stream = Stream { place, lead, nodes: Vec::new(), members: FxHashSet::default(), given: Vec::new() };
        let (mut open, mut values, mut seen) = (vec![first], vec![first], FxHashSet::from_iter([first]));
        while let Some(value) = open.pop() {
            let producer = place.model.value(value).producer();
            let readers = place.model.users(value).into_iter().map(|(id, _)| id);
            for id in readers.chain(producer) {
                if stream.members.contains(&id) {
                    continue;
                }
                let Some(rows) = stream.row_by_row(id) else { continue };
                stream.members.insert(id);
                stream.nodes.push(id);
                if stream.nodes.len() > MOST_NODES {
                    return None;
                }
                let new = rows.into_iter().filter(|&value| seen.insert(value));
                let before = values.len();
                values.extend(new);
                open.extend(values.get(before..).unwrap_or_default());
            }
        }
        sort::by_key(&mut stream.nodes, |&id| place.model.order_of(id));
        let is_computed =
            |&value: &ValueId| place.model.value(value).producer().is_some_and(|id| stream.members.contains(&id));
        stream.given = values.into_iter().filter(|value| !is_computed(value)).collect();
        (!stream.nodes.is_empty()).then_some(stream)
    }

    /// Returns `true` if the leading dims of a value are those of the stream.
    fn has_rows(&self, value: ValueId) -> bool {
        let Some((last, lead)) = self.place.shape(value).and_then(<[Dim]>::split_last) else { return false };
        let same = self.place.same_dims(lead, self.lead);
        same && last.as_const().is_some_and(|size| size > 0)
    }

    /// Returns the result and the operands that have rows, of a node that computes each row separately.
    fn row_by_row(&self, id: NodeId) -> Option<Vec<ValueId>> {
        let place = self.place;
        let node = place.model.node(id).filter(|node| Some(node.graph()) == place.graph())?;
        let &[Some(result)] = node.outputs() else { return None };
        let traits = traits_of(place.model, node);
        let last = self.lead.len();
        let own = |value: ValueId| place.tensor(value).is_none();
        let operands: Vec<ValueId> = node.inputs().iter().flatten().copied().collect();
        let (own, constant): (Vec<ValueId>, Vec<ValueId>) = operands.into_iter().partition(|&value| own(value));
        let data = node.input(0)?;
        let small = constant.iter().all(|&value| place.tensor(value).is_some_and(|tensor| tensor.rank() <= 1));
        let along_last = || {
            let view = place.view(id)?;
            let mixed = traits.mixes.and_then(|mixes| mixes(&view))?;
            Some(mixed == [last] && place.read(node).axis(last.checked_add(1)?) == Some(last))
        };
        let fits = match traits.pointwise {
            Some(pointwise) => pointwise.operands == Operands::First || place.opset.everything_broadcasts() && small,
            None if node.is("MatMul") => {
                constant.len() == 1
                    && node.input(0) == own.first().copied()
                    && place.tensor(node.input(1)?)?.rank() == 2
            }
            None => own == [data] && small && along_last() == Some(true),
        };
        let is_plain = node.canonical_domain().is_empty() && node.subgraphs().next().is_none();
        let rows = own.into_iter().chain([result]);
        let rows: Vec<ValueId> = rows.filter(|_| fits && is_plain).collect();
        (rows.len() > 1 && rows.iter().all(|&value| self.has_rows(value))).then_some(rows)
    }

    /// Returns the layouts that read a value outside of the stream, and `true` if it has other consumers or is a graph output.
    fn readers(&self, value: ValueId) -> (Vec<NodeId>, bool) {
        let (mut layouts, mut others) = (Vec::new(), self.place.model.is_named(value));
        for (id, slot) in self.place.model.users(value) {
            if self.members.contains(&id) {
                continue;
            }
            match self.place.model.node(id).filter(|_| slot == 0) {
                Some(node) if self.lays_out_numbers(node) => layouts.push(id),
                _ => others = true,
            }
        }
        (layouts, others)
    }

    /// Returns `true` if a node reshapes its operand to a static shape without zeros.
    fn lays_out_numbers(&self, node: &Node) -> bool {
        let is_layout = traits_of(self.place.model, node).moves == Some(Movement::Layout);
        let dims = node.output(0).and_then(|result| self.place.shape(result));
        let is_number = |dim: &Dim| dim.as_const().is_some_and(|size| size > 0);
        let here = Some(node.graph()) == self.place.graph();
        is_layout && here && dims.is_some_and(|dims| dims.iter().all(is_number))
    }

    fn edit(&self) -> Result<Edit, Miss> {
        let place = self.place;
        let mut edit = place.begin()?;
        let mut known: FxHashMap<ValueId, ValueId> = FxHashMap::default();
        for &value in &self.given {
            let rows = self.given_rows(&mut edit, value).ok_or(miss!("row-by-row"))?;
            known.insert(value, rows);
        }
        for &id in &self.nodes {
            let node = place.model.node(id).ok_or(Miss::ROOT)?;
            let value = node.output(0).ok_or(Miss::ROOT)?;
            let (layouts, others) = self.readers(value);
            let dims = place.dims(value)?;
            let is_matrix = |&&id: &&NodeId| {
                let laid_out = place.model.node(id).and_then(|node| node.output(0));
                laid_out.is_some_and(|laid_out| are_rows(place, laid_out, dims))
            };
            // If a consumer already flattens the value, its result is reused.
            let flattened = layouts.iter().find(is_matrix).copied();
            let rows = match flattened.and_then(|id| place.model.node(id)?.output(0)) {
                Some(rows) => rows,
                None => edit.new_value(value, "rows"),
            };
            let own = |value: ValueId| known.get(&value).copied().unwrap_or(value);
            let inputs = node.inputs().iter().map(|input| input.map(own)).collect();
            let mut new = NewNode { inputs, ..NewNode::like(node) };
            if traits_of(place.model, node).mixes.is_some() {
                new = new.set("axis", 1i64);
            }
            edit.insert.push(new.output(rows));
            edit.remove.push(id);
            known.insert(value, rows);
            edit.remove.extend(flattened);
            for reader in layouts.into_iter().filter(|reader| Some(*reader) != flattened) {
                let layout = place.model.node(reader).ok_or(Miss::ROOT)?;
                let reshape = self
                    .laid_out(&mut edit, rows, layout.output(0).ok_or(Miss::ROOT)?, layout)
                    .ok_or(miss!("row-by-row"))?;
                edit.remove.push(reader);
                edit.insert.push(reshape);
            }
            if others {
                let reshape = self.laid_out(&mut edit, rows, value, node).ok_or(miss!("row-by-row"))?;
                edit.insert.push(reshape);
            }
        }
        ensure(edit.remove.len() > edit.insert.len(), miss!("pays"))?;
        Ok(edit)
    }

    /// Builds the Reshape from rows to the shape of a value that `of` computed. It takes the metadata of `of` only.
    fn laid_out(&self, edit: &mut Edit, rows: ValueId, value: ValueId, of: &Node) -> Option<NewNode> {
        let sizes = self.place.shape(value)?.iter().map(Dim::as_const).collect::<Option<Vec<_>>>()?;
        let mut node = self.place.build(edit, value).reshape(rows, sizes);
        node.extra = of.extra.clone();
        Some(node.output(value))
    }

    /// Returns the rows of a value from outside: the data of its layout, or the result of a layout that reads it.
    fn given_rows(&self, edit: &mut Edit, value: ValueId) -> Option<ValueId> {
        let place = self.place;
        let dims = place.shape(value)?;
        let (layouts, others) = self.readers(value);
        if let Some((id, layout)) = place.layout(value) {
            let source = layout.input(0)?;
            if layouts.is_empty() && !others {
                edit.remove.push(id);
            }
            if are_rows(place, source, dims) {
                return Some(source);
            }
            let rows = edit.new_value(value, "rows");
            let sizes = place.shape(value)?.split_last()?;
            let count = place.scope().product(sizes.1).as_const()?;
            let reshape = place.build(edit, rows).reshape(source, vec![count, sizes.0.as_const()?]);
            edit.insert.push(reshape.output(rows));
            return Some(rows);
        }
        let laid_out = layouts.iter().filter_map(|&id| place.model.node(id)?.output(0));
        if let Some(rows) = laid_out.into_iter().find(|&rows| are_rows(place, rows, dims)) {
            return Some(rows);
        }
        let rows = edit.new_value(value, "rows");
        edit.insert.push(Build::flatten(value, self.lead.len()).output(rows));
        Some(rows)
    }
}
