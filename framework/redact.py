"""Secrets taken out of whatever is shown or written for others: the one place that knows what a secret looks like.

A secret is the value of an environment variable whose name says so, or the credentials inside an address. What is
compared is never touched: a record is judged as the engine gave it, and only what is said of it is redacted.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

REDACTED: Final = "[redacted]"

_NAMES: Final = re.compile(
    r"TOKEN(?!IZER)|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|KEY(?!BOARD)|(?:^|_)(?:PAT|PWD?|AUTH|COOKIE|DSN)(?:_|$)",
    re.IGNORECASE,
)
_WORKING_FOLDERS: Final = frozenset({"PWD", "OLDPWD"})
_SHORTEST: Final = 6
_SHORTEST_NUMBER: Final = 10
"""Shorter values are words and numbers of everyday: redacting them would garble reports and hide nothing."""

_IN_ADDRESS: Final = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]{0,20}://)[^\s/@\"'<>]{1,500}@")


def looks_like_a_secret(name: str) -> bool:
    """Say whether a variable of this name holds a secret: `HF_TOKEN`, `AWS_SECRET_ACCESS_KEY`, `DB_PASSWORD`."""
    return name not in _WORKING_FOLDERS and _NAMES.search(name) is not None


@dataclass(frozen=True, slots=True)
class Redactor:
    """Takes secrets out of texts; `secrets` are their values, the longest first."""

    secrets: tuple[str, ...] = ()

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> Redactor:
        """Return the redactor that knows the secrets of an environment."""
        values = {value for name, value in environment.items() if looks_like_a_secret(name) and _can_be_found(value)}
        return cls(tuple(sorted(values, key=lambda value: (-len(value), value))))

    def text(self, text: str) -> str:
        """Return a text without secrets."""
        for secret in self.secrets:
            text = text.replace(secret, REDACTED)
        return _IN_ADDRESS.sub(rf"\g<scheme>{REDACTED}@", text) if "://" in text else text

    def finds(self, value: Any) -> bool:
        """Say whether a text in a JSON value holds one of the `secrets`."""
        if isinstance(value, str):
            return any(secret in value for secret in self.secrets)
        children = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
        return bool(self.secrets) and any(self.finds(child) for child in children)

    def value(self, value: Any) -> Any:
        """Return a JSON value with every text in it without secrets; keys are names that a reader relies on."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {key: self.value(child) for key, child in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(child) for child in value]
        return value


def _can_be_found(value: str) -> bool:
    return len(value.strip()) >= (_SHORTEST_NUMBER if value.isdigit() else _SHORTEST)


def redacted(text: str) -> str:
    """Return a text without the secrets of this process's environment."""
    return Redactor.of(os.environ).text(text)
