"""What breaks calls of tools in whole answers."""

from itertools import count
from typing import Any

from harness.judged_case import Mutants
from harness.mutant import EditsValue, Heard, Ignores, Mutant, Said
from mutants.answers import (
    edits_calls,
    edits_choice,
    edits_message,
    ends_with,
    sets_arguments,
    writes_calls_as_text,
)

_MARKUP = '<tool_call>\n{"name": "pick_colour"}\n</tool_call>'


def _rename(name: str) -> EditsValue:
    return edits_calls(f"calls {name} whatever is allowed", lambda calls: calls[0]["function"].update(name=name))


def _double(calls: list[Any]) -> None:
    calls.append(calls[0] | {"id": "call_" + "x" * 24})


def _unpack(calls: list[Any]) -> None:
    calls[0]["function"]["arguments"] = {"colour": "red"}


def _add_call(choice: dict[str, Any]) -> None:
    call = {"id": "call_9", "type": "function", "function": {"name": "open_door", "arguments": "{}"}}
    choice["message"]["tool_calls"] = [call]
    choice["finish_reason"] = "tool_calls"


def _number_ids(calls: list[Any]) -> None:
    for number, call in zip(count(), calls):
        call["id"] = f"call_{number}"


def _one_id(calls: list[Any]) -> None:
    for call in calls:
        call["id"] = "call_0"


def _repeat_arguments(message: dict[str, Any]) -> None:
    message["content"] = message["tool_calls"][0]["function"]["arguments"]


class _TakesNoneForAuto(Mutant):
    says = "takes tool_choice none for auto"

    def hear(self, heard: Heard) -> Heard | Said:
        value = heard.json
        if isinstance(value, dict) and value.get("tool_choice") == "none":
            value["tool_choice"] = "auto"
            return heard.with_json(value)
        return heard


TAKES_NONE_FOR_AUTO = _TakesNoneForAuto()
ALLOWS_SEVERAL = Ignores(("parallel_tool_calls",))
KNOWS_NO_TOOLS = Ignores(("tools", "tool_choice", "functions", "function_call"))
CUTS_AS_CALLED = ends_with("says tool_calls after a cut", "tool_calls")

_WRONG_ARGUMENTS = {
    "enum": '{"colour": "green"}',
    "digits": '{"code": 3106}',
    "number": '{"count": "42"}',
    "truth": '{"is_open": "false"}',
    "null": '{"port": "null"}',
    "nested": '{"at": "{\\"row\\": 3}", "tags": ["a"]}',
    "unicode": '{"place": "Z\\u00fcrich ? \\"q\\" \\\\ end"}',
    "empty": '{"note": 1}',
}

MUTANTS: Mutants = {
    "tools.required_calls": (writes_calls_as_text("leaves calls in the text"), KNOWS_NO_TOOLS),
    "tools.call_shape": (
        edits_calls("has arguments as an object", _unpack),
        edits_calls("has calls without ids", lambda calls: calls[0].pop("id")),
        edits_calls("has an empty id", lambda calls: calls[0].update(id="")),
        edits_calls("has calls without a type", lambda calls: calls[0].pop("type")),
        edits_calls("has a null for a name", lambda calls: calls[0]["function"].update(name=None)),
        edits_message("has a list of parts as content", lambda message: message.update(content=[])),
    ),
    "tools.auto_finish": (ends_with("ends calls with stop", "stop"), ends_with("says tool_use", "tool_use")),
    "tools.auto_text": (ends_with("says tool_calls of text", "tool_calls"),),
    "tools.forced_finish": (ends_with("says function_call of tools", "function_call"), ends_with("says eos", "eos")),
    "tools.required_finish": (ends_with("ends required calls with stop", "stop"),),
    "tools.named_is_called": (_rename("pick_colour"), writes_calls_as_text("leaves named calls in the text")),
    "tools.named_stops": (
        ends_with("ends a named call with tool_calls", "tool_calls"),
        edits_calls("calls a named function twice", _double),
    ),
    "tools.none_calls_nothing": (TAKES_NONE_FOR_AUTO,),
    "tools.allowed_tools": (_rename("pick_colour"),),
    "tools.one_call_at_a_time": (ALLOWS_SEVERAL,),
    "tools.ids_differ": (edits_calls("has one id for all calls", _one_id),),
    "tools.ids_differ_over_answers": (
        edits_calls("counts calls from 0 in every answer", _number_ids),
        edits_calls("has ids of another form", lambda calls: calls[0].update(id=calls[0]["id"].replace("_", "-"))),
    ),
    "tools.content_holds_no_call": (
        edits_message("leaves markup in the content", lambda message: message.update(content=_MARKUP)),
        edits_message("tells the arguments as content too", _repeat_arguments),
    ),
    "tools.cut_says_length": (CUTS_AS_CALLED, ends_with("says stop after a cut", "stop")),
    "tools.unknown_is_not_called": (edits_choice("calls what was not offered", _add_call),),
    "tools.json_arguments": (sets_arguments("writes arguments as Python does", "{'colour': 'red'}"),),
    **{
        f"tools.strict_{name}": (sets_arguments(f"does not enforce strict ({name})", wrong),)
        for name, wrong in _WRONG_ARGUMENTS.items()
    },
}
