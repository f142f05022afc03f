"""What breaks token ids and counts."""

from collections.abc import Callable
from typing import Any

from harness.judged_case import Mutants
from harness.mutant import EditsRequest, EditsValue, Heard, Mutant
from mutants.answers import NAMES_NOTHING, ONE_CODE
from tidegate.conformance.catalog.tokens import CASES


class _OnRoute(Mutant):
    """Changes the answers of one route."""

    def __init__(self, route: str, says: str, edit: Callable[[Any, Any], Any]) -> None:
        self._route = route
        self.says = says
        self._edit = edit

    def value(self, heard: Heard, status: int, value: Any) -> Any:
        if status == 200 and heard.target.endswith("/" + self._route):
            return self._edit(heard.json, value)
        return value


def _back(says: str, edit: Callable[[str], str]) -> Mutant:
    """A mutant that turns ids back into another text."""
    return _OnRoute("detokenize", says, lambda asked, value: dict.fromkeys(value, edit(value["text"])))


def _more_tokens(asked: Any, value: Any) -> Any:
    tokens = [1, *value["tokens"]]
    return value | {"tokens": tokens, "count": len(tokens)}


def _reads_markers(asked: Any, value: Any) -> Any:
    return value | ({"tokens": [1], "count": 1} if asked["prompt"].startswith("<|") else {})


def _trims_with_special(asked: Any, value: Any) -> Any:
    return value | {"tokens": value["tokens"][1:]} if asked.get("add_special_tokens") else value


def _reads_ids_with_more(heard: Any) -> Any:
    if isinstance(heard.get("prompt"), list):
        heard["prompt"] = [1, *heard["prompt"]]
    return heard


def _plain(text: str) -> str:
    return text.encode("ascii", "replace").decode()


_LOSES = {
    "blanks": _back("strips blanks", str.strip),
    "emoji": _back("writes ASCII", _plain),
    "right_to_left": _back("turns text around", lambda text: text[::-1]),
    "marks": _back("drops marks", lambda text: text.replace("\u0301", "").replace("\u0351", "")),
    "controls": _back("ends at NUL", lambda text: text.partition("\x00")[0]),
    "scripts": _back("loses what is no BMP", lambda text: "".join(c if ord(c) < 65536 else "?" for c in text)),
    "code": _back("escapes markup", lambda text: text.replace("<", "&lt;")),
    "odd": _back("shortens long runs", lambda text: text[:64]),
    "markers": _back("hides control tokens", lambda text: text.replace("<|im_start|>", "")),
}
_BEGINS = _OnRoute("tokenize", "adds a begin token of its own", _more_tokens)
_REFUSED = [case.id for case in CASES if case.id.startswith("tokens.refuses")]

MUTANTS: Mutants = {
    **{f"tokens.round_trip_{name}": (mutant,) for name, mutant in _LOSES.items()},
    "tokens.empty": (
        _BEGINS,
        _OnRoute("tokenize", "counts wrongly", lambda asked, value: value | {"count": value["count"] + 1}),
        _back("writes a blank for nothing", lambda text: text + " "),
    ),
    "tokens.prompt_usage": (_BEGINS,),
    "tokens.chat_usage": (
        _OnRoute("tokenize", "counts the last message only", lambda a, v: v | {"tokens": v["tokens"][-8:], "count": 8}),
    ),
    "tokens.chat_with_tools_usage": (
        EditsRequest(
            "counts a chat without its tools",
            lambda body: {k: v for k, v in body.items() if k != "tools" or "max_tokens" in body},
        ),
    ),
    "tokens.ids_as_prompt": (EditsRequest("adds a begin token to ids", _reads_ids_with_more),),
    "tokens.special_tokens": (_OnRoute("tokenize", "cuts text for special tokens", _trims_with_special),),
    "tokens.markers_are_text": (_OnRoute("tokenize", "reads control tokens in text", _reads_markers),),
    "tokens.pieces": (
        EditsValue("has text for pieces", lambda value: value | {"pieces": value["token_strs"]}),
        EditsValue("has no texts of tokens", lambda value: {k: v for k, v in value.items() if k != "token_strs"}),
    ),
    **dict.fromkeys(_REFUSED, (NAMES_NOTHING, ONE_CODE)),
}
