"""Today's date: the one place that looks at a calendar.

It is written into provenance, and it ends a quarantine; it never reaches a compared value.
"""

from __future__ import annotations

from datetime import UTC, date, datetime


def today() -> date:
    """Return today's date in UTC, so that it is the same day on every machine."""
    return datetime.now(UTC).date()
