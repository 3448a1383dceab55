"""The exceptions, one for each kind of error. A file that cannot be read or written raises the ``OSError`` of the system."""


class Error(Exception):
    """A model could not be read, folded, evaluated or written."""


class FileError(Error, OSError):
    """A path to read or write is not a regular file."""


class MalformedModelError(Error, ValueError):
    """The argument is not a well-formed ONNX model."""


class UnsupportedError(Error, ValueError):
    """The model cannot be loaded in this form, such as bytes that refer to files."""


class LimitError(Error, ValueError):
    """The model exceeds a limit, such as the 2 GiB of a protobuf message."""


class ChangedError(Error):
    """Another program changed a file during the run."""


class AssumptionError(Error, ValueError):
    """A dim, relation or shape contradicts the model or another assumption."""


class ExtractionError(Error, ValueError):
    """The requested part of the model does not exist, or is incomplete."""


class ImpossibleError(Error, ValueError):
    """Every run of the model fails, and ``strict`` is set."""


class NotEvaluatedError(Error, ValueError):
    """A node is not evaluated: it is unknown, runtimes disagree about it, or it fails for these values."""


class UsageError(Error, ValueError):
    """The call is wrong: an unknown option or rule, or a wrong value."""


class InternalError(Error, RuntimeError):
    """A defect of this package."""
