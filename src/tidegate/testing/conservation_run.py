"""A long run of the engine's core on the simulated backend, with everything that disturbs it, held to its laws.

Each step: memory is conserved (`EngineCore.check_integrity`), and the backend's own cells hold, for every sequence with
memory, exactly its tokens. Each request: what it found in memory had been computed under its own salt. Each round: all
comes to rest, a flush frees every block, and one request in `COMPARED_EVERY` has the tokens that it gets alone, in an
engine that keeps and guesses nothing. Rounds differ in the sizes of memory, step and blocks, and in what is allowed.

Same seed, same run.
"""

import random
from collections import Counter
from dataclasses import dataclass, field

from tidegate.backends.simulated import SimulatedBackend, SimulatedModel, SimulatedShape
from tidegate.core.budget import StepLimits
from tidegate.inference.finish import EngineFinish
from tidegate.inference.request import InferenceRequest
from tidegate.inference.sampling import SamplingParams
from tidegate.testing.core_driver import CoreDriver
from tidegate.testing.plain_chooser import PlainChooser
from tidegate.testing.requests import make_request

VOCAB_SIZE, CONTEXT = 40, 48
STEPS_OF_A_ROUND = 1000
COMPARED_EVERY = 16
MAX_LIVE = 12
SALTS = (b"", b"", b"one", b"two")


@dataclass(slots=True)
class RunTally:
    """What happened, all rounds together."""

    num_steps: int = 0
    num_rounds: int = 0
    num_requests: int = 0
    num_compared: int = 0
    counts: Counter[str] = field(default_factory=Counter)


class ConservationRun:
    """Call `run_round` as often as you like."""

    def __init__(self, seed: int) -> None:
        self.tally = RunTally()
        self._random = random.Random(seed)

    def run_round(self) -> None:
        """Raises AssertionError or InternalError when a law is broken."""
        model = self._random.choice([SimulatedModel.HISTORY, SimulatedModel.REPEATING])
        one = _Round(self._random, model)
        for _ in range(STEPS_OF_A_ROUND):
            one.disturb()
            one.step()
        one.end()
        self._count(one)

    def _count(self, one: "_Round") -> None:
        gauges, tally = one.driver.core.statistics(), self.tally
        tally.num_rounds += 1
        tally.num_steps += one.num_steps
        tally.num_requests += len(one.requests)
        tally.counts += one.acts
        tally.counts.update(
            preemptions=gauges.num_preemptions,
            prompt_tokens=gauges.num_prompt_tokens,
            cached_tokens=gauges.num_cached_tokens,
            drafted=gauges.num_draft_tokens,
            accepted=gauges.num_accepted_tokens,
            generated=gauges.num_output_tokens,
        )
        for request in list(one.requests.values())[::COMPARED_EVERY]:
            _check_as_alone(one.driver, request, one.model)
            tally.num_compared += 1


class _Round:
    """One engine, its requests by id, and what they had in memory by salt."""

    def __init__(self, random: random.Random, model: SimulatedModel) -> None:
        self._random = random
        shape = SimulatedShape(
            vocab_size=VOCAB_SIZE,
            max_model_len=CONTEXT,
            max_sequences=random.randint(1, 6),
            max_step_tokens=random.randint(6, 40),
            num_blocks=random.randint(16, 40),
            block_tokens=random.choice([3, 4, 5]),
            can_share=random.random() < 0.95,
            can_truncate=random.random() < 0.95,
            num_seq_ids=random.randint(6, 14),
            has_ordered_ids=random.random() < 0.5,
        )
        limits = StepLimits(
            max_prefill_tokens=random.randint(1, 30),
            max_scored_rows=random.randint(1, 30),
            max_draft_tokens=random.choice([0, 2, 5]),
            has_prefix_cache=random.random() < 0.95,
        )
        self.model = model
        self.backend = SimulatedBackend(model, shape)
        self.driver = CoreDriver(self.backend, PlainChooser(), limits=limits)
        self.requests: dict[str, InferenceRequest] = {}
        self.acts: Counter[str] = Counter()
        self.num_steps = 0
        self._texts = [[random.randrange(VOCAB_SIZE) for _ in range(CONTEXT)] for _ in range(3)]
        self._held: set[str] = set()

    def disturb(self) -> None:
        live = list(self.driver.live_ids)
        act = self._random.choices(["add", "abort", "hold", "free", "flush", "wait"], [30, 4, 3, 6, 1, 1])[0]
        if act == "add" and len(live) < MAX_LIVE:
            self._add()
        elif act == "abort" and live:
            self.driver.abort(self._random.choice(live), self._random.choice([None, None, 0, 1]))
        elif act == "hold" and live:
            self._hold(self._random.choice(live), held=True)
        elif act == "free" and self._held:
            self._hold(self._random.choice(sorted(self._held)), held=False)
        elif act == "flush":
            self.driver.drop_cached()
        elif act == "wait":
            self.driver.clock.advance(1.0)
        self.acts[act] += 1

    def step(self) -> None:
        self.driver.step()
        # A plan is a step's; all of them would fill the memory.
        self.driver.backend.plans.clear()
        self.num_steps += 1
        for sequence in self.driver.active:
            assert sequence.seq_id is not None
            if sequence.seq_id in self.driver.ids_to_share:
                continue
            # Guesses that were wrong leave with the next step's moves.
            held = self.backend.cache.tokens_of(sequence.seq_id)[: sequence.num_computed]
            assert held == list(sequence.tokens_between(0, sequence.num_computed)), f"{sequence.key} holds other tokens"

    def end(self) -> None:
        for request_id in sorted(self._held):
            self.driver.hold(request_id, held=False)
        self.driver.run(max_steps=20_000)
        self.driver.assert_at_rest()
        self.driver.flush()
        gauges = self.driver.core.statistics()
        assert gauges.blocks_free == self.backend.caps.num_blocks, gauges
        assert self.backend.cache.num_used_cells == 0
        for request in self.requests.values():
            self._check_found(request)

    def _add(self) -> None:
        request_id, random = f"r{len(self.requests)}", self._random
        beginning = random.choice(self._texts)[: random.randint(0, CONTEXT - 8)]
        prompt = [*beginning, *(random.randrange(VOCAB_SIZE) for _ in range(random.randint(1, 6)))]
        if self.requests and random.random() < 0.3:
            prompt = self._continued(random.choice(list(self.requests))) + prompt[-1:]
        self.requests[request_id] = make_request(
            request_id,
            prompt[:CONTEXT],
            max_tokens=random.randint(0, 12),
            sampling=SamplingParams(temperature=random.choice([0.0, 1.0]), seed=random.randrange(10)),
            num_choices=random.choice([1, 1, 1, 2, 3]),
            num_prompt_logprobs=0 if random.random() < 0.05 else None,
            first_scored=random.choice([0, 0, random.randint(0, CONTEXT)]),
            priority=random.randint(-1, 1),
            cache_salt=random.choice(SALTS),
        )
        self.driver.add(self.requests[request_id])

    def _continued(self, request_id: str) -> list[int]:
        """Returns a prompt and its answer, as the next turn of a conversation repeats them."""
        prompt = list(memoryview(self.requests[request_id].prompt).cast("I"))
        return (prompt + self.driver.records[request_id, 0].token_ids)[: CONTEXT - 2]

    def _hold(self, request_id: str, *, held: bool) -> None:
        self.driver.hold(request_id, held=held)
        (self._held.add if held else self._held.discard)(request_id)

    def _check_found(self, request: InferenceRequest) -> None:
        """What a request found was an earlier one's of the same salt, prompt or answer."""
        records = [self.driver.records[request.request_id, choice] for choice in range(request.num_choices)]
        num_cached = max(record.num_cached_tokens for record in records)
        if not num_cached:
            return
        found = request.prompt[: 4 * num_cached]
        assert num_cached < request.num_prompt_tokens, "nothing was left to compute"
        for other in self.requests.values():
            if other is request or other.cache_salt != request.cache_salt:
                continue
            for choice in range(other.num_choices):
                answer = self.driver.records[other.request_id, choice].token_ids
                if (other.prompt + b"".join(token.to_bytes(4, "little") for token in answer)).startswith(found):
                    return
        raise AssertionError(f"{request.request_id} found {num_cached} tokens that nobody with its salt had")


def _check_as_alone(driver: CoreDriver, request: InferenceRequest, model: SimulatedModel) -> None:
    shape = SimulatedShape(vocab_size=VOCAB_SIZE, max_model_len=CONTEXT, can_share=False)
    alone = CoreDriver(SimulatedBackend(model, shape), PlainChooser())
    alone.add(request)
    alone.run()
    for choice in range(request.num_choices):
        record, expected = driver.records[request.request_id, choice], alone.records[request.request_id, choice]
        length = len(record.token_ids) if record.finish is EngineFinish.ABORTED else len(expected.token_ids)
        assert record.token_ids == expected.token_ids[:length], f"{request.request_id}/{choice} has other tokens"
