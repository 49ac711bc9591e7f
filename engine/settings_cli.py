"""Flags of the command line, derived from the fields of `InferenceConfig`; precedence: flag, set-up file, default."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from engine.config import ConfigError, InferenceConfig, Setting, load_config_file, settings


def add_setting_flags(parser: argparse.ArgumentParser) -> None:
    """Add `--config` and one flag a setting; a flag that is not given leaves no trace."""
    group = parser.add_argument_group("engine settings", "precedence: flag, --config file, default")
    group.add_argument("--config", type=Path, metavar="FILE", help="set-up file, YAML, by the names of the settings")
    for setting in settings().values():
        add_flag(group, setting)


def add_flag(group: argparse._ActionsContainer, setting: Setting) -> None:
    """Add the flag of one setting; if it is not given, it leaves no trace."""
    default = "null" if setting.default is None else str(setting.default).lower()
    group.add_argument(
        *([setting.flag] + ([setting.short_flag] if setting.short_flag else [])),
        dest=setting.name,
        default=argparse.SUPPRESS,
        type=_reader(setting),
        choices=setting.choices or None,
        metavar=None if setting.choices else {"bool": "{true,false}", "int": "N"}.get(setting.kind, "VALUE"),
        help=f"{setting.help} (default: {default})",
    )


def config_from_flags(arguments: argparse.Namespace) -> InferenceConfig:
    """Return the configuration that the parsed flags and their set-up file ask for.

    Raises:
        ConfigError: for a set-up file or a value that is not allowed.
    """
    values: dict[str, Any] = {} if arguments.config is None else load_config_file(arguments.config)
    values |= {name: value for name, value in vars(arguments).items() if name in settings()}
    return InferenceConfig.from_mapping(values)


def _reader(setting: Setting) -> Callable[[str], Any]:
    def read(text: str) -> Any:
        try:
            return setting.read(text)
        except ConfigError as error:
            raise argparse.ArgumentTypeError(str(error)) from error

    return read
