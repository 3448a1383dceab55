//! Flags of a subcommand that are only described once they are wanted.

use clap::error::Error;
use clap::{ArgMatches, Args, Command, FromArgMatches, Id};

/// The arguments of a subcommand. What all subcommands take is two thirds of what the program has to describe, and a run has at most one of
/// them; clap asks for the description where the command is called, helped with, or built as a whole.
#[derive(Debug)]
pub(super) struct Deferred<T>(pub(super) T);

impl<T: FromArgMatches> FromArgMatches for Deferred<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        T::from_arg_matches(matches).map(Deferred)
    }

    fn from_arg_matches_mut(matches: &mut ArgMatches) -> Result<Self, Error> {
        T::from_arg_matches_mut(matches).map(Deferred)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        self.0.update_from_arg_matches(matches)
    }

    fn update_from_arg_matches_mut(&mut self, matches: &mut ArgMatches) -> Result<(), Error> {
        self.0.update_from_arg_matches_mut(matches)
    }
}

impl<T: Args> Args for Deferred<T> {
    fn group_id() -> Option<Id> {
        T::group_id()
    }

    fn augment_args(command: Command) -> Command {
        command.defer(described::<T>)
    }

    fn augment_args_for_update(command: Command) -> Command {
        command.defer(T::augment_args_for_update)
    }
}

/// What the subcommand is about was said when it was listed. A group of arguments that is part of others has a text of its own, which is
/// not meant.
fn described<T: Args>(command: Command) -> Command {
    let (about, long_about) = (command.get_about().cloned(), command.get_long_about().cloned());
    let command = T::augment_args(command).about(None::<&str>).long_about(None::<&str>);
    let command = about.into_iter().fold(command, Command::about);
    long_about.into_iter().fold(command, Command::long_about)
}
