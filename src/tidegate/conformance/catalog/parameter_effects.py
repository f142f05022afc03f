"""Parameters that must be taken, and what they must do."""

from typing import Any

from tidegate.conformance.ask import Ask, Derived
from tidegate.conformance.case import Case, Severity, expect
from tidegate.conformance.catalog.bodies import QUESTION, chat_body, completion_body
from tidegate.conformance.catalog.parameters import Values, asks_of
from tidegate.conformance.checks.bounds import is_within, speaks
from tidegate.conformance.checks.status import has_status
from tidegate.conformance.checks.stored import is_stored, path_of_stored
from tidegate.conformance.probing.capability import Capability

_CHAT = (Capability.CHAT,)
_SAMPLING = (
    "frequency_penalty",
    "presence_penalty",
    "logit_bias",
    "max_completion_tokens",
    "n",
    "stop",
    "seed",
    "temperature",
    "top_p",
    "stream",
    "stream_options",
)
_OTHERS = ("metadata", "store", "service_tier", "modalities", "reasoning_effort", "verbosity", "prediction")
_LONGEST = {str(number).rjust(64, "k"): "v" * 512 for number in range(16)}


def _taking(what: str, title: str, why: str, clause: str, values: Values) -> Case:
    """Each of these requests is right, and must be answered."""
    return Case(
        id=f"parameters.{what}",
        title=title,
        why=why,
        clauses=(f"openai:{clause}",),
        severity=Severity.BREAKS_CLIENTS,
        needs=_CHAT,
        asks=asks_of(values),
        expects=tuple(expect(has_status, name, allowed=(200,)) for name in values),
    )


TAKEN = (
    _taking(
        "null_sampling",
        "Sampling fields that are null are as if absent",
        "Typed clients send null for what is not set; the first call fails.",
        "parameters.null",
        {"all": dict.fromkeys(_SAMPLING), "logprobs": {"logprobs": None, "top_logprobs": None}},
    ),
    _taking(
        "null_others",
        "All other nullable fields take null, too",
        "Typed clients send null for what is not set; the first call fails.",
        "parameters.null",
        {"all": dict.fromkeys(_OTHERS)},
    ),
    _taking(
        "metadata",
        "Metadata of full size is taken, and fields that name the caller are",
        "Callers tag their requests; a server that refuses tags refuses them all.",
        "parameters.metadata",
        {
            "metadata": {"metadata": _LONGEST},
            "user": {"user": "u-1"},
            "identifier": {"safety_identifier": "s" * 64, "prompt_cache_key": "k"},
        },
    ),
    _taking(
        "harmless",
        "Fields that say their default are taken",
        "Clients and frameworks send defaults with every request.",
        "parameters.range",
        {
            "store": {"store": False},
            "modalities": {"modalities": ["text"]},
            "format": {"response_format": {"type": "text"}},
            "tier": {"service_tier": "auto"},
        },
    ),
)


def _bounding(what: str, title: str, fields: dict[str, Any], path: str = "/chat/completions") -> Case:
    needs = _CHAT if path == "/chat/completions" else (Capability.COMPLETIONS,)
    body = chat_body(QUESTION, **fields) if path == "/chat/completions" else completion_body(**fields)
    return Case(
        id=f"parameters.{what}",
        title=title,
        why="The caller pays for every token past the bound.",
        clauses=("openai:parameters.limit",),
        severity=Severity.WRONG_BILL,
        needs=needs,
        asks=(Ask(body={name: value for name, value in body.items() if value is not None}, path=path),),
        expects=(expect(has_status, allowed=(200,)), expect(is_within, num_tokens=2)),
    )


_HONEST = (
    _bounding("max_tokens", "max_tokens bounds the tokens of an answer", {"max_tokens": 2}),
    _bounding(
        "max_completion_tokens",
        "max_completion_tokens bounds the tokens of an answer",
        {"max_tokens": None, "max_completion_tokens": 2},
    ),
    _bounding("completion_max_tokens", "max_tokens bounds a completion", {"max_tokens": 2}, "/completions"),
    Case(
        id="parameters.audio",
        title="Who asks for audio gets audio, or is refused",
        why="The caller plays what is not there.",
        clauses=("openai:parameters.honest",),
        severity=Severity.WRONG_DATA,
        needs=_CHAT,
        asks=asks_of({"it": {"modalities": ["text", "audio"], "audio": {"voice": "alloy", "format": "wav"}}}),
        expects=(expect(has_status, allowed=(200, 400, 404, 422, 501)), expect(speaks)),
    ),
    Case(
        id="parameters.store",
        title="Who asks that a completion is stored can fetch it, or is refused",
        why="The caller relies on a record that nobody keeps.",
        clauses=("openai:parameters.honest",),
        severity=Severity.NUISANCE,
        needs=_CHAT,
        asks=(
            Ask(name="it", body=chat_body(max_tokens=1, store=True)),
            Ask(name="fetched", method="GET", path=Derived(path_of_stored, ("it",)), wave=1),
        ),
        expects=(expect(is_stored, "it", "fetched"),),
    ),
)

CASES: tuple[Case, ...] = (*TAKEN, *_HONEST)
