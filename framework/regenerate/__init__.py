"""Prove, plan, apply: the way in which goldens come to be."""
