//! The common structure of nodes that repeat a subgraph: Loop, and Scan since version 9.

use rustc_hash::FxHashSet;

use crate::ir::{
    Attribute, Broken, Constant, DeclaredType, Definition, Fact, Facts, GraphId, Model, Node, NodeId, Type, ValueId,
};
use crate::ops::axis_in;
use crate::tensor::Tensor;

/// A Loop, or a Scan of version 9 or later.
pub(super) struct Repeated {
    pub(super) body: GraphId,
    /// The number of subgraph inputs before the carried ones: iteration number and condition of a Loop.
    pub(super) leading: usize,
    /// The initial values of the carried inputs.
    pub(super) initial: Vec<ValueId>,
    /// The operands of a Scan that are sliced, with the axis.
    pub(super) sliced: Vec<(ValueId, i64)>,
    /// The axes along which the first scan outputs are stacked; axis 0 for the others.
    pub(super) output_axes: Vec<i64>,
    /// For a Scan: the operands that are scanned from the end, and the outputs that are stacked from the end, for the first ones.
    pub(super) input_reversed: Vec<bool>,
    pub(super) output_reversed: Vec<bool>,
}

impl Repeated {
    pub(super) fn read(model: &Model, node: &Node) -> Option<Self> {
        let Attribute::Graph(body) = *node.attribute("body")? else { return None };
        let ints = |name: &str| node.ints(name).map(<[i64]>::to_vec);
        let given = |operands: &[Option<ValueId>]| operands.iter().copied().collect::<Option<Vec<ValueId>>>();
        let repeated = if node.is("Loop") {
            let end = node.inputs().iter().rposition(Option::is_some).map_or(0, |last| last + 1);
            let initial = given(node.inputs().get(2..end).unwrap_or_default())?;
            Repeated {
                body,
                leading: 2,
                initial,
                sliced: Vec::new(),
                output_axes: Vec::new(),
                input_reversed: Vec::new(),
                output_reversed: Vec::new(),
            }
        } else {
            let Attribute::Int(scans) = *node.attribute("num_scan_inputs")? else { return None };
            let states = node.inputs().len().checked_sub(usize::try_from(scans).ok()?)?;
            let (initial, sliced) = (given(node.inputs().get(..states)?)?, given(node.inputs().get(states..)?)?);
            let axes = ints("scan_input_axes")?.into_iter().chain(std::iter::repeat(0));
            let sliced = sliced.into_iter().zip(axes).collect();
            let flags = |name: &str| Some(ints(name)?.into_iter().map(|flag| flag != 0).collect());
            Repeated {
                body,
                leading: 0,
                initial,
                sliced,
                output_axes: ints("scan_output_axes")?,
                input_reversed: flags("scan_input_directions")?,
                output_reversed: flags("scan_output_directions")?,
            }
        };
        let graph = model.graph(body);
        let takes = repeated.leading + repeated.initial.len() + repeated.sliced.len();
        let gives = repeated.carried_outputs() + repeated.initial.len();
        (graph.inputs().len() == takes && graph.outputs().len() >= gives).then_some(repeated)
    }

    /// Returns the number of subgraph outputs before the carried ones: the condition of a Loop.
    pub(super) fn carried_outputs(&self) -> usize {
        self.leading.min(1)
    }
}

/// Returns `true` if the subgraph gets its initial values unchanged: a runtime wraps another value in an optional where the subgraph declares one.
pub(super) fn is_typed_alike(model: &Model, facts: &Facts, repeated: &Repeated) -> bool {
    let inputs = model.graph(repeated.body).inputs();
    inputs.iter().skip(repeated.leading).zip(&repeated.initial).all(|(&input, &initial)| {
        let wraps = matches!(model.value(input).declared, Some(DeclaredType::Optional { .. }));
        !wraps || matches!(facts.get(initial).and_then(|fact| fact.ty.as_ref()), Some(Type::Optional(_)))
    })
}

/// The part of a subgraph that some of its outputs depend on.
pub(super) struct Needed {
    pub(super) values: FxHashSet<ValueId>,
    /// The other nodes of the subgraph.
    pub(super) unneeded: Vec<NodeId>,
}

impl Needed {
    pub(super) fn of(model: &Model, body: GraphId, outputs: impl Iterator<Item = ValueId>) -> Self {
        let (mut values, mut nodes) = (FxHashSet::default(), FxHashSet::default());
        let mut open: Vec<ValueId> = outputs.collect();
        while let Some(value) = open.pop() {
            if !values.insert(value) {
                continue;
            }
            let Definition::Node(id, _) = model.value(value).definition() else { continue };
            let Some(node) = model.node(id).filter(|node| node.graph() == body && nodes.insert(id)) else { continue };
            open.extend(node.inputs().iter().flatten());
            open.extend(node.subgraphs().flat_map(|graph| model.captures(graph)));
        }
        let unneeded = model.graph(body).nodes().filter(|id| !nodes.contains(id)).collect();
        Needed { values, unneeded }
    }

    /// Returns the part that some values, and the results with readers, depend on in the last iteration or an earlier one. If one of `states` is
    /// needed, its value from the iteration before is, too. `results` are the subgraph's, those for `states` first, with `true` if read.
    pub(super) fn in_any(
        model: &Model,
        body: GraphId,
        states: &[ValueId],
        values: impl Iterator<Item = ValueId>,
        results: &[(ValueId, bool)],
    ) -> Self {
        let read = results.iter().filter(|(_, read)| *read).map(|&(output, _)| output);
        let mut wanted: Vec<ValueId> = values.chain(read).collect();
        loop {
            let needed = Needed::of(model, body, wanted.iter().copied());
            let carried = states.iter().zip(results);
            let more =
                carried.filter(|(input, (output, _))| needed.values.contains(input) && !needed.values.contains(output));
            let before = wanted.len();
            wanted.extend(more.map(|(_, &(output, _))| output));
            if wanted.len() == before {
                return needed;
            }
        }
    }
}

/// Adds an initializer named after a value.
pub(super) fn constant(model: &mut Model, graph: GraphId, like: ValueId, tensor: Tensor) -> Result<ValueId, Broken> {
    let value = model.new_value(&model.value(like).name.clone());
    model.add_initializer(graph, value, Constant::dense(tensor))?;
    Ok(value)
}

/// Returns an axis of a value, or of one with `more` additional axes, counted from the front if its rank is known.
pub(super) fn from_front(facts: &Facts, value: ValueId, axis: i64, more: usize) -> i64 {
    let rank = facts.get(value).and_then(Fact::rank).and_then(|rank| rank.checked_add(more));
    let place = rank.and_then(|rank| axis_in(axis, rank).ok());
    place.and_then(|place| i64::try_from(place).ok()).unwrap_or(axis)
}

/// Removes nodes with their subgraphs.
pub(super) fn remove_all(model: &mut Model, mut nodes: Vec<NodeId>) {
    while let Some(id) = nodes.pop() {
        let Some(node) = model.node(id) else { continue };
        nodes.extend(node.subgraphs().flat_map(|graph| model.graph(graph).nodes()));
        model.remove_node(id);
    }
}
