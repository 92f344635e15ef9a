#!/usr/bin/env python3
"""`make demo`: inspects, runs and measures the small network in fixtures/ on real images."""

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


def main():
    OUTPUT.mkdir(parents=True, exist_ok=True)
    model = shown(FIXTURE / "model.onnx")
    images, labels = np.load(FIXTURE / "images.npy"), np.load(FIXTURE / "labels.npy")
    np.save(OUTPUT / "images.npy", images.astype(np.float32) / 255)

    kilter("inspect", model)
    kilter("run", model, "--input", f"image={shown(OUTPUT / 'images.npy')}", "-o", shown(OUTPUT))
    found = np.load(OUTPUT / "logits.npy").argmax(axis=1)
    print(f"accuracy on {len(labels)} Fashion-MNIST test images: {np.mean(found == labels):.1%}")
    kilter("bench", model, "--batch", "16", "--seconds", "1", "--per-op")


if __name__ == "__main__":
    main()
