"""Faults put into a copy of the engine: the verdict names the right cause, and the step that went wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.scratch import Scratch, copy_of_the_shipped

WRONG_SAMPLE = """\
            elif row.samples:
                if {when} and len(state.samples) == 7:
                    sample = dataclasses.replace(sample, token_id=sample.token_id ^ 1)
"""


@pytest.fixture
def scratch(tmp_path: Path) -> Scratch:
    return copy_of_the_shipped(tmp_path / "root")


def findings(scratch: Scratch, fixture: str, kind: str) -> list[dict[str, Any]]:
    code, document = scratch.run(fixture)
    assert code == 1
    (entry,) = document["fixtures"]
    return [finding for finding in entry["findings"] if finding["class"] == kind]


def test_a_wrong_block_is_wrong_from_the_start_or_drifts_into_it(scratch: Scratch) -> None:
    scratch.patch("engine/batch.py", "first = block_table[block] * size", "first = block_table[block - 1] * size")
    found = {finding["path"]: finding for finding in findings(scratch, "scheduling/arrival_waves", "TOKEN")}
    start = found['requests["0"].generated_tokens[0]']
    assert start["cause"] == "WRONG_FROM_START"
    lines = start["message"].split("\n")
    assert lines[2].startswith("golden:  >426< 328 260")
    assert '"» She« had a blue' in lines[3]
    assert lines[-1].startswith("computed in step 0: prefill of request 0 [0, 17), request 1 [0, 7)")
    assert "NUMERIC_DRIFT" in {finding.get("cause") for finding in found.values()}


def test_an_end_that_is_not_seen_is_a_length(scratch: Scratch) -> None:
    scratch.patch("engine/request.py", "if not request.sampling.ignore_eos:", "if request.sampling.ignore_eos:")
    found = findings(scratch, "requests/end_of_sequence", "LENGTH")
    lengths = [finding for finding in found if finding["path"].endswith(".generated_tokens")]
    assert lengths
    assert {finding["cause"] for finding in lengths} == {"LENGTH"}
    assert all(">end<" in finding["message"] for finding in lengths)


def test_what_one_mode_alone_gets_wrong_is_the_schedules_doing(scratch: Scratch) -> None:
    scratch.patch("engine/config.py", '        "async",\n', '        "legacy",\n')
    wrong = WRONG_SAMPLE.format(when="not self._asynchronous")
    scratch.patch("engine/loop.py", "            elif row.samples:\n", wrong)
    (found,) = findings(scratch, "scheduling/async_default", "TOKEN")
    assert found["path"] == 'requests["0"].generated_tokens[7]'
    assert found["cause"] == "SCHEDULE"
    assert "the schedule moved too: settings.async_sched_mode, counters." in found["message"]
    assert found["message"].endswith("computed in step 7: decode of request 0")


def test_a_wrong_sample_alone_has_no_cause_but_its_step(scratch: Scratch) -> None:
    scratch.patch("engine/loop.py", "            elif row.samples:\n", WRONG_SAMPLE.format(when="True"))
    (found,) = findings(scratch, "scheduling/async_default", "TOKEN")
    assert "cause" not in found
    assert "computed in step 7: " in found["message"]
