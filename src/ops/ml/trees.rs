//! TreeEnsembleClassifier and TreeEnsembleRegressor: sum the votes of decision trees, with nodes and leaves in one list.
//!
//! | operator | computes | not evaluated |
//! | --- | --- | --- |
//! | TreeEnsembleRegressor | for each target the sum (or mean, minimum, maximum) of its votes, plus its base value | as for TreeEnsemble; targets with a base value and no votes |
//! | TreeEnsembleClassifier | for each class the sum of its votes and its base value, and the label of the best | at most two classes, for which runtimes invent scores; nearly equal best scores; a best class without votes |
//!
//! A node is identified by its tree and its number there; the first node of a tree is the root. Versions: 1; 3 adds double tensors;
//! 5 deprecates both operators.

use rustc_hash::{FxHashMap, FxHashSet};

use super::ensemble::targets;
use super::forest::{Aggregate, Forest, Next, Node, Test, Vote};
use super::scores::{Transform, best};
use super::{DOMAIN, Observations, classes, counted, floats, labels, observations, singles};
use crate::dim::Dim;
use crate::ir::Fact;
use crate::ops::{Decline, EvalCx, EvalResult, InferCx, InferResult, Operator, Site};
use crate::tensor::DType;

pub(super) const TREE_ENSEMBLE_CLASSIFIER: Operator =
    Operator::new("TreeEnsembleClassifier", &[1, 3, 5], infer_classifier, eval_classifier).in_domain(DOMAIN);
pub(super) const TREE_ENSEMBLE_REGRESSOR: Operator =
    Operator::new("TreeEnsembleRegressor", &[1, 3, 5], infer_regressor, eval_regressor).in_domain(DOMAIN);

fn infer_classifier(cx: &mut InferCx<'_>) -> InferResult {
    let (label, count) = classes(cx, "classlabels_int64s")?;
    let rows = observations(cx);
    // A single class implies its opposite; runtimes write one score or two.
    let scores = if count >= 2 { counted(count) } else { cx.fresh_dim() };
    Ok(vec![
        Fact::tensor(Some(label), Some(vec![rows.clone()])),
        Fact::tensor(Some(DType::Float), Some(vec![rows, scores])),
    ])
}

fn infer_regressor(cx: &mut InferCx<'_>) -> InferResult {
    let targets = targets(cx)?.map_or_else(|| cx.fresh_dim(), Dim::constant);
    let rows = observations(cx);
    Ok(vec![Fact::tensor(Some(DType::Float), Some(vec![rows, targets]))])
}

/// Reads the forest whose votes have this attribute prefix: `class` or `target`.
fn forest(site: &EvalCx<'_>, prefix: &str) -> Result<Forest, Decline> {
    if site.tensor(0)?.dtype() == DType::Double && site.attribute("nodes_values").is_some() {
        return Err(Decline::unsupported(
            "'X' is of type double and 'nodes_values' of type float, which runtimes compare differently",
        ));
    }
    let broken = || Decline::invalid("the 'nodes_…' attributes do not describe valid trees");
    let ints = |name: &str| Ok::<_, Decline>(site.attr_ints(name)?.unwrap_or_default());
    let (trees, ids) = (ints("nodes_treeids")?, ints("nodes_nodeids")?);
    let (features, values) = (ints("nodes_featureids")?, floats(site, "nodes_values")?);
    let (pass, fail) = (ints("nodes_truenodeids")?, ints("nodes_falsenodeids")?);
    let missing = ints("nodes_missing_value_tracks_true")?;
    let modes = site.attr_strings("nodes_modes")?.unwrap_or_default();
    if trees.len() != ids.len() || modes.len() != ids.len() {
        return Err(broken());
    }
    let mut places: FxHashMap<(i64, i64), usize> = FxHashMap::default();
    for (at, (&tree, &id)) in trees.iter().zip(ids).enumerate() {
        if places.insert((tree, id), at).is_some() {
            return Err(Decline::invalid("'nodes_nodeids' contains an id twice for one tree"));
        }
    }
    let leaf = |at: usize| modes.get(at).is_some_and(|mode| mode.as_ref() == b"LEAF");
    let next = |at: usize| if leaf(at) { Next::Leaf(at) } else { Next::Node(at) };
    let mut forest = Forest { leaves: vec![Vec::new(); ids.len()], ..Forest::default() };
    let mut children = FxHashSet::default();
    for (at, mode) in modes.iter().enumerate() {
        let child = |ids: &[i64]| places.get(&(*trees.get(at)?, *ids.get(at)?)).copied();
        let value = values.get(at).copied().unwrap_or(0.0);
        // A leaf has no branches; its entry among the nodes is never visited.
        let (pass, fail) = if leaf(at) { (at, at) } else { child(pass).zip(child(fail)).ok_or_else(broken)? };
        if !leaf(at) {
            children.extend([pass, fail]);
        }
        forest.nodes.push(Node {
            feature: features.get(at).and_then(|&feature| usize::try_from(feature).ok()).ok_or_else(broken)?,
            test: match mode.as_ref() {
                b"BRANCH_LEQ" | b"LEAF" => Test::AtMost(value),
                b"BRANCH_LT" => Test::Less(value),
                b"BRANCH_GTE" => Test::AtLeast(value),
                b"BRANCH_GT" => Test::Greater(value),
                b"BRANCH_EQ" => Test::Equal(value),
                b"BRANCH_NEQ" => Test::NotEqual(value),
                _ => return Err(broken()),
            },
            missing_passes: missing.get(at).is_some_and(|&tracks| tracks != 0),
            pass: next(pass),
            fail: next(fail),
        });
    }
    let mut seen = FxHashSet::default();
    for (at, &tree) in trees.iter().enumerate() {
        if seen.insert(tree) {
            if children.contains(&at) {
                return Err(Decline::unsupported("the 'nodes_…' attributes list a child before the root of its tree"));
            }
            forest.roots.push(next(at));
        }
    }
    votes(site, prefix, &places, &mut forest.leaves)?;
    Ok(forest)
}

fn votes(
    site: &Site<'_>,
    prefix: &str,
    places: &FxHashMap<(i64, i64), usize>,
    leaves: &mut [Vec<Vote>],
) -> Result<(), Decline> {
    let ints = |name: &str| Ok::<_, Decline>(site.attr_ints(&format!("{prefix}_{name}"))?.unwrap_or_default());
    let (trees, nodes, ids) = (ints("treeids")?, ints("nodeids")?, ints("ids")?);
    let weights = floats(site, &format!("{prefix}_weights"))?;
    if trees.len() != ids.len() || nodes.len() != ids.len() || weights.len() != ids.len() {
        return Err(Decline::invalid("the 'class_…' or 'target_…' attributes have different lengths"));
    }
    for (((tree, node), &id), &weight) in trees.iter().zip(nodes).zip(ids).zip(weights.iter()) {
        let leaf = places.get(&(*tree, *node)).and_then(|&at| leaves.get_mut(at));
        let vote = usize::try_from(id).ok().map(|id| (id, weight));
        let (leaf, vote) = leaf.zip(vote).ok_or_else(|| {
            Decline::invalid(
                "the 'class_…' or 'target_…' attributes refer to a leaf that does not exist, or to a negative id",
            )
        })?;
        leaf.push(vote);
    }
    Ok(())
}

/// Returns the base values, one per score or none.
fn base(site: &Site<'_>, count: usize) -> Result<Vec<f64>, Decline> {
    let base = floats(site, "base_values")?;
    if base.is_empty() || base.len() == count {
        Ok(base.into_owned())
    } else {
        Err(Decline::invalid(format!(
            "attribute 'base_values' has {} elements, but there are {count} scores",
            base.len()
        )))
    }
}

fn eval_regressor(cx: &mut EvalCx<'_>) -> EvalResult {
    let count = targets(cx)?.and_then(|targets| usize::try_from(targets).ok());
    let count = count.ok_or_else(|| Decline::unsupported("attribute 'n_targets' is missing"))?;
    let aggregate = match cx.attr_str("aggregate_function")? {
        None | Some("SUM") => Aggregate::Sum,
        Some("AVERAGE") => Aggregate::Average,
        Some("MIN") => Aggregate::Min,
        Some("MAX") => Aggregate::Max,
        Some(other) => {
            return Err(Decline::invalid(format!("attribute 'aggregate_function' is '{other}', which is not defined")));
        }
    };
    let transform = Transform::of(cx)?;
    let data = Observations::of(cx)?;
    let base = base(cx, count)?;
    let scores = forest(cx, "target")?.scores(cx, &data, count, aggregate, &base)?;
    if base.iter().any(|base| *base != 0.0) && scores.iter().any(|(_, voted)| !voted) {
        return Err(Decline::unsupported(
            "no leaf adds a weight to one of the targets, and 'base_values' is not 0: runtimes return different scores",
        ));
    }
    let mut scores: Vec<f64> = scores.into_iter().map(|(score, _)| score).collect();
    scores.chunks_exact_mut(count).try_for_each(|scores| transform.apply(scores))?;
    Ok(vec![singles(&[data.rows, count], &scores)?.into()])
}

fn eval_classifier(cx: &mut EvalCx<'_>) -> EvalResult {
    let (_, count) = classes(cx, "classlabels_int64s")?;
    if count < 3 {
        return Err(Decline::unsupported(
            "there are fewer than three classes, for which runtimes return different scores",
        ));
    }
    let transform = Transform::of(cx)?;
    let data = Observations::of(cx)?;
    let scores = forest(cx, "class")?.scores(cx, &data, count, Aggregate::Sum, &base(cx, count)?)?;
    let mut chosen = Vec::new();
    for own in scores.chunks_exact(count) {
        let best = best(&own.iter().map(|(score, _)| *score).collect::<Vec<f64>>())?;
        if !own.get(best).is_some_and(|(_, voted)| *voted) {
            return Err(Decline::unsupported(
                "no leaf adds a weight to the best class, for which runtimes return different classes",
            ));
        }
        chosen.push(best);
    }
    let mut scores: Vec<f64> = scores.into_iter().map(|(score, _)| score).collect();
    scores.chunks_exact_mut(count).try_for_each(|scores| transform.apply(scores))?;
    Ok(vec![labels(cx, "classlabels_int64s", &chosen)?.into(), singles(&[data.rows, count], &scores)?.into()])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::Attribute;
    use crate::ops::single::Single;

    /// Returns a node with two trees, each of a root and two leaves.
    fn node(op: &str, prefix: &str, ids: [i64; 4], weights: &[f32]) -> Single {
        let modes = ["BRANCH_LEQ", "LEAF", "LEAF", "BRANCH_NEQ", "LEAF", "LEAF"].map(bytes::Bytes::from).to_vec();
        Single::new(op, 21)
            .in_domain_at(DOMAIN, 3)
            .with("nodes_treeids", vec![0, 0, 0, 1, 1, 1])
            .with("nodes_nodeids", vec![0, 1, 2, 0, 1, 2])
            .with("nodes_featureids", vec![0, 0, 0, 1, 0, 0])
            .with("nodes_modes", Attribute::Strings(modes))
            .with("nodes_values", Attribute::Floats(vec![1.0, 0.0, 0.0, 2.0, 0.0, 0.0]))
            .with("nodes_truenodeids", vec![1, 0, 0, 1, 0, 0])
            .with("nodes_falsenodeids", vec![2, 0, 0, 2, 0, 0])
            .with(&format!("{prefix}_treeids"), vec![0, 0, 1, 1])
            .with(&format!("{prefix}_nodeids"), vec![1, 2, 1, 2])
            .with(&format!("{prefix}_ids"), ids.to_vec())
            .with(&format!("{prefix}_weights"), Attribute::Floats(weights.to_vec()))
    }

    const ROWS: [f32; 6] = [1.0, 2.0, 3.0, -4.0, 0.0, 0.5];

    #[test]
    fn regression() {
        let regressor = |aggregate: &'static str| {
            node("TreeEnsembleRegressor", "target", [0, 1, 0, 1], &[1.0, 10.0, 100.0, 1000.0])
                .with("n_targets", 2)
                .with("base_values", Attribute::Floats(vec![0.5, 0.25]))
                .with_str("aggregate_function", aggregate)
        };
        let sums = regressor("SUM").values(&[2, 2], &ROWS[..4]).floats();
        assert_eq!(sums, [1.5, 1000.25, 100.5, 10.25]);
        assert_eq!(regressor("AVERAGE").values(&[1, 2], &[1f32, 2.0]).floats(), [1.0, 500.25]);
        assert_eq!(regressor("MAX").values(&[1, 2], &[1i64, 2]).floats(), [1.5, 1000.25]);
        // The third row has no vote for the second target.
        assert!(regressor("SUM").values(&[3, 2], &ROWS).eval().is_err());
        assert!(regressor("MAX").values(&[3, 2], &ROWS).eval().is_err());
        assert!(regressor("SUM").values(&[1, 1], &[0f32]).eval().is_err());
        assert_eq!(regressor("SUM").input(DType::Double, "N F").infer(), ["float[N, 2]"]);
    }

    #[test]
    fn classification() {
        let classifier = |labels: Vec<i64>| {
            node("TreeEnsembleClassifier", "class", [0, 1, 2, 1], &[1.0, 10.0, 100.0, 1000.0])
                .with("classlabels_int64s", labels)
                .output()
        };
        let found = classifier(vec![7, 8, 9]).values(&[3, 2], &ROWS).eval().unwrap();
        assert_eq!(found[0].to_i64s().unwrap(), [8, 9, 9]);
        assert_eq!(found[1].to_f64s().unwrap(), [1.0, 1000.0, 0.0, 0.0, 10.0, 100.0, 1.0, 0.0, 100.0]);
        assert!(classifier(vec![7, 8]).values(&[3, 2], &ROWS).eval().is_err());
        assert_eq!(classifier(vec![7, 8]).input(DType::Float, "N F").infer(), ["int64[N]", "float[N, 2]"]);
    }
}
