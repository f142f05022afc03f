"""SGLang over its `/generate`. Begin at `sglang_wire.py`."""
