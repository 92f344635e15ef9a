"""What the scripts in this folder share: the network, the images of a RecordIO file, and how good a model is on them."""

import argparse

import mxnet as mx
from mxnet.gluon.data.vision import ImageRecordDataset, transforms
from mxnet.gluon.model_zoo import vision


def parser(description):
    made = argparse.ArgumentParser(description=description)
    made.add_argument("--rec", default="imagenet/rec/val.rec", help="RecordIO file with images (%(default)s)")
    made.add_argument("--batch-size", type=int, default=64, help="images of one run (%(default)s)")
    made.add_argument("--batches", type=int, default=9, help="how many are read; 0: all (%(default)s)")
    made.add_argument("--network", help="prefix of a checkpoint, instead of Gluon's pretrained network")
    made.add_argument(
        "--resize", type=int, default=256, help="size before the centre is cut out (%(default)s)"
    )
    made.add_argument("--crop", type=int, default=224, help="size of the centre (%(default)s)")
    made.add_argument(
        "--mean", type=numbers, default=(0.485, 0.456, 0.406), help="of each channel, with commas"
    )
    made.add_argument(
        "--std", type=numbers, default=(0.229, 0.224, 0.225), help="of each channel, with commas"
    )
    return made


def numbers(text):
    return tuple(float(part) for part in text.split(","))


def images(options):
    """Batches of (images, labels). They are read many times, so they are prepared once."""
    dataset = ImageRecordDataset(options.rec)
    if options.batches:
        dataset = dataset.take(min(len(dataset), options.batches * options.batch_size))
    transform = transforms.Compose(
        [
            transforms.Resize(options.resize),
            transforms.CenterCrop(options.crop),
            transforms.ToTensor(),
            transforms.Normalize(mean=options.mean, std=options.std),
        ]
    )
    loader = mx.gluon.data.DataLoader(
        dataset.transform_first(transform, lazy=False), options.batch_size, shuffle=False
    )
    loader.batch_size = options.batch_size
    return loader


def network(options, name):
    if options.network is None:
        return getattr(vision, name)(pretrained=True)
    return load(options.network)


def load(prefix):
    """A model of files PREFIX-symbol.json and PREFIX-0000.params."""
    return mx.gluon.SymbolBlock.imports(f"{prefix}-symbol.json", ["data"], f"{prefix}-0000.params")


def accuracy_on(data):
    """The function that a search asks how good a model is."""

    def evaluate(model):
        metric = mx.metric.Accuracy()
        for x, label in data:
            metric.update(label, model(x))
        return metric.get()[1]

    return evaluate
