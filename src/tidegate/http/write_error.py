"""Writes a failure whose status is not sent yet, in the one shape of CONTRACT.md section 3."""

from tidegate.contract.error_table import error_answer
from tidegate.errors import ServeError
from tidegate.http.exchange import Exchange
from tidegate.http.write_whole import write_whole
from tidegate.serving.reply import WholeReply


async def write_error(exchange: Exchange, error: ServeError, *, queue_full_status: int) -> None:
    """Sends the status, headers and body that the error table gives for `error`."""
    answer = error_answer(error, queue_full_status=queue_full_status)
    exchange.error_code = answer.code
    await write_whole(exchange, WholeReply(answer.body, answer.status, answer.headers))
