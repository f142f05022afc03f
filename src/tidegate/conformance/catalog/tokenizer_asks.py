"""How a tokenize route is looked for: in all places that servers have one, with all names of the text."""

from typing import Any

from tidegate.conformance.ask import Ask, Place

TEXT_NAMES = ("prompt", "content", "input")
"""What servers call the text: ours and vLLM's, llama-server's, llama-cpp-python's. Each reads its own."""
_PLACES = (
    ("below_v1", Place.API, "/tokenize"),
    ("at_root", Place.ROOT, "/tokenize"),
    ("in_extras", Place.ROOT, "/extras/tokenize"),
)


def looks_for_tokenizer() -> tuple[Ask, ...]:
    """Returns one request to each place, of one wave."""
    body: dict[str, Any] = {"model": "{model}", **dict.fromkeys(TEXT_NAMES, "tide")}
    return tuple(Ask(name=name, place=place, path=path, body=body) for name, place, path in _PLACES)
