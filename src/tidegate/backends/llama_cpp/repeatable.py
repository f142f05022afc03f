"""Whether the kernels of this build, for this model, keep what `repeatable` promises: tried once, at the start.

Matrix kernels add in an order that depends on the shape of the weights and, for some types of weights, on the width of
the batch. Which ones do is nowhere declared, so it is measured: the same tokens in passes of several widths, alone and
beside others, must give the same bits.
"""

import numpy as np

from tidegate.core.backend import Backend, Float32Array
from tidegate.core.plan import DecodeRow, KvDrop, PrefillSlice, StepPlan
from tidegate.sizing.start_error import StartError

_LENGTH = 24
_WIDTHS = (24, 2, 1, 4, 5, 8, 12)

Rows = dict[tuple[int, int], Float32Array]


def check_repeatable(backend: Backend, *, on_gpu: bool) -> None:
    """Raises StartError when results depend on the batch. Leaves the cache empty."""
    advice = "set repeatable to false, or serve a model with other weights (those of type Q4_1 were seen to be)"
    if on_gpu:
        raise StartError(f"repeatable results are known on CPUs only: {advice}")
    if not backend.caps.can_truncate:
        raise StartError(f"this model's cache cannot be cut, so results cannot be made repeatable: {advice}")
    length = min(_LENGTH, backend.caps.max_model_len, backend.caps.max_step_tokens)
    token_ids = [(7919 * (i + 1)) % backend.caps.vocab_size for i in range(length)]
    expected = _rows(backend, token_ids, length)
    for width in _WIDTHS[1:]:
        if not _are_equal(expected, _rows(backend, token_ids, width)):
            raise StartError(f"this model gives other logits in passes {width} tokens wide than in one pass: {advice}")
    if backend.caps.max_sequences > 1 and not _are_equal(expected, _beside(backend, token_ids)):
        raise StartError(f"this model gives other logits beside another sequence than alone: {advice}")


def _rows(backend: Backend, token_ids: list[int], width: int) -> Rows:
    found: Rows = {}
    for start in range(0, len(token_ids), width):
        part = PrefillSlice(0, start, token_ids[start : start + width], wants_last=True, wants_all=True)
        found |= _copied(backend, StepPlan(prefill=[part]))
    backend.execute(StepPlan(moves=[KvDrop(0)]))
    return found


def _beside(backend: Backend, token_ids: list[int]) -> Rows:
    """Half of the tokens beside a longer run of another sequence, then one by one beside its single ones."""
    half = len(token_ids) // 2
    first = PrefillSlice(0, 0, token_ids[:half], wants_last=True, wants_all=True)
    other = PrefillSlice(1, 0, token_ids[::-1][: half // 2], wants_last=False)
    found = _copied(backend, StepPlan(prefill=[first, other]))
    for position in range(half, len(token_ids)):
        rows = [DecodeRow(0, position, token_ids[position]), DecodeRow(1, half // 2 + position - half, token_ids[0])]
        found |= _copied(backend, StepPlan(decode=rows))
    backend.execute(StepPlan(moves=[KvDrop(0), KvDrop(1)]))
    return found


def _copied(backend: Backend, plan: StepPlan) -> Rows:
    logits = backend.execute(plan)
    return {row: np.array(logits.values[i]) for i, row in enumerate(logits.rows)}


def _are_equal(expected: Rows, found: Rows) -> bool:
    return all(np.array_equal(values, found[row]) for row, values in expected.items())
