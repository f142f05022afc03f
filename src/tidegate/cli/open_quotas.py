"""Who counts the quotas of keys: this server alone, or a Redis that several servers share."""

from tidegate.cli.fault_log import log_fault
from tidegate.cli.settings import Settings
from tidegate.lifecycle.quota_port import QuotaBroken
from tidegate.serving.local_gate import LocalGate
from tidegate.serving.model_gates import ModelGates
from tidegate.serving.shared_quota_gate import SharedQuotaGate
from tidegate.stores.redis_client import RedisUnusable
from tidegate.stores.redis_quotas import RedisQuotas
from tidegate.stores.redis_start import RedisUse, check_redis
from tidegate.system import entropy

OwnGate = LocalGate | ModelGates | SharedQuotaGate
"""A gate of this process."""


def share_quotas(gate: LocalGate | ModelGates, settings: Settings) -> OwnGate:
    """Returns the gate with its keys' quotas counted as the settings say. Raises QuotaBroken."""
    if settings.quotas.store == "local":
        return gate
    refuses = settings.quotas.when_away == "refuse"
    return SharedQuotaGate(gate, open_quotas(settings), refuses_when_away=refuses, on_fault=log_fault)


def open_quotas(settings: Settings) -> RedisQuotas:
    """Returns the store; it connects when it is first asked. Raises QuotaBroken."""
    url = quotas_url(settings)
    if url is None:
        raise QuotaBroken('quotas.store = "redis" needs quotas.redis_url, or idempotency.redis_url.')
    return RedisQuotas(url, entropy, timeout_s=settings.quotas.timeout_ms / 1000)


def quotas_url(settings: Settings) -> str | None:
    """Returns where quotas are counted, when a store counts them."""
    return settings.quotas.redis_url or settings.idempotency.redis_url


def check_quotas(settings: Settings) -> list[str]:
    """Returns what the operator should know. Raises QuotaBroken where the store cannot be opened, or never be used."""
    if settings.quotas.store != "redis":
        return []
    open_quotas(settings)
    url = quotas_url(settings)
    assert url is not None
    setting = "idempotency.redis_url" if settings.quotas.redis_url is None else "quotas.redis_url"
    try:
        return check_redis(url, RedisUse(setting, keeps=False))
    except RedisUnusable as error:
        raise QuotaBroken(str(error)) from None
