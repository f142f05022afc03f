"""What `tidegate engines` says where the admin listener is not there, is none, or wants a credential."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner

from tidegate.cli import admin_client
from tidegate.cli.main import cli


def engines(*words: str) -> tuple[int, str]:
    found = CliRunner().invoke(cli, ["engines", *words])
    assert found.exception is None or isinstance(found.exception, SystemExit), found.exception
    return found.exit_code, found.output


@contextmanager
def answering(answer: bytes, seen: list[bytes] | None = None) -> Iterator[str]:
    """Listens, takes one request of one connection, and says `answer`; nothing, and stays, where that is empty."""
    is_over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            wires, _ = listener.accept()
            with wires:
                request = wires.recv(65536)
                if seen is not None:
                    seen.append(request)
                if not answer:
                    is_over.wait(30)
                wires.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            is_over.set()
            thread.join(30)


def whole(status: int, body: bytes) -> bytes:
    return b"HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n%b" % (status, len(body), body)


def test_where_nobody_listens_it_says_so_and_where_it_asked() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    code, words = engines("list", "--admin-url", f"http://127.0.0.1:{port}/")
    assert code == 1
    assert words.startswith(f"tidegate: no answer from the admin listener at http://127.0.0.1:{port}: ")
    assert "Is the server running? --admin-url says where." in words


def test_a_server_that_does_not_answer_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admin_client, "TIMEOUT_S", 0.05)
    with answering(b"") as url:
        code, words = engines("list", "--admin-url", url)
    assert (code, "timed out" in words) == (1, True)


ANSWERS: list[tuple[str, bytes, str]] = [
    ("no JSON", whole(200, b"<html>"), "is no admin listener: it answered 200 without JSON."),
    ("no object", whole(200, b"[]"), "is no admin listener: its answer is no object."),
    ("no HTTP", b"SSH-2.0-x\r\n", "no answer from the admin listener at"),
    ("nothing", b"HTTP/1.1", "no answer from the admin listener at"),
    ("too much", whole(200, b"1" * 101), "is no admin listener: its answer has more than 100 bytes."),
    ("a refusal", whole(503, b'{"error":{"message":"No."}}'), "tidegate: No. (status 503)\n"),
    ("a refusal without words", whole(500, b"{}"), "tidegate: refused (status 500)\n"),
    (
        "another credential",
        whole(401, b'{"error":{"message":"No."}}'),
        "wants the admin credential (status 401): --admin-token-file names its file.\n",
    ),
    (
        "another listener",
        whole(404, b'{"error":{"message":"No route has this path."}}'),
        "is no admin listener: it does not know /admin/v1/engine. --admin-url says where that is.\n",
    ),
    ("control characters", whole(400, b'{"error":{"message":"\\u001b[1mNo"}}'), "[1mNo (status 400)"),
]


@pytest.mark.parametrize(("answer", "words"), [row[1:] for row in ANSWERS], ids=[row[0] for row in ANSWERS])
def test_an_answer_that_is_none_is_told(answer: bytes, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admin_client, "MAX_ANSWER_BYTES", 100)
    with answering(answer) as url:
        code, said = engines("list", "--admin-url", url)
    assert (code, words in said) == (1, True), said
    assert "\x1b" not in said


@pytest.mark.parametrize(
    "url", ["nonsense", "ftp://a:1", "http://", "http://a:99999", "http://[::1", "http://127.0.0.1:9464/admin"]
)
def test_an_address_that_is_none_is_told(url: str) -> None:
    code, words = engines("list", "--admin-url", url)
    assert (code, "is no URL of an admin listener, such as http://127.0.0.1:9464." in words) == (1, True), words


CREDENTIALS: list[tuple[str, bytes | None, str]] = [
    ("no file", None, "cannot be read: No such file or directory."),
    ("no text", b"\xff\xfe", "is not ASCII text."),
    ("nothing", b" \n", "is not one line of at most 20 characters."),
    ("two lines", b"one\nX-Other: two", "is not one line of at most 20 characters."),
    ("without end", b"x" * 21, "is not one line of at most 20 characters."),
]


@pytest.mark.parametrize(("text", "words"), [row[1:] for row in CREDENTIALS], ids=[row[0] for row in CREDENTIALS])
def test_a_credential_that_is_none_is_told(
    text: bytes | None, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admin_client, "MAX_TOKEN_BYTES", 20)
    file = tmp_path / "token"
    if text is not None:
        file.write_bytes(text)
    code, said = engines("list", "--admin-token-file", str(file))
    assert (code, words in said) == (1, True), said


def test_the_credential_and_a_strange_name_are_sent_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("secret\n", "utf-8")
    seen: list[bytes] = []
    with answering(whole(404, b'{"error":{"message":"No engine has this name."}}'), seen) as url:
        code, said = engines("drain", "a/b ?c", "--admin-url", url, "--admin-token-file", str(tmp_path / "token"))
    assert (code, said) == (
        1,
        "tidegate: No engine has this name. (status 404) `tidegate engines list` shows the names.\n",
    )
    assert seen[0].startswith(b"POST /admin/v1/engines/a%2Fb%20%3Fc/drain HTTP/1.1\r\n")
    assert b"Authorization: Bearer secret\r\n" in seen[0]
