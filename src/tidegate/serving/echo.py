"""The prompt in front of the completion (`echo`), with its own log-probabilities where they were asked for.

The engine scores a prompt once, on its first choice, before any token of any choice; every choice repeats it.
"""

from tidegate.inference.event import ContentText, LogprobEntry, StreamEvent
from tidegate.inference.output import TokenDelta, TokenLogprob
from tidegate.serving.logprob_aligner import make_entry
from tidegate.serving.prepared import PreparedPrompt
from tidegate.text.detokenizer import Detokenizer
from tidegate.text.vocabulary import Vocabulary


def needs_echo(prompt: PreparedPrompt) -> bool:
    """Whether anything of the prompt is returned: its text before each choice, or its scores."""
    return prompt.echo_text is not None or prompt.request.num_prompt_logprobs is not None


class PromptEcho:
    """Collects one prompt's scores, and puts its text before each choice's first output."""

    def __init__(self, prompt: PreparedPrompt) -> None:
        self._prompt = prompt
        self._is_due = [prompt.echo_text is not None] * prompt.request.num_choices
        self._is_any_due = prompt.echo_text is not None
        self.scores: list[TokenLogprob | None] = []

    def precede(self, delta: TokenDelta, events: list[StreamEvent]) -> list[StreamEvent]:
        """Returns `events`, after the prompt's text when this is the choice's first output."""
        if delta.prompt_logprobs is not None:
            self.scores.extend(delta.prompt_logprobs)
        if not self._is_any_due or not self._is_due[delta.choice] or (not delta.token_ids and delta.finish is None):
            return events
        self._is_due[delta.choice] = False
        self._is_any_due = any(self._is_due)
        text = self._prompt.echo_text or ""
        entries = self._entries() if self._prompt.plan.want_logprobs else ()
        return [ContentText(text, entries), *events] if text or entries else events

    def _entries(self) -> tuple[LogprobEntry, ...]:
        return prompt_entries(self._prompt.plan.vocabulary, self._prompt.token_ids, self.scores)


def prompt_entries(
    vocabulary: Vocabulary, token_ids: list[int], scores: list[TokenLogprob | None]
) -> tuple[LogprobEntry, ...]:
    """Returns one entry for each prompt token; offsets count characters of the prompt. An unscored token has None."""
    detokenizer = Detokenizer(vocabulary, skip_special=False)
    entries = []
    num_chars = 0
    for i, token_id in enumerate(token_ids):
        scored = scores[i] if i < len(scores) else None
        if scored is not None:
            entries.append(make_entry(vocabulary, scored, num_chars))
        else:
            raw = vocabulary.token_bytes(token_id)
            entries.append(LogprobEntry(raw.decode("utf-8", "replace"), None, raw, (), num_chars))
        num_chars += len(detokenizer.feed(token_id))
    return tuple(entries)
