"""From settings to an engine on another machine: its address, its tokenizer, what it is held against."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from tidegate.cli.load_error import LoadError
from tidegate.cli.settings import Settings
from tidegate.engines.remote.ask import Ask
from tidegate.engines.remote.client import RemoteEngine
from tidegate.engines.remote.connection_pool import ConnectionPool
from tidegate.engines.remote.dialect import Introduction, Recognition, RemoteKind
from tidegate.engines.remote.endpoint import Endpoint, UnusableUrl, parse_endpoint
from tidegate.engines.remote.http_carrier import HttpCarrier
from tidegate.engines.remote.remote_grammar import GrammarWriter
from tidegate.engines.remote.served_facts import ServedFacts
from tidegate.engines.remote.watch import RemoteWatch, WatchSettings
from tidegate.engines.sglang.sglang_kind import SglangKind
from tidegate.engines.vllm_http.vllm_kind import VllmKind
from tidegate.grammar.registry import DEFAULT_BACKEND
from tidegate.lifecycle.poison import PoisonWatch
from tidegate.serving.served_model import ServedModel
from tidegate.text.vocabulary import ModelFacts, Tokenizer, Vocabulary

if TYPE_CHECKING:
    from tidegate.text.hf_tokenizer import HfTokenizer

_KINDS: dict[str, Callable[[ServedFacts], RemoteKind]] = {"sglang": SglangKind, "vllm-http": VllmKind}
MAX_KEY_BYTES = 4096
LOOK_TIMEOUT_S = 10.0
PROBES = (
    "The bridge is 31.5 m long; 27 people cross it every day, aren't they?\n\n",
    'def area(r):\n    return 3.14159 * r**2  # "m²"\n\t{"k": [1, 20, 300]}',
    "Straße, naïve, Ελλάδα, Москва, 東京タワー, 서울, مرحبا, 👩‍🔬🎉",
)
"""Texts that tokenizers cut differently: numbers, blanks, code, scripts."""


def remote_endpoint(settings: Settings) -> Endpoint:
    """Returns where the engine is. Raises LoadError."""
    engine = settings.engine
    if engine.url is None:
        raise LoadError(f"engine.url must say where the {engine.kind} engine is: --engine-url http://HOST:PORT.")
    try:
        return parse_endpoint(engine.url, None if engine.api_key_file is None else _read_key(Path(engine.api_key_file)))
    except UnusableUrl as error:
        raise LoadError(f"engine.url cannot be used: {error}.") from None


def load_tokenizer(settings: Settings) -> tuple[Tokenizer, ModelFacts, str]:
    """Returns the tokenizer, what the files beside it say, and a name for the model. Raises LoadError."""
    if settings.model.tokenizer is None:
        raise LoadError(
            f"model.tokenizer must name the folder with the model's tokenizer.json: the {settings.engine.kind} engine "
            "is spoken to in tokens. Give it with --tokenizer FOLDER."
        )
    tokenizer = read_tokenizer(folder := Path(settings.model.tokenizer))
    return tokenizer, tokenizer.facts, settings.model.source or tokenizer.facts.name or folder.resolve().name


def read_tokenizer(folder: Path) -> "HfTokenizer":
    """Returns the tokenizer of a folder in Hugging Face's format. Raises LoadError."""
    from tidegate.text.hf_token_bytes import UnusableTokenizer
    from tidegate.text.hf_tokenizer import HfTokenizer, read_hf_folder

    try:
        tokenizer = HfTokenizer(read_hf_folder(folder))
    except UnusableTokenizer as error:
        raise LoadError(f"The tokenizer in {folder} cannot be used: {error}.") from None
    if not tokenizer.vocabulary.eos_token_ids:
        raise LoadError(
            f"The tokenizer in {folder} has no end token: tokenizer_config.json or generation_config.json must name it."
        )
    return tokenizer


def served_facts(settings: Settings, served: ServedModel, *, has_compiler: bool) -> ServedFacts:
    """Returns what the engine is held against."""
    tokenizer = served.tokenizer
    vocabulary = tokenizer.vocabulary
    return ServedFacts(
        vocab_size=vocabulary.size,
        eos_token_ids=vocabulary.eos_token_ids,
        last_token_id=_last_token_id(vocabulary),
        probes=tuple((text, tuple(tokenizer.encode(text, add_special=False, parse_special=False))) for text in PROBES),
        max_sequences=settings.engine.max_sequences,
        model_name=settings.model.source,
        revision=settings.engine.revision,
        max_model_len=settings.model.max_model_len,
        block_tokens=settings.engine.block_tokens,
        grammars=_grammar_writer(vocabulary) if has_compiler and served.grammar.backend == DEFAULT_BACKEND else None,
    )


def make_watch(
    settings: Settings,
    served: ServedModel,
    *,
    has_compiler: bool,
    take_note: Callable[[str], None],
    poison: PoisonWatch | None = None,
) -> RemoteWatch:
    """Returns the engine under its watch, not started. Call on the event loop. Raises LoadError."""
    loop = asyncio.get_running_loop()
    carrier = HttpCarrier(ConnectionPool(remote_endpoint(settings), loop.time))
    tell = loop.call_exception_handler
    engine = RemoteEngine(carrier, tell, call_soon=loop.call_soon, now=loop.time, poison=poison)
    kind = _KINDS[settings.engine.kind](served_facts(settings, served, has_compiler=has_compiler))
    return RemoteWatch(engine, kind, carrier, _watch_settings(settings), take_note)


async def look_once(
    settings: Settings, served: ServedModel, *, has_compiler: bool, is_thorough: bool
) -> Recognition | Introduction:
    """Asks the engine who it is, or, thoroughly, everything that is asked at a start.

    Raises LoadError, EngineAway and EngineUnfit.
    """
    pool = ConnectionPool(remote_endpoint(settings), asyncio.get_running_loop().time)
    kind = _KINDS[settings.engine.kind](served_facts(settings, served, has_compiler=has_compiler))
    try:
        ask = Ask(pool, LOOK_TIMEOUT_S)
        if is_thorough:
            return await kind.introduce(ask)
        await ask.expect_health(kind.health_path)
        return await kind.recognise(ask)
    finally:
        pool.close()


def _watch_settings(settings: Settings) -> WatchSettings:
    engine = settings.engine
    return WatchSettings(
        health_interval_s=engine.health_interval_s,
        stall_timeout_s=engine.stall_timeout_s,
        first_wait_s=engine.restart_wait_s,
        max_wait_s=max(WatchSettings().max_wait_s, engine.restart_wait_s),
    )


def _last_token_id(vocabulary: Vocabulary) -> int:
    ids = range(vocabulary.size - 1, -1, -1)
    return next((i for i in ids if vocabulary.token_bytes(i) and not vocabulary.is_special(i)), 0)


def _grammar_writer(vocabulary: Vocabulary) -> GrammarWriter:
    special = frozenset(filter(vocabulary.is_special, range(vocabulary.size)))
    return GrammarWriter(special - set(vocabulary.eos_token_ids), vocabulary.token_bytes)


def _read_key(file: Path) -> str:
    try:
        with file.open("rb") as stream:
            return stream.read(MAX_KEY_BYTES).decode("ascii").strip()
    except OSError as error:
        raise LoadError(f"engine.api_key_file {file} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise LoadError(f"engine.api_key_file {file} holds no key: it is not ASCII text.") from None
