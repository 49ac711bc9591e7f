"""What identifies a model: a hash over its configuration and its weights."""

from __future__ import annotations

import hashlib
from pathlib import Path

from engine.model.weights import weight_files


def model_sha256(model_dir: Path) -> str:
    """SHA-256 over the names and bytes of `config.json` and the files of weights.

    Raises:
        ModelError: there are no weights.
    """
    digest = hashlib.sha256()
    for path in (model_dir / "config.json", *weight_files(model_dir)):
        with path.open("rb") as stream:
            digest.update(f"{path.name} {hashlib.file_digest(stream, 'sha256').hexdigest()}\n".encode())
    return digest.hexdigest()
