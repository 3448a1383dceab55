"""Random cases by family: each maker returns one node of constants."""
from . import elementwise, layers, linear, movement, older, reductions, words

FAMILIES = {
    "unary": elementwise.UNARY,
    "binary": elementwise.BINARY,
    "cast": elementwise.CASTS,
    "movement": movement.MOVEMENT,
    "indexing": movement.INDEXING,
    "constants": movement.CONSTANTS,
    "reduction": reductions.REDUCTIONS,
    "softmax": reductions.SHARES,
    "normalization": reductions.NORMALIZATIONS,
    "product": linear.PRODUCTS,
    "window": linear.WINDOWS,
    "quantization": linear.QUANTIZATION,
    "recurrent": layers.RECURRENT,
    "attention": layers.ATTENTION,
    "image": layers.IMAGES,
    "signal": layers.SIGNALS,
    "older": older.OLDER,
    "sequence": older.SEQUENCES,
    "text": words.TEXT,
    "learning": words.LEARNING,
}
