"""From settings to what `/v1/contract` says about them."""

from tidegate import __version__
from tidegate.cli.settings import Settings
from tidegate.http.settings import HttpSettings
from tidegate.serving.server_facts import IdempotencyFacts, ServerFacts


def server_facts(settings: Settings, idempotency: IdempotencyFacts | None = None) -> ServerFacts:
    """Returns the facts. `idempotency` is what the ledger says about itself; None where there is no ledger."""
    server, admission, limits, deadlines = settings.server, settings.admission, settings.limits, settings.deadlines
    http = HttpSettings()
    return ServerFacts(
        version=__version__,
        queue_depth=admission.queue_depth,
        queued_tokens=admission.queued_tokens,
        queue_deadline_ms=admission.queue_deadline_ms,
        queue_full_status=admission.queue_full_status,
        header_bytes=http.header_bytes,
        uri_bytes=http.uri_bytes,
        pending_body_bytes=limits.pending_body_bytes,
        grammar_compile_ms=limits.grammar_compile_ms,
        template_ms=limits.template_ms,
        template_bytes=limits.template_bytes,
        status_hold_s=server.status_hold_s,
        heartbeat_s=server.heartbeat_s,
        unsent_bytes=server.unsent_bytes,
        slow_client_timeout_s=server.slow_client_timeout_s,
        deadline_max_ms=deadlines.max_ms,
        first_token_max_ms=deadlines.first_token_ms,
        idempotency=idempotency,
    )
