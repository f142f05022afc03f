"""The tokenizer inside a GGUF file, through llama.cpp's own vocabulary.

llama.cpp is asked for runs of plain text only. Which parts of a text are control tokens or tokens defined by the user
is decided here: that keeps callers' text from opening a turn, and the work linear, which it is not inside llama.cpp
when such tokens are many. For one author's text the ids are those of llama.cpp (a test compares them).
"""

import ctypes
import weakref
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import llama_cpp

from tidegate.text.control_split import ControlTable, looks_like_control, split_controls
from tidegate.text.rendered_prompt import RenderedPrompt
from tidegate.text.table_vocabulary import TableVocabulary
from tidegate.text.vocabulary import ModelFacts

_UNKNOWN, _CONTROL, _USER_DEFINED = 1 << 0, 1 << 3, 1 << 4
_STRIPS_LEFT, _STRIPS_RIGHT = 1 << 7, 1 << 8
_LOG_LEVEL_ERROR = 4
_TEMPLATE_KEY = "tokenizer.chat_template"


class UnusableModelFile(Exception):
    """The file cannot be read as a model with a vocabulary. The message says why."""


@dataclass(frozen=True, slots=True)
class _Tokens:
    """All tokens of a vocabulary: bytes, attribute bits, and those of either special kind by spelling."""

    pieces: list[bytes]
    attributes: list[int]

    def spelled(self, kind: int, *, but: int = 0) -> Iterator[tuple[str, int]]:
        for token_id, (piece, bits) in enumerate(zip(self.pieces, self.attributes, strict=True)):
            if bits & kind and not bits & but:
                yield piece.decode("utf-8", "replace"), token_id

    def ids_with(self, kind: int) -> frozenset[int]:
        return frozenset(token_id for token_id, bits in enumerate(self.attributes) if bits & kind)

    def table(self, kind: int, *, but: int = 0) -> ControlTable:
        ids: dict[str, int] = {}
        for spelling, token_id in self.spelled(kind, but=but):
            ids.setdefault(spelling, token_id)
        return ControlTable(ids, self.ids_with(_STRIPS_LEFT), self.ids_with(_STRIPS_RIGHT))


class GgufTokenizer:
    """A `Tokenizer` over a GGUF file's vocabulary. `facts` is what else the file says."""

    def __init__(self, path: str) -> None:
        """Loads vocabulary and metadata, no weights. Raises UnusableModelFile."""
        model = _load_vocabulary_only(path)
        weakref.finalize(self, llama_cpp.llama_model_free, model).atexit = False
        self._vocab = llama_cpp.llama_model_get_vocab(model)
        if llama_cpp.llama_vocab_type(self._vocab) == llama_cpp.LLAMA_VOCAB_TYPE_NONE:
            raise UnusableModelFile("the model file has no vocabulary")
        tokens = _read_tokens(self._vocab)
        self._all_marked = tokens.table(_CONTROL | _UNKNOWN | _USER_DEFINED)
        self._user_defined = tokens.table(_USER_DEFINED, but=_CONTROL | _UNKNOWN)
        self._control_spellings = frozenset(spelling for spelling, _ in tokens.spelled(_CONTROL | _UNKNOWN)) | {
            spelling for spelling, _ in tokens.spelled(_USER_DEFINED) if looks_like_control(spelling)
        }
        self._marked_ids = frozenset(self._all_marked.ids.values())
        self._vocabulary = TableVocabulary(
            tokens.pieces,
            special_ids=tokens.ids_with(_CONTROL | _UNKNOWN),
            bos_token_id=_optional_id(llama_cpp.llama_vocab_bos(self._vocab)),
            eos_token_ids=_end_ids(self._vocab, len(tokens.pieces)),
        )
        self._before, self._after = self._default_special()
        probe = b"".join(self._vocabulary.token_bytes(token_id) for token_id in self._encode_plain("a"))
        self._adds_blank = probe == b" a"
        facts = _read_facts(model, self._vocabulary, adds_bos=bool(self._before))
        self.facts = replace(facts, pair_separator=self._pair_separator())

    @property
    def vocabulary(self) -> TableVocabulary:
        return self._vocabulary

    @property
    def control_spellings(self) -> frozenset[str]:
        return self._control_spellings

    def encode(self, text: str, *, add_special: bool, parse_special: bool) -> list[int]:
        token_ids = self._encode_split(RenderedPrompt(text), self._all_marked if parse_special else self._user_defined)
        if not add_special:
            return token_ids
        return [*self._missing_bos(token_ids), *token_ids, *self._after]

    def encode_chat(self, prompt: RenderedPrompt) -> list[int]:
        token_ids = self._encode_split(prompt, self._all_marked)
        return [*self._missing_bos(token_ids), *token_ids]

    def decode(self, token_ids: Iterable[int], *, skip_special: bool = True) -> str:
        pieces: list[bytes] = []
        strips_blank = self._adds_blank
        for token_id in token_ids:
            piece = self._vocabulary.token_bytes(token_id)
            if strips_blank and token_id not in self._marked_ids:
                piece = piece.removeprefix(b" ")
            # llama.cpp puts a blank in front of every text that follows a special token.
            strips_blank = self._adds_blank and token_id in self._marked_ids
            if not (skip_special and self._vocabulary.is_special(token_id)):
                pieces.append(piece)
        return b"".join(pieces).decode("utf-8", "replace")

    def _encode_split(self, prompt: RenderedPrompt, table: ControlTable) -> list[int]:
        token_ids: list[int] = []
        for part in split_controls(prompt, table):
            if isinstance(part, int):
                token_ids.append(part)
            else:
                token_ids.extend(self._encode_plain(part))
        return token_ids

    def _encode_plain(self, text: str) -> list[int]:
        return _tokenize(self._vocab, text.encode("utf-8", "replace"), add_special=False)

    def _missing_bos(self, token_ids: list[int]) -> list[int]:
        return [] if token_ids[:1] == self._before else self._before

    def _pair_separator(self) -> tuple[int, ...]:
        """Returns what stands between two texts, beside the end that each of them has anyway."""
        separator = _optional_id(llama_cpp.llama_vocab_sep(self._vocab))
        if self._after:
            is_double = llama_cpp.llama_vocab_get_add_sep(self._vocab) and llama_cpp.llama_vocab_get_add_eos(
                self._vocab
            )
            return (separator,) if is_double and separator is not None else ()
        if separator is not None:
            return (separator,)
        return self._vocabulary.eos_token_ids[:1]

    def _default_special(self) -> tuple[list[int], list[int]]:
        """Returns the tokens that llama.cpp puts before and after a text by default."""
        added = _tokenize(self._vocab, b"", add_special=True)
        bos = self._vocabulary.bos_token_id
        num_before = 1 if added and added[0] == bos else 0
        return added[:num_before], added[num_before:]


def _tokenize(vocab: object, data: bytes, *, add_special: bool) -> list[int]:
    capacity = len(data) // 2 + 16
    while True:
        buffer = (llama_cpp.llama_token * capacity)()
        count = llama_cpp.llama_tokenize(vocab, data, len(data), buffer, capacity, add_special, False)
        if count >= 0:
            return list(buffer[:count])
        capacity = -count


def _read_tokens(vocab: object) -> _Tokens:
    num_tokens = llama_cpp.llama_vocab_n_tokens(vocab)
    buffer = ctypes.create_string_buffer(1 << 10)
    pieces: list[bytes] = []
    for token_id in range(num_tokens):
        length = llama_cpp.llama_token_to_piece(vocab, token_id, buffer, len(buffer), 0, True)
        if length < 0:
            buffer = ctypes.create_string_buffer(-length)
            length = llama_cpp.llama_token_to_piece(vocab, token_id, buffer, len(buffer), 0, True)
        pieces.append(buffer.raw[:length])
    return _Tokens(pieces, [llama_cpp.llama_vocab_get_attr(vocab, token_id) for token_id in range(num_tokens)])


def _end_ids(vocab: object, num_tokens: int) -> tuple[int, ...]:
    """Returns the tokens that end generation, the file's own end token first."""
    ends = [token_id for token_id in range(num_tokens) if llama_cpp.llama_vocab_is_eog(vocab, token_id)]
    main = llama_cpp.llama_vocab_eos(vocab)
    return tuple(sorted(ends, key=lambda token_id: (token_id != main, token_id)))


def _optional_id(token_id: int) -> int | None:
    return token_id if token_id >= 0 else None


def _read_facts(model: object, vocabulary: TableVocabulary, *, adds_bos: bool) -> ModelFacts:
    metadata = _read_metadata(model)
    architecture = metadata.get("general.architecture")
    context_length = metadata.get(f"{architecture}.context_length", "")
    templates = {
        key.removeprefix(_TEMPLATE_KEY).lstrip(".") or "default": value
        for key, value in metadata.items()
        if key == _TEMPLATE_KEY or key.startswith(_TEMPLATE_KEY + ".")
    }
    rules = sorted((key, value) for key, value in metadata.items() if key.startswith("tokenizer.ggml."))
    end_ids = vocabulary.eos_token_ids
    return ModelFacts(
        digest=vocabulary.digest(repr(rules).encode()),
        chat_templates=templates,
        bos_token=_spelling(vocabulary, vocabulary.bos_token_id),
        eos_token=_spelling(vocabulary, end_ids[0] if end_ids else None),
        adds_bos=adds_bos,
        context_length=int(context_length) if context_length.isdecimal() else None,
        architecture=architecture,
        name=metadata.get("general.name"),
    )


def _spelling(vocabulary: TableVocabulary, token_id: int | None) -> str:
    return "" if token_id is None else vocabulary.token_bytes(token_id).decode("utf-8", "replace")


def _read_metadata(model: object) -> dict[str, str]:
    """Returns the file's scalar metadata as llama.cpp prints it."""
    metadata: dict[str, str] = {}
    for index in range(llama_cpp.llama_model_meta_count(model)):
        key = _read_string(llama_cpp.llama_model_meta_key_by_index, model, index)
        if key.startswith(("general.", "tokenizer.")) or key.endswith(".context_length"):
            metadata[key] = _read_string(llama_cpp.llama_model_meta_val_str_by_index, model, index)
    return metadata


def _read_string(read: "ctypes._FuncPointer", model: object, index: int) -> str:
    buffer = ctypes.create_string_buffer(1 << 12)
    length = read(model, index, buffer, len(buffer))
    if length >= len(buffer):
        buffer = ctypes.create_string_buffer(length + 1)
        read(model, index, buffer, len(buffer))
    return buffer.value.decode("utf-8", "replace")


def _load_vocabulary_only(path: str) -> object:
    """Loads the file while llama.cpp's log goes to us: its last error is the reason if this fails."""
    lines: list[str] = []

    def keep_errors(level: int, text: bytes, user_data: object) -> None:
        del user_data
        if level == _LOG_LEVEL_ERROR:
            lines.append(text.decode("utf-8", "replace").strip())

    ours = llama_cpp.llama_log_callback(keep_errors)
    callback, user_data = llama_cpp.llama_log_callback(), ctypes.c_void_p()
    llama_cpp.llama_log_get(ctypes.byref(callback), ctypes.byref(user_data))
    llama_cpp.llama_log_set(ours, ctypes.c_void_p(0))
    try:
        llama_cpp.llama_backend_init()
        params = llama_cpp.llama_model_default_params()
        params.vocab_only = True
        model: object = llama_cpp.llama_model_load_from_file(path.encode(), params)
    finally:
        llama_cpp.llama_log_set(callback, user_data)
    if not model:
        raise UnusableModelFile(f"llama.cpp cannot read the model file: {lines[0] if lines else 'no reason given'}")
    return model
