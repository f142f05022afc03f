"""What most cases of a generation begin with: asks whole or streamed, and that an answer came."""

from typing import Any

from tidegate.conformance.ask import Ask
from tidegate.conformance.case import Expect, expect
from tidegate.conformance.checks.generation import generates

COMPLETIONS = "/completions"


def generated(*names: str) -> tuple[Expect, ...]:
    """Returns the assertions that each of the named asks was answered; `it` where none is named."""
    return tuple(expect(generates, name) for name in names or ("it",))


def streamed(body: dict[str, Any], *, usage: bool = False) -> dict[str, Any]:
    """Returns the same request, streamed; with `usage` it asks for the usage chunk."""
    options = {"stream_options": {"include_usage": True}} if usage else {}
    return {**body, "stream": True, **options}


def both_ways(body: dict[str, Any], **fields: Any) -> tuple[Ask, Ask]:
    """Returns the same request twice: `whole`, and streamed as `it`."""
    return Ask(name="whole", body=body, **fields), Ask(body=streamed(body), **fields)


def completions_ask(body: dict[str, Any], **fields: Any) -> Ask:
    """Returns an ask of the completions route."""
    return Ask(path=COMPLETIONS, body=body, **fields)


def pieces(*parts: str | bytes, **fields: Any) -> dict[str, Any]:
    """Returns a script: one token a part."""
    return {"pieces": [(part.encode() if isinstance(part, str) else part).hex() for part in parts], **fields}
