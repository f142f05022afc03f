"""A backend without a model: deterministic logits from the tokens it holds, at a declared price.

It computes from its own memory, never from what the plan claims, and refuses every plan that a real cache could not
carry out: so it checks the scheduler. Models:

- `successor`: after byte i comes byte i + 1, after 255 comes 0, after a special token comes 0.
- `hash`: logits are a pseudo-random function of the last four tokens.
- `history`: the same of all tokens; any wrong token, however early, changes every result.
- `repeating`: as good as a function of the last token, so that greedy text soon repeats, with a little of `history`.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from tidegate.backends.simulated_cache import SimulatedCache
from tidegate.backends.simulated_numbers import mixed
from tidegate.core.backend import BackendCaps, BackendError, Float32Array, StepLogits
from tidegate.core.plan import KvMove, KvShare, KvTruncate, StepPlan
from tidegate.grammar.matcher import TokenTable

BOS_TOKEN = 256
EOS_TOKEN = 257
SUCCESSOR_LOGIT = 14.0
"""All other logits are 0, so that the successor has a probability above 0.999."""

_WINDOW = 4
_MASK = (1 << 64) - 1


class SimulatedModel(StrEnum):
    """What the logits depend on."""

    SUCCESSOR = "successor"
    HASH = "hash"
    HISTORY = "history"
    REPEATING = "repeating"


@dataclass(frozen=True, slots=True)
class CostModel:
    """What a step costs: prefill(n) = base + n x token, a decode of any number of rows, drafts included = one step.

    `kv_token_bytes` is the declared size of one token's keys and values.
    """

    prefill_base_s: float = 0.020
    prefill_token_s: float = 0.000035
    decode_step_s: float = 0.045
    kv_token_bytes: int = 320 * 1024

    def price_s(self, plan: StepPlan) -> float:
        """Returns the seconds that a step takes; moves are free."""
        num_prefill = plan.num_tokens - plan.num_decode_tokens
        prefill_s = self.prefill_base_s + num_prefill * self.prefill_token_s if num_prefill else 0.0
        return prefill_s + (self.decode_step_s if plan.decode else 0.0)


@dataclass(frozen=True, slots=True)
class SimulatedShape:
    """Sizes of a simulated backend. The vocabulary is the 256 bytes, BOS (256) and EOS (257).

    `num_seq_ids`: None for as many as `max_sequences`.
    """

    vocab_size: int = 258
    max_model_len: int = 4096
    max_sequences: int = 64
    max_step_tokens: int = 512
    num_blocks: int = 4096
    block_tokens: int = 16
    can_share: bool = True
    can_truncate: bool = True
    num_seq_ids: int | None = None
    has_ordered_ids: bool = False
    generates: bool = True


class SimulatedBackend:
    """A `Backend` of arithmetic. `elapse` is called with each step's price in seconds; None means that time is free."""

    def __init__(
        self,
        model: SimulatedModel = SimulatedModel.SUCCESSOR,
        shape: SimulatedShape | None = None,
        *,
        cost: CostModel | None = None,
        elapse: Callable[[float], None] | None = None,
    ) -> None:
        self._model = model
        self._shape = shape = shape if shape is not None else SimulatedShape()
        self._cost = cost if cost is not None else CostModel()
        self._elapse = elapse
        self.cache = SimulatedCache(
            num_seq_ids=shape.num_seq_ids or shape.max_sequences,
            max_model_len=shape.max_model_len,
            num_cells=shape.num_blocks * shape.block_tokens,
        )
        self._salts = mixed(np.arange(1, shape.vocab_size + 1, dtype=np.uint64))
        self._caps = BackendCaps(
            vocab_size=shape.vocab_size,
            max_model_len=shape.max_model_len,
            max_sequences=shape.max_sequences,
            max_step_tokens=shape.max_step_tokens,
            num_blocks=shape.num_blocks,
            block_tokens=shape.block_tokens,
            eos_token_ids=(EOS_TOKEN,) if shape.vocab_size > EOS_TOKEN else (shape.vocab_size - 1,),
            can_share=shape.can_share,
            can_truncate=shape.can_truncate,
            logit_tolerance=0.0,
            weights_digest=hashlib.sha256(f"{model.value} {shape.vocab_size}".encode()).hexdigest(),
            build=f"simulated {model.value}",
            num_seq_ids=shape.num_seq_ids,
            has_ordered_ids=shape.has_ordered_ids,
            generates=shape.generates,
        )

    @property
    def caps(self) -> BackendCaps:
        return self._caps

    def token_table(self) -> TokenTable:
        """Returns the bytes of all tokens: what is no byte is a control token."""
        ends = self._caps.eos_token_ids
        size = self._shape.vocab_size
        special_ids = frozenset(range(256, size)) | set(ends)
        tokens = [b"" if i in special_ids else bytes([i]) for i in range(size)]
        for i, spelling in ((BOS_TOKEN, b"<|bos|>"), (EOS_TOKEN, b"<|eos|>")):
            if i < size:
                tokens[i] = spelling
        return TokenTable(tokens, special_ids, ends)

    def execute(self, plan: StepPlan) -> StepLogits:
        """Raises BackendError when the plan breaks a rule of the cache or of the declared sizes."""
        if not self._shape.generates:
            raise BackendError("this backend generates nothing")
        self._check_sizes(plan)
        for move in plan.moves:
            self._check_move(move)
            self.cache.apply(move)
        rows: list[tuple[int, int]] = []
        for row in plan.decode:
            self.cache.write(row.seq_id, row.position, [row.token_id, *row.draft_ids])
            rows += [(row.seq_id, row.position + index) for index in range(row.num_tokens)]
        for part in plan.prefill:
            self.cache.write(part.seq_id, part.start, part.token_ids)
            end = part.start + len(part.token_ids)
            first = part.start + part.num_unwanted if part.wants_all else end - 1
            if part.wants_all or part.wants_last:
                rows += [(part.seq_id, position) for position in range(first, end)]
        values = self._logits(rows)
        if self._elapse is not None and plan.num_tokens:
            self._elapse(self._cost.price_s(plan))
        return StepLogits(rows, values)

    def close(self) -> None:
        """Nothing to give back."""

    def _check_move(self, move: KvMove) -> None:
        if isinstance(move, KvShare) and not self._shape.can_share:
            raise BackendError("this backend cannot share")
        if isinstance(move, KvTruncate) and not self._shape.can_truncate:
            raise BackendError("this backend cannot truncate")

    def _check_sizes(self, plan: StepPlan) -> None:
        seq_ids = [row.seq_id for row in plan.decode] + [part.seq_id for part in plan.prefill]
        if len(set(seq_ids)) != len(seq_ids):
            raise BackendError(f"a sequence stands twice in one step: {sorted(seq_ids)}")
        if plan.num_tokens > self._shape.max_step_tokens:
            raise BackendError(f"{plan.num_tokens} tokens in a step of at most {self._shape.max_step_tokens}")
        if any(not len(part.token_ids) for part in plan.prefill):
            raise BackendError("a prefill slice is empty")
        token_ids = [token_id for row in plan.decode for token_id in (row.token_id, *row.draft_ids)]
        token_ids += [token_id for part in plan.prefill for token_id in part.token_ids]
        if token_ids and not 0 <= min(token_ids) <= max(token_ids) < self._shape.vocab_size:
            raise BackendError(f"a token id lies outside the vocabulary of {self._shape.vocab_size}")

    def _logits(self, rows: list[tuple[int, int]]) -> Float32Array:
        if self._model is SimulatedModel.SUCCESSOR:
            values = np.zeros((len(rows), self._shape.vocab_size), dtype=np.float32)
            for index, (seq_id, position) in enumerate(rows):
                token_id = self.cache.tokens_of(seq_id)[position]
                values[index, (token_id + 1) % 256 if token_id < 256 else 0] = SUCCESSOR_LOGIT
            return values
        if self._model is SimulatedModel.REPEATING:
            return self._noise(rows, 1, 12.0) + self._noise(rows, None, 0.25)
        return self._noise(rows, _WINDOW if self._model is SimulatedModel.HASH else None, 12.0)

    def _noise(self, rows: list[tuple[int, int]], window: int | None, width: float) -> Float32Array:
        """Returns numbers from -width / 2 to width / 2 that depend on the last `window` tokens, None for all."""
        states = np.array([self._state(seq_id, position, window) for seq_id, position in rows], dtype=np.uint64)
        bits = mixed(states[:, None] ^ self._salts[None, :])
        unit = (bits >> np.uint64(40)).astype(np.float32) / np.float32(1 << 24)
        scaled: Float32Array = unit * np.float32(width) - np.float32(width / 2)
        return scaled

    def _state(self, seq_id: int, position: int, window: int | None) -> int:
        tokens = self.cache.tokens_of(seq_id)
        first = 0 if window is None else max(0, position + 1 - window)
        digest = hashlib.blake2b(np.array(tokens[first : position + 1], dtype="<u4").tobytes(), digest_size=8).digest()
        return int.from_bytes(digest, "little") & _MASK
