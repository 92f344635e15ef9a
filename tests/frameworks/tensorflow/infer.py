"""An inference script as users have one: runs a frozen graph on a few batches of arrays.

python infer.py --input_graph=graph.pb --feeds=feeds.npz --outputs=predict:0 [--batches=4] [--save=outputs.npz]
"""

import argparse
import os
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import tensorflow as tf


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--input_graph", required=True)
    parser.add_argument("--feeds", required=True)
    parser.add_argument("--outputs", required=True)
    parser.add_argument("--batches", type=int, default=1)
    parser.add_argument("--save")
    arguments = parser.parse_args()
    graph_def = tf.compat.v1.GraphDef()
    graph_def.ParseFromString(Path(arguments.input_graph).read_bytes())
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(graph_def, name="")
    feeds = np.load(arguments.feeds)
    outputs = arguments.outputs.split(",")
    with tf.compat.v1.Session(graph=graph) as session:
        for _ in range(arguments.batches):
            results = session.run(outputs, {name: feeds[name] for name in feeds.files})
    if arguments.save:
        np.savez(arguments.save, **dict(zip(outputs, results, strict=True)))


if __name__ == "__main__":
    main()
