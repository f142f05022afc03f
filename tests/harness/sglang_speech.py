"""SGLang's native protocol over a simulated engine: `/generate` with token ids and what a client asks beside it."""

import json
from array import array
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from harness.remote_stand_in import Exchange, Generation
from tidegate.inference.finish import EngineFinish
from tidegate.inference.grammar_spec import GrammarRule, LarkSpec
from tidegate.inference.output import TokenLogprob
from tidegate.inference.request import InferenceRequest
from tidegate.inference.sampling import SamplingParams, StopRules


@dataclass
class SglangSpeech:
    """`is_incremental`: each event has the new tokens alone; otherwise all so far. `random_seed`: of one start."""

    model: str = "test/model"
    model_path: str = "/models/test"
    version: str = "0.5.23"
    context_length: int = 4096
    vocab_size: int = 258
    is_incremental: bool = False
    is_repeatable: bool = True
    has_priorities: bool = False
    has_old_paths: bool = False
    grammar_backend: str = "xgrammar"
    disable_radix_cache: bool = False
    tokenizes: bool = True
    random_seed: int = 1
    weight_version: str = "default"
    health: int = 200
    disaggregation_mode: str = "null"
    is_generation: bool = True
    max_running_requests: int = 64

    async def answer(self, wires: Exchange, path: str, body: Any) -> None:
        old = "/get_" if self.has_old_paths else "/"
        if path == f"{old}server_info":
            await wires.send(200, self._server_info())
        elif path == f"{old}model_info":
            await wires.send(200, {"is_generation": self.is_generation, "weight_version": self.weight_version})
        elif path == "/health":
            await wires.send(self.health, b"")
        elif path == "/v1/models":
            await wires.send(200, {"data": [{"id": self.model, "max_model_len": self.context_length}]})
        elif path == ("/tokenize" if self.has_old_paths else "/v1/tokenize") and self.tokenizes:
            await wires.send(200, {"tokens": list(body["prompt"].encode()), "count": 0, "max_model_len": 0})
        elif path == "/generate":
            await self._generate(wires, body)
        elif path == "/abort_request":
            wires.abort(body["rid"])
            await wires.send(200, b"")
        else:
            await wires.send(404, {"detail": "Not Found"})

    def _server_info(self) -> Any:
        return {
            "version": self.version,
            "served_model_name": self.model,
            "model_path": self.model_path,
            "max_running_requests": self.max_running_requests,
            "max_total_num_tokens": 8192,
            "max_req_input_len": self.context_length - 6,
            "page_size": 1,
            "random_seed": self.random_seed,
            "grammar_backend": self.grammar_backend,
            "disaggregation_mode": self.disaggregation_mode,
            "disable_radix_cache": self.disable_radix_cache,
            "enable_deterministic_inference": self.is_repeatable,
            "enable_priority_scheduling": self.has_priorities,
            "incremental_streaming_output": self.is_incremental,
            "internal_states": [{"last_gen_throughput": 1.5}],
        }

    async def _generate(self, wires: Exchange, body: Any) -> None:
        if max(body["input_ids"]) >= self.vocab_size:
            await wires.send(400, {"error": {"message": "The input_ids contain values greater than the vocab size"}})
            return
        is_trial = not body["stream"]
        fault = None if is_trial else wires.take_fault()
        if fault is not None and fault.status is not None:
            await wires.send(fault.status, fault.body)
            return
        request = _request(body)
        generation = wires.generate(body, request)
        if not is_trial:
            await wires.stream(self._events(generation, body))
            return
        async for event in self._events(generation, body):
            if event != b"[DONE]":
                last = event
        await wires.send(200, last)

    async def _events(self, generation: Generation, body: Any) -> AsyncIterator[bytes]:
        ids: list[int] = []
        entries: list[TokenLogprob] = []
        scores: list[TokenLogprob | None] = []
        num_cached = num_told = 0
        async for delta in generation.deltas():
            ids += delta.token_ids
            entries += delta.logprobs or []
            scores += delta.prompt_logprobs or []
            num_cached += delta.num_cached_tokens
            start = num_told if self.is_incremental else 0
            num_told = len(ids)
            meta: dict[str, Any] = {
                "id": body.get("rid"),
                "prompt_tokens": len(body["input_ids"]),
                "completion_tokens": len(ids),
                "cached_tokens": num_cached,
                "finish_reason": _finish(delta.finish, delta.stop_token, ids),
            }
            if body.get("return_logprob"):
                meta |= _logprobs(entries[start:], scores, body)
            yield json.dumps({"text": "?", "output_ids": ids[start:], "meta_info": meta}).encode()
        yield b"[DONE]"


def _finish(finish: EngineFinish | None, stop_token: int | None, ids: list[int]) -> Any:
    match finish:
        case None:
            return None
        case EngineFinish.LENGTH:
            return {"type": "length", "length": len(ids)}
        case EngineFinish.ABORTED:
            return {"type": "abort", "message": "Aborted"}
        case EngineFinish.FAILED:
            return {"type": "abort", "message": "Failed", "status_code": 500}
        case _:
            return {"type": "stop", "matched": ids[-1] if stop_token is None else stop_token}


def _logprobs(entries: list[TokenLogprob], scores: list[TokenLogprob | None], body: Any) -> dict[str, Any]:
    prompt, num_top = body["input_ids"], body.get("top_logprobs_num", 0)
    found: dict[str, Any] = {
        "output_token_logprobs": [[one.logprob, one.token_id, None] for one in entries],
        "input_token_logprobs": [_scored(one, token_id) for one, token_id in zip(scores, prompt, strict=False)],
    }
    if num_top:
        found["output_top_logprobs"] = [_top(one, num_top) for one in entries]
        found["input_top_logprobs"] = [None if one is None else _top(one, num_top) for one in scores]
    return found


def _scored(one: TokenLogprob | None, token_id: int) -> Any:
    return [None if one is None else one.logprob, token_id, None]


def _top(one: TokenLogprob, num_top: int) -> Any:
    return [[logprob, token_id, None] for token_id, logprob in one.top[:num_top]]


def _request(body: Any) -> InferenceRequest:
    params = body["sampling_params"]
    num_top = body.get("top_logprobs_num", 0) if body.get("return_logprob") else None
    return InferenceRequest(
        request_id=body.get("rid") or f"trial-{id(body)}",
        prompt=array("I", body["input_ids"]).tobytes(),
        sampling=SamplingParams(
            temperature=params.get("temperature", 1.0),
            top_p=params.get("top_p", 1.0),
            top_k=max(0, params.get("top_k", -1)),
            min_p=params.get("min_p", 0.0),
            presence_penalty=params.get("presence_penalty", 0.0),
            frequency_penalty=params.get("frequency_penalty", 0.0),
            repetition_penalty=params.get("repetition_penalty", 1.0),
            seed=params.get("sampling_seed", 0),
            logit_bias=tuple((int(key), value) for key, value in (params.get("logit_bias") or {}).items()),
        ),
        stop=StopRules(
            max_tokens=params["max_new_tokens"],
            min_tokens=params.get("min_new_tokens", 0),
            token_ids=tuple(params.get("stop_token_ids") or ()),
            ignore_eos=params.get("ignore_eos", False),
        ),
        num_logprobs=num_top,
        num_prompt_logprobs=num_top if body.get("logprob_start_len") == 0 else None,
        priority=body.get("priority", 0),
        cache_salt=body.get("extra_key", "").encode(),
        grammar=GrammarRule(LarkSpec(params["ebnf"])) if "ebnf" in params else None,
    )
