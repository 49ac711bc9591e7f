"""A plan as device tensors: one buffer on the host, one copy to the device, then views of it."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.blocks import DUMMY_BLOCK
from engine.kernels import AttentionMetadata, QuerySpan
from engine.plan import Plan


@dataclass(frozen=True, slots=True)
class Batch:
    """One step's inputs: T tokens in R rows. What padding the kernels need, the decoder adds and takes away.

    token_ids, positions: (T,) int64; a place that takes a sample from the device holds 0 until then.
    device_token_places, device_token_slots: (N,) int64, where in `token_ids` the sample of which slot goes.
    sample_places: (R,) int64, the place of each row's last token. slots: (R,) int64, where its sample is kept.
    """

    token_ids: Tensor
    positions: Tensor
    device_token_places: Tensor
    device_token_slots: Tensor
    sample_places: Tensor
    slots: Tensor
    metadata: AttentionMetadata


def build_batch(plan: Plan, *, block_size_tokens: int, device: torch.device) -> Batch:
    """Lay a plan out as tensors on `device`; the tails of block tables point at the dummy block."""
    token_ids, positions, write_slots = array("q"), array("q"), array("q")
    device_places, device_slots, sample_places, slots = array("q"), array("q"), array("q"), array("q")
    spans = []
    for row in plan.rows:
        spans.append(QuerySpan(len(token_ids), row.length, row.start + row.length))
        token_ids.extend(row.token_ids)
        if row.last_from_device:
            device_places.append(len(token_ids))
            device_slots.append(row.slot)
            token_ids.append(0)
        positions.extend(range(row.start, row.start + row.length))
        _extend_write_slots(write_slots, row.block_table, row.start, row.length, block_size_tokens)
        sample_places.append(len(token_ids) - 1)
        slots.append(row.slot)
    table_width = max(len(row.block_table) for row in plan.rows)
    block_tables = array("q", _block_table_entries(plan, table_width))
    fields = _copy_to_device(
        (token_ids, positions, write_slots, device_places, device_slots, sample_places, slots, block_tables), device
    )
    return Batch(
        token_ids=fields[0],
        positions=fields[1],
        device_token_places=fields[3],
        device_token_slots=fields[4],
        sample_places=fields[5],
        slots=fields[6],
        metadata=AttentionMetadata(
            write_slots=fields[2],
            spans=tuple(spans),
            block_tables=fields[7].view(len(plan.rows), table_width),
            block_size_tokens=block_size_tokens,
        ),
    )


def _extend_write_slots(target: array[int], block_table: tuple[int, ...], start: int, length: int, size: int) -> None:
    position, end = start, start + length
    while position < end:
        block, offset = divmod(position, size)
        count = min(size - offset, end - position)
        first = block_table[block] * size + offset
        target.extend(range(first, first + count))
        position += count


def _block_table_entries(plan: Plan, width: int) -> Iterable[int]:
    for row in plan.rows:
        yield from row.block_table
        yield from (DUMMY_BLOCK,) * (width - len(row.block_table))


def _copy_to_device(parts: Iterable[array[int]], device: torch.device) -> list[Tensor]:
    """Return the parts as int64 views of one tensor on `device`."""
    staging = array("q")
    lengths = []
    for part in parts:
        lengths.append(len(part))
        staging.extend(part)
    return list(torch.frombuffer(staging, dtype=torch.int64).to(device).split(lengths))  # type: ignore[no-untyped-call]
