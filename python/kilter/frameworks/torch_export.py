"""From an nn.Module to an ONNX model that gives the same results, by whichever of PyTorch's exporters manages it."""

import contextlib
import importlib.util
import inspect
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from .. import model as engine
from ..errors import Error, InputTypeError
from .signature import KEY, Signature, describe_parameters, given_arguments
from .structure import paths, take_apart
from .torch_arrays import as_array, is_tensor

#: An exporter writes the module, called with these tensors, to a file; the first dimension of those named is open.
Exporter = Callable[[torch.nn.Module, list[torch.Tensor], Path, list[str], list[str], list[bool]], None]


def export(
    module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[engine.Model, Signature]:
    """The module in FP32, as it behaves in evaluation mode with these arguments; how many samples there are is left open."""
    python = inspect.signature(module.forward)
    with _evaluating(module):
        given = given_arguments(python.bind(*args, **kwargs))
        tensors, arguments = take_apart(given, is_tensor)
        if not tensors:
            raise InputTypeError("the example holds no tensor: give the inputs of one call")
        tensors = [tensor.detach().to(_device_of(module)) for tensor in tensors]
        signature = Signature(describe_parameters(python), arguments, None)
        call = signature.call(iter(tensors))
        outputs, structure = take_apart(module(*call.args, **call.kwargs), is_tensor)
        if not outputs:
            raise InputTypeError("the model returns no tensor")
        signature = Signature(signature.parameters, arguments, structure)
        flat = _Flat(module, signature)
        samples, refused = _sizes_open(flat, tensors)
        failures, last = [], None
        for name, exporter in _exporters():
            try:
                model = _exported(exporter, flat, tensors, samples, signature)
                break
            except Exception as error:
                last = error
                failures.append(f"{name}: {str(error).strip() or type(error).__name__}")
        else:
            raise Error("PyTorch could not export the model to ONNX\n" + "\n".join(failures)) from last
    if refused is not None:
        warnings.warn(f"the model takes batches of {tensors[0].shape[0]} only: {refused}", stacklevel=2)
    return model, signature


class _Flat(torch.nn.Module):
    """Tensors in, tensors out."""

    def __init__(self, module: torch.nn.Module, signature: Signature):
        super().__init__()
        self.module = module
        self._signature = signature
        self.training = False  # exporters put all parts back into this mode

    def forward(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        call = self._signature.call(iter(tensors))
        return tuple(take_apart(self.module(*call.args, **call.kwargs), is_tensor)[0])


def _sizes_open(flat: _Flat, tensors: list[torch.Tensor]) -> tuple[list[bool], Exception | None]:
    """Which of them hold one entry for every sample; none, and why, when the module refuses another number of samples."""
    size = tensors[0].shape[0] if tensors[0].dim() > 0 else -1
    samples = [tensor.dim() > 0 and tensor.shape[0] == size for tensor in tensors]
    try:
        flat(*_doubled(tensors, samples))
    except Exception as error:
        return [False] * len(tensors), error
    return samples, None


def _doubled(tensors: list[torch.Tensor], samples: list[bool]) -> list[torch.Tensor]:
    return [
        torch.cat([tensor, tensor]) if open_ else tensor
        for tensor, open_ in zip(tensors, samples, strict=True)
    ]


def _exported(
    exporter: Exporter, flat: _Flat, tensors: list[torch.Tensor], samples: list[bool], signature: Signature
) -> engine.Model:
    doubled = _doubled(tensors, samples)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        # Two samples at least: a dimension of one is taken for a constant.
        shown = doubled if tensors[0].shape[:1] == (1,) else tensors
        exporter(flat, shown, path, signature.inputs, _output_names(signature), samples)
        with path.open("ab") as file:
            file.write(_metadata(KEY, signature.json()))
        # What was mapped stays when the folder goes.
        model = engine.load(path)
    _check(model, flat, signature, tensors)
    if any(samples):
        _check(model, flat, signature, doubled)
    return model


def _output_names(signature: Signature) -> list[str]:
    """Where they are in the result; never the name of an input."""
    names = paths(signature.outputs)
    plain = all(name and not name[0].isdigit() and name not in signature.inputs for name in names)
    return names if plain else [f"output.{name}".rstrip(".") for name in names]


def _check(model: engine.Model, flat: _Flat, signature: Signature, tensors: list[torch.Tensor]) -> None:
    """Exporters follow one run of the model, and may take for constant what depends on its inputs."""
    expected = flat(*tensors)
    given = {name: tensor.cpu() for name, tensor in zip(signature.inputs, tensors, strict=True)}
    found = model.run({port.name: as_array(port.name, given[port.name]) for port in model.inputs})
    for (name, theirs), ours in zip(found.items(), expected, strict=True):
        ours = as_array(name, ours.cpu())
        if ours.dtype.kind not in "biufc":  # bfloat16, for which NumPy has no arithmetic of its own
            ours, theirs = ours.astype(np.float32), theirs.astype(np.float32)
        if theirs.shape != ours.shape:
            raise Error(f"the exported model returns {name} as {theirs.shape}, the original as {ours.shape}")
        sizes = np.abs(ours[np.isfinite(ours)]) if ours.dtype.kind == "f" else ours[:0]
        tolerance = 1e-3 * float(np.max(sizes, initial=0)) + 1e-6 if ours.dtype.kind == "f" else 0
        if not np.allclose(theirs, ours, rtol=0, atol=tolerance, equal_nan=True):
            raise Error(f"the exported model computes {name} differently than the original")


def _trace(
    flat: torch.nn.Module,
    tensors: list[torch.Tensor],
    path: Path,
    inputs: list[str],
    outputs: list[str],
    samples: list[bool],
) -> None:
    """The exporter that follows one run by TorchScript."""
    options = {"dynamo": False} if "dynamo" in inspect.signature(torch.onnx.export).parameters else {}
    torch.onnx.export(
        flat,
        tuple(tensors),
        str(path),
        input_names=inputs,
        output_names=outputs,
        dynamic_axes={name: {0: "batch"} for name, open_ in zip(inputs, samples, strict=True) if open_},
        opset_version=17,
        do_constant_folding=True,
        **options,
    )


def _export_program(
    flat: torch.nn.Module,
    tensors: list[torch.Tensor],
    path: Path,
    inputs: list[str],
    outputs: list[str],
    samples: list[bool],
) -> None:
    """The exporter by torch.export, which needs the package onnxscript."""
    dynamic = tuple({0: torch.export.Dim.AUTO} if open_ else {} for open_ in samples)
    torch.onnx.export(
        flat,
        tuple(tensors),
        str(path),
        dynamo=True,
        input_names=inputs,
        output_names=outputs,
        dynamic_shapes=(dynamic,),
        verbose=False,
    )


def _exporters() -> Iterator[tuple[str, Exporter]]:
    yield "TorchScript", _trace
    if importlib.util.find_spec("onnxscript") is not None and hasattr(torch.export, "Dim"):
        yield "torch.export", _export_program


@contextlib.contextmanager
def _evaluating(module: torch.nn.Module) -> Iterator[None]:
    """Evaluation mode, no gradients, no warnings of exporters; all is as before afterwards."""
    modes = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        with torch.no_grad(), torch.random.fork_rng(devices=[]), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for part, mode in modes:
            part.training = mode


def _device_of(module: torch.nn.Module) -> torch.device:
    for tensor in [*module.parameters(), *module.buffers()]:
        return tensor.device
    return torch.device("cpu")


def _metadata(key: str, value: str) -> bytes:
    """An entry of metadata_props (field 14), which can be added at the end of a serialized ModelProto."""

    def field(number: int, content: bytes) -> bytes:
        size, length = len(content), b""
        while size > 127:
            length += bytes([size & 127 | 128])
            size >>= 7
        return bytes([number << 3 | 2]) + length + bytes([size]) + content

    return field(14, field(1, key.encode()) + field(2, value.encode()))
