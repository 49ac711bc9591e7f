from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from framework.golden.seal import seal_holds, sealed_bytes, with_lf

DOCUMENT: dict[str, Any] = {"schema": "golden.golden/1", "requests": {"0": {"tokens": [1, 2, 3], "seal": "inner"}}}


def test_what_was_sealed_holds() -> None:
    assert seal_holds(sealed_bytes(DOCUMENT))


def test_an_older_seal_in_the_document_is_replaced() -> None:
    assert sealed_bytes(DOCUMENT | {"seal": "old"}) == sealed_bytes(DOCUMENT)


def test_a_checkout_with_crlf_holds() -> None:
    assert seal_holds(with_lf(sealed_bytes(DOCUMENT).replace(b"\n", b"\r\n")))


@given(st.data())
@settings(max_examples=300, deadline=None)
def test_any_change_of_a_byte_breaks_the_seal(data: st.DataObject) -> None:
    sealed = bytearray(sealed_bytes(DOCUMENT))
    index = data.draw(st.integers(0, len(sealed) - 1))
    sealed[index] = data.draw(st.integers(0, 255).filter(lambda byte: byte != sealed[index]))
    assert not seal_holds(bytes(sealed))


@given(st.data())
@settings(max_examples=100, deadline=None)
def test_a_removed_or_repeated_line_breaks_the_seal(data: st.DataObject) -> None:
    lines = sealed_bytes(DOCUMENT).splitlines(keepends=True)
    index = data.draw(st.integers(0, len(lines) - 1))
    assert not seal_holds(b"".join(lines[:index] + lines[index + 1 :]))
    assert not seal_holds(b"".join([*lines[:index], lines[index], *lines[index:]]))


def test_nothing_hides_on_the_seal_line() -> None:
    sealed = sealed_bytes(DOCUMENT)
    assert not seal_holds(sealed.replace(b'",\n}', b'"\n}').replace(b'"seal": "', b'"x": 1, "seal": "'))
    end = sealed.index(b"\n", sealed.index(b'\n  "seal": "') + 1)
    assert not seal_holds(sealed[:end] + b' "extra": 1' + sealed[end:])


def test_two_goldens_merged_by_lines_do_not_hold() -> None:
    base: dict[str, Any] = {"schema": "golden.golden/1", "a": [1], "b": [1], "z": 0}
    ours, theirs = sealed_bytes(base | {"a": [2]}), sealed_bytes(base | {"b": [2]})
    pairs = zip(ours.splitlines(), theirs.splitlines(), strict=True)
    merged = b"\n".join(their if b'"b"' in their else our for our, their in pairs) + b"\n"
    assert merged not in (ours, theirs)
    assert not seal_holds(merged)


def test_bytes_without_a_seal_do_not_hold() -> None:
    assert not seal_holds(b"")
    assert not seal_holds(b"{}\n")
    assert not seal_holds(b'\n  "seal": "')
