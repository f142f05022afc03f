"""Engines on other machines, over HTTP at token level: what the adapters share. Begin at `client.py`."""
