#!/usr/bin/env python3
"""Shows why runtimes that do the same integer arithmetic do not choose the same class for every image.

The exported file runs in ONNX Runtime without any rewriting (as the file is written), in ONNX Runtime as it comes,
and in kilter; every quantized activation is compared. A sum that falls on the border of two steps is rounded either
way, by the order of float operations; the table shows how such single steps spread from layer to layer.

    KILTER_DATA=... python bench/agreement.py                    # MobileNetV2
    KILTER_DATA=... python bench/agreement.py efficientnet-lite0 --images 8
"""

import argparse
import tempfile
from itertools import combinations
from pathlib import Path

import numpy as np
import onnx
import onnxruntime

import accuracy
import kilter


def with_quantized_values(path, out):
    """The file with every quantized activation as an output; their names, in order."""
    model = onnx.load(path)
    names = [node.output[0] for node in model.graph.node if node.op_type == "QuantizeLinear"]
    for name in names:
        model.graph.output.append(onnx.helper.make_tensor_value_info(name, onnx.TensorProto.UINT8, None))
    onnx.save(model, out)
    return names


def onnxruntime_runner(path, level):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = level
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    names = [value.name for value in session.get_outputs()]
    return lambda inputs: dict(zip(names, session.run(None, inputs)))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", nargs="?", default="mobilenetv2-7")
    parser.add_argument("--images", type=int, default=4, metavar="N")
    arguments = parser.parse_args()
    job = accuracy.task(arguments.model, arguments.images)
    levels = onnxruntime.GraphOptimizationLevel
    with tempfile.TemporaryDirectory() as folder:
        plain, watched = Path(folder) / "int8.onnx", Path(folder) / "watched.onnx"
        kilter.quantize(job.path, job.calibration()).save(plain)
        names = with_quantized_values(plain, watched)
        runners = {
            "as written": onnxruntime_runner(watched, levels.ORT_DISABLE_ALL),
            "onnxruntime": onnxruntime_runner(watched, levels.ORT_ENABLE_ALL),
            "kilter": kilter.load(watched).run,
        }
        results = [{who: run(job.batch(p)) for who, run in runners.items()} for p in job.pixels]
    pairs = list(combinations(runners, 2))
    print("elements that differ, in percent (largest difference in steps)")
    print("value".ljust(24) + "".join(f"{a} / {b}".rjust(26) for a, b in pairs))
    for name in names:
        line = name.ljust(24)
        for a, b in pairs:
            steps = [np.abs(r[a][name].astype(int) - r[b][name].astype(int)) for r in results]
            share = 100 * np.mean([np.mean(s != 0) for s in steps])
            line += f"{share:.3f} ({max(s.max() for s in steps)})".rjust(26)
        print(line)


if __name__ == "__main__":
    main()
