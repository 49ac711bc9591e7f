"""Running fixtures: the border to an engine, its process, and judged sessions."""
