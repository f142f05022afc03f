"""What is known of a model's tokens and of its tokenizer, as two small ports.

Text and tokens meet here: everything above speaks of characters, the engine speaks of token ids. A vocabulary answers
for single tokens and never fails for an id that it does not know; a tokenizer turns text into ids and back. Both are
safe to call from several threads at once.

Control tokens are tokens that steer the model instead of standing for text: turn markers, begin and end of sequence.
Their spellings (`<|im_start|>`) may turn up in text that a caller wrote. Whether such text becomes the control token
or plain characters is decided by who wrote it: see `Tokenizer`.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol

from tidegate.text.rendered_prompt import RenderedPrompt


class Vocabulary(Protocol):
    """What each token stands for."""

    @property
    def size(self) -> int:
        """Token ids are 0..size-1."""
        ...

    @property
    def bos_token_id(self) -> int | None:
        """The token that opens a sequence, where the model has one."""
        ...

    @property
    def eos_token_ids(self) -> tuple[int, ...]:
        """Every token that ends generation, the main end token first."""
        ...

    def token_bytes(self, token_id: int) -> bytes:
        """The exact bytes that this token adds to the output; a part of a character is given as it is.

        A control token gives its spelling. An unknown id gives b"".
        """
        ...

    def is_special(self, token_id: int) -> bool:
        """Whether this is a control token: invisible unless the caller asks to see it. False for unknown ids."""
        ...


class Tokenizer(Protocol):
    """Text to token ids and back, for one model."""

    @property
    def vocabulary(self) -> Vocabulary: ...

    @property
    def control_spellings(self) -> frozenset[str]:
        """The spellings that `encode_chat` reads as control tokens, and that no caller's text may become."""
        ...

    def encode(self, text: str, *, add_special: bool, parse_special: bool) -> list[int]:
        """Encodes text that has one author.

        `add_special` adds what the model's tokenizer adds by default, such as a BOS. `parse_special` reads spelled
        control tokens as those tokens; the rule for a caller's text, raw completion prompts included, is False.
        """
        ...

    def encode_chat(self, prompt: RenderedPrompt) -> list[int]:
        """Encodes a rendered chat prompt: what the template spelled becomes control tokens, what callers spelled does
        not. Begins with exactly one BOS where the tokenizer adds one by default, whoever wrote it.
        """
        ...

    def decode(self, token_ids: Iterable[int], *, skip_special: bool = True) -> str:
        """The inverse of `encode`: a blank that encoding put in front is taken away again.

        Bytes that are not UTF-8 become U+FFFD. Control tokens show as their spelling unless `skip_special`.
        """
        ...


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """What a model file says beside its tokens. Spellings are "" and numbers None where the file is silent.

    `pair_separator`: tokens between two texts that are read as one, beside what the tokenizer adds to each.
    `chat_templates` maps a template's name (`default`, `tool_use`) to its source. `adds_bos`: plain text gets a BOS by
    default. `digest` identifies the tokenizer: hex SHA-256 over every token's bytes and kind and its other rules.
    """

    digest: str
    chat_templates: dict[str, str] = field(default_factory=dict)
    bos_token: str = ""
    eos_token: str = ""
    adds_bos: bool = False
    context_length: int | None = None
    architecture: str | None = None
    name: str | None = None
    pair_separator: tuple[int, ...] = ()
