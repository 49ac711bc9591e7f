"""Golden-value regression tests for dynamic-batching LLM inference.

Data goes one way: a manifest is loaded into a `Fixture`, an engine runs it into a record, the record is compared with
a sealed golden, and the findings become a verdict. Only `run` touches an engine; only `regenerate` writes a golden.
"""
