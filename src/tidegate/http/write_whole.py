"""Writes one response that is whole already."""

from tidegate.contract import headers as names
from tidegate.http.exchange import Exchange
from tidegate.serving.reply import WholeReply


async def write_whole(exchange: Exchange, reply: WholeReply) -> None:
    """Sends status, headers and body. The body is JSON unless the reply's headers say otherwise."""
    headers = list(reply.headers)
    if not any(name.lower() == "content-type" for name, _ in headers):
        headers.append((names.CONTENT_TYPE, names.JSON_TYPE))
    headers.append(("Content-Length", str(len(reply.body))))
    await exchange.start(reply.status, headers)
    await exchange.finish(reply.body)


async def write_allowed(exchange: Exchange, allow: tuple[str, ...]) -> None:
    """Answers OPTIONS: 204 with the methods of the route."""
    await exchange.start(204, [(names.ALLOW, ", ".join(allow))])
    await exchange.finish()
