"""The scripted engine's two parts (CONTRACT.md section 15): a backend without a model, and a player in the sampler's
place. Under our scheduler they keep the same accounts (blocks, sequences, steps) as a real model.

The player decides from the script and from how many tokens the sequence already has, and keeps nothing else but the
pause it asked for last: preempted or rewound sequences go on where the script says.

- Before token `i` it asks for `delays_s[i % len(delays_s)]` seconds; a step of several tokens waits the sum of theirs.
  The pause before a token comes with the tokens before it; before the first one there are none, and so the answer is
  no token and a pause: "not yet, ask again".
- A script that ends with EOS, LENGTH or STOP_TOKEN ends with its last tokens and adds none of its own. FAILED and
  ABORTED come in a step of their own, so that what was played before is out.
- Log-probabilities that the script does not give are -0.5. A token's alternatives, where the script gives none, are
  the token itself.
- A request without a script gets a fixed text.

Budget, stop tokens, queue and prefill delays and reported counts are the scheduler's part. `min_tokens` and sampling
parameters change nothing here.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from tidegate.core.backend import BackendCaps, BackendError, StepLogits
from tidegate.core.chooser import ChooseRow, Chosen
from tidegate.core.grammar_desk import GrammarOrder
from tidegate.core.plan import KvDrop, KvMove, KvShare, KvTruncate, StepPlan
from tidegate.core.sampler.logprobs import finite_logprob
from tidegate.inference.finish import EngineFinish
from tidegate.inference.output import TokenLogprob
from tidegate.inference.request import InferenceRequest
from tidegate.inference.script import Script, ScriptChoice

VOCAB_SIZE = 1 << 20
"""Ids 0..255 are bytes; `FIRST_PIECE_ID` + i are pieces that a request defines."""
BOS_TOKEN_ID = 256
EOS_TOKEN_ID = 257
FIRST_PIECE_ID = 512

DEFAULT_TEXT = "Hello from the scripted engine."
DEFAULT_LOGPROB = -0.5

_DEFAULT_SCRIPT = Script((ScriptChoice(tuple(DEFAULT_TEXT.encode())),))
_OWN_STEP = (EngineFinish.FAILED, EngineFinish.ABORTED)
_ERROR = "the script says that the engine fails here"


class ScriptedBackend:
    """Keeps the length of each sequence and computes nothing: all logits are zero, in arrays of shape [rows, 1]."""

    def __init__(
        self,
        *,
        max_sequences: int = 256,
        max_model_len: int = 131_072,
        num_blocks: int = 65_536,
        block_tokens: int = 16,
        max_step_tokens: int = 8192,
    ) -> None:
        self._caps = BackendCaps(
            vocab_size=VOCAB_SIZE,
            max_model_len=max_model_len,
            max_sequences=max_sequences,
            max_step_tokens=max_step_tokens,
            num_blocks=num_blocks,
            block_tokens=block_tokens,
            eos_token_ids=(EOS_TOKEN_ID,),
            can_share=True,
            can_truncate=True,
            logit_tolerance=0.0,
            weights_digest="scripted",
            build="scripted 1",
        )
        self._lengths: dict[int, int] = {}
        self._zeros = np.zeros((1, 1), dtype=np.float32)

    @property
    def caps(self) -> BackendCaps:
        return self._caps

    @property
    def lengths(self) -> dict[int, int]:
        """Tokens in the cache of each sequence that has any."""
        return dict(self._lengths)

    def execute(self, plan: StepPlan) -> StepLogits:
        """Takes note of the plan. Raises BackendError when it does not fit what the sequences hold."""
        for move in plan.moves:
            self._move(move)
        if plan.num_tokens > self._caps.max_step_tokens:
            raise BackendError(f"{plan.num_tokens} tokens in a step of at most {self._caps.max_step_tokens}")
        rows: list[tuple[int, int]] = []
        for row in plan.decode:
            self._extend(row.seq_id, row.position, row.num_tokens)
            rows += [(row.seq_id, row.position + index) for index in range(row.num_tokens)]
        for part in plan.prefill:
            end = part.start + len(part.token_ids)
            self._extend(part.seq_id, part.start, len(part.token_ids))
            if part.wants_all:
                rows += [(part.seq_id, position) for position in range(part.start + part.num_unwanted, end)]
            elif part.wants_last:
                rows.append((part.seq_id, end - 1))
        return StepLogits(rows, np.broadcast_to(self._zeros, (len(rows), 1)))

    def close(self) -> None:
        """Forgets everything. Idempotent."""
        self._lengths.clear()

    def _move(self, move: KvMove) -> None:
        match move:
            case KvShare(src, dst, length):
                if self._lengths.get(dst, 0) or length > self._lengths.get(src, 0):
                    raise BackendError(f"sequence {dst} cannot begin with {length} tokens of sequence {src}")
                self._check(dst, length)
                self._lengths[dst] = length
            case KvTruncate(seq_id, length):
                if length > self._lengths.get(seq_id, 0):
                    raise BackendError(f"sequence {seq_id} has fewer than {length} tokens")
                self._lengths[seq_id] = length
            case KvDrop(seq_id):
                self._lengths.pop(seq_id, None)

    def _extend(self, seq_id: int, start: int, num_tokens: int) -> None:
        length = self._lengths.get(seq_id, 0)
        if start != length or num_tokens < 1:
            raise BackendError(f"sequence {seq_id} has {length} tokens; {num_tokens} at {start} do not follow them")
        self._check(seq_id, start + num_tokens)
        self._lengths[seq_id] = start + num_tokens

    def _check(self, seq_id: int, length: int) -> None:
        if not 0 <= seq_id < self._caps.max_sequences:
            raise BackendError(f"sequence id {seq_id} is outside 0 to {self._caps.max_sequences - 1}")
        if length > self._caps.max_model_len:
            raise BackendError(f"sequence {seq_id} would have {length} tokens, the limit is {self._caps.max_model_len}")


@dataclass(slots=True)
class _Part:
    """One choice's part and what is derived from it. `paused_at` is the token before which a pause was asked for."""

    part: ScriptChoice
    script: Script
    num_logprobs: int | None
    num_prompt_logprobs: int
    num_tokens: int
    finish: EngineFinish
    step_ends: list[int]
    paused_at: int = -1

    def step_end(self, start: int) -> int:
        """Returns the token index after the step that plays token `start`."""
        index = bisect_right(self.step_ends, start)
        return min(self.step_ends[index] if index < len(self.step_ends) else start + 1, self.num_tokens)

    def pause_before(self, start: int) -> float:
        """Returns the seconds to wait before the step that begins with token `start`."""
        delays = self.part.delays_s
        if not delays or start >= self.num_tokens:
            return 0.0
        return sum(max(delays[index % len(delays)], 0.0) for index in range(start, self.step_end(start)))


class ScriptPlayer:
    """`Chooser` that plays `request.script`."""

    def __init__(self) -> None:
        self._parts: dict[int, _Part] = {}

    def open(self, key: int, request: InferenceRequest, choice: int, grammar: GrammarOrder | None = None) -> None:
        """Prepares for one choice, which plays `choices[choice % len(choices)]`."""
        del grammar  # a script is played as it stands
        script = request.script or _DEFAULT_SCRIPT
        part = script.choices[choice % len(script.choices)] if script.choices else ScriptChoice(())
        num_tokens = len(part.token_ids) * max(part.repeat, 0)
        finish = part.finish
        if part.error_after is not None and part.error_after <= num_tokens:
            num_tokens, finish = max(part.error_after, 0), EngineFinish.FAILED
        self._parts[key] = _Part(
            part=part,
            script=script,
            num_logprobs=request.num_logprobs,
            num_prompt_logprobs=request.num_prompt_logprobs or 0,
            num_tokens=num_tokens,
            finish=finish,
            step_ends=list(accumulate(max(size, 0) for size in part.step_tokens)),
        )

    def close(self, key: int) -> None:
        """Forgets a sequence. Idempotent."""
        self._parts.pop(key, None)

    def is_ready(self, key: int) -> bool:  # noqa: ARG002 - nothing is on its way
        """A script needs no grammar."""
        return True

    def choose(self, rows: Sequence[ChooseRow], logits: StepLogits) -> list[Chosen]:  # noqa: ARG002 - no model here
        """Returns what the script has next for each row. No token, no finish and a pause: not yet, ask again."""
        return [_play(self._parts[row.key], row.num_generated) for row in rows]

    def score_prompt(
        self, key: int, first_row: int, token_ids: Sequence[int], logits: StepLogits
    ) -> list[TokenLogprob]:
        """Scores prompt tokens by `prompt_logprobs`; the position that each row was fed says which token follows."""
        state = self._parts[key]
        given = state.script.prompt_logprobs or ()
        entries = []
        for offset, token_id in enumerate(token_ids):
            index = logits.rows[first_row + offset][1] + 1
            logprob = given[index] if index < len(given) else None
            value = DEFAULT_LOGPROB if logprob is None else finite_logprob(logprob)
            entries.append(TokenLogprob(token_id, value, ((token_id, value),)[: state.num_prompt_logprobs]))
        return entries


def _play(state: _Part, start: int) -> Chosen:
    if start >= state.num_tokens:
        return Chosen([], finish=state.finish, error=_error_of(state.finish))
    pause_s = state.pause_before(start)
    if pause_s > 0.0 and state.paused_at != start:
        state.paused_at = start
        return Chosen([], resume_after_s=pause_s)
    end = state.step_end(start)
    chosen = Chosen([state.part.token_ids[index % len(state.part.token_ids)] for index in range(start, end)])
    if state.num_logprobs is not None:
        chosen.logprobs = [_entry(state.part, index, state.num_logprobs) for index in range(start, end)]
    if end == state.num_tokens and state.finish not in _OWN_STEP:
        chosen.finish = state.finish
    elif end < state.num_tokens:
        chosen.resume_after_s = state.pause_before(end)
        state.paused_at = end
    return chosen


def _entry(part: ScriptChoice, index: int, num_top: int) -> TokenLogprob:
    index %= len(part.token_ids)
    token_id = part.token_ids[index]
    pairs: list[tuple[int, float]] | None = None
    if part.top is not None and index < len(part.top):
        pairs = sorted(((other, finite_logprob(value)) for other, value in part.top[index]), key=lambda pair: -pair[1])
    if part.logprobs is not None and index < len(part.logprobs):
        logprob = finite_logprob(part.logprobs[index])
    else:
        logprob = next((value for other, value in pairs or () if other == token_id), DEFAULT_LOGPROB)
    return TokenLogprob(token_id, logprob, tuple([(token_id, logprob)] if pairs is None else pairs)[:num_top])


def _error_of(finish: EngineFinish) -> str | None:
    return _ERROR if finish is EngineFinish.FAILED else None
