from __future__ import annotations

from pathlib import Path

import pytest

from framework.manifest.load import load_manifest
from tests.framework.manifest.samples import make_root, write

BASE = """\
manifest: 1
name: a
summary: x
model: small
engine: {max_tokens: 4, async_sched_mode: legacy}
workload:
  prompts: [hello]
  sampling: {temperature: 0, max_new_tokens: 3}
assert:
  generated_tokens: exact
"""


def sha256(root: Path, text: str) -> str:
    return load_manifest(write(root, "a", text=text), fixtures_root=root / "fixtures").manifest_sha256


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("summary: x", "summary: z  # another"),
        ("model: small", "model: small\ntags: [t]\nowner: me\ntime_limit_s: 3\nplatforms: [nvidia-h200]"),
        ("{max_tokens: 4, async_sched_mode: legacy}", "{async_sched_mode: legacy, max_tokens: 4}"),
        ("[hello]", '["hello"]'),
        ("[hello]", "[{text: hello}]"),
        ("[hello]", "[hello]\n  arrivals: all_at_start\n  repeats: 1"),
        ("temperature: 0,", "temperature: 0.0,"),
        ("generated_tokens: exact", "generated_tokens: {exact: true}"),
        ("manifest: 1\n", "manifest: 1\nranks: 1\nwitness: []\n"),
    ],
)
def test_the_hash_stays_where_the_same_is_meant(tmp_path: Path, old: str, new: str) -> None:
    root = make_root(tmp_path)
    assert old in BASE
    assert sha256(root, BASE) == sha256(root, BASE.replace(old, new))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("model: small", "model: large"),
        ("model: small", "model: small\nranks: 2"),
        ("max_tokens: 4", "max_tokens: 5"),
        (", async_sched_mode: legacy", ""),
        ("[hello]", "[hello, hello]"),
        ("[hello]", "[{text: hello, arrival_step: 0}]"),
        ("[hello]", "[hello]\n  arrivals: {requests_per_step: 1}"),
        ("[hello]", "[hello]\n  repeats: 2"),
        ("max_new_tokens: 3", "max_new_tokens: 4"),
        ("generated_tokens: exact", "generated_tokens: {exact: true, allow_empty: true}"),
        ("generated_tokens: exact", "generated_tokens: exact\n  generated_text: exact"),
        ("generated_tokens: exact", "generated_tokens: exact\n  generated_logprobs: {atol: 0.001, rtol: 0.0}"),
        ("manifest: 1\n", "manifest: 1\ninform: [performance]\n"),
        ("manifest: 1\n", "manifest: 1\nignore: {b: c}\n"),
        ("manifest: 1\n", 'manifest: 1\nwitness: ["counters.a > 0"]\n'),
        ("manifest: 1\n", "manifest: 1\nrelations: [{kind: same_outputs_as, with: b}]\n"),
    ],
)
def test_the_hash_changes_where_something_else_is_run_or_judged(tmp_path: Path, old: str, new: str) -> None:
    root = make_root(tmp_path)
    assert old in BASE
    assert sha256(root, BASE) != sha256(root, BASE.replace(old, new))


def test_the_hash_follows_the_prompt_file(tmp_path: Path) -> None:
    root = make_root(tmp_path)
    prompts = root / "fixtures" / "p.jsonl"
    text = BASE.replace("prompts: [hello]", "prompt_file: p.jsonl")
    prompts.write_text('"hello"\n')
    assert sha256(root, text) == sha256(root, BASE)
    prompts.write_text('"hallo"\n')
    assert sha256(root, text) != sha256(root, BASE)
