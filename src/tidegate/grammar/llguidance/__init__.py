"""llguidance as a backend. Begin at `llguidance_compiler.py`."""
