"""Reads the head of a GGUF file: its metadata and the list of its tensors, no weights, without llama.cpp.

The format is that of the GGUF specification, versions 2 and 3, little-endian. Everything that a file claims about
itself is bounded before memory is taken for it.
"""

import math
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

MAX_ENTRIES = 1 << 20
MAX_STRING_BYTES = 1 << 26
MAX_KEPT_ITEMS = 4096
"""Longer arrays, such as the vocabulary, are counted and passed over."""

_STRING, _ARRAY = 8, 9
_SCALARS: dict[int, str] = {
    0: "<B",
    1: "<b",
    2: "<H",
    3: "<h",
    4: "<I",
    5: "<i",
    6: "<f",
    7: "<?",
    10: "<Q",
    11: "<q",
    12: "<d",
}
_DEFAULT_ALIGNMENT = 32

TENSOR_TYPES: dict[int, tuple[str, int, int]] = {
    0: ("F32", 1, 4),
    1: ("F16", 1, 2),
    2: ("Q4_0", 32, 18),
    3: ("Q4_1", 32, 20),
    6: ("Q5_0", 32, 22),
    7: ("Q5_1", 32, 24),
    8: ("Q8_0", 32, 34),
    10: ("Q2_K", 256, 84),
    11: ("Q3_K", 256, 110),
    12: ("Q4_K", 256, 144),
    13: ("Q5_K", 256, 176),
    14: ("Q6_K", 256, 210),
    16: ("IQ2_XXS", 256, 66),
    17: ("IQ2_XS", 256, 74),
    18: ("IQ3_XXS", 256, 98),
    19: ("IQ1_S", 256, 50),
    20: ("IQ4_NL", 32, 18),
    21: ("IQ3_S", 256, 110),
    22: ("IQ2_S", 256, 82),
    23: ("IQ4_XS", 256, 136),
    29: ("IQ1_M", 256, 56),
    30: ("BF16", 1, 2),
    39: ("MXFP4", 32, 17),
}
"""ggml's type number to its name, values in a block, bytes of a block."""

Value = str | int | float | bool | list["Value"]


class GgufError(Exception):
    """The file is not GGUF, or its head is damaged. The message says how."""


@dataclass(frozen=True, slots=True)
class GgufHeader:
    """What the head says. `tensor_bytes` sums sizes by type; `tensor_shapes` has each tensor's sizes, the rows' first;
    `needed_bytes` is the least size of a whole file.
    """

    version: int
    metadata: dict[str, Value]
    array_lengths: dict[str, int]
    tensor_bytes: dict[str, int]
    needed_bytes: int
    tensor_shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)

    @property
    def architecture(self) -> str | None:
        return self.text("general.architecture")

    @property
    def main_type(self) -> str | None:
        """The type that most of the weights have."""
        return max(self.tensor_bytes, key=lambda name: self.tensor_bytes[name], default=None)

    def text(self, key: str) -> str | None:
        value = self.metadata.get(key)
        return value if isinstance(value, str) else None

    def number(self, key: str) -> int | None:
        """Returns a whole number of the model's own section, such as `context_length`."""
        value = self.metadata.get(f"{self.architecture}.{key}")
        return value if isinstance(value, int) else None

    def numbers(self, key: str, count: int) -> list[int] | None:
        """Returns a number for each of `count` layers, whether the file has one for all or one for each."""
        value = self.metadata.get(f"{self.architecture}.{key}")
        if isinstance(value, int):
            return [value] * count
        if isinstance(value, list) and len(value) == count and all(isinstance(item, int) for item in value):
            return [item for item in value if isinstance(item, int)]
        return None


def read_gguf_header(path: Path) -> GgufHeader:
    """Raises GgufError, or OSError when the file cannot be read."""
    with path.open("rb") as stream:
        return _Reader(stream).read()


@dataclass(slots=True)
class _Reader:
    stream: BinaryIO
    metadata: dict[str, Value] = field(default_factory=dict)
    array_lengths: dict[str, int] = field(default_factory=dict)
    tensor_shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)

    def read(self) -> GgufHeader:
        if self.stream.read(4) != b"GGUF":
            raise GgufError("it does not begin with the letters GGUF")
        version = self._number("<I")
        if version not in (2, 3):
            raise GgufError(f"GGUF version {version} is not known")
        num_tensors, num_entries = self._count("<Q"), self._count("<Q")
        for _ in range(num_entries):
            key = self._string()
            value = self._value(self._number("<I"), key)
            if value is not None:
                self.metadata[key] = value
        sizes, end = self._tensors(num_tensors)
        return GgufHeader(version, self.metadata, self.array_lengths, sizes, end, self.tensor_shapes)

    def _tensors(self, num_tensors: int) -> tuple[dict[str, int], int]:
        sizes: dict[str, int] = {}
        end = 0
        for _ in range(num_tensors):
            name = self._string()
            shape = tuple(self._number("<Q") for _ in range(min(self._number("<I"), 8)))
            self.tensor_shapes[name] = shape
            num_values = math.prod(shape)
            kind, offset = self._number("<I"), self._number("<Q")
            kind_name, block_values, block_bytes = TENSOR_TYPES.get(kind, (f"type {kind}", 1, 0))
            num_bytes = num_values // block_values * block_bytes
            sizes[kind_name] = sizes.get(kind_name, 0) + num_bytes
            end = max(end, offset + num_bytes)
        alignment = self.metadata.get("general.alignment")
        step = alignment if isinstance(alignment, int) and alignment > 0 else _DEFAULT_ALIGNMENT
        return sizes, -(-self.stream.tell() // step) * step + end

    def _value(self, kind: int, key: str) -> Value | None:
        """Returns a value; None for an array that is too long to keep."""
        if kind == _STRING:
            return self._string()
        if kind != _ARRAY:
            return self._scalar(kind)
        item_kind, length = self._number("<I"), self._number("<Q")
        self.array_lengths[key] = length
        if item_kind == _ARRAY:
            raise GgufError("it nests arrays")
        if length <= MAX_KEPT_ITEMS:
            return [self._string() if item_kind == _STRING else self._scalar(item_kind) for _ in range(length)]
        if length > MAX_ENTRIES * 16:
            raise GgufError(f"it claims an array of {length} entries")
        if item_kind != _STRING:
            self._skip(length * struct.calcsize(self._format(item_kind)))
            return None
        for _ in range(length):
            self._skip(self._string_length())
        return None

    def _format(self, kind: int) -> str:
        if kind not in _SCALARS:
            raise GgufError(f"it holds a value of unknown type {kind}")
        return _SCALARS[kind]

    def _scalar(self, kind: int) -> int | float | bool:
        layout = self._format(kind)
        value: int | float | bool = struct.unpack(layout, self._bytes(struct.calcsize(layout)))[0]
        return value

    def _number(self, layout: str) -> int:
        return int(struct.unpack(layout, self._bytes(struct.calcsize(layout)))[0])

    def _count(self, layout: str) -> int:
        count = self._number(layout)
        if count > MAX_ENTRIES:
            raise GgufError(f"it claims {count} entries")
        return count

    def _string_length(self) -> int:
        length = self._number("<Q")
        if length > MAX_STRING_BYTES:
            raise GgufError(f"it claims a text of {length} bytes")
        return length

    def _string(self) -> str:
        return self._bytes(self._string_length()).decode("utf-8", "replace")

    def _skip(self, num_bytes: int) -> None:
        self.stream.seek(num_bytes, 1)

    def _bytes(self, num_bytes: int) -> bytes:
        data = self.stream.read(num_bytes)
        if len(data) < num_bytes:
            raise GgufError("it ends in the middle of its head")
        return data
