"""MXNet: symbols and Gluon blocks go in; what comes out is called with NDArrays and runs on kilter's engine.

>>> small = kilter.quantize(block, loader)  # a kilter.frameworks.mxnet.Block: small(x), small.forward(x)
>>> small.save("int8.onnx")
"""

import os
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import mxnet as mx
import numpy as np

from .. import model as engine
from ..errors import InputTypeError, InputValueError
from .mxnet_names import fused_names
from .mxnet_quantization import quantize_model, quantize_net
from .structure import replaced

__all__ = ["Block", "Bridge", "quantize_model", "quantize_net"]


def _prefix(folder: "tempfile.TemporaryDirectory[str]") -> Path:
    return Path(folder.name) / "model"


def _converted(arrays: Mapping[str, Any], dtypes: Mapping[str, np.dtype]) -> dict[str, np.ndarray]:
    """The inputs of a model as it takes them: MXNet's users give numbers of one type for those of another."""
    found = {}
    for name, array in arrays.items():
        if name in dtypes:
            array = array.asnumpy() if isinstance(array, mx.nd.NDArray) else np.asarray(array)
            found[name] = array.astype(dtypes[name], copy=False)
    return found


def _ndarray(array: np.ndarray) -> Any:
    """Without a copy, which would take longer than small networks do; arrays without dimensions MXNet cannot share."""
    if array.ndim == 0:
        return mx.nd.array(array, dtype=array.dtype)
    return mx.nd.from_numpy(np.ascontiguousarray(array), zero_copy=True)


def _is_checkpoint(model: Any) -> bool:
    """(symbol, arguments, auxiliary states), as mx.model.load_checkpoint returns them."""
    return isinstance(model, tuple) and len(model) == 3 and isinstance(model[0], mx.sym.Symbol)


def _imported(prefix: Path, inputs: tuple[str, ...]) -> Any:
    """A block of files."""
    names = [name for name in inputs if name]
    return mx.gluon.SymbolBlock.imports(f"{prefix}-symbol.json", names, f"{prefix}-0000.params")


class Bridge:
    """Made by `kilter.frameworks.bridge_for(block)`."""

    name = "MXNet"

    @staticmethod
    def accepts(model: Any) -> bool:
        return _is_checkpoint(model) or isinstance(model, mx.gluon.HybridBlock | Block)

    def __init__(self) -> None:
        self._inputs: tuple[
            str, ...
        ] = ()  # names of the arguments of a call; "" for what the model does without
        self._dtypes: dict[str, np.dtype] = {}
        self._one_output = True
        self._source: tempfile.TemporaryDirectory[str] | None = None  # where the exported files are

    @property
    def checkpoint(self) -> str:
        """The prefix of the files that the model was exported to."""
        return str(_prefix(self._source))

    def load(self, model: Any, example: Any) -> engine.Model:
        """Exports the block; it is left as it is, but for having been called with the example."""
        if isinstance(model, Block):
            self.adopt(model, model.model)
            self._source = model.source
            return model.model
        arrays = self._arguments(example)
        self._source = tempfile.TemporaryDirectory(prefix="kilter-mxnet-")
        prefix = _prefix(self._source)
        if _is_checkpoint(model):
            symbol, arguments, states = model
            mx.model.save_checkpoint(str(prefix), 0, symbol, arguments, states)
            names = [name for name in symbol.list_arguments() if name not in arguments]
            names = [name for name in names if not name.endswith("label")]
            self._one_output = len(symbol.list_outputs()) == 1
        else:
            names = self._export(model, arrays, prefix)
        # Blocks may take more than the model needs: lengths, labels.
        shapes = {name: [-1, *array.shape[1:]] for name, array in zip(names, arrays, strict=False)}
        loaded = engine.load(prefix, shapes=shapes)
        self._dtypes = {port.name: port.numpy_dtype for port in loaded.inputs}
        self._inputs = tuple(name if name in self._dtypes else "" for name in names)
        return loaded

    def adopt(self, model: Any, exported: engine.Model) -> None:
        self._dtypes = {port.name: port.numpy_dtype for port in exported.inputs}
        self._inputs = tuple(self._dtypes)
        self._one_output = model.one_output if isinstance(model, Block) else len(exported.outputs) == 1

    def _export(self, block: Any, arrays: list[np.ndarray], prefix: Path) -> list[str]:
        active = getattr(block, "_active", True)
        block.hybridize(True)
        outputs = self._call(block, [mx.nd.array(array, dtype=array.dtype) for array in arrays])
        self._one_output = not isinstance(outputs, list | tuple)
        block.export(str(prefix))
        block.hybridize(active)
        symbol = mx.sym.load(f"{prefix}-symbol.json")
        held = {name.partition(":")[2] for name in mx.nd.load(f"{prefix}-0000.params")}
        # Gluon names them data, or data0, data1, …, in the order of the call.
        free = [name for name in symbol.list_inputs() if name not in held]
        return sorted(free, key=lambda name: (len(name), name)) if len(free) > 1 else free

    @staticmethod
    def _call(block: Any, arrays: list[Any]) -> Any:
        """What follows the inputs in a batch are labels: MXNet's own tool finds out in the same way how many."""
        for count in range(len(arrays), 1, -1):
            try:
                return block(*arrays[:count])
            except (AssertionError, TypeError, ValueError, mx.MXNetError):
                continue
        return block(arrays[0])

    def arrays(self, item: Any) -> Any:
        return replaced(item, lambda entry: isinstance(entry, mx.nd.NDArray), lambda entry: entry.asnumpy())

    def feeds(self, item: Any) -> dict[str, np.ndarray]:
        if not isinstance(item, Mapping):
            arrays = self._arguments(item)
            if len(arrays) < len(self._inputs):
                raise InputValueError(f"found {len(arrays)} inputs, the model has {len(self._inputs)}")
            item = dict(zip(self._inputs, arrays, strict=False))
        return _converted(item, self._dtypes)

    def elsewhere(self, model: engine.Model | None, original: Any) -> Any:
        """What MXNet runs: the model that was given, or what is written for MXNet of a quantized one."""
        if model is None:
            return _imported(_prefix(self._source), self._inputs)
        with tempfile.TemporaryDirectory(prefix="kilter-mxnet-") as folder:
            model._session.export_mxnet(str(_prefix(self._source)), f"{folder}/model")
            return _imported(Path(folder) / "model", self._inputs)

    def wrap(self, model: engine.Model, original: Any) -> "Block":
        return Block(model, self._inputs, self._one_output, self._source)

    def _arguments(self, item: Any) -> list[np.ndarray]:
        """The arrays of one call: what a DataBatch, a pair with a label or a list holds."""
        if hasattr(item, "data") and isinstance(item.data, list | tuple):
            item = item.data
        entries = item if isinstance(item, list | tuple) else [item]
        arrays = [self.arrays(entry) for entry in entries]
        for array in arrays:
            if not isinstance(array, np.ndarray):
                raise InputTypeError(f"a {type(array).__name__} is no array")
        return arrays


class Block:
    """A model that is called as a Gluon block is."""

    def __init__(
        self,
        model: engine.Model,
        inputs: tuple[str, ...],
        one_output: bool,
        source: "tempfile.TemporaryDirectory[str] | None" = None,
    ):
        #: The kilter.Model that runs.
        self.model = model
        self.one_output = one_output
        self.source = source
        self._inputs = inputs

    def forward(self, *arrays: Any) -> Any:
        """NDArrays in, NDArrays out."""
        if len(arrays) < len(self._inputs):
            raise InputTypeError(f"found {len(arrays)} arguments, the model takes {len(self._inputs)}")
        dtypes = {port.name: port.numpy_dtype for port in self.model.inputs}
        feeds = _converted(dict(zip(self._inputs, arrays, strict=False)), dtypes)
        results = [_ndarray(array) for array in self.model.run(feeds).values()]
        return results[0] if self.one_output else results

    __call__ = forward

    def excluded_symbols(self, operators: Iterable[str]) -> list[str]:
        """Operators under the names they have once MXNet has fused them: sg_mkldnn_conv_bn_act_0."""
        if self.source is None:
            return list(operators)
        return fused_names(mx.sym.load(f"{_prefix(self.source)}-symbol.json"), operators)

    def hybridize(self, *_: Any, **__: Any) -> None:
        """It is compiled already."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the model as ONNX."""
        self.model.save(path)

    def export(self, prefix: str | os.PathLike[str], epoch: int = 0) -> list[tuple[str, str, str, str]]:
        """Writes PREFIX-symbol.json and PREFIX-0000.params, which stock MXNet 1.9 runs on integers.

        Returns (name, operator, what MXNet calls the integer operator it became part of, why it is none) for each.
        """
        if self.source is None or not hasattr(self.model._session, "export_mxnet"):
            raise InputValueError(
                "only models that were quantized from a model of MXNet can be written for it"
            )
        if epoch != 0:
            raise InputValueError(f"an exported model has epoch 0, found {epoch}")
        return self.model._session.export_mxnet(str(_prefix(self.source)), os.fspath(prefix))

    def __getattr__(self, name: str) -> Any:
        if name == "model":  # not made yet: while it is copied
            raise AttributeError(name)
        return getattr(self.model, name)
