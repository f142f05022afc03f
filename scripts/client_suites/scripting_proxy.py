"""A proxy before the scripted engine: it adds `x_script` to chat requests and passes all else on as it is.

Answers go through byte by byte as they come, so that a client sees the server's own framing and errors; a client that
goes away takes its connection to the server with it, and an answer that breaks off does so for the client too.
"""

import http.client
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

from script_choice import choose_script

HOP_HEADERS = {"connection", "keep-alive", "transfer-encoding", "content-length", "host"}
CHAT = "/v1/chat/completions"
READ_BYTES = 65536
PATIENCE_S = 120.0


def with_script(body: bytes) -> bytes:
    """Returns the body of a chat request with a script in it; a body that is no JSON object, or has one, as it is."""
    try:
        request = json.loads(body)
    except ValueError:
        return body
    if not isinstance(request, dict) or "x_script" in request:
        return body
    return json.dumps(request | {"x_script": choose_script(request)}).encode()


class ScriptingHandler(BaseHTTPRequestHandler):
    """One connection of a client; `upstream_port` is the server's."""

    upstream_port: ClassVar[int] = 0
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._pass_on(None)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self._pass_on(with_script(body) if self.path == CHAT else body)

    def _pass_on(self, body: bytes | None) -> None:
        upstream = http.client.HTTPConnection("127.0.0.1", self.upstream_port, timeout=PATIENCE_S)
        headers = {name: value for name, value in self.headers.items() if name.lower() not in HOP_HEADERS}
        try:
            upstream.request(self.command, self.path, body, headers)
            answer = upstream.getresponse()
            self.send_response_only(answer.status, answer.reason)
            for name, value in answer.getheaders():
                if name.lower() not in HOP_HEADERS:
                    self.send_header(name, value)
            self.send_header("Transfer-Encoding", "chunked")
            self.send_header("Connection", "close")
            self.end_headers()
            while part := answer.read1(READ_BYTES):
                self.wfile.write(b"%x\r\n%b\r\n" % (len(part), part))
                self.wfile.flush()
            self.wfile.write(b"0\r\n\r\n")
        except (ConnectionError, http.client.IncompleteRead):
            self.close_connection = True
        finally:
            upstream.close()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """The server has a log of its own."""


@contextmanager
def scripting_proxy(upstream_port: int) -> Iterator[int]:
    """Runs the proxy; yields its port."""
    handler = type("Handler", (ScriptingHandler,), {"upstream_port": upstream_port})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, name="scripting proxy")
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()
