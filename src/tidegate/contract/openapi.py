"""The OpenAPI 3.1 document of the public listener, made from the wire types and the tables beside them.

Decides how operations, headers and errors are said in OpenAPI. It does not know what the served model can do: that is
`/v1/contract`. HEAD (as GET) and OPTIONS (204 with `Allow`) work on every route and have no entries of their own.
"""

from typing import Any

from tidegate.contract.error_body import ErrorBody
from tidegate.contract.error_table import ERROR_TABLE, ErrorRow, Retry
from tidegate.contract.examples import request_examples
from tidegate.contract.header_table import REQUEST_HEADERS, RESPONSE_HEADERS, HeaderRow, Place
from tidegate.contract.headers import CONTRACT_VERSION
from tidegate.contract.json_schema import DIALECT, answer_components, request_components
from tidegate.contract.operations import OPERATIONS, Operation
from tidegate.errors import QueueFull

OPENAPI_VERSION = "3.1.0"
DEFAULT_MODEL = "SmolLM2-135M-Instruct"
"""Of the examples: the bundled model."""
QUEUE_FULL_STATUSES = (429, 503)
"""What `admission.queue_full_status` may be."""
_KEY = "key"
_DESCRIPTION = (
    "An OpenAI-compatible inference server. What a caller may rely on beyond these shapes is in CONTRACT.md; which "
    "fields the served model honours, and every limit with its value, is in GET /v1/contract. HEAD works where GET "
    "does, OPTIONS on every route. A field that is null is absent; unknown fields are reported, refused or ignored by "
    "the operator's choice."
)
_STREAM_DESCRIPTION = (
    "With `stream: true` server-sent events; the schema is that of one event. Each is `data: ` + one line of JSON + an "
    "empty line; the last is `data: [DONE]`. Comment lines (`: ping`) keep the connection alive. A stream that fails "
    "ends with one event that holds an error, without a finish_reason and without [DONE]."
)

Document = dict[str, Any]


def openapi_document(*, model: str = DEFAULT_MODEL, url: str = "http://127.0.0.1:8000") -> Document:
    """Returns the document. `model` is the name in the examples, `url` where the server answers."""
    examples = request_examples(model)
    paths: Document = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation, examples)
    return {
        "openapi": OPENAPI_VERSION,
        "info": {
            "title": "Tidegate",
            "version": CONTRACT_VERSION,
            "description": _DESCRIPTION,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "jsonSchemaDialect": DIALECT,
        "servers": [{"url": url}],
        "security": [{_KEY: []}, {}],
        "paths": paths,
        "components": {
            "schemas": _schemas(),
            "headers": {name: _header(row) for name, row in RESPONSE_HEADERS.items()},
            "parameters": {name: _parameter(name, row) for name, row in _documented_request_headers().items()},
            "responses": {f"Error{status}": _error_response(status) for status in error_statuses()},
            "securitySchemes": {
                _KEY: {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "A key of this server. Without any key configured, nobody needs one.",
                }
            },
        },
    }


def error_statuses() -> list[int]:
    """Every status of the error table, and those that the queue may be configured to."""
    return sorted({row.status for row in ERROR_TABLE.values()} | set(QUEUE_FULL_STATUSES))


def rows_of(status: int) -> list[ErrorRow]:
    """The rows of the error table that may be answered with `status`."""
    queue_full = ERROR_TABLE[QueueFull]
    return [
        row
        for row in ERROR_TABLE.values()
        if row.status == status or (row is queue_full and status in QUEUE_FULL_STATUSES)
    ]


def _schemas() -> Document:
    requests = request_components([operation.request for operation in OPERATIONS if operation.request is not None])
    kinds = {operation.answer for operation in OPERATIONS} | {op.chunk for op in OPERATIONS if op.chunk is not None}
    answers = answer_components(sorted({*kinds, ErrorBody}, key=lambda kind: kind.__name__))
    both = requests.keys() & answers.keys()
    if both:
        raise ValueError(f"types of requests and of answers have the same names: {', '.join(sorted(both))}")
    return dict(sorted((requests | answers).items()))


def _operation(operation: Operation, examples: dict[str, dict[str, Any]]) -> Document:
    responses: Document = {"200": _answer(operation)}
    responses |= {str(status): {"$ref": f"#/components/responses/Error{status}"} for status in sorted(operation.errors)}
    entry: Document = {
        "operationId": operation.name,
        "summary": operation.summary,
        "parameters": _parameters(operation),
        "responses": responses,
    }
    if operation.request is not None:
        shown = {name: {"value": body} for name, body in examples.get(operation.path, {}).items()}
        content = {"schema": _reference(operation.request), "examples": shown}
        entry["requestBody"] = {"required": True, "content": {"application/json": content}}
    if not operation.needs_key:
        entry["security"] = []
    return entry


def _parameters(operation: Operation) -> list[Document]:
    named = []
    if operation.path.endswith("{id}"):
        schema = {"type": "string", "minLength": 1}
        text = "A model's id, percent-encoded; it may hold slashes."
        named.append({"name": "id", "in": "path", "required": True, "schema": schema, "description": text})
    for name, row in _documented_request_headers().items():
        if row.place is Place.EVERYWHERE or operation.asks_engine:
            named.append({"$ref": f"#/components/parameters/{name}"})
    return named


def _documented_request_headers() -> dict[str, HeaderRow]:
    """`Authorization` is said by the security scheme; OpenAPI ignores it among parameters."""
    return {name: row for name, row in REQUEST_HEADERS.items() if name != "Authorization"}


def _parameter(name: str, row: HeaderRow) -> Document:
    return {"name": name, "in": "header", "required": False, "description": row.meaning, "schema": row.schema}


def _answer(operation: Operation) -> Document:
    content: Document = {"application/json": {"schema": _reference(operation.answer)}}
    description = "The answer."
    if operation.chunk is not None:
        content["text/event-stream"] = {"schema": _event(operation.chunk)}
        description = f"The answer. {_STREAM_DESCRIPTION}"
    places = {Place.EVERYWHERE}
    if operation.request is not None:
        places.add(Place.WITH_BODY)
    if operation.asks_engine:
        places.add(Place.WORKING)
    return {"description": description, "headers": _headers(places), "content": content}


def _event(chunk: type) -> Document:
    data = {
        "type": "string",
        "contentMediaType": "application/json",
        "contentSchema": {"anyOf": [_reference(chunk), _reference(ErrorBody)]},
    }
    return {"type": "object", "properties": {"data": {"anyOf": [{"const": "[DONE]"}, data]}}, "required": ["data"]}


def _error_response(status: int) -> Document:
    rows = rows_of(status)
    places = {Place.EVERYWHERE, Place.ERROR}
    if any(row.retry is Retry.LATER for row in rows):
        places.add(Place.RETRY_LATER)
    if status == 401:
        places.add(Place.NO_KEY)
    if status == 405:
        places.add(Place.NOT_ALLOWED)
    member = {
        "type": "object",
        "properties": {
            "type": {"enum": sorted({row.type for row in rows})},
            "code": {"enum": sorted({row.code for row in rows})},
        },
    }
    schema = {"allOf": [_reference(ErrorBody), {"type": "object", "properties": {"error": member}}]}
    codes = ", ".join(f"`{row.code}`" for row in rows)
    content = {"application/json": {"schema": schema}}
    return {"description": f"{codes}.", "headers": _headers(places), "content": content}


def _headers(places: set[Place]) -> Document:
    return {
        name: {"$ref": f"#/components/headers/{name}"} for name, row in RESPONSE_HEADERS.items() if row.place in places
    }


def _header(row: HeaderRow) -> Document:
    return {"description": row.meaning, "required": row.is_certain, "schema": row.schema}


def _reference(kind: type) -> Document:
    return {"$ref": f"#/components/schemas/{kind.__name__}"}
