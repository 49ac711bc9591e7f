"""The engine as callers see it: a model, a tokenizer, and a step loop for each batch of requests."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import torch

from engine.config import ConfigError, InferenceConfig
from engine.counters import Counters
from engine.limits import Limits
from engine.loop import StepEvents, StepLoop
from engine.model import Decoder, ModelShape, load_decoder, read_shape
from engine.model.identity import model_sha256
from engine.numerics import SelfCheck, environment_fingerprint, self_check
from engine.request import Request, RequestOutput
from engine.routing import Recording, load_recording, save_recording
from engine.runner import Runner
from engine.timing import Timing
from engine.tokenizer import Tokenizer
from engine.trace import ScheduleTrace

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}


class Engine:
    """Generates for batches of requests; weights are read once and may be shared between engines.

    Every call of `stream` or `generate` is an engine run of its own: counters and timing start at zero.
    """

    def __init__(
        self, decoder: Decoder, tokenizer: Tokenizer, config: InferenceConfig, check: SelfCheck | None = None
    ) -> None:
        """Prove on this machine that rows do not depend on their neighbours, and allocate the KV cache.

        `check` is such a proof of an engine on the same weights; it is used if the number of threads is the same.

        Raises:
            ConfigError: if the decoder was loaded for another dtype or device, or the routing asked for is impossible.
            NumericsError: if an operation's rows depend on their neighbours here.
        """
        if decoder.dtype != DTYPES[config.dtype] or decoder.device.type != config.device:
            raise ConfigError(
                f"setting dtype or device: the weights were loaded as {decoder.dtype} on {decoder.device}, "
                f"the settings ask for {config.dtype} on {config.device}; load the model again with these settings"
            )
        _require_experts(config, decoder.shape, decoder.directory)
        self.config = config
        self.tokenizer = tokenizer
        self._decoder = decoder
        threads = config.num_threads or torch.get_num_threads()
        self._check = check if check and check.num_threads == threads else self_check(decoder, num_threads=threads)
        self._recording = _recording(decoder, config)
        self._runner = Runner(decoder, config, self._recording)
        self._loop = self._new_loop()

    @classmethod
    def load(cls, model_dir: Path, config: InferenceConfig) -> Engine:
        """Read a model directory in Hugging Face layout and return an engine for it.

        Raises:
            ModelError: for a model that cannot be read or is of a family the engine does not know.
            ConfigError: if the device is not there, or routing is to be recorded in a model without experts.
        """
        if config.device == "cuda" and not torch.cuda.is_available():
            raise ConfigError("setting device: 'cuda' was asked for, but torch sees no CUDA device; use 'cpu'")
        _require_experts(config, read_shape(model_dir), model_dir)
        decoder = load_decoder(model_dir, dtype=DTYPES[config.dtype], device=torch.device(config.device))
        return cls(decoder, Tokenizer(model_dir), config)

    def with_config(self, config: InferenceConfig) -> Engine:
        """Return another engine with these settings on the same weights."""
        return Engine(self._decoder, self.tokenizer, config, self._check)

    @property
    def counters(self) -> Counters:
        """The counters of the latest run."""
        return self._loop.counters

    @property
    def vocabulary_size(self) -> int:
        """The number of tokens that the model knows."""
        return self._decoder.shape.vocab_size

    @property
    def timing(self) -> Timing:
        """The timing of the latest run."""
        return self._loop.timing

    @property
    def trace(self) -> ScheduleTrace:
        """Which step of the latest run computed what."""
        return self._loop.trace

    def stream(self, requests: Iterable[Request]) -> Iterator[StepEvents]:
        """Run the requests and yield what becomes known at each step of the loop."""
        self._loop = self._new_loop()
        for request in requests:
            self._loop.submit(request)
        while self._loop.busy:
            yield self._with_text(self._loop.step())

    def generate(self, requests: Iterable[Request]) -> list[RequestOutput]:
        """Run the requests and return their outputs in the order of the requests."""
        requests = list(requests)
        outputs = {output.request_id: output for events in self.stream(requests) for output in events.finished}
        return [outputs[request.request_id] for request in requests]

    def environment(self) -> dict[str, Any]:
        """Return what besides weights, dtype and request decides a token's bits here."""
        return environment_fingerprint(self._decoder, self._check)

    def save_routing(self, path: Path, outputs: Iterable[RequestOutput]) -> int:
        """Write the routing of outputs of this engine to a file that can be replayed; return how many have any.

        Raises:
            ConfigError: if routing was not recorded, or the file cannot be written.
        """
        moe = self._decoder.shape.moe
        if moe is None or not self.config.moe_enable_routing_replay:
            raise ConfigError(
                "setting moe_enable_routing_replay: false, so there is no routing to save; set it to true, and "
                "async_sched_mode to 'legacy'"
            )
        return save_recording(path, outputs, moe.num_experts, model_sha256(self._decoder.directory))

    def close(self) -> None:
        """End the worker thread; the engine is not used afterwards."""
        self._runner.close()

    def _new_loop(self) -> StepLoop:
        shape = self._decoder.shape
        limits = Limits.of(
            self.config,
            vocab_size=shape.vocab_size,
            max_position_embeddings=shape.max_position_embeddings,
            recording=self._recording,
        )
        return StepLoop(self.config, limits, self._runner, frozenset(shape.eos_token_ids), self.tokenizer.stream)

    def _with_text(self, events: StepEvents) -> StepEvents:
        finished = tuple(
            dataclasses.replace(
                output, generated_text=self.tokenizer.decode(output.generated_token_ids)[: output.stop_string_at]
            )
            for output in events.finished
        )
        return dataclasses.replace(events, finished=finished)


def _require_experts(config: InferenceConfig, shape: ModelShape, model_dir: Path) -> None:
    if config.moe_enable_routing_replay and shape.moe is None:
        raise ConfigError(
            f"setting moe_enable_routing_replay: true, but {model_dir} is a dense model ({shape.family}) without "
            "experts to route to; take a model with experts, or leave moe_enable_routing_replay out"
        )


def _recording(decoder: Decoder, config: InferenceConfig) -> Recording | None:
    moe = decoder.shape.moe
    if moe is None or config.routing_replay_path is None:
        return None
    return load_recording(Path(config.routing_replay_path), moe, model_sha256(decoder.directory))
