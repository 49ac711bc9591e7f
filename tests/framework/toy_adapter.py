"""A second engine, of a few lines, that can be told to misbehave.

Token t of a request is a hash of its prompt and t, whatever runs beside it.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from framework.manifest.fixture import Fixture
from framework.run.adapter import SettingDescription
from framework.run.workload import plain_requests

VOCABULARY = 1000
_VIOLENT_FAULTS = ("crash", "die", "killed", "odd_signal", "hang", "memory")
FAULTS = ("none", *_VIOLENT_FAULTS, "nan", "random", "noise", "tie", "narrow", "no_record")


def _default(name: str, otherwise: str) -> str:
    """A default that a release may change: read from beside this file, so that a test can change it."""
    path = Path(__file__).with_name(f"toy_default_{name}")
    return path.read_text().strip() if path.is_file() else otherwise


def _while_it_lasts(fault: str) -> str:
    """The fault, as many times as `toy_faults_left` beside this file says, for ever without it; then `toy_then`."""
    path = Path(__file__).with_name("toy_faults_left")
    if fault == "none" or not path.is_file():
        return fault
    with path.open("r+") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)  # engines beside each other count the same faults
        left = int(stream.read())
        stream.seek(0)
        stream.truncate()
        stream.write(str(max(left - 1, 0)))
    then = path.with_name("toy_then")
    return fault if left else then.read_text() if then.is_file() else "none"


class ToyEngine:
    def __init__(self) -> None:
        self._runs = 0

    def describe(self) -> Mapping[str, SettingDescription]:
        return {
            "async_sched_mode": SettingDescription(_default("mode", "async"), "str", "scheduling", ("async", "legacy")),
            "num_threads": SettingDescription(None, "int", "threads", minimum=1, optional=True),
            "fault": SettingDescription("none", "str", "how to misbehave", FAULTS),
        }

    def check_settings(self, pinned: Mapping[str, Any]) -> None:
        if pinned.get("fault") == "hang" and pinned.get("async_sched_mode") == "legacy":
            raise ValueError("setting fault: 'hang' needs async_sched_mode 'async'; pin that, or another fault")

    def platforms(self) -> tuple[str, ...]:
        return tuple(os.environ.get("TOY_PLATFORMS", "cpu").split(","))

    def revision(self) -> str:
        return "toy 1"

    def environment_variants(self) -> Mapping[str, Mapping[str, str]]:
        return {"other": {"TOY_INSTRUCTION_SET": "other"}}

    def model_hashes(self, model_path: Path) -> Mapping[str, str]:
        data = (model_path / "config.json").read_bytes()
        return {"model": hashlib.sha256(data).hexdigest(), "tokenizer": hashlib.sha256(b"toy").hexdigest()}

    def run(
        self,
        fixture: Fixture,
        *,
        model_path: Path,
        platform: str,
        overrides: Mapping[str, Any],
    ) -> dict[str, Any]:
        self._runs += 1
        sys.stdout.write('an engine may print what it likes: {"record": [1, 2\n')
        sys.stdout.flush()
        pinned = {**fixture.engine, **overrides}
        settings = {name: pinned.get(name, description.default) for name, description in self.describe().items()}
        fault = settings["fault"] if "fault" in pinned else _default("fault", "none")
        fault = _while_it_lasts(fault)
        with audited(fixture.name, platform):
            misbehave(fault)
            time.sleep(float(os.environ.get("TOY_SECONDS", "0")))
        requests = plain_requests(fixture.workload, encode=lambda text: list(text.encode()), vocabulary_size=VOCABULARY)
        outputs = {
            request.request_id: output(request.token_ids, request.sampling["max_new_tokens"], fault, self._runs)
            for request in requests
        }
        steps = max(request.arrival_step + request.sampling["max_new_tokens"] for request in requests)
        is_async = settings["async_sched_mode"] == "async"
        record = {
            "schema": "golden.record/1",
            "fixture": fixture.name,
            "requests": outputs,
            "counters": {"step_count": steps + is_async, "async_sched_step_count": steps if is_async else 0},
            "performance": {"tokens_per_second": throughput(settings["async_sched_mode"])},
            "settings": {
                name: {"value": value, "source": "pinned" if name in pinned else "default"}
                for name, value in settings.items()
            },
            "environment": {"machine": os.environ.get("TOY_MACHINE", "one"), "platform": platform},
        }
        return {"schema": "nonsense"} if fault == "no_record" else record


@contextlib.contextmanager
def audited(fixture_name: str, platform: str) -> Iterator[None]:
    """Write into the file that `TOY_AUDIT` names when a run began and ended, in which process and on which device."""
    if "TOY_AUDIT" not in os.environ:
        yield
        return
    where = {"pid": os.getpid(), "platform": platform, "device": os.environ.get("CUDA_VISIBLE_DEVICES")}
    for event in ("begin", "end"):
        line = json.dumps({**where, "fixture": fixture_name, "event": event, "at": time.monotonic_ns()}) + "\n"
        with Path(os.environ["TOY_AUDIT"]).open("ab", buffering=0) as log:
            log.write(line.encode())
        if event == "begin":
            yield


def throughput(mode: str) -> float:
    """Twice as fast in async mode, unless that mode became slow."""
    return 200.0 if mode == "async" and os.environ.get("TOY_SLOW_MODE") != mode else 100.0


def output(prompt: tuple[int, ...], count: int, fault: str, run: int) -> dict[str, Any]:
    """One request's part of the record; a fault makes it wrong in one way."""
    salt = f"{os.getpid()}.{run}" if fault == "random" else ""
    digests = [hashlib.sha256(f"{prompt}{salt}{index}".encode()).digest() for index in range(count)]
    tokens = [int.from_bytes(digest[:4], "big") % VOCABULARY for digest in digests]
    noise = 1e-6 if os.environ.get("TOY_INSTRUCTION_SET") == "other" and fault in ("narrow", "noise") else 0.0
    margins = [1.0 + digest[4] / 256 + noise for digest in digests]
    if fault == "tie":
        margins[-1] = 0.0
    if fault == "narrow":
        margins[-1] = 1e-5 + noise
    logprobs = [-digest[5] / 256 - 0.1 + noise for digest in digests]
    if fault == "nan":
        logprobs[1] = float("nan")
    return {
        "prompt_tokens": list(prompt),
        "generated_tokens": tokens,
        "generated_text": " ".join(map(str, tokens)),
        "finish_reason": "length",
        "generated_logprobs": logprobs,
        "margins": margins,
    }


def misbehave(fault: str) -> None:
    if fault == "crash":
        raise RuntimeError("the toy fell over")
    if fault == "die":
        sys.stderr.write("last words\n")
        sys.stderr.flush()
        os._exit(3)
    if fault == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if fault == "odd_signal":
        os.kill(os.getpid(), 40)
    if fault == "memory":
        raise MemoryError("no more toys")
    if fault == "hang":
        _hang_here()


def _hang_here() -> None:
    time.sleep(600)


def toy_model(folder: Path) -> None:
    """Write the model that fixtures name `toy`."""
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps({"vocab_size": VOCABULARY}))
