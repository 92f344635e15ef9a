#!/usr/bin/env python3
"""`make demo`: inspects, quantizes, runs and compares the small network in fixtures/ on real images."""

import subprocess
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
FIXTURE = ROOT / "fixtures" / "fashion_mnist"
OUTPUT = ROOT / "build" / "demo"


def shown(path):
    return path.relative_to(ROOT).as_posix()


def kilter(*arguments):
    """Runs the command as a user would type it, and shows it."""
    print(f"\n$ kilter {' '.join(arguments)}", flush=True)
    command = Path(sys.executable).with_name("kilter")
    subprocess.run([command, *arguments], cwd=ROOT, check=True)


# The first images choose the ranges, the others judge the result.
CALIBRATION = 100


def accuracy(model, images, labels):
    kilter("run", model, "--input", f"image={shown(images)}", "-o", shown(OUTPUT))
    found = np.load(OUTPUT / "logits.npy").argmax(axis=1)
    return np.mean(found == labels)


def main():
    OUTPUT.mkdir(parents=True, exist_ok=True)
    model, small = shown(FIXTURE / "model.onnx"), shown(OUTPUT / "int8.onnx")
    pixels, labels = np.load(FIXTURE / "images.npy"), np.load(FIXTURE / "labels.npy")[CALIBRATION:]
    scaled = pixels.astype(np.float32) / 255
    calibration, images = OUTPUT / "calibration.npy", OUTPUT / "images.npy"
    np.save(calibration, scaled[:CALIBRATION])
    np.save(images, scaled[CALIBRATION:])

    kilter("inspect", model)
    kilter("quantize", model, "--data", shown(calibration), "-o", small)
    before, after = accuracy(model, images, labels), accuracy(small, images, labels)
    print(f"\naccuracy on {len(labels)} other Fashion-MNIST test images: FP32 {before:.1%}, INT8 {after:.1%}")
    kilter("bench", model, small, "--batch", "16", "--seconds", "1")


if __name__ == "__main__":
    main()
