"""RemoteEngine: the `Engine` port over an engine whose steps are not ours, one run for each choice.

Routes each piece to its request's sink through the fence. A run that breaks fails its request once, and only that one;
the engine's loss, which its watch finds, fails all. Nothing is ever sent twice: what broke off may have run. An abort
cuts the run, so nothing of it can come late; a hold stops reading, and the engine's side fills up. How a run reaches
the engine is its carrier's affair: HTTP (`http_carrier.py`), or a library in this process.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from tidegate.engine.gauges import EngineGauges, EngineStatus
from tidegate.engine.messages import EngineReady
from tidegate.engine.port import DeltaSink
from tidegate.engines.remote.accounts import RemoteAccounts
from tidegate.engines.remote.carrier import Carrier, Ending, Outcome, Run
from tidegate.engines.remote.dialect import Piece
from tidegate.engines.remote.remote_error import lost
from tidegate.engines.remote.route import Route
from tidegate.engines.tell import fail_sink, tell_all
from tidegate.errors import EngineRefused, EngineUnavailable, InternalError, ServeError
from tidegate.inference.fingerprint import fingerprint
from tidegate.inference.finish import EngineFinish
from tidegate.inference.model_info import ModelInfo
from tidegate.inference.output import TokenDelta
from tidegate.inference.request import InferenceRequest
from tidegate.lifecycle.fence import GenerationFence
from tidegate.lifecycle.poison import PoisonWatch, Suspect, death_id

MAX_RETRY_AFTER_S = 120
MAX_BROKEN = 1024
"""Broken requests that are remembered between two looks at the engine."""


class RemoteEngine:
    """See the module. `on_ready` and `on_lost` hold functions that are told of each change, on the event loop.

    `report` gets the context of an error that a sink or an observer raised, and of answers that could not be read, as
    a loop's exception handler does. `call_soon` runs a function on a later turn of the loop. `now`: monotonic clock.
    Engines of one pool share one `poison`.
    """

    def __init__(
        self,
        carrier: Carrier,
        report: Callable[[dict[str, Any]], None],
        *,
        call_soon: Callable[[Callable[[], None]], object],
        now: Callable[[], float],
        id_prefix: str = "",
        poison: PoisonWatch | None = None,
    ) -> None:
        self.on_ready: list[Callable[[EngineReady], None]] = []
        self.on_lost: list[Callable[[str], None]] = []
        self.on_trouble: list[Callable[[], None]] = []
        """Told when an exchange went wrong in a way that the engine's loss would explain."""
        self.retry_after_s = 1.0
        self.describe: Callable[[], str] | None = None
        """Set by the watch: what is being done about an engine that is not ready."""
        self.measure: Callable[[EngineGauges], EngineGauges] | None = None
        """Set where more is known of the engine's work than what its requests tell: accounts in, accounts out."""
        self.process_id: int | None = None
        self.num_stalls = 0
        self._carrier = carrier
        self._is_ready = False
        self._report = report
        self._call_soon = call_soon
        self._now = now
        self._id_prefix = id_prefix
        self._poison = PoisonWatch() if poison is None else poison
        self._broken: list[Suspect] = []
        """Whose exchange broke since the engine was last known to be well: with it, if it has gone."""
        self._fence = GenerationFence()
        self._routes: dict[str, Route] = {}
        self._runs: dict[Run, Route] = {}
        self._model: ModelInfo | None = None
        self._epoch = 0
        self._life = ""
        self._num_losses = 0
        """Of this life: an engine that hangs, or cannot be reached for a while, may come back as it was."""
        self._heard_at = now()
        self._accounts = RemoteAccounts()

    @property
    def is_ready(self) -> bool:
        return self._is_ready

    @property
    def num_open(self) -> int:
        """Requests whose sinks have not been told an end."""
        return len(self._routes)

    @property
    def silent_since(self) -> float | None:
        """Since when nothing has come of anything, although something is waited for; None while nothing is."""
        waited_for = [route.heard_at for route in self._routes.values() if not route.is_held]
        return max(min(waited_for), self._heard_at) if waited_for else None

    def submit(self, request: InferenceRequest, sink: DeltaSink) -> None:
        """See `Engine.submit`. Raises UnsupportedParameter for what the engine cannot do, EngineRefused for poison."""
        if not self._is_ready:
            raise EngineUnavailable("The engine is not ready.", retry_after_s=self._bounded_retry_s())
        if request.request_id in self._routes:
            raise InternalError(f"request {request.request_id} was submitted twice")
        self._carrier.check(request)
        if not self._poison.is_idle and self._poison.refuses(fingerprint(request), self._now()):
            raise EngineRefused("The engine stopped each time it worked on this request; it is refused for a while.")
        route = Route(sink, request, self._epoch, self._now())
        for choice in range(request.num_choices):
            remote_id = self._remote_id(request.request_id, choice)
            route.runs[choice] = self._carrier.make_run(self, request, choice, remote_id)
        self._fence.open(request.request_id, self._epoch)
        self._routes[request.request_id] = route
        self._accounts.note_submitted(route)
        for run in route.runs.values():
            self._runs[run] = route
            run.start()

    def abort(self, request_id: str, choice: int | None = None) -> None:
        """See `Engine.abort`."""
        route = self._routes.get(request_id)
        if route is None:
            return
        for index in sorted(route.runs) if choice is None else [choice]:
            run = route.runs.pop(index, None)
            if run is not None:
                self._drop(run)
                self._end_in_engine(route, index)
                self._call_soon(partial(self._acknowledge, route, index))

    def hold(self, request_id: str, *, held: bool) -> None:
        """See `Engine.hold`."""
        route = self._routes.get(request_id)
        if route is None or route.is_held == held:
            return
        route.is_held = held
        route.heard_at = self._now()
        self._accounts.refresh(route)
        for run in list(route.runs.values()):
            run.hold(held=held)

    def statistics(self) -> EngineStatus:
        """See `Engine.statistics`."""
        poison = self._poison.statistics()
        gauges = self._accounts.gauges(self._model)
        return EngineStatus(
            is_ready=self.is_ready,
            epoch=self._epoch,
            num_restarts=max(0, self._epoch - 1),
            num_stale_outputs=self._fence.num_stale,
            gauges=gauges if self.measure is None else self.measure(gauges),
            model=self._model,
            process_id=self.process_id,
            condition=None if self.is_ready or self.describe is None else self.describe(),
            retry_after_s=self._bounded_retry_s(),
            num_stalls=self.num_stalls,
            num_poison_suspects=poison.num_suspects,
            num_poison_refusals=poison.num_refusals,
        )

    # ---- from the watch ----

    def begin(self, model: ModelInfo, life: str) -> None:
        """The engine is there, under the next epoch; the carrier leads to it. `life` names this start of its process as
        far as it tells, the same in every server process that uses it.
        """
        self._epoch += 1
        self._num_losses = self._num_losses if life == self._life else 0
        self._life = life
        self._fence.advance(self._epoch)
        self._model = model
        self._accounts.block_tokens = model.block_tokens
        self._heard_at = self._now()
        self._is_ready = True
        tell_all(self.on_ready, EngineReady(self._epoch, model), self._report)

    def lose(self, reason: str, *, was_asked: bool = False) -> None:
        """The engine is gone: fails every open sink once. Harmless when it is gone already. `was_asked`: somebody
        wanted it, and no request is to blame.
        """
        if not self._is_ready:
            return
        self._is_ready = False
        self._fence.advance(None)
        routes, self._routes = self._routes, {}
        for run in list(self._runs):
            self._drop(run)
        self._carrier.drop()
        if not was_asked:
            suspects = [*self._broken, *(_suspect(route) for route in routes.values())]
            self._poison.note_death(suspects, self._now(), death_id(f"{self._life} {self._num_losses}"))
            self._num_losses += 1
        self._broken.clear()
        for route in routes.values():
            self._accounts.note_closed(route)
            self._fail(route, lost())
        tell_all(self.on_lost, reason, self._report)

    def note_sign(self) -> None:
        """The engine works, although it may not have given any output."""
        self._heard_at = self._now()

    def note_well(self) -> None:
        """The engine is alive: whatever broke before did not break with it."""
        self._broken.clear()

    async def aclose(self) -> None:
        """Ends what is open, and the way to the engine. Idempotent."""
        self.lose("this server ends", was_asked=True)
        await self._carrier.aclose()

    # ---- from the runs ----

    def take_piece(self, run: Run, piece: Piece) -> None:
        """See `RunOwner.take_piece`."""
        route = self._runs.get(run)
        if route is None or not self._fence.admits(route.request.request_id, route.epoch):
            return
        route.heard_at = self._heard_at = self._now()
        delta = route.delta_of(run.choice, piece)
        if delta is None:
            self._drop(run)
            self._note_broken(Outcome(Ending.LOST, "more tokens than were asked for"))
            self._give_up(route, lost())
            return
        self._accounts.note_delta(route, delta)
        self._deliver(route, delta)

    def end_run(self, run: Run, outcome: Outcome) -> None:
        """See `RunOwner.end_run`."""
        route = self._runs.pop(run, None)
        if route is None:
            return
        route.runs.pop(run.choice, None)
        if outcome.ending is Ending.COMPLETE:
            return
        self._note_broken(outcome)
        is_open = self._routes.get(route.request.request_id) is route
        if outcome.ending is Ending.LOST and is_open and len(self._broken) < MAX_BROKEN:
            self._broken.append(_suspect(route))
        for observer in self.on_trouble:
            observer()
        if run.choice in route.open_choices:
            self._give_up(route, outcome.error or lost())

    def _note_broken(self, outcome: Outcome) -> None:
        if outcome.ending is Ending.LOST:
            self._report({"message": f"a run in the engine broke off: {outcome.reason}"})
        elif outcome.ending is Ending.REFUSED:
            self._report({"message": f"the engine refused a request: {outcome.reason}"})

    # ---- ends ----

    def _deliver(self, route: Route, delta: TokenDelta) -> None:
        if delta.finish is not None:
            self._finish(route, delta.choice, delta.finish)
        try:
            route.sink.deliver(delta)
        except Exception as error:
            self._report({"message": "a sink raised", "exception": error})
            self._give_up(route, InternalError("An internal error."))

    def _finish(self, route: Route, choice: int, finish: EngineFinish) -> None:
        route.open_choices.discard(choice)
        if route.open_choices:
            self._accounts.refresh(route)
            return
        if not self._poison.is_idle and finish not in (EngineFinish.ABORTED, EngineFinish.FAILED):
            self._poison.note_completed(fingerprint(route.request))
        self._close(route)

    def _acknowledge(self, route: Route, choice: int) -> None:
        """Tells the sink the end of a choice that was aborted, unless the request has ended meanwhile."""
        if self._routes.get(route.request.request_id) is route and choice in route.open_choices:
            self._deliver(route, TokenDelta(route.request.request_id, choice, [], EngineFinish.ABORTED))

    def _give_up(self, route: Route, error: ServeError) -> None:
        """The whole request ends here, and what is left of it in the engine."""
        if self._routes.get(route.request.request_id) is not route:
            return
        self._close(route)
        for index, run in list(route.runs.items()):
            self._drop(run)
            self._end_in_engine(route, index)
        route.runs.clear()
        self._fail(route, error)

    def _close(self, route: Route) -> None:
        self._fence.close(route.request.request_id)
        self._routes.pop(route.request.request_id, None)
        self._accounts.note_closed(route)

    def _drop(self, run: Run) -> None:
        self._runs.pop(run, None)
        run.cut()

    def _end_in_engine(self, route: Route, choice: int) -> None:
        if self._is_ready:
            self._carrier.abort(self._remote_id(route.request.request_id, choice))

    def _remote_id(self, request_id: str, choice: int) -> str:
        return f"{self._id_prefix}{request_id}-{choice}"

    def _fail(self, route: Route, error: ServeError) -> None:
        route.open_choices.clear()
        fail_sink(route.sink, error, self._report)

    def _bounded_retry_s(self) -> int:
        return max(1, min(MAX_RETRY_AFTER_S, math.ceil(self.retry_after_s)))


def _suspect(route: Route) -> Suspect:
    return Suspect(fingerprint(route.request), route.has_output)
