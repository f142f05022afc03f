"""The tokenizer of a Hugging Face folder: `tokenizer.json` through the `tokenizers` library, and the files beside it.

The library encodes; what a token's bytes are is worked out here from the definition, because the library decodes
whole lists only, and an output has to be exact token by token.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import tokenizers

from tidegate.text.control_split import ControlTable, looks_like_control, split_controls
from tidegate.text.hf_token_bytes import PieceReader, UnusableTokenizer
from tidegate.text.rendered_prompt import RenderedPrompt
from tidegate.text.table_vocabulary import TableVocabulary
from tidegate.text.vocabulary import ModelFacts

Json = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class HfFiles:
    """The contents of a model folder, each file as parsed JSON; absent files are empty.

    `chat_templates` are template files by name (`chat_template.jinja` is `default`); they go before the template in
    the tokenizer's configuration.
    """

    tokenizer: str
    tokenizer_config: Json = field(default_factory=dict)
    generation_config: Json = field(default_factory=dict)
    model_config: Json = field(default_factory=dict)
    chat_templates: Mapping[str, str] = field(default_factory=dict)


def read_hf_folder(folder: Path) -> HfFiles:
    """Reads what a model folder has. Raises UnusableTokenizer if there is no `tokenizer.json` or a file is not JSON."""
    try:
        templates = {path.stem: path.read_text("utf-8") for path in folder.glob("additional_chat_templates/*.jinja")}
        if (main := folder / "chat_template.jinja").exists():
            templates["default"] = main.read_text("utf-8")
        return HfFiles(
            tokenizer=(folder / "tokenizer.json").read_text("utf-8"),
            tokenizer_config=_read_json(folder / "tokenizer_config.json"),
            generation_config=_read_json(folder / "generation_config.json"),
            model_config=_read_json(folder / "config.json"),
            chat_templates=templates,
        )
    except (OSError, ValueError) as error:
        raise UnusableTokenizer(f"cannot read the tokenizer's folder: {error}") from error


def _read_json(path: Path) -> Json:
    value: object = json.loads(path.read_text("utf-8")) if path.exists() else {}
    return value if isinstance(value, dict) else {}


class HfTokenizer:
    """A `Tokenizer` over a `tokenizer.json`. `facts` is what the files beside it say."""

    def __init__(self, files: HfFiles) -> None:
        """Raises UnusableTokenizer, also for a decoder whose tokens' bytes are not known here."""
        definition = _parse_definition(files.tokenizer)
        self._parsing = _build(files.tokenizer)
        added = _read_added(definition, self._parsing)
        self._plain_definition = {**definition, "added_tokens": [token.guarded() for token in added]}
        self._plain = _build_plain(self._plain_definition)
        reader = PieceReader(definition)
        self._strips_blank = reader.strips_first_blank
        special_ids = frozenset(token.token_id for token in added if token.is_special)
        self._controls = _control_table(added)
        self._vocabulary = TableVocabulary(
            reader.read_all(self._parsing, {token.token_id: token.spelling for token in added}, special_ids),
            special_ids=special_ids,
            bos_token_id=self._spelled_id(files.tokenizer_config.get("bos_token")),
            eos_token_ids=tuple(self._end_ids(files)),
        )
        self._before, self._after = self._default_special(files.tokenizer_config.get("add_bos_token"))
        self.facts = self._read_facts(files)

    @property
    def vocabulary(self) -> TableVocabulary:
        return self._vocabulary

    @property
    def control_spellings(self) -> frozenset[str]:
        return self._controls.spellings

    def encode(self, text: str, *, add_special: bool, parse_special: bool) -> list[int]:
        token_ids = _encode(self._parsing if parse_special else self._plain, text)
        if not add_special:
            return token_ids
        return [*self._missing_bos(token_ids), *token_ids, *self._after]

    def encode_chat(self, prompt: RenderedPrompt) -> list[int]:
        token_ids = self._encode_seamed(prompt) if prompt.seams else _encode(self._parsing, prompt.text)
        return [*self._missing_bos(token_ids), *token_ids]

    def decode(self, token_ids: Iterable[int], *, skip_special: bool = True) -> str:
        pieces = (
            self._vocabulary.token_bytes(token_id)
            for token_id in token_ids
            if not (skip_special and self._vocabulary.is_special(token_id))
        )
        data = b"".join(pieces)
        return (data.removeprefix(b" ") if self._strips_blank else data).decode("utf-8", "replace")

    def _encode_seamed(self, prompt: RenderedPrompt) -> list[int]:
        token_ids: list[int] = []
        for part in split_controls(prompt, self._controls):
            if isinstance(part, int):
                token_ids.append(part)
            else:
                token_ids.extend(_encode(self._plain if not token_ids else self._continuing, part))
        return token_ids

    @cached_property
    def _continuing(self) -> tokenizers.Tokenizer:
        """Encodes text that does not begin the prompt: no blank in front, where only the prompt's start gets one."""
        definition = _without_first_blank(self._plain_definition)
        return self._plain if definition == self._plain_definition else _build_plain(definition)

    def _missing_bos(self, token_ids: list[int]) -> list[int]:
        return [] if token_ids[: len(self._before)] == self._before else self._before

    def _default_special(self, add_bos_token: object) -> tuple[list[int], list[int]]:
        """Returns the tokens before and after a text by default. The configuration may overrule the definition."""
        bare = _encode(self._parsing, "a")
        full = list(self._parsing.encode("a", add_special_tokens=True).ids)
        num_before = next((at for at in range(len(full)) if full[at : at + len(bare)] == bare), 0)
        before, after = full[:num_before], full[num_before + len(bare) :]
        bos = self._vocabulary.bos_token_id
        if bos is not None and add_bos_token is True and bos not in before:
            before = [bos, *before]
        if bos is not None and add_bos_token is False:
            before = [token_id for token_id in before if token_id != bos]
        return before, after

    def _spelled_id(self, token: object) -> int | None:
        spelling = _spelling(token)
        return self._parsing.token_to_id(spelling) if spelling else None

    def _end_ids(self, files: HfFiles) -> Iterator[int]:
        """Yields the tokens that end generation, the tokenizer's own end token first, none twice."""
        listed = files.generation_config.get("eos_token_id")
        others = listed if isinstance(listed, list) else [listed]
        found = [self._spelled_id(files.tokenizer_config.get("eos_token")), *others]
        yield from dict.fromkeys(token_id for token_id in found if isinstance(token_id, int))

    def _read_facts(self, files: HfFiles) -> ModelFacts:
        length = files.model_config.get("max_position_embeddings")
        architecture, name = files.model_config.get("model_type"), files.model_config.get("_name_or_path")
        return ModelFacts(
            digest=self._vocabulary.digest(files.tokenizer.encode()),
            chat_templates={
                **_configured_templates(files.tokenizer_config.get("chat_template")),
                **files.chat_templates,
            },
            bos_token=_spelling(files.tokenizer_config.get("bos_token")),
            eos_token=_spelling(files.tokenizer_config.get("eos_token")),
            adds_bos=bool(self._before),
            context_length=length if isinstance(length, int) else None,
            architecture=architecture if isinstance(architecture, str) else None,
            name=name if isinstance(name, str) and name else None,
        )


def _parse_definition(source: str) -> dict[str, object]:
    try:
        definition: object = json.loads(source)
    except ValueError as error:
        raise UnusableTokenizer(f"tokenizer.json is not JSON: {error}") from error
    if not isinstance(definition, dict):
        raise UnusableTokenizer("tokenizer.json is not an object")
    return definition


def _build(source: str) -> tokenizers.Tokenizer:
    try:
        tokenizer = tokenizers.Tokenizer.from_str(source)
    except Exception as error:  # the library raises bare exceptions
        raise UnusableTokenizer(f"tokenizer.json is not a tokenizer: {error}") from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def _build_plain(definition: Json) -> tokenizers.Tokenizer:
    """Returns the tokenizer that reads spelled control tokens as text."""
    tokenizer = _build(json.dumps(definition))
    tokenizer.encode_special_tokens = True
    return tokenizer


def _encode(tokenizer: tokenizers.Tokenizer, text: str) -> list[int]:
    if not text.isascii():
        text = text.encode("utf-8", "replace").decode()  # a lone surrogate would be an error
    return list(tokenizer.encode(text, add_special_tokens=False).ids)


@dataclass(frozen=True, slots=True)
class _AddedToken:
    """A token beside the trained vocabulary. `token_id` is the library's, which may differ from the definition's."""

    definition: Json
    spelling: str
    token_id: int

    @property
    def is_special(self) -> bool:
        return bool(self.definition.get("special"))

    @property
    def is_control(self) -> bool:
        return self.is_special or looks_like_control(self.spelling)

    def guarded(self) -> Json:
        """Returns the definition that lets the library read this token as plain text."""
        return {**self.definition, "special": self.is_control}


def _read_added(definition: Json, tokenizer: tokenizers.Tokenizer) -> list[_AddedToken]:
    added = []
    for token in _list_of_objects(definition.get("added_tokens")):
        spelling = str(token.get("content", ""))
        token_id = tokenizer.token_to_id(spelling)
        if spelling and token_id is not None:
            added.append(_AddedToken(token, spelling, token_id))
    return added


def _control_table(added: list[_AddedToken]) -> ControlTable:
    controls = [token for token in added if token.is_control]
    return ControlTable(
        {token.spelling: token.token_id for token in controls},
        frozenset(token.token_id for token in controls if token.definition.get("lstrip")),
        frozenset(token.token_id for token in controls if token.definition.get("rstrip")),
    )


def _list_of_objects(value: object) -> list[Json]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _spelling(token: object) -> str:
    """A token in a configuration is its spelling, or an object with it."""
    if isinstance(token, dict):
        token = token.get("content")
    return token if isinstance(token, str) else ""


def _configured_templates(value: object) -> dict[str, str]:
    """The configuration holds one template, or a list of named ones."""
    if isinstance(value, str):
        return {"default": value}
    return {str(item.get("name")): str(item.get("template")) for item in _list_of_objects(value)}


def _without_first_blank(definition: dict[str, object]) -> dict[str, object]:
    """Returns the definition with every blank that stands only before the very first text left away."""

    def walk(value: object) -> object:
        if isinstance(value, dict):
            changed = {key: walk(item) for key, item in value.items()}
            if changed.get("prepend_scheme") == "first":
                changed["prepend_scheme"] = "never"
            return changed
        return [walk(item) for item in value] if isinstance(value, list) else value

    return {**definition, "pre_tokenizer": walk(definition.get("pre_tokenizer"))}
