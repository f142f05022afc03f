"""How a request is sent and read, in words, where that is out of the ordinary and no `curl` command shows it. Pure."""

from tidegate.conformance.ask import PLAIN, Ask, Leaving, Manner

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
