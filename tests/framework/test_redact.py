from __future__ import annotations

import pytest

from framework.redact import Redactor, looks_like_a_secret

ENVIRONMENT = {
    "HF_TOKEN": "hf_abcdef123456",
    "DB_PASSWORD": "correct horse",
    "LONGER_SECRET": "hf_abcdef123456-and-more",
    "TINY_KEY": "abc",
    "MAX_TOKENS": "131072",
    "TOKENIZERS_PARALLELISM": "parallel-yes",
    "HARMLESS": "harmless value",
    "PWD": "/home/somebody",
}
REDACTOR = Redactor.of(ENVIRONMENT)


@pytest.mark.parametrize(
    "name",
    ["GITHUB_TOKEN", "mytoken", "AWS_SECRET_ACCESS_KEY", "API_KEY", "APIKEY", "DB_PASSWORD", "PGPASSWORD", "SSH_KEY",
     "GOOGLE_APPLICATION_CREDENTIALS", "SENTRY_DSN", "GH_PAT", "NPM_AUTH", "MYSQL_PWD", "SIGNING_PASSPHRASE"],
)  # fmt: skip
def test_names_of_secrets_are_known(name: str) -> None:
    assert looks_like_a_secret(name)


@pytest.mark.parametrize(
    "name", ["PATH", "PWD", "OLDPWD", "HOME", "TOKENIZERS_PARALLELISM", "KEYBOARD", "AUTHOR", "LANG"]
)
def test_other_names_are_none(name: str) -> None:
    assert not looks_like_a_secret(name)


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("a hf_abcdef123456 b", "a [redacted] b"),
        ("hf_abcdef123456-and-more", "[redacted]"),
        ("correct horse, correct horse", "[redacted], [redacted]"),
        ("cannot reach https://me:pass@host/x", "cannot reach https://[redacted]@host/x"),
        ("git+ssh://token@host and postgres://a:b@c", "git+ssh://[redacted]@host and postgres://[redacted]@c"),
        ("https://host/user@example", "https://host/user@example"),
        (
            "abc 131072 parallel-yes harmless value /home/somebody",
            "abc 131072 parallel-yes harmless value /home/somebody",
        ),
    ],
)
def test_values_of_secrets_and_credentials_in_addresses_are_taken_out(text: str, redacted: str) -> None:
    assert REDACTOR.text(text) == redacted


def test_every_text_of_a_document_is_looked_at_and_nothing_else_changes() -> None:
    document = {"a": ["hf_abcdef123456", 1, 1.5, None, True, {"hf_abcdef123456": "x"}], "b": ("correct horse",)}
    assert REDACTOR.value(document) == {
        "a": ["[redacted]", 1, 1.5, None, True, {"hf_abcdef123456": "x"}],
        "b": ["[redacted]"],
    }


def test_a_secret_in_a_document_is_found() -> None:
    assert REDACTOR.finds({"a": [{"b": ("say correct horse",)}]})
    assert not REDACTOR.finds({"a": [float("nan"), ("https://me:pass@host",)]})
    assert not Redactor().finds("correct horse")


def test_an_address_without_end_is_read_in_a_moment() -> None:
    assert REDACTOR.text("https://" + "a" * 2_000_000).endswith("a")
    assert REDACTOR.text("a://" * 500_000).endswith("://")
