"""vLLM over its `/inference/v1/generate`. Begin at `vllm_wire.py`."""
