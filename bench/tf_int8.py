#!/usr/bin/env python3
"""Measures TensorFlow on FP32 graphs and on the INT8 graphs that kilter makes of them, with kilter's own engine beside.

Runs in the environment of TensorFlow (tools/framework_env.sh tensorflow). All four take turns, one run each, and ratios are
formed between runs of the same round; the table shows medians.

    build/venvs/tensorflow/bin/python bench/tf_int8.py                     # all networks, batch 1 and 16
    build/venvs/tensorflow/bin/python bench/tf_int8.py resnet50 --batch 16 --rounds 20 --json result.json
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "frameworks" / "tensorflow"))

import tensorflow as tf

import kilter
import networks
from kilter.graph_converter import GraphConverter

DEFAULT = ["resnet50", "resnet50v1_5", "resnet101", "mobilenet_v1", "inception_v3"]
# Engines' threads spin for a while after their last run; the next one starts when they are asleep.
SETTLE_SECONDS = 0.25


def session(path, outputs):
    graph_def = tf.compat.v1.GraphDef()
    graph_def.ParseFromString(Path(path).read_bytes())
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(graph_def, name="")
    running = tf.compat.v1.Session(graph=graph)
    return lambda feeds: running.run(outputs, feeds)


def engines(network, folder):
    """Functions that run the network on feeds by tensor name."""
    fp32, int8 = folder / "fp32.pb", folder / "int8.pb"
    fp32.write_bytes(network.graph_def.SerializeToString())
    inputs = [name.removesuffix(":0") for name in network.feeds]
    outputs = [name.removesuffix(":0") for name in network.outputs]
    converter = GraphConverter(fp32, int8, inputs, outputs, per_channel=True)
    converter.samples = [list(network.feeds.values())]
    report = converter.convert()
    model = kilter.load(str(fp32), inputs=inputs, outputs=outputs)
    small = kilter.quantize(model, calibration=[dict(zip(inputs, network.feeds.values(), strict=True))])

    def native(runner):
        return lambda feeds: runner.run({name.removesuffix(":0"): array for name, array in feeds.items()})

    return report, {
        "tensorflow fp32": session(fp32, network.outputs),
        "tensorflow int8": session(int8, network.outputs),
        "kilter fp32": native(model),
        "kilter int8": native(small),
    }


def measure(runners, feeds, rounds):
    """Seconds of every run, by engine."""
    for run in runners.values():
        run(feeds)
        run(feeds)
    seconds = {name: [] for name in runners}
    for _ in range(rounds):
        for name, run in runners.items():
            time.sleep(SETTLE_SECONDS)
            run(feeds)  # wakes the threads
            start = time.perf_counter()
            run(feeds)
            seconds[name].append(time.perf_counter() - start)
    return seconds


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("networks", nargs="*", default=DEFAULT)
    parser.add_argument("--batch", type=int, action="append")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    results = []
    print(
        f"{'network':<14}{'batch':>6}  "
        + "".join(
            f"{name:>17}" for name in ("tensorflow fp32", "tensorflow int8", "kilter fp32", "kilter int8")
        )
        + f"{'tf int8/fp32':>14}"
    )
    for name in arguments.networks:
        with tempfile.TemporaryDirectory() as folder:
            report, runners = engines(networks.NETWORKS[name](), Path(folder))
            for batch in arguments.batch or [1, 16]:
                feeds = networks.NETWORKS[name](batch=batch).feeds
                seconds = measure(runners, feeds, arguments.rounds)
                medians = {engine: statistics.median(values) for engine, values in seconds.items()}
                pairs = zip(seconds["tensorflow fp32"], seconds["tensorflow int8"], strict=True)
                ratio = statistics.median(before / after for before, after in pairs)
                print(
                    f"{name:<14}{batch:>6}  "
                    + "".join(f"{value * 1e3:>14.1f} ms" for value in medians.values())
                    + f"{ratio:>13.2f}x",
                    flush=True,
                )
                results.append(
                    {
                        "network": name,
                        "batch": batch,
                        "ms": {k: v * 1e3 for k, v in medians.items()},
                        "ratio": ratio,
                        "quantize": report.quantize,
                        "dequantize": report.dequantize,
                    }
                )
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
