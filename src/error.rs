//! The error type of the public API, and its kinds.

use std::fmt;
use std::io;

use crate::evaluation::EvaluateError;
use crate::explain::{NoAttempt, NoPlace};
use crate::onnx::external::ExternalProblem;
use crate::onnx::wire::Problem;
use crate::onnx::{
    DecodeError, EncodeError, FileError, ImportError, ImportReason, MissingData, SaveError, SourceError,
};
use crate::ops::{Decline, SliceNameError};
use crate::passes::{AssumeError, ExtractError, OpsetError, RunError};

/// A model could not be opened, folded or written.
///
/// A caller decides by the [`kind`](Error::kind), not by the text. `{}` formats the failed action; `{:#}` adds the cause on the same line.
/// The causes form the [source](std::error::Error::source) chain, which `anyhow` and `eyre` print.
///
/// ```
/// use onnx_slice_fold::{ErrorKind, OnnxModel};
///
/// let error = OnnxModel::from_bytes(&b"PK\x03\x04"[..]).unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::Malformed);
/// assert_eq!(format!("{error:#}"), "cannot read the model: this is a ZIP archive, not an ONNX model; unpack it and pass the .onnx file inside");
///
/// let error = OnnxModel::open("no/such.onnx").unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::Io);
/// assert_eq!(error.io_kind(), Some(std::io::ErrorKind::NotFound));
/// ```
#[derive(Debug)]
pub struct Error(Box<Failure>);

#[derive(Debug)]
struct Failure {
    /// The failed action, unless the cause names it.
    doing: Option<String>,
    cause: Cause,
}

/// The kinds of [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The system cannot read or write a file, or it is no regular file.
    Io,
    /// The input is not a well-formed ONNX model.
    Malformed,
    /// The model is not supported in this form, for example because its data is outside of the given directories.
    Unsupported,
    /// A limit is exceeded, such as the 2 GiB of a protobuf message.
    Limit,
    /// Another process changed a file while it was in use.
    Changed,
    /// An [assumption](crate::Assumption) contradicts the model, another assumption, or a requirement of the graph.
    Assumption,
    /// The requested part of the model does not exist, or is incomplete.
    Extraction,
    /// No run of the model can succeed, or a declaration is false, and [`strict`](crate::Options::strict) is set.
    Impossible,
    /// A node is not evaluated: its operator is unknown, runtimes disagree about it, or it does not accept the values.
    NotEvaluated,
    /// The call is invalid: an option that cannot be parsed, an unknown rule, a target that must not be overwritten.
    Usage,
    /// A defect of this library. The model must not be used any further.
    Internal,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum Cause {
    #[error(transparent)]
    Source(#[from] SourceError),
    #[error(transparent)]
    Decode(#[from] DecodeError),
    #[error(transparent)]
    Import(#[from] ImportError),
    #[error(transparent)]
    Run(#[from] RunError),
    #[error(transparent)]
    Save(#[from] SaveError),
    #[error(transparent)]
    Extract(#[from] ExtractError),
    #[error(transparent)]
    SliceName(#[from] SliceNameError),
    #[error(transparent)]
    NoPlace(#[from] NoPlace),
    #[error(transparent)]
    NoAttempt(#[from] NoAttempt),
    #[error(transparent)]
    Evaluate(#[from] EvaluateError),
    #[error("the program already defines the operator {0}, so it cannot be registered")]
    Taken(String),
    #[error("{0}; --strict refuses an incomplete model")]
    NoData(MissingData),
    #[error("an error interrupted folding; open the model again")]
    HalfFolded,
}

impl Error {
    pub(crate) fn new(doing: Option<String>, cause: impl Into<Cause>) -> Self {
        Error(Box::new(Failure { doing, cause: cause.into() }))
    }

    /// Returns the kind of the error.
    pub fn kind(&self) -> ErrorKind {
        match &self.0.cause {
            Cause::Source(error) => of_source(error),
            Cause::Decode(error) => of_decoding(error),
            Cause::Import(error) => of_import(error),
            Cause::Run(error) => of_run(error),
            Cause::Save(error) => of_save(error),
            Cause::Extract(ExtractError::Broken(_)) => ErrorKind::Internal,
            Cause::Extract(_) | Cause::NoPlace(_) | Cause::NoAttempt(NoAttempt::Node(_)) => ErrorKind::Extraction,
            Cause::NoAttempt(NoAttempt::Rule(_)) => ErrorKind::Usage,
            Cause::NoData(_) => ErrorKind::Impossible,
            Cause::Evaluate(EvaluateError::Declined(Decline::OverBudget(_))) => ErrorKind::Limit,
            Cause::Evaluate(EvaluateError::Declined(_)) => ErrorKind::NotEvaluated,
            Cause::Evaluate(_) | Cause::SliceName(_) | Cause::Taken(_) | Cause::HalfFolded => ErrorKind::Usage,
        }
    }

    /// Returns the system's error kind, for an error of kind [`ErrorKind::Io`] that the system reported.
    pub fn io_kind(&self) -> Option<io::ErrorKind> {
        let error = match &self.0.cause {
            Cause::Source(error) | Cause::Save(SaveError::Source(error)) => io_of_source(error),
            Cause::Import(ImportError { reason: ImportReason::External(error), .. }) => io_of_external(&error.problem),
            Cause::Save(SaveError::Write { error: EncodeError::Io(error), .. }) => Some(error),
            _ => None,
        };
        error.map(io::Error::kind)
    }
}

impl<T: Into<Cause>> From<T> for Error {
    fn from(cause: T) -> Self {
        Error::new(None, cause)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let error: &dyn std::error::Error = match &self.0.doing {
            Some(doing) if f.alternate() => {
                write!(f, "{doing}: ")?;
                &self.0.cause
            }
            Some(doing) => return f.write_str(doing),
            None => &self.0.cause,
        };
        write!(f, "{error}")?;
        let mut cause = error.source().filter(|_| f.alternate());
        while let Some(error) = cause {
            write!(f, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self.0.doing {
            Some(_) => Some(&self.0.cause),
            None => std::error::Error::source(&self.0.cause),
        }
    }
}

fn of_file(error: &FileError) -> ErrorKind {
    match error {
        FileError::Changed => ErrorKind::Changed,
        FileError::NotRegular(_) | FileError::Io(_) => ErrorKind::Io,
    }
}

fn of_source(error: &SourceError) -> ErrorKind {
    match error {
        SourceError::Model { error, .. } => of_file(error),
        SourceError::External(error) => of_external(&error.problem),
    }
}

fn of_external(problem: &ExternalProblem) -> ErrorKind {
    match problem {
        ExternalProblem::File { error, .. } => of_file(error),
        ExternalProblem::Directory { .. } => ErrorKind::Io,
        ExternalProblem::Outside { .. } => ErrorKind::Unsupported,
        ExternalProblem::NoLocation
        | ExternalProblem::Twice(_)
        | ExternalProblem::NotANumber { .. }
        | ExternalProblem::Location { .. }
        | ExternalProblem::Host { .. }
        | ExternalProblem::HardLink { .. }
        | ExternalProblem::OutOfRange { .. } => ErrorKind::Malformed,
    }
}

fn of_decoding(error: &DecodeError) -> ErrorKind {
    match error {
        DecodeError::TooLarge(_) => ErrorKind::Limit,
        DecodeError::Wire(error) if matches!(error.problem, Problem::TooDeep(_) | Problem::TooLarge { .. }) => {
            ErrorKind::Limit
        }
        DecodeError::Empty | DecodeError::Other(_) | DecodeError::Wire(_) => ErrorKind::Malformed,
        DecodeError::Passed(_) => ErrorKind::Internal,
    }
}

fn of_import(error: &ImportError) -> ErrorKind {
    match &error.reason {
        ImportReason::External(error) => of_external(&error.problem),
        ImportReason::TooDeep(_) => ErrorKind::Limit,
        ImportReason::Malformed(_) => ErrorKind::Malformed,
    }
}

fn of_run(error: &RunError) -> ErrorKind {
    match error {
        RunError::Broken(_) | RunError::Defect { .. } => ErrorKind::Internal,
        RunError::Assumption(AssumeError::Syntax { .. }) | RunError::NoRule(_) | RunError::NoOperator(_) => {
            ErrorKind::Usage
        }
        RunError::Assumption(_) => ErrorKind::Assumption,
        // The order of the nodes is not topological.
        RunError::Refused(_) => ErrorKind::Malformed,
        RunError::Opset(OpsetError::NoSuch { .. }) => ErrorKind::Usage,
        RunError::Opset(_) => ErrorKind::Unsupported,
        RunError::Impossible { .. } | RunError::Contradiction { .. } => ErrorKind::Impossible,
    }
}

fn of_save(error: &SaveError) -> ErrorKind {
    match error {
        SaveError::Target { .. } => ErrorKind::Usage,
        SaveError::Write { error: EncodeError::TooLarge(_), .. } | SaveError::TooLarge(_) => ErrorKind::Limit,
        SaveError::Write { error: EncodeError::Io(_), .. } => ErrorKind::Io,
        SaveError::Source(error) => of_source(error),
        SaveError::Broken(_) => ErrorKind::Internal,
    }
}

fn io_of_source(error: &SourceError) -> Option<&io::Error> {
    match error {
        SourceError::Model { error: FileError::Io(error), .. } => Some(error),
        SourceError::Model { .. } => None,
        SourceError::External(error) => io_of_external(&error.problem),
    }
}

fn io_of_external(problem: &ExternalProblem) -> Option<&io::Error> {
    match problem {
        ExternalProblem::File { error: FileError::Io(error), .. } | ExternalProblem::Directory { error, .. } => {
            Some(error)
        }
        _ => None,
    }
}
