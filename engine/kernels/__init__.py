"""Paged attention: the key/value pool, what a step says about it, and the backends that read it."""

from engine.kernels.cache import KV_TILE, PagedKVCache
from engine.kernels.interface import AttentionBackend, AttentionMetadata, AttentionStep, QuerySpan

__all__ = ["KV_TILE", "AttentionBackend", "AttentionMetadata", "AttentionStep", "PagedKVCache", "QuerySpan"]
