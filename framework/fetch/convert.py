"""From a GGUF file to the files of a model in Hugging Face layout."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any

from framework.fetch.gguf_file import open_gguf
from framework.fetch.llama import config_of, tensors_of
from framework.fetch.safetensors_file import write_safetensors
from framework.fetch.tokenizer_json import generation_config_of, tokenizer_config_of, tokenizer_of


def convert(gguf_path: Path, folder: Path) -> None:
    """Write the model in a GGUF file into `folder`, complete on the disk, `config.json` last.

    Raises:
        FetchError: it is no GGUF file, or one that cannot be converted.
        OSError: `folder` cannot be written.
    """
    file = open_gguf(gguf_path)
    config = config_of(file)
    tensors = tensors_of(file, config)
    documents = {
        "tokenizer.json": tokenizer_of(file),
        "tokenizer_config.json": tokenizer_config_of(file),
        "generation_config.json": generation_config_of(file),
    }
    documents["config.json"] = config | documents["generation_config.json"]
    _write(folder / "model.safetensors", lambda stream: write_safetensors(stream, tensors))
    for name, document in documents.items():
        _write_json(folder / name, document)


def _write_json(path: Path, document: Mapping[str, Any]) -> None:
    text = json.dumps(document, ensure_ascii=False, indent=2) + "\n"
    _write(path, lambda stream: stream.write(text.encode()))


def _write(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    with path.open("xb") as stream:
        write(stream)
        stream.flush()
        os.fsync(stream.fileno())
