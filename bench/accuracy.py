#!/usr/bin/env python3
"""Measures what quantization costs in accuracy, on real networks and real data.

KILTER_DATA names a folder with imagenet_val1000, imagenet_calib100, onnx/ and nlp/; nothing of it comes with
kilter. Image networks are calibrated with 100 images and evaluated on 1,000 others (top-1 of the centre crop),
MiniLM with 100 pairs of MRPC's training set and evaluated on its test set. The exported file also runs in ONNX
Runtime and OpenVINO: their accuracy, and how often they choose the same class as kilter. How often they agree
with each other puts that into perspective: a rounding that differs in one element spreads from layer to layer.

    python bench/accuracy.py                                     # every network, every configuration
    python bench/accuracy.py mobilenetv2-7 --config default --config per-tensor
    python bench/accuracy.py minilm-mrpc --no-peers --json build/accuracy.json
"""

import argparse
import json
import os
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

import mrpc
import quantized

DATA = mrpc.DATA
CALIBRATION_SAMPLES = 100

# How each network wants its pixels: (x * scale - mean) / std.
IMAGENET = (1 / 255, [0.485, 0.456, 0.406], [0.229, 0.224, 0.225])
IMAGE_MODELS = {
    "mobilenetv2-7": IMAGENET,
    "squeezenet1.1-7": IMAGENET,
    "efficientnet-lite0": (1, [127] * 3, [128] * 3),
}
MODELS = [*IMAGE_MODELS, "minilm-mrpc"]

# What `kilter.quantize` is told.
CONFIGURATIONS = {
    "default": {},
    "per-tensor": {"weights": "per-tensor"},
    "no-bias-correction": {"recipes": ["no-bias-correction"]},
    "equalization": {"recipes": ["equalization"]},
    "smooth-quant": {"recipes": ["smooth-quant"]},
    "per-tensor, no-bias-correction": {"weights": "per-tensor", "recipes": ["no-bias-correction"]},
    "per-tensor, equalization": {"weights": "per-tensor", "recipes": ["equalization"]},
    "minmax": {"algorithm": "minmax"},
    "kl": {"algorithm": "kl"},
    "percentile": {"algorithm": "percentile"},
    "mse": {"algorithm": "mse"},
    "sym": {"scheme": "sym"},
    "full": {"mode": "full"},
    "target-onnxruntime": {"target": "onnxruntime"},
}


# Tasks: what to feed, and what is right


class ImageTask:
    """Top-1 over photographs, one at a time."""

    metric = "top-1"

    def __init__(self, name, count=1000):
        self.path = DATA / "onnx" / f"{name}.onnx"
        self.scale, self.mean, self.std = IMAGE_MODELS[name]
        folder = DATA / "imagenet_val1000"
        rows = [line.split() for line in (folder / "labels.txt").read_text().splitlines()[:count]]
        self.pixels = [crop(folder / file) for file, _ in rows]
        self.labels = np.array([int(label) for _, label in rows])
        self.input = input_names(self.path)[0]

    def batch(self, pixels):
        values = (pixels * np.float32(self.scale) - np.array(self.mean, np.float32)) / np.array(
            self.std, np.float32
        )
        return {self.input: np.ascontiguousarray(values.transpose(2, 0, 1)[None], dtype=np.float32)}

    def calibration(self):
        files = sorted((DATA / "imagenet_calib100").glob("*.jp*g"))[:CALIBRATION_SAMPLES]
        return [self.batch(crop(file)) for file in files]

    def predict(self, run):
        return np.array([int(run(self.batch(pixels)).argmax()) for pixels in self.pixels])


class PairTask:
    """Accuracy on MRPC's test set, in batches of pairs of similar length."""

    metric = "accuracy"
    output = "logits"

    def __init__(self, name, count=None):
        self.path = mrpc.cached()
        self.pairs, self.labels = mrpc.load("test")
        self.pairs, self.labels = self.pairs[:count], self.labels[:count]

    def calibration(self):
        pairs, _ = mrpc.load("train")
        return [mrpc.batch([pair]) for pair in pairs[:CALIBRATION_SAMPLES]]

    def predict(self, run, size=16):
        order = sorted(range(len(self.pairs)), key=lambda index: len(self.pairs[index][0]))
        classes = np.zeros(len(self.pairs), int)
        for start in range(0, len(order), size):
            chosen = order[start : start + size]
            classes[chosen] = run(mrpc.batch([self.pairs[index] for index in chosen])).argmax(1)
        return classes


def crop(file, side=224):
    """The middle of an image whose short side is 256 already."""
    from PIL import Image

    pixels = np.asarray(Image.open(file).convert("RGB"))
    top, left = ((size - side) // 2 for size in pixels.shape[:2])
    return pixels[top : top + side, left : left + side]


def input_names(path):
    import onnx

    graph = onnx.load(path, load_external_data=False).graph
    constants = {tensor.name for tensor in graph.initializer}
    return [value.name for value in graph.input if value.name not in constants]


def task(name, count=None):
    return PairTask(name, count) if name == "minilm-mrpc" else ImageTask(name, count or 1000)


# Engines: functions from inputs to the logits of one model


def output_of(task):
    return getattr(task, "output", None)


def kilter_runner(model, output=None):
    import kilter

    loaded = model if isinstance(model, kilter.Model) else kilter.load(model)
    return lambda inputs: pick(loaded.run(inputs), output)


def onnxruntime_runner(path, output=None):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    names = [value.name for value in session.get_outputs()]
    return lambda inputs: pick(dict(zip(names, session.run(None, inputs), strict=True)), output)


def openvino_runner(path, output=None):
    import openvino

    core = openvino.Core()
    compiled = core.compile_model(core.read_model(str(path)), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})

    def run(inputs):
        results = compiled(inputs)
        return pick({port.any_name: results[port] for port in compiled.outputs}, output)

    return run


def pick(outputs, name):
    return outputs[name] if name else next(iter(outputs.values()))


# Measuring


@dataclass
class Row:
    model: str
    configuration: str
    metric: str
    engine: str
    accuracy: float  # in percent
    agreement: float | None = None  # percent of samples where kilter chooses the same class
    note: str = ""


def percent(matches):
    return round(100 * float(np.mean(matches)), 2)


def evaluate(name, configurations, peers, count=None):
    """Rows for one network: FP32 first, then every configuration in every engine."""
    job = task(name, count)
    samples = job.calibration()
    output = output_of(job)
    rows = []

    def add(configuration, engine, classes, reference=None, note=""):
        agreement = percent(classes == reference) if reference is not None else None
        rows.append(
            Row(name, configuration, job.metric, engine, percent(classes == job.labels), agreement, note)
        )
        shown = f", agrees with kilter in {agreement:.1f} %" if agreement is not None else ""
        print(
            f"{name}: {configuration}, {engine}: {rows[-1].accuracy:.2f}{shown}", file=sys.stderr, flush=True
        )

    fp32 = job.predict(kilter_runner(job.path, output))
    add("FP32", "kilter", fp32)
    if peers:
        add("FP32", "onnxruntime", job.predict(onnxruntime_runner(job.path, output)), fp32)
    for configuration in configurations:
        add_configuration(add, job, name, samples, configuration, peers)
    if peers:
        own = {
            "ORT per-channel": lambda: quantized.onnxruntime_file(job.path, samples, name),
            "ORT per-tensor": lambda: quantized.onnxruntime_file(job.path, samples, name, per_channel=False),
        }
        for label, make in own.items():
            add(label, "onnxruntime", job.predict(onnxruntime_runner(make(), output)))
        file = quantized.nncf_file(job.path, samples, name, isinstance(job, PairTask))
        add("NNCF", "openvino", job.predict(openvino_runner(file, output)))
    return rows


def add_configuration(add, job, name, samples, configuration, peers):
    import kilter

    output = output_of(job)
    model = kilter.quantize(job.path, samples, **CONFIGURATIONS[configuration])
    classes = job.predict(kilter_runner(model, output))
    add(configuration, "kilter", classes, note="; ".join(model.report.notes))
    int8 = sum(entry.precision == "int8" for entry in model.report.operators)
    if int8 == 0:
        sys.exit(f"accuracy: {name}: nothing was quantized")
    if not peers:
        return
    file = quantized.target_file(f"{name}.{configuration.replace(', ', '-')}", ".onnx")
    model.save(file)
    add(configuration, "kilter, from the file", job.predict(kilter_runner(file, output)), classes)
    runtime = job.predict(onnxruntime_runner(file, output))
    vino = job.predict(openvino_runner(file, output))
    add(configuration, "onnxruntime", runtime, classes)
    add(
        configuration,
        "openvino",
        vino,
        classes,
        f"agrees with onnxruntime in {percent(vino == runtime):.1f} %",
    )


def table(rows):
    lines = [
        "| model | quantized | engine | accuracy % | to FP32 | agrees with kilter % | note |",
        "|---|---|---|---:|---:|---:|---|",
    ]
    fp32 = {row.model: row.accuracy for row in rows if row.configuration == "FP32"}
    for row in rows:
        agreement = "" if row.agreement is None else f"{row.agreement:.1f}"
        lines.append(
            f"| {row.model} | {row.configuration} | {row.engine} | {row.accuracy:.2f} |"
            f" {row.accuracy - fp32[row.model]:+.2f} | {agreement} | {row.note} |"
        )
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="*", metavar="MODEL", help=f"default: {' '.join(MODELS)}")
    parser.add_argument("--config", action="append", choices=CONFIGURATIONS, metavar="C", help="default: all")
    parser.add_argument("--count", type=int, metavar="N", help="evaluate on the first N samples only")
    parser.add_argument("--no-peers", action="store_true", help="leave ONNX Runtime and OpenVINO out")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write all rows here")
    arguments = parser.parse_args()
    if unknown := [name for name in arguments.models if name not in MODELS]:
        parser.error(f"unknown model '{unknown[0]}', expected some of {', '.join(MODELS)}")
    if not DATA.is_dir():
        sys.exit(f"accuracy: there is no folder {DATA}: set KILTER_DATA")
    os.environ.setdefault("NNCF_LOG_LEVEL", "ERROR")

    rows = []
    for name in arguments.models or MODELS:
        rows += evaluate(
            name, arguments.config or list(CONFIGURATIONS), not arguments.no_peers, arguments.count
        )
    print(table(rows))
    if arguments.json:
        arguments.json.write_text(json.dumps([asdict(row) for row in rows], indent=2) + "\n")


if __name__ == "__main__":
    main()
