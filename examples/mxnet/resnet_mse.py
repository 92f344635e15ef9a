#!/usr/bin/env python3
"""Tunes ResNet-50 v2 as resnet50v2_mse.yaml says, writes the result for MXNet and shows what stays in floating point."""

from pathlib import Path

import imagenet
from kilter.experimental import Quantization

FOLDER = Path(__file__).parent


def main():
    parser = imagenet.parser(__doc__)
    parser.add_argument(
        "--output", default="resnet50_v2_mse", help="prefix of the files to write (%(default)s)"
    )
    options = parser.parse_args()
    data = imagenet.images(options)
    quantizer = Quantization(str(FOLDER / "resnet50v2_mse.yaml"))
    quantizer.model = imagenet.network(options, "resnet50_v2")
    quantizer.calib_dataloader = data
    quantizer.eval_func = imagenet.accuracy_on(data)
    quantized = quantizer.fit()
    print(quantized.result)
    quantized.model.export(options.output)
    print(quantizer.strategy.best_qmodel.q_config["quant_cfg"])


if __name__ == "__main__":
    main()
