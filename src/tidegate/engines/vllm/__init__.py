"""vLLM in this process: `AsyncLLM`, token ids in, token ids out. Begin at `watch.py`."""
