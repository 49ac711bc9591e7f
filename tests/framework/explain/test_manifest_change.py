from __future__ import annotations

import pytest

from framework.explain.manifest_change import ManifestChange, is_manifest, manifest_change

MANIFEST = """\
manifest: 1
name: a
engine: {max_tokens: 64}
assert:
  generated_tokens: exact
  generated_logprobs: {atol: 1.0e-5, rtol: 0.0}
  routing_indices: sequence
  counters: {'*': exact}
  performance: {rate: {ratio: [0.9, 1.1]}}
inform: [finish_reason]
witness: [counters.a > 0]
platforms: [cpu]
"""


def changed(old: str, new: str, text: str = MANIFEST) -> ManifestChange:
    assert text.count(old) == 1
    return manifest_change(text.encode(), text.replace(old, new).encode(), "fixtures/a.yaml")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("1.0e-5", "1.0e-3", "generated_logprobs: atol 1e-05, rtol 0.0 → atol 0.001, rtol 0.0"),
        ("rtol: 0.0", "rtol: 0.1", "generated_logprobs: atol 1e-05, rtol 0.0 → atol 1e-05, rtol 0.1"),
        ("sequence", "set", "routing_indices: sequence → set"),
        ("tokens: exact", "tokens: {exact: true, allow_empty: true}", "generated_tokens: exact → exact, allow_empty"),
        ("'*': exact", "'*': {atol: 1, rtol: 0}", "counters.*: exact → atol 1.0, rtol 0.0"),
        ("[0.9, 1.1]", "[0.5, 1.1]", "performance.rate: ratio 0.9 to 1.1 → ratio 0.5 to 1.1"),
        ("[0.9, 1.1]", "[0.9, 1.2]", "performance.rate: ratio 0.9 to 1.1 → ratio 0.9 to 1.2"),
        ("witness: [counters.a > 0]\n", "", "witness removed: counters.a > 0"),
        ("  generated_tokens: exact\n", "", "generated_tokens: exact → undeclared"),
    ],
)
def test_what_judges_less_is_told_apart(old: str, new: str, words: str) -> None:
    assert changed(old, new) == ManifestChange((words,), ())
    back = manifest_change(MANIFEST.replace(old, new).encode(), MANIFEST.encode(), "fixtures/a.yaml")
    assert back.widened == (), "the other way round judges more"
    assert len(back.others) == 1


def test_what_is_ignored_now_has_its_reason() -> None:
    ignored = MANIFEST.replace("  generated_tokens: exact\n", "") + "ignore: {generated_tokens: they flake}\n"
    change = manifest_change(MANIFEST.encode(), ignored.encode(), "fixtures/a.yaml")
    assert change.widened == ("generated_tokens: exact → ignored (they flake)",)


def test_a_rule_that_is_wider_in_one_bound_and_narrower_in_the_other_judges_less() -> None:
    assert len(changed("atol: 1.0e-5, rtol: 0.0", "atol: 0.0, rtol: 0.1").widened) == 1


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("max_tokens: 64", "max_tokens: 32", "engine.max_tokens: 64 → 32, pinned"),
        ("{max_tokens: 64}", "{}", "engine.max_tokens: no longer pinned to 64"),
        ("max_tokens: 64", "max_tokens: 64, dtype: bf16", "engine.dtype: now pinned to bf16"),
        ("[cpu]", "[cpu, gpu]", "platform added: gpu"),
        ("inform: [finish_reason]", "inform: [finish_reason, error]", "error: undeclared → informed"),
        ("name: a", "name: a\nsummary: what it proves", "summary: nothing → what it proves"),
        ("name: a", "name: a\nworkload: {prompts: [x]}", "workload changed"),
    ],
)
def test_other_changes_are_named(old: str, new: str, words: str) -> None:
    assert changed(old, new) == ManifestChange((), (words,))


def test_a_platform_list_left_out_means_the_cpu() -> None:
    assert changed("platforms: [cpu]\n", "") == ManifestChange((), ())


def test_comments_and_order_are_no_change() -> None:
    assert changed("name: a\n", "# a comment\nname: a\n") == ManifestChange((), ())


@pytest.mark.parametrize("text", ["a: [", "- 1", "manifest: 1", "\xff", "assert: {generated_tokens: nearly}"])
def test_a_manifest_that_cannot_be_read_is_a_change_that_says_so(text: str) -> None:
    data = text.encode("latin-1")
    for change, when in (
        (manifest_change(MANIFEST.encode(), data, "fixtures/a.yaml"), "now"),
        (manifest_change(data, MANIFEST.encode(), "fixtures/a.yaml"), "before"),
    ):
        assert change.widened == ()
        assert change.others[0].startswith(f"unreadable {when}: fixtures/a.yaml")


def test_models_and_hidden_files_are_no_manifests() -> None:
    assert is_manifest("a/b.yaml")
    assert not is_manifest("models/recipe.yaml")
    assert not is_manifest("a/.hidden/b.yaml")
