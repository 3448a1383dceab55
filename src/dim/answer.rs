//! What a question is answered with.

/// Whether something holds for every assignment within what is known, for none, or cannot be told.
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
    /// Whether this is [`Answer::Yes`].
    pub fn is_yes(self) -> bool {
        self == Answer::Yes
    }

    /// Whether this is [`Answer::No`].
    pub fn is_no(self) -> bool {
        self == Answer::No
    }

    /// Yes if it is that, or else no if it is that.
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
