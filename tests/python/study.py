"""A small network that is hard to quantize in known places, its data, and ways to run and read studies."""

import json
import os
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from conftest import make_model

COMMAND = Path(sys.executable).with_name("kilter")
HARD = (4, 8)  # convolutions whose input has one channel far larger than the others


def network(layers=12, channels=8, hard=HARD, factor=1000.0):
    """A chain of convolutions with a classifier of ten classes; every third one adds what came three before.

    What a hard one reads has one channel that is `factor` times larger than the others, which its weights undo:
    one scale for all channels leaves nothing of the others.
    """
    random = np.random.default_rng(5)
    nodes, constants = [], []

    def constant(name, values):
        constants.append(numpy_helper.from_array(np.asarray(values, np.float32), name))
        return name

    def add(op, inputs, output, name, **attributes):
        nodes.append(helper.make_node(op, inputs, [output], name=name, **attributes))
        return output

    value, kept, width = "image", None, 3
    for layer in range(layers):
        name = f"conv{layer}"
        weights = random.normal(0, (2 / (9 * width)) ** 0.5, (channels, width, 3, 3))
        if layer in hard:
            weights[:, 0] /= factor
        inputs = [
            value,
            constant(f"{name}.w", weights),
            constant(f"{name}.b", random.normal(0, 0.1, channels)),
        ]
        value, width = add("Conv", inputs, f"{name}.out", name, pads=[1, 1, 1, 1]), channels
        if layer + 1 in hard:
            value = add("Sigmoid", [value], f"{name}.gate", f"sigmoid{layer}")
            scales = np.ones((1, channels, 1, 1))
            scales[0, 0] = factor
            value = add("Mul", [value, constant(f"{name}.scale", scales)], f"{name}.scaled", f"scale{layer}")
        else:
            value = add("Relu", [value], f"{name}.relu", f"relu{layer}")
        if layer % 3 == 2:
            if kept is not None and layer + 1 not in hard:
                value = add("Add", [value, kept], f"{name}.sum", f"add{layer}")
            kept = value if layer + 1 not in hard else None
    value = add("GlobalAveragePool", [value], "pooled", "pool")
    value = add("Flatten", [value], "flat", "flatten")
    weights = [constant("head.w", random.normal(0, 1, (channels, 10))), constant("head.b", np.zeros(10))]
    add("Gemm", [value, *weights], "logits", "head")
    return make_model(
        nodes,
        [("image", TensorProto.FLOAT, ["batch", 3, 8, 8])],
        [("logits", TensorProto.FLOAT, ["batch", 10])],
        constants,
        opset=17,
    )


# Of kilter.tune: a search whose course does not depend on the clock, and one thread that busy neighbours do not hold up.
SIZE = {"objective": "modelsize", "threads": 1}


def logits(model, images):
    """What ONNX Runtime computes."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        str(model) if isinstance(model, Path) else model, options, providers=["CPUExecutionProvider"]
    )
    return session.run(None, {"image": images})[0]


class Study:
    """A model, 160 images and their labels in a folder, and the command run there."""

    def __init__(self, folder, samples=160, **how):
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        model = network(**how)
        random = np.random.default_rng(11)
        images = random.normal(0, 1, (4 * samples, 3, 8, 8)).astype(np.float32)
        outputs = logits(model.SerializeToString(), images)
        # Standardized logits make all classes come up; samples near a border say more about rounding than about a plan.
        head = next(entry for entry in model.graph.initializer if entry.name == "head.w")
        bias = next(entry for entry in model.graph.initializer if entry.name == "head.b")
        mean, deviation = outputs.mean(0), outputs.std(0)
        head.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(head) / deviation, "head.w"))
        bias.CopyFrom(numpy_helper.from_array((-mean / deviation).astype(np.float32), "head.b"))
        outputs = (outputs - mean) / deviation
        ranked = np.sort(outputs, 1)
        clear = np.argsort(ranked[:, -2] - ranked[:, -1])[:samples]
        clear.sort()
        self.images, self.labels = images[clear], outputs[clear].argmax(1).astype(np.int64)
        onnx.save(model, folder / "model.onnx")
        np.save(folder / "images.npy", self.images)
        np.save(folder / "labels.npy", self.labels)

    def arguments(self, *more, output="int8.onnx"):
        """Of a search; one thread measures latency, so that busy neighbours do not make it last."""
        return [
            *("tune", "model.onnx", "--data", "images.npy", "--labels", "labels.npy", "-o", output),
            *("--threads", "1", *map(str, more)),
        ]

    def run(self, *arguments, **how):
        return subprocess.run(
            [COMMAND, *map(str, arguments)],
            cwd=self.folder,
            env=os.environ | {"GOMP_SPINCOUNT": "0"},
            capture_output=True,
            text=True,
            timeout=60,
            **how,
        )

    def tune(self, *more, **how):
        return self.run(*self.arguments(*more), **how)

    def result(self, *more):
        done = self.tune("--json", *more)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def accuracy(self, name="int8.onnx"):
        """Share of right answers that ONNX Runtime gives."""
        return float((logits(self.folder / name, self.images).argmax(1) == self.labels).mean())


def batches(study, size=20):
    """(images, labels) of a study, as kilter.tune takes them."""
    images, labels = study.images, study.labels
    return [(images[i : i + size], labels[i : i + size]) for i in range(0, len(images), size)]


def records(workspace):
    """What a journal holds; every line must be whole."""
    first, *lines = (Path(workspace) / "study.journal").read_text().splitlines()
    assert first == "kilter journal 1"
    entries = []
    for line in lines:
        checksum, text = line[:8], line[9:]
        assert int(checksum, 16) == zlib.crc32(text.encode())
        entries.append(json.loads(text))
    return entries


def trials(workspace):
    """The trials of a journal without what depends on the clock."""
    entries = [entry for entry in records(workspace) if entry["type"] == "trial"]
    for entry in entries:
        for key in ("elapsed",):
            entry.pop(key, None)
        for key in ("seconds", "milliseconds"):
            entry["outcome"].pop(key)
    return entries
