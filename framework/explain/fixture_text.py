"""An explained fixture in words: what drifted first, then settings, golden, rules, and the last verdict."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from framework.explain.words import counted, cut, on_one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SHOWN_FINDINGS = 8
_SHOWN_REVISION = 20
_LINE_WIDTH = 400


def fixture_lines(entry: Mapping[str, Any]) -> list[str]:
    """Return the lines for one fixture's entry in the `golden.explain/1` document."""
    lines = [f"{entry['fixture']}: {' '.join(entry['summary'].split())}"]
    lines += [f"  {finding['class']} {finding['message']}" for finding in entry["drift"]]
    lines.append(f"  manifest: {entry['manifest']}; model {entry['model']}; for {', '.join(entry['platforms'])}")
    lines += _settings_lines(entry["settings"], has_golden=entry["provenance"] is not None)
    lines += _golden_lines(entry)
    lines += _rules_lines(entry)
    lines += _verdict_lines(entry["last_verdict"])
    return [cut(on_one_line(line), _LINE_WIDTH) for line in lines]


def _settings_lines(settings: Mapping[str, Any], *, has_golden: bool) -> Iterator[str]:
    for source, title in (("pinned", "pinned by the manifest"), ("default", "inherited from the engine's defaults")):
        found = {name: setting for name, setting in settings.items() if setting["source"] == source}
        yield f"  {title}:{'' if found else ' nothing'}"
        for name, setting in found.items():
            default = f" (default {_json(setting['default'])})" if source == "pinned" else ""
            yield f"    {name} = {_json(setting['value'])}{default}{_since(setting) if has_golden else ''}"


def _since(setting: Mapping[str, Any]) -> str:
    """Say where a value is not the one the golden was recorded with."""
    if not setting["in_golden"]:
        return "; new since the golden was recorded"
    if _json(setting["golden"]) == _json(setting["value"]):
        return ""
    return f"; the golden was recorded with {_json(setting['golden'])}"


def _golden_lines(entry: Mapping[str, Any]) -> Iterator[str]:
    yield f"  golden: {entry['golden'] or 'none that can be used'}"
    for problem in entry["golden_problems"]:
        yield f"    {problem}"
    provenance = entry["provenance"]
    if provenance is None:
        return
    yield f"    reason: {provenance.get('reason', 'none is stored')}"
    if isinstance(accepted := provenance.get("accepted"), dict):
        yield f"    accepted {accepted.get('date')}: {accepted.get('reason')}"
    revision = cut(str(provenance.get("engine_revision", "unknown")), _SHOWN_REVISION)
    yield f"    recorded {provenance.get('date', 'at no known date')} by engine {revision}, on {_machine(entry)}"
    yield from _proof_lines(provenance.get("proof"))


def _machine(entry: Mapping[str, Any]) -> str:
    environment = entry["environment"]
    torch = f"torch {environment['torch']}" if environment.get("torch") else None
    known = [*(environment.get(name) for name in ("cpu", "gpu", "machine")), torch]
    return ", ".join(str(each) for each in known if each) or "an unnamed machine"


def _proof_lines(proof: Any) -> Iterator[str]:
    if not isinstance(proof, dict):
        yield "    proof: none is stored"
        return
    spread = proof.get("spread")
    moved = spread.items() if isinstance(spread, dict) else ()
    widest = [f"{name} {_number(value)}" for name, value in moved if value]
    error = proof.get("instruction_set_error")
    parts = [
        f"{proof.get('runs', 'an unknown number of')} runs",
        f"spread between them: {', '.join(widest) or 'none, bit for bit'}",
        *([] if error is None else [f"other instruction sets move margins by up to {_number(error)}"]),
    ]
    yield f"    proof: {'; '.join(parts)}"


def _rules_lines(entry: Mapping[str, Any]) -> Iterator[str]:
    counts = [each["values"] for each in entry["asserted"].values() if each["values"] is not None]
    held = f", {counted(sum(counts), 'value')} in the golden" if counts else ""
    yield f"  asserted{held} (and prompt_tokens, always):"
    for name, each in entry["asserted"].items():
        judged = "" if each["values"] is None else f" ({counted(each['values'], 'value')})"
        yield f"    {name}: {each['rule']}{judged}"
    yield f"  informed: {', '.join(entry['informed']) or 'nothing'}"
    for name, reason in entry["ignored"].items():
        yield f"  ignored: {name}, because: {reason}"
    for each in entry["witnesses"]:
        held = "" if each["golden"] is None else f" ({_json(each['golden'])} in the golden)"
        yield f"  witness: {each['witness']}{held}"
    for relation in entry["relations"]:
        yield f"  relation: {relation}"


def _verdict_lines(last: Mapping[str, Any] | None) -> Iterator[str]:
    if last is None:
        yield "  last verdict: none; `golden run` gives one"
        return
    compared = f", {last['compared']} values compared" if "compared" in last else ""
    yield f"  last verdict: {last['verdict']}{compared}"
    for each in last["findings"][:SHOWN_FINDINGS]:
        cause = f" ({each['cause']})" if each.get("cause") else ""
        first, *rest = each["message"].split("\n")
        yield f"    {each['class']}{cause} {each['path']}: {first}"
        yield from (f"      {line}" for line in rest)
    if (hidden := len(last["findings"]) - SHOWN_FINDINGS) > 0:
        yield f"    and {hidden} more; `--json` has them all"


def _number(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, int | float) else _json(value)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
