"""What a real vLLM does with the fields of a request, beyond the checks of the port."""

import asyncio
import json
import math
import re
from typing import Any

from real_scene import RealScene

from tidegate.errors import ContextLengthExceeded, InvalidValue, UnsupportedParameter
from tidegate.inference.finish import EngineFinish
from tidegate.inference.grammar_spec import ChoiceSpec, GrammarRule, JsonSchemaSpec, RegexSpec
from tidegate.inference.output import TokenDelta, TokenLogprob
from tidegate.inference.request import InferenceRequest
from tidegate.inference.sampling import SamplingParams, StopRules
from tidegate.testing.check_engine import RecordingSink

SCHEMA = JsonSchemaSpec(
    b'{"type":"object","properties":{"a":{"enum":[7]}},"required":["a"],"additionalProperties":false}'
)


class _Keeping(RecordingSink):
    """Keeps whole deltas as well."""

    def __init__(self, num_choices: int = 1) -> None:
        super().__init__(num_choices)
        self.deltas: list[TokenDelta] = []

    def deliver(self, delta: TokenDelta) -> None:
        super().deliver(delta)
        self.deltas.append(delta)


async def _run(scene: RealScene, request: InferenceRequest) -> _Keeping:
    sink = _Keeping(request.num_choices)
    scene.engine.submit(request, sink)
    await scene.until(lambda: sink.has_ended)
    sink.check()
    assert sink.error is None, sink.error
    return sink


def _request(scene: RealScene, name: str, **fields: Any) -> InferenceRequest:
    return scene.make_request(name, **fields)


async def check_logprobs(scene: RealScene) -> None:
    """20 alternatives, most likely first, finite; greedy takes the first."""
    request = _request(scene, "logprobs", sampling=SamplingParams(temperature=0.0), num_logprobs=20)
    sink = await _run(scene, request)
    entries = [one for delta in sink.deltas for one in delta.logprobs or []]
    assert [one.token_id for one in entries] == sink.token_ids[0]
    for one in entries:
        values = [logprob for _, logprob in one.top]
        assert len(one.top) == 20 and values == sorted(values, reverse=True), one
        assert one.top[0][0] == one.token_id and all(map(math.isfinite, values)), one


async def check_prompt_scores(scene: RealScene) -> None:
    """The prompt's scores come once, for all its tokens, the first of them None, also for a request for no token."""
    request = _request(scene, "scores", stop=StopRules(max_tokens=0), num_prompt_logprobs=2, num_choices=2)
    sink = await _run(scene, request)
    scores: list[TokenLogprob | None] = [one for delta in sink.deltas for one in delta.prompt_logprobs or []]
    assert len(scores) == request.num_prompt_tokens, len(scores)
    assert scores[0] is None and all(one is not None and len(one.top) == 2 for one in scores[1:])
    assert sink.token_ids == [[], []]
    assert set(sink.finishes.values()) == {EngineFinish.LENGTH}


async def check_stop_token(scene: RealScene) -> None:
    """A stop token ends the output, is the last of its tokens, and is named."""
    greedy = SamplingParams(temperature=0.0)
    free = await _run(scene, _request(scene, "free", sampling=greedy))
    wanted = free.token_ids[0][3]
    first = free.token_ids[0].index(wanted)
    stop = StopRules(max_tokens=8, token_ids=(wanted,), ignore_eos=True)
    sink = await _run(scene, _request(scene, "stopped", sampling=greedy, stop=stop))
    assert sink.token_ids[0] == free.token_ids[0][: first + 1]
    assert sink.finishes[0] is EngineFinish.STOP_TOKEN
    assert sink.deltas[-1].stop_token == wanted


async def check_allowed_and_bias(scene: RealScene) -> None:
    """Nothing but allowed tokens comes; a bias of -100 keeps one away."""
    allowed = (300, 301, 302)
    sampling = SamplingParams(allowed_token_ids=allowed, logit_bias=((300, -100.0),), seed=5)
    sink = await _run(scene, _request(scene, "allowed", sampling=sampling))
    assert set(sink.token_ids[0]) <= {301, 302}, sink.token_ids


async def check_cached_tokens(scene: RealScene) -> None:
    """What was computed is found again under the same salt, and not under another."""
    long = scene.prompt * 20
    counts = []
    for name, salt in (("a", b"a"), ("b", b"a"), ("c", b"c")):
        sink = await _run(scene, _request(scene, name, prompt=long, cache_salt=salt))
        counts.append(sum(delta.num_cached_tokens for delta in sink.deltas))
    assert counts[0] == 0 and counts[1] > 0 and counts[2] == 0, counts


async def check_grammars(scene: RealScene) -> None:
    """A schema, an expression and a choice hold, and end the output; alone, and several in one batch."""
    rules, greedy = StopRules(max_tokens=400), SamplingParams(temperature=0.0)
    specs = {"schema": SCHEMA, "regex": RegexSpec("[ab]{3}c"), "choice": ChoiceSpec(("yes", "no"))}
    kept = {
        "schema": lambda text: json.loads(text) == {"a": 7},
        "regex": re.compile("[ab]{3}c").fullmatch,
        "choice": ("yes", "no").__contains__,
    }

    async def hold(name: str, suffix: str) -> None:
        request = _request(scene, name + suffix, stop=rules, sampling=greedy, grammar=GrammarRule(specs[name]))
        sink = await _run(scene, request)
        assert sink.finishes[0] in (EngineFinish.EOS, EngineFinish.GRAMMAR_COMPLETE), (name, sink.finishes)
        assert kept[name](scene.text(sink.token_ids[0])), (name, scene.text(sink.token_ids[0]))

    for name in specs:
        await hold(name, "")
    await asyncio.gather(*(hold(name, f"-{i}") for name in specs for i in range(2)))


async def check_many_seeds(scene: RealScene) -> None:
    """The least and the greatest seed of callers are taken, and a seed gives the same text again."""
    for seed in (0, -1, 2**63 - 1, -(2**63)):
        sinks = [await _run(scene, _request(scene, f"seed-{i}", seed=seed)) for i in range(2)]
        assert sinks[0].token_ids == sinks[1].token_ids, (seed, [sink.token_ids for sink in sinks])


async def check_refused_before_vllm(scene: RealScene) -> None:
    """What vLLM would change in silence is refused before it hears of the request."""
    refused = {
        "context": ({"stop": StopRules(max_tokens=100_000)}, ContextLengthExceeded),
        "temperature": ({"sampling": SamplingParams(temperature=0.001)}, UnsupportedParameter),
        "alternatives": ({"num_logprobs": 21}, UnsupportedParameter),
        "words": ({"sampling": SamplingParams(bad_words=((5, 6),))}, UnsupportedParameter),
        "token": ({"prompt": (10**6).to_bytes(4, "little")}, InvalidValue),
    }
    for name, (fields, error) in refused.items():
        try:
            scene.engine.submit(_request(scene, name, **fields), RecordingSink())
        except error:
            continue
        raise AssertionError(f"{name} was taken")


FIELD_CHECKS = {
    check.__name__: check
    for check in (
        check_logprobs,
        check_prompt_scores,
        check_stop_token,
        check_allowed_and_bias,
        check_cached_tokens,
        check_many_seeds,
        check_refused_before_vllm,
        check_grammars,
    )
}
