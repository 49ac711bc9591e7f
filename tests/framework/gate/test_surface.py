from __future__ import annotations

import pytest

from framework.gate.surface import surface

MODULE = '''
"""A module."""
import os
LIMIT = 3

def plain(value: int = 1) -> int:
    """Say something."""
    return value + LIMIT

@decorated
def kept():
    return 1

class Thing:
    size: int = 2

    def method(self):
        def inner():
            return 1
        return inner()

    @property
    def name(self):
        return "thing"

async def later():
    return 1

handler = lambda: 5
'''


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("return value + LIMIT", "return value - LIMIT"),
        ("Say something.", "Say something else."),
        ("            return 1\n        return inner()", "            return 2\n        return inner() + 1"),
        ("async def later():\n    return 1", "async def later():\n    await other()\n    return 2"),
        ("LIMIT = 3", "LIMIT = 3  # a comment"),
        ("\ndef plain", "\n\n\ndef plain"),
    ],
)
def test_what_a_function_does_is_no_part_of_what_a_module_defines(old: str, new: str) -> None:
    assert MODULE.count(old) == 1
    assert surface(MODULE.replace(old, new).encode()) == surface(MODULE.encode())


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("LIMIT = 3", "LIMIT = 4"),
        ("import os", "import os, sys"),
        ("value: int = 1", "value: int = 2"),
        ("def plain", "def renamed"),
        ("@decorated\ndef kept():\n    return 1", "@decorated\ndef kept():\n    return 2"),
        ("@decorated", "@other"),
        ("size: int = 2", "size: int = 3"),
        ('return "thing"', 'return "other"'),
        ("class Thing:", "class Thing(Base):"),
        ("lambda: 5", "lambda: 6"),
        ("async def later", "def later"),
        ('"""A module."""', '"""Another module."""'),
    ],
)
def test_everything_else_is(old: str, new: str) -> None:
    assert MODULE.count(old) == 1
    assert surface(MODULE.replace(old, new).encode()) != surface(MODULE.encode())


@pytest.mark.parametrize("source", [b"def (", b"\xff\xfe", b"x = " + b"(" * 5000, b"a\0b"])
def test_what_is_no_python_counts_as_a_whole(source: bytes) -> None:
    assert surface(source).startswith("whole ")
    assert surface(source) != surface(source + b" ")
