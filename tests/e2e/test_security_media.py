"""Media, files and embeddings in requests: refused by name, never opened, never fetched, never decoded."""

import base64
import json
import socket
import struct
import threading
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.raw_http import Answer, request
from harness.server_thread import ServerThread

CHAT, COMPLETION, TOKENIZE, DETOKENIZE = "/v1/chat/completions", "/v1/completions", "/v1/tokenize", "/v1/detokenize"


class Trap:
    """A listener on loopback that counts who connects."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self.num_visitors = 0
        self._thread = threading.Thread(target=self._accept, name="trap")
        self._thread.start()

    def _accept(self) -> None:
        while True:
            try:
                visitor, _ = self._socket.accept()
            except OSError:
                return
            self.num_visitors += 1
            visitor.close()

    def probe(self) -> None:
        """Connects to it, so that a trap that catches nothing is noticed."""
        with socket.create_connection(("127.0.0.1", self.port)) as visitor:
            assert visitor.recv(1) == b""

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join(10)


@pytest.fixture(scope="module")
def server() -> Iterator[ServerThread]:
    with ServerThread("simulated") as running:
        yield running


@pytest.fixture(scope="module")
def trap() -> Iterator[Trap]:
    found = Trap()
    yield found
    found.close()


@pytest.fixture(autouse=True)
def _alive_and_unmoved(server: ServerThread, trap: Trap) -> Iterator[None]:
    before = (trap.num_visitors, num_steps(server))
    yield
    assert (trap.num_visitors, num_steps(server)) == before
    assert ask(server, "hello", max_tokens=1).status == 200
    assert server.baseline().blocks_used == 0


def num_steps(server: ServerThread) -> int:
    num: int = server.look(lambda: server.running.supervisor.engine.statistics().gauges.num_steps)
    return num


def ask(server: ServerThread, content: Any, route: str = CHAT, **fields: Any) -> Answer:
    messages = [{"role": "user", "content": content}]
    return request(server.port, "POST", route, {"model": server.model, "messages": messages, **fields})


def urls(port: int, secret: Path) -> list[str]:
    """Addresses of the trap in every spelling, and of a file."""
    here = f":{port}/x.png"
    hosts = ("127.0.0.1", "localhost", "127.1", "0", "0.0.0.0", "2130706433", "0x7f000001", "0177.0.0.1", "[::1]")
    mapped = (
        "[::ffff:127.0.0.1]",
        "[0:0:0:0:0:ffff:7f00:1]",
        "user@127.0.0.1",
        "example.com@127.0.0.1",
        "127。0。0。1",
    )
    addresses = [f"http://{host}{here}" for host in (*hosts, *mapped)]
    odd = [f"https://127.0.0.1{here}", f"HTTP://127.0.0.1{here}", f"http:\\\\127.0.0.1{here}", f"//127.0.0.1{here}"]
    more = [f"http://example.com\\@127.0.0.1{here}", f"http://127.0.0.1{here}#@example.com", f"ftp://127.0.0.1{here}"]
    cloud = ["http://169.254.169.254/latest/meta-data/", "http://10.0.0.1/", "http://100.64.0.1/"]
    files = [f"file://{secret}", f"FILE://{secret}", f"file:{secret}", str(secret), "../../etc/passwd", "/dev/zero"]
    return [*addresses, *odd, *more, *cloud, *files, "", " ", "data:", "data:,", "data:image/png;base64,!!!"]


def parts(url: str) -> list[dict[str, Any]]:
    """One content part of each kind that can name an address, those of other servers included."""
    return [
        {"type": "image_url", "image_url": {"url": url}},
        {"type": "image_url", "image_url": {"url": url, "detail": "high"}},
        {"type": "image_url", "image_url": url},
        {"type": "input_image", "image_url": url},
        {"type": "audio_url", "audio_url": {"url": url}},
        {"type": "video_url", "video_url": {"url": url}},
        {"type": "video", "video": url},
        {"type": "input_audio", "input_audio": {"data": url, "format": "wav"}},
        {"type": "file", "file": {"file_data": url, "filename": url}},
        {"type": "file", "file": {"file_id": url}},
    ]


def check_refused(answer: Answer, place: str) -> None:
    assert answer.status in (400, 422), answer.body
    error = answer.json()["error"]
    assert error["code"] in ("unsupported_parameter", "invalid_value", "missing_field"), error
    assert error["param"].startswith(place), error
    assert answer.headers["x-should-retry"] == "false"


@pytest.mark.parametrize("route", [CHAT, TOKENIZE])
def test_no_address_in_a_message_is_ever_visited(  # SEC-12 SEC-13 SEC-14
    server: ServerThread, trap: Trap, route: str, tmp_path: Path
) -> None:
    secret = tmp_path / "secret.png"
    secret.write_text("not for callers")
    for url in urls(trap.port, secret):
        for part in parts(url):
            answer = ask(server, [{"type": "text", "text": "look"}, part], route)
            check_refused(answer, "messages[0].content")
            assert b"not for callers" not in answer.body


def test_the_trap_catches(trap: Trap) -> None:
    before = trap.num_visitors
    trap.probe()
    assert trap.num_visitors == before + 1
    trap.num_visitors = before


def zeros_png(side: int) -> bytes:
    """A PNG of `side` x `side` black pixels: some bytes that decode to `side` squared."""
    header = struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)
    packer = zlib.compressobj(9)
    rows = b"".join(packer.compress(bytes(side + 1)) for _ in range(min(side, 2000))) + packer.flush()

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


BOMBS = {
    "a png of a billion pixels": ("image/png", zeros_png(32_768)),
    "a png of nothing": ("image/png", b"\x89PNG\r\n\x1a\n"),
    "a tiff that says it is a png": ("image/png", b"II*\x00\xff\xff\xff\x7f"),
    "an svg with an entity": ("image/svg+xml", b'<!DOCTYPE s [<!ENTITY a SYSTEM "file:///etc/passwd">]><svg>&a;</svg>'),
    "a gzip bomb": ("image/png", zlib.compress(bytes(8_000_000), 9)),
    "a wav without end": ("audio/wav", b"RIFF\xff\xff\xff\xffWAVEfmt \x10\x00\x00\x00\x01\x00\xff\xff"),
}


@pytest.mark.parametrize("name", BOMBS)
@pytest.mark.parametrize("route", [CHAT, TOKENIZE])
def test_data_of_media_is_refused_unread(server: ServerThread, route: str, name: str) -> None:  # SEC-14 SEC-15
    kind, raw = BOMBS[name]
    text = base64.b64encode(raw).decode()
    for part in parts(f"data:{kind};base64,{text}"):
        check_refused(ask(server, [part], route), "messages[0].content")
    sound = {"type": "input_audio", "input_audio": {"data": text, "format": "mp3"}}
    check_refused(ask(server, [sound], route), "messages[0].content")


@pytest.mark.parametrize("role", ["system", "developer", "assistant", "tool", "function"])
def test_media_is_refused_under_every_role(server: ServerThread, role: str) -> None:  # SEC-12 SEC-13
    part = {"type": "image_url", "image_url": {"url": "file:///etc/hostname"}}
    message = {"role": role, "content": [part], "tool_call_id": "c", "name": "n"}
    body = {"model": server.model, "messages": [message, {"role": "user", "content": "a"}]}
    check_refused(request(server.port, "POST", CHAT, body), "messages[0].content")


LOST_INPUTS = ("prompt_embeds", "input_embeds", "multi_modal_data", "image_data", "audio_data", "video_data")
PICKLED = base64.b64encode(
    b"\x80\x04\x95\x1f\x00\x00\x00\x00\x00\x00\x00\x8c\x05posix\x94\x8c\x06system\x94\x93."
).decode()


@pytest.mark.parametrize("field", LOST_INPUTS)
@pytest.mark.parametrize("route", [CHAT, COMPLETION])
def test_input_that_would_have_to_be_unpacked_is_no_field(
    server: ServerThread, route: str, field: str
) -> None:  # SEC-16
    prompt = '"messages": [{"role": "user", "content": "a"}]' if route == CHAT else '"prompt": "a"'
    for value in (PICKLED, [PICKLED], {"shape": [2**40], "indices": [[-1]], "values": [1.0]}, [[1.0] * 64]):
        body = f'{{"model": "{server.model}", {prompt}, "{field}": {json.dumps(value)}}}'
        answer = request(server.port, "POST", route, body.encode())
        assert answer.status == 400, answer.body
        assert answer.json()["error"]["param"] == field


def test_no_embeddings_stand_in_for_a_prompt(server: ServerThread) -> None:  # SEC-16
    answer = request(server.port, "POST", COMPLETION, {"model": server.model, "prompt_embeds": PICKLED})
    assert (answer.status, answer.json()["error"]["code"]) == (400, "missing_field")
