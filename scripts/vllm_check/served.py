"""`tidegate serve --engine vllm` as people run it: asked, its engine process killed, asked again, drained.

served.py MODEL_FOLDER
"""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

OPTIONS = ("--engine-option", "dtype=bfloat16", "--engine-option", "enforce_eager=true")
START_S = 600.0


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


class Server:
    """The `tidegate` program beside this Python."""

    def __init__(self, folder: str) -> None:
        self.port, self.admin_port = free_port(), free_port()
        program = str(Path(sys.executable).with_name("tidegate"))
        ports = ("--port", str(self.port), "--admin-port", str(self.admin_port))
        state = ("--state-dir", tempfile.mkdtemp(prefix="tidegate-vllm-"))
        command = (program, "serve", "--engine", "vllm", folder, "--max-model-len", "2048", *OPTIONS, *ports, *state)
        self.process = subprocess.Popen(command)

    def ask(self, method: str, path: str, body: Any = None, *, admin: bool = False) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.admin_port if admin else self.port, timeout=300)
        try:
            connection.request(
                method, path, None if body is None else json.dumps(body), {"Content-Type": "application/json"}
            )
            answer = connection.getresponse()
            return answer.status, answer.read()
        except (OSError, http.client.HTTPException) as error:
            return 0, str(error).encode()
        finally:
            connection.close()

    def wait_ready(self) -> float:
        began = time.monotonic()
        while self.ask("GET", "/readyz", admin=True)[0] != 200:
            assert self.process.poll() is None, "the server ended by itself"
            assert time.monotonic() - began < START_S, "the server was not ready in time"
            time.sleep(0.2)
        return time.monotonic() - began


def chat(**fields: Any) -> Any:
    return {"model": "model", "messages": [{"role": "user", "content": "Say hello."}], "max_tokens": 12, **fields}


def check(server: Server) -> None:
    say(f"ready after {server.wait_ready():.0f} s")
    status, body = server.ask("POST", "/v1/chat/completions", chat(temperature=0, logprobs=True, top_logprobs=20))
    assert status == 200, body
    whole = json.loads(body)
    assert whole["usage"]["completion_tokens"] == 12
    assert len(whole["choices"][0]["logprobs"]["content"][0]["top_logprobs"]) == 20
    status, body = server.ask("POST", "/v1/chat/completions", chat(temperature=0, stream=True))
    text = "".join(
        json.loads(line[6:])["choices"][0]["delta"].get("content", "")
        for line in body.decode().splitlines()
        if line.startswith("data: {")
    )
    assert text == whole["choices"][0]["message"]["content"], text
    schema = {
        "type": "object",
        "properties": {"n": {"enum": [31]}},
        "required": ["n"],
        "additionalProperties": False,
    }
    named = {"type": "json_schema", "json_schema": {"name": "n", "schema": schema, "strict": True}}
    status, body = server.ask("POST", "/v1/chat/completions", chat(max_tokens=40, response_format=named))
    assert status == 200 and json.loads(json.loads(body)["choices"][0]["message"]["content"]) == {"n": 31}, body
    status, body = server.ask("POST", "/v1/chat/completions", chat(max_tokens=5000))
    assert (status, json.loads(body)["error"]["code"]) == (400, "context_length_exceeded"), body
    say("asked, streamed, constrained, refused")
    _check_death(server)
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(60) == 0, server.process.returncode
    say("drained, status 0")


def _check_death(server: Server) -> None:
    engine = json.loads(server.ask("GET", "/admin/v1/engine", admin=True)[1])
    os.kill(engine["process_id"], signal.SIGKILL)
    deadline = time.monotonic() + 10
    while server.ask("GET", "/readyz", admin=True)[0] == 200 and time.monotonic() < deadline:
        time.sleep(0.05)
    status, body = server.ask("POST", "/v1/chat/completions", chat())
    assert (status, json.loads(body)["error"]["code"]) == (503, "engine_unavailable"), body
    say(f"killed, told so, and ready again after {server.wait_ready():.0f} s")
    assert server.ask("POST", "/v1/chat/completions", chat())[0] == 200


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main() -> int:
    server = Server(sys.argv[1])
    try:
        check(server)
    except AssertionError as error:
        say(f"FAILED: {error}")
        return 1
    finally:
        if server.process.poll() is None:
            server.process.kill()
            server.process.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
