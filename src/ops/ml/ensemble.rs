//! TreeEnsemble: sums the votes of decision trees.
//!
//! | | |
//! |---|---|
//! | computes | for each observation and target the sum (or mean, minimum, maximum) of the weights of the reached leaves |
//! | trees | nodes and leaves in separate lists; `nodes_truenodeids` and `…falsenodeids` are indices of nodes or, with `nodes_trueleafs` and `…falseleafs`, of leaves |
//! | `membership_values` | the concatenated sets of the nodes that test membership, each terminated by a NaN |
//! | shapes | `[N, F]` to `[N, n_targets]` |
//! | versions | 5 |
//! | not evaluated | the minimum or maximum for targets without votes; transforms that the standard does not define, or of one score |

use super::forest::{Aggregate, Forest, Next, Node, Test};
use super::scores::Transform;
use super::{DOMAIN, Observations, observations};
use crate::dim::Dim;
use crate::ir::Fact;
use crate::ops::lane::{Lane, Ring, in_lane};
use crate::ops::{Decline, EvalCx, EvalResult, InferCx, InferResult, Operator, Refusal, Site};
use crate::tensor::{DType, Tensor};

pub(super) const TREE_ENSEMBLE: Operator = Operator::new("TreeEnsemble", &[5], infer, eval).in_domain(DOMAIN);

/// Returns `n_targets`, if given.
pub(super) fn targets(site: &Site<'_>) -> Result<Option<i64>, Refusal> {
    match site.attr_int("n_targets")? {
        Some(targets) if targets <= 0 => {
            Err(Refusal::invalid(format!("attribute 'n_targets' (or 'targets') is {targets}")))
        }
        targets => Ok(targets),
    }
}

/// Checks that node lists have equal lengths, leaf lists too, and that tensors have the input's type.
fn check_attributes(cx: &InferCx<'_>, dtype: Option<DType>) -> Result<(), Refusal> {
    let splits = cx.attr_tensor("nodes_splits")?;
    let of_nodes =
        ["nodes_featureids", "nodes_truenodeids", "nodes_falsenodeids", "nodes_trueleafs", "nodes_falseleafs"];
    for name in of_nodes {
        let (own, nodes) = (cx.attr_ints(name)?.map_or(0, <[_]>::len), splits.map_or(0, Tensor::len));
        if own != nodes {
            return Err(Refusal::invalid(format!(
                "attribute '{name}' has {own} elements, but 'nodes_splits' has {nodes}: the lengths must be equal"
            )));
        }
    }
    let weights = cx.attr_tensor("leaf_weights")?;
    let (targets, leaves) = (cx.attr_ints("leaf_targetids")?.map_or(0, <[_]>::len), weights.map_or(0, Tensor::len));
    if targets != leaves {
        return Err(Refusal::invalid(format!(
            "attribute 'leaf_targetids' has {targets} elements, but 'leaf_weights' has {leaves}: the lengths must be equal"
        )));
    }
    for (name, tensor) in [("nodes_splits", splits), ("leaf_weights", weights)] {
        let other = tensor.zip(dtype).filter(|(tensor, dtype)| tensor.dtype() != *dtype);
        if let Some((tensor, dtype)) = other {
            let own = tensor.dtype();
            return Err(Refusal::invalid(format!("attribute '{name}' has type {own}, but the input has type {dtype}")));
        }
    }
    Ok(())
}

fn infer(cx: &mut InferCx<'_>) -> InferResult {
    let targets = targets(cx)?.map_or_else(|| cx.fresh_dim(), Dim::constant);
    let dtype = cx.required(0)?.dtype();
    check_attributes(cx, dtype)?;
    let rows = observations(cx);
    Ok(vec![Fact::tensor(dtype, Some(vec![rows, targets]))])
}

/// Returns the numbers of a TENSOR attribute; empty if it is absent.
fn tensor(site: &Site<'_>, name: &str) -> Result<Vec<f64>, Decline> {
    let no_numbers = || Decline::invalid(format!("attribute '{name}' has no numeric type"));
    site.attr_tensor(name)?.map_or_else(|| Ok(Vec::new()), |tensor| tensor.to_f64s().ok_or_else(no_numbers))
}

/// The mode of a node that tests membership in a set.
const MEMBER: u8 = 6;

fn forest(site: &Site<'_>) -> Result<Forest, Decline> {
    let broken = || Decline::invalid("the 'nodes_…' attributes do not describe valid trees");
    let ints = |name: &str| Ok::<_, Decline>(site.attr_ints(name)?.unwrap_or_default());
    let (features, modes, values) =
        (ints("nodes_featureids")?, tensor(site, "nodes_modes")?, tensor(site, "nodes_splits")?);
    let missing = ints("nodes_missing_value_tracks_true")?;
    let branches = [
        (ints("nodes_truenodeids")?, ints("nodes_trueleafs")?),
        (ints("nodes_falsenodeids")?, ints("nodes_falseleafs")?),
    ];
    let members = tensor(site, "membership_values")?;
    let mut sets = members.split(|value| value.is_nan());
    let mut nodes = Vec::with_capacity(modes.len());
    for (at, &mode) in modes.iter().enumerate() {
        let place = |(ids, leaves): &(&[i64], &[i64])| {
            let id = usize::try_from(*ids.get(at)?).ok()?;
            Some(if *leaves.get(at)? != 0 { Next::Leaf(id) } else { Next::Node(id) })
        };
        let [pass, fail] = &branches;
        let value = *values.get(at).ok_or_else(broken)?;
        // A node that tests membership ignores this value.
        if value.is_nan() && mode as u8 != MEMBER {
            return Err(Decline::unsupported(
                "an element of 'nodes_splits' is NaN, for which runtimes compare differently",
            ));
        }
        nodes.push(Node {
            feature: features.get(at).and_then(|&feature| usize::try_from(feature).ok()).ok_or_else(broken)?,
            test: match mode as u8 {
                0 => Test::AtMost(value),
                1 => Test::Less(value),
                2 => Test::AtLeast(value),
                3 => Test::Greater(value),
                4 => Test::Equal(value),
                5 => Test::NotEqual(value),
                MEMBER => Test::Member(sets.next().ok_or_else(broken)?.to_vec()),
                _ => return Err(broken()),
            },
            missing_passes: missing.get(at).is_some_and(|&tracks| tracks != 0),
            pass: place(pass).ok_or_else(broken)?,
            fail: place(fail).ok_or_else(broken)?,
        });
    }
    let (ids, weights) = (ints("leaf_targetids")?, tensor(site, "leaf_weights")?);
    if ids.len() != weights.len() {
        return Err(broken());
    }
    let vote = |(&id, &weight): (&i64, &f64)| usize::try_from(id).ok().map(|id| vec![(id, weight)]);
    let leaves: Option<Vec<_>> = ids.iter().zip(&weights).map(vote).collect();
    let roots: Option<Vec<_>> =
        ints("tree_roots")?.iter().map(|&root| usize::try_from(root).ok().map(Next::Node)).collect();
    Ok(Forest { roots: roots.ok_or_else(broken)?, nodes, leaves: leaves.ok_or_else(broken)? })
}

fn eval(cx: &mut EvalCx<'_>) -> EvalResult {
    let count = targets(cx)?.and_then(|targets| usize::try_from(targets).ok());
    let count = count.ok_or_else(|| Decline::unsupported("attribute 'n_targets' is missing"))?;
    let aggregate = match cx.attr_int("aggregate_function")?.unwrap_or(1) {
        0 => Aggregate::Average,
        1 => Aggregate::Sum,
        2 => Aggregate::Min,
        3 => Aggregate::Max,
        other => {
            return Err(Decline::invalid(format!("attribute 'aggregate_function' is {other}, which is not defined")));
        }
    };
    let transform = Transform::numbered(cx.attr_int("post_transform")?.unwrap_or(0))?;
    let data = Observations::of(cx)?;
    let scores = forest(cx)?.scores(cx, &data, count, aggregate, &[])?;
    let mut scores: Vec<f64> = scores.into_iter().map(|(score, _)| score).collect();
    scores.chunks_exact_mut(count).try_for_each(|scores| transform.apply(scores))?;
    let (dtype, shape) = (cx.tensor(0)?.dtype(), [data.rows, count]);
    in_lane!(dtype, T => {
        let scores = scores.iter().map(|&score| <T as Lane>::of(score)).collect();
        Ok(vec![<T as Ring>::write(dtype, &shape, scores)?.into()])
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::single::Single;
    use crate::tensor::{DType, Tensor};

    fn node() -> Single {
        let (splits, weights) = (Tensor::vector(vec![1f64, 0.0]), Tensor::vector(vec![1f64, 10.0, 100.0]));
        of_lists(&[1, 0], &[0, 1, 1], splits, weights)
    }

    /// Returns a tree of two nodes and three leaves, if the lists have these lengths.
    fn of_lists(branches: &[i64], targets: &[i64], splits: Tensor, weights: Tensor) -> Single {
        Single::new("TreeEnsemble", 21)
            .in_domain_at(DOMAIN, 5)
            .with("n_targets", 2)
            .with("tree_roots", vec![0])
            .with("nodes_featureids", vec![0, 1])
            .with("nodes_modes", Tensor::vector(vec![0u8, 6]))
            .with("nodes_splits", splits)
            .with("membership_values", Tensor::vector(vec![5.0, 6.0, f64::NAN]))
            .with("nodes_trueleafs", vec![0, 1])
            .with("nodes_truenodeids", branches.to_vec())
            .with("nodes_falseleafs", vec![1, 1])
            .with("nodes_falsenodeids", vec![2, 1])
            .with("leaf_targetids", targets.to_vec())
            .with("leaf_weights", weights)
    }

    #[test]
    fn trees() {
        let rows = [0f64, 6.0, 0.0, 7.0, 2.0, 6.0];
        assert_eq!(node().values(&[3, 2], &rows).floats(), [1.0, 0.0, 0.0, 10.0, 0.0, 100.0]);
        assert_eq!(node().input(DType::Double, "N 2").infer(), ["double[N, 2]"]);
        assert!(node().with("aggregate_function", 2).values(&[3, 2], &rows).eval().is_err());
        assert!(node().values(&[1, 1], &[0f64]).eval().is_err());
        let with = |splits: [f64; 2]| {
            of_lists(&[1, 0], &[0, 1, 1], Tensor::vector(splits.to_vec()), Tensor::vector(vec![1f64, 10.0, 100.0]))
        };
        assert_eq!(with([1.0, f64::NAN]).values(&[1, 2], &[2f64, 6.0]).floats(), [0.0, 100.0]);
        assert!(with([f64::NAN, 0.0]).values(&[1, 2], &[2f64, 6.0]).eval().is_err());
    }

    #[test]
    fn mismatched_lists() {
        let (splits, weights) = (|| Tensor::vector(vec![1f64, 0.0]), || Tensor::vector(vec![1f64, 10.0, 100.0]));
        let is_refused = |node: Single| node.input(DType::Double, "N 2").infer()[0].starts_with("invalid");
        assert!(!is_refused(node()));
        assert!(is_refused(of_lists(&[1, 0, 0], &[0, 1, 1], splits(), weights())));
        assert!(is_refused(of_lists(&[1, 0], &[0, 1], splits(), weights())));
        assert!(is_refused(of_lists(&[1, 0], &[0, 1, 1], splits(), Tensor::vector(vec![1f32, 10.0, 100.0]))));
        assert!(is_refused(of_lists(&[1, 0], &[0, 1, 1], Tensor::vector(vec![1f32, 0.0]), weights())));
    }
}
