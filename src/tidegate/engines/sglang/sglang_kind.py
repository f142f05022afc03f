"""SGLang as it introduces itself over HTTP.

| asked | where | what follows |
|---|---|---|
| the server's settings | `/server_info`, else `/get_server_info` | repeatable sampling, priorities, grammars |
| the model | `/model_info`, else `/get_model_info` | that it generates, and the version of its weights |
| the context | `/v1/models` | with the longest input, how long a sequence may be without being cut |
| how it cuts a text into tokens | `/v1/tokenize`, else `/tokenize` | compared with the tokenizer's |

One token is generated, of the tokenizer's last token: a smaller vocabulary is refused.
"""

import hashlib
import re

import msgspec

from tidegate.engines.remote.ask import Answer, Ask, EngineAway, EngineUnfit
from tidegate.engines.remote.dialect import Introduction, Recognition
from tidegate.engines.remote.remote_grammar import GrammarWriter
from tidegate.engines.remote.served_facts import ServedFacts, fill_blocks
from tidegate.engines.sglang.sglang_wire import GENERATE_PATH, SglangAbilities, SglangDialect
from tidegate.grammar.llguidance.grammar_source import with_header
from tidegate.inference.model_info import ModelInfo

SALTED_SINCE = (0, 5, 4)
"""Older servers may not know `extra_key`, and would share cached prompts between keys."""
RESERVED_TOKENS = 6
"""What SGLang keeps free of the context: beyond it, budgets are cut without a word."""
ALWAYS_UNSERVED = ("bad_words", "allowed_token_ids")


class _Server(msgspec.Struct):
    version: str = ""
    served_model_name: str | None = None
    model_path: str = ""
    max_running_requests: int | None = None
    max_total_num_tokens: int | None = None
    max_req_input_len: int | None = None
    page_size: int | None = None
    random_seed: int | None = None
    grammar_backend: str | None = None
    disaggregation_mode: str | None = None
    disable_radix_cache: bool = False
    enable_deterministic_inference: bool = False
    enable_priority_scheduling: bool = False
    schedule_low_priority_values_first: bool = False
    incremental_streaming_output: bool | None = None
    stream_output: bool | None = None
    """The older name of the same."""


class _Model(msgspec.Struct):
    is_generation: bool = True
    weight_version: str | None = None


class _Card(msgspec.Struct):
    id: str
    max_model_len: int | None = None


class _Models(msgspec.Struct):
    data: list[_Card]


class _Tokens(msgspec.Struct):
    tokens: list[int]


class SglangKind:
    """See `RemoteKind`."""

    def __init__(self, facts: ServedFacts) -> None:
        self._facts = facts

    @property
    def health_path(self) -> str:
        return "/health"

    async def recognise(self, ask: Ask) -> Recognition:
        server = await _server(ask)
        self._check_name(server)
        return _recognition(server)

    async def introduce(self, ask: Ask) -> Introduction:
        await ask.expect_health(self.health_path)
        server = await _server(ask)
        self._check_name(server)
        _check_server(server)
        model = await ask.get_as("/model_info", _Model) or await ask.get_as("/get_model_info", _Model) or _Model()
        if not model.is_generation:
            raise EngineUnfit("its model generates nothing")
        length = self._facts.effective_length(await _length(ask, server))
        notes = await self._compare_tokenizers(ask)
        await self._try_tokens(ask)
        abilities = SglangAbilities(
            eos_token_ids=self._facts.eos_token_ids,
            is_incremental=bool(server.incremental_streaming_output or server.stream_output),
            is_repeatable=server.enable_deterministic_inference,
            priority_sign=_priority_sign(server),
            grammars=await self._grammars(ask, server),
        )
        info = self._model(server, model, length, abilities)
        if info.max_sequences < self._facts.max_sequences:
            notes += (
                f"the engine runs {info.max_sequences} sequences at once, and engine.max_sequences lets "
                f"{self._facts.max_sequences} in: some wait there",
            )
        return Introduction(_recognition(server), info, SglangDialect(abilities), notes)

    def _check_name(self, server: _Server) -> None:
        wanted, name = self._facts.model_name, server.served_model_name or server.model_path
        if wanted not in (None, name, server.model_path):
            raise EngineUnfit(f"it has no model {wanted}; it has {name}")

    async def _compare_tokenizers(self, ask: Ask) -> tuple[str, ...]:
        for text, _ in self._facts.probes:
            question = msgspec.json.encode({"model": "default", "prompt": text, "add_special_tokens": False})
            answer = await ask.post("/v1/tokenize", question)
            if answer.status in (404, 405):
                answer = await ask.post("/tokenize", question)
            if answer.status != 200:
                return ("the engine does not tokenize, so only the size of its vocabulary was compared",)
            self._facts.compare_tokens(text, answer.read(_Tokens).tokens)
        return ()

    async def _try_tokens(self, ask: Ask) -> None:
        first = await _trial(ask, [0])
        if first.status == 503:
            raise EngineAway(f"it takes no request now: {first.shown}")
        if not _is_done(first):
            raise EngineUnfit(f"it does not generate from tokens: {first.shown}")
        last = self._facts.last_token_id
        if not _is_done(await _trial(ask, [last])):
            raise EngineUnfit(
                f"its vocabulary does not hold token {last}, and the tokenizer has {self._facts.vocab_size} tokens"
            )

    async def _grammars(self, ask: Ask, server: _Server) -> GrammarWriter | None:
        """Grammars are served where llguidance enforces them there as well, and reads what ours reads."""
        if self._facts.grammars is None or server.grammar_backend != "llguidance":
            return None
        answer = await _trial(ask, [0], ebnf=with_header("start: /[a-z]+/"))
        return self._facts.grammars if _is_done(answer) else None

    def _model(self, server: _Server, model: _Model, length: int, abilities: SglangAbilities) -> ModelInfo:
        facts = self._facts
        block_tokens = server.page_size or 1
        blocks = (server.max_total_num_tokens or 0) // block_tokens
        rows = min(facts.max_sequences, server.max_running_requests or facts.max_sequences)
        unserved = ALWAYS_UNSERVED if abilities.is_repeatable else (*ALWAYS_UNSERVED, "seed")
        return ModelInfo(
            vocab_size=facts.vocab_size,
            max_model_len=length,
            eos_token_ids=facts.eos_token_ids,
            max_sequences=rows,
            num_blocks=blocks or fill_blocks(rows, length, block_tokens),
            block_tokens=block_tokens,
            weights_digest=_digest(server, model, facts.revision),
            build=f"sglang {server.version or 'of unknown version'}",
            grammar_backend="llguidance" if abilities.grammars is not None else None,
            has_prefix_cache=not server.disable_radix_cache,
            unserved_fields=unserved,
        )


async def _server(ask: Ask) -> _Server:
    server = await ask.get_as("/server_info", _Server) or await ask.get_as("/get_server_info", _Server)
    if server is None or not server.model_path:
        raise EngineUnfit("it is no SGLang server: it says nothing under /server_info or /get_server_info")
    return server


def _check_server(server: _Server) -> None:
    if server.disaggregation_mode not in (None, "null"):
        raise EngineUnfit(f"it is one half of a pair ({server.disaggregation_mode}): give the address of their router")
    numbers = tuple(int(number) for number in re.findall(r"\d+", server.version)[:3])
    if not server.disable_radix_cache and numbers < SALTED_SINCE:
        least = ".".join(map(str, SALTED_SINCE))
        raise EngineUnfit(
            f"its version is {server.version or 'unknown'}, and before {least} prompts cached for one key could serve "
            "another: start it with --disable-radix-cache, or use a newer one"
        )


async def _length(ask: Ask, server: _Server) -> int | None:
    models = await ask.get_as("/v1/models", _Models)
    context = None if models is None or not models.data else models.data[0].max_model_len
    known = [context - RESERVED_TOKENS] if context is not None else []
    return min([*known, server.max_req_input_len] if server.max_req_input_len else known, default=None)


def _priority_sign(server: _Server) -> int:
    if not server.enable_priority_scheduling:
        return 0
    return 1 if server.schedule_low_priority_values_first else -1


async def _trial(ask: Ask, token_ids: list[int], **sampling: object) -> Answer:
    params = {"max_new_tokens": 1, "temperature": 0.0, **sampling}
    body = {"input_ids": token_ids, "sampling_params": params, "stream": False}
    return await ask.post(GENERATE_PATH, msgspec.json.encode(body))


class _Trial(msgspec.Struct):
    meta_info: dict[str, msgspec.Raw] = {}


class _TrialEnd(msgspec.Struct):
    type: str = ""


def _is_done(answer: Answer) -> bool:
    """Whether a trial was carried out; some refusals have status 200 and an aborted output."""
    if answer.status != 200:
        return False
    raw = answer.read(_Trial).meta_info.get("finish_reason")
    try:
        return raw is not None and msgspec.json.decode(raw, type=_TrialEnd).type in ("stop", "length")
    except msgspec.MsgspecError:
        return False


def _recognition(server: _Server) -> Recognition:
    name = server.served_model_name or server.model_path
    boot = None if server.random_seed is None else str(server.random_seed)
    return Recognition((("model", name), ("model path", server.model_path)), boot)


def _digest(server: _Server, model: _Model, revision: str | None) -> str:
    """Names stand for weights here: the engine tells nothing better, unless the operator does."""
    parts = ("sglang", server.model_path, model.weight_version or "", revision or "")
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()
