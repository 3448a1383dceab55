//! Questions about two dims, and their answers.

use super::expr::Dim;

/// A relation between two dims.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Relation {
    AtMost,
    Less,
    Equal,
    Divides,
}

/// A question about two dims.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Question {
    pub(super) left: Dim,
    pub(super) relation: Relation,
    pub(super) right: Dim,
}

impl Question {
    /// Returns the expressions that are at least 0 if the relation holds. Divisibility has none.
    pub fn slacks(&self) -> Vec<Dim> {
        let (up, down) = (self.right.minus(&self.left), self.left.minus(&self.right));
        let slacks = match self.relation {
            Relation::AtMost => [up, None],
            Relation::Less => [up.and_then(|up| up.minus(&Dim::constant(1))), None],
            Relation::Equal => [up, down],
            Relation::Divides => [None, None],
        };
        slacks.into_iter().flatten().collect()
    }
}

/// The truth of a statement under all assignments within the known facts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    /// True for every assignment.
    Yes,
    /// False for every assignment.
    No,
    /// Neither is proved.
    Unknown,
}

impl Answer {
    /// Returns `true` for [`Answer::Yes`].
    pub fn is_yes(self) -> bool {
        self == Answer::Yes
    }

    /// Returns `true` for [`Answer::No`].
    pub fn is_no(self) -> bool {
        self == Answer::No
    }

    /// Returns yes if `yes` is set, no if `no` returns `true`, and unknown for neither.
    pub(super) fn of(yes: bool, no: impl FnOnce() -> bool) -> Answer {
        if yes {
            Answer::Yes
        } else if no() {
            Answer::No
        } else {
            Answer::Unknown
        }
    }
}
