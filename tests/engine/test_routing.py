"""Routing recorded and replayed: by the file's format, and by the engine on the shipped model with experts."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.config import ConfigError, InferenceConfig
from engine.engine import Engine
from engine.model.identity import model_sha256
from engine.request import FinishReason, Request, RequestOutput, SamplingParams
from engine.routing import RecordedRequest, Recording, load_recording, save_recording
from tests.engine.model.checkpoints import TINY_MIXTRAL, write_checkpoint

MODELS = Path(__file__).parents[2] / "fixtures" / "models"
MODEL = MODELS / "storyteller-moe-1m"
LAYERS, CHOICES = 4, 2
SAMPLING = SamplingParams(max_new_tokens=16, ignore_eos=True, logprobs=True)
REQUESTS = [
    Request(str(index), tuple((7 + 31 * place + 5 * index) % 2000 for place in range(length)), SAMPLING)
    for index, length in enumerate((40, 3, 17, 1))
]


@dataclasses.dataclass(frozen=True)
class Shape:
    layers: tuple[int, ...] = (0, 2)
    num_experts: int = 4
    experts_per_token: int = 2


@pytest.fixture(scope="module", params=["fp32", "bf16"])
def base(request: pytest.FixtureRequest) -> Iterator[Engine]:
    engine = Engine.load(MODEL, InferenceConfig(dtype=request.param, num_threads=1))
    yield engine
    engine.close()


def routed(base: Engine, **settings: Any) -> Engine:
    legacy: dict[str, Any] = {"async_sched_mode": "legacy", "moe_enable_routing_replay": True}
    return base.with_config(dataclasses.replace(base.config, **(legacy | settings)))


def run(engine: Engine, requests: list[Request] = REQUESTS) -> dict[str, RequestOutput]:
    try:
        return {output.request_id: output for output in engine.generate(requests)}
    finally:
        engine.close()


def save(base: Engine, path: Path, requests: list[Request] = REQUESTS) -> Path:
    engine = routed(base)
    outputs = engine.generate(requests)
    assert engine.save_routing(path, outputs) == len(requests)
    engine.close()
    return path


def test_every_token_but_the_last_generated_has_a_row(base: Engine) -> None:
    engine = routed(base)
    outputs = run(engine)
    for request in REQUESTS:
        rows = outputs[request.request_id].routing_indices
        assert rows is not None
        assert len(rows) == len(request.prompt_token_ids) + SAMPLING.max_new_tokens - 1
        for row in rows:
            assert len(row) == LAYERS
            assert all(len(set(ids)) == CHOICES and set(ids) <= set(range(8)) for ids in row)
    assert engine.counters.routing_recorded_token_count == sum(
        len(output.routing_indices or ()) for output in outputs.values()
    )
    assert engine.counters.routing_replayed_token_count == 0


@pytest.mark.parametrize(
    ("settings", "counter"),
    [
        ({"enable_chunked_prefill": True, "max_tokens": 11}, "chunked_prefill_step_count"),
        ({"num_blocks": 10, "block_size_tokens": 8}, "preemption_count"),
        (
            {"num_blocks": 10, "block_size_tokens": 8, "enable_chunked_prefill": True, "max_tokens": 7},
            "preemption_count",
        ),
    ],
)
def test_chunks_and_evictions_leave_the_rows_complete_and_undoubled(
    base: Engine, settings: dict[str, Any], counter: str, tmp_path: Path
) -> None:
    undisturbed = run(routed(base))
    engine = routed(base, **settings)
    assert run(engine) == undisturbed
    assert getattr(engine.counters, counter) > 0
    recording = save(base, tmp_path / "recording.json")
    replaying = routed(base, routing_replay_path=str(recording), **settings)
    assert run(replaying) == undisturbed
    assert getattr(replaying.counters, counter) > 0
    assert replaying.counters.routing_replayed_token_count == replaying.counters.routing_recorded_token_count


def test_recording_changes_no_bit_of_what_is_generated(base: Engine) -> None:
    plain = run(base.with_config(dataclasses.replace(base.config, async_sched_mode="async")))
    recorded = run(routed(base))
    for request_id, output in plain.items():
        assert output.routing_indices is None
        assert dataclasses.replace(recorded[request_id], routing_indices=None) == output


def test_a_replay_gives_the_same_bits_also_in_another_order(base: Engine, tmp_path: Path) -> None:
    recorded = run(routed(base))
    recording = str(save(base, tmp_path / "recording.json"))
    assert run(routed(base, routing_replay_path=recording)) == recorded
    ids = [request.request_id for request in REQUESTS]
    renamed = [
        dataclasses.replace(request, request_id=new) for request, new in zip(reversed(REQUESTS), ids, strict=True)
    ]
    again = run(routed(base, routing_replay_path=recording), renamed)
    for old, new in zip(reversed(ids), ids, strict=True):
        assert dataclasses.replace(again[new], request_id=old) == recorded[old]


def changed(path: Path, change: Callable[[Any], object]) -> Path:
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))
    return path


def test_swapped_experts_show_in_routing_and_log_probs_of_that_request_alone(base: Engine, tmp_path: Path) -> None:
    recorded = run(routed(base))
    recording = save(base, tmp_path / "recording.json")

    def swap(document: Any) -> None:
        ids = document["requests"]["0"]["routing_indices"][39][2]
        ids[0] = next(expert for expert in range(8) if expert not in ids)

    replayed = run(routed(base, routing_replay_path=str(changed(recording, swap))))
    before, after = recorded["0"].routing_indices, replayed["0"].routing_indices
    assert before is not None
    assert after is not None
    assert [index for index in range(len(after)) if before[index] != after[index]] == [39]
    assert replayed["0"].generated_logprobs != recorded["0"].generated_logprobs
    assert {key: replayed[key] for key in "123"} == {key: recorded[key] for key in "123"}


def test_requests_that_were_not_recorded_fail_alone_and_say_why(base: Engine, tmp_path: Path) -> None:
    recording = str(save(base, tmp_path / "recording.json", REQUESTS[:2]))
    other_prompt = dataclasses.replace(REQUESTS[1], prompt_token_ids=(*REQUESTS[1].prompt_token_ids[:2], 5))
    engine = routed(base, routing_replay_path=recording)
    outputs = run(engine, [REQUESTS[0], other_prompt, REQUESTS[2]])
    assert outputs["0"].error is None
    assert "request '1': its request '1' has another prompt, from token 2 on" in str(outputs["1"].error)
    assert "request '2': it has 2 requests with other prompts" in str(outputs["2"].error)
    assert outputs["1"].routing_indices == ()
    assert engine.counters.routing_replayed_token_count == len(outputs["0"].routing_indices or ())


def test_a_replay_that_goes_on_after_the_recording_fails_that_request_alone(base: Engine, tmp_path: Path) -> None:
    recording = str(save(base, tmp_path / "recording.json"))
    longer = dataclasses.replace(REQUESTS[1], sampling=dataclasses.replace(SAMPLING, max_new_tokens=17))
    outputs = run(routed(base, routing_replay_path=recording), [REQUESTS[0], longer])
    assert outputs["1"].finish_reason is FinishReason.ERROR
    assert "has 18 rows for this request, none for the token at position 18" in str(outputs["1"].error)
    assert outputs["0"] == run(routed(base))["0"]


def test_a_cancelled_request_keeps_the_rows_it_has_and_the_others_go_on(base: Engine) -> None:
    undisturbed = run(routed(base))
    engine = routed(base)
    outputs: dict[str, RequestOutput] = {}
    for step, events in enumerate(engine.stream(REQUESTS)):
        outputs |= {output.request_id: output for output in events.finished}
        if step == 4:
            engine._loop.cancel("0")
    engine.close()
    cancelled, rows = outputs["0"], undisturbed["0"].routing_indices
    assert cancelled.finish_reason is FinishReason.CANCELLED
    assert rows is not None
    assert cancelled.routing_indices == rows[: 40 + len(cancelled.generated_token_ids) - 1]
    assert {key: outputs[key] for key in "123"} == {key: undisturbed[key] for key in "123"}


def test_a_scored_prompt_has_a_row_for_every_token_but_the_last(base: Engine) -> None:
    scoring = dataclasses.replace(SAMPLING, max_new_tokens=0)
    output = run(routed(base), [dataclasses.replace(REQUESTS[0], sampling=scoring)])["0"]
    rows = run(routed(base))["0"].routing_indices
    assert rows is not None
    assert output.routing_indices == rows[:39]


def test_a_dense_model_has_nothing_to_route() -> None:
    config = InferenceConfig(async_sched_mode="legacy", moe_enable_routing_replay=True)
    with pytest.raises(ConfigError, match=r"storyteller-llama-1m is a dense model \(llama\) without experts"):
        Engine.load(MODELS / "storyteller-llama-1m", config)


def test_a_recording_of_another_model_is_refused(base: Engine, tmp_path: Path) -> None:
    recording = save(base, tmp_path / "recording.json", REQUESTS[:1])
    other = write_checkpoint(tmp_path / "model", **TINY_MIXTRAL)
    assert model_sha256(other) != model_sha256(MODEL)
    changed(recording, lambda document: document.update(model_sha256=model_sha256(other)))
    with pytest.raises(
        ConfigError, match=r"routing_replay_path: .*recording\.json: it was recorded with another model"
    ):
        routed(base, routing_replay_path=str(recording))


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_a_models_hash_sees_its_configuration_and_its_weights(name: str, tmp_path: Path) -> None:
    write_checkpoint(tmp_path)
    before = model_sha256(tmp_path)
    (tmp_path / "README.md").write_text("no part of it")
    assert model_sha256(tmp_path) == before
    path = tmp_path / name
    path.write_bytes(path.read_bytes() + b" ")
    assert model_sha256(tmp_path) != before


ROWS = [[[0, 1], [3, 2]], [[1, 0], [2, 3]], [[2, 1], [0, 3]]]


def recorded_output(request_id: str = "a") -> RequestOutput:
    request = Request(request_id, (5, 6))
    output = RequestOutput.failed(request, "")
    return dataclasses.replace(output, routing_indices=tuple(ROWS), error=None)


def test_what_was_saved_is_what_is_loaded(tmp_path: Path) -> None:
    path = tmp_path / "recording.json"
    without = RequestOutput.failed(Request("b", (1,)), "refused")
    assert save_recording(path, [recorded_output(), without], 4, "abc") == 1
    recording = load_recording(path, Shape(), "abc")
    assert list(recording.requests) == ["a"]
    assert recording.rows(Request("other", (5, 6))) == ROWS
    assert [entry.name for entry in tmp_path.iterdir()] == ["recording.json"], "nothing temporary is left"


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"absent/recording\.json: cannot be written: No such file"):
        save_recording(tmp_path / "absent" / "recording.json", [recorded_output()], 4, "abc")


def rows_of(document: Any) -> Any:
    return document["requests"]["a"]["routing_indices"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda it: it.update(schema="engine.routing/2"), "schema is 'engine.routing/2', but this engine reads"),
        (lambda it: it.pop("schema"), "schema is None"),
        (
            lambda it: it.update(model_sha256="abd"),
            r"recorded with another model \(model_sha256 abd…, this model has abc",
        ),
        (lambda it: it.update(model_sha256=5), "recorded with another model"),
        (lambda it: it.update(num_experts=8), "num_experts is 8, but the model has 4"),
        (lambda it: it.pop("num_experts"), "num_experts is missing"),
        (lambda it: it.update(extra=1), "'extra' is not known"),
        (lambda it: it.update(requests={}), "at least one request"),
        (lambda it: it.update(requests=[]), "requests must be an object"),
        (lambda it: it["requests"].update(b=5), "request 'b' must be an object"),
        (lambda it: it["requests"]["a"].pop("prompt_tokens"), "request 'a': prompt_tokens is missing"),
        (lambda it: it["requests"]["a"].update(text="x"), "request 'a': 'text' is not known"),
        (lambda it: it["requests"]["a"].update(prompt_tokens=[]), "prompt_tokens must be a list of token ids"),
        (lambda it: it["requests"]["a"].update(prompt_tokens=[5, -6]), "prompt_tokens must be a list of token ids"),
        (lambda it: it["requests"]["a"].update(prompt_tokens=[5, 6.0]), "prompt_tokens must be a list of token ids"),
        (lambda it: it["requests"]["a"].update(routing_indices=7), "there are no rows for 2 prompt tokens"),
        (lambda it: rows_of(it).__delitem__(slice(1, None)), "there are 1 rows for 2 prompt tokens"),
        (lambda it: rows_of(it)[1].pop(), r"routing_indices\[1\] must have 2 lists"),
        (lambda it: rows_of(it).__setitem__(0, 5), r"routing_indices\[0\] must have 2 lists"),
        (lambda it: rows_of(it)[1][1].append(0), r"routing_indices\[1\] \[1\] must have 2 expert ids"),
        (lambda it: rows_of(it)[1][1].__setitem__(0, True), r"routing_indices\[1\] \[1\] must have 2 expert ids"),
        (lambda it: rows_of(it)[2][0].__setitem__(1, 4), r"\[2\] \[0\] names expert 4, but there are 0 to 3"),
        (lambda it: rows_of(it)[2][0].__setitem__(1, -1), r"\[2\] \[0\] names expert -1"),
        (lambda it: rows_of(it)[2][0].__setitem__(1, 2), r"\[2\] \[0\] names one expert twice: \[2, 2\]"),
    ],
)
def test_a_recording_that_does_not_fit_is_refused_with_what_is_wrong(
    change: Callable[[Any], object], words: str, tmp_path: Path
) -> None:
    path = tmp_path / "recording.json"
    save_recording(path, [recorded_output()], 4, "abc")
    changed(path, change)
    with pytest.raises(ConfigError, match=f"^setting routing_replay_path: {path}: .*{words}") as caught:
        load_recording(path, Shape(), "abc")
    assert "give it a recording of this model" in str(caught.value)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is not JSON"),
        (b"{", "is not JSON"),
        (b"\xff", "is not JSON"),
        (b"[]", "top level must be an object"),
        (b'{"schema": 1, "schema": 2}', "a key stands there twice"),
        (b"[" * 100_000, "is not JSON"),
        (b'{"schema": ' + b"9" * 5000 + b"}", "is not JSON"),
    ],
)
def test_a_file_that_is_no_recording_is_refused(content: bytes, words: str, tmp_path: Path) -> None:
    path = tmp_path / "recording.json"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=words):
        load_recording(path, Shape(), "abc")
    with pytest.raises(ConfigError, match="cannot be read"):
        load_recording(tmp_path, Shape(), "abc")
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        load_recording(tmp_path / "absent.json", Shape(), "abc")


def test_of_equal_prompts_a_request_replays_the_one_with_its_id() -> None:
    first, second = RecordedRequest((5, 6), ROWS), RecordedRequest((5, 6), ROWS[::-1])
    recording = Recording(Path("r.json"), "abc", 4, {"a": first, "b": second})
    assert recording.rows(Request("b", (5, 6))) == ROWS[::-1]
    assert recording.refusal(Request("b", (5,))) is not None
