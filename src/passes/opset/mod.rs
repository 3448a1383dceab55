//! Converts the model to another operator set of the default domain, if the user requests one (`--opset`).
//!
//! `table` has a step for each version of each operator, with its law. A node takes all steps from its version to the target's. Most steps keep the
//! node unchanged; the functions in `steps` rewrite it for others. Subgraphs and functions are converted, too; other domains keep their versions. If
//! a node cannot be converted, nothing is, and the error names the node, the reason, and the remedy.
//!
//! Towards an older operator set, the same steps are taken back (`older`). Operators that the older set lacks are expanded into those of the set
//! before theirs. So the model is converted level by level: each level is the set before the newest operator to expand. The types of new nodes are
//! inferred between levels.
//!
//! The conversion precedes the passes, on the model of the file. So the passes only see one operator set, and write the operators of the new one.

mod back;
mod draft;
mod expand;
mod older;
mod step;
mod steps;
mod table;
#[cfg(test)]
mod tests;

use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::assume::assume;
use super::constant_nodes::spell_initializers;
use super::dead::graphs_below;
use super::inline::call_graph::Calls;
use super::options::Options;
use super::outcome::{OpsetError, RunError};
use crate::dim::{Dim, Scope};
use crate::ir::{
    Content, Edit, Fact, Facts, FunctionId, GraphId, Model, NamedAttribute, NewNode, Node, NodeId, OpsetImport, Type,
    ValueId,
};
use crate::ops::{Budget, Opset, Walk, axis_in, is_loaded, newest_opset, operator, surplus};
use draft::NodeDraft;
use older::{Refusal, first_version};
use step::{Newer, VersionStep};

/// Converts the model to this operator set. Returns its previous version if that differs.
///
/// # Errors
/// The operator set does not exist, or a node cannot be written in it.
pub(super) fn convert(model: &mut Model, to: i64, options: &Options) -> Result<Option<i64>, RunError> {
    let newest = newest_opset("").unwrap_or(0);
    if !(1..=newest).contains(&to) {
        return Err(OpsetError::NoSuch { asked: to, newest }.into());
    }
    let mut roots = vec![(None, model.main())];
    roots.extend(model.functions().map(|(id, function)| (Some(id), function.body)));
    let versions: Vec<Option<i64>> = roots.iter().map(|&(_, root)| model.opset(root, "")).collect();
    let before = versions.first().copied().flatten();
    let (roots, versions): (Vec<_>, Vec<_>) = roots
        .into_iter()
        .zip(versions)
        .filter(|&((_, root), version)| version != Some(to) && (version.is_some() || uses_default_domain(model, root)))
        .unzip();
    if roots.is_empty() {
        return Ok(None);
    }
    let versions = can_be_converted(model, to, newest, &versions)?;
    let mut roots: Vec<Root> = roots
        .into_iter()
        .zip(versions)
        .map(|((function, graph), from)| Root { function, graph, declared: from, from })
        .collect();
    while !roots.is_empty() {
        let level = next_level(model, to, &roots);
        let facts = facts(model, options)?;
        let mut refused = Vec::new();
        for root in &roots {
            convert_root(model, &facts, root, root.target(to, level), &mut refused)?;
        }
        let more = refused.len().saturating_sub(1);
        // The node that needs the newest operator set determines the lowest reachable one.
        let decisive = refused.into_iter().rev().max_by_key(|(.., refusal): &(String, i64, Refusal)| refusal.lowest);
        if let Some((node, from, Refusal { reason, .. })) = decisive {
            return Err(OpsetError::Node { node, from, to, reason, more }.into());
        }
        for root in &mut roots {
            root.from = root.target(to, level);
            import(model, root, root.from);
            if root.function.is_some() {
                spell_initializers(model, root.graph, &FxHashSet::default())?;
            }
        }
        roots.retain(|root| root.from != to);
    }
    // Before file format version 4, every initializer is an input.
    model.ir_version = model.ir_version.max(ir_version_of(to)).max(4);
    model.is_newer = before.is_some_and(|before| to > before);
    Ok(before)
}

/// A graph with separate operator set imports: the main graph, or a function's body.
struct Root {
    function: Option<FunctionId>,
    graph: GraphId,
    /// The version that the file declares.
    declared: i64,
    /// The version of the graph so far.
    from: i64,
}

impl Root {
    /// Returns the version after this level: `level` if the graph is newer, `to` if it is older.
    fn target(&self, to: i64, level: i64) -> i64 {
        if self.from <= to { to } else { level.min(self.from) }
    }
}

/// Returns the operator set before the newest operator that operator set `to` lacks; `to` if it lacks none.
fn next_level(model: &Model, to: i64, roots: &[Root]) -> i64 {
    let firsts = roots.iter().filter(|root| root.from > to).flat_map(|root| {
        let nodes = graphs_below(model, root.graph).into_iter().flat_map(|graph| model.graph(graph).nodes());
        let nodes: Vec<NodeId> = nodes.filter(|&id| is_standard(model, id)).collect();
        let first = |id: NodeId| model.node(id).and_then(|node| first_version(&node.op_type));
        nodes.into_iter().filter_map(first).filter(|&first| first <= root.from)
    });
    firsts.max().map_or(to, |first| to.max(first.saturating_sub(1)))
}

/// Returns `true` if a node has an operator of the default domain.
fn is_standard(model: &Model, id: NodeId) -> bool {
    model.node(id).is_some_and(|node| {
        node.canonical_domain().is_empty() && model.meaning(node).0.is_empty() && model.function_of(node).is_none()
    })
}

fn uses_default_domain(model: &Model, root: GraphId) -> bool {
    let graphs = graphs_below(model, root);
    let mut nodes = graphs.iter().flat_map(|&graph| model.graph(graph).nodes()).filter_map(|id| model.node(id));
    nodes.any(|node| node.canonical_domain().is_empty() && model.function_of(node).is_none())
}

/// Checks that no property of the whole model prevents its conversion, and returns the versions of its roots.
fn can_be_converted(model: &Model, to: i64, newest: i64, versions: &[Option<i64>]) -> Result<Vec<i64>, OpsetError> {
    let refuse = |reason: String| Err(OpsetError::Model { to, reason });
    if model.keeps_functions {
        return refuse(
            "it has graphs of training information (training_info), which this conversion does not support; remove them".into(),
        );
    }
    let mut known = Vec::new();
    for &version in versions {
        match version {
            None => return refuse("it imports no operator set of the default domain, or two; name one".into()),
            Some(from) if from > newest => {
                return refuse(format!(
                    "it is written in operator set {from}, and this program knows those up to {newest}"
                ));
            }
            Some(from) if from < 1 => return refuse(format!("there is no operator set {from}; correct the model")),
            Some(from) => known.push(from),
        }
    }
    let mut taken = model.functions().filter(|(_, function)| {
        let known = operator(&function.domain, &function.name).filter(|known| known.domain.is_empty());
        known.is_some_and(|known| known.since(to).is_some())
    });
    match taken.next() {
        Some((_, function)) => refuse(format!(
            "its function '{}' would have the name of an operator, and runtimes differ in which counts; rename it",
            function.name
        )),
        None => Ok(known),
    }
}

/// Infers facts under the user's assumptions. The passes apply the same assumptions to the model itself later.
fn facts(model: &Model, options: &Options) -> Result<Facts, RunError> {
    let scope = Scope::new();
    let mut assumed = None;
    if !options.assumptions.is_empty() {
        assume(assumed.insert(model.clone()), &scope, &options.assumptions, options.trust_input_names)?;
    }
    let model = assumed.as_ref().unwrap_or(model);
    let mut walk = Walk::new(Rc::new(scope), options.slice_rule, Budget::default());
    walk.trust_declared = options.trust_declared_shapes;
    walk.infer_main(model)?;
    learn_inside_functions(model, &mut walk);
    Ok(walk.facts)
}

/// Records the facts about values in functions that hold at every call: types, constants, and shapes if there is one call.
fn learn_inside_functions(model: &Model, walk: &mut Walk) {
    let calls = Calls::of(model);
    // Callers come before callees.
    for id in calls.order.iter().rev() {
        let (Some(function), Some(sites)) = (model.function(*id), calls.sites.get(id)) else { continue };
        let sites: Vec<(NodeId, &Node)> = sites.iter().filter_map(|&site| Some((site, model.node(site)?))).collect();
        // The value of such an attribute depends on the call of the caller.
        if sites.iter().any(|(_, node)| node.attributes.iter().any(refers)) {
            continue;
        }
        let graphs = graphs_below(model, function.body);
        let inputs = graphs.iter().flat_map(|&graph| model.graph(graph).inputs()).copied();
        let nodes = graphs.iter().flat_map(|&graph| model.graph(graph).nodes()).filter_map(|id| model.node(id));
        let values: Vec<ValueId> =
            inputs.chain(nodes.flat_map(|node| node.outputs().iter().flatten().copied())).collect();
        let mut found: Option<Vec<Option<Fact>>> = None;
        for (site, node) in sites {
            let operands = node.inputs().iter().map(|operand| operand.and_then(|value| walk.facts.get(value).cloned()));
            let Some(inside) = walk.inside_call(model, site, operands.collect()) else { return };
            let facts = values.iter().map(|&value| {
                let Fact { ty, content } = inside.get(value)?.clone();
                Some(Fact { ty, content: content.filter(|content| matches!(content, Content::Constant(_))) })
            });
            found = Some(match found {
                None => facts.collect(),
                Some(found) => {
                    found.into_iter().zip(facts).map(|(a, b)| common(walk.scope(), a?, b?)).collect::<Vec<_>>()
                }
            });
        }
        for (&value, fact) in values.iter().zip(found.into_iter().flatten()) {
            if let Some(fact) = fact {
                walk.facts.set(value, fact);
            }
        }
    }
}

/// Returns the common part of two facts, without sizes that are not numbers.
fn common(scope: &Rc<Scope>, a: Fact, b: Fact) -> Option<Fact> {
    if let (Some(held), Some(other)) = (a.data(), b.data())
        && held.same(other)
    {
        return Some(a);
    }
    let (a, b) = match (a.ty?, b.ty?) {
        (Type::Tensor(a), Type::Tensor(b)) => (a, b),
        (a, b) => return (a == b).then_some(Fact::of(a)),
    };
    let both = a.shape.as_ref().zip(b.shape.as_ref()).filter(|(a, b)| a.len() == b.len());
    let dim = |(a, b): (&Dim, &Dim)| match a.as_const() {
        Some(size) if b.is_const(size) => a.clone(),
        _ => scope.fresh_dim("size"),
    };
    let shape = both.map(|(a, b)| a.iter().zip(b).map(dim).collect());
    Some(Fact::tensor(a.dtype.filter(|_| a.dtype == b.dtype), shape))
}

/// Converts the nodes of a root graph and its subgraphs.
fn convert_root(
    model: &mut Model,
    facts: &Facts,
    root: &Root,
    to: i64,
    refused: &mut Vec<(String, i64, Refusal)>,
) -> Result<(), RunError> {
    let from = root.from;
    if from == to {
        return Ok(());
    }
    let nodes: Vec<NodeId> =
        graphs_below(model, root.graph).iter().flat_map(|&graph| model.graph(graph).nodes()).collect();
    for id in nodes {
        if (from < 13) != (to < 13) {
            softmax_of_one_axis(model, facts, id, to)?;
        }
        if !is_standard(model, id) {
            continue;
        }
        let described = model.describe(id);
        if let Err(refusal) = convert_node(model, facts, root, id, to)? {
            refused.push((described, root.declared, refusal));
        }
    }
    Ok(())
}

/// Updates the `opset` attribute of a QLinearSoftmax. It selects the definition of Softmax, but ONNX Runtime transposes by the model's operator set.
/// On the last axis both agree.
fn softmax_of_one_axis(model: &mut Model, facts: &Facts, id: NodeId, to: i64) -> Result<(), RunError> {
    let Some(node) = model.node(id).filter(|node| node.op_type == "QLinearSoftmax") else { return Ok(()) };
    let is_last = |axis: i64, rank: usize| axis_in(axis, rank).is_ok_and(|axis| Some(axis) == rank.checked_sub(1));
    let rank = node.input(0).and_then(|value| facts.get(value)?.shape()).map(<[_]>::len);
    let works_on_last = node.int("axis", -1).zip(rank).is_some_and(|(axis, rank)| is_last(axis, rank));
    let is_other = node.canonical_domain() == "com.microsoft"
        && node.int("opset", 13).is_some_and(|opset| (opset < 13) != (to < 13));
    let (true, true, Some(output)) = (works_on_last, is_other, node.output(0)) else { return Ok(()) };
    let other = NewNode::like(node).set("opset", to.min(13)).output(output);
    if let Some(edit) = Edit::at(model, id) {
        model.apply(edit.removing(id).inserting(other))?;
    }
    Ok(())
}

/// Converts one node. The inner error is the reason why this is impossible.
fn convert_node(
    model: &mut Model,
    facts: &Facts,
    root: &Root,
    id: NodeId,
    to: i64,
) -> Result<Result<(), Refusal>, RunError> {
    let from = root.from;
    let refuse = |reason| Ok(Err(Refusal { reason, lowest: from }));
    if let Some(surplus) = model.node(id).and_then(|node| surplus(model, node)) {
        return refuse(format!("{surplus}; correct the node or the operator set of the model"));
    }
    let Some(mut draft) = NodeDraft::of(model, facts, root.function, id, Opset::new(to)) else { return Ok(Ok(())) };
    let taken = if from < to {
        newer(&mut draft, from, to).map_err(|reason| Refusal { reason, lowest: from })
    } else {
        older::older(&mut draft, from, to)
    };
    let changed = match taken {
        Ok(changed) => changed,
        Err(refusal) => return Ok(Err(refusal)),
    };
    if let Err(refusal) = is_still_loaded(&draft, (root.declared, to)) {
        return Ok(Err(refusal));
    }
    if changed {
        let NodeDraft { model, node, mut edit, after, .. } = draft;
        edit.insert.extend(Some(node).filter(|node| node.outputs.iter().any(Option::is_some)));
        edit.insert.extend(after);
        model.apply(edit.removing(id))?;
    }
    Ok(Ok(()))
}

/// Checks that ONNX Runtime loads the converted node if it loads the original.
fn is_still_loaded(draft: &NodeDraft<'_>, (from, to): (i64, i64)) -> Result<(), Refusal> {
    let (name, dtype) = (draft.node.op_type.as_str(), draft.dtype(0));
    if !is_loaded(name, dtype, from) || is_loaded(name, dtype, to) {
        return Ok(());
    }
    let of_type = dtype.map_or_else(String::new, |dtype| format!(" of {}", dtype.name()));
    let between = if from < to { from + 1..to } else { to + 1..from + 1 };
    let nearest = if from < to {
        between.rev().find(|&opset| is_loaded(name, dtype, opset))
    } else {
        between.into_iter().find(|&opset| is_loaded(name, dtype, opset))
    };
    let advice = nearest.map_or_else(String::new, |opset| format!("; choose operator set {opset}"));
    let reason = format!("ONNX Runtime has no kernel for {name}{of_type} in operator set {to}{advice}");
    Err(Refusal { reason, lowest: nearest.unwrap_or(from) })
}

/// Applies the steps between two versions to a node. Returns `true` if the node changed.
fn newer(draft: &mut NodeDraft<'_>, from: i64, to: i64) -> Result<bool, String> {
    let mut version = version_of(&draft.node.op_type, from)?;
    if version > from && draft.dtype(0) != draft.dtype(1) {
        return Err(format!("{} of operands of two types is ONNX Runtime's own before {version}", draft.node.op_type));
    }
    let mut changed = false;
    while let Some(step) = step_after(&draft.node.op_type, version).filter(|step| step.to <= to) {
        let old_name = format!("{}-{version}", draft.node.op_type);
        match step.newer {
            Newer::Same => {}
            Newer::ForgetsConsumed => changed |= draft.take("consumed_inputs").is_some(),
            Newer::By(rewrite) => {
                draft.take("consumed_inputs");
                rewrite(draft).map_err(|reason| format!("{old_name} in version {}: {reason}", step.to))?;
                changed = true;
            }
        }
        version = step.to;
    }
    Ok(changed)
}

/// Returns the version of an operator in an operator set.
fn version_of(name: &str, opset: i64) -> Result<i64, String> {
    let known = operator("", name)
        .ok_or("the standard has no such operator, so its versions are unknown; move it to a custom domain")?;
    known.read_as(opset).ok_or_else(|| {
        let first = known.versions.first().copied().unwrap_or(0);
        format!(
            "operator set {opset} has no such operator, which exists since {first}; correct the operator set of the model"
        )
    })
}

/// Returns the step from this version of an operator to the next.
fn step_after(name: &str, version: i64) -> Option<&'static VersionStep> {
    steps_of(name).iter().find(|step| step.to > version)
}

fn steps_of(name: &str) -> &'static [VersionStep] {
    static STEPS: std::sync::OnceLock<FxHashMap<&'static str, &'static [VersionStep]>> = std::sync::OnceLock::new();
    STEPS.get_or_init(|| table::STEPS.iter().copied().collect()).get(name).copied().unwrap_or(&[])
}

/// Sets the operator set import of the root graph.
fn import(model: &mut Model, root: &Root, to: i64) {
    let imports = match root.function {
        None => Some(&mut model.opsets),
        Some(id) => model.function_mut(id).map(|function| &mut function.opsets),
    };
    let Some(imports) = imports else { return };
    let mut found = false;
    for import in imports.iter_mut().filter(|import| import.domain.is_empty() || import.domain == "ai.onnx") {
        import.version = to;
        found = true;
    }
    if !found {
        imports.push(OpsetImport { domain: String::new(), version: to, extra: crate::ir::Extra::new() });
    }
}

/// Returns the version of the file format in the release that introduced an operator set.
fn ir_version_of(opset: i64) -> i64 {
    const FIRST: &[(i64, i64)] =
        &[(28, 14), (25, 13), (24, 12), (23, 11), (21, 10), (19, 9), (15, 8), (12, 7), (11, 6), (10, 5), (9, 4)];
    FIRST.iter().find(|(first, _)| *first <= opset).map_or(3, |&(_, version)| version)
}

/// Returns `true` if an attribute refers to one of the calling node.
fn refers(held: &NamedAttribute) -> bool {
    matches!(held.value, crate::ir::Attribute::Reference { .. })
}
