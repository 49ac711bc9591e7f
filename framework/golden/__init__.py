"""Goldens: their form, their seal, their place, and the only way they are written."""
