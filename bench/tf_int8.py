#!/usr/bin/env python3
"""Measures TensorFlow on FP32 graphs and on the INT8 graphs that kilter makes of them, with kilter's own engine beside.

Runs in the environment of TensorFlow (tools/framework_env.sh tensorflow). The networks have their full size and random weights. All engines take
turns, one run each, and ratios are formed between runs of the same round; the table shows medians. Of detectors kilter runs the parts between
their loops (networks.py names them), TensorFlow the whole graph.

Before that, results are compared: kilter's FP32 with TensorFlow's (largest difference, relative to the largest value), and TensorFlow on the INT8
graph with kilter's own INT8 (root mean square of the difference, relative to the spread of the FP32 values; the same for each of them against
FP32). Too large differences end the program with status 1.

    build/venvs/tensorflow/bin/python bench/tf_int8.py                     # all networks, batch 1 and, of classifiers, 16
    build/venvs/tensorflow/bin/python bench/tf_int8.py resnet50 --batch 16 --rounds 20 --markdown result.md
    build/venvs/tensorflow/bin/python bench/tf_int8.py --rounds 0          # only compare
"""

import argparse
import json
import os
import statistics
import sys
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "frameworks" / "tensorflow"))

import numpy as np
import tensorflow as tf

import kilter
import networks
from kilter.graph_converter import Observations, QuantizableGraph

CLASSIFIERS = ["resnet50", "resnet50v1_5", "resnet101", "mobilenet_v1", "inception_v3"]
DETECTORS = ["ssd_mobilenet", "ssd_resnet34", "faster_rcnn", "rfcn"]
# Engines' threads spin for a while after their last run; the next one starts when they are asleep.
SETTLE_SECONDS = 0.25
MOST_FP32_ERROR = 1e-4
MOST_INT8_DISTANCE = 0.3
HEADINGS = (
    *("network", "batch", "TensorFlow FP32", "TensorFlow INT8", "", "kilter FP32", "kilter INT8", ""),
    *("FP32 error", "INT8 distance", "TF INT8 to FP32", "kilter INT8 to FP32"),
)


class Session:
    """A graph in TensorFlow."""

    def __init__(self, graph_def):
        with tf.Graph().as_default() as graph:
            tf.import_graph_def(graph_def, name="")
        self.session = tf.compat.v1.Session(graph=graph)

    def run(self, outputs, feeds):
        return self.session.run(outputs, feeds)


def bare(name):
    return name.removesuffix(":0")


def parts_of(network):
    """(inputs, outputs) of what kilter runs: all of a classifier up to its logits."""
    if network.islands:
        return network.islands
    last = next(node for node in network.graph_def.node if node.name == bare(network.outputs[0]))
    logits = f"{last.input[0]}:0" if last.op == "Softmax" else network.outputs[0]
    return [(list(network.feeds), [logits])]


class Part:
    """What kilter runs of a network, in FP32 and INT8, on what TensorFlow computes before it."""

    def __init__(self, path, inputs, outputs, values):
        self.inputs, self.outputs = inputs, outputs
        self.fp32 = kilter.load(path, inputs=[*map(bare, inputs)], outputs=[*map(bare, outputs)])
        self.int8 = kilter.quantize(self.fp32, calibration=[self.feeds(values)])

    def feeds(self, values):
        return {bare(name): np.asarray(values[name]) for name in self.inputs}

    def run(self, model, values):
        found = model.run(self.feeds(values))
        return {name: found[bare(name)] for name in self.outputs}


def quantized(network, outputs, feeds):
    """The INT8 GraphDef, calibrated on one batch that TensorFlow runs."""
    graph = QuantizableGraph(
        network.graph_def.SerializeToString(), [*map(bare, feeds)], [bare(name) for name in outputs]
    )
    names = [name if ":" in name else f"{name}:0" for name in graph.tensors]
    seen = Observations(graph.tensors)
    values = Session(tf.compat.v1.GraphDef.FromString(graph.fp32())).run(names, feeds)
    for name, value in zip(graph.tensors, values, strict=True):
        seen.add(name, value)
    written = graph.write({}, seen.stats())
    return tf.compat.v1.GraphDef.FromString(written.graph), written


def relative_error(found, expected):
    return float(np.abs(found - expected).max() / max(np.abs(expected).max(), 1e-12))


def distance(found, other, spread):
    return float(np.sqrt(np.mean((np.asarray(found, np.float64) - other) ** 2)) / max(spread, 1e-12))


class Contest:
    """All engines on one network."""

    def __init__(self, name, folder):
        self.network = networks.NETWORKS[name]()
        path = folder / f"{name}.pb"
        path.write_bytes(self.network.graph_def.SerializeToString())
        parts = parts_of(self.network)
        self.between = sorted({tensor for inputs, outputs in parts for tensor in (*inputs, *outputs)})
        wanted = [*self.network.outputs, *(name for name in self.between if name not in self.network.feeds)]
        int8, self.written = quantized(self.network, wanted, self.network.feeds)
        self.before, self.after = Session(self.network.graph_def), Session(int8)
        values = self.values(self.before, self.network.feeds)
        self.parts = [Part(str(path), *part, values) for part in parts]

    def values(self, session, feeds):
        fetched = [name for name in self.between if name not in feeds]
        return {**feeds, **dict(zip(fetched, session.run(fetched, feeds), strict=True))}

    def compare(self):
        """The largest FP32 error of all outputs, and the largest distances of INT8."""
        feeds = self.network.feeds
        expected = self.values(self.before, feeds)
        integers = self.values(self.after, feeds)
        errors, between, theirs, ours = [], [], [], []
        for number, part in enumerate(self.parts):
            fp32, int8 = part.run(part.fp32, expected), part.run(part.int8, expected)
            for name in part.outputs:
                errors.append(relative_error(fp32[name], expected[name]))
                spread = np.std(expected[name])
                ours.append(distance(int8[name], expected[name], spread))
                if number == 0:  # what later parts read depends on which boxes survived before
                    between.append(distance(integers[name], int8[name], spread))
                    theirs.append(distance(integers[name], expected[name], spread))
        return {"fp32": max(errors), "between": max(between), "theirs": max(theirs), "ours": max(ours)}

    def engines(self, feeds):
        """Functions that run the network once."""
        outputs = self.network.outputs
        values = self.values(self.before, feeds)
        return {
            "tensorflow fp32": lambda: self.before.run(outputs, feeds),
            "tensorflow int8": lambda: self.after.run(outputs, feeds),
            "kilter fp32": lambda: [part.run(part.fp32, values) for part in self.parts],
            "kilter int8": lambda: [part.run(part.int8, values) for part in self.parts],
        }


def measure(runners, rounds):
    """Seconds of every run, by engine."""
    for run in runners.values():
        run()
    seconds = {name: [] for name in runners}
    for _ in range(rounds):
        for name, run in runners.items():
            time.sleep(SETTLE_SECONDS)
            run()  # wakes the threads
            start = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - start)
    return seconds


def ratio(seconds, before, after):
    pairs = zip(seconds[before], seconds[after], strict=True)
    return statistics.median(one / other for one, other in pairs)


def row(result):
    cells = [result["network"], str(result["batch"])]
    for engine in ("tensorflow", "kilter"):
        if result["ms"]:
            cells += [f"{result['ms'][f'{engine} {kind}']:.1f} ms" for kind in ("fp32", "int8")]
            cells.append(f"{result['ratio'][engine]:.2f}x")
        else:
            cells += ["", "", ""]
    same = result["results"]
    cells += [f"{same['fp32']:.1e}", *(f"{same[name]:.3f}" for name in ("between", "theirs", "ours"))]
    return "| " + " | ".join(cells) + " |"


def compete(name, batches, rounds, folder):
    """One result for every batch."""
    contest = Contest(name, folder)
    same = contest.compare()
    for batch in batches:
        feeds = networks.NETWORKS[name](batch=batch).feeds if batch > 1 else contest.network.feeds
        seconds = measure(contest.engines(feeds), rounds) if rounds > 0 else {}
        yield {
            "network": name,
            "batch": batch,
            "ms": {engine: statistics.median(values) * 1e3 for engine, values in seconds.items()},
            "ratio": {
                engine: ratio(seconds, f"{engine} fp32", f"{engine} int8")
                for engine in ("tensorflow", "kilter")
                if seconds
            },
            "results": same,
            "quantize": contest.written.quantize,
            "dequantize": contest.written.dequantize,
        }


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "networks", nargs="*", help=f"default: {', '.join(CLASSIFIERS + DETECTORS)}; also bert"
    )
    parser.add_argument(
        "--batch", type=int, action="append", help="default: 1 and 16; detectors always run one image"
    )
    parser.add_argument("--rounds", type=int, default=10, help="0: compare results only")
    parser.add_argument("--json", type=Path, help="write the results here")
    parser.add_argument("--markdown", type=Path, help="write the table here")
    parser.add_argument("--folder", type=Path, default=Path("build/tf_int8"), help="for the graphs")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    results, lines = [], ["| " + " | ".join(HEADINGS) + " |", "|" + "---|" * len(HEADINGS)]
    print(*lines, sep="\n", flush=True)
    for name in arguments.networks or CLASSIFIERS + DETECTORS:
        batches = [1] if name in DETECTORS else arguments.batch or [1, 16]
        for result in compete(name, batches, arguments.rounds, arguments.folder):
            results.append(result)
            lines.append(row(result))
            print(lines[-1], flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=2) + "\n")
    if arguments.markdown:
        arguments.markdown.write_text("\n".join(lines) + "\n")
    different = [
        result["network"]
        for result in results
        if result["results"]["fp32"] > MOST_FP32_ERROR or result["results"]["between"] > MOST_INT8_DISTANCE
    ]
    if different:
        sys.exit(f"results differ too much: {', '.join(dict.fromkeys(different))}")


if __name__ == "__main__":
    main()
