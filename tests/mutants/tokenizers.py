"""What breaks tokenize routes, wherever they are and whatever they call the text."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from harness.judged_case import Mutants
from harness.mutant import EditsRequest, Heard, Mutant, Said


class _Elsewhere(Mutant):
    """Has our routes in another place, and another name for the text. `back` changes the text on its way back, `there`
    the ids.
    """

    def __init__(
        self,
        says: str,
        place: str,
        name: str,
        back: Callable[[str], str] = str,
        there: Callable[[list[int]], list[int]] = list,
    ) -> None:
        self.says = f"{says}, at {place} with {name}"
        self._place = place
        self._name = name
        self._back = back
        self._there = there

    def hear(self, heard: Heard) -> Heard | Said:
        route = heard.target.rpartition("/")[2]
        if route not in ("tokenize", "detokenize"):
            return heard
        if heard.target != f"{self._place}/{route}":
            return Said(404, b'{"detail": "Not Found"}')
        known = {"model", "tokens", "add_special_tokens"}
        body = {name: value for name, value in heard.json.items() if name in known}
        if self._name in heard.json:
            body["prompt"] = heard.json[self._name]
        return replace(heard.with_json(body), target=f"/v1/{route}")

    def value(self, heard: Heard, status: int, value: Any) -> Any:
        if status == 200 and heard.target.endswith("/detokenize"):
            return {self._name: self._back(value["text"])}
        if status == 200 and heard.target.endswith("/tokenize"):
            return {"tokens": self._there(value["tokens"])}
        return value


def _ascii(text: str) -> str:
    return text.encode("ascii", "replace").decode()


def _begun(ids: list[int]) -> list[int]:
    return [ids[0], *ids]


def _reads_ids_with_more(heard: Any) -> Any:
    if isinstance(heard.get("prompt"), list):
        heard["prompt"] = [heard["prompt"][0], *heard["prompt"]]
    return heard


MUTANTS: Mutants = {
    "tokenizers.round_trip": (
        _Elsewhere("writes ASCII", "", "content", back=_ascii),
        _Elsewhere("ends at a line break", "/extras", "input", back=lambda text: text.partition("\n")[0]),
        _Elsewhere("gives nothing back", "/v1", "prompt", back=lambda text: ""),
    ),
    "tokenizers.prompt_usage": (
        _Elsewhere("counts a begin token that it does not read", "", "prompt", there=_begun),
        _Elsewhere("counts words", "", "content", there=lambda ids: ids[::2]),
    ),
    "tokenizers.ids_as_prompt": (EditsRequest("adds a begin token to ids", _reads_ids_with_more),),
}
