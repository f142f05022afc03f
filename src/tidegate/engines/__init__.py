"""Implementations of the `Engine` port, on the server's side."""
