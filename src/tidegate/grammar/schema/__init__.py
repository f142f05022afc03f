"""JSON Schema: from what a caller writes to the words that a backend keeps exactly. Begin at `lowering.py`."""
