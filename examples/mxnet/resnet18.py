#!/usr/bin/env python3
"""Tunes ResNet-18 as cnn.yaml says: on integers altogether it is good enough, so the first trial ends the search."""

from pathlib import Path

import mxnet as mx

import imagenet
from kilter.experimental import Quantization

FOLDER = Path(__file__).parent
MEAN_STD = {
    "mean_r": 123.68,
    "mean_g": 116.779,
    "mean_b": 103.939,
    "std_r": 58.393,
    "std_g": 57.12,
    "std_b": 57.375,
}


def main():
    parser = imagenet.parser(__doc__)
    parser.set_defaults(batch_size=16, batches=10)
    parser.add_argument(
        "--output", default="resnet18_int8", help="prefix of the files to write (%(default)s)"
    )
    options = parser.parse_args()
    data = mx.io.ImageRecordIter(
        path_imgrec=options.rec,
        batch_size=options.batch_size,
        data_shape=(3, options.crop, options.crop),
        rand_crop=False,
        rand_mirror=False,
        shuffle=False,
        **MEAN_STD,
    )
    data.batch_size = options.batch_size

    def eval_func(model):
        data.reset()
        metric = mx.metric.Accuracy()
        for count, batch in enumerate(data):
            if options.batches and count >= options.batches:
                break
            outputs = model.forward(batch.data[0])
            metric.update(batch.label[0], outputs)
        return metric.get()[1]

    quantizer = Quantization(str(FOLDER / "cnn.yaml"))
    quantizer.model = imagenet.network(options, "resnet18_v1")
    quantizer.calib_dataloader = data
    quantizer.eval_func = eval_func
    quantized = quantizer.fit()
    print(quantized.result)
    quantized.model.export(options.output)


if __name__ == "__main__":
    main()
