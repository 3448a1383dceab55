//! Subcommand flags whose description is built on demand.

use clap::error::Error;
use clap::{ArgMatches, Args, Command, FromArgMatches, Id};

/// The arguments of a subcommand. The shared arguments are two thirds of all descriptions, and a run has at most one subcommand.
/// Clap requests the description if the subcommand is called, its help is printed, or the whole command is built.
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

/// The subcommand's summary is already in the list of commands. An argument group that is part of others has a summary of its type,
/// which must not replace it.
fn described<T: Args>(command: Command) -> Command {
    let (about, long_about) = (command.get_about().cloned(), command.get_long_about().cloned());
    let command = T::augment_args(command).about(None::<&str>).long_about(None::<&str>);
    let command = about.into_iter().fold(command, Command::about);
    long_about.into_iter().fold(command, Command::long_about)
}
