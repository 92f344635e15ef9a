"""Between PyTorch's tensors and NumPy's arrays: the same memory."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from ..arrays import numpy_dtype
from ..errors import InputTypeError

#: kilter's element types.
DTYPES = {
    "f32": torch.float32,
    "f16": torch.float16,
    "f64": torch.float64,
    "bf16": torch.bfloat16,
    "bool": torch.bool,
    "i8": torch.int8,
    "u8": torch.uint8,
    "i16": torch.int16,
    "i32": torch.int32,
    "i64": torch.int64,
    "complex64": torch.complex64,
    "complex128": torch.complex128,
}


def is_tensor(value: Any) -> bool:
    return isinstance(value, torch.Tensor)


def with_tensors(item: Any) -> Any:
    """The item with tensors in place of NumPy's arrays, as kilter's own loaders yield them."""
    if isinstance(item, np.ndarray):
        return torch.from_numpy(np.require(item, requirements="W"))
    if isinstance(item, Mapping):
        return {name: with_tensors(entry) for name, entry in item.items()}
    if type(item) in (list, tuple):
        return type(item)(with_tensors(entry) for entry in item)
    return item


def memory_of(name: str, tensor: torch.Tensor) -> np.ndarray:
    """The tensor's memory as an array, bfloat16 as uint16; a copy only when it is not contiguous."""
    if tensor.requires_grad:
        tensor = tensor.detach()
    if tensor.device.type != "cpu":
        raise InputTypeError(
            f"{name} is on the device {tensor.device}, kilter runs on the CPU: use tensor.cpu()"
        )
    if tensor.dtype is torch.bfloat16:
        tensor = tensor.view(torch.uint16)
    return (tensor if tensor.is_contiguous() else tensor.contiguous()).numpy()


def as_array(name: str, tensor: torch.Tensor) -> np.ndarray:
    """The same with NumPy's element type."""
    array = memory_of(name, tensor)
    return array.view(numpy_dtype("bf16")) if tensor.dtype is torch.bfloat16 else array


def as_tensor(native: tuple[Any, ...]) -> torch.Tensor:
    """Of what the engine returned; the tensor owns the memory."""
    if len(native) == 3:
        raise InputTypeError("the model returns text, for which PyTorch has no tensors")
    array, name = native
    tensor = torch.from_numpy(array)
    return tensor.view(torch.bfloat16) if name == "bf16" else tensor
