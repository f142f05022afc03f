"""vLLM as it introduces itself over HTTP: what it says is asked, what it does not say is tried with one token each.

| asked | where | without it |
|---|---|---|
| the model and its context | `/v1/models` | it is not served |
| version | `/version` | unknown in the revision |
| cache, start of the process | `/metrics` | computed from the context; a quick restart is not noticed |
| how it cuts a text into tokens | `/tokenize` | only the vocabulary's size is compared |

| tried | where it is refused |
|---|---|
| to generate one token | it is not served: `--enable-scale-out` or `--tokens-only` is missing |
| the tokenizer's last token | it is not served: its vocabulary is smaller |
| `logprobs`, from 21 down | fewer alternatives are served |
| a priority | the gate alone keeps priorities |
| a schema that only the guidance backend refuses | taken: constraints are not served |
| a number that llguidance allows since 1.9 | no token comes: constraints are not served |
"""

import hashlib
import re
from dataclasses import dataclass, field

import msgspec

from tidegate.engines.remote.ask import Answer, Ask, EngineAway, EngineUnfit
from tidegate.engines.remote.dialect import Introduction, Recognition
from tidegate.engines.remote.remote_grammar import TOO_OLD, TRIAL_GRAMMAR
from tidegate.engines.remote.served_facts import ServedFacts, fill_blocks
from tidegate.engines.vllm.sampling_fields import VllmLimits
from tidegate.engines.vllm_http.vllm_wire import GENERATE_PATH, VllmAbilities, VllmDialect
from tidegate.inference.model_info import ModelInfo

LOGPROBS_TRIED = (21, 20, 11, 6, 2, 1, 0)
UNSERVED_FIELDS = ("bad_words",)
GUIDANCE_ONLY_REFUSES = '{"$ref": "https://schemas.invalid/none.json"}'
"""Other backends take it, and leave the output free."""

_START = re.compile(rb"^process_start_time_seconds ([0-9.eE+]+)$", re.MULTILINE)
_CACHE = re.compile(rb"^vllm:cache_config_info\{([^}]*)\}", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="([^"]*)"')


class _Card(msgspec.Struct):
    id: str
    root: str | None = None
    max_model_len: int | None = None


class _Models(msgspec.Struct):
    data: list[_Card]


class _Version(msgspec.Struct):
    version: str


class _Tokens(msgspec.Struct):
    tokens: list[int]


class _TrialChoice(msgspec.Struct):
    token_ids: list[int] = []


class _Trials(msgspec.Struct):
    choices: list[_TrialChoice] = []


@dataclass(frozen=True, slots=True)
class _Metrics:
    boot: str | None = None
    cache: dict[str, str] = field(default_factory=dict)

    def number(self, label: str) -> int | None:
        text = self.cache.get(label, "")
        return int(text) if text.isdecimal() and int(text) > 0 else None


class VllmKind:
    """See `RemoteKind`."""

    def __init__(self, facts: ServedFacts) -> None:
        self._facts = facts

    @property
    def health_path(self) -> str:
        return "/health"

    async def recognise(self, ask: Ask) -> Recognition:
        card = await self._card(ask)
        return _recognition(card, await _metrics(ask))

    async def introduce(self, ask: Ask) -> Introduction:
        await ask.expect_health(self.health_path)
        card = await self._card(ask)
        length = self._facts.effective_length(card.max_model_len)
        metrics = await _metrics(ask)
        version = await ask.get_as("/version", _Version)
        trial = _Trial(ask, card.id)
        await self._try_tokens(trial)
        notes = await self._compare_tokenizers(ask, card.id)
        grammars = self._facts.grammars
        reason = None if grammars is None else await _why_no_grammar(trial, self._facts.eos_token_ids)
        if reason is not None:
            grammars, notes = None, (*notes, f"no structured output: {reason}")
        abilities = VllmAbilities(
            model=card.id,
            eos_token_ids=self._facts.eos_token_ids,
            limits=VllmLimits(await _try_logprobs(trial), length, self._facts.vocab_size),
            takes_priority=await trial.is_taken(priority=1),
            grammars=grammars,
        )
        model = self._model(card, length, metrics, abilities, version.version if version else "of unknown version")
        return Introduction(_recognition(card, metrics), model, VllmDialect(abilities), notes)

    async def _card(self, ask: Ask) -> _Card:
        models = await ask.get_as("/v1/models", _Models)
        if models is None or not models.data:
            raise EngineUnfit("it lists no model under /v1/models")
        wanted = self._facts.model_name
        found = next((card for card in models.data if wanted in (None, card.id)), None)
        if found is None:
            known = ", ".join(card.id for card in models.data[:8])
            raise EngineUnfit(f"it has no model {wanted}; it has {known}")
        return found

    async def _try_tokens(self, trial: "_Trial") -> None:
        first = await trial.ask()
        if first.status in (403, 404, 405):
            raise EngineUnfit(
                f"it does not take tokens ({first.shown}): start vLLM with --enable-scale-out or --tokens-only"
            )
        if first.status in (429, 503):
            raise EngineAway(f"it takes no request now: {first.shown}")
        if first.status != 200:
            raise EngineUnfit(f"it does not generate: {first.shown}")
        last = self._facts.last_token_id
        if not await trial.is_taken(token_ids=[last]):
            raise EngineUnfit(
                f"its vocabulary does not hold token {last}, and the tokenizer has {self._facts.vocab_size} tokens"
            )

    async def _compare_tokenizers(self, ask: Ask, model: str) -> tuple[str, ...]:
        for text, _ in self._facts.probes:
            question = {"model": model, "prompt": text, "add_special_tokens": False}
            answer = await ask.post("/tokenize", msgspec.json.encode(question))
            if answer.status != 200:
                return ("the engine does not tokenize, so only the size of its vocabulary was compared",)
            self._facts.compare_tokens(text, answer.read(_Tokens).tokens)
        return ()

    def _model(self, card: _Card, length: int, metrics: _Metrics, abilities: VllmAbilities, version: str) -> ModelInfo:
        facts = self._facts
        block_tokens = metrics.number("block_size") or facts.block_tokens
        blocks = metrics.number("num_gpu_blocks") or fill_blocks(facts.max_sequences, length, block_tokens)
        return ModelInfo(
            vocab_size=facts.vocab_size,
            max_model_len=length,
            eos_token_ids=facts.eos_token_ids,
            max_sequences=facts.max_sequences,
            num_blocks=blocks,
            block_tokens=block_tokens,
            weights_digest=_digest(card, facts.revision),
            build=f"vllm {version}",
            grammar_backend="guidance" if abilities.grammars is not None else None,
            has_prefix_cache=metrics.cache.get("enable_prefix_caching") == "True",
            unserved_fields=UNSERVED_FIELDS,
        )


class _Trial:
    """Requests for one token."""

    def __init__(self, ask: Ask, model: str) -> None:
        self._ask = ask
        self._model = model

    async def ask(
        self, *, token_ids: list[int] | None = None, priority: int = 0, sampling: dict[str, object] | None = None
    ) -> Answer:
        body: dict[str, object] = {
            "model": self._model,
            "token_ids": token_ids or [0],
            "sampling_params": {"max_tokens": 1, "temperature": 0.0, "detokenize": False, **(sampling or {})},
            "stream": False,
        }
        if priority:
            body["priority"] = priority
        return await self._ask.post(GENERATE_PATH, msgspec.json.encode(body))

    async def is_taken(
        self, *, token_ids: list[int] | None = None, priority: int = 0, sampling: dict[str, object] | None = None
    ) -> bool:
        """Says whether it is done, or refused. Raises EngineAway for anything else."""
        answer = await self.ask(token_ids=token_ids, priority=priority, sampling=sampling)
        if answer.status == 200:
            return True
        if 400 <= answer.status < 500 and answer.status != 429:
            return False
        raise EngineAway(f"a trial was answered with {answer.shown}")


async def _try_logprobs(trial: _Trial) -> int:
    for count in LOGPROBS_TRIED:
        if await trial.is_taken(sampling={"logprobs": count}):
            return count
    raise EngineUnfit("it gives no log-probabilities")


async def _why_no_grammar(trial: _Trial, eos_token_ids: tuple[int, ...]) -> str | None:
    """Returns why constraints cannot be served; None where the backend is guidance, and as strict as ours."""
    if await trial.is_taken(sampling={"structured_outputs": {"json": GUIDANCE_ONLY_REFUSES}}):
        return "its backend takes what it does not enforce: start vLLM with the backend guidance"
    answer = await trial.ask(sampling={"structured_outputs": {"grammar": TRIAL_GRAMMAR}})
    if answer.status != 200:
        return f"it does not take grammars: {answer.shown}"
    choices = answer.read(_Trials).choices
    token_ids = choices[0].token_ids if choices else []
    return TOO_OLD if not token_ids or token_ids[0] in eos_token_ids else None


async def _metrics(ask: Ask) -> _Metrics:
    answer = await ask.get("/metrics")
    if answer.status != 200:
        return _Metrics()
    start, cache = _START.search(answer.body), _CACHE.search(answer.body)
    labels = dict(_LABEL.findall(cache[1].decode("utf-8", "replace"))) if cache is not None else {}
    return _Metrics(start[1].decode() if start is not None else None, labels)


def _recognition(card: _Card, metrics: _Metrics) -> Recognition:
    return Recognition((("model", card.id), ("model path", card.root or "")), metrics.boot)


def _digest(card: _Card, revision: str | None) -> str:
    """Names stand for weights here: the engine tells nothing better, unless the operator does."""
    parts = ("vllm", card.id, card.root or "", revision or "")
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()
