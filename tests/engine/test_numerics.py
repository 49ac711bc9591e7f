from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional

from engine.kernels import KV_TILE
from engine.model import load_decoder
from engine.numerics import (
    ROW_MULTIPLE,
    NumericsError,
    Strategy,
    environment_fingerprint,
    linear,
    pad_rows,
    self_check,
)
from engine.numerics import check as check_module
from engine.numerics.fingerprint import library_versions
from engine.numerics.gemm import (
    ROW_BUCKETS,
    batch_strategy,
    batched_matmul,
    by_rows,
    choose_strategy,
    compute_dtype,
    linear_strategy,
    prepare_linear,
    probe_rows,
)
from engine.numerics.native_bf16 import has_matrix_units
from engine.numerics.rowwise import rms_norm, silu
from engine.numerics.threads import run, thread_count
from tests.engine.model.checkpoints import TINY_MIXTRAL, write_checkpoint
from tests.engine.model.driving import PagedDecoder, prefill, random_ids

CPU = torch.device("cpu")
Function = Callable[..., Tensor]


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    with thread_count(1):
        yield


@pytest.fixture(scope="module")
def model_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_checkpoint(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def moe_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_checkpoint(tmp_path_factory.mktemp("experts"), **TINY_MIXTRAL)


def depending_on_row_count(function: Function) -> Function:
    """What a library does that picks another kernel for few rows."""

    def changed(x: Tensor, *others: Any, **settings: Any) -> Tensor:
        y = function(x, *others, **settings)
        return y.mul_(1 + 2**-20) if x.shape[-2] < 8 else y

    return changed


def depending_on_place(function: Function) -> Function:
    """What a library does whose last row goes through another kernel."""

    def changed(x: Tensor, *others: Any, **settings: Any) -> Tensor:
        y = function(x, *others, **settings)
        y[..., -1, :] *= 1 + 2**-20
        return y

    return changed


def depending_on_threads(function: Function) -> Function:
    """What a library does that splits a sum over threads."""

    def changed(x: Tensor, *others: Any, **settings: Any) -> Tensor:
        y = function(x, *others, **settings)
        return y if torch.get_num_threads() == 1 else y.mul_(1 + 2**-20)

    return changed


@given(st.integers(1, 5000))
def test_padded_row_counts_split_into_proven_ones(count: int) -> None:
    padded = pad_rows(count)
    assert count <= padded < count + max(count // 2, ROW_MULTIPLE)
    assert padded % ROW_MULTIPLE == 0
    assert padded % ROW_BUCKETS[-1] in (0, *ROW_BUCKETS)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["fp32", "bf16"])
@pytest.mark.parametrize(("width", "out"), [(16, 16), (100, 100), (128, 688), (344, 259), (2048, 64)])
@pytest.mark.parametrize("has_bias", [False, True])
def test_linear_gives_the_same_row_in_any_number_of_rows(
    dtype: torch.dtype, width: int, out: int, has_bias: bool
) -> None:
    generator = torch.Generator().manual_seed(1)
    weight = torch.randn(out, width, generator=generator).mul_(width**-0.5).to(dtype)
    bias = torch.randn(out, generator=generator).to(dtype) if has_bias else None
    x = torch.randn(768, width, generator=generator).to(dtype)
    prepared = prepare_linear(weight, bias, result_dtype=dtype, compute=compute_dtype(dtype, CPU))
    prepared = prepared.with_strategy(linear_strategy(prepared))
    expected = linear(x, prepared)
    exact = functional.linear(x.double(), weight.double(), None if bias is None else bias.double())
    assert torch.allclose(expected.double(), exact, rtol=2**-8 if dtype is torch.bfloat16 else 1e-5, atol=1e-5)
    for threads in (1, 2, 3, 4):
        with thread_count(threads):
            for count in ROW_BUCKETS:
                assert torch.equal(linear(x[5 : 5 + count], prepared), expected[5 : 5 + count])


def test_linear_refuses_a_row_count_that_was_not_proven() -> None:
    prepared = prepare_linear(torch.ones(4, 4), None, result_dtype=torch.float32, compute=torch.float32)
    with pytest.raises(AssertionError, match="5 rows"):
        linear(torch.ones(5, 4), prepared.with_strategy(Strategy.BUCKETS))


def test_the_proven_strategy_gives_the_bits_of_the_definition() -> None:
    generator = torch.Generator().manual_seed(2)
    weight, x = torch.randn(96, 64, generator=generator), torch.randn(pad_rows(280), 64, generator=generator)
    prepared = prepare_linear(weight, None, result_dtype=torch.float32, compute=torch.float32)
    proven = prepared.with_strategy(linear_strategy(prepared))
    assert torch.equal(linear(x, prepared), linear(x, proven))
    assert prepared.strategy is Strategy.SERIAL_TILES
    a, b = torch.randn(6, 20, KV_TILE, generator=generator), torch.randn(6, KV_TILE, 16, generator=generator)
    proven_batch = batch_strategy(head_dim=16, kv_tile=KV_TILE, row_counts=(20,), device=CPU)
    ways = [batched_matmul(a, b, way, torch.empty(6, 20, 16)) for way in (Strategy.SERIAL_TILES, proven_batch)]
    assert torch.equal(*ways)


@pytest.mark.parametrize(
    ("change", "strategy"),
    [
        (lambda function: function, Strategy.BUCKETS),
        (depending_on_threads, Strategy.SERIAL_BUCKETS),
        (depending_on_row_count, Strategy.SERIAL_TILES),
        (depending_on_place, Strategy.SERIAL_TILES),
    ],
)
def test_only_a_product_that_does_not_depend_on_its_rows_is_run_in_buckets(
    change: Callable[[Function], Function], strategy: Strategy
) -> None:
    with thread_count(2):
        assert (
            choose_strategy(change(lambda rows: rows * 3), probe_rows(256, 32, torch.float32, CPU), ROW_BUCKETS)
            is strategy
        )


@pytest.mark.parametrize(("most", "strategy"), [(32, Strategy.SMALL_BUCKETS), (16, Strategy.SERIAL_TILES)])
def test_an_order_of_summation_that_rounding_nearly_always_hides_is_seen(
    monkeypatch: pytest.MonkeyPatch, most: int, strategy: Strategy
) -> None:
    def summed_in_halves_for_many_rows(a: Tensor, b: Tensor) -> Tensor:
        first = a.shape[1] if a.shape[0] <= most else a.shape[1] // 2
        parts = torch.stack([a[:, :first].float() @ b[:first].float(), a[:, first:].float() @ b[first:].float()])
        return parts.sum(0).to(a.dtype)

    monkeypatch.setattr("engine.numerics.gemm.has_matrix_units", lambda: False)
    monkeypatch.setattr(torch, "mm", summed_in_halves_for_many_rows)
    weight = torch.randn(8, 64, generator=torch.Generator().manual_seed(3))
    prepared = prepare_linear(weight, None, result_dtype=torch.bfloat16, compute=torch.bfloat16)
    assert linear_strategy(prepared) is strategy


@pytest.mark.parametrize(
    ("name", "value"),
    [("ONEDNN_MAX_CPU_ISA", "AVX2"), ("ONEDNN_MAX_CPU_ISA", "avx512_core_bf16"), ("DNNL_MAX_CPU_ISA", "SSE41")],
)
def test_a_cpu_that_is_kept_from_its_matrix_units_widens_bf16(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    assert not has_matrix_units()
    assert compute_dtype(torch.bfloat16, CPU) is torch.float32


@pytest.mark.skipif(not has_matrix_units(), reason="this CPU has no matrix units for bf16: it has one way only")
@pytest.mark.parametrize("has_bias", [False, True])
def test_matrix_units_differ_from_widening_by_an_order_of_summation_alone(has_bias: bool) -> None:
    generator = torch.Generator().manual_seed(4)
    weight = torch.randn(320, 576, generator=generator).mul_(576**-0.5).bfloat16()
    bias = torch.randn(320, generator=generator).bfloat16() if has_bias else None
    x = torch.randn(256, 576, generator=generator).bfloat16()
    rows = {
        compute: linear(x, prepare_linear(weight, bias, result_dtype=torch.bfloat16, compute=compute))
        for compute in (torch.bfloat16, torch.float32)
    }
    exact = functional.linear(x.double(), weight.double(), None if bias is None else bias.double()).bfloat16()
    wrong = {compute: float((y != exact).double().mean()) for compute, y in rows.items()}
    assert wrong[torch.bfloat16] <= 2 * wrong[torch.float32] + 1e-4


@pytest.mark.skipif(not has_matrix_units(), reason="this CPU has no matrix units for bf16: it has one way only")
def test_matrix_units_give_an_fp32_result_that_was_not_rounded_to_bf16() -> None:
    generator = torch.Generator().manual_seed(4)
    weight = torch.randn(320, 576, generator=generator).mul_(576**-0.5).bfloat16()
    x = torch.randn(256, 576, generator=generator).bfloat16()
    prepared = prepare_linear(weight, None, result_dtype=torch.float32, compute=torch.bfloat16)
    actual, exact = linear(x, prepared), functional.linear(x.double(), weight.double())
    assert actual.dtype is torch.float32
    assert torch.allclose(actual.double(), exact, rtol=2**-17, atol=1e-5)
    proven = prepared.with_strategy(linear_strategy(prepared))
    assert torch.equal(linear(x, proven), actual)


@pytest.mark.parametrize(
    ("change", "strategy"),
    [(depending_on_row_count, Strategy.SERIAL_TILES), (depending_on_threads, Strategy.SERIAL_BUCKETS)],
)
def test_the_stricter_strategy_makes_such_a_product_invariant(
    change: Callable[[Function], Function], strategy: Strategy
) -> None:
    product = change(lambda rows: rows * 3)
    x = probe_rows(256, 32, torch.float32, CPU)
    with thread_count(2):
        assert torch.equal(by_rows(product, x, strategy), x * 3)
        assert torch.equal(by_rows(product, x[7:11], strategy), by_rows(product, x, strategy)[7:11])


def test_a_library_that_depends_on_the_row_count_changes_the_strategy_but_not_the_contract(
    model_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch, "mm", depending_on_row_count(torch.mm))
    monkeypatch.setattr(torch, "bmm", depending_on_row_count(torch.bmm))
    decoder = load_decoder(model_dir, dtype=torch.float32, device=CPU)
    strategies = self_check(decoder).strategies
    assert set(strategies.values()) == {"serial_tiles"}
    sequence = random_ids(90, 259, seed=1)
    whole = prefill(decoder, sequence)
    paged = PagedDecoder(decoder, [sequence])
    parts = [paged.step([(0, start, end)])[0] for start, end in ((0, 1), (1, 70), (70, 89), (89, 90))]
    assert torch.equal(torch.cat(parts), whole)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["fp32", "bf16"])
def test_the_check_passes_and_names_what_it_looked_at(model_dir: Path, dtype: torch.dtype) -> None:
    before = torch.get_num_threads()
    check = self_check(load_decoder(model_dir, dtype=dtype, device=CPU), num_threads=2)
    assert torch.get_num_threads() == before
    assert check.num_threads == 2
    assert {"linear 64x128", "linear 64x259", "silu over 160", "log_softmax over 259"} <= set(check.operations)
    assert set(check.strategies) >= {"linear 64x128", "attention"}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["fp32", "bf16"])
def test_the_check_covers_experts_and_their_router(moe_dir: Path, dtype: torch.dtype) -> None:
    check = self_check(load_decoder(moe_dir, dtype=dtype, device=CPU), num_threads=2)
    assert {"linear 64x8", "softmax over 8", "grouped 8x64x96", "grouped 8x48x64", "silu over 48"} <= {
        *check.operations
    }
    assert {"grouped 8x64x96", "grouped 8x48x64"} <= set(check.strategies)


@pytest.mark.parametrize(
    ("owner", "name", "words"),
    [
        (functional, "grouped_mm", "grouped 8x64x96: "),
        (torch, "softmax", "softmax over 8: "),
    ],
)
def test_the_check_fails_where_an_experts_row_depends_on_its_place(
    moe_dir: Path, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, words: str
) -> None:
    decoder = load_decoder(moe_dir, dtype=torch.float32, device=CPU)
    monkeypatch.setattr(owner, name, depending_on_place(getattr(owner, name)))
    with pytest.raises(NumericsError, match=f"^{words}"):
        self_check(decoder)


@pytest.mark.parametrize(
    ("owner", "name", "words"),
    [
        (torch, "mm", "linear 64x128: "),
        (torch, "bmm", "forward of 86 tokens: "),
        (torch, "log_softmax", "log_softmax over 259: "),
        (check_module, "silu", "silu over 160: "),
        (check_module, "rms_norm", "rms_norm over 64: "),
    ],
)
def test_the_check_fails_where_a_row_depends_on_its_place(
    model_dir: Path, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, words: str
) -> None:
    decoder = load_decoder(model_dir, dtype=torch.float32, device=CPU)
    monkeypatch.setattr(owner, name, depending_on_place(getattr(owner, name)))
    with pytest.raises(NumericsError, match=f"^{words}"):
        self_check(decoder)


def test_the_check_fails_where_threads_change_a_bit(model_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    decoder = load_decoder(model_dir, dtype=torch.float32, device=CPU)
    monkeypatch.setattr(torch, "log_softmax", depending_on_threads(torch.log_softmax))
    with pytest.raises(NumericsError, match=r"log_softmax over 259: .*4 rows on 2 threads"):
        self_check(decoder, num_threads=2)


@pytest.mark.parametrize(("is_small", "threads"), [(True, 1), (False, 3)])
def test_only_small_operations_are_kept_on_one_thread(is_small: bool, threads: int) -> None:
    with thread_count(3):
        assert int(run(lambda: torch.tensor(torch.get_num_threads()), is_small=is_small)) == threads
        assert torch.get_num_threads() == 3


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["fp32", "bf16"])
@pytest.mark.parametrize("threads", [1, 2, 3, 4])
def test_rowwise_functions_do_not_see_where_the_threads_meet(dtype: torch.dtype, threads: int) -> None:
    x = torch.randn(404, 344, generator=torch.Generator().manual_seed(5)).mul_(4).to(dtype)
    weight = torch.rand(344, generator=torch.Generator().manual_seed(6)).to(dtype)
    alone = [(silu(x[row : row + 4]), rms_norm(x[row : row + 4], weight, 1e-5)) for row in range(0, 404, 4)]
    with thread_count(threads):
        assert torch.equal(silu(x), torch.cat([pair[0] for pair in alone]))
        assert torch.equal(rms_norm(x, weight, 1e-5), torch.cat([pair[1] for pair in alone]))


def test_rowwise_functions_compute_what_their_names_say() -> None:
    x = torch.tensor([[-200.0, -1.0, 0.0, 2.0, 200.0]])
    assert torch.allclose(silu(x), functional.silu(x))
    weight = torch.arange(5.0)
    assert torch.allclose(rms_norm(x, weight, 1e-6), functional.rms_norm(x, (5,), weight, 1e-6))


def test_the_fingerprint_is_json_and_does_not_name_the_thread_count(model_dir: Path) -> None:
    decoder = load_decoder(model_dir, dtype=torch.bfloat16, device=CPU)
    with thread_count(1):
        one = environment_fingerprint(decoder, self_check(decoder))
    with thread_count(2):
        two = environment_fingerprint(decoder, self_check(decoder))
    assert json.loads(json.dumps(one)) == two
    assert (one["torch"], one["dtype"], one["device"]) == (torch.__version__, "bfloat16", "cpu")
    assert one["products"]["attention"] in set(Strategy)
    assert one["self_check"] == "passed"


def test_library_versions_are_found_in_the_build_description() -> None:
    build = (
        "PyTorch built with:\n  - Intel(R) oneAPI Math Kernel Library Version 2024.2-Product Build 20240605\n"
        "  - Intel(R) MKL-DNN v3.7.1 (Git Hash 8d26)\n"
    )
    assert library_versions(build) == {"mkl": "2024.2-Product", "onednn": "3.7.1"}
