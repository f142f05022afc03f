"""TLS as an operator sees it: flags, the ready text, errors at the start, and a renewal with several processes."""

import subprocess
import sys
from pathlib import Path

import pytest

from harness.certificates import Pair, connect, make_pair, served_name, trusting
from harness.server_process import PROGRAM, ServerProcess
from harness.server_thread import wait_until

pytestmark = pytest.mark.process

BODY = (
    b'{"model":"scripted","stream":true,"messages":[{"role":"user","content":"hi"}],'
    b'"x_script":{"pieces":["61","62"],"delays_s":[0,%b]}}'
)
HEAD = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Pair]:
    folder = tmp_path_factory.mktemp("pairs")
    return {name: make_pair(folder, name) for name in ("old", "new")}


def failed_start(*flags: str) -> str:
    command = [sys.executable, "-c", PROGRAM, "serve", "--engine", "scripted", "--port", "0", "--admin-port", "0"]
    ended = subprocess.run([*command, *flags], capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 1
    assert "Traceback" not in ended.stderr
    return " ".join(ended.stderr.split())


def test_a_certificate_without_its_key_is_refused_at_the_start(pairs: dict[str, Pair]) -> None:
    assert "tls.key_file is not set" in failed_start("--tls-cert", str(pairs["old"].certificate))
    said = failed_start("--tls-cert", str(pairs["old"].certificate), "--tls-key", str(pairs["new"].key))
    assert "does not belong to the certificate" in said


def test_a_renewal_reaches_every_process_and_ends_no_stream(pairs: dict[str, Pair], tmp_path: Path) -> None:
    place = Pair("place", tmp_path / "tls.pem", tmp_path / "tls.key")
    pairs["old"].install(place)
    context = trusting(*pairs.values())
    files = {"tls__certificate_file": place.certificate, "tls__key_file": place.key}
    with ServerProcess("scripted", server__workers=2, **files) as server:
        assert f"ready on https://127.0.0.1:{server.port}" in "".join(server.lines)
        streams = [connect(server.port, context) for _ in range(8)]
        for number, stream in enumerate(streams):
            body = BODY % (b"60" if number % 2 else b"0.0")
            stream.sendall(HEAD % len(body) + body)
        held, received = streams[1::2], {}
        for stream in held:
            received[stream] = b""
            while b'"a"' not in received[stream]:
                received[stream] += stream.recv(65536)
        pairs["new"].install(place)
        wait_until(lambda: all(served_name(server.port, context) == "new" for _ in range(8)), "both processes renewed")
        for stream in held:
            stream.settimeout(0.05)
            with pytest.raises(TimeoutError):  # neither closed nor reset: it waits for its next token
                while data := stream.recv(65536):
                    assert b'"finish_reason":"' not in data
                raise AssertionError("the stream was dropped")
        for stream in streams:
            stream.close()
