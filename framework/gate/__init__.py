"""The gate of a merge queue: what a change must pass, decided on exactly one commit and said in one verdict."""
