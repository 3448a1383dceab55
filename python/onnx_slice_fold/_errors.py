"""The exceptions, one for each kind of error. A file that cannot be read or written is an ``OSError`` of the system's kind."""


class Error(Exception):
    """A model could not be read, folded, evaluated or written."""


class FileError(Error, OSError):
    """What is to be read or written is no regular file."""


class MalformedModelError(Error, ValueError):
    """What was given is no well-formed ONNX model."""


class UnsupportedError(Error, ValueError):
    """The model cannot be taken as it was given, such as bytes that refer to files."""


class LimitError(Error, ValueError):
    """Something is larger, deeper or more than is allowed, such as the 2 GiB of a protobuf message."""


class ChangedError(Error):
    """A file was changed by somebody while it was being used."""


class AssumptionError(Error, ValueError):
    """A size, relation or shape contradicts the model, another one, or what the graph needs."""


class ExtractionError(Error, ValueError):
    """The part of the model that was asked for does not exist, or is not whole."""


class ImpossibleError(Error, ValueError):
    """No run of the model can succeed, and ``strict`` was asked for."""


class NotEvaluatedError(Error, ValueError):
    """A node is not evaluated: unknown, disputed among runtimes, or it cannot work on the values it got."""


class UsageError(Error, ValueError):
    """The call itself is wrong: an option that is not understood, a rule that does not exist."""


class InternalError(Error, RuntimeError):
    """A defect of this package."""
