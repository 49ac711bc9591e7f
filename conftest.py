"""Makes `pytest fixtures` work in a checkout that is not installed; installed, the entry point does it."""

from importlib.metadata import entry_points

_INSTALLED = any(entry.value == "framework.plugin" for entry in entry_points(group="pytest11"))

pytest_plugins = ["pytester"] if _INSTALLED else ["pytester", "framework.plugin"]
