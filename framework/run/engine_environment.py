"""Which environment variables an engine's process gets: those on a list, so that it is given nothing by accident.

A variable is passed if the list below names it, or the workspace's configuration does; one whose name looks like a
secret only if the person who starts the run names it in `GOLDEN_ENGINE_ENVIRONMENT`, which no file of the repository
can set. A manifest can add nothing. See `docs/security.md`.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

from framework.errors import UsageError
from framework.redact import looks_like_a_secret

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

GRANTED_BY: Final = "GOLDEN_ENGINE_ENVIRONMENT"
"""The variable by which whoever starts a run names more variables, separated by commas."""

PASSED: Final = (
    # where programs, libraries and scratch space are, and how text is written
    "PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "TEMP", "TMP", "TZ", "LANG", "LANGUAGE", "LC_*", "XDG_CACHE_HOME",
    "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "VIRTUAL_ENV", "CONDA_PREFIX", "PYTHON*",
    # which devices, and how they compute
    "CUDA_*", "NVIDIA_*", "HIP_*", "ROCR_*", "NCCL_*", "CUBLAS_*", "CUDNN_*", "GLOO_*",
    "OMP_*", "GOMP_*", "KMP_*", "MKL_*", "OPENBLAS_*", "DNNL_*", "ONEDNN_*", "ATEN_*",
    "TORCH_*", "PYTORCH_*", "TORCHINDUCTOR_*", "TRITON_*", "TOKENIZERS_PARALLELISM",
)  # fmt: skip
"""Names that every engine gets where they are set; `*` stands for any ending."""

_PATTERN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\*?", re.ASCII)


def checked_patterns(names: Iterable[str], where: str) -> tuple[str, ...]:
    """Return names, or beginnings of names that end in `*`, that a configuration adds; `where` is what errors name.

    Raises:
        UsageError: one is no name of a variable, or looks like a secret.
    """
    patterns = tuple(names)
    for name in patterns:
        if not _PATTERN.fullmatch(name):
            raise UsageError(f"{where}: {name!r} is no name of an environment variable, nor one's beginning with a *")
        if looks_like_a_secret(name):
            raise UsageError(
                f"{where}: {name!r} looks like a secret, and a file of the repository cannot give it to an engine;"
                f" whoever starts the run can, with {GRANTED_BY}={name}"
            )
    return patterns


def engine_environment(
    environment: Mapping[str, str],
    patterns: Iterable[str] = (),
) -> dict[str, str]:
    """Return the part of an environment that an engine gets; `patterns` are those that the workspace adds."""
    passed = (*PASSED, *patterns)
    granted = {name.strip() for name in environment.get(GRANTED_BY, "").split(",")}
    return {
        name: value
        for name, value in environment.items()
        if name in granted or (not looks_like_a_secret(name) and any(fnmatchcase(name, pattern) for pattern in passed))
    }
