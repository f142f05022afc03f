"""What every `Backend` must do, as functions that take one and raise AssertionError.

Within the tolerance that a backend declares, logits depend on a sequence's own tokens alone: not on how its prefill was
cut, who else was in the batch, in which order rows stood, whether its beginning was shared, or what its id held
before. Run all with `check_backend(make)`, or one by one from `BACKEND_CHECKS`: each check takes an empty backend and
leaves it empty.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from tidegate.core.backend import Backend, Float32Array, StepLogits
from tidegate.core.plan import DecodeRow, KvDrop, KvMove, KvShare, KvTruncate, PrefillSlice, StepPlan

BackendFactory = Callable[[], Backend]


@dataclass(slots=True)
class _Driver:
    """Runs single steps and copies what is borrowed."""

    backend: Backend

    def step(self, plan: StepPlan) -> list[tuple[tuple[int, int], Float32Array]]:
        logits = self.backend.execute(plan)
        _check_rows(plan, logits, self.backend.caps.vocab_size)
        return [(row, np.array(logits.values[index])) for index, row in enumerate(logits.rows)]

    def move(self, *moves: KvMove) -> None:
        assert self.step(StepPlan(moves=list(moves))) == [], "a plan of moves alone gives no logits"

    def prefill(self, seq_id: int, tokens: Sequence[int], *, chunk: int, start: int = 0) -> Float32Array:
        """Prefills slice by slice; returns the last token's logits."""
        last: Float32Array | None = None
        for begin in range(start, len(tokens), chunk):
            part = list(tokens[begin : begin + chunk])
            is_last = begin + chunk >= len(tokens)
            rows = self.step(StepPlan(prefill=[PrefillSlice(seq_id, begin, part, wants_last=is_last)]))
            last = rows[0][1] if rows else None
        assert last is not None
        return last

    def decode(self, seq_id: int, position: int, token_id: int) -> Float32Array:
        return self.step(StepPlan(decode=[DecodeRow(seq_id, position, token_id)]))[0][1]


def _check_rows(plan: StepPlan, logits: StepLogits, vocab_size: int) -> None:
    expected = [(row.seq_id, row.position + index) for row in plan.decode for index in range(row.num_tokens)]
    for part in plan.prefill:
        end = part.start + len(part.token_ids)
        if part.wants_all:
            expected += [(part.seq_id, position) for position in range(part.start + part.num_unwanted, end)]
        elif part.wants_last:
            expected.append((part.seq_id, end - 1))
    assert logits.rows == expected, f"rows {logits.rows}, the plan asks for {expected}"
    assert logits.values.shape[0] >= len(expected), "fewer rows of values than rows"
    assert not expected or logits.values.shape[1] == vocab_size, "a row is not as long as the vocabulary"


def _sample_tokens(backend: Backend, length: int, salt: int) -> list[int]:
    """Returns ordinary tokens, always the same for the same arguments."""
    caps = backend.caps
    state, tokens = salt * 2654435761 + 12345, list[int]()
    while len(tokens) < length:
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        token_id = (state >> 33) % caps.vocab_size
        if token_id not in caps.eos_token_ids:
            tokens.append(token_id)
    return tokens


def _assert_same(backend: Backend, expected: Float32Array, actual: Float32Array, what: str) -> None:
    tolerance = backend.caps.logit_tolerance
    distance = float(np.max(np.abs(expected - actual)))
    assert np.isfinite(expected).all(), f"{what}: logits are not finite"
    assert distance <= tolerance, f"{what}: logits differ by {distance}, declared tolerance {tolerance}"


def check_caps(backend: Backend) -> None:
    """Sizes are positive and agree with each other; end tokens are in the vocabulary."""
    caps = backend.caps
    sizes = (caps.vocab_size, caps.max_model_len, caps.max_sequences, caps.num_blocks, caps.block_tokens)
    assert min(sizes) >= 1, f"a size is not positive: {caps}"
    assert caps.max_step_tokens >= caps.max_sequences, "a step cannot hold one token for each sequence"
    assert all(0 <= token_id < caps.vocab_size for token_id in caps.eos_token_ids), "an end token is out of range"
    assert caps.weights_digest, "weights_digest is empty"
    assert caps == backend.caps, "caps are not fixed"


def check_splits(backend: Backend) -> None:
    """Logits are the same for any split of the prefill, and for one that asks for all rows, or the last few."""
    driver = _Driver(backend)
    tokens = _sample_tokens(backend, 13, salt=1)
    whole = driver.prefill(0, tokens, chunk=13)
    for chunk in (1, 2, 5, 12):
        driver.move(KvDrop(0))
        _assert_same(backend, whole, driver.prefill(0, tokens, chunk=chunk), f"chunks of {chunk}")
    driver.move(KvDrop(0))
    rows = driver.step(StepPlan(prefill=[PrefillSlice(0, 0, tokens, wants_last=True, wants_all=True)]))
    assert len(rows) == len(tokens)
    _assert_same(backend, whole, rows[-1][1], "last of all rows")
    for length in (1, 6, 12):
        driver.move(KvDrop(0))
        _assert_same(backend, rows[length - 1][1], driver.prefill(0, tokens[:length], chunk=13), f"row of {length}")
    driver.move(KvDrop(0))
    part = PrefillSlice(0, 0, tokens, wants_last=True, wants_all=True, num_unwanted=10)
    for (_, wanted), (_, found) in zip(rows[10:], driver.step(StepPlan(prefill=[part])), strict=True):
        _assert_same(backend, wanted, found, "one of the last rows alone")
    driver.move(KvDrop(0))


def check_decode_equals_prefill(backend: Backend) -> None:
    """A token fed as a decode row gives what it gives at the end of a prefill; token ids may come as a view."""
    driver = _Driver(backend)
    tokens = _sample_tokens(backend, 9, salt=2)
    whole = driver.prefill(0, tokens, chunk=9)
    view = memoryview(np.array(tokens, dtype="<u4").tobytes()).cast("I")
    driver.move(KvDrop(0))
    driver.step(StepPlan(prefill=[PrefillSlice(0, 0, view[:5], wants_last=False)]))
    for position in range(5, 8):
        driver.decode(0, position, tokens[position])
    _assert_same(backend, whole, driver.decode(0, 8, tokens[8]), "decoded")
    driver.move(KvDrop(0))


def check_row_order(backend: Backend) -> None:
    """Neighbours in the batch and the order of rows change nothing."""
    driver = _Driver(backend)
    count = min(3, backend.caps.max_sequences)
    texts = [_sample_tokens(backend, 5 + seq_id, salt=10 + seq_id) for seq_id in range(count)]
    alone = []
    for text in texts:
        driver.prefill(0, text[:-1], chunk=8)
        alone.append(driver.decode(0, len(text) - 1, text[-1]))
        driver.move(KvDrop(0))
    for order in (list(range(count)), list(reversed(range(count)))):
        parts = [PrefillSlice(seq_id, 0, texts[seq_id][:-1], wants_last=True) for seq_id in order]
        driver.step(StepPlan(prefill=parts))
        rows = driver.step(
            StepPlan(decode=[DecodeRow(seq_id, len(texts[seq_id]) - 1, texts[seq_id][-1]) for seq_id in order])
        )
        for (seq_id, _), values in rows:
            _assert_same(backend, alone[seq_id], values, f"sequence {seq_id} in order {order}")
        driver.move(*(KvDrop(seq_id) for seq_id in order))


def check_mixed_step(backend: Backend) -> None:
    """Decode rows and prefill slices may share a step."""
    if backend.caps.max_sequences < 2:
        return
    driver = _Driver(backend)
    first, second = _sample_tokens(backend, 6, salt=20), _sample_tokens(backend, 7, salt=21)
    expected_first = driver.prefill(0, first, chunk=6)
    expected_second = driver.prefill(1, second, chunk=7)
    driver.move(KvDrop(0), KvDrop(1))
    driver.prefill(0, first[:-1], chunk=5)
    plan = StepPlan(
        prefill=[PrefillSlice(1, 0, second, wants_last=True)], decode=[DecodeRow(0, len(first) - 1, first[-1])]
    )
    (_, values_first), (_, values_second) = driver.step(plan)
    _assert_same(backend, expected_first, values_first, "decoded beside a prefill")
    _assert_same(backend, expected_second, values_second, "prefilled beside a decode")
    driver.move(KvDrop(0), KvDrop(1))


def check_sharing(backend: Backend) -> None:
    """A shared beginning is as good as a computed one, also after its source has gone or gone on."""
    if not backend.caps.can_share or backend.caps.max_sequences < 2:
        return
    driver = _Driver(backend)
    tokens = _sample_tokens(backend, 12, salt=30)
    other = [*tokens[:8], *_sample_tokens(backend, 4, salt=31)]
    expected_tokens = driver.prefill(0, tokens, chunk=12)
    driver.move(KvDrop(0))
    expected_other = driver.prefill(0, other, chunk=12)
    driver.move(KvDrop(0))
    for length in (1, 7, 8):
        driver.prefill(0, tokens[:10], chunk=10)
        driver.move(KvShare(0, 1, length))
        _assert_same(backend, expected_other, driver.prefill(1, other, chunk=12, start=length), f"shared {length}")
        _assert_same(backend, expected_tokens, driver.prefill(0, tokens, chunk=12, start=10), f"gave {length}")
        driver.move(KvDrop(0), KvDrop(1))
    driver.prefill(0, tokens[:10], chunk=10)
    driver.move(KvShare(0, 1, 8), KvDrop(0))
    _assert_same(backend, expected_other, driver.prefill(1, other, chunk=12, start=8), "source dropped")
    driver.move(KvDrop(1))


def check_exchange(backend: Backend) -> None:
    """Moves of one step happen in their order: what a sequence held may be kept under another id, and its own id begin
    with what a third one held. All sequence ids that exist are as good.
    """
    num_ids = backend.caps.num_seq_ids or backend.caps.max_sequences
    if not (backend.caps.can_share and backend.caps.can_truncate) or num_ids < 3:
        return
    driver, last = _Driver(backend), num_ids - 1
    tokens, other = _sample_tokens(backend, 12, salt=80), _sample_tokens(backend, 12, salt=81)
    expected_tokens = driver.prefill(0, tokens, chunk=12)
    driver.move(KvDrop(0))
    expected_other = driver.prefill(0, other, chunk=12)
    driver.move(KvDrop(0))
    driver.prefill(0, tokens[:10], chunk=10)
    driver.prefill(1, other[:10], chunk=10)
    driver.move(KvShare(0, last, 10), KvDrop(0), KvShare(1, 0, 8), KvTruncate(1, 6))
    _assert_same(backend, expected_other, driver.prefill(0, other, chunk=12, start=8), "begins with another's")
    _assert_same(backend, expected_tokens, driver.prefill(last, tokens, chunk=12, start=10), "kept under another id")
    _assert_same(backend, expected_other, driver.prefill(1, other, chunk=12, start=6), "cut after it gave")
    driver.move(KvDrop(0), KvDrop(1), KvDrop(last))


def check_drafts(backend: Backend) -> None:
    """A decode row with drafts gives, at each place, what its tokens give one by one, whatever widths stand beside it;
    what was wrong can be cut off.
    """
    if not backend.caps.can_truncate:
        return
    driver = _Driver(backend)
    count = min(3, backend.caps.max_sequences)
    texts = [_sample_tokens(backend, 12, salt=60 + seq_id) for seq_id in range(count)]
    alone: dict[tuple[int, int], Float32Array] = {}
    for seq_id, text in enumerate(texts):
        driver.prefill(0, text[:4], chunk=4)
        alone |= {(seq_id, position): driver.decode(0, position, text[position]) for position in range(4, 12)}
        driver.move(KvDrop(0))
    for widths in ((1, 4, 2), (5, 1, 1), (3, 3, 3), (1, 2, 6)):
        parts = [PrefillSlice(seq_id, 0, text[:4], wants_last=False) for seq_id, text in enumerate(texts)]
        driver.step(StepPlan(prefill=parts))
        decode = [DecodeRow(i, 4, texts[i][4], texts[i][5 : 4 + widths[i]]) for i in range(count)]
        for row, values in driver.step(StepPlan(decode=decode)):
            _assert_same(backend, alone[row], values, f"row {row} of widths {widths}")
        wrong = _sample_tokens(backend, 2, salt=70)
        plan = StepPlan(
            moves=[KvTruncate(i, 5) for i in range(count)],
            decode=[DecodeRow(i, 5, texts[i][5], wrong if i == 0 else ()) for i in range(count)],
        )
        driver.step(plan)
        again = StepPlan(moves=[KvTruncate(0, 6)], decode=[DecodeRow(i, 6, texts[i][6]) for i in range(count)])
        for row, values in driver.step(again):
            _assert_same(backend, alone[row], values, f"row {row} after a wrong draft")
        driver.move(*(KvDrop(seq_id) for seq_id in range(count)))


def check_truncation(backend: Backend) -> None:
    """A sequence that was cut and fed again is as good as new."""
    if not backend.caps.can_truncate:
        return
    driver = _Driver(backend)
    tokens = _sample_tokens(backend, 10, salt=40)
    wrong = [*tokens[:6], *_sample_tokens(backend, 4, salt=41)]
    expected = driver.prefill(0, tokens, chunk=10)
    driver.move(KvDrop(0))
    for length in (6, 1, 0):
        driver.prefill(0, wrong, chunk=10)
        driver.move(KvTruncate(0, length))
        _assert_same(backend, expected, driver.prefill(0, tokens, chunk=10, start=length), f"cut to {length}")
        driver.move(KvDrop(0))
    driver.prefill(0, tokens, chunk=10)
    plan = StepPlan(moves=[KvTruncate(0, 9)], decode=[DecodeRow(0, 9, tokens[9])])
    _assert_same(backend, expected, driver.step(plan)[0][1], "last token again, cut and fed in one step")
    driver.move(KvDrop(0))


def check_reuse(backend: Backend) -> None:
    """An id that was dropped holds nothing of what it held; dropping an empty one does nothing."""
    driver = _Driver(backend)
    tokens = _sample_tokens(backend, 8, salt=50)
    expected = driver.prefill(0, tokens, chunk=8)
    driver.move(KvDrop(0), KvDrop(0))
    driver.prefill(0, _sample_tokens(backend, 11, salt=51), chunk=11)
    plan = StepPlan(moves=[KvDrop(0)], prefill=[PrefillSlice(0, 0, tokens, wants_last=True)])
    _assert_same(backend, expected, driver.step(plan)[0][1], "dropped and used again in one step")
    driver.move(KvDrop(0))


BACKEND_CHECKS: tuple[Callable[[Backend], None], ...] = (
    check_caps,
    check_splits,
    check_decode_equals_prefill,
    check_row_order,
    check_mixed_step,
    check_sharing,
    check_exchange,
    check_truncation,
    check_drafts,
    check_reuse,
)


def check_backend(make: BackendFactory, checks: Sequence[Callable[[Backend], None]] = BACKEND_CHECKS) -> None:
    """Makes one backend, runs `checks` on it in turn, and closes it twice."""
    backend = make()
    try:
        for check in checks:
            check(backend)
    finally:
        backend.close()
        backend.close()
