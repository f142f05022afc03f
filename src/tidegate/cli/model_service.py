"""From one served model to its gate and its service."""

from tidegate.cli.described_settings import server_facts
from tidegate.cli.engine_settings import turn_rule
from tidegate.cli.fault_log import log_fault
from tidegate.cli.model_engines import ModelSite
from tidegate.cli.model_loading import LoadedModel
from tidegate.cli.open_ledger import ledger_facts
from tidegate.cli.open_quotas import OwnGate, share_quotas
from tidegate.cli.settings import Settings
from tidegate.contract.unknown_fields import UnknownFieldPolicy
from tidegate.engine.messages import EngineReady
from tidegate.lifecycle.admission import AdmissionController, AdmissionLimits
from tidegate.lifecycle.cost_model import ChunkRule
from tidegate.lifecycle.drain import Drain
from tidegate.lifecycle.ledger_rules import LedgerRules
from tidegate.lifecycle.quota import KeyQuotas
from tidegate.observability.observer import Observer
from tidegate.serving.gate import Gate
from tidegate.serving.grammar_check import CheckBounds, GrammarCheck
from tidegate.serving.local_gate import LocalGate
from tidegate.serving.model_gates import ModelGates
from tidegate.serving.prepare import MaxDeadlines
from tidegate.serving.server_facts import EngineFact
from tidegate.serving.service import Service, ServiceSettings
from tidegate.serving.surroundings import Surroundings
from tidegate.system import SystemClock, entropy


def build_gates(sites: tuple[ModelSite, ...], drain: Drain) -> OwnGate:
    """Returns what lets requests into the engines. Raises QuotaBroken."""
    quotas = KeyQuotas()
    gates = {site.loaded.served.name: _build_gate(site, drain, quotas) for site in sites}
    settings = sites[0].settings
    if len(sites) == 1:
        return share_quotas(gates[sites[0].loaded.served.name], settings)
    by_name = {name: gates[site.loaded.served.name] for site in sites for name in site.loaded.served.names}
    return share_quotas(ModelGates(by_name), settings)


def _build_gate(site: ModelSite, drain: Drain, quotas: KeyQuotas) -> LocalGate:
    """Rows are the settings' where there is one engine, and those of the ready engines where there are more."""
    settings, engines = site.settings, site.engines
    engine, admission = settings.engine, settings.admission
    limits = AdmissionLimits(
        engine.max_sequences,
        admission.queue_depth,
        admission.queued_tokens,
        admission.queue_deadline_ms,
        admission.kv_overcommit,
        turn_rule(admission),
    )
    chunks = ChunkRule(engine.max_step_tokens, engine.prefill_chunk_tokens)
    controller = AdmissionController(limits, drain, chunks=chunks, quotas=quotas)
    gate = LocalGate(
        controller,
        SystemClock(),
        engines.engine.statistics,
        on_fault=log_fault,
        has_rows=engines.pool is not None,
    )

    def learn(greeting: EngineReady) -> None:
        model = greeting.model
        controller.learn_chunks(ChunkRule(model.max_step_tokens, model.prefill_chunk_tokens))
        if engines.pool is not None:
            gate.note_engine_changed()

    engines.parts.each(lambda _, engine: engine.on_ready.append(learn))
    return gate


def build_service(site: ModelSite, gate: Gate, drain: Drain, observer: Observer, rules: LedgerRules) -> Service:
    """Returns the service of one model. All models share `gate`, `drain` and `observer`."""
    settings, engines = site.settings, site.engines
    surroundings = Surroundings(
        engines.engine,
        gate,
        drain,
        observer,
        SystemClock(),
        settings.server.unsent_bytes,
        on_fault=log_fault,
        choose_lane=engines.choose_lane,
    )
    service_settings = ServiceSettings(
        settings.server.status_hold_s,
        UnknownFieldPolicy(settings.api.unknown_fields),
        server_facts(settings, ledger_facts(rules)),
        MaxDeadlines(settings.deadlines.max_ms, settings.deadlines.first_token_ms),
        lambda: engine_facts(site),
    )
    grammars = _grammar_check(settings, site.loaded, observer)
    return Service(site.loaded.served, surroundings, service_settings, entropy, grammars)


def engine_facts(site: ModelSite) -> list[EngineFact]:
    """Returns what callers are told of the engines of a model; nothing where there is only one."""
    pool = site.engines.pool
    members = [] if pool is None else pool.members()
    return [EngineFact(one.name, one.is_usable, one.status.model) for one in members]


def _grammar_check(settings: Settings, loaded: LoadedModel, observer: Observer) -> GrammarCheck | None:
    if loaded.grammar.compiler is None:
        return None
    bounds = CheckBounds(
        limit_ms=settings.limits.grammar_compile_ms,
        wait_ms=settings.admission.queue_deadline_ms,
        cache_entries=settings.grammar.cache_entries,
        cache_bytes=settings.grammar.cache_bytes,
        num_threads=settings.grammar.compile_threads,
    )
    return GrammarCheck(
        loaded.grammar.compiler, loaded.served.tokenizer_digest, bounds, clock=SystemClock(), observer=observer
    )
