"""Rules of Tidegate's own contract. Name: (the rule in our words, its section)."""

from collections.abc import Mapping

TIDEGATE: Mapping[str, tuple[str, str]] = {
    "auth.everywhere": (
        "Every route, whatever its spelling, needs a key, but /healthz and /health; the answer is 401 "
        "`invalid_api_key`.",
        "CONTRACT.md sections 1 and 3",
    ),
    "auth.first": (
        "Authentication comes before the body is read, and before anything says what exists.",
        "CONTRACT.md section 12",
    ),
    "errors.codes": (
        "Each kind of error has one status, type and code, and param is the path of the field.",
        "CONTRACT.md section 3",
    ),
    "errors.message": (
        "A message is at most 2 KiB, quotes at most 64 characters of input, and holds no traceback, path or address.",
        "CONTRACT.md section 3",
    ),
    "errors.retry": ("`X-Should-Retry` and `Retry-After` stand on errors as the table says.", "CONTRACT.md section 3"),
    "errors.shape": (
        "Errors have one shape on every path that reaches the application, unknown routes and methods included.",
        "CONTRACT.md section 3",
    ),
    "headers.contract": ("`Tidegate-Contract` is `1.MINOR`, on every response.", "CONTRACT.md section 2"),
    "headers.ignored": (
        "`Tidegate-Ignored-Fields` names unknown fields that had no effect; policy `reject` answers 400 "
        "`unknown_parameter`.",
        "CONTRACT.md section 2",
    ),
    "headers.request_id": (
        "`X-Request-Id` is on every response; the caller's is echoed when it matches `[A-Za-z0-9._-]{1,128}`.",
        "CONTRACT.md section 2",
    ),
    "headers.stream": (
        "Event streams carry `Cache-Control: no-cache` and `X-Accel-Buffering: no`; never Content-Length, never "
        "compression.",
        "CONTRACT.md section 2",
    ),
    "headers.trace": (
        "`traceparent` and `tracestate` are W3C trace context; what is not well formed is ignored.",
        "CONTRACT.md section 2",
    ),
    "limits.published": (
        "Limits and their values stand in /v1/contract; what is at a limit passes, and one more is refused with "
        "`limit` {name, value, actual, scope}.",
        "CONTRACT.md sections 3 and 12",
    ),
    "parameters.hosted": (
        "What asks for a hosted feature that is not here is 422 `unsupported_parameter`, never ignored.",
        "CONTRACT.md section 4",
    ),
    "parameters.ranges": (
        "Ranges of parameters; NaN, texts for numbers, booleans for integers: 400.",
        "CONTRACT.md section 4",
    ),
    "parameters.removed": (
        "`guided_json` and its kin are 400 with a message that names `structured_outputs`.",
        "CONTRACT.md section 4",
    ),
    "parameters.template": (
        "`chat_template` is refused unless the operator allows it, `chat_template_kwargs` may not name reserved "
        "variables, `continue_final_message` needs a last message from the assistant.",
        "CONTRACT.md section 4",
    ),
    "reading.classify": (
        "Given labels have probabilities that add up to 1, and the likeliest is named.",
        "CONTRACT.md section 16",
    ),
    "reading.exact": (
        "`float` and `base64` are the same 32-bit floats, bit by bit.",
        "CONTRACT.md section 16",
    ),
    "reading.faults": (
        "What cannot be read is 400, and param is its place: `input[3]`, `documents[1]`.",
        "CONTRACT.md sections 3 and 16",
    ),
    "reading.length": ("Embeddings have length 1 unless the caller says otherwise.", "CONTRACT.md section 16"),
    "reading.rerank": (
        "A ranking holds the `top_n` best documents, the most relevant first, with their place in the request, their "
        "score with the query, and on demand their text.",
        "CONTRACT.md section 16",
    ),
    "reading.score": (
        "One text is scored with each of the others, two lists in pairs; scores stand in the order of the pairs.",
        "CONTRACT.md section 16",
    ),
    "reading.usage": (
        "`usage` counts every token that the model reads; prompt_tokens and total_tokens are one number.",
        "CONTRACT.md sections 13 and 16",
    ),
    "routes.admin": ("Nothing that changes or watches the server is on the public listener.", "CONTRACT.md section 1"),
    "routes.health": (
        "GET /healthz says that the process lives, GET /health that it is ready.",
        "CONTRACT.md section 1",
    ),
    "routes.status": (
        "Unknown routes are 404 `route_not_found`, wrong methods 405 `method_not_allowed` with Allow.",
        "CONTRACT.md section 3",
    ),
}
