"""Manifests: from strict YAML to frozen fixtures, and what is wrong with them."""
