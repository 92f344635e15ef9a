"""A stand-in for MXNet: as much of it as the code of its documentation touches, and a bridge, so that this code runs as it is.

The functions of documents.py take the module `mx`: what they do here with this one, tests of the real bridge can do with MXNet.
"""

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np

import kilter


class NDArray:
    """A tensor that is no NumPy array, and does not pretend to be one."""

    def __init__(self, array):
        self._array = array

    def as_in_context(self, context):
        return self

    def asnumpy(self):
        return self._array


class Block:
    """A network: an ONNX file that runs on tensors."""

    def __init__(self, engine, path=None):
        self.engine, self.path = engine, path

    def forward(self, x):
        return NDArray(self.engine(x.asnumpy()))

    __call__ = forward

    def export(self, prefix):
        self.engine.save(f"{prefix}.onnx")


class Bridge:
    """What a real one has to offer: kilter.frameworks.Bridge."""

    name = "Gluon"

    @staticmethod
    def accepts(model):
        return isinstance(model, Block)

    def load(self, model, example):
        assert isinstance(example[0] if isinstance(example, list) else example, NDArray)
        return kilter.load(model.path)

    def adopt(self, model, exported):
        assert [port.name for port in exported.inputs] == ["image"]

    def arrays(self, item):
        if isinstance(item, list | tuple):
            return [self.arrays(entry) for entry in item]
        return item.asnumpy() if isinstance(item, NDArray) else item

    def feeds(self, item):
        (tensor,) = item if isinstance(item, list | tuple) else (item,)
        return {"image": tensor.asnumpy()}

    def wrap(self, model, original):
        return Block(model)


class Accuracy:
    def __init__(self):
        self._right = self._all = 0

    def update(self, labels, outputs):
        labels, outputs = labels.asnumpy(), outputs.asnumpy()
        self._right += int((outputs.argmax(1) == labels).sum())
        self._all += len(labels)

    def get(self):
        return "accuracy", self._right / self._all


class ImageRecordIter:
    """Batches with `data` and `label`; it goes on where it was until it is reset."""

    def __init__(self, path_imgrec, batch_size, data_shape, **settings):
        folder = Path(path_imgrec)
        self._images = np.load(folder / "images.npy")
        self._labels = np.load(folder / "labels.npy")
        assert self._images.shape[1:] == data_shape
        self._size, self._next = batch_size, 0

    def reset(self):
        self._next = 0

    def __iter__(self):
        return self

    def __next__(self):
        part = slice(self._next, self._next + self._size)
        self._next = part.stop
        if part.start >= len(self._images):
            raise StopIteration
        images = self._images[part].astype(np.float32) / 255
        return SimpleNamespace(data=[NDArray(images)], label=[NDArray(self._labels[part])])


class DataLoader:
    """Pairs of tensors."""

    def __init__(self, dataset, batch_size, shuffle=False):
        self._images, self._labels = dataset
        self._size = batch_size

    def __iter__(self):
        for first in range(0, len(self._images), self._size):
            part = slice(first, first + self._size)
            yield [NDArray(self._images[part]), NDArray(self._labels[part])]


mx = SimpleNamespace(
    cpu=lambda: "cpu",
    io=SimpleNamespace(ImageRecordIter=ImageRecordIter),
    metric=SimpleNamespace(Accuracy=Accuracy),
    gluon=SimpleNamespace(
        metric=SimpleNamespace(Accuracy=Accuracy), data=SimpleNamespace(DataLoader=DataLoader)
    ),
)


def plug_in(monkeypatch):
    """Makes the bridge known."""
    module = ModuleType("gluon_bridge")
    module.Bridge = Bridge
    monkeypatch.setitem(sys.modules, "gluon_bridge", module)
    monkeypatch.setitem(kilter.frameworks._MODULES, "gluon", "gluon_bridge")
