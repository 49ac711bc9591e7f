"""Outcomes for people and for machines."""
