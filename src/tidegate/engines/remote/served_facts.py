"""What this server brings to a remote engine, which is held against it: the tokenizer, the operator's choices."""

from dataclasses import dataclass

from tidegate.engines.remote.ask import EngineUnfit
from tidegate.engines.remote.remote_grammar import GrammarWriter


@dataclass(frozen=True, slots=True)
class ServedFacts:
    """`probes` are texts and their tokens, nothing added; `last_token_id` is the highest one that stands for text.

    `model_name` is the engine's name for the model, None for its only one; `revision` is the operator's word for its
    weights. `max_model_len` is the operator's limit. `grammars` is None where no constraints are served.
    """

    vocab_size: int
    eos_token_ids: tuple[int, ...]
    last_token_id: int
    probes: tuple[tuple[str, tuple[int, ...]], ...]
    max_sequences: int
    model_name: str | None = None
    revision: str | None = None
    max_model_len: int | None = None
    block_tokens: int = 16
    grammars: GrammarWriter | None = None

    def effective_length(self, engine_length: int | None) -> int:
        """Returns the longest sequence that is served. Raises EngineUnfit where the operator wants a longer one."""
        if engine_length is None or engine_length < 1:
            raise EngineUnfit("it does not say how long a sequence may be")
        if self.max_model_len is None:
            return engine_length
        if self.max_model_len > engine_length:
            raise EngineUnfit(
                f"its sequences hold {engine_length} tokens, and model.max_model_len is {self.max_model_len}"
            )
        return self.max_model_len

    def compare_tokens(self, text: str, theirs: list[int]) -> None:
        """Raises EngineUnfit, with the place, where the engine cuts a text into other tokens than we do."""
        ours = dict(self.probes)[text]
        if list(ours) == theirs:
            return
        pairs = enumerate(zip(ours, theirs, strict=False))
        at = next((i for i, (a, b) in pairs if a != b), min(len(ours), len(theirs)))
        raise EngineUnfit(
            f"its tokenizer is not that of model.tokenizer: token {at} of a text of {len(text)} characters is "
            f"{_shown(theirs, at)} there and {_shown(ours, at)} here ({len(theirs)} tokens there, {len(ours)} here)"
        )


def fill_blocks(max_sequences: int, max_model_len: int, block_tokens: int) -> int:
    """Returns how many blocks hold every sequence at its longest: where the engine does not say what it has."""
    return max_sequences * -(-max_model_len // block_tokens)


def _shown(token_ids: tuple[int, ...] | list[int], at: int) -> str:
    return str(token_ids[at]) if at < len(token_ids) else "missing"
