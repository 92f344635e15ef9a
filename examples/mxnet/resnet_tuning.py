#!/usr/bin/env python3
"""Makes one model with each method: FP32, fused, MXNet's own quantization in four ways, and kilter's strategies.

resnet_measurement.py measures what this writes: PREFIX-symbol.json and PREFIX-0000.params for MXNet, PREFIX.onnx for kilter.
Every strategy has a folder of its own for its history, from which `kilter recover` builds any of its trials again.
"""

import time
from pathlib import Path

import mxnet as mx
from mxnet.contrib.quantization import quantize_net_v2

import custom_strategy  # noqa: F401, registers mycustom
import imagenet
import kilter

FOLDER = Path(__file__).parent
STRATEGIES = ("basic", "mse", "mycustom", "bayesian", "auto")


def write_float(block, data, prefix, fused):
    block.hybridize()
    for x, _ in data:
        block(x).wait_to_read()
        break
    block.export(prefix)
    if fused:
        symbol = mx.sym.load(f"{prefix}-symbol.json").get_backend_symbol("MKLDNN")
        symbol.save(f"{prefix}-symbol.json")


def write_native(block, data, prefix, mode, calibration):
    inputs = [x for x, _ in data]
    iterator = mx.io.NDArrayIter(mx.nd.concat(*inputs, dim=0), None, inputs[0].shape[0])
    quantized = quantize_net_v2(block, quantize_mode=mode, calib_mode=calibration, calib_data=iterator)
    quantized.hybridize()
    quantized(inputs[0]).wait_to_read()
    quantized.export(prefix)


def tune(block, data, prefix, strategy, options):
    result = kilter.tune(
        block,
        calibration=data,
        evaluate=imagenet.accuracy_on(data),
        config=FOLDER / "resnet50v2_mse.yaml",
        strategy=strategy,
        max_trials=options.max_trials,
        workspace=f"{prefix}_study",
    )
    print(result)
    result.model.export(prefix)
    result.save(f"{prefix}.onnx")


def main():
    parser = imagenet.parser(__doc__.splitlines()[0])
    parser.add_argument("--output", default="models", help="folder to write to (%(default)s)")
    parser.add_argument("--max-trials", type=int, default=500, help="of every strategy (%(default)s)")
    options = parser.parse_args()
    data = imagenet.images(options)
    Path(options.output).mkdir(parents=True, exist_ok=True)
    ways = [
        ("fp32", lambda block, prefix: write_float(block, data, prefix, fused=False)),
        ("fp32_fused", lambda block, prefix: write_float(block, data, prefix, fused=True)),
    ]
    for mode in ("full", "smart"):
        for calibration in ("naive", "entropy"):
            ways.append(
                (
                    f"int8_{mode}_{calibration}",
                    lambda block, prefix, mode=mode, calibration=calibration: write_native(
                        block, data, prefix, mode, calibration
                    ),
                )
            )
    for strategy in STRATEGIES:
        ways.append(
            (
                f"int8_kilter_{strategy}",
                lambda block, prefix, strategy=strategy: tune(block, data, prefix, strategy, options),
            )
        )
    for number, (name, make) in enumerate(ways, 1):
        block = imagenet.network(options, "resnet50_v2")
        start = time.perf_counter()
        make(block, str(Path(options.output) / f"resnet50_v2_{number:02}_{name}"))
        print(f"{name} made in {time.perf_counter() - start:.2f} s", flush=True)


if __name__ == "__main__":
    main()
