"""The adapter of the engine that comes with this project.

Torch is imported by `prepare` and `run` alone: everything a linter or an offline check asks for is answered without it.
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib
import importlib.util
import json
import os
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.config import ConfigError, InferenceConfig, settings
from engine.request import FinishReason, Request, SamplingParams
from framework.errors import ManifestError
from framework.golden.document import RECORD_SCHEMA
from framework.regular_file import read_regular_file
from framework.run.adapter import SettingDescription
from framework.run.devices import usable_devices
from framework.run.workload import plain_requests

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from engine.engine import Engine
    from engine.request import RequestOutput
    from framework.manifest.fixture import Fixture

_TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json")
_MODEL_SUFFIXES = (".json", ".safetensors")
_INDEX_FILE = "model.safetensors.index.json"
_READ_BYTES = 1 << 20
_MOST_INDEX_BYTES = 32_000_000
_MOST_TOKENIZER_BYTES = 64_000_000
_REPLAY_PATH = "routing_replay_path"
_LONGEST_SHOWN = 80

_COLLECTIONS = {"stop_token_ids": frozenset, "stop_strings": tuple}
"""Sampling parameters that hold several values, and what the engine takes them as."""


class ReferenceEngine:
    """Runs fixtures on `engine`; the weights of the latest model stay loaded."""

    def __init__(self) -> None:
        self._loaded: tuple[tuple[Path, str, str], Engine] | None = None
        self._tokenizers: dict[Path, Any] = {}

    def describe(self) -> Mapping[str, SettingDescription]:
        """Return every setting of `InferenceConfig`."""
        return {
            name: SettingDescription(
                default=setting.default,
                kind=setting.kind,
                help=setting.help,
                choices=setting.choices,
                minimum=setting.minimum,
                optional=setting.optional,
            )
            for name, setting in settings().items()
        }

    def check_settings(self, pinned: Mapping[str, Any]) -> None:
        """Raise `ConfigError` if these settings cannot be combined."""
        InferenceConfig.from_mapping(pinned)

    def check_sampling(self, sampling: Mapping[str, Any]) -> None:
        """Raise `ValueError` on sampling that the engine cannot do."""
        _sampling(sampling)

    def check_fixture(self, fixture: Fixture) -> None:
        """Raise `ConfigError` if the recording that a fixture replays is not in the repository."""
        path = _with_paths(fixture.engine, fixture).get(_REPLAY_PATH)
        if path is not None and not Path(path).is_file():
            written = fixture.engine[_REPLAY_PATH]
            raise ConfigError(
                f"setting {_REPLAY_PATH}: {written!r} is no file in the manifest's folder; make the recording "
                "first, with `python -m framework.run.routing_recording`"
            )

    def platforms(self) -> tuple[str, ...]:
        """Return the kinds of the GPUs that may be used here, and `cpu`."""
        return self._platforms

    def environment_variants(self) -> Mapping[str, Mapping[str, str]]:
        """Return environments in which the same CPU computes with another instruction set."""
        return {
            "avx2": {"ATEN_CPU_CAPABILITY": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2"},
            "baseline": {
                "ATEN_CPU_CAPABILITY": "default",
                "ONEDNN_MAX_CPU_ISA": "SSE41",
                "MKL_CBWR": "COMPATIBLE",
            },
        }

    def revision(self) -> str:
        """Return SHA-256 over the engine's sources."""
        found = importlib.util.find_spec("engine")
        assert found is not None, "the engine was imported above"
        assert found.submodule_search_locations is not None, "the engine is a package"
        package = Path(next(iter(found.submodule_search_locations)))
        return "sources " + _hash_of_files(sorted(package.rglob("*.py")), package)

    def model_hashes(self, model_path: Path) -> Mapping[str, str]:
        """Return SHA-256 of the weights with their configuration, and of the tokenizer's files.

        Raises:
            ManifestError: the model holds something that should be a file and cannot be read as one.
        """
        names = {path.name for path in _folder(model_path) if path.suffix in _MODEL_SUFFIXES}
        files = sorted(model_path / name for name in names | _shards(model_path))
        tokenizer = [path for path in files if path.name in _TOKENIZER_FILES]
        model = [path for path in files if path not in tokenizer]
        return {"model": _hash_of_files(model, model_path), "tokenizer": _hash_of_files(tokenizer, model_path)}

    def prepare(self) -> None:
        """Import the engine, and with it torch."""
        importlib.import_module("engine.engine")

    def run(
        self,
        fixture: Fixture,
        *,
        model_path: Path,
        platform: str,
        overrides: Mapping[str, Any],
    ) -> dict[str, Any]:
        """Run the workload and return its record."""
        pinned = {"device": "cpu" if platform == "cpu" else "cuda", **fixture.engine, **overrides}
        config = InferenceConfig.from_mapping(_with_paths(pinned, fixture))
        engine = self._engine(model_path, config)
        plain = plain_requests(
            fixture.workload,
            encode=engine.tokenizer.encode,
            vocabulary_size=engine.vocabulary_size,
        )
        requests = [
            Request(
                request_id=request.request_id,
                prompt_token_ids=request.token_ids,
                sampling=_sampling(request.sampling),
                arrival_step=request.arrival_step,
            )
            for request in plain
        ]
        outputs = engine.generate(requests)
        return {
            "schema": RECORD_SCHEMA,
            "fixture": fixture.name,
            "requests": {output.request_id: _request_record(output) for output in outputs},
            "counters": engine.counters.as_dict(),
            "performance": {"tokens_per_second": engine.timing.tokens_per_second},
            "settings": _resolved(InferenceConfig.from_mapping(pinned), {*fixture.engine, *overrides}, platform),
            "environment": engine.environment(),
        }

    def schedule(self) -> Sequence[Mapping[str, Any]]:
        """Return which step of the latest run computed what."""
        return self._loaded[1].trace.as_json() if self._loaded else []

    def decode(self, model_path: Path, token_ids: Sequence[int]) -> str:
        """Return the text of tokens by the model's own tokenizer, without the engine.

        Raises:
            ValueError: the tokenizer cannot be read, or its rules fail, or could make a text of any length: this is not
                the engine's process, which has a time limit.
        """
        try:
            if model_path not in self._tokenizers:
                text = read_regular_file(model_path / "tokenizer.json", _MOST_TOKENIZER_BYTES).decode("utf-8")
                _refuse_growth(json.loads(text).get("decoder"))
                self._tokenizers[model_path] = importlib.import_module("tokenizers").Tokenizer.from_str(text)
            return str(self._tokenizers[model_path].decode(list(token_ids), skip_special_tokens=False))
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # noqa: BLE001 - the library's own panic is no `Exception`
            raise ValueError(f"{model_path}: tokens cannot be decoded: {error}") from None

    def _engine(self, model_path: Path, config: InferenceConfig) -> Engine:
        """Return an engine with these settings on weights that are read once while the model stays the same."""
        key = (model_path, config.dtype, config.device)
        if self._loaded is not None and self._loaded[0] == key:
            previous = self._loaded[1]
            if previous.config == config:
                return previous
            engine = previous.with_config(config)
            previous.close()
        else:
            engine = importlib.import_module("engine.engine").Engine.load(model_path, config)
        self._loaded = (key, engine)
        return engine

    @cached_property
    def _platforms(self) -> tuple[str, ...]:
        gpus = [device.platform for device in usable_devices(os.environ) if device.name and not device.is_fake]
        return (*dict.fromkeys(gpus), "cpu")


def _refuse_growth(decoder: Any) -> None:
    """Refuse a decoder that replaces something by something longer; a few of these in a row would fill any memory."""
    if isinstance(decoder, dict):
        if decoder.get("type") == "Replace":
            sought, written = decoder["pattern"].get("String"), decoder["content"]
            if sought is None or len(written) > len(sought):
                raise ValueError("its decoder makes texts longer")
        for step in decoder.get("decoders") or ():
            _refuse_growth(step)


def _sampling(values: Mapping[str, Any]) -> SamplingParams:
    names = {field.name for field in dataclasses.fields(SamplingParams)}
    unknown = next((name for name in values if name not in names), None)
    if unknown is not None:
        raise ValueError(f"sampling {unknown}: {values[unknown]!r} is not something this engine can do; leave it out")
    return SamplingParams(**{name: _COLLECTIONS.get(name, _as_is)(value) for name, value in values.items()})


def _as_is(value: Any) -> Any:
    return value


def _with_paths(pinned: Mapping[str, Any], fixture: Fixture) -> dict[str, Any]:
    """Return the settings with the recording's path, which a manifest gives from its own folder, as one that opens.

    Raises:
        ConfigError: the path leaves the folder that holds `fixtures/`, or is none.
    """
    written = pinned.get(_REPLAY_PATH)
    if not isinstance(written, str):
        return dict(pinned)
    root = fixture.path.resolve().parents[len(Path(fixture.name).parts)]
    try:
        found = (fixture.path.resolve().parent / written).resolve()
        found.is_file()
    except (OSError, ValueError, RuntimeError) as error:  # too long, with a NUL, a link that leads to itself
        shown = written if len(written) <= _LONGEST_SHOWN else f"{written[:_LONGEST_SHOWN]}…"
        why = getattr(error, "strerror", None) or error
        raise ConfigError(f"setting {_REPLAY_PATH}: {shown!r} is no path that can be used: {why}") from None
    if Path(written).is_absolute() or not found.is_relative_to(root):
        raise ConfigError(
            f"setting {_REPLAY_PATH}: {written!r} leaves the repository; give a path relative to the manifest's "
            "folder, to a file in the repository"
        )
    return {**pinned, _REPLAY_PATH: str(found)}


def _request_record(output: RequestOutput) -> dict[str, Any]:
    record: dict[str, Any] = {
        "prompt_tokens": list(output.prompt_token_ids),
        "generated_tokens": list(output.generated_token_ids),
        "generated_text": output.generated_text,
        "finish_reason": FinishReason(output.finish_reason).value,
        "margins": list(output.margins),
    }
    if output.error is not None:
        record["error"] = output.error
    if output.generated_logprobs is not None:
        record["generated_logprobs"] = list(output.generated_logprobs)
    if output.prompt_logprobs is not None:
        record["prompt_logprobs"] = list(output.prompt_logprobs)
    if output.top_n_logprobs is not None:
        record["top_n_logprobs"] = [[token._asdict() for token in top] for top in output.top_n_logprobs]
    if output.routing_indices is not None:
        record["routing_indices"] = [[list(ids) for ids in row] for row in output.routing_indices]
    return record


def _resolved(config: InferenceConfig, pinned: set[str], platform: str) -> dict[str, Any]:
    """Return every setting with its source; a device that follows from the platform is not an inherited default."""
    if platform != "cpu":
        pinned = pinned | {"device"}
    return {
        name: {"value": getattr(config, name), "source": "pinned" if name in pinned else "default"}
        for name in settings()
    }


def _folder(model_path: Path) -> list[Path]:
    try:
        return list(model_path.iterdir())
    except OSError as error:
        raise _unreadable(model_path, error.strerror or str(error)) from None


def _shards(model_path: Path) -> set[str]:
    """Return the names of the files that the index of the weights names, whatever they are called."""
    index = model_path / _INDEX_FILE
    if not index.is_file():
        return set()
    try:
        shards = set(json.loads(read_regular_file(index, _MOST_INDEX_BYTES))["weight_map"].values())
    except (OSError, ValueError, RecursionError, KeyError, TypeError, AttributeError) as error:
        raise _unreadable(index, f"no index of weights: {type(error).__name__}: {error}") from None
    if not all(isinstance(name, str) for name in shards):
        raise _unreadable(index, "no index of weights: a file's name is not a string")
    return shards


def _unreadable(path: Path, cause: str) -> ManifestError:
    return ManifestError(f"{path}: the model cannot be read: {cause}. Restore the model, or take out what is no file")


def _hash_of_files(paths: list[Path], base: Path) -> str:
    """Return SHA-256 over the names and contents of files, in the order given."""
    digest = hashlib.sha256()
    for path in paths:
        try:
            if path.exists() and not path.is_file():
                raise _unreadable(path, "it is no file")
            with path.open("rb") as stream:
                size = os.fstat(stream.fileno()).st_size
                digest.update(f"{os.path.relpath(path, base)} {size}\n".encode())
                while block := stream.read(_READ_BYTES):
                    digest.update(block)
        except (OSError, ValueError) as error:
            raise _unreadable(path, getattr(error, "strerror", None) or str(error)) from None
    return digest.hexdigest()
