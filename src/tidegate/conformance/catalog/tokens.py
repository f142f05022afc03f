"""Token ids and counts: the served tokenizer itself, and the same numbers everywhere."""

from typing import Any

from tidegate.conformance.ask import Ask, Derived
from tidegate.conformance.case import Case, Expect, Profile, Severity, expect
from tidegate.conformance.catalog.bodies import chat_body, completion_body
from tidegate.conformance.catalog.tool_bodies import COLOUR, SIZE
from tidegate.conformance.checks.body import has_value
from tidegate.conformance.checks.invalid_value import names_fault
from tidegate.conformance.checks.token_counts import (
    count_is_usage,
    has_token_shape,
    is_not_one_token,
    pieces_join_to,
    special_tokens_are_around,
    text_comes_back,
    token_ids,
    usage_is_same,
)
from tidegate.conformance.probing.capability import Capability

_TEXT = "The tide rises, the tide falls: Zürich, 東京, \U0001f30a."
_NEEDS = (Capability.TOKENIZE,)
_MESSAGES = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Is the sea salty?"},
    {"role": "assistant", "content": "Yes."},
    {"role": "user", "content": "Why? \U0001f30a"},
]

_HARD: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    (
        "blanks",
        "blanks, tabs and line breaks",
        (" ", "   leading", "trailing   ", "\n\n\n", "\t\r\n \t", "a  b\u00a0c\u2003d"),
    ),
    (
        "emoji",
        "emoji, joined and with modifiers",
        (
            "\U0001f600\U0001f600",
            "\U0001f469\u200d\U0001f469\u200d\U0001f467",
            "\U0001f44d\U0001f3fd",
            "\U0001f1e9\U0001f1ea",
            "1\ufe0f\u20e3",
        ),
    ),
    (
        "right_to_left",
        "scripts from right to left, with marks and overrides",
        ("שלום עולם", "مرحبا بالعالم", "a\u202eb\u202cc", "בְּרֵאשִׁית"),
    ),
    ("marks", "combining marks, composed and not", ("é e\u0301", "Z\u0351\u036b\u0343\u036ao\u0310", "ﬁ ﬀ", "ȧ̇̇")),
    (
        "controls",
        "control characters, NUL among them",
        ("a\x00b", "\x01\x02\x1f", "\x7f\x80\x9f", "\ufeffa", "\u2028\u2029\x85"),
    ),
    (
        "scripts",
        "many scripts",
        ("東京は海に近い", "한국어 문장", "ภาษาไทย", "हिन्दी", "ქართული", "Ελληνικά", "\U00020bb7\U0002a6a5"),
    ),
    (
        "code",
        "code and markup",
        (
            'if (a<b && c>=0) { return "\\n"; }',
            "<script>alert('x')</script>",
            "\\\\server\\share",
            "' OR 1=1 -- ",
            "${jndi:ldap://x}",
            "%s%n%d",
        ),
    ),
    (
        "odd",
        "what readers stumble over",
        ("null", "NaN", "1e1000", "0x00", "\ufffd\ufffd", "a" * 300, "-" * 120, "１２３"),
    ),
    (
        "markers",
        "spellings of control tokens",
        ("<|im_start|>system", "<|endoftext|>", "</s><s>", "[INST]", "<think>", "<|eot_id|>"),
    ),
)


def _tokenize(name: str = "it", wave: int = 0, **body: Any) -> Ask:
    return Ask(name=name, path="/tokenize", body={"model": "{model}", **body}, wave=wave)


def _detokenize(name: str, of: str) -> Ask:
    return Ask(name=name, path="/detokenize", body={"model": "{model}", "tokens": Derived(token_ids, (of,))}, wave=1)


def _case(name: str, title: str, why: str, clause: str, asks: tuple[Ask, ...], *expects: Expect, **more: Any) -> Case:
    return Case(
        id=f"tokens.{name}",
        title=title,
        why=why,
        clauses=(f"tidegate:{clause}",),
        profile=Profile.TIDEGATE,
        **{"severity": Severity.WRONG_DATA, "needs": _NEEDS, **more},
        asks=asks,
        expects=expects,
    )


def _round_trip(name: str, what: str, texts: tuple[str, ...]) -> Case:
    there = tuple(_tokenize(f"there_{n}", prompt=text, add_special_tokens=False) for n, text in enumerate(texts))
    back = tuple(_detokenize(f"back_{n}", f"there_{n}") for n in range(len(texts)))
    return _case(
        f"round_trip_{name}",
        f"Tokens of {what}, turned back, are the text",
        "Counts, cuts and prompts made of token ids are of another text.",
        "tokens.round_trip",
        (*there, *back),
        *(expect(has_token_shape, ask.name) for ask in there),
        *(expect(text_comes_back, f"back_{n}", text=text) for n, text in enumerate(texts)),
    )


def _refused(name: str, title: str, path: str, body: dict[str, Any], code: str, param: str) -> Case:
    needs = _NEEDS if "tokenize" in path else (Capability.TOKEN_PROMPTS,)
    return _case(
        f"refuses_{name}",
        title,
        "A wrong id reads other memory than a token's, or text that nobody wrote.",
        "tokens.ids" if "id" in name else "tokens.input",
        (Ask(path=path, body={"model": "{model}", **body}),),
        expect(names_fault, code=code, param=param),
        needs=needs,
        severity=Severity.NUISANCE,
    )


def _as_generated(name: str, title: str, tokenized: Ask, path: str, body: Any, *needs: Capability) -> Case:
    return _case(
        name,
        title,
        "Callers count before they send, to stay within a context or a budget.",
        "tokens.chat" if "chat" in path else "tokens.prompt",
        (tokenized, Ask(name="generated", path=path, body=body | {"max_tokens": 1})),
        expect(count_is_usage, "it", "generated"),
        needs=(*_NEEDS, *needs),
        severity=Severity.WRONG_BILL,
    )


_HUGE = 2**31 - 1
CASES: tuple[Case, ...] = (
    *(_round_trip(*row) for row in _HARD),
    _case(
        "empty",
        "No text has no tokens, and no tokens are no text",
        "The empty case is the first that a loop meets.",
        "tokens.round_trip",
        (
            _tokenize("there", prompt="", add_special_tokens=False),
            Ask(name="back", path="/detokenize", body={"model": "{model}", "tokens": []}),
        ),
        expect(has_token_shape, "there"),
        expect(has_value, "there", path=("tokens",), value=[]),
        expect(text_comes_back, "back", text=""),
    ),
    _as_generated(
        "prompt_usage",
        "A prompt has as many tokens as the completion says that it read",
        _tokenize(prompt=_TEXT),
        "/completions",
        completion_body(_TEXT),
        Capability.COMPLETIONS,
    ),
    _as_generated(
        "chat_usage",
        "A chat has as many tokens as its answer says that the model read",
        _tokenize(messages=_MESSAGES),
        "/chat/completions",
        chat_body() | {"messages": _MESSAGES},
        Capability.CHAT,
    ),
    _as_generated(
        "chat_with_tools_usage",
        "A chat with tools has as many tokens as its answer says that the model read",
        _tokenize(messages=_MESSAGES, tools=[COLOUR, SIZE]),
        "/chat/completions",
        chat_body() | {"messages": _MESSAGES, "tools": [COLOUR, SIZE]},
        Capability.TOOLS,
    ),
    _case(
        "ids_as_prompt",
        "A prompt given as the text's token ids is read as it is: nothing is added",
        "A begin token comes twice, and the model answers worse.",
        "tokens.prompt",
        (
            _tokenize("there", prompt=_TEXT),
            Ask(name="text", path="/completions", body=completion_body(_TEXT, max_tokens=1)),
            Ask(
                name="ids",
                path="/completions",
                body=completion_body(Derived(token_ids, ("there",)), max_tokens=1),
                wave=1,
            ),
        ),
        expect(usage_is_same, "text", "ids"),
        needs=(*_NEEDS, Capability.COMPLETIONS, Capability.TOKEN_PROMPTS),
    ),
    _case(
        "special_tokens",
        "`add_special_tokens` adds around the tokens of the text, and changes none of them",
        "Callers that join parts of prompts count on it.",
        "tokens.round_trip",
        (
            _tokenize("bare", prompt=_TEXT, add_special_tokens=False),
            _tokenize("full", prompt=_TEXT, add_special_tokens=True),
        ),
        expect(special_tokens_are_around, "bare", "full"),
    ),
    _case(
        "markers_are_text",
        "Text that spells a control token is text",
        "A caller's text opens a turn of the system.",
        "tokens.plain",
        tuple(
            _tokenize(f"it_{n}", prompt=text, add_special_tokens=False)
            for n, text in enumerate(("<|im_start|>", "<|endoftext|>", "<|im_end|>"))
        ),
        *(expect(is_not_one_token, f"it_{n}") for n in range(3)),
    ),
    _case(
        "pieces",
        "Pieces of tokens, joined, are the text's bytes",
        "Highlights and cuts by token fall beside the characters.",
        "tokens.round_trip",
        (_tokenize(prompt=_TEXT, add_special_tokens=False, return_pieces=True, return_token_strs=True),),
        expect(pieces_join_to, text=_TEXT),
    ),
    _refused(
        "id_over",
        "A token id beyond the vocabulary is refused, and the member named",
        "/detokenize",
        {"tokens": [40, _HUGE]},
        "invalid_value",
        "tokens",
    ),
    _refused(
        "id_negative",
        "A negative token id is refused at its place",
        "/detokenize",
        {"tokens": [40, -1]},
        "invalid_value",
        "tokens[1]",
    ),
    _refused(
        "id_word",
        "A word among token ids is refused at its place",
        "/detokenize",
        {"tokens": ["40"]},
        "invalid_value",
        "tokens[0]",
    ),
    _refused(
        "id_truth",
        "A truth value among token ids is refused at its place",
        "/detokenize",
        {"tokens": [True]},
        "invalid_value",
        "tokens[0]",
    ),
    _refused("id_missing", "A request without token ids is refused", "/detokenize", {}, "missing_field", "tokens"),
    _refused(
        "id_in_prompt",
        "A token id beyond the vocabulary in a prompt is refused, and the member named",
        "/completions",
        {"prompt": [40, _HUGE]},
        "invalid_value",
        "prompt",
    ),
    _refused(
        "two_inputs",
        "Two inputs at once are refused",
        "/tokenize",
        {"prompt": "a", "text": "b"},
        "invalid_value",
        "text",
    ),
    _refused("no_input", "A request without input is refused", "/tokenize", {}, "missing_field", "prompt"),
    _refused("number", "A number as input is refused", "/tokenize", {"prompt": 5}, "invalid_value", "prompt"),
)
