"""Tidegate: the boundary where a changing inference engine promises stable behaviour to its callers."""

__version__ = "0.1.0"
