from __future__ import annotations

from datetime import date
from pathlib import Path

import jsonschema
import pytest

from framework.compare.finding import FindingClass
from framework.errors import ManifestError
from framework.quarantine.load import load_quarantine, quarantine_schema

WHOLE = """\
quarantine: 1
entries:
  - fixture: scheduling/first
    platforms: [cpu, nvidia-h200]
    class: [TOKEN, TEXT]
    owner: "@ada"
    issue: https://example.org/issues/12
    since: "2026-06-01"
    expires: "2026-06-30"
"""


def error_of(root: Path, text: str) -> str:
    (root / "quarantine.yaml").write_text(text)
    with pytest.raises(ManifestError) as caught:
        load_quarantine(root)
    return str(caught.value)


def test_without_a_file_there_is_no_quarantine(tmp_path: Path) -> None:
    assert load_quarantine(tmp_path).entries == ()


def test_an_entry_is_read_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "quarantine.yaml").write_text(WHOLE)
    (entry,) = load_quarantine(tmp_path).entries
    assert entry.fixture == "scheduling/first"
    assert entry.platforms == ("cpu", "nvidia-h200")
    assert entry.classes == (FindingClass.TOKEN, FindingClass.TEXT)
    assert (entry.since, entry.expires) == (date(2026, 6, 1), date(2026, 6, 30))
    assert (entry.owner, entry.issue, entry.line) == ("@ada", "https://example.org/issues/12", 3)


def test_one_class_needs_no_list(tmp_path: Path) -> None:
    (tmp_path / "quarantine.yaml").write_text(WHOLE.replace("[TOKEN, TEXT]", "ENGINE_CRASH"))
    assert load_quarantine(tmp_path).entries[0].classes == (FindingClass.ENGINE_CRASH,)


@pytest.mark.parametrize("key", ["fixture", "platforms", "class", "owner", "issue", "since", "expires"])
def test_every_key_is_needed(tmp_path: Path, key: str) -> None:
    first, rest = WHOLE.split("  - ")
    lines = [line for line in rest.splitlines() if not line.strip().startswith(f"{key}:")]
    text = first + "  - " + "\n".join(line.strip() and f"    {line.strip()}" for line in lines).strip() + "\n"
    assert error_of(tmp_path, text).startswith(f'quarantine.yaml:3:5: entries[0] the key "{key}" is missing')


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "[TOKEN, TEXT]",
            "TOKENS",
            'quarantine.yaml:5:12: entries[0].class is "TOKENS", not one of "COUNTER", "TOKEN"',
        ),
        ("[TOKEN, TEXT]", "[TOKEN, SEAL]", 'quarantine.yaml:5:20: entries[0].class[1] is "SEAL", not one of'),
        ("[TOKEN, TEXT]", "STALE", 'entries[0].class is "STALE", not one of'),
        ("[TOKEN, TEXT]", "SETTINGS_DRIFT", 'entries[0].class is "SETTINGS_DRIFT", not one of'),
        ("[TOKEN, TEXT]", "[]", "entries[0].class is empty"),
        ("[TOKEN, TEXT]", "'*'", 'entries[0].class is "*", not one of'),
        ("[TOKEN, TEXT]", "[TOKEN, TOKEN]", "stands in the list twice"),
        ("[cpu, nvidia-h200]", "[]", "entries[0].platforms is empty"),
        ("[cpu, nvidia-h200]", "cpu", 'entries[0].platforms is the string "cpu", not a list'),
        ("scheduling/first", "'scheduling/*'", "Allowed are the name of one fixture"),
        ("scheduling/first", "../first", "Allowed are the name of one fixture"),
        ('"@ada"', '""', "quarantine.yaml:6:12: entries[0].owner is empty"),
        ("https://example.org/issues/12", "''", "entries[0].issue is empty"),
        ("https://example.org/issues/12", "12", "entries[0].issue is 12, not a string"),
        ('"2026-06-30"', "2026-06-30", "quarantine.yaml:9:14: unquoted 2026-06-30"),
        ('"2026-06-30"', '"30 June"', "Allowed are dates such as"),
        (
            '"2026-06-30"',
            '"2026-06-31"',
            'quarantine.yaml:9:14: entries[0].expires is "2026-06-31", and there is no such',
        ),
        ('"2026-06-30"', "never", "Allowed are dates such as"),
        ("quarantine: 1", "quarantine: 2", "quarantine.yaml:1:13: quarantine is 2. Write 1."),
        ("    owner", "    forever: true\n    owner", "this key is not known here"),
        ("    owner", "    fixture: again\n    owner", "the key 'fixture' stands here and in line 3"),
    ],
)
def test_what_is_no_quarantine_is_refused_with_file_and_line(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert WHOLE.count(old) == 1
    assert message in error_of(tmp_path, WHOLE.replace(old, new))


@pytest.mark.parametrize("text", ["", "[]", "quarantine", "entries: []", "quarantine: 1", "quarantine: 1\nentries: {}"])
def test_a_file_of_another_shape_is_refused(tmp_path: Path, text: str) -> None:
    assert error_of(tmp_path, text).startswith("quarantine.yaml:")


def test_a_link_is_refused_since_its_history_would_be_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "elsewhere.yaml").write_text(WHOLE)
    (tmp_path / "quarantine.yaml").symlink_to("elsewhere.yaml")
    with pytest.raises(ManifestError, match="a link"):
        load_quarantine(tmp_path)


def test_the_published_schema_is_one_and_agrees(tmp_path: Path) -> None:
    jsonschema.Draft202012Validator.check_schema(dict(quarantine_schema()))
    value = {
        "quarantine": 1,
        "entries": [
            {
                "fixture": "a",
                "platforms": ["cpu"],
                "class": "TOKEN",
                "owner": "o",
                "issue": "i",
                "since": "2026-06-01",
                "expires": "2026-06-30",
            }
        ],
    }
    jsonschema.validate(value, dict(quarantine_schema()))
    del value["entries"][0]["owner"]  # type: ignore[index]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(value, dict(quarantine_schema()))


def test_both_forms_of_a_class_allow_the_same_and_never_what_is_repaired_at_once() -> None:
    written = quarantine_schema()["properties"]["entries"]["items"]["properties"]["class"]
    assert written["then"]["enum"] == written["items"]["enum"]
    left_out = {"STALE", "SEAL", "STALE_REGEN", "RULES", "SETTINGS_DRIFT"}
    assert set(written["items"]["enum"]) == {kind.value for kind in FindingClass} - left_out
