"""HttpCarrier: a request's choices as exchanges over HTTP, in the dialect that the engine was introduced with."""

from dataclasses import replace

from tidegate.engines.remote.carrier import RunOwner
from tidegate.engines.remote.choice_run import ChoiceRun
from tidegate.engines.remote.connection_pool import MAX_CONNECTIONS, ConnectionPool
from tidegate.engines.remote.dialect import Dialect
from tidegate.engines.remote.hop_headers import hop_headers
from tidegate.engines.remote.side_orders import SideOrders
from tidegate.errors import EngineUnavailable
from tidegate.inference.request import InferenceRequest


class HttpCarrier:
    """See `Carrier`. `dialect` is set by who found the engine, before it is declared ready; None while it is gone."""

    def __init__(self, pool: ConnectionPool) -> None:
        self.pool = pool
        self.dialect: Dialect | None = None
        self._side = SideOrders(pool)

    def check(self, request: InferenceRequest) -> None:
        if self.pool.num_open + request.num_choices > MAX_CONNECTIONS:
            raise EngineUnavailable("The engine does not keep up.", retry_after_s=1)
        self._spoken().check(request)

    def make_run(self, owner: RunOwner, request: InferenceRequest, choice: int, remote_id: str) -> ChoiceRun:
        dialect = self._spoken()
        order = replace(dialect.order(request, choice, remote_id), headers=hop_headers(request.hop, remote_id))
        return ChoiceRun(owner, self.pool, order, dialect.reader(request, choice), choice)

    def abort(self, remote_id: str) -> None:
        order = None if self.dialect is None else self.dialect.abort_order(remote_id)
        if order is not None:
            self._side.send(order)

    def drop(self) -> None:
        self.dialect = None
        self._side.drop()
        self.pool.cut_all()

    async def aclose(self) -> None:
        self.drop()
        await self._side.aclose()
        self.pool.close()

    def _spoken(self) -> Dialect:
        if self.dialect is None:
            raise EngineUnavailable("The engine is not ready.")
        return self.dialect
