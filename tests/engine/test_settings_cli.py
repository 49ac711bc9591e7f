from __future__ import annotations

import argparse

import pytest

from engine.config import settings
from engine.settings_cli import add_setting_flags, config_from_flags


def parser() -> argparse.ArgumentParser:
    subject = argparse.ArgumentParser()
    add_setting_flags(subject)
    return subject


def test_a_settings_flag_is_the_prefix_and_its_name_with_dashes() -> None:
    assert settings()["async_sched_mode"].flag == "--inference-dynamic-batching-async-sched-mode"
    assert settings()["max_tokens"].flag == "--inference-dynamic-batching-max-tokens"


def test_the_short_forms_are_documented_and_mean_the_same() -> None:
    short = config_from_flags(parser().parse_args(["--dtype", "bf16", "--num-threads", "1"]))
    long_forms = [settings()[name].flag for name in ("dtype", "num_threads")]
    assert short == config_from_flags(parser().parse_args([long_forms[0], "bf16", long_forms[1], "1"]))
    assert "--dtype" in parser().format_help()


def test_the_help_shows_the_default_of_every_setting() -> None:
    text = " ".join(parser().format_help().split())
    for setting in settings().values():
        default = "null" if setting.default is None else str(setting.default).lower()
        assert f"{setting.help} (default: {default})" in text


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--inference-dynamic-batching-max-tokens", "many"], "'many' is not a whole number"),
        (["--inference-dynamic-batching-max-tokens", "1"], "below its minimum 2"),
        (["--inference-dynamic-batching-enable-chunked-prefill", "yes"], "'yes' is not true or false"),
        (["--inference-dynamic-batching-async-sched-mode", "sync"], "'sync' is not one of"),
    ],
)
def test_a_wrong_flag_ends_with_its_reason(flags: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parser().parse_args(flags)
    assert ended.value.code == 2
    assert words in capsys.readouterr().err


def test_null_leaves_an_optional_setting_open() -> None:
    flag = settings()["num_threads"].flag
    assert config_from_flags(parser().parse_args([flag, "null"])).num_threads is None
