"""The command line program."""

import signal
import sys

from . import _core


def main() -> int:
    # The program runs outside of the interpreter, which would only note an interrupt and act on it at the end.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _core.run(["onnx-slice-fold", *sys.argv[1:]])
