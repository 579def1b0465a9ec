#!/usr/bin/env python3
"""Writes scikit-learn's handwritten digits, which come with it, as a file for tacc_train --data.

usage: export_digits.py FILE
Ends with 77 where scikit-learn is missing.
"""
import os
import sys

SYSTEM_PYTHON = "/usr/bin/python3"  # which has the packages of the system; another one may come first in PATH


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        if sys.executable != SYSTEM_PYTHON and os.access(SYSTEM_PYTHON, os.X_OK):
            os.execv(SYSTEM_PYTHON, [SYSTEM_PYTHON, *sys.argv])
        print("export_digits.py: there is no scikit-learn here; Debian's package is python3-sklearn", file=sys.stderr)
        sys.exit(77)
    digits = load_digits()
    part = sys.argv[1] + ".part"  # so that what has the name is whole
    with open(part, "w", encoding="ascii") as file:
        print(f"images {len(digits.images)} side {digits.images.shape[1]} classes 10 largest 16", file=file)
        for label, image in zip(digits.target, digits.images):
            print(label, *(int(pixel) for pixel in image.flat), file=file)
    os.replace(part, sys.argv[1])


main()
