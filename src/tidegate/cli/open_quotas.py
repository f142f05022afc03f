"""Who counts the quotas of keys: this server alone, or a Redis that several servers share."""

from tidegate.cli.fault_log import log_fault
from tidegate.cli.settings import Settings
from tidegate.lifecycle.quota_port import QuotaBroken
from tidegate.serving.local_gate import LocalGate
from tidegate.serving.model_gates import ModelGates
from tidegate.serving.shared_quota_gate import SharedQuotaGate
from tidegate.stores.redis_quotas import RedisQuotas
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
    url = settings.quotas.redis_url or settings.idempotency.redis_url
    if url is None:
        raise QuotaBroken('quotas.store = "redis" needs quotas.redis_url, or idempotency.redis_url.')
    return RedisQuotas(url, entropy, timeout_s=settings.quotas.timeout_ms / 1000)


def check_quotas(settings: Settings) -> None:
    """Raises QuotaBroken where the store could not be opened."""
    if settings.quotas.store == "redis":
        open_quotas(settings)
