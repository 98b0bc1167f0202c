#!/usr/bin/python3
"""Reads QR codes as a camera would, by Debian's python3-zbar.

qr.py      prints what the picture on standard input says, which `identityctl account invite --qr` has written
"""

import sys

import zbar

PIXELS = 4


def read(rows):
    """Returns the texts of a picture, whose rows of modules are true where it is light."""
    pixels = [bytes(255 * is_light for is_light in row for _ in range(PIXELS)) for row in rows for _ in range(PIXELS)]
    image = zbar.Image(len(pixels[0]), len(pixels), "Y800", b"".join(pixels))
    zbar.ImageScanner().scan(image)
    return [symbol.data for symbol in image]


if __name__ == "__main__":
    lines = [line for line in sys.stdin.read().splitlines() if line.startswith("█")]
    print(*read([letter in letters for letter in line] for line in lines for letters in ("█▀", "█▄")), sep="\n")
