"""How many tokens one forward pass takes, where nobody says. Pure."""

STEP_TOKENS_CPU, STEP_TOKENS_GPU = 128, 512
"""An abort waits for a step's end. On a CPU 128 tokens a step prefill as fast as 512 (bench/prefill_chunks.py)."""


def step_tokens(wanted: int | None, max_sequences: int, *, on_gpu: bool) -> int:
    """Returns the tokens of a step: what was set, else by device, but one for each sequence."""
    if wanted is not None:
        return wanted
    return max(STEP_TOKENS_GPU if on_gpu else STEP_TOKENS_CPU, max_sequences)
