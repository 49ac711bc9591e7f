"""Checkpoints: safetensors files read tensor by tensor, checked by name and shape before a byte of data is read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from engine.model.config_file import ModelError, read_json_object
from engine.model.families import ModelShape, is_redundant, layout_of, tensor_shapes

_SINGLE = "model.safetensors"
_INDEX = "model.safetensors.index.json"
_PICKLED = (".bin", ".pt", ".pth", ".ckpt")
_READABLE = (torch.float32, torch.float16, torch.bfloat16)
_NAMES_SHOWN = 8


class Checkpoint:
    """The tensors of a model directory, open for reading; use as a context manager.

    Files stay memory-mapped while it is open, and a tensor is read when it is asked for. `expert_layout` is how it
    stores experts; `None` for a dense model.
    """

    def __init__(self, model_dir: Path, shape: ModelShape) -> None:
        """Open the files and compare what they hold with what the shape needs.

        Raises:
            ModelError: no safetensors, a damaged file, or tensors missing, extra, or of another shape or kind.
        """
        self.model_dir = model_dir
        self._files = ExitStack()
        self._readers: dict[str, Any] = {}
        try:
            for path in weight_files(model_dir):
                self._open(path)
            self.expert_layout = layout_of(shape, self._readers)
            self._verify(tensor_shapes(shape, self.expert_layout), shape)
        except BaseException:
            self._files.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._files.close()

    def read(self, name: str) -> Tensor:
        """Read one tensor, in the dtype of the file.

        Raises:
            ModelError: it is of a kind that is not supported, or holds a number that is not finite.
        """
        tensor: Tensor = self._readers[name].get_tensor(name)
        if tensor.dtype not in _READABLE:
            raise ModelError(
                f"{self.model_dir}: tensor {name} is stored as {tensor.dtype}; supported are float32, float16 and "
                "bfloat16 (quantised checkpoints are not)"
            )
        if not torch.isfinite(tensor).all():
            raise ModelError(f"{self.model_dir}: tensor {name} holds NaN or infinity; fetch or save the weights again")
        return tensor

    def _open(self, path: Path) -> None:
        try:
            reader = self._files.enter_context(safe_open(path, framework="pt"))
        except (SafetensorError, OSError) as error:
            raise ModelError(f"{path}: cannot be read as safetensors ({error}); fetch or save it again") from error
        for name in reader.keys():  # noqa: SIM118, not a mapping
            self._readers[name] = reader

    def _verify(self, expected: Mapping[str, tuple[int, ...]], shape: ModelShape) -> None:
        present = {name: tuple(reader.get_slice(name).get_shape()) for name, reader in self._readers.items()}
        extra = [name for name in present if name not in expected and not is_redundant(name, shape)]
        wrong = [
            f"{name} (is {list(present[name])}, must be {list(size)})"
            for name, size in expected.items()
            if name in present and present[name] != size
        ]
        complaints = {
            "missing": [name for name in expected if name not in present],
            "not known to the family": extra,
            "of the wrong shape": wrong,
        }
        lines = [f"  {what}: {_some(names)}" for what, names in complaints.items() if names]
        if lines:
            raise ModelError(
                f"{self.model_dir}: the tensors do not fit config.json (family {shape.family}):\n" + "\n".join(lines)
            )


def weight_files(model_dir: Path) -> list[Path]:
    """The safetensors files of a directory, as its index or the single-file layout names them."""
    index = model_dir / _INDEX
    if index.is_file():
        weight_map = read_json_object(index).get("weight_map")
        if not isinstance(weight_map, dict) or not all(isinstance(name, str) for name in weight_map.values()):
            raise ModelError(f"{index}: weight_map must map tensor names to file names")
        names = sorted(set(weight_map.values()))
        elsewhere = [name for name in names if Path(name).name != name]
        if elsewhere:
            raise ModelError(
                f"{index}: names files outside {model_dir}: {_some(elsewhere)}; shards lie beside the index"
            )
        files = [model_dir / name for name in names]
        present = {path.name for path in model_dir.iterdir() if path.is_file()}
        absent = [name for name in names if name not in present]
        if absent:
            raise ModelError(f"{index}: names files that are not in {model_dir}: {_some(absent)}; fetch them")
        return files
    single = model_dir / _SINGLE
    if single.is_file():
        return [single]
    pickled = sorted(path.name for path in model_dir.iterdir() if path.suffix in _PICKLED)
    if pickled:
        raise ModelError(
            f"{model_dir}: holds pickled weights only ({_some(pickled)}), which can run code when read and are "
            "refused; convert them with transformers: model.save_pretrained(DIR, safe_serialization=True)"
        )
    raise ModelError(f"{model_dir}: no weights; expected {_SINGLE} or {_INDEX}")


def _some(names: Iterable[str]) -> str:
    """A few names, and how many more there are."""
    listed = sorted(names)
    rest = f" and {len(listed) - _NAMES_SHOWN} more" if len(listed) > _NAMES_SHOWN else ""
    return ", ".join(listed[:_NAMES_SHOWN]) + rest
