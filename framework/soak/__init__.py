"""Fixtures run again and again, in every way that must not change their results."""
