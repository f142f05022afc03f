"""A stand-in for vLLM's library: `AsyncLLM`'s surface over a simulated engine, which computes its tokens.

What it says and raises is written after vLLM's sources and what was seen of it; it is not vLLM, and proves nothing
about it. Outputs are joined while nobody reads, as vLLM joins them. Starts happen on a thread, as vLLM's do.
"""

import asyncio
import threading
from array import array
from collections.abc import AsyncGenerator, Mapping
from types import SimpleNamespace
from typing import Any

from harness.remote_stand_in import Generation
from tidegate.engines.remote.remote_grammar import TRIAL_GRAMMAR
from tidegate.engines.vllm.library import LlmFacts, Record
from tidegate.inference.finish import EngineFinish
from tidegate.inference.grammar_spec import GrammarRule, LarkSpec
from tidegate.inference.output import TokenDelta, TokenLogprob
from tidegate.inference.request import InferenceRequest
from tidegate.inference.sampling import SamplingParams, StopRules
from tidegate.testing.engine_pair import EnginePair, simulated_core
from tidegate.testing.manual_clock import ManualClock

VOCAB_SIZE = 258
MAX_MODEL_LEN = 4096
BLOCK_TOKENS = 16
_WORDS = {EngineFinish.LENGTH: "length", EngineFinish.ABORTED: "abort", EngineFinish.FAILED: "error"}


class VLLMError(Exception): ...


class VLLMClientError(VLLMError): ...


class VLLMValidationError(VLLMClientError): ...


class VLLMServerError(VLLMError): ...


class EngineDeadError(VLLMServerError): ...


class EngineGenerateError(VLLMServerError): ...


class GracefulHTTPError(VLLMServerError): ...


class RetryableRequestError(VLLMServerError): ...


class QueueOverflowError(GracefulHTTPError): ...


class StandInLlm:
    """One started engine. `faults`: what the next generations raise, after how many outputs."""

    def __init__(self, config: Mapping[str, Any], record: Record) -> None:
        self.config = config
        self.errored = False
        self.is_shut_down = False
        self.faults: list[tuple[int, Exception]] = []
        self.requests: list[tuple[str, Any, Mapping[str, object], int]] = []
        self.traces: dict[str, Mapping[str, str] | None] = {}
        self.aborted: list[str] = []
        self.is_stuck = False
        self.has_old_llguidance = False
        self.num_live = 0
        self._record = record
        self._pair = EnginePair(simulated_core, ManualClock())
        self._stepper: asyncio.Task[None] | None = None

    async def generate(
        self,
        prompt: Any,
        sampling_params: Any,
        request_id: str,
        *,
        trace_headers: Mapping[str, str] | None = None,
        priority: int = 0,
    ) -> AsyncGenerator[Any, None]:
        if self.errored:
            raise EngineDeadError
        fields = sampling_params
        if fields.get("logprobs", 0) > self.config["max_logprobs"]:
            raise VLLMValidationError("too many logprobs")
        self.requests.append((request_id, prompt, fields, priority))
        self.traces[request_id] = trace_headers
        if fields.get("structured_outputs") == {"grammar": TRIAL_GRAMMAR}:
            token_id = 257 if self.has_old_llguidance else ord("-")
            yield _output(TokenDelta("trial", 0, [token_id], EngineFinish.LENGTH), prompt, {}, is_first=True)
            return
        if self._stepper is None:
            self._stepper = asyncio.create_task(self._step(), name="steps of the stand-in")
        fault = self.faults.pop(0) if self.faults and request_id != "tidegate-trial" else None
        inner = f"{request_id}/{len(self.requests)}"
        generation = Generation()
        self._pair.engine.submit(_request(inner, prompt, fields, priority), generation)
        self.num_live += 1
        try:
            async for output in self._outputs(generation, prompt, fields, fault):
                yield output
        finally:
            self.num_live -= 1
            self._pair.engine.abort(inner)

    async def _outputs(
        self, generation: Generation, prompt: Any, fields: Mapping[str, object], fault: tuple[int, Exception] | None
    ) -> AsyncGenerator[Any, None]:
        num_sent, has_end = 0, False
        while not has_end:
            delta = await generation.queue.get()
            while not generation.queue.empty() and delta is not None and delta.finish is None:
                delta = _join(delta, generation.queue.get_nowait())
            if delta is None:
                raise EngineDeadError
            if fault is not None and num_sent == fault[0]:
                raise fault[1]
            has_end = delta.finish is not None
            if delta.token_ids or has_end:
                yield _output(delta, prompt, fields, is_first=num_sent == 0)
                num_sent += 1

    async def abort(self, request_id: str) -> None:
        self.aborted.append(request_id)

    async def reset_prefix_cache(self) -> bool:
        return self.num_live == 0

    def die(self) -> None:
        """Its engine process has gone: every generation raises, and so does whatever comes."""
        self.errored = True
        if self._stepper is not None:
            self._stepper.cancel()
        self._pair.lose()

    def shutdown(self, timeout: float | None = None) -> None:
        self.is_shut_down = True
        if self._stepper is not None and not self._stepper.done():
            self._stepper.get_loop().call_soon_threadsafe(self._stepper.cancel)

    async def _step(self) -> None:
        while True:
            if not self.is_stuck and self._pair.step():
                gauges = self._pair.engine.statistics().gauges
                used = gauges.blocks_used / max(1, gauges.blocks_used + gauges.blocks_free)
                self._record(SimpleNamespace(kv_cache_usage=used), SimpleNamespace(num_preempted_reqs=0))
                await asyncio.sleep(0)
            else:
                await asyncio.sleep(0.0005)


class StandInLibrary:
    """See `Library`. `start_faults` are raised by the next starts, `configure_fault` by every configuration."""

    def __init__(self) -> None:
        self.started: list[StandInLlm] = []
        self.start_faults: list[Exception] = []
        self.configure_fault: Exception | None = None
        self.max_model_len = MAX_MODEL_LEN
        self.has_tokenizer = True
        self.refuses_grammars = False
        self.has_tracing = False
        self.has_old_llguidance = False
        self.num_kills = 0
        self.is_starting = threading.Event()
        self.may_start = threading.Event()
        self.may_start.set()

    @property
    def llm(self) -> StandInLlm:
        return self.started[-1]

    def configure(self, arguments: Mapping[str, Any]) -> Any:
        if self.configure_fault is not None:
            raise self.configure_fault
        return dict(arguments)

    def start(self, config: Any, record: Record) -> StandInLlm:
        self.is_starting.set()
        self.may_start.wait(60.0)
        if self.start_faults:
            raise self.start_faults.pop(0)
        self.started.append(StandInLlm(config, record))
        self.llm.has_old_llguidance = self.has_old_llguidance
        return self.started[-1]

    def facts(self, llm: Any) -> LlmFacts:
        return LlmFacts(
            "0.0",
            self.max_model_len,
            BLOCK_TOKENS,
            256,
            has_prefix_cache=True,
            process_id=4242,
            has_tracing=self.has_tracing,
        )

    def prompt(self, token_ids: list[int], cache_salt: str | None) -> Any:
        return {"type": "token", "prompt_token_ids": token_ids, "cache_salt": cache_salt}

    def sampling(self, fields: Mapping[str, object]) -> Any:
        if self.refuses_grammars and "structured_outputs" in fields:
            raise VLLMValidationError("no grammars here")
        return dict(fields)

    def tokenize(self, llm: Any, text: str) -> list[int] | None:
        return list(text.encode()) if self.has_tokenizer else None

    def kill_started(self) -> None:
        self.num_kills += 1


def _join(first: TokenDelta, then: TokenDelta | None) -> TokenDelta | None:
    if then is None:
        return None
    first.token_ids += then.token_ids
    first.finish = then.finish
    if first.logprobs is not None:
        first.logprobs += then.logprobs or []
    if then.prompt_logprobs:
        first.prompt_logprobs = [*(first.prompt_logprobs or []), *then.prompt_logprobs]
    return first


def _output(delta: TokenDelta, prompt: Any, fields: Mapping[str, object], *, is_first: bool) -> Any:
    count = fields.get("logprobs")
    logprobs = None if count is None else [_scores(one) for one in delta.logprobs or []]
    completion = SimpleNamespace(
        index=0,
        text="",
        token_ids=list(delta.token_ids),
        logprobs=logprobs,
        finish_reason=None if delta.finish is None else _WORDS.get(delta.finish, "stop"),
        stop_reason=delta.stop_token,
    )
    scores = [None if one is None else _scores(one) for one in delta.prompt_logprobs or []]
    return SimpleNamespace(
        prompt_token_ids=prompt["prompt_token_ids"],
        prompt_logprobs=(scores if is_first else []) if fields.get("prompt_logprobs") is not None else None,
        num_cached_tokens=delta.num_cached_tokens,
        metrics=SimpleNamespace(queued_ts=1.0, scheduled_ts=1.25),
        outputs=[completion],
        finished=delta.finish is not None,
    )


def _scores(one: TokenLogprob) -> dict[int, Any]:
    listed = {one.token_id: one.logprob, **dict(one.top)}
    return {token_id: SimpleNamespace(logprob=logprob, rank=1) for token_id, logprob in listed.items()}


def _request(request_id: str, prompt: Any, fields: Mapping[str, Any], priority: int) -> InferenceRequest:
    outputs = fields.get("structured_outputs")
    allowed = fields.get("allowed_token_ids")
    return InferenceRequest(
        request_id,
        array("I", prompt["prompt_token_ids"]).tobytes(),
        SamplingParams(
            temperature=fields["temperature"],
            top_p=fields["top_p"],
            top_k=fields["top_k"],
            min_p=fields["min_p"],
            presence_penalty=fields["presence_penalty"],
            frequency_penalty=fields["frequency_penalty"],
            repetition_penalty=fields["repetition_penalty"],
            seed=fields["seed"],
            logit_bias=tuple((fields.get("logit_bias") or {}).items()),
            allowed_token_ids=None if allowed is None else tuple(allowed),
        ),
        StopRules(fields["max_tokens"], fields["min_tokens"], tuple(fields["stop_token_ids"]), fields["ignore_eos"]),
        num_logprobs=fields.get("logprobs"),
        num_prompt_logprobs=fields.get("prompt_logprobs"),
        priority=priority,
        cache_salt=(prompt["cache_salt"] or "").encode(),
        grammar=None if outputs is None else GrammarRule(LarkSpec(outputs["grammar"])),
    )
