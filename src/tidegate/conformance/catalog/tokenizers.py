"""Tokenize routes of any server, wherever they are: at the root, below /v1, or below /extras.

The public contract has no such routes, and many servers do, each with names of its own; what they say of one text must
fit together all the same. A request holds the text under all names that are known. Our own routes, with everything that
they promise, are the matter of `tokens`.
"""

from typing import Any

from tidegate.conformance.ask import Ask, Derived, Place
from tidegate.conformance.case import Case, Expect, Severity, expect
from tidegate.conformance.catalog.bodies import completion_body
from tidegate.conformance.catalog.tokenizer_asks import TEXT_NAMES, looks_for_tokenizer
from tidegate.conformance.checks.token_counts import token_ids, usage_is_same
from tidegate.conformance.checks.tokenizer_dialects import (
    count_is_the_prompts,
    gives_text_back,
    path_back,
    path_there,
)
from tidegate.conformance.probing.capability import Capability

_NEEDS = (Capability.TOKENIZER,)
_TEXT = "The tide rises, the tide falls: it comes and goes 12 times a week."
_TEXTS = (
    _TEXT,
    "line one\nline two\n\n- a list",
    "Z\u00fcrich, \u6771\u4eac, \U0001f30a and caf\u00e9",
    'if (a < b) { return "\\n"; }',
)
_LOOKED = tuple(ask.name for ask in looks_for_tokenizer())


def _tokenize(name: str, text: str, *, adds: bool) -> Ask:
    names: dict[str, Any] = dict.fromkeys(TEXT_NAMES, text)
    body = {"model": "{model}", **names, "add_special_tokens": adds, "add_special": adds}
    return Ask(name=name, place=Place.ROOT, path=Derived(path_there, _LOOKED), body=body, wave=1)


def _case(name: str, title: str, why: str, clause: str, asks: tuple[Ask, ...], *expects: Expect, **more: Any) -> Case:
    return Case(
        id=f"tokenizers.{name}",
        title=title,
        why=why,
        clauses=(f"openai:{clause}",),
        **{"severity": Severity.WRONG_DATA, "needs": _NEEDS, **more},
        asks=(*looks_for_tokenizer(), *asks),
        expects=expects,
    )


CASES: tuple[Case, ...] = (
    _case(
        "round_trip",
        "Tokens of a text, turned back, are the text",
        "Callers cut texts at tokens, and get other text than they cut.",
        "tokens.round_trip",
        (
            *(_tokenize(f"there_{n}", text, adds=False) for n, text in enumerate(_TEXTS)),
            *(
                Ask(
                    name=f"back_{n}",
                    place=Place.ROOT,
                    path=Derived(path_back, (f"there_{n}",)),
                    body={"model": "{model}", "tokens": Derived(token_ids, (f"there_{n}",))},
                    wave=2,
                )
                for n in range(len(_TEXTS))
            ),
        ),
        *(expect(gives_text_back, f"back_{n}", text=text) for n, text in enumerate(_TEXTS)),
    ),
    _case(
        "prompt_usage",
        "A prompt has as many tokens as the completion says that it read",
        "Callers count before they send, to stay within a context or a budget.",
        "tokens.count",
        (
            _tokenize("full", _TEXT, adds=True),
            _tokenize("bare", _TEXT, adds=False),
            Ask(name="generated", path="/completions", body=completion_body(_TEXT, max_tokens=1), wave=1),
        ),
        expect(count_is_the_prompts, "full", "bare", "generated"),
        needs=(*_NEEDS, Capability.COMPLETIONS),
        severity=Severity.WRONG_BILL,
    ),
    _case(
        "ids_as_prompt",
        "A prompt given as the ids of its text is read as that text is",
        "Callers that tokenize once and ask often get answers to another prompt.",
        "tokens.count",
        (
            _tokenize("there", _TEXT, adds=True),
            Ask(name="text", path="/completions", body=completion_body(_TEXT, max_tokens=1), wave=1),
            Ask(
                name="ids",
                path="/completions",
                body=completion_body(Derived(token_ids, ("there",)), max_tokens=1),
                wave=2,
            ),
        ),
        expect(usage_is_same, "text", "ids"),
        needs=(*_NEEDS, Capability.COMPLETIONS, Capability.TOKEN_PROMPTS),
        severity=Severity.WRONG_BILL,
    ),
)
