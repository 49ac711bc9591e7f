"""GGUF's vocabulary, merges and kind of pre-tokenizer as `tokenizer.json`, `tokenizer_config.json` and their like."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from tokenizers import Tokenizer

from framework.fetch.gguf_file import GgufFile

_CONTROL: Final = 3
_USER_DEFINED: Final = 4
_BYTE_LEVEL: Final = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
_SINGLE_DIGITS: Final = {"type": "Digits", "individual_digits": True}
_PRE_TOKENIZERS: Final[Mapping[str, Mapping[str, Any]]] = MappingProxyType(
    {
        "gpt-2": _BYTE_LEVEL,
        "smollm": {"type": "Sequence", "pretokenizers": [_SINGLE_DIGITS, _BYTE_LEVEL]},
    }
)
"""How text is cut before merging, by GGUF's name for it: with `smollm` every digit stands alone first."""

_SPECIAL_TOKENS: Final = {
    "bos_token": "tokenizer.ggml.bos_token_id",
    "eos_token": "tokenizer.ggml.eos_token_id",
    "pad_token": "tokenizer.ggml.padding_token_id",
    "unk_token": "tokenizer.ggml.unknown_token_id",
}
_ENDS: Final = ("bos_token", "eos_token", "pad_token")


def tokenizer_of(file: GgufFile) -> dict[str, Any]:
    """Return `tokenizer.json` for a GGUF file with a byte-level BPE vocabulary.

    Raises:
        FetchError: its vocabulary is of another kind, or damaged.
    """
    model, pre = file.value("tokenizer.ggml.model", str), file.value("tokenizer.ggml.pre", str)
    if model != "gpt2":
        raise file.error(f"tokenizer.ggml.model is {model!r}, and only 'gpt2' (byte-level BPE) can be converted")
    if pre not in _PRE_TOKENIZERS:
        known = ", ".join(_PRE_TOKENIZERS)
        raise file.error(f"tokenizer.ggml.pre is {pre!r}, and only these can be converted: {known}")
    for key in ("tokenizer.ggml.add_bos_token", "tokenizer.ggml.add_space_prefix"):
        if file.value(key, bool, default=False):
            raise file.error(f"{key} is true, which cannot be converted")
    tokens = _tokens(file)
    merges = [_halves(file, merge) for merge in file.value("tokenizer.ggml.merges", list)]
    document = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": _added_tokens(file, tokens),
        "normalizer": None,
        "pre_tokenizer": _PRE_TOKENIZERS[pre],
        "post_processor": None,
        "decoder": _BYTE_LEVEL,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": {token: index for index, token in enumerate(tokens)},
            "merges": merges,
        },
    }
    try:
        Tokenizer.from_str(json.dumps(document))
    except Exception as error:
        raise file.error(f"its vocabulary and merges make no tokenizer: {error}") from error
    return document


def tokenizer_config_of(file: GgufFile) -> dict[str, Any]:
    """Return `tokenizer_config.json`: special tokens by their part, the longest text, and the chat template.

    Raises:
        FetchError: a special token is not in the vocabulary.
    """
    tokens = _tokens(file)
    config: dict[str, Any] = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "clean_up_tokenization_spaces": False,
        "model_max_length": file.value("llama.context_length", int),
    }
    config |= {part: tokens[index] for part, index in _special_ids(file, tokens).items()}
    if "tokenizer.chat_template" in file.metadata:
        config["chat_template"] = file.value("tokenizer.chat_template", str)
    return config


def generation_config_of(file: GgufFile) -> dict[str, Any]:
    """Return `generation_config.json`: where a text begins and ends.

    Raises:
        FetchError: a special token is not in the vocabulary.
    """
    ids = _special_ids(file, _tokens(file))
    return {f"{part}_id": ids[part] for part in _ENDS if part in ids}


def _tokens(file: GgufFile) -> list[str]:
    tokens = file.value("tokenizer.ggml.tokens", list)
    size = file.shape("token_embd.weight")[0]
    if len(tokens) != size or len(set(tokens)) != size:
        raise file.error(f"tokenizer.ggml.tokens has {len(set(tokens))} different tokens for {size} embeddings")
    return tokens


def _special_ids(file: GgufFile, tokens: list[str]) -> dict[str, int]:
    found = {part: file.value(key, int) for part, key in _SPECIAL_TOKENS.items() if key in file.metadata}
    for part, index in found.items():
        if not 0 <= index < len(tokens):
            raise file.error(f"{_SPECIAL_TOKENS[part]} is {index}, which is no token")
    return found


def _added_tokens(file: GgufFile, tokens: list[str]) -> list[dict[str, Any]]:
    kinds = file.value("tokenizer.ggml.token_type", list)
    if len(kinds) != len(tokens):
        raise file.error(f"tokenizer.ggml.token_type has {len(kinds)} entries for {len(tokens)} tokens")
    return [
        {
            "id": index,
            "content": tokens[index],
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": kind == _CONTROL,
        }
        for index, kind in enumerate(kinds)
        if kind in (_CONTROL, _USER_DEFINED)
    ]


def _halves(file: GgufFile, merge: str) -> list[str]:
    halves = merge.split(" ")
    if len(halves) != len(("left", "right")):
        raise file.error(f"tokenizer.ggml.merges has {merge!r}, which is no pair")
    return halves
