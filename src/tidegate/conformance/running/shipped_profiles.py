"""Profiles that come with the suite, by their names."""

from importlib import resources

_FOLDER = resources.files("tidegate.conformance") / "profiles"
SHIPPED = ("smoke",)
"""`smoke`: bounded for CI on a real model; every area is asked something."""


def read_shipped(name: str) -> str:
    """Returns the TOML text of a profile in `SHIPPED`."""
    return (_FOLDER / f"{name}.toml").read_text("utf-8")
