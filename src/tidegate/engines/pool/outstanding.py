"""Outstanding work: the tokens that each engine of a pool still owes, as the pool itself counts them.

A request weighs its prompt, less what is probably cached, until its first token; and for each choice that has not
ended, what it may still generate. Counts fall as outputs arrive, and are gone with the request, however it ends.
Does not know engines, and asks none: what an engine says of itself is late, and not the same for all of them.
"""

from tidegate.inference.request import InferenceRequest


class EngineAccount:
    """What one engine owes. All are 0 when no request is open."""

    __slots__ = ("num_requests", "num_sequences", "num_tokens")

    def __init__(self) -> None:
        self.num_tokens = 0
        self.num_requests = 0
        self.num_sequences = 0


class WorkShare:
    """One request's part of an account: opened when made, `take` with each output, closed by `close`."""

    __slots__ = ("_account", "_left", "_prefill")

    def __init__(self, account: EngineAccount, request: InferenceRequest, num_cached_tokens: int = 0) -> None:
        self._account = account
        self._prefill = prefill_tokens(request, num_cached_tokens)
        self._left: dict[int, int] = dict.fromkeys(range(request.num_choices), request.stop.max_tokens)
        account.num_requests += 1
        account.num_sequences += request.num_choices
        account.num_tokens += self._prefill + request.num_choices * request.stop.max_tokens

    @property
    def is_empty(self) -> bool:
        """Whether every choice has ended."""
        return not self._left

    def take(self, choice: int, num_tokens: int, *, is_last: bool) -> None:
        """An output of one choice came: `num_tokens` new ones. Harmless for a choice that has ended."""
        left = self._left.get(choice)
        if left is None:
            return
        account = self._account
        if num_tokens or is_last:
            account.num_tokens -= self._prefill
            self._prefill = 0
        if is_last:
            del self._left[choice]
            account.num_tokens -= left
            account.num_sequences -= 1
            if not self._left:
                account.num_requests -= 1
            return
        owed = max(0, left - num_tokens)
        self._left[choice] = owed
        account.num_tokens -= left - owed

    def close(self) -> None:
        """The engine owes nothing of it any more. Idempotent."""
        account = self._account
        account.num_tokens -= self._prefill + sum(self._left.values())
        account.num_sequences -= len(self._left)
        if self._left:
            account.num_requests -= 1
        self._prefill = 0
        self._left = {}


def prefill_tokens(request: InferenceRequest, num_cached_tokens: int) -> int:
    """Returns the tokens that an engine computes before the first output. The prompt's last one is never cached."""
    return max(1, request.num_prompt_tokens - num_cached_tokens)
