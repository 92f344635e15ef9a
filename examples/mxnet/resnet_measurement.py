#!/usr/bin/env python3
"""Measures the models that resnet_tuning.py wrote: those for MXNet in MXNet, those for kilter in kilter."""

import time
from pathlib import Path

import mxnet as mx

import imagenet
import kilter


def in_mxnet(path):
    return imagenet.load(str(path).removesuffix("-symbol.json"))


def in_kilter(path):
    model = kilter.load(path)
    return lambda x: mx.nd.array(model(x.asnumpy()))


def measure(model, data):
    """Top-1, top-5, batches and seconds."""
    top1, top5 = mx.metric.Accuracy(), mx.metric.TopKAccuracy(5)
    seconds, batches = 0.0, 0
    for x, label in data:
        start = time.perf_counter()
        output = model(x)
        output.wait_to_read()
        seconds += time.perf_counter() - start
        batches += 1
        top1.update(label, output)
        top5.update(label, output)
    return top1.get()[1], top5.get()[1], batches, seconds


def main():
    parser = imagenet.parser(__doc__)
    parser.set_defaults(batches=0)
    parser.add_argument("--models", default="models", help="folder of the models (%(default)s)")
    options = parser.parse_args()
    data = imagenet.images(options)
    for path in sorted(Path(options.models).iterdir()):
        if path.name.endswith("-symbol.json"):
            name, model = path.name.removesuffix("-symbol.json"), in_mxnet(path)
        elif path.suffix == ".onnx":
            name, model = f"{path.stem} in kilter", in_kilter(path)
        else:
            continue
        top1, top5, batches, seconds = measure(model, data)
        print(
            f"{name} Top1 Accuracy: {top1:.4f} Top5 Accuracy: {top5:.4f} from {batches} batches in {seconds:.2f} s"
        )


if __name__ == "__main__":
    main()
