"""vLLM's token protocol over a simulated engine: `/inference/v1/generate` and what a client asks beside it."""

import json
from array import array
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from harness.remote_stand_in import Exchange, Generation
from tidegate.engines.remote.remote_grammar import TRIAL_GRAMMAR
from tidegate.inference.finish import EngineFinish
from tidegate.inference.grammar_spec import GrammarRule, LarkSpec
from tidegate.inference.output import TokenDelta, TokenLogprob
from tidegate.inference.request import InferenceRequest
from tidegate.inference.sampling import SamplingParams, StopRules

_WORDS = {
    EngineFinish.LENGTH: "length",
    EngineFinish.ABORTED: "abort",
    EngineFinish.FAILED: "error",
}


@dataclass
class VllmSpeech:
    """`has_old_logprobs`: token ids as text, as servers before October 2026 write them. `boot` None: no metrics."""

    model: str = "test/model"
    root: str = "/models/test"
    max_model_len: int = 4096
    vocab_size: int = 258
    max_logprobs: int = 21
    takes_priority: bool = True
    takes_tokens: bool = True
    tokenizes: bool = True
    has_guidance: bool = False
    has_old_llguidance: bool = False
    has_old_logprobs: bool = False
    boot: float | None = 1000.0
    health: int = 200

    async def answer(self, wires: Exchange, path: str, body: Any) -> None:
        match path:
            case "/health":
                await wires.send(self.health, b"")
            case "/v1/models":
                card = {"id": self.model, "object": "model", "root": self.root, "max_model_len": self.max_model_len}
                await wires.send(200, {"object": "list", "data": [card]})
            case "/version":
                await wires.send(200, {"version": "0.32.0"})
            case "/metrics" if self.boot is not None:
                text = f"process_start_time_seconds {self.boot}\n"
                labels = 'block_size="16",enable_prefix_caching="True",num_gpu_blocks="512"'
                await wires.send(200, f"{text}vllm:cache_config_info{{{labels}}} 1.0\n".encode())
            case "/tokenize" if self.tokenizes:
                tokens = list(body["prompt"].encode())
                await wires.send(200, {"count": len(tokens), "max_model_len": self.max_model_len, "tokens": tokens})
            case "/inference/v1/generate" if self.takes_tokens:
                await self._generate(wires, body)
            case "/inference/v1/abort_requests":
                for request_id in body["request_ids"]:
                    wires.abort(request_id.removeprefix("generate-tokens-"))
                await wires.send(200, b"")
            case _:
                await wires.send(404, {"detail": "Not Found"})

    def _refusal(self, body: Any) -> str | None:
        params = body["sampling_params"]
        if max(body["token_ids"]) >= self.vocab_size:
            return f"Token id {max(body['token_ids'])} is out of vocabulary"
        if (params.get("logprobs") or 0) > self.max_logprobs:
            return "Requested sample logprobs of too many, which is greater than max allowed"
        if body.get("priority") and not self.takes_priority:
            return "Got priority but the server uses the fcfs policy"
        if body.get("model") not in (None, self.model):
            return "The model does not exist."
        outputs = params.get("structured_outputs") or {}
        if "json" in outputs and self.has_guidance and "$ref" in outputs["json"]:
            return "Failed to convert the grammar from JSON schema: remote $ref"
        return None

    async def _generate(self, wires: Exchange, body: Any) -> None:
        refusal = self._refusal(body)
        if refusal is not None:
            error = {"message": refusal, "type": "BadRequestError", "param": None, "code": 400}
            await wires.send(400, {"error": error})
            return
        outputs = body["sampling_params"].get("structured_outputs") or {}
        if outputs.get("grammar") == TRIAL_GRAMMAR:
            token_id = 257 if self.has_old_llguidance else ord("-")
            choice = {"index": 0, "token_ids": [token_id], "finish_reason": "length", "logprobs": None}
            await wires.send(200, {"choices": [choice]})
            return
        is_trial = not body["stream"] and body["sampling_params"]["max_tokens"] == 1 and "request_id" not in body
        fault = None if is_trial else wires.take_fault()
        if fault is not None and fault.status is not None:
            await wires.send(fault.status, fault.body)
            return
        request = _request(body)
        generation = wires.generate(body, request)
        if body["stream"]:
            await wires.stream(self._events(generation, body))
        else:
            await wires.send(200, await self._whole(generation, body, request))

    async def _events(self, generation: Generation, body: Any) -> AsyncIterator[bytes]:
        cached = 0
        async for delta in generation.deltas():
            cached += delta.num_cached_tokens
            yield json.dumps({"request_id": body["request_id"], "choices": [self._choice(delta, body)]}).encode()
        yield json.dumps({"choices": [], "usage": _usage(body, cached)}).encode()
        yield b"[DONE]"

    async def _whole(self, generation: Generation, body: Any, request: InferenceRequest) -> Any:
        joined = TokenDelta(request.request_id, 0, [], logprobs=[], prompt_logprobs=[])
        async for delta in generation.deltas():
            joined.token_ids += delta.token_ids
            joined.finish = delta.finish
            joined.num_cached_tokens += delta.num_cached_tokens
            assert joined.logprobs is not None
            assert joined.prompt_logprobs is not None
            joined.logprobs += delta.logprobs or []
            joined.prompt_logprobs += delta.prompt_logprobs or []
        scores = [None if one is None else _score(one) for one in joined.prompt_logprobs or []]
        return {
            "request_id": request.request_id,
            "choices": [self._choice(joined, body)],
            "usage": _usage(body, joined.num_cached_tokens),
            "prompt_logprobs": scores if request.num_prompt_logprobs is not None else None,
        }

    def _choice(self, delta: TokenDelta, body: Any) -> Any:
        count = body["sampling_params"].get("logprobs")
        logprobs = None
        if count is not None:
            logprobs = {"content": [self._entry(one, max(count, 1)) for one in delta.logprobs or []]}
        reason = None if delta.finish is None else _WORDS.get(delta.finish, "stop")
        return {"index": 0, "token_ids": delta.token_ids, "finish_reason": reason, "logprobs": logprobs}

    def _entry(self, one: TokenLogprob, limit: int) -> Any:
        """The chosen token first, then the others by rank; cut to the limit, as vLLM cuts it."""
        listed = {one.token_id: one.logprob, **dict(one.top)}
        top = [self._name(token_id) | {"logprob": logprob} for token_id, logprob in list(listed.items())[:limit]]
        return self._name(one.token_id) | {"logprob": one.logprob, "top_logprobs": top}

    def _name(self, token_id: int) -> dict[str, object]:
        return {"token": f"token_id:{token_id}"} if self.has_old_logprobs else {"token_id": token_id, "rank": 1}


def _request(body: Any) -> InferenceRequest:
    params = body["sampling_params"]
    outputs = params.get("structured_outputs")
    seed = params.get("seed", 0)
    return InferenceRequest(
        request_id=body.get("request_id") or f"trial-{id(body)}",
        prompt=array("I", body["token_ids"]).tobytes(),
        sampling=SamplingParams(
            temperature=params.get("temperature", 1.0),
            top_p=params.get("top_p", 1.0),
            top_k=params.get("top_k", 0),
            min_p=params.get("min_p", 0.0),
            presence_penalty=params.get("presence_penalty", 0.0),
            frequency_penalty=params.get("frequency_penalty", 0.0),
            repetition_penalty=params.get("repetition_penalty", 1.0),
            seed=seed,
            logit_bias=tuple((int(key), value) for key, value in (params.get("logit_bias") or {}).items()),
            allowed_token_ids=tuple(ids) if (ids := params.get("allowed_token_ids")) is not None else None,
        ),
        stop=StopRules(
            max_tokens=params["max_tokens"],
            min_tokens=params.get("min_tokens", 0),
            token_ids=tuple(params.get("stop_token_ids") or ()),
            ignore_eos=params.get("ignore_eos", False),
        ),
        num_logprobs=params.get("logprobs"),
        num_prompt_logprobs=params.get("prompt_logprobs"),
        priority=body.get("priority", 0),
        cache_salt=body.get("cache_salt", "").encode(),
        grammar=GrammarRule(LarkSpec(outputs["grammar"])) if outputs and "grammar" in outputs else None,
    )


def _score(one: TokenLogprob) -> Any:
    listed = {one.token_id: one.logprob, **dict(one.top)}
    return {str(token_id): {"logprob": logprob, "rank": 1} for token_id, logprob in listed.items()}


def _usage(body: Any, cached: int) -> Any:
    return {"prompt_tokens": len(body["token_ids"]), "prompt_tokens_details": {"cached_tokens": cached}}
