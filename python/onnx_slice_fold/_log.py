"""Messages of the package."""


def info(message: str, *arguments: object) -> None:
    """Log a message at level INFO to the logger ``onnx_slice_fold``.

    The module ``logging`` is imported on the first call, because it takes a third of the time of importing this package.
    """
    import logging

    logging.getLogger("onnx_slice_fold").info(message, *arguments)
