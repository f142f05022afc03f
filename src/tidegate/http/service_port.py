"""What HTTP needs from the rest of the server: the service for callers, and the admin view for operators."""

from typing import Protocol

from tidegate.lifecycle.principal import Principal
from tidegate.serving.call import Call
from tidegate.serving.reply import Reply, WholeReply


class Service(Protocol):
    """Answers calls. Every method raises ServeError for what fails before the status is known.

    Cancelling the task that runs one of the asynchronous methods says that the client has gone: whatever the engine
    holds for the call is aborted before the cancellation leaves the method.
    """

    async def chat(self, call: Call) -> Reply: ...

    async def completion(self, call: Call) -> Reply: ...

    async def tokenize(self, call: Call) -> Reply: ...

    async def detokenize(self, call: Call) -> Reply: ...

    def models(self) -> WholeReply: ...

    def model(self, model_id: str) -> WholeReply:
        """Raises ModelNotFound."""
        ...

    def contract(self, principal: Principal) -> WholeReply:
        """What the server promises to whoever asks."""
        ...

    def is_ready(self) -> bool:
        """Whether a generating request would be taken now."""
        ...


class Admin(Protocol):
    """The operator's view. Bytes are JSON bodies."""

    async def live_requests(self) -> bytes: ...

    async def engine(self) -> bytes: ...

    async def metrics(self, accept: str) -> tuple[str, bytes]:
        """Returns the content type and the exposition that suit the `Accept` header."""
        ...

    async def is_ready(self) -> tuple[bool, str]:
        """Whether requests are taken now, and the reason when they are not."""
        ...

    def is_alive(self) -> bool: ...
