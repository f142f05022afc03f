"""A request as a `curl` command, so that anyone can see by hand what a case saw. Pure.

What curl cannot do (going away in the middle, reading slowly, broken framing) is said in a comment before it.
"""

import base64
from shlex import quote
from urllib.parse import urlsplit

from tidegate.conformance.ask import PLAIN, Ask, Leaving, Manner
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


_LEAVING = {
    Leaving.AFTER_REQUEST: "goes away as soon as the request is sent",
    Leaving.HALF_REQUEST: "goes away when half of the body is sent",
    Leaving.AFTER_HEAD: "goes away when status and headers are read",
}


def describe_manner(manner: Manner) -> list[str]:
    """Returns in words how a request is sent and its answer read, where that is out of the ordinary."""
    words: list[str] = []
    if manner.send_bytes is not None:
        words.append(f"sends at most {manner.send_bytes} bytes in a write")
    if manner.send_pause_s:
        words.append(f"waits {manner.send_pause_s:g} s between two writes")
    if manner.read_bytes is not None:
        words.append(f"reads at most {manner.read_bytes} bytes at once")
    if manner.read_pause_s:
        words.append(f"waits {manner.read_pause_s:g} s between two reads")
    if manner.receive_buffer_bytes is not None:
        words.append(f"has a receive buffer of {manner.receive_buffer_bytes} bytes")
    if manner.pause_after_events is not None:
        words.append(f"reads nothing for {manner.pause_s:g} s after {_events(manner.pause_after_events)}")
    if manner.leaving is not None:
        words.append(_describe_leaving(manner, manner.leaving))
    if manner.with_reset:
        words.append("resets the connection")
    if manner.timeout_s is not None:
        words.append(f"waits at most {manner.timeout_s:g} s")
    return words


def _describe_leaving(manner: Manner, leaving: Leaving) -> str:
    if leaving is Leaving.AFTER_EVENTS:
        return f"goes away after {_events(manner.events)}"
    if leaving is Leaving.AFTER_PAUSE:
        return f"goes away after {manner.leave_after_s:g} s"
    if leaving is Leaving.AFTER_OTHERS:
        return f"goes away when the others are answered, after {manner.leave_after_s:g} s at the latest"
    return _LEAVING[leaving]


def _events(number: int) -> str:
    return "1 event" if number == 1 else f"{number} events"


def describe_ask(ask: Ask) -> list[str]:
    """Returns in words what of an ask a single `curl` does not show."""
    words = [] if ask.manner == PLAIN else describe_manner(ask.manner)
    if ask.copies > 1:
        words.insert(0, f"is sent {ask.copies} times at once")
    if ask.is_endless:
        words.append("with `ignore_eos` and `min_tokens` where the server obeys them")
    if ask.delay_s:
        words.append(f"is sent {ask.delay_s:g} s after the others of its wave")
    if ask.last_wave is not None:
        words.append("goes on beside what is asked next")
    if ask.until is not None:
        words.append(f"is sent again until the answer is right, for at most {ask.until.within_s:g} s")
    return words
