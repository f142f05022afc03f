"""One choice's grammar: where in the output it begins, and its machine from there on.

Decides when the constraint begins (behind the first of the rule's start sequences; until then no end token may come),
and keeps the machine beside the tokens: `record` moves it on, `rewind` takes back what the scheduler took back. With
`ignore_eos` an end token is no way out: the text goes on as long as the grammar can. Does not know logits or masks.

    free text ... start sequence | constrained text ................ nothing can follow
    end tokens are forbidden     | the machine decides               is_complete
"""

from collections.abc import Sequence

from tidegate.core.grammar_desk import GrammarOrder
from tidegate.grammar.matcher import GrammarMatcher
from tidegate.grammar.refusal import GrammarRefusal
from tidegate.inference.grammar_spec import GrammarRule


class Constraint:
    """`order` is the request's, shared by its choices; the machine is this choice's own."""

    def __init__(self, rule: GrammarRule, order: GrammarOrder, end_ids: frozenset[int]) -> None:
        self._starts = tuple(list(start) for start in rule.starts_after)
        self._order = order
        self._end_ids = end_ids
        self._machine: GrammarMatcher | None = None
        self._free_ids: list[int] = []
        self._num_machine = 0
        self._has_begun = not self._starts or [] in self._starts

    @property
    def has_begun(self) -> bool:
        return self._has_begun

    @property
    def is_ready(self) -> bool:
        """Whether the next token can be masked now, or needs no machine."""
        return not self._has_begun or self._order.outcome is not None

    @property
    def fault(self) -> str | None:
        """Why this choice cannot go on: its grammar did not compile, or its machine broke."""
        outcome = self._order.outcome
        if isinstance(outcome, GrammarRefusal):
            where = f" at {outcome.path}" if outcome.path else ""
            return f"the grammar cannot be compiled{where}: {outcome.message}"
        machine = self.machine if self._has_begun else None
        if machine is not None and machine.error is not None:
            return f"the grammar's machine failed: {machine.error}"
        return None

    @property
    def is_complete(self) -> bool:
        """The text is complete, and nothing can be added to it."""
        machine = self.machine if self._has_begun else None
        return machine is not None and machine.is_terminated

    @property
    def machine(self) -> GrammarMatcher | None:
        """The machine behind what was recorded; at its beginning before the constraint has begun."""
        outcome = self._order.outcome
        if self._machine is None and outcome is not None and not isinstance(outcome, GrammarRefusal):
            self._machine = outcome.make_matcher()
        return self._machine

    def record(self, token_id: int) -> None:
        """Takes note of a token that was chosen. Where the machine refuses it, `fault` says so."""
        if not self._has_begun:
            self._free_ids.append(token_id)
            self._has_begun = self._ends_with_start(self._free_ids)
        elif self.machine is not None:
            self.machine.accept([token_id])
            self._num_machine += 1

    def rewind(self, num_generated: int) -> None:
        """Forgets tokens that were recorded and then taken back by the scheduler."""
        num_free = len(self._free_ids)
        in_machine = min(num_free + self._num_machine - num_generated, self._num_machine)
        if in_machine > 0 and self._machine is not None:
            self._machine.rollback(in_machine)
            self._num_machine -= in_machine
        if num_generated < num_free:
            del self._free_ids[num_generated:]
            self._has_begun = False

    def num_free(self, draft_ids: Sequence[int]) -> int | None:
        """Returns how many of these tokens, which would come next, are in front of the constraint's begin; None for
        all of them: it would not begin with them.
        """
        if self._has_begun:
            return 0
        longest = max(map(len, self._starts))
        text = self._free_ids[-longest:]
        for index, token_id in enumerate(draft_ids):
            text.append(token_id)
            if self._ends_with_start(text):
                return index + 1
        return None

    def first_end(self, draft_ids: Sequence[int]) -> int:
        """Returns the index of the first end token, or how many tokens there are."""
        return next((i for i, token_id in enumerate(draft_ids) if token_id in self._end_ids), len(draft_ids))

    def _ends_with_start(self, token_ids: list[int]) -> bool:
        return any(token_ids[-len(start) :] == start for start in self._starts)
