"""Writes a GGUF file (version 3, little-endian): metadata, tensors of 16 and 32 bit floats, nothing quantised.

For models that tests make up, and for conversions of models that are published in another format. Layout: magic,
version, counts, metadata, descriptions of tensors, then their data, each at a multiple of 32 bytes.
"""

import struct
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

Value = str | bool | int | float | Sequence[str] | Sequence[int] | Sequence[float]
Tensor = npt.NDArray[np.float32] | npt.NDArray[np.float16]

_ALIGNMENT = 32
# enum gguf_metadata_value_type
_UINT32, _INT32, _FLOAT32, _BOOL, _STRING, _ARRAY = 4, 5, 6, 7, 8, 9
# enum ggml_type
_TENSOR_TYPES = {"float32": 0, "float16": 1}


def write_gguf(path: Path, metadata: Mapping[str, Value], tensors: Mapping[str, Tensor]) -> None:
    """Writes the file. A tensor's shape is in numpy's order, rows first: GGUF names it the other way round.

    A whole number becomes an unsigned 32-bit integer, and in a list a signed one. Raises ValueError for a tensor of
    another type, TypeError for a value of another kind.
    """
    head = [b"GGUF", struct.pack("<IQQ", 3, len(tensors), len(metadata))]
    for key, value in metadata.items():
        head += [_text(key), _value(value)]
    offset = 0
    for name, tensor in tensors.items():
        if tensor.dtype.name not in _TENSOR_TYPES:
            raise ValueError(f"tensor {name} is of type {tensor.dtype.name}; it must be float32 or float16")
        sizes = tensor.shape[::-1]
        head.append(_text(name) + struct.pack(f"<I{len(sizes)}Q", len(sizes), *sizes))
        head.append(struct.pack("<IQ", _TENSOR_TYPES[tensor.dtype.name], offset))
        offset += _padded(tensor.nbytes)
    begin = b"".join(head)
    with path.open("wb") as out:
        out.write(begin.ljust(_padded(len(begin)), b"\0"))
        for tensor in tensors.values():
            out.write(np.ascontiguousarray(tensor).tobytes().ljust(_padded(tensor.nbytes), b"\0"))


def _padded(num_bytes: int) -> int:
    return -(-num_bytes // _ALIGNMENT) * _ALIGNMENT


def _text(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def _value(value: Value) -> bytes:
    match value:
        case str():
            return struct.pack("<I", _STRING) + _text(value)
        case bool():
            return struct.pack("<I?", _BOOL, value)
        case int():
            return struct.pack("<II", _UINT32, value)
        case float():
            return struct.pack("<If", _FLOAT32, value)
        case _:
            return struct.pack("<I", _ARRAY) + _items(value)


def _items(values: Sequence[str] | Sequence[int] | Sequence[float]) -> bytes:
    count = struct.pack("<Q", len(values))
    if all(isinstance(value, str) for value in values):
        return struct.pack("<I", _STRING) + count + b"".join(_text(str(value)) for value in values)
    if all(isinstance(value, int) for value in values):
        return struct.pack("<I", _INT32) + count + struct.pack(f"<{len(values)}i", *values)
    if all(isinstance(value, float) for value in values):
        return struct.pack("<I", _FLOAT32) + count + struct.pack(f"<{len(values)}f", *values)
    raise TypeError("a list in GGUF metadata holds values of one kind: text, whole numbers or floats")
