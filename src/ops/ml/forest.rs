//! Decision trees: traversal, and aggregation of the leaves' votes.

use super::Observations;
use crate::ops::{Decline, EvalCx};
use crate::tensor::DType;

/// The comparison of a feature with a node's value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Test {
    AtMost(f64),
    Less(f64),
    AtLeast(f64),
    Greater(f64),
    Equal(f64),
    NotEqual(f64),
    Member(Vec<f64>),
}

/// The target of a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    Node(usize),
    Leaf(usize),
}

/// A node of a tree.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub feature: usize,
    pub test: Test,
    /// `true` if a NaN feature passes the test.
    pub missing_passes: bool,
    pub pass: Next,
    pub fail: Next,
}

impl Node {
    fn passes(&self, x: f64) -> Result<bool, Decline> {
        if x.is_nan() {
            return match (&self.test, self.missing_passes) {
                (Test::NotEqual(_), false) => Err(Decline::unsupported(
                    "a node of mode 'BRANCH_NEQ' tests an element of 'X' that is NaN, for which runtimes take different branches",
                )),
                (_, passes) => Ok(passes),
            };
        }
        Ok(match &self.test {
            Test::AtMost(value) => x <= *value,
            Test::Less(value) => x < *value,
            Test::AtLeast(value) => x >= *value,
            Test::Greater(value) => x > *value,
            Test::Equal(value) => x == *value,
            Test::NotEqual(value) => x != *value,
            Test::Member(values) => values.contains(&x),
        })
    }
}

/// The score that a leaf adds to, and the amount.
pub(super) type Vote = (usize, f64);

/// The aggregation of the votes for a score.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Aggregate {
    Average,
    Sum,
    Min,
    Max,
}

/// Trees with the votes of their leaves.
#[derive(Debug, Default)]
pub(super) struct Forest {
    pub roots: Vec<Next>,
    pub nodes: Vec<Node>,
    /// The votes of each leaf.
    pub leaves: Vec<Vec<Vote>>,
}

impl Forest {
    /// Returns the votes of the leaf that an observation reaches in one tree.
    fn votes(&self, root: Next, row: &[f64]) -> Result<&[Vote], Decline> {
        let mut next = root;
        // A walk that visits more nodes than exist contains a cycle.
        for _ in 0..=self.nodes.len() {
            match next {
                Next::Leaf(leaf) => {
                    let votes = self
                        .leaves
                        .get(leaf)
                        .ok_or_else(|| Decline::invalid("an attribute refers to a leaf that does not exist"))?;
                    return Ok(votes);
                }
                Next::Node(at) => {
                    let node = self.nodes.get(at).ok_or_else(|| {
                        Decline::invalid("an attribute refers to a node of a tree that does not exist")
                    })?;
                    let x = row
                        .get(node.feature)
                        .ok_or_else(|| Decline::invalid("a node of a tree tests a feature that 'X' does not have"))?;
                    next = if node.passes(*x)? { node.pass } else { node.fail };
                }
            }
        }
        Err(Decline::invalid("the nodes of a tree form a cycle"))
    }

    /// Returns for each observation and score the aggregated votes of all trees plus `base`; `None` without votes.
    pub(super) fn scores(
        &self,
        cx: &EvalCx<'_>,
        data: &Observations,
        count: usize,
        aggregate: Aggregate,
        base: &[f64],
    ) -> Result<Vec<(f64, bool)>, Decline> {
        cx.claim(DType::Complex128, &[data.rows, count])?;
        let walk = (self.roots.len() as u64).saturating_mul(self.nodes.len() as u64 + 1);
        cx.budget().take_work((data.rows as u64).saturating_mul(walk.saturating_add(count as u64)))?;
        let trees = self.roots.len().max(1) as f64;
        let mut scores = Vec::new();
        for row in data.each() {
            let mut own: Vec<Option<f64>> = vec![None; count];
            for &root in &self.roots {
                for &(score, weight) in self.votes(root, row)? {
                    let place = own.get_mut(score).ok_or_else(|| {
                        Decline::invalid("a leaf has the id of a class or target that does not exist")
                    })?;
                    *place = Some(match (*place, aggregate) {
                        (None, _) => weight,
                        (Some(sum), Aggregate::Sum | Aggregate::Average) => sum + weight,
                        (Some(least), Aggregate::Min) => least.min(weight),
                        (Some(most), Aggregate::Max) => most.max(weight),
                    });
                }
            }
            for (at, voted) in own.into_iter().enumerate() {
                if voted.is_none() && matches!(aggregate, Aggregate::Min | Aggregate::Max) {
                    return Err(Decline::unsupported(
                        "attribute 'aggregate_function' is 'MIN' or 'MAX', but no leaf adds a weight to one of the targets",
                    ));
                }
                let value = voted.unwrap_or(0.0) / if aggregate == Aggregate::Average { trees } else { 1.0 };
                scores.push((value + base.get(at).copied().unwrap_or(0.0), voted.is_some()));
            }
        }
        Ok(scores)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(test: Test, pass: Next, fail: Next) -> Node {
        Node { feature: 0, test, missing_passes: false, pass, fail }
    }

    #[test]
    fn walks_end() {
        let circle = node(Test::Less(1.0), Next::Node(0), Next::Leaf(0));
        let forest = Forest { roots: vec![Next::Node(0)], nodes: vec![circle], leaves: vec![vec![(0, 1.0)]] };
        assert_eq!(forest.votes(Next::Node(0), &[2.0]).unwrap(), [(0, 1.0)]);
        assert!(forest.votes(Next::Node(0), &[0.0]).is_err());
        assert!(forest.votes(Next::Node(0), &[]).is_err());
        assert!(forest.votes(Next::Node(1), &[0.0]).is_err());
        assert!(forest.votes(Next::Leaf(1), &[0.0]).is_err());
    }

    #[test]
    fn tests_of_numbers_and_missing_values() {
        let passes = |test: Test, x: f64| node(test, Next::Leaf(0), Next::Leaf(0)).passes(x);
        assert_eq!((passes(Test::AtMost(1.0), 1.0), passes(Test::Less(1.0), 1.0)), (Ok(true), Ok(false)));
        assert_eq!((passes(Test::AtLeast(1.0), 1.0), passes(Test::Greater(1.0), 1.0)), (Ok(true), Ok(false)));
        assert_eq!((passes(Test::Equal(1.0), 1.0), passes(Test::NotEqual(1.0), 1.0)), (Ok(true), Ok(false)));
        assert_eq!(passes(Test::Member(vec![1.0, 2.0]), 2.0), Ok(true));
        assert_eq!(passes(Test::AtMost(1.0), f64::NAN), Ok(false));
        assert!(passes(Test::NotEqual(1.0), f64::NAN).is_err());
    }
}
