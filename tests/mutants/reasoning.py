"""What breaks reasoning apart from the answer."""

import json
from collections.abc import Iterable
from typing import Any

from harness.judged_case import Mutants
from harness.mutant import Answers, EditsChunks, EditsRequest, EditsValue, Heard, Mutant, Said
from mutants.answers import edits_deltas, edits_message, ends_with

_BODY = b'{"error": {"message": "Bad request.", "type": "invalid_request_error", "param": null, "code": null}}'
_CALL = {"id": "call_1", "type": "function", "function": {"name": "pick_colour", "arguments": "{}"}}


def _reads_none(body: Any) -> Any:
    body.get("x_script", {}).get("parsers", {}).pop("reasoning", None)
    return body


def _tell_again(message: dict[str, Any]) -> None:
    message["content"] = f"{message['reasoning_content']} {message['content']}"


def _to_last_marker(message: dict[str, Any]) -> None:
    before, _, after = message["content"].rpartition("</think>")
    message.update(reasoning_content=message["reasoning_content"] + before, content=after)


def _to_content(message: dict[str, Any]) -> None:
    message.update(content=message.pop("reasoning_content"))


def _uncount(value: Any) -> Any:
    if value.get("usage"):
        value["usage"]["completion_tokens_details"] = {"reasoning_tokens": 0}
    return value


def _uncounted(chunk: Any, position: int) -> Iterable[Any]:
    yield _uncount(chunk)


def _lose_blanks(delta: dict[str, Any]) -> None:
    if "reasoning_content" in delta:
        delta["reasoning_content"] = delta["reasoning_content"].replace(" ", "")


class _ReasonsLast(Mutant):
    says = "sends reasoning when the answer is done"

    def chunk(self, heard: Heard, chunk: Any, position: int) -> Iterable[Any]:
        choice = chunk["choices"][0]
        held = choice["delta"].pop("reasoning_content", "")
        heard.notes["held"] = heard.notes.get("held", "") + held
        if choice["finish_reason"]:
            late = {"index": 0, "delta": {"reasoning_content": heard.notes["held"]}, "finish_reason": None}
            yield chunk | {"choices": [late]}
        yield chunk


def _knows_no_reasoning(heard: Heard) -> Said | None:
    has = any("reasoning_content" in message for message in json.loads(heard.body)["messages"])
    return Said(400, _BODY) if has else None


_READS_NONE = EditsRequest("reads no reasoning", _reads_none)

MUTANTS: Mutants = {
    "reasoning.apart": (
        _READS_NONE,
        edits_message("tells reasoning in the content too", _tell_again),
        edits_message("leaves a marker behind", lambda m: m.update(content="</think>" + m["content"])),
    ),
    "reasoning.streamed_apart": (_READS_NONE,),
    "reasoning.streamed_first": (_ReasonsLast(),),
    "reasoning.counted": (EditsValue("counts no reasoning", _uncount),),
    "reasoning.streamed_counted": (EditsChunks("counts no reasoning in streams", _uncounted),),
    "reasoning.streamed_equals_whole": (edits_deltas("loses blanks of streamed reasoning", _lose_blanks),),
    "reasoning.history": (Answers("knows no reasoning in messages", _knows_no_reasoning),),
    "reasoning.schema_after": (_READS_NONE,),
    "reasoning.first_marker_ends": (edits_message("ends reasoning at the last marker", _to_last_marker),),
    "reasoning.line_breaks": (
        edits_message("keeps line breaks", lambda message: message.update(content="\n\n" + message["content"])),
        edits_message("strips the end too", lambda message: message.update(content=message["content"].strip())),
    ),
    "reasoning.unclosed": (edits_message("takes unclosed reasoning for the answer", _to_content),),
    "reasoning.cut": (
        ends_with("says stop after a cut", "stop"),
        edits_message("takes cut reasoning for the answer", _to_content),
    ),
    "reasoning.no_calls_inside": (
        edits_message("calls what it only thought of", lambda message: message.update(tool_calls=[_CALL])),
    ),
    "reasoning.stop_is_for_content": (
        edits_message("stops inside reasoning", lambda m: m.update(reasoning_content="One ", content="")),
        EditsRequest("ignores stop", lambda body: {k: v for k, v in body.items() if k != "stop"}),
    ),
}
