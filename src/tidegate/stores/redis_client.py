"""One client of Redis, as all our stores have it: bounded in connections and in time, and not connected yet."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from redis.asyncio import Redis

MAX_CONNECTIONS = 32


class RedisUnusable(Exception):
    """The client cannot be made. The message says what to do; it is for the operator."""


def connect_redis(url: str, *, setting: str, timeout_s: float, retries: bool = True) -> "Redis":
    """Returns a client. `setting` is what names the URL. Without `retries` no command is ever sent twice.

    Raises RedisUnusable for a URL that is none, and where the package `redis` is not installed.
    """
    try:
        from redis.asyncio import BlockingConnectionPool, Redis
        from redis.asyncio.retry import Retry
        from redis.backoff import NoBackoff
    except ImportError:
        raise RedisUnusable(f"{setting} needs the package redis: pip install 'tidegate[redis]'") from None
    options = {} if retries else {"retry": Retry(NoBackoff(), 0)}
    try:
        pool = BlockingConnectionPool.from_url(
            url,
            max_connections=MAX_CONNECTIONS,
            timeout=timeout_s,
            socket_timeout=timeout_s,
            socket_connect_timeout=timeout_s,
            **options,
        )
    except ValueError as error:
        raise RedisUnusable(f"{setting} is not a URL of Redis: {error}") from None
    return Redis(connection_pool=pool)
