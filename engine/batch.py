"""A plan as device tensors: one buffer on the host, one copy to the device, then views of it."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.blocks import DUMMY_BLOCK
from engine.kernels import AttentionMetadata, QuerySpan
from engine.plan import Plan, PlanRow
from engine.sampling import Draws


@dataclass(frozen=True, slots=True)
class Batch:
    """One step's inputs: T tokens in R rows. What padding the kernels need, the decoder adds and takes away.

    token_ids, positions: (T,) int64; a place that takes a sample from the device holds 0 until then.
    device_token_places, device_token_slots: (N,) int64, where in `token_ids` the sample of which slot goes.
    sample_places: (R,) int64, the place of each row's last token. slots: (R,) int64, where its sample is kept.
    draws: the rows whose tokens are drawn, None if there are none.
    top_n_rows: (M,) int64, the rows whose best tokens are asked for, at most `greatest_top_n`.
    scored_places, scored_token_ids: (S,) int64, where logits score which prompt token.
    """

    token_ids: Tensor
    positions: Tensor
    device_token_places: Tensor
    device_token_slots: Tensor
    sample_places: Tensor
    slots: Tensor
    draws: Draws | None
    top_n_rows: Tensor
    greatest_top_n: int
    scored_places: Tensor
    scored_token_ids: Tensor
    metadata: AttentionMetadata


def build_batch(plan: Plan, *, block_size_tokens: int, device: torch.device) -> Batch:
    """Lay a plan out as tensors on `device`; the tails of block tables point at the dummy block."""
    token_ids, positions, write_slots = array("q"), array("q"), array("q")
    device_places, device_slots, sample_places, slots = array("q"), array("q"), array("q"), array("q")
    scored_places, scored_token_ids = array("q"), array("q")
    spans = []
    for row in plan.rows:
        spans.append(QuerySpan(len(token_ids), row.length, row.start + row.length))
        if row.scored_token_ids:
            first = len(token_ids) + row.scored_start - row.start
            scored_places.extend(range(first, first + len(row.scored_token_ids)))
            scored_token_ids.extend(row.scored_token_ids)
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
    sampling = [(index, row) for index, row in enumerate(plan.rows) if row.samples]
    top_n_rows = array("q", (index for index, row in sampling if row.state.request.sampling.top_n))
    drawn = [(index, row) for index, row in sampling if row.state.request.sampling.is_drawn]
    # Those with a filter first: the others do without the work that it takes.
    drawn.sort(key=lambda place: not place[1].state.request.sampling.is_filtered)
    columns = (token_ids, positions, write_slots, device_places, device_slots, sample_places, slots, block_tables)
    fields = _copy_to_device(
        (*columns, top_n_rows, scored_places, scored_token_ids, *_draw_columns(drawn)),
        device,
    )
    return Batch(
        token_ids=fields[0],
        positions=fields[1],
        device_token_places=fields[3],
        device_token_slots=fields[4],
        sample_places=fields[5],
        slots=fields[6],
        draws=_draws(drawn, fields[11:]) if drawn else None,
        top_n_rows=fields[8],
        greatest_top_n=max((row.state.request.sampling.top_n for _, row in sampling), default=0),
        scored_places=fields[9],
        scored_token_ids=fields[10],
        metadata=AttentionMetadata(
            write_slots=fields[2],
            spans=tuple(spans),
            block_tables=fields[7].view(len(plan.rows), table_width),
            block_size_tokens=block_size_tokens,
        ),
    )


def _draw_columns(drawn: Sequence[tuple[int, PlanRow]]) -> tuple[array[int] | array[float], ...]:
    """What decides the draws of rows, column by column, in the order of the fields of `Draws`."""
    parameters = [row.state.request.sampling for _, row in drawn]
    return (
        array("q", (index for index, _ in drawn)),
        array("q", (row.state.seed for _, row in drawn)),
        array("q", (row.start + row.length for _, row in drawn)),
        array("d", (each.temperature for each in parameters)),
        array("q", (each.top_k for each in parameters)),
        array("d", (each.top_p for each in parameters)),
        array("d", (each.min_p for each in parameters)),
    )


def _draws(drawn: Sequence[tuple[int, PlanRow]], columns: Sequence[Tensor]) -> Draws:
    rows, seeds, positions, temperatures, top_ks, top_ps, min_ps = columns
    filtered = [sampling for _, row in drawn if (sampling := row.state.request.sampling).is_filtered]
    return Draws(
        rows=rows,
        seeds=seeds,
        positions=positions,
        temperatures=temperatures.view(torch.float64),
        top_ks=top_ks,
        top_ps=top_ps.view(torch.float64),
        min_ps=min_ps.view(torch.float64),
        num_filtered=len(filtered),
        greatest_top_k=max((sampling.top_k for sampling in filtered), default=0),
        has_open_top_p=any(sampling.top_p < 1 and not sampling.top_k for sampling in filtered),
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


def _copy_to_device(parts: Iterable[array[int] | array[float]], device: torch.device) -> list[Tensor]:
    """Return the parts as int64 views of one tensor on `device`; numbers of another type keep their bits."""
    staging = array("q")
    lengths = []
    for part in parts:
        lengths.append(len(part))
        staging.frombytes(part.tobytes())
    return list(torch.frombuffer(staging, dtype=torch.int64).to(device).split(lengths))  # type: ignore[no-untyped-call]
