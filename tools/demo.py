#!/usr/bin/env python3
"""`make demo`: naive INT8 breaks a small network; `kilter tune` keeps its accuracy, and says how and at what price.

The network and the images are in fixtures/fashion_mnist. Everything is done by the command, as a user would type it.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FIXTURE = "fixtures/fashion_mnist"
OUTPUT = "build/demo"
MODEL = f"{FIXTURE}/model.onnx"
NAIVE, ONE_SCALE, TUNED = (f"{OUTPUT}/{name}.onnx" for name in ("naive", "one_scale", "tuned"))
SCALE = ["--scale", "1/255"]  # pixels are bytes, the model wants 0 to 1
IMAGES = ["--data", f"{FIXTURE}/images.npy", "--labels", f"{FIXTURE}/labels.npy", *SCALE]
CALIBRATION = f"{FIXTURE}/calibration.npy"

# A network this small is done before a second thread has woken up, and other work disturbs one thread least.
THREADS = ["--threads", "1"]


def run(*arguments, **options):
    command = Path(sys.executable).with_name("kilter")
    return subprocess.run([command, *arguments], cwd=ROOT, check=True, text=True, **options)


def show(*arguments):
    """Shows what a user would type, and what the command answers."""
    print(f"\n$ kilter {' '.join(arguments)}", flush=True)
    run(*arguments, stderr=subprocess.STDOUT)


def ask(*arguments):
    return json.loads(run(*arguments, "--json", stdout=subprocess.PIPE).stdout)


def say(text):
    print(f"\n{text}", flush=True)


def tune(output, *options):
    study = ["--workspace", f"{output.removesuffix('.onnx')}_study"]
    show(
        "tune",
        MODEL,
        *IMAGES,
        "--calibration-data",
        CALIBRATION,
        "--max-loss",
        "1%",
        *options,
        *THREADS,
        *study,
        "-o",
        output,
    )


def accuracy(model):
    return ask("eval", model, *IMAGES)["metrics"]["topk"]


def row(name, model, baseline):
    """Accuracy, speed and size of a model; it is timed in turns with the FP32 model."""
    found = accuracy(model)
    pair = ask("bench", MODEL, model, *THREADS, "--seconds", "2")
    return (
        f"{name:28}{found:9.2%}{found / baseline - 1:+9.2%}{1e3 * pair['median_ms_b']:8.1f} µs{pair['ratio']:9.2f}x"
        f"{(ROOT / model).stat().st_size / 1000:8.0f} kB"
    )


def main():
    shutil.rmtree(ROOT / OUTPUT, ignore_errors=True)  # two studies never share a folder
    (ROOT / OUTPUT).mkdir(parents=True)

    say("1. A network with depthwise convolutions, and its accuracy on 2,000 test images of Fashion-MNIST")
    show("inspect", MODEL)
    show("eval", MODEL, *IMAGES)

    say(
        "2. Naive INT8: everything on integers, ranges from the smallest to the largest value that 100 training images\n"
        "   cause, one scale for each weight tensor, nothing corrected. Many tools do this unless told otherwise."
    )
    naive = ["--calibration", "minmax", "--weights", "per-tensor", "--recipe", "no-bias-correction"]
    show("quantize", MODEL, "--data", CALIBRATION, *SCALE, *naive, *THREADS, "-o", NAIVE)
    show("eval", NAIVE, *IMAGES)

    say(
        "3. Tuned INT8, still with one scale for each weight tensor, as some runtimes and accelerators need it:\n"
        "   the fastest model that loses no more than 1 % of the accuracy"
    )
    tune(ONE_SCALE, "--weights", "per-tensor")

    say("4. The same promise with kilter's defaults: a scale for every output channel")
    tune(TUNED)

    say("5. Side by side: one image at a time on one thread, each timed in turns with FP32\n")
    baseline = accuracy(MODEL)
    print(f"{'':28}{'accuracy':>9}{'change':>9}{'latency':>11}{'speed-up':>10}{'file':>11}")
    for name, model in (
        ("FP32", MODEL),
        ("naive INT8", NAIVE),
        ("tuned INT8, per tensor", ONE_SCALE),
        ("tuned INT8", TUNED),
    ):
        print(row(name, model, baseline), flush=True)


if __name__ == "__main__":
    main()
