"""Merging the verdicts of shards: one that is missing, doubled, or of something else makes the whole a refusal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from framework.errors import ExitCode, worst_exit_code
from framework.gate.refusal import Refusal, RefusalClass
from framework.gate.verdict import GATE_SCHEMA

_SAME_IN_ALL: Final = ("head", "base", "since", "vetted", "lane_fixtures")
_KINDS: Final[Mapping[str, type | tuple[type, ...]]] = {
    "verdict": str,
    "exit_code": int,
    "base": str,
    "head": str,
    "lane": dict,
    "shard": dict,
    "device": str,
    "environment": dict,
    "lane_fixtures": list,
    "fixtures": list,
    "left_out": list,
    "refusals": list,
    "notices": list,
    "settings_drift": list,
    "seconds": (int, float),
}
_VERDICTS: Final = ("PASS", "FAIL", "REFUSED")


def merged(documents: Mapping[str, Any], head: str | None = None, lane: str | None = None) -> dict[str, Any]:
    """Return the one document that the documents of all shards add up to, each given by where it was found.

    `head` is the commit and `lane` the lane that they must be of, None to take theirs.
    """
    whole = {source: document for source, document in documents.items() if not why_no_verdict(document)}
    refusals = [
        _refusal(source, f"{why}; run that shard again")
        for source, document in documents.items()
        if (why := why_no_verdict(document))
    ]
    if not whole:
        refusals.append(_refusal("shards", "there is no verdict of a shard here"))
    refusals += [*_odd(whole, head, lane), *_incomplete(whole)]
    codes = [ExitCode(document["exit_code"]) for document in whole.values()]
    codes += [refusal.code for refusal in refusals]
    first: Mapping[str, Any] = next(iter(whole.values()), {})
    entries = [*_joined(whole, "refusals"), *(refusal.as_json() for refusal in refusals)]
    is_refused = bool(entries) or any(document["verdict"] == "REFUSED" for document in whole.values())
    code = worst_exit_code(codes)
    return {
        "schema": GATE_SCHEMA,
        "verdict": "REFUSED" if is_refused else "FAIL" if code is not ExitCode.GOOD else "PASS",
        "exit_code": int(code),
        **{name: first.get(name) for name in ("base", "head", "vetted", "since")},
        "lane": first.get("lane", {}),
        "shard": None,
        "device": ", ".join(sorted({document["device"] for document in whole.values() if document["device"]})),
        "environment": first.get("environment", {}),
        "lane_fixtures": first.get("lane_fixtures", []),
        **{name: sorted(_joined(whole, name), key=lambda entry: entry["fixture"]) for name in ("fixtures", "left_out")},
        "refusals": _unique(entries),
        "notices": list(dict.fromkeys(_joined(whole, "notices"))),
        "settings_drift": _drift(whole),
        "seconds": max((document["seconds"] for document in whole.values()), default=0.0),
        "shards": [
            {
                "from": source,
                **{name: document[name] for name in ("shard", "verdict", "exit_code", "device", "seconds")},
            }
            for source, document in whole.items()
        ],
    }


def why_no_verdict(document: Any) -> str:
    """Return why something read is no verdict of a shard, or an empty string."""
    if not isinstance(document, dict) or document.get("schema") != GATE_SCHEMA:
        return f"it is no {GATE_SCHEMA} document"
    for name, kind in _KINDS.items():
        if not isinstance(document.get(name), kind):
            return f"it is the verdict of no shard: {name} is missing or of another type"
    shard = document["shard"]
    if not all(type(shard.get(name)) is int for name in ("number", "of")) or not isinstance(
        shard.get("fixtures"), list
    ):
        return "its shard has no number"
    if not 1 <= shard["number"] <= shard["of"]:
        return f"its shard is {shard['number']} of {shard['of']}"
    entries = [*document["fixtures"], *document["left_out"]]
    if not all(isinstance(entry, dict) and isinstance(entry.get("fixture"), str) for entry in entries):
        return "its fixtures have no names"
    return _why_unsound(document)


def _why_unsound(document: Mapping[str, Any]) -> str:
    """Return where a verdict contradicts itself: a green one with something red in it is nobody's verdict."""
    code, verdict = document["exit_code"], document["verdict"]
    if code not in list(ExitCode) or verdict not in _VERDICTS or (verdict == "PASS") != (code == 0):
        return f"its verdict {verdict!r} does not go with its exit code {code}"
    red = [e["fixture"] for e in document["fixtures"] if e.get("verdict") not in ("PASS", "QUARANTINED")]
    if verdict == "PASS" and (red or document["refusals"]):
        return f"it says PASS, and {', '.join(red) or 'a refusal'} stands in it"
    named, done = Counter(document["shard"]["fixtures"]), Counter(_names(document))
    if verdict == "PASS" and named != done:
        return f"it was to decide on {sorted(named)}, and decided on {sorted(done.elements())}"
    return ""


def _odd(documents: Mapping[str, Mapping[str, Any]], head: str | None, lane: str | None) -> list[Refusal]:
    """Return a refusal for every shard that is of another commit, lane or plan than the first."""
    found = []
    first: Mapping[str, Any] = next(iter(documents.values()), {})
    for source, document in documents.items():
        if head is not None and document["head"] != head.lower():
            found.append(_refusal(source, f"it validated {document['head']}, and the head is {head}"))
        if lane is not None and document["lane"].get("name") != lane:
            found.append(_refusal(source, f"it is of the lane {document['lane'].get('name')}, not of {lane}"))
        odd = [name for name in _SAME_IN_ALL if document.get(name) != first.get(name)]
        odd += ["lane"] if document["lane"].get("name") != first["lane"].get("name") else []
        odd += ["number of shards"] if document["shard"]["of"] != first["shard"]["of"] else []
        if odd:
            found.append(_refusal(source, f"it is of another {' and '.join(odd)} than the first shard"))
    return found


def _incomplete(documents: Mapping[str, Mapping[str, Any]]) -> list[Refusal]:
    """Return a refusal for every shard and every fixture that is missing or there twice."""
    if not documents:
        return []
    first = next(iter(documents.values()))
    numbers = Counter(document["shard"]["number"] for document in documents.values())
    found = [
        _refusal(f"shard {number}", "it is missing: its job did not end, or its result was not uploaded")
        for number in range(1, first["shard"]["of"] + 1)
        if number not in numbers
    ]
    found += [
        _refusal(f"shard {number}", f"it is there {count} times") for number, count in numbers.items() if count > 1
    ]
    decided = Counter(name for document in documents.values() for name in _names(document))
    wanted = {name for name in first["lane_fixtures"] if isinstance(name, str)}
    found += [_refusal(name, "no shard decided on it") for name in sorted(wanted - decided.keys())]
    found += [_refusal(name, "more than one shard decided on it") for name in sorted(decided) if decided[name] > 1]
    return found


def _names(document: Mapping[str, Any]) -> list[str]:
    return [entry["fixture"] for entry in (*document["fixtures"], *document["left_out"])]


def _joined(documents: Mapping[str, Mapping[str, Any]], name: str) -> list[Any]:
    return [entry for document in documents.values() for entry in document[name]]


def _unique(entries: Sequence[Any]) -> list[Any]:
    """Return entries without those that say the same: what is asked of the change, every shard asks."""
    return [entry for index, entry in enumerate(entries) if entry not in entries[:index]]


def _drift(documents: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return every changed default once, inherited by the fixtures of all shards."""
    found: list[dict[str, Any]] = []
    for entry in _joined(documents, "settings_drift"):
        same = next((e for e in found if all(e[key] == entry[key] for key in ("setting", "golden", "current"))), None)
        if same is None:
            found.append(dict(entry))
        else:
            same["inherited_by"] = sorted({*same["inherited_by"], *entry["inherited_by"]})
    return found


def _refusal(subject: str, message: str) -> Refusal:
    return Refusal(RefusalClass.SHARD, subject, message)
