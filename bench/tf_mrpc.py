#!/usr/bin/env python3
"""MiniLM on MRPC as a TensorFlow graph: FP32 and INT8, in TensorFlow and in kilter.

    build/venvs/tensorflow/bin/python bench/tf_mrpc.py [-o build/models/minilm-mrpc.pb]

The graph is that of examples/tensorflow/bert_squad/bert.py with the trained weights of bench/minilm.py. INT8 in kilter is what kilter.quantize makes of it
with 100 training pairs; in TensorFlow it is the GraphDef that this exports, and the one that kilter.tune finds when TensorFlow evaluates (1 % of accuracy, on
the first --tune test pairs). Figures are accuracy and F1 of the test pairs.
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path

import numpy as np

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "examples" / "tensorflow" / "bert_squad"))

import bert  # noqa: E402
import minilm  # noqa: E402
import tensorflow as tf  # noqa: E402

import kilter  # noqa: E402

DATA = Path(os.environ.get("KILTER_DATA") or ROOT.parent / "shared" / "data")
SIZE = bert.Size(layers=6, hidden=384, heads=12, length=128, gelu="erf")
NAMES = ("input_ids", "input_mask", "segment_ids")


def hugging_face_weights(trained: dict[str, np.ndarray]) -> bert.Weights:
    """Under the names of Google's code, which keeps matrices as [inputs, outputs]."""
    heads = {"output_weights": "classifier.weight", "output_bias": "classifier.bias"}
    endings = {"kernel": "weight", "gamma": "weight", "beta": "bias"}

    def weights(name: str, shape: tuple[int, ...]) -> np.ndarray:
        *scope, last = name.replace("layer_", "layer.").replace("/", ".").split(".")
        if name in heads:
            array = trained[heads[name]]
        elif last.endswith("embeddings"):
            array = trained[".".join([*scope, last, "weight"])]
        else:
            array = trained[".".join([*scope, endings.get(last, last)])]
        array = array.T if last == "kernel" else array
        if array.shape != tuple(shape):
            raise ValueError(f"{name} has the shape {array.shape}, expected {shape}")
        return np.ascontiguousarray(array)

    return weights


def build(path: Path) -> Path:
    """Writes the frozen graph."""
    graph_def = bert.classes_of_pairs(SIZE, hugging_face_weights(minilm.weights(DATA)))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(graph_def.SerializeToString(deterministic=True))
    return path


def pairs(split: str, batch_size: int, limit: int = 0) -> list[tuple[dict[str, np.ndarray], np.ndarray]]:
    """Inputs and labels of 'train' or 'test'."""
    settings = {
        "data_dir": str(DATA / "nlp" / f"msr_paraphrase_{split}.txt"),
        "vocab_file": str(DATA / "nlp" / "bert-base-uncased-vocab.txt"),
        "task": "mrpc",
        "max_seq_length": SIZE.length,
    }
    loader = kilter.data.Loader({"GLUE": settings}, batch_size=batch_size, limit=limit)
    return [
        (
            {name: array.astype(np.int32) for name, array in zip(NAMES, inputs, strict=True)},
            np.array([int(label["label"]) for label in labels]),
        )
        for inputs, labels in loader
    ]


def figures(run, batches) -> tuple[float, float]:
    """Accuracy and F1, in percent, of a function from inputs to logits."""
    said = np.concatenate([np.asarray(run(inputs)).argmax(1) for inputs, _ in batches])
    true = np.concatenate([labels for _, labels in batches])
    both = np.sum((said == 1) & (true == 1))
    return 100 * float(np.mean(said == true)), 100 * float(2 * both / (np.sum(said == 1) + np.sum(true == 1)))


def in_tensorflow(graph):
    """A function that runs a graph, or the file of one, on TensorFlow."""
    session = tf.compat.v1.Session(graph=kilter.tensorflow.make_graph(graph))
    return lambda inputs: session.run("logits:0", {f"{name}:0": array for name, array in inputs.items()})


def in_kilter(model):
    return lambda inputs: model.run(inputs)["logits"]


def calibration() -> list[dict[str, np.ndarray]]:
    return [inputs for inputs, _ in pairs("train", 10, 100)]


def quantized(path: Path, int8: Path):
    """INT8 for kilter; its GraphDef goes to `int8`."""
    small = kilter.quantize(path, calibration())
    report = small.export(int8)
    integers = sum(entry.precision == "int8" for entry in report.operators)
    print(f"INT8 GraphDef: {integers} products on integers, {int8.stat().st_size / 1e6:.1f} MB")
    return small


def tuned(path: Path, count: int):
    """What kilter.tune finds while TensorFlow evaluates."""
    batches = pairs("test", 75, count)
    result = kilter.tune(
        kilter.tensorflow.make_graph(path),
        calibration(),
        evaluate=lambda graph: figures(in_tensorflow(graph), batches)[0],
        progress=True,
    )
    print(result)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "build" / "models" / "minilm-mrpc.pb")
    parser.add_argument("--pairs", type=int, default=0, help="test pairs to look at (default: all)")
    parser.add_argument(
        "--tune", type=int, default=0, metavar="PAIRS", help="tune in TensorFlow, on so many test pairs"
    )
    args = parser.parse_args()
    path = build(args.output)
    print(f"{path}: {path.stat().st_size / 1e6:.1f} MB")
    test = pairs("test", 75, args.pairs)
    runs = {
        "TensorFlow FP32": lambda: in_tensorflow(path),
        "kilter FP32": lambda: in_kilter(kilter.load(path)),
    }
    with tempfile.TemporaryDirectory() as folder:
        int8 = Path(folder) / "int8.pb"
        small = quantized(path, int8)
        runs["kilter INT8"] = lambda: in_kilter(small)
        runs["TensorFlow INT8"] = lambda: in_tensorflow(int8)
        if args.tune:
            graph = tuned(path, args.tune).model
            runs["TensorFlow tuned"] = lambda: in_tensorflow(graph)
        for name, run in runs.items():
            accuracy, f1 = figures(run(), test)
            print(f"{name:16} accuracy {accuracy:.1f} %  F1 {f1:.1f}", flush=True)


if __name__ == "__main__":
    main()
