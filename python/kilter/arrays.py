"""Between NumPy arrays and what the native module exchanges: memory with the name of its element type."""

from typing import Any

import numpy as np

from .errors import InputTypeError, InputValueError

_NUMPY = {
    "f32": np.float32,
    "f16": np.float16,
    "f64": np.float64,
    "bool": np.bool_,
    "i8": np.int8,
    "u8": np.uint8,
    "i16": np.int16,
    "u16": np.uint16,
    "i32": np.int32,
    "u32": np.uint32,
    "i64": np.int64,
    "u64": np.uint64,
    "complex64": np.complex64,
    "complex128": np.complex128,
    "string": np.object_,
}
_NAMES = {np.dtype(dtype): name for name, dtype in _NUMPY.items()}

# Element types that NumPy gets from the package ml_dtypes, where it is installed.
_EXTENSION = {
    "bf16": "bfloat16",
    "f8e4m3fn": "float8_e4m3fn",
    "f8e4m3fnuz": "float8_e4m3fnuz",
    "f8e5m2": "float8_e5m2",
    "f8e5m2fnuz": "float8_e5m2fnuz",
    "f8e8m0": "float8_e8m0fnu",
    "f4e2m1": "float4_e2m1fn",
    "i4": "int4",
    "u4": "uint4",
    "i2": "int2",
    "u2": "uint2",
}


def numpy_dtype(name: str) -> np.dtype:
    """The NumPy element type for one of kilter's; a TypeError says when NumPy has none."""
    if name in _NUMPY:
        return np.dtype(_NUMPY[name])
    if name not in _EXTENSION:
        raise InputTypeError(f"NumPy has no element type for {name}")
    try:
        import ml_dtypes
    except ImportError:
        raise InputTypeError(f"arrays of {name} need the package ml_dtypes") from None
    return np.dtype(getattr(ml_dtypes, _EXTENSION[name]))


def _name_of(dtype: np.dtype) -> str:
    native = dtype.newbyteorder("=")
    if native in _NAMES:
        return _NAMES[native]
    if dtype.kind in "US":
        return "string"
    extension = {full: short for short, full in _EXTENSION.items()}
    return extension.get(dtype.name, dtype.name)


def _as_array(name: str, value: Any) -> np.ndarray:
    if isinstance(value, np.ndarray):
        return value
    if hasattr(value, "__dlpack__") and not hasattr(value, "__array_interface__"):
        try:
            return np.from_dlpack(value)
        except (BufferError, TypeError, RuntimeError) as error:
            raise InputTypeError(f"input '{name}' cannot be read as an array on the CPU: {error}") from None
    if isinstance(value, int | float | bool | list | tuple):
        raise InputTypeError(
            f"input '{name}' is a Python {type(value).__name__}: "
            "give an array, for example numpy.asarray(value, dtype)"
        )
    array = np.asarray(value)
    if array.dtype == object:
        raise InputTypeError(f"input '{name}' is a {type(value).__name__}, not an array")
    return array


def _check_shape(port: Any, array: np.ndarray) -> None:
    if port.shape is None:
        return
    fits = len(port.shape) == array.ndim and all(
        not isinstance(wanted, int) or wanted == found
        for wanted, found in zip(port.shape, array.shape, strict=False)
    )
    if not fits:
        wanted = ", ".join("?" if size is None else str(size) for size in port.shape)
        found = ", ".join(str(size) for size in array.shape)
        raise InputValueError(f"input '{port.name}' has shape [{found}], the model expects [{wanted}]")


def to_native(port: Any, value: Any) -> tuple[Any, ...]:
    """Checks an array against the input it is for; a copy is made only when its memory is not contiguous.

    A list of arrays is a sequence; an optional input (its `dtype` is "undefined") may be None.
    """
    if port.dtype == "undefined" and value is None:
        return None, "nothing"
    if isinstance(value, list | tuple) and port.dtype in ("sequence", "undefined"):
        return [_array_to_native(port.name, _as_array(port.name, item)) for item in value], "sequence"
    if port.dtype == "sequence":
        raise InputTypeError(f"input '{port.name}' is a sequence: give a list of arrays")
    array = _as_array(port.name, value)
    found = _name_of(array.dtype)
    text = port.dtype == "string" and array.dtype == object
    if found != port.dtype and port.dtype != "undefined" and not text:
        raise InputTypeError(
            f"input '{port.name}' has elements of type {array.dtype.name}, the model expects "
            f"{port.dtype}: convert it with astype"
        )
    _check_shape(port, array)
    return _array_to_native(port.name, array)


def _array_to_native(name: str, array: np.ndarray) -> tuple[Any, ...]:
    found = _name_of(array.dtype)
    if found == "string":
        return [_text(name, item) for item in array.ravel()], array.shape, "string"
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    # ascontiguousarray makes a scalar one-dimensional.
    contiguous = array if array.flags.c_contiguous else np.ascontiguousarray(array)
    if found in _EXTENSION:
        contiguous = contiguous.view(np.uint16 if contiguous.itemsize == 2 else np.uint8)
    return contiguous, found


def _text(name: str, item: Any) -> str:
    if isinstance(item, bytes):
        return item.decode()
    if not isinstance(item, str):
        raise InputTypeError(f"input '{name}' holds a {type(item).__name__} where the model expects strings")
    return item


def any_to_native(value: Any) -> tuple[Any, ...]:
    """The same for an array that no input of a model expects."""
    array = np.ascontiguousarray(value) if np.ndim(value) else np.asarray(value)
    name = _name_of(array.dtype)
    if name not in _NUMPY or name == "string":
        raise InputTypeError(f"an array of {array.dtype.name} cannot be transformed")
    return array, name


def from_native(result: tuple[Any, ...]) -> Any:
    """The array of a result; a list for a sequence, None for an optional that is absent."""
    if result[-1] == "sequence":
        return [from_native(item) for item in result[0]]
    if result[-1] == "nothing":
        return None
    if len(result) == 3:
        strings, shape, _ = result
        array = np.empty(len(strings), dtype=object)
        array[:] = [item.decode(errors="replace") for item in strings]
        return array.reshape(shape)
    array, name = result
    return array.view(numpy_dtype(name)) if name in _EXTENSION else array
