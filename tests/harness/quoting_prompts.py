"""Twenty prompts that differ and that leave something to guess from: token ids, or JSON, that came before."""

import json

from tidegate.text.gguf_tokenizer import GgufTokenizer

NUM_PROMPTS = 20
PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 6}, "age": {"type": "integer", "maximum": 99}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
PERSONS = {"type": "array", "items": PERSON, "minItems": 2}
_NAMES = ("Anna", "Bob", "Carl", "Dora", "Eve", "Fred", "Gina")


def repeated_tokens() -> list[list[int]]:
    """Returns runs of token ids, each three times over."""
    periods = [[1000 + 37 * index + 211 * place for place in range(4 + index % 3)] for index in range(NUM_PROMPTS)]
    return [period * 3 for period in periods]


def quoted_persons(tokenizer: GgufTokenizer) -> list[list[int]]:
    """Returns texts that write a list that `PERSONS` allows, and stand before the second time."""
    prompts = []
    for index in range(NUM_PROMPTS):
        people = [{"name": _NAMES[(index + i) % 7], "age": 20 + (index * 7 + i * 13) % 60} for i in range(2)]
        prompts.append(tokenizer.encode(json.dumps(people) + "\n\n", add_special=True, parse_special=True))
    return prompts
