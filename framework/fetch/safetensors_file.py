"""Writes `model.safetensors` one tensor at a time, with the same bytes on every machine.

The goldens name the file's checksum, so neither the version of a library nor the order of a dictionary may move a byte;
and only one tensor at a time is in memory.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from math import prod
from typing import IO, Final

from framework.fetch.llama import NamedTensor

_ALIGNMENT: Final = 8
_BYTES_A_VALUE: Final = 4


def write_safetensors(stream: IO[bytes], tensors: Sequence[NamedTensor]) -> None:
    """Write tensors in fp32, in their order.

    Raises:
        OSError: the disk is full, or the like.
    """
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    offset = 0
    for tensor in tensors:
        end = offset + _BYTES_A_VALUE * prod(tensor.shape)
        header[tensor.name] = {"dtype": "F32", "shape": list(tensor.shape), "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % _ALIGNMENT)
    stream.write(len(text).to_bytes(8, "little"))
    stream.write(text)
    for tensor in tensors:
        values = tensor.read().astype("<f4", copy=False)
        assert values.shape == tensor.shape, "the header says so"
        stream.write(values.tobytes())
