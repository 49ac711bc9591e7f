"""Lint rules on what is asked of the engine: settings, their combination, sampling, ranks, and the model."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from framework.manifest.fixture import Fixture
from framework.manifest.linted import Linted, LintProblem, LintRule
from framework.manifest.models import ModelNotFetchedError, NoSuchModelError, find_model
from framework.manifest.schema import show
from framework.manifest.suggest import did_you_mean
from framework.run.adapter import SettingDescription

_TYPES: Final[dict[str, tuple[type, ...]]] = {"bool": (bool,), "int": (int,), "float": (int, float), "str": (str,)}
_WORDS: Final = {"bool": "true or false", "int": "an integer", "float": "a number", "str": "a string"}


def _unknown_settings(linted: Linted) -> Iterator[LintProblem]:
    for fixture in linted.fixtures:
        for name in fixture.engine:
            if name not in linted.settings:
                hint = did_you_mean(name, linted.settings) or "See the engine's help for its settings"
                yield linted.problem(fixture, f"engine.{name}", "the engine has no such setting", hint.rstrip("."))


def _wrong_values(linted: Linted) -> Iterator[LintProblem]:
    for fixture in linted.fixtures:
        for name, value in fixture.engine.items():
            wrong = _what_is_wrong(value, linted.settings[name]) if name in linted.settings else None
            if wrong is not None:
                yield linted.problem(fixture, f"engine.{name}", *wrong)


def _what_is_wrong(value: Any, setting: SettingDescription) -> tuple[str, str] | None:
    """Return what is wrong with the value of a setting, and the way out."""
    if value is None:
        return None if setting.optional else ("is null, which the setting cannot be", f"Write {_WORDS[setting.kind]}")
    if type(value) not in _TYPES[setting.kind]:
        what = f"the string {show(value)}" if isinstance(value, str) else show(value)
        return f"is {what}, not {_WORDS[setting.kind]}", f"Write {_WORDS[setting.kind]}, without quotes"
    if setting.choices and value not in setting.choices:
        choices = [str(choice) for choice in setting.choices]
        hint = did_you_mean(str(value), choices) or f"There are: {', '.join(choices)}"
        return f"is {show(value)}, which is none of its values", hint.rstrip(".")
    if isinstance(value, float) and not math.isfinite(value):
        return "is not finite", "Write a finite number"
    if setting.minimum is not None and not isinstance(value, str) and value < setting.minimum:
        return f"is {show(value)}", f"It must be at least {setting.minimum:g}"
    return None


def _incompatible_settings(linted: Linted) -> Iterator[LintProblem]:
    for fixture in linted.fixtures:
        if any(True for _ in _problems_of_values(linted, fixture)):
            continue
        try:
            linted.check_settings(fixture.engine)
        except ValueError as error:
            yield _refused_settings(linted, fixture, error, "Pin settings that go together")
            continue
        try:
            if linted.check_fixture is not None:
                linted.check_fixture(fixture)
        except ValueError as error:
            yield _refused_settings(linted, fixture, error, "Name a file that can be used")


def _refused_settings(linted: Linted, fixture: Fixture, error: ValueError, way_out: str) -> LintProblem:
    message = str(error).rstrip(".")
    named = next((name for name in fixture.engine if name in message), None)
    return linted.problem(fixture, f"engine.{named}" if named else "engine", message, way_out)


def _problems_of_values(linted: Linted, fixture: Fixture) -> Iterator[LintProblem]:
    alone = Linted((fixture,), linted.root, linted.settings, linted.check_settings)
    yield from _unknown_settings(alone)
    yield from _wrong_values(alone)


def _refused_sampling(linted: Linted) -> Iterator[LintProblem]:
    for fixture in linted.fixtures:
        seen: set[str] = set()
        for index, prompt in enumerate(fixture.workload.prompts):
            message = _refusal_of_sampling(linted, {**fixture.workload.sampling, **prompt.sampling})
            if message is None or message in seen:
                continue
            seen.add(message)
            path = _where_sampling_stands(fixture, index, message)
            yield linted.problem(fixture, path, f"request {index}: {message}", "Ask for what the engine can do")


def _refusal_of_sampling(linted: Linted, sampling: Mapping[str, Any]) -> str | None:
    if linted.check_sampling is None:
        return None
    try:
        linted.check_sampling(sampling)
    except ValueError as error:
        return str(error).rstrip(".")
    return None


def _where_sampling_stands(fixture: Fixture, index: int, message: str) -> str:
    """Return the path of the value that `message` names: in the prompt itself, or else in the workload."""
    words = set(re.findall(r"\w+", message))
    prompt = fixture.workload.prompts[index]
    if any(name in words for name in prompt.sampling):
        named = next(name for name in prompt.sampling if name in words)
        in_file = "workload.prompt_file" in fixture.lines
        return "workload.prompt_file" if in_file else f"workload.prompts[{index}].sampling.{named}"
    named_by_all = next((name for name in fixture.workload.sampling if name in words), None)
    return f"workload.sampling.{named_by_all}" if named_by_all else "workload.sampling"


def _ranks(linted: Linted) -> Iterator[LintProblem]:
    for fixture in linted.fixtures:
        if fixture.ranks != 1:
            message = f"is {fixture.ranks}, and the engine runs on one rank only"
            yield linted.problem(fixture, "ranks", message, "Write ranks: 1 until it runs on more")


def _models(linted: Linted) -> Iterator[LintProblem]:
    missing: dict[str, str | None] = {}
    for fixture in linted.fixtures:
        if fixture.model not in missing:
            missing[fixture.model] = _why_missing(linted, fixture.model)
        reason = missing[fixture.model]
        if reason is not None:
            yield linted.problem(fixture, "model", reason.rstrip("."), "Name one that is there, or add it")


def _why_missing(linted: Linted, model: str) -> str | None:
    try:
        find_model(model, linted.fixtures_root)
    except ModelNotFetchedError:
        return None
    except NoSuchModelError as error:
        return str(error)
    return None


RULES: Final[tuple[LintRule, ...]] = (
    _unknown_settings,
    _wrong_values,
    _incompatible_settings,
    _refused_sampling,
    _ranks,
    _models,
)
