"""A GGUF file as typed metadata and dequantised tensors, read with the package `gguf`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import gguf
import numpy as np
import numpy.typing as npt

from framework.errors import FetchError

_Kind = TypeVar("_Kind")

FloatArray = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class GgufFile:
    """An open GGUF file; `tensors` are read from the disk when they are asked for."""

    path: Path
    metadata: Mapping[str, Any]
    tensors: Mapping[str, Any]

    def value(self, key: str, kind: type[_Kind], default: _Kind | None = None) -> _Kind:
        """Return a value of the metadata.

        Raises:
            FetchError: it is missing and has no default, or is of another kind.
        """
        found = self.metadata.get(key, default)
        if type(found) is not kind:
            what = "is missing" if found is None else f"is {found!r}, not of type {kind.__name__}"
            raise self.error(f"{key} {what}")
        return found

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of a tensor, rows first.

        Raises:
            FetchError: there is no such tensor.
        """
        return tuple(int(size) for size in reversed(self._tensor(name).shape))

    def tensor(self, name: str) -> FloatArray:
        """Return a tensor in fp32, dequantised where it is stored with fewer bits.

        Raises:
            FetchError: there is no such tensor, or it is stored in a way that cannot be read.
        """
        stored = self._tensor(name)
        try:
            values = gguf.dequantize(stored.data, stored.tensor_type)
        except (NotImplementedError, ValueError) as error:
            raise self.error(f"tensor {name}: {error}") from None
        return np.ascontiguousarray(values, dtype=np.float32).reshape(self.shape(name))

    def error(self, what: str) -> FetchError:
        """Return the error for something that is wrong with this file."""
        return FetchError(f"{self.path.name}: {what}; the file is not what this recipe needs")

    def _tensor(self, name: str) -> Any:
        if name not in self.tensors:
            raise self.error(f"tensor {name} is missing")
        return self.tensors[name]


def open_gguf(path: Path) -> GgufFile:
    """Open a GGUF file.

    Raises:
        FetchError: it is none, or is damaged.
    """
    try:
        reader = gguf.GGUFReader(path)
        metadata = {name: field.contents() for name, field in reader.fields.items()}
    except Exception as error:
        raise FetchError(
            f"{path.name}: cannot be read as GGUF: {error}; the wheel is not what this recipe needs"
        ) from error
    return GgufFile(path, metadata, {tensor.name: tensor for tensor in reader.tensors})
