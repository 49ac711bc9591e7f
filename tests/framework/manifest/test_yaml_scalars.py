from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from framework.manifest.yaml_scalars import AmbiguousScalarError, resolve_plain_scalar


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("~", None),
        ("null", None),
        ("NULL", None),
        ("true", True),
        ("False", False),
        ("0", 0),
        ("-7", -7),
        ("+7", 7),
        ("0x1F", 31),
        ("9223372036854775807", 2**63 - 1),
        ("1.10", 1.1),
        ("1e-5", 1e-5),
        ("1e5", 1e5),
        ("2E3", 2e3),
        ("1.5e3", 1.5e3),
        (".5", 0.5),
        ("-1.", -1.0),
        ("5.0e-4", 5e-4),
        ("hello", "hello"),
        ("nULL", "nULL"),
        ("tRUE", "tRUE"),
        ("1.2.3", "1.2.3"),
        ("1,000", "1,000"),
        ("-", "-"),
        (".", "."),
        ("1e", "1e"),
        ("e5", "e5"),
        ("deadbeef", "deadbeef"),
        ("12:99", "12:99"),
        ("version-1", "version-1"),
    ],
)
def test_a_scalar_has_its_yaml_1_2_meaning(text: str, value: Any) -> None:
    resolved = resolve_plain_scalar(text)
    assert resolved == value
    assert type(resolved) is type(value)


@pytest.mark.parametrize(
    "text",
    [
        *("no", "No", "NO", "yes", "on", "On", "off", "OFF", "y", "N"),
        *("010", "-010", "00", "0o17", "0b11", "0x1_F", "1_000", "1_000.5", "1__0"),
        *("12:30:45", "1:30", "190:20:30.15", "2001-01-23", "2001-1-2", "2001-01-23 10:00:00", "2001-01-23T10:00:00Z"),
        *("695e0514", "1e0514", "123456e7", "12e345", "1e400", "-1.5e999"),
        *(".inf", "-.INF", ".nan", "<<", "=", "9223372036854775808", "1" * 5000, "0x" + "f" * 100),
    ],
)
def test_a_scalar_with_two_meanings_is_refused(text: str) -> None:
    with pytest.raises(AmbiguousScalarError):
        resolve_plain_scalar(text)


@settings(max_examples=500, deadline=None)
@given(st.text(st.sampled_from("0123456789abefnosxyNO.:+-_eE~ "), max_size=8).map(str.strip))
def test_what_is_read_is_read_the_same_by_yaml_1_1_but_for_some_floats(text: str) -> None:
    try:
        value = resolve_plain_scalar(text)
    except AmbiguousScalarError:
        return
    tag = yaml.resolver.Resolver().resolve(yaml.ScalarNode, text, (True, False)).rpartition(":")[2]  # type: ignore[no-untyped-call]
    kinds = {str: {"str"}, int: {"int"}, bool: {"bool"}, type(None): {"null"}, float: {"float", "str"}}
    # PyYAML takes some floats, such as 1e5, for strings; nothing else may be read in two ways.
    assert tag in kinds[type(value)]
