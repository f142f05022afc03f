"""What breaks stop strings."""

from collections.abc import Callable, Iterable
from typing import Any

from harness.judged_case import Mutants
from harness.mutant import EditsChunks, EditsRequest, EditsValue, Heard, Ignores, Mutant, Said
from mutants.edits import Value, chunkwise, each_choice, each_text, set_member, without


def _with_stops(edit: Callable[[list[str]], list[str]]) -> Callable[[Value], Value]:
    """Edits the list of stops; a single text is a list of one."""

    def edited(body: Value) -> Value:
        if not body.get("stop"):
            return body
        stops = [body["stop"]] if isinstance(body["stop"], str) else body["stop"]
        kept = edit(stops)
        return body | {"stop": kept} if kept else without(body, "stop")

    return edited


def _leak(body: Value) -> Value:
    return body | {"include_stop_str_in_output": True} if body.get("stop") else body


class _LeaksInStreams(Mutant):
    says = "finds the stop when its text is already sent"

    def hear(self, heard: Heard) -> Heard | Said:
        return heard.with_json(_leak(heard.json)) if heard.is_stream else heard


class _SendsHalfTheStop(Mutant):
    says = "sends the first character of the stop"

    def chunk(self, heard: Heard, chunk: Any, position: int) -> Iterable[Any]:
        stop = heard.json.get("stop")
        if stop and chunk["choices"][0]["finish_reason"] == "stop":
            first = stop[0][0] if isinstance(stop, list) else stop[0]
            yield each_choice(lambda choice: choice | {"delta": {"content": first}, "finish_reason": None})(chunk)
        yield chunk


class _LosesHeldBack(Mutant):
    """What might have become a stop is thrown away at the end."""

    says = "loses held-back text at the end"

    def __init__(self, *, whole: bool) -> None:
        self._whole = whole
        if not whole:
            self.says = "loses held-back text at the end of a stream"

    def value(self, heard: Heard, status: int, value: Any) -> Any:
        return each_text(lambda text: _without_begun(text, heard.json.get("stop")))(value) if self._whole else value

    def chunk(self, heard: Heard, chunk: Any, position: int) -> Iterable[Any]:
        if self._whole:
            yield chunk
            return
        for choice in chunk["choices"]:
            said = heard.notes.get("text", "") + choice.get("delta", {}).get("content", "")
            kept = _without_begun(said, heard.json.get("stop"))
            sent = heard.notes.get("sent", 0)
            heard.notes |= {"text": said, "sent": max(sent, len(kept))}
            if choice["delta"].get("content"):
                choice["delta"]["content"] = kept[sent:]
        yield chunk


def _without_begun(text: str, stop: str | None) -> str:
    longest = max((n for n in range(len(stop or "")) if text.endswith((stop or "")[:n])), default=0)
    return text[: len(text) - longest]


class _StopsAtPrompt(Mutant):
    says = "looks for stops in the prompt too"

    def value(self, heard: Heard, status: int, value: Any) -> Any:
        stops = heard.json.get("stop") or []
        prompt = heard.json["messages"][-1]["content"]
        return each_text(lambda _: "")(value) if any(stop in prompt for stop in stops) else value


class _CutsFirstChoiceOnly(Mutant):
    says = "looks for stops in the first choice only"

    def value(self, heard: Heard, status: int, value: Any) -> Any:
        stop = heard.json.get("stop")
        for choice in value["choices"][1:]:
            choice["message"]["content"] += f"{stop} and so on"
        return value


def _counts_all(heard_limit: int) -> Callable[[Value], Value]:
    def edit(body: Value) -> Value:
        usage = body["usage"] | {"completion_tokens": heard_limit}
        return body | {"usage": usage}

    return edit


def _one_less(body: Value) -> Value:
    usage = body["usage"]
    return body | {"usage": usage | {"completion_tokens": usage["completion_tokens"] - 1}}


def _whole_stop_wins(stops: list[str]) -> list[str]:
    """Where stops overlap, the one that begins first is kept."""
    return [stop for stop in stops if not any(stop != other and stop in other for other in stops)]


def _is_text(body: Value) -> bool:
    return isinstance(body.get("stop"), str)


def _characters(body: Value) -> Value:
    return body | {"stop": sorted(set(body["stop"]))[:4]} if _is_text(body) else body


_LOSES_A_CHARACTER = each_text(lambda text: text[:-1])

MUTANTS: Mutants = {
    "stop.excluded": (
        EditsRequest("returns the stop", _leak),
        _LeaksInStreams(),
        Ignores(("stop",)),
    ),
    "stop.text_before": (
        EditsValue("cuts one character too much", _LOSES_A_CHARACTER),
        _SendsHalfTheStop(),
        EditsValue("trims the text", each_text(str.strip)),
        Ignores(("stop",)),
    ),
    "stop.finish_reason": (
        EditsValue("says length", each_choice(set_member("finish_reason", "length"))),
        EditsChunks(
            "says length in streams",
            chunkwise(each_choice(lambda c: c | {"finish_reason": c["finish_reason"] and "length"})),
        ),
    ),
    "stop.several": (EditsRequest("reads only the first stop", _with_stops(lambda stops: stops[:1])),),
    "stop.completes_first": (EditsRequest("takes the stop that begins first", _with_stops(_whole_stop_wins)),),
    "stop.over_tokens": (
        EditsRequest("finds only stops of one token", _with_stops(lambda stops: [s for s in stops if len(s) == 1])),
    ),
    "stop.unfinished": (_LosesHeldBack(whole=True), _LosesHeldBack(whole=False)),
    "stop.string_or_list": (
        EditsRequest("reads a text as a list of its characters", _characters),
        EditsRequest("reads lists only", lambda body: without(body, "stop") if _is_text(body) else body),
    ),
    "stop.prompt": (_StopsAtPrompt(),),
    "stop.usage": (EditsValue("counts what it generated and cut", _counts_all(24)),),
    "stop.usage_exact": (EditsValue("does not count the last token", _one_less),),
    "stop.reason": (
        EditsValue("does not tell the stop", each_choice(lambda choice: without(choice, "stop_reason"))),
        EditsChunks("does not tell it in streams", chunkwise(each_choice(lambda c: without(c, "stop_reason")))),
    ),
    "stop.include": (Ignores(("include_stop_str_in_output",)),),
    "stop.completions": (Ignores(("stop",)), EditsRequest("returns the stop", _leak)),
    "stop.each_choice": (_CutsFirstChoiceOnly(),),
    "stop.split_character": (Ignores(("stop",)),),
}
