"""A small right server of embeddings: vectors of byte pairs, float and base64, with usage. What mutants of embeddings
stand before, and the only model that it serves is its own.
"""

import base64
import hashlib
import json
import math
import struct
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

MODEL = "embedder"
NUM_DIMENSIONS = 32
_MEMBERS = {"input", "model", "encoding_format", "dimensions", "user"}


class Refusal(Exception):
    """The message, and the member that is wrong."""

    def __init__(self, message: str, param: str | None) -> None:
        super().__init__(message)
        self.param = param


class EmbeddingsServer:
    """Used as a context manager; `port` is where it listens."""

    def __enter__(self) -> "EmbeddingsServer":
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), name="embeddings server")
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def port(self) -> int:
        return self._server.server_address[1]


class _Handler(BaseHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name that the base class gives it
        """Says nothing."""

    def do_GET(self) -> None:
        model = {"id": MODEL, "object": "model", "created": 1, "owned_by": "tests"}
        self._say(200, {"object": "list", "data": [model]})

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers.get("content-length", "0")))
        try:
            if self.path != "/v1/embeddings":
                self._refuse(404, "No route has this path.", None)
            else:
                self._say(200, embed(json.loads(data)))
        except ValueError:
            self._refuse(400, "The body is not JSON.", None)
        except Refusal as refusal:
            self._refuse(400, str(refusal), refusal.param)

    def _refuse(self, status: int, message: str, param: str | None) -> None:
        error = {"message": message, "type": "invalid_request_error", "param": param, "code": "invalid_value"}
        self._say(status, {"error": error})

    def _say(self, status: int, value: Any) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def embed(body: Any) -> dict[str, Any]:
    """Returns the answer. Raises Refusal."""
    if not isinstance(body, dict):
        raise Refusal("The body is no object.", None)
    for name in sorted(body.keys() - _MEMBERS):
        raise Refusal(f"{name}: unknown", name)
    if body.get("model") != MODEL:
        raise Refusal("model: not served", "model")
    inputs = _inputs(body.get("input"))
    form = body.get("encoding_format", "float")
    if form not in ("float", "base64"):
        raise Refusal("encoding_format: float or base64", "encoding_format")
    size = body.get("dimensions", NUM_DIMENSIONS)
    if type(size) is not int or not 1 <= size <= NUM_DIMENSIONS:
        raise Refusal(f"dimensions: 1 to {NUM_DIMENSIONS}", "dimensions")
    rows = [
        {"object": "embedding", "index": index, "embedding": _written(_vector(tokens, size), form)}
        for index, tokens in enumerate(inputs)
    ]
    num_tokens = sum(map(len, inputs))
    usage = {"prompt_tokens": num_tokens, "total_tokens": num_tokens}
    return {"object": "list", "data": rows, "model": MODEL, "usage": usage}


def _inputs(value: Any) -> list[list[int]]:
    if isinstance(value, str) or (isinstance(value, list) and value and all(type(part) is int for part in value)):
        value = [value]
    if not isinstance(value, list) or not value:
        raise Refusal("input: a text, token ids, or a list of either", "input")
    return [_tokens(part, index) for index, part in enumerate(value)]


def _tokens(part: Any, index: int) -> list[int]:
    tokens = list(part.encode()) if isinstance(part, str) else part
    if not isinstance(tokens, list) or not tokens or any(type(token) is not int or token < 0 for token in tokens):
        raise Refusal(f"input[{index}]: empty, or of a wrong kind", f"input[{index}]")
    return tokens


def _vector(tokens: list[int], size: int) -> list[float]:
    values = [0.0] * NUM_DIMENSIONS
    for pair in zip([0, *tokens], tokens, strict=False):
        digest = hashlib.sha256(repr(pair).encode()).digest()
        for place in range(NUM_DIMENSIONS):
            values[place] += digest[place] / 127.5 - 1.0
    length = math.sqrt(sum(value * value for value in values[:size])) or 1.0
    return [float(number) for number in struct.unpack(f"<{size}f", _floats([v / length for v in values[:size]]))]


def _floats(values: list[float]) -> bytes:
    return struct.pack(f"<{len(values)}f", *values)


def _written(values: list[float], form: str) -> Any:
    return base64.b64encode(_floats(values)).decode() if form == "base64" else values
