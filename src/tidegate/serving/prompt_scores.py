"""The extension `prompt_logprobs`: for each prompt token, log-probabilities by token id."""

from tidegate.contract.logprobs import PromptLogprob, PromptLogprobs, wire_logprob
from tidegate.inference.output import TokenLogprob
from tidegate.text.vocabulary import Vocabulary


def prompt_logprobs(vocabulary: Vocabulary, token_ids: list[int], scores: list[TokenLogprob | None]) -> PromptLogprobs:
    """Returns one map for each of `token_ids`; null where a token was not scored, as the first never is."""
    padded = scores + [None] * (len(token_ids) - len(scores))
    return [None if scored is None else _score_map(vocabulary, scored) for scored in padded[: len(token_ids)]]


def _score_map(vocabulary: Vocabulary, scored: TokenLogprob) -> dict[str, PromptLogprob]:
    values = {scored.token_id: scored.logprob}
    for token_id, value in scored.top:
        values.setdefault(token_id, value)
    return {
        str(token_id): PromptLogprob(
            logprob=wire_logprob(value), decoded_token=vocabulary.token_bytes(token_id).decode("utf-8", "replace")
        )
        for token_id, value in values.items()
    }
