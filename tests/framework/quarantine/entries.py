"""Quarantine files as tests need them."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path
from typing import Any

from framework.clock import today
from framework.compare.finding import FindingClass
from framework.quarantine.entry import Entry

DAY = date(2026, 6, 15)


def entry(**changed: Any) -> Entry:
    """An entry that holds on `DAY`."""
    values: dict[str, Any] = {
        "fixture": "first",
        "platforms": ("cpu",),
        "classes": (FindingClass.TOKEN,),
        "owner": "@ada",
        "issue": "#12",
        "since": DAY - timedelta(days=10),
        "expires": DAY + timedelta(days=5),
    }
    return Entry(**{**values, **changed})


def entry_text(fixture: str, *, kind: str = "TOKEN", left: int = 5, age: int = 3, more: str = "") -> str:
    """One entry, as it stands in the file; it began `age` days before today and holds for `left` more."""
    since, expires = today() - timedelta(days=age), today() + timedelta(days=left)
    return (
        f"  - fixture: {fixture}\n    platforms: [cpu]\n    class: {kind}\n    owner: '@ada'\n    issue: '#12'\n"
        f'    since: "{since}"\n    expires: "{expires}"\n{more}'
    )


def write_quarantine(root: Path, *entries: str) -> Path:
    path = root / "quarantine.yaml"
    path.write_text("quarantine: 1\nentries:\n" + "".join(entries) if entries else "quarantine: 1\nentries: []\n")
    return path
