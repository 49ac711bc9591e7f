from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine.config import ConfigError, InferenceConfig, load_config_file, settings
from engine.settings_cli import add_setting_flags, config_from_flags


def parse(*flags: str) -> InferenceConfig:
    parser = argparse.ArgumentParser()
    add_setting_flags(parser)
    return config_from_flags(parser.parse_args(flags))


def a_value_that_is_not_the_default(name: str) -> Any:
    setting = settings()[name]
    if setting.kind == "bool":
        return not setting.default
    if setting.choices:
        return next(choice for choice in setting.choices if choice != setting.default)
    return "another" if setting.kind == "str" else (setting.default or 2) * 2


REQUIRED: dict[str, dict[str, Any]] = {
    "moe_enable_routing_replay": {"async_sched_mode": "legacy"},
    "routing_replay_path": {"async_sched_mode": "legacy", "moe_enable_routing_replay": True},
}
"""What a setting needs of others where it has not its default."""


def flags_of(values: dict[str, Any]) -> list[str]:
    return [text for name, value in values.items() for text in (settings()[name].flag, as_yaml(value))]


def as_yaml(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def test_async_is_the_default_and_legacy_the_opt_out() -> None:
    assert InferenceConfig().async_sched_mode == "async"
    assert parse("--inference-dynamic-batching-async-sched-mode", "legacy").async_sched_mode == "legacy"


def test_command_line_setup_file_and_runtime_have_the_same_defaults(tmp_path: Path) -> None:
    empty = tmp_path / "setup.yaml"
    empty.write_text("")
    assert parse() == parse("--config", str(empty)) == InferenceConfig.from_mapping({}) == InferenceConfig()
    described = {name: setting.default for name, setting in settings().items()}
    assert described == dataclasses.asdict(InferenceConfig())


@pytest.mark.parametrize("name", list(settings()))
def test_a_changed_default_changes_it_on_the_command_line_in_the_setup_file_and_at_run_time(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    changed = a_value_that_is_not_the_default(name)
    monkeypatch.setattr(InferenceConfig.__dataclass_fields__[name], "default", changed)
    keyword_defaults = InferenceConfig.__init__.__kwdefaults__
    assert keyword_defaults is not None
    monkeypatch.setitem(keyword_defaults, name, changed)
    empty = tmp_path / "setup.yaml"
    empty.write_text("{}")
    assert settings()[name].default == changed
    required = flags_of(REQUIRED.get(name, {}))
    assert getattr(parse(*required), name) == getattr(parse("--config", str(empty), *required), name) == changed


@pytest.mark.parametrize("name", list(settings()))
def test_every_setting_can_be_set_by_flag_and_by_file_and_the_flag_wins(name: str, tmp_path: Path) -> None:
    setting = settings()[name]
    changed = a_value_that_is_not_the_default(name)
    setup = tmp_path / "setup.yaml"
    setup.write_text(f"{name}: {as_yaml(changed)}\n")
    default = "null" if setting.default is None else as_yaml(setting.default)
    required = flags_of(REQUIRED.get(name, {}))
    assert getattr(parse(setting.flag, as_yaml(changed), *required), name) == changed
    assert getattr(parse("--config", str(setup), *required), name) == changed
    assert getattr(parse("--config", str(setup), setting.flag, default), name) == setting.default


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"async_sched_mod": "legacy"}, "did you mean 'async_sched_mode'"),
        ({"async_sched_mode": "Legacy"}, "'Legacy' is not one of 'async', 'legacy'"),
        ({"max_tokens": "64"}, "'64' is a str"),
        ({"max_tokens": True}, "True is a bool"),
        ({"max_tokens": 64.0}, "64.0 is a float"),
        ({"max_tokens": 1}, "below its minimum 2"),
        ({"num_blocks": 0}, "below its minimum 1"),
        ({"block_size_tokens": 12}, "12 is not a power of two; take 16"),
        ({"enable_chunked_prefill": 1}, "takes true or false"),
        ({"num_threads": 0}, "below its minimum 1"),
        ({"num_threads": 1 << 40}, "above its maximum 256"),
        ({"num_blocks": 1 << 40}, "above its maximum"),
        ({"max_requests": 1 << 40}, "above its maximum"),
        ({"block_size_tokens": 1 << 40}, "above its maximum"),
        ({"dtype": None}, "setting dtype: None"),
        ({"routing_replay_path": "a.json"}, "'a.json' would not be read, because moe_enable_routing_replay is false"),
    ],
)
def test_a_wrong_setting_is_refused_by_name_and_value(values: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        InferenceConfig.from_mapping(values)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("- a\n", "expected one 'setting: value' a line"),
        ("max_tokens: [", "not valid YAML"),
        ("max_token: 5\n", "did you mean 'max_tokens'"),
        ("1: 5\n", "unknown setting '1'"),
        ("[a]: 5\n", "expected one 'setting: value' a line"),
        ("max_tokens: {a: 1}\n", "expected one 'setting: value' a line"),
        ("max_tokens: 8\nnum_blocks: 4\nmax_tokens: 9\n", ":3: setting max_tokens stands here for the second time"),
        ('max_tokens: "64"\n', "'64' is a str"),
        ("max_tokens: 12:30\n", "'12:30' is not a whole number"),
        ("max_tokens: 2024-99-99\n", "'2024-99-99' is not a whole number"),
        ("max_tokens: " + "9" * 5000 + "\n", "is not a whole number"),
        ("max_tokens: 9" + "0" * 30 + "\n", "is above its maximum"),
        ("enable_chunked_prefill: no\n", "'no' is not true or false"),
        ("a: " * 3 + "\n", "not valid YAML"),
        ("[" * 3000, "not valid YAML"),
    ],
)
def test_a_wrong_setup_file_is_refused_with_its_path(content: str, words: str, tmp_path: Path) -> None:
    setup = tmp_path / "setup.yaml"
    setup.write_text(content)
    with pytest.raises(ConfigError, match=words) as caught:
        load_config_file(setup)
    assert str(setup) in str(caught.value)


def test_a_missing_setup_file_is_refused_with_its_path(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="absent.yaml"):
        load_config_file(tmp_path / "absent.yaml")


@pytest.mark.parametrize("mode", [{}, {"async_sched_mode": "async"}])
def test_async_refuses_routing_replay_in_the_same_words_wherever_it_is_asked_for(
    mode: dict[str, Any], tmp_path: Path
) -> None:
    values = {"moe_enable_routing_replay": True, **mode}
    setup = tmp_path / "setup.yaml"
    setup.write_text("".join(f"{name}: {as_yaml(value)}\n" for name, value in values.items()))
    ways: tuple[Callable[[], InferenceConfig], ...] = (
        lambda: InferenceConfig(**values),
        lambda: InferenceConfig.from_mapping(values),
        lambda: parse(*flags_of(values)),
        lambda: parse("--config", str(setup)),
    )
    said = set()
    for ask in ways:
        with pytest.raises(ConfigError) as caught:
            ask()
        said.add(str(caught.value))
    (words,) = said
    for word in ("moe_enable_routing_replay: true", "async_sched_mode is 'async'", "known before a step is launched"):
        assert word in words
    assert words.endswith("set async_sched_mode to 'legacy', or leave moe_enable_routing_replay out")


def test_legacy_takes_routing_replay_with_and_without_a_recording() -> None:
    legacy = {"async_sched_mode": "legacy", "moe_enable_routing_replay": True}
    assert InferenceConfig.from_mapping(legacy).routing_replay_path is None
    assert InferenceConfig.from_mapping(legacy | {"routing_replay_path": "a.json"}).routing_replay_path == "a.json"


def test_every_setting_has_a_help_text() -> None:
    assert all(setting.help for setting in settings().values())
