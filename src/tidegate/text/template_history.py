"""Turns with calls, and what came back of them, as a chat template wants them.

Decides by what the template was seen to do: what a call's id looks like, in which order results stand, whether a turn
may hold more than one call. Deprecated function calls and calls of custom tools become ordinary ones. Leaves alone
whatever has not the shape of a call or of a result; `template_messages` says what is wrong with that.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

CUSTOM_INPUT_KEY = "input"
"""The one argument of the function as which a model is shown a custom tool."""

CallIds: TypeAlias = Literal["any", "short", "named"]
"""What a template does with the id of a call: takes any; refuses all but nine letters and digits; writes the id in the
place of the function's name, which therefore has to be part of it."""

Placed: TypeAlias = tuple[int, Mapping[str, object]]
"""A message, and the place in the request of the one that it came from."""

_SHORT = re.compile(r"[A-Za-z0-9]{9}")
_NAMED = re.compile(r"functions\.(?P<name>.+):[0-9]+")
_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def arrange_history(
    messages: Sequence[Mapping[str, object]], *, call_ids: CallIds, single_calls: bool
) -> Iterator[Placed]:
    """Yields the messages to render; those that came in stay as they are.

    Results of one turn's calls come in the order of the calls, whatever their order in the request: templates that
    write no ids tell them apart by that. With `single_calls` a turn with several calls becomes several turns, each
    followed by its result.
    """
    ids = _Ids(call_ids)
    at = 0
    while at < len(messages):
        message = _modern(messages[at], ids)
        end = at + 1
        if not _calls_of(message):
            yield at, message
        else:
            results: list[Placed] = []
            while end < len(messages) and messages[end].get("role") in ("tool", "function"):
                results.append((end, _modern(messages[end], ids)))
                end += 1
            yield from _turn((at, message), results, single_calls=single_calls)
        at = end


@dataclass(slots=True)
class _Ids:
    """The calls so far: which id the template is shown for a request's own, and of which function."""

    style: CallIds
    shown: dict[str, str] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    num_calls: int = 0

    def add(self, own: object, name: str) -> str:
        """Returns the id to show for a call."""
        number = self.num_calls
        self.num_calls += 1
        given = own if isinstance(own, str) and own else None
        shown = self._show(given or f"call_{number}", name, number)
        self.shown[given or shown] = shown
        self.names[shown] = name
        return shown

    def find(self, own: object) -> str | None:
        """Returns the id to show in a result, None where there is nothing to show."""
        if not isinstance(own, str):
            return None
        return self.shown.get(own) or (self._short(own) if self.style == "short" else own)

    def last_of(self, name: object) -> str | None:
        """Returns the shown id of the last call of a function."""
        return next((shown for shown in reversed(self.names) if self.names[shown] == name), None)

    def _show(self, own: str, name: str, number: int) -> str:
        if self.style == "short":
            return self._short(own)
        if self.style == "named":
            match = _NAMED.fullmatch(own)
            return own if match is not None and match["name"] == name else f"functions.{name}:{number}"
        return own

    @staticmethod
    def _short(own: str) -> str:
        if _SHORT.fullmatch(own):
            return own
        number = int.from_bytes(hashlib.sha256(own.encode("utf-8", "replace")).digest()[:8], "big")
        letters = []
        for _ in range(9):
            number, digit = divmod(number, len(_DIGITS))
            letters.append(_DIGITS[digit])
        return "".join(letters)


def _modern(message: Mapping[str, object], ids: _Ids) -> Mapping[str, object]:
    """Returns a message without deprecated or custom forms, its ids as they are shown."""
    role = message.get("role")
    if role == "assistant":
        return _with_calls(message, ids)
    if role == "function":
        name = message.get("name")
        shown = ids.last_of(name) or (ids.add(None, name) if isinstance(name, str) else None)
        return _result(message, shown, name)
    if role == "tool":
        shown = ids.find(message.get("tool_call_id"))
        name = message.get("name")
        return _result(message, shown, name if name is not None else ids.names.get(shown or ""))
    return message


def _result(message: Mapping[str, object], shown: str | None, name: object) -> Mapping[str, object]:
    added = {key: value for key, value in (("tool_call_id", shown), ("name", name)) if value is not None}
    return {**message, **added, "role": "tool"}


def _with_calls(message: Mapping[str, object], ids: _Ids) -> Mapping[str, object]:
    calls = message.get("tool_calls") or []
    legacy = message.get("function_call")
    if not calls and isinstance(legacy, Mapping):
        calls = [{"type": "function", "function": legacy}]
    if not isinstance(calls, list | tuple) or not calls:
        return message
    kept = {key: value for key, value in message.items() if key != "function_call"}
    return {**kept, "tool_calls": [_call(call, ids) for call in calls]}


def _call(call: object, ids: _Ids) -> object:
    if not isinstance(call, Mapping):
        return call
    function = call.get("function")
    custom = call.get("custom")
    if function is None and isinstance(custom, Mapping):
        function = {"name": custom.get("name"), "arguments": {CUSTOM_INPUT_KEY: custom.get("input")}}
    if not isinstance(function, Mapping) or not isinstance(name := function.get("name"), str):
        return call
    kept = {key: value for key, value in call.items() if key != "custom"}
    return {**kept, "id": ids.add(call.get("id"), name), "type": "function", "function": function}


def _calls_of(message: Mapping[str, object]) -> list[object]:
    calls = message.get("tool_calls") if message.get("role") == "assistant" else None
    return list(calls) if isinstance(calls, list | tuple) else []


def _turn(turn: Placed, results: list[Placed], *, single_calls: bool) -> Iterator[Placed]:
    """Yields one turn and its results, in the order of its calls."""
    place, message = turn
    calls = _calls_of(message)
    ids = [call.get("id") if isinstance(call, Mapping) else None for call in calls]
    order = {call_id: number for number, call_id in reversed(list(enumerate(ids)))}
    ordered = sorted(results, key=lambda result: order.get(result[1].get("tool_call_id"), len(ids)))
    if not single_calls or len(calls) < 2:
        yield turn
        yield from ordered
        return
    for number, call in enumerate(calls):
        said = message if number == 0 else {"role": "assistant", "content": None}
        yield place, {**said, "tool_calls": [call]}
        yield from (result for result in ordered if order.get(result[1].get("tool_call_id")) == number)
    yield from (result for result in ordered if result[1].get("tool_call_id") not in order)
