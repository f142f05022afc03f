"""Writes one event stream: take, send, until it ends.

The loop does nothing else for a token: no timer, no task, no clock. `stream_watch` looks at all streams from outside.
"""

import asyncio
import logging

from tidegate.contract.error_table import error_answer
from tidegate.errors import InternalError, ServeError
from tidegate.http.asgi import Send
from tidegate.http.exchange import Exchange
from tidegate.http.sse import COMMENT, PING, STREAM_HEADERS, data_frame
from tidegate.http.stream_watch import StreamMark, StreamWatch
from tidegate.serving.reply import Headers, StreamReply

_log = logging.getLogger(__name__)

# The HTTP/1 writer of granian queues up to 16 pieces beside the socket, and drops them when a body ends unfinished.
# Pieces it has taken after the error event prove that the event has left the queue.
_NUM_TRAILING_COMMENTS = 24


async def write_stream(exchange: Exchange, reply: StreamReply, watch: StreamWatch) -> None:
    """Sends `reply` to its end, and closes it with the cause of that end, whatever happens.

    A failure after the status becomes one error event, and then the response is left unfinished: the server closes
    the connection. Cancelling this says that the client has gone or that the stream is stuck.
    """
    task = asyncio.current_task()
    assert task is not None
    mark = StreamMark(reply, task, exchange.head.line)
    watch.add(mark)
    cause = "shutdown"
    try:
        mark.num_acts += 1
        await exchange.start(200, _stream_headers(reply.headers))
        mark.num_acts += 1
        failure = await _pump(reply, exchange, mark)
        if failure is None:
            await _send_counted(exchange.send, b"", mark, more_body=False)
        else:
            await _send_failure(exchange.send, failure, mark)
        cause = "done"
    except asyncio.CancelledError:
        if mark.cause is None and exchange.is_gone:
            cause = "client_gone"
        elif mark.cause is not None:
            cause = mark.cause
            exchange.is_gone = True
        raise
    finally:
        watch.discard(mark)
        reply.close(cause)


async def _pump(reply: StreamReply, exchange: Exchange, mark: StreamMark) -> ServeError | None:
    """Returns None at the end of the stream, else what broke it."""
    take, send = reply.take, exchange.send
    try:
        while True:
            data = await take()
            if data is None:
                return None
            if not data:
                if mark.ping_at != mark.num_acts:
                    continue
                data = PING
            mark.num_acts += 1
            await send({"type": "http.response.body", "body": data, "more_body": True})
            mark.num_acts += 1
    except ServeError as error:
        return error.with_traceback(None)
    except Exception:
        _log.exception("a stream broke", extra=exchange.log_labels)
        return InternalError("The server failed while it was answering.")


async def _send_failure(send: Send, error: ServeError, mark: StreamMark) -> None:
    await _send_counted(send, data_frame(error_answer(error, nothing_sent=False).body), mark)
    for _ in range(_NUM_TRAILING_COMMENTS):
        await _send_counted(send, COMMENT, mark)


async def _send_counted(send: Send, body: bytes, mark: StreamMark, *, more_body: bool = True) -> None:
    mark.num_acts += 1
    await send({"type": "http.response.body", "body": body, "more_body": more_body})
    mark.num_acts += 1


def _stream_headers(given: Headers) -> Headers:
    taken = {name.lower() for name, _ in given}
    return [*(pair for pair in STREAM_HEADERS if pair[0].lower() not in taken), *given]
