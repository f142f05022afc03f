"""ModelRouter: one service for each served model, behind the shape of one.

Decides by the model's name, which is looked up in the body before anything else of it: a call goes to the service of
that model, one that names no model to the first model that its caller may use, and one that names an unknown model to
the first service, which says so. Does not know engines, templates, or what calls are about.
"""

import asyncio
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from tidegate.contract.codec import encode_json, peek_model
from tidegate.contract.model_list import ModelList
from tidegate.contract.self_description import DescribedLimit
from tidegate.errors import ServeError
from tidegate.lifecycle.principal import Principal
from tidegate.serving.call import Call
from tidegate.serving.driver import RequestDriver
from tidegate.serving.gate import KeySlot
from tidegate.serving.reply import Reply, WholeReply
from tidegate.serving.service import INLINE_BODY_BYTES, Service


class ModelRouter:
    """Has the shape of a `Service`. The first of `services` is the default. Names are those of exactly one each."""

    def __init__(self, services: Sequence[Service]) -> None:
        self.services = tuple(services)
        self._by_name = {name: service for service in services for name in service.served.names}

    # ---- as the HTTP layer's `Service` ----

    async def claim_slot(self, principal: Principal, route: str) -> KeySlot:
        """A key's slots count over all models."""
        return await self.services[0].claim_slot(principal, route)

    async def chat(self, call: Call) -> Reply:
        return await (await self._choose(call)).chat(call)

    async def completion(self, call: Call) -> Reply:
        return await (await self._choose(call)).completion(call)

    async def embeddings(self, call: Call) -> Reply:
        return await (await self._choose(call)).embeddings(call)

    async def score(self, call: Call) -> Reply:
        return await (await self._choose(call)).score(call)

    async def rerank(self, call: Call) -> Reply:
        return await (await self._choose(call)).rerank(call)

    async def classify(self, call: Call) -> Reply:
        return await (await self._choose(call)).classify(call)

    async def tokenize(self, call: Call) -> Reply:
        return await (await self._choose(call)).tokenize(call)

    async def detokenize(self, call: Call) -> Reply:
        return await (await self._choose(call)).detokenize(call)

    def models(self, principal: Principal) -> WholeReply:
        cards = [card for service in self.services for card in service.cards(principal)]
        return WholeReply(encode_json(ModelList(data=cards)))

    def model(self, model_id: str, principal: Principal) -> WholeReply:
        """Raises ModelNotFound and ModelNotAllowed."""
        return self._by_name.get(model_id, self.services[0]).model(model_id, principal)

    def contract(self, principal: Principal) -> WholeReply:
        """What is not said for each model is said of the one that answers where none is named."""
        first = self._default(principal).describe(principal)
        models = [
            replace(model, limits=_differing(described.limits, first.limits))
            for service in self.services
            for described in [service.describe(principal)]
            for model in described.models
        ]
        return WholeReply(encode_json(replace(first, models=models)))

    def is_ready(self) -> bool:
        """Whether each model has an engine that is ready."""
        return all(service.is_ready() for service in self.services)

    # ---- as the server's own `Service` ----

    @property
    def live(self) -> Mapping[str, RequestDriver]:
        """The live requests of all models."""
        return {name: driver for service in self.services for name, driver in service.live.items()}

    @property
    def is_accepting(self) -> bool:
        return self.services[0].is_accepting

    def expire_all(self, error: ServeError) -> None:
        """Ends every live request with `error`."""
        for service in self.services:
            service.expire_all(error)

    async def wait_empty(self) -> None:
        """Waits until no request is live."""
        while self.live:
            for service in self.services:
                await service.wait_empty()

    def close(self) -> None:
        """Gives back the threads."""
        for service in self.services:
            service.close()

    async def _choose(self, call: Call) -> Service:
        default = self._default(call.principal)
        if len(call.body) <= INLINE_BODY_BYTES:
            name = peek_model(call.body, default.served.limits)
        else:
            name = await asyncio.to_thread(peek_model, call.body, default.served.limits)
        return default if name is None else self._by_name.get(name, default)

    def _default(self, principal: Principal) -> Service:
        allowed = (service for service in self.services if service.served.names_for(principal))
        return next(allowed, self.services[0])


def _differing(own: Mapping[str, DescribedLimit], first: Mapping[str, DescribedLimit]) -> dict[str, DescribedLimit]:
    """Returns the limits of a model that are not those of the first."""
    return {name: limit for name, limit in own.items() if limit != first.get(name)}
