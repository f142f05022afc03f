"""AdminClient: the admin listener of a running server, as commands speak to it."""

import http.client
import json
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tidegate.cli.settings import Settings
from tidegate.observability.redact import clean_text

CONNECT_TIMEOUT_S = 10.0
TIMEOUT_S = 660.0
"""Longer than the server lets an answer wait."""
MAX_ANSWER_BYTES = 16 * 1024 * 1024
MAX_TOKEN_BYTES = 4096
_NO_ROUTE = "No route has this path."


class AdminFault(Exception):
    """What was asked was not done; the message says why."""


class AdminClient:
    """`token` is the credential of the admin listener; None where it needs none."""

    def __init__(self, url: str, token: str | None) -> None:
        try:
            parts = urlsplit(url)
            self._host, self._port = parts.hostname or "", parts.port
        except ValueError:
            parts, self._host = urlsplit(""), ""
        if parts.scheme not in ("http", "https") or not self._host or parts.path.strip("/"):
            raise AdminFault(f"{clean_text(url)} is no URL of an admin listener, such as http://127.0.0.1:9464.")
        self._is_tls = parts.scheme == "https"
        self._url = f"{parts.scheme}://{clean_text(parts.netloc.rpartition('@')[2])}"
        self._token = token

    @classmethod
    def of(cls, settings: Settings, url: str | None, token_file: Path | None) -> "AdminClient":
        """Returns the client of the server with these settings, unless `url` names another. Raises AdminFault."""
        server = settings.server
        host = "127.0.0.1" if server.admin_host in ("0.0.0.0", "::") else server.admin_host
        host = f"[{host}]" if ":" in host else host
        named = token_file or (Path(settings.auth.admin_token_file) if settings.auth.admin_token_file else None)
        return cls(url or f"http://{host}:{server.admin_port}", None if named is None else _read_token(named))

    def call(self, method: str, path: str, body: dict[str, Any] | None) -> dict[str, Any]:
        """Returns the answer's JSON. `path` is quoted already. Raises AdminFault when the server refuses, or nobody
        answers.
        """
        kind = http.client.HTTPSConnection if self._is_tls else http.client.HTTPConnection
        headers = {"Content-Type": "application/json"} if body is not None else {}
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token}"
        connection = kind(self._host, self._port, timeout=CONNECT_TIMEOUT_S)
        try:
            connection.connect()
            connection.sock.settimeout(TIMEOUT_S)
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            status, text = answer.status, answer.read(MAX_ANSWER_BYTES + 1)
        except (OSError, http.client.HTTPException) as error:
            raise AdminFault(
                f"no answer from the admin listener at {self._url}: {error or type(error).__name__}. Is the server "
                "running? --admin-url says where."
            ) from None
        finally:
            connection.close()
        if len(text) > MAX_ANSWER_BYTES:
            raise AdminFault(f"{self._url} is no admin listener: its answer has more than {MAX_ANSWER_BYTES} bytes.")
        return self._read(path, status, text)

    def _read(self, path: str, status: int, text: bytes) -> dict[str, Any]:
        try:
            answer = json.loads(text)
        except ValueError:
            raise AdminFault(f"{self._url} is no admin listener: it answered {status} without JSON.") from None
        if not isinstance(answer, dict):
            raise AdminFault(f"{self._url} is no admin listener: its answer is no object.")
        if status >= 400:
            error = answer.get("error")
            message = str(error.get("message") or "refused") if isinstance(error, dict) else "refused"
            raise AdminFault(self._words(path, status, message))
        return answer

    def _words(self, path: str, status: int, message: str) -> str:
        """Returns why the server refused, and what may help."""
        if status == 401:
            return f"{self._url} wants the admin credential (status 401): --admin-token-file names its file."
        if message == _NO_ROUTE:
            return f"{self._url} is no admin listener: it does not know {path}. --admin-url says where that is."
        hint = " `tidegate engines list` shows the names." if status == 404 else ""
        return f"{clean_text(message)} (status {status}){hint}"


def _read_token(file: Path) -> str:
    try:
        with file.open("rb") as stream:
            text = stream.read(MAX_TOKEN_BYTES + 1)
        token = text.decode("ascii").strip()
    except OSError as error:
        raise AdminFault(f"the credential in {file} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise AdminFault(f"the credential in {file} is not ASCII text.") from None
    if not token or not token.isprintable() or len(text) > MAX_TOKEN_BYTES:
        raise AdminFault(f"the credential in {file} is not one line of at most {MAX_TOKEN_BYTES} characters.")
    return token
