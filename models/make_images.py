"""Makes the pictures in `images/`.

    python models/make_images.py FOLDER             # Pillow, numpy
"""
import pathlib
import sys

import numpy as np
from PIL import Image


def main():
    folder = pathlib.Path(sys.argv[1])
    pixels = np.random.default_rng(0).integers(0, 256, (13, 19, 3), np.uint8)
    # 4:2:0: colours at half the resolution.
    Image.fromarray(pixels).save(folder / "colours.jpg", quality=90, subsampling=2)
    Image.open(folder / "colours.jpg").convert("RGB").save(folder / "colours.ppm")


if __name__ == "__main__":
    main()
