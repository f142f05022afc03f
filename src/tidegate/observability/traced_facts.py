"""What only spans need of a request, beside what logs are told. Made where a request is recorded, and nowhere else."""

import msgspec

from tidegate.observability.request_trace import RequestTrace


class TracedReply(msgspec.Struct, frozen=True, kw_only=True):
    """One exchange on the wire. `received_at` is an instant of the wall clock, in seconds since 1970.

    `first_byte_s` counts from receipt to the status; None where none was sent. `port` is the local one.
    """

    trace: RequestTrace
    received_at: float
    first_byte_s: float | None
    is_tls: bool
    http_version: str
    port: int | None


class TracedWork(msgspec.Struct, frozen=True, kw_only=True):
    """What the engine was asked, and when what happened, in seconds from receipt; None for what has not happened.

    `entered_s`: the gate was asked; `admitted_s`: it let the request in; `last_token_s`: the last token came; `left_s`:
    gate and engine held nothing of it any more. Numbers of sampling are None where nothing is generated; `seed` is the
    caller's own. `output_type` is "json" where the caller asked for it. No text of prompts, answers or stop strings is
    here.
    """

    operation: str
    revision: str
    entered_s: float
    admitted_s: float | None
    last_token_s: float | None
    left_s: float | None = None
    finish_reasons: tuple[str, ...]
    num_choices: int
    num_reasoning_tokens: int = 0
    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    seed: int | None = None
    output_type: str | None = None
