"""What a Redis says of itself at the start of a server: whether our scripts can ever run there.

One that is not there is no fault: it may come. One that answers, and is of a kind that will never do, is: a node of a
cluster, a Sentinel, a password that is wrong or missing, a user that may not. One that will do when somebody acts (a
replica, no memory left) is a warning, and so is one that forgets what it was told.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tidegate.observability.redact import clean_text
from tidegate.stores.redis_client import RedisUnusable

if TYPE_CHECKING:
    from redis import Redis

CHECK_TIMEOUT_S = 1.0
MAX_CHARS = 200
_PROBE_MS = 1000
_PROBE = f"redis.call('SET', KEYS[1], '1', 'PX', {_PROBE_MS}) return redis.call('TIME')"
"""What every script of ours does: it writes, under a key of ours, and asks for the time."""
_CLUSTER = "is a node of a Redis Cluster, which is not supported: use a Redis of its own"
_NEVER = {
    "MovedError": _CLUSTER,
    "AskError": _CLUSTER,
    "ClusterDownError": _CLUSTER,
    "ClusterCrossSlotError": _CLUSTER,
    "AuthenticationError": "refuses the URL's name and password, or wants some: redis://:PASSWORD@HOST:6379/0",
    "AuthenticationWrongNumberOfArgsError": "has no user names: leave the name out of the URL",
    "NoPermissionError": "does not let this user write tidegate:* and run scripts (SET, EVAL, EVALSHA, SCRIPT LOAD)",
}
"""By the client's class for what Redis answered."""
_MODES = {
    "cluster": _CLUSTER,
    "sentinel": "is a Sentinel, which is not supported: give the address of the Redis that it watches",
}
_FOR_NOW = {
    "ReadOnlyError": "is a replica, which takes no writes: give the address of its master, or promote it",
    "OutOfMemoryError": "has no memory left, and takes no writes",
    "MasterDownError": "is a replica whose master is away",
    "BusyLoadingError": "is still reading its data",
}
_NOT_THERE = "does not answer yet ({reason}); it is asked again when it is needed"


@dataclass(frozen=True, slots=True)
class RedisUse:
    """`setting` is what names the URL. `keeps`: what is written there must not be evicted."""

    setting: str
    keeps: bool


def check_redis(url: str, use: RedisUse, *, timeout_s: float = CHECK_TIMEOUT_S) -> list[str]:
    """Asks, and returns what the operator should know. Raises RedisUnusable, see above.

    Each of a few questions waits for `timeout_s` at most, and none is asked after one that was not answered. No message
    repeats the URL. The package `redis` is there, and the URL is one: `connect_redis` has seen both.
    """
    import redis
    import redis.exceptions
    from redis.backoff import NoBackoff
    from redis.retry import Retry

    client = redis.Redis.from_url(
        url, socket_timeout=timeout_s, socket_connect_timeout=timeout_s, retry=Retry(NoBackoff(), 0)
    )
    try:
        return [f"{use.setting}: this Redis {words}" for words in _ask(client, use)]
    except (
        redis.exceptions.ResponseError,
        redis.exceptions.AuthenticationError,
        redis.exceptions.BusyLoadingError,
    ) as error:
        return [f"{use.setting}: this Redis {_judge(error, use)}"]
    except (redis.exceptions.RedisError, OSError) as error:
        return [f"{use.setting}: this Redis {_NOT_THERE.format(reason=type(error).__name__)}"]
    finally:
        client.close()


def _ask(client: "Redis", use: RedisUse) -> list[str]:
    """Asks what it is, if it tells, and then for what every script of ours needs."""
    told = _told(client)
    if (mode := _MODES.get(str(told.get("redis_mode")))) is not None:
        raise RedisUnusable(f"{use.setting}: this Redis {mode}")
    client.eval(_PROBE, 1, "tidegate:{start}:probe")
    policy = str(told.get("maxmemory_policy", "noeviction"))
    if use.keeps and policy != "noeviction" and told.get("maxmemory"):
        return [f"forgets answers when its memory is full (maxmemory-policy {policy}): set noeviction"]
    return []


def _told(client: "Redis") -> Mapping[str, Any]:
    """What INFO says; nothing where the user may not ask."""
    import redis.exceptions

    try:
        return {**client.info("server"), **client.info("memory")}
    except redis.exceptions.ResponseError:
        return {}


def _judge(error: Exception, use: RedisUse) -> str:
    """Returns what will do in the end; raises RedisUnusable for what never will."""
    kind = type(error).__name__
    if kind in _NEVER:
        raise RedisUnusable(f"{use.setting}: this Redis {_NEVER[kind]}")
    return _FOR_NOW.get(kind, f"does not run our scripts: {clean_text(str(error), MAX_CHARS)}")
