from __future__ import annotations

from pathlib import Path

from framework.manifest.reference import reference
from framework.manifest.schema import manifest_schema

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "manifest-reference.md"


def test_the_document_is_up_to_date() -> None:
    assert DOCUMENT.read_text("utf-8") == reference(), "run: python -m framework.manifest.reference > docs/…"


def test_every_key_is_documented() -> None:
    text = reference()
    schema = manifest_schema()
    for part in (schema, schema["properties"]["workload"], *schema["$defs"].values()):
        for key in part.get("properties", {}):
            assert f"`{key}`" in text
