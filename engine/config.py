"""The one place where an engine setting has a name, a type, a default, allowed values and a help text.

The command line, the set-up file and the runtime object are all derived from the fields of `InferenceConfig`, so a
default cannot differ between the three. This module does not import torch.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin, get_type_hints

from engine.text_file import read_text_file

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_LONGEST_SHOWN = 40
_LARGEST_CONFIG_FILE = 1_000_000
FLAG_PREFIX = "--inference-dynamic-batching-"


class ConfigError(ValueError):
    """A setting that cannot be honoured; the message names the setting, the value, why, and the way out."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What is known of one setting: `kind` is bool, int, float or str; `optional` says that null is allowed."""

    name: str
    default: Any
    kind: str
    help: str
    choices: tuple[Any, ...] = ()
    minimum: int | None = None
    maximum: int | None = None
    power_of_two: bool = False
    optional: bool = False
    short_flag: str | None = None
    above: int | None = None
    noun: str = "setting"
    flag_prefix: str = FLAG_PREFIX

    @property
    def flag(self) -> str:
        """The setting's flag on the command line."""
        return self.flag_prefix + self.name.replace("_", "-")

    def check(self, value: object) -> None:
        """Raise `ConfigError` unless `value` has the setting's type and is one of its allowed values."""
        if value is None and self.optional:
            return
        accepted: dict[str, tuple[type, ...]] = {"bool": (bool,), "int": (int,), "float": (int, float), "str": (str,)}
        of_kind = isinstance(value, accepted[self.kind]) and (self.kind == "bool" or not isinstance(value, bool))
        if not of_kind:
            or_null = " or null" if self.optional else ""
            takes = {"bool": "true or false", "int": "a whole number", "float": "a number", "str": "a string"}[
                self.kind
            ]
            raise ConfigError(
                f"{self.noun} {self.name}: {value!r} is a {type(value).__name__}, but it takes {takes}{or_null}"
            )
        if self.choices and value not in self.choices:
            raise ConfigError(
                f"{self.noun} {self.name}: {value!r} is not one of {', '.join(map(repr, self.choices))}; "
                f"choose one of these or leave it out for {self.default!r}"
            )
        if isinstance(value, int | float):
            self._check_range(value)
        if self.power_of_two and isinstance(value, int) and value & (value - 1):
            raise ConfigError(
                f"{self.noun} {self.name}: {value!r} is not a power of two; take {1 << value.bit_length()}"
            )

    def _check_range(self, value: float) -> None:
        where = f"{self.noun} {self.name}: {value!r} is"
        if self.minimum is not None and value < self.minimum:
            raise ConfigError(f"{where} below its minimum {self.minimum}; take at least that")
        if self.above is not None and value <= self.above:
            raise ConfigError(f"{where} not above {self.above}; take a greater number")
        if self.maximum is not None and value > self.maximum:
            raise ConfigError(f"{where} above its maximum {self.maximum}; take at most that")
        if self.kind == "float" and not math.isfinite(value):
            raise ConfigError(f"{where} not a finite number; take one that is")

    def read(self, text: str) -> Any:
        """Return the value that a plain text, on the command line or in a set-up file, stands for, checked."""
        if self.optional and text == "null":
            return None
        words = {"true": True, "false": False}
        readers: dict[str, Callable[[str], Any]] = {"int": int, "float": float, "bool": words.__getitem__, "str": str}
        try:
            value = readers[self.kind](text)
        except (ValueError, KeyError):
            takes = {"int": "a whole number", "float": "a number", "bool": "true or false"}[self.kind]
            shown = text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"
            raise ConfigError(f"{self.noun} {self.name}: {shown!r} is not {takes}") from None
        self.check(value)
        return value


def _setting(default: Any, text: str, **constraints: Any) -> Any:
    """Return a field of `InferenceConfig`; `constraints` are further fields of its `Setting`."""
    return field(default=default, metadata={"help": text, **constraints})


@dataclass(frozen=True, slots=True, kw_only=True)
class InferenceConfig:
    """The engine's settings, checked on construction (`ConfigError`)."""

    async_sched_mode: Literal["async", "legacy"] = _setting(
        "async",
        "async launches a step before the previous one is resolved; legacy resolves each step before it plans the next",
    )
    max_tokens: int = _setting(
        16384, "token budget of one step, prefill and decode together", minimum=2, maximum=1 << 24
    )
    max_requests: int = _setting(
        256, "row budget: requests that hold a slot at the same time", minimum=1, maximum=1 << 16
    )
    max_sequence_length: int | None = _setting(
        None,
        "longest prompt plus new tokens of a request; null takes the model's own limit",
        minimum=2,
        maximum=1 << 24,
    )
    block_size_tokens: int = _setting(
        16, "tokens in one block of the paged KV cache, a power of two", minimum=1, maximum=1 << 12, power_of_two=True
    )
    num_blocks: int = _setting(4096, "usable blocks of the paged KV cache", minimum=1, maximum=1 << 22)
    enable_chunked_prefill: bool = _setting(
        default=False, text="split a prompt that does not fit the step's token budget over several steps"
    )
    moe_enable_routing_replay: bool = _setting(
        default=False,
        text="record which experts every token goes to, or replay what routing_replay_path recorded; needs legacy mode",
    )
    routing_replay_path: str | None = _setting(
        None, "recording whose experts are used again; null records without replaying"
    )
    dtype: Literal["fp32", "bf16"] = _setting("fp32", "type of weights, activations and KV cache", short_flag="--dtype")
    device: Literal["cpu", "cuda"] = _setting("cpu", "where the model runs", short_flag="--device")
    num_threads: int | None = _setting(
        None,
        "threads of one CPU operation; null leaves torch's choice",
        minimum=1,
        maximum=256,
        short_flag="--num-threads",
    )

    def __post_init__(self) -> None:
        for setting in settings().values():
            setting.check(getattr(self, setting.name))
        self._check_routing()

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> InferenceConfig:
        """Build a configuration from settings by name; those left out have their default.

        Raises:
            ConfigError: for an unknown name, a wrong type, or a value that is not allowed.
        """
        known = settings()
        for name in values:
            if name not in known:
                raise ConfigError(f"unknown setting {name!r}{did_you_mean(name, known)}")
        return cls(**values)

    def _check_routing(self) -> None:
        if self.moe_enable_routing_replay and self.async_sched_mode != "legacy":
            raise ConfigError(
                "setting moe_enable_routing_replay: true needs async_sched_mode 'legacy', but async_sched_mode is "
                f"{self.async_sched_mode!r}: experts to replay must be known before a step is launched, and recorded "
                "ones belong to a step that is resolved; set async_sched_mode to 'legacy', or leave "
                "moe_enable_routing_replay out"
            )
        if self.routing_replay_path is not None and not self.moe_enable_routing_replay:
            raise ConfigError(
                f"setting routing_replay_path: {self.routing_replay_path!r} would not be read, because "
                "moe_enable_routing_replay is false; set moe_enable_routing_replay to true, or leave "
                "routing_replay_path out"
            )


def settings() -> Mapping[str, Setting]:
    """Return every setting by name, in the order of the fields of `InferenceConfig`."""
    return described_fields(InferenceConfig)


def described_fields(owner: type[DataclassInstance], **common: Any) -> Mapping[str, Setting]:
    """Return the fields of a dataclass that have a help text, by name; `common` are further fields of each."""
    kinds = _kinds_of(owner)
    described = {}
    for entry in dataclasses.fields(owner):
        if "help" in entry.metadata:
            kind, choices, optional = kinds[entry.name]
            described[entry.name] = Setting(
                name=entry.name,
                default=entry.default,
                kind=kind,
                choices=choices,
                optional=optional,
                **entry.metadata,
                **common,
            )
    return described


@functools.cache
def _kinds_of(owner: type[DataclassInstance]) -> Mapping[str, tuple[str, tuple[Any, ...], bool]]:
    """The kind of every field that has a help text; type hints are texts, which take long to read."""
    hints = get_type_hints(owner)
    return {entry.name: _kind_of(hints[entry.name]) for entry in dataclasses.fields(owner) if "help" in entry.metadata}


def _kind_of(hint: Any) -> tuple[str, tuple[Any, ...], bool]:
    members = get_args(hint)
    if get_origin(hint) is Literal:
        return type(members[0]).__name__, members, False
    if type(None) in members:
        return next(member.__name__ for member in members if member is not type(None)), (), True
    return hint.__name__, (), False


def did_you_mean(name: str, known: Mapping[str, Any]) -> str:
    """Return ` - did you mean X?` for the nearest known name, or the list of all where none is near."""
    near = difflib.get_close_matches(name, list(known), n=1)
    return f" - did you mean {near[0]!r}?" if near else f"; the settings are {', '.join(known)}"


def load_config_file(path: Path) -> dict[str, Any]:
    """Read a set-up file: YAML, one `setting: value` a line, by the names of `InferenceConfig`.

    A plain value means what it means behind the setting's flag, so YAML's own idea of `010` or `no` plays no part.

    Raises:
        ConfigError: if the file cannot be read, is no mapping, or has an unknown setting, one twice, or a wrong value.
    """
    import yaml  # noqa: PLC0415 - only a set-up file needs it

    try:
        root = yaml.compose(read_text_file(path, _LARGEST_CONFIG_FILE), Loader=yaml.SafeLoader)
    except OSError as error:
        raise ConfigError(f"set-up file {path}: {error.strerror}; give --config a file that can be read") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ConfigError(f"set-up file {path}: not valid YAML: {error}") from error
    if root is None:
        return {}
    if not isinstance(root, yaml.MappingNode):
        raise ConfigError(f"set-up file {path}: expected one 'setting: value' a line")
    values: dict[str, Any] = {}
    for key, node in root.value:
        where = f"set-up file {path}:{key.start_mark.line + 1}"
        if not isinstance(key, yaml.ScalarNode) or not isinstance(node, yaml.ScalarNode):
            raise ConfigError(f"{where}: expected one 'setting: value' a line")
        if key.value in values:
            raise ConfigError(f"{where}: setting {key.value} stands here for the second time; keep one")
        values[key.value] = _read_entry(key.value, node.value, quoted=node.style is not None, where=where)
    return values


def _read_entry(name: str, text: str, *, quoted: bool, where: str) -> Any:
    known = settings()
    if name not in known:
        raise ConfigError(f"{where}: unknown setting {name!r}{did_you_mean(name, known)}")
    try:
        if not quoted:
            return known[name].read(text)
        known[name].check(text)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from error
    return text
