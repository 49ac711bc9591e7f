"""Makes the recording that a fixture replays from what another fixture recorded.

`python -m framework.run.routing_recording RECORD MODEL FILE`: RECORD is a golden or a record with `routing_indices`,
MODEL the folder of its model, FILE the recording that `routing_replay_path` of another manifest names.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.config import ConfigError
from engine.routing import check_requests, write_recording
from framework.errors import ExitCode, GoldenError, GoldenInferenceError
from framework.golden.store import read_record_or_golden
from framework.run.reference_engine import ReferenceEngine

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the recording and return the exit code: 0, or that of what is wrong with the files."""
    parser = argparse.ArgumentParser(prog="python -m framework.run.routing_recording", description=__doc__)
    parser.add_argument("record", type=Path, metavar="RECORD", help="a golden or record with routing_indices")
    parser.add_argument("model", type=Path, metavar="MODEL", help="the folder of its model")
    parser.add_argument("file", type=Path, metavar="FILE", help="the recording to write")
    given = parser.parse_args(arguments)
    try:
        count = record_to_recording(given.record, given.model, given.file)
    except GoldenInferenceError as error:
        print(f"error: {error}", file=sys.stderr)  # noqa: T201
        return int(error.exit_code)
    except ValueError as error:  # what the engine says of a model or a recording
        print(f"error: {error}", file=sys.stderr)  # noqa: T201
        return ExitCode.USAGE
    print(f"{given.file}: routing of {count} request{'s' * (count != 1)}")  # noqa: T201
    return ExitCode.GOOD


def record_to_recording(record: Path, model: Path, file: Path) -> int:
    """Write the routing of a record's requests as a recording, and return how many these are.

    Raises:
        GoldenError: the record cannot be read, holds no routing, or is a golden of another model.
        ValueError: the model has no experts, or the routing does not fit it.
    """
    from engine.model import read_shape  # noqa: PLC0415 - torch is loaded for this command only
    from engine.model.identity import model_sha256  # noqa: PLC0415

    document = read_record_or_golden(record)
    hashes = document.get("hashes")
    if hashes is not None and hashes.get("model") != ReferenceEngine().model_hashes(model)["model"]:
        raise GoldenError(f"{record}: it was recorded with another model than {model}; name its own")
    moe = read_shape(model).moe
    if moe is None:
        raise ConfigError(f"{model}: a dense model has no routing to replay; name the model of {record}")
    requests = _routed_requests(document)
    if not requests:
        raise GoldenError(f"{record}: no request has routing_indices; record it with moe_enable_routing_replay: true")
    digest = model_sha256(model)
    check_requests(record, requests, moe)
    write_recording(file, requests, moe.num_experts, digest)
    return len(requests)


def _routed_requests(document: dict[str, Any]) -> dict[str, Any]:
    return {
        request_id: {"prompt_tokens": request["prompt_tokens"], "routing_indices": request["routing_indices"]}
        for request_id, request in document["requests"].items()
        if request.get("routing_indices") and request.get("prompt_tokens")
    }


if __name__ == "__main__":
    sys.exit(main())
