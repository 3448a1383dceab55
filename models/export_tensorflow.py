"""Exports the models that come from TensorFlow.

    python models/export_tensorflow.py FOLDER       # tensorflow, tf2onnx 1.17.0

Exporters number their values as they like: an export is alike in structure, not byte for byte.
"""
import pathlib
import sys

import tensorflow as tf
import tf2onnx
from tf2onnx import constants


def cond_slice(x):
    """A slice in each branch."""
    return tf.cond(tf.cast(tf.shape(x)[1], tf.float32) > 5.0, lambda: x[:, 1:4] * 2.0, lambda: x[:, :3])


def masks(x):
    """Every mask of StridedSlice."""
    h = tf.shape(x)[1]
    return (
        x[..., 1:3],
        x[:, tf.newaxis, 1:-1, ...],
        x[:, 0, ..., -1],
        x[:, ::-1, :, ::2],
        x[:, 1:h, tf.newaxis, 2],
        x[-1, ..., tf.newaxis],
        x[:, h // 2:, ..., -3:],
        x[:, :h - 2, 1::2],
    )


def keep(context, node, name, args):
    """Passes an operator through under TensorFlow's name, in a domain of its own."""
    node.domain = constants.TENSORFLOW_OPSET.domain
    return node


def export(function, shape, path, opset, **options):
    signature = [tf.TensorSpec(shape, tf.float32, name="x")]
    tf2onnx.convert.from_function(tf.function(function), signature, opset=opset, output_path=str(path), **options)


def main():
    folder = pathlib.Path(sys.argv[1])
    export(cond_slice, [None, None, 6], folder / "tf_cond_slice_13d.onnx", 13)
    export(masks, [None, None, None, 8], folder / "tf_masks_17d_custom.onnx", 17, custom_op_handlers={"StridedSlice": (keep, [])},
           extra_opset=[constants.TENSORFLOW_OPSET])


if __name__ == "__main__":
    main()
