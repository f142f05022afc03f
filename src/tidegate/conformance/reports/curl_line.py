"""A request as a `curl` command, so that anyone can see by hand what a case saw. Pure.

What curl cannot do (going away in the middle, reading slowly, broken framing) `ask_words.py` says.
"""

import base64
from shlex import quote
from urllib.parse import urlsplit

from tidegate.reporting.visible_text import visible

MAX_CURL_BODY_BYTES = 8192
"""A larger body is named, not spelled."""
_CURLS_OWN = {"user-agent", "accept", "host", "content-length"}


def curl_line(method: str, url: str, request: bytes, *, max_body_bytes: int = MAX_CURL_BODY_BYTES) -> str:
    """Returns the command for a request as it was sent, credentials replaced by the shell's `$API_KEY`."""
    head, _, body = request.partition(b"\r\n\r\n")
    words = ["curl", "-sSiN"]
    if method != ("POST" if body else "GET"):
        words += ["-X", quote(method)]
    words.append(quote(url))
    for line in _odd_headers(head.decode("latin-1").split("\r\n")[1:], url, body):
        words += ["-H", _quote_header(line)]
    if not body:
        return " ".join(words)
    words += ["--data-binary", "@-"]
    text = _as_text(body)
    if len(body) > max_body_bytes:
        return f"# the body of {len(body)} bytes is to be put into the file request-body\n" + " ".join(
            [*words[:-1], "@request-body"]
        )
    if text is None:
        return f"printf %s {base64.b64encode(body).decode()} | base64 -d | " + " ".join(words)
    return " ".join([*words[:-1], quote(text)])


def _odd_headers(lines: list[str], url: str, body: bytes) -> list[str]:
    """Returns the header lines that curl would not send by itself, and those that take its own away."""
    found: list[str] = []
    seen: set[str] = set()
    for line in lines:
        name, _, value = line.partition(":")
        key, value = name.strip().lower(), value.strip()
        seen.add(key)
        is_own = key in _CURLS_OWN
        if key == "host":
            is_own = value == urlsplit(url).netloc
        elif key == "content-length":
            is_own = value == str(len(body))
        if not is_own:
            found.append(f"{name}: {value}" if value else f"{name};")
    if body and "content-type" not in seen:
        found.append("Content-Type:")
    if "host" not in seen:
        found.append("Host:")
    return found


def _quote_header(line: str) -> str:
    if "REDACTED" not in line:
        return quote(line)
    before, _, after = line.partition("REDACTED")
    return quote(before) + '"$API_KEY"' + (quote(after) if after else "")


def _as_text(body: bytes) -> str | None:
    """Returns the body where it survives quotes, terminals and copying; None where not. curl takes `@` for a file."""
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        return None
    is_plain = visible(text, keeps="\n\t") == text
    return text if is_plain and not text.startswith("@") else None
