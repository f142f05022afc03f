"""The probes: for each capability, what is asked and which decision reads the answers. Data only."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from tidegate.conformance.ask import Ask, Place
from tidegate.conformance.catalog.bodies import chat_body, completion_body
from tidegate.conformance.catalog.tokenizer_asks import looks_for_tokenizer
from tidegate.conformance.probing import probe_decisions as decisions
from tidegate.conformance.probing.capability import Capability
from tidegate.conformance.probing.site import Site
from tidegate.conformance.wire.fill import endless
from tidegate.conformance.wire.request_key import FRESH_KEY, key_of

PROBE_TIMEOUT_S = 30.0
MAX_PROBE_TOKENS = 2
MAX_SHORT_ANSWER_TOKENS = 48


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """`after`: without this one there is no point in asking. `skipped`: why it is not asked at such a site, if so."""

    capability: Capability
    asks: tuple[Ask, ...]
    decide: decisions.Decision = decisions.is_served
    after: Capability | None = None
    skipped: Callable[[Site], str | None] | None = None


def _chat(capability: Capability, decision: decisions.Decision = decisions.is_served, **fields: Any) -> Probe:
    body = chat_body(**{"max_tokens": MAX_PROBE_TOKENS} | fields)
    return Probe(capability=capability, asks=(Ask(body=body),), decide=decision, after=Capability.CHAT)


def _completion(
    capability: Capability,
    prompt: Any = "One, two,",
    decision: decisions.Decision = decisions.is_served,
    **fields: Any,
) -> Probe:
    body = completion_body(prompt, **{"max_tokens": MAX_PROBE_TOKENS} | fields)
    asks = (Ask(path="/completions", body=body),)
    return Probe(capability=capability, asks=asks, decide=decision, after=Capability.COMPLETIONS)


def _route(capability: Capability, path: str) -> Probe:
    asks = (Ask(name="there", method="GET", path=path), Ask(name="nowhere", method="GET", path="/no-such-{marker}"))
    return Probe(capability=capability, asks=asks, decide=decisions.is_a_route)


def lacks_key(site: Site) -> str | None:
    """Without a key of the caller's nothing can be said about keys."""
    return None if site.has_key else "no key was given: give --api-key"


def lacks_admin_url(site: Site) -> str | None:
    """The admin listener has an address of its own."""
    return None if site.has_admin_url else "no address of an admin listener was given: give --admin-url"


def plays_what_it_is_told(site: Site) -> str | None:
    """A scripted engine ends where its script does."""
    return "the engine is a scripted one" if site.is_scripted else None


_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"ok": {"type": "boolean"}},
    "required": ["ok"],
    "additionalProperties": False,
}
_TOOL: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "tide_at",
        "description": "The tide at a port.",
        "parameters": {"type": "object", "properties": {"port": {"type": "string"}}, "required": ["port"]},
    },
}
_NAMED = {"type": "function", "function": {"name": "tide_at"}}
_CUSTOM = {"type": "custom", "custom": {"name": "note", "description": "Takes a note."}}
_JSON_SCHEMA = {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": _SCHEMA}}
_CHOICE = {"choice": ["quokka-17", "quokka-71"]}
_SMALL = chat_body(max_tokens=1)
_SHORT_ANSWERS = tuple(
    chat_body(question, max_tokens=MAX_SHORT_ANSWER_TOKENS)
    for question in ("What is 2 plus 2? Answer with one number.", "Say yes.")
)
"""Most models end their answers to these soon."""
_THOUGHT = {"pieces": ["3c7468696e6b3e", "6f6e65", "3c2f7468696e6b3e", "74776f"], "parsers": {"reasoning": "qwen3"}}
"""A thought and an answer, as a scripted engine plays them."""

PROBES: tuple[Probe, ...] = (
    Probe(capability=Capability.CHAT, asks=(Ask(body=chat_body(max_tokens=MAX_PROBE_TOKENS)),)),
    _route(Capability.MODEL_LIST, "/models"),
    _route(Capability.MODEL_LOOKUP, "/models/{model}"),
    _chat(Capability.STREAMS, stream=True),
    Probe(
        capability=Capability.COMPLETIONS,
        asks=(Ask(path="/completions", body=completion_body("One, two,", max_tokens=MAX_PROBE_TOKENS)),),
    ),
    Probe(
        capability=Capability.EMBEDDINGS,
        asks=(Ask(path="/embeddings", body={"model": "{model}", "input": "tide"}),),
    ),
    Probe(
        capability=Capability.SCORES,
        asks=(Ask(path="/score", body={"model": "{model}", "text_1": "tide", "text_2": "sea"}),),
    ),
    Probe(
        capability=Capability.RERANK,
        asks=(Ask(path="/rerank", body={"model": "{model}", "query": "tide", "documents": ["sea"]}),),
    ),
    Probe(
        capability=Capability.LABELS,
        asks=(Ask(path="/classify", body={"model": "{model}", "input": "tide", "labels": ["in", "out"]}),),
    ),
    Probe(
        capability=Capability.TOKENIZE,
        asks=(
            Ask(name="there", path="/tokenize", body={"model": "{model}", "prompt": "tide"}),
            Ask(name="back", path="/detokenize", body={"model": "{model}", "tokens": [40, 41]}),
        ),
        decide=decisions.returns_token_ids,
    ),
    Probe(
        capability=Capability.TOKENIZER,
        asks=(
            *looks_for_tokenizer(),
            *(
                replace(
                    ask,
                    name=f"back_{ask.name}",
                    path=f"{str(ask.path).removesuffix('tokenize')}detokenize",
                    body={"model": "{model}", "tokens": [40, 41]},
                )
                for ask in looks_for_tokenizer()
            ),
        ),
        decide=decisions.has_a_tokenizer,
    ),
    _completion(Capability.PROMPT_LISTS, ["One, two,", "Red, green,"], decisions.gives_two_choices),
    _completion(Capability.TOKEN_PROMPTS, [40, 41, 42]),
    _chat(Capability.CHOICES, decisions.gives_two_choices, n=2, temperature=1),
    _chat(Capability.SEED, seed=7, temperature=1),
    _chat(Capability.LOGPROBS, logprobs=True, top_logprobs=2),
    _completion(Capability.COMPLETION_LOGPROBS, logprobs=2),
    _chat(Capability.LOGIT_BIAS, logit_bias={"40": -100}),
    _completion(Capability.ECHO, decision=decisions.brings_the_prompt_back, echo=True),
    _completion(Capability.STREAMED_ECHO, decision=decisions.brings_the_prompt_back, echo=True, stream=True),
    _chat(Capability.STREAM_USAGE, stream=True, stream_options={"include_usage": True}),
    _chat(Capability.TOOLS, tools=[_TOOL], tool_choice="auto"),
    Probe(
        capability=Capability.FORCED_TOOLS,
        asks=tuple(
            Ask(
                name=name,
                body=chat_body("The tide at Brest?", max_tokens=MAX_PROBE_TOKENS, tools=[_TOOL], tool_choice=choice),
            )
            for name, choice in (("required", "required"), ("named", _NAMED))
        ),
        after=Capability.CHAT,
    ),
    _chat(Capability.CUSTOM_TOOLS, tools=[_CUSTOM]),
    _chat(Capability.JSON_OBJECT, text="Answer in JSON.", response_format={"type": "json_object"}),
    _chat(Capability.JSON_SCHEMA, text="Answer in JSON.", response_format=_JSON_SCHEMA),
    _chat(Capability.STRUCTURED_OUTPUTS, decisions.obeys_choice, structured_outputs=_CHOICE, max_tokens=12),
    Probe(
        capability=Capability.REASONING,
        asks=(Ask(body=chat_body("Which is larger, 9.11 or 9.9?", max_tokens=16), script=_THOUGHT),),
        decide=decisions.writes_reasoning,
        after=Capability.CHAT,
    ),
    Probe(
        capability=Capability.IDEMPOTENCY,
        asks=(
            Ask(name="first", body=_SMALL, headers={"Idempotency-Key": FRESH_KEY}),
            Ask(name="again", body=_SMALL, headers={"Idempotency-Key": key_of("first")}, wave=1),
        ),
        decide=decisions.replays,
        after=Capability.CHAT,
    ),
    Probe(
        capability=Capability.DEADLINES,
        asks=(Ask(body=_SMALL, headers={"X-Deadline-Ms": "soon"}),),
        decide=decisions.refuses_a_malformed_deadline,
        after=Capability.CHAT,
    ),
    Probe(
        capability=Capability.IGNORE_EOS,
        asks=tuple(
            Ask(name=f"{name}_{number}", body=body)
            for number, plain in enumerate(_SHORT_ANSWERS)
            for name, body in (("plain", plain), ("endless", endless(plain)))
        ),
        decide=decisions.ignores_ends,
        after=Capability.CHAT,
        skipped=plays_what_it_is_told,
    ),
    _chat(Capability.TOKEN_LIMIT, decisions.keeps_a_token_limit, max_tokens=1),
    Probe(
        capability=Capability.AUTH,
        asks=(
            Ask(name="without", body=_SMALL, headers={"Authorization": None}),
            Ask(name="with_key", method="GET", path="/models"),
        ),
        decide=decisions.asks_for_a_key,
        skipped=lacks_key,
    ),
    Probe(
        capability=Capability.MODEL_CHECK,
        asks=(Ask(body=_SMALL | {"model": "no-such-model-{marker}"}),),
        decide=decisions.refuses_unknown_models,
        after=Capability.CHAT,
    ),
    Probe(
        capability=Capability.CONTRACT,
        asks=(Ask(method="GET", path="/contract"),),
        decide=decisions.describes_itself,
    ),
    Probe(
        capability=Capability.ADMIN,
        asks=(Ask(method="GET", path="/admin/v1/requests", place=Place.ADMIN),),
        decide=decisions.lets_us_in,
        skipped=lacks_admin_url,
    ),
    Probe(
        capability=Capability.DRAIN,
        asks=(Ask(method="GET", path="/admin/v1/requests", place=Place.ADMIN),),
        decide=decisions.may_be_drained,
        skipped=lacks_admin_url,
    ),
    Probe(
        capability=Capability.METRICS,
        asks=(Ask(method="GET", path="/metrics", place=Place.METRICS),),
        decide=decisions.tells_its_load,
    ),
    Probe(capability=Capability.SCRIPT, asks=(), decide=decisions.plays_scripts),
)
