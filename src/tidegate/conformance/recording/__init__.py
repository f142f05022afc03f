"""Runs that were written down, and judged again without a server."""
